/* Clusters, backups, quota, users and certificates of the harness. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "support/admin.h"
#include "support/cluster.h"
#include "support/pki.h"
#include "support/suite.h"
#include "support/truth.h"

static const struct hft_etcd_options QUICK = { .no_fsync = true };

/* Short timeouts: a killed leader is missed after 0.5 s. */
static const struct hft_etcd_options NERVOUS = {
    .no_fsync = true,
    .heartbeat_ms = 50,
    .election_ms = 500,
};

START_TEST(a_killed_leader_is_replaced_and_comes_back_with_all_data)
{
    struct hft_cluster cluster;
    HF_CLEANUP_FREE char *got = NULL;

    hft_cluster_start(&cluster, &NERVOUS);
    struct hft_etcd *old = hft_cluster_leader(&cluster);
    hft_etcdctl_ok(old, NULL, "put", "k", "before", NULL);
    hft_etcd_kill(old);

    struct hft_etcd *new = hft_cluster_leader(&cluster);
    ck_assert_ptr_ne(new, old);
    ck_assert_ptr_ne(hft_cluster_follower(&cluster), new);
    ck_assert_ptr_ne(hft_cluster_follower(&cluster), old);
    hft_etcdctl_ok(new, NULL, "put", "k", "after", NULL);

    hft_etcd_restart(old);
    hft_etcdctl_ok(old, &got, "get", "k", "--print-value-only", NULL);
    ck_assert_str_eq(got, "after\n");
    hft_cluster_done(&cluster);
}
END_TEST

START_TEST(a_paused_leader_is_replaced_and_follows_after_resume)
{
    struct hft_cluster cluster;

    hft_cluster_start(&cluster, &NERVOUS);
    struct hft_etcd *old = hft_cluster_leader(&cluster);
    hft_etcd_pause(old);
    ck_assert_ptr_ne(hft_cluster_leader(&cluster), old);
    hft_etcd_resume(old);
    ck_assert_ptr_ne(hft_cluster_leader(&cluster), old);
    hft_cluster_done(&cluster);
}
END_TEST

static uint64_t cluster_id(const struct hft_etcd *etcd)
{
    HF_CLEANUP_FREE char *status = NULL;

    hft_etcdctl_ok(etcd, &status, "endpoint", "status", "-w", "json", NULL);
    const char *id = strstr(status, "\"cluster_id\":");
    ck_assert_ptr_nonnull(id);
    return strtoull(id + strlen("\"cluster_id\":"), NULL, 10);
}

START_TEST(a_restored_etcd_is_the_same_one_with_an_older_revision)
{
    struct hft_etcd etcd;
    HFT_CLEANUP_TRUTH struct hft_truth truth = { 0 };
    char snapshot[HFT_PATH_MAX + 16];

    hft_etcd_start(&etcd, &QUICK);
    (void)snprintf(snapshot, sizeof snapshot, "%s/backup.db", etcd.dir.path);
    hft_etcdctl_ok(&etcd, NULL, "put", "k", "old", NULL);
    int64_t revision = hft_etcd_revision(&etcd);
    hft_etcd_snapshot_save(&etcd, snapshot);
    (void)hft_etcd_put_many(&etcd, "later/", 10, 1);
    ck_assert_int_eq(hft_etcd_revision(&etcd), revision + 10);
    uint64_t id = cluster_id(&etcd);

    hft_etcd_kill(&etcd);
    hft_etcd_snapshot_restore(&etcd, snapshot);
    hft_etcd_restart(&etcd);
    ck_assert_int_eq(hft_etcd_revision(&etcd), revision);
    ck_assert(cluster_id(&etcd) == id);
    hft_truth_fetch(&etcd, "", &truth);
    ck_assert_uint_eq(truth.count, 1);
    hft_etcd_done(&etcd);
}
END_TEST

START_TEST(a_restored_cluster_serves_the_older_revision_on_every_member)
{
    struct hft_cluster cluster;
    char snapshot[HFT_PATH_MAX + 16];

    hft_cluster_start(&cluster, &QUICK);
    (void)snprintf(snapshot, sizeof snapshot, "%s/backup.db", cluster.member[0].dir.path);
    hft_etcd_snapshot_save(&cluster.member[0], snapshot);
    int64_t revision = hft_etcd_revision(&cluster.member[0]);
    (void)hft_etcd_put_many(&cluster.member[0], "later/", 5, 1);
    hft_etcd_kill(&cluster.member[1]);
    hft_cluster_restore(&cluster, snapshot);
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++)
        ck_assert_int_eq(hft_etcd_revision(&cluster.member[i]), revision);
    hft_etcdctl_ok(&cluster.member[2], NULL, "put", "k", "v", NULL);
    hft_cluster_done(&cluster);
}
END_TEST

START_TEST(compaction_takes_the_past_away)
{
    struct hft_etcd etcd;

    hft_etcd_start(&etcd, &QUICK);
    int64_t revision = hft_etcd_put_many(&etcd, "k", 20, 8);
    ck_assert_int_eq(revision, hft_etcd_revision(&etcd));
    hft_etcdctl_ok(&etcd, NULL, "get", "--rev=5", "k000001", NULL);
    hft_etcd_compact(&etcd, revision);
    ck_assert_int_ne(hft_etcdctl(&etcd, NULL, "get", "--rev=5", "k000001", NULL), 0);
    hft_etcd_done(&etcd);
}
END_TEST

START_TEST(a_full_etcd_raises_its_alarm_and_recovers_when_room_is_made)
{
    struct hft_etcd etcd;

    hft_etcd_start(&etcd, &(struct hft_etcd_options){
                              .no_fsync = true,
                              .quota_bytes = 16 << 20,
                          });
    ck_assert(!hft_etcd_has_alarm(&etcd, "NOSPACE"));
    hft_etcd_fill(&etcd);
    ck_assert_int_ne(hft_etcdctl(&etcd, NULL, "put", "k", "v", NULL), 0);
    hft_etcd_kill(&etcd);
    hft_etcd_restart(&etcd); /* the alarm survives; that must not count as not ready */
    ck_assert(hft_etcd_has_alarm(&etcd, "NOSPACE"));
    hft_etcd_make_room(&etcd);
    ck_assert(!hft_etcd_has_alarm(&etcd, "NOSPACE"));
    hft_etcdctl_ok(&etcd, NULL, "put", "k", "v", NULL);
    hft_etcd_done(&etcd);
}
END_TEST

START_TEST(a_user_may_write_below_its_prefix_only)
{
    struct hft_etcd etcd;
    HF_CLEANUP_FREE char *got = NULL;

    hft_etcd_start(&etcd, &QUICK);
    hft_etcd_user_add(&etcd, "agent", "secret", "a/");
    hft_etcd_auth_enable(&etcd);
    hft_etcdctl_ok(&etcd, NULL, "--user=agent:secret", "put", "a/k", "v", NULL);
    ck_assert_int_ne(hft_etcdctl(&etcd, NULL, "--user=agent:secret", "put", "b/k", "v", NULL),
                     0);
    ck_assert_int_ne(hft_etcdctl(&etcd, NULL, "--user=agent:wrong", "put", "a/k", "v", NULL),
                     0);
    hft_etcdctl_ok(&etcd, &got, "get", "a/k", "--print-value-only", NULL); /* as root */
    ck_assert_str_eq(got, "v\n");
    hft_etcd_done(&etcd);
}
END_TEST

/* One who is refused goes on trying until the time is up. */
static int put_with(const struct hft_etcd *etcd, const struct hft_cert *cert, const char *time)
{
    char dial[32], command[32];
    char cert_flag[HFT_PKI_PATH_MAX + 16];
    char key_flag[HFT_PKI_PATH_MAX + 16];

    (void)snprintf(cert_flag, sizeof cert_flag, "--cert=%s", cert->cert);
    (void)snprintf(key_flag, sizeof key_flag, "--key=%s", cert->key);
    (void)snprintf(dial, sizeof dial, "--dial-timeout=%s", time);
    (void)snprintf(command, sizeof command, "--command-timeout=%s", time);
    return hft_etcdctl(etcd, NULL, dial, command, cert_flag, key_flag, "put", "k", "v", NULL);
}

START_TEST(only_certificates_of_the_authority_that_have_not_expired_get_in)
{
    struct hft_pki pki;
    struct hft_pki stranger;
    struct hft_cert admin;
    struct hft_cert agent;
    struct hft_cert foreign;
    struct hft_etcd etcd;

    hft_pki_init(&pki);
    hft_pki_init(&stranger);
    hft_pki_issue(&pki, "admin", 3600, &admin);
    hft_pki_issue(&stranger, "agent", 3600, &foreign);
    struct hft_etcd_tls tls = hft_pki_tls(&pki, &admin);
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true, .tls = &tls });
    ck_assert_int_eq(put_with(&etcd, &admin, "60s"), 0);
    ck_assert_int_ne(put_with(&etcd, &foreign, "2s"), 0);

    hft_pki_issue(&pki, "agent", -1, &agent);
    ck_assert_int_ne(put_with(&etcd, &agent, "2s"), 0);
    hft_pki_issue(&pki, "agent", 3600, &agent); /* the same files, renewed */
    ck_assert_int_eq(put_with(&etcd, &agent, "60s"), 0);

    hft_etcd_done(&etcd);
    hft_pki_done(&stranger);
    hft_pki_done(&pki);
}
END_TEST

START_TEST(a_server_certificate_alone_lets_every_client_in)
{
    struct hft_pki pki;
    struct hft_etcd etcd;

    hft_pki_init(&pki);
    struct hft_etcd_tls tls = hft_pki_tls(&pki, NULL);
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true, .tls = &tls });
    ck_assert_int_eq(strncmp(etcd.endpoint, "https://", 8), 0);
    hft_etcdctl_ok(&etcd, NULL, "put", "k", "v", NULL);
    hft_etcd_done(&etcd);
    hft_pki_done(&pki);
}
END_TEST

/* The lease id needs all 63 bits: a double would not do. */
START_TEST(truth_is_exact)
{
    struct hft_etcd etcd;
    HFT_CLEANUP_TRUTH struct hft_truth truth = { 0 };
    HF_CLEANUP_FREE char *granted = NULL;

    hft_etcd_start(&etcd, &QUICK);
    hft_etcdctl_ok(&etcd, &granted, "lease", "grant", "600", NULL);
    ck_assert_int_eq(strncmp(granted, "lease ", 6), 0);
    char *end = NULL;
    int64_t lease = strtoll(granted + 6, &end, 16);
    *end = '\0';
    hft_etcdctl_ok(&etcd, NULL, "put", "p/b", "\x01\xff\"x", NULL);
    hft_etcdctl_ok(&etcd, NULL, "put", "p/b", "\x01\xff\"y", NULL);
    hft_etcdctl_ok(&etcd, NULL, "put", "--lease", granted + 6, "p/a", "", NULL);
    hft_etcdctl_ok(&etcd, NULL, "put", "q", "elsewhere", NULL);

    hft_truth_fetch(&etcd, "p/", &truth);
    ck_assert_uint_eq(truth.count, 2);
    ck_assert_int_eq(truth.revision, hft_etcd_revision(&etcd));
    const struct hf_kv *a = hft_truth_find(&truth, hf_bytes_of("p/a"));
    const struct hf_kv *b = hft_truth_find(&truth, hf_bytes_of("p/b"));
    ck_assert_ptr_null(hft_truth_find(&truth, hf_bytes_of("q")));
    ck_assert_int_eq(a->lease, lease);
    ck_assert_uint_eq(a->value.len, 0);
    ck_assert_uint_eq(b->value.len, 4);
    ck_assert_mem_eq(b->value.data, "\x01\xff\"y", 4);
    ck_assert_int_eq(b->version, 2);
    ck_assert_int_eq(b->mod_rev, b->create_rev + 1);

    hft_etcd_done(&etcd);
}
END_TEST

static void put(struct hft_truth *truth, const char *key, int64_t mod_rev, const char *value)
{
    hft_truth_put(truth, &(struct hf_kv){
                             .key = hf_bytes_of(key),
                             .value = hf_bytes_of(value),
                             .create_rev = 2,
                             .mod_rev = mod_rev,
                             .version = 1,
                         });
}

START_TEST(truth_tells_every_kind_of_difference)
{
    HFT_CLEANUP_TRUTH struct hft_truth want = { 0 };
    HFT_CLEANUP_TRUTH struct hft_truth got = { 0 };
    struct hf_error err;

    put(&want, "a", 3, "x");
    put(&want, "b", 5, "y");
    put(&want, "c", 6, "z");
    put(&got, "c", 6, "z");
    put(&got, "a", 3, "x");
    ck_assert_str_eq(hft_truth_difference(&want, &got, HFT_TRUTH_ALL, &err), "b is missing");
    put(&got, "b", 4, "y");
    ck_assert_str_eq(hft_truth_difference(&want, &got, HFT_TRUTH_ALL, &err),
                     "b: mod_rev is 4, not 5");
    put(&got, "b", 5, "old");
    ck_assert_str_eq(hft_truth_difference(&want, &got, HFT_TRUTH_ALL, &err),
                     "b: the value is another one");
    ck_assert_ptr_null(hft_truth_difference(&want, &got, HFT_TRUTH_WITHOUT_VALUES, &err));
    put(&got, "b", 5, "y");
    ck_assert_ptr_null(hft_truth_difference(&want, &got, HFT_TRUTH_ALL, &err));
    put(&got, "d", 7, "");
    ck_assert_str_eq(hft_truth_difference(&want, &got, HFT_TRUTH_ALL, &err),
                     "d does not exist");
    hft_truth_remove(&got, hf_bytes_of("d"));
    hft_truth_assert_same(&want, &got, HFT_TRUTH_ALL);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("cluster");

    tcase_set_timeout(t, 120);
    tcase_add_test(t, a_killed_leader_is_replaced_and_comes_back_with_all_data);
    tcase_add_test(t, a_paused_leader_is_replaced_and_follows_after_resume);
    tcase_add_test(t, a_restored_etcd_is_the_same_one_with_an_older_revision);
    tcase_add_test(t, a_restored_cluster_serves_the_older_revision_on_every_member);
    tcase_add_test(t, compaction_takes_the_past_away);
    tcase_add_test(t, a_full_etcd_raises_its_alarm_and_recovers_when_room_is_made);
    tcase_add_test(t, a_user_may_write_below_its_prefix_only);
    tcase_add_test(t, only_certificates_of_the_authority_that_have_not_expired_get_in);
    tcase_add_test(t, a_server_certificate_alone_lets_every_client_in);
    tcase_add_test(t, truth_is_exact);
    tcase_add_test(t, truth_tells_every_kind_of_difference);
    return hft_suite_run("support/cluster", t, NULL);
}
