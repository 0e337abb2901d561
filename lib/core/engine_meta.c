#include <stdio.h>

#include "core/engine_private.h"

#define META_EVERY  60000 /* the rates follow the size of the fleet, but not every agent */
#define RATE_CHANGE 20    /* percent that make a difference */

static const Holdfast__V1__Meta *get_meta(const struct hf_engine *e)
{
    return (const Holdfast__V1__Meta *)hf_fleet_get_meta(e->fleet)->record;
}

/* A history that went back has to get another generation, unless somebody gave it one. */
static bool needs_generation(const struct hf_engine *e, const Holdfast__V1__Meta *meta)
{
    return e->history_reset && !hf_mutated(e, HF_MUTANT_NO_GENERATION) &&
           (meta == NULL || meta->generation <= e->generation_floor);
}

/* A program that knows only an older schema must not write. */
static bool may_write(const Holdfast__V1__Meta *meta)
{
    return meta == NULL || meta->schema_version <= HF_SCHEMA_VERSION;
}

/* Whether it was stored in this term: nobody else may write it since. */
static bool is_clock_ours(const struct hf_engine *e)
{
    return hf_fleet_get_clock(e->fleet)->seen.mod_rev > e->term.create_rev;
}

/* Everybody has to count from our own clock before a time that was read on it is stored. */
static bool is_clock_due(const struct hf_engine *e, hf_ms now)
{
    return e->clock.read && (!is_clock_ours(e) || hf_told_is_due(e, now) ||
                             hf_clusterclock_next(&e->clock, now, now).due);
}

bool hf_engine_is_ready(const struct hf_engine *e)
{
    const Holdfast__V1__Meta *meta = get_meta(e);

    return meta != NULL && may_write(meta) && !needs_generation(e, meta) && e->clock.present &&
           (is_clock_ours(e) || hf_mutated(e, HF_MUTANT_CLOCK_UNWRITTEN));
}

bool hf_engine_is_due_first(const struct hf_engine *e, hf_ms now)
{
    const Holdfast__V1__Meta *meta = get_meta(e);

    if (!may_write(meta))
        return false;
    if ((meta == NULL || needs_generation(e, meta)) && e->meta_item.flight == 0)
        return true;
    return e->clock_item.flight == 0 && is_clock_due(e, now);
}

/* Reports of all agents together shall not come more often than etcd can bear. */
hf_ms hf_engine_report_interval(const struct hf_engine *e)
{
    size_t agents = hf_fleet_get_counts(e->fleet).agents;
    hf_ms shared = (hf_ms)(agents * 1000 / e->policy.report_rate);

    return shared > e->policy.report_floor ? shared : e->policy.report_floor;
}

static hf_ms published_interval(const Holdfast__V1__Meta *meta)
{
    const Google__Protobuf__Duration *report =
        meta != NULL && meta->rates != NULL ? meta->rates->report : NULL;

    return report != NULL ? report->seconds * 1000 + report->nanos / 1000000 : 0;
}

static bool rates_differ(const struct hf_engine *e, const Holdfast__V1__Meta *meta)
{
    hf_ms is = published_interval(meta), shall = hf_engine_report_interval(e);
    hf_ms distance = is > shall ? is - shall : shall - is;

    return distance * 100 > shall * RATE_CHANGE;
}

static int write_meta(struct hf_engine *e, const Holdfast__V1__Meta *meta,
                      struct hf_intent *ret)
{
    bool anew = needs_generation(e, meta);
    Holdfast__V1__Meta next = HOLDFAST__V1__META__INIT;
    Holdfast__V1__Meta__Rates rates = HOLDFAST__V1__META__RATES__INIT;
    Google__Protobuf__Duration report = GOOGLE__PROTOBUF__DURATION__INIT;
    hf_ms interval = hf_engine_report_interval(e);
    char cluster_id[HF_ID_LEN + 1];

    hf_draft_begin(e, ret);
    if (meta != NULL) {
        next = *meta;
    } else {
        hf_draft_id(e, cluster_id);
        next.cluster_id = cluster_id;
        next.schema_version = HF_SCHEMA_VERSION;
    }
    if (anew)
        next.generation = e->generation_floor < INT32_MAX ? e->generation_floor + 1 : INT32_MAX;
    report.seconds = interval / 1000;
    report.nanos = (int32_t)(interval % 1000 * 1000000);
    rates.report = &report;
    next.rates = &rates;
    hf_row_write(&ret->plan, &e->term, (struct hf_key){ .kind = HF_KEY_META },
                 &hf_fleet_get_meta(e->fleet)->seen, &next.base);
    if (anew)
        hf_draft_event(e, ret,
                       &(struct hf_draft_event){
                           .kind = HOLDFAST__V1__EVENT__KIND__history_reset,
                           .why = "etcd's history went back: every life gets a new number",
                           .next = "every agent registers again" });
    e->meta_at = e->now;
    return hf_draft_end(e, ret, &e->meta_item, NULL,
                        anew ? "etcd was restored: a new generation begins"
                        : meta == NULL
                            ? "the cluster has no meta record yet"
                            : "the fleet has another size: reports have another rate");
}

int hf_engine_decide_meta(struct hf_engine *e, struct hf_intent *ret)
{
    const Holdfast__V1__Meta *meta = get_meta(e);

    if (!may_write(meta))
        return 0;
    if (meta == NULL || needs_generation(e, meta))
        return write_meta(e, meta, ret);
    hf_engine_wake(e, &e->meta_item, e->now + META_EVERY);
    if (e->now < e->meta_at + META_EVERY || !rates_differ(e, meta))
        return 0;
    return write_meta(e, meta, ret);
}

int hf_engine_decide_clock(struct hf_engine *e, struct hf_intent *ret)
{
    struct hf_clusterclock_step step = hf_clusterclock_next(&e->clock, e->wall, e->now);
    Holdfast__V1__Clock next = HOLDFAST__V1__CLOCK__INIT;
    Google__Protobuf__Timestamp value;
    bool begins = !is_clock_ours(e);

    if (!may_write(get_meta(e)))
        return 0;
    if (!is_clock_due(e, e->now)) {
        hf_engine_wake(e, &e->clock_item, step.at);
        if (e->told.due != 0)
            hf_engine_wake(e, &e->clock_item, e->told.due);
        return 0;
    }
    if (!step.due)
        step.value = hf_clusterclock_now(&e->clock, e->now);
    hf_draft_begin(e, ret);
    next.now = hf_moment_write(step.value, &value);
    next.leader = e->id;
    hf_told_write(e, &next);
    hf_row_write(&ret->plan, &e->term, (struct hf_key){ .kind = HF_KEY_CLOCK },
                 &hf_fleet_get_clock(e->fleet)->seen, &next.base);
    if (begins)
        hf_draft_event(e, ret,
                       &(struct hf_draft_event){ .kind = HOLDFAST__V1__EVENT__KIND__leader,
                                                 .why = "it leads from here on" });
    return hf_draft_end(e, ret, &e->clock_item, NULL,
                        begins ? "a leader begins" : "the cluster clock goes on");
}
