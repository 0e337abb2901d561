/* Members that hang, or answer for a term that is over: L2. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/cleanup.h"
#include "support/cluster.h"
#include "support/holder.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/ticker.h"

#define ANSWERED                                                                               \
    "grpc_server_msg_sent_total{grpc_method=\"LeaseKeepAlive\","                               \
    "grpc_service=\"etcdserverpb.Lease\",grpc_type=\"bidi_stream\"}"

static struct hft_cluster cluster;
static struct hft_client client;

static void setup(void)
{
    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_cluster_done(&cluster);
}

static struct hft_etcd *member_after(const struct hft_etcd *member, int distance)
{
    return &cluster.member[(member - cluster.member + distance) % HFT_CLUSTER_SIZE];
}

static void move_leader(const struct hft_etcd *from, const struct hft_etcd *to)
{
    char hex[24];

    (void)snprintf(hex, sizeof hex, "%" PRIx64, hft_cluster_member_id(to));
    hft_etcdctl_ok(from, NULL, "move-leader", hex, NULL);
}

struct answers {
    const struct hft_etcd *member;
    double before;
};

static bool has_answered(void *arg)
{
    const struct answers *answers = arg;

    return hft_etcd_metric(answers->member, ANSWERED, 0) > answers->before;
}

/* A leader may answer although it leads no more. To have that for certain, its answer is kept
 * on the way until another leads and we have heard so. */
START_TEST(l2_a_renewal_answered_by_an_old_leader_does_not_count_and_the_leader_is_left)
{
    struct hft_etcd *old = hft_cluster_leader(&cluster), *new = member_after(old, 1);
    struct hft_proxy *proxy = hft_proxy_new(old->client.number);
    struct answers answers = { .member = old };
    struct hft_client other;
    struct hft_holder holder;
    struct hft_outcome news;
    hf_ms counted_at;
    char endpoint[64];

    hft_client_open(&client, hft_proxy_endpoint(proxy), new->endpoint, NULL);
    hft_client_open(&other, new->endpoint, NULL);
    hft_holder_start(&client, &holder, 60000); /* an attempt may take 10 s */
    counted_at = holder.counted_at;
    answers.before = hft_etcd_metric(old, ANSWERED, 0);
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_HOLD);
    hft_loop_until(&client.loop, has_answered, &answers, 30000, "the old leader's answer");
    move_leader(old, new);
    news = hft_read(&other, "k");
    ck_assert_uint_gt(news.header.raft_term, hf_session_get_view(holder.session).record.term);
    hf_session_on_header(holder.session, &news.header);
    holder.fault_at = hft_now();
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_PASS);

    hft_client_until(&client, &holder.troubles, 1, 10000, "the answer");
    ck_assert_msg(strstr(holder.last_trouble, "STALE") != NULL, "%s", holder.last_trouble);
    ck_assert_int_eq(holder.counted_at, counted_at);
    hft_holder_until_renewed(&holder, 10000);
    hf_etcd_get_endpoint(client.etcd, endpoint, sizeof endpoint);
    ck_assert_str_eq(endpoint, new->endpoint + strlen("http://"));
    ck_assert_uint_eq(holder.losses, 0);
    ck_assert_uint_eq(holder.fences, 0);
    hft_holder_stop(&holder, true);
    hft_client_close(&other);
    hft_proxy_free(proxy);
}
END_TEST

/* A leader that hangs takes its followers' time as well: they must elect another first. Awake
 * again it believes for a moment that it still leads, and may say so. */
START_TEST(l2_a_leader_stopped_is_left_within_8500ms_and_believed_by_nobody_after)
{
    const hf_ms ttl = 15000, bound = 8500;
    struct hft_etcd *old = hft_cluster_leader(&cluster);
    struct hft_holder holder;
    struct hft_ticker ticker;
    uint64_t term;

    hft_ticker_start(&ticker);
    hft_client_open(&client, old->endpoint, member_after(old, 1)->endpoint,
                    member_after(old, 2)->endpoint, NULL);
    hft_holder_start(&client, &holder, ttl);
    hft_holder_register(&holder, "live");
    term = hf_session_get_view(holder.session).record.term;

    hft_ticker_mark(&ticker);
    hft_etcd_pause(old);
    holder.fault_at = hft_now();
    hft_holder_until_renewed(&holder, 60000);
    ck_assert_int_le(holder.renewed_at - holder.fault_at, bound + hft_ticker_stall(&ticker));
    ck_assert(holder.jeopardies == 0 || hft_ticker_stall(&ticker) > ttl / 6);
    ck_assert_uint_gt(hf_session_get_view(holder.session).record.term, term);

    hft_etcd_resume(old);
    holder.fault_at = hft_now();
    holder.renewed_at = 0;
    hft_holder_until_renewed(&holder, 60000);
    ck_assert_uint_eq(holder.losses, 0);
    ck_assert_uint_eq(holder.fences, 0);
    ck_assert_int_eq(hft_read_at_last(&client, "live").lease, holder.lease);
    hft_holder_stop(&holder, true);
    hft_ticker_stop(&ticker);
}
END_TEST

struct proving {
    unsigned told;
    enum hf_proof_verdict verdict;
    hf_rev create_rev;
};

static int get_key(size_t index, int64_t lease, struct hf_proof_key *ret_key, void *arg)
{
    (void)lease;
    *ret_key = (struct hf_proof_key){ .text = "live",
                                      .create_rev = ((struct proving *)arg)->create_rev };
    return index == 0;
}

static void on_proof(enum hf_proof_verdict verdict, int err, const char *message, void *arg)
{
    struct proving *proving = arg;

    (void)err;
    (void)message;
    proving->verdict = verdict;
    proving->told++;
}

/* It has the key in its own memory, and whether others have deleted it meanwhile it cannot
 * know. */
START_TEST(l2_a_member_that_lost_the_others_proves_nothing)
{
    struct hft_etcd *alone = hft_cluster_follower(&cluster);
    struct proving proving = { 0 };
    struct hf_proof proof = { 0 };
    hf_rev revision;

    hft_client_open(&client, alone->endpoint, NULL);
    proving.create_rev = hft_put(&client, "live", "here", HF_NO_LEASE);
    proof.cfg = (struct hf_proof_config){
        .backend = client.backend, .get_key = get_key, .fn = on_proof, .arg = &proving
    };
    ck_assert_int_eq(hf_proof_start(&proof, 0, hft_now() + 30000), 1);
    hft_client_until(&client, &proving.told, 1, 40000, "the proof");
    ck_assert_int_eq(proving.verdict, HF_PROOF_HOLDS);
    ck_assert_uint_ne(proof.term, 0);
    revision = hft_read(&client, "live").header.revision;
    ck_assert_int_eq(revision, proving.create_rev); /* it changes nothing */

    hft_etcd_pause(member_after(alone, 1));
    hft_etcd_pause(member_after(alone, 2));
    ck_assert_int_eq(hf_proof_start(&proof, 0, hft_now() + 2000), 1);
    hft_client_until(&client, &proving.told, 2, 40000, "the second proof");
    ck_assert_int_eq(proving.verdict, HF_PROOF_UNKNOWN);
    hft_etcd_resume(member_after(alone, 1));
    hft_etcd_resume(member_after(alone, 2));
}
END_TEST

struct succession {
    const struct hft_cluster *cluster;
    const struct hft_etcd *old;
};

static bool leads(const struct hft_etcd *member)
{
    return hft_etcd_metric(member, "etcd_server_is_leader", 0) == 1;
}

static bool another_leads(void *arg)
{
    const struct succession *succession = arg;

    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++) {
        const struct hft_etcd *member = &succession->cluster->member[i];

        if (member != succession->old && leads(member))
            return true;
    }
    return false;
}

/* The leader is cut off from its peers, but not from us. The others elect another, and until it
 * has missed them for an election's time it confirms every renewal, of its own accord. Returns
 * whether it did so after it was deposed: mostly, but the two times are chance. */
static bool hold_at_a_deposed_leader(struct hft_cluster *apart, struct hft_ticker *ticker)
{
    const hf_ms ttl = 6000;
    struct hft_etcd *old = hft_cluster_leader(apart);
    struct succession succession = { apart, old };
    size_t next = (size_t)(old - apart->member + 1) % HFT_CLUSTER_SIZE;
    struct hft_renewals renewals;
    struct hft_outcome news;
    struct hft_client other;
    struct hft_holder holder;
    struct hf_renewal lie;
    uint64_t term;
    hf_ms counted_at;
    bool lied;

    hft_client_open(&client, old->endpoint, NULL);
    hft_client_open(&other, apart->member[next].endpoint, NULL);
    hft_holder_start(&client, &holder, ttl);
    hft_holder_register(&holder, "live");
    term = hf_session_get_view(holder.session).record.term;
    hft_renewals_start(&client, &renewals, holder.lease);

    hft_cluster_cut_off(apart, old);
    hft_loop_until(&client.loop, another_leads, &succession, 60000, "another leader");
    lie = hft_renew(&client, &renewals, 2000);
    news = hft_read(&other, "live");
    lied = holder.fences == 0 && lie.err == HF_OK && lie.ttl_s > 0 &&
           lie.header.raft_term == term && news.err == HF_OK && news.header.raft_term > term;
    if (lied) {
        /* Nothing that it says from now on counts, and the fence comes before the end. */
        hft_ticker_mark(ticker);
        hf_session_on_header(holder.session, &news.header);
        counted_at = holder.counted_at;
        hft_client_until(&client, &holder.fences, 1, 60000, "the fence");
        ck_assert_int_eq(holder.counted_at, counted_at);
        ck_assert_int_le(holder.fence_at - counted_at,
                         ttl * 5 / 6 + 100 + hft_ticker_stall(ticker));
        ck_assert(hft_read(&other, "live").count == 1 || hft_ticker_stall(ticker) > ttl / 6);
    }
    hft_cluster_heal(apart);
    hft_renewals_stop(&renewals);
    hft_holder_stop(&holder, false);
    hft_client_close(&client);
    hft_client_close(&other);
    return lied;
}

/* Without fixture: its members are apart, and slow to elect. */
START_TEST(l2_renewals_confirmed_by_a_leader_that_was_deposed_do_not_put_off_the_fence)
{
    struct hft_cluster apart;
    struct hft_ticker ticker;
    int rounds = 0;

    hft_ticker_start(&ticker);
    hft_cluster_start_apart(&apart, &(struct hft_etcd_options){ .no_fsync = true,
                                                                .heartbeat_ms = 300,
                                                                .election_ms = 3000 });
    while (!hold_at_a_deposed_leader(&apart, &ticker))
        ck_assert_msg(++rounds < 12, "a leader that is cut off never lied");
    hft_cluster_done(&apart);
    hft_ticker_stop(&ticker);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("members");
    TCase *apart = tcase_create("apart");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(
        t, l2_a_renewal_answered_by_an_old_leader_does_not_count_and_the_leader_is_left);
    tcase_add_test(t, l2_a_leader_stopped_is_left_within_8500ms_and_believed_by_nobody_after);
    tcase_add_test(t, l2_a_member_that_lost_the_others_proves_nothing);
    tcase_set_timeout(apart, 240);
    tcase_add_test(apart,
                   l2_renewals_confirmed_by_a_leader_that_was_deposed_do_not_put_off_the_fence);
    return hft_suite_run("etcd/members", t, apart, NULL);
}
