/* Connections that carry nothing: they are watched over without etcd taking offence. S11. */
#include <check.h>

#include "support/client.h"
#include "support/etcd.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/ticker.h"

enum { PING_MS = 10000, PING_TIMEOUT_MS = 3000 };

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client; /* through the proxy */
static struct hft_renewals renewals;

/* A stream on which nothing is said. */
static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
    hft_renewals_start(&client, &renewals, hft_grant(&client, 600));
    ck_assert_int_eq(hft_renew(&client, &renewals, 30000).err, HF_OK);
}

static void teardown(void)
{
    hft_renewals_stop(&renewals);
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

/* A machine that stood still for as long as a ping may take has lost the connection by itself.
 */
static bool has_first_connection(void *ticker)
{
    return hft_ticker_stall(ticker) >= PING_TIMEOUT_MS / 2 ||
           (hft_proxy_stats(proxy).accepted == 1 && hft_proxy_stats(proxy).open == 1 &&
            hf_etcd_get_stats(client.etcd).rotations == 0);
}

/* Pings oftener than every 5 s, or without a stream, make etcd hang up at the third. */
START_TEST(s11_an_idle_stream_is_pinged_and_never_hung_up_on)
{
    uint64_t before = hft_proxy_stats(proxy).read[HFT_PROXY_UP];
    struct hft_ticker ticker;

    hft_ticker_start(&ticker);
    hft_loop_hold(&client.loop, has_first_connection, &ticker, 4 * PING_MS + 1000,
                  "one connection for all the time");
    ck_assert_uint_gt(hft_proxy_stats(proxy).read[HFT_PROXY_UP], before); /* the pings */
    ck_assert_int_eq(hft_renew(&client, &renewals, 30000).ttl_s, 600);
    ck_assert(has_first_connection(&ticker));
    hft_ticker_stop(&ticker);
}
END_TEST

static bool has_left(void *arg)
{
    (void)arg;
    return hf_etcd_get_stats(client.etcd).rotations > 0;
}

START_TEST(s11_a_blackhole_is_found_on_an_idle_stream_within_13s)
{
    struct hft_ticker ticker;
    hf_ms began_at;

    hft_ticker_start(&ticker);
    hft_proxy_set_both(proxy, HFT_PROXY_HOLD);
    began_at = hft_now();
    hft_loop_until(&client.loop, has_left, NULL, 60000, "the stream to be given up");
    ck_assert_int_le(hft_now() - began_at,
                     PING_MS + PING_TIMEOUT_MS + 500 + hft_ticker_stall(&ticker));
    hft_proxy_heal(proxy);
    ck_assert_int_eq(hft_renew(&client, &renewals, 30000).ttl_s, 600);
    hft_ticker_stop(&ticker);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("pings");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, s11_an_idle_stream_is_pinged_and_never_hung_up_on);
    tcase_add_test(t, s11_a_blackhole_is_found_on_an_idle_stream_within_13s);
    return hft_suite_run("etcd/pings", t, NULL);
}
