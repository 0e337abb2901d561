/* call.h - one request of an agent, from its arrival to its answer. Knows no HTTP: whoever
 * serves it fills it in, and carries the answer away.
 *
 *     api.c             the agent's socket, who may ask, and which function answers
 *     api_self.c        self, heartbeat, activity, state, nudges, leave
 *     api_task.c        claim, submit, get, start, progress, complete, fail, release
 *     api_body.c        payloads and results that a record has no room for
 *     api_checkpoint.c  put, get, list
 *     api_events.c      what an agent is told without asking */
#ifndef LINK_CALL_H
#define LINK_CALL_H

#include "agentd/link/link.h"

#define LINK_REASON_MAX  ((size_t)64 << 10) /* bytes of a reason, a note */
#define LINK_JSON_MAX    ((size_t)1 << 20)  /* bytes of a body that is JSON */
#define LINK_CHAIN_KEPT  5                  /* newest checkpoints of a task */
#define LINK_WAIT_MAX_MS 300000             /* that a claim may wait */

struct link_call;

/* An answer. Everything is copied. */
struct link_answer {
    int status;
    const char *type; /* of the body; NULL: application/json */
    struct hf_bytes body;
    bool has_file; /* instead of a body: that many bytes of an open file, which stays the
                      caller's */
    int file;
    int64_t size;
    const char *seq, *sha256; /* X-Holdfast-Seq, X-Holdfast-Sha256; NULL: none */
};

struct link_call_ops {
    /* The answer; the call is over and must not be touched any more. */
    void (*answer)(struct link_call *call, const struct link_answer *answer);
    /* Instead of an answer: status 200 and events, for as long as both sides want. */
    void (*begin_events)(struct link_call *call);
    /* False: it is lost to it. */
    bool (*send_event)(struct link_call *call, const char *name, const char *data);
    void (*end_events)(struct link_call *call);
};

/* Filled in by whoever serves. What the strings point to is valid until the answer. */
struct link_call {
    const struct link_call_ops *ops;
    struct link_process *process; /* that asks; NULL once it is gone */
    pid_t sender;                 /* that one, or a process of its own; 0: not known */
    const char *method;
    const char *path; /* from "/" on, decoded by nobody: names need no escapes */
    const char *content_type;
    struct hf_bytes body;

    /* Of the function that answers it. */
    struct hf_detector_debt debt; /* while it is not answered, nothing has to be heard */
    struct link_ask *ask;
    bool is_get; /* one of its agent's, until the answer is sent */
    void *state; /* what it has under way */
    void (*on_cancel)(struct link_call *call); /* lets go of that; NULL: nothing to do */
    char task[HF_NAME_SIZE];                   /* from the path; or the id of a nudge */
    struct link_call *next;                    /* of those that wait for events, or to leave */
    uint64_t awaits; /* who leaves: what the keeper is to remember first */
};

/* The keeper remembers, or cannot, what it was told of the process: who waits for that is
 * answered. */
void link_call_on_remembered(struct link_process *process, bool kept);

/* Finds the function and calls it. The answer may come before this returns. */
void link_call_serve(struct link_call *call);

/* Whoever asked is gone: no answer is wanted any more. */
void link_call_cancel(struct link_call *call);

/* For the functions that answer. */

void link_call_answer(struct link_call *call, const struct link_answer *answer);
void link_call_reply(struct link_call *call, int status, const ProtobufCMessage *message);
/* A task with all that belongs to it, which may have to be read first. */
void link_call_reply_task(struct link_call *call, int status, const Holdfast__V1__Task *task);
void link_call_empty(struct link_call *call, int status);
void link_call_fail(struct link_call *call, int status, const char *code, const char *message,
                    const char *next);
/* The same for an error of ours, `text` saying more; NULL: nothing more is known. */
void link_call_error(struct link_call *call, int err, const char *text);

/* What that header says; NULL: there is none. */
bool link_call_is_json(const char *content_type);
/* Decodes the body, `{}` when it is empty. False: it was answered. */
bool link_call_decode(struct link_call *call, const ProtobufCMessageDescriptor *type,
                      ProtobufCMessage **ret_message);

/* Asks the node; `fn` gets the call. What is not answered in an error is `fn`'s to answer. */
void link_call_ask(struct link_call *call, struct hf_event_ask *ask, link_reply_fn fn);

void link_call_self(struct link_call *call);
void link_call_heartbeat(struct link_call *call);
void link_call_activity(struct link_call *call);
void link_call_state(struct link_call *call);
void link_call_pong(struct link_call *call);
void link_call_leave(struct link_call *call);
void link_call_read_nudge(struct link_call *call);
void link_call_claim(struct link_call *call);
void link_call_submit(struct link_call *call);
void link_call_get_task(struct link_call *call);
void link_call_start(struct link_call *call);
void link_call_progress(struct link_call *call);
void link_call_complete(struct link_call *call);
void link_call_fail_task(struct link_call *call);
void link_call_release(struct link_call *call);
void link_call_put_checkpoint(struct link_call *call);
void link_call_get_checkpoint(struct link_call *call);
void link_call_list_checkpoints(struct link_call *call);
void link_call_events(struct link_call *call);

#endif
