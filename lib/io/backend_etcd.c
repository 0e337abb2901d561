#include "io/backend_etcd.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/id.h"
#include "etcd/timer.h"

struct hf_backend_etcd {
    struct hf_etcd *etcd;
    struct hf_timers timers;
    struct hf_timer timer; /* the first of the alarms */
    struct hf_alarms alarms;
    hf_etcd_closed_fn closed_fn;
    void *closed_arg;
};

static struct hf_etcd *etcd_of(void *self)
{
    return ((struct hf_backend_etcd *)self)->etcd;
}

/* Time and chance. */

static hf_ms get_now(void *self)
{
    return hf_clock_now(&((struct hf_backend_etcd *)self)->timers.clock);
}

static hf_ms get_wall(void *self)
{
    (void)self;
    return hf_clock_wall();
}

static int get_random(void *self, void *out, size_t len)
{
    (void)self;
    return hf_id_random(out, len);
}

/* Alarms. */

static void follow_first(struct hf_backend_etcd *backend)
{
    if (backend->alarms.first == NULL)
        hf_timer_stop(&backend->timers, &backend->timer);
    else
        hf_timer_start(&backend->timers, &backend->timer, backend->alarms.first->at);
}

static void on_timer(struct hf_timer *timer)
{
    struct hf_backend_etcd *backend =
        (struct hf_backend_etcd *)((char *)timer - offsetof(struct hf_backend_etcd, timer));

    hf_alarms_ring(&backend->alarms, get_now(backend));
    follow_first(backend);
}

static void set_alarm(void *self, struct hf_alarm *alarm, hf_ms at)
{
    struct hf_backend_etcd *backend = self;

    hf_alarms_set(&backend->alarms, alarm, at);
    follow_first(backend);
}

static void unset_alarm(void *self, struct hf_alarm *alarm)
{
    hf_alarms_unset(alarm);
    follow_first(self);
}

/* Requests. */

static void add_guard(struct hf_txn *txn, const struct hf_plan_guard *guard)
{
    struct hf_bytes key = hf_bytes_of(guard->key);

    switch (guard->what) {
    case HF_GUARD_ABSENT: hf_txn_if_create(txn, key, HF_TXN_EQUAL, 0); break;
    case HF_GUARD_MOD: hf_txn_if_mod(txn, key, HF_TXN_EQUAL, guard->value); break;
    case HF_GUARD_CREATE: hf_txn_if_create(txn, key, HF_TXN_EQUAL, guard->value); break;
    case HF_GUARD_GONE: hf_txn_if_create(txn, key, HF_TXN_NOT_EQUAL, guard->value); break;
    case HF_GUARD_LEASE: hf_txn_if_lease(txn, key, HF_TXN_EQUAL, guard->value); break;
    case HF_GUARD_TEXT: hf_txn_if_value(txn, key, HF_TXN_EQUAL, guard->text); break;
    }
}

static void add_write(struct hf_txn *txn, const struct hf_plan_write *write)
{
    struct hf_bytes key = hf_bytes_of(write->key);

    if (write->value == NULL)
        hf_txn_then_delete(txn, (struct hf_key_range){ .key = key, .prefix = write->all });
    else
        hf_txn_then_put(txn, key,
                        (struct hf_bytes){ .data = write->value, .len = write->value_len },
                        write->lease);
}

static int start_txn(void *self, const struct hf_backend_txn *request, hf_txn_fn fn, void *arg,
                     struct hf_call **ret_call)
{
    struct hf_txn *txn = hf_txn_new();
    int err;

    if (txn == NULL)
        return HF_ENOMEM;
    for (size_t i = 0; i < request->guard_count; i++)
        add_guard(txn, &request->guards[i]);
    for (size_t i = 0; i < request->write_count; i++)
        add_write(txn, &request->writes[i]);
    if (request->look_at != NULL)
        hf_txn_else_range(txn, (struct hf_key_range){ .key = hf_bytes_of(request->look_at) });
    err = hf_txn_commit(
        etcd_of(self), txn,
        &(struct hf_txn_options){ .resend = request->resend, .timeout = request->timeout }, fn,
        arg, ret_call);
    hf_txn_free(txn);
    return err;
}

static int start_range(void *self, const struct hf_range_request *request, hf_range_fn fn,
                       void *arg, struct hf_call **ret_call)
{
    return hf_etcd_range(etcd_of(self), request, fn, arg, ret_call);
}

static int start_grant(void *self, int64_t id, int64_t ttl_s, hf_grant_fn fn, void *arg,
                       struct hf_call **ret_call)
{
    return hf_etcd_lease_grant(etcd_of(self), id, ttl_s, 0, fn, arg, ret_call);
}

static int start_revoke(void *self, int64_t id, hf_write_fn fn, void *arg,
                        struct hf_call **ret_call)
{
    return hf_etcd_lease_revoke(etcd_of(self), id, fn, arg, ret_call);
}

static int start_ttl(void *self, int64_t id, hf_ttl_fn fn, void *arg, struct hf_call **ret_call)
{
    return hf_etcd_lease_ttl(etcd_of(self), id, true, fn, arg, ret_call);
}

static int start_list(void *self, const struct hf_range_request *request, hf_range_fn fn,
                      void *arg, struct hf_list **ret_list)
{
    return hf_etcd_list(etcd_of(self), request, fn, arg, ret_list);
}

static int start_survey(void *self, hf_survey_fn fn, void *arg, struct hf_survey **ret_survey)
{
    return hf_etcd_survey(etcd_of(self), fn, arg, ret_survey);
}

static int new_renewer(void *self, int64_t lease, hf_renewal_fn fn, void *arg,
                       struct hf_renewer **ret_renewer)
{
    return hf_renewer_new(etcd_of(self), lease, fn, arg, ret_renewer);
}

static int open_mirror(void *self, const struct hf_mirror_config *cfg,
                       struct hf_mirror **ret_mirror, struct hf_error *err)
{
    return hf_mirror_new(etcd_of(self), cfg, ret_mirror, err);
}

static hf_ms get_mirror_heard_at(const struct hf_mirror *mirror)
{
    return hf_mirror_get_stats(mirror).heard_at;
}

static const struct hf_backend_ops OPS = {
    .now = get_now,
    .wall = get_wall,
    .random = get_random,
    .set_alarm = set_alarm,
    .unset_alarm = unset_alarm,
    .txn = start_txn,
    .range = start_range,
    .grant = start_grant,
    .revoke = start_revoke,
    .ttl = start_ttl,
    .cancel = hf_call_cancel,
    .list = start_list,
    .cancel_list = hf_list_cancel,
    .survey = start_survey,
    .cancel_survey = hf_survey_cancel,
    .new_renewer = new_renewer,
    .send_renewal = hf_renewer_send,
    .give_up_renewal = hf_renewer_give_up,
    .get_renewal_sent_at = hf_renewer_get_sent_at,
    .close_renewer = hf_renewer_close,
    .open_mirror = open_mirror,
    .tell_mirror = hf_mirror_on_write,
    .get_mirror_heard_at = get_mirror_heard_at,
    .close_mirror = hf_mirror_close,
};

/* Life. */

int hf_backend_etcd_new(uv_loop_t *loop, struct hf_etcd *etcd,
                        struct hf_backend_etcd **ret_backend)
{
    struct hf_backend_etcd *backend = hf_calloc(1, sizeof *backend);
    int err;

    if (backend == NULL)
        return HF_ENOMEM;
    backend->etcd = etcd;
    backend->timer.fn = on_timer;
    err = hf_timers_init(&backend->timers, loop, *hf_etcd_get_clock(etcd));
    if (err != HF_OK) {
        free(backend);
        return err;
    }
    *ret_backend = backend;
    return HF_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct hf_backend_etcd *backend = handle->data;
    hf_etcd_closed_fn fn = backend->closed_fn;
    void *arg = backend->closed_arg;

    free(backend);
    if (fn != NULL)
        fn(arg);
}

void hf_backend_etcd_close(struct hf_backend_etcd *backend, hf_etcd_closed_fn fn, void *arg)
{
    assert(backend->alarms.first == NULL);
    backend->closed_fn = fn;
    backend->closed_arg = arg;
    backend->timers.poll.data = backend;
    hf_timers_close(&backend->timers, on_closed);
}

struct hf_backend hf_backend_etcd_get(struct hf_backend_etcd *backend)
{
    return (struct hf_backend){ .ops = &OPS, .self = backend };
}
