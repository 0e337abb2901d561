/* rows_private.h - what the rows of the table are written with: its keys and its guards. Only
 * for rows.c, which makes and changes, and rows_remove.c, which removes. */
#ifndef HF_CORE_ROWS_PRIVATE_H
#define HF_CORE_ROWS_PRIVATE_H

#include "core/rows.h"

/* Keys, as short as the table writes them. */
#define LIVE(a)          ((struct hf_key){ HF_KEY_AGENT_LIVE, .name = (a) })
#define SPEC(a)          ((struct hf_key){ HF_KEY_AGENT_SPEC, .name = (a) })
#define REPORT(a)        ((struct hf_key){ HF_KEY_AGENT_REPORT, .name = (a) })
#define EXIT(a)          ((struct hf_key){ HF_KEY_AGENT_EXIT, .name = (a) })
#define WANTED(a)        ((struct hf_key){ HF_KEY_WANTED, .name = (a) })
#define HEALTH(a)        ((struct hf_key){ HF_KEY_HEALTH, .name = (a) })
#define TASK(t)          ((struct hf_key){ HF_KEY_TASK, .name = (t) })
#define RECOVERY(t)      ((struct hf_key){ HF_KEY_RECOVERY, .name = (t) })
#define PENDING(r, t)    ((struct hf_key){ HF_KEY_PENDING, .name = (r), .sub = (t) })
#define COMMAND(h, a)    ((struct hf_key){ HF_KEY_COMMAND, .name = (h), .sub = (a) })
#define CHECKPOINT(t, s) ((struct hf_key){ HF_KEY_CHECKPOINT, .name = (t), .seq = (s) })
#define BODY(t, n)       ((struct hf_key){ HF_KEY_CHECKPOINT_BODY, .name = (t), .seq = (n) })
#define HOST_LIVE(h)     ((struct hf_key){ HF_KEY_HOST_LIVE, .name = (h) })
#define HOST(h)          ((struct hf_key){ HF_KEY_HOST_RECORD, .name = (h) })
#define EVENT(s)         ((struct hf_key){ HF_KEY_EVENT, .seq = (s) })
#define PAYLOAD(t)       ((struct hf_key){ HF_KEY_TASK_PAYLOAD, .name = (t) })
#define RESULT(t)        ((struct hf_key){ HF_KEY_TASK_RESULT, .name = (t) })
#define LEADER           ((struct hf_key){ .kind = HF_KEY_LEADER })

static const struct hf_bytes NOTHING = { 0 };

/* Guards, as the table abbreviates them. */

static inline void guard_mod(struct hf_plan *plan, struct hf_key key,
                             const struct hf_seen *seen)
{
    hf_plan_guard_same(plan, key, seen->mod_rev, seen->text);
}

static inline void guard_absent(struct hf_plan *plan, struct hf_key key)
{
    hf_plan_guard(plan, key, HF_GUARD_ABSENT, 0);
}

static inline void guard_key(struct hf_plan *plan, struct hf_key key, int64_t create_rev,
                             int64_t lease)
{
    hf_plan_guard(plan, key, HF_GUARD_CREATE, create_rev);
    hf_plan_guard(plan, key, HF_GUARD_LEASE, lease);
}

static inline void guard_life(struct hf_plan *plan, const struct hf_life *life)
{
    guard_key(plan, LIVE(life->agent), life->create_rev, life->lease);
}

static inline void guard_term(struct hf_plan *plan, const struct hf_term *term)
{
    guard_key(plan, LEADER, term->create_rev, term->lease);
}

/* M(key), and what it shall be. */
static inline void put_over(struct hf_plan *plan, struct hf_key key, const struct hf_seen *seen,
                            const ProtobufCMessage *next)
{
    guard_mod(plan, key, seen);
    hf_plan_put(plan, key, next, seen->text, 0);
}

static inline void put_task(struct hf_plan *plan, const struct hf_seen_task *task,
                            const Holdfast__V1__Task *next)
{
    put_over(plan, TASK(task->task->id), &task->seen, &next->base);
}

#endif
