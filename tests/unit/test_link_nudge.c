/* What the next link is told of what an agent was asked. */
#include "agentd/link/nudge.h"

#include <check.h>
#include <string.h>

#include "support/suite.h"

static struct link_nudge pass_on(const struct link_nudge *nudge)
{
    HF_CLEANUP_BUF struct hf_buf line = { 0 };
    struct link_nudge next = { .told = false };

    link_nudge_format(nudge, &line);
    hf_buf_puts(&line, "\nleave {}\n");
    link_nudge_parse(&next, line.data);
    return next;
}

START_TEST(receipts_are_passed_on)
{
    struct link_nudge nudge = { .receipt = { .id = "q1",
                                             .by = "stdin",
                                             .delivered_wall = 1700000001000,
                                             .read_wall = 1700000002000 } };
    struct link_nudge next = pass_on(&nudge);

    ck_assert_str_eq(next.receipt.id, "q1");
    ck_assert_str_eq(next.receipt.by, "stdin");
    ck_assert_int_eq(next.receipt.delivered_wall, 1700000001000);
    ck_assert_int_eq(next.receipt.read_wall, 1700000002000);
    ck_assert(next.receipt_due); /* the node of that link knows nothing yet */
    ck_assert(!next.hooked && !next.hooking && !next.told);
}
END_TEST

START_TEST(what_was_not_delivered_is_not)
{
    struct link_nudge nudge = { .receipt = { .id = "q1" } };
    struct link_nudge next = pass_on(&nudge);

    ck_assert_str_eq(next.receipt.id, "q1");
    ck_assert_str_eq(next.receipt.by, "");
    ck_assert_int_eq(next.receipt.delivered_wall, 0);
}
END_TEST

static const struct {
    struct link_nudge nudge;
    bool hooked;
} HOOKS[] = {
    { { .receipt.id = "q", .begun = 0, .ended = 0 }, false },
    { { .receipt.id = "q", .begun = 1, .ended = 1 }, false }, /* it failed, and is due again */
    { { .receipt.id = "q", .begun = 1, .ended = 1, .hooked = true }, true },
    { { .receipt.id = "q", .begun = 1, .ended = 0 }, true }, /* nobody knows what it did */
    { { .receipt.id = "q", .begun = 2, .ended = 1 }, true },
};

START_TEST(a_hook_whose_end_nobody_saw_is_not_run_again)
{
    struct link_nudge next = pass_on(&HOOKS[_i].nudge);

    ck_assert_int_eq(next.hooked, HOOKS[_i].hooked);
    ck_assert_uint_eq(next.begun, HOOKS[_i].nudge.begun);
}
END_TEST

static const char *const NONSENSE[] = {
    "",
    "q",
    "q - 1 2 3\n4 5",
    "q - 1 2 3 4 2",
    "q - -1 0 0 0 0",
    "q - x 0 0 0 0",
    "q a-way-that-is-too-long 0 0 0 0 0",
    "an-id-that-is-longer-than-any-id-is-0123456789-0123456789-0123456789 - 0 0 0 0 0",
};

START_TEST(nonsense_is_passed_over)
{
    struct link_nudge nudge = { .begun = 7 };

    link_nudge_parse(&nudge, NONSENSE[_i]);
    ck_assert_str_eq(nudge.receipt.id, "");
    ck_assert_uint_eq(nudge.begun, 7);
}
END_TEST

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

int main(void)
{
    TCase *t = tcase_create("nudge");

    tcase_add_test(t, receipts_are_passed_on);
    tcase_add_test(t, what_was_not_delivered_is_not);
    tcase_add_loop_test(t, a_hook_whose_end_nobody_saw_is_not_run_again, 0, COUNT(HOOKS));
    tcase_add_loop_test(t, nonsense_is_passed_over, 0, COUNT(NONSENSE));
    return hft_suite_run("link/nudge", t, NULL);
}
