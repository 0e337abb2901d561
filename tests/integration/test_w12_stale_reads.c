/* W12: a read that etcd calls linearizable can be stale when a member was paused (3.4.20 to
 * 3.4.41), so nothing is decided on a read alone: what was read is compared by the Txn. Here
 * three clients, each at a member of its own, raise one counter by read and compare-and-swap
 * while the leader is stopped and goes on; afterwards its history is read backwards. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/client.h"
#include "support/cluster.h"
#include "support/suite.h"

enum { WORKERS = HFT_CLUSTER_SIZE, ROUNDS = 4, SOME = 30, PAUSE_MS = 10, MOST_OPS = 50000 };
static const char COUNTER[] = "counter";

enum fate { FATE_NONE, FATE_DONE, FATE_REFUSED, FATE_UNKNOWN };

/* Reads the counter, raises it, and again. Its ops are numbered from 1. */
struct worker {
    struct hf_etcd *etcd;
    unsigned number;
    bool busy;
    unsigned op;
    unsigned cycles;
    hf_rev newest_then; /* when the read was sent */
    hf_rev read_rev;    /* that the op was decided on */
    unsigned read_count;
    enum fate fates[MOST_OPS];
    bool seen[MOST_OPS]; /* in the history */
};

static struct hft_cluster cluster;
static struct hft_client client; /* whose loop all of them use */
static struct worker workers[WORKERS];
static bool stopping;
static unsigned done, refused, unknown;
static hf_rev newest;  /* revision of the counter that somebody knows to be committed */
static unsigned stale; /* reads that were older than that when they were sent */

static void read_counter(void *arg);

/* "<count> <worker> <op>" */
struct content {
    unsigned count, worker, op;
};

static struct content parse(struct hf_bytes value)
{
    unsigned long numbers[3];
    char text[64], *rest = text;

    (void)snprintf(text, sizeof text, "%.*s", (int)value.len, (const char *)value.data);
    for (int i = 0; i < 3; i++)
        numbers[i] = strtoul(rest, &rest, 10);
    ck_assert_msg(*rest == '\0' && numbers[2] > 0, "the counter says \"%s\"", text);
    return (struct content){ .count = (unsigned)numbers[0],
                             .worker = (unsigned)numbers[1],
                             .op = (unsigned)numbers[2] };
}

static void end_cycle(struct worker *worker)
{
    worker->busy = false;
    worker->cycles++;
    if (!stopping)
        hft_loop_after(&client.loop, PAUSE_MS, read_counter, worker);
}

static enum fate fate_of(const struct worker *worker, const struct hf_txn_result *result)
{
    struct content now;

    if (result->result.err != HF_OK)
        return result->result.maybe_applied ? FATE_UNKNOWN : FATE_REFUSED;
    if (result->succeeded)
        return FATE_DONE;
    if (result->result.resent == 0)
        return FATE_REFUSED;
    /* A copy of it may have been in the way; then it is there, or was and has been raised. */
    ck_assert_uint_eq(result->answers[0].count, 1);
    now = parse(result->answers[0].kvs->value);
    return now.worker == worker->number && now.op == worker->op ? FATE_DONE : FATE_UNKNOWN;
}

static void on_raised(const struct hf_txn_result *result, void *arg)
{
    struct worker *worker = arg;
    enum fate fate = fate_of(worker, result);

    worker->fates[worker->op] = fate;
    done += fate == FATE_DONE;
    refused += fate == FATE_REFUSED;
    unknown += fate == FATE_UNKNOWN;
    if (result->result.err == HF_OK && result->succeeded) {
        ck_assert_int_gt(result->result.header.revision, worker->read_rev);
        if (result->result.header.revision > newest)
            newest = result->result.header.revision;
    }
    end_cycle(worker);
}

static void raise_counter(struct worker *worker)
{
    struct hf_txn_options options = { .resend = true, .timeout = 3000 };
    struct hf_txn *txn = hf_txn_new();
    char value[64];

    ck_assert_uint_lt(++worker->op, MOST_OPS);
    (void)snprintf(value, sizeof value, "%u %u %u", worker->read_count + 1, worker->number,
                   worker->op);
    hf_txn_if_mod(txn, hf_bytes_of(COUNTER), HF_TXN_EQUAL, worker->read_rev);
    hf_txn_then_put(txn, hf_bytes_of(COUNTER), hf_bytes_of(value), HF_NO_LEASE);
    hf_txn_else_range(txn, (struct hf_key_range){ .key = hf_bytes_of(COUNTER) });
    ck_assert_int_eq(hf_txn_commit(worker->etcd, txn, &options, on_raised, worker, NULL),
                     HF_OK);
    hf_txn_free(txn);
}

static void on_read(const struct hf_range_result *result, void *arg)
{
    struct worker *worker = arg;

    if (result->result.err != HF_OK) {
        end_cycle(worker);
        return;
    }
    worker->read_rev = result->count > 0 ? result->kvs->mod_rev : 0;
    stale += worker->read_rev < worker->newest_then;
    worker->read_count = result->count > 0 ? parse(result->kvs->value).count : 0;
    raise_counter(worker);
}

static void read_counter(void *arg)
{
    struct hf_range_request request = { .range.key = hf_bytes_of(COUNTER), .timeout = 3000 };
    struct worker *worker = arg;

    if (stopping)
        return;
    worker->busy = true;
    worker->newest_then = newest;
    ck_assert_int_eq(hf_etcd_range(worker->etcd, &request, on_read, worker, NULL), HF_OK);
}

static void start_worker(unsigned i)
{
    const char *endpoint = cluster.member[i].endpoint;
    struct hf_error err = { "" };

    workers[i].number = i;
    ck_assert_msg(
        hf_etcd_new(&client.loop.uv,
                    &(struct hf_etcd_config){ .endpoints = &endpoint, .endpoint_count = 1 },
                    &workers[i].etcd, &err) == HF_OK,
        "%s", err.text);
    read_counter(&workers[i]);
}

static bool all_rest(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < WORKERS; i++) {
        if (workers[i].busy)
            return false;
    }
    return true;
}

static void on_closed(void *arg)
{
    ++*(unsigned *)arg;
}

static void stop_workers(void)
{
    unsigned closed = 0;

    stopping = true;
    hft_loop_until(&client.loop, all_rest, NULL, 30000, "the last answers");
    for (unsigned i = 0; i < WORKERS; i++)
        hf_etcd_close(workers[i].etcd, on_closed, &closed);
    hft_client_until(&client, &closed, WORKERS, 30000, "the clients to close");
}

static void on_past(const struct hf_range_result *result, void *arg)
{
    struct hft_outcome *outcome = arg;

    hft_on_range(result, outcome);
    if (result->count > 0) {
        struct content content = parse(result->kvs->value);

        outcome->id = content.count;
        ck_assert_uint_lt(content.worker, WORKERS);
        ck_assert_uint_le(content.op, workers[content.worker].op);
        ck_assert_msg(!workers[content.worker].seen[content.op], "op %u of worker %u, twice",
                      content.op, content.worker);
        workers[content.worker].seen[content.op] = true;
    }
}

/* Every change of the counter, the last first; returns how many there were. */
static unsigned read_history(void)
{
    hf_rev revision = hft_read_at_last(&client, COUNTER).header.revision;
    int64_t last = 0, above = 0;

    for (;;) {
        struct hf_range_request request = { .range.key = hf_bytes_of(COUNTER),
                                            .revision = revision };
        struct hft_outcome past = { 0 };

        ck_assert_int_eq(hf_etcd_range(client.etcd, &request, on_past, &past, NULL), HF_OK);
        hft_await(&client, &past, 30000);
        ck_assert_int_eq(past.err, HF_OK);
        if (past.count == 0)
            break;
        ck_assert_msg(above == 0 || past.id == above - 1, "%lld was raised to %lld",
                      (long long)past.id, (long long)above);
        if (above == 0)
            last = past.id;
        above = past.id;
        revision = past.mod_rev - 1;
    }
    ck_assert_int_eq(above, 1);
    return (unsigned)last;
}

static void check_fates(const struct worker *worker)
{
    for (unsigned op = 1; op <= worker->op; op++) {
        ck_assert_msg(worker->fates[op] != FATE_DONE || worker->seen[op],
                      "op %u of worker %u was confirmed and is lost", op, worker->number);
        ck_assert_msg(worker->fates[op] != FATE_REFUSED || !worker->seen[op],
                      "op %u of worker %u was refused and has happened", op, worker->number);
    }
}

START_TEST(w12_no_update_is_lost_when_the_leader_is_paused_whatever_a_read_says)
{
    unsigned count;

    hft_cluster_start(&cluster, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, cluster.member[0].endpoint, cluster.member[1].endpoint,
                    cluster.member[2].endpoint, NULL);
    for (unsigned i = 0; i < WORKERS; i++)
        start_worker(i);
    hft_client_until(&client, &done, SOME, 30000, "the counter to grow");
    for (int round = 0; round < ROUNDS; round++) {
        struct hft_etcd *leader = hft_cluster_leader(&cluster);
        const struct worker *its = &workers[leader - cluster.member];

        hft_etcd_pause(leader);
        hft_client_until(&client, &done, done + SOME, 60000, "the others to go on");
        hft_etcd_resume(leader);
        hft_client_until(&client, &its->cycles, its->cycles + SOME, 60000,
                         "who is at the old leader to go on");
    }
    stop_workers();
    count = read_history();
    for (unsigned i = 0; i < WORKERS; i++)
        check_fates(&workers[i]);
    printf("%u updates: %u confirmed, %u refused, %u unknown; %u stale reads\n", count, done,
           refused, unknown, stale);
    ck_assert_uint_ge(count, done);
    ck_assert_uint_le(count, done + unknown);
    ck_assert_uint_gt(refused, 0); /* so the compare was needed */
    hft_client_close(&client);
    hft_cluster_done(&cluster);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w12");

    tcase_set_timeout(t, 180);
    tcase_add_test(t, w12_no_update_is_lost_when_the_leader_is_paused_whatever_a_read_says);
    return hft_suite_run("etcd/txn: W12", t, NULL);
}
