#include "io/runner.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "io/runner_private.h"

enum {
    INTENTS_AT_ONCE = 256, /* then whoever else lives on this thread has a turn */
    MEMORY_MS = 100,       /* before what memory was lacking for is tried again */
    STALL_MS = 2000,
};

void hf_runner_complain(struct hf_runner *runner, const char *what, int err,
                        const char *message)
{
    if (runner->cfg.on_trouble != NULL && !runner->closing)
        runner->cfg.on_trouble(what, err, message, runner->cfg.arg);
}

void hf_runner_soon(struct hf_runner *runner)
{
    hf_ms now = hf_runner_now(runner);

    if (runner->in_turn)
        runner->again = true;
    else if (!hf_alarm_is_set(&runner->turn) || runner->turn.at > now)
        hf_backend_set_alarm(&runner->backend, &runner->turn, now);
}

int hf_runner_step(struct hf_runner *runner, struct hf_event *event)
{
    const struct hf_decider *decider = &runner->cfg.decider;
    int err;

    assert(!runner->in_intent);
    err = decider->ops->step(decider->self, event, hf_runner_now(runner));
    if (err == HF_ENOMEM) {
        runner->lacks_memory = true;
        return err;
    }
    runner->stats.events++;
    if (err != HF_OK)
        hf_runner_complain(runner, "step", err, hf_err_text(err));
    if (err == HF_EHISTORY) {
        hf_runner_spread_reset(runner);
        hf_runner_forget(runner, true, 0);
    }
    hf_runner_soon(runner);
    return err;
}

void hf_runner_spread_reset(struct hf_runner *runner)
{
    runner->stats.resets++;
    runner->newest = 0;
    runner->cluster.seen.raft_term = 0; /* they begin anew */
    if (runner->session != NULL)
        hf_session_on_history_reset(runner->session);
    if (runner->candidate != NULL)
        hf_candidate_on_history_reset(runner->candidate);
}

/* What is level, not edge: the latest is told, once. */

static int tell_void(struct hf_runner *runner)
{
    bool by_reset = runner->voided_by_reset;
    struct hf_event event = { .kind = by_reset ? HF_EVENT_RESET : HF_EVENT_FORGET };

    if (!runner->voided)
        return HF_OK;
    runner->voided = runner->voided_by_reset = false;
    if (hf_runner_step(runner, &event) != HF_ENOMEM)
        return HF_OK;
    runner->voided = true;
    runner->voided_by_reset = by_reset;
    return HF_ENOMEM;
}

static int tell_term(struct hf_runner *runner)
{
    struct hf_event event = { .kind = HF_EVENT_TERM };
    struct hf_candidate_view view;

    if (!runner->term_untold)
        return HF_OK;
    view = hf_candidate_get_view(runner->candidate);
    if (view.state == HF_ELECTION_LEADER)
        event.term = (struct hf_term){ .lease = view.lease, .create_rev = view.term };
    if (hf_runner_step(runner, &event) == HF_ENOMEM)
        return HF_ENOMEM;
    runner->term_untold = false;
    return HF_OK;
}

static int tell_lease(struct hf_runner *runner)
{
    struct hf_event event = { .kind = HF_EVENT_LEASE };
    struct hf_session_view view;

    if (!runner->lease_untold)
        return HF_OK;
    view = hf_session_get_view(runner->session);
    event.lease = (struct hf_event_lease){ .state = view.state,
                                           .frozen = view.frozen,
                                           .lease = view.lease,
                                           .ttl = view.record.ttl,
                                           .proven_until = view.proven_until };
    if (hf_runner_step(runner, &event) == HF_ENOMEM)
        return HF_ENOMEM;
    runner->lease_untold = false;
    return HF_OK;
}

static int tell_cluster(struct hf_runner *runner)
{
    struct hf_event event = { .kind = HF_EVENT_CLUSTER, .cluster = runner->cluster.seen };

    if (!runner->cluster.untold)
        return HF_OK;
    if (hf_runner_step(runner, &event) == HF_ENOMEM)
        return HF_ENOMEM;
    runner->cluster.untold = false;
    return HF_OK;
}

/* What became void is said first: nothing that follows may be taken for news of before. */
static int tell_all(struct hf_runner *runner)
{
    int err = tell_void(runner);

    if (err == HF_OK)
        err = tell_lease(runner);
    if (err == HF_OK)
        err = tell_term(runner);
    if (err == HF_OK)
        err = tell_cluster(runner);
    if (err == HF_OK)
        err = hf_flights_tell(runner);
    if (err == HF_OK)
        err = hf_readings_tell(runner);
    return err;
}

/* Intents. */

static void carry_out(struct hf_runner *runner, struct hf_intent *intent)
{
    switch (intent->kind) {
    case HF_INTENT_WRITE: hf_flight_start(runner, intent); break;
    case HF_INTENT_READ: hf_reading_start(runner, intent); break;
    case HF_INTENT_LOST:
        if (runner->session != NULL)
            hf_session_on_lost(runner->session, intent->lease);
        break;
    case HF_INTENT_NONE: break;
    default:
        runner->in_intent = true;
        runner->cfg.on_intent(intent, runner->cfg.arg);
        runner->in_intent = false;
        break;
    }
    hf_intent_done(intent);
}

/* An intent that was given must be carried out, so what it takes is there before it is. */
static bool has_spares(struct hf_runner *runner)
{
    if (runner->spare_flight == NULL)
        runner->spare_flight = hf_calloc(1, sizeof *runner->spare_flight);
    if (runner->spare_reading == NULL)
        runner->spare_reading = hf_calloc(1, sizeof *runner->spare_reading);
    return runner->spare_flight != NULL && runner->spare_reading != NULL;
}

static int take_intent(struct hf_runner *runner)
{
    const struct hf_decider *decider = &runner->cfg.decider;
    const struct hf_backend *backend = &runner->backend;
    struct hf_intent intent = { .kind = HF_INTENT_NONE };
    int rc = HF_ENOMEM;

    if (has_spares(runner))
        rc = decider->ops->next(decider->self, hf_runner_now(runner),
                                backend->ops->wall(backend->self), hf_backend_get_word(backend),
                                &intent);
    if (rc == HF_ENOMEM)
        runner->lacks_memory = true;
    if (rc <= 0)
        return rc;
    runner->stats.intents++;
    carry_out(runner, &intent);
    return rc;
}

/* Turns. */

static void finish_close(struct hf_runner *runner);

/* A turn that comes far too late means that this thread stood still; the decider sees it by the
 * time that has passed, before it is asked for anything. */
static void tell_time(struct hf_runner *runner, hf_ms now)
{
    hf_ms late = now - runner->turn.at;

    if (late > STALL_MS) {
        struct hf_error text = { "" };

        (void)hf_error_set(&text, HF_ETIMEOUT, "stood still for %" PRId64 " ms", late);
        hf_runner_complain(runner, "loop", HF_ETIMEOUT, text.text);
    }
    (void)!hf_runner_step(runner, &(struct hf_event){ .kind = HF_EVENT_TIME });
}

static void take_turn(struct hf_runner *runner)
{
    int rc = tell_all(runner);

    runner->again = false; /* all that came before is dealt with in this turn, ... */
    if (rc != HF_OK)
        return; /* ... or for want of memory later: decisions would rest on too little */
    hf_runner_follow(runner, hf_runner_now(runner));
    for (int i = 0; i < INTENTS_AT_ONCE && !runner->closing; i++) {
        rc = take_intent(runner);
        if (rc < 0 && rc != HF_ENOMEM)
            hf_runner_complain(runner, "next", rc, hf_err_text(rc));
        if (rc <= 0)
            break;
        runner->again |= i == INTENTS_AT_ONCE - 1;
    }
    if (!runner->closing)
        hf_flights_launch(runner);
    hf_runner_follow(runner, hf_runner_now(runner));
}

/* Without an intent that is due now a decider that names a time in the past would keep us
 * spinning: it has a millisecond. */
static void sleep_until_due(struct hf_runner *runner)
{
    const struct hf_decider *decider = &runner->cfg.decider;
    hf_ms now = hf_runner_now(runner);
    hf_ms at = decider->ops->deadline(decider->self, now);

    if (at <= now)
        at = now + 1;
    if (runner->mirror == NULL && runner->open_at < at)
        at = runner->open_at;
    if (runner->lacks_memory && now + MEMORY_MS < at)
        at = now + MEMORY_MS;
    if (runner->again)
        at = now;
    if (at != HF_ALARMS_NEVER)
        hf_backend_set_alarm(&runner->backend, &runner->turn, at);
}

static void on_turn(struct hf_alarm *alarm)
{
    struct hf_runner *runner =
        (struct hf_runner *)((char *)alarm - offsetof(struct hf_runner, turn));

    if (runner->closing) {
        finish_close(runner);
        return;
    }
    runner->in_turn = true;
    runner->lacks_memory = false;
    tell_time(runner, hf_runner_now(runner));
    take_turn(runner);
    runner->in_turn = false;
    if (runner->closing)
        hf_backend_set_alarm(&runner->backend, &runner->turn, hf_runner_now(runner));
    else
        sleep_until_due(runner);
}

int hf_runner_feed(struct hf_runner *runner, struct hf_event *event)
{
    return runner->closing ? HF_ECANCELED : hf_runner_step(runner, event);
}

/* The lease, or leadership. */

static void on_lease_change(const struct hf_session_view *view, void *arg)
{
    struct hf_runner *runner = arg;

    if (runner->closing)
        return;
    runner->lease_untold = true;
    if (view->record.term > runner->cluster.seen.raft_term) {
        runner->cluster.seen.raft_term = view->record.term;
        runner->cluster.untold = true;
    }
    hf_runner_soon(runner);
    if (runner->cfg.on_lease != NULL)
        runner->cfg.on_lease(view, runner->cfg.arg);
}

static void on_candidate_change(const struct hf_candidate_view *view, void *arg)
{
    struct hf_runner *runner = arg;

    (void)view; /* read when it is told */
    if (runner->closing)
        return;
    runner->term_untold = true;
    hf_runner_soon(runner);
}

static void on_trouble(const char *what, int err, const char *message, void *arg)
{
    hf_runner_complain(arg, what, err, message);
}

static int fetch_keys(struct hf_runner *runner, int64_t lease)
{
    const struct hf_decider *decider = &runner->cfg.decider;
    int count;

    free(runner->keys);
    runner->keys = NULL;
    runner->key_count = 0;
    if (decider->ops->get_keys == NULL)
        return HF_OK;
    count = decider->ops->get_keys(decider->self, lease, NULL, 0);
    if (count <= 0)
        return count;
    runner->keys = hf_calloc((size_t)count, sizeof *runner->keys);
    if (runner->keys == NULL)
        return HF_ENOMEM;
    count = decider->ops->get_keys(decider->self, lease, runner->keys, (size_t)count);
    if (count > 0)
        runner->key_count = (size_t)count;
    return count < 0 ? count : HF_OK;
}

/* All of them are taken from the decider with the first, and asked for without a pause. */
static int get_key(size_t index, int64_t lease, struct hf_proof_key *ret_key, void *arg)
{
    struct hf_runner *runner = arg;
    int rc = index == 0 ? fetch_keys(runner, lease) : HF_OK;

    if (rc != HF_OK)
        return rc;
    if (index >= runner->key_count)
        return 0;
    rc = hf_key_format(runner->cfg.ns, &runner->keys[index].key, runner->key_text, NULL);
    if (rc < 0)
        return rc;
    *ret_key = (struct hf_proof_key){ .text = runner->key_text,
                                      .create_rev = runner->keys[index].create_rev };
    return 1;
}

/* Life. */

static int start_session(struct hf_runner *runner, struct hf_error *err)
{
    return hf_session_new(&runner->backend,
                          &(struct hf_session_config){ .policy = runner->cfg.lease,
                                                       .on_change = on_lease_change,
                                                       .get_key = get_key,
                                                       .on_trouble = on_trouble,
                                                       .arg = runner,
                                                       .resume = runner->cfg.resume },
                          &runner->session, err);
}

static struct hf_bytes get_leader(void *arg)
{
    struct hf_runner *runner = arg;

    return runner->cfg.get_leader(runner->cfg.arg);
}

static int start_candidate(struct hf_runner *runner, struct hf_error *err)
{
    char key[HF_KEY_SIZE];
    int len =
        hf_key_format(runner->cfg.ns, &(struct hf_key){ .kind = HF_KEY_LEADER }, key, err);

    if (len < 0)
        return len;
    return hf_candidate_new(&runner->backend,
                            &(struct hf_candidate_config){
                                .key = key,
                                .value = runner->cfg.leader,
                                .get_value = runner->cfg.get_leader != NULL ? get_leader : NULL,
                                .lease = runner->cfg.lease,
                                .election = runner->cfg.election,
                                .on_change = on_candidate_change,
                                .on_trouble = on_trouble,
                                .arg = runner },
                            &runner->candidate, err);
}

static void free_runner(void *arg)
{
    struct hf_runner *runner = arg;
    hf_runner_closed_fn fn = runner->closed_fn;
    void *closed_arg = runner->closed_arg;

    free((char *)runner->cfg.ns);
    free(runner->keys);
    hf_recall_done(&runner->past);
    free(runner);
    if (fn != NULL)
        fn(closed_arg);
}

int hf_runner_new(const struct hf_backend *backend, const struct hf_runner_config *cfg,
                  struct hf_runner **ret_runner, struct hf_error *err)
{
    struct hf_runner *runner = hf_calloc(1, sizeof *runner);
    int code;

    if (runner == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    runner->backend = *backend;
    runner->cfg = *cfg;
    runner->cfg.ns = hf_strdup(cfg->ns);
    runner->seed = hf_backend_get_word(backend);
    runner->flights_end = &runner->flights;
    runner->turn.fn = on_turn;
    if (runner->cfg.ns == NULL)
        code = hf_error_set(err, HF_ENOMEM, "out of memory");
    else if (cfg->leader.len > 0)
        code = start_candidate(runner, err);
    else
        code = start_session(runner, err);
    if (code != HF_OK) {
        free_runner(runner);
        return code;
    }
    runner->cfg.resume = NULL;
    runner->cfg.leader = (struct hf_bytes){ 0 };
    hf_runner_soon(runner);
    if (runner->candidate != NULL)
        hf_runner_survey_later(runner);
    *ret_runner = runner;
    return HF_OK;
}

static void finish_close(struct hf_runner *runner)
{
    struct hf_session *session = runner->session;
    struct hf_candidate *candidate = runner->candidate;

    hf_runner_survey_cancel(runner);
    hf_flights_cancel(runner);
    hf_readings_cancel(runner);
    runner->backend.ops->close_mirror(runner->mirror);
    runner->mirror = NULL;
    runner->session = NULL;
    runner->candidate = NULL;
    hf_backend_unset_alarm(&runner->backend, &runner->turn);
    if (candidate != NULL)
        hf_candidate_close(candidate, free_runner, runner);
    else
        hf_session_close(session, runner->revoke, free_runner, runner);
}

void hf_runner_close(struct hf_runner *runner, bool revoke, hf_runner_closed_fn fn, void *arg)
{
    assert(!runner->closing);
    runner->closing = true;
    runner->revoke = revoke;
    runner->closed_fn = fn;
    runner->closed_arg = arg;
    hf_runner_soon(runner);
}

struct hf_runner_stats hf_runner_get_stats(const struct hf_runner *runner)
{
    return runner->stats;
}

hf_ms hf_runner_get_heard_at(const struct hf_runner *runner)
{
    return runner->mirror != NULL ? runner->backend.ops->get_mirror_heard_at(runner->mirror)
                                  : 0;
}

struct hf_session_view hf_runner_get_lease(const struct hf_runner *runner)
{
    return runner->session != NULL ? hf_session_get_view(runner->session)
                                   : (struct hf_session_view){ 0 };
}

bool hf_runner_is_proven(const struct hf_runner *runner)
{
    return runner->candidate != NULL && hf_candidate_is_proven(runner->candidate);
}

struct hf_candidate_view hf_runner_get_candidate(const struct hf_runner *runner)
{
    return runner->candidate != NULL ? hf_candidate_get_view(runner->candidate)
                                     : (struct hf_candidate_view){ 0 };
}
