/* A lease that is held: through silence, loss, outages and a hung member. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "io/session.h"
#include "support/client.h"
#include "support/cluster.h"
#include "support/etcd.h"
#include "support/ticker.h"

static struct hft_etcd server;
static struct hft_client client;

/* What the session told, and the key that hangs on its lease. */
struct holder {
    struct hf_session *session;
    unsigned changes, losses, jeopardies, fences, thaws, troubles, closed;
    bool was_frozen;
    enum hf_lease_state state;
    int64_t lease;
    hf_ms counted_at, jeopardy_at, fence_at, thawed_at;
    hf_ms fault_at;    /* set by the test */
    hf_ms renewed_at;  /* when the first renewal sent after that was counted */
    hf_rev create_rev; /* of the key; 0: nothing is registered */
};

static void on_change(const struct hf_session_view *view, void *arg)
{
    struct holder *holder = arg;
    hf_ms now = hft_now();

    holder->changes++;
    if (view->state == HF_LEASE_LOST && holder->state != HF_LEASE_LOST)
        holder->losses++;
    if (view->state == HF_LEASE_JEOPARDY && holder->state != HF_LEASE_JEOPARDY) {
        holder->jeopardies++;
        holder->jeopardy_at = now;
    }
    if (view->frozen && !holder->was_frozen) {
        holder->fences++;
        holder->fence_at = now;
    }
    if (!view->frozen && holder->was_frozen) {
        holder->thaws++;
        holder->thawed_at = now;
    }
    if (holder->fault_at != 0 && holder->renewed_at == 0 &&
        view->record.counted_at >= holder->fault_at)
        holder->renewed_at = now;
    holder->was_frozen = view->frozen;
    holder->state = view->state;
    holder->lease = view->lease;
    holder->counted_at = view->record.counted_at;
}

static size_t add_compares(struct hf_txn *txn, int64_t lease, void *arg)
{
    const struct holder *holder = arg;

    if (holder->create_rev == 0)
        return 0;
    hf_txn_if_create(txn, hf_bytes_of("live"), HF_TXN_EQUAL, holder->create_rev);
    hf_txn_if_lease(txn, hf_bytes_of("live"), HF_TXN_EQUAL, lease);
    return 1;
}

static void on_trouble(const char *what, int err, const char *message, void *arg)
{
    (void)what;
    (void)err;
    (void)message;
    ((struct holder *)arg)->troubles++;
}

static void on_closed(void *arg)
{
    ((struct holder *)arg)->closed++;
}

static bool is_held(void *arg)
{
    return ((struct holder *)arg)->state == HF_LEASE_HELD;
}

static bool is_renewed(void *arg)
{
    return ((struct holder *)arg)->renewed_at != 0;
}

static void hold(struct holder *holder, hf_ms ttl)
{
    struct hf_session_config cfg = { .policy = hf_lease_policy_default(),
                                     .on_change = on_change,
                                     .add_compares = add_compares,
                                     .on_trouble = on_trouble,
                                     .arg = holder };
    struct hf_error err = { "" };

    *holder = (struct holder){ .state = HF_LEASE_LOST };
    cfg.policy.ttl = ttl;
    cfg.policy.ttl_floor = 2000;
    cfg.policy.retry_max = 300;
    ck_assert_msg(hf_session_new(&client.loop.uv, client.etcd, &cfg, &holder->session, &err) ==
                      HF_OK,
                  "%s", err.text);
    hft_loop_until(&client.loop, is_held, holder, 10000, "the lease");
}

static void let_go(struct holder *holder, bool revoke)
{
    hf_session_close(holder->session, revoke, on_closed, holder);
    hft_client_until(&client, &holder->closed, 1, 10000, "the session to close");
}

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
    struct hft_watcher watcher;
    struct holder holder;

    hold(&holder, 3000);
    hft_put(&client, "live", "", holder.lease);
    hft_watcher_start(&client, &watcher, "live");
    hft_client_until(&client, &holder.changes, 8, 20000, "seven renewals: more than two TTLs");
    ck_assert_uint_eq(watcher.deletes, 0);
    ck_assert_uint_eq(holder.losses, 0);

    let_go(&holder, true);
    hft_client_until(&client, &watcher.deletes, 1, 1500, "the key to go, long before the TTL");
    hft_watcher_stop(&watcher);
}
END_TEST

START_TEST(l7_a_lease_revoked_by_another_is_lost_and_replaced)
{
    struct holder holder;
    int64_t first;

    hold(&holder, 3000);
    first = holder.lease;
    hft_revoke(&client, first);
    hft_client_until(&client, &holder.losses, 1, 5000, "the loss");
    hft_loop_until(&client.loop, is_held, &holder, 5000, "another lease");
    ck_assert_int_ne(holder.lease, first);
    let_go(&holder, true);
}
END_TEST

START_TEST(l15_an_outage_puts_in_jeopardy_then_fences_and_proof_thaws)
{
    const hf_ms ttl = 6000;
    struct hft_ticker ticker;
    struct holder holder;

    hft_ticker_start(&ticker);
    hold(&holder, ttl);
    holder.create_rev = hft_put(&client, "live", "", holder.lease);
    hft_client_until(&client, &holder.changes, 2, 5000, "a renewal");

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
    let_go(&holder, true);
    hft_ticker_stop(&ticker);
}
END_TEST

START_TEST(w1_l5_a_stopped_member_costs_neither_lease_nor_event)
{
    const hf_ms ttl = 15000, bound = 8500;
    struct hft_cluster cluster;
    struct hft_watcher watcher;
    struct hft_ticker ticker;
    struct hft_client writer;
    struct hft_etcd *hung, *leader;
    struct holder holder;
    hf_ms stopped_at;
    unsigned before;

    hft_ticker_start(&ticker);
    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
    hung = hft_cluster_follower(&cluster);
    leader = hft_cluster_leader(&cluster);
    hft_client_close(&client);
    hft_client_open(&client, hung->endpoint, leader->endpoint, NULL);
    hft_client_open(&writer, leader->endpoint, NULL);
    hold(&holder, ttl);
    hft_put(&client, "w/live", "", holder.lease);
    hft_watcher_start(&client, &watcher, "w/");

    hft_etcd_pause(hung);
    stopped_at = hft_now();
    holder.fault_at = stopped_at;
    hft_ticker_mark(&ticker);
    before = watcher.puts;
    hft_put(&writer, "w/event", "while it hangs", HF_NO_LEASE);
    hft_client_until(&client, &watcher.puts, before + 1, 30000,
                     "the event from another member");
    ck_assert_int_le(watcher.last_at - stopped_at, bound + hft_ticker_stall(&ticker));

    hft_loop_until(&client.loop, is_renewed, &holder, 30000, "a renewal by another member");
    ck_assert_int_le(holder.renewed_at - stopped_at, bound + hft_ticker_stall(&ticker));
    ck_assert_uint_eq(holder.losses, 0);
    ck_assert_uint_eq(holder.jeopardies, 0);
    ck_assert_uint_eq(watcher.deletes, 0);

    hft_watcher_stop(&watcher);
    let_go(&holder, true);
    hft_client_close(&writer);
    hft_etcd_resume(hung);
    hft_cluster_done(&cluster);
    hft_ticker_stop(&ticker);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("io/session");
    TCase *t = tcase_create("session");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, l1_a_held_lease_keeps_its_key_and_a_revoked_one_takes_it_along);
    tcase_add_test(t, l7_a_lease_revoked_by_another_is_lost_and_replaced);
    tcase_add_test(t, l15_an_outage_puts_in_jeopardy_then_fences_and_proof_thaws);
    tcase_add_test(t, w1_l5_a_stopped_member_costs_neither_lease_nor_event);
    suite_add_tcase(s, t);

    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
