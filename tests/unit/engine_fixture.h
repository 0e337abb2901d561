/* engine_fixture.h - an engine, a few keys that stand for etcd, and a transcript of what the
 * engine asks for.
 *
 * What the tests put is told to the engine at once. What the engine writes is carried out if
 * its guards hold, told, and noted: "agent a: put health/a (why)", without the entries of the
 * audit trail, what only tells of what was seen, and the cluster clock. Time passes from one
 * deadline of the engine to the next. */
#ifndef HF_TESTS_UNIT_ENGINE_FIXTURE_H
#define HF_TESTS_UNIT_ENGINE_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/engine.h"
#include "schema/json.h"
#include "schema/keys.h"

#define NS     "default"
#define WALL   INT64_C(1790000001000) /* when a test begins */
#define UPTIME INT64_C(2592000000)    /* of the machine: nothing counts from its boot */

struct pair {
    char key[HF_KEY_SIZE];
    char *value; /* NULL: free */
    int64_t create_rev, mod_rev, lease;
};

static struct pair pairs[600];
static struct hf_engine *engine;
static struct hf_engine_policy policy;
static struct hf_buf said;
static int64_t rev;
static hf_ms now;
static bool tells;                     /* changes are told at once */
static bool answers;                   /* writes are carried out */
static bool shows_clock, shows_guards; /* in the transcript */
static struct hf_intent kept;          /* the last write, while nobody answers */

/* A small etcd. */

static inline struct pair *find_pair(const char *key)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].value != NULL && strcmp(pairs[i].key, key) == 0)
            return &pairs[i];
    }
    return NULL;
}

static inline const char *full_key(const char *key)
{
    static char text[HF_KEY_SIZE];

    (void)snprintf(text, sizeof text, "/holdfast/" NS "/%s", key);
    return text;
}

/* The value of "tasks/t", or "" without one. */
static inline const char *get(const char *key)
{
    const struct pair *pair = find_pair(full_key(key));

    return pair != NULL ? pair->value : "";
}

static inline bool has(const char *key, const char *text)
{
    return strstr(get(key), text) != NULL;
}

static inline int step(struct hf_event *event)
{
    return hf_engine_step(engine, event, now);
}

static inline void tell_pair(const char *key, const struct pair *pair)
{
    char scratch[HF_KEY_SIZE];
    struct hf_event event = { .kind = HF_EVENT_CHANGE };
    struct hf_error err = { "" };
    int rc;

    ck_assert_int_eq(hf_key_parse(NS, (struct hf_bytes){ key, strlen(key) }, scratch,
                                  &event.change.key, &err),
                     HF_OK);
    event.change.at = now;
    event.change.seen.mod_rev = rev;
    if (pair != NULL) {
        event.change.seen = (struct hf_seen){ .create_rev = pair->create_rev,
                                              .mod_rev = pair->mod_rev,
                                              .lease = pair->lease,
                                              .text = { pair->value, strlen(pair->value) } };
        rc = hf_json_decode(hf_key_get_record(event.change.key.kind), pair->value,
                            strlen(pair->value), NULL, &event.change.record, &err);
        ck_assert_msg(rc == HF_OK, "%s: %s", pair->value, err.text);
    }
    ck_assert_int_eq(step(&event), HF_OK);
}

static inline void store_pair(const char *key, const char *value, size_t len, int64_t lease)
{
    struct pair *pair = find_pair(key);

    for (size_t i = 0; pair == NULL; i++) {
        ck_assert_uint_lt(i, sizeof pairs / sizeof pairs[0]);
        if (pairs[i].value == NULL)
            pair = &pairs[i];
    }
    if (pair->value == NULL) {
        (void)snprintf(pair->key, sizeof pair->key, "%s", key);
        pair->create_rev = rev;
    }
    free(pair->value);
    pair->value = strndup(value, len);
    pair->mod_rev = rev;
    pair->lease = lease;
    if (tells)
        tell_pair(key, pair);
}

static inline void erase_pair(const char *key)
{
    struct pair *pair = find_pair(key);

    if (pair == NULL)
        return;
    free(pair->value);
    pair->value = NULL;
    if (tells)
        tell_pair(key, NULL);
}

static inline void erase_all(const char *prefix)
{
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].value != NULL && strncmp(pairs[i].key, prefix, strlen(prefix)) == 0)
            erase_pair(pairs[i].key);
    }
}

static inline bool holds(const struct hf_plan_guard *guard)
{
    const struct pair *pair = find_pair(guard->key);

    switch (guard->what) {
    case HF_GUARD_ABSENT: return pair == NULL;
    case HF_GUARD_MOD: return guard->value == (pair != NULL ? pair->mod_rev : 0);
    case HF_GUARD_CREATE: return pair != NULL && pair->create_rev == guard->value;
    case HF_GUARD_GONE: return pair == NULL || pair->create_rev != guard->value;
    case HF_GUARD_LEASE: return pair != NULL && pair->lease == guard->value;
    case HF_GUARD_TEXT:
        return pair != NULL && strlen(pair->value) == guard->text.len &&
               memcmp(pair->value, guard->text.data, guard->text.len) == 0;
    }
    return false;
}

static inline void answer(const struct hf_intent *intent, enum hf_outcome outcome)
{
    struct hf_event event = {
        .kind = HF_EVENT_OUTCOME,
        .outcome = { .token = intent->token, .outcome = outcome, .revision = rev }
    };

    ck_assert_int_eq(step(&event), HF_OK);
}

/* Whether it was done. */
static inline bool execute(const struct hf_plan *plan)
{
    for (size_t i = 0; i < plan->guard_count; i++) {
        if (!holds(&plan->guards[i]))
            return false;
    }
    rev++;
    for (size_t i = 0; i < plan->write_count; i++) {
        const struct hf_plan_write *write = &plan->writes[i];

        if (write->value != NULL)
            store_pair(write->key, write->value, write->value_len, write->lease);
        else if (write->all)
            erase_all(write->key);
        else
            erase_pair(write->key);
    }
    return true;
}

/* The transcript. */

static inline void note_write(const struct hf_intent *intent)
{
    const char *lead = "";

    if ((strcmp(intent->subject, "clock") == 0 && !shows_clock) ||
        strcmp(intent->subject, "trail") == 0)
        return;
    hf_buf_printf(&said, "%s: ", intent->subject);
    if (shows_guards) {
        hf_plan_describe(&intent->plan, &said);
    } else {
        for (size_t i = 0; i < intent->plan.write_count; i++) {
            const struct hf_plan_write *write = &intent->plan.writes[i];
            const char *key = write->key;

            if (strncmp(key, "/holdfast/" NS "/", strlen("/holdfast/" NS "/")) == 0)
                key += strlen("/holdfast/" NS "/");
            if (strncmp(key, "events/", 7) == 0)
                continue;
            hf_buf_printf(&said, "%s%s %s", lead, write->value != NULL ? "put" : "delete", key);
            lead = ", ";
        }
    }
    hf_buf_printf(&said, " (%s)\n", intent->why);
}

static inline void take(struct hf_intent *intent)
{
    if (intent->kind == HF_INTENT_ALERT) {
        hf_buf_printf(&said, "alert %s: %s\n", intent->subject, intent->alert.why);
        return;
    }
    ck_assert_int_eq(intent->kind, HF_INTENT_WRITE);
    note_write(intent);
    if (!answers) {
        hf_intent_done(&kept);
        kept = *intent;
        intent->kind = HF_INTENT_NONE;
        return;
    }
    answer(intent, execute(&intent->plan) ? HF_OUTCOME_DONE : HF_OUTCOME_REFUSED);
}

/* Everything that the engine asks for by now. */
static inline void run_engine(void)
{
    struct hf_intent intent = { .kind = HF_INTENT_NONE };
    int rc;

    for (int i = 0; i < 10000; i++) {
        rc = hf_engine_next(engine, now, WALL + now - UPTIME, 0x80000000u, &intent);
        ck_assert_int_ge(rc, 0);
        if (rc == 0)
            return;
        take(&intent);
        hf_intent_done(&intent);
    }
    ck_abort_msg("the engine does not come to rest:\n%.2000s", said.data);
}

static inline void pass(hf_ms ms)
{
    hf_ms end = now + ms;

    run_engine();
    while (now < end) {
        hf_ms at = hf_engine_deadline(engine, now);

        ck_assert_msg(at > now, "the engine is due, and asks for nothing");
        now = at < end ? at : end;
        ck_assert_int_eq(step(&(struct hf_event){ .kind = HF_EVENT_TIME }), HF_OK);
        run_engine();
    }
}

/* Exactly this was asked for since the last look. */
static inline void expect(const char *text)
{
    run_engine();
    ck_assert_str_eq(said.data != NULL ? said.data : "", text);
    hf_buf_clear(&said);
    if (said.data != NULL)
        said.data[0] = '\0';
}

static inline void ignore(void)
{
    run_engine();
    hf_buf_clear(&said);
    if (said.data != NULL)
        said.data[0] = '\0';
}

/* What others do. */

static inline void put(const char *key, const char *json)
{
    rev++;
    store_pair(full_key(key), json, strlen(json), 0);
}

static inline void put_live(const char *key, const char *json, int64_t lease)
{
    rev++;
    store_pair(full_key(key), json, strlen(json), lease);
}

static inline void erase(const char *key)
{
    rev++;
    erase_pair(full_key(key));
}

/* A lease ends: all its keys go in one revision. */
static inline void expire(int64_t lease)
{
    rev++;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].value != NULL && pairs[i].lease == lease) {
            char key[HF_KEY_SIZE];

            (void)snprintf(key, sizeof key, "%.*s", (int)sizeof key - 1, pairs[i].key);
            erase_pair(key);
        }
    }
}

static inline void host_joins(const char *host, int64_t lease)
{
    char key[300];

    (void)snprintf(key, sizeof key, "hosts/%s/record", host);
    if (get(key)[0] == '\0')
        put(key, "{\"capacity\":100,\"launchers\":[\"w\"]}");
    (void)snprintf(key, sizeof key, "hosts/%s/live", host);
    put_live(key, "{\"ttl\":\"15s\"}", lease);
}

/* An agent of role r, at home on that host, whose process is `instance`. */
static inline void agent_lives(const char *agent, const char *host, int64_t lease,
                               const char *instance)
{
    char key[300], json[300];

    (void)snprintf(key, sizeof key, "agents/%s/spec", agent);
    (void)snprintf(json, sizeof json, "{\"role\":\"r\",\"launcher\":\"w\",\"home\":\"%s\"}",
                   host);
    if (get(key)[0] == '\0')
        put(key, json);
    (void)snprintf(key, sizeof key, "agents/%s/live", agent);
    (void)snprintf(json, sizeof json, "{\"host\":\"%s\",\"instanceId\":\"%s\",\"ttl\":\"15s\"}",
                   host, instance);
    put_live(key, json, lease);
}

static inline int64_t life_of(const char *agent)
{
    char key[300];
    const struct pair *pair;

    (void)snprintf(key, sizeof key, "agents/%s/live", agent);
    pair = find_pair(full_key(key));
    return pair != NULL ? pair->create_rev : 0;
}

/* The task is that life's. */
static inline void task_is_owned(const char *task, const char *state, const char *agent)
{
    char key[300], json[400];

    (void)snprintf(key, sizeof key, "tasks/%s", task);
    (void)snprintf(json, sizeof json,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"%s\",\"owner\":{\"agent\":\"%s\","
                   "\"incarnation\":{\"createRevision\":\"%lld\"}},\"attempt\":1}",
                   task, state, agent, (long long)life_of(agent));
    put(key, json);
}

static inline void task_waits(const char *task, const char *state)
{
    char key[300], json[200];

    (void)snprintf(key, sizeof key, "tasks/%s", task);
    (void)snprintf(json, sizeof json, "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"%s\"}", task,
                   state);
    put(key, json);
}

/* Its agentd saw it end. */
static inline void agent_ends(const char *agent, const char *kind)
{
    char key[300], json[300];
    int64_t life = life_of(agent);

    rev++;
    (void)snprintf(key, sizeof key, "agents/%s/exit", agent);
    (void)snprintf(json, sizeof json,
                   "{\"kind\":\"%s\",\"incarnation\":{\"createRevision\":\"%lld\"},"
                   "\"evidence\":[{\"source\":\"waitpid\",\"text\":\"signal 11\"}]}",
                   kind, (long long)life);
    store_pair(full_key(key), json, strlen(json), 0);
    (void)snprintf(key, sizeof key, "agents/%s/live", agent);
    erase_pair(full_key(key));
}

/* A host serves the start that was ordered there. */
static inline void host_serves(const char *host, const char *agent, int64_t lease,
                               const char *instance, const char *task)
{
    char key[300], json[400];

    rev++;
    (void)snprintf(key, sizeof key, "commands/%s/%s", host, agent);
    ck_assert_str_ne(get(key), "");
    erase_pair(full_key(key));
    (void)snprintf(key, sizeof key, "agents/%s/live", agent);
    (void)snprintf(json, sizeof json, "{\"host\":\"%s\",\"instanceId\":\"%s\",\"ttl\":\"15s\"}",
                   host, instance);
    store_pair(full_key(key), json, strlen(json), lease);
    if (task == NULL)
        return;
    (void)snprintf(key, sizeof key, "tasks/%s", task);
    (void)snprintf(json, sizeof json,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"acknowledged\",\"owner\":{"
                   "\"agent\":\"%s\",\"incarnation\":{}},\"attempt\":2}",
                   task, agent);
    store_pair(full_key(key), json, strlen(json), 0);
    (void)snprintf(key, sizeof key, "pending/r/%s", task);
    erase_pair(full_key(key));
}

static inline void sync_engine(void)
{
    struct hf_event event = { .kind = HF_EVENT_SYNCED, .revision = rev };

    ck_assert_int_eq(step(&event), HF_OK);
}

static inline void lead(void)
{
    struct hf_event event = { .kind = HF_EVENT_TERM };

    erase("controller/leader");
    put_live("controller/leader", "{\"id\":\"c1\"}", 0x77);
    event.term = (struct hf_term){ .lease = 0x77, .create_rev = rev };
    ck_assert_int_eq(step(&event), HF_OK);
}

/* As a leader that begins with nothing, and is told what there is. */
static inline void begin_engine(void)
{
    struct hf_engine_config cfg = { .ns = NS, .id = "c1", .policy = policy, .seed = 7 };

    hf_engine_free(engine);
    engine = hf_engine_new(&cfg);
    ck_assert_ptr_nonnull(engine);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].value != NULL)
            tell_pair(pairs[i].key, &pairs[i]);
    }
    sync_engine();
}

static inline void teardown(void)
{
    hf_engine_free(engine);
    engine = NULL;
    hf_intent_done(&kept);
    hf_buf_done(&said);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        free(pairs[i].value);
        pairs[i].value = NULL;
    }
}

/* Two hosts, an agent on each, and a leader. */
static inline void setup(void)
{
    policy = hf_engine_policy_default();
    rev = 100;
    now = UPTIME;
    tells = answers = true;
    shows_clock = shows_guards = false;
    begin_engine();
    host_joins("h1", 0x1);
    host_joins("h2", 0x2);
    agent_lives("a", "h1", 0x1, "one");
    agent_lives("b", "h2", 0x2, "two");
    lead();
    pass(10000);
    ignore();
}

#endif
