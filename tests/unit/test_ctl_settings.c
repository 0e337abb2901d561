/* What can be set for a controller: that it arrives where it decides something, that the
 * defaults are those of the rules, and that what contradicts itself is refused with a sentence.
 */
#include <check.h>
#include <stddef.h>
#include <string.h>

#include "controller/settings.h"
#include "unit/suite.h"

static struct ctl_settings settings;
static struct hf_config cfg;
static struct hf_error err;

static void setup(void)
{
    settings = (struct ctl_settings){ 0 };
    cfg = (struct hf_config){ 0 };
    err = (struct hf_error){ "" };
}

static void teardown(void)
{
    hf_config_done(&cfg);
}

static int load(const char *const argv[])
{
    const struct hf_option_group groups[] = { ctl_settings_group(&settings),
                                              ctl_policy_group(&settings.policy),
                                              hf_options_group(&settings.common) };
    char *const nothing[] = { NULL };
    int argc = 0, rc;

    while (argv[argc] != NULL)
        argc++;
    ck_assert_int_eq(hf_config_init(&cfg, groups, sizeof groups / sizeof groups[0]), HF_OK);
    rc = hf_options_load(&cfg, &settings.common, argc, (char *const *)argv, nothing, &err);
    return rc == HF_OK ? ctl_settings_complete(&settings, &err) : rc;
}

/* Every number of the policy that has an option, and one that is not its default. */
#define FIELD(member)                                                                          \
    offsetof(struct hf_engine_policy, member), sizeof(((struct hf_engine_policy *)0)->member)

static const struct {
    const char *flag, *value;
    size_t offset, size;
    int64_t expected;
} OPTIONS[] = {
    { "--home-grace", "7s", FIELD(placement.home_grace), 7000 },
    { "--restart-backoff-base", "3s", FIELD(restart.backoff.base), 3000 },
    { "--restart-backoff-factor", "3", FIELD(restart.backoff.factor_percent), 300 },
    { "--restart-backoff-cap", "20s", FIELD(restart.backoff.cap), 20000 },
    { "--restart-forget-after", "2m", FIELD(restart.backoff.forget_after), 120000 },
    { "--restart-limit", "7", FIELD(restart.limit), 7 },
    { "--restart-window", "1h", FIELD(restart.window), 3600000 },
    { "--restart-leave", "0s", FIELD(heir_within), 0 },
    { "--recovery-backoff", "8s", FIELD(recover.backoff.list[0]), 8000 },
    { "--recovery-backoff", "8s", FIELD(recover.backoff.list[1]), 16000 },
    { "--recovery-backoff", "8s", FIELD(recover.backoff.list[2]), 32000 },
    { "--recovery-backoff", "8s", FIELD(recover.backoff.list_count), 3 },
    { "--recovery-backoff", "5s,1m,2s,3s", FIELD(recover.backoff.list[0]), 5000 },
    { "--recovery-backoff", "5s,1m,2s,3s", FIELD(recover.backoff.list[1]), 60000 },
    { "--recovery-backoff", "5s,1m,2s,3s", FIELD(recover.backoff.list[3]), 3000 },
    { "--recovery-backoff", "5s,1m,2s,3s", FIELD(recover.backoff.list_count), 4 },
    { "--recovery-backoff", "5s,6s", FIELD(recover.backoff.list_count), 2 },
    { "--recovery-limit", "2", FIELD(recover.limit), 2 },
    { "--recovery-hourly-limit", "9", FIELD(recover.agent_limit), 9 },
    { "--recovery-probation", "1m", FIELD(recover.probation), 60000 },
    { "--task-start-within", "30s", FIELD(task.start_within), 30000 },
    { "--task-alert-after", "10s", FIELD(task.alert_after), 10000 },
    { "--task-review-after", "6h", FIELD(task.review_after), 21600000 },
    { "--progress-max", "10m", FIELD(stall.progress_max), 600000 },
    { "--inquiry-answer", "1m", FIELD(stall.inquiry_answer), 60000 },
    { "--keep-checkpoints", "0s", FIELD(task.keep_chain), 0 },
    { "--storm-window", "5s", FIELD(storm.window), 5000 },
    { "--storm-lost-min", "4", FIELD(storm.lost_min), 4 },
    { "--storm-partial-percent", "20", FIELD(storm.partial_percent), 20 },
    { "--storm-full-percent", "90", FIELD(storm.full_percent), 90 },
    { "--storm-normal-per-second", "20", FIELD(storm.normal.per_second), 20 },
    { "--storm-normal-all-within", "30s", FIELD(storm.normal.all_within), 30000 },
    { "--storm-normal-burst", "60", FIELD(storm.normal.burst), 60 },
    { "--storm-partial-per-second", "2", FIELD(storm.partial.per_second), 2 },
    { "--storm-partial-all-within", "5m", FIELD(storm.partial.all_within), 300000 },
    { "--storm-partial-burst", "6", FIELD(storm.partial.burst), 6 },
    { "--storm-grace-factor", "3", FIELD(storm.grace_factor), 3 },
    { "--storm-partial-for", "90s", FIELD(storm.partial_for), 90000 },
    { "--storm-doubt-margin", "0s", FIELD(storm.doubt_margin), 0 },
    { "--storm-well-for", "25s", FIELD(storm.well_for), 25000 },
    { "--storm-hold-max", "10m", FIELD(storm.hold_max), 600000 },
};

static int64_t number_at(const struct hf_engine_policy *policy, size_t offset, size_t size)
{
    const char *at = (const char *)policy + offset;

    switch (size) {
    case sizeof(uint8_t): return *(const uint8_t *)at;
    case sizeof(uint16_t): return *(const uint16_t *)at;
    case sizeof(uint32_t): return *(const uint32_t *)at;
    default: return *(const int64_t *)at;
    }
}

START_TEST(what_is_set_is_what_decides)
{
    struct hf_engine_policy usual = hf_engine_policy_default();
    int64_t is;

    ck_assert_msg(load((const char *const[]){ "controller", OPTIONS[_i].flag, OPTIONS[_i].value,
                                              NULL }) == HF_OK,
                  "%s: %s", OPTIONS[_i].flag, err.text);
    is = number_at(&settings.engine, OPTIONS[_i].offset, OPTIONS[_i].size);
    ck_assert_msg(is == OPTIONS[_i].expected, "%s %s: %lld", OPTIONS[_i].flag,
                  OPTIONS[_i].value, (long long)is);
    if (strcmp(OPTIONS[_i].flag, "--recovery-backoff") != 0)
        ck_assert_int_ne(number_at(&usual, OPTIONS[_i].offset, OPTIONS[_i].size),
                         OPTIONS[_i].expected);
}
END_TEST

START_TEST(what_is_not_set_is_as_the_rules_have_it)
{
    struct hf_engine_policy usual = hf_engine_policy_default();

    ck_assert_int_eq(load((const char *const[]){ "controller", NULL }), HF_OK);
    for (size_t i = 0; i < sizeof OPTIONS / sizeof OPTIONS[0]; i++)
        ck_assert_msg(number_at(&settings.engine, OPTIONS[i].offset, OPTIONS[i].size) ==
                          number_at(&usual, OPTIONS[i].offset, OPTIONS[i].size),
                      "%s has another default", OPTIONS[i].flag);
}
END_TEST

/* One that is added to the table is tested above. */
START_TEST(every_option_of_the_policy_is_looked_at)
{
    struct hf_option_group group = ctl_policy_group(NULL);

    for (size_t i = 0; i < group.count; i++) {
        bool found = false;

        for (size_t k = 0; k < sizeof OPTIONS / sizeof OPTIONS[0]; k++)
            found = found || strcmp(OPTIONS[k].flag + 2, group.options[i].flag) == 0;
        ck_assert_msg(found, "--%s is not tested", group.options[i].flag);
    }
}
END_TEST

static const struct {
    const char *args[5];
    const char *why;
} WRONG[] = {
    { { "--restart-backoff-base", "2m" },
      "restart.backoff.cap must not be below restart.backoff.base" },
    { { "--restart-forget-after", "60s" }, "restart.backoff.forget_after must be above" },
    { { "--restart-limit", "32" }, "restart.limit cannot be reached within restart.window" },
    { { "--restart-window", "10s" }, "restart.limit cannot be reached within restart.window" },
    { { "--restart-limit", "0" }, "--restart-limit: must be a whole number from 1 to 32" },
    { { "--restart-backoff-factor", "11" }, "--restart-backoff-factor: must be" },
    { { "--recovery-backoff", "soon" }, "recovery.backoff: soon is not a duration" },
    { { "--recovery-backoff", "60s,-1s" }, "recovery.backoff: -1s is not a duration" },
    { { "--recovery-backoff", "60s,25h" }, "recovery.backoff: 25h is not a duration" },
    { { "--recovery-backoff", "1s,2s,3s,4s,5s,6s,7s,8s,9s" },
      "recovery.backoff: at most 8 delays, not 9" },
    { { "--recovery-limit", "17" }, "--recovery-limit: must be" },
    { { "--task-alert-after", "24h" }, "task.review_after must come after task.alert_after" },
    { { "--storm-partial-percent", "81" }, "storm.partial_percent must be positive and not" },
    { { "--storm-full-percent", "29" }, "storm.partial_percent must be positive and not" },
    { { "--storm-normal-per-second", "1", "--storm-partial-per-second", "2" },
      "storm.partial must not be faster than storm.normal" },
    { { "--storm-partial-all-within", "59s" },
      "storm.partial must not be faster than storm.normal" },
    { { "--storm-well-for", "24s" }, "--storm-well-for: must be a duration from 25s" },
    { { "--listen", "0.0.0.0:1" }, "not an address of this machine alone" },
    { { "--port-file", "/tmp/p" }, "without controller.listen" },
};

START_TEST(what_contradicts_itself_is_refused_with_a_sentence)
{
    const char *const *args = WRONG[_i].args;

    ck_assert_int_eq(
        load((const char *const[]){ "controller", args[0], args[1], args[2], args[3], NULL }),
        HF_EINVAL);
    ck_assert_msg(strstr(err.text, WRONG[_i].why) != NULL, "%s", err.text);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("settings");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, what_is_set_is_what_decides, 0, sizeof OPTIONS / sizeof OPTIONS[0]);
    tcase_add_test(t, what_is_not_set_is_as_the_rules_have_it);
    tcase_add_test(t, every_option_of_the_policy_is_looked_at);
    tcase_add_loop_test(t, what_contradicts_itself_is_refused_with_a_sentence, 0,
                        sizeof WRONG / sizeof WRONG[0]);
    return run("controller/settings", t);
}
