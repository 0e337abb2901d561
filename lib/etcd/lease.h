/* lease.h - leases as mechanism: what was sent when, and what etcd answered.
 *
 * When to renew, when to worry and when to stop is not decided here (see core/lease.h). All
 * times are of hf_etcd_get_clock. */
#ifndef HF_ETCD_LEASE_H
#define HF_ETCD_LEASE_H

#include "etcd/kv.h"

struct hf_grant_result {
    struct hf_etcd_result result; /* sent_at: the lease lives from then on, at the earliest */
    int64_t id;
    int64_t ttl_s; /* what etcd granted, which may be more than what was asked; what was asked
                      where the answer was lost and only a second one came: a renewal tells */
};

typedef void (*hf_grant_fn)(const struct hf_grant_result *result, void *arg);

/* Grants a lease with an id of our own choice (hf_id_random_63), so that a grant whose answer
 * was lost can be asked again without leaving an orphan. HF_EEXIST when somebody else has that
 * id. */
int hf_etcd_lease_grant(struct hf_etcd *etcd, int64_t id, int64_t ttl_s, hf_ms timeout,
                        hf_grant_fn fn, void *arg, struct hf_call **ret_call) HF_MUST_CHECK;

/* HF_ENOENT when it is gone already. */
int hf_etcd_lease_revoke(struct hf_etcd *etcd, int64_t id, hf_write_fn fn, void *arg,
                         struct hf_call **ret_call) HF_MUST_CHECK;

struct hf_ttl_result {
    struct hf_etcd_result result;
    int64_t ttl_s; /* left; -1 when there is no such lease */
    int64_t granted_ttl_s;
    const struct hf_bytes *keys;
    size_t key_count;
};

typedef void (*hf_ttl_fn)(const struct hf_ttl_result *result, void *arg);

int hf_etcd_lease_ttl(struct hf_etcd *etcd, int64_t id, bool with_keys, hf_ttl_fn fn, void *arg,
                      struct hf_call **ret_call) HF_MUST_CHECK;

/* How one attempt to renew ended. */
struct hf_renewal {
    int err; /* HF_OK: etcd answered. Else no answer came (HF_ETIMEOUT, HF_EAGAIN, ...) */
    const char *message;
    hf_ms sent_at;
    int64_t ttl_s; /* <= 0: there is no such lease any more */
    bool reopened; /* the first answer since the stream broke: keys may have gone meanwhile */
    struct hf_etcd_header header;
};

typedef void (*hf_renewal_fn)(const struct hf_renewal *renewal, void *arg);

/* Renews one lease over a stream that it keeps open. Opaque. */
struct hf_renewer;

int hf_renewer_new(struct hf_etcd *etcd, int64_t id, hf_renewal_fn fn, void *arg,
                   struct hf_renewer **ret_renewer) HF_MUST_CHECK;

/* No callback comes after this. The lease itself lives on. */
void hf_renewer_close(struct hf_renewer *renewer);

/* Sends one renewal; the callback comes once for it, within `timeout`. After a failure the next
 * one goes to the next endpoint. HF_EAGAIN while one is under way. */
int hf_renewer_send(struct hf_renewer *renewer, hf_ms timeout) HF_MUST_CHECK;

/* Sends one at once and then one every `period`, with half of it as the timeout, until the
 * renewer is closed; the callback comes for each. Enough to keep a lease; who must have stopped
 * before it can expire decides by core/lease.h what to send when. */
int hf_renewer_repeat(struct hf_renewer *renewer, hf_ms period) HF_MUST_CHECK;

/* The endpoint is no good, though it may answer: the next renewal goes to the next one. No
 * callback comes for one that is under way. */
void hf_renewer_give_up(struct hf_renewer *renewer);

/* When the last one was sent. */
hf_ms hf_renewer_get_sent_at(const struct hf_renewer *renewer);

#endif
