/* People are told: what fails is tried again, later and later, so often and no more. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "controller/alert.h"
#include "support/tempdir.h"
#include "unit/suite.h"

enum { PAUSE_MS = 20, MOST_QUEUED = 100 };

static struct hft_tempdir dir;
static uv_loop_t loop;
static struct ctl_alerts *alerts;
static const char *words[4];
static struct hf_strings command;
static char file[HFT_PATH_MAX + 32];

/* `script` has a file of its own: $0. */
static void begin(const char *script, hf_ms pause)
{
    hft_tempdir_init(&dir);
    (void)snprintf(file, sizeof file, "%s/said", dir.path);
    words[0] = "sh";
    words[1] = "-c";
    words[2] = script;
    words[3] = file;
    command = (struct hf_strings){ .items = words, .count = 4 };
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    (void)signal(SIGPIPE, SIG_IGN);
    alerts = ctl_alerts_new(
        &loop, &(struct ctl_alerts_config){
                   .command = &command, .timeout = 10000, .actor = "c1", .pause = pause });
    ck_assert_ptr_nonnull(alerts);
}

static void end(void)
{
    ctl_alerts_close(alerts);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    hft_tempdir_done(&dir);
}

static void tell(const char *agent)
{
    ctl_alerts_add(alerts, &(struct hf_intent_alert){ .kind = HOLDFAST__V1__EVENT__KIND__held,
                                                      .agent = agent,
                                                      .why = "of a test" });
}

static void until_told(uint64_t told)
{
    while (ctl_alerts_get_stats(alerts).told < told)
        (void)uv_run(&loop, UV_RUN_ONCE);
}

/* The lines of the file, as times in nanoseconds. */
static unsigned read_times(int64_t times[16])
{
    char line[64];
    unsigned count = 0;
    FILE *said = fopen(file, "re");

    ck_assert_ptr_nonnull(said);
    while (count < 16 && fgets(line, sizeof line, said) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        ck_assert_int_eq(hf_parse_i64(line, 1, INT64_MAX, &times[count++]), HF_OK);
    }
    (void)fclose(said);
    return count;
}

START_TEST(what_fails_is_tried_again_later_and_later)
{
    int64_t at[16];

    begin("date +%s%N >>$0; test $(wc -l <$0) -gt 5", PAUSE_MS);
    tell("w1");
    until_told(1);
    ck_assert_uint_eq(ctl_alerts_get_stats(alerts).failed, 5);
    ck_assert_uint_eq(ctl_alerts_get_stats(alerts).queued, 0);
    ck_assert_uint_eq(read_times(at), 6);
    for (unsigned i = 1; i < 6; i++) /* less a quarter, and what the timer's clock rounds off */
        ck_assert_int_ge(at[i] - at[i - 1], ((PAUSE_MS << (i - 1)) * 3 / 4 - 2) * 1000000LL);
    end();
}
END_TEST

/* One that cannot be told does not keep the others waiting for ever. */
START_TEST(what_always_fails_is_given_up)
{
    begin("echo x >>$0; ! grep -q hopeless", 1);
    tell("hopeless");
    tell("w1");
    until_told(1);
    ck_assert_uint_eq(ctl_alerts_get_stats(alerts).failed, CTL_ALERT_ATTEMPTS);
    ck_assert_uint_eq(ctl_alerts_get_stats(alerts).queued, 0);
    end();
}
END_TEST

START_TEST(the_oldest_are_forgotten_when_nobody_can_be_told)
{
    begin("false", 60000);
    for (unsigned i = 0; i < 2 * MOST_QUEUED; i++)
        tell("w1");
    ck_assert_uint_eq(ctl_alerts_get_stats(alerts).queued, MOST_QUEUED);
    ck_assert_uint_eq(ctl_alerts_get_stats(alerts).dropped, MOST_QUEUED);
    end();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("alert");

    tcase_add_test(t, what_fails_is_tried_again_later_and_later);
    tcase_add_test(t, what_always_fails_is_given_up);
    tcase_add_test(t, the_oldest_are_forgotten_when_nobody_can_be_told);
    return run("controller/alert", t);
}
