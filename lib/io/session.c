#include "io/session.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"

enum { GRANT_RETRY_MS = 250, GRANT_RETRY_CAP_MS = 2000, REVOKE_MS = 2000, JUMP_MS = 2000 };

struct hf_session {
    struct hf_backend backend;
    struct hf_session_config cfg;
    struct hf_alarm tick; /* the machine's next deadline */
    struct hf_alarm grant_again;
    struct hf_lease machine;
    struct hf_session_view told;
    bool driving; /* news that come while we drive are seen by the same loop */

    int64_t granting; /* id of the grant under way; 0: none */
    struct hf_call *grant;
    unsigned grant_failures;
    struct hf_renewer *renewer; /* of the lease `renewing` */
    int64_t renewing;
    struct hf_proof proof;
    hf_ms verify_sent_at;

    bool closing;
    bool revokes; /* when it closes, the lease goes */
    struct hf_call *revoke;
    hf_session_closed_fn closed_fn;
    void *closed_arg;
};

static void drive(struct hf_session *session);
static void begin_close(struct hf_session *session);

static hf_ms now_of(const struct hf_session *session)
{
    return hf_backend_now(&session->backend);
}

static uint32_t random_word(const struct hf_session *session)
{
    return hf_backend_get_word(&session->backend);
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
    hf_backend_set_alarm(&session->backend, &session->grant_again,
                         now_of(session) + (hf_ms)(random_word(session) % (uint64_t)most) + 1);
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
        hf_backend_let_go(&session->backend, id);
        grant_later(session);
    } else {
        struct hf_lease_reply reply =
            reply_of(id, grant->result.sent_at, grant->ttl_s, &grant->result.header);

        session->grant_failures = 0;
        if (hf_lease_on_granted(&session->machine, &reply, now_of(session),
                                random_word(session)) != HF_LEASE_COUNTED)
            hf_backend_let_go(&session->backend, id);
    }
    drive(session);
}

static void grant(struct hf_session *session)
{
    int64_t ttl_s = (session->cfg.policy.ttl + 999) / 1000;
    int err;

    if (session->closing || session->granting != 0 || hf_alarm_is_set(&session->grant_again))
        return;
    hf_lease_on_grant_sent(&session->machine);
    err = hf_backend_get_lease_id(&session->backend, &session->granting);
    if (err == HF_OK)
        err = session->backend.ops->grant(session->backend.self, session->granting, ttl_s,
                                          on_granted, session, &session->grant);
    if (err == HF_OK)
        return;
    session->granting = 0;
    session->grant = NULL;
    complain(session, "grant", err, hf_err_text(err));
    grant_later(session);
}

static void on_grant_again(struct hf_alarm *alarm)
{
    drive((struct hf_session *)((char *)alarm - offsetof(struct hf_session, grant_again)));
}

/* Renewing. */

static void on_renewal(const struct hf_renewal *renewal, void *arg)
{
    struct hf_session *session = arg;
    hf_ms now = now_of(session);

    if (renewal->err != HF_OK) {
        complain(session, "renew", renewal->err, renewal->message);
        hf_lease_on_renew_failed(&session->machine, renewal->sent_at, now,
                                 random_word(session));
    } else {
        struct hf_lease_reply reply =
            reply_of(session->renewing, renewal->sent_at, renewal->ttl_s, &renewal->header);
        enum hf_lease_verdict verdict =
            hf_lease_on_reply(&session->machine, &reply, now, random_word(session));

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
    session->backend.ops->close_renewer(session->renewer);
    session->renewer = NULL;
    session->renewing = 0;
    if (lease == 0)
        return HF_OK;
    int err = session->backend.ops->new_renewer(session->backend.self, lease, on_renewal,
                                                session, &session->renewer);

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
        session->backend.ops->give_up_renewal(session->renewer);
    if (session->renewer != NULL)
        err =
            session->backend.ops->send_renewal(session->renewer, until > now ? until - now : 1);
    if (err == HF_OK)
        now = session->backend.ops->get_renewal_sent_at(session->renewer);
    hf_lease_on_renew_sent(&session->machine, now);
    if (err != HF_OK) {
        complain(session, "renew", err, hf_err_text(err));
        hf_lease_on_renew_failed(&session->machine, now, now, random_word(session));
    }
}

/* Verifying. */

static int get_key(size_t index, int64_t lease, struct hf_proof_key *ret_key, void *arg)
{
    const struct hf_session_config *cfg = &((struct hf_session *)arg)->cfg;

    return cfg->get_key != NULL ? cfg->get_key(index, lease, ret_key, cfg->arg) : 0;
}

static void on_proof(enum hf_proof_verdict verdict, int err, const char *message, void *arg)
{
    struct hf_session *session = arg;
    int64_t lease = session->proof.lease;
    hf_ms now = now_of(session);

    if (verdict != HF_PROOF_HOLDS)
        complain(session, "verify", err, message);
    if (session->proof.term != 0)
        hf_lease_on_committed(&session->machine, session->proof.term);
    switch (verdict) {
    case HF_PROOF_HOLDS:
        (void)hf_lease_on_verified(&session->machine, lease, session->verify_sent_at, now);
        break;
    case HF_PROOF_REFUTED: hf_lease_on_lost(&session->machine, lease, now); break;
    case HF_PROOF_UNKNOWN:
        hf_lease_on_verify_failed(&session->machine, now, random_word(session));
        break;
    }
    drive(session);
}

/* One that is still under way has had its time: what it might say is of the past. */
static void verify(struct hf_session *session, hf_ms until)
{
    hf_ms now = now_of(session);
    int count = hf_proof_start(&session->proof, session->machine.id, until);

    if (count == 0) {
        hf_lease_on_emptied(&session->machine);
        return;
    }
    hf_lease_on_verify_sent(&session->machine, now);
    session->verify_sent_at = now;
    if (count > 0)
        return;
    complain(session, "verify", count, hf_err_text(count));
    hf_lease_on_verify_failed(&session->machine, now, random_word(session));
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
            session->backend.ops->give_up_renewal(session->renewer);
        hf_lease_on_renew_failed(&session->machine, session->machine.sent_at, now,
                                 random_word(session));
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
    while (!session->closing && turn(session))
        continue;
    session->driving = false;
    if (session->closing) { /* by what was told */
        begin_close(session);
        return;
    }
    next = hf_lease_deadline(&session->machine, now_of(session));
    if (next != HF_LEASE_NEVER)
        hf_backend_set_alarm(&session->backend, &session->tick, next);
}

static void on_tick(struct hf_alarm *alarm)
{
    struct hf_session *session =
        (struct hf_session *)((char *)alarm - offsetof(struct hf_session, tick));
    hf_ms now = now_of(session);

    if (now - alarm->at > JUMP_MS)
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

int hf_session_new(const struct hf_backend *backend, const struct hf_session_config *cfg,
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
    session->backend = *backend;
    session->cfg = *cfg;
    session->cfg.resume = NULL;
    session->proof.cfg = (struct hf_proof_config){
        .backend = *backend, .get_key = get_key, .fn = on_proof, .arg = session
    };
    session->tick.fn = on_tick;
    session->grant_again.fn = on_grant_again;
    hf_lease_init(&session->machine, &cfg->policy);
    if (cfg->resume != NULL)
        code = hf_lease_on_resumed(&session->machine, cfg->resume, now_of(session));
    if (code != HF_OK) {
        free(session);
        return hf_error_set(err, code, "the session cannot start: %s", hf_err_text(code));
    }
    session->told.record.fence_at = -1; /* nothing was told yet */
    hf_backend_set_alarm(backend, &session->tick, now_of(session));
    *ret_session = session;
    return HF_OK;
}

static void finish_close(struct hf_session *session)
{
    hf_session_closed_fn fn = session->closed_fn;
    void *arg = session->closed_arg;

    hf_backend_cancel(&session->backend, &session->revoke);
    hf_backend_unset_alarm(&session->backend, &session->tick);
    free(session);
    if (fn != NULL)
        fn(arg);
}

static void on_revoked(const struct hf_write_result *result, void *arg)
{
    struct hf_session *session = arg;

    (void)result; /* gone, or it will expire */
    session->revoke = NULL;
    finish_close(session);
}

static void on_revoke_timeout(struct hf_alarm *alarm)
{
    finish_close((struct hf_session *)((char *)alarm - offsetof(struct hf_session, tick)));
}

static void begin_close(struct hf_session *session)
{
    const struct hf_backend *backend = &session->backend;
    int64_t lease = session->machine.lost ? session->granting : session->machine.id;

    hf_backend_cancel(backend, &session->grant);
    hf_proof_stop(&session->proof);
    backend->ops->close_renewer(session->renewer);
    session->renewer = NULL;
    hf_backend_unset_alarm(backend, &session->grant_again);
    session->tick.fn = on_revoke_timeout;
    hf_backend_set_alarm(backend, &session->tick, now_of(session) + REVOKE_MS);
    if (!session->revokes || lease == 0 ||
        backend->ops->revoke(backend->self, lease, on_revoked, session, &session->revoke) !=
            HF_OK) {
        session->revoke = NULL;
        finish_close(session);
    }
}

void hf_session_close(struct hf_session *session, bool revoke, hf_session_closed_fn fn,
                      void *arg)
{
    session->closing = true;
    session->revokes = revoke;
    session->closed_fn = fn;
    session->closed_arg = arg;
    if (!session->driving) /* else drive() is still at work, and ends with it */
        begin_close(session);
}
