/* What the kernel says of processes that hang, each in its own way. */
#include "agentd/link/proc.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/wait.h"
#include "unit/suite.h"

enum way {
    SLEEPS,
    COMPUTES,
    STOPS,
    IS_TRACED,
    AWAITS_WHO_COMPUTES,
    MANY_COMPUTE,
    HAS_ODD_NAME
};
enum { LOOKS = 20 };

#ifdef SYS_pause
#define CALL_OF_PAUSE "it sleeps in pause"
#else
#define CALL_OF_PAUSE "it sleeps in ppoll"
#endif

static pid_t child, hog;
static uint64_t born;
static struct link_proc proc;

static uint64_t start_time(pid_t pid)
{
    char path[64], text[1024];
    const char *p;
    FILE *file;
    size_t len;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    len = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[len] = '\0';
    p = strrchr(text, ')');
    for (int field = 2; field < 22; field++)
        p = strchr(p + 1, ' ');
    return strtoull(p + 1, NULL, 10);
}

static void *compute(void *arg)
{
    for (;;)
        ;
    return arg;
}

_Noreturn static void hang(enum way way)
{
    pthread_t other;

    if (way == HAS_ODD_NAME)
        (void)prctl(PR_SET_NAME, ") R 1 (\n\xff\tx) Z");
    if (way == STOPS)
        (void)raise(SIGSTOP);
    for (int i = 0; way == MANY_COMPUTE && i < 4; i++)
        (void)pthread_create(&other, NULL, compute, NULL);
    if (way == AWAITS_WHO_COMPUTES && pthread_create(&other, NULL, compute, NULL) == 0)
        (void)pthread_join(other, NULL);
    while (way == COMPUTES)
        ;
    for (;;)
        (void)pause();
}

static void begin(enum way way)
{
    proc = (struct link_proc){ 0 };
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0)
        hang(way);
    born = start_time(child);
}

static void end_one(pid_t *pid)
{
    if (*pid == 0)
        return;
    (void)kill(*pid, SIGKILL);
    (void)waitpid(*pid, NULL, 0);
    *pid = 0;
}

static void end(void)
{
    end_one(&child);
    end_one(&hog);
}

static hf_ms now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

static bool is_looked_at(void *arg)
{
    hf_ms at = now();

    if (proc.at != 0 && at - proc.at < *(const hf_ms *)arg)
        return false;
    ck_assert(link_proc_read(child, born, true, at, &proc));
    return true;
}

static bool has_word(void *arg)
{
    return is_looked_at(&(hf_ms){ 100 }) && strcmp(link_proc_word(&proc), arg) == 0;
}

static void await_word(const char *word)
{
    hft_wait_or_fail(has_word, (void *)word, 10000, word);
}

START_TEST(who_sleeps_says_in_which_call)
{
    struct hf_buf text = { 0 };

    begin(SLEEPS);
    await_word("it sleeps");
    ck_assert_int_eq(link_proc_shape(&proc), HF_PROCESS_GOES);
    link_proc_describe(&proc, &text);
    ck_assert_msg(strstr(text.data, "state S, 1 thread, ") != NULL, "%s", text.data);
    hf_buf_clear(&text);
    link_proc_say(&proc, &text);
    ck_assert_str_eq(text.data, CALL_OF_PAUSE);
    hf_buf_done(&text);
}
END_TEST

START_TEST(who_computes_uses_a_processor)
{
    begin(COMPUTES);
    await_word("it computes without a pause");
    ck_assert_int_ge(proc.at - proc.busy_since, 700); /* a moment says nothing */
    ck_assert_int_eq(link_proc_shape(&proc), HF_PROCESS_GOES);
}
END_TEST

/* Its first thread is what the kernel shows of it, and that one sleeps. */
START_TEST(who_waits_for_a_thread_that_computes_is_told_from_who_sleeps)
{
    struct hf_buf text = { 0 };

    begin(AWAITS_WHO_COMPUTES);
    await_word("it computes without a pause");
    link_proc_say(&proc, &text);
    ck_assert_str_eq(text.data,
                     "it computes without a pause, while its first thread sleeps in futex");
    hf_buf_clear(&text);
    link_proc_threads(child, &text);
    ck_assert_msg(strstr(text.data, ", state S in futex), ") != NULL, "%s", text.data);
    ck_assert_msg(strstr(text.data, ", state R)") != NULL, "%s", text.data);
    hf_buf_done(&text);
}
END_TEST

/* On one processor with somebody who takes all of it. The kernel counts what it waited for only
 * when it gets its turn. */
START_TEST(who_computes_is_known_for_it_where_it_gets_no_processor)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(0, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    hog = fork();
    ck_assert_int_ge(hog, 0);
    if (hog == 0)
        hang(COMPUTES);
    begin(COMPUTES);
    ck_assert_int_eq(sched_setscheduler(child, SCHED_IDLE, &(struct sched_param){ 0 }), 0);
    await_word("it computes without a pause");
    for (int i = 0; i < LOOKS; i++) {
        hf_ms before = proc.at;

        hft_wait_or_fail(is_looked_at, &(hf_ms){ 20 }, 10000, "a look");
        ck_assert_int_le(proc.starved_ms, proc.at - before);
        ck_assert_msg(proc.computes, "look %d: %lld of %lld ms", i, (long long)proc.starved_ms,
                      (long long)(proc.at - before));
    }
}
END_TEST

/* More threads than processors: what they take from each other nobody has taken from them. */
START_TEST(who_waits_for_itself_is_not_kept_waiting)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(0, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    begin(MANY_COMPUTE);
    await_word("it computes without a pause");
    for (int i = 0; i < LOOKS; i++) {
        struct link_proc before = proc;
        hf_ms left;

        hft_wait_or_fail(is_looked_at, &(hf_ms){ 100 }, 10000, "a look");
        left = (proc.at - before.at) - (proc.cpu_ms - before.cpu_ms);
        ck_assert_int_le(proc.starved_ms, left > 0 ? left : 0);
    }
}
END_TEST

START_TEST(who_is_stopped_is_not_taken_for_asleep)
{
    begin(STOPS);
    await_word("it is stopped by a signal");
    ck_assert_int_eq(link_proc_shape(&proc), HF_PROCESS_STOPPED);
}
END_TEST

START_TEST(who_is_traced_is_known_by_its_tracer)
{
    begin(IS_TRACED);
    if (ptrace(PTRACE_SEIZE, child, NULL, NULL) != 0) {
        hft_skip("nothing may be traced here");
        return;
    }
    await_word("a debugger holds it");
    ck_assert_int_eq(proc.tracer, getpid());
    ck_assert_int_eq(link_proc_shape(&proc), HF_PROCESS_TRACED);
}
END_TEST

/* A pid that was given to somebody else. */
START_TEST(another_process_of_the_same_number_is_not_it)
{
    begin(SLEEPS);
    ck_assert(!link_proc_read(child, born + 1, true, now(), &proc));
    ck_assert_int_eq(proc.at, 0);
    ck_assert(link_proc_read(child, born, true, now(), &proc));
    ck_assert(link_proc_is(child, born));
    ck_assert(!link_proc_is(child, born + 1));
}
END_TEST

START_TEST(children_and_sockets_are_listed)
{
    struct hf_buf text = { 0 };
    char part[64];
    int pair[2];

    begin(SLEEPS);
    link_proc_children(getpid(), &text);
    (void)snprintf(part, sizeof part, "(pid %d, child of %d, state ", (int)child,
                   (int)getpid());
    ck_assert_msg(text.data != NULL && strstr(text.data, part) != NULL, "%s", text.data);
    hf_buf_clear(&text);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    link_proc_sockets(getpid(), &text);
    ck_assert_msg(text.data != NULL && strstr(text.data, "other") != NULL, "%s", text.data);
    hf_buf_done(&text);
}
END_TEST

static bool is_listed_as(void *part)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    link_proc_children(getpid(), &text);
    return text.data != NULL && strstr(text.data, part) != NULL;
}

/* It chooses its name, and could look like another process, or end the line. */
START_TEST(a_name_that_was_chosen_to_mislead_does_not)
{
    char part[80];

    begin(HAS_ODD_NAME);
    await_word("it sleeps");
    (void)snprintf(part, sizeof part, ")?R?1?(???x)?Z (pid %d, child of %d, state S)",
                   (int)child, (int)getpid());
    hft_wait_or_fail(is_listed_as, part, 10000, part);
}
END_TEST

START_TEST(whoever_is_below_is_found_and_who_is_dead_is_not)
{
    begin(SLEEPS);
    ck_assert_uint_eq(link_proc_find(child), born);
    ck_assert(link_proc_is_below(child, getpid()));
    ck_assert(link_proc_is_below(child, getppid()));
    ck_assert(!link_proc_is_below(child, child));
    ck_assert(!link_proc_is_below(getpid(), child));
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitid(P_PID, (id_t)child, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
    ck_assert_uint_eq(link_proc_find(child), 0); /* though it is not buried yet */
    end();
    ck_assert(!link_proc_is_below(0, getpid()));
}
END_TEST

/* Or one would have computed what another did before. */
START_TEST(what_was_read_of_another_process_is_not_compared)
{
    begin(COMPUTES);
    await_word("it computes without a pause");
    ck_assert(link_proc_read(getpid(), start_time(getpid()), true, now() + 1, &proc));
    ck_assert_int_eq(proc.cpu_percent, -1);
    ck_assert_int_eq(proc.starved_ms, 0);
    ck_assert(!proc.computes);
    end();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("proc");

    tcase_add_checked_fixture(t, NULL, end);
    tcase_add_test(t, who_sleeps_says_in_which_call);
    tcase_add_test(t, who_computes_uses_a_processor);
    tcase_add_test(t, who_waits_for_a_thread_that_computes_is_told_from_who_sleeps);
    tcase_add_test(t, who_computes_is_known_for_it_where_it_gets_no_processor);
    tcase_add_test(t, who_waits_for_itself_is_not_kept_waiting);
    tcase_add_test(t, who_is_stopped_is_not_taken_for_asleep);
    tcase_add_test(t, who_is_traced_is_known_by_its_tracer);
    tcase_add_test(t, another_process_of_the_same_number_is_not_it);
    tcase_add_test(t, children_and_sockets_are_listed);
    tcase_add_test(t, a_name_that_was_chosen_to_mislead_does_not);
    tcase_add_test(t, whoever_is_below_is_found_and_who_is_dead_is_not);
    tcase_add_test(t, what_was_read_of_another_process_is_not_compared);
    return run("link/proc", t);
}
