/* How many tasks of a role are pending, acknowledged or in progress at once.
 *
 * Who submits a task need not know the limit, and an agent that claims one does not ask for it:
 * so more may run than may be. Then those that nobody has yet are demoted to queued, the least
 * urgent first and of these the newest; and while fewer run, those that are queued and whose
 * backoff is over are promoted, the most urgent first and of these the oldest. What somebody
 * has goes on. A task that was reset after a death is not demoted: its recovery is under way,
 * and its successor may be on its way, too.
 *
 * At most one such write of a role is under way, and its role is not looked at again before
 * that was told: nobody promotes twice into the same room. */
#include <string.h>

#include "core/engine_private.h"

#define ROOM "fewer tasks of its role run than may"
#define TURN "it may be taken when fewer tasks of its role run"

/* Rankings. */

static const struct hf_task *task_of(const struct hf_heap_node *node)
{
    const struct hf_task_state *state =
        (const struct hf_task_state *)((const char *)node -
                                       offsetof(struct hf_task_state, rank));

    return state->item.object;
}

static bool is_better(const struct hf_heap_node *a, const struct hf_heap_node *b)
{
    const struct hf_task *x = task_of(a), *y = task_of(b);
    int32_t urgent = hf_task_record(x)->priority, other = hf_task_record(y)->priority;

    if (urgent != other)
        return urgent > other;
    if (x->task.seen.create_rev != y->task.seen.create_rev)
        return x->task.seen.create_rev < y->task.seen.create_rev;
    return strcmp(x->name, y->name) < 0;
}

static bool is_worse(const struct hf_heap_node *a, const struct hf_heap_node *b)
{
    return is_better(b, a);
}

static void enter(struct hf_ranking *ranking, struct hf_task *task)
{
    struct hf_task_state *state = hf_task_state(task);

    ranking->first = ranking->worst_first
                         ? hf_heap_meld(ranking->first, &state->rank, is_worse)
                         : hf_heap_meld(ranking->first, &state->rank, is_better);
    state->ranking = ranking;
}

void hf_limit_forget_task(struct hf_task *task)
{
    struct hf_task_state *state = hf_task_state(task);
    struct hf_ranking *ranking = state->ranking;

    if (ranking == NULL)
        return;
    ranking->first = ranking->worst_first
                         ? hf_heap_remove(ranking->first, &state->rank, is_worse)
                         : hf_heap_remove(ranking->first, &state->rank, is_better);
    state->ranking = NULL;
}

/* The first that something can be done about; NULL: none, or not now. */
static struct hf_task *first_of(struct hf_engine *e, struct hf_ranking *ranking)
{
    while (ranking->first != NULL) {
        struct hf_task *task = (struct hf_task *)task_of(ranking->first);
        struct hf_item *item = &hf_task_state(task)->item;

        if (item->flight != 0)
            return NULL;
        if (!item->broken && hf_bad_of_task(e, task->name) == NULL)
            return task;
        hf_limit_forget_task(task); /* until it has changed */
    }
    return NULL;
}

/* What is known of a role and its tasks. */

bool hf_limit_note_role(const struct hf_engine *e, struct hf_role *role)
{
    struct hf_role_state *state = hf_role_state(role);
    bool changed = state->running != role->running_count;

    if (!state->known) {
        state->known = true;
        state->running_max = hf_task_policy_get_limit(&e->policy.task, role->name);
        state->offered.worst_first = true;
    }
    state->running = role->running_count;
    return changed && state->running_max != 0;
}

/* A role goes with the last that names it: that is the one which is leaving. */
void hf_limit_forget_role(struct hf_role *role)
{
    struct hf_role_state *state = hf_role_state(role);

    while (state->offered.first != NULL)
        hf_limit_forget_task((struct hf_task *)task_of(state->offered.first));
    while (state->waiting.first != NULL)
        hf_limit_forget_task((struct hf_task *)task_of(state->waiting.first));
}

static bool can_be_demoted(const Holdfast__V1__Task *record)
{
    return record != NULL && hf_task_is_claimable(record->state) &&
           record->reserved_for[0] == '\0' && record->attempt == 0;
}

void hf_limit_note_task(struct hf_task *task)
{
    struct hf_role_state *role = task->role != NULL ? hf_role_state(task->role) : NULL;

    hf_limit_forget_task(task);
    if (role != NULL && role->running_max != 0 && can_be_demoted(hf_task_record(task)))
        enter(&role->offered, task);
}

void hf_limit_look(struct hf_engine *e, const struct hf_task *task)
{
    if (hf_task_state(task)->ranking != NULL)
        hf_agenda_add(&e->agenda, &hf_role_state(task->role)->item.agenda);
}

bool hf_limit_wait(struct hf_engine *e, struct hf_task *task)
{
    struct hf_role_state *role = task->role != NULL ? hf_role_state(task->role) : NULL;

    if (role == NULL || role->running_max == 0)
        return false;
    hf_limit_forget_task(task);
    enter(&role->waiting, task);
    hf_limit_look(e, task);
    return true;
}

static const char *say(struct hf_engine *e, const struct hf_role *role, size_t running)
{
    return hf_draft_why(e, "%zu of %u tasks of role %s are running", running,
                        (unsigned)hf_role_state(role)->running_max, role->name);
}

/* Decisions. */

static int demote(struct hf_engine *e, struct hf_role *role, struct hf_task *task,
                  struct hf_intent *ret)
{
    struct hf_seen_task seen = { .seen = task->task.seen, .task = hf_task_record(task) };
    const char *why = say(e, role, role->running_count - 1);

    hf_draft_begin(e, ret);
    hf_row_demote(&ret->plan, &e->term, &seen, why, TURN);
    return hf_draft_end(e, ret, &hf_task_state(task)->item, &hf_role_state(role)->item, why);
}

static int decide(struct hf_engine *e, struct hf_role *role, struct hf_intent *ret)
{
    struct hf_role_state *state = hf_role_state(role);
    size_t limit = state->running_max;
    struct hf_task *task = NULL;

    if (role->running_count > limit && !hf_mutated(e, HF_MUTANT_NO_DEMOTE)) {
        task = first_of(e, &state->offered);
        return task != NULL ? demote(e, role, task, ret) : 0;
    }
    if (role->running_count < limit || hf_mutated(e, HF_MUTANT_NO_RUNNING_MAX))
        task = first_of(e, &state->waiting);
    return task != NULL ? hf_engine_promote(e, task, &state->item, ROOM, ret) : 0;
}

int hf_engine_decide_limit(struct hf_engine *e, struct hf_role *role, struct hf_intent *ret)
{
    struct hf_role_state *state = hf_role_state(role);
    int rc = state->running_max != 0 ? decide(e, role, ret) : 0;

    /* Nothing can be made of that task, and somebody is told: the next one has its turn. */
    if (rc == 1 && state->item.flight == 0)
        hf_agenda_add(&e->agenda, &state->item.agenda);
    return rc;
}
