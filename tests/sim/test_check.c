/* The checkers can fail: each of these histories is wrong in one way, and one that is right is
 * told, too. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/check.h"

#define NS         "/holdfast/sim/"
#define LIVE_1     "{\"host\":\"h1\",\"bootId\":\"b1\",\"instanceId\":\"i1\",\"ttl\":\"15s\"}"
#define LIVE_2     "{\"host\":\"h2\",\"bootId\":\"b2\",\"instanceId\":\"i2\",\"ttl\":\"15s\"}"
#define LIVE_OTHER "{\"host\":\"h1\",\"bootId\":\"b1\",\"instanceId\":\"i3\",\"ttl\":\"15s\"}"
#define OWNED                                                                                  \
    "\"owner\":{\"agent\":\"a\",\"incarnation\":{\"leaseId\":\"1\",\"createRevision\":\"2\"}}"

enum { LEASE = 1, OTHER_LEASE = 2 };

static struct hfs_world world;
static struct hfs_etcd *etcd;
static struct hfs_check *check;
static struct hfs_process agentd, controller;

static void serve_late(const struct hfs_process *from, const struct hfs_request *request,
                       hf_ms made_at)
{
    struct hfs_letter *letter = hfs_letter_new(request, made_at);
    struct hfs_answer *answer = NULL;
    int leader = hfs_etcd_get_leader(etcd);

    letter->known_rev = from != NULL ? from->told_rev : 0;
    ck_assert_int_ge(leader, 0);
    ck_assert_int_eq(hfs_etcd_serve(etcd, (unsigned)leader, request, &answer), HFS_ANSWERED);
    ck_assert_int_eq(answer->err, HF_OK);
    hfs_check_served(check, from, letter, answer);
    hfs_check_commit(check, from);
    free(answer);
    hfs_letter_unref(letter);
}

static void serve(const struct hfs_process *from, const struct hfs_request *request)
{
    serve_late(from, request, world.now);
}

static void grant(const struct hfs_process *to, int64_t lease)
{
    struct hfs_request request = { .kind = HFS_GRANT };

    request.lease = lease;
    request.ttl_s = 15;
    serve(to, &request);
    hfs_check_lease(check, lease, to);
}

static struct hf_bytes bytes(const char *text)
{
    return (struct hf_bytes){ text, strlen(text) };
}

static struct hfs_op put_op(const char *key, const char *value, int64_t lease)
{
    struct hfs_op op = { .kind = HFS_PUT };

    op.put = (struct hfs_put_request){ bytes(key), bytes(value), lease };
    return op;
}

/* One Txn that puts up to two keys; `second` may be NULL. */
static void put_two(const struct hfs_process *from, const char *key, const char *value,
                    const char *second, const char *second_value)
{
    struct hfs_op ops[2] = { put_op(key, value, 0) };
    struct hfs_request request = { .kind = HFS_TXN };

    if (second != NULL)
        ops[1] = put_op(second, second_value, 0);
    request.txn.then = (struct hfs_ops){ ops, second != NULL ? 2 : 1 };
    serve(from, &request);
}

static void put(const struct hfs_process *from, const char *key, const char *value,
                int64_t lease)
{
    struct hfs_op op = put_op(key, value, lease);
    struct hfs_request request = { .kind = HFS_TXN };

    request.txn.then = (struct hfs_ops){ &op, 1 };
    serve(from, &request);
}

static void erase(const struct hfs_process *from, const char *key)
{
    struct hfs_op op = { .kind = HFS_DELETE, .erase.key = { key, strlen(key) } };
    struct hfs_request request = { .kind = HFS_TXN };

    request.txn.then = (struct hfs_ops){ &op, 1 };
    serve(from, &request);
}

static void submit(const char *task)
{
    char text[200], key[100], index[100];

    (void)snprintf(key, sizeof key, NS "tasks/%s", task);
    (void)snprintf(index, sizeof index, NS "pending/r/%s", task);
    (void)snprintf(text, sizeof text, "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"pending\"}",
                   task);
    put_two(&agentd, key, text, index, "{}");
}

static void claim_as(const char *task, int64_t life)
{
    char text[300], key[100], index[100];
    struct hfs_op ops[2] = { { 0 }, { .kind = HFS_DELETE } };
    struct hfs_request request = { .kind = HFS_TXN };

    (void)snprintf(key, sizeof key, NS "tasks/%s", task);
    (void)snprintf(index, sizeof index, NS "pending/r/%s", task);
    (void)snprintf(text, sizeof text,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"in_progress\",\"owner\":{"
                   "\"agent\":\"a\",\"incarnation\":{\"leaseId\":\"1\","
                   "\"createRevision\":\"%lld\"}}}",
                   task, (long long)life);
    ops[0] = put_op(key, text, 0);
    ops[1].erase = (struct hfs_range){ .key = bytes(index) };
    request.txn.then = (struct hfs_ops){ ops, 2 };
    serve(&agentd, &request);
}

static void claim(const char *task)
{
    claim_as(task, 2);
}

static void setup(void)
{
    hfs_world_init(&world, 1);
    world.now = 100;
    ck_assert_int_eq(hfs_etcd_new(&(struct hfs_etcd_config){ .seed = 1 }, &etcd), HF_OK);
    check = hfs_check_new(&world, etcd, "sim");
    hfs_process_init(&agentd, &world, "agentd");
    hfs_process_init(&controller, &world, "c1");
    agentd.role = HFS_AGENTD;
    controller.role = HFS_CONTROLLER;
    controller.told_rev = INT64_MAX;
    grant(&agentd, LEASE);
    grant(&controller, OTHER_LEASE);
    put(&agentd, NS "agents/a/live", LIVE_1, LEASE); /* at revision 2 */
    submit("t");
    claim("t");
    ck_assert_ptr_null(hfs_check_get_violation(check));
}

static void teardown(void)
{
    hfs_check_free(check);
    hfs_etcd_free(etcd);
    hfs_world_done(&world);
}

static void expect(const char *invariant)
{
    const char *violation = hfs_check_get_violation(check);

    ck_assert_msg(violation != NULL, "%s did not fail", invariant);
    ck_assert_msg(strncmp(violation, invariant, strlen(invariant)) == 0 &&
                      violation[strlen(invariant)] == ' ',
                  "%s was to fail, and this did: %s", invariant, violation);
}

START_TEST(i1_a_second_registration)
{
    put(&agentd, NS "agents/a/live", LIVE_2, LEASE);
    expect("I1");
}
END_TEST

START_TEST(i1_a_registration_without_a_lease)
{
    put(&agentd, NS "agents/b/live", LIVE_2, 0);
    expect("I1");
}
END_TEST

START_TEST(i2_a_report_of_a_life_that_is_gone)
{
    put(&agentd, NS "agents/a/report",
        "{\"incarnation\":{\"leaseId\":\"1\",\"createRevision\":\"1\"}}", 0);
    expect("I2");
}
END_TEST

START_TEST(i3_a_task_that_goes_from_one_to_another)
{
    put(&agentd, NS "agents/b/live", LIVE_2, LEASE);
    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"owner\":{\"agent\":\"b\","
        "\"incarnation\":{\"leaseId\":\"1\",\"createRevision\":\"5\"}}}",
        0);
    expect("I3");
}
END_TEST

START_TEST(i4_a_controller_that_does_not_lead)
{
    put(&controller, NS "health/a", "{\"state\":\"healthy\"}", 0);
    expect("I4");
}
END_TEST

#define ENTRY(SEQ, PARENT)                                                                     \
    "{\"task\":\"t\",\"seq\":\"" SEQ "\",\"parent\":\"" PARENT                                 \
    "\",\"incarnation\":{\"leaseId\":\"1\",\"createRevision\":\"2\"}}"
#define HEAD(SEQ)                                                                              \
    "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"checkpoint\":{\"seq\":\"" SEQ    \
    "\"}," OWNED "}"

START_TEST(i5_a_checkpoint_that_leaves_one_out)
{
    put_two(&agentd, NS "checkpoints/t/0000000000000000001", ENTRY("1", "0"), NS "tasks/t",
            HEAD("1"));
    ck_assert_ptr_null(hfs_check_get_violation(check));
    put_two(&agentd, NS "checkpoints/t/0000000000000000003", ENTRY("3", "2"), NS "tasks/t",
            HEAD("3"));
    expect("I5");
}
END_TEST

START_TEST(i5_a_checkpoint_that_is_not_the_head)
{
    put(&agentd, NS "checkpoints/t/0000000000000000001", ENTRY("1", "0"), 0);
    expect("I5");
}
END_TEST

START_TEST(i5_checkpoints_that_are_removed_from_a_task_at_work)
{
    put_two(&agentd, NS "checkpoints/t/0000000000000000001", ENTRY("1", "0"), NS "tasks/t",
            HEAD("1"));
    ck_assert_ptr_null(hfs_check_get_violation(check));
    erase(&agentd, NS "checkpoints/t/0000000000000000001");
    expect("I5");
}
END_TEST

START_TEST(i5_a_task_at_work_that_forgets_its_checkpoints)
{
    put_two(&agentd, NS "checkpoints/t/0000000000000000001", ENTRY("1", "0"), NS "tasks/t",
            HEAD("1"));
    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\"," OWNED "}", 0);
    expect("I5");
}
END_TEST

#define RESTORED(SEQ)                                                                          \
    "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"restored\":{\"seq\":\"" SEQ      \
    "\"}," OWNED "}"
#define OUTCOME(SEQ, RESULT)                                                                   \
    "{\"task\":\"t\",\"attempts\":1,\"outcomes\":[{\"checkpoint\":{\"seq\":\"" SEQ             \
    "\"},\"result\":\"" RESULT "\"}]}"

START_TEST(i13_a_death_that_is_counted_against_another_checkpoint)
{
    put(&agentd, NS "tasks/t", RESTORED("2"), 0);
    put(&agentd, NS "recoveries/t", OUTCOME("3", "ordered"), 0);
    put(&agentd, NS "recoveries/t", OUTCOME("2", "died"), 0);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    put(&agentd, NS "recoveries/t", OUTCOME("3", "ordered"), 0);
    put(&agentd, NS "recoveries/t", OUTCOME("3", "died"), 0);
    expect("I13");
}
END_TEST

START_TEST(i13_a_successor_that_goes_on_from_what_its_task_does_not_name)
{
    put(&agentd, NS "tasks/t", RESTORED("2"), 0);
    hfs_check_goes_on(check, "a", "another", "t", 3); /* not its task any more */
    hfs_check_goes_on(check, "a", "i1", "t", 2);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    hfs_check_goes_on(check, "a", "i1", "t", 3);
    expect("I13");
}
END_TEST

/* It is not its owner's to go on with: a restored etcd may say so of what was at work. */
START_TEST(a_look_at_a_checkpoint_of_what_is_over)
{
    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"completed\"," OWNED "}", 0);
    hfs_check_goes_on(check, "a", "i1", "t", 1);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i6_a_final_state_that_is_left)
{
    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"completed\"," OWNED "}", 0);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\"," OWNED "}", 0);
    expect("I6");
}
END_TEST

START_TEST(i7_a_reset_while_the_owner_lives)
{
    world.now = 1000;
    grant(&controller, 3);
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", 3);
    world.now = 2000;
    put_two(
        &controller, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\",\"opIds\":{\"controller\":\"x\"}}",
        NS "pending/r/t", "{}");
    expect("I7");
}
END_TEST

/* Who leads takes it from an owner that lives, and has not begun with it in two minutes. */
static void take_back(const char *state)
{
    char text[200];

    put(&agentd, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"acknowledged\"," OWNED "}", 0);
    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    world.now = 125000;
    (void)snprintf(text, sizeof text,
                   "{\"id\":\"t\",\"role\":\"r\",\"state\":\"%s\","
                   "\"opIds\":{\"controller\":\"x\"}}",
                   state);
    if (strcmp(state, "pending") == 0)
        put_two(&controller, NS "tasks/t", text, NS "pending/r/t", "{}");
    else
        put(&controller, NS "tasks/t", text, 0);
}

START_TEST(i7_a_review_while_the_owner_lives)
{
    take_back("needs_review");
    expect("I7");
}
END_TEST

START_TEST(what_nobody_begins_with_may_be_taken_back)
{
    take_back("pending");
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i8_a_start_of_one_that_lives)
{
    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    world.now = 2000;
    put(&controller, NS "commands/h1/a", "{\"id\":\"x\",\"host\":\"h1\"}", 0);
    expect("I8");
}
END_TEST

START_TEST(i8_one_life_that_begins_twice)
{
    hfs_check_begins(check, "a", "i1", 2);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    hfs_check_begins(check, "a", "i1", 2);
    expect("I8");
}
END_TEST

/* What an agentd asked for at that moment arrives after a process of it has come and gone,
 * while somebody leads. */
static void start_after_the_end(hf_ms made_at)
{
    struct hfs_op op = put_op(NS "agents/a/live", LIVE_OTHER, LEASE);
    struct hfs_request request = { .kind = HFS_TXN };

    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    hfs_check_begins(check, "a", "i1", 2);
    world.now = 2000;
    erase(&agentd, NS "agents/a/live");
    world.now = 3000;
    request.txn.then = (struct hfs_ops){ &op, 1 };
    serve_late(&agentd, &request, made_at);
}

START_TEST(i8_an_agentd_that_starts_again_by_itself)
{
    start_after_the_end(2500);
    expect("I8");
}
END_TEST

START_TEST(a_start_that_was_asked_for_before_is_not_a_second_one)
{
    start_after_the_end(500);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i9_a_task_that_is_pending_and_not_in_the_index)
{
    put(&agentd, NS "tasks/u", "{\"id\":\"u\",\"role\":\"r\",\"state\":\"pending\"}", 0);
    expect("I9");
}
END_TEST

#define CANCELLED                                                                              \
    "{\"id\":\"t\",\"role\":\"r\",\"state\":\"cancelled\",\"opIds\":{\"operator\":\"p\"}}"

/* Until it has asked again it cannot know. */
START_TEST(i3_work_on_what_a_person_took_away)
{
    hfs_check_begins(check, "a", "i1", 2);
    hfs_check_runs(check, "a", "i1", LEASE);
    put(&agentd, NS "tasks/t", CANCELLED, 0);
    world.now++;
    hfs_check_effect(check, "a", "i1", "t");
    hfs_check_heard(check, "i1", 50); /* a late answer to an old question */
    hfs_check_effect(check, "a", "i1", "t");
    ck_assert_ptr_null(hfs_check_get_violation(check));
    hfs_check_heard(check, "i1", world.now);
    hfs_check_effect(check, "a", "i1", "t");
    expect("I3");
}
END_TEST

/* While it is missed it is excused, and when it is back it is not. */
START_TEST(i3_work_of_one_that_holds_on_what_is_not_its_own)
{
    put(&agentd, NS "agents/a/spec", "{\"role\":\"r\",\"fence\":\"hold\"}", 0);
    hfs_check_begins(check, "a", "i1", 2);
    hfs_check_runs(check, "a", "i1", LEASE);
    erase(NULL, NS "agents/a/live");
    world.now = 10000;
    hfs_check_effect(check, "a", "i1", "t");
    put(NULL, NS "tasks/t", CANCELLED, 0); /* a person */
    put(&agentd, NS "agents/a/live", LIVE_1, LEASE);
    hfs_check_heard(check, "i1", world.now + 1);
    hfs_check_effect(check, "a", "i1", "t");
    ck_assert_ptr_null(hfs_check_get_violation(check));
    world.now += 2000;
    hfs_check_effect(check, "a", "i1", "t");
    expect("I3");
}
END_TEST

START_TEST(i10_two_processes_at_once)
{
    hfs_check_runs(check, "a", "i1", LEASE);
    hfs_check_stands(check, "i1");
    hfs_check_runs(check, "a", "i2", LEASE);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    hfs_check_runs(check, "a", "i1", LEASE);
    expect("I10");
}
END_TEST

START_TEST(i11_a_clock_that_goes_back)
{
    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    world.now = 2000;
    put(&controller, NS "controller/clock", "{\"now\":\"2026-01-01T00:00:10Z\"}", 0);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    put(&controller, NS "controller/clock", "{\"now\":\"2026-01-01T00:00:09Z\"}", 0);
    expect("I11");
}
END_TEST

/* Limits. */

#define MINUTE 60000

static void lead(void)
{
    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    world.now = 2000;
    put(&controller, NS "controller/clock", "{\"now\":\"2026-01-01T00:00:10Z\"}", 0);
}

/* A start is ordered, and withdrawn. */
static void order(hf_ms later)
{
    world.now += later;
    put(&controller, NS "commands/h1/b", "{\"id\":\"x\",\"host\":\"h1\"}", 0);
    erase(&controller, NS "commands/h1/b");
}

/* First one that was never started, then one that is gone; each in time, then too early. */
START_TEST(i11_an_agent_that_is_removed_before_its_time)
{
    bool lived = _i % 2 != 0, early = _i >= 2;

    hfs_check_set_sweep_after(check, 10 * MINUTE);
    lead();
    world.now = 20 * MINUTE;
    put(&agentd, NS "agents/b/spec", "{\"role\":\"r\",\"transient\":true}", 0);
    if (lived) {
        world.now += 20 * MINUTE;
        put(&agentd, NS "agents/b/live", LIVE_2, LEASE);
        erase(NULL, NS "agents/b/live");
    }
    world.now += 10 * MINUTE - early;
    erase(&controller, NS "agents/b/spec");
    if (early)
        expect("I11");
    else
        ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i11_a_clock_that_is_fast)
{
    lead();
    world.now = 3000;
    put(&controller, NS "controller/clock", "{\"now\":\"2026-01-01T00:00:11Z\"}", 0);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    world.now = 4000;
    put(&controller, NS "controller/clock", "{\"now\":\"2026-01-01T00:00:13Z\"}", 0);
    expect("I11");
}
END_TEST

START_TEST(i11_a_start_before_the_time_that_was_promised)
{
    lead();
    put(&controller, NS "health/b", "{\"nextStart\":\"2026-01-01T00:00:20Z\"}", 0);
    order(9999);
    expect("I11");
}
END_TEST

START_TEST(i11_starts_whose_delays_do_not_grow)
{
    lead();
    order(0);
    order(1000);
    order(2000);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    order(2000);
    expect("I11");
}
END_TEST

START_TEST(i11_starts_that_are_not_counted)
{
    lead();
    for (int i = 0; i < 10; i++)
        order(58000);
    ck_assert_ptr_null(hfs_check_get_violation(check));
    order(58000);
    expect("I11");
}
END_TEST

/* Its owner dies, and it is for anyone. */
static void recover_task(const char *task, int attempt, int64_t life)
{
    char text[300], key[100], index[100];

    (void)snprintf(key, sizeof key, NS "tasks/%s", task);
    (void)snprintf(index, sizeof index, NS "pending/r/%s", task);
    (void)snprintf(text, sizeof text,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"pending\",\"attempt\":%d,"
                   "\"opIds\":{\"controller\":\"x%lld\"}}",
                   task, attempt, (long long)life);
    erase(&agentd, NS "agents/a/live");
    put_two(&controller, key, text, index, "{}");
}

/* Somebody has it again. */
static int64_t live_again(const char *task)
{
    int64_t life;

    put(&agentd, NS "agents/a/live", LIVE_1, LEASE);
    life = hfs_etcd_get_store(etcd)->revision;
    claim_as(task, life);
    return life;
}

START_TEST(i11_a_recovery_whose_delay_does_not_grow)
{
    lead();
    recover_task("t", 1, 2);
    world.now += MINUTE;
    recover_task("t", 2, live_again("t"));
    ck_assert_ptr_null(hfs_check_get_violation(check));
    world.now += MINUTE;
    recover_task("t", 3, live_again("t"));
    expect("I11");
}
END_TEST

START_TEST(i11_a_sixth_recovery_of_one_agent_within_the_hour)
{
    char task[8] = "u0";

    lead();
    recover_task("t", 1, 2);
    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_null(hfs_check_get_violation(check));
        world.now += 11 * MINUTE;
        task[1] = (char)('0' + i);
        submit(task);
        recover_task(task, 1, live_again(task));
    }
    expect("I11");
}
END_TEST

START_TEST(i11_what_was_counted_is_forgotten_before_its_time)
{
    int64_t life;

    lead();
    put(&controller, NS "recoveries/t", "{\"task\":\"t\",\"attempts\":1}", 0);
    recover_task("t", 1, 2);
    life = live_again("t");
    ck_assert_int_gt(life, 2);
    world.now += 14 * MINUTE;
    put(&controller, NS "recoveries/t", "{\"task\":\"t\",\"attempts\":0}", 0);
    expect("I11");
}
END_TEST

START_TEST(i12_a_start_of_one_that_is_wanted_stopped)
{
    put(&agentd, NS "wanted/b", "{\"state\":\"stopped\"}", 0);
    put(&agentd, NS "agents/b/live", LIVE_2, LEASE);
    expect("I12");
}
END_TEST

/* Its end is written, as such a kind of end. */
static void end_life(const char *kind)
{
    char text[200];
    struct hfs_op ops[2] = { { 0 }, { .kind = HFS_DELETE } };
    struct hfs_request request = { .kind = HFS_TXN };

    (void)snprintf(
        text, sizeof text,
        "{\"kind\":\"%s\",\"incarnation\":{\"leaseId\":\"1\",\"createRevision\":\"2\"}}", kind);
    ops[0] = put_op(NS "agents/a/exit", text, 0);
    ops[1].erase = (struct hfs_range){ .key = bytes(NS "agents/a/live") };
    request.txn.then = (struct hfs_ops){ ops, 2 };
    serve(&agentd, &request);
}

START_TEST(e_a_life_that_was_not_to_end)
{
    put(&agentd, NS "wanted/a", "{\"state\":\"running\",\"endUpto\":\"1\"}", 0);
    end_life("terminated");
    expect("E");
}
END_TEST

START_TEST(e_a_life_that_was_to_end)
{
    put(&agentd, NS "wanted/a", "{\"state\":\"running\",\"endUpto\":\"2\"}", 0);
    end_life("terminated");
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(e_a_life_of_one_that_was_stopped_for_a_moment)
{
    world.now += 10;
    put(&agentd, NS "wanted/a", "{\"state\":\"stopped\"}", 0);
    put(&agentd, NS "wanted/a", "{\"state\":\"running\"}", 0);
    end_life("terminated");
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

static void thaw(hf_ms fenced_at)
{
    hfs_check_runs(check, "a", "i1", LEASE);
    hfs_check_thawed(check, "a", "i1", fenced_at);
}

START_TEST(f_what_nothing_has_proven_since_it_stood_still)
{
    world.now = 1000;
    put(&agentd, NS "agents/a/report", "{}", 0); /* which left before */
    thaw(1001);
    expect("F");
}
END_TEST

START_TEST(f_what_a_txn_has_proven_that_left_since_it_stood_still)
{
    world.now = 1001;
    put(&agentd, NS "agents/a/report", "{}", 0);
    thaw(1001);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(f_what_was_gone_when_that_was_asked)
{
    erase(&agentd, NS "agents/a/live");
    world.now = 1001;
    put(&agentd, NS "agents/b/report", "{}", 0);
    thaw(1001);
    expect("F");
}
END_TEST

START_TEST(f_another_whose_lease_is_none_of_its_agentd)
{
    world.now = 1001;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    thaw(1001);
    expect("F");
}
END_TEST

#define START "{\"id\":\"x\",\"host\":\"h1\"}"

/* A start of the agent that died, for a task or for none, at such a time. */
static void start_again(const char *text, hf_ms at)
{
    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    end_life("crashed");
    world.now = at;
    put(&controller, NS "commands/h1/a", text, 0);
}

START_TEST(i9_a_start_without_the_task_that_it_died_with)
{
    start_again(START, 2000);
    expect("I9");
}
END_TEST

START_TEST(a_start_by_one_that_was_not_told_of_the_end_yet)
{
    controller.told_rev = 1;
    start_again(START, 2000);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i9_a_start_with_the_task_that_it_died_with)
{
    start_again("{\"id\":\"x\",\"host\":\"h1\",\"task\":\"t\"}", 2000);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

/* Something may have been left out for whoever leads, and then it was told everything. */
static void miss_something(void)
{
    hfs_etcd_get_faults(etcd)->lose_percent = 10;
    put(&agentd, NS "agents/a/report", "{}", 0);
    hfs_etcd_get_faults(etcd)->lose_percent = 0;
    controller.listed_at = world.now + 1;
}

START_TEST(a_start_by_one_that_rests_from_what_it_had_missed)
{
    miss_something();
    start_again(START, 2000);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

START_TEST(i9_a_start_by_one_that_has_rested)
{
    miss_something();
    start_again(START, 10000);
    expect("I9");
}
END_TEST

/* A host does not serve a start, and is asked for the same once more while another is here. */
static void ask_the_same_host(void)
{
    lead();
    put(&agentd, NS "hosts/h1/live", "{}", LEASE);
    put(&agentd, NS "hosts/h2/live", "{}", LEASE);
    world.now = 10000;
    put(&controller, NS "commands/h1/b", START, 0);
    world.now = 40000;
    erase(&controller, NS "commands/h1/b");
    world.now = 45000;
    put(&controller, NS "commands/h1/b", START, 0);
}

START_TEST(i11_a_host_that_did_not_start_it_is_asked_again)
{
    ask_the_same_host();
    expect("I11");
}
END_TEST

START_TEST(a_host_is_asked_again_by_one_that_has_blamed_the_other)
{
    miss_something();
    ask_the_same_host();
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

/* Its owner's life ends, another one begins, and that one is missed when the task is reset. */
static void reset_after_two_lives(const char *second)
{
    lead();
    erase(&agentd, NS "agents/a/live");
    put(&agentd, NS "agents/a/live", second, LEASE);
    world.now = 20000;
    erase(NULL, NS "agents/a/live");
    world.now += 10;
    put_two(
        &controller, NS "tasks/t",
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\",\"opIds\":{\"controller\":\"x\"}}",
        NS "pending/r/t", "{}");
}

START_TEST(i7_a_reset_when_its_owner_has_just_gone_again)
{
    reset_after_two_lives(LIVE_1);
    expect("I7");
}
END_TEST

START_TEST(a_reset_when_who_replaced_its_owner_has_just_gone)
{
    reset_after_two_lives(LIVE_OTHER);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

/* It is missed, and its start is ordered a moment later. */
static void start_one_that_is_missed(bool removed)
{
    lead();
    put(&agentd, NS "agents/a/spec", "{\"role\":\"r\"}", 0);
    world.now = 3000;
    erase(NULL, NS "agents/a/live");
    world.now = 4000;
    if (removed)
        erase(&agentd, NS "agents/a/spec");
    put(&agentd, NS "agents/a/spec", "{\"role\":\"r\"}", 0);
    world.now = 5000;
    put(&controller, NS "commands/h1/a", START, 0);
}

START_TEST(i7_a_start_of_one_that_is_missed)
{
    start_one_that_is_missed(false);
    expect("I7");
}
END_TEST

START_TEST(a_start_of_one_that_was_removed_while_it_was_missed)
{
    start_one_that_is_missed(true);
    ck_assert_ptr_null(hfs_check_get_violation(check));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim/check");
    TCase *t = tcase_create("check");
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, i1_a_second_registration);
    tcase_add_test(t, i1_a_registration_without_a_lease);
    tcase_add_test(t, i2_a_report_of_a_life_that_is_gone);
    tcase_add_test(t, i3_a_task_that_goes_from_one_to_another);
    tcase_add_test(t, i4_a_controller_that_does_not_lead);
    tcase_add_test(t, i5_a_checkpoint_that_leaves_one_out);
    tcase_add_test(t, i5_a_checkpoint_that_is_not_the_head);
    tcase_add_test(t, i5_checkpoints_that_are_removed_from_a_task_at_work);
    tcase_add_test(t, i5_a_task_at_work_that_forgets_its_checkpoints);
    tcase_add_test(t, i13_a_death_that_is_counted_against_another_checkpoint);
    tcase_add_test(t, i13_a_successor_that_goes_on_from_what_its_task_does_not_name);
    tcase_add_test(t, a_look_at_a_checkpoint_of_what_is_over);
    tcase_add_test(t, i6_a_final_state_that_is_left);
    tcase_add_test(t, i7_a_reset_while_the_owner_lives);
    tcase_add_test(t, i7_a_review_while_the_owner_lives);
    tcase_add_test(t, what_nobody_begins_with_may_be_taken_back);
    tcase_add_test(t, i8_a_start_of_one_that_lives);
    tcase_add_test(t, i8_one_life_that_begins_twice);
    tcase_add_test(t, i8_an_agentd_that_starts_again_by_itself);
    tcase_add_test(t, a_start_that_was_asked_for_before_is_not_a_second_one);
    tcase_add_test(t, i9_a_task_that_is_pending_and_not_in_the_index);
    tcase_add_test(t, i3_work_on_what_a_person_took_away);
    tcase_add_test(t, i3_work_of_one_that_holds_on_what_is_not_its_own);
    tcase_add_test(t, i10_two_processes_at_once);
    tcase_add_test(t, i11_a_clock_that_goes_back);
    tcase_add_test(t, i11_a_clock_that_is_fast);
    tcase_add_loop_test(t, i11_an_agent_that_is_removed_before_its_time, 0, 4);
    tcase_add_test(t, i11_a_start_before_the_time_that_was_promised);
    tcase_add_test(t, i11_starts_whose_delays_do_not_grow);
    tcase_add_test(t, i11_starts_that_are_not_counted);
    tcase_add_test(t, i11_a_recovery_whose_delay_does_not_grow);
    tcase_add_test(t, i11_a_sixth_recovery_of_one_agent_within_the_hour);
    tcase_add_test(t, i11_what_was_counted_is_forgotten_before_its_time);
    tcase_add_test(t, i12_a_start_of_one_that_is_wanted_stopped);
    tcase_add_test(t, e_a_life_that_was_not_to_end);
    tcase_add_test(t, e_a_life_that_was_to_end);
    tcase_add_test(t, e_a_life_of_one_that_was_stopped_for_a_moment);
    tcase_add_test(t, f_what_nothing_has_proven_since_it_stood_still);
    tcase_add_test(t, f_what_a_txn_has_proven_that_left_since_it_stood_still);
    tcase_add_test(t, f_what_was_gone_when_that_was_asked);
    tcase_add_test(t, f_another_whose_lease_is_none_of_its_agentd);
    tcase_add_test(t, i9_a_start_without_the_task_that_it_died_with);
    tcase_add_test(t, a_start_by_one_that_was_not_told_of_the_end_yet);
    tcase_add_test(t, i9_a_start_with_the_task_that_it_died_with);
    tcase_add_test(t, a_start_by_one_that_rests_from_what_it_had_missed);
    tcase_add_test(t, i9_a_start_by_one_that_has_rested);
    tcase_add_test(t, i11_a_host_that_did_not_start_it_is_asked_again);
    tcase_add_test(t, a_host_is_asked_again_by_one_that_has_blamed_the_other);
    tcase_add_test(t, i7_a_reset_when_its_owner_has_just_gone_again);
    tcase_add_test(t, a_reset_when_who_replaced_its_owner_has_just_gone);
    tcase_add_test(t, i7_a_start_of_one_that_is_missed);
    tcase_add_test(t, a_start_of_one_that_was_removed_while_it_was_missed);
    suite_add_tcase(suite, t);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
