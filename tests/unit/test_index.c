#include "core/index.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "support/chaos.h"
#include "unit/suite.h"

enum { MANY = 500 };

struct thing {
    const char *name;
    char text[16];
    bool in; /* what the index should say */
    unsigned visits;
};

static struct thing things[MANY];
static struct hf_index names;

static void setup(void)
{
    for (int i = 0; i < MANY; i++) {
        things[i] = (struct thing){ .name = things[i].text };
        (void)snprintf(things[i].text, sizeof things[i].text, "thing-%d", i);
    }
    names = (struct hf_index){ .seed = 0x5eed };
}

static void teardown(void)
{
    hf_index_done(&names);
}

static void add(struct thing *thing)
{
    ck_assert_int_eq(hf_index_add(&names, thing), HF_OK);
    thing->in = true;
}

static void drop(struct thing *thing)
{
    hf_index_remove(&names, thing);
    thing->in = false;
}

static bool is_right(const struct thing *thing)
{
    char copy[sizeof thing->text];

    memcpy(copy, thing->text, sizeof copy); /* found by what it says, not where */
    return hf_index_get(&names, copy) == (thing->in ? thing : NULL) &&
           thing->visits == (thing->in ? 1 : 0);
}

/* Every name is found exactly when its thing is in, and each that is in is visited once. One
 * assertion for all, because assertions are slow. */
static void check_all(void)
{
    size_t cursor = 0, count = 0;
    struct thing *thing, *wrong = NULL;

    while ((thing = hf_index_next(&names, &cursor)) != NULL)
        thing->visits++;
    for (thing = things; thing < things + MANY; thing++) {
        if (!is_right(thing))
            wrong = thing;
        thing->visits = 0;
        count += thing->in;
    }
    ck_assert_msg(wrong == NULL && names.count == count, "%s is wrong",
                  wrong != NULL ? wrong->name : "the count");
}

START_TEST(an_empty_index_has_nothing)
{
    size_t cursor = 0;

    ck_assert_ptr_null(hf_index_get(&names, "thing-0"));
    ck_assert_ptr_null(hf_index_next(&names, &cursor));
}
END_TEST

START_TEST(finds_what_was_added_while_it_grows)
{
    for (int i = 0; i < MANY; i++) {
        add(&things[i]);
        if (i % 50 == 0)
            check_all();
    }
    check_all();
    /* An eighth is free, and not much more than half. */
    ck_assert_uint_ge(names.mask + 1, MANY * 8 / 7);
    ck_assert_uint_le(names.mask + 1, MANY * 16 / 7);
}
END_TEST

START_TEST(a_beginning_of_a_name_is_another_name)
{
    add(&things[1]);
    ck_assert_ptr_null(hf_index_get(&names, "thing-"));
    ck_assert_ptr_null(hf_index_get(&names, "thing-12"));
    ck_assert_ptr_null(hf_index_get(&names, ""));
}
END_TEST

/* Gaps in runs of slots, also over the end of the table, in every possible constellation. */
START_TEST(removals_lose_no_other)
{
    uint32_t random = (uint32_t)_i * 2654435761u + 1;

    names.seed = random;
    for (int step = 0; step < 4000; step++) {
        struct thing *thing;

        random = random * 1664525u + 1013904223u;
        /* Few at first, so that the table is small and runs meet its end. */
        thing = &things[(random >> 8) % (step < 2000 ? 12 : MANY)];
        if (thing->in)
            drop(thing);
        else
            add(thing);
        if (step < 2000 || step % 50 == 0)
            check_all();
    }
}
END_TEST

START_TEST(done_leaves_it_empty_and_usable)
{
    add(&things[0]);
    hf_index_done(&names);
    things[0].in = false;
    check_all();
    ck_assert_uint_eq(names.seed, 0x5eed);
    add(&things[1]);
    check_all();
}
END_TEST

START_TEST(without_memory_nothing_changes)
{
    size_t refused = 0;

    for (int i = 0; i < MANY; i++) {
        int err;

        hft_chaos_fail_at(1, true);
        err = hf_index_add(&names, &things[i]);
        hft_chaos_stop();
        ck_assert_int_eq(err, hft_chaos_has_failed() ? HF_ENOMEM : HF_OK);
        things[i].in = err == HF_OK;
        if (err != HF_OK) {
            refused++;
            check_all();
            add(&things[i]);
        }
    }
    check_all();
    ck_assert_uint_eq(refused, 7); /* 16 slots, then six times twice as many */
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("index");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, an_empty_index_has_nothing);
    tcase_add_test(t, finds_what_was_added_while_it_grows);
    tcase_add_test(t, a_beginning_of_a_name_is_another_name);
    tcase_add_loop_test(t, removals_lose_no_other, 0, 10);
    tcase_add_test(t, done_leaves_it_empty_and_usable);
    tcase_add_test(t, without_memory_nothing_changes);
    return run("core/index", t);
}
