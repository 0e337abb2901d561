/* admin.h - what an operator does to an etcd: backups, compaction, quota, users. */
#ifndef HFT_ADMIN_H
#define HFT_ADMIN_H

#include "support/etcd.h"

/* Writes a snapshot of the running member to `path`. */
void hft_etcd_snapshot_save(const struct hft_etcd *etcd, const char *path);

/* Replaces the data of a member that does not run by the snapshot, under the same name, ports
 * and cluster token; start it with hft_etcd_restart. The history goes back. */
void hft_etcd_snapshot_restore(const struct hft_etcd *etcd, const char *path);

/* Compacts away everything before `revision` and waits until that is done on disk, too. */
void hft_etcd_compact(const struct hft_etcd *etcd, int64_t revision);

/* One put, one revision each: <prefix>000000 and on, `count` of them, with `value_bytes` bytes.
 * About a thousand per second; for an etcd without TLS and authentication. Returns the revision
 * of the last one. */
int64_t hft_etcd_put_many(const struct hft_etcd *etcd, const char *prefix, size_t count,
                          size_t value_bytes);

/* Writes under "fill/" until etcd raises the NOSPACE alarm; set a small quota_bytes. */
void hft_etcd_fill(const struct hft_etcd *etcd);

/* Deletes what hft_etcd_fill wrote, compacts, defragments and disarms the alarm. */
void hft_etcd_make_room(const struct hft_etcd *etcd);

/* Raises the alarm that an etcd raises when its members have different data, and ends all
 * alarms. For an etcd without TLS and authentication. */
void hft_etcd_raise_corrupt(const struct hft_etcd *etcd);
void hft_etcd_disarm(const struct hft_etcd *etcd);

bool hft_etcd_has_alarm(const struct hft_etcd *etcd, const char *name);

/* A user of that name and password who may read and write the keys that begin with `prefix`
 * (NULL: a user without any permission, such as root before hft_etcd_auth_enable). */
void hft_etcd_user_add(const struct hft_etcd *etcd, const char *name, const char *password,
                       const char *prefix);

/* Adds root with password "root" and turns authentication on; etcdctl is root from then on. */
void hft_etcd_auth_enable(struct hft_etcd *etcd);

#endif
