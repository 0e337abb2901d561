/* Watched histories that are wrong, each in one way, are rejected; the one that they begin
 * with, and a whole recovery, are not. */
#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "sim/history.h"

#define ROOT "/holdfast/default/"

enum {
    MOST_KEYS = 32,
    AHEAD = 1000000, /* what the wall clock is ahead of the other one */
    LEASE_A = 11,
    LEASE_B = 12,
    LEASE_C1 = 21,
    LEASE_C2 = 22,
    GRACE_MS = 15000 / 2 + 1500,
};

/* What a real etcd would know of a key. */
struct known {
    char key[100];
    int64_t create_rev, version;
};

static struct hfs_history *history;
static struct known keys[MOST_KEYS];
static size_t key_count;
static hfs_rev revision;
static hf_ms now, slack;
static int64_t lease_of_a;

/* A revision that is being made. */
static struct hfs_event events[8];
static char texts[8][2][1000];
static size_t event_count;

static struct known *find_key(const char *name)
{
    for (size_t i = 0; i < key_count; i++) {
        if (strcmp(keys[i].key, name) == 0)
            return &keys[i];
    }
    ck_assert_uint_lt(key_count, MOST_KEYS);
    (void)snprintf(keys[key_count].key, sizeof keys[0].key, "%s", name);
    return &keys[key_count++];
}

static struct hf_bytes bytes(const char *text)
{
    return (struct hf_bytes){ text, strlen(text) };
}

static struct hfs_event *add(const char *name)
{
    struct hfs_event *event = &events[event_count];
    char *key = texts[event_count][0];

    ck_assert_uint_lt(event_count, 8);
    event_count++;
    (void)snprintf(key, sizeof texts[0][0], ROOT "%s", name);
    *event = (struct hfs_event){ .kv = { .key = bytes(key), .mod_rev = revision + 1 } };
    return event;
}

static void HF_PRINTF(3, 4) put(const char *name, int64_t lease, const char *fmt, ...)
{
    struct known *known = find_key(name);
    char *value = texts[event_count][1];
    struct hfs_event *event = add(name);
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(value, sizeof texts[0][1], fmt, args);
    va_end(args);
    if (known->version++ == 0)
        known->create_rev = revision + 1;
    event->kv.value = bytes(value);
    event->kv.create_rev = known->create_rev;
    event->kv.version = known->version;
    event->kv.lease = lease;
}

static void drop(const char *name)
{
    find_key(name)->version = 0;
    add(name)->deleted = true;
}

static void commit(void)
{
    hfs_history_add(
        history,
        &(struct hfs_seen){
            .revision = ++revision, .after = now - slack, .before = now, .wall_ahead = AHEAD },
        events, event_count);
    event_count = 0;
    now += 10;
}

/* An id that was made at that time. Valid until it is asked for eight more. */
static const char *id_at(hf_ms when)
{
    static char ids[8][HF_ID_LEN + 1];
    static uint8_t random[10];
    static unsigned turn;

    random[0]++;
    hf_id_format(when + AHEAD, random, ids[++turn % 8]);
    return ids[turn % 8];
}

#define LIVE                                                                                   \
    "{\"host\":\"h1\",\"instanceId\":\"%s\",\"ttl\":\"15s\",\"opIds\":{\"owner\":\"%s\"}}"
#define TASK(state) "{\"id\":\"t\",\"role\":\"r\",\"state\":\"" state "\","

static void lead(const char *id, int64_t lease)
{
    put("controller/leader", lease, "{\"id\":\"%s\"}", id);
    commit();
}

static void live(const char *instance, int64_t lease)
{
    put("agents/a/live", lease, LIVE, instance, id_at(now));
    lease_of_a = lease;
}

/* The last one that was registered. */
static const char *incarnation(void)
{
    static char text[100];

    (void)snprintf(text, sizeof text,
                   "\"incarnation\":{\"leaseId\":\"%lld\",\"createRevision\":\"%lld\"}",
                   (long long)lease_of_a, (long long)find_key("agents/a/live")->create_rev);
    return text;
}

static void task_of_owner(const char *state, int64_t head)
{
    put("tasks/t", 0,
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"%s\",\"checkpoint\":{\"seq\":\"%lld\"},"
        "\"owner\":{\"agent\":\"a\",%s},\"opIds\":{\"owner\":\"%s\"}}",
        state, (long long)head, incarnation(), id_at(now));
}

static int64_t head; /* of its chain */

static void claim(void)
{
    drop("pending/r/t");
    task_of_owner("in_progress", 0);
    commit();
}

static void checkpoint(int64_t seq, int64_t parent)
{
    char name[64];

    head = seq;
    (void)snprintf(name, sizeof name, "checkpoints/t/%019lld", (long long)seq);
    put(name, 0,
        "{\"task\":\"t\",\"seq\":\"%lld\",\"parent\":\"%lld\",%s,\"opIds\":{\"owner\":\"%s\"}}",
        (long long)seq, (long long)parent, incarnation(), id_at(now));
    task_of_owner("in_progress", seq);
    commit();
}

/* The process ended, and its agentd says so. */
static void end(void)
{
    put("agents/a/exit", 0, "{\"kind\":\"crashed\",%s,\"opIds\":{\"owner\":\"%s\"}}",
        incarnation(), id_at(now));
    drop("agents/a/live");
    commit();
}

/* Its lease has expired. */
static void expire(void)
{
    drop("agents/a/live");
    commit();
}

/* By some controller, decided at `when`. */
static void reset(hf_ms when)
{
    put("tasks/t", 0,
        TASK("pending") "\"checkpoint\":{\"seq\":\"%lld\"},\"attempt\":1,"
                        "\"opIds\":{\"controller\":\"%s\"}}",
        (long long)head, id_at(when));
    put("pending/r/t", 0, "{}");
}

static void tell_event(const char *actor, hf_ms when)
{
    put("events/0000000000000000001", 0,
        "{\"kind\":\"reset\",\"actor\":\"%s\",\"correlationId\":\"%s\"}", actor, id_at(when));
}

static void setup(void)
{
    struct hf_recover_policy recover = hf_recover_policy_default();
    struct hf_restart_policy restart = hf_restart_policy_default();

    history = hfs_history_new("default", &recover, &restart);
    memset(keys, 0, sizeof keys);
    key_count = event_count = 0;
    revision = 1;
    head = 0;
    now = 500000;
    slack = 0;
    lead("c1", LEASE_C1);
    live("i1", LEASE_A);
    commit();
    put("tasks/t", 0, TASK("pending") "\"opIds\":{\"operator\":\"%s\"}}", id_at(now));
    put("pending/r/t", 0, "{}");
    commit();
    claim();
    ck_assert_ptr_null(hfs_history_get_violation(history));
}

static void teardown(void)
{
    hfs_history_free(history);
}

static void expect_nothing(void)
{
    const char *violation = hfs_history_get_violation(history);

    ck_assert_msg(violation == NULL, "%s", violation);
}

static void expect(const char *text)
{
    const char *violation = hfs_history_get_violation(history);

    ck_assert_msg(violation != NULL, "%s did not fail", text);
    ck_assert_msg(strncmp(violation, text, strlen(text)) == 0,
                  "%s was to fail, and this did: %s", text, violation);
}

START_TEST(a_recovery_is_as_it_should_be)
{
    checkpoint(1, 0);
    checkpoint(2, 1);
    end();
    reset(now);
    tell_event("c1", now);
    put("commands/h1/a", 0,
        "{\"id\":\"x\",\"host\":\"h1\",\"task\":\"t\",\"opIds\":{\"controller\":\"%s\"}}",
        id_at(now));
    commit();
    live("i2", LEASE_A);
    drop("commands/h1/a");
    drop("pending/r/t");
    task_of_owner("acknowledged", 2);
    commit();
    checkpoint(3, 2);
    task_of_owner("completed", 3);
    commit();
    expect_nothing();
    ck_assert_uint_eq(hfs_history_get_counts(history).resets, 1);
    ck_assert_uint_eq(hfs_history_get_counts(history).completed, 1);
}
END_TEST

START_TEST(i1_two_lives_at_once)
{
    live("i2", LEASE_A);
    commit();
    expect("I1 ");
}
END_TEST

START_TEST(i2_a_dead_life_writes)
{
    expire();
    put("agents/a/report", 0, "{%s,\"opIds\":{\"owner\":\"%s\"}}", incarnation(), id_at(now));
    commit();
    expect("I2 ");
}
END_TEST

START_TEST(i2_a_dead_life_completes_its_task)
{
    expire();
    task_of_owner("completed", 0);
    commit();
    expect("I2 ");
}
END_TEST

START_TEST(i4_a_leader_of_an_old_term_writes_with_its_name)
{
    drop("controller/leader");
    commit();
    lead("c2", LEASE_C2);
    put("health/a", 0, "{\"opIds\":{\"controller\":\"%s\"}}", id_at(now));
    tell_event("c1", now);
    commit();
    expect("I4 c1 ");
}
END_TEST

START_TEST(i4_what_was_decided_in_an_old_term_is_written)
{
    hf_ms decided = now;

    now += 1000;
    drop("controller/leader");
    commit();
    lead("c2", LEASE_C2);
    put("health/a", 0, "{\"opIds\":{\"controller\":\"%s\"}}", id_at(now));
    commit();
    expect_nothing();
    put("health/a", 0, "{\"opIds\":{\"controller\":\"%s\"}}", id_at(decided));
    commit();
    expect("I4 ");
}
END_TEST

START_TEST(i4_a_controller_writes_while_nobody_leads)
{
    drop("controller/leader");
    commit();
    put("health/a", 0, "{\"opIds\":{\"controller\":\"%s\"}}", id_at(now));
    commit();
    expect("I4 ");
}
END_TEST

START_TEST(i5_a_chain_is_broken)
{
    checkpoint(1, 0);
    expect_nothing();
    checkpoint(3, 2);
    expect("I5 ");
}
END_TEST

/* The last five are kept: one goes when there is one more. */
START_TEST(i5_a_checkpoint_that_is_needed_is_removed)
{
    for (int64_t seq = 1; seq <= 6; seq++)
        checkpoint(seq, seq - 1);
    drop("checkpoints/t/0000000000000000001");
    commit();
    expect_nothing();
    drop("checkpoints/t/0000000000000000002");
    commit();
    expect("I5 ");
}
END_TEST

START_TEST(i6_a_final_task_changes)
{
    task_of_owner("completed", 0);
    commit();
    expect_nothing();
    task_of_owner("in_progress", 0);
    commit();
    expect("I6 ");
}
END_TEST

START_TEST(i7_a_task_is_reset_while_its_owner_lives)
{
    reset(now);
    commit();
    expect("I7 ");
}
END_TEST

/* It was seen to be gone up to `slack` after it went. */
START_TEST(i7_a_task_is_reset_before_the_grace_is_over)
{
    slack = _i == 1 ? 2000 : 0;
    expire();
    slack = 0;
    now += GRACE_MS - 1000;
    reset(now);
    commit();
    if (_i == 1)
        expect_nothing();
    else
        expect("I7 ");
}
END_TEST

START_TEST(i8_an_agentd_starts_again_what_it_may_start_once)
{
    end();
    live("i2", _i == 1 ? LEASE_B : LEASE_A);
    commit();
    if (_i == 1)
        expect_nothing(); /* another agentd */
    else
        expect("I8 ");
}
END_TEST

START_TEST(i11_a_task_is_recovered_again_at_once)
{
    end();
    reset(now);
    commit();
    expect_nothing();
    live("i2", LEASE_B);
    commit();
    claim();
    end();
    reset(now);
    commit();
    expect("I11 ");
}
END_TEST

/* A task without an owner, by a person or by a controller. */
static void other_task(const char *name, const char *state, const char *writer)
{
    char key[64];

    (void)snprintf(key, sizeof key, "tasks/%s", name);
    put(key, 0, "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"%s\",\"opIds\":{\"%s\":\"%s\"}}",
        name, state, writer, id_at(now));
    (void)snprintf(key, sizeof key, "pending/r/%s", name);
    if (strcmp(state, "pending") == 0)
        put(key, 0, "{}");
    else if (strcmp(writer, "controller") == 0)
        drop(key);
    commit();
    now += 100;
}

START_TEST(i11_more_are_promoted_than_may_run)
{
    hfs_history_set_running_max(history, (uint32_t)_i);
    other_task("u", "queued", "operator");
    other_task("v", "queued", "operator");
    other_task("u", "pending", "controller");
    expect_nothing();
    other_task("v", "pending", "controller");
    if (_i == 1)
        expect("I11 v is promoted, and 1 of 1 ");
    else
        expect_nothing();
}
END_TEST

/* Room is made by who goes back to the queue. */
START_TEST(i11_one_is_promoted_for_another)
{
    hfs_history_set_running_max(history, 1);
    other_task("u", "queued", "operator");
    other_task("v", "queued", "operator");
    other_task("u", "pending", "controller");
    other_task("u", "queued", "controller");
    other_task("v", "pending", "controller");
    expect_nothing();
}
END_TEST

START_TEST(i11_what_is_being_recovered_is_demoted)
{
    end();
    reset(now);
    commit();
    expect_nothing();
    now += 100;
    put("tasks/t", 0, TASK("queued") "\"attempt\":1,\"opIds\":{\"controller\":\"%s\"}}",
        id_at(now));
    drop("pending/r/t");
    commit();
    expect("I11 t is demoted");
}
END_TEST

START_TEST(i12_a_stopped_agent_is_started)
{
    end();
    put("wanted/a", 0, "{\"state\":\"stopped\",\"opIds\":{\"operator\":\"%s\"}}", id_at(now));
    commit();
    live("i2", LEASE_B);
    commit();
    expect("I12 ");
}
END_TEST

START_TEST(a_revision_that_was_not_told_is_missed)
{
    revision++;
    expire();
    expect("history");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim/history");
    TCase *t = tcase_create("history");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_recovery_is_as_it_should_be);
    tcase_add_test(t, i1_two_lives_at_once);
    tcase_add_test(t, i2_a_dead_life_writes);
    tcase_add_test(t, i2_a_dead_life_completes_its_task);
    tcase_add_test(t, i4_a_leader_of_an_old_term_writes_with_its_name);
    tcase_add_test(t, i4_what_was_decided_in_an_old_term_is_written);
    tcase_add_test(t, i4_a_controller_writes_while_nobody_leads);
    tcase_add_test(t, i5_a_chain_is_broken);
    tcase_add_test(t, i5_a_checkpoint_that_is_needed_is_removed);
    tcase_add_test(t, i6_a_final_task_changes);
    tcase_add_test(t, i7_a_task_is_reset_while_its_owner_lives);
    tcase_add_loop_test(t, i7_a_task_is_reset_before_the_grace_is_over, 0, 2);
    tcase_add_loop_test(t, i8_an_agentd_starts_again_what_it_may_start_once, 0, 2);
    tcase_add_test(t, i11_a_task_is_recovered_again_at_once);
    tcase_add_loop_test(t, i11_more_are_promoted_than_may_run, 0, 3);
    tcase_add_test(t, i11_one_is_promoted_for_another);
    tcase_add_test(t, i11_what_is_being_recovered_is_demoted);
    tcase_add_test(t, i12_a_stopped_agent_is_started);
    tcase_add_test(t, a_revision_that_was_not_told_is_missed);
    suite_add_tcase(suite, t);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
