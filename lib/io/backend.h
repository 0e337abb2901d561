/* backend.h - everything that lies outside: etcd, time and chance, behind one table.
 *
 * io/session, io/candidate, io/commit and io/runner know nothing else of the world, so the
 * same code runs over a real etcd (io/backend_etcd.h) and in the simulator. To include this
 * takes neither libuv nor gRPC. What is asked and answered are the plain structs of lib/etcd,
 * and mean what they mean there; struct hf_call, hf_list, hf_renewer, hf_mirror and hf_survey
 * are defined by whoever implements the table.
 *
 * Rules for who implements it, and what everyone else may rely on:
 *   - one thread; a callback never runs inside the function that it was given to;
 *   - a request borrows its arguments for the call only; a result is valid during its callback;
 *   - a function that returns HF_OK leads to its callback once (list, renewer and mirror: as
 *     often as they say), unless it is cancelled or closed before: from then on nothing comes,
 *     though what was sent may still take effect. Cancelling and closing is allowed from any
 *     callback;
 *   - any other return means that nothing happens: HF_ENOMEM, HF_EINVAL, HF_ELIMIT;
 *   - `ret_call` and the like are never NULL;
 *   - it outlives everything that was opened on it. */
#ifndef HF_IO_BACKEND_H
#define HF_IO_BACKEND_H

#include "core/plan.h"
#include "etcd/kv.h"
#include "etcd/lease.h"
#include "etcd/mirror.h"
#include "etcd/survey.h"
#include "etcd/txn.h"
#include "io/alarms.h"

/* One guarded write, or with no writes a look whether the guards hold. */
struct hf_backend_txn {
    const struct hf_plan_guard *guards; /* at most HF_TXN_MAX_OPS */
    size_t guard_count;
    const struct hf_plan_write *writes; /* likewise; no key twice */
    size_t write_count;
    const char *look_at; /* read when a guard does not hold: answers[0]. NULL: nothing is */
    bool resend;         /* as in struct hf_txn_options */
    hf_ms timeout;       /* 0: the backend's */
};

struct hf_backend_ops {
    hf_ms (*now)(void *self);  /* CLOCK_BOOTTIME, read afresh */
    hf_ms (*wall)(void *self); /* milliseconds since 1970: for people to read */
    int (*random)(void *self, void *out, size_t len);

    /* Cannot fail; an alarm rings once, not before `at`. */
    void (*set_alarm)(void *self, struct hf_alarm *alarm, hf_ms at);
    void (*unset_alarm)(void *self, struct hf_alarm *alarm);

    int (*txn)(void *self, const struct hf_backend_txn *txn, hf_txn_fn fn, void *arg,
               struct hf_call **ret_call);
    int (*range)(void *self, const struct hf_range_request *request, hf_range_fn fn, void *arg,
                 struct hf_call **ret_call);
    int (*grant)(void *self, int64_t id, int64_t ttl_s, hf_grant_fn fn, void *arg,
                 struct hf_call **ret_call);
    int (*revoke)(void *self, int64_t id, hf_write_fn fn, void *arg, struct hf_call **ret_call);
    /* How long it has left, and the keys that hang on it. */
    int (*ttl)(void *self, int64_t id, hf_ttl_fn fn, void *arg, struct hf_call **ret_call);
    void (*cancel)(struct hf_call *call);

    /* All of a range at one revision, page by page, as hf_etcd_list has it. */
    int (*list)(void *self, const struct hf_range_request *request, hf_range_fn fn, void *arg,
                struct hf_list **ret_list);
    void (*cancel_list)(struct hf_list *list);

    /* Asks every member how it is: one that is cut off from the others only remembers. */
    int (*survey)(void *self, hf_survey_fn fn, void *arg, struct hf_survey **ret_survey);
    void (*cancel_survey)(struct hf_survey *survey);

    int (*new_renewer)(void *self, int64_t lease, hf_renewal_fn fn, void *arg,
                       struct hf_renewer **ret_renewer);
    int (*send_renewal)(struct hf_renewer *renewer, hf_ms timeout);
    void (*give_up_renewal)(struct hf_renewer *renewer);
    hf_ms (*get_renewal_sent_at)(const struct hf_renewer *renewer);
    void (*close_renewer)(struct hf_renewer *renewer); /* NULL is fine */

    int (*open_mirror)(void *self, const struct hf_mirror_config *cfg,
                       struct hf_mirror **ret_mirror, struct hf_error *err);
    void (*tell_mirror)(struct hf_mirror *mirror, const struct hf_kv *written);
    hf_ms (*get_mirror_heard_at)(const struct hf_mirror *mirror); /* its watch proved to work */
    void (*close_mirror)(struct hf_mirror *mirror);               /* NULL is fine */
};

/* A plain value: copy it freely. */
struct hf_backend {
    const struct hf_backend_ops *ops;
    void *self;
};

static inline hf_ms hf_backend_now(const struct hf_backend *backend)
{
    return backend->ops->now(backend->self);
}

static inline void hf_backend_set_alarm(const struct hf_backend *backend,
                                        struct hf_alarm *alarm, hf_ms at)
{
    backend->ops->set_alarm(backend->self, alarm, at);
}

static inline void hf_backend_unset_alarm(const struct hf_backend *backend,
                                          struct hf_alarm *alarm)
{
    backend->ops->unset_alarm(backend->self, alarm);
}

/* Jitter only: without randomness it is merely less spread. */
uint32_t hf_backend_get_word(const struct hf_backend *backend);

/* 1 .. 2^63-1: fit for a lease. */
int hf_backend_get_lease_id(const struct hf_backend *backend, int64_t *ret_id) HF_MUST_CHECK;

/* Cancels the call, if there is one, and forgets it. */
void hf_backend_cancel(const struct hf_backend *backend, struct hf_call **call);

/* A lease that is not wanted would only wait to expire: lets it go, if that is possible. */
void hf_backend_let_go(const struct hf_backend *backend, int64_t lease);

#endif
