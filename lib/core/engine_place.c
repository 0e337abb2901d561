#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "core/engine_private.h"

/* The table of all hosts, to draw from. */

int hf_engine_reserve_host(struct hf_engine *e)
{
    return hf_grow(&e->hosts, &e->host_cap, e->host_count + 1, sizeof(void *)) ? HF_OK
                                                                               : HF_ENOMEM;
}

void hf_engine_add_host(struct hf_engine *e, struct hf_host *host)
{
    e->hosts[e->host_count++] = host;
    hf_host_state(host)->place = (uint32_t)e->host_count;
}

void hf_engine_remove_host(struct hf_engine *e, struct hf_host *host)
{
    struct hf_host_state *state = hf_host_state(host);
    struct hf_host *last;

    if (state->place == 0)
        return;
    last = e->hosts[--e->host_count];
    e->hosts[state->place - 1] = last;
    hf_host_state(last)->place = state->place;
    state->place = 0;
    if (state->counted) {
        e->facts.hosts--;
        e->facts.live -= state->was_live ? 1 : 0;
        state->counted = false;
    }
}

/* Hosts that are passed over for a launcher while others can take what it starts. */

static uint32_t launcher_hash(const char *launcher)
{
    uint32_t hash = hf_hash(0, launcher, strlen(launcher));

    return hash != 0 ? hash : 1;
}

void hf_engine_pass_over(struct hf_engine *e, const char *name, const char *launcher)
{
    struct hf_host *host = name != NULL ? hf_fleet_get_host(e->fleet, name) : NULL;
    struct hf_host_state *state = host != NULL ? hf_host_state(host) : NULL;
    uint32_t hash = launcher_hash(launcher);
    size_t at = 0;

    if (state == NULL)
        return;
    /* Its own place, or that of what ends first. */
    for (size_t i = 0; i < HF_PASSED; i++) {
        if (state->passed[i].launcher == hash) {
            at = i;
            break;
        }
        if (state->passed[i].until < state->passed[at].until)
            at = i;
    }
    state->passed[at].launcher = hash;
    state->passed[at].until = e->now + e->policy.avoid_host;
}

static hf_ms passed_until(const struct hf_host_state *state, const char *launcher)
{
    uint32_t hash = launcher_hash(launcher);

    for (size_t i = 0; i < HF_PASSED; i++) {
        if (state->passed[i].launcher == hash)
            return state->passed[i].until;
    }
    return 0;
}

/* One question. */
struct question {
    struct hf_engine *e;
    const Holdfast__V1__Spec *spec;
    const char *last; /* where it was last; NULL: not known */
    bool avoid_last;
    bool fresh_only;
    bool unkillable; /* its process there */
};

static struct hf_placement_host describe(const struct question *q, const struct hf_host *host)
{
    const struct hf_host_state *state = hf_host_state(host);
    bool is_last = q->last != NULL && strcmp(q->last, host->name) == 0;

    return (struct hf_placement_host){
        .name = host->name,
        .record = hf_bad_of_host(q->e, host->name) == NULL ? hf_host_record(host) : NULL,
        .agents = host->agents,
        .starts = host->commands,
        .gone_at = host->live_gone_rev != 0 ? host->live_gone_at : state->known_at,
        .passed_until = passed_until(state, q->spec->launcher),
        .live = host->live.record != NULL,
        .unkillable = is_last && q->unkillable,
        .avoided = is_last && q->avoid_last,
    };
}

static struct hf_placement_decision ask_sample(const struct question *q,
                                               const struct hf_placement_host *home,
                                               struct hf_placement_host *ret_hosts)
{
    struct hf_engine *e = q->e;
    size_t indices[HF_PLACEMENT_SAMPLE];
    uint64_t random = (uint64_t)e->random * 0x9e3779b97f4a7c15u;
    size_t count = hf_placement_sample(&e->policy.placement, e->host_count, random, indices);

    for (size_t i = 0; i < count; i++)
        ret_hosts[i] = describe(q, e->hosts[indices[i]]);
    return hf_placement_decide(&e->policy.placement,
                               &(struct hf_placement_case){ .spec = q->spec,
                                                            .home = home,
                                                            .hosts = ret_hosts,
                                                            .count = count,
                                                            .is_all = count == e->host_count,
                                                            .fresh_only = q->fresh_only },
                               e->now, e->random);
}

static int ask_all(const struct question *q, const struct hf_placement_host *home,
                   struct hf_placement_decision *ret_decision, struct hf_host **ret_host)
{
    struct hf_engine *e = q->e;
    HF_CLEANUP_FREE struct hf_placement_host *hosts =
        hf_calloc(e->host_count + 1, sizeof *hosts);

    if (hosts == NULL)
        return HF_ENOMEM;
    for (size_t i = 0; i < e->host_count; i++)
        hosts[i] = describe(q, e->hosts[i]);
    *ret_decision =
        hf_placement_decide(&e->policy.placement,
                            &(struct hf_placement_case){ .spec = q->spec,
                                                         .home = home,
                                                         .hosts = hosts,
                                                         .count = e->host_count,
                                                         .is_all = true,
                                                         .fresh_only = q->fresh_only },
                            e->now, e->random);
    if (ret_decision->verdict == HF_PLACEMENT_HOST)
        *ret_host = hf_fleet_get_host(e->fleet, ret_decision->host->name);
    return HF_OK;
}

int hf_engine_place(struct hf_engine *e, const struct hf_agent *agent, enum hf_place_mode mode,
                    const struct hf_death *death, struct hf_place *ret_place)
{
    struct question q = { .e = e,
                          .spec = hf_agent_spec(agent),
                          .last = hf_death_host(e, agent),
                          .avoid_last = mode != HF_PLACE_ANYWHERE,
                          .fresh_only = mode == HF_PLACE_FRESH,
                          .unkillable = death->kind == HOLDFAST__V1__EXIT__KIND__unkillable };
    const struct hf_host *home = hf_engine_find_rooted(e, agent);
    struct hf_placement_host home_facts, hosts[HF_PLACEMENT_SAMPLE];
    struct hf_placement_decision d;
    struct hf_host *host = NULL;

    if (home == NULL && q.spec->home[0] != '\0')
        home = hf_fleet_get_host(e->fleet, q.spec->home);
    if (home != NULL)
        home_facts = describe(&q, home);
    d = ask_sample(&q, home != NULL ? &home_facts : NULL, hosts);
    if (d.verdict == HF_PLACEMENT_HOST)
        host = hf_fleet_get_host(e->fleet, d.host->name);
    if (d.verdict == HF_PLACEMENT_WIDEN) {
        int err = ask_all(&q, home != NULL ? &home_facts : NULL, &d, &host);

        if (err != HF_OK)
            return err;
    }
    *ret_place = (struct hf_place){
        .verdict = d.verdict, .host = host, .why = d.why, .next = d.next, .at = d.at
    };
    return HF_OK;
}
