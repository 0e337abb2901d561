#include "core/chain.h"

#include <assert.h>
#include <stddef.h>

#define TRIES_MAX 10000
#define WAIT_MAX  60000

struct hf_chain_policy hf_chain_policy_default(void)
{
    return (struct hf_chain_policy){
        .poison = 2, .tries = 100, .rereads = 3, .reread_after = 2000
    };
}

int hf_chain_policy_check(const struct hf_chain_policy *p, const char **ret_why)
{
    if (p->poison == 0 || p->poison > HF_RECOVER_OUTCOMES)
        *ret_why = "chain.poison must be 1..16";
    else if (p->tries == 0 || p->tries > TRIES_MAX)
        *ret_why = "chain.tries must be 1..10000";
    else if (p->rereads >= p->tries)
        *ret_why = "chain.rereads must be below chain.tries";
    else if (p->reread_after < 0 || p->reread_after > WAIT_MAX)
        *ret_why = "chain.reread_after must be 0..60 s";
    else
        return HF_OK;
    return HF_EINVAL;
}

/* What is passed over was never asked for. */
static void pass_poison(struct hf_chain *c)
{
    int64_t newest = hf_recover_newest(c->recover, c->at, c->policy.poison);

    c->poisoned += (uint32_t)(c->at - newest);
    c->at = newest;
}

void hf_chain_init(struct hf_chain *c, const struct hf_chain_policy *policy, int64_t head,
                   const struct hf_recover *recover)
{
    const char *why = NULL;

    assert(hf_chain_policy_check(policy, &why) == HF_OK);
    *c = (struct hf_chain){
        .policy = *policy,
        .recover = recover,
        .head = head > 0 ? head : 0,
        .at = head > 0 ? head : 0,
    };
    pass_poison(c);
}

static uint32_t damaged(const struct hf_chain *c)
{
    return c->found[HF_CHAIN_CORRUPT] + c->found[HF_CHAIN_MISSING] + c->found[HF_CHAIN_BROKEN];
}

static struct hf_chain_step use(const struct hf_chain *c)
{
    struct hf_chain_step step = {
        .verdict = HF_CHAIN_USE,
        .next = "the task goes on from it",
        .seq = c->at,
        .alert = c->at != c->head,
    };

    if (damaged(c) > 0)
        step.why = "it is whole, and newer ones are damaged";
    else if (c->poisoned > 0)
        step.why = "it is whole, and successors that went on from newer ones died";
    else
        step.why = "it is the newest, and whole";
    return step;
}

static struct hf_chain_step start_over(const struct hf_chain *c)
{
    struct hf_chain_step step = {
        .verdict = HF_CHAIN_START_OVER,
        .next = "the task starts over",
        .alert = c->head > 0,
    };

    if (c->head == 0)
        step.why = "it has no checkpoint";
    else if (c->at > 0)
        step.why = "as many checkpoints as may be tried are damaged";
    else if (damaged(c) == 0)
        step.why = "successors died that went on from its checkpoints";
    else
        step.why = "no checkpoint is left that is whole and killed nobody";
    return step;
}

struct hf_chain_step hf_chain_next(const struct hf_chain *c)
{
    bool tired = c->answers >= c->policy.tries;

    if (c->used)
        return use(c);
    /* What cannot be read may be whole: it is never a reason to start over. */
    if (c->elsewhere)
        return (struct hf_chain_step){
            .verdict = HF_CHAIN_REFUSE,
            .why = "a checkpoint lies in files that this host does not have",
            .next = "a host that has them goes on from it",
            .alert = true,
        };
    if (c->reread > (tired ? 0 : c->policy.rereads))
        return (struct hf_chain_step){
            .verdict = HF_CHAIN_REFUSE,
            .why = "a checkpoint cannot be read here at the moment",
            .next = "another host, or a later attempt, may read it",
            .alert = true,
        };
    if (c->at == 0 || tired)
        return start_over(c);
    return (struct hf_chain_step){
        .verdict = HF_CHAIN_VERIFY,
        .why = c->reread > 0     ? "it could not be read at first"
               : c->at < c->head ? "newer ones will not do"
                                 : "it is the newest",
        .next = "it is verified",
        .seq = c->at,
        .wait = c->reread > 0 ? c->policy.reread_after : 0,
    };
}

/* To the one before, as its record says if that can be believed. */
static void go_back(struct hf_chain *c, int64_t parent)
{
    c->at = parent >= 0 ? parent : c->at - 1;
    c->reread = 0;
    pass_poison(c);
}

void hf_chain_on_verified(struct hf_chain *c, int64_t seq, enum hf_chain_result result,
                          int64_t parent)
{
    assert(result <= HF_CHAIN_UNREADABLE);
    if (hf_chain_next(c).verdict != HF_CHAIN_VERIFY || seq != c->at)
        return;
    if (parent >= seq)
        result = HF_CHAIN_BROKEN;
    c->answers++;
    c->found[result]++;
    switch (result) {
    case HF_CHAIN_VALID: c->used = true; break;
    case HF_CHAIN_CORRUPT:
    case HF_CHAIN_MISSING: go_back(c, parent); break;
    case HF_CHAIN_BROKEN: go_back(c, -1); break;
    case HF_CHAIN_ELSEWHERE: c->elsewhere = true; break;
    case HF_CHAIN_UNREADABLE: c->reread++; break;
    }
}

const char *hf_chain_result_name(enum hf_chain_result result)
{
    switch (result) {
#define X(name, text)                                                                          \
    case HF_CHAIN_##name: return #name;
        HF_CHAIN_RESULT_MAP(X)
#undef X
    }
    return "?";
}

const char *hf_chain_result_text(enum hf_chain_result result)
{
    switch (result) {
#define X(name, text)                                                                          \
    case HF_CHAIN_##name: return text;
        HF_CHAIN_RESULT_MAP(X)
#undef X
    }
    return "?";
}

const char *hf_chain_verdict_name(enum hf_chain_verdict verdict)
{
    switch (verdict) {
    case HF_CHAIN_VERIFY: return "VERIFY";
    case HF_CHAIN_USE: return "USE";
    case HF_CHAIN_START_OVER: return "START_OVER";
    case HF_CHAIN_REFUSE: return "REFUSE";
    }
    return "?";
}
