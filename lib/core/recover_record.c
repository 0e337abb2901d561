#include <stddef.h>

#include "core/recover.h"

struct hf_recover hf_recover_load(const Holdfast__V1__Recovery *record)
{
    struct hf_recover r = { 0 };

    if (record == NULL)
        return r;
    size_t skip =
        record->n_outcomes > HF_RECOVER_OUTCOMES ? record->n_outcomes - HF_RECOVER_OUTCOMES : 0;
    r.attempts = record->attempts > 0 ? (uint32_t)record->attempts : 0;
    r.next_at = hf_moment_read(record->next_at);
    r.probation_until = hf_moment_read(record->probation_until);
    for (size_t i = skip; i < record->n_outcomes; i++) {
        const Holdfast__V1__Recovery__Outcome *outcome = record->outcomes[i];

        r.outcomes[r.outcome_count++] = (struct hf_recover_outcome){
            .at = hf_moment_read(outcome->at),
            .checkpoint = outcome->checkpoint != NULL ? outcome->checkpoint->seq : 0,
            .result = outcome->result,
            .reserved = outcome->reserved != 0,
        };
    }
    return r;
}

struct hf_recover_agent hf_recover_agent_load(const Holdfast__V1__Health *health)
{
    if (health == NULL)
        return (struct hf_recover_agent){ 0 };
    return (struct hf_recover_agent){
        .recovered = hf_moments_read(health->recovered_at, health->n_recovered_at),
        .recovered_upto = health->recovered_upto,
    };
}

void hf_recover_store(const struct hf_recover *r, const char *task,
                      struct hf_recover_record *ret_record)
{
    Holdfast__V1__Recovery *record = &ret_record->record;

    holdfast__v1__recovery__init(record);
    record->task = (char *)task;
    record->attempts = (int32_t)r->attempts;
    record->next_at = hf_moment_write(r->next_at, &ret_record->next_at);
    record->probation_until = hf_moment_write(r->probation_until, &ret_record->probation_until);
    record->outcomes = ret_record->list;
    record->n_outcomes = r->outcome_count;
    for (uint8_t i = 0; i < r->outcome_count; i++) {
        Holdfast__V1__Recovery__Outcome *outcome = &ret_record->outcomes[i].outcome;
        Holdfast__V1__CheckpointRef *checkpoint = &ret_record->outcomes[i].checkpoint;

        holdfast__v1__recovery__outcome__init(outcome);
        holdfast__v1__checkpoint_ref__init(checkpoint);
        checkpoint->seq = r->outcomes[i].checkpoint;
        outcome->at = hf_moment_write(r->outcomes[i].at, &ret_record->outcomes[i].at);
        outcome->checkpoint = checkpoint->seq != 0 ? checkpoint : NULL;
        outcome->result = r->outcomes[i].result;
        outcome->reserved = r->outcomes[i].reserved;
        ret_record->list[i] = outcome;
    }
}
