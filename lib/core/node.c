#include "core/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/str.h"
#include "core/node_private.h"
#include "schema/json.h"

#define GENERATION_SHIFT 48

enum { MOST_ROUNDS = 4 }; /* in one call; the next one goes on */

/* Life. */

void hf_node_keep_text(char out[NODE_TEXT_SIZE], const char *text)
{
    const char *from = text != NULL ? text : "";

    (void)snprintf(out, NODE_TEXT_SIZE, "%.*s", (int)hf_str_cut(from, NODE_TEXT_SIZE - 1),
                   from);
}

static void take_over_spare(struct node_agent *a, const struct hf_node_held *held)
{
    if (held->spare_id == NULL)
        return;
    a->spare = (struct node_spare){ .process = PROCESS_HELD,
                                    .pid = held->spare_pid,
                                    .start_time = held->spare_start_time,
                                    .until = NODE_SPARE_UNSEEN };
    (void)snprintf(a->spare.instance, sizeof a->spare.instance, "%s", held->spare_id);
}

/* What the keeper held when the link before this one went. Whether its registration still
 * stands is seen when the lease and the mirror have spoken. */
static void take_over(struct node_agent *a, const struct hf_node_held *held)
{
    take_over_spare(a, held);
    a->ping = held->ping;
    a->started = a->boot_over = held->started;
    a->spec_stood =
        held->spec_written && !held->begun; /* what runs is registered with its spec */
    if (held->instance_id == NULL)
        return;
    (void)snprintf(a->instance, sizeof a->instance, "%s", held->instance_id);
    a->pid = held->pid;
    a->start_time = held->start_time;
    a->process = held->begun ? PROCESS_BEGUN : PROCESS_HELD;
    a->blind = held->begun;
    a->ready = held->begun; /* how soon it failed cannot be told any more */
    a->started = a->boot_over = held->started || held->begun;
    a->frozen = held->frozen;
    a->frozen_at = -1;
    a->walk = held->begun ? WALK_OVER : WALK_NONE;
    a->leaving = held->leaving;
    a->leave_by = -1;
    if (held->leaving)
        hf_node_keep_text(a->end_text, held->leave_text);
    if (held->lease != 0 && held->create_rev != 0) {
        a->reg = REG_HOLDS;
        a->life = (struct hf_life){ .agent = a->name,
                                    .lease = held->lease,
                                    .create_rev = held->create_rev,
                                    .generation = held->generation };
    } else if (held->begun) {
        a->reg = REG_LOST;
    }
}

static int add_configured(struct hf_node *node, const struct hf_node_agent_config *cfg)
{
    struct node_agent *a;
    int err = hf_node_add_agent(node, cfg->name, &a);

    if (err != HF_OK)
        return err;
    err = hf_json_copy(&cfg->spec->base, &a->config);
    if (err != HF_OK)
        return err;
    a->spec_written = cfg->foreign;
    take_over(a, &cfg->held);
    return hf_node_need_role(node, cfg->spec->role);
}

static int fill(struct hf_node *node, const struct hf_node_config *cfg)
{
    int err = HF_OK;

    node->policy = cfg->policy;
    node->entropy = cfg->seed;
    node->mutants = cfg->mutants;
    node->by_name.seed = cfg->seed;
    node->ns = hf_strdup(cfg->ns);
    node->host = hf_strdup(cfg->host);
    node->boot_id = hf_strdup(cfg->boot_id);
    if (node->ns == NULL || node->host == NULL || node->boot_id == NULL)
        return HF_ENOMEM;
    err = hf_json_copy(&cfg->record->base, &node->record);
    for (size_t i = 0; i < cfg->agent_count && err == HF_OK; i++)
        err = add_configured(node, &cfg->agents[i]);
    node->lease.state = HF_LEASE_LOST;
    node->host_dirty = true;
    return err;
}

struct hf_node *hf_node_new(const struct hf_node_config *cfg)
{
    struct hf_node *node = hf_calloc(1, sizeof *node);

    if (node != NULL && fill(node, cfg) != HF_OK) {
        hf_node_free(node);
        return NULL;
    }
    return node;
}

static void free_asks(struct node_ask **list)
{
    while (*list != NULL) {
        struct node_ask *ask = *list;

        *list = ask->next;
        hf_node_free_ask(ask);
    }
}

void hf_node_free(struct hf_node *node)
{
    if (node == NULL)
        return;
    hf_node_forget(node);
    for (size_t i = 0; i < node->agent_count; i++) {
        free_asks(&node->agents[i]->asks);
        hf_node_free_agent(node->agents[i]);
    }
    for (size_t i = 0; i < node->role_count; i++)
        hf_node_free_role(node->roles[i]);
    free_asks(&node->orphans);
    free_asks(&node->replied);
    hf_index_done(&node->by_name);
    hf_json_free(node->record);
    free(node->agents);
    free(node->roles);
    free(node->ns);
    free(node->host);
    free(node->boot_id);
    free(node);
}

/* Small questions. */

struct node_agent *hf_node_find(const struct hf_node *node, const char *name)
{
    return name != NULL ? hf_index_get(&node->by_name, name) : NULL;
}

bool hf_node_lease_holds(const struct hf_node *node)
{
    const struct hf_event_lease *lease = &node->lease;

    return lease->state == HF_LEASE_HELD && !lease->frozen && lease->lease != 0 &&
           node->now < lease->proven_until;
}

bool hf_node_is_outdated(const struct hf_node *node)
{
    const Holdfast__V1__Meta *meta = (const Holdfast__V1__Meta *)node->meta.record;

    return meta != NULL && meta->schema_version > HF_SCHEMA_VERSION;
}

int32_t hf_node_generation(const struct hf_node *node)
{
    const Holdfast__V1__Meta *meta = (const Holdfast__V1__Meta *)node->meta.record;

    return meta != NULL ? meta->generation : 0;
}

const char *hf_node_get_cluster(const struct hf_node *node)
{
    const Holdfast__V1__Meta *meta = (const Holdfast__V1__Meta *)node->meta.record;

    return meta != NULL ? meta->cluster_id : "";
}

const Holdfast__V1__Spec *hf_node_spec(const struct node_agent *a)
{
    return (const Holdfast__V1__Spec *)(a->config != NULL ? a->config : a->spec.record);
}

bool hf_node_is_told(struct hf_node *node, struct node_agent *a)
{
    if (!node->synced)
        return false;
    if (node->told_rev >= a->wait_rev || node->now >= a->retry_at)
        return true;
    hf_node_wake(a, a->retry_at);
    return false;
}

bool hf_node_owns(const struct hf_life *life, const struct hf_cell *cell)
{
    const Holdfast__V1__Task *task = hf_node_task(cell);
    struct hf_seen_task seen = hf_node_seen_task(cell);

    return task != NULL && task->owner != NULL && task->owner->incarnation != NULL &&
           strcmp(task->owner->agent, life->agent) == 0 &&
           task->owner->incarnation->lease_id == life->lease &&
           hf_rows_owner_rev(&seen) == life->create_rev;
}

int64_t hf_node_incarnation(const struct hf_life *life)
{
    return (int64_t)(((uint64_t)life->generation << GENERATION_SHIFT) +
                     (uint64_t)life->create_rev);
}

const char *hf_node_state_name(enum hf_node_state state)
{
    switch (state) {
#define X(name, text)                                                                          \
    case HF_NODE_##name: return text;
        HF_NODE_STATE_MAP(X)
#undef X
    }
    return "?";
}

/* Helpers of the deciders. */

void hf_node_touch_all(struct hf_node *node)
{
    for (size_t i = 0; i < node->agent_count; i++)
        node->agents[i]->dirty = true;
    node->host_dirty = true;
}

void hf_node_wake(struct node_agent *a, hf_ms at)
{
    if (at > a->looked_at && at < a->wake_at)
        a->wake_at = at;
}

void hf_node_say(struct node_agent *a, const char *why, const char *next, hf_ms at)
{
    a->why = why;
    a->next = next;
    a->at = at;
    if (at != HF_NODE_NEVER)
        hf_node_wake(a, at);
}

/* splitmix64: every id takes fresh words, and the caller's randomness flows into all of them.
 */
static uint64_t draw(struct hf_node *node)
{
    uint64_t z = node->entropy += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

void hf_node_make_id(struct hf_node *node, char ret_id[HF_ID_LEN + 1])
{
    uint8_t bytes[10];
    uint64_t words[2];

    node->entropy ^= (uint64_t)node->random << 32;
    words[0] = draw(node);
    words[1] = draw(node);
    memcpy(bytes, words, sizeof bytes);
    hf_id_format(node->wall, bytes, ret_id);
}

void hf_node_plan(struct hf_node *node, struct hf_intent *ret)
{
    char op_id[HF_ID_LEN + 1];

    hf_node_make_id(node, op_id);
    hf_plan_init(&ret->plan, node->ns, HF_WRITER_OWNER, op_id);
}

static void take_off(struct hf_node *node, struct node_agent *a, enum node_op op,
                     struct hf_intent *ret)
{
    a->flight = (struct node_flight){ .token = ++node->last_token,
                                      .op = op,
                                      .lease = node->lease.lease,
                                      .generation = hf_node_generation(node) };
    ret->token = a->flight.token;
    ret->subject = a->subject;
}

/* A plan that can never be sent (a text of a newer program that cannot be laid over, say) must
 * not spin: it is looked at again after a while. */
int hf_node_send(struct hf_node *node, struct node_agent *a, enum node_op op, const char *why,
                 struct hf_intent *ret)
{
    int err = hf_plan_check(&ret->plan, NULL);

    if (err != HF_OK) {
        hf_plan_done(&ret->plan);
        if (err == HF_ENOMEM)
            return err;
        a->pause_until = node->now + node->policy.retry;
        hf_node_say(a, "what was to be written cannot be", "it is tried again", a->pause_until);
        return NODE_REST;
    }
    ret->kind = HF_INTENT_WRITE;
    ret->why = why;
    take_off(node, a, op, ret);
    return NODE_INTENT;
}

int hf_node_read(struct hf_node *node, struct node_agent *a, enum node_op op,
                 struct hf_intent_read read, struct hf_intent *ret)
{
    ret->kind = HF_INTENT_READ;
    ret->read = read;
    ret->why = "it is decided on what etcd has now";
    take_off(node, a, op, ret);
    return NODE_INTENT;
}

int hf_node_verify(struct hf_node *node, struct node_agent *a,
                   const Holdfast__V1__Checkpoint *entry, struct hf_intent *ret)
{
    ret->kind = HF_INTENT_VERIFY;
    ret->verify = entry;
    ret->why = "a recovery begins from the newest checkpoint that is whole";
    take_off(node, a, OP_VERIFY, ret);
    return NODE_INTENT;
}

int hf_node_tell(struct node_agent *a, enum hf_process_act act, const char *why,
                 struct hf_intent *ret)
{
    ret->kind = HF_INTENT_PROCESS;
    ret->subject = a->subject;
    ret->why = why;
    ret->process = (struct hf_intent_process){
        .act = act, .agent = a->name, .instance_id = a->instance, .why = why
    };
    return NODE_INTENT;
}

int hf_node_alert(struct hf_node *node, struct node_agent *a, Holdfast__V1__Event__Kind kind,
                  const char *why, struct hf_intent *ret)
{
    ret->kind = HF_INTENT_ALERT;
    ret->subject = a->subject;
    ret->why = why;
    ret->alert = (struct hf_intent_alert){
        .kind = kind, .agent = a->name, .host = node->host, .why = why, .next = a->next
    };
    return NODE_INTENT;
}

/* Events. */

static void on_time(struct hf_node *node, hf_ms now)
{
    node->now = now > node->now ? now : node->now;
}

static void on_synced(struct hf_node *node, int64_t revision)
{
    if (!node->synced)
        node->leaderless_at = node->now;
    node->synced = true;
    if (revision > node->synced_rev)
        node->synced_rev = revision;
    if (revision > node->told_rev)
        node->told_rev = revision;
    hf_node_touch_all(node);
}

static void on_forget(struct hf_node *node)
{
    hf_node_forget(node);
    node->synced = false;
    node->synced_rev = node->told_rev = 0;
    for (size_t i = 0; i < node->agent_count; i++)
        node->agents[i]->known = true; /* the ranges that are told from now on have it */
}

static bool is_flight(const struct node_flight *flight, uint64_t token)
{
    return flight->token != 0 && flight->token == token;
}

static struct node_agent *find_flight(const struct hf_node *node, uint64_t token)
{
    for (size_t i = 0; i < node->agent_count; i++) {
        if (is_flight(&node->agents[i]->flight, token))
            return node->agents[i];
    }
    return NULL;
}

static bool is_about_tasks(const struct node_agent *a, const struct node_flight *flight)
{
    return flight->op == OP_ADOPT ||
           (flight->op == OP_ASK && a->asking != NULL && a->asking->kind != HF_ASK_CLAIM);
}

/* After a guard that did not hold, what refused it has to be told before it makes sense to
 * decide again; but something that is not in what we mirror may have raised the revision. */
static void wait_for(struct hf_node *node, struct node_agent *a,
                     const struct node_flight *flight, const struct hf_event_outcome *outcome)
{
    bool answered =
        outcome->outcome == HF_OUTCOME_DONE || outcome->outcome == HF_OUTCOME_REFUSED;

    if (answered && is_about_tasks(a, flight))
        return; /* which are read when they are needed, and not mirrored */
    if (answered) {
        a->wait_rev = outcome->revision > a->wait_rev ? outcome->revision : a->wait_rev;
        a->retry_at = node->now + node->policy.retry;
    } else {
        a->pause_until = node->now + node->policy.retry;
    }
}

static void on_life_outcome(struct hf_node *node, struct node_agent *a,
                            const struct node_flight *flight,
                            const struct hf_event_outcome *outcome)
{
    switch (flight->op) {
    case OP_START:
    case OP_REJOIN:
        if (outcome->outcome == HF_OUTCOME_DONE && outcome->revision != 0 &&
            flight->lease == node->lease.lease && a->process != PROCESS_NONE)
            hf_node_on_registered(a, outcome->revision, flight->lease, flight->generation);
        break;
    case OP_END: hf_node_on_end_written(a, outcome); break;
    case OP_ADOPT: hf_node_on_adopted(a, outcome); break;
    case OP_REFUSE: hf_node_on_refused(a, outcome); break;
    case OP_REPORT: hf_node_on_reported(node, a, outcome); break;
    default: break; /* what it did is seen in what is told */
    }
}

static void on_outcome(struct hf_node *node, const struct hf_event_outcome *outcome)
{
    struct node_agent *a = find_flight(node, outcome->token);
    struct node_flight flight;

    if (is_flight(&node->host_flight, outcome->token))
        hf_node_host_outcome(node, outcome);
    if (a == NULL)
        a = hf_node_heir_outcome(node, outcome);
    if (a == NULL)
        return;
    flight = a->flight;
    a->flight = (struct node_flight){ 0 };
    a->dirty = true;
    wait_for(node, a, &flight, outcome);
    if (flight.op == OP_ASK)
        hf_node_ask_outcome(a, outcome);
    else if (!flight.is_void)
        on_life_outcome(node, a, &flight, outcome);
}

static int on_answer(struct hf_node *node, struct hf_event_answer *answer)
{
    struct node_agent *a = find_flight(node, answer->token);
    enum node_op op;
    int err;

    if (is_flight(&node->look, answer->token))
        return hf_node_look_answer(node, answer);
    if (a == NULL)
        return hf_node_ahead_answer(node, answer);
    op = a->flight.op;
    if (a->flight.is_void && op != OP_ASK)
        err = HF_OK;
    else if (op == OP_ASK)
        err = hf_node_ask_answer(a, answer);
    else if (op == OP_SETTLE || op == OP_ADOPT_READ || op == OP_RECOVERED)
        err = hf_node_settle_answer(a, answer);
    else
        err = hf_node_start_answer(node, a, answer);
    if (err != HF_OK)
        return err;
    if (!answer->more || answer->err != HF_OK)
        a->flight = (struct node_flight){ 0 };
    if (answer->err != HF_OK)
        a->pause_until = node->now + node->policy.retry;
    else if (op == OP_SETTLE && !answer->more)
        hf_node_on_read(node, a, answer->revision);
    a->dirty = true;
    return HF_OK;
}

static bool is_beside(const struct node_agent *a, uint64_t token)
{
    return a->verifying != 0 && a->verifying == token;
}

static void on_verified(struct hf_node *node, const struct hf_event_verified *verified)
{
    struct node_agent *a = find_flight(node, verified->token);

    for (size_t i = 0; i < node->agent_count; i++) {
        if (is_beside(node->agents[i], verified->token))
            hf_node_restore_verified(node->agents[i], verified->err);
    }
    hf_node_ahead_verified(node, verified);
    if (a == NULL)
        return;
    if (!a->flight.is_void)
        hf_node_chain_verified(a, verified->err);
    a->flight = (struct node_flight){ 0 };
    a->dirty = true;
}

static int take_in(struct hf_node *node, struct hf_event *event)
{
    switch (event->kind) {
    case HF_EVENT_TIME: break;
    case HF_EVENT_CHANGE: return hf_node_apply(node, &event->change);
    case HF_EVENT_BAD: return hf_node_apply_bad(node, &event->bad);
    case HF_EVENT_SYNCED: on_synced(node, event->revision); break;
    case HF_EVENT_FORGET: on_forget(node); break;
    case HF_EVENT_RESET:
        on_forget(node);
        hf_node_on_reset(node);
        break;
    case HF_EVENT_OUTCOME: on_outcome(node, &event->outcome); break;
    case HF_EVENT_LEASE: hf_node_on_lease(node, &event->lease); break;
    case HF_EVENT_ANSWER: return on_answer(node, &event->answer);
    case HF_EVENT_VERIFIED: on_verified(node, &event->verified); break;
    case HF_EVENT_PROCESS: return hf_node_on_process(node, &event->process);
    case HF_EVENT_ASK: return hf_node_on_ask(node, &event->ask);
    case HF_EVENT_CLUSTER:
    case HF_EVENT_TERM: break; /* the controller's */
    }
    return HF_OK;
}

int hf_node_step(struct hf_node *node, struct hf_event *event, hf_ms now)
{
    free_asks(&node->replied);
    on_time(node, now);
    return take_in(node, event);
}

/* Intents. */

/* What can go wrong with a flight ends with the flight; what can go wrong with a process cannot
 * wait for it. */
static const struct {
    int (*decide)(struct hf_node *node, struct node_agent *a, struct hf_intent *ret);
    bool beside; /* while something is under way, too */
    bool always; /* when we are outdated, too */
} DECIDERS[] = {
    { hf_node_reply, true, true },       { hf_node_recognise, true, true },
    { hf_node_keep, true, true },        { hf_node_write_end, false, true },
    { hf_node_reap, false, true },       { hf_node_rejoin, false, false },
    { hf_node_settle, false, false },    { hf_node_write_spec, false, false },
    { hf_node_look_ahead, true, false }, { hf_node_send_heir, true, false },
    { hf_node_start, false, false },     { hf_node_let_go, true, true },
    { hf_node_serve, false, true },      { hf_node_write_report, false, false },
};

static bool is_free(const struct hf_node *node, struct node_agent *a)
{
    if (a->flight.token != 0)
        return false;
    if (node->now >= a->pause_until)
        return true;
    hf_node_wake(a, a->pause_until);
    return false;
}

static int look_at(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    bool outdated = hf_node_is_outdated(node);
    int rc = NODE_GO_ON;

    a->dirty = false;
    a->looked_at = node->now;
    a->wake_at = HF_NODE_NEVER;
    if (outdated)
        hf_node_say(a, HF_NODE_OUTDATED, "nothing begins until it is upgraded", HF_NODE_NEVER);
    for (size_t i = 0; i < sizeof DECIDERS / sizeof DECIDERS[0] && rc == NODE_GO_ON; i++) {
        if ((DECIDERS[i].always || !outdated) && (DECIDERS[i].beside || is_free(node, a)))
            rc = DECIDERS[i].decide(node, a, ret);
    }
    if (rc == NODE_GO_ON || rc == NODE_REST)
        return 0;
    a->dirty = true; /* until there is nothing left */
    return rc;
}

static int node_next(struct hf_node *node, struct hf_intent *ret)
{
    int rc;

    if (node->lost_due != 0) {
        ret->kind = HF_INTENT_LOST;
        ret->subject = "lease";
        ret->why = "a key of ours that hangs on it is gone";
        ret->lease = node->lost_due;
        node->lost_due = 0;
        return NODE_INTENT;
    }
    rc = hf_node_reply_orphan(node, ret);
    if (rc != NODE_GO_ON)
        return rc;
    if (node->host_dirty || node->now >= node->host_wake_at)
        rc = hf_node_host_next(node, ret);
    return rc == NODE_GO_ON ? hf_node_look(node, ret) : rc;
}

static bool is_dirty(const struct hf_node *node)
{
    bool dirty = node->host_dirty || node->lost_due != 0 || node->orphans != NULL;

    for (size_t i = 0; i < node->agent_count && !dirty; i++)
        dirty = node->agents[i]->dirty;
    return dirty;
}

/* Agents take turns, so that one that has much to say does not keep the others waiting. */
static int one_round(struct hf_node *node, struct hf_intent *ret)
{
    size_t first = node->cursor;
    int rc = node_next(node, ret);

    for (size_t i = 0; i < node->agent_count && rc == 0; i++) {
        struct node_agent *a = node->agents[(first + i) % node->agent_count];

        if (!a->dirty && node->now < a->wake_at)
            continue;
        rc = look_at(node, a, ret);
        if (rc != 0)
            node->cursor = (first + i + 1) % node->agent_count;
    }
    return rc;
}

/* What one decider finds out may be news for those before it. */
int hf_node_next(struct hf_node *node, hf_ms now, hf_ms wall, uint32_t random,
                 struct hf_intent *ret)
{
    int rc;

    free_asks(&node->replied);
    on_time(node, now);
    node->wall = wall;
    node->random = random;
    *ret = (struct hf_intent){ .kind = HF_INTENT_NONE };
    rc = one_round(node, ret);
    for (int again = 0; again < MOST_ROUNDS && rc == 0 && is_dirty(node); again++)
        rc = one_round(node, ret);
    return rc;
}

hf_ms hf_node_deadline(const struct hf_node *node, hf_ms now)
{
    hf_ms at = hf_node_look_due(node);

    if (is_dirty(node))
        return now;
    if (node->host_wake_at < at)
        at = node->host_wake_at;
    for (size_t i = 0; i < node->agent_count; i++) {
        if (node->agents[i]->wake_at < at)
            at = node->agents[i]->wake_at;
    }
    return at > now ? at : now;
}
