/* The proxy of the harness, between plain sockets of the test's own. */
#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/port.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/wait.h"

#define PATIENCE_MS 120000
#define SILENCE_MS  60 /* how long "nothing comes" is watched */

/* A server, the proxy before it, and one connection through it. */
struct bed {
    struct hft_port port;
    int listen_fd;
    struct hft_proxy *proxy;
    int client;
    int server;
};

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

static int dial(struct bed *bed)
{
    struct sockaddr_in addr = loopback(hft_proxy_port(bed->proxy));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    if (connect(fd, (struct sockaddr *)&addr, sizeof addr) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static void setup(struct bed *bed)
{
    *bed = (struct bed){ .listen_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) };
    hft_port_take(&bed->port);
    struct sockaddr_in addr = loopback(bed->port.number);
    ck_assert_int_eq(bind(bed->listen_fd, (struct sockaddr *)&addr, sizeof addr), 0);
    ck_assert_int_eq(listen(bed->listen_fd, 8), 0);
    bed->proxy = hft_proxy_new(bed->port.number);
    bed->client = dial(bed);
    ck_assert_int_ge(bed->client, 0);
    bed->server = accept4(bed->listen_fd, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(bed->server, 0);
}

static void teardown(struct bed *bed)
{
    (void)close(bed->client);
    (void)close(bed->server);
    hft_proxy_free(bed->proxy);
    (void)close(bed->listen_fd);
    hft_port_release(&bed->port);
}

static bool is_readable(int fd, hf_ms timeout)
{
    return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, (int)timeout) > 0;
}

static void say(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (int)strlen(text));
}

static void hear(int fd, const char *text)
{
    char got[64] = { 0 };

    ck_assert(is_readable(fd, PATIENCE_MS));
    ck_assert_int_eq(recv(fd, got, strlen(text), MSG_WAITALL), (int)strlen(text));
    ck_assert_str_eq(got, text);
}

static void hear_end(int fd)
{
    char byte;

    ck_assert(is_readable(fd, PATIENCE_MS));
    ck_assert_int_eq(recv(fd, &byte, 1, 0), 0);
}

static void hear_reset(int fd)
{
    char byte;

    ck_assert(is_readable(fd, PATIENCE_MS));
    ck_assert_int_eq(recv(fd, &byte, 1, 0), -1);
    ck_assert_int_eq(errno, ECONNRESET);
}

START_TEST(passes_both_ways_and_counts)
{
    struct bed bed;

    setup(&bed);
    say(bed.client, "ask");
    hear(bed.server, "ask");
    say(bed.server, "answer");
    hear(bed.client, "answer");
    struct hft_proxy_stats stats = hft_proxy_stats(bed.proxy);
    ck_assert_uint_eq(stats.accepted, 1);
    ck_assert_uint_eq(stats.open, 1);
    ck_assert_uint_eq(stats.read[HFT_PROXY_UP], 3);
    ck_assert_uint_eq(stats.forwarded[HFT_PROXY_DOWN], 6);
    teardown(&bed);
}
END_TEST

START_TEST(end_of_one_half_is_passed_on_and_the_other_half_still_works)
{
    struct bed bed;

    setup(&bed);
    say(bed.client, "last");
    ck_assert_int_eq(shutdown(bed.client, SHUT_WR), 0);
    hear(bed.server, "last");
    hear_end(bed.server);
    say(bed.server, "reply");
    hear(bed.client, "reply");
    teardown(&bed);
}
END_TEST

START_TEST(hold_keeps_the_connection_and_loses_nothing)
{
    struct bed bed;

    setup(&bed);
    hft_proxy_set_both(bed.proxy, HFT_PROXY_HOLD);
    say(bed.client, "ask");
    say(bed.server, "tell");
    ck_assert(!is_readable(bed.server, SILENCE_MS));
    ck_assert(!is_readable(bed.client, 0));

    int second = dial(&bed); /* accepted, and silent */
    ck_assert_int_ge(second, 0);
    say(second, "hello");
    ck_assert(!is_readable(second, SILENCE_MS));

    hft_proxy_set_both(bed.proxy, HFT_PROXY_PASS);
    hear(bed.server, "ask");
    hear(bed.client, "tell");
    (void)close(second);
    teardown(&bed);
}
END_TEST

START_TEST(hold_hides_that_the_server_died)
{
    struct bed bed;

    setup(&bed);
    hft_proxy_set_both(bed.proxy, HFT_PROXY_HOLD);
    (void)shutdown(bed.server, SHUT_RDWR);
    ck_assert(!is_readable(bed.client, SILENCE_MS));
    hft_proxy_set_both(bed.proxy, HFT_PROXY_PASS);
    hear_end(bed.client);
    teardown(&bed);
}
END_TEST

START_TEST(drop_swallows_replies_only)
{
    struct bed bed;

    setup(&bed);
    hft_proxy_set(bed.proxy, HFT_PROXY_DOWN, HFT_PROXY_DROP);
    say(bed.client, "ask");
    hear(bed.server, "ask");
    say(bed.server, "lost");
    ck_assert(!is_readable(bed.client, SILENCE_MS));
    ck_assert_uint_eq(hft_proxy_stats(bed.proxy).read[HFT_PROXY_DOWN], 4);
    hft_proxy_set(bed.proxy, HFT_PROXY_DOWN, HFT_PROXY_PASS);
    say(bed.server, "kept");
    hear(bed.client, "kept");
    teardown(&bed);
}
END_TEST

START_TEST(delay_holds_each_chunk_and_keeps_their_order)
{
    struct bed bed;

    setup(&bed);
    hft_proxy_delay(bed.proxy, HFT_PROXY_DOWN, 200);
    hf_ms began = hft_now();
    say(bed.server, "one ");
    while (hft_proxy_stats(bed.proxy).read[HFT_PROXY_DOWN] < 4)
        ck_assert_int_lt(hft_now() - began, PATIENCE_MS);
    hft_proxy_delay(bed.proxy, HFT_PROXY_DOWN, 0);
    say(bed.server, "two");
    hear(bed.client, "one two");
    ck_assert_int_ge(hft_now() - began, 199); /* the clock counts whole milliseconds */
    say(bed.client, "undelayed");
    hear(bed.server, "undelayed");
    teardown(&bed);
}
END_TEST

START_TEST(cut_resets_both_sides_and_new_connections_work)
{
    struct bed bed;

    setup(&bed);
    hft_proxy_cut(bed.proxy);
    ck_assert_uint_eq(hft_proxy_stats(bed.proxy).open, 0);
    hear_reset(bed.client);
    hear_reset(bed.server);
    (void)close(bed.client);
    (void)close(bed.server);

    bed.client = dial(&bed);
    bed.server = accept4(bed.listen_fd, NULL, NULL, SOCK_CLOEXEC);
    say(bed.client, "again");
    hear(bed.server, "again");
    teardown(&bed);
}
END_TEST

START_TEST(cut_after_lets_exactly_that_much_pass)
{
    struct bed bed;

    setup(&bed);
    hft_proxy_cut_after(bed.proxy, HFT_PROXY_DOWN, 5);
    say(bed.server, "123");
    hear(bed.client, "123");
    say(bed.server, "456");
    hear_reset(bed.server);
    ck_assert_uint_eq(hft_proxy_stats(bed.proxy).forwarded[HFT_PROXY_DOWN], 5);
    teardown(&bed);
}
END_TEST

START_TEST(a_refusing_door_turns_new_ones_away_and_opens_again)
{
    struct bed bed;

    setup(&bed);
    hft_proxy_door(bed.proxy, HFT_PROXY_REFUSE);
    ck_assert_int_lt(dial(&bed), 0);
    ck_assert_int_eq(errno, ECONNREFUSED);
    say(bed.client, "still here");
    hear(bed.server, "still here");

    hft_proxy_door(bed.proxy, HFT_PROXY_OPEN);
    int second = dial(&bed);
    ck_assert_int_ge(second, 0);
    (void)close(second);
    teardown(&bed);
}
END_TEST

/* More than the queue of the proxy and the sockets hold: nothing may be lost or reordered. */
START_TEST(a_slow_reader_gets_every_byte)
{
    enum { TOTAL = 32 << 20, STEP = 1 << 16 };
    static uint8_t chunk[STEP];
    struct bed bed;
    size_t sent = 0;
    size_t got = 0;
    bool right = true;

    setup(&bed);
    while (got < TOTAL) {
        struct pollfd fds[] = {
            { .fd = bed.server, .events = sent < TOTAL ? POLLOUT : 0 },
            { .fd = bed.client, .events = POLLIN },
        };
        ck_assert_int_gt(poll(fds, 2, PATIENCE_MS), 0);
        if (fds[0].revents & POLLOUT) {
            for (size_t i = 0; i < STEP; i++)
                chunk[i] = (uint8_t)((sent + i) * 2654435761U >> 24);
            ssize_t n = send(bed.server, chunk, STEP, MSG_NOSIGNAL | MSG_DONTWAIT);
            sent += n > 0 ? (size_t)n : 0;
            continue; /* fill everything first */
        }
        ssize_t n = recv(bed.client, chunk, STEP, MSG_DONTWAIT);
        for (ssize_t i = 0; i < n; i++, got++) /* an assertion per byte would take a minute */
            right &= chunk[i] == (uint8_t)(got * 2654435761U >> 24);
    }
    ck_assert(right);
    teardown(&bed);
}
END_TEST

START_TEST(a_dead_upstream_is_a_reset_for_the_client)
{
    struct bed bed;

    setup(&bed);
    (void)close(bed.listen_fd);
    bed.listen_fd = -1;
    int second = dial(&bed);
    ck_assert_int_ge(second, 0);
    hear_reset(second);
    (void)close(second);
    teardown(&bed);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("proxy");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, passes_both_ways_and_counts);
    tcase_add_test(t, end_of_one_half_is_passed_on_and_the_other_half_still_works);
    tcase_add_test(t, hold_keeps_the_connection_and_loses_nothing);
    tcase_add_test(t, hold_hides_that_the_server_died);
    tcase_add_test(t, drop_swallows_replies_only);
    tcase_add_test(t, delay_holds_each_chunk_and_keeps_their_order);
    tcase_add_test(t, cut_resets_both_sides_and_new_connections_work);
    tcase_add_test(t, cut_after_lets_exactly_that_much_pass);
    tcase_add_test(t, a_refusing_door_turns_new_ones_away_and_opens_again);
    tcase_add_test(t, a_slow_reader_gets_every_byte);
    tcase_add_test(t, a_dead_upstream_is_a_reset_for_the_client);
    return hft_suite_run("support/proxy", t, NULL);
}
