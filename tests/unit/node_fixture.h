/* node_fixture.h - a node in a small world: an etcd that is a table, a keeper that obeys, and a
 * transcript of what the node asked for. Everything happens at once unless a test says
 * otherwise. */
#ifndef HF_TESTS_UNIT_NODE_FIXTURE_H
#define HF_TESTS_UNIT_NODE_FIXTURE_H

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/node.h"
#include "schema/json.h"
#include "support/chaos.h"
#include "unit/suite.h"

#define NS    "n"
#define ROOT  "/holdfast/n/"
#define LEASE 42

enum { KEYS = 128, LOG = 1 << 16, PROCESSES = 512, KEPT = 16 };

struct pair {
    char key[256];
    char *value;
    int64_t create_rev, mod_rev, lease;
};

/* A process, as the keeper has it. */
struct process {
    enum { MADE_ASKED, MADE_HELD, MADE_BEGUN, MADE_ENDED } state;
    bool frozen, ending;
};

/* What becomes of the next write. */
enum fate { COMMIT, LOSE, LOSE_DONE, FAIL, WITHHOLD };

static struct {
    struct hf_node *node;
    struct pair pairs[KEYS];
    size_t pair_count;
    int64_t rev;
    hf_ms now;
    struct hf_event_lease lease;
    char log[LOG];
    char ids[PROCESSES][32]; /* instance ids in the order of their making */
    struct process processes[PROCESSES];
    size_t id_count;
    bool checks; /* what is asked of the keeper is checked */
    bool calm;
    uint64_t dice;
    bool quiet; /* the transcript has no writes and reads that went well */
    bool mirror_is_off;
    bool keeper_is_off; /* it says nothing by itself */
    bool reads_are_off;
    int make_err;
    int verify_err;
    enum fate fate;      /* of one write, then COMMIT again */
    int spared;          /* writes before that one */
    uint64_t withheld;   /* token of a write that was not answered yet */
    struct hf_plan plan; /* and what it is */
    uint64_t ask;
    uint32_t random;
} w;

static inline void say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static inline void say(const char *fmt, ...)
{
    size_t len = strlen(w.log);
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(w.log + len, sizeof w.log - len, fmt, args);
    va_end(args);
}

/* Memory fails: in every call of the node the first allocation, then the second, and so on,
 * until the call is through. Nothing may come of that but the same once more. */
static bool memory_fails;
static uint64_t mutants; /* that the next node has */

static inline int feed(struct hf_event event)
{
    int rc = HF_ENOMEM;

    for (size_t n = 1; memory_fails && rc == HF_ENOMEM; n++) {
        hft_chaos_fail_at(n, false);
        rc = hf_node_step(w.node, &event, w.now);
        hft_chaos_stop();
    }
    return memory_fails ? rc : hf_node_step(w.node, &event, w.now);
}

static inline void must(struct hf_event event)
{
    ck_assert_int_eq(feed(event), HF_OK);
}

/* etcd. */

static inline struct pair *find(const char *key)
{
    for (size_t i = 0; i < w.pair_count; i++) {
        if (strcmp(w.pairs[i].key, key) == 0)
            return &w.pairs[i];
    }
    return NULL;
}

static inline bool is_mirrored(const struct hf_key *key, const char *text)
{
    struct hf_intent_read ranges[HF_NODE_RANGES];
    size_t count = hf_node_get_ranges(w.node, ranges);
    char other[HF_KEY_SIZE];

    (void)key;
    for (size_t i = 0; i < count; i++) {
        int len = ranges[i].whole_scope
                      ? hf_key_prefix(NS, ranges[i].scope, ranges[i].name, other, NULL)
                      : hf_key_format(NS, &ranges[i].key, other, NULL);

        ck_assert_int_gt(len, 0);
        if (ranges[i].whole_scope ? strncmp(text, other, (size_t)len) == 0
                                  : strcmp(text, other) == 0)
            return true;
    }
    return false;
}

static inline struct hf_fleet_change make_change(const char *text, char scratch[HF_KEY_SIZE])
{
    struct hf_fleet_change change = { .at = w.now };
    struct pair *pair = find(text);
    struct hf_error err = { "" };

    ck_assert_msg(hf_key_parse(NS, (struct hf_bytes){ text, strlen(text) }, scratch,
                               &change.key, &err) == HF_OK,
                  "%s", err.text);
    if (pair == NULL) {
        change.seen.mod_rev = w.rev;
        return change;
    }
    change.seen = (struct hf_seen){ .create_rev = pair->create_rev,
                                    .mod_rev = pair->mod_rev,
                                    .lease = pair->lease,
                                    .text = { pair->value, strlen(pair->value) } };
    ck_assert_msg(hf_json_decode(hf_key_get_record(change.key.kind), pair->value,
                                 strlen(pair->value), NULL, &change.record, &err) == HF_OK,
                  "%s: %s", text, err.text);
    return change;
}

static inline void tell(const char *text)
{
    char scratch[HF_KEY_SIZE];
    struct hf_fleet_change change;

    if (w.mirror_is_off || w.node == NULL)
        return;
    change = make_change(text, scratch);
    if (!is_mirrored(&change.key, text)) {
        hf_json_free(change.record);
        return;
    }
    must((struct hf_event){ .kind = HF_EVENT_CHANGE, .change = change });
}

static inline void write_pair(const char *key, const char *value, int64_t lease)
{
    struct pair *pair = find(key);

    if (value == NULL) {
        if (pair != NULL) {
            free(pair->value);
            *pair = w.pairs[--w.pair_count];
        }
        return;
    }
    if (pair == NULL) {
        ck_assert_uint_lt(w.pair_count, KEYS);
        pair = &w.pairs[w.pair_count++];
        *pair = (struct pair){ .create_rev = w.rev };
        (void)snprintf(pair->key, sizeof pair->key, "%s", key);
    }
    free(pair->value);
    pair->value = strdup(value);
    pair->mod_rev = w.rev;
    pair->lease = lease;
}

/* Somebody else writes; the node is told. */
static inline void put_leased(const char *key, const char *value, int64_t lease)
{
    char text[256];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    w.rev++;
    write_pair(text, value, lease);
    tell(text);
}

static inline void put(const char *key, const char *value)
{
    put_leased(key, value, 0);
}

static inline void erase(const char *key)
{
    put_leased(key, NULL, 0);
}

static inline const char *get(const char *key)
{
    char text[256];
    struct pair *pair;

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    pair = find(text);
    return pair != NULL ? pair->value : NULL;
}

static inline void synced(void)
{
    must((struct hf_event){ .kind = HF_EVENT_SYNCED, .revision = w.rev });
}

/* Tells everything that is mirrored. */
static inline void list_all(void)
{
    w.mirror_is_off = false;
    for (size_t i = 0; i < w.pair_count; i++)
        tell(w.pairs[i].key);
    synced();
}

static inline bool guard_holds(const struct hf_plan_guard *guard)
{
    struct pair *pair = find(guard->key);

    switch (guard->what) {
    case HF_GUARD_ABSENT: return pair == NULL;
    case HF_GUARD_MOD: return (pair != NULL ? pair->mod_rev : 0) == guard->value;
    case HF_GUARD_CREATE: return pair != NULL && pair->create_rev == guard->value;
    case HF_GUARD_GONE: return pair == NULL || pair->create_rev != guard->value;
    case HF_GUARD_LEASE: return pair != NULL && pair->lease == guard->value;
    }
    return false;
}

static inline bool commit(const struct hf_plan *plan)
{
    for (size_t i = 0; i < plan->guard_count; i++) {
        if (!guard_holds(&plan->guards[i]))
            return false;
    }
    w.rev++;
    for (size_t i = 0; i < plan->write_count; i++)
        write_pair(plan->writes[i].key, plan->writes[i].value, plan->writes[i].lease);
    for (size_t i = 0; i < plan->write_count; i++)
        tell(plan->writes[i].key);
    return true;
}

static inline void answer_write(uint64_t token, enum hf_outcome outcome, int err)
{
    must((struct hf_event){ .kind = HF_EVENT_OUTCOME,
                            .outcome = { .token = token,
                                         .outcome = outcome,
                                         .revision = outcome <= HF_OUTCOME_REFUSED ? w.rev : 0,
                                         .err = err } });
}

static inline void on_write(struct hf_intent *intent)
{
    static const char *const ENDS[] = { [COMMIT] = "",
                                        [LOSE] = ": no answer",
                                        [LOSE_DONE] = ": no answer",
                                        [FAIL] = ": failed",
                                        [WITHHOLD] = ": under way" };
    struct hf_buf text = { 0 };
    enum fate fate = w.spared-- > 0 ? COMMIT : w.fate;
    bool done = true;

    if (w.spared < 0) {
        w.spared = 0;
        w.fate = COMMIT;
    }
    hf_plan_describe(&intent->plan, &text);
    if (fate == COMMIT || fate == LOSE_DONE)
        done = commit(&intent->plan);
    if (!w.quiet || !done || fate != COMMIT)
        say("%s%s%s\n", text.data, done ? "" : ": refused", ENDS[fate]);
    hf_buf_done(&text);
    if (fate == COMMIT)
        answer_write(intent->token, done ? HF_OUTCOME_DONE : HF_OUTCOME_REFUSED, 0);
    else if (fate == LOSE || fate == LOSE_DONE)
        answer_write(intent->token, HF_OUTCOME_UNKNOWN, HF_ETIMEOUT);
    else if (fate == FAIL)
        answer_write(intent->token, HF_OUTCOME_FAILED, HF_ENOSPACE);
    if (fate == WITHHOLD) {
        w.withheld = intent->token;
        w.plan = intent->plan;
        intent->kind = HF_INTENT_NONE;
    }
}

/* The write that was withheld arrives. */
static inline void arrive(void)
{
    bool done = commit(&w.plan);

    hf_plan_done(&w.plan);
    answer_write(w.withheld, done ? HF_OUTCOME_DONE : HF_OUTCOME_REFUSED, 0);
    w.withheld = 0;
}

static inline void on_read(const struct hf_intent *intent)
{
    struct hf_fleet_change found[KEPT];
    char scratch[KEPT][HF_KEY_SIZE], prefix[HF_KEY_SIZE];
    const struct hf_intent_read *read = &intent->read;
    size_t count = 0;
    int len = read->whole_scope ? hf_key_prefix(NS, read->scope, read->name, prefix, NULL)
                                : hf_key_format(NS, &read->key, prefix, NULL);
    struct hf_event event = { .kind = HF_EVENT_ANSWER };

    ck_assert_int_gt(len, 0);
    if (!w.quiet)
        say("read %s\n", prefix + strlen(ROOT));
    event.answer = (struct hf_event_answer){ .token = intent->token, .err = HF_EAGAIN };
    if (!w.reads_are_off) {
        for (size_t i = 0; i < w.pair_count && count < KEPT; i++) {
            const char *key = w.pairs[i].key;

            if (read->whole_scope ? strncmp(key, prefix, (size_t)len) == 0
                                  : strcmp(key, prefix) == 0) {
                found[count] = make_change(key, scratch[count]);
                count++;
            }
        }
        event.answer = (struct hf_event_answer){
            .token = intent->token, .revision = w.rev, .found = found, .found_count = count
        };
    }
    must(event);
    for (size_t i = 0; i < count; i++)
        hf_json_free(found[i].record);
}

/* The keeper. */

/* "a#1": the first process that was made. */
static inline const char *short_id(const char *id)
{
    static char text[4][24];
    static size_t at;

    for (size_t i = 0; i < w.id_count; i++) {
        if (strcmp(w.ids[i], id) == 0) {
            at = (at + 1) % 4;
            (void)snprintf(text[at], sizeof text[at], "#%zu", i + 1);
            return text[at];
        }
    }
    return id;
}

static inline void news_of(const char *agent, const char *id, enum hf_process_news news,
                           int status, const char *text)
{
    must((struct hf_event){ .kind = HF_EVENT_PROCESS,
                            .process = { .agent = agent,
                                         .instance_id = id,
                                         .news = news,
                                         .pid = 100,
                                         .start_time = 7,
                                         .status = status,
                                         .text = text } });
}

static inline const char *instance(const char *agent)
{
    struct hf_node_view view;

    ck_assert_int_eq(hf_node_get_view(w.node, agent, w.now, &view), HF_OK);
    return view.instance_id != NULL ? view.instance_id : "";
}

static inline void news(const char *agent, enum hf_process_news what, int status,
                        const char *text)
{
    char id[32];

    (void)snprintf(id, sizeof id, "%s", instance(agent));
    news_of(agent, id, what, status, text);
}

static const char *const ACTS[] = {
    [HF_PROCESS_MAKE] = "make",       [HF_PROCESS_LET_GO] = "let go",
    [HF_PROCESS_DISCARD] = "discard", [HF_PROCESS_STOP] = "stop",
    [HF_PROCESS_KILL] = "kill",       [HF_PROCESS_FREEZE] = "freeze",
    [HF_PROCESS_THAW] = "thaw",
};

static inline int count_running(void)
{
    int count = 0;

    for (size_t i = 0; i < w.id_count; i++)
        count += w.processes[i].state == MADE_BEGUN && !w.processes[i].frozen;
    return count;
}

/* What is asked must make sense, and what runs must be registered at that moment. */
static inline void check_act(const struct hf_intent_process *act)
{
    const char *live = get("agents/a/live");
    struct process *process = NULL;

    for (size_t i = 0; i < w.id_count; i++) {
        if (strcmp(w.ids[i], act->instance_id) == 0)
            process = &w.processes[i];
    }
    ck_assert_ptr_nonnull(process);
    switch (act->act) {
    case HF_PROCESS_MAKE: process->state = MADE_ASKED; break;
    case HF_PROCESS_LET_GO:
        ck_assert_int_eq(process->state, MADE_HELD);
        process->state = MADE_BEGUN;
        break;
    case HF_PROCESS_DISCARD:
        ck_assert_int_eq(process->state, MADE_HELD);
        process->state = MADE_ENDED;
        break;
    case HF_PROCESS_STOP:
    case HF_PROCESS_KILL: process->ending = true; break;
    case HF_PROCESS_FREEZE: process->frozen = true; break;
    case HF_PROCESS_THAW:
        ck_assert(process->frozen);
        process->frozen = false;
        break;
    }
    if (act->act == HF_PROCESS_LET_GO || act->act == HF_PROCESS_THAW) {
        ck_assert_int_eq(w.lease.state, HF_LEASE_HELD);
        ck_assert_int_le(count_running(), 1);
        if (!w.mirror_is_off)
            ck_assert_msg(live != NULL && strstr(live, act->instance_id) != NULL, "%s", live);
    }
}

static inline void on_process(const struct hf_intent *intent)
{
    const struct hf_intent_process *process = &intent->process;
    char id[32], agent[300];

    (void)snprintf(id, sizeof id, "%s", process->instance_id);
    (void)snprintf(agent, sizeof agent, "%s", process->agent);
    if (process->act == HF_PROCESS_MAKE)
        (void)snprintf(w.ids[w.id_count++], sizeof w.ids[0], "%s", id);
    if (w.checks)
        check_act(process);
    say("%s %s%s", ACTS[process->act], agent, short_id(id));
    if (process->act == HF_PROCESS_LET_GO || process->act == HF_PROCESS_THAW)
        say(" as %lld", (long long)process->incarnation);
    if (process->task != NULL)
        say(" with %s from %lld", process->task, (long long)process->checkpoint);
    if (process->act == HF_PROCESS_STOP)
        say(" within %lld", (long long)process->grace);
    say("\n");
    if (w.keeper_is_off)
        return;
    if (process->act == HF_PROCESS_MAKE)
        news_of(agent, id, w.make_err == 0 ? HF_PROCESS_HELD : HF_PROCESS_FAILED, 0,
                w.make_err == 0 ? NULL : "no such file");
    else if (process->act == HF_PROCESS_KILL || process->act == HF_PROCESS_STOP)
        news_of(agent, id, HF_PROCESS_ENDED, 0, "signal 9");
    else if (process->act == HF_PROCESS_FREEZE)
        news_of(agent, id, HF_PROCESS_FROZEN, 0, NULL);
    else if (process->act == HF_PROCESS_THAW)
        news_of(agent, id, HF_PROCESS_THAWED, 0, NULL);
}

static inline void on_reply(const struct hf_intent *intent)
{
    const struct hf_intent_reply *reply = &intent->reply;

    say("reply %llu %s", (unsigned long long)intent->token,
        reply->err == HF_OK ? "OK" : hf_err_name(reply->err));
    if (reply->task != NULL)
        say(" %s", reply->task->id);
    if (reply->seq != 0)
        say(" seq %lld", (long long)reply->seq);
    if (reply->existed)
        say(" existed");
    if (reply->tasks != 0)
        say(" waiting %zu", reply->tasks);
    if (reply->stop)
        say(" stop");
    say("\n");
}

static inline int next_intent(struct hf_intent *intent)
{
    hf_ms wall = 1700000000000 + w.now;
    int rc = HF_ENOMEM;

    w.random = w.random * 1664525 + 1013904223;
    for (size_t n = 1; memory_fails && rc == HF_ENOMEM; n++) {
        hft_chaos_fail_at(n, false);
        rc = hf_node_next(w.node, w.now, wall, w.random, intent);
        hft_chaos_stop();
    }
    return memory_fails ? rc : hf_node_next(w.node, w.now, wall, w.random, intent);
}

static inline void carry_out(struct hf_intent *intent)
{
    switch (intent->kind) {
    case HF_INTENT_NONE: ck_abort_msg("an intent that is none");
    case HF_INTENT_WRITE: on_write(intent); break;
    case HF_INTENT_READ: on_read(intent); break;
    case HF_INTENT_VERIFY:
        say("verify %lld\n", (long long)intent->verify->seq);
        must((struct hf_event){ .kind = HF_EVENT_VERIFIED,
                                .verified = { .token = intent->token, .err = w.verify_err } });
        break;
    case HF_INTENT_ALERT:
        say("alert %s: %s\n", intent->alert.agent != NULL ? intent->alert.agent : "-",
            intent->alert.why);
        break;
    case HF_INTENT_PROCESS: on_process(intent); break;
    case HF_INTENT_REPLY: on_reply(intent); break;
    case HF_INTENT_LOST: say("lost %lld\n", (long long)intent->lease); break;
    }
}

/* Until there is nothing left to do. */
static inline void run_node(void)
{
    struct hf_intent intent;

    for (int i = 0; i < 1000; i++) {
        int rc = next_intent(&intent);

        ck_assert_int_ge(rc, 0);
        if (rc == 0) {
            ck_assert_int_gt(hf_node_deadline(w.node, w.now), w.now);
            return;
        }
        carry_out(&intent);
        hf_intent_done(&intent);
    }
    ck_abort_msg("it never comes to rest:\n%.2000s", w.log);
}

/* What was asked for since the last look. */
static inline void expect(const char *what)
{
    run_node();
    ck_assert_str_eq(w.log, what);
    w.log[0] = '\0';
}

static inline void ignore(void)
{
    run_node();
    w.log[0] = '\0';
}

static inline void wait(hf_ms time)
{
    hf_ms until = w.now + time;

    while (w.now < until) {
        hf_ms at = hf_node_deadline(w.node, w.now);

        w.now = at < until ? at : until;
        if (w.lease.state == HF_LEASE_HELD) {
            w.lease.proven_until = w.now + 10000;
            must((struct hf_event){ .kind = HF_EVENT_LEASE, .lease = w.lease });
        }
        must((struct hf_event){ .kind = HF_EVENT_TIME });
        run_node();
    }
}

/* The lease. */

static inline void lease_is(enum hf_lease_state state, int64_t id, bool frozen)
{
    w.lease = (struct hf_event_lease){ .state = state,
                                       .lease = id,
                                       .ttl = 15000,
                                       .frozen = frozen,
                                       .proven_until = w.now + 10000 };
    must((struct hf_event){ .kind = HF_EVENT_LEASE, .lease = w.lease });
}

/* etcd deletes everything that hangs on it. */
static inline void expire(int64_t id)
{
    char keys[KEPT][256];
    size_t count = 0;

    w.rev++;
    for (size_t i = 0; i < w.pair_count; i++) {
        if (w.pairs[i].lease == id)
            (void)snprintf(keys[count++], sizeof keys[0], "%s", w.pairs[i].key);
    }
    for (size_t i = 0; i < count; i++)
        write_pair(keys[i], NULL, 0);
    for (size_t i = 0; i < count; i++)
        tell(keys[i]);
}

/* Asks. */

static inline uint64_t ask_as(const char *agent, const char *id, enum hf_ask_kind kind,
                              const char *task, const char *text)
{
    must((struct hf_event){ .kind = HF_EVENT_ASK,
                            .ask = { .token = ++w.ask,
                                     .kind = kind,
                                     .agent = agent,
                                     .instance_id = id,
                                     .task = task,
                                     .text = text,
                                     .until = w.now + 5000 } });
    return w.ask;
}

static inline uint64_t ask(const char *agent, enum hf_ask_kind kind, const char *task)
{
    char id[32];

    (void)snprintf(id, sizeof id, "%s", instance(agent));
    return ask_as(agent, id, kind, task, NULL);
}

static inline void ask_report(const char *agent, enum hf_ask_kind kind, const char *task,
                              const Holdfast__V1__Report *report)
{
    char id[32];

    (void)snprintf(id, sizeof id, "%s", instance(agent));
    must((struct hf_event){ .kind = HF_EVENT_ASK,
                            .ask = { .token = ++w.ask,
                                     .kind = kind,
                                     .agent = agent,
                                     .instance_id = id,
                                     .task = task,
                                     .report = report } });
}

/* Life. */

static inline struct hf_node *make_node(const struct hf_node_agent_config *agents, size_t count,
                                        const struct hf_node_policy *policy)
{
    Holdfast__V1__Host record = HOLDFAST__V1__HOST__INIT;
    char *launchers[] = { (char *)"sh" };

    record.launchers = launchers;
    record.n_launchers = 1;
    record.version = (char *)"1";
    struct hf_node_config cfg = {
        .ns = NS,
        .host = "h",
        .boot_id = "boot",
        .record = &record,
        .agents = agents,
        .agent_count = count,
        .policy = policy != NULL ? *policy : hf_node_policy_default(),
        .seed = 0x5eed,
        .mutants = mutants,
    };
    struct hf_node *node = NULL;

    for (size_t n = 1; memory_fails && node == NULL; n++) {
        hft_chaos_fail_at(n, false);
        node = hf_node_new(&cfg);
        hft_chaos_stop();
    }
    return memory_fails ? node : hf_node_new(&cfg);
}

static inline void finish(void)
{
    hf_node_free(w.node);
    for (size_t i = 0; i < w.pair_count; i++)
        free(w.pairs[i].value);
    if (w.withheld != 0)
        hf_plan_done(&w.plan);
    memset(&w, 0, sizeof w);
}

static inline void begin_with(const struct hf_node_agent_config *agents, size_t count,
                              const struct hf_node_policy *policy)
{
    finish(); /* the one before, where a test has several */
    w.rev = 100;
    w.now = 1000000;
    w.node = make_node(agents, count, policy);
    ck_assert_ptr_nonnull(w.node);
}

/* One agent, a, of the role r, freeze being its fence. */
static inline void begin(void)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    spec.role = (char *)"r";
    spec.launcher = (char *)"sh";
    begin_with(&(struct hf_node_agent_config){ .name = "a", .spec = &spec }, 1, NULL);
}

/* Somebody leads, the lease is held, and everything there is was told. */
static inline void settle_in(void)
{
    w.quiet = true;
    put_leased("controller/leader", "{\"id\":\"c\"}", 7);
    lease_is(HF_LEASE_HELD, LEASE, false);
    list_all();
}

/* And a runs, as a#1. */
static inline void running(void)
{
    begin();
    settle_in();
    ignore();
    ck_assert_ptr_nonnull(get("agents/a/live"));
}

#define TASK_OF(id, state, extra)                                                              \
    "{\"id\":\"" id "\",\"role\":\"r\",\"state\":\"" state "\"" extra "}"

/* A task that may be claimed. */
static inline void put_pending(const char *id, const char *extra)
{
    char key[100], value[400];

    (void)snprintf(key, sizeof key, "tasks/%s", id);
    (void)snprintf(value, sizeof value,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"pending\"%s}", id, extra);
    put(key, value);
    (void)snprintf(key, sizeof key, "pending/r/%s", id);
    put(key, "{}");
}

/* Whether a value has a member, as it is written. */
static inline void has(const char *key, const char *part)
{
    const char *value = get(key);

    ck_assert_msg(value != NULL && strstr(value, part) != NULL, "%s: %s has no %s", key,
                  value != NULL ? value : "nothing", part);
}

/* Every story is told twice. */

static inline void let_memory_fail(void)
{
    memory_fails = true;
}

static inline int run_stories(const char *name, void (*add_stories)(TCase *tcase))
{
    Suite *suite = suite_create(name);
    TCase *plain = tcase_create("plain"), *chaos = tcase_create("memory fails");

    tcase_add_checked_fixture(plain, NULL, finish);
    tcase_add_checked_fixture(chaos, let_memory_fail, finish);
    add_stories(plain);
    add_stories(chaos);
    suite_add_tcase(suite, plain);
    suite_add_tcase(suite, chaos);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
