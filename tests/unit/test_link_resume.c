/* The checkpoint that a start was decided on, kept for the process that begins. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "agentd/link/resume.h"
#include "unit/suite.h"

static struct link the_link;
static struct link_agent agent;
static struct link_process process;

static void setup(void)
{
    memset(&the_link, 0, sizeof the_link);
    agent = (struct link_agent){ .link = &the_link };
    process = (struct link_process){ .agent = &agent };
}

static void teardown(void)
{
    link_resume_forget(&process);
    link_resume_done(&the_link);
}

static void keep(const char *task, int64_t seq, const char *body)
{
    struct link_stored stored = { .body = { body, strlen(body) } };

    (void)snprintf(stored.sha256, sizeof stored.sha256, "digest of %s", body);
    link_resume_keep(&the_link, task, seq, &stored);
}

static void expect(const char *task, int64_t seq, const char *body)
{
    int64_t found = 0;
    const struct link_stored *stored = link_resume_get(&process, task, &found);
    char digest[80];

    ck_assert_ptr_nonnull(stored);
    ck_assert_int_eq(found, seq);
    ck_assert_uint_eq(stored->body.len, strlen(body));
    ck_assert_mem_eq(stored->body.data, body, strlen(body));
    (void)snprintf(digest, sizeof digest, "digest of %s", body);
    ck_assert_str_eq(stored->sha256, digest);
}

static void expect_nothing(const char *task)
{
    int64_t seq;

    ck_assert_ptr_null(link_resume_get(&process, task, &seq));
}

START_TEST(who_begins_gets_what_was_verified_for_its_task)
{
    keep("t1", 3, "one");
    keep("t2", 3, "two");
    link_resume_grant(&process, "t1", 3);
    expect("t1", 3, "one");
    expect_nothing("t2");
}
END_TEST

/* The same number may be another body: of a task submitted anew, or of a restored etcd. */
START_TEST(a_task_has_one_body)
{
    struct link_stored failed = { .err = HF_ECORRUPT };

    keep("t1", 3, "old");
    keep("t1", 3, "new");
    link_resume_grant(&process, "t1", 3);
    expect("t1", 3, "new");
    link_resume_forget(&process);
    link_resume_grant(&process, "t1", 3);
    expect_nothing("t1"); /* the old one did not stay behind */
    keep("t1", 3, "old");
    keep("t1", 4, "new");
    link_resume_grant(&process, "t1", 3);
    expect_nothing("t1");
    link_resume_keep(&the_link, "t1", 4, &failed);
    link_resume_grant(&process, "t1", 4);
    expect_nothing("t1");
}
END_TEST

START_TEST(a_start_from_another_checkpoint_or_none_finds_nothing)
{
    keep("t1", 3, "one");
    link_resume_grant(&process, "t1", 2);
    expect_nothing("t1");
    link_resume_grant(&process, NULL, 0);
    expect_nothing("t1");
}
END_TEST

START_TEST(only_the_newest_are_kept)
{
    static char body[(64 << 10) + 1];
    char task[16];
    int64_t seq;

    (void)memset(body, 'x', sizeof body - 1);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(task, sizeof task, "t%d", i);
        keep(task, 1, body);
    }
    link_resume_grant(&process, "t4", 1);
    expect_nothing("t4");
    link_resume_grant(&process, "t5", 1);
    ck_assert_ptr_nonnull(link_resume_get(&process, "t5", &seq));
}
END_TEST

START_TEST(a_body_that_was_just_stored_is_at_hand_as_its_entry_names_it)
{
    static const char BODY[] = "abc";
    static const char DIGEST[] =
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    Holdfast__V1__Checkpoint entry = HOLDFAST__V1__CHECKPOINT__INIT;

    entry.task = (char *)"t1";
    entry.seq = 3;
    entry.size = 3;
    entry.sha256 = (char *)DIGEST;
    ck_assert(!link_resume_has(&the_link, &entry));
    keep("t1", 3, BODY);
    ck_assert(link_resume_has(&the_link, &entry));
    entry.sha256 = (char *)"00";
    ck_assert(!link_resume_has(&the_link, &entry));
    entry.sha256 = (char *)DIGEST;
    entry.size = 4;
    ck_assert(!link_resume_has(&the_link, &entry));
    entry.size = 3;
    entry.seq = 2;
    ck_assert(!link_resume_has(&the_link, &entry));
    entry.seq = 3;
    entry.task = (char *)"t2";
    ck_assert(!link_resume_has(&the_link, &entry));
}
END_TEST

START_TEST(a_large_body_is_read_again)
{
    static char large[(64 << 10) + 2];

    (void)memset(large, 'x', sizeof large - 1);
    keep("t1", 1, large);
    link_resume_grant(&process, "t1", 1);
    expect_nothing("t1");
}
END_TEST

static void told_of(Holdfast__V1__Task__State state, int64_t restored)
{
    Holdfast__V1__Task task = HOLDFAST__V1__TASK__INIT;
    Holdfast__V1__CheckpointRef ref = HOLDFAST__V1__CHECKPOINT_REF__INIT;

    task.id = (char *)"t1";
    task.state = state;
    ref.seq = restored;
    task.restored = restored >= 0 ? &ref : NULL;
    link_resume_on_task(&process, &task);
}

START_TEST(what_was_kept_holds_while_the_task_does)
{
    keep("t1", 3, "one");
    link_resume_grant(&process, "t1", 3);
    link_resume_on_task(&process, NULL);
    told_of(HOLDFAST__V1__TASK__STATE__acknowledged, 3);
    told_of(HOLDFAST__V1__TASK__STATE__in_progress, 3);
    expect("t1", 3, "one");
}
END_TEST

static const struct {
    Holdfast__V1__Task__State state;
    int64_t restored; /* -1: not said */
} LOSSES[] = {
    { HOLDFAST__V1__TASK__STATE__pending, 3 },
    { HOLDFAST__V1__TASK__STATE__completed, 3 },
    { HOLDFAST__V1__TASK__STATE__in_progress, 2 },
    { HOLDFAST__V1__TASK__STATE__acknowledged, -1 },
};

START_TEST(a_task_that_was_lost_takes_it_along)
{
    keep("t1", 3, "one");
    link_resume_grant(&process, "t1", 3);
    told_of(LOSSES[_i].state, LOSSES[_i].restored);
    expect_nothing("t1");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("resume");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, who_begins_gets_what_was_verified_for_its_task);
    tcase_add_test(t, a_task_has_one_body);
    tcase_add_test(t, a_start_from_another_checkpoint_or_none_finds_nothing);
    tcase_add_test(t, only_the_newest_are_kept);
    tcase_add_test(t, a_body_that_was_just_stored_is_at_hand_as_its_entry_names_it);
    tcase_add_test(t, a_large_body_is_read_again);
    tcase_add_test(t, what_was_kept_holds_while_the_task_does);
    tcase_add_loop_test(t, a_task_that_was_lost_takes_it_along, 0, COUNT(LOSSES));
    return run("agentd/resume", t);
}
