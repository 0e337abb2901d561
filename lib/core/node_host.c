#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "core/node_private.h"
#include "schema/json.h"

/* The host. */

static Holdfast__V1__Host make_record(const struct hf_node *node)
{
    Holdfast__V1__Host record = *(const Holdfast__V1__Host *)node->record;
    const Holdfast__V1__Host *old = (const Holdfast__V1__Host *)node->host_record.record;

    record.lease_id = node->lease.lease;
    record.left = false;
    record.cordoned = old != NULL && old->cordoned; /* a person's word */
    return record;
}

static int send_host(struct hf_node *node, enum node_op op, const char *why,
                     struct hf_intent *ret)
{
    int err = hf_plan_check(&ret->plan, NULL);

    if (err != HF_OK) {
        hf_plan_done(&ret->plan);
        if (err == HF_ENOMEM) {
            node->host_dirty = true;
            return err;
        }
        /* It can never be sent as it is: it must not be tried all the time. */
        node->host_pause_until = node->host_wake_at = node->now + node->policy.retry;
        return NODE_GO_ON;
    }
    node->host_flight = (struct node_flight){ .token = ++node->last_token,
                                              .op = op,
                                              .lease = node->lease.lease };
    ret->kind = HF_INTENT_WRITE;
    ret->token = node->host_flight.token;
    ret->subject = "host";
    ret->why = why;
    return NODE_INTENT;
}

static int register_host(struct hf_node *node, struct hf_intent *ret)
{
    Holdfast__V1__Host record = make_record(node);
    Holdfast__V1__HostLive live = HOLDFAST__V1__HOST_LIVE__INIT;
    Google__Protobuf__Duration ttl = hf_node_duration(node->lease.ttl);

    live.boot_id = node->boot_id;
    live.lease_id = node->lease.lease;
    live.ttl = &ttl;
    hf_node_plan(node, ret);
    hf_row_join(&ret->plan, node->host, &node->host_record.seen, &record, &live);
    return send_host(node, OP_HOST, "the host is here", ret);
}

/* The same but for who wrote it last. */
static int is_same(const ProtobufCMessage *mine, const ProtobufCMessage *other, bool *ret_same)
{
    HF_CLEANUP_BUF struct hf_buf ours = { 0 };
    HF_CLEANUP_BUF struct hf_buf theirs = { 0 };
    int err = hf_json_encode(mine, &ours);

    if (err == HF_OK)
        err = hf_json_encode(other, &theirs);
    if (err == HF_OK)
        *ret_same = ours.len == theirs.len && memcmp(ours.data, theirs.data, ours.len) == 0;
    return err;
}

/* Who had this lease before us may have had other settings: what may start here stands there.
 */
static int update_host(struct hf_node *node, struct hf_intent *ret)
{
    Holdfast__V1__Host record = make_record(node), old = HOLDFAST__V1__HOST__INIT;
    bool same = false;
    int err;

    if (node->host_record.record != NULL)
        old = *(const Holdfast__V1__Host *)node->host_record.record;
    record.n_op_ids = old.n_op_ids = 0;
    err = is_same(&record.base, &old.base, &same);
    if (err != HF_OK) {
        node->host_dirty = true;
        return err;
    }
    node->host_told = same;
    if (same)
        return NODE_GO_ON;
    hf_node_plan(node, ret);
    hf_row_host(&ret->plan, node->host, &node->host_record.seen, node->host_rev, &record);
    return send_host(node, OP_RECORD, "what the host is has changed", ret);
}

/* Our key may have been written without our hearing of it. */
static void recognise_host(struct hf_node *node)
{
    const Holdfast__V1__HostLive *live = (const Holdfast__V1__HostLive *)node->host_live.record;

    if (node->host_rev == 0 && live != NULL && node->lease.lease != 0 &&
        node->host_live.seen.lease == node->lease.lease) {
        node->host_rev = node->host_live.seen.create_rev;
        node->host_lease = node->lease.lease;
        hf_node_touch_all(node);
    }
    if (node->host_rev != 0 && node->synced && node->synced_rev >= node->host_rev &&
        node->host_live.seen.create_rev != node->host_rev)
        hf_node_void_lease(node);
}

/* A lease of our own that was lost is nobody: its key goes, or the mirror hears of it. */
static bool somebody_else_is_here(struct hf_node *node, struct hf_intent *ret)
{
    int64_t lease = node->host_live.seen.lease;

    if (node->host_alerted || lease == node->lease.lease ||
        (lease != 0 && lease == node->host_old_lease))
        return false;
    node->host_alerted = true;
    ret->kind = HF_INTENT_ALERT;
    ret->subject = "host";
    ret->why = "another agentd is registered with the name of this host, or was a moment ago";
    ret->alert = (struct hf_intent_alert){ .kind = HOLDFAST__V1__EVENT__KIND__suspect,
                                           .host = node->host,
                                           .why = ret->why,
                                           .next = "nothing starts here until that has gone" };
    return true;
}

static int say_outdated(struct hf_node *node, struct hf_intent *ret)
{
    if (node->outdated_alerted)
        return NODE_GO_ON;
    node->outdated_alerted = true;
    ret->kind = HF_INTENT_ALERT;
    ret->subject = "host";
    ret->why = HF_NODE_OUTDATED;
    ret->alert = (struct hf_intent_alert){ .kind = HOLDFAST__V1__EVENT__KIND__suspect,
                                           .host = node->host,
                                           .why = ret->why,
                                           .next = "nothing begins here until it is upgraded" };
    return NODE_INTENT;
}

int hf_node_host_next(struct hf_node *node, struct hf_intent *ret)
{
    bool told;

    node->host_dirty = false;
    node->host_wake_at = HF_NODE_NEVER;
    recognise_host(node);
    if (node->lost_due != 0) {
        node->host_dirty = true;
        return NODE_GO_ON;
    }
    if (hf_node_is_outdated(node))
        return say_outdated(node, ret);
    node->outdated_alerted = false;
    if ((node->host_rev != 0 && node->host_told) || node->host_flight.token != 0 ||
        !node->synced || node->lease.lease == 0)
        return NODE_GO_ON;
    told = node->told_rev >= node->host_wait_rev || node->now >= node->host_retry_at;
    if (node->now < node->host_pause_until || !told) {
        node->host_wake_at = told ? node->host_pause_until : node->host_retry_at;
        return NODE_GO_ON;
    }
    if (node->host_rev != 0)
        return update_host(node, ret);
    if (hf_node_exists(&node->host_live))
        return somebody_else_is_here(node, ret) ? NODE_INTENT : NODE_GO_ON;
    return register_host(node, ret);
}

void hf_node_host_outcome(struct hf_node *node, const struct hf_event_outcome *outcome)
{
    struct node_flight flight = node->host_flight;

    node->host_flight = (struct node_flight){ 0 };
    node->host_dirty = true;
    node->host_retry_at = node->now + node->policy.retry;
    if (outcome->outcome == HF_OUTCOME_UNKNOWN || outcome->outcome == HF_OUTCOME_FAILED)
        node->host_pause_until = node->host_retry_at;
    else if (outcome->revision > node->host_wait_rev && !flight.is_void)
        node->host_wait_rev = outcome->revision;
    if (outcome->outcome != HF_OUTCOME_DONE || flight.is_void || outcome->revision == 0 ||
        flight.lease != node->lease.lease)
        return;
    node->host_told = true;
    if (flight.op == OP_RECORD)
        return;
    node->host_rev = outcome->revision;
    node->host_lease = flight.lease;
    hf_node_touch_all(node);
}

/* Specs. */

static int is_same_spec(const struct node_agent *a, bool *ret_same)
{
    Holdfast__V1__Spec mine = *(const Holdfast__V1__Spec *)a->config;
    Holdfast__V1__Spec other = *(const Holdfast__V1__Spec *)a->spec.record;

    mine.n_op_ids = other.n_op_ids = 0;
    return is_same(&mine.base, &other.base, ret_same);
}

int hf_node_write_spec(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    bool same = false;
    int err = HF_OK;

    if (a->config == NULL || a->spec_written || !node->synced || !hf_node_lease_holds(node) ||
        !hf_node_is_told(node, a))
        return NODE_GO_ON;
    if (a->spec.record != NULL)
        err = is_same_spec(a, &same);
    if (err != HF_OK)
        return err;
    if (same || (a->spec_stood && !hf_node_exists(&a->spec))) {
        a->spec_written = true; /* by us, by an earlier link, or it was removed since */
        return NODE_GO_ON;
    }
    hf_node_plan(node, ret);
    hf_row_spec(&ret->plan, a->name, &a->spec.seen, (const Holdfast__V1__Spec *)a->config);
    hf_node_say(a, "etcd has another spec of it, or none", "its spec is written",
                HF_NODE_NEVER);
    return hf_node_send(node, a, OP_SPEC, a->why, ret);
}
