#include <check.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "support/suite.h"

static bool is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

static int open_something(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    return fd;
}

/* Opens and lets the scope end, early or late. */
static int use_descriptor(bool early)
{
    HF_CLEANUP_FD int fd = open_something();

    ck_assert(is_open(fd));
    if (early)
        return fd;
    ck_assert_int_eq(fcntl(fd, F_GETFD), FD_CLOEXEC);
    return fd;
}

START_TEST(a_descriptor_is_closed_when_its_scope_ends)
{
    ck_assert(!is_open(use_descriptor(_i == 0)));
}
END_TEST

START_TEST(no_descriptor_is_not_closed)
{
    int other = open_something();

    {
        HF_CLEANUP_FD int fd = -1;

        (void)fd;
    }
    ck_assert(is_open(other));
    ck_assert_int_eq(close(other), 0);
}
END_TEST

/* The cleanup frees what the slot holds at the end, through a pointer of any type; the
 * AddressSanitizer build is what sees a leak or a double free. */
START_TEST(memory_is_freed_when_its_scope_ends)
{
    struct pair {
        int a;
        int b;
    };
    HF_CLEANUP_FREE char *text = hf_strdup("gone at the end");
    HF_CLEANUP_FREE struct pair *pair = hf_calloc(1, sizeof *pair);
    HF_CLEANUP_FREE void *none = NULL;

    ck_assert_ptr_nonnull(text);
    ck_assert_ptr_nonnull(pair);
    ck_assert_ptr_null(none);
    free(text);
    text = hf_strdup("a second one");
    ck_assert_ptr_nonnull(text);
}
END_TEST

static char *hand_out(bool keep)
{
    HF_CLEANUP_FREE char *text = hf_strdup("kept");

    ck_assert_ptr_nonnull(text);
    return keep ? hf_steal(&text) : NULL;
}

START_TEST(what_was_stolen_survives)
{
    HF_CLEANUP_FREE char *text = hand_out(true);

    ck_assert_str_eq(text, "kept");
    ck_assert_ptr_null(hand_out(false));
}
END_TEST

static char letters[] = "ab";
static char *slots[] = { &letters[0], &letters[1] };
static size_t next_slot;

static char **take_slot(void)
{
    return &slots[next_slot++];
}

START_TEST(steal_leaves_null_and_evaluates_its_slot_once)
{
    char *stolen = hf_steal(take_slot());

    ck_assert_ptr_eq(stolen, &letters[0]);
    ck_assert_uint_eq(next_slot, 1);
    ck_assert_ptr_null(slots[0]);
    ck_assert_ptr_eq(slots[1], &letters[1]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("cleanup");

    tcase_add_loop_test(t, a_descriptor_is_closed_when_its_scope_ends, 0, 2);
    tcase_add_test(t, no_descriptor_is_not_closed);
    tcase_add_test(t, memory_is_freed_when_its_scope_ends);
    tcase_add_test(t, what_was_stolen_survives);
    tcase_add_test(t, steal_leaves_null_and_evaluates_its_slot_once);
    return hft_suite_run("base/cleanup", t, NULL);
}
