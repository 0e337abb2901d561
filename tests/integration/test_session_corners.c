/* A held lease at odd moments: L3, and callbacks that interfere. */
#include <check.h>
#include <string.h>

#include "io/session.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/proxy.h"
#include "support/suite.h"

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client; /* through the proxy */
static struct hft_client direct;

static struct {
    struct hf_session *session;
    struct hf_session_view view;
    hf_rev create_rev; /* of "live"; 0: nothing is registered */
    unsigned changes, renewals, verifications, failed_renewals, failed_verifications, closed;
    unsigned inside; /* callbacks that are running */
    void (*on_renewed)(void);
} holder;

static void on_change(const struct hf_session_view *view, void *arg)
{
    bool renewed = view->record.counted_at != holder.view.record.counted_at;

    (void)arg;
    ck_assert_msg(holder.inside++ == 0, "a change is told from inside another");
    holder.changes++;
    holder.view = *view;
    holder.renewals += renewed;
    if (renewed && holder.on_renewed != NULL)
        holder.on_renewed();
    holder.inside--;
}

static int get_key(size_t index, int64_t lease, struct hf_proof_key *ret_key, void *arg)
{
    (void)lease;
    (void)arg;
    if (holder.create_rev == 0 || index > 0)
        return 0;
    holder.verifications++;
    *ret_key = (struct hf_proof_key){ .text = "live", .create_rev = holder.create_rev };
    return 1;
}

static void on_trouble(const char *what, int err, const char *message, void *arg)
{
    (void)err;
    (void)message;
    (void)arg;
    holder.failed_renewals += strcmp(what, "renew") == 0;
    holder.failed_verifications += strcmp(what, "verify") == 0;
}

static void on_closed(void *arg)
{
    (void)arg;
    holder.closed++;
}

static void hold(void)
{
    struct hf_session_config cfg = { .policy = hf_lease_policy_default(),
                                     .on_change = on_change,
                                     .get_key = get_key,
                                     .on_trouble = on_trouble };
    struct hf_error err = { "" };

    cfg.policy.ttl = 12000;
    cfg.policy.retry_max = 300;
    ck_assert_msg(hf_session_new(&client.backend, &cfg, &holder.session, &err) == HF_OK, "%s",
                  err.text);
    hft_client_until(&client, &holder.renewals, 1, 10000, "the lease");
}

static void let_go(void)
{
    hf_session_close(holder.session, false, on_closed, NULL);
    hft_client_until(&client, &holder.closed, 1, 10000, "the session to close");
}

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
    hft_client_open(&direct, server.endpoint, NULL);
    hold();
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_client_close(&direct);
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

static void drop_answers(void)
{
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_HOLD);
    holder.on_renewed = NULL;
}

/* The verification is due anew at the very moment at which the one before it times out, and
 * neither may be heard of when the session is gone. */
START_TEST(verifications_that_time_out_follow_one_another_and_end_with_the_session)
{
    holder.create_rev = hft_put(&client, "live", "", holder.view.lease);
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_HOLD);
    hft_client_until(&client, &holder.failed_renewals, 1, 10000, "a renewal to fail");
    holder.on_renewed = drop_answers;
    hft_proxy_heal(proxy);
    hft_client_until(&client, &holder.verifications, 2, 15000, "a second verification");
    let_go();
    hft_proxy_heal(proxy);
}
END_TEST

static void lose_it(void)
{
    holder.on_renewed = NULL;
    hf_session_on_lost(holder.session, holder.view.lease);
    ck_assert_int_eq(hf_session_get_view(holder.session).state, HF_LEASE_LOST);
    ck_assert_int_eq(hf_session_get_view(holder.session).lease, 0);
}

START_TEST(loss_reported_from_inside_a_change_is_told_after_it)
{
    int64_t first = holder.view.lease;

    holder.on_renewed = lose_it;
    hft_client_until(&client, &holder.renewals, 2, 10000, "a renewal");
    hft_client_until(&client, &holder.renewals, 3, 10000, "the next lease");
    ck_assert_int_eq(holder.view.state, HF_LEASE_HELD);
    ck_assert_int_ne(holder.view.lease, first);
    let_go();
}
END_TEST

static void end_it(void)
{
    holder.on_renewed = NULL;
    hf_session_close(holder.session, false, on_closed, NULL);
    ck_assert_uint_eq(holder.closed, 0);
}

START_TEST(a_session_that_is_closed_from_inside_a_change_ends_after_it)
{
    unsigned changes;

    holder.on_renewed = end_it;
    hft_client_until(&client, &holder.closed, 1, 10000, "the session to close");
    changes = holder.changes;
    ck_assert_int_eq(hft_read(&client, "k").err, HF_OK);
    ck_assert_uint_eq(holder.changes, changes);
}
END_TEST

/* Renewals pass while the key is gone: whoever was cut off looks after it. */
START_TEST(l3_key_that_went_while_the_stream_was_broken_is_missed)
{
    int64_t first = holder.view.lease;
    unsigned before;

    holder.create_rev = hft_put(&client, "live", "", first);
    before = holder.renewals;
    hft_client_until(&client, &holder.renewals, before + 1, 10000, "a renewal");
    ck_assert(holder.verifications == 0 || holder.failed_renewals > 0);

    hft_delete(&direct, "live");
    hft_proxy_cut(proxy);
    while (holder.view.lease == first) {
        before = holder.changes;
        hft_client_until(&client, &holder.changes, before + 1, 10000, "the loss");
    }
    let_go();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("corners");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, verifications_that_time_out_follow_one_another_and_end_with_the_session);
    tcase_add_test(t, loss_reported_from_inside_a_change_is_told_after_it);
    tcase_add_test(t, a_session_that_is_closed_from_inside_a_change_ends_after_it);
    tcase_add_test(t, l3_key_that_went_while_the_stream_was_broken_is_missed);
    return hft_suite_run("io/session: corners", t, NULL);
}
