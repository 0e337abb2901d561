/* A lease that is held: through silence, loss, outages and a hung member. */
#include <check.h>

#include "support/cluster.h"
#include "support/etcd.h"
#include "support/holder.h"
#include "support/suite.h"
#include "support/ticker.h"

static struct hft_etcd server;
static struct hft_client client;

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, server.endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_etcd_done(&server);
}

START_TEST(l1_a_held_lease_keeps_its_key_and_a_revoked_one_takes_it_along)
{
    const hf_ms ttl = 10000;
    struct hft_watcher watcher;
    struct hft_ticker ticker;
    struct hft_holder holder;
    hf_ms stopped_at;

    hft_ticker_start(&ticker);
    hft_holder_start(&client, &holder, ttl);
    hft_put(&client, "live", "", holder.lease);
    hft_watcher_start(&client, &watcher, "live");
    hft_client_until(&client, &holder.renewals, 5, 60000, "four renewals: more than a TTL");
    ck_assert_uint_eq(watcher.deletes, 0);
    ck_assert_uint_eq(holder.losses, 0);

    hft_ticker_mark(&ticker);
    stopped_at = hft_now();
    hft_holder_stop(&holder, true);
    hft_client_until(&client, &watcher.deletes, 1, 30000, "the key to go");
    /* Its last renewal may be a third of the TTL old. */
    ck_assert_int_le(watcher.last_at - stopped_at, ttl / 2 + hft_ticker_stall(&ticker));
    hft_watcher_stop(&watcher);
    hft_ticker_stop(&ticker);
}
END_TEST

START_TEST(l7_a_lease_revoked_by_another_is_lost_and_replaced)
{
    struct hft_holder holder;
    int64_t first;

    hft_holder_start(&client, &holder, 3000);
    first = holder.lease;
    hft_revoke(&client, first);
    hft_client_until(&client, &holder.losses, 1, 5000, "the loss");
    hft_holder_until_held(&holder, 5000);
    ck_assert_int_ne(holder.lease, first);
    hft_holder_stop(&holder, true);
}
END_TEST

START_TEST(l15_an_outage_puts_in_jeopardy_then_fences_and_proof_thaws)
{
    const hf_ms ttl = 6000;
    struct hft_ticker ticker;
    struct hft_holder holder;

    hft_ticker_start(&ticker);
    hft_holder_start(&client, &holder, ttl);
    hft_holder_register(&holder, "live");
    hft_client_until(&client, &holder.renewals, 2, 30000, "a renewal");
    holder.jeopardies = 0; /* of a machine that stood still */
    hft_ticker_mark(&ticker);

    hft_etcd_pause(&server);
    hft_client_until(&client, &holder.fences, 1, ttl + 5000, "the fence");
    ck_assert_uint_eq(holder.jeopardies, 1);
    ck_assert_int_le(holder.jeopardy_at - holder.counted_at,
                     ttl * 2 / 3 + 100 + hft_ticker_stall(&ticker));
    ck_assert_int_ge(holder.jeopardy_at - holder.counted_at, ttl * 2 / 3);
    ck_assert_int_le(holder.fence_at - holder.counted_at,
                     ttl * 5 / 6 + 100 + hft_ticker_stall(&ticker));

    hft_etcd_resume(&server);
    hft_client_until(&client, &holder.thaws, 1, 20000, "the thaw, or a new lease");
    hft_holder_stop(&holder, true);
    hft_ticker_stop(&ticker);
}
END_TEST

START_TEST(w1_l5_a_stopped_member_costs_neither_lease_nor_event)
{
    const hf_ms ttl = 15000, bound = 8500;
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };
    struct hf_mirror_config nervous = { .ranges = &range,
                                        .range_count = 1,
                                        .probe_timeout = 3000 }; /* the default */
    struct hft_cluster cluster;
    struct hft_watcher watcher;
    struct hft_ticker ticker;
    struct hft_client writer;
    struct hft_etcd *hung, *leader;
    struct hft_holder holder;
    hf_ms stopped_at;
    unsigned before;

    hft_ticker_start(&ticker);
    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
    hung = hft_cluster_follower(&cluster);
    leader = hft_cluster_leader(&cluster);
    hft_client_close(&client);
    hft_client_open(&client, hung->endpoint, leader->endpoint, NULL);
    hft_client_open(&writer, leader->endpoint, NULL);
    hft_holder_start(&client, &holder, ttl);
    hft_put(&client, "w/live", "", holder.lease);
    hft_watcher_start_with(&client, &watcher, &nervous);

    hft_etcd_pause(hung);
    stopped_at = hft_now();
    holder.fault_at = stopped_at;
    hft_ticker_mark(&ticker);
    before = watcher.puts;
    hft_put(&writer, "w/event", "while it hangs", HF_NO_LEASE);
    hft_client_until(&client, &watcher.puts, before + 1, 30000,
                     "the event from another member");
    ck_assert_int_le(watcher.last_at - stopped_at, bound + 3 * hft_ticker_stall(&ticker));

    hft_holder_until_renewed(&holder, 30000);
    ck_assert_int_le(holder.renewed_at - stopped_at, bound + hft_ticker_stall(&ticker));
    ck_assert_uint_eq(holder.losses, 0);
    /* It would begin two thirds of a TTL after a renewal that may be a third old already. */
    ck_assert(holder.jeopardies == 0 || hft_ticker_stall(&ticker) > ttl / 6);
    ck_assert_uint_eq(watcher.deletes, 0);

    hft_watcher_stop(&watcher);
    hft_holder_stop(&holder, true);
    hft_client_close(&writer);
    hft_etcd_resume(hung);
    hft_cluster_done(&cluster);
    hft_ticker_stop(&ticker);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("session");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, l1_a_held_lease_keeps_its_key_and_a_revoked_one_takes_it_along);
    tcase_add_test(t, l7_a_lease_revoked_by_another_is_lost_and_replaced);
    tcase_add_test(t, l15_an_outage_puts_in_jeopardy_then_fences_and_proof_thaws);
    tcase_add_test(t, w1_l5_a_stopped_member_costs_neither_lease_nor_event);
    return hft_suite_run("io/session", t, NULL);
}
