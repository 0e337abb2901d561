#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/log.h"
#include "support/suite.h"

#define LINE_BYTES 4096

static int reader = -1;
static int writer = -1;

/* Logs go into a pipe, which is read back without waiting. */
static void open_log(enum hf_log_level level, enum hf_log_format format)
{
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    reader = fds[0];
    writer = fds[1];
    ck_assert_int_eq(fcntl(reader, F_SETFL, O_NONBLOCK), 0);
    hf_log_setup(writer, level, format);
    hf_log_identity(NULL, 0);
}

/* One read is one write, as long as there is only one line in the pipe. "" when there is none.
 */
static const char *read_line(void)
{
    static char line[2 * LINE_BYTES];
    ssize_t n = read(reader, line, sizeof line - 1);

    if (n < 0)
        ck_assert_int_eq(errno, EAGAIN);
    line[n > 0 ? n : 0] = '\0';
    return line;
}

/* What follows the time stamp of a logfmt line. */
static const char *read_rest(void)
{
    const char *line = read_line();
    const char *space = strchr(line, ' ');

    ck_assert_msg(strncmp(line, "time=", 5) == 0 && space != NULL, "no time in: %s", line);
    return space + 1;
}

/* A datagram socket keeps what one write(2) wrote apart from the next. */
START_TEST(a_line_is_one_write)
{
    static char text[2 * LINE_BYTES];
    char line[2 * LINE_BYTES];
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fds), 0);
    hf_log_setup(fds[0], HF_LOG_LEVEL_INFO, (enum hf_log_format)_i);
    for (size_t len = 0; len < sizeof text - 1; len += 500) {
        ssize_t n;

        memset(text, '"', len);
        HF_LOG_INFO("e", HF_STR("v", text));
        n = read(fds[1], line, sizeof line);
        ck_assert_int_gt(n, (ssize_t)strlen("time="));
        ck_assert_ptr_eq(memchr(line, '\n', (size_t)n), line + n - 1);
        ck_assert_int_eq(read(fds[1], line, sizeof line), -1);
    }
}
END_TEST

static const char *log_limited(struct hf_log_limit *limit, int n)
{
    hf_log_write(HF_LOG_LEVEL_INFO, limit, "e", &HF_INT("n", n), 1);
    return read_line();
}

/* Time is moved by moving the start of the window back. */
START_TEST(a_limit_passes_its_burst_and_counts_the_rest)
{
    struct hf_log_limit limit = { .interval = 3600000, .burst = 2 };

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    ck_assert_ptr_nonnull(strstr(log_limited(&limit, 0), "event=e n=0\n"));
    ck_assert_ptr_nonnull(strstr(log_limited(&limit, 1), "event=e n=1\n"));
    for (int i = 0; i < 3; i++)
        ck_assert_str_eq(log_limited(&limit, 2), "");

    limit.window_start -= limit.interval - 60000; /* not over yet */
    ck_assert_str_eq(log_limited(&limit, 3), "");

    limit.window_start -= 60000;
    ck_assert_ptr_nonnull(strstr(log_limited(&limit, 4), "event=e n=4 dropped=4\n"));
    ck_assert_ptr_nonnull(strstr(log_limited(&limit, 5), "event=e n=5\n"));
    ck_assert_str_eq(log_limited(&limit, 6), "");
}
END_TEST

START_TEST(dropped_lines_are_counted_even_in_a_cut_line)
{
    struct hf_log_limit limit = { .interval = 3600000, .burst = 1, .dropped = UINT32_MAX };
    static char text[2 * LINE_BYTES];
    const char *line;

    memset(text, '"', sizeof text - 1);
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_JSON);
    hf_log_write(HF_LOG_LEVEL_INFO, &limit, "e", &HF_STR("v", text), 1);
    line = read_line();
    ck_assert_uint_le(strlen(line), LINE_BYTES);
    ck_assert_ptr_nonnull(strstr(line, "\",\"dropped\":4294967295,\"cut\":true}\n"));
}
END_TEST

START_TEST(the_count_of_dropped_lines_does_not_wrap)
{
    struct hf_log_limit limit = { .interval = 3600000, .burst = 0, .dropped = UINT32_MAX };

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    ck_assert_str_eq(log_limited(&limit, 1), "");
    ck_assert_uint_eq(limit.dropped, UINT32_MAX);
}
END_TEST

START_TEST(a_line_below_the_level_does_not_use_up_the_limit)
{
    struct hf_log_limit limit = { .interval = 3600000, .burst = 1 };

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    hf_log_write(HF_LOG_LEVEL_DEBUG, &limit, "e", NULL, 0);
    ck_assert_ptr_nonnull(strstr(log_limited(&limit, 1), "n=1\n"));
}
END_TEST

/* A full pipe that does not block: the line is lost, nobody waits, and the next one says so. */
START_TEST(a_line_that_cannot_be_written_is_counted)
{
    static char sewage[1 << 20];

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    ck_assert_int_eq(fcntl(writer, F_SETFL, O_NONBLOCK), 0);
    while (write(writer, sewage, sizeof sewage) > 0)
        continue;
    HF_LOG_INFO("lost", HF_INT("n", 1));
    HF_LOG_INFO("lost", HF_INT("n", 2));
    while (read(reader, sewage, sizeof sewage) > 0)
        continue;

    HF_LOG_INFO("kept", HF_INT("n", 3));
    ck_assert_str_eq(read_rest(), "level=info event=kept n=3 dropped=2\n");
    HF_LOG_INFO("kept", HF_INT("n", 4));
    ck_assert_str_eq(read_rest(), "level=info event=kept n=4\n");
}
END_TEST

/* A file at its size limit takes a part of a line. The next one begins on a line of its own. */
START_TEST(a_torn_line_does_not_swallow_the_next)
{
    struct rlimit usual;
    struct rlimit small;
    char text[1000] = "";
    const char *next;
    int fd = memfd_create("log", MFD_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_ptr_ne(signal(SIGXFSZ, SIG_IGN), SIG_ERR);
    hf_log_setup(fd, HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &usual), 0);
    small = usual;
    small.rlim_cur = 40;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &small), 0);
    HF_LOG_INFO("torn", HF_INT("n", 1));
    HF_LOG_INFO("lost", HF_INT("n", 2));
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &usual), 0);
    HF_LOG_INFO("kept", HF_INT("n", 3));
    HF_LOG_INFO("kept", HF_INT("n", 4));

    ck_assert_int_gt(pread(fd, text, sizeof text - 1, 0), 40);
    ck_assert_int_eq(strncmp(text + 40, "\ntime=", 6), 0);
    next = strchr(text + 41, '\n');
    ck_assert_ptr_nonnull(strstr(text + 41, " event=kept n=3 dropped=2\n"));
    ck_assert_int_eq(strncmp(next, "\ntime=", 6), 0);
    ck_assert_ptr_nonnull(strstr(next, " event=kept n=4\n"));
}
END_TEST

START_TEST(a_closed_descriptor_does_no_harm)
{
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    ck_assert_int_eq(close(writer), 0);
    errno = ERANGE;
    HF_LOG_INFO("lost", HF_INT("n", 1));
    ck_assert_int_eq(errno, ERANGE);
}
END_TEST

static atomic_int alarms;

static void on_alarm(int signo)
{
    (void)signo;
    atomic_fetch_add(&alarms, 1);
}

static bool is_full(void)
{
    struct pollfd fd = { .fd = writer, .events = POLLOUT };

    return poll(&fd, 1, 0) == 0;
}

/* Reads all that comes, but only after the writer has blocked and was interrupted. */
static void *drain(void *arg)
{
    size_t *newlines = arg;
    static char chunk[1000];
    ssize_t n;

    while (!is_full())
        (void)sched_yield();
    for (int seen = atomic_load(&alarms); atomic_load(&alarms) < seen + 5;)
        (void)sched_yield();
    while ((n = read(reader, chunk, sizeof chunk)) > 0) {
        for (ssize_t i = 0; i < n; i++)
            *newlines += chunk[i] == '\n' ? 1 : 0;
    }
    return NULL;
}

START_TEST(an_interrupted_write_is_continued)
{
    enum { LINES = 200 };
    struct sigaction action = { .sa_handler = on_alarm };
    const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    static char text[2000];
    size_t newlines = 0;
    sigset_t blocked;
    pthread_t thread;

    memset(text, 'x', sizeof text - 1);
    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    ck_assert_int_eq(fcntl(reader, F_SETFL, 0), 0);
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);

    /* The reader must not catch the signal: the writer is to be interrupted. */
    ck_assert_int_eq(sigemptyset(&blocked), 0);
    ck_assert_int_eq(sigaddset(&blocked, SIGALRM), 0);
    ck_assert_int_eq(pthread_sigmask(SIG_BLOCK, &blocked, NULL), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, drain, &newlines), 0);
    ck_assert_int_eq(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
    for (int i = 0; i < LINES; i++)
        HF_LOG_INFO("e", HF_STR("v", text));
    ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
    ck_assert_int_eq(close(writer), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(newlines, LINES);
}
END_TEST

enum { THREADS = 4, LINES_EACH = 300 };

static struct hf_log_limit shared_limit = { .interval = 3600000, .burst = 100 };

static void *log_many(void *arg)
{
    const char *name = arg;

    for (int i = 0; i < LINES_EACH; i++) {
        HF_LOG_INFO("work", HF_STR("thread", name), HF_INT("n", i), HF_STR("end", "of line"));
        hf_log_write(HF_LOG_LEVEL_INFO, &shared_limit, "limited", NULL, 0);
        if (i % 50 == 0)
            hf_log_identity(&HF_STR("by", name), 1);
    }
    return NULL;
}

/* Every line arrives whole and exactly once, and a limit holds across threads. */
START_TEST(lines_of_threads_do_not_mix)
{
    static const char *const NAMES[THREADS] = { "t0", "t1", "t2", "t3" };
    int seen[THREADS] = { 0 };
    int limited = 0;
    pthread_t threads[THREADS];
    char line[LINE_BYTES];
    FILE *file;

    open_log(HF_LOG_LEVEL_INFO, HF_LOG_LOGFMT);
    ck_assert_int_eq(fcntl(reader, F_SETFL, 0), 0);
    ck_assert_int_ge(fcntl(writer, F_SETPIPE_SZ, 1 << 20),
                     1 << 19); /* nobody reads meanwhile */
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, log_many, (void *)NAMES[i]), 0);
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
    ck_assert_int_eq(close(writer), 0);

    file = fdopen(reader, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        const char *name = strstr(line, " thread=t");

        ck_assert_msg(strncmp(line, "time=2", 6) == 0, "torn: %s", line);
        if (name == NULL) {
            ck_assert_msg(strstr(line, "event=limited") != NULL, "torn: %s", line);
            limited++;
            continue;
        }
        ck_assert_msg(strcmp(strstr(line, " end="), " end=\"of line\"\n") == 0, "torn: %s",
                      line);
        seen[name[9] - '0']++;
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(seen[i], LINES_EACH);
    ck_assert_int_eq(limited, 100);
    ck_assert_uint_eq(shared_limit.dropped, THREADS * LINES_EACH - 100);
    ck_assert_int_eq(fclose(file), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sink");

    tcase_add_loop_test(t, a_line_is_one_write, HF_LOG_LOGFMT, HF_LOG_JSON + 1);
    tcase_add_test(t, a_limit_passes_its_burst_and_counts_the_rest);
    tcase_add_test(t, dropped_lines_are_counted_even_in_a_cut_line);
    tcase_add_test(t, the_count_of_dropped_lines_does_not_wrap);
    tcase_add_test(t, a_line_below_the_level_does_not_use_up_the_limit);
    tcase_add_test(t, a_line_that_cannot_be_written_is_counted);
    tcase_add_test(t, a_torn_line_does_not_swallow_the_next);
    tcase_add_test(t, a_closed_descriptor_does_no_harm);
    tcase_add_test(t, an_interrupted_write_is_continued);
    tcase_add_test(t, lines_of_threads_do_not_mix);
    tcase_set_timeout(t, 60);
    return hft_suite_run("base/log, its sink", t, NULL);
}
