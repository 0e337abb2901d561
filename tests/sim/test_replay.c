#include <check.h>
#include <stdlib.h>

#include "sim/replay.h"

static const struct {
    struct hfs_replay replay;
    const char *text;
} REPLAYS[] = {
    { { .seed = 7 }, "./dev test sim --seeds 1 --from 7" },
    { { .seed = 7, .profile = "late" }, "./dev test sim --seeds 1 --from 7 --profile late" },
    { { .seed = 7, .mutant = "NO_GRACE" },
      "./dev test sim --seeds 1 --from 7 --mutant NO_GRACE" },
    { { .seed = 7, .profile = "late", .mutant = "RESET_TASK", .control = true },
      "./dev test sim --seeds 1 --from 7 --profile late --mutant RESET_TASK --control" },
};

START_TEST(a_history_is_replayed_with_all_that_made_it)
{
    char text[200];

    hfs_replay_format(&REPLAYS[_i].replay, text, sizeof text);
    ck_assert_str_eq(text, REPLAYS[_i].text);
}
END_TEST

static const struct {
    const char *one, *other;
    bool same;
} FAILURES[] = {
    { "I7 a1 is given up", "I7 t1 is reset", true },
    { "I7 a1 is given up", "I8 a second start of a1", false },
    { "I1 a1 is registered", "I10 two processes of a1", false },
    { "told: c1 is refused", "told: c2 is refused", true },
    { "told: c1 is refused", "once: a copy", false },
    { "a1 is wanted and does not run", "a2 is left over on h1", true },
    { "a1 is wanted and does not run", "I9 t1 of r1 is not final", false },
    { "I9 t1 of r1 is not final", "a1 is wanted and does not run", false },
    { "J a program begins", "I2 a1 works", false },
};

START_TEST(a_smaller_story_must_fail_in_the_same_way)
{
    ck_assert(hfs_replay_is_same(FAILURES[_i].one, FAILURES[_i].other) == FAILURES[_i].same);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sim/replay");
    TCase *t = tcase_create("replay");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_loop_test(t, a_history_is_replayed_with_all_that_made_it, 0,
                        sizeof REPLAYS / sizeof REPLAYS[0]);
    tcase_add_loop_test(t, a_smaller_story_must_fail_in_the_same_way, 0,
                        sizeof FAILURES / sizeof FAILURES[0]);
    suite_add_tcase(suite, t);
    srunner_run_all(runner, CK_NORMAL);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
