/* The real controllers on a real etcd: one leads, and whatever becomes of it, another one does.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/program.h"
#include "support/suite.h"

#define ROOT "/holdfast/default/"

enum { STEP_MS = 60000 };

static struct hft_etcd server;
static struct hft_client hand;
static struct hft_program a, b;

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&hand, server.endpoint, NULL);
    a = b = (struct hft_program){ 0 };
}

static void teardown(void)
{
    if (a.pid != 0)
        hft_program_kill(&a);
    if (b.pid != 0)
        hft_program_kill(&b);
    hft_client_close(&hand);
    hft_etcd_done(&server);
}

static void start(struct hft_program *program, const char *id)
{
    hft_program_start(program, "holdfast-controller", server.dir.path, id, server.endpoint,
                      "--id", id, "--ttl", "3s", NULL);
}

static bool leads(void *arg)
{
    char wanted[64];
    struct hft_outcome leader = hft_read(&hand, ROOT "controller/leader");

    (void)snprintf(wanted, sizeof wanted, "\"id\":\"%s\"", (const char *)arg);
    return leader.count == 1 && strstr(leader.value, wanted) != NULL;
}

static void until_leads(const char *id)
{
    hft_wait_or_fail(leads, (void *)id, STEP_MS, id);
}

static void start_both(void)
{
    start(&a, "a");
    until_leads("a");
    start(&b, "b");
    hft_program_until_said(&b, "event=synced", STEP_MS);
}

START_TEST(a_leader_is_seen_and_a_task_that_is_submitted_is_listed)
{
    HFT_CLEANUP_OUTPUT struct hft_output leader = { 0 }, submitted = { 0 }, listed = { 0 };

    start(&a, "a");
    until_leads("a");
    hft_cli(&leader, server.endpoint, "leader", "-o", "name", NULL);
    ck_assert_int_eq(leader.status, 0);
    ck_assert_str_eq(leader.out, "a\n");
    hft_cli(&submitted, server.endpoint, "task", "submit", "--role", "writer", "--id", "t1",
            "--payload", "hello", "-o", "name", NULL);
    ck_assert_msg(submitted.status == 0, "%s", submitted.err);
    hft_cli(&listed, server.endpoint, "task", "ls", NULL);
    ck_assert_int_eq(listed.status, 0);
    ck_assert_str_eq(listed.out,
                     "TASK  ROLE    STATE    OWNER  ATTEMPT  PRIORITY  CHECKPOINT  REASON\n"
                     "t1    writer  pending  -            0         0           -  -\n");
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

START_TEST(a_leader_that_is_told_to_stop_hands_over_at_once)
{
    start_both();
    ck_assert_int_eq(hft_program_stop(&a), 0);
    ck_assert_msg(!leads((void *)"a"), "its key outlives it"); /* until its lease runs out */
    until_leads("b");
    hft_program_until_said(&b, "event=leading", STEP_MS);
    ck_assert(hft_program_said(&a, "event=stopped"));
    ck_assert_int_eq(hft_program_stop(&b), 0);
}
END_TEST

START_TEST(a_leader_that_is_killed_is_followed_when_its_lease_has_run_out)
{
    start_both();
    hft_program_kill(&a);
    until_leads("b");
    hft_program_until_said(&b, "event=leading", STEP_MS);
    ck_assert_int_eq(hft_program_stop(&b), 0);
}
END_TEST

START_TEST(a_standby_that_is_told_to_stop_leaves_the_leader_alone)
{
    hf_rev term;

    start_both();
    term = hft_read(&hand, ROOT "controller/leader").create_rev;
    ck_assert_int_eq(hft_program_stop(&b), 0);
    ck_assert_int_eq(hft_read(&hand, ROOT "controller/leader").create_rev, term);
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

START_TEST(a_controller_waits_for_an_etcd_that_is_away_and_says_so)
{
    hft_etcd_stop(&server);
    start(&a, "a");
    hft_program_until_said(&a, "event=waiting_for_etcd", STEP_MS);
    hft_etcd_restart(&server);
    until_leads("a");
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

/* For as long as it was told to, whether nobody is there or somebody who does not answer. */
START_TEST(a_controller_gives_up_an_etcd_that_does_not_come)
{
    if (_i == 0)
        hft_etcd_stop(&server);
    else
        hft_etcd_pause(&server);
    hft_program_start(&a, "holdfast-controller", server.dir.path, "a", server.endpoint, "--id",
                      "a", "--etcd-wait", "6s", NULL);
    ck_assert_int_eq(hft_program_wait(&a, STEP_MS), 5);
    ck_assert_uint_ge(hft_program_count(&a, "event=waiting_for_etcd"), 1);
    ck_assert(hft_program_said(&a, "etcd did not answer within 6 s at "));
    ck_assert(hft_program_said(&a, server.endpoint));
    if (_i == 1)
        hft_etcd_resume(&server);
}
END_TEST

static bool is_past(void *arg)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock) > *(const hf_ms *)arg;
}

/* That was for the start. */
START_TEST(a_controller_that_has_begun_does_not_give_up_its_etcd)
{
    struct hf_clock clock = hf_clock_boottime();
    hf_ms given_up = hf_clock_now(&clock) + 13000;

    hft_program_start(&a, "holdfast-controller", server.dir.path, "a", server.endpoint, "--id",
                      "a", "--ttl", "3s", "--etcd-wait", "12s", NULL);
    hft_program_until_said(&a, "event=leading", STEP_MS);
    hft_etcd_pause(&server);
    hft_program_until_said(&a, "event=stepped_down", STEP_MS);
    hft_wait_or_fail(is_past, &given_up, STEP_MS, "its patience to be over");
    hft_etcd_resume(&server);
    until_leads("a");
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

/* Since when it leads, not since when it runs: the second one stood by for a while. */
START_TEST(a_leader_says_since_when_it_leads)
{
    HFT_CLEANUP_OUTPUT struct hft_output leader = { 0 };
    const char *member = "\"since\": \"";
    hf_ms before, since;
    char *text;

    start_both();
    before = hf_clock_wall();
    ck_assert_int_eq(hft_program_stop(&a), 0);
    until_leads("b");
    hft_cli(&leader, server.endpoint, "leader", "-o", "json", NULL);
    text = strstr(leader.out, member);
    ck_assert_ptr_nonnull(text);
    text += strlen(member);
    text[strcspn(text, "\"")] = '\0';
    ck_assert_int_eq(hf_parse_time(text, &since), HF_OK);
    ck_assert_int_ge(since, before);
    ck_assert_int_eq(hft_program_stop(&b), 0);
}
END_TEST

/* Whoever may not even read will never do its job: it ends, and says why. */
START_TEST(a_controller_that_is_refused_ends_and_says_why)
{
    hft_etcdctl_ok(&server, NULL, "user", "add", "root:secret", NULL);
    hft_etcdctl_ok(&server, NULL, "user", "grant-role", "root", "root", NULL);
    hft_etcdctl_ok(&server, NULL, "auth", "enable", NULL);
    start(&a, "a");
    ck_assert_int_eq(hft_program_wait(&a, STEP_MS), 6);
    ck_assert(hft_program_said(&a, "etcd refuses this user"));
}
END_TEST

static void write_password(const char *text, char path[HFT_PATH_MAX + 32])
{
    FILE *file;

    (void)snprintf(path, HFT_PATH_MAX + 32, "%s/password", server.dir.path);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* A wrong password does not become right by waiting. */
START_TEST(a_controller_with_a_wrong_password_ends_and_says_why)
{
    char path[HFT_PATH_MAX + 32];

    write_password("wrong\n", path);
    hft_etcdctl_ok(&server, NULL, "user", "add", "root:secret", NULL);
    hft_etcdctl_ok(&server, NULL, "user", "grant-role", "root", "root", NULL);
    hft_etcdctl_ok(&server, NULL, "auth", "enable", NULL);
    hft_program_start(&a, "holdfast-controller", server.dir.path, "a", server.endpoint, "--id",
                      "a", "--user", "root", "--password-file", path, NULL);
    ck_assert_int_eq(hft_program_wait(&a, STEP_MS), 6);
    ck_assert(hft_program_said(&a, "check --user with --password-file"));
    ck_assert(!hft_program_said(&a, "event=waiting_for_etcd"));
}
END_TEST

START_TEST(a_configuration_that_makes_no_sense_is_refused_with_a_sentence)
{
    hft_program_start(&a, "holdfast-controller", server.dir.path, "a", server.endpoint,
                      "--listen", "0.0.0.0:0", NULL);
    ck_assert_int_eq(hft_program_wait(&a, STEP_MS), 2);
    ck_assert(hft_program_said(&a, "is not an address of this machine alone"));
    hft_program_start(&a, "holdfast-controller", server.dir.path, "a", server.endpoint, "--ttl",
                      "1s", NULL);
    ck_assert_int_eq(hft_program_wait(&a, STEP_MS), 2);
    hft_program_start(&a, "holdfast-controller", server.dir.path, "a", server.endpoint,
                      "--alert-command", "/no/such,--now", NULL);
    ck_assert_int_eq(hft_program_wait(&a, STEP_MS), 2);
    ck_assert(hft_program_said(&a, "alert.command: /no/such is not a program"));
    hft_program_start(&a, "holdfast-controller", server.dir.path, "a", server.endpoint,
                      "--user", "u", "--password-file", "/no/such/password", NULL);
    ck_assert_int_eq(hft_program_wait(&a, STEP_MS), 2);
    ck_assert(hft_program_said(&a, "/no/such/password: cannot be read"));
}
END_TEST

/* etcd goes away and comes back: the leader steps down by its own clock, says so, and somebody
 * leads again. */
START_TEST(a_leader_steps_down_when_etcd_hangs_and_leads_again)
{
    start(&a, "a");
    hft_program_until_said(&a, "event=leading", STEP_MS);
    hft_etcd_pause(&server);
    hft_program_until_said(&a, "event=stepped_down", STEP_MS);
    hft_etcd_resume(&server);
    until_leads("a");
    ck_assert_int_eq(hft_program_stop(&a), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("leader");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_leader_is_seen_and_a_task_that_is_submitted_is_listed);
    tcase_add_test(t, a_leader_that_is_told_to_stop_hands_over_at_once);
    tcase_add_test(t, a_leader_that_is_killed_is_followed_when_its_lease_has_run_out);
    tcase_add_test(t, a_standby_that_is_told_to_stop_leaves_the_leader_alone);
    tcase_add_test(t, a_controller_waits_for_an_etcd_that_is_away_and_says_so);
    tcase_add_loop_test(t, a_controller_gives_up_an_etcd_that_does_not_come, 0, 2);
    tcase_add_test(t, a_controller_that_has_begun_does_not_give_up_its_etcd);
    tcase_add_test(t, a_leader_says_since_when_it_leads);
    tcase_add_test(t, a_controller_that_is_refused_ends_and_says_why);
    tcase_add_test(t, a_controller_with_a_wrong_password_ends_and_says_why);
    tcase_add_test(t, a_configuration_that_makes_no_sense_is_refused_with_a_sentence);
    tcase_add_test(t, a_leader_steps_down_when_etcd_hangs_and_leads_again);
    return hft_suite_run("e2e: leader", t, NULL);
}
