#include <stdlib.h>
#include <string.h>

#include "core/node_private.h"
#include "schema/json.h"

/* Everything that was about a process that is gone. */
void hf_node_forget_process(struct node_agent *a)
{
    a->process = PROCESS_NONE;
    a->instance[0] = '\0';
    a->pid = 0;
    a->ready = a->frozen = a->settled = a->unadopted = a->tasks_read = a->adopt_again = false;
    a->leaving = a->unwell = a->suspected = a->has_progress = a->has_reported = false;
    a->said_new = a->suspicion_new = a->telling = a->cleared = false;
    a->blind = a->doubtful = false;
    a->end = END_NONE;
    a->asked = ASKED_NOTHING;
    a->reg = REG_NONE;
    a->life_count = 0;
    a->exit_text[0] = a->end_text[0] = '\0';
    while (a->owned_count > 0)
        hf_node_drop_owned(a, a->owned[0].name);
    hf_node_forget_parted(a);
    hf_node_clear_cells(&a->todo, &a->todo_count, &a->todo_cap);
    hf_node_forget_start(a);
    hf_node_drop_heir(a);
    hf_json_free(a->said);
    a->said = NULL;
    hf_json_free(a->suspicion);
    a->suspicion = NULL;
    a->said_wall = a->beat_wall = 0;
    a->receipt = (struct hf_receipt){ .id = "" };
    a->receipt_new = false;
    free(a->reported);
    free(a->reporting);
    a->reported = a->reporting = NULL;
}

/* Why a process has to end. */

static bool is_wanted(const struct node_agent *a)
{
    const Holdfast__V1__Wanted *wanted = (const Holdfast__V1__Wanted *)a->wanted.record;

    /* What nobody here understands ends nobody; it starts nobody either. */
    return wanted == NULL || wanted->state != HOLDFAST__V1__WANTED__STATE__stopped;
}

/* The highest incarnation that somebody has ordered to end. */
static int64_t end_upto(const struct node_agent *a)
{
    const Holdfast__V1__Wanted *wanted = (const Holdfast__V1__Wanted *)a->wanted.record;
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)a->health.record;
    int64_t by_person = wanted != NULL ? wanted->end_upto : 0;
    int64_t by_leader = health != NULL ? health->end_upto : 0;

    return by_person > by_leader ? by_person : by_leader;
}

static enum node_end told_to_end(const struct hf_node *node, const struct node_agent *a)
{
    if (!node->synced || !a->known)
        return END_NONE;
    if (!is_wanted(a))
        return END_STOPPED;
    if (a->life.create_rev != 0 && end_upto(a) != 0 &&
        (hf_node_incarnation(&a->life) <= end_upto(a) ||
         hf_node_lacks(node, HF_MUTANT_END_LATER)))
        return END_UPTO;
    if (a->reg != REG_LOST)
        return END_NONE;
    if (hf_node_exists(&a->command) && !hf_node_lacks(node, HF_MUTANT_KEEP_COMMANDED))
        return END_REPLACED;
    /* Unreadable, it could be anybody's: somebody else's as soon as it can be read. */
    if (hf_node_live(a) != NULL && strcmp(hf_node_live(a)->instance_id, a->instance) != 0 &&
        node->now >= node->ghosts_until && !hf_node_lacks(node, HF_MUTANT_KEEP_REPLACED))
        return END_REPLACED;
    return a->guest && !hf_node_exists(&a->spec) ? END_REPLACED : END_NONE;
}

static enum node_end why_end(const struct hf_node *node, const struct node_agent *a)
{
    const Holdfast__V1__Spec *spec = hf_node_spec(a);
    enum node_end told = told_to_end(node, a);

    if (told != END_NONE)
        return told;
    if (a->unadopted && !hf_node_lacks(node, HF_MUTANT_ADOPT_SOME))
        return END_FENCED;
    if (a->frozen && node->now >= a->frozen_at + node->policy.frozen_max)
        return END_FENCED;
    if (spec != NULL && spec->fence == HOLDFAST__V1__SPEC__FENCE__kill &&
        hf_node_must_freeze(node, a) && !hf_node_lacks(node, HF_MUTANT_NO_FENCE_KILL))
        return END_FENCED;
    if (a->unwell && (a->suspected || node->now >= a->unwell_at + node->policy.verdict_wait))
        return END_UNWELL;
    if (a->leaving && node->now >= a->leave_by)
        return END_LEFT;
    return END_NONE;
}

static const struct {
    Holdfast__V1__Exit__Kind kind;
    bool polite; /* it is asked first */
    const char *source;
    const char *text;
} ENDS[] = {
    [END_NONE] = { HOLDFAST__V1__EXIT__KIND__unknown, true, "keeper", "" },
    [END_STOPPED] = { HOLDFAST__V1__EXIT__KIND__terminated, true, "wanted",
                      "it is wanted stopped" },
    [END_UPTO] = { HOLDFAST__V1__EXIT__KIND__terminated, true, "end_upto",
                   "this incarnation was ordered to end" },
    [END_LEFT] = { HOLDFAST__V1__EXIT__KIND__left, true, "agent", "it said goodbye" },
    [END_UNWELL] = { HOLDFAST__V1__EXIT__KIND__frozen, true, "agentd",
                     "it was alive and answered nothing" },
    [END_FENCED] = { HOLDFAST__V1__EXIT__KIND__fenced, false, "agentd",
                     "it could not be proven that it was still registered with all its tasks" },
    [END_REPLACED] = { HOLDFAST__V1__EXIT__KIND__fenced, false, "agentd",
                       "somebody else is this agent now, or is about to be" },
};

/* Who answers nothing will hardly do so now. */
static hf_ms grace_of(const struct hf_node *node, const struct node_agent *a)
{
    hf_ms grace = node->policy.stop_grace;

    return a->end == END_UNWELL && node->policy.unwell_grace < grace ? node->policy.unwell_grace
                                                                     : grace;
}

static int ask_end(struct hf_node *node, struct node_agent *a, enum node_asked how,
                   struct hf_intent *ret)
{
    bool kill = how == ASKED_KILL;

    a->asked = how;
    a->asked_at = a->extended_to = node->now;
    hf_node_say(
        a, a->end == END_UNWELL && a->end_text[0] != '\0' ? a->end_text : ENDS[a->end].text,
        kill ? "it is killed" : "it is asked to end, then killed", HF_NODE_NEVER);
    (void)hf_node_tell(a, kill ? HF_PROCESS_KILL : HF_PROCESS_STOP, a->why, ret);
    ret->process.grace = kill ? 0 : grace_of(node, a);
    return NODE_INTENT;
}

static void set_stuck(struct node_agent *a)
{
    a->process = PROCESS_STUCK;
    a->alert_stuck = true;
    if (a->reg == REG_LOST)
        a->reg = REG_NONE;
}

/* At first politely, where there is time for it. The keeper kills after the grace by itself,
 * and says what does not die; should it say nothing, we do. */
static int pursue_end(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    bool force = !ENDS[a->end].polite || a->frozen || hf_node_must_freeze(node, a);
    hf_ms limit = a->asked_at + (a->asked == ASKED_STOP ? grace_of(node, a) : 0);

    limit = (a->extended_to > limit ? a->extended_to : limit) + node->policy.kill_timeout;

    if (a->asked == ASKED_NOTHING)
        return ask_end(node, a, force ? ASKED_KILL : ASKED_STOP, ret);
    if (a->asked == ASKED_STOP && (force || node->now >= limit))
        return ask_end(node, a, ASKED_KILL, ret);
    if (node->now >= limit)
        set_stuck(a);
    else
        hf_node_wake(a, limit);
    return NODE_GO_ON;
}

static int keep_begun(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    enum node_end end;

    if (a->frozen && a->frozen_at < 0)
        a->frozen_at = node->now;
    if (a->leaving && a->leave_by < 0)
        a->leave_by = node->now + node->policy.cleanup;
    end = why_end(node, a);
    if (end != END_NONE && (a->end == END_NONE || !ENDS[end].polite))
        a->end = end;
    if (a->end != END_NONE)
        return pursue_end(node, a, ret);
    if (a->leaving)
        hf_node_wake(a, a->leave_by);
    if (a->unwell)
        hf_node_wake(a, a->unwell_at + node->policy.verdict_wait);
    return hf_node_freeze(node, a, ret);
}

/* What has not begun needs no ceremony. A registration that it got is ended like any other; one
 * that an earlier link got for it is good, and what it begins with is read from etcd. */
static int keep_held(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    enum node_end end;

    if (a->reg != REG_HOLDS)
        return NODE_GO_ON; /* whether it is still needed is decided with its start */
    end = told_to_end(node, a);
    if (end == END_NONE)
        return NODE_GO_ON;
    a->end = end;
    a->kind = HOLDFAST__V1__EXIT__KIND__unknown; /* that of the process before it, until now */
    a->status = a->signal = 0;
    a->core = false;
    a->process = PROCESS_ENDED;
    return hf_node_tell(a, HF_PROCESS_DISCARD, ENDS[end].text, ret);
}

int hf_node_keep(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    if (a->alert_stuck) {
        a->alert_stuck = false;
        return hf_node_alert(node, a, HOLDFAST__V1__EVENT__KIND__ended,
                             "its process survives SIGKILL", ret);
    }
    if (a->process == PROCESS_BEGUN)
        return keep_begun(node, a, ret);
    if (a->process == PROCESS_HELD)
        return keep_held(node, a, ret);
    return NODE_GO_ON;
}

/* News of the keeper. */

static Holdfast__V1__Exit__Kind kind_of(const struct hf_node *node, const struct node_agent *a,
                                        const struct hf_event_process *news)
{
    bool failed = news->status != 0 || news->signal != 0;

    if (a->process == PROCESS_HELD)
        return HOLDFAST__V1__EXIT__KIND__start_failed;
    if (a->leaving)
        return HOLDFAST__V1__EXIT__KIND__left;
    if (a->end != END_NONE)
        return ENDS[a->end].kind;
    /* Who was ended did not fail by itself, however young it was. */
    if (news->kind == HOLDFAST__V1__EXIT__KIND__oom ||
        news->kind == HOLDFAST__V1__EXIT__KIND__terminated ||
        news->kind == HOLDFAST__V1__EXIT__KIND__fenced)
        return news->kind;
    if (failed && !a->ready && node->now - a->begun_at <= node->policy.start_seconds)
        return HOLDFAST__V1__EXIT__KIND__start_failed;
    if (news->kind != HOLDFAST__V1__EXIT__KIND__unknown)
        return news->kind;
    return failed ? HOLDFAST__V1__EXIT__KIND__crashed : HOLDFAST__V1__EXIT__KIND__finished;
}

static void on_ended(struct hf_node *node, struct node_agent *a,
                     const struct hf_event_process *news)
{
    a->kind = kind_of(node, a, news);
    a->status = news->status;
    a->signal = news->signal;
    a->core = news->core;
    hf_node_keep_text(a->exit_text, news->text);
    if (a->process == PROCESS_HELD && a->reg != REG_HOLDS)
        hf_node_keep_text(a->failed, "its process ended before its program began");
    if (a->process == PROCESS_BEGUN && a->end == END_NONE)
        hf_node_expect_order(node, a);
    a->process = PROCESS_ENDED;
    if (a->asking != NULL)
        hf_node_drop_estate(a); /* what becomes of it will not be known */
    hf_node_refuse_asks(a, HF_EFENCED, "the process that asked is gone");
}

static void on_held(struct node_agent *a, const struct hf_event_process *news)
{
    if (a->process != PROCESS_MAKING)
        return;
    a->process = PROCESS_HELD;
    a->pid = news->pid;
    a->start_time = news->start_time;
    a->ping = news->ping;
}

static void on_failed(struct node_agent *a, const struct hf_event_process *news)
{
    if (a->process != PROCESS_MAKING)
        return;
    a->process = PROCESS_NONE;
    hf_node_keep_text(a->failed, news->text != NULL && news->text[0] != '\0'
                                     ? news->text
                                     : "its process could not be made");
}

static int on_suspicion(struct hf_node *node, struct node_agent *a,
                        const struct hf_event_process *news)
{
    ProtobufCMessage *copy;
    int err = hf_json_copy(&news->suspicion->base, &copy);

    if (err != HF_OK)
        return err;
    hf_json_free(a->suspicion);
    a->suspicion = copy;
    a->suspicion_new = true;
    if (news->news != HF_PROCESS_UNWELL || a->unwell)
        return HF_OK;
    a->unwell = true;
    a->unwell_at = node->now;
    hf_node_keep_text(a->end_text, news->suspicion->why);
    return HF_OK;
}

static void on_cleared(struct node_agent *a)
{
    a->cleared = true;
    if (a->end == END_UNWELL || a->suspicion == NULL)
        return; /* it was told to end */
    hf_json_free(a->suspicion);
    a->suspicion = NULL;
    a->suspicion_new = true;
    if (a->unwell && !a->leaving)
        a->end_text[0] = '\0';
    a->unwell = a->suspected = false;
}

int hf_node_on_process(struct hf_node *node, const struct hf_event_process *news)
{
    struct node_agent *a = hf_node_find(node, news->agent);

    if (a != NULL)
        hf_node_on_spare(a, news);
    if (a == NULL || strcmp(a->instance, news->instance_id) != 0 || a->instance[0] == '\0')
        return HF_OK;
    a->dirty = true;
    switch (news->news) {
    case HF_PROCESS_HELD: on_held(a, news); break;
    case HF_PROCESS_FAILED: on_failed(a, news); break;
    case HF_PROCESS_READY: a->ready = true; break;
    case HF_PROCESS_ENDED:
        if (a->process != PROCESS_NONE && a->process != PROCESS_ENDED)
            on_ended(node, a, news);
        break;
    case HF_PROCESS_FROZEN:
        if (!a->frozen)
            a->frozen_at = node->now;
        a->frozen = true;
        break;
    case HF_PROCESS_THAWED: break; /* as was asked */
    case HF_PROCESS_SUSPECT:
    case HF_PROCESS_UNWELL: return on_suspicion(node, a, news);
    case HF_PROCESS_CLEARED: on_cleared(a); break;
    case HF_PROCESS_EXTENDED:
        if (a->asked == ASKED_STOP)
            a->extended_to = node->now + news->more;
        break;
    case HF_PROCESS_UNKILLABLE:
        if (a->process == PROCESS_BEGUN)
            set_stuck(a);
        break;
    case HF_PROCESS_NUDGED: hf_node_take_receipt(a, news->receipt); break;
    }
    return HF_OK;
}

/* Writing it down. */

enum { MOST_SEEN = 16 };

struct evidence {
    Holdfast__V1__Evidence records[2];
    Google__Protobuf__Timestamp at;
    Holdfast__V1__Evidence *list[2 + MOST_SEEN];
};

static void add_evidence(struct evidence *all, size_t *count, const char *source,
                         const char *text)
{
    Holdfast__V1__Evidence *one = &all->records[*count];

    if (text[0] == '\0')
        return;
    holdfast__v1__evidence__init(one);
    one->source = (char *)source;
    one->text = (char *)text;
    one->at = &all->at;
    all->list[(*count)++] = one;
}

/* What was seen of it while it answered nothing. */
static void add_seen(const struct node_agent *a, struct evidence *all, size_t *count)
{
    const Holdfast__V1__Report__Suspicion *suspicion =
        (const Holdfast__V1__Report__Suspicion *)a->suspicion;

    if (a->end != END_UNWELL || suspicion == NULL)
        return;
    for (size_t i = 0; i < suspicion->n_evidence && i < MOST_SEEN; i++)
        all->list[(*count)++] = suspicion->evidence[i];
}

int hf_node_write_end(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    Holdfast__V1__Exit exit = HOLDFAST__V1__EXIT__INIT;
    Holdfast__V1__Incarnation incarnation = HOLDFAST__V1__INCARNATION__INIT;
    Holdfast__V1__Exit__Succession succession;
    bool stuck = a->process == PROCESS_STUCK;
    enum node_end end = a->end == END_NONE && a->leaving ? END_LEFT : a->end;
    struct evidence evidence;

    if (a->reg != REG_HOLDS || (a->process != PROCESS_ENDED && !stuck))
        return NODE_GO_ON;
    if (a->life.lease != node->lease.lease)
        return NODE_REST;
    evidence.at = hf_node_timestamp(node->wall);
    add_evidence(&evidence, &exit.n_evidence, ENDS[end].source,
                 a->end_text[0] != '\0' ? a->end_text : ENDS[end].text);
    add_evidence(&evidence, &exit.n_evidence, "keeper",
                 stuck ? "it survived SIGKILL" : a->exit_text);
    add_seen(a, &evidence, &exit.n_evidence);
    exit.evidence = evidence.list;
    exit.kind =
        stuck ? HOLDFAST__V1__EXIT__KIND__unkillable
              : (a->kind != HOLDFAST__V1__EXIT__KIND__unknown ? a->kind : ENDS[a->end].kind);
    exit.status = a->status;
    exit.signal = a->signal;
    exit.core = a->core;
    incarnation.lease_id = a->life.lease;
    incarnation.create_revision = a->life.create_rev;
    incarnation.generation = a->life.generation;
    exit.incarnation = &incarnation;
    if (hf_node_announce_heir(node, a, &succession, &exit) != HF_OK)
        return HF_ENOMEM;
    hf_node_plan(node, ret);
    hf_row_end(&ret->plan, &a->life, &a->exit.seen, &exit);
    if (hf_node_keep_exit(a, &ret->plan) != HF_OK) {
        hf_plan_done(&ret->plan);
        return HF_ENOMEM;
    }
    hf_node_say(a, "its process is gone", "its end is written down", HF_NODE_NEVER);
    return hf_node_send(node, a, OP_END, a->why, ret);
}

/* A key that names no process does not stand for the one that we do not have. */
static bool stands_for_process(const struct node_agent *a, const Holdfast__V1__Live *live)
{
    return a->instance[0] != '\0' && strcmp(live->instance_id, a->instance) == 0;
}

/* A life without a process is ended; one that something is about to make real is not. */
int hf_node_reap(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    const Holdfast__V1__Live *live = hf_node_live(a);
    struct hf_life life = { .agent = a->name,
                            .lease = a->live.seen.lease,
                            .create_rev = a->live.seen.create_rev };

    if (live == NULL || life.lease != node->lease.lease || life.lease == 0 ||
        stands_for_process(a, live) || !hf_node_is_told(node, a) ||
        hf_node_lacks(node, HF_MUTANT_NO_REAP))
        return NODE_GO_ON;
    hf_node_plan(node, ret);
    hf_row_reap(&ret->plan, &life);
    hf_node_say(a, "its key under our lease stands for no process of ours",
                "that key is deleted", HF_NODE_NEVER);
    return hf_node_send(node, a, OP_REAP, a->why, ret);
}

void hf_node_on_end_written(struct node_agent *a, const struct hf_event_outcome *outcome)
{
    /* Nothing but the life itself is compared, so that is gone, also where nobody will tell of
     * it: a restored etcd need not have come as far as the revision that it is called by. What
     * is not told yet is tried again. */
    if (outcome->outcome == HF_OUTCOME_REFUSED) {
        a->pause_until = a->retry_at;
        hf_node_unsettle(a);
        a->reg = REG_NONE;
    }
    if (outcome->outcome != HF_OUTCOME_DONE)
        return;
    if (a->process == PROCESS_STUCK)
        a->reg = REG_NONE;
    else
        hf_node_inherit(a);
}
