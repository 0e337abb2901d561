#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "io/httpd.h"
#include "support/loop.h"
#include "support/suite.h"
#include "support/tempdir.h"

enum { STEP_MS = 20000, BODY_MAX = 1000 };

static struct hft_loop loop;
static struct hf_httpd *httpd;
static unsigned told, ended, closed;
static struct hf_httpd_request *kept; /* of a path that begins with /later or /stream */
static struct hf_httpd_peer peer;
static int peer_rc;

/* The server. */

static void on_request(struct hf_httpd_request *request, void *arg)
{
    struct hf_bytes body = hf_httpd_get_body(request);
    const char *path = hf_httpd_get_path(request), *name = hf_httpd_get_query(request, "name");
    char text[200];

    (void)arg;
    told++;
    peer_rc = hf_httpd_get_peer(request, &peer);
    if (strncmp(path, "/later", 6) == 0 || strncmp(path, "/stream", 7) == 0) {
        kept = request;
        if (path[1] == 's')
            hf_httpd_stream(request, "text/event-stream");
        return;
    }
    (void)snprintf(text, sizeof text, "%s %s name=%s body=%.*s", hf_httpd_get_method(request),
                   path, name != NULL ? name : "", (int)body.len, (const char *)body.data);
    ck_assert_int_eq(hf_httpd_add_header(request, "X-Extra", "yes"), HF_OK);
    hf_httpd_reply(request, 201, "text/plain",
                   (struct hf_bytes){ .data = text, .len = strlen(text) });
}

static void on_end(struct hf_httpd_request *request, void *arg)
{
    (void)arg;
    if (request == kept)
        kept = NULL;
    ended++;
}

static void begin(const char *listen, hf_ms timeout)
{
    struct hf_error err = { "" };
    struct hf_httpd_config cfg = { .listen = listen,
                                   .body_max = BODY_MAX,
                                   .stream_max = BODY_MAX,
                                   .timeout = timeout,
                                   .on_request = on_request,
                                   .on_end = on_end };

    told = ended = closed = 0;
    kept = NULL;
    ck_assert_msg(hf_httpd_new(&loop.uv, &cfg, &httpd, &err) == HF_OK, "%s", err.text);
}

static void on_closed(void *arg)
{
    (void)arg;
    closed++;
}

static bool is_closed(void *arg)
{
    (void)arg;
    return closed == 1;
}

static void end(void)
{
    hf_httpd_close(httpd, on_closed, NULL);
    hft_loop_until(&loop, is_closed, NULL, STEP_MS, "the server to close");
    ck_assert_uint_eq(told, ended);
}

static void setup(void)
{
    hft_loop_init(&loop);
}

static void teardown(void)
{
    hft_loop_done(&loop);
}

/* A client, on the same thread. */

struct client {
    int fd;
    char got[20000];
    size_t len;
    bool over;
    const char *wanted;
};

static void connect_to(struct client *client, const struct sockaddr *address, socklen_t len)
{
    memset(client, 0, sizeof *client);
    client->fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(client->fd, 0);
    ck_assert_int_eq(connect(client->fd, address, len), 0);
    ck_assert_int_eq(fcntl(client->fd, F_SETFL, O_NONBLOCK), 0);
}

static void connect_tcp(struct client *client)
{
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(hf_httpd_get_port(httpd)),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };

    connect_to(client, (struct sockaddr *)&address, sizeof address);
}

static void say(struct client *client, const char *text)
{
    ck_assert_int_eq(send(client->fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

static void take(struct client *client)
{
    ssize_t n;

    while ((n = recv(client->fd, client->got + client->len,
                     sizeof client->got - 1 - client->len, 0)) > 0)
        client->len += (size_t)n;
    if (n == 0 || (n < 0 && errno != EAGAIN))
        client->over = true;
}

static bool is_over(void *arg)
{
    struct client *client = arg;

    take(client);
    return client->over;
}

static bool has_got(void *arg)
{
    struct client *client = arg;

    take(client);
    return strstr(client->got, client->wanted) != NULL;
}

static void until_over(struct client *client)
{
    hft_loop_until(&loop, is_over, client, STEP_MS, "the end of the connection");
    (void)close(client->fd);
}

static void until_got(struct client *client, const char *wanted)
{
    client->wanted = wanted;
    hft_loop_until(&loop, has_got, client, STEP_MS, wanted);
}

static bool is_kept(void *arg)
{
    (void)arg;
    return kept != NULL;
}

static bool has_ended(void *arg)
{
    return ended == *(unsigned *)arg;
}

START_TEST(a_request_is_told_whole_and_answered)
{
    struct client client;

    begin("127.0.0.1:0", 0);
    connect_tcp(&client);
    say(&client, "POST /a/b?name=x%20y HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n"
                 "Connection: close\r\n\r\nhe");
    hft_loop_hold(&loop, has_ended, &(unsigned){ 0 }, 50, "half a body is no request");
    say(&client, "llo");
    until_over(&client);
    ck_assert_ptr_nonnull(strstr(client.got, "HTTP/1.1 201 "));
    ck_assert_ptr_nonnull(strstr(client.got, "X-Extra: yes\r\n"));
    ck_assert_ptr_nonnull(strstr(client.got, "POST /a/b name=x y body=hello"));
    ck_assert_int_eq(peer_rc, HF_ENOENT);
    end();
}
END_TEST

START_TEST(a_connection_serves_one_request_after_the_other)
{
    struct client client;

    begin("127.0.0.1:0", 0);
    connect_tcp(&client);
    say(&client, "GET /one HTTP/1.1\r\nHost: h\r\n\r\n");
    until_got(&client, "GET /one name= body=");
    say(&client, "GET /two HTTP/1.1\r\nHost: h\r\n\r\n");
    until_got(&client, "GET /two name= body=");
    end();
    until_over(&client);
}
END_TEST

START_TEST(a_reply_may_come_much_later)
{
    struct client client;

    begin("127.0.0.1:0", 300);
    connect_tcp(&client);
    say(&client, "GET /later HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    hft_loop_until(&loop, is_kept, NULL, STEP_MS, "the request");
    hft_loop_hold(&loop, is_kept, NULL, 1500, "the owner may take its time");
    hf_httpd_reply(kept, 200, "text/plain", (struct hf_bytes){ .data = "done", .len = 4 });
    until_over(&client);
    ck_assert_ptr_nonnull(strstr(client.got, "\r\n\r\ndone"));
    end();
}
END_TEST

/* The caller's descriptor is not needed for it any more. */
START_TEST(a_file_is_sent_as_far_as_was_asked)
{
    struct client client;
    FILE *file = tmpfile();

    ck_assert_ptr_nonnull(file);
    for (int i = 0; i < 2000; i++)
        ck_assert_int_gt(fprintf(file, "%07d\n", i), 0);
    ck_assert_int_eq(fflush(file), 0);
    begin("127.0.0.1:0", 0);
    connect_tcp(&client);
    say(&client, "GET /later HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    hft_loop_until(&loop, is_kept, NULL, STEP_MS, "the request");
    hf_httpd_reply_file(kept, 200, "application/octet-stream", fileno(file), 15992);
    ck_assert_int_eq(fclose(file), 0);
    until_over(&client);
    ck_assert_ptr_nonnull(strstr(client.got, "Content-Length: 15992\r\n"));
    ck_assert_ptr_nonnull(strstr(client.got, "\r\n\r\n0000000\n0000001\n"));
    ck_assert_str_eq(client.got + client.len - 16, "0001997\n0001998\n");
    end();
}
END_TEST

/* One that is shorter than it should be ends the connection before its time. */
START_TEST(a_file_that_became_shorter_is_no_whole_reply)
{
    struct client client;
    FILE *file = tmpfile();

    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fputs("short", file) >= 0 && fflush(file) == 0, 1);
    begin("127.0.0.1:0", 0);
    connect_tcp(&client);
    say(&client, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    hft_loop_until(&loop, is_kept, NULL, STEP_MS, "the request");
    hf_httpd_reply_file(kept, 200, "application/octet-stream", fileno(file), 100);
    ck_assert_int_eq(fclose(file), 0);
    until_over(&client);
    ck_assert_ptr_nonnull(strstr(client.got, "Content-Length: 100\r\n"));
    ck_assert_str_eq(client.got + client.len - 5, "short");
    end();
}
END_TEST

START_TEST(a_stream_goes_on_until_its_end)
{
    struct client client;

    begin("127.0.0.1:0", 0);
    connect_tcp(&client);
    say(&client, "GET /stream HTTP/1.0\r\n\r\n");
    hft_loop_until(&loop, is_kept, NULL, STEP_MS, "the request");
    for (int i = 0; i < 5; i++) {
        char piece[32];

        (void)snprintf(piece, sizeof piece, "data: %d\n\n", i);
        ck_assert_int_eq(
            hf_httpd_send(kept, (struct hf_bytes){ .data = piece, .len = strlen(piece) }),
            HF_OK);
        until_got(&client, piece);
    }
    hf_httpd_end_stream(kept);
    until_over(&client);
    end();
}
END_TEST

START_TEST(a_piece_that_is_too_long_ends_its_stream)
{
    struct client client;
    char much[BODY_MAX] = { 0 };

    begin("127.0.0.1:0", 0);
    connect_tcp(&client);
    say(&client, "GET /stream HTTP/1.0\r\n\r\n");
    until_got(&client, "text/event-stream");
    ck_assert_int_eq(
        hf_httpd_send(kept, (struct hf_bytes){ .data = much, .len = BODY_MAX + 1 }), HF_ELIMIT);
    until_over(&client);
    end();
}
END_TEST

START_TEST(who_never_reads_its_stream_is_cut_off)
{
    struct client client;
    char much[BODY_MAX / 8] = { 0 };
    hf_ms deadline = hft_now() + STEP_MS;
    int rc = HF_OK;

    begin("127.0.0.1:0", 0);
    connect_tcp(&client);
    say(&client, "GET /stream HTTP/1.0\r\n\r\n");
    hft_loop_until(&loop, is_kept, NULL, STEP_MS, "the request");
    while (rc == HF_OK && hft_now() < deadline) { /* until the kernel takes no more of it */
        rc = hf_httpd_send(kept, (struct hf_bytes){ .data = much, .len = sizeof much });
        (void)uv_run(&loop.uv, UV_RUN_NOWAIT);
    }
    ck_assert_int_eq(rc, HF_ELIMIT);
    hft_loop_until(&loop, has_ended, &(unsigned){ 1 }, STEP_MS, "its end");
    (void)close(client.fd);
    end();
}
END_TEST

START_TEST(a_body_that_is_too_long_is_refused_before_it_is_sent)
{
    struct client client;

    begin("127.0.0.1:0", 0);
    connect_tcp(&client);
    say(&client, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1001\r\n\r\n");
    until_over(&client);
    ck_assert_ptr_nonnull(strstr(client.got, "HTTP/1.1 413 "));
    ck_assert_msg(strstr(client.got,
                         "{\"error\":{\"code\":\"too_large\",\"message\":\"a body may "
                         "have at most 1000 bytes\",") != NULL,
                  "%s", client.got);
    ck_assert_uint_eq(told, 0);
    end();
}
END_TEST

#define CHUNKED "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

/* Sends the head of a request and `bytes` of a body whose length nobody knows. */
static void begin_chunked(struct client *client, size_t bytes)
{
    char chunk[400];

    connect_tcp(client);
    say(client, CHUNKED);
    (void)snprintf(chunk, sizeof chunk, "fa\r\n%0250d\r\n", 7);
    for (size_t sent = 0; sent < bytes; sent += 250)
        say(client, chunk);
}

static void expect_too_large(struct client *client)
{
    until_over(client);
    ck_assert_msg(strstr(client->got, "HTTP/1.1 413 ") != NULL, "%s", client->got);
    ck_assert_ptr_nonnull(strstr(client->got, "Connection: close\r\n"));
    ck_assert_msg(strstr(client->got,
                         "{\"error\":{\"code\":\"too_large\",\"message\":\"a body may "
                         "have at most 1000 bytes\",\"next\":\"send less\"}}") != NULL,
                  "%s", client->got);
}

/* Just one byte, or a hundred times more than fits into anything that is kept of it. */
START_TEST(a_body_that_grows_too_long_is_refused_when_it_ends)
{
    struct client client;
    char text[100];

    begin("127.0.0.1:0", 0);
    begin_chunked(&client, BODY_MAX);
    say(&client, "1\r\nx\r\n0\r\n\r\n");
    expect_too_large(&client);
    begin_chunked(&client, (size_t)100 * BODY_MAX);
    say(&client, "0\r\n\r\n");
    expect_too_large(&client);
    ck_assert_uint_eq(told, 0);

    begin_chunked(&client, BODY_MAX);
    say(&client, "0\r\n\r\n");
    (void)snprintf(text, sizeof text, "body=%050d", 0);
    until_got(&client, text);
    ck_assert_uint_eq(told, 1);
    (void)close(client.fd);
    end();
}
END_TEST

static bool sends_until_over(void *arg)
{
    struct client *client = arg;

    (void)!send(client->fd, "1\r\nx\r\n", 6, MSG_NOSIGNAL);
    return is_over(client);
}

START_TEST(a_body_that_grows_for_ever_is_not_read_for_ever)
{
    struct client client;

    begin("127.0.0.1:0", 300);
    begin_chunked(&client, (size_t)2 * BODY_MAX);
    hft_loop_until(&loop, sends_until_over, &client, STEP_MS, "the end of the connection");
    (void)close(client.fd);
    ck_assert_uint_eq(told, 0);
    end();
}
END_TEST

/* Four bodies of the greatest length are all that is kept at once; what goes makes room. */
START_TEST(bodies_are_bounded_together)
{
    static struct client holding[4], further, chunked, next;
    char body[BODY_MAX], text[BODY_MAX + 200];

    begin("127.0.0.1:0", 0);
    memset(body, 'x', sizeof body);
    (void)snprintf(text, sizeof text,
                   "POST /later HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%.*s",
                   BODY_MAX, BODY_MAX, body);
    for (unsigned i = 0; i < 4; i++) {
        kept = NULL;
        connect_tcp(&holding[i]);
        say(&holding[i], text);
        hft_loop_until(&loop, is_kept, NULL, STEP_MS, "a request that is not answered");
    }
    connect_tcp(&further);
    say(&further, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\n");
    until_over(&further);
    ck_assert_ptr_nonnull(strstr(further.got, "HTTP/1.1 503 "));
    ck_assert_ptr_nonnull(strstr(further.got, "Retry-After: 1\r\n"));
    ck_assert_msg(strstr(further.got, "{\"error\":{\"code\":\"unavailable\",") != NULL, "%s",
                  further.got);
    connect_tcp(&chunked);
    say(&chunked, CHUNKED "1\r\nx\r\n0\r\n\r\n");
    until_over(&chunked);
    ck_assert_ptr_nonnull(strstr(chunked.got, "HTTP/1.1 503 "));
    ck_assert_ptr_nonnull(strstr(chunked.got, "Retry-After: 1\r\n"));
    ck_assert_uint_eq(told, 4);
    hf_httpd_reply(kept, 200, NULL, (struct hf_bytes){ 0 });
    until_got(&holding[3], "HTTP/1.1 200 ");
    connect_tcp(&next);
    say(&next, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n\r\nx");
    until_got(&next, "body=x");
    end();
}
END_TEST

START_TEST(headers_without_end_are_refused)
{
    struct client client;
    char line[1100];

    begin("127.0.0.1:0", 0);
    connect_tcp(&client);
    say(&client, "GET / HTTP/1.1\r\n");
    (void)snprintf(line, sizeof line, "X: %01000d\r\n", 7);
    for (int i = 0; i < 60; i++)
        (void)!send(client.fd, line, strlen(line), MSG_NOSIGNAL);
    until_over(&client);
    ck_assert_uint_eq(told, 0);
    end();
}
END_TEST

static bool trickles_until_over(void *arg)
{
    struct client *client = arg;

    (void)!send(client->fd, "x", 1, MSG_NOSIGNAL);
    return is_over(client);
}

START_TEST(a_client_that_trickles_is_not_waited_for)
{
    struct client client;

    begin("127.0.0.1:0", 300);
    connect_tcp(&client);
    say(&client, "GET /");
    hft_loop_until(&loop, trickles_until_over, &client, STEP_MS, "its end");
    (void)close(client.fd);
    ck_assert_uint_eq(told, 0);
    end();
}
END_TEST

/* The listening socket is not watched while the server is full. */
START_TEST(whoever_waits_for_a_place_gets_that_of_one_who_goes)
{
    enum { PLACES = 64 };
    static struct client sitting[PLACES], waiting;

    begin("127.0.0.1:0", 60000);
    for (size_t i = 0; i < PLACES; i++) {
        connect_tcp(&sitting[i]);
        say(&sitting[i], "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
        until_got(&sitting[i], "GET / name=");
    }
    connect_tcp(&waiting);
    say(&waiting, "GET /next HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    hft_loop_hold(&loop, has_ended, &(unsigned){ PLACES }, 50, "nobody makes room");
    (void)close(sitting[0].fd);
    until_over(&waiting);
    ck_assert_ptr_nonnull(strstr(waiting.got, "GET /next name="));
    for (size_t i = 1; i < PLACES; i++)
        (void)close(sitting[i].fd);
    end();
}
END_TEST

static const char *const PATIENT[] = { "/later", "/stream" };

static void ask_on(struct client *client, const char *listen, const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char text[100];

    begin(listen, 0);
    strcpy(address.sun_path, listen + strlen("unix:"));
    connect_to(client, (struct sockaddr *)&address, sizeof address);
    (void)snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", path);
    say(client, text);
    hft_loop_until(&loop, is_kept, NULL, STEP_MS, "the request");
}

/* And whoever has only said all that it wants to say is still answered. */
START_TEST(whoever_goes_while_it_waits_is_noticed)
{
    struct hft_tempdir dir;
    struct client client;
    char listen[HFT_PATH_MAX + 32];

    hft_tempdir_init(&dir);
    (void)snprintf(listen, sizeof listen, "unix:%s/s", dir.path);
    ask_on(&client, listen, PATIENT[_i]);
    ck_assert_int_eq(shutdown(client.fd, SHUT_WR), 0);
    hft_loop_hold(&loop, is_kept, NULL, 1200, "it listens, and is still there");
    (void)close(client.fd);
    hft_loop_until(&loop, has_ended, &(unsigned){ 1 }, STEP_MS, "its end");
    end();
    hft_tempdir_done(&dir);
}
END_TEST

START_TEST(whoever_waits_for_a_reply_is_let_go_at_the_end)
{
    struct client waits, streams;

    begin("127.0.0.1:0", 0);
    connect_tcp(&streams);
    say(&streams, "GET /stream HTTP/1.1\r\nHost: h\r\n\r\n");
    until_got(&streams, "text/event-stream");
    kept = NULL;
    connect_tcp(&waits);
    say(&waits, "GET /later HTTP/1.1\r\nHost: h\r\n\r\n");
    hft_loop_until(&loop, is_kept, NULL, STEP_MS, "the request");
    end();
    ck_assert_uint_eq(told, 2);
    until_over(&waits);
    until_over(&streams);
}
END_TEST

/* Asks again and again before it is answered, on several connections, and throws the answers
 * away: there is always more for the server to do. */
static void flood(const struct client *clients, size_t count, hf_ms until)
{
    static const char ASK[] = "GET /x HTTP/1.1\r\nHost: h\r\n\r\n";
    static char asks[(sizeof ASK - 1) * 1000], answers[1 << 16];
    size_t sent[8] = { 0 };

    for (size_t i = 0; i < sizeof asks; i++)
        asks[i] = ASK[i % (sizeof ASK - 1)];
    while (hft_now() < until) {
        for (size_t i = 0; i < count; i++) {
            ssize_t n = send(clients[i].fd, asks + sent[i], sizeof asks - sent[i],
                             MSG_NOSIGNAL | MSG_DONTWAIT);

            sent[i] = n > 0 ? (sent[i] + (size_t)n) % sizeof asks : sent[i];
            while (recv(clients[i].fd, answers, sizeof answers, MSG_DONTWAIT) > 0)
                ;
        }
    }
}

static bool has_exited(void *arg)
{
    int status;

    return waitpid(*(pid_t *)arg, &status, WNOHANG) != 0;
}

struct watch {
    hf_ms last, longest;
};

static void on_tick(uv_timer_t *timer)
{
    struct watch *watch = timer->data;
    hf_ms pause = hft_now() - watch->last;

    watch->longest = pause > watch->longest ? pause : watch->longest;
    watch->last += pause;
}

/* Whatever else lives on the loop, such as a lease to be renewed, has its turn. */
START_TEST(whoever_never_pauses_does_not_have_the_loop_for_itself)
{
    enum { FLOOD_MS = 5000, TICK_MS = 10, LONG_MS = 4000 }; /* not the whole of it */
    struct client clients[4];
    struct watch watch = { .longest = 0 };
    uv_timer_t timer;
    pid_t pid;

    begin("127.0.0.1:0", 0);
    for (size_t i = 0; i < sizeof clients / sizeof clients[0]; i++)
        connect_tcp(&clients[i]);
    ck_assert_int_eq(uv_timer_init(&loop.uv, &timer), 0);
    timer.data = &watch;
    watch.last = hft_now();
    ck_assert_int_eq(uv_timer_start(&timer, on_tick, TICK_MS, TICK_MS), 0);
    pid = fork();
    if (pid == 0) {
        flood(clients, sizeof clients / sizeof clients[0], hft_now() + FLOOD_MS);
        _exit(0);
    }
    hft_loop_until(&loop, has_exited, &pid, STEP_MS, "the end of the flood");
    on_tick(&timer);
    printf("%u requests, and a pause of %lld ms\n", told, (long long)watch.longest);
    ck_assert_uint_gt(told, 1000);
    ck_assert_int_lt(watch.longest, LONG_MS);
    for (size_t i = 0; i < sizeof clients / sizeof clients[0]; i++)
        (void)close(clients[i].fd);
    uv_close((uv_handle_t *)&timer, NULL);
    end();
}
END_TEST

START_TEST(a_unix_socket_knows_who_asks_and_lets_nobody_else)
{
    struct hft_tempdir dir;
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    char listen[HFT_PATH_MAX + 32];
    struct client client;
    struct stat status;

    hft_tempdir_init(&dir);
    (void)snprintf(listen, sizeof listen, "unix:%s/s", dir.path);
    strcpy(address.sun_path, listen + 5);
    begin(listen, 0);
    ck_assert_int_eq(stat(address.sun_path, &status), 0);
    ck_assert_uint_eq(status.st_mode & 0777, 0600);
    connect_to(&client, (struct sockaddr *)&address, sizeof address);
    say(&client, "GET /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    until_over(&client);
    ck_assert_ptr_nonnull(strstr(client.got, "HTTP/1.1 201 "));
    ck_assert_int_eq(peer_rc, HF_OK);
    ck_assert_int_eq(peer.pid, getpid());
    ck_assert_uint_eq(peer.uid, getuid());
    end();
    ck_assert_int_ne(stat(address.sun_path, &status), 0);
    hft_tempdir_done(&dir);
}
END_TEST

START_TEST(a_socket_that_is_left_over_is_replaced_and_a_live_one_is_not)
{
    struct hft_tempdir dir;
    struct hf_httpd *second;
    struct hf_error err = { "" };
    char listen[HFT_PATH_MAX + 32];
    int left;
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    hft_tempdir_init(&dir);
    (void)snprintf(listen, sizeof listen, "unix:%s/s", dir.path);
    strcpy(address.sun_path, listen + 5);
    left = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(left, (struct sockaddr *)&address, sizeof address), 0);
    (void)close(left);
    begin(listen, 0);
    ck_assert_int_eq(
        hf_httpd_new(&loop.uv,
                     &(struct hf_httpd_config){ .listen = listen, .on_request = on_request },
                     &second, &err),
        HF_EEXIST);
    end();
    hft_tempdir_done(&dir);
}
END_TEST

static const struct {
    const char *listen;
    int want;
} WRONG[] = {
    { "127.0.0.1", HF_EINVAL },
    { "127.0.0.1:x", HF_EINVAL },
    { "127.0.0.1:65536", HF_EINVAL },
    { "example.com:80", HF_EINVAL },
    { "unix:", HF_EINVAL },
    { "unix:/nonexistent/dir/s", HF_EIO },
    { "[::1:80", HF_EINVAL },
    { ":80", HF_EINVAL },
    { "", HF_EINVAL },
    { "[", HF_EINVAL },
};

START_TEST(an_address_that_is_none_is_said_to_be_none)
{
    struct hf_error err = { "" };

    ck_assert_int_eq(hf_httpd_new(&loop.uv,
                                  &(struct hf_httpd_config){ .listen = WRONG[_i].listen,
                                                             .on_request = on_request },
                                  &httpd, &err),
                     WRONG[_i].want);
    ck_assert_str_ne(err.text, "");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("httpd");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_request_is_told_whole_and_answered);
    tcase_add_test(t, a_connection_serves_one_request_after_the_other);
    tcase_add_test(t, a_reply_may_come_much_later);
    tcase_add_test(t, a_file_is_sent_as_far_as_was_asked);
    tcase_add_test(t, a_file_that_became_shorter_is_no_whole_reply);
    tcase_add_test(t, a_stream_goes_on_until_its_end);
    tcase_add_test(t, a_piece_that_is_too_long_ends_its_stream);
    tcase_add_test(t, who_never_reads_its_stream_is_cut_off);
    tcase_add_test(t, a_body_that_is_too_long_is_refused_before_it_is_sent);
    tcase_add_test(t, a_body_that_grows_too_long_is_refused_when_it_ends);
    tcase_add_test(t, a_body_that_grows_for_ever_is_not_read_for_ever);
    tcase_add_test(t, bodies_are_bounded_together);
    tcase_add_test(t, headers_without_end_are_refused);
    tcase_add_test(t, a_client_that_trickles_is_not_waited_for);
    tcase_add_test(t, whoever_waits_for_a_place_gets_that_of_one_who_goes);
    tcase_add_loop_test(t, whoever_goes_while_it_waits_is_noticed, 0,
                        sizeof PATIENT / sizeof PATIENT[0]);
    tcase_add_test(t, whoever_waits_for_a_reply_is_let_go_at_the_end);
    tcase_add_test(t, whoever_never_pauses_does_not_have_the_loop_for_itself);
    tcase_add_test(t, a_unix_socket_knows_who_asks_and_lets_nobody_else);
    tcase_add_test(t, a_socket_that_is_left_over_is_replaced_and_a_live_one_is_not);
    tcase_add_loop_test(t, an_address_that_is_none_is_said_to_be_none, 0,
                        sizeof WRONG / sizeof WRONG[0]);
    return hft_suite_run("io/httpd", t, NULL);
}
