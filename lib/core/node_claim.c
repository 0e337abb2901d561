#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/node_private.h"

static struct node_role *role_of(const struct hf_node *node, const struct node_agent *a)
{
    const Holdfast__V1__Spec *spec = hf_node_spec(a);

    return spec != NULL ? hf_node_find_role(node, spec->role) : NULL;
}

static bool is_for(const struct hf_node *node, const struct node_entry *entry,
                   const struct node_agent *a)
{
    if (entry->elsewhere)
        return false;
    return hf_node_lacks(node, HF_MUTANT_ANY_RESERVED) || entry->reserved_for[0] == '\0' ||
           strcmp(entry->reserved_for, a->name) == 0;
}

size_t hf_node_count_claimable(const struct hf_node *node, const struct node_agent *a)
{
    struct node_role *role = role_of(node, a);
    struct node_entry *entry;
    size_t cursor = 0, count = 0;

    while (role != NULL && (entry = hf_index_next(&role->entries, &cursor)) != NULL)
        count += is_for(node, entry, a) ? 1 : 0;
    return count;
}

/* What is reserved for it comes first, then what is more urgent, then what is older. */
static int compare(const struct node_entry *x, const struct node_entry *y)
{
    bool x_mine = x->reserved_for[0] != '\0', y_mine = y->reserved_for[0] != '\0';

    if (x_mine != y_mine)
        return x_mine ? -1 : 1;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return (x->create_rev > y->create_rev) - (x->create_rev < y->create_rev);
}

const char *hf_node_get_waiting(const struct hf_node *node, const char *agent)
{
    const struct node_agent *a = hf_node_find(node, agent);
    struct node_role *role = a != NULL ? role_of(node, a) : NULL;
    const struct node_entry *entry, *best = NULL;
    size_t cursor = 0;

    while (role != NULL && (entry = hf_index_next(&role->entries, &cursor)) != NULL) {
        if (is_for(node, entry, a) && (best == NULL || compare(entry, best) < 0))
            best = entry;
    }
    return best != NULL ? best->name : NULL;
}

static bool is_as_good(const struct node_entry *x, const struct node_entry *y)
{
    return x->priority == y->priority &&
           (x->reserved_for[0] != '\0') == (y->reserved_for[0] != '\0');
}

/* The best few, best first. */
static size_t find_best(struct hf_node *node, struct node_agent *a,
                        struct node_entry *best[NODE_SPREAD])
{
    struct node_role *role = role_of(node, a);
    struct node_entry *entry;
    size_t cursor = 0, count = 0;

    while (role != NULL && (entry = hf_index_next(&role->entries, &cursor)) != NULL) {
        size_t at;

        if (!is_for(node, entry, a))
            continue;
        if (node->now < entry->skip_until) {
            hf_node_wake(a, entry->skip_until);
            continue;
        }
        for (at = count; at > 0 && compare(entry, best[at - 1]) < 0; at--) {
            if (at < node->policy.claim_spread)
                best[at] = best[at - 1];
        }
        if (at < node->policy.claim_spread)
            best[at] = entry;
        if (count < node->policy.claim_spread)
            count++;
    }
    return count;
}

/* One of those that are as good as the best, at random: a herd does not try the same one. */
static struct node_entry *choose(struct hf_node *node, struct node_agent *a)
{
    struct node_entry *best[NODE_SPREAD];
    size_t count = find_best(node, a, best), equal = 0;

    while (equal < count && is_as_good(best[equal], best[0]))
        equal++;
    return equal > 0 ? best[((uint64_t)node->random * equal) >> 32] : NULL;
}

static size_t most_tasks(const struct hf_node *node, const struct node_agent *a)
{
    const Holdfast__V1__Spec *spec = hf_node_spec(a);

    return spec != NULL && spec->max_tasks > 0 ? (size_t)spec->max_tasks
                                               : node->policy.max_tasks;
}

static int look_at(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                   const char *task, struct hf_intent *ret)
{
    char *name = hf_strdup(task);

    if (name == NULL)
        return HF_ENOMEM;
    free(ask->task);
    ask->task = name;
    return hf_node_ask_read(node, a, ask, name, ret);
}

static int try_one(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                   struct hf_intent *ret)
{
    struct node_entry *entry;

    if (!hf_node_is_told(node, a))
        return NODE_GO_ON;
    entry = choose(node, a);
    return entry != NULL ? look_at(node, a, ask, entry->name, ret) : NODE_GO_ON;
}

static void pass_over(struct hf_node *node, struct node_agent *a, const char *task)
{
    struct node_role *role = role_of(node, a);
    struct node_entry *entry = role != NULL ? hf_index_get(&role->entries, task) : NULL;

    if (entry != NULL)
        entry->skip_until = node->now + node->policy.retry;
}

static bool can_claim(const struct hf_node *node, const struct node_agent *a,
                      const struct node_ask *ask)
{
    const Holdfast__V1__Task *task = hf_node_task(&ask->cell);

    return task != NULL && hf_task_next(task, HF_TASK_CLAIM).allowed &&
           hf_node_has_root(node, task->root) &&
           (hf_node_lacks(node, HF_MUTANT_ANY_RESERVED) || task->reserved_for[0] == '\0' ||
            strcmp(task->reserved_for, a->name) == 0);
}

static int claim_it(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                    struct hf_intent *ret)
{
    struct hf_seen_task task = hf_node_seen_task(&ask->cell);
    struct node_owned *owned;

    if (!can_claim(node, a, ask)) {
        pass_over(node, a, ask->task);
        ask->stage = ASK_NEW;
        return try_one(node, a, ask, ret);
    }
    /* From here on it may be ours, whatever we hear of it. */
    if (hf_node_add_owned(a, ask->task) != HF_OK)
        return HF_ENOMEM;
    owned = hf_node_find_owned(a, ask->task);
    owned->claimed = owned->claim_rev != 0;
    owned->claim_rev = ask->cell.seen.mod_rev;
    /* What an earlier attempt wrote, and lost again since, is not what this one wrote. */
    hf_node_make_id(node, ask->op_id);
    hf_plan_init(&ret->plan, node->ns, HF_WRITER_OWNER, ask->op_id);
    hf_row_claim(&ret->plan, &a->life, &task);
    return hf_node_ask_send(node, a, ask, ask->task, ret);
}

/* The tasks that it has are looked at first: one that it claimed and did not start is offered
 * again, and so is, once, one that it may never have heard of; one that is not its own any more
 * makes room. One that still is as a claim of ours found it is claimed again, for that claim
 * may still arrive: whichever is first, it is ours.
 */
static int look_at_owned(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                         struct hf_intent *ret)
{
    if (ask->stage == ASK_READ) {
        const Holdfast__V1__Task *task = hf_node_task(&ask->cell);
        struct node_owned *owned = hf_node_find_owned(a, ask->task);
        bool unheard = owned != NULL && owned->unheard;
        bool is_own = hf_node_owns(&a->life, &ask->cell) && hf_task_is_owned(task->state);

        if (is_own && (task->state == HOLDFAST__V1__TASK__STATE__acknowledged || unheard ||
                       a->owned_count >= most_tasks(node, a))) {
            if (unheard)
                owned->unheard = false;
            hf_node_answer_read(ask);
            hf_node_ask_done(a, ask);
            return NODE_GO_ON;
        }
        if (!is_own && owned != NULL && owned->claim_rev != 0 &&
            ask->cell.seen.mod_rev == owned->claim_rev)
            return claim_it(node, a, ask, ret);
        if (is_own)
            ask->cursor++;
        else
            hf_node_part_with(a, ask->task);
        ask->stage = ASK_NEW;
    }
    if (ask->cursor < a->owned_count)
        return look_at(node, a, ask, a->owned[ask->cursor].name, ret);
    ask->looked = true;
    return NODE_GO_ON;
}

static struct node_parted *find_parted(struct node_agent *a, const char *task)
{
    for (size_t i = 0; i < NODE_PARTED && a->parted[i].name != NULL; i++) {
        if (strcmp(a->parted[i].name, task) == 0)
            return &a->parted[i];
    }
    return NULL;
}

/* It was looked at. A read may be stale, so what it shows is believed when it is shown again a
 * little later. */
static int judge_parted(struct hf_node *node, struct node_agent *a, const struct node_ask *ask)
{
    struct node_parted *parted = find_parted(a, ask->task);
    bool shown =
        hf_node_owns(&a->life, &ask->cell) && hf_task_is_owned(hf_node_task(&ask->cell)->state);

    if (parted == NULL)
        return HF_OK;
    if (shown && !parted->shown) {
        a->look_back_at = node->now + node->policy.retry;
    } else if (shown) {
        if (hf_node_add_owned(a, ask->task) != HF_OK)
            return HF_ENOMEM;
        hf_node_find_owned(a, ask->task)->unheard = true;
    }
    parted->shown = shown;
    return HF_OK;
}

static bool begin_to_look_back(struct hf_node *node, struct node_agent *a, struct node_ask *ask)
{
    if (a->parted[0].name == NULL)
        return false;
    if (a->look_back_at == 0)
        a->look_back_at = node->now + node->policy.look_back;
    if (ask->stage != ASK_NEW || node->now < a->look_back_at)
        return false;
    a->look_back_at = node->now + node->policy.look_back;
    ask->looks_back = true;
    ask->looked = false;
    ask->cursor = 0;
    return true;
}

/* Now and then those that it has parted with are looked at, too. A restored etcd may show one
 * as its own that was over, or that a person had taken from it; and where the past that we saw
 * seems to be etcd's past still, nobody else would ever tell, and the task would stand for as
 * long as its owner lives. What etcd says is the truth, so it is offered again. */
static int look_back(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                     struct hf_intent *ret)
{
    if (!ask->looks_back && !begin_to_look_back(node, a, ask))
        return NODE_GO_ON;
    if (ask->stage == ASK_READ) {
        if (judge_parted(node, a, ask) != HF_OK)
            return HF_ENOMEM;
        ask->stage = ASK_NEW;
        ask->cursor++;
    }
    while (ask->cursor < NODE_PARTED && a->parted[ask->cursor].name != NULL &&
           hf_node_find_owned(a, a->parted[ask->cursor].name) != NULL)
        ask->cursor++;
    if (ask->cursor < NODE_PARTED && a->parted[ask->cursor].name != NULL)
        return look_at(node, a, ask, a->parted[ask->cursor].name, ret);
    ask->looks_back = false;
    ask->cursor = 0;
    return NODE_GO_ON;
}

/* Refused: somebody was faster, and it is not ours, unless that was another claim of ours.
 * Unknown: it may be. Then what it owns is looked at again. */
void hf_node_ask_again(struct node_agent *a, struct node_ask *ask, bool unknown)
{
    const struct node_owned *owned;

    if (ask->kind != HF_ASK_CLAIM)
        return;
    owned = hf_node_find_owned(a, ask->task);
    if (unknown || (owned != NULL && owned->claimed)) {
        ask->looked = false;
        ask->cursor = 0;
    } else {
        hf_node_drop_owned(a, ask->task);
    }
}

static bool has_other_claim(const struct node_agent *a, const struct node_ask *ask)
{
    for (const struct node_ask *other = a->asks; other != ask; other = other->next) {
        if (other->kind == HF_ASK_CLAIM && other->stage != ASK_ANSWERED)
            return true;
    }
    return false;
}

int hf_node_claim(struct hf_node *node, struct node_agent *a, struct node_ask *ask,
                  struct hf_intent *ret)
{
    int rc = NODE_GO_ON;

    /* One after the other, or both would find the same room. */
    if (!has_other_claim(a, ask)) {
        rc = look_back(node, a, ask, ret);
        if (rc == NODE_GO_ON && !ask->looked)
            rc = look_at_owned(node, a, ask, ret);
        else if (rc == NODE_GO_ON && ask->stage == ASK_READ)
            rc = claim_it(node, a, ask, ret);
        if (rc == NODE_GO_ON && ask->stage != ASK_ANSWERED)
            rc = try_one(node, a, ask, ret);
    }
    if (rc != NODE_GO_ON || ask->stage == ASK_ANSWERED)
        return rc;
    if (node->now >= ask->until) {
        hf_node_answer(ask, HF_ENOENT, "there is no task for it");
        return NODE_GO_ON;
    }
    hf_node_wake(a, ask->until);
    if (a->parted[0].name != NULL)
        hf_node_wake(a, a->look_back_at);
    return NODE_GO_ON;
}
