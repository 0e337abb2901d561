#include "core/engine_private.h"

struct hf_engine_status hf_engine_get_status(const struct hf_engine *e, hf_ms now)
{
    return (struct hf_engine_status){
        .leads = e->term.lease != 0,
        .synced = e->synced,
        .term = e->term,
        .counts = hf_fleet_get_counts(e->fleet),
        .generation = e->generation,
        .revision = e->told_rev,
        .queued = e->agenda.count,
        .flights = e->flight_count - e->resting_count,
        .resting = e->resting_count,
        .bad = e->bad.count,
        .paced = e->paced.count,
        .storm = hf_storm_get(&e->storm, now),
        .tilt = hf_tilt_get(&e->tilt, now),
        .cluster_now = hf_clusterclock_now(&e->clock, now),
    };
}
