/* Everything at once: members are stopped and killed, connections held, cut and delayed at
 * random, while a mirror is followed, a lease held, counters are raised by guarded txns, and
 * other clients come and go. In the end the copy is the truth, every effect happened once, and
 * nobody was told of a restored etcd.
 *
 * HOLDFAST_SEED repeats a run as far as threads allow; HOLDFAST_STRESS_S sets its length. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "io/session.h"
#include "support/cluster.h"
#include "support/follower.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/writer.h"

enum { DEFAULT_S = 25, HEAL_MS = 60000, COUNTERS = 4, MOST_OPS = 200000, LEASE_MS = 6000 };

static struct hft_cluster cluster;
static struct hft_proxy *proxies[HFT_CLUSTER_SIZE];
static const char *endpoints[HFT_CLUSTER_SIZE];
static struct hft_client client;
static bool stopping;

static uint64_t seed;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % below;
}

/* Counters: each txn adds one, and leaves its number in the value. */

enum op { OP_NONE, OP_UNKNOWN, OP_REFUSED, OP_APPLIED };

static struct counter {
    char key[32];
    hf_rev mod_rev;
    unsigned count; /* as last seen */
    unsigned op;    /* under way, or the last one */
    unsigned char outcome[MOST_OPS];
    bool busy;
    bool certain; /* the last answer came from etcd */
} counters[COUNTERS];

static void raise_counter(void *arg);

static void saw(struct counter *counter, unsigned op, unsigned count, hf_rev mod_rev)
{
    ck_assert_msg(counter->outcome[op] == OP_UNKNOWN || op == counter->op,
                  "%s: txn %u happened, and was told to have had outcome %u", counter->key, op,
                  counter->outcome[op]);
    ck_assert_msg(count == counter->count + 1, "%s: txn %u happened %u times", counter->key, op,
                  count - counter->count);
    counter->outcome[op] = OP_APPLIED;
    counter->count = count;
    counter->mod_rev = mod_rev;
}

/* "<count> <number of the txn>" */
static void parse(const char *value, unsigned *ret_count, unsigned *ret_op)
{
    char *rest;

    *ret_count = (unsigned)strtoul(value, &rest, 10);
    ck_assert_msg(rest != value && *rest == ' ', "a counter says \"%s\"", value);
    *ret_op = (unsigned)strtoul(rest + 1, &rest, 10);
    ck_assert_msg(*rest == '\0', "a counter says \"%s\"", value);
}

static void on_raised(const struct hf_txn_result *result, void *arg)
{
    struct counter *counter = arg;
    unsigned count, op;

    ck_assert(counter->busy);
    counter->busy = false;
    counter->certain = result->result.err == HF_OK;
    counter->outcome[counter->op] = result->result.maybe_applied ? OP_UNKNOWN : OP_REFUSED;
    if (result->result.err == HF_OK && result->succeeded) {
        saw(counter, counter->op, counter->count + 1, result->result.header.revision);
    } else if (result->result.err == HF_OK && result->answers[0].count > 0) {
        const struct hf_kv *kv = result->answers[0].kvs;
        char value[64];

        (void)snprintf(value, sizeof value, "%.*s", (int)kv->value.len,
                       (const char *)kv->value.data);
        parse(value, &count, &op);
        ck_assert_msg(op != counter->op || result->result.resent > 0,
                      "%s: its own txn %u is in the way, which was sent once", counter->key,
                      op);
        saw(counter, op, count, kv->mod_rev);
    }
    if (!stopping)
        hft_loop_after(&client.loop, draw(30), raise_counter, counter);
}

static void raise_counter(void *arg)
{
    struct hf_txn_options options = { .resend = draw(4) > 0, .timeout = 500 + draw(4000) };
    struct hf_txn *txn = hf_txn_new();
    struct counter *counter = arg;
    char value[64];

    ck_assert_uint_lt(++counter->op, MOST_OPS);
    (void)snprintf(value, sizeof value, "%u %u", counter->count + 1, counter->op);
    hf_txn_if_mod(txn, hf_bytes_of(counter->key), HF_TXN_EQUAL, counter->mod_rev);
    hf_txn_then_put(txn, hf_bytes_of(counter->key), hf_bytes_of(value), HF_NO_LEASE);
    hf_txn_else_range(txn, (struct hf_key_range){ .key = hf_bytes_of(counter->key) });
    counter->busy = true;
    ck_assert_int_eq(hf_txn_commit(client.etcd, txn, &options, on_raised, counter, NULL),
                     HF_OK);
    hf_txn_free(txn);
}

static bool counters_rest(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < COUNTERS; i++) {
        if (counters[i].busy)
            return false;
    }
    return true;
}

/* One more of each, and then another: the first may meet one that was thought lost. */
static void check_counters(void)
{
    hft_loop_until(&client.loop, counters_rest, NULL, HEAL_MS, "the counters to rest");
    for (size_t i = 0; i < COUNTERS; i++) {
        unsigned op, last_op = counters[i].op, count;
        struct hft_outcome seen;

        do {
            raise_counter(&counters[i]);
            hft_loop_until(&client.loop, counters_rest, NULL, HEAL_MS, "a last txn");
        } while (!counters[i].certain || counters[i].op < last_op + 2);
        seen = hft_read_at_last(&client, counters[i].key);
        parse(seen.value, &count, &op);
        ck_assert_uint_eq(count, counters[i].count);
        ck_assert_int_eq(seen.version, count);
        printf("%s: %u txns, %u effects\n", counters[i].key, counters[i].op, count);
    }
}

/* The lease. */

static struct {
    struct hf_session *session;
    struct hf_session_view view;
    unsigned held, lost, frozen, closed;
} lease;

static void on_lease(const struct hf_session_view *view, void *arg)
{
    (void)arg;
    lease.held += view->state == HF_LEASE_HELD && lease.view.state != HF_LEASE_HELD;
    lease.lost += view->state == HF_LEASE_LOST && lease.view.state != HF_LEASE_LOST;
    lease.frozen += view->frozen && !lease.view.frozen;
    lease.view = *view;
}

static bool is_held(void *arg)
{
    (void)arg;
    return lease.view.state == HF_LEASE_HELD;
}

static void on_closed(void *arg)
{
    ++*(unsigned *)arg;
}

static struct hf_session *hold_lease(struct hf_backend backend,
                                     void (*on_change)(const struct hf_session_view *view,
                                                       void *arg))
{
    struct hf_session_config cfg = { .policy = hf_lease_policy_default(),
                                     .on_change = on_change };
    struct hf_session *session = NULL;
    struct hf_error err = { "" };

    cfg.policy.ttl = LEASE_MS;
    cfg.policy.ttl_floor = 2000;
    cfg.policy.retry_max = 300;
    ck_assert_msg(hf_session_new(&backend, &cfg, &session, &err) == HF_OK, "%s", err.text);
    return session;
}

/* Guests: clients that come, ask for everything at once, and leave in the middle of it. */

static struct {
    struct hf_etcd *etcd;
    struct hf_backend_etcd *backend;
    struct hf_mirror *mirror;
    struct hf_session *session;
    unsigned closed, visits;
    bool away;
} guest;

static void come(void *arg);

static void on_guest_event(const struct hf_mirror_event *event, void *arg)
{
    (void)event;
    (void)arg;
    ck_assert(!guest.away);
    if (draw(200) == 0)
        hf_mirror_resync(guest.mirror);
}

static void on_guest_change(const struct hf_session_view *view, void *arg)
{
    (void)arg;
    ck_assert(!guest.away);
    if (view->state == HF_LEASE_HELD && draw(10) == 0)
        hf_session_on_lost(guest.session, view->lease);
}

static void on_guest_write(const struct hf_write_result *result, void *arg)
{
    (void)result;
    (void)arg;
}

static void on_guest_session_closed(void *arg)
{
    hf_backend_etcd_close(guest.backend, on_closed, arg);
}

static void leave(void *arg)
{
    bool revoke = draw(2) > 0;

    (void)arg;
    guest.away = true;
    if (draw(2) > 0)
        hf_session_close(hf_steal(&guest.session), revoke, on_guest_session_closed,
                         &guest.closed);
    hf_mirror_close(guest.mirror);
    if (guest.session != NULL)
        hf_session_close(hf_steal(&guest.session), revoke, on_guest_session_closed,
                         &guest.closed);
    hf_etcd_close(guest.etcd, on_closed, &guest.closed);
    hft_loop_after(&client.loop, draw(500), come, NULL);
}

static void open_guest(void)
{
    struct hf_etcd_config cfg = { .endpoints = endpoints,
                                  .endpoint_count = HFT_CLUSTER_SIZE,
                                  .separate_channels = draw(2) > 0,
                                  .timeout = 200 + draw(3000),
                                  .attempt_timeout = 50 + draw(1000) };
    struct hf_key_range range = { .key = hf_bytes_of("s/"), .prefix = true };
    struct hf_mirror_config mirror = { .ranges = &range,
                                       .range_count = 1,
                                       .on_event = on_guest_event,
                                       .probe_every = 200 + draw(1000),
                                       .probe_timeout = 100 + draw(1000),
                                       .history_every = 100 + draw(2000),
                                       .resync_every = 100 + draw(5000) };
    struct hf_error err = { "" };

    ck_assert_msg(hf_etcd_new(&client.loop.uv, &cfg, &guest.etcd, &err) == HF_OK, "%s",
                  err.text);
    ck_assert_int_eq(hf_mirror_new(guest.etcd, &mirror, &guest.mirror, &err), HF_OK);
    ck_assert_int_eq(hf_backend_etcd_new(&client.loop.uv, guest.etcd, &guest.backend), HF_OK);
    guest.session = hold_lease(hf_backend_etcd_get(guest.backend), on_guest_change);
}

static void come(void *arg)
{
    struct hf_call *call = NULL;

    (void)arg;
    if (stopping)
        return;
    if (guest.visits > 0 && guest.closed < 2) { /* not quite gone yet */
        hft_loop_after(&client.loop, 10, come, NULL);
        return;
    }
    guest.closed = 0;
    guest.away = false;
    guest.visits++;
    open_guest();
    for (unsigned i = draw(20); i > 0; i--) {
        ck_assert_int_eq(hf_etcd_put(guest.etcd, hf_bytes_of("guest"), hf_bytes_of("was here"),
                                     HF_NO_LEASE, on_guest_write, NULL, &call),
                         HF_OK);
        if (draw(3) == 0)
            hf_call_cancel(call);
    }
    hft_loop_after(&client.loop, draw(3) == 0 ? draw(20) : draw(3000), leave, NULL);
}

static bool guest_is_gone(void *arg)
{
    (void)arg;
    return guest.away && guest.closed == 2;
}

/* Faults, one at a time on one member, or on every connection. */

static void pause_member(unsigned i)
{
    hft_etcd_pause(&cluster.member[i]);
}

static void resume_member(unsigned i)
{
    hft_etcd_resume(&cluster.member[i]);
}

static void kill_member(unsigned i)
{
    hft_etcd_kill(&cluster.member[i]);
}

static void run_member(unsigned i)
{
    hft_etcd_run(&cluster.member[i]);
}

static void hold(unsigned i)
{
    hft_proxy_set_both(proxies[i], HFT_PROXY_HOLD);
}

static void hold_answers(unsigned i)
{
    hft_proxy_set(proxies[i], HFT_PROXY_DOWN, HFT_PROXY_HOLD);
}

static void pass(unsigned i)
{
    hft_proxy_set_both(proxies[i], HFT_PROXY_PASS);
}

static void drop_answers(unsigned i)
{
    hft_proxy_set(proxies[i], HFT_PROXY_DOWN, HFT_PROXY_DROP);
}

static void heal(unsigned i)
{
    hft_proxy_heal(proxies[i]);
}

static void delay(unsigned i)
{
    hft_proxy_delay(proxies[i], draw(2) > 0 ? HFT_PROXY_UP : HFT_PROXY_DOWN,
                    50 + (hf_ms)draw(2000));
}

static void hurry(unsigned i)
{
    hft_proxy_delay(proxies[i], HFT_PROXY_UP, 0);
    hft_proxy_delay(proxies[i], HFT_PROXY_DOWN, 0);
}

static void cut(unsigned i)
{
    hft_proxy_cut(proxies[i]);
}

static void cut_soon(unsigned i)
{
    hft_proxy_cut_after(proxies[i], draw(2) > 0 ? HFT_PROXY_UP : HFT_PROXY_DOWN, draw(20000));
}

static void nothing(unsigned i)
{
    (void)i;
}

static const struct fault {
    const char *name;
    void (*begin)(unsigned member);
    void (*end)(unsigned member);
    unsigned longest_ms;
    bool everywhere; /* may be done to all three at once */
} FAULTS[] = {
    { "pause", pause_member, resume_member, 5000, false },
    { "kill", kill_member, run_member, 3000, false },
    { "hold", hold, pass, 4000, true },
    { "hold and cut", hold, heal, 3000, true },
    { "hold answers", hold_answers, pass, 3000, true },
    { "drop answers", drop_answers, heal, 2500, true },
    { "delay", delay, hurry, 3000, true },
    { "cut", cut, nothing, 200, true },
    { "cut soon", cut_soon, nothing, 1000, true },
};

static const struct fault *fault;
static unsigned first, last; /* members that have it */
static unsigned faults;

static void begin_fault(void *arg);

static void end_fault(void *arg)
{
    (void)arg;
    for (unsigned i = first; i <= last; i++)
        fault->end(i);
    fault = NULL;
    if (!stopping)
        hft_loop_after(&client.loop, draw(3) == 0 ? draw(3000) : draw(300), begin_fault, NULL);
}

static void begin_fault(void *arg)
{
    (void)arg;
    if (stopping)
        return;
    fault = &FAULTS[draw(sizeof FAULTS / sizeof FAULTS[0])];
    first = last = draw(HFT_CLUSTER_SIZE);
    if (fault->everywhere && draw(5) == 0) {
        first = 0;
        last = HFT_CLUSTER_SIZE - 1;
    }
    faults++;
    for (unsigned i = first; i <= last; i++)
        fault->begin(i);
    hft_loop_after(&client.loop, 20 + draw(fault->longest_ms), end_fault, NULL);
}

static bool is_healed(void *arg)
{
    (void)arg;
    return fault == NULL;
}

static hf_ms run_time(void)
{
    const char *text = getenv("HOLDFAST_STRESS_S");

    return (text != NULL ? (hf_ms)strtol(text, NULL, 10) : DEFAULT_S) * 1000;
}

static void choose_seed(void)
{
    const char *text = getenv("HOLDFAST_SEED");

    if (text != NULL)
        seed = strtoull(text, NULL, 10);
    else
        ck_assert_int_eq(hf_id_random(&seed, sizeof seed), HF_OK);
    printf("HOLDFAST_SEED=%" PRIu64 "\n", seed);
    (void)fflush(stdout);
}

static void open_all(void)
{
    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++) {
        proxies[i] = hft_proxy_new(cluster.member[i].client.number);
        endpoints[i] = hft_proxy_endpoint(proxies[i]);
    }
    hft_client_open_with(&client, &(struct hf_etcd_config){ .endpoints = endpoints,
                                                            .endpoint_count = HFT_CLUSTER_SIZE,
                                                            .separate_channels = draw(2) > 0 });
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

START_TEST(random_faults_lose_nothing_double_nothing_and_reset_nothing)
{
    struct hf_key_range ranges[] = { { .key = hf_bytes_of("s/"), .prefix = true },
                                     { .key = hf_bytes_of("t/"), .prefix = true } };
    struct hft_follower follower = { 0 };
    struct hft_writer writers[2];

    choose_seed();
    open_all();
    hft_follower_start_with(&client, &follower,
                            &(struct hf_mirror_config){ .ranges = ranges,
                                                        .range_count = 2,
                                                        .probe_timeout = 3000,
                                                        .history_every = 2000,
                                                        .resync_every = 8000 });
    hft_follower_until_synced(&follower, 1, 10000);
    lease.session = hold_lease(client.backend, on_lease);
    for (unsigned i = 0; i < 2; i++)
        hft_writer_start(
            &client, &writers[i],
            &(struct hft_writer_config){ .endpoint = { endpoints[i], endpoints[2] },
                                         .prefix = i == 0 ? "s/" : "t/",
                                         .keys = 300,
                                         .delete_percent = 30,
                                         .value_bytes = 200,
                                         .in_flight = 4,
                                         .pause = 5,
                                         .seed = draw(1000000) });
    for (unsigned i = 0; i < COUNTERS; i++) {
        (void)snprintf(counters[i].key, sizeof counters[i].key, "s/counter/%u", i);
        raise_counter(&counters[i]);
    }
    come(NULL);
    begin_fault(NULL);
    (void)hft_loop_try(&client.loop, never, NULL, run_time());

    stopping = true;
    hft_loop_until(&client.loop, is_healed, NULL, HEAL_MS, "the last fault to end");
    hft_loop_until(&client.loop, guest_is_gone, NULL, HEAL_MS, "the guest to leave");
    for (unsigned i = 0; i < HFT_CLUSTER_SIZE; i++) {
        hft_proxy_heal(proxies[i]);
        ck_assert(hft_etcd_wait_ready(&cluster.member[i]));
    }
    for (unsigned i = 0; i < 2; i++)
        hft_writer_stop(&writers[i]);
    check_counters();
    hft_follower_settle(&follower, &cluster.member[0], HEAL_MS);
    hft_loop_until(&client.loop, is_held, NULL, HEAL_MS, "the lease");
    ck_assert_uint_eq(follower.resets, 0);
    printf("%u faults, %u guests; events: %u (%u found by lists), %u troubles; lease: held %u, "
           "lost %u, frozen %u; writes: %u, %u failed\n",
           faults, guest.visits, follower.events, follower.synthesised, follower.troubles,
           lease.held, lease.lost, lease.frozen, writers[0].done + writers[1].done,
           writers[0].failed + writers[1].failed);

    hf_session_close(lease.session, true, on_closed, &lease.closed);
    hft_client_until(&client, &lease.closed, 1, 10000, "the session to close");
    hft_follower_stop(&follower);
    hft_client_close(&client);
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++)
        hft_proxy_free(proxies[i]);
    hft_cluster_done(&cluster);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("stress");

    tcase_set_timeout(t, 240 + (double)run_time() / 1000);
    tcase_add_test(t, random_faults_lose_nothing_double_nothing_and_reset_nothing);
    return hft_suite_run("etcd: stress", t, NULL);
}
