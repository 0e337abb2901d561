/* Client certificates and etcd's roles, as examples/etcd makes them: each role may do what the
 * table in docs/keys.md says and nothing else, that is enough for every program, and a
 * certificate is renewed under an agentd that runs. */
#include <check.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "e2e/roles_fixture.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/wait.h"

#define LEADER_TTL "15s" /* no lease is to end because the machine is busy */

enum { STEPS = 8 };

/* What the scripts say of themselves. */

START_TEST(the_scripts_may_be_repeated_and_undo_what_is_too_much)
{
    static const char DONE[] = "namespace default: the roles are as they should be\n";
    HF_CLEANUP_FREE char *before = NULL, *after = NULL;
    HFT_CLEANUP_OUTPUT struct hft_output again = { 0 }, beside = { 0 };

    expect_output(script("roles.sh", "root", "roles", NULL), 0,
                  "role holdfast-default-viewer: made");
    again = script("roles.sh", "root", "roles", NULL);
    ck_assert_str_eq(again.out, DONE);
    hft_etcdctl_ok(&fleet.etcd, &before, "role", "get", "holdfast-default-viewer", NULL);
    hft_etcdctl_ok(&fleet.etcd, NULL, "role", "grant-permission", "holdfast-default-viewer",
                   "--prefix", "readwrite", "/holdfast/default/", NULL);
    hft_etcdctl_ok(&fleet.etcd, NULL, "role", "grant-permission", "holdfast-default-viewer",
                   "--from-key", "read", "b", NULL);
    hft_etcdctl_ok(&fleet.etcd, NULL, "role", "grant-permission", "holdfast-default-viewer",
                   "write", "/holdfast/default/meta", NULL);
    expect_output(script("roles.sh", "root", "roles", NULL), 0,
                  "role holdfast-default-viewer: may no longer use /holdfast/default/meta");
    hft_etcdctl_ok(&fleet.etcd, &after, "role", "get", "holdfast-default-viewer", NULL);
    ck_assert_str_eq(before, after);

    expect_output(script("roles.sh", "root", "user", "eve", "agentd", NULL), 0,
                  "user eve: is holdfast-default-agentd");
    expect_output(script("roles.sh", "root", "user", "eve", "viewer", NULL), 0,
                  "user eve: is no longer holdfast-default-agentd");
    expect_output(script("roles.sh", "root", "user", "eve", "king", NULL), 2, "no role king");
    expect_output(script("roles.sh", "root", "--namespace", "default-2", "roles", NULL), 0,
                  "role holdfast-default-2-agentd: made");
    expect_output(
        script("roles.sh", "root", "--namespace", "default-2", "user", "eve", "agentd", NULL),
        0, "user eve: is holdfast-default-2-agentd");
    beside = script("roles.sh", "root", "user", "eve", "operator", NULL);
    ck_assert_str_eq(beside.out, "user eve: is holdfast-default-operator\n"
                                 "user eve: is no longer holdfast-default-viewer\n");
    expect_output(script("roles.sh", "root", "user", "eve", "viewer", NULL), 0,
                  "user eve: is holdfast-default-viewer");
    /* Who is not root would lock everybody out. */
    expect_output(script("roles.sh", "viewer", "enable", NULL), 1, "is not root's");
    expect_output(script("roles.sh", "root", "enable", NULL), 0, "authentication is on");
    expect_output(script("roles.sh", "root", "enable", NULL), 0, "authentication is on");
    expect_output(script("roles.sh", "root", "show", NULL), 0, "held by eve");
    certify("eve");
    expect_output(script("roles.sh", "eve", "roles", NULL), 1, "permission denied");
    expect_output(script("roles.sh", "root", "--help", NULL), 0, "usage:");
    expect_output(script("certificates.sh", "root", "--help", NULL), 0, "usage:");
}
END_TEST

/* The table. */

enum { R = 1, W = 2, RW = R | W };

static const struct {
    const char *key;
    unsigned may[ROLE_COUNT]; /* as in ROLES */
} TABLE[] = {
    { HFT_ROOT "meta", { RW, R, 0, R, R } },
    { HFT_ROOT "hosts/h/record", { RW, RW, 0, RW, R } },
    { HFT_ROOT "hosts/h/live", { RW, RW, 0, RW, R } },
    { HFT_ROOT "agents/a/spec", { RW, RW, 0, RW, R } },
    { HFT_ROOT "agents/a/live", { RW, RW, 0, RW, R } },
    { HFT_ROOT "agents/a/report", { RW, RW, 0, RW, R } },
    { HFT_ROOT "agents/a/exit", { RW, RW, 0, RW, R } },
    { HFT_ROOT "wanted/a", { R, R, 0, RW, R } },
    { HFT_ROOT "health/a", { RW, R, 0, RW, R } },
    { HFT_ROOT "tasks/t", { RW, RW, RW, RW, R } },
    { HFT_ROOT "pending/r/t", { RW, RW, W, RW, R } },
    { HFT_ROOT "checkpoints/t/0000000000000000001", { RW, RW, 0, RW, R } },
    { HFT_ROOT "commands/h/a", { RW, RW, 0, R, R } },
    { HFT_ROOT "recoveries/t", { RW, R, 0, RW, R } },
    { HFT_ROOT "controller/leader", { RW, R, 0, R, R } },
    { HFT_ROOT "controller/clock", { RW, R, 0, R, R } },
    { HFT_ROOT "events/0000000000000000001", { RW, RW, 0, RW, R } },
    { DATA "tasks/t/payload", { RW, RW, RW, RW, 0 } },
    { DATA "tasks/t/result", { RW, RW, RW, RW, 0 } },
    { DATA "checkpoints/t/0000000000000000001", { RW, RW, RW, RW, 0 } },
    /* Beside the namespace. */
    { "/holdfast/default", { 0 } },
    { "/holdfast/default.2/tasks/t", { 0 } },
    { "/holdfast/other/tasks/t", { 0 } },
    { "/holdfast-data/other/tasks/t/payload", { 0 } },
    { "elsewhere", { 0 } },
};

static void expect_verdict(const struct hft_outcome *outcome, bool allowed, const char *what,
                           const char *key)
{
    ck_assert_msg(outcome->err == (allowed ? HF_OK : HF_EDENIED), "%s of %s: %s %s", what, key,
                  hf_err_name(outcome->err), outcome->message);
    if (!allowed)
        ck_assert_msg(strstr(outcome->message, "permission denied") != NULL &&
                          !outcome->maybe_applied,
                      "%s", outcome->message);
}

/* A watch is refused on a stream that lives on: it is over, or sees what is to be seen. */
static void on_watched(void *arg)
{
    ((struct hft_outcome *)arg)->done = true;
}

static void on_watch_events(size_t range, const Etcdserverpb__WatchResponse *message, bool last,
                            void *arg)
{
    (void)range;
    (void)message;
    (void)last;
    (void)arg;
}

static void on_watch_ended(int err, const char *message, void *arg)
{
    struct hft_outcome *outcome = arg;

    outcome->done = true;
    outcome->err = err;
    (void)snprintf(outcome->message, sizeof outcome->message, "%s", message);
}

static void try_watch(struct hft_client *client, struct hf_key_range range, bool allowed)
{
    static const struct hf_watch_handler handler = { on_watched, on_watch_events,
                                                     on_watch_ended };
    struct hft_outcome outcome = { 0 };
    struct hf_range_bounds bounds;

    ck_assert_int_eq(hf_range_bounds_init(&bounds, &range), HF_OK);
    watch_until_done(client, &bounds, 0, &handler, &outcome);
    expect_verdict(&outcome, allowed, "a watch", range.key.data);
    hf_range_bounds_done(&bounds);
}

static void try_key(struct hft_client *client, const char *key, unsigned may)
{
    struct hft_outcome read = hft_read(client, key), put = { 0 }, gone = { 0 };

    expect_verdict(&read, (may & R) != 0, "a read", key);
    ck_assert_int_eq(hf_etcd_put(client->etcd, hf_bytes_of(key), hf_bytes_of("{}"), HF_NO_LEASE,
                                 hft_on_write, &put, NULL),
                     HF_OK);
    hft_await(client, &put, hft_patience(0));
    expect_verdict(&put, (may & W) != 0, "a write", key);
    ck_assert_int_eq(hf_etcd_delete(client->etcd,
                                    (struct hf_key_range){ .key = hf_bytes_of(key) },
                                    hft_on_write, &gone, NULL),
                     HF_OK);
    hft_await(client, &gone, hft_patience(0));
    expect_verdict(&gone, (may & W) != 0, "a removal", key);
    try_watch(client, (struct hf_key_range){ .key = hf_bytes_of(key) }, (may & R) != 0);
}

/* What one part of a transaction may not do, none of it does. */

static const char MIXED[] = DATA "tasks/t/mixed";

/* The part that is allowed, whoever has the role: a read, and a write where there are any. */
static struct hf_txn *begin_mixed(bool writes)
{
    struct hf_txn *txn = hf_txn_new();

    ck_assert_ptr_nonnull(txn);
    hf_txn_then_range(txn, (struct hf_key_range){ .key = hf_bytes_of(HFT_ROOT "tasks/u") });
    if (writes)
        hf_txn_then_put(txn, hf_bytes_of(MIXED), hf_bytes_of("{}"), HF_NO_LEASE);
    return txn;
}

static void expect_mixed(struct hft_client *client, struct hf_txn *txn, bool writes,
                         bool allowed, const char *what, const char *key)
{
    struct hft_outcome outcome = hft_commit(client, txn, false);

    expect_verdict(&outcome, allowed, what, key);
    ck_assert_int_eq(hft_read(&fleet.hand, MIXED).count, allowed && writes ? 1 : 0);
    (void)hft_delete(&fleet.hand, MIXED);
}

/* What is forbidden is so too where it is only compared, or not come to. */
static void try_mixed(struct hft_client *client, const char *key, unsigned may, bool writes)
{
    struct hf_key_range range = { .key = hf_bytes_of(key) };
    struct hf_txn *txn = begin_mixed(writes);

    hf_txn_then_put(txn, range.key, hf_bytes_of("{}"), HF_NO_LEASE);
    expect_mixed(client, txn, writes, (may & W) != 0, "a write beside others", key);
    txn = begin_mixed(writes);
    hf_txn_then_delete(txn, range);
    expect_mixed(client, txn, writes, (may & W) != 0, "a removal beside others", key);
    txn = begin_mixed(writes);
    hf_txn_else_range(txn, range);
    expect_mixed(client, txn, writes, (may & R) != 0, "a read beside others", key);
    txn = begin_mixed(writes);
    hf_txn_if_version(txn, range.key, HF_TXN_EQUAL, 0);
    expect_mixed(client, txn, writes, (may & R) != 0, "a comparison", key);
}

static void try_range(struct hft_client *client, const char *prefix, bool allowed)
{
    struct hf_range_request request = { .range = { .key = hf_bytes_of(prefix), .prefix = true },
                                        .keys_only = true };
    struct hft_outcome outcome = { 0 };

    try_watch(client, request.range, allowed);

    ck_assert_int_eq(hf_etcd_range(client->etcd, &request, hft_on_range, &outcome, NULL),
                     HF_OK);
    hft_await(client, &outcome, hft_patience(0));
    expect_verdict(&outcome, allowed, "a list", prefix);
}

static void expect_revoked(struct hft_client *client, int64_t lease, bool allowed,
                           const char *what)
{
    struct hft_outcome outcome = { 0 };

    ck_assert_int_eq(hf_etcd_lease_revoke(client->etcd, lease, hft_on_write, &outcome, NULL),
                     HF_OK);
    hft_await(client, &outcome, hft_patience(0));
    expect_verdict(&outcome, allowed, "a revocation", what);
}

/* Leases have no roles: who may remove all keys that hang on somebody's lease may end it, and
 * one without keys is anybody's who was let in. */
static void try_leases(struct hft_client *client, bool may_write)
{
    static const char LIVE[] = HFT_ROOT "agents/a/live";
    int64_t used = hft_grant(&fleet.hand, 60), bare = hft_grant(&fleet.hand, 60);

    (void)hft_put(&fleet.hand, LIVE, "{}", used);
    expect_revoked(client, used, may_write, "a lease that an agent hangs on");
    ck_assert_int_eq(hft_read(&fleet.hand, LIVE).count, may_write ? 0 : 1);
    expect_revoked(client, bare, true, "a lease without keys");
}

static void try_role(size_t role)
{
    struct hft_cert cert = cert_of(ROLES[role]);
    struct hf_etcd_config cfg = config_of(&cert);
    bool submitter = strcmp(ROLES[role], "submitter") == 0;
    bool viewer = strcmp(ROLES[role], "viewer") == 0;
    struct hft_client client;

    hft_client_open_with(&client, &cfg);
    for (size_t k = 0; k < sizeof TABLE / sizeof TABLE[0]; k++) {
        try_key(&client, TABLE[k].key, TABLE[k].may[role]);
        try_mixed(&client, TABLE[k].key, TABLE[k].may[role], !viewer);
    }
    try_range(&client, HFT_ROOT, !submitter);
    try_range(&client, HFT_ROOT "tasks/", true);
    try_range(&client, DATA, !viewer);
    try_range(&client, "/holdfast/", false);
    try_range(&client, "/", false);
    try_leases(&client, !submitter && !viewer);
    hft_client_close(&client);
    expect_output(script("roles.sh", ROLES[role], "user", "eve", "operator", NULL), 1,
                  "permission denied");
}

/* Somebody whom etcd does not know, with a certificate all the same. */
static void try_stranger(void)
{
    struct hft_cert cert = cert_of("stranger");
    struct hf_etcd_config cfg = config_of(&cert);
    struct hft_client client;

    certify("stranger");
    hft_client_open_with(&client, &cfg);
    for (size_t k = 0; k < sizeof TABLE / sizeof TABLE[0]; k++)
        try_key(&client, TABLE[k].key, 0);
    try_range(&client, HFT_ROOT, false);
    try_leases(&client, false);
    hft_client_close(&client);
}

/* In one etcd, since that takes the longest to make. */
START_TEST(a_role_may_do_what_the_table_says_and_nothing_else)
{
    for (size_t i = 0; i < ROLE_COUNT; i++)
        try_role(i);
    try_stranger();
}
END_TEST

/* The programs. */

static void begin_controller(void)
{
    struct hft_cert cert = cert_of("controller");

    hft_fleet_lead(&fleet, 0, "--cacert", ca, "--cert", cert.cert, "--key", cert.key, "--ttl",
                   LEADER_TTL, NULL);
    hft_fleet_until_leads(&fleet, 0);
}

static void begin_host(const struct hft_cert *cert)
{
    static char options[4 * HFT_PKI_PATH_MAX];

    (void)snprintf(options, sizeof options, "etcd:\n  cacert: %s\n  cert: %s\n  key: %s\n", ca,
                   cert->cert, cert->key);
    fleet.host_options = options;
    hft_fleet_launch(&fleet, "exec \"$DEMO\"\n");
    hft_fleet_host(&fleet, 0, "w1", NULL);
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
}

static void submit(const char *task)
{
    char payload[100];

    (void)snprintf(payload, sizeof payload, "{\"steps\": %d, \"seconds\": 0.3}", STEPS);
    expect_output(as("submitter", "task", "submit", "--role", "r", "--id", task, "--payload",
                     payload, NULL),
                  0, task);
}

static void expect_denied(struct hft_output output)
{
    expect_output(output, 6, "does not permit this");
}

/* Nobody was refused anything on the way, but how the members are, which some releases tell
 * only root. */
static void expect_no_refusal(const struct hft_program *program)
{
    ck_assert_uint_eq(hft_program_count(program, "permission denied"),
                      hft_program_count(program, "what=survey error=EDENIED"));
}

START_TEST(the_programs_work_with_their_roles)
{
    struct hft_cert cert = cert_of("agentd");
    HFT_CLEANUP_OUTPUT struct hft_output doctor = { 0 }, body = { 0 };

    begin_controller();
    begin_host(&cert);
    submit("t1");
    hft_fleet_until_step(&fleet, "t1", 3);
    hft_fleet_kill_agent(&fleet, "w1");
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "t1", STEPS), 2);

    expect_output(as("submitter", "task", "watch", "t1", "--until", "completed", NULL), 0,
                  "completed");
    expect_output(as("submitter", "task", "show", "t1", NULL), 0, "completed");
    expect_output(as("submitter", "task", "ls", NULL), 0, "t1");
    expect_denied(as("submitter", "ps", NULL));
    expect_denied(as("submitter", "stop", "w1", NULL));

    expect_output(as("viewer", "ps", NULL), 0, "healthy");
    expect_output(as("viewer", "hosts", NULL), 0, "h1");
    expect_output(as("viewer", "explain", "w1", NULL), 0, "crashed");
    expect_output(as("viewer", "explain", "t1", NULL), 0, "completed");
    expect_output(as("viewer", "events", NULL), 0, "recovered");
    expect_output(as("viewer", "leader", NULL), 0, "c1");
    expect_output(as("viewer", "checkpoint", "ls", "t1", NULL), 0, "etcd");
    expect_output(as("viewer", "invariants", NULL), 0, "");
    expect_output(as("viewer", "storm", "status", NULL), 0, "normal");
    doctor = as("viewer", "doctor", NULL); /* may find faults of this etcd */
    ck_assert_msg(doctor.status <= 1 && strstr(doctor.err, "permi") == NULL &&
                      strstr(doctor.out, "permission denied") == NULL,
                  "%d: %s%s", doctor.status, doctor.out, doctor.err);
    expect_denied(as("viewer", "checkpoint", "get", "t1", NULL));
    expect_denied(as("viewer", "stop", "w1", NULL));
    expect_denied(as("viewer", "task", "submit", "--role", "r", "--id", "t2", NULL));
    expect_denied(as("viewer", "task", "rm", "t1", NULL));
    expect_denied(as("viewer", "host", "cordon", "h1", NULL));
    expect_denied(as("viewer", "storm", "hold", NULL));

    body = as("operator", "checkpoint", "get", "t1", NULL);
    ck_assert_msg(body.status == 0, "%s", body.err);
    ck_assert_int_eq(hft_program_stop(&fleet.hosts[0]), 0);
    expect_no_refusal(&fleet.hosts[0]);
    expect_no_refusal(&fleet.controllers[0]);
}
END_TEST

START_TEST(an_operator_may_do_all_that_the_command_line_offers)
{
    struct hft_cert cert = cert_of("agentd");

    begin_controller();
    begin_host(&cert);
    submit("t1");
    hft_fleet_until_step(&fleet, "t1", 1);
    expect_output(as("operator", "task", "cancel", "t1", NULL), 0, "");
    expect_output(as("operator", "task", "retry", "t1", NULL), 0, "");
    hft_fleet_await(&fleet, "tasks/t1", "\"state\":\"completed\"");
    expect_output(as("operator", "task", "rm", "t1", NULL), 0, "removed");
    expect_output(as("operator", "host", "cordon", "h1", NULL), 0, "");
    expect_output(as("operator", "host", "uncordon", "h1", NULL), 0, "");
    expect_output(as("operator", "storm", "hold", NULL), 0, "");
    expect_output(as("operator", "storm", "proceed", NULL), 0, "");
    expect_output(as("operator", "restart", "w1", NULL), 0, "");
    expect_output(as("operator", "stop", "w1", NULL), 0, "");
    hft_fleet_await(&fleet, "agents/w1/live", NULL);
    expect_output(as("operator", "start", "w1", NULL), 0, "");
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
    expect_output(as("operator", "invariants", NULL), 0, "");
    ck_assert_int_eq(hft_program_stop(&fleet.hosts[0]), 0);
    expect_output(as("operator", "agent", "rm", "w1", NULL), 0, "removed");
    expect_output(as("operator", "host", "rm", "h1", NULL), 0, "removed");
    expect_no_refusal(&fleet.hosts[0]);
    expect_no_refusal(&fleet.controllers[0]);
}
END_TEST

/* Renewal. */

enum {
    OLD_CERT_S = 35,        /* longer than it may take to look for another one */
    RENEWAL_TTL_MS = 15000, /* a busy machine may take long to connect again */
    RENEWALS = 2,
};

static bool has_expired(void *until)
{
    return time(NULL) > *(const time_t *)until;
}

static int64_t ttl_of(const char *lease)
{
    HF_CLEANUP_FREE char *said = NULL;
    const char *left;

    hft_etcdctl_ok(&fleet.etcd, &said, "lease", "timetolive", lease, NULL);
    left = strstr(said, "remaining(");
    ck_assert_msg(left != NULL, "%s", said);
    return strtoll(left + strlen("remaining("), NULL, 10);
}

struct renewal {
    const char *lease;
    int64_t before;
};

static bool is_renewed(void *arg)
{
    struct renewal *renewal = arg;
    int64_t now = ttl_of(renewal->lease);
    bool grew = now > renewal->before;

    renewal->before = now;
    return grew;
}

/* The old certificates die while agentd runs and a controller leads; whatever connects from
 * then on shows the new one, or is let in by nobody. */
START_TEST(a_certificate_is_renewed_without_losing_a_lease)
{
    struct hft_proxy *proxy = hft_proxy_new(fleet.etcd.client.number);
    struct hft_pki pki;
    struct hft_cert cert;
    struct hft_outcome before, after, leader;
    time_t until;
    char lease[32];
    struct renewal renewal = { .lease = lease };

    hft_pki_borrow(&pki, dir.path);
    hft_pki_issue(&pki, "late", OLD_CERT_S, &cert);
    hft_pki_issue(&pki, "controller", OLD_CERT_S, &cert);
    hft_pki_issue(&pki, "agentd", OLD_CERT_S, &cert);
    until = time(NULL) + OLD_CERT_S;
    (void)snprintf(fleet.endpoint, sizeof fleet.endpoint, "https://localhost:%u",
                   hft_proxy_port(proxy));
    fleet.ttl = RENEWAL_TTL_MS;
    begin_controller();
    leader = hft_fleet_look(&fleet, "controller/leader");
    begin_host(&cert);
    before = hft_fleet_look(&fleet, "agents/w1/live");
    (void)snprintf(lease, sizeof lease, "%" PRIx64, before.lease);

    certify("agentd"); /* in place of the old files */
    certify("controller");
    hft_program_until_said(&fleet.controllers[0], "event=certificate_renewed",
                           hft_patience(OLD_CERT_S * 1000));
    hft_program_until_said(&fleet.hosts[0], "event=certificate_renewed",
                           hft_patience(OLD_CERT_S * 1000));
    hft_wait_or_fail(has_expired, &until, 2 * OLD_CERT_S * 1000, "the old one to expire");
    expect_output(as("late", "leader", NULL), 5, ""); /* nobody who shows the like is let in */
    hft_proxy_cut(proxy);
    for (int i = 0; i < RENEWALS; i++) {
        renewal.before = INT64_MAX;
        hft_wait_or_fail(is_renewed, &renewal, HFT_FLEET_STEP_MS, "a renewal");
    }
    after = hft_fleet_look(&fleet, "agents/w1/live");
    ck_assert_int_eq(before.lease, after.lease);
    ck_assert_int_eq(before.create_rev, after.create_rev);
    ck_assert_int_eq(before.mod_rev, after.mod_rev);
    after = hft_fleet_look(&fleet, "controller/leader");
    ck_assert_int_eq(leader.lease, after.lease);
    ck_assert_int_eq(leader.create_rev, after.create_rev);
    ck_assert(!hft_program_said(&fleet.hosts[0], "event=fence"));
    ck_assert(!hft_program_said(&fleet.hosts[0], "event=link_ended"));
    ck_assert_int_eq(hft_program_stop(&fleet.hosts[0]), 0);
    hft_pki_done(&pki);
    hft_proxy_free(proxy);
}
END_TEST

int main(void)
{
    TCase *bare = tcase_create("scripts");
    TCase *t = tcase_create("roles");
    TCase *renewal = tcase_create("renewal");

    tcase_add_checked_fixture(bare, setup_bare, teardown);
    tcase_set_timeout(bare, 240);
    tcase_add_test(bare, the_scripts_may_be_repeated_and_undo_what_is_too_much);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_role_may_do_what_the_table_says_and_nothing_else);
    tcase_add_test(t, the_programs_work_with_their_roles);
    tcase_add_test(t, an_operator_may_do_all_that_the_command_line_offers);
    tcase_add_checked_fixture(renewal, setup, teardown);
    tcase_set_timeout(renewal, 240);
    tcase_add_test(renewal, a_certificate_is_renewed_without_losing_a_lease);
    return hft_suite_run("e2e: roles", bare, t, renewal, NULL);
}
