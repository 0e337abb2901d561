/* The audit trail of the real programs: what one recovery leaves in it, in which order, with
 * which evidence; and what does not belong to it. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/buf.h"
#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

static struct hft_fleet fleet;

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

static const char *text_at(const json_t *event, const char *member)
{
    const char *text = json_string_value(json_object_get(event, member));

    return text != NULL ? text : "";
}

static const char *evidence_of(const json_t *event)
{
    return text_at(json_array_get(json_object_get(event, "evidence"), 0), "text");
}

/* All entries, oldest first; to be released. */
static json_t *read_trail(void)
{
    char *text = hft_fleet_cli(&fleet, "events", "-o", "json", NULL), *rest = text;
    json_t *list = json_array();

    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (line[0] != '\0')
            ck_assert_int_eq(json_array_append_new(list, json_loads(line, 0, NULL)), 0);
    }
    free(text);
    return list;
}

/* "ended w1, reset t w1" of those behind the last one that tells of a leader. */
static void summarize(const json_t *list, struct hf_buf *out)
{
    const json_t *event;
    size_t i;

    hf_buf_clear(out);
    json_array_foreach(list, i, event)
    {
        if (strcmp(text_at(event, "kind"), "leader") == 0)
            continue;
        hf_buf_printf(out, "%s%s%s%s%s%s", out->len > 0 ? ", " : "", text_at(event, "kind"),
                      text_at(event, "task")[0] != '\0' ? " " : "", text_at(event, "task"),
                      text_at(event, "agent")[0] != '\0' ? " " : "", text_at(event, "agent"));
    }
}

static bool tells_of_the_end(void *arg)
{
    (void)arg;
    return hft_fleet_count(&fleet, "events/", "\"kind\":\"completed\"") == 1;
}

static bool tells_of_the_start(void *arg)
{
    (void)arg;
    return hft_fleet_count(&fleet, "events/", "\"kind\":\"joined\"") == 1 &&
           hft_fleet_count(&fleet, "events/", "\"kind\":\"submitted\"") == 1;
}

/* By order, and by leave. */
static const struct {
    const char *leave;
    const char *start;
} WAYS[] = { { "0s", "restart_ordered" }, { "1s", "succeeded" } };

START_TEST(one_recovery_leaves_exactly_this)
{
    const char *start = WAYS[_i].start;
    char first[200], other[200], leave[60];
    struct hf_buf told = { 0 };
    json_t *list;

    (void)snprintf(first, sizeof first,
                   "joined w1, submitted t, ended w1, reset t w1, %s t w1, joined w1, "
                   "recovered t, completed t w1",
                   start);
    (void)snprintf(other, sizeof other,
                   "submitted t, joined w1, ended w1, reset t w1, %s t w1, joined w1, "
                   "recovered t, completed t w1",
                   start);
    hft_fleet_lead(&fleet, 0, "--restart-leave", WAYS[_i].leave, NULL);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
    hft_fleet_submit(&fleet, "t", 40, 0.2);
    hft_wait_or_fail(tells_of_the_start, NULL, HFT_FLEET_STEP_MS, "what began");
    hft_fleet_until_step(&fleet, "t", 2);
    (void)snprintf(leave, sizeof leave, "\"heirOf\":\"%lld\"",
                   (long long)hft_fleet_look(&fleet, "agents/w1/live").create_rev);
    if (_i == 1)
        hft_fleet_await(&fleet, "health/w1", leave);
    hft_fleet_kill_agent(&fleet, "w1");
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t", 40), 2);
    hft_wait_or_fail(tells_of_the_end, NULL, HFT_FLEET_STEP_MS, "the end of the task");
    list = read_trail();
    summarize(list, &told);
    ck_assert_msg(strcmp(told.data, first) == 0 || strcmp(told.data, other) == 0, "%s",
                  told.data);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *event = json_array_get(list, i);
        const char *kind = text_at(event, "kind");

        if (strcmp(kind, "ended") == 0 || strcmp(kind, "reset") == 0 ||
            strcmp(kind, start) == 0)
            ck_assert_msg(strstr(evidence_of(event), "signal 9") != NULL, "%s: %s", kind,
                          evidence_of(event));
        if (strcmp(kind, "restart_ordered") == 0)
            ck_assert_str_ne(text_at(json_object_get(event, "next"), "at"), "");
    }
    json_decref(list);
    hf_buf_done(&told);
    hft_fleet_check(&fleet);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("trail");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_loop_test(t, one_recovery_leaves_exactly_this, 0, 2);
    return hft_suite_run("e2e: trail", t, NULL);
}
