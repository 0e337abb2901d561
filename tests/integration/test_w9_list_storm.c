/* W9: megabytes of lists must not hold up events and renewals. */
#include <check.h>
#include <stdlib.h>

#include "support/client.h"
#include "support/etcd.h"
#include "support/follower.h"
#include "support/suite.h"
#include "support/ticker.h"
#include "support/writer.h"

enum {
    KEYS = 100000,
    TTL_S = 15,
    /* An attempt to renew is given up after T/6: whatever is later than that costs a lease. */
    PATIENCE_MS = TTL_S * 1000 / 6,
};

static unsigned storm_synced;

static void on_storm(const struct hf_mirror_event *event, void *arg)
{
    (void)arg;
    storm_synced += event->kind == HF_MIRROR_SYNCED;
}

/* A mirror that does nothing but list 100,000 keys, one list after the other. */
static struct hf_mirror *begin_storm(struct hft_client *client)
{
    struct hf_key_range range = { .key = hf_bytes_of("storm/"), .prefix = true };
    struct hf_mirror *mirror;

    ck_assert_int_eq(hf_mirror_new(client->etcd,
                                   &(struct hf_mirror_config){ .ranges = &range,
                                                               .range_count = 1,
                                                               .on_event = on_storm,
                                                               .resync_every = 1 },
                                   &mirror, NULL),
                     HF_OK);
    hft_client_until(client, &storm_synced, 1, 60000, "the storm to begin");
    return mirror;
}

START_TEST(w9_lists_of_100000_keys_without_end_delay_neither_events_nor_renewals)
{
    struct hft_etcd etcd;
    struct hft_client client;
    struct hft_ticker ticker;
    struct hft_follower follower = { 0 };
    struct hft_renewals renewals;
    struct hft_writer writer;
    struct hf_mirror *storm;
    const char *endpoint;
    hf_ms slowest = 0;
    unsigned renewed = 0;

    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    endpoint = etcd.endpoint;
    hft_ticker_start(&ticker);
    hft_client_open_with(&client, &(struct hf_etcd_config){ .endpoints = &endpoint,
                                                            .endpoint_count = 1,
                                                            .separate_channels = true });
    hft_write_many(&client, "storm/", KEYS, 100);
    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 10000);
    hft_renewals_start(&client, &renewals, hft_grant(&client, TTL_S));
    storm = begin_storm(&client);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { endpoint },
                                                  .prefix = "w/",
                                                  .keys = 100,
                                                  .delete_percent = 10,
                                                  .pause = 10 });
    hft_client_until(&client, &follower.events, 10, 10000, "the first events");
    hft_ticker_mark(&ticker);
    hft_follower_mark(&follower);
    while (hf_mirror_get_stats(storm).lists < 8) {
        struct hf_renewal renewal = hft_renew(&client, &renewals, TTL_S * 1000);

        ck_assert_int_eq(renewal.err, HF_OK);
        if (hft_now() - renewal.sent_at > slowest)
            slowest = hft_now() - renewal.sent_at;
        renewed++;
    }
    ck_assert_uint_ge(renewed, 8);
    ck_assert_int_le(slowest, PATIENCE_MS + hft_ticker_stall(&ticker));
    ck_assert_int_le(follower.silence, PATIENCE_MS + hft_ticker_stall(&ticker));

    hf_mirror_close(storm);
    hft_writer_stop(&writer);
    hft_follower_settle(&follower, &etcd, 20000);
    hft_follower_assert_undisturbed(&follower);
    hft_renewals_stop(&renewals);
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_ticker_stop(&ticker);
    hft_etcd_done(&etcd);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w9");

    tcase_set_timeout(t, 120);
    tcase_add_test(t, w9_lists_of_100000_keys_without_end_delay_neither_events_nor_renewals);
    return hft_suite_run("etcd/mirror: W9", t, NULL);
}
