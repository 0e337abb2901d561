/* The same of tasks, their checkpoints, and a person's word on a storm. */
#include "e2e/cli_fixture.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "support/http.h"
#include "support/tempdir.h"

START_TEST(a_task_is_submitted_once_followed_cancelled_and_retried)
{
    cli("task", "submit", "--role", "writer", "--id", "t1", "--payload", "hello", "--priority",
        "5", "--label", "a=b");
    expect(0, "task         t1\n"
              "role         writer\n"
              "state        pending\n"
              "attempt      0\n"
              "priority     5\n"
              "labels       a=b\n"
              "payload      hello\n");
    ck_assert_int_eq(look("pending/writer/t1").count, 1);
    cli("task", "submit", "--role", "writer", "--id", "t1", "--payload", "hello", "-o", "name");
    expect(0, "t1\n");
    ck_assert_int_eq(look("tasks/t1").version, 1);
    cli("task", "submit", "--role", "writer", "--id", "t1", "--payload", "another");
    expect_error(4, "there is another task t1 already");
    cli("task", "watch", "t1", "--until", "completed", "--timeout", "200ms");
    expect(124, "pending\n");
    cli("task", "watch", "t1", "--until", "completed", "--timeout", "200ms", "-o", "name");
    expect(124, "");
    cli("task", "rm", "t1");
    expect_error(4, "task t1 is pending, so somebody may still work on it");
    cli("task", "cancel", "t1", "--reason", "no longer needed", "-o", "name");
    expect(0, "t1\n");
    ck_assert_int_eq(look("pending/writer/t1").count, 0);
    cli("task", "watch", "t1");
    expect(0, "cancelled  (no longer needed)\n");
    cli("task", "watch", "t1", "--until", "completed");
    expect_error(4, "task t1 is cancelled, not completed");
    (void)put("tasks/t2",
              "{\"id\":\"t2\",\"role\":\"r\",\"state\":\"completed\",\"reason\":\"its owner is "
              "gone\"}",
              HF_NO_LEASE);
    cli("task", "watch", "t2"); /* why it was once taken back does not hold any more */
    expect(0, "completed\n");
    cli("task", "retry", "t1", "-o", "name");
    expect(0, "t1\n");
    ck_assert_int_eq(look("pending/writer/t1").count, 1);
    cli("task", "retry", "t1");
    expect_error(4, "task t1 cannot be retried");
    cli("task", "retry", "t1", "--lost-files");
    expect_error(2, "does not lie in files");
    cli("task", "cancel", "t1", "-o", "name");
    cli("task", "rm", "t1");
    expect(0, "t1: removed\n");
    ck_assert_int_eq(look("tasks/t1").count, 0);
    cli("task", "rm", "t1");
    expect_error(3, "there is no task t1");
}
END_TEST

static void write_payload(const struct hft_tempdir *dir, size_t len, char ret_given[400])
{
    FILE *file;

    (void)snprintf(ret_given, 400, "@%s/payload", dir->path);
    file = fopen(ret_given + 1, "we");
    ck_assert_ptr_nonnull(file);
    for (size_t i = 0; i < len; i++)
        ck_assert_int_ne(fputc(i % 80 == 79 ? '\n' : 'a' + (int)(i % 26), file), EOF);
    ck_assert_int_eq(fclose(file), 0);
}

/* What a record has no room for lies beside it, is shown by its digest, and given back whole.
 */
START_TEST(a_large_payload_is_submitted_once_and_given_back)
{
    struct hft_tempdir dir;
    char given[400];

    hft_tempdir_init(&dir);
    write_payload(&dir, (64 << 10) + 1, given);
    cli("task", "submit", "--role", "writer", "--id", "t1", "--payload", given);
    expect(0, NULL);
    ck_assert_ptr_nonnull(strstr(last.out, "payload      65537 bytes, sha256 "));
    ck_assert_ptr_nonnull(strstr(look("tasks/t1").value, "\"payload\":\"\""));
    cli("task", "submit", "--role", "writer", "--id", "t1", "--payload", given, "-o", "name");
    expect(0, "t1\n");
    ck_assert_int_eq(look("tasks/t1").version, 1);
    cli("task", "show", "t1", "--payload");
    expect(0, NULL);
    ck_assert_uint_eq(strlen(last.out), (64 << 10) + 1);
    ck_assert_int_eq(last.out[80], 'a' + 80 % 26);
    write_payload(&dir, (64 << 10) + 2, given);
    cli("task", "submit", "--role", "writer", "--id", "t1", "--payload", given);
    expect_error(4, "there is another task t1 already");
    write_payload(&dir, (512 << 10) + 1, given);
    cli("task", "submit", "--role", "writer", "--id", "t2", "--payload", given);
    expect_error(2, "the payload has more than 512 KiB");
    ck_assert_int_eq(look("tasks/t2").count, 0);
    write_payload(&dir, 512 << 10, given);
    cli("task", "submit", "--role", "writer", "--id", "t2", "--payload", given, "-o", "name");
    expect(0, "t2\n");
    (void)hft_put(&hand, "/holdfast-data/default/tasks/t2/payload", "spoilt", HF_NO_LEASE);
    cli("task", "show", "t2", "--payload");
    expect_error(1, "is not what the task t2 says it is");
    hft_tempdir_done(&dir);
}
END_TEST

/* Three checkpoints, of which the last is not what its entry says. */
static void put_checkpoints(void)
{
    put_fleet();
    (void)hft_put(&hand, "/holdfast-data/default/checkpoints/report-1/0000000000000000071",
                  "abc", HF_NO_LEASE);
    (void)hft_put(&hand, "/holdfast-data/default/checkpoints/report-1/0000000000000000073",
                  "abX", HF_NO_LEASE);
    for (int seq = 1; seq <= 3; seq++) {
        char key[80], value[400];

        (void)snprintf(key, sizeof key, "checkpoints/report-1/%019d", seq);
        (void)snprintf(value, sizeof value,
                       "{\"task\":\"report-1\",\"seq\":\"%d\",\"parent\":\"%d\",\"size\":\"3\","
                       "\"sha256\":\"ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f2"
                       "0015ad\",\"store\":\"etcd\",\"key\":\"%019d\"}",
                       seq, seq - 1, 70 + seq);
        (void)put(key, value, HF_NO_LEASE);
    }
}

START_TEST(checkpoints_are_read_and_held_against_their_digests)
{
    put_checkpoints();
    cli("checkpoint", "ls", "report-1", "-o", "name");
    expect(0, "1\n2\n3\n");
    cli("checkpoint", "verify", "report-1");
    expect(1, "SEQ  SIZE  WHERE  RESULT\n"
              "  1     3  etcd   whole\n"
              "  2     3  etcd   its body is not there\n"
              "  3     3  etcd   its body has another digest\n");
    cli("checkpoint", "verify", "report-1", "-o", "name");
    expect(1, "2\n3\n");
    cli("checkpoint", "verify", "report-1", "--seq", "1", "-o", "json");
    expect(0, NULL);
    ck_assert_ptr_nonnull(strstr(last.out, "\"ok\": true"));
    cli("checkpoint", "get", "report-1");
    expect(0, "abc");
    cli("checkpoint", "get", "report-1", "--seq", "3");
    expect_error(1, "checkpoint 3 of report-1: its body has another digest");
    cli("checkpoint", "get", "report-1", "--seq", "9");
    expect_error(3, "no such checkpoint");
    cli("checkpoint", "get", "nope");
    expect_error(3, "there is no task nope");
    (void)put("checkpoints/report-1/0000000000000000004",
              "{\"task\":\"report-1\",\"seq\":\"4\",\"parent\":\"3\",\"size\":\"3\","
              "\"store\":\"file\",\"key\":\"k\"}",
              HF_NO_LEASE);
    cli("checkpoint", "get", "report-1");
    expect_error(2, "--store-dir");
    cli("checkpoint", "verify", "report-1");
    expect(1, "SEQ  SIZE  WHERE  RESULT\n"
              "  1     3  etcd   whole\n"
              "  2     3  etcd   its body is not there\n"
              "  3     3  etcd   its body has another digest\n"
              "  4     3  file   it lies in files: say with --store-dir where\n");
}
END_TEST

static void until_storm(const char *part)
{
    do
        cli("storm", "status", "-o", "json");
    while (strstr(last.out, part) == NULL);
}

static void until_event(const char *part)
{
    do
        cli("events", "-o", "json");
    while (strstr(last.out, part) == NULL);
}

/* What the leader itself goes by. */
static bool is_full(void *arg)
{
    HF_CLEANUP_FREE char *body = NULL;
    FILE *in = fopen(arg, "re");
    char text[16] = "";
    uint64_t port;

    if (in == NULL)
        return false;
    (void)!fgets(text, sizeof text, in);
    (void)fclose(in);
    text[strcspn(text, "\n")] = '\0';
    return hf_parse_u64(text, 1, UINT16_MAX, &port) == HF_OK &&
           hft_http_get((uint16_t)port, "/metrics", &body) == 200 &&
           strstr(body, "holdfast_storm_state{state=\"full\"} 1\n") != NULL;
}

/* A person's word reaches the leader and the next one, and the trail tells of it. */
START_TEST(a_storm_is_held_and_let_go_on)
{
    char port_file[HFT_PATH_MAX + 32];

    (void)snprintf(port_file, sizeof port_file, "%s/port", server.dir.path);
    cli("storm", "hold");
    expect_error(3, "nobody leads who could obey");
    hft_program_start(&controller, "holdfast-controller", server.dir.path, "c", server.endpoint,
                      "--id", "c", NULL);
    hft_program_until_said(&controller, "event=leading", STEP_MS);
    cli("storm", "hold");
    expect(0, NULL);
    hft_program_until_said(&controller, "what=\"storm hold\"", STEP_MS);
    until_storm("\"state\": \"full\"");
    ck_assert_ptr_null(strstr(last.out, "until"));
    /* Nobody is left who heard it, and the next leader obeys it. */
    ck_assert_int_eq(hft_program_stop(&controller), 0);
    hft_program_start(&controller, "holdfast-controller", server.dir.path, "d", server.endpoint,
                      "--id", "d", "--listen", "127.0.0.1:0", "--port-file", port_file, NULL);
    hft_program_until_said(&controller, "event=leading", STEP_MS);
    until_event("\"kind\":\"leader\",\"actor\":\"d\"");
    cli("storm", "status", "-o", "json");
    ck_assert_msg(strstr(last.out, "\"state\": \"full\"") != NULL, "%s", last.out);
    cli("storm", "status");
    ck_assert_msg(strstr(last.out, "a person holds it") != NULL, "%s", last.out);
    hft_wait_or_fail(is_full, port_file, STEP_MS, "the metric of a storm");
    cli("storm", "proceed", "-o", "json");
    expect(0, "{\n    \"subject\": \"storm\",\n    \"what\": \"proceed\"\n}\n");
    until_storm("\"state\": \"partial\"");
    ck_assert_msg(strstr(last.out, "\"until\": \"20") != NULL, "%s", last.out);
    cli("leader", "-o", "name");
    expect(0, "d\n");
    ck_assert_int_eq(hft_program_stop(&controller), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("cli");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_task_is_submitted_once_followed_cancelled_and_retried);
    tcase_add_test(t, a_large_payload_is_submitted_once_and_given_back);
    tcase_add_test(t, checkpoints_are_read_and_held_against_their_digests);
    tcase_add_test(t, a_storm_is_held_and_let_go_on);
    return hft_suite_run("e2e: cli, tasks", t, NULL);
}
