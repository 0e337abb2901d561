/* holdfast.h - what an agent says to the agentd beside it, and hears from it.
 *
 *     struct hf_client *agentd;
 *     struct hf_client_task task;
 *     struct hf_error err = { "" };
 *     int rc = hf_client_new(NULL, &agentd, &err);
 *
 *     while (rc >= 0 && (rc = hf_client_next_task(agentd, &task, &err)) >= 0) {
 *         rc = work(agentd, &task, &err);
 *         if (rc == HF_OK)
 *             rc = hf_client_complete(agentd, task.id, "done", &err);
 *         hf_client_task_done(&task);
 *     }
 *     fprintf(stderr, "%s: %s\n", hf_err_name(rc), err.text);
 *
 * docs/agents.md has whole programs, and says what is expected of an agent.
 *
 * Calls block until agentd has answered, which for what becomes of a task and for checkpoints
 * means: until etcd has it. One that agentd cannot answer now, because it is being replaced or
 * etcd is away, is repeated for as long as the configuration is patient. Whoever has a main
 * loop watches hf_client_get_fd, takes events without waiting, and claims with a wait of 0 when
 * told of a task. Nothing here starts a thread, handles a signal or writes to a log; libc is
 * all that it needs. Times are milliseconds (hf_ms, an int64_t).
 *
 * Threads: any number may call at once, but for hf_client_next_event, which is for one at a
 * time, and hf_client_free, which comes last. Every call has a connection of its own.
 *
 * Children: what was forked and runs no other program may ask, too, and interrupts itself
 * alone. Events are for one of both; a client that each of them made is better.
 *
 * Errors: HF_OK or a documented count, else one of base/err.h, with a sentence in `err`, which
 * may be NULL:
 *   HF_EFENCED    this process is not that agent any more: stop, touch nothing
 *   HF_ECONFLICT  the task is not ours, or not in a state for that: leave it alone
 *   HF_EINVAL     the request makes no sense; nothing was sent, or agentd said so
 *   HF_ENOENT     there is no such thing
 *   HF_EDENIED    another user, or a token of no process that runs
 *   HF_ELIMIT     too large, or too much at once for longer than we were patient
 *   HF_EAGAIN     agentd or etcd was away for longer than we were patient: nothing was changed,
 *   HF_ETIMEOUT   or it is not known; the same may be asked again
 *   HF_ECANCELED  hf_client_interrupt was called
 *   HF_ECORRUPT   agentd's answer, or what it has stored, cannot be understood
 * and HF_ENOMEM and HF_EIO. Outputs are untouched on failure. */
#ifndef HF_CLIENT_HOLDFAST_H
#define HF_CLIENT_HOLDFAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "base/clock.h"
#include "base/err.h"

struct hf_client;

/* Zero means the default. */
struct hf_client_config {
    const char *socket;    /* $HOLDFAST_SOCKET */
    const char *token;     /* $HOLDFAST_TOKEN */
    hf_ms timeout;         /* for one answer, beyond what a claim waits: 30 s */
    hf_ms patience;        /* for how long a call is repeated: 60 s; below 0: never */
    size_t checkpoint_max; /* bytes of one that is loaded into memory: 64 MiB */
    bool pongs_by_hand;    /* hf_client_next_event leaves pings to hf_client_pong */
};

/* `cfg` may be NULL, and is not needed afterwards. Nothing is sent yet. HF_ENOENT: this process
 * was not started by an agentd. */
int hf_client_new(const struct hf_client_config *cfg, struct hf_client **ret_client,
                  struct hf_error *err) HF_MUST_CHECK;
/* Closes what is open. To agentd this says nothing: see hf_client_leave. NULL is fine. */
void hf_client_free(struct hf_client *client);

/* Ends every wait, now and from now on: claims and events return HF_ECANCELED, and calls are
 * not repeated any more. What is under way is still waited for. May be called by a signal
 * handler. */
void hf_client_interrupt(const struct hf_client *client);

/* How the agent is. */

/* Before something long, in which events are not taken and nothing is asked: for the next
 * `for_ms` no ping has to be answered. Once more before that has passed when it takes longer;
 * hf_client_ready when it is over. `reason` may be NULL. */
int hf_client_busy(struct hf_client *client, hf_ms for_ms, const char *reason,
                   struct hf_error *err) HF_MUST_CHECK;
int hf_client_ready(struct hf_client *client, struct hf_error *err) HF_MUST_CHECK;

enum hf_client_state {
    HF_CLIENT_READY,
    HF_CLIENT_BUSY,
    HF_CLIENT_WAITING, /* for a person */
    HF_CLIENT_PARKED,  /* until a rate limit lets it go on */
    HF_CLIENT_DRAINING /* ends what it has and takes nothing more */
};

/* The same for every state. 0: its end is not known, and agentd sets one. */
int hf_client_set_state(struct hf_client *client, enum hf_client_state state, hf_ms for_ms,
                        const char *reason, struct hf_error *err) HF_MUST_CHECK;

enum hf_client_status {
    HF_CLIENT_UNSAID,
    HF_CLIENT_HEALTHY,
    HF_CLIENT_OVERLOADED, /* "busy" */
    HF_CLIENT_DEGRADED
};

/* What is zero or NULL says nothing. */
struct hf_client_report {
    enum hf_client_status status;
    const char *phase;
    const char *last_tool;
    const char *task;
    int64_t tokens; /* totals since the start */
    int64_t errors;
    int64_t sequence;
    double percent;
};

/* What waits for the agent, as the answer to a heartbeat says. */
struct hf_client_waiting {
    hf_ms interval; /* until the next heartbeat is due */
    int32_t nudges;
    int32_t tasks;
    bool stop;
};

/* A heartbeat says that the agent lives; send it from where it would notice that it hangs. An
 * activity says that it does something, even when that reads as before. Either pointer may be
 * NULL. */
int hf_client_heartbeat(struct hf_client *client, const struct hf_client_report *report,
                        struct hf_client_waiting *ret_waiting,
                        struct hf_error *err) HF_MUST_CHECK;
int hf_client_activity(struct hf_client *client, const struct hf_client_report *report,
                       struct hf_client_waiting *ret_waiting,
                       struct hf_error *err) HF_MUST_CHECK;

/* Says that this agent has read a nudge, by the id of its event. That is no answer: progress, a
 * state or an activity is. HF_ENOENT: it was not asked that, or something else since. */
int hf_client_read_nudge(struct hf_client *client, const char *id,
                         struct hf_error *err) HF_MUST_CHECK;

/* Says goodbye, so that the end of this process is no crash; it has 30 s to go. */
int hf_client_leave(struct hf_client *client, const char *reason,
                    struct hf_error *err) HF_MUST_CHECK;

#define HF_CLIENT_NAME_SIZE 254

/* Who this is. Owns nothing. */
struct hf_client_self {
    char agent[HF_CLIENT_NAME_SIZE];
    char role[HF_CLIENT_NAME_SIZE];
    char task[HF_CLIENT_NAME_SIZE]; /* "" when it has none */
    int64_t fencing_token; /* grows from life to life; newer than $HOLDFAST_INCARNATION when the
                              agent was registered anew meanwhile */
    hf_ms ttl;
    bool jeopardy; /* nothing new may begin */
};

int hf_client_read_self(struct hf_client *client, struct hf_client_self *ret_self,
                        struct hf_error *err) HF_MUST_CHECK;

/* Tasks. */

enum hf_client_task_state {
    HF_CLIENT_TASK_UNKNOWN, /* of a newer version */
    HF_CLIENT_TASK_QUEUED,
    HF_CLIENT_TASK_PENDING,
    HF_CLIENT_TASK_ACKNOWLEDGED,
    HF_CLIENT_TASK_IN_PROGRESS,
    HF_CLIENT_TASK_COMPLETED,
    HF_CLIENT_TASK_FAILED,
    HF_CLIENT_TASK_CANCELLED,
    HF_CLIENT_TASK_NEEDS_REVIEW
};

/* Owns its texts, none of which is NULL. */
struct hf_client_task {
    char *id;
    char *role;
    char *payload;
    char *result;
    char *reason;
    char *json; /* the whole record, for what is not here */
    enum hf_client_task_state state;
    int32_t attempt; /* 0 at first */
    int32_t priority;
    int64_t checkpoint; /* the number of the newest; 0: there is none */
};

/* Releases what it owns and leaves it zeroed. */
void hf_client_task_done(struct hf_client_task *task);

/* The next task, already started: waits for as long as it takes. 1: *ret_task is ours, and is
 * to be completed, failed or released. HF_ECANCELED after hf_client_interrupt. */
int hf_client_next_task(struct hf_client *client, struct hf_client_task *ret_task,
                        struct hf_error *err) HF_MUST_CHECK;

/* Step by step: takes a task, the one that this agent already has, the one that it was started
 * to resume, or one of its role, for which it waits at most `wait`. 1: *ret_task is ours, and
 * hf_client_start is next; 0: there is none. */
int hf_client_claim(struct hf_client *client, hf_ms wait, struct hf_client_task *ret_task,
                    struct hf_error *err) HF_MUST_CHECK;

/* A new task. `id` is its idempotency key; NULL: one is made up. `payload` may be NULL. 1: it
 * is new; 0: there was one of that id, which *ret_task shows. `ret_task` may be NULL. */
int hf_client_submit(struct hf_client *client, const char *id, const char *role,
                     const char *payload, int32_t priority, struct hf_client_task *ret_task,
                     struct hf_error *err) HF_MUST_CHECK;

int hf_client_read_task(struct hf_client *client, const char *id,
                        struct hf_client_task *ret_task, struct hf_error *err) HF_MUST_CHECK;

/* What becomes of a task that is ours. Asked twice is as asked once. Texts may be NULL. */
int hf_client_start(struct hf_client *client, const char *id,
                    struct hf_error *err) HF_MUST_CHECK;
int hf_client_progress(struct hf_client *client, const char *id, double percent,
                       const char *note, struct hf_error *err) HF_MUST_CHECK;
int hf_client_complete(struct hf_client *client, const char *id, const char *result,
                       struct hf_error *err) HF_MUST_CHECK;
int hf_client_fail(struct hf_client *client, const char *id, const char *reason,
                   struct hf_error *err) HF_MUST_CHECK;
/* Back to whoever wants it. */
int hf_client_release(struct hf_client *client, const char *id, const char *reason,
                      struct hf_error *err) HF_MUST_CHECK;

/* Checkpoints. agentd answers when all of one is stored, or fetched, for which it has 15 min
 * beyond the timeout of the client. */

struct hf_client_checkpoint {
    char *data; /* owned; a NUL stands behind it */
    size_t len;
    int64_t seq;
    char sha256[65];
};

void hf_client_checkpoint_done(struct hf_client_checkpoint *checkpoint);

/* Keeps what the work has come to. `ret_seq`, its number, may be NULL. */
int hf_client_save(struct hf_client *client, const char *id, const void *data, size_t len,
                   int64_t *ret_seq, struct hf_error *err) HF_MUST_CHECK;
/* The same from a file that agentd reads itself: an absolute path without symbolic links. */
int hf_client_save_file(struct hf_client *client, const char *id, const char *path,
                        int64_t *ret_seq, struct hf_error *err) HF_MUST_CHECK;

/* The newest that is whole and has killed no successor: agentd has compared it with its SHA-256
 * just before, and that all of it came is seen to here. 1: *ret_checkpoint is it; 0: there is
 * none, begin at the beginning. */
int hf_client_load(struct hf_client *client, const char *id,
                   struct hf_client_checkpoint *ret_checkpoint,
                   struct hf_error *err) HF_MUST_CHECK;
/* The same, written to `fd` as it comes; `ret_checkpoint` has no data then. After a failure
 * there may be a part of it. */
int hf_client_load_to(struct hf_client *client, const char *id, int fd,
                      struct hf_client_checkpoint *ret_checkpoint,
                      struct hf_error *err) HF_MUST_CHECK;

/* What the agent is told. */

enum hf_client_event_kind {
    HF_CLIENT_EVENT_PING,     /* id; answered already, unless pongs_by_hand: nothing to do */
    HF_CLIENT_EVENT_TASK,     /* id: it could be claimed */
    HF_CLIENT_EVENT_JEOPARDY, /* until_wall: begin nothing new; from then on it stands still */
    HF_CLIENT_EVENT_THAWED,   /* length: it stood still for so long */
    HF_CLIENT_EVENT_NUDGE,    /* id, text: why does the task not move? */
    HF_CLIENT_EVENT_STOP      /* length: end within that time */
};

/* Owns nothing. What an event does not have is zero. */
struct hf_client_event {
    enum hf_client_event_kind kind;
    char id[HF_CLIENT_NAME_SIZE];
    char text[1024]; /* cut if it has to be */
    hf_ms length;
    hf_ms until_wall;
};

/* Waits for at most `timeout` (0: not at all; below 0: as long as it takes). 1: *ret_event is
 * one; 0: none came. Whoever has called it is pinged from then on, every few seconds, and
 * answers by calling it again: one that neither does, nor asks anything, nor has said that it
 * is busy, is taken for frozen. Connections that are lost are made anew. An error tells of one
 * event, or of one attempt to connect; the next call goes on. */
int hf_client_next_event(struct hf_client *client, hf_ms timeout,
                         struct hf_client_event *ret_event, struct hf_error *err) HF_MUST_CHECK;

/* Readable whenever hf_client_next_event has something to do, the first time at once. The same
 * one for the life of the client; for poll, epoll and the like only. Cannot fail. */
int hf_client_get_fd(struct hf_client *client);

/* Answers a ping by hand. */
int hf_client_pong(struct hf_client *client, const char *id,
                   struct hf_error *err) HF_MUST_CHECK;

#ifdef __cplusplus
}
#endif

#endif
