#include "io/session.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "etcd/timer.h"

enum { GRANT_RETRY_MS = 250, GRANT_RETRY_CAP_MS = 2000, REVOKE_MS = 2000, JUMP_MS = 2000 };

struct hf_session {
    struct hf_etcd *etcd;
    struct hf_session_config cfg;
    struct hf_clock clock;
    struct hf_timers timers;
    struct hf_timer tick; /* the machine's next deadline */
    struct hf_timer grant_again;
    struct hf_lease machine;
    struct hf_session_view told;
    bool driving; /* news that come while we drive are seen by the same loop */

    int64_t granting; /* id of the grant under way; 0: none */
    struct hf_call *grant;
    unsigned grant_failures;
    struct hf_renewer *renewer; /* of the lease `renewing` */
    int64_t renewing;
    struct hf_call *verify;
    int64_t verifying;
    hf_ms verify_sent_at;

    bool closing;
    struct hf_call *revoke;
    hf_session_closed_fn closed_fn;
    void *closed_arg;
};

static void drive(struct hf_session *session);

static hf_ms now_of(const struct hf_session *session)
{
    return hf_clock_now(&session->clock);
}

/* Jitter only: without randomness it is merely less spread. */
static uint32_t random_word(void)
{
    uint32_t word = 0;

    (void)!hf_id_random(&word, sizeof word);
    return word;
}

static void cancel(struct hf_call **call)
{
    if (*call != NULL)
        hf_call_cancel(*call);
    *call = NULL;
}

static void complain(struct hf_session *session, const char *what, int err, const char *message)
{
    if (session->cfg.on_trouble != NULL)
        session->cfg.on_trouble(what, err, message, session->cfg.arg);
}

static struct hf_lease_reply reply_of(int64_t id, hf_ms sent_at, int64_t ttl_s,
                                      const struct hf_etcd_header *header)
{
    return (struct hf_lease_reply){ .id = id,
                                    .sent_at = sent_at,
                                    .ttl_s = ttl_s,
                                    .member = header->member_id,
                                    .term = header->raft_term,
                                    .revision = header->revision };
}

/* Granting. */

static void grant_later(struct hf_session *session)
{
    hf_ms most = GRANT_RETRY_MS;

    for (unsigned i = 0; i < session->grant_failures && most < GRANT_RETRY_CAP_MS; i++)
        most *= 2;
    session->grant_failures++;
    (void)!hf_timer_start(&session->timers, &session->grant_again,
                          now_of(session) + (hf_ms)(random_word() % (uint64_t)most) + 1);
}

static void ignore_write(const struct hf_write_result *result, void *arg)
{
    (void)result;
    (void)arg;
}

/* A lease that is not wanted would only wait to expire; let it go at once if that is possible.
 */
static void let_go(struct hf_session *session, int64_t lease)
{
    (void)!hf_etcd_lease_revoke(session->etcd, lease, ignore_write, NULL, NULL);
}

static void on_granted(const struct hf_grant_result *grant, void *arg)
{
    struct hf_session *session = arg;
    int64_t id = session->granting;
    const char *why = NULL;

    session->grant = NULL;
    session->granting = 0;
    if (grant->result.err != HF_OK) {
        complain(session, "grant", grant->result.err, grant->result.message);
        grant_later(session);
    } else if (hf_lease_ttl_check(&session->cfg.policy, grant->ttl_s, &why) != HF_OK) {
        complain(session, "grant", HF_EINVAL, why);
        let_go(session, id);
        grant_later(session);
    } else {
        struct hf_lease_reply reply =
            reply_of(id, grant->result.sent_at, grant->ttl_s, &grant->result.header);

        session->grant_failures = 0;
        if (hf_lease_on_granted(&session->machine, &reply, now_of(session), random_word()) !=
            HF_LEASE_COUNTED)
            let_go(session, id);
    }
    drive(session);
}

static void grant(struct hf_session *session)
{
    int64_t ttl_s = (session->cfg.policy.ttl + 999) / 1000;
    int err;

    if (session->closing || session->granting != 0 || hf_timer_is_armed(&session->grant_again))
        return;
    err = hf_id_random_63(&session->granting);
    if (err == HF_OK)
        err = hf_etcd_lease_grant(session->etcd, session->granting, ttl_s, 0, on_granted,
                                  session, &session->grant);
    if (err == HF_OK)
        return;
    session->granting = 0;
    session->grant = NULL;
    complain(session, "grant", err, hf_err_text(err));
    grant_later(session);
}

static void on_grant_again(struct hf_timer *timer)
{
    drive((struct hf_session *)((char *)timer - offsetof(struct hf_session, grant_again)));
}

/* Renewing. */

static void on_renewal(const struct hf_renewal *renewal, void *arg)
{
    struct hf_session *session = arg;
    hf_ms now = now_of(session);

    if (renewal->err != HF_OK) {
        complain(session, "renew", renewal->err, renewal->message);
        hf_lease_on_renew_failed(&session->machine, renewal->sent_at, now, random_word());
    } else {
        struct hf_lease_reply reply =
            reply_of(session->renewing, renewal->sent_at, renewal->ttl_s, &renewal->header);
        enum hf_lease_verdict verdict =
            hf_lease_on_reply(&session->machine, &reply, now, random_word());

        if (verdict != HF_LEASE_COUNTED)
            complain(session, "renew", HF_EFENCED, hf_lease_verdict_name(verdict));
        else if (renewal->reopened && !session->machine.doubted)
            hf_lease_on_jump(&session->machine, now); /* who knows what we missed: verify */
    }
    drive(session);
}

/* The renewer follows the lease: a new one for a new lease, none without. */
static int follow_lease(struct hf_session *session)
{
    int64_t lease = session->machine.lost ? 0 : session->machine.id;

    if (session->renewing == lease)
        return HF_OK;
    hf_renewer_close(session->renewer);
    session->renewer = NULL;
    session->renewing = 0;
    if (lease == 0)
        return HF_OK;
    int err = hf_renewer_new(session->etcd, lease, on_renewal, session, &session->renewer);

    if (err == HF_OK)
        session->renewing = lease;
    return err;
}

/* After a failure the renewer goes to the next endpoint by itself; a member whose answers do
 * not count has to be left by us. */
static void renew(struct hf_session *session, hf_ms until, bool rotate)
{
    hf_ms now = now_of(session);
    int err = HF_ENOMEM; /* no renewer could be made */

    if (session->renewer != NULL && rotate)
        hf_renewer_give_up(session->renewer);
    if (session->renewer != NULL)
        err = hf_renewer_send(session->renewer, until > now ? until - now : 1);
    if (err == HF_OK)
        now = hf_renewer_get_sent_at(session->renewer);
    hf_lease_on_renew_sent(&session->machine, now);
    if (err != HF_OK) {
        complain(session, "renew", err, hf_err_text(err));
        hf_lease_on_renew_failed(&session->machine, now, now, random_word());
    }
}

/* Verifying. */

static void on_verified(const struct hf_txn_result *result, void *arg)
{
    struct hf_session *session = arg;
    hf_ms now = now_of(session);

    session->verify = NULL;
    if (result->result.err != HF_OK) {
        complain(session, "verify", result->result.err, result->result.message);
        hf_lease_on_verify_failed(&session->machine, now, random_word());
    } else if (result->succeeded) {
        (void)hf_lease_on_verified(&session->machine, session->verifying,
                                   session->verify_sent_at, now);
    } else {
        hf_lease_on_lost(&session->machine, session->verifying, now);
    }
    drive(session);
}

static void verify(struct hf_session *session, hf_ms until)
{
    struct hf_txn *txn = hf_txn_new();
    hf_ms now = now_of(session);
    size_t keys = 0;
    int err = txn != NULL ? HF_OK : HF_ENOMEM;

    if (err == HF_OK && session->cfg.add_compares != NULL)
        keys = session->cfg.add_compares(txn, session->machine.id, session->cfg.arg);
    if (err == HF_OK && keys == 0) {
        hf_lease_on_emptied(&session->machine);
        hf_txn_free(txn);
        return;
    }
    cancel(&session->verify); /* its time is up: what it might still say is of the past */
    hf_lease_on_verify_sent(&session->machine, now);
    session->verifying = session->machine.id;
    session->verify_sent_at = now;
    if (err == HF_OK)
        err = hf_txn_commit(session->etcd, txn,
                            &(struct hf_txn_options){
                                .resend = true, .timeout = until > now ? until - now : 1 },
                            on_verified, session, &session->verify);
    hf_txn_free(txn);
    if (err == HF_OK)
        return;
    session->verify = NULL;
    complain(session, "verify", err, hf_err_text(err));
    hf_lease_on_verify_failed(&session->machine, now, random_word());
}

/* Driving. */

static struct hf_session_view view_at(const struct hf_session *session, hf_ms now)
{
    const struct hf_lease *machine = &session->machine;
    struct hf_lease_step step = hf_lease_next(machine, now);

    return (struct hf_session_view){ .state = step.state,
                                     .frozen = step.frozen,
                                     .lease = machine->lost ? 0 : machine->id,
                                     .proven_until = hf_lease_proven_until(machine),
                                     .record = hf_lease_save(machine) };
}

/* True when there was something to tell. */
static bool publish(struct hf_session *session, hf_ms now)
{
    struct hf_session_view view = view_at(session, now);
    const struct hf_session_view *old = &session->told;
    bool changed =
        view.state != old->state || view.frozen != old->frozen || view.lease != old->lease ||
        view.record.id != old->record.id || view.record.ttl != old->record.ttl ||
        view.record.counted_at != old->record.counted_at ||
        view.record.term != old->record.term || view.record.fence_at != old->record.fence_at;

    session->told = view;
    if (changed && session->cfg.on_change != NULL)
        session->cfg.on_change(&session->told, session->cfg.arg);
    return changed;
}

/* Does one thing that the machine asks for and reports it; false when nothing is due. */
static bool act(struct hf_session *session, hf_ms now)
{
    struct hf_lease_step step = hf_lease_next(&session->machine, now);

    switch (step.what) {
    case HF_LEASE_RENEW: renew(session, step.until, step.rotate); return true;
    case HF_LEASE_ABANDON:
        if (session->renewer != NULL)
            hf_renewer_give_up(session->renewer);
        hf_lease_on_renew_failed(&session->machine, session->machine.sent_at, now,
                                 random_word());
        return true;
    case HF_LEASE_VERIFY: verify(session, step.until); return true;
    case HF_LEASE_NONE: break;
    }
    return false;
}

/* Whatever is told may come back with news, so the machine is asked afresh after it. */
static bool turn(struct hf_session *session)
{
    hf_ms now = now_of(session);
    int err = follow_lease(session);

    if (err != HF_OK)
        complain(session, "renew", err, hf_err_text(err));
    if (publish(session, now))
        return true;
    if (session->machine.lost)
        grant(session);
    return act(session, now);
}

static void drive(struct hf_session *session)
{
    hf_ms next;

    if (session->driving || session->closing)
        return;
    session->driving = true;
    while (turn(session))
        continue;
    session->driving = false;
    next = hf_lease_deadline(&session->machine, now_of(session));
    if (next != HF_LEASE_NEVER)
        (void)!hf_timer_start(&session->timers, &session->tick, next);
}

static void on_tick(struct hf_timer *timer)
{
    struct hf_session *session =
        (struct hf_session *)((char *)timer - offsetof(struct hf_session, tick));
    hf_ms now = now_of(session);

    if (now - timer->at > JUMP_MS)
        hf_lease_on_jump(&session->machine, now);
    drive(session);
}

struct hf_session_view hf_session_get_view(const struct hf_session *session)
{
    return view_at(session, now_of(session));
}

void hf_session_on_lost(struct hf_session *session, int64_t lease)
{
    hf_lease_on_lost(&session->machine, lease, now_of(session));
    drive(session);
}

void hf_session_on_history_reset(struct hf_session *session)
{
    hf_lease_on_history_reset(&session->machine, now_of(session));
    drive(session);
}

void hf_session_on_header(struct hf_session *session, const struct hf_etcd_header *header)
{
    hf_lease_on_header(&session->machine, header->member_id, header->raft_term,
                       header->revision);
}

/* Life. */

int hf_session_new(uv_loop_t *loop, struct hf_etcd *etcd, const struct hf_session_config *cfg,
                   struct hf_session **ret_session, struct hf_error *err)
{
    struct hf_session *session;
    const char *why = NULL;
    int code = hf_lease_policy_check(&cfg->policy, &why);

    if (code != HF_OK)
        return hf_error_set(err, code, "%s", why);
    session = hf_calloc(1, sizeof *session);
    if (session == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    session->etcd = etcd;
    session->cfg = *cfg;
    session->cfg.resume = NULL;
    session->clock = *hf_etcd_get_clock(etcd);
    session->tick.fn = on_tick;
    session->grant_again.fn = on_grant_again;
    hf_lease_init(&session->machine, &cfg->policy);
    if (cfg->resume != NULL)
        code = hf_lease_on_resumed(&session->machine, cfg->resume, now_of(session));
    if (code == HF_OK)
        code = hf_timers_init(&session->timers, loop, session->clock);
    if (code != HF_OK) {
        free(session);
        return hf_error_set(err, code, "the session cannot start: %s", hf_err_text(code));
    }
    session->timers.poll.data = session;
    session->told.record.fence_at = -1; /* nothing was told yet */
    code = hf_timer_start(&session->timers, &session->tick, now_of(session));
    if (code != HF_OK) {
        hf_session_close(session, false, NULL, NULL);
        return hf_error_set(err, code, "%s", hf_err_text(code));
    }
    *ret_session = session;
    return HF_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct hf_session *session = handle->data;
    hf_session_closed_fn fn = session->closed_fn;
    void *arg = session->closed_arg;

    free(session);
    if (fn != NULL)
        fn(arg);
}

static void on_revoked(const struct hf_write_result *result, void *arg)
{
    struct hf_session *session = arg;

    (void)result; /* gone, or it will expire */
    session->revoke = NULL;
    hf_timers_close(&session->timers, on_closed);
}

static void on_revoke_timeout(struct hf_timer *timer)
{
    struct hf_session *session =
        (struct hf_session *)((char *)timer - offsetof(struct hf_session, tick));

    cancel(&session->revoke);
    hf_timers_close(&session->timers, on_closed);
}

void hf_session_close(struct hf_session *session, bool revoke, hf_session_closed_fn fn,
                      void *arg)
{
    int64_t lease = session->machine.lost ? session->granting : session->machine.id;
    int err = HF_ENOENT;

    session->closing = true;
    session->closed_fn = fn;
    session->closed_arg = arg;
    cancel(&session->grant);
    cancel(&session->verify);
    hf_renewer_close(session->renewer);
    session->renewer = NULL;
    hf_timer_stop(&session->timers, &session->grant_again);
    session->tick.fn = on_revoke_timeout;
    if (revoke && lease != 0)
        err = hf_etcd_lease_revoke(session->etcd, lease, on_revoked, session, &session->revoke);
    if (err == HF_OK)
        err = hf_timer_start(&session->timers, &session->tick, now_of(session) + REVOKE_MS);
    if (err != HF_OK) {
        cancel(&session->revoke);
        hf_timers_close(&session->timers, on_closed);
    }
}
