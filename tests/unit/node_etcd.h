/* node_etcd.h - the world of node_fixture.h: what there is of it, and its etcd, which is a
 * table.
 */
#ifndef HF_TESTS_UNIT_NODE_ETCD_H
#define HF_TESTS_UNIT_NODE_ETCD_H

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/node.h"
#include "schema/json.h"
#include "support/chaos.h"

#define NS     "n"
#define ROOT   "/holdfast/n/"
#define LEASE  42
#define UPTIME INT64_C(2592000000) /* of the machine: nothing counts from its boot */

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
enum fate { COMMIT, LOSE, LOSE_DONE, FAIL, WITHHOLD, LATE, FULL, FULL_DONE };

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
    bool only_reported; /* who is frozen is not ended for it */
    bool reads_are_off;
    int make_err;
    int verify_err;
    bool verify_hangs;
    uint64_t verify;     /* the last that was asked for */
    enum fate fate;      /* of one write, then COMMIT again; of all from FULL and FULL_DONE */
    int spared;          /* writes before that one */
    uint64_t withheld;   /* token of a write that was not answered yet */
    struct hf_plan plan; /* and what it is */
    bool is_late;        /* a write was answered as unknown, and may still arrive */
    struct hf_plan late;
    uint64_t ask;
    uint32_t random;
    unsigned looks; /* at what hangs on the lease */
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
    if (strncmp(text, ROOT, strlen(ROOT)) != 0)
        return; /* a body, which nobody mirrors */
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
    case HF_GUARD_TEXT:
        return pair != NULL && strlen(pair->value) == guard->text.len &&
               memcmp(pair->value, guard->text.data, guard->text.len) == 0;
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
    static const char *const ENDS[] = {
        [COMMIT] = "",       [LOSE] = ": no answer",     [LOSE_DONE] = ": no answer",
        [FAIL] = ": failed", [WITHHOLD] = ": under way", [LATE] = ": no answer",
        [FULL] = ": full",   [FULL_DONE] = ": full"
    };
    struct hf_buf text = { 0 };
    enum fate fate = w.spared-- > 0 ? COMMIT : w.fate;
    bool done = true;

    if (w.spared < 0) {
        w.spared = 0;
        w.fate = fate == FULL || fate == FULL_DONE ? FULL : COMMIT;
    }
    hf_plan_describe(&intent->plan, &text);
    if (fate == COMMIT || fate == LOSE_DONE || fate == FULL_DONE)
        done = commit(&intent->plan);
    if (!w.quiet || !done || fate != COMMIT)
        say("%s%s%s\n", text.data, done ? "" : ": refused", ENDS[fate]);
    hf_buf_done(&text);
    if (fate == COMMIT)
        answer_write(intent->token, done ? HF_OUTCOME_DONE : HF_OUTCOME_REFUSED, 0);
    else if (fate == LOSE || fate == LOSE_DONE || fate == LATE)
        answer_write(intent->token, HF_OUTCOME_UNKNOWN, HF_ETIMEOUT);
    else if (fate == FULL || fate == FULL_DONE)
        answer_write(intent->token, HF_OUTCOME_UNKNOWN, HF_ENOSPACE);
    else if (fate == FAIL)
        answer_write(intent->token, HF_OUTCOME_FAILED, HF_ENOSPACE);
    if (fate == WITHHOLD) {
        w.withheld = intent->token;
        w.plan = intent->plan;
        intent->kind = HF_INTENT_NONE;
    }
    if (fate == LATE) {
        w.is_late = true;
        w.late = intent->plan;
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

/* The write that was given up arrives. */
static inline void arrive_late(void)
{
    (void)commit(&w.late);
    hf_plan_done(&w.late);
    w.is_late = false;
}

/* What hangs on a lease; it is no part of any story that is not about it. */
static inline void on_look(const struct hf_intent *intent)
{
    struct hf_fleet_change found[KEPT];
    char scratch[KEPT][HF_KEY_SIZE];
    struct hf_event event = { .kind = HF_EVENT_ANSWER,
                              .answer = { .token = intent->token, .found = found } };

    for (size_t i = 0; i < w.pair_count && event.answer.found_count < KEPT; i++) {
        size_t n = event.answer.found_count;
        struct hf_bytes key;

        if (w.pairs[i].lease != intent->read.lease)
            continue;
        found[n] = (struct hf_fleet_change){ 0 };
        key = (struct hf_bytes){ w.pairs[i].key, strlen(w.pairs[i].key) };
        ck_assert_int_eq(hf_key_parse(NS, key, scratch[n], &found[n].key, NULL), HF_OK);
        event.answer.found_count++;
    }
    w.looks++;
    if (w.reads_are_off)
        event.answer = (struct hf_event_answer){ .token = intent->token, .err = HF_EAGAIN };
    must(event);
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

#endif
