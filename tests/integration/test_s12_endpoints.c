/* Endpoints that refuse, hang or come back, and how hard they are tried: S11, S12, S14. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"
#include "support/client.h"
#include "support/cluster.h"
#include "support/port.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/ticker.h"

enum { ATTEMPT_MS = 2000, CONNECT_MS = 2000, BACKOFF_MS = 100 };

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client;

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
}

static void teardown(void)
{
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

static void expect_endpoint(const char *url)
{
    char now[64];

    hf_etcd_get_endpoint(client.etcd, now, sizeof now);
    ck_assert_str_eq(now, url + strlen("http://"));
}

static struct hf_etcd_stats stats(void)
{
    return hf_etcd_get_stats(client.etcd);
}

/* Reads, one after the other: when the last one succeeded, and that somebody always tries. */
struct chain {
    bool going;
    bool under_way;
    unsigned succeeded, failed;
    hf_ms succeeded_at;
};

static void read_next(struct chain *chain);

static void on_read(const struct hf_range_result *result, void *arg)
{
    struct chain *chain = arg;

    chain->under_way = false;
    if (result->result.err == HF_OK) {
        chain->succeeded++;
        chain->succeeded_at = hft_now();
    } else {
        chain->failed++;
    }
    if (chain->going)
        read_next(chain);
}

static void read_next(struct chain *chain)
{
    struct hf_range_request request = { .range.key = hf_bytes_of("k") };

    chain->under_way = true;
    ck_assert_int_eq(hf_etcd_range(client.etcd, &request, on_read, chain, NULL), HF_OK);
}

static bool is_idle(void *arg)
{
    return !((struct chain *)arg)->under_way;
}

static bool has_failed_often(void *arg)
{
    (void)arg;
    return stats().failures >= 3;
}

/* By letting go of what was held, as a network does, and by cutting it, as a firewall does. */
START_TEST(s12_a_healed_blackhole_is_left_within_2500ms)
{
    struct chain chain = { .going = true };
    struct hft_ticker ticker;
    unsigned before;
    hf_ms healed_at;

    hft_ticker_start(&ticker);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
    read_next(&chain);
    hft_client_until(&client, &chain.succeeded, 1, 10000, "a connection");
    hft_proxy_set_both(proxy, HFT_PROXY_HOLD);
    hft_loop_until(&client.loop, has_failed_often, NULL, 30000, "three attempts in vain");

    hft_ticker_mark(&ticker);
    before = chain.succeeded;
    healed_at = hft_now();
    if (_i == 0)
        hft_proxy_set_both(proxy, HFT_PROXY_PASS);
    else
        hft_proxy_heal(proxy);
    hft_client_until(&client, &chain.succeeded, before + 1, 30000, "an answer");
    ck_assert_int_le(chain.succeeded_at - healed_at,
                     CONNECT_MS + 500 + hft_ticker_stall(&ticker));
    chain.going = false;
    hft_loop_until(&client.loop, is_idle, &chain, 10000, "the last answer");
    hft_client_close(&client);
    hft_ticker_stop(&ticker);
}
END_TEST

START_TEST(s14_an_endpoint_that_refuses_is_left_for_the_next)
{
    struct hft_port nobody = { 0 };
    char dead[64];

    hft_port_take(&nobody);
    (void)snprintf(dead, sizeof dead, "http://127.0.0.1:%u", nobody.number);
    hft_client_open(&client, dead, server.endpoint, NULL);
    expect_endpoint(dead);
    hft_put(&client, "k", "v", HF_NO_LEASE); /* never sent to the first, so sent to the next */
    expect_endpoint(server.endpoint);
    ck_assert_uint_eq(stats().rotations, 1);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(hft_read(&client, "k").err, HF_OK);
    ck_assert_uint_eq(stats().rotations, stats().failures); /* and there it stays */
    hft_client_close(&client);
    hft_port_release(&nobody);
}
END_TEST

START_TEST(s14_an_endpoint_that_hangs_costs_one_attempt)
{
    struct hft_outcome outcome;
    struct hft_ticker ticker;
    hf_ms began_at;

    hft_ticker_start(&ticker);
    hft_proxy_set_both(proxy, HFT_PROXY_HOLD);
    hft_client_open(&client, hft_proxy_endpoint(proxy), server.endpoint, NULL);
    began_at = hft_now();
    outcome = hft_read(&client, "k");
    ck_assert_int_eq(outcome.err, HF_OK);
    /* As soon as anybody else is asked, there is an answer. */
    ck_assert_uint_eq(stats().calls, stats().failures + 1);
    ck_assert_uint_eq(stats().rotations, stats().failures);
    ck_assert_int_le(hft_now() - began_at,
                     2 * ATTEMPT_MS + BACKOFF_MS + 3 * hft_ticker_stall(&ticker));
    hft_client_close(&client);
    hft_ticker_stop(&ticker);
}
END_TEST

/* The member that the client uses now. */
static struct hft_etcd *current(struct hft_cluster *cluster)
{
    char now[64];

    hf_etcd_get_endpoint(client.etcd, now, sizeof now);
    for (int i = 0; i < HFT_CLUSTER_SIZE; i++) {
        if (strcmp(cluster->member[i].endpoint + strlen("http://"), now) == 0)
            return &cluster->member[i];
    }
    ck_abort_msg("%s is nobody's endpoint", now);
}

START_TEST(s14_killed_members_are_left_and_one_that_comes_back_serves_again)
{
    struct hft_cluster cluster;

    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, cluster.member[0].endpoint, cluster.member[1].endpoint,
                    cluster.member[2].endpoint, NULL);
    hft_put(&client, "k", "0", HF_NO_LEASE);
    for (int round = 0; round < 3; round++) {
        struct hft_etcd *used = current(&cluster);

        hft_etcd_kill(used);
        (void)hft_cluster_leader(&cluster);
        (void)hft_read_at_last(&client, "k");
        hft_put(&client, "k", "v", HF_NO_LEASE);
        ck_assert_ptr_ne(current(&cluster), used);
        hft_etcd_restart(used);
    }
    ck_assert_int_eq(hft_read_at_last(&client, "k").version, 4);
    hft_client_close(&client);
    hft_cluster_done(&cluster);
}
END_TEST

START_TEST(s14_clients_spread_over_the_endpoints_unless_told_otherwise)
{
    const char *endpoints[] = { hft_proxy_endpoint(proxy), server.endpoint };
    bool used[2] = { false, false };

    for (int i = 0; i < 64 && !(used[0] && used[1]); i++) {
        char now[64];

        hft_client_open_with(
            &client, &(struct hf_etcd_config){ .endpoints = endpoints, .endpoint_count = 2 });
        hf_etcd_get_endpoint(client.etcd, now, sizeof now);
        for (int j = 0; j < 2; j++)
            used[j] |= strcmp(now, endpoints[j] + strlen("http://")) == 0;
        hft_client_close(&client);
    }
    ck_assert(used[0] && used[1]);
}
END_TEST

/* Ten tokens a failure, one back a success, no retry at half of a hundred: five failures. */
START_TEST(s14_an_etcd_that_is_down_is_not_beaten)
{
    const unsigned calls = 60, free_retries = 5;
    struct hf_etcd_stats before, after;

    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    for (unsigned i = 0; i < calls; i++) {
        struct hft_outcome outcome = hft_read(&client, "k");

        ck_assert_int_eq(outcome.err, HF_EAGAIN);
        ck_assert(!outcome.maybe_applied);
    }
    after = stats();
    ck_assert_uint_le(after.calls, calls + free_retries);
    ck_assert_uint_eq(after.failures, after.calls);
    ck_assert_uint_le(after.retries, free_retries);
    ck_assert_uint_ge(after.budget_spent, calls - free_retries);

    /* First attempts are always made, so it is found as soon as it is back; and with every
     * success the budget grows again. */
    hft_proxy_door(proxy, HFT_PROXY_OPEN);
    for (unsigned i = 0; i < 110; i += hft_read(&client, "k").err == HF_OK)
        continue;
    before = stats();
    hft_proxy_cut(proxy);
    for (unsigned i = 0; i < 20; i++)
        ck_assert_int_eq(hft_read(&client, "k").err, HF_OK);
    after = stats();
    ck_assert_uint_eq(after.budget_spent, before.budget_spent);
    hft_client_close(&client);
}
END_TEST

static bool has_ipv6(void)
{
    struct sockaddr_in6 address = { .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback };
    HF_CLEANUP_FD int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

    return fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0;
}

START_TEST(endpoint_by_ipv6_address)
{
    char urls[192], endpoint[64];
    const char *const flags[] = { urls, NULL };
    struct hft_etcd both;

    if (!has_ipv6()) {
        (void)fprintf(stderr, "no IPv6 on this machine: not tested\n");
        return;
    }
    hft_etcd_init(&both, &(struct hft_etcd_options){ .no_fsync = true, .extra_flags = flags });
    (void)snprintf(endpoint, sizeof endpoint, "http://[::1]:%u", both.client.number);
    (void)snprintf(urls, sizeof urls, "--listen-client-urls=%s,%s", both.endpoint, endpoint);
    hft_etcd_run(&both);
    ck_assert(hft_etcd_wait_ready(&both));
    hft_client_open(&client, endpoint, NULL);
    hft_put(&client, "k", "v", HF_NO_LEASE);
    expect_endpoint(endpoint);
    hft_client_close(&client);
    hft_etcd_done(&both);
}
END_TEST

START_TEST(endpoint_by_name_and_a_name_that_does_not_exist)
{
    char named[64];

    (void)snprintf(named, sizeof named, "http://localhost:%u", server.client.number);
    hft_client_open(&client, named, NULL);
    hft_put(&client, "k", "v", HF_NO_LEASE);
    expect_endpoint(named);
    hft_client_close(&client);

    hft_client_open(&client, "http://nowhere.invalid:2379", named, NULL);
    ck_assert_int_eq(hft_read(&client, "k").err, HF_OK);
    expect_endpoint(named);
    hft_client_close(&client);
}
END_TEST

static const struct {
    const char *endpoints[2];
    size_t count;
    int err;
    const char *words;
} REFUSED[] = {
    { { NULL, NULL }, 0, HF_EINVAL, "no etcd endpoint" },
    { { "http://127.0.0.1:2379", "https://127.0.0.1:2379" }, 2, HF_EINVAL, "mix" },
    { { "ftp://127.0.0.1:2379", NULL }, 1, HF_EINVAL, "http or https" },
    { { "http://127.0.0.1:99999", NULL }, 1, HF_EINVAL, "1..65535" },
};

START_TEST(endpoint_that_makes_no_sense_is_refused_with_a_reason)
{
    struct hf_etcd_config cfg = { .endpoints = REFUSED[_i].endpoints,
                                  .endpoint_count = REFUSED[_i].count };
    struct hf_error err = { "" };
    struct hf_etcd *etcd = NULL;
    struct hft_loop loop;

    hft_loop_init(&loop);
    ck_assert_int_eq(hf_etcd_new(&loop.uv, &cfg, &etcd, &err), REFUSED[_i].err);
    ck_assert_msg(strstr(err.text, REFUSED[_i].words) != NULL, "%s", err.text);
    ck_assert_ptr_null(etcd);
    hft_loop_done(&loop);
}
END_TEST

int main(void)
{
    TCase *endpoints = tcase_create("endpoints");
    TCase *refused = tcase_create("refused");

    tcase_add_checked_fixture(endpoints, setup, teardown);
    tcase_set_timeout(endpoints, 90);
    tcase_add_loop_test(endpoints, s12_a_healed_blackhole_is_left_within_2500ms, 0, 2);
    tcase_add_test(endpoints, s14_an_endpoint_that_refuses_is_left_for_the_next);
    tcase_add_test(endpoints, s14_an_endpoint_that_hangs_costs_one_attempt);
    tcase_add_test(endpoints, s14_killed_members_are_left_and_one_that_comes_back_serves_again);
    tcase_add_test(endpoints, s14_clients_spread_over_the_endpoints_unless_told_otherwise);
    tcase_add_test(endpoints, s14_an_etcd_that_is_down_is_not_beaten);
    tcase_add_test(endpoints, endpoint_by_ipv6_address);
    tcase_add_test(endpoints, endpoint_by_name_and_a_name_that_does_not_exist);
    tcase_add_loop_test(refused, endpoint_that_makes_no_sense_is_refused_with_a_reason, 0,
                        (int)(sizeof REFUSED / sizeof REFUSED[0]));
    return hft_suite_run("etcd/endpoints", endpoints, refused, NULL);
}
