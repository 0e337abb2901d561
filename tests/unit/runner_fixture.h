/* runner_fixture.h - a runner over a scripted backend, with a decider that does as it is told.
 *
 * The decider writes down what it hears; nothing allocates or asserts by Check while the runner
 * works, so that allocations may fail. */
#ifndef HF_TESTS_UNIT_RUNNER_FIXTURE_H
#define HF_TESTS_UNIT_RUNNER_FIXTURE_H

#include <check.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rows.h"
#include "io/runner.h"
#include "schema/json.h"
#include "support/script.h"
#include "unit/suite.h"

#define NS     "/holdfast/default/"
#define LEADER NS "controller/leader"
#define UPTIME INT64_C(2592000000) /* of the machine: nothing counts from its boot */

enum { MOST_INTENTS = 16, LOG_SIZE = 4096 };

/* The decider. */
static struct {
    char log[LOG_SIZE]; /* what it heard since the last look, in words */
    struct hf_intent intents[MOST_INTENTS];
    size_t count, given;
    hf_ms deadline;
    uint64_t ranges_version;
    int keys;           /* that hang on the lease, or HF_EAGAIN */
    int64_t keys_under; /* 0: any */
    int keys_less;      /* how many fewer there are when they are asked for again */
    int answer;         /* of step, to the next event of ... */
    enum hf_event_kind answer_to;
    unsigned answers; /* ... and so many */
    bool busy;        /* inside one of its functions */
    unsigned times;   /* HF_EVENT_TIME, which the log leaves out */
    unsigned asked;   /* for intents */
    hf_ms last;
} toy;

static struct hft_script script;
static struct hf_runner *runner;
static unsigned closed, intents_seen;
static bool close_at_intent;
static char troubles[LOG_SIZE];

static inline __attribute__((format(printf, 2, 3))) void note(char *log, const char *fmt, ...)
{
    size_t len = strlen(log);
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(log + len, LOG_SIZE - len, fmt, args);
    va_end(args);
}

static inline void require(bool holds)
{
    if (!holds)
        abort(); /* Check would allocate */
}

static inline void note_key(const struct hf_key *key)
{
    note(toy.log, "%d", (int)key->kind);
    if (key->name != NULL)
        note(toy.log, ":%s", key->name);
    if (key->sub != NULL)
        note(toy.log, "/%s", key->sub);
}

static inline void note_event(struct hf_event *event)
{
    static const char *const OUTCOMES[] = { "done", "refused", "unknown", "failed" };

    switch (event->kind) {
    case HF_EVENT_TIME: toy.times++; break;
    case HF_EVENT_CHANGE:
        note(toy.log, event->change.record != NULL ? "put " : "delete ");
        note_key(&event->change.key);
        note(toy.log, "@%" PRId64 " ", event->change.seen.mod_rev);
        hf_json_free(event->change.record);
        break;
    case HF_EVENT_BAD:
        note(toy.log, "bad %s%s ", event->bad.text,
             event->bad.key.kind == HF_KEY_KINDS ? "!" : "");
        break;
    case HF_EVENT_SYNCED: note(toy.log, "synced@%" PRId64 " ", event->revision); break;
    case HF_EVENT_FORGET: note(toy.log, "forget "); break;
    case HF_EVENT_RESET: note(toy.log, "reset "); break;
    case HF_EVENT_OUTCOME:
        note(toy.log, "%" PRIu64 "=%s@%" PRId64 " ", event->outcome.token,
             OUTCOMES[event->outcome.outcome], event->outcome.revision);
        break;
    case HF_EVENT_CLUSTER:
        note(toy.log, "cluster %" PRIu64 "%s%s%s ", event->cluster.raft_term,
             event->cluster.no_space ? " full" : "", event->cluster.corrupt ? " corrupt" : "",
             event->cluster.agrees ? " well" : "");
        break;
    case HF_EVENT_TERM:
        note(toy.log, event->term.lease != 0 ? "leads@%" PRId64 " " : "follows ",
             event->term.create_rev);
        break;
    case HF_EVENT_LEASE:
        note(toy.log, "lease %s%s ", hf_lease_state_name(event->lease.state),
             event->lease.frozen ? " frozen" : "");
        break;
    case HF_EVENT_ANSWER:
        note(toy.log, "%" PRIu64 ":", event->answer.token);
        for (size_t i = 0; i < event->answer.found_count; i++) {
            note_key(&event->answer.found[i].key);
            note(toy.log, ",");
        }
        note(toy.log, "%s%s ", event->answer.err != HF_OK ? hf_err_name(event->answer.err) : "",
             event->answer.more ? "..." : "");
        break;
    case HF_EVENT_ASK: note(toy.log, "ask %s ", event->ask.agent); break;
    default: note(toy.log, "? "); break;
    }
}

static inline int toy_step(void *self, struct hf_event *event, hf_ms now)
{
    (void)self;
    require(!toy.busy && now >= toy.last);
    toy.busy = true;
    toy.last = now;
    if (toy.answers > 0 && event->kind == toy.answer_to) {
        toy.answers--;
        toy.busy = false;
        if (toy.answer == HF_EHISTORY && event->kind == HF_EVENT_CHANGE)
            hf_json_free(event->change.record);
        return toy.answer;
    }
    note_event(event);
    toy.busy = false;
    return HF_OK;
}

static inline int toy_next(void *self, hf_ms now, hf_ms wall, uint32_t random,
                           struct hf_intent *ret)
{
    (void)self;
    (void)random;
    require(!toy.busy && now >= toy.last && wall > now);
    toy.asked++;
    if (toy.given == toy.count)
        return 0;
    *ret = toy.intents[toy.given++];
    return 1;
}

static inline hf_ms toy_deadline(const void *self, hf_ms now)
{
    (void)self;
    (void)now;
    return toy.deadline;
}

static inline size_t toy_ranges(const void *self, struct hf_intent_read ret[HF_DECIDER_RANGES])
{
    (void)self;
    ret[0] = (struct hf_intent_read){ .whole_scope = true, .scope = HF_KEY_IN_NAMESPACE };
    return 1;
}

static inline uint64_t toy_version(const void *self)
{
    (void)self;
    return toy.ranges_version;
}

static inline int toy_keys(const void *self, int64_t lease, struct hf_decider_key *ret_keys,
                           size_t max)
{
    (void)self;
    if (toy.keys_under != 0 && lease != toy.keys_under)
        return 0;
    for (int i = 0; i < toy.keys && (size_t)i < max; i++)
        ret_keys[i] = (struct hf_decider_key){ .key = { .kind = HF_KEY_AGENT_LIVE,
                                                        .name = i % 2 == 0 ? "a" : "b" },
                                               .create_rev = i + 1 };
    if (max == 0 || toy.keys < 0)
        return toy.keys;
    toy.keys -= toy.keys_less;
    toy.keys_less = 0;
    return (int)max;
}

static const struct hf_decider_ops TOY = {
    .step = toy_step,
    .next = toy_next,
    .deadline = toy_deadline,
    .get_ranges = toy_ranges,
    .get_ranges_version = toy_version,
    .get_keys = toy_keys,
};

/* Intents. */

static inline struct hf_intent *push(enum hf_intent_kind kind, uint64_t token)
{
    struct hf_intent *intent = &toy.intents[toy.count++];

    require(toy.count <= MOST_INTENTS);
    *intent = (struct hf_intent){ .kind = kind, .token = token };
    return intent;
}

/* A write that changes wanted/<agent>, and guards health/<also> unless that is NULL. */
static inline void push_write(uint64_t token, const char *agent, const char *also)
{
    Holdfast__V1__Wanted wanted = HOLDFAST__V1__WANTED__INIT;
    struct hf_plan *plan = &push(HF_INTENT_WRITE, token)->plan;
    char op_id[8];

    (void)snprintf(op_id, sizeof op_id, "op%d", (int)token);
    hf_plan_init(plan, "default", HF_WRITER_OPERATOR, op_id);
    hf_row_want(plan, agent, &(struct hf_seen){ 0 }, &wanted);
    if (also != NULL)
        hf_plan_guard(plan, (struct hf_key){ .kind = HF_KEY_HEALTH, .name = also },
                      HF_GUARD_MOD, 0);
    ck_assert_int_eq(hf_plan_check(plan, NULL), HF_OK);
}

/* A write that changes health/<agent>. */
static inline void push_health(uint64_t token, const char *agent)
{
    Holdfast__V1__Health health = HOLDFAST__V1__HEALTH__INIT;
    struct hf_key key = { .kind = HF_KEY_HEALTH, .name = agent };
    struct hf_plan *plan = &push(HF_INTENT_WRITE, token)->plan;

    hf_plan_init(plan, "default", HF_WRITER_OPERATOR, "op");
    hf_plan_guard(plan, key, HF_GUARD_MOD, 0);
    hf_plan_put(plan, key, &health.base, (struct hf_bytes){ 0 }, 0);
    ck_assert_int_eq(hf_plan_check(plan, NULL), HF_OK);
}

/* The owner. */

static inline void on_closed(void *arg)
{
    (void)arg;
    closed++;
}

static inline void on_intent(const struct hf_intent *intent, void *arg)
{
    (void)arg;
    require(closed == 0);
    intents_seen++;
    note(toy.log, "intent %d ", (int)intent->kind);
    if (close_at_intent)
        hf_runner_close(runner, true, on_closed, NULL);
}

static inline void on_trouble(const char *what, int err, const char *message, void *arg)
{
    (void)message;
    (void)arg;
    require(closed == 0);
    note(troubles, "%s:%s ", what, hf_err_name(err));
}

static inline struct hf_runner_config runner_config(void)
{
    return (struct hf_runner_config){ .ns = "default",
                                      .decider = { .ops = &TOY },
                                      .lease = hf_lease_policy_default(),
                                      .election = hf_election_policy_default(),
                                      .on_intent = on_intent,
                                      .on_trouble = on_trouble };
}

static inline void reset_toy(void)
{
    memset(&toy, 0, sizeof toy);
    toy.deadline = INT64_MAX;
    memset(&script, 0, sizeof script);
    script.revision = 10;
    script.now = UPTIME;
    script.leader_key = LEADER;
    memset(troubles, 0, sizeof troubles);
    closed = intents_seen = 0;
    close_at_intent = false;
    runner = NULL;
}

static inline void start_with(const struct hf_runner_config *cfg)
{
    struct hf_backend backend = hft_script_backend(&script);
    struct hf_error err = { "" };

    ck_assert_msg(hf_runner_new(&backend, cfg, &runner, &err) == HF_OK, "%s", err.text);
    hft_script_run(&script, script.now);
}

static inline void start_agentd(void)
{
    struct hf_runner_config cfg = runner_config();

    start_with(&cfg);
}

/* A controller that leads. */
static inline void start_leader(void)
{
    struct hf_runner_config cfg = runner_config();

    cfg.leader = hf_bytes_of("{}");
    start_with(&cfg);
    hft_script_sync(hft_script_mirror(&script, LEADER));
    hft_script_run(&script, script.now + 1000);
}

/* Lets everything happen that happens by itself now. */
static inline void turn(void)
{
    hft_script_run(&script, script.now);
}

/* What was heard since the last look. */
static inline const char *heard(void)
{
    static char copy[LOG_SIZE];

    memcpy(copy, toy.log, sizeof copy);
    toy.log[0] = '\0';
    return copy;
}

static inline struct hf_mirror *mirror(void)
{
    return hft_script_mirror(&script, NS);
}

static inline void stop_intents(void)
{
    for (; toy.given < toy.count; toy.given++)
        hf_intent_done(&toy.intents[toy.given]);
}

static inline void stop(void)
{
    if (closed == 0 && !close_at_intent)
        hf_runner_close(runner, true, on_closed, NULL);
    hft_script_run(&script, script.now + 10000);
    ck_assert_uint_eq(closed, 1);
    ck_assert(hft_script_is_clean(&script));
    stop_intents();
}

#endif
