/* How a process is judged outlives the link that has started it. */
#include <string.h>

#include "agentd/link/judged.h"
#include "unit/suite.h"

static const char *const BY[] = { "ping", "heartbeat" };
static const char *const COMMAND[] = { "/bin/check", "a \"word\"", "" };

static struct link_detect detect_of(const char *address)
{
    return (struct link_detect){
        .profile = HF_DETECTOR_TOLERANT,
        .by = { .items = (const char **)BY, .count = 2 },
        .on_freeze = LINK_ON_FREEZE_REPORT,
        .watchdog = 7000,
        .phi = 12,
        .probe = address,
        .probe_command = { .items = (const char **)COMMAND, .count = address == NULL ? 3 : 0 },
        .probe_every = 2000,
        .probe_timeout = 300,
        .probe_misses = 4,
        .target = { .uid = 65534, .gid = (gid_t)-1 },
    };
}

/* As the next link reads it. */
static void pass_on(const struct link_judged *judged, struct link_judged *ret)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    const char *line;

    link_judged_format(judged, &text);
    ck_assert_int_eq(text.err, HF_OK);
    *ret = (struct link_judged){ 0 };
    for (line = text.data; *line != '\0'; line += strcspn(line, "\n") + 1)
        ck_assert(link_judged_read(ret, line, strcspn(line, "\n")));
}

START_TEST(the_next_link_judges_as_the_one_that_started_it)
{
    struct link_detect detect = detect_of(NULL);
    struct link_judged judged = {
        .watchdog = 9000, .used = 5, .announced_wall = 1234567890123, .state = 4
    };
    struct link_judged next;

    ck_assert_int_eq(link_judged_begin(&judged, &detect), HF_OK);
    pass_on(&judged, &next);
    link_judged_done(&judged);
    ck_assert_int_eq(next.watchdog, 9000);
    ck_assert_uint_eq(next.used, 5);
    ck_assert_int_eq(next.announced_wall, 1234567890123);
    ck_assert_int_eq(next.state, 4);
    ck_assert_ptr_nonnull(next.kept);
    ck_assert_int_eq(next.detect.profile, HF_DETECTOR_TOLERANT);
    ck_assert_int_eq(next.detect.on_freeze, LINK_ON_FREEZE_REPORT);
    ck_assert_int_eq(next.detect.watchdog, 7000);
    ck_assert(link_detect_policy(&next.detect, 30000).phi == 12);
    ck_assert_uint_eq(link_detect_policy(&next.detect, 30000).convicts,
                      1U << HF_SOURCE_PING | 1U << HF_SOURCE_HEARTBEAT);
    ck_assert(next.detect.has_probe);
    ck_assert_int_eq(next.detect.target.kind, LINK_PROBE_EXEC);
    ck_assert_uint_eq(next.detect.target.command.count, 3);
    ck_assert_str_eq(next.detect.target.command.items[1], "a \"word\"");
    ck_assert_uint_eq(next.detect.target.uid, 65534);
    ck_assert_uint_eq(next.detect.target.gid, (gid_t)-1);
    ck_assert_int_eq(next.detect.probe_every, 2000);
    ck_assert_int_eq(next.detect.probe_timeout, 300);
    ck_assert_int_eq(next.detect.probe_misses, 4);
    link_judged_done(&next);
}
END_TEST

START_TEST(an_address_is_kept_as_well)
{
    struct link_detect detect = detect_of("http://127.0.0.1:80/x");
    struct link_judged judged = { 0 }, next;

    ck_assert_int_eq(link_judged_begin(&judged, &detect), HF_OK);
    pass_on(&judged, &next);
    ck_assert_int_eq(next.detect.target.kind, LINK_PROBE_HTTP);
    ck_assert_str_eq(next.detect.target.path, "/x");
    link_judged_done(&judged);
    link_judged_done(&next);
}
END_TEST

START_TEST(an_older_link_tells_of_no_state)
{
    static const char LINE[] = "heard 5 9000 1234567890123\n77";
    struct link_judged judged = { 0 };

    ck_assert(link_judged_read(&judged, LINE, strcspn(LINE, "\n")));
    ck_assert_int_eq(judged.announced_wall, 1234567890123);
    ck_assert_int_eq(judged.state, 0);
}
END_TEST

static const char *const NONSENSE[] = {
    "detect {", "detect {}", "detect []", "detect", "detect {\"profile\":77}", "born 7", ""
};

START_TEST(what_makes_no_sense_is_not_taken)
{
    struct link_judged judged = { 0 };

    (void)link_judged_read(&judged, NONSENSE[_i], strlen(NONSENSE[_i]));
    ck_assert_ptr_null(judged.kept);
    link_judged_done(&judged);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("judged");

    tcase_add_test(t, the_next_link_judges_as_the_one_that_started_it);
    tcase_add_test(t, an_address_is_kept_as_well);
    tcase_add_test(t, an_older_link_tells_of_no_state);
    tcase_add_loop_test(t, what_makes_no_sense_is_not_taken, 0, COUNT(NONSENSE));
    return run("link/judged", t);
}
