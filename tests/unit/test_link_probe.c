/* Asking programs from outside: addresses, and what counts as an answer. */
#include "agentd/link/probe.h"
#include "agentd/link/stray.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "unit/suite.h"

static struct hf_error err;
static struct link_probe_target target;

static const struct {
    const char *text;
    enum link_probe_kind kind;
    const char *host, *path;
} ADDRESSES[] = {
    { "tcp://127.0.0.1:80", LINK_PROBE_TCP, "127.0.0.1:80", "" },
    { "http://localhost:8080", LINK_PROBE_HTTP, "localhost:8080", "/" },
    { "http://[::1]:8080/health?full=1", LINK_PROBE_HTTP, "[::1]:8080", "/health?full=1" },
    { "grpc://10.0.0.1:1", LINK_PROBE_GRPC, "10.0.0.1:1", "" },
    { "grpc://10.0.0.1:1/a.b", LINK_PROBE_GRPC, "10.0.0.1:1", "a.b" },
};

START_TEST(an_address_is_taken_apart)
{
    ck_assert_int_eq(link_probe_parse(ADDRESSES[_i].text, &target, &err), HF_OK);
    ck_assert_int_eq(target.kind, ADDRESSES[_i].kind);
    ck_assert_str_eq(target.host, ADDRESSES[_i].host);
    ck_assert_str_eq(target.path, ADDRESSES[_i].path);
}
END_TEST

static const char *const MISTAKES[] = {
    "",
    "127.0.0.1:80",
    "https://127.0.0.1:80/",
    "tcp://127.0.0.1",
    "tcp://127.0.0.1:0",
    "tcp://127.0.0.1:65536",
    "tcp://127.0.0.1:80/path",
    "tcp://example.org:80",
    "http://[::1:80/",
    "http://[]:80/",
    "http://:80/",
    "http://127.0.0.1:80/a b",
    "http://127.0.0.1:80/\r\nX: y",
    "grpc://127.0.0.1:80/"
    "a234567890b234567890c234567890d234567890e234567890"
    "a234567890b234567890c234567890d234567890e2345678901",
};

START_TEST(what_cannot_be_asked_is_refused)
{
    err.text[0] = '\0';
    ck_assert_int_eq(link_probe_parse(MISTAKES[_i], &target, &err), HF_EINVAL);
    ck_assert_str_ne(err.text, "");
}
END_TEST

/* gRPC. */

START_TEST(a_health_check_is_one_call_in_plain_http2)
{
    char out[600];
    size_t len;

    ck_assert_int_eq(link_probe_parse("grpc://127.0.0.1:1/svc", &target, &err), HF_OK);
    len = link_probe_put_health(&target, out, sizeof out);
    ck_assert_uint_gt(len, 24);
    ck_assert_int_eq(memcmp(out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24), 0);
    ck_assert_int_eq(memcmp(out + len - 10, "\0\0\0\0\5\n\3svc", 10), 0);
    ck_assert_uint_eq(link_probe_put_health(&target, out, 50), 0); /* there is no room */
}
END_TEST

#define FRAME(len, type, flags) "\0\0" len type flags "\0\0\0\1"
#define SETTINGS                "\0\0\0\4\0\0\0\0\0"

static const struct {
    const char *bytes;
    size_t len;
    int want;
} ANSWERS[] = {
#define ANSWER(text, want)                                                                     \
    {                                                                                          \
        text, sizeof(text) - 1, want                                                           \
    }
    ANSWER("", 0),
    ANSWER(SETTINGS, 0),
    ANSWER(SETTINGS FRAME("\1", "\1", "\4") "\x88", 0),
    ANSWER(SETTINGS FRAME("\1", "\1", "\4") "\x88" FRAME("\7", "\0", "\0") "\0\0\0\0\2\10\1",
           1),
    ANSWER(FRAME("\7", "\0", "\0") "\0\0\0\0\2\10\2", -1), /* NOT_SERVING */
    ANSWER(FRAME("\5", "\0", "\0") "\0\0\0\0\0", -1),      /* UNKNOWN */
    ANSWER(FRAME("\7", "\0", "\0") "\0\0\0\0\2\10", 0),    /* a byte is missing */
    ANSWER(FRAME("\10", "\0", "\10") "\0\0\0\0\0\2\10\1", 1),
    ANSWER(FRAME("\1", "\1", "\5") "\x88", -1), /* nothing but trailers */
    ANSWER(FRAME("\1", "\1", "\4") "\x88" FRAME("\1", "\1", "\5") "\x88", -1),
    ANSWER(FRAME("\4", "\3", "\0") "\0\0\0\1", -1),
    ANSWER("\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\0", -1),
    ANSWER("HTTP/1.1 400 Bad Request\r\n\r\n", -1),
#undef ANSWER
};

START_TEST(what_a_health_service_says)
{
    ck_assert_int_eq(link_probe_read_health(ANSWERS[_i].bytes, ANSWERS[_i].len),
                     ANSWERS[_i].want);
}
END_TEST

/* On a loop. */

static uv_loop_t loop;
static struct link_probe *probe;
static int goods, bads;
static char last_why[200];
enum { HOGS = 3 };
static pid_t server, hogs[HOGS];
static bool needs_time; /* the server, of a processor, before it answers */

static void on_probed(bool good, const char *why, void *arg)
{
    (void)arg;
    *(good ? &goods : &bads) += 1;
    (void)snprintf(last_why, sizeof last_why, "%s", why);
    if (goods + bads < 3)
        return;
    link_probe_close(probe);
    probe = NULL;
}

/* Three times. */
static void ask(struct link_probe_target what, hf_ms timeout)
{
    struct link_probe_config cfg = {
        .target = what, .every = 20, .timeout = timeout, .server = server, .fn = on_probed
    };

    goods = bads = 0;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    probe = link_probe_new(&loop, &cfg);
    ck_assert_ptr_nonnull(probe);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_int_eq(goods + bads, 3);
}

/* A server that answers everybody the same, in a process of its own. */
static pid_t serve(const char *answer, char ret_address[64], const char *scheme)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr = { htonl(INADDR_LOOPBACK) } };
    socklen_t len = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pid_t pid;

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(fd, 16), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    (void)snprintf(ret_address, 64, "%s://127.0.0.1:%d/x", scheme, ntohs(address.sin_port));
    if (strcmp(scheme, "tcp") == 0)
        *strrchr(ret_address, '/') = '\0';
    pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0 && needs_time)
        (void)nice(10);
    while (pid == 0) {
        char request[1000];
        int peer = accept(fd, NULL, NULL);

        for (clock_t end = clock() + CLOCKS_PER_SEC / 200; needs_time && clock() < end;)
            ;
        if (peer >= 0 && answer != NULL && read(peer, request, sizeof request) > 0)
            (void)!write(peer, answer, strlen(answer));
        if (answer != NULL)
            (void)close(peer);
    }
    (void)close(fd);
    return pid;
}

static const struct {
    const char *scheme, *answer;
    bool good;
    const char *why;
} SERVERS[] = {
    { "tcp", "", true, "it serves" },
    { "tcp", NULL, true, "it serves" },
    { "http", "HTTP/1.1 200 OK\r\n\r\nfine", true, "it serves" },
    { "http", "HTTP/1.0 302 Found\r\n\r\n", true, "it serves" },
    { "http", "HTTP/1.1 503 No\r\n\r\n", false, "it answers that it does not serve" },
    { "http", "SSH-2.0-x\r\n", false, "it answers that it does not serve" },
    { "http", "HTTP/1.\n 200 OK\r\n\r\n", false, "it answers that it does not serve" },
    { "http", "HTTP/1.1 2\n", false, "it answers that it does not serve" },
    { "http", "", false, "it hung up without an answer" },
    { "http", NULL, false, "it took too long" },
    { "grpc", "HTTP/1.1 200 OK\r\n\r\n", false, "it answers that it does not serve" },
};

START_TEST(what_counts_as_an_answer)
{
    char address[64];
    pid_t pid = serve(SERVERS[_i].answer, address, SERVERS[_i].scheme);

    ck_assert_int_eq(link_probe_parse(address, &target, &err), HF_OK);
    ask(target, SERVERS[_i].answer == NULL && !SERVERS[_i].good ? 100 : 10000);
    (void)kill(pid, SIGKILL);
    ck_assert_int_eq(SERVERS[_i].good ? goods : bads, 3);
    ck_assert_str_eq(last_why, SERVERS[_i].why);
}
END_TEST

START_TEST(nobody_there_is_a_no)
{
    ck_assert_int_eq(link_probe_parse("tcp://127.0.0.1:1", &target, &err), HF_OK);
    ask(target, 5000);
    ck_assert_int_eq(bads, 3);
}
END_TEST

static const struct {
    const char *script; /* NULL: there is no such program */
    bool good;
    const char *why;
} PROGRAMS[] = {
    { "exit 0", true, "it serves" },
    { "exit 3", false, "its program says that it does not serve" },
    { "kill -9 $$", false, "its program was killed" },
    { "exec sleep 1000", false, "it took too long" },
    { "[ -z \"$HOLDFAST_PASSWORD_FILE\" ]", true, "it serves" },
    { NULL, false, "its program cannot be started" },
};

START_TEST(what_a_program_says)
{
    const char *words[] = { PROGRAMS[_i].script != NULL ? "sh" : "/no/such/program", "-c",
                            PROGRAMS[_i].script };
    struct link_probe_target what = { .kind = LINK_PROBE_EXEC,
                                      .command = { .items = words, .count = 3 },
                                      .uid = (uid_t)-1 };

    (void)setenv("HOLDFAST_PASSWORD_FILE", "secret", 1);
    ask(what, strcmp(PROGRAMS[_i].why, "it took too long") == 0 ? 100 : 10000);
    ck_assert_int_eq(PROGRAMS[_i].good ? goods : bads, 3);
    ck_assert_str_eq(last_why, PROGRAMS[_i].why);
}
END_TEST

/* On one processor with some who take all of it. Linux is fair to sessions: beside one who has
 * a session of its own they need one each. */
static void begin_hogs(int count, bool own_sessions)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(0, &one);
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0);
    for (int i = 0; i < count; i++) {
        hogs[i] = fork();
        ck_assert_int_ge(hogs[i], 0);
        if (hogs[i] == 0)
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* whatever becomes of the test */
        if (hogs[i] == 0 && own_sessions)
            (void)setsid();
        while (hogs[i] == 0)
            ;
    }
}

static void end(void)
{
    for (int i = 0; i < HOGS; i++) {
        if (hogs[i] > 0)
            (void)kill(hogs[i], SIGKILL);
    }
    if (server != 0)
        (void)kill(server, SIGKILL);
}

/* It needs less of a processor than it has time, but others are before it. */
START_TEST(a_program_that_gets_no_processor_is_waited_for)
{
    const char *words[] = { "nice", "-n", "19",
                            "sh",   "-c", "i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done" };
    struct link_probe_target what = { .kind = LINK_PROBE_EXEC,
                                      .command = { .items = words, .count = COUNT(words) },
                                      .uid = (uid_t)-1 };

    begin_hogs(HOGS, true);
    ask(what, 50);
    ck_assert_msg(goods == 3, "%s", last_why);
}
END_TEST

START_TEST(a_server_that_gets_no_processor_is_waited_for)
{
    char address[64];

    begin_hogs(1, false);
    needs_time = true;
    server = serve("HTTP/1.1 200 OK\r\n\r\n", address, "http");
    ck_assert_int_eq(link_probe_parse(address, &target, &err), HF_OK);
    ask(target, 20);
    ck_assert_msg(goods == 3, "%s", last_why);
}
END_TEST

/* For longer than an answer may take. */
static void stand_still(uv_prepare_t *prepare)
{
    (void)poll(NULL, 0, 60);
    if (probe == NULL)
        uv_close((uv_handle_t *)prepare, NULL);
}

/* What came while we stood still came in time. */
START_TEST(who_answered_while_we_stood_still_is_heard)
{
    struct link_probe_config cfg = { .every = 20, .timeout = 40, .fn = on_probed };
    uv_prepare_t prepare;
    char address[64];

    server = serve("HTTP/1.1 200 OK\r\n\r\n", address, "http");
    ck_assert_int_eq(link_probe_parse(address, &cfg.target, &err), HF_OK);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    probe = link_probe_new(&loop, &cfg);
    (void)uv_prepare_init(&loop, &prepare);
    (void)uv_prepare_start(&prepare, stand_still);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_msg(goods == 3, "%s", last_why);
}
END_TEST

static void close_it(uv_timer_t *timer)
{
    link_probe_close(probe);
    uv_close((uv_handle_t *)timer, NULL);
}

/* In the middle of an attempt: nothing is told any more, and nothing is left. */
START_TEST(it_may_be_closed_at_any_time)
{
    const char *words[] = { "sleep", "1000" };
    struct link_probe_config cfg = { .every = 5, .timeout = 60000, .fn = on_probed };
    uv_timer_t timer;
    char address[64];
    pid_t pid = serve(NULL, address, "http");

    ck_assert_int_eq(link_probe_parse(address, &cfg.target, &err), HF_OK);
    if (_i % 2 == 1)
        cfg.target = (struct link_probe_target){ .kind = LINK_PROBE_EXEC,
                                                 .command = { .items = words, .count = 2 },
                                                 .uid = (uid_t)-1 };
    goods = bads = 0;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    probe = link_probe_new(&loop, &cfg);
    (void)uv_timer_init(&loop, &timer);
    (void)uv_timer_start(&timer, close_it, (uint64_t)_i, 0);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_int_eq(goods + bads, 0);
    (void)kill(pid, SIGKILL);
}
END_TEST

/* Ends when what it starts is in a session of its own, and has let its output go. */
#define LEAVE(what) "x=$(setsid sh -c '" what "' 2>/dev/null &)"

/* In a session of its own, below another such, in the background, when it took too long; and
 * what it waits for, though that has another parent by now. */
static const struct {
    const char *script;
    hf_ms timeout;
    bool good;
} LEAVERS[] = {
    { LEAVE("exec sleep 7000 >&2"), 10000, true },
    { LEAVE("x=$(setsid sleep 7000 >&2 &); exec sleep 7000 >&2"), 10000, true },
    { "sleep 7000 & exit 0", 10000, true },
    { "(setsid sleep 7000 &); exec sleep 7000", 100, false },
    { "test \"$( (setsid sh -c 'sleep 0.1; echo done; exec sleep 0.1' &) )\" = done", 10000,
      true },
};

/* All of them are ours to reap. */
static bool is_nobody_left(void)
{
    pid_t pid;

    do
        pid = waitpid(-1, NULL, WNOHANG);
    while (pid > 0);
    return pid < 0 && errno == ECHILD;
}

START_TEST(nothing_outlives_a_program)
{
    const char *words[] = { "sh", "-c", LEAVERS[_i].script };
    struct link_probe_target what = { .kind = LINK_PROBE_EXEC,
                                      .command = { .items = words, .count = 3 },
                                      .uid = (uid_t)-1 };
    int looks = 0;

    link_stray_begin();
    ask(what, LEAVERS[_i].timeout);
    ck_assert_int_eq(LEAVERS[_i].good ? goods : bads, 3);
    while (!is_nobody_left()) { /* SIGKILL takes a moment */
        ck_assert_int_lt(++looks, 1000);
        (void)usleep(10000);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("probe"), *starved = tcase_create("starved");

    tcase_set_timeout(t, 90);
    tcase_set_timeout(starved, 90);
    tcase_add_checked_fixture(t, NULL, end);
    tcase_add_checked_fixture(starved, NULL, end);
    tcase_add_loop_test(t, an_address_is_taken_apart, 0, COUNT(ADDRESSES));
    tcase_add_loop_test(t, what_cannot_be_asked_is_refused, 0, COUNT(MISTAKES));
    tcase_add_test(t, a_health_check_is_one_call_in_plain_http2);
    tcase_add_loop_test(t, what_a_health_service_says, 0, COUNT(ANSWERS));
    tcase_add_loop_test(t, what_counts_as_an_answer, 0, COUNT(SERVERS));
    tcase_add_test(t, nobody_there_is_a_no);
    tcase_add_loop_test(t, what_a_program_says, 0, COUNT(PROGRAMS));
    tcase_add_loop_test(t, nothing_outlives_a_program, 0, sizeof LEAVERS / sizeof LEAVERS[0]);
    tcase_add_test(t, who_answered_while_we_stood_still_is_heard);
    tcase_add_loop_test(t, it_may_be_closed_at_any_time, 0, 20);
    tcase_add_test(starved, a_program_that_gets_no_processor_is_waited_for);
    tcase_add_test(starved, a_server_that_gets_no_processor_is_waited_for);
    return hft_suite_run("link/probe", t, starved, NULL);
}
