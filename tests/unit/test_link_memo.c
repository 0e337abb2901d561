/* What a link leaves to the next one about all its agents. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "agentd/link/link.h"
#include "unit/suite.h"

enum { MANY = 1000 };

static struct link_agent agents[MANY], again[MANY];

/* The same names, of which nothing is known. */
static void make_agents(size_t count, const char *stem)
{
    memset(agents, 0, sizeof agents);
    memset(again, 0, sizeof again);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(agents[i].name, sizeof agents[i].name, "%s%zu", stem, i);
        (void)snprintf(again[i].name, sizeof again[i].name, "%s", agents[i].name);
        agents[i].next = i + 1 < count ? &agents[i + 1] : NULL;
        again[i].next = i + 1 < count ? &again[i + 1] : NULL;
    }
}

static void hand_over(size_t limit)
{
    struct hf_buf memo = { .limit = limit };

    link_memo_format(agents, &memo);
    ck_assert_int_eq(memo.err, HF_OK);
    ck_assert_uint_le(memo.len, limit);
    link_memo_parse(memo.data != NULL ? memo.data : "", again);
    hf_buf_done(&memo);
}

START_TEST(what_was_started_written_and_ended_is_known_again)
{
    make_agents(5, "a");
    agents[0].started = true;
    agents[1].started = agents[1].ended = true;
    agents[1].code = 143;
    agents[2].spec_written = true;
    (void)snprintf(agents[4].name, sizeof agents[4].name, "a1x"); /* begins like another */
    (void)snprintf(again[4].name, sizeof again[4].name, "a1x");
    hand_over(1000);
    ck_assert(again[0].started && again[0].spec_written && !again[0].ended);
    ck_assert(again[1].started && again[1].ended);
    ck_assert_int_eq(again[1].code, 143);
    ck_assert(!again[2].started && again[2].spec_written);
    ck_assert(!again[3].started && !again[3].spec_written && !again[3].ended);
    ck_assert(!again[4].started && !again[4].spec_written && !again[4].ended);
}
END_TEST

START_TEST(of_nothing_nothing_is_known)
{
    make_agents(1, "a");
    hand_over(1000);
    ck_assert(!again[0].started && !again[0].spec_written);
}
END_TEST

/* One that is new in the configuration is not taken for started, however many there are. */
START_TEST(names_that_do_not_fit_are_shortened)
{
    make_agents(MANY, "an-agent-with-a-long-name-");
    for (size_t i = 0; i < MANY - 1; i++)
        agents[i].started = true;
    agents[7].ended = true;
    agents[7].code = 3;
    hand_over((size_t)18 * MANY + 10);
    for (size_t i = 0; i < MANY - 1; i++)
        ck_assert(again[i].started);
    ck_assert(again[7].ended);
    ck_assert_int_eq(again[7].code, 3);
    ck_assert(!again[MANY - 1].started && !again[MANY - 1].spec_written);
}
END_TEST

START_TEST(what_does_not_fit_at_all_is_never_started_twice)
{
    make_agents(MANY, "a");
    for (size_t i = 0; i < MANY - 1; i++)
        agents[i].started = true;
    hand_over(100);
    for (size_t i = 0; i < MANY; i++)
        ck_assert(again[i].started && again[i].spec_written && !again[i].ended);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("memo");

    tcase_add_test(t, what_was_started_written_and_ended_is_known_again);
    tcase_add_test(t, of_nothing_nothing_is_known);
    tcase_add_test(t, names_that_do_not_fit_are_shortened);
    tcase_add_test(t, what_does_not_fit_at_all_is_never_started_twice);
    return run("agentd/memo", t);
}
