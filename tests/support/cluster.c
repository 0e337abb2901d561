#include "support/cluster.h"

#include <stdio.h>
#include <string.h>

#include <check.h>

#include "support/admin.h"
#include "support/wait.h"

#define START_TRIES       5
#define LEADER_TIMEOUT_MS 30000

static void init_members(struct hft_cluster *cluster, const struct hft_etcd_options *options)
{
    static const char *const NAMES[HFT_CLUSTER_SIZE] = { "m0", "m1", "m2" };
    char initial[sizeof cluster->member[0].initial_cluster];
    int len = 0;

    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++) {
        struct hft_etcd_options own = *options;

        own.name = NAMES[i];
        hft_etcd_init(&cluster->member[i], &own);
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

void hft_cluster_start(struct hft_cluster *cluster, const struct hft_etcd_options *options)
{
    for (int i = 0; i < START_TRIES; i++) {
        init_members(cluster, options);
        if (run_all(cluster))
            return;
        hft_cluster_done(cluster);
    }
    ck_abort_msg("ports were taken %d times in a row", START_TRIES);
}

void hft_cluster_done(struct hft_cluster *cluster)
{
    for (size_t i = 0; i < HFT_CLUSTER_SIZE; i++)
        hft_etcd_done(&cluster->member[i]);
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
