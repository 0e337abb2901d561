#include "io/candidate.h"

#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/id.h"
#include "etcd/campaign.h"
#include "etcd/mirror.h"
#include "etcd/timer.h"

struct hf_candidate {
    struct hf_etcd *etcd;
    struct hf_candidate_config cfg; /* key and value are owned */
    struct hf_timers timers;
    struct hf_timer tick; /* the machine's next deadline */
    struct hf_session *session;
    struct hf_mirror *mirror; /* of the key */
    struct hf_election machine;
    struct hf_candidate_view view; /* as last told */
    struct hf_call *call;          /* campaign, look or resignation under way */

    bool driving; /* news that come while we drive are seen by the same loop */
    bool closing;
    hf_candidate_closed_fn closed_fn;
    void *closed_arg;
};

static void drive(struct hf_candidate *candidate);

static hf_ms now_of(const struct hf_candidate *candidate)
{
    return hf_clock_now(&candidate->timers.clock);
}

/* Spreads candidates apart: without randomness they are merely less so. */
static uint32_t random_word(void)
{
    uint32_t word = 0;

    (void)!hf_id_random(&word, sizeof word);
    return word;
}

static void complain(struct hf_candidate *candidate, const char *what, int err,
                     const char *message)
{
    if (candidate->cfg.on_trouble != NULL)
        candidate->cfg.on_trouble(what, err, message, candidate->cfg.arg);
}

/* A term that goes back means that revisions were given out twice. */
static void note(struct hf_candidate *candidate, int err)
{
    hf_ms now = now_of(candidate);

    if (err == HF_OK)
        return;
    complain(candidate, "election", err, hf_err_text(err));
    if (err == HF_EHISTORY) {
        hf_election_on_history_reset(&candidate->machine, now);
        hf_session_on_history_reset(candidate->session);
    }
}

/* The key, by its watch. */

static void observe(struct hf_candidate *candidate, const struct hf_election_key *key)
{
    note(candidate,
         hf_election_on_observed(&candidate->machine, key, now_of(candidate), random_word()));
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    struct hf_candidate *candidate = arg;
    struct hf_kv kv;

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
        if (!hf_mirror_get(candidate->mirror, candidate->cfg.key, &kv))
            observe(candidate, &(struct hf_election_key){ .revision = event->revision });
        break;
    case HF_MIRROR_RESET:
        hf_election_on_history_reset(&candidate->machine, now_of(candidate));
        hf_session_on_history_reset(candidate->session);
        break;
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

void hf_candidate_add_compares(const struct hf_candidate *candidate, struct hf_txn *txn)
{
    hf_txn_if_create(txn, candidate->cfg.key, HF_TXN_EQUAL, candidate->view.term);
    hf_txn_if_lease(txn, candidate->cfg.key, HF_TXN_EQUAL, candidate->view.lease);
}

static size_t add_lease_compares(struct hf_txn *txn, int64_t lease, void *arg)
{
    const struct hf_candidate *candidate = arg;

    if (candidate->view.term == 0 || candidate->view.lease != lease)
        return 0;
    hf_candidate_add_compares(candidate, txn);
    return 1;
}

/* Actions. */

static void on_answer(const struct hf_campaign_result *result, void *arg)
{
    struct hf_candidate *candidate = arg;
    const struct hf_kv *holder = &result->holder;
    struct hf_election_key key = { .revision = result->result.header.revision,
                                   .present = result->held,
                                   .lease = holder->lease,
                                   .create_rev = holder->create_rev };
    enum hf_election_outcome outcome = HF_ELECTION_ANSWERED;

    candidate->call = NULL;
    if (result->result.err == HF_ENOENT)
        outcome = HF_ELECTION_NO_LEASE;
    else if (result->result.err != HF_OK)
        outcome = HF_ELECTION_UNKNOWN;
    if (outcome != HF_ELECTION_ANSWERED)
        complain(candidate, "election", result->result.err, result->result.message);
    else
        hf_session_on_header(candidate->session, &result->result.header);
    note(candidate, hf_election_on_outcome(&candidate->machine, outcome, &key,
                                           now_of(candidate), random_word()));
    drive(candidate);
}

static int act(struct hf_candidate *candidate, const struct hf_election_step *step)
{
    const struct hf_candidate_config *cfg = &candidate->cfg;

    switch (step->what) {
    case HF_ELECTION_CAMPAIGN:
        return hf_campaign_run(candidate->etcd, cfg->key, cfg->value, step->lease, on_answer,
                               candidate, &candidate->call);
    case HF_ELECTION_VERIFY:
        return hf_campaign_look(candidate->etcd, cfg->key, step->lease, on_answer, candidate,
                                &candidate->call);
    case HF_ELECTION_RESIGN:
        return hf_campaign_resign(candidate->etcd, cfg->key, step->lease, step->term, on_answer,
                                  candidate, &candidate->call);
    case HF_ELECTION_NEW_LEASE:
    case HF_ELECTION_NONE: break;
    }
    return HF_OK;
}

static void ignore_write(const struct hf_write_result *result, void *arg)
{
    (void)result;
    (void)arg;
}

static void do_step(struct hf_candidate *candidate, const struct hf_election_step *step)
{
    hf_ms now = now_of(candidate);
    int err;

    if (step->what == HF_ELECTION_NEW_LEASE) {
        (void)!hf_etcd_lease_revoke(candidate->etcd, step->lease, ignore_write, NULL, NULL);
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
                                           random_word()));
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
        (void)!hf_timer_start(&candidate->timers, &candidate->tick, next);
}

static void on_tick(struct hf_timer *timer)
{
    drive((struct hf_candidate *)((char *)timer - offsetof(struct hf_candidate, tick)));
}

struct hf_candidate_view hf_candidate_get_view(const struct hf_candidate *candidate)
{
    return candidate->view;
}

bool hf_candidate_can_act(const struct hf_candidate *candidate)
{
    return hf_election_can_act(&candidate->machine, now_of(candidate));
}

/* Life. */

static int copy_texts(struct hf_candidate *candidate, const struct hf_candidate_config *cfg)
{
    candidate->cfg = *cfg;
    candidate->cfg.key.data = hf_memdup(cfg->key.data, cfg->key.len);
    candidate->cfg.value.data = hf_memdup(cfg->value.data, cfg->value.len);
    return candidate->cfg.key.data != NULL && candidate->cfg.value.data != NULL ? HF_OK
                                                                                : HF_ENOMEM;
}

static void free_candidate(struct hf_candidate *candidate)
{
    free((void *)candidate->cfg.key.data);
    free((void *)candidate->cfg.value.data);
    free(candidate);
}

static void on_timers_closed(uv_handle_t *handle)
{
    struct hf_candidate *candidate = handle->data;
    hf_candidate_closed_fn fn = candidate->closed_fn;
    void *arg = candidate->closed_arg;

    free_candidate(candidate);
    if (fn != NULL)
        fn(arg);
}

static void on_session_closed(void *arg)
{
    struct hf_candidate *candidate = arg;

    hf_timers_close(&candidate->timers, on_timers_closed);
}

/* The lease goes with us: should the key still hang on it, that ends it as well. */
static void finish_close(struct hf_candidate *candidate)
{
    struct hf_session *session = candidate->session;

    candidate->session = NULL;
    hf_timer_stop(&candidate->timers, &candidate->tick);
    hf_mirror_close(candidate->mirror);
    candidate->mirror = NULL;
    if (candidate->call != NULL)
        hf_call_cancel(candidate->call);
    candidate->call = NULL;
    if (session != NULL)
        hf_session_close(session, true, on_session_closed, candidate);
    else
        hf_timers_close(&candidate->timers, on_timers_closed);
}

static int start(struct hf_candidate *candidate, uv_loop_t *loop, struct hf_error *err)
{
    struct hf_key_range range = { .key = candidate->cfg.key };
    int code = hf_mirror_new(candidate->etcd,
                             &(struct hf_mirror_config){ .ranges = &range,
                                                         .range_count = 1,
                                                         .on_event = on_event,
                                                         .on_trouble = on_mirror_trouble,
                                                         .arg = candidate },
                             &candidate->mirror, err);

    if (code != HF_OK)
        return code;
    return hf_session_new(loop, candidate->etcd,
                          &(struct hf_session_config){ .policy = candidate->cfg.lease,
                                                       .on_change = on_lease_change,
                                                       .add_compares = add_lease_compares,
                                                       .on_trouble = on_lease_trouble,
                                                       .arg = candidate },
                          &candidate->session, err);
}

int hf_candidate_new(uv_loop_t *loop, struct hf_etcd *etcd,
                     const struct hf_candidate_config *cfg, struct hf_candidate **ret_candidate,
                     struct hf_error *err)
{
    struct hf_candidate *candidate;
    const char *why = NULL;
    int code = hf_election_policy_check(&cfg->election, &why);

    if (code != HF_OK)
        return hf_error_set(err, code, "%s", why);
    candidate = hf_calloc(1, sizeof *candidate);
    if (candidate == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    candidate->etcd = etcd;
    candidate->tick.fn = on_tick;
    code = copy_texts(candidate, cfg);
    if (code == HF_OK)
        code = hf_timers_init(&candidate->timers, loop, *hf_etcd_get_clock(etcd));
    if (code != HF_OK) {
        free_candidate(candidate);
        return hf_error_set(err, code, "%s", hf_err_text(code));
    }
    candidate->timers.poll.data = candidate;
    hf_election_init(&candidate->machine, &cfg->election);
    hf_election_stand(&candidate->machine, now_of(candidate));
    code = start(candidate, loop, err);
    if (code != HF_OK) {
        finish_close(candidate);
        return code;
    }
    *ret_candidate = candidate;
    return HF_OK;
}

static void on_close_timeout(struct hf_timer *timer)
{
    finish_close((struct hf_candidate *)((char *)timer - offsetof(struct hf_candidate, tick)));
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
    if (hf_timer_start(&candidate->timers, &candidate->tick, now + PATIENCE_MS) != HF_OK)
        finish_close(candidate);
    else
        drive(candidate);
}
