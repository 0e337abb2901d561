/* session.h - a lease that is held: core/lease decides, the backend does, this stands between.
 *
 * Grants a lease, renews it, grants another when it is lost, for as long as it lives. The owner
 * hears of every change and is asked what to compare when the lease must be verified. */
#ifndef HF_IO_SESSION_H
#define HF_IO_SESSION_H

#include "core/lease.h"
#include "io/proof.h"

struct hf_session;

/* What holds now. */
struct hf_session_view {
    enum hf_lease_state state;
    bool frozen;                   /* what runs under it must stand still */
    int64_t lease;                 /* 0 while there is none */
    hf_ms proven_until;            /* HELD until then, if nothing is heard before */
    struct hf_lease_record record; /* to be kept by whoever must act when we cannot */
};

struct hf_session_config {
    struct hf_lease_policy policy;

    /* The view changed, by time or by news. News may be given to the session from inside, and
     * it may be closed; what follows is done, and told, afterwards. */
    void (*on_change)(const struct hf_session_view *view, void *arg);

    /* The keys that hang on the lease, as in struct hf_proof_config. NULL: there never is one.
     */
    int (*get_key)(size_t index, int64_t lease, struct hf_proof_key *ret_key, void *arg);

    /* A failed attempt, for the log. May be NULL. */
    void (*on_trouble)(const char *what, int err, const char *message, void *arg);
    void *arg;

    const struct hf_lease_record *resume; /* go on with this lease; NULL: grant a new one */
};

/* HF_EINVAL with a sentence when the policy contradicts itself. */
int hf_session_new(const struct hf_backend *backend, const struct hf_session_config *cfg,
                   struct hf_session **ret_session, struct hf_error *err) HF_MUST_CHECK;

typedef void (*hf_session_closed_fn)(void *arg);

/* Ends it; `fn` (may be NULL) is the last callback, and may come before this returns. With
 * `revoke` the lease, and with it every key that hangs on it, goes first, if etcd can be
 * reached within two seconds. */
void hf_session_close(struct hf_session *session, bool revoke, hf_session_closed_fn fn,
                      void *arg);

/* What holds at this very moment, told already or not. */
struct hf_session_view hf_session_get_view(const struct hf_session *session);

/* The owner saw, by its mirror or a refused compare, that a key under `lease` is gone. */
void hf_session_on_lost(struct hf_session *session, int64_t lease);

/* etcd was restored from a backup. */
void hf_session_on_history_reset(struct hf_session *session);

/* Any other answer of etcd: it teaches terms and revisions. */
void hf_session_on_header(struct hf_session *session, const struct hf_etcd_header *header);

#endif
