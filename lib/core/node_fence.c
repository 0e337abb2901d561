#include <stdlib.h>
#include <string.h>

#include "core/node_private.h"

/* A restored lease runs for its whole TTL, from when a leader was elected. */
enum { GHOST_TTLS = 3 };

/* Losing a registration. */

/* What was found or sent for a life that is no more says nothing about the next; only what
 * became of a write that was asked for still answers that ask. */

static void remember_life(struct node_agent *a)
{
    if (a->life_count == NODE_LIVES)
        a->unadopted = true; /* it may own something that we could not recognise any more */
    else
        a->lives[a->life_count++] = a->life;
}

static void lose(struct hf_node *node, struct node_agent *a)
{
    if (a->reg != REG_HOLDS)
        return;
    hf_node_unsettle(a);
    a->reg = REG_NONE;
    if (a->process != PROCESS_BEGUN)
        return;
    remember_life(a);
    a->reg = REG_LOST;
    a->lost_at = node->now;
}

static void lose_all(struct hf_node *node)
{
    for (size_t i = 0; i < node->agent_count; i++) {
        if (node->agents[i]->life.lease != node->lease.lease)
            lose(node, node->agents[i]);
    }
    if (node->host_lease != node->lease.lease) {
        if (node->host_lease != 0)
            node->host_old_lease = node->host_lease;
        node->host_rev = 0;
        node->host_lease = 0;
        node->host_flight.is_void = true;
    }
    hf_node_touch_all(node);
}

/* From now on this lease is gone, whatever the session still says of it. */
void hf_node_void_lease(struct hf_node *node)
{
    if (node->lease.lease == 0)
        return;
    node->void_lease = node->lost_due = node->lease.lease;
    node->lease.state = HF_LEASE_LOST;
    node->lease.lease = 0;
    lose_all(node);
}

void hf_node_on_lease(struct hf_node *node, const struct hf_event_lease *lease)
{
    node->lease = *lease;
    if (lease->lease != 0 && lease->lease == node->void_lease)
        node->lease.state = HF_LEASE_LOST;
    if (node->lease.state == HF_LEASE_LOST)
        node->lease.lease = 0;
    lose_all(node);
}

/* Revisions begin anew: none that was known may be compared with one that is told. */
void hf_node_on_reset(struct hf_node *node)
{
    node->ghosts_until = node->now + GHOST_TTLS * node->lease.ttl;
    hf_node_void_lease(node);
    for (size_t i = 0; i < node->agent_count; i++) {
        struct node_agent *a = node->agents[i];

        lose(node, a);
        a->flight.is_void = true;
        a->wait_rev = 0;
        a->command_rev = a->carried_rev = 0;
        a->spec_written = a->spec_stood = false; /* or nobody could start it any more */
        hf_node_clear_cell(&a->task);
        hf_node_drop_ahead(a);
        hf_node_drop_heir(a);
        hf_node_drop_kept(a);
    }
    node->host_flight.is_void = true;
    node->host_wait_rev = 0;
}

/* Our own keys, as the mirror shows them. */

static void key_is_gone(struct hf_node *node, struct node_agent *a)
{
    /* An end of ours whose outcome is not known deletes it, too. */
    if (a->process == PROCESS_ENDED || a->process == PROCESS_STUCK)
        lose(node, a);
    else
        hf_node_void_lease(node);
}

void hf_node_on_read(struct hf_node *node, struct node_agent *a, int64_t revision)
{
    if (a->reg == REG_HOLDS && revision != 0 && revision < a->life.create_rev &&
        a->life.lease == node->lease.lease)
        key_is_gone(node, a);
}

void hf_node_on_live(struct hf_node *node, struct node_agent *a, int64_t was)
{
    if (a->reg == REG_HOLDS && was == a->life.create_rev &&
        a->live.seen.create_rev != a->life.create_rev && a->life.lease == node->lease.lease)
        key_is_gone(node, a);
}

void hf_node_on_host_live(struct hf_node *node, int64_t was)
{
    if (node->host_rev != 0 && was == node->host_rev &&
        node->host_live.seen.create_rev != node->host_rev)
        hf_node_void_lease(node);
}

static bool is_ours(const struct hf_node *node, const struct node_agent *a)
{
    const Holdfast__V1__Live *live = hf_node_live(a);

    return live != NULL && a->live.seen.lease == node->lease.lease && node->lease.lease != 0 &&
           a->instance[0] != '\0' && strcmp(live->instance_id, a->instance) == 0;
}

static bool is_registering(const struct node_agent *a)
{
    return !a->flight.is_void && (a->flight.op == OP_START || a->flight.op == OP_REJOIN);
}

/* A list may be older than our key. A later key is somebody else's: ours is gone, also where
 * etcd was restored to before it was written, which then is all that there is to see. */
static bool is_over(const struct hf_node *node, const struct node_agent *a)
{
    int64_t shown = a->live.seen.create_rev;

    return shown > a->life.create_rev ||
           (shown != a->life.create_rev && node->synced_rev >= a->life.create_rev);
}

/* What etcd shows counts more than what we heard of our own writes: an outcome may be unknown,
 * and a list may show that a key is gone without telling of its deletion. */
int hf_node_recognise(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    (void)ret;
    hf_node_recognise_heir(node, a);
    if (a->process == PROCESS_ENDED && a->reg != REG_HOLDS && !is_registering(a) &&
        !is_ours(node, a) && !hf_node_take_heir(a))
        hf_node_forget_process(a); /* there is no key any more to write its end to */
    if (is_ours(node, a) && a->reg != REG_HOLDS && a->process != PROCESS_NONE)
        hf_node_on_registered(a, a->live.seen.create_rev, node->lease.lease,
                              hf_node_generation(node));
    else if (a->reg == REG_HOLDS && node->synced && a->known &&
             a->life.lease == node->lease.lease && is_over(node, a))
        key_is_gone(node, a);
    return NODE_GO_ON;
}

/* Freeze and thaw. */

bool hf_node_must_freeze(const struct hf_node *node, const struct node_agent *a)
{
    const Holdfast__V1__Spec *spec = hf_node_spec(a);

    if (spec != NULL && spec->fence == HOLDFAST__V1__SPEC__FENCE__hold)
        return false;
    if (node->lease.frozen && !hf_node_lacks(node, HF_MUTANT_NO_FREEZE))
        return true;
    return a->reg == REG_LOST && !hf_node_lacks(node, HF_MUTANT_NO_LOST_FREEZE) &&
           node->now >= a->lost_at + node->policy.lost_grace;
}

/* Proven, registered, and its tasks its own again. */
static bool may_run(const struct hf_node *node, const struct node_agent *a)
{
    return a->reg == REG_HOLDS &&
           (a->settled || hf_node_lacks(node, HF_MUTANT_THAW_UNADOPTED)) &&
           (hf_node_lease_holds(node) || hf_node_lacks(node, HF_MUTANT_THAW_UNPROVEN));
}

int hf_node_freeze(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    if (!a->frozen && hf_node_must_freeze(node, a)) {
        a->frozen = true;
        a->frozen_at = node->now;
        hf_node_say(a, "nobody can be sure that it is still registered",
                    "it stands still until that is proven, and is killed in the end",
                    node->now + node->policy.frozen_max);
        return hf_node_tell(a, HF_PROCESS_FREEZE, a->why, ret);
    }
    if (a->frozen && !hf_node_must_freeze(node, a) && may_run(node, a)) {
        a->frozen = false;
        hf_node_say(a, "its registration is proven, and its tasks are its own", "it runs",
                    HF_NODE_NEVER);
        (void)hf_node_tell(a, HF_PROCESS_THAW, a->why, ret);
        ret->process.incarnation = hf_node_incarnation(&a->life);
        return NODE_INTENT;
    }
    if (a->frozen)
        hf_node_wake(a, a->frozen_at + node->policy.frozen_max);
    else if (a->reg == REG_LOST)
        hf_node_wake(a, a->lost_at + node->policy.lost_grace);
    return NODE_GO_ON;
}

/* Rejoin. */

int hf_node_rejoin(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    struct node_live live;

    if (a->process != PROCESS_BEGUN || a->reg != REG_LOST || a->asked != ASKED_NOTHING)
        return NODE_GO_ON;
    if (node->lease.lease == 0) {
        hf_node_say(a, "the lease is lost", "it is registered anew under the next one",
                    HF_NODE_NEVER);
        return NODE_GO_ON;
    }
    if (!a->known || !hf_node_is_told(node, a))
        return NODE_GO_ON;
    if (hf_node_exists(&a->live)) {
        hf_node_say(a, "its key under the lease before is still there",
                    "it is registered anew when that has gone", HF_NODE_NEVER);
        return NODE_GO_ON;
    }
    if (hf_node_keep_words(a) != HF_OK)
        return HF_ENOMEM;
    hf_node_plan(node, ret);
    hf_node_fill_live(node, a, &live);
    hf_row_rejoin(&ret->plan, &live.start);
    hf_node_say(a, "the lease was lost, and the process lives", "it is registered anew",
                HF_NODE_NEVER);
    return hf_node_send(node, a, OP_REJOIN, a->why, ret);
}

void hf_node_on_registered(struct node_agent *a, int64_t create_rev, int64_t lease,
                           int32_t generation)
{
    if (a->reg == REG_HOLDS && a->life.create_rev == create_rev && a->life.lease == lease)
        return;
    a->reg = REG_HOLDS;
    a->life = (struct hf_life){
        .agent = a->name, .lease = lease, .create_rev = create_rev, .generation = generation
    };
    a->tasks_read = false;
    a->settled = a->process == PROCESS_HELD && a->start_sent;
    a->said_new = a->said_new || a->said_wall != 0; /* what it said holds in this life, too, */
    free(a->reported); /* and nobody takes what was written for the one before as its own */
    a->reported = NULL;
    a->suspicion_new = a->suspicion_new || a->suspicion != NULL;
    a->suspected = false;
    a->dirty = true;
}
