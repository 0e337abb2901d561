#include "core/task.h"

#include <stddef.h>
#include <string.h>

#define LIMIT_MAX INT64_C(2592000000) /* 30 days */

/* What a cell of the table can say: the state that follows, or what stands against it. */
enum cell {
    QUEUE,
    PEND,
    ACK,
    PROG,
    DONE,
    FAIL,
    CANC,
    REVW,

    none,
    dup,
    waits,
    ready,
    idle,
    taken,
    fresh,
    begun,
    done,
    dead,
    off,
    asks,
};

/* clang-format off */
#define TABLE(ROW)                                                                             \
    /*                    none   queued pend.  ackn.  in_pr. compl. failed canc.  review */    \
    ROW(SUBMIT,           PEND,  dup,   dup,   dup,   dup,   dup,   dup,   dup,   dup)         \
    ROW(ENQUEUE,          QUEUE, dup,   dup,   dup,   dup,   dup,   dup,   dup,   dup)         \
    ROW(PROMOTE,          none,  PEND,  ready, taken, taken, done,  dead,  off,   asks)        \
    ROW(DEMOTE,           none,  waits, QUEUE, taken, taken, done,  dead,  off,   asks)        \
    ROW(UNRESERVE,        none,  QUEUE, PEND,  taken, taken, done,  dead,  off,   asks)        \
    ROW(CLAIM,            none,  waits, ACK,   taken, taken, done,  dead,  off,   asks)        \
    ROW(START_BY_COMMAND, none,  waits, ACK,   taken, taken, done,  dead,  off,   asks)        \
    ROW(START,            none,  idle,  idle,  PROG,  begun, done,  dead,  off,   asks)        \
    ROW(PROGRESS,         none,  idle,  idle,  fresh, PROG,  done,  dead,  off,   asks)        \
    ROW(CHECKPOINT,       none,  idle,  idle,  fresh, PROG,  done,  dead,  off,   asks)        \
    ROW(RESTORE,          none,  idle,  idle,  ACK,   PROG,  done,  dead,  off,   asks)        \
    ROW(COMPLETE,         none,  idle,  idle,  fresh, DONE,  done,  dead,  off,   asks)        \
    ROW(FAIL,             none,  idle,  idle,  FAIL,  FAIL,  done,  dead,  off,   asks)        \
    ROW(RELEASE,          none,  idle,  idle,  PEND,  PEND,  done,  dead,  off,   asks)        \
    ROW(ADOPT,            none,  idle,  idle,  ACK,   PROG,  done,  dead,  off,   asks)        \
    ROW(RESET,            none,  idle,  idle,  PEND,  PEND,  done,  dead,  off,   asks)        \
    ROW(RESET_LATER,      none,  idle,  idle,  QUEUE, QUEUE, done,  dead,  off,   asks)        \
    ROW(REVIEW,           none,  REVW,  REVW,  REVW,  REVW,  done,  dead,  off,   asks)        \
    ROW(CANCEL,           none,  CANC,  CANC,  CANC,  CANC,  done,  dead,  off,   CANC)        \
    ROW(RETRY,            none,  PEND,  ready, taken, taken, done,  PEND,  PEND,  PEND)        \
    ROW(RETRY_LOST,       none,  PEND,  PEND,  taken, taken, done,  PEND,  PEND,  PEND)
/* clang-format on */

/* Where a task stands in the table. */
enum column {
    NO_TASK,
    IN_QUEUED,
    IN_PENDING,
    IN_ACKNOWLEDGED,
    IN_PROGRESS,
    IN_COMPLETED,
    IN_FAILED,
    IN_CANCELLED,
    IN_REVIEW,
    COLUMNS,
};
_Static_assert(COLUMNS == 9, "every row needs one cell for each column");

/* A row with a cell too few or too many does not compile. */
static const enum cell CELLS[][COLUMNS] = {
#define ROW(name, no_task, queued, pending, acknowledged, in_progress, completed, failed,      \
            cancelled, needs_review)                                                           \
    [HF_TASK_##name] = { no_task,   queued, pending,   acknowledged, in_progress,              \
                         completed, failed, cancelled, needs_review },
    TABLE(ROW)
#undef ROW
};

/* Two rows of one event do not compile, so as many rows as events are all of them. */
enum {
#define ROW(name, ...) ROW_##name,
    TABLE(ROW)
#undef ROW
        ROWS
};
enum {
#define X(name, text) EVENT_##name,
    HF_TASK_EVENT_MAP(X)
#undef X
        EVENTS
};
_Static_assert((int)ROWS == (int)EVENTS, "every event needs a row");

/* False for a state that only a newer version knows. The switch has no default: a state without
 * a column does not compile. */
static bool find_column(Holdfast__V1__Task__State state, enum column *ret_column)
{
    switch (state) {
    case HOLDFAST__V1__TASK__STATE__queued: *ret_column = IN_QUEUED; return true;
    case HOLDFAST__V1__TASK__STATE__pending: *ret_column = IN_PENDING; return true;
    case HOLDFAST__V1__TASK__STATE__acknowledged: *ret_column = IN_ACKNOWLEDGED; return true;
    case HOLDFAST__V1__TASK__STATE__in_progress: *ret_column = IN_PROGRESS; return true;
    case HOLDFAST__V1__TASK__STATE__completed: *ret_column = IN_COMPLETED; return true;
    case HOLDFAST__V1__TASK__STATE__failed: *ret_column = IN_FAILED; return true;
    case HOLDFAST__V1__TASK__STATE__cancelled: *ret_column = IN_CANCELLED; return true;
    case HOLDFAST__V1__TASK__STATE__needs_review: *ret_column = IN_REVIEW; return true;
    case _HOLDFAST__V1__TASK__STATE_IS_INT_SIZE: break;
    }
    return false;
}

static struct hf_task_step to(Holdfast__V1__Task__State state)
{
    return (struct hf_task_step){ .allowed = true, .state = state };
}

static struct hf_task_step refuse(const char *why)
{
    return (struct hf_task_step){ .why = why };
}

struct hf_task_step hf_task_next(const Holdfast__V1__Task *task, enum hf_task_event event)
{
    enum column column = NO_TASK;

    if (task != NULL && !find_column(task->state, &column))
        return refuse("this version of the program does not know its state");

    if ((unsigned)event >= EVENTS)
        return refuse("this version of the program does not know the event");

    switch (CELLS[event][column]) {
    case QUEUE: return to(HOLDFAST__V1__TASK__STATE__queued);
    case PEND: return to(HOLDFAST__V1__TASK__STATE__pending);
    case ACK: return to(HOLDFAST__V1__TASK__STATE__acknowledged);
    case PROG: return to(HOLDFAST__V1__TASK__STATE__in_progress);
    case DONE: return to(HOLDFAST__V1__TASK__STATE__completed);
    case FAIL: return to(HOLDFAST__V1__TASK__STATE__failed);
    case CANC: return to(HOLDFAST__V1__TASK__STATE__cancelled);
    case REVW: return to(HOLDFAST__V1__TASK__STATE__needs_review);

    case none: return refuse("there is no such task");
    case dup: return refuse("a task with this id exists already");
    case waits: return refuse("it is queued: its backoff or a limit has to end first");
    case ready: return refuse("it is pending already");
    case idle: return refuse("nobody works on it: claim it first");
    case taken: return refuse("somebody works on it");
    case fresh: return refuse("it was claimed but not started: start it first");
    case begun: return refuse("it was started already");
    case done: return refuse("it has completed: to do it again, submit it under another id");
    case dead: return refuse("it has failed: only a person can retry it");
    case off: return refuse("it was cancelled: only a person can retry it");
    case asks: return refuse("it waits for a person to retry or to cancel it");
    }
    return refuse("it has no such state"); /* not reached: the cells are those above */
}

bool hf_task_is_owned(Holdfast__V1__Task__State state)
{
    return state == HOLDFAST__V1__TASK__STATE__acknowledged ||
           state == HOLDFAST__V1__TASK__STATE__in_progress;
}

bool hf_task_is_final(Holdfast__V1__Task__State state)
{
    return state == HOLDFAST__V1__TASK__STATE__completed ||
           state == HOLDFAST__V1__TASK__STATE__failed ||
           state == HOLDFAST__V1__TASK__STATE__cancelled ||
           state == HOLDFAST__V1__TASK__STATE__needs_review;
}

bool hf_task_is_claimable(Holdfast__V1__Task__State state)
{
    return state == HOLDFAST__V1__TASK__STATE__pending;
}

struct hf_task_policy hf_task_policy_default(void)
{
    return (struct hf_task_policy){
        .start_within = 120000,
        .alert_after = 300000,
        .review_after = 86400000,
        .keep_chain = 3600000,
    };
}

uint32_t hf_task_policy_get_limit(const struct hf_task_policy *p, const char *role)
{
    for (size_t i = 0; i < p->limit_count; i++) {
        if (strcmp(p->limits[i].role, role) == 0)
            return p->limits[i].running_max;
    }
    return p->running_max;
}

int hf_task_policy_check(const struct hf_task_policy *p, const char **ret_why)
{
    if (p->start_within <= 0)
        *ret_why = "task.start_within must be positive";
    else if (p->alert_after <= 0)
        *ret_why = "task.alert_after must be positive";
    else if (p->review_after <= p->alert_after)
        *ret_why =
            "task.review_after must come after task.alert_after, or nobody is told first";
    else if (p->keep_chain < 0 || p->keep_chain > LIMIT_MAX)
        *ret_why = "task.keep_chain must be 0..30 days";
    else if (p->start_within > LIMIT_MAX || p->review_after > LIMIT_MAX)
        *ret_why = "task.start_within and task.review_after must not be above 30 days";
    else
        return HF_OK;
    return HF_EINVAL;
}

static hf_ms after(hf_ms moment, hf_ms delay)
{
    return moment > HF_TASK_NEVER - delay ? HF_TASK_NEVER : moment + delay;
}

static struct hf_task_wait judge_lonely(const struct hf_task_policy *p, hf_ms since, hf_ms now)
{
    hf_ms alert_at = after(since, p->alert_after), review_at = after(since, p->review_after);
    struct hf_task_wait wait = { .why = "no agent of its role is there to claim it" };

    if (now >= review_at) {
        wait.due = HF_TASK_DUE_REVIEW;
        wait.next = "a person has to look";
        wait.at = now;
    } else {
        wait.due = now >= alert_at ? HF_TASK_ALERT : HF_TASK_FINE;
        wait.next = wait.due == HF_TASK_ALERT ? "a person has to look" : "somebody is told";
        wait.at = wait.due == HF_TASK_ALERT ? review_at : alert_at;
    }
    return wait;
}

static struct hf_task_wait judge_unbegun(const struct hf_task_policy *p, hf_ms since, hf_ms now)
{
    hf_ms release_at = after(since, p->start_within);

    return (struct hf_task_wait){
        .due = now >= release_at ? HF_TASK_DUE_RELEASE : HF_TASK_FINE,
        .why = "its owner has claimed it but not started",
        .next = "it is released to anyone",
        .at = now >= release_at ? now : release_at,
    };
}

struct hf_task_wait hf_task_judge_wait(const struct hf_task_policy *p,
                                       Holdfast__V1__Task__State state, bool role_has_agent,
                                       hf_ms since, hf_ms now)
{
    if (state == HOLDFAST__V1__TASK__STATE__pending && !role_has_agent)
        return judge_lonely(p, since, now);
    if (state == HOLDFAST__V1__TASK__STATE__acknowledged)
        return judge_unbegun(p, since, now);
    return (struct hf_task_wait){
        .due = HF_TASK_FINE,
        .why = "it waits for nobody, or for a limit of its own",
        .next = "nothing",
        .at = HF_TASK_NEVER,
    };
}

const char *hf_task_event_name(enum hf_task_event event)
{
    switch (event) {
#define X(name, text)                                                                          \
    case HF_TASK_##name: return text;
        HF_TASK_EVENT_MAP(X)
#undef X
    }
    return "?";
}

const char *hf_task_state_name(Holdfast__V1__Task__State state)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(
        &holdfast__v1__task__state__descriptor, (int)state);

    return value != NULL ? value->name : "?";
}
