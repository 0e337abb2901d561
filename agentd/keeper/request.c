#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/keeper/keeper.h"

static uint32_t say(const char **ret_why, uint32_t code, const char *why)
{
    *ret_why = why;
    return code;
}

static uint32_t on_ready(struct keeper *k, const void *data, const char **ret_why)
{
    (void)data;
    (void)ret_why;
    k->link_ready = k->link_was_ready = true;
    k->link_lost = 0;
    k->link_failed = 0;
    k->link_unrecorded = true; /* only now: whoever waits for a link wants one that lives */
    return AGENTD_CODE_OK;
}

static uint32_t on_lease(struct keeper *k, const void *data, const char **ret_why)
{
    const struct agentd_lease *m = data;

    (void)ret_why;
    if (m->lease.lease_id != k->lease.lease_id)
        k->lease_unrecorded = true;
    k->lease = m->lease;
    keeper_oom_sample(k); /* renewals come steadily, and wake us anyway */
    k->lost_lease_id = 0; /* whoever has a new one has dealt with the old one */
    return AGENTD_CODE_OK;
}

/* Replaces *blob; the old one stays when there is no memory. */
static bool replace(char **blob, uint32_t *len, const void *bytes, uint32_t new_len)
{
    char *copy = new_len > 0 ? malloc(new_len) : NULL;

    if (new_len > 0 && copy == NULL)
        return false;
    if (new_len > 0)
        memcpy(copy, bytes, new_len);
    free(*blob);
    *blob = copy;
    *len = new_len;
    return true;
}

static uint32_t on_memo(struct keeper *k, const void *data, const char **ret_why)
{
    const struct agentd_memo *m = data;

    if (!replace(&k->memo, &k->memo_len, m + 1, m->len))
        return say(ret_why, AGENTD_CODE_SYSTEM, "out of memory");
    return AGENTD_CODE_OK;
}

/* What was discarded before it was released is never executed, however long its end takes. */
static bool may_run(const struct keeper_slot *s)
{
    bool is_discarded = !s->released && s->goal == GOAL_GONE;

    return s->a.state != AGENTD_STATE_ENDED && s->a.gone == 0 && !is_discarded;
}

static uint32_t check_room(struct keeper *k, const struct agentd_who *who, const char **ret_why)
{
    size_t ended = 0;

    if (k->slot_count >= AGENTD_AGENTS_MAX)
        return say(ret_why, AGENTD_CODE_LIMIT, "too many processes are held");
    for (size_t i = 0; i < k->slot_count; i++) {
        const struct keeper_slot *s = k->slots[i];

        if (strcmp(s->a.who.instance, who->instance) == 0)
            return say(ret_why, AGENTD_CODE_EXISTS, "this instance id was used before");
        if (s->forgotten || strcmp(s->a.who.agent, who->agent) != 0)
            continue;
        if (may_run(s))
            return say(ret_why, AGENTD_CODE_EXISTS, "the agent has a process");
        ended++;
    }
    if (ended >= AGENTD_ENDED_MAX)
        return say(ret_why, AGENTD_CODE_LIMIT, "too many ended processes are not forgotten");
    return AGENTD_CODE_OK;
}

static uint32_t on_spawn(struct keeper *k, const void *data, const char **ret_why)
{
    const struct agentd_spawn *m = data;
    uint32_t code = check_room(k, &m->who, ret_why);

    if (code != AGENTD_CODE_OK)
        return code;
    if (k->stopping)
        return say(ret_why, AGENTD_CODE_STATE, "agentd is about to end");
    if (m->uid != AGENTD_KEEP_ID && (k->flags & AGENTD_HAS_ROOT) == 0)
        return say(ret_why, AGENTD_CODE_SYSTEM, "only root can start it as another user");
    return keeper_spawn(k, m, ret_why) < 0 ? AGENTD_CODE_SYSTEM : AGENTD_CODE_OK;
}

static uint32_t on_release(struct keeper *k, const void *data, const char **ret_why)
{
    const struct agentd_release *m = data;
    struct keeper_slot *s = keeper_slot_find(k, &m->who);

    if (s == NULL)
        return say(ret_why, AGENTD_CODE_UNKNOWN, "no such process");
    if (s->a.state != AGENTD_STATE_HELD)
        return say(ret_why, AGENTD_CODE_STATE, "it is not held");
    if (keeper_fence_has_passed(k))
        return say(ret_why, AGENTD_CODE_FENCED, "the fence deadline has passed");
    if (keeper_release(k, s, m) < 0)
        return say(ret_why, AGENTD_CODE_STATE, "it has died");
    s->a.order = m->head.id;
    return AGENTD_CODE_OK;
}

static uint32_t freeze(struct keeper *k, struct keeper_slot *s, const char **ret_why)
{
    if (!s->released || s->goal == GOAL_GONE)
        return say(ret_why, AGENTD_CODE_STATE, "it does not run");
    if (s->goal != GOAL_STILL)
        keeper_slot_freeze(k, s);
    return AGENTD_CODE_OK;
}

static uint32_t thaw(struct keeper *k, struct keeper_slot *s, const char **ret_why)
{
    if (s->goal != GOAL_STILL)
        return say(ret_why, AGENTD_CODE_STATE, "it is not frozen");
    if (s->a.fence != AGENTD_FENCE_HOLD && keeper_fence_has_passed(k))
        return say(ret_why, AGENTD_CODE_FENCED, "the fence deadline has passed");
    keeper_slot_thaw(k, s);
    return AGENTD_CODE_OK;
}

static uint32_t discard(struct keeper *k, struct keeper_slot *s, const char **ret_why)
{
    if (s->released)
        return say(ret_why, AGENTD_CODE_STATE, "it was released");
    keeper_slot_kill(k, s, AGENTD_CAUSE_DISCARDED);
    return AGENTD_CODE_OK;
}

static uint32_t on_order(struct keeper *k, const void *data, const char **ret_why)
{
    const struct agentd_order *m = data;
    struct keeper_slot *s = keeper_slot_find(k, &m->who);
    uint32_t code = AGENTD_CODE_OK;

    if (s == NULL)
        return say(ret_why, AGENTD_CODE_UNKNOWN, "no such process");
    if (s->a.state == AGENTD_STATE_ENDED)
        return say(ret_why, AGENTD_CODE_STATE, "it has ended");
    switch (m->head.type) {
    case AGENTD_FREEZE: code = freeze(k, s, ret_why); break;
    case AGENTD_THAW: code = thaw(k, s, ret_why); break;
    case AGENTD_DISCARD: code = discard(k, s, ret_why); break;
    case AGENTD_END: keeper_slot_end(k, s, (int)m->signal, m->grace_ms * KEEPER_MS); break;
    case AGENTD_EXTEND:
        if (!keeper_slot_extend(s, m->grace_ms * KEEPER_MS))
            return say(ret_why, AGENTD_CODE_STATE, "it was not asked to end");
        return AGENTD_CODE_OK; /* no order of its own */
    default: keeper_slot_kill(k, s, AGENTD_CAUSE_ASKED); break;
    }
    if (code == AGENTD_CODE_OK) {
        s->a.order = m->head.id;
        /* It stands as it was ordered to already. */
        if (m->head.type == AGENTD_FREEZE && s->a.state == AGENTD_STATE_FROZEN)
            s->a.done_order = s->a.order;
        s->dirty = true;
    }
    return code;
}

static uint32_t on_remember(struct keeper *k, const void *data, const char **ret_why)
{
    const struct agentd_remember *m = data;
    struct keeper_slot *s = keeper_slot_find(k, &m->who);

    if (s == NULL)
        return say(ret_why, AGENTD_CODE_UNKNOWN, "no such process");
    if (!replace(&s->blob, &s->a.blob_len, m + 1, m->blob_len))
        return say(ret_why, AGENTD_CODE_SYSTEM, "out of memory");
    memcpy(s->a.op_id, m->op_id, sizeof s->a.op_id);
    s->a.incarnation = m->incarnation;
    s->unrecorded = true;
    return AGENTD_CODE_OK;
}

static uint32_t on_tell(struct keeper *k, const void *data, const char **ret_why)
{
    const struct agentd_tell *m = data;
    struct keeper_slot *s = keeper_slot_find(k, &m->who);
    int rc;

    if (s == NULL)
        return say(ret_why, AGENTD_CODE_UNKNOWN, "no such process");
    if (strcmp(s->told, m->id) == 0)
        return say(ret_why, AGENTD_CODE_EXISTS, "it was told that");
    if (s->a.begun_ns == 0 || s->main_gone || s->tell_fd < 0)
        return say(ret_why, AGENTD_CODE_STATE, "it does not run, or has no stdin of ours");
    rc = keeper_tell(s, m);
    if (rc == -EAGAIN)
        return say(ret_why, AGENTD_CODE_FULL, "it has yet to read what it was told before");
    return rc < 0 ? say(ret_why, AGENTD_CODE_STATE, "it has closed its stdin") : AGENTD_CODE_OK;
}

static uint32_t on_forget(struct keeper *k, const void *data, const char **ret_why)
{
    const struct agentd_order *m = data;
    struct keeper_slot *s = keeper_slot_find(k, &m->who);

    if (s == NULL)
        return say(ret_why, AGENTD_CODE_UNKNOWN, "no such process");
    if (s->a.state != AGENTD_STATE_ENDED)
        return say(ret_why, AGENTD_CODE_STATE, "it did not end yet");
    s->forgotten = true;
    return AGENTD_CODE_OK;
}

void keeper_shutdown(struct keeper *k, int code, int64_t grace_ns)
{
    k->stopping = true;
    k->exit_code = code;
    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i]->a.state != AGENTD_STATE_ENDED)
            keeper_slot_end(k, k->slots[i], 15, grace_ns);
    }
}

static uint32_t on_shutdown(struct keeper *k, const void *data, const char **ret_why)
{
    const struct agentd_shutdown *m = data;

    (void)ret_why;
    keeper_shutdown(k, (int)m->code, m->grace_ms * KEEPER_MS);
    return AGENTD_CODE_OK;
}

static uint32_t on_hold(struct keeper *k, const void *data, const char **ret_why)
{
    uint32_t code =
        keeper_hold(k, ((const struct agentd_held *)data)->agent, k->in_fd, ret_why);

    if (code == AGENTD_CODE_OK)
        k->in_fd = -1;
    return code;
}

static uint32_t on_let(struct keeper *k, const void *data, const char **ret_why)
{
    (void)ret_why;
    keeper_let(k, ((const struct agentd_held *)data)->agent);
    return AGENTD_CODE_OK;
}

uint32_t keeper_request(struct keeper *k, const void *data, const char **ret_why)
{
    const struct agentd_head *head = data;

    if (!k->link_ready && head->type != AGENTD_READY)
        return say(ret_why, AGENTD_CODE_STATE, "READY comes first");
    switch (head->type) {
    case AGENTD_READY: return on_ready(k, data, ret_why);
    case AGENTD_LEASE: return on_lease(k, data, ret_why);
    case AGENTD_MEMO: return on_memo(k, data, ret_why);
    case AGENTD_SPAWN: return on_spawn(k, data, ret_why);
    case AGENTD_RELEASE: return on_release(k, data, ret_why);
    case AGENTD_REMEMBER: return on_remember(k, data, ret_why);
    case AGENTD_FORGET: return on_forget(k, data, ret_why);
    case AGENTD_TELL: return on_tell(k, data, ret_why);
    case AGENTD_SHUTDOWN: return on_shutdown(k, data, ret_why);
    case AGENTD_HOLD: return on_hold(k, data, ret_why);
    case AGENTD_ALIVE: k->link_answer_by = KEEPER_NEVER; return AGENTD_CODE_OK;
    case AGENTD_LET: return on_let(k, data, ret_why);
    default: return on_order(k, data, ret_why);
    }
}
