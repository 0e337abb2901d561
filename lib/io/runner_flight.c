#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "core/mutant.h"
#include "io/runner_private.h"

enum { WRITES_AT_ONCE = 64 };

/* Two keys with one hash only wait for each other needlessly. */
static void note_keys(struct hf_flight *flight)
{
    const struct hf_plan *plan = &flight->plan;
    uint32_t seed = flight->runner->seed;

    for (size_t i = 0; i < plan->write_count; i++)
        flight->keys[flight->touched++] =
            hf_hash(seed, plan->writes[i].key, strlen(plan->writes[i].key));
    flight->written = flight->touched;
    for (size_t i = 0; i < plan->guard_count; i++)
        flight->keys[flight->touched++] =
            hf_hash(seed, plan->guards[i].key, strlen(plan->guards[i].key));
}

static bool changes_what_touches(const struct hf_flight *a, const struct hf_flight *b)
{
    for (size_t i = 0; i < a->written; i++) {
        for (size_t k = 0; k < b->touched; k++) {
            if (a->keys[i] == b->keys[k])
                return true;
        }
    }
    return false;
}

static bool must_wait_for(const struct hf_flight *flight, const struct hf_flight *earlier)
{
    return !flight->plan.at_once &&
           (changes_what_touches(earlier, flight) || changes_what_touches(flight, earlier));
}

/* Whoever waited for it need not any more; its outcome is told in the next turn. */
static void answer(struct hf_flight *flight, enum hf_outcome outcome, hf_rev revision, int err)
{
    struct hf_runner *runner = flight->runner;

    if (flight->state == HF_FLIGHT_SENT)
        runner->sent--;
    flight->state = HF_FLIGHT_ANSWERED;
    flight->commit = NULL;
    flight->outcome.outcome = outcome;
    flight->outcome.revision = revision;
    flight->outcome.err = err;
    runner->stats.writes[outcome]++;
    for (struct hf_flight *later = flight->next; later != NULL; later = later->next) {
        if (must_wait_for(later, flight))
            later->blockers--;
    }
    hf_runner_soon(runner);
}

/* The mirror follows some ranges, and we write in others, too: a restored etcd that lost only
 * that would go unnoticed. One of the values is enough, the longest says the most. */
static void tell_mirror(struct hf_runner *runner, const struct hf_plan *plan, hf_rev revision)
{
    const struct hf_plan_write *longest = NULL;

    for (size_t i = 0; i < plan->write_count; i++) {
        const struct hf_plan_write *write = &plan->writes[i];

        if (write->value != NULL && (longest == NULL || write->value_len > longest->value_len))
            longest = write;
    }
    if (longest == NULL || runner->mirror == NULL)
        return;
    runner->backend.ops->tell_mirror(
        runner->mirror,
        &(struct hf_kv){ .key = hf_bytes_of(longest->key),
                         .mod_rev = revision,
                         .value = { .data = longest->value, .len = longest->value_len } });
}

static bool lacks_rule(const struct hf_runner *runner)
{
    uint64_t missing = runner->cfg.lease.mutants | runner->cfg.election.mutants;

    return (missing & hf_mutant_bit(HF_MUTANT_OLD_ANSWER)) != 0;
}

/* A write goes through etcd's log, whether its guards hold or not: whoever answers it has all
 * that was there when it was sent. One that has less is another history, and the first answer
 * tells. What was sent before the last reset says nothing of the history since then. */
static void judge_revision(struct hf_flight *flight, const struct hf_etcd_result *result)
{
    struct hf_runner *runner = flight->runner;

    if (result->err != HF_OK || flight->resets != runner->stats.resets || lacks_rule(runner))
        return;
    if (result->header.revision >= flight->known) {
        hf_runner_on_revision(runner, result->header.revision);
        return;
    }
    hf_runner_complain(runner, "write", HF_EHISTORY, "etcd's revision went back");
    hf_runner_spread_reset(runner);
    hf_runner_forget(runner, true, 0);
}

static void on_commit(const struct hf_commit_result *result, void *arg)
{
    struct hf_flight *flight = arg;
    struct hf_runner *runner = flight->runner;

    if (result->outcome == HF_OUTCOME_DONE)
        hf_crash_point(&runner->crash, HF_CRASH_DONE, &flight->plan);
    judge_revision(flight, &result->result);
    hf_runner_on_result(runner, &result->result);
    if (result->outcome == HF_OUTCOME_DONE && !result->by_copy)
        tell_mirror(runner, &flight->plan, result->revision);
    if (result->outcome == HF_OUTCOME_UNKNOWN || result->outcome == HF_OUTCOME_FAILED)
        hf_runner_complain(runner, "write", result->result.err, result->result.message);
    answer(flight, result->outcome, result->revision, result->result.err);
}

/* A leader that cannot act now will not have been one when the write arrives. */
static void launch(struct hf_flight *flight)
{
    struct hf_runner *runner = flight->runner;
    int err = HF_EFENCED;

    hf_crash_point(&runner->crash, HF_CRASH_BEFORE, &flight->plan);
    if (runner->candidate == NULL || hf_candidate_can_act(runner->candidate))
        err = hf_commit_start(&runner->backend, &flight->plan, 0, on_commit, flight,
                              &flight->commit);
    if (err != HF_OK) {
        answer(flight, HF_OUTCOME_FAILED, 0, err);
        return;
    }
    hf_crash_point(&runner->crash, HF_CRASH_SENT, &flight->plan);
    flight->known = runner->newest;
    flight->resets = runner->stats.resets;
    flight->state = HF_FLIGHT_SENT;
    runner->sent++;
}

static bool has_room(const struct hf_runner *runner)
{
    size_t most = runner->cfg.writes_at_once > 0 ? runner->cfg.writes_at_once : WRITES_AT_ONCE;

    return runner->sent < most;
}

void hf_flights_launch(struct hf_runner *runner)
{
    for (struct hf_flight *flight = runner->flights; flight != NULL && has_room(runner);
         flight = flight->next) {
        if (flight->state == HF_FLIGHT_WAITING && flight->blockers == 0)
            launch(flight);
    }
}

void hf_flight_start(struct hf_runner *runner, struct hf_intent *intent)
{
    struct hf_flight *flight = runner->spare_flight;

    runner->spare_flight = NULL;
    flight->runner = runner;
    flight->outcome.token = intent->token;
    flight->plan = intent->plan;
    intent->kind = HF_INTENT_NONE; /* the plan is ours now */
    note_keys(flight);
    for (struct hf_flight *earlier = runner->flights; earlier != NULL; earlier = earlier->next)
        flight->blockers +=
            earlier->state != HF_FLIGHT_ANSWERED && must_wait_for(flight, earlier) ? 1 : 0;
    *runner->flights_end = flight;
    runner->flights_end = &flight->next;
    runner->stats.flights++;
    if (flight->blockers == 0 && has_room(runner))
        launch(flight); /* others of this turn may take their time */
}

static void remove_flight(struct hf_runner *runner, struct hf_flight **link)
{
    struct hf_flight *flight = *link;

    *link = flight->next;
    if (runner->flights_end == &flight->next)
        runner->flights_end = link;
    hf_plan_done(&flight->plan);
    free(flight);
    runner->stats.flights--;
}

int hf_flights_tell(struct hf_runner *runner)
{
    struct hf_flight **link = &runner->flights;

    while (*link != NULL) {
        struct hf_event event = { .kind = HF_EVENT_OUTCOME, .outcome = (*link)->outcome };

        if ((*link)->state != HF_FLIGHT_ANSWERED) {
            link = &(*link)->next;
            continue;
        }
        if (hf_runner_step(runner, &event) == HF_ENOMEM)
            return HF_ENOMEM;
        remove_flight(runner, link);
    }
    return HF_OK;
}

void hf_flights_cancel(struct hf_runner *runner)
{
    while (runner->flights != NULL) {
        if (runner->flights->state == HF_FLIGHT_SENT)
            hf_commit_cancel(runner->flights->commit);
        remove_flight(runner, &runner->flights);
    }
    free(runner->spare_flight);
    runner->spare_flight = NULL;
}
