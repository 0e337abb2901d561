/* check_fixture.h - a history of one agent with one task, to be gone on with in a way that a
 * checker has to see. */
#ifndef SIM_CHECK_FIXTURE_H
#define SIM_CHECK_FIXTURE_H

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

static inline void serve_late(const struct hfs_process *from, const struct hfs_request *request,
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

static inline void serve(const struct hfs_process *from, const struct hfs_request *request)
{
    serve_late(from, request, world.now);
}

static inline void grant(const struct hfs_process *to, int64_t lease)
{
    struct hfs_request request = { .kind = HFS_GRANT };

    request.lease = lease;
    request.ttl_s = 15;
    serve(to, &request);
    hfs_check_lease(check, lease, to);
}

static inline struct hf_bytes bytes(const char *text)
{
    return (struct hf_bytes){ text, strlen(text) };
}

static inline struct hfs_op put_op(const char *key, const char *value, int64_t lease)
{
    struct hfs_op op = { .kind = HFS_PUT };

    op.put = (struct hfs_put_request){ bytes(key), bytes(value), lease };
    return op;
}

/* One Txn that puts up to two keys; `second` may be NULL. */
static inline void put_two(const struct hfs_process *from, const char *key, const char *value,
                           const char *second, const char *second_value)
{
    struct hfs_op ops[2] = { put_op(key, value, 0) };
    struct hfs_request request = { .kind = HFS_TXN };

    if (second != NULL)
        ops[1] = put_op(second, second_value, 0);
    request.txn.then = (struct hfs_ops){ ops, second != NULL ? 2 : 1 };
    serve(from, &request);
}

static inline void put(const struct hfs_process *from, const char *key, const char *value,
                       int64_t lease)
{
    struct hfs_op op = put_op(key, value, lease);
    struct hfs_request request = { .kind = HFS_TXN };

    request.txn.then = (struct hfs_ops){ &op, 1 };
    serve(from, &request);
}

static inline void erase(const struct hfs_process *from, const char *key)
{
    struct hfs_op op = { .kind = HFS_DELETE, .erase.key = { key, strlen(key) } };
    struct hfs_request request = { .kind = HFS_TXN };

    request.txn.then = (struct hfs_ops){ &op, 1 };
    serve(from, &request);
}

static inline void submit(const char *task)
{
    char text[200], key[100], index[100];

    (void)snprintf(key, sizeof key, NS "tasks/%s", task);
    (void)snprintf(index, sizeof index, NS "pending/r/%s", task);
    (void)snprintf(text, sizeof text, "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"pending\"}",
                   task);
    put_two(&agentd, key, text, index, "{}");
}

static inline void claim_as(const char *task, int64_t life)
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

static inline void claim(const char *task)
{
    claim_as(task, 2);
}

static inline void setup(void)
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

static inline void teardown(void)
{
    hfs_check_free(check);
    hfs_etcd_free(etcd);
    hfs_world_done(&world);
}

static inline void expect(const char *invariant)
{
    const char *violation = hfs_check_get_violation(check);

    ck_assert_msg(violation != NULL, "%s did not fail", invariant);
    ck_assert_msg(strncmp(violation, invariant, strlen(invariant)) == 0 &&
                      violation[strlen(invariant)] == ' ',
                  "%s was to fail, and this did: %s", invariant, violation);
}

/* Somebody leads, and keeps the clock. */
static inline void lead(void)
{
    world.now = 1000;
    put(&controller, NS "controller/leader", "{\"id\":\"c1\"}", OTHER_LEASE);
    world.now = 2000;
    put(&controller, NS "controller/clock", "{\"now\":\"2026-01-01T00:00:10Z\"}", 0);
}

/* Its end is written, as such a kind of end. */
static inline void end_life(const char *kind)
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

/* For main() to return. */
static inline int run_check(const char *name, TCase *t)
{
    Suite *suite = suite_create(name);
    SRunner *runner;
    int failed;

    tcase_add_checked_fixture(t, setup, teardown);
    suite_add_tcase(suite, t);
    runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
