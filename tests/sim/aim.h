/* aim.h - when a Txn that was kept back with an aim (sim/net.h) would do the most harm. Pure.
 */
#ifndef HFS_AIM_H
#define HFS_AIM_H

#include "sim/model_etcd.h"

/* Whether it has the compare that is aimed at. */
bool hfs_aim_is_at(const struct hfs_request *request);

/* Only what is aimed at stands between it and the store. */
bool hfs_aim_is_worst(const struct hfs_txn *txn, const struct hfs_etcd *etcd);

/* A revision beyond `revision` that it knows the key by; 0: none. */
hfs_rev hfs_aim_known_rev(const struct hfs_txn *txn, struct hf_bytes key, hfs_rev revision);

#endif
