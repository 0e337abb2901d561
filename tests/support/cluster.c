#include "support/cluster.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/cleanup.h"
#include "support/admin.h"
#include "support/wait.h"

#define START_TRIES       5
#define LEADER_TIMEOUT_MS 30000

static void init_members(struct hft_cluster *cluster, const struct hft_etcd_options *options,
                         bool apart)
{
    static const char *const NAMES[HFT_CLUSTER_SIZE] = { "m0", "m1", "m2" };
    char initial[sizeof cluster->member[0].initial_cluster];
    int len = 0;

    *cluster = (struct hft_cluster){ 0 };
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++) {
        struct hft_etcd_options own = *options;

        own.name = NAMES[i];
        hft_etcd_init(&cluster->member[i], &own);
        if (apart) {
            cluster->door[i] = hft_proxy_new(cluster->member[i].peer.number);
            (void)snprintf(cluster->member[i].peer_url, sizeof cluster->member[i].peer_url,
                           "%s", hft_proxy_endpoint(cluster->door[i]));
        }
        len += snprintf(initial + len, sizeof initial - (size_t)len, "%s%s=%s",
                        i > 0 ? "," : "", NAMES[i], cluster->member[i].peer_url);
        ck_assert_int_lt(len, (int)sizeof initial);
    }
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++)
        memcpy(cluster->member[i].initial_cluster, initial, sizeof initial);
}

/* False when a port was taken by a stranger. Members cannot be ready one after the other. */
static bool run_all(struct hft_cluster *cluster)
{
    bool ready = true;

    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++)
        hft_etcd_run(&cluster->member[i]);
    for (size_t i = 0; i < HFT_CLUSTER_SIZE && ready; i++)
        ready = hft_etcd_wait_ready(&cluster->member[i]);
    return ready;
}

static void start(struct hft_cluster *cluster, const struct hft_etcd_options *options,
                  bool apart)
{
    for (int i = 0; i < START_TRIES; i++) {
        init_members(cluster, options, apart);
        if (run_all(cluster))
            return;
        hft_cluster_done(cluster);
    }
    ck_abort_msg("ports were taken %d times in a row", START_TRIES);
}

void hft_cluster_start(struct hft_cluster *cluster, const struct hft_etcd_options *options)
{
    start(cluster, options, false);
}

void hft_cluster_start_apart(struct hft_cluster *cluster,
                             const struct hft_etcd_options *options)
{
    start(cluster, options, true);
}

uint64_t hft_cluster_member_id(const struct hft_etcd *member)
{
    HF_CLEANUP_FREE char *status = NULL;
    const char *id;

    hft_etcdctl_ok(member, &status, "endpoint", "status", "-w", "json", NULL);
    id = strstr(status, "\"member_id\":");
    ck_assert_ptr_nonnull(id);
    return strtoull(id + strlen("\"member_id\":"), NULL, 10);
}

/* Each direction has its own connections: members dial those whose messages they want, and say
 * who they are. */
void hft_cluster_cut_off(struct hft_cluster *cluster, const struct hft_etcd *member)
{
    char words[64];

    (void)snprintf(words, sizeof words, "X-Server-From: %" PRIx64 "\r\n",
                   hft_cluster_member_id(member));
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++) {
        if (&cluster->member[i] == member)
            hft_proxy_set_both(cluster->door[i], HFT_PROXY_HOLD);
        else
            hft_proxy_hold_talk(cluster->door[i], words);
    }
}

void hft_cluster_heal(struct hft_cluster *cluster)
{
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++)
        hft_proxy_heal(cluster->door[i]);
}

void hft_cluster_done(struct hft_cluster *cluster)
{
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++)
        hft_etcd_done(&cluster->member[i]);
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++)
        hft_proxy_free(cluster->door[i]);
}

static bool is_running(const struct hft_etcd *etcd)
{
    return etcd->pid != 0 && !etcd->paused;
}

/* NULL unless exactly one leads: a leader that was paused takes a moment to learn the news. */
static struct hft_etcd *find_leader(struct hft_cluster *cluster)
{
    struct hft_etcd *leader = NULL;

    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++) {
        struct hft_etcd *etcd = &cluster->member[i];

        if (!is_running(etcd) || hft_etcd_metric(etcd, "etcd_server_is_leader", 0) != 1)
            continue;
        if (leader != NULL)
            return NULL;
        leader = etcd;
    }
    return leader;
}

static bool has_leader(void *arg)
{
    return find_leader(arg) != NULL;
}

struct hft_etcd *hft_cluster_leader(struct hft_cluster *cluster)
{
    struct hft_etcd *leader = NULL;

    while (leader == NULL) {
        hft_wait_or_fail(has_leader, cluster, LEADER_TIMEOUT_MS, "one leader");
        leader = find_leader(cluster);
    }
    return leader;
}

struct hft_etcd *hft_cluster_follower(struct hft_cluster *cluster)
{
    const struct hft_etcd *leader = hft_cluster_leader(cluster);

    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++) {
        struct hft_etcd *etcd = &cluster->member[i];

        if (is_running(etcd) && etcd != leader)
            return etcd;
    }
    ck_abort_msg("no follower runs");
}

void hft_cluster_restore(struct hft_cluster *cluster, const char *snapshot)
{
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++) {
        if (cluster->member[i].pid != 0)
            hft_etcd_kill(&cluster->member[i]);
    }
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++)
        hft_etcd_snapshot_restore(&cluster->member[i], snapshot);
    ck_assert_msg(run_all(cluster), "someone took a port of the cluster");
}
