/* cluster.h - three etcd members on loopback ports, with signals as faults. */
#ifndef HFT_CLUSTER_H
#define HFT_CLUSTER_H

#include "support/etcd.h"
#include "support/proxy.h"

#define HFT_CLUSTER_SIZE 3

/* Pause, kill and restart members with the functions of etcd.h. */
struct hft_cluster {
    struct hft_etcd member[HFT_CLUSTER_SIZE];
    struct hft_proxy *door[HFT_CLUSTER_SIZE]; /* for its peers; NULL unless started apart */
};

/* Starts all members and waits until each serves clients. `name` of the options is not used. */
void hft_cluster_start(struct hft_cluster *cluster, const struct hft_etcd_options *options);
void hft_cluster_done(struct hft_cluster *cluster);

/* The same with a proxy before each member, through which its peers come: so that one can be
 * cut off from the others, in both directions, while its clients stay. */
void hft_cluster_start_apart(struct hft_cluster *cluster,
                             const struct hft_etcd_options *options);
void hft_cluster_cut_off(struct hft_cluster *cluster, const struct hft_etcd *member);
void hft_cluster_heal(struct hft_cluster *cluster);

uint64_t hft_cluster_member_id(const struct hft_etcd *member);

/* The one running member that leads; waits until there is exactly one, 30 s at most. Paused and
 * dead members are not asked, so after a fault this is the new leader. */
struct hft_etcd *hft_cluster_leader(struct hft_cluster *cluster);

/* A running member that does not lead. */
struct hft_etcd *hft_cluster_follower(struct hft_cluster *cluster);

/* Kills every member, puts the snapshot (of hft_etcd_snapshot_save) in place of all their data
 * and starts them again: the cluster has the same identity and an older revision. */
void hft_cluster_restore(struct hft_cluster *cluster, const char *snapshot);

#endif
