#include "io/candidate.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"

struct hf_candidate {
    struct hf_backend backend;
    struct hf_candidate_config cfg; /* key and value are owned */
    struct hf_alarm tick;           /* the machine's next deadline */
    struct hf_session *session;
    struct hf_mirror *mirror; /* of the key, ... */
    bool there;               /* ... which exists, as far as it told */
    struct hf_election machine;
    struct hf_candidate_view view; /* as last told */
    struct hf_call *call;          /* campaign, look or resignation under way */
    enum hf_election_what asked;
    int64_t asked_lease;

    bool driving; /* news that come while we drive are seen by the same loop */
    bool closing;
    hf_candidate_closed_fn closed_fn;
    void *closed_arg;
};

static void drive(struct hf_candidate *candidate);

static hf_ms now_of(const struct hf_candidate *candidate)
{
    return hf_backend_now(&candidate->backend);
}

/* Spreads candidates apart. */
static uint32_t random_word(const struct hf_candidate *candidate)
{
    return hf_backend_get_word(&candidate->backend);
}

static void complain(struct hf_candidate *candidate, const char *what, int err,
                     const char *message)
{
    if (candidate->cfg.on_trouble != NULL)
        candidate->cfg.on_trouble(what, err, message, candidate->cfg.arg);
}

static void forget_history(struct hf_candidate *candidate)
{
    hf_election_on_history_reset(&candidate->machine, now_of(candidate));
    hf_session_on_history_reset(candidate->session);
}

/* A term that goes back means that revisions were given out twice. */
static void note(struct hf_candidate *candidate, int err)
{
    if (err == HF_OK)
        return;
    complain(candidate, "election", err, hf_err_text(err));
    if (err == HF_EHISTORY)
        forget_history(candidate);
}

/* The key, by its watch. */

static void observe(struct hf_candidate *candidate, const struct hf_election_key *key)
{
    note(candidate, hf_election_on_observed(&candidate->machine, key, now_of(candidate),
                                            random_word(candidate)));
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    struct hf_candidate *candidate = arg;

    candidate->there =
        event->kind == HF_MIRROR_PUT || (event->kind == HF_MIRROR_SYNCED && candidate->there);
    switch (event->kind) {
    case HF_MIRROR_PUT:
        observe(candidate, &(struct hf_election_key){ .revision = event->revision,
                                                      .present = true,
                                                      .lease = event->kv.lease,
                                                      .create_rev = event->kv.create_rev });
        break;
    case HF_MIRROR_DELETE:
        observe(candidate, &(struct hf_election_key){ .revision = event->revision });
        break;
    case HF_MIRROR_SYNCED:
        if (!candidate->there)
            observe(candidate, &(struct hf_election_key){ .revision = event->revision });
        break;
    case HF_MIRROR_RESET: forget_history(candidate); break;
    }
    drive(candidate);
}

static void on_mirror_trouble(int err, const char *message, hf_ms retry_in, void *arg)
{
    (void)retry_in;
    complain(arg, "watch", err, message);
}

/* The lease. */

static void on_lease_change(const struct hf_session_view *view, void *arg)
{
    (void)view; /* drive() reads it afresh */
    drive(arg);
}

static void on_lease_trouble(const char *what, int err, const char *message, void *arg)
{
    complain(arg, what, err, message);
}

static int get_key(size_t index, int64_t lease, struct hf_proof_key *ret_key, void *arg)
{
    const struct hf_candidate *candidate = arg;

    if (index > 0 || candidate->view.term == 0 || candidate->view.lease != lease)
        return 0;
    *ret_key =
        (struct hf_proof_key){ .text = candidate->cfg.key, .create_rev = candidate->view.term };
    return 1;
}

/* Actions. */

static void answered(struct hf_candidate *candidate, const struct hf_etcd_result *result,
                     struct hf_election_key key)
{
    enum hf_election_outcome outcome = HF_ELECTION_ANSWERED;

    candidate->call = NULL;
    key.revision = result->header.revision;
    if (result->err == HF_ENOENT)
        outcome = HF_ELECTION_NO_LEASE;
    else if (result->err != HF_OK)
        outcome = HF_ELECTION_UNKNOWN;
    if (outcome != HF_ELECTION_ANSWERED)
        complain(candidate, "election", result->err, result->message);
    else
        hf_session_on_header(candidate->session, &result->header);
    note(candidate, hf_election_on_outcome(&candidate->machine, outcome, &key,
                                           now_of(candidate), random_word(candidate)));
    drive(candidate);
}

static struct hf_election_key key_of(const struct hf_kv *kvs, size_t count)
{
    if (count == 0)
        return (struct hf_election_key){ 0 };
    return (struct hf_election_key){ .present = true,
                                     .lease = kvs[0].lease,
                                     .create_rev = kvs[0].create_rev };
}

static void on_looked(const struct hf_range_result *result, void *arg)
{
    answered(arg, &result->result, key_of(result->kvs, result->count));
}

/* Refused: the key was read instead. Done: it is as we made it, or gone if we resigned. */
static void on_txn(const struct hf_txn_result *result, void *arg)
{
    struct hf_candidate *candidate = arg;
    struct hf_election_key key = { 0 };

    if (result->result.err == HF_OK && !result->succeeded && result->answer_count > 0)
        key = key_of(result->answers[0].kvs, result->answers[0].count);
    else if (result->result.err == HF_OK && candidate->asked == HF_ELECTION_CAMPAIGN)
        key = (struct hf_election_key){ .present = true,
                                        .lease = candidate->asked_lease,
                                        .create_rev = result->result.header.revision };
    answered(candidate, &result->result, key);
}

static int send_txn(struct hf_candidate *candidate, const struct hf_plan_guard *guards,
                    size_t guard_count, const struct hf_plan_write *write)
{
    return candidate->backend.ops->txn(candidate->backend.self,
                                       &(struct hf_backend_txn){ .guards = guards,
                                                                 .guard_count = guard_count,
                                                                 .writes = write,
                                                                 .write_count = 1,
                                                                 .look_at = candidate->cfg.key,
                                                                 .resend = true },
                                       on_txn, candidate, &candidate->call);
}

static int campaign(struct hf_candidate *candidate, int64_t lease)
{
    const struct hf_candidate_config *cfg = &candidate->cfg;
    struct hf_bytes value = cfg->get_value != NULL ? cfg->get_value(cfg->arg) : cfg->value;
    struct hf_plan_guard guard = { .what = HF_GUARD_ABSENT,
                                   .row = HF_ROW_CAMPAIGN,
                                   .key = cfg->key };
    struct hf_plan_write put = {
        .key = cfg->key, .value = value.data, .value_len = value.len, .lease = lease
    };

    return send_txn(candidate, &guard, 1, &put);
}

static int resign(struct hf_candidate *candidate, int64_t lease, hf_rev term)
{
    const char *key = candidate->cfg.key;
    struct hf_plan_guard guards[] = {
        { .what = HF_GUARD_CREATE, .row = HF_ROW_RESIGN, .value = term, .key = key },
        { .what = HF_GUARD_LEASE, .row = HF_ROW_RESIGN, .value = lease, .key = key },
    };

    return send_txn(candidate, guards, 2, &(struct hf_plan_write){ .key = key });
}

static int act(struct hf_candidate *candidate, const struct hf_election_step *step)
{
    struct hf_range_request request = { .range.key = hf_bytes_of(candidate->cfg.key) };

    candidate->asked = step->what;
    candidate->asked_lease = step->lease;
    switch (step->what) {
    case HF_ELECTION_CAMPAIGN: return campaign(candidate, step->lease);
    case HF_ELECTION_VERIFY:
        return candidate->backend.ops->range(candidate->backend.self, &request, on_looked,
                                             candidate, &candidate->call);
    case HF_ELECTION_RESIGN: return resign(candidate, step->lease, step->term);
    case HF_ELECTION_NEW_LEASE:
    case HF_ELECTION_NONE: break;
    }
    return HF_OK;
}

static void do_step(struct hf_candidate *candidate, const struct hf_election_step *step)
{
    hf_ms now = now_of(candidate);
    int err;

    if (step->what == HF_ELECTION_NEW_LEASE) {
        hf_backend_let_go(&candidate->backend, step->lease);
        hf_session_on_lost(candidate->session, step->lease);
        return;
    }
    err = act(candidate, step);
    hf_election_on_sent(&candidate->machine, step->what, now);
    if (err == HF_OK)
        return;
    candidate->call = NULL;
    complain(candidate, "election", err, hf_err_text(err));
    note(candidate, hf_election_on_outcome(&candidate->machine, HF_ELECTION_UNKNOWN, NULL, now,
                                           random_word(candidate)));
}

/* Driving. */

static void publish(struct hf_candidate *candidate, const struct hf_election_step *step)
{
    struct hf_candidate_view view = { .state = step->state,
                                      .term = step->term,
                                      .lease = step->lease };
    bool changed = view.state != candidate->view.state || view.term != candidate->view.term ||
                   view.lease != candidate->view.lease;

    candidate->view = view;
    if (changed && candidate->cfg.on_change != NULL)
        candidate->cfg.on_change(&candidate->view, candidate->cfg.arg);
}

static void finish_close(struct hf_candidate *candidate);

/* Whatever calls back into us from inside has been noted when it returns; the loop sees it. */
static void drive(struct hf_candidate *candidate)
{
    hf_ms next;

    if (candidate->driving || candidate->session == NULL)
        return;
    candidate->driving = true;
    for (;;) {
        struct hf_session_view lease = hf_session_get_view(candidate->session);
        hf_ms now = now_of(candidate);
        struct hf_election_step step;

        hf_election_on_lease(&candidate->machine, lease.lease, lease.proven_until, now);
        step = hf_election_next(&candidate->machine, now);
        publish(candidate, &step);
        if (step.what == HF_ELECTION_NONE)
            break;
        do_step(candidate, &step);
    }
    candidate->driving = false;
    if (candidate->closing && candidate->view.state == HF_ELECTION_FOLLOWER) {
        finish_close(candidate);
        return;
    }
    next = hf_election_deadline(&candidate->machine, now_of(candidate));
    if (next != HF_ELECTION_NEVER && !candidate->closing)
        hf_backend_set_alarm(&candidate->backend, &candidate->tick, next);
}

static void on_tick(struct hf_alarm *alarm)
{
    drive((struct hf_candidate *)((char *)alarm - offsetof(struct hf_candidate, tick)));
}

struct hf_candidate_view hf_candidate_get_view(const struct hf_candidate *candidate)
{
    return candidate->view;
}

bool hf_candidate_is_proven(const struct hf_candidate *candidate)
{
    struct hf_session_view view = hf_session_get_view(candidate->session);

    return view.state == HF_LEASE_HELD && view.proven_until > now_of(candidate);
}

bool hf_candidate_can_act(const struct hf_candidate *candidate)
{
    return hf_election_can_act(&candidate->machine, now_of(candidate));
}

void hf_candidate_on_history_reset(struct hf_candidate *candidate)
{
    forget_history(candidate);
    drive(candidate);
}

void hf_candidate_on_header(struct hf_candidate *candidate, const struct hf_etcd_header *header)
{
    hf_session_on_header(candidate->session, header);
}

/* Life. */

static int copy_texts(struct hf_candidate *candidate, const struct hf_candidate_config *cfg)
{
    candidate->cfg = *cfg;
    candidate->cfg.key = hf_strdup(cfg->key);
    candidate->cfg.value.data = hf_memdup(cfg->value.data, cfg->value.len);
    return candidate->cfg.key != NULL && candidate->cfg.value.data != NULL ? HF_OK : HF_ENOMEM;
}

static void free_candidate(void *arg)
{
    struct hf_candidate *candidate = arg;
    hf_candidate_closed_fn fn = candidate->closed_fn;
    void *closed_arg = candidate->closed_arg;

    free((char *)candidate->cfg.key);
    free((void *)candidate->cfg.value.data);
    free(candidate);
    if (fn != NULL)
        fn(closed_arg);
}

/* The lease goes with us: should the key still hang on it, that ends it as well. */
static void finish_close(struct hf_candidate *candidate)
{
    struct hf_session *session = candidate->session;

    candidate->session = NULL;
    hf_backend_unset_alarm(&candidate->backend, &candidate->tick);
    candidate->backend.ops->close_mirror(candidate->mirror);
    candidate->mirror = NULL;
    hf_backend_cancel(&candidate->backend, &candidate->call);
    if (session != NULL)
        hf_session_close(session, true, free_candidate, candidate);
    else
        free_candidate(candidate);
}

static int start(struct hf_candidate *candidate, struct hf_error *err)
{
    const struct hf_backend *backend = &candidate->backend;
    struct hf_key_range range = { .key = hf_bytes_of(candidate->cfg.key) };
    int code =
        backend->ops->open_mirror(backend->self,
                                  &(struct hf_mirror_config){ .ranges = &range,
                                                              .range_count = 1,
                                                              .on_event = on_event,
                                                              .on_trouble = on_mirror_trouble,
                                                              .arg = candidate },
                                  &candidate->mirror, err);

    if (code != HF_OK)
        return code;
    return hf_session_new(backend,
                          &(struct hf_session_config){ .policy = candidate->cfg.lease,
                                                       .on_change = on_lease_change,
                                                       .get_key = get_key,
                                                       .on_trouble = on_lease_trouble,
                                                       .arg = candidate },
                          &candidate->session, err);
}

int hf_candidate_new(const struct hf_backend *backend, const struct hf_candidate_config *cfg,
                     struct hf_candidate **ret_candidate, struct hf_error *err)
{
    struct hf_candidate *candidate;
    const char *why = NULL;
    int code = hf_election_policy_check(&cfg->election, &why);

    if (code != HF_OK)
        return hf_error_set(err, code, "%s", why);
    candidate = hf_calloc(1, sizeof *candidate);
    if (candidate == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    candidate->backend = *backend;
    candidate->tick.fn = on_tick;
    code = copy_texts(candidate, cfg);
    if (code != HF_OK) {
        free_candidate(candidate);
        return hf_error_set(err, code, "%s", hf_err_text(code));
    }
    hf_election_init(&candidate->machine, &cfg->election);
    hf_election_stand(&candidate->machine, now_of(candidate));
    code = start(candidate, err);
    if (code != HF_OK) {
        finish_close(candidate);
        return code;
    }
    *ret_candidate = candidate;
    return HF_OK;
}

static void on_close_timeout(struct hf_alarm *alarm)
{
    finish_close((struct hf_candidate *)((char *)alarm - offsetof(struct hf_candidate, tick)));
}

void hf_candidate_close(struct hf_candidate *candidate, hf_candidate_closed_fn fn, void *arg)
{
    enum { PATIENCE_MS = 2000 };
    hf_ms now = now_of(candidate);

    candidate->closing = true;
    candidate->closed_fn = fn;
    candidate->closed_arg = arg;
    candidate->tick.fn = on_close_timeout;
    hf_election_resign(&candidate->machine, now);
    hf_backend_set_alarm(&candidate->backend, &candidate->tick, now + PATIENCE_MS);
    drive(candidate);
}
