/* intent.h - everything that a decider may ask for.
 *
 * Intents are carried out in the order given: writes that touch a common key one after the
 * other, others side by side. A write whose guards fail is never sent again as it was: the
 * decider hears REFUSED, and decides anew on what etcd has then. */
#ifndef HF_CORE_INTENT_H
#define HF_CORE_INTENT_H

#include "core/plan.h"
#include "holdfast/v1/records.pb-c.h"

enum hf_intent_kind {
    HF_INTENT_NONE,
    HF_INTENT_WRITE,  /* plan; HF_EVENT_OUTCOME follows, once */
    HF_INTENT_READ,   /* read; HF_EVENT_ANSWER follows, until one has no `more` */
    HF_INTENT_VERIFY, /* verify: is the body of a checkpoint whole? HF_EVENT_VERIFIED follows */
    HF_INTENT_ALERT,  /* alert: a person should hear of it */
    HF_INTENT_PROCESS, /* process: for the keeper */
    HF_INTENT_REPLY,   /* reply: to an agent that asked */
    HF_INTENT_LOST,    /* lease: etcd shows that this lease is gone, whatever renewals say */
};

/* One key, or all of a scope. Asked after everything that was told, and never from a cache. Or
 * which keys hang on a lease, which whoever leads etcd answers by heart: only their names are
 * found, and one may be missing, or gone already. */
struct hf_intent_read {
    bool whole_scope;
    struct hf_key key;       /* unless whole_scope */
    enum hf_key_scope scope; /* if whole_scope, narrowed to `name` */
    const char *name;
    int64_t lease; /* not 0: what hangs on it, and nothing of the above */
};

struct hf_intent_alert {
    Holdfast__V1__Event__Kind kind;
    const char *agent, *host, *task; /* whom it is about; NULL for none */
    const char *why;
    const char *next;
};

enum hf_process_act {
    HF_PROCESS_MAKE,    /* create it, held before its program begins */
    HF_PROCESS_LET_GO,  /* it may begin: the agent is registered as `incarnation` */
    HF_PROCESS_DISCARD, /* it must never begin */
    HF_PROCESS_STOP,    /* end it: politely, then by force after `grace` */
    HF_PROCESS_KILL,
    HF_PROCESS_FREEZE,
    HF_PROCESS_THAW,
};

struct hf_intent_process {
    enum hf_process_act act;
    const char *agent;
    const char *instance_id;
    const Holdfast__V1__Spec *spec; /* of MAKE */
    int64_t incarnation;            /* of LET_GO and THAW: the fencing token */
    const char *task;               /* of LET_GO: to resume; NULL for none */
    int64_t checkpoint;             /* likewise: seq to begin from; 0: from the beginning */
    hf_ms grace;                    /* of STOP */
    const char *why;
};

struct hf_intent_reply {
    int err;          /* HF_OK, HF_EFENCED, HF_EAGAIN (jeopardy), HF_EINVAL, HF_ENOENT, ... */
    const char *text; /* a sentence, when it failed */
    const Holdfast__V1__Task *task; /* NULL for none */
    int64_t seq;                    /* of a checkpoint: stored, or to go on from; 0: none */
    const Holdfast__V1__Checkpoint *checkpoint; /* of RESTORE: that entry; NULL for none */
    bool existed;                               /* of SUBMIT: the task was there already */
    bool stop;                                  /* of REPORT: it is to end */
    size_t tasks;                               /* of REPORT: that it could claim, */
    size_t nudges;                              /* and what it was asked and did not answer */
};

/* What it points to is borrowed until the decider's next call, except the plan, which belongs
 * to whoever took the intent (hf_intent_done). */
struct hf_intent {
    enum hf_intent_kind kind;
    uint64_t token; /* of WRITE, READ, VERIFY: names it in its outcome; of REPLY: of the ask */
    const char *subject; /* "agent a1", "task t1": what it is about, for logs and transcripts */
    const char *why;     /* a sentence */
    union {
        struct hf_plan plan;
        struct hf_intent_read read;
        const Holdfast__V1__Checkpoint *verify;
        struct hf_intent_alert alert;
        struct hf_intent_process process;
        struct hf_intent_reply reply;
        int64_t lease;
    };
};

static inline void hf_intent_done(struct hf_intent *intent)
{
    if (intent->kind == HF_INTENT_WRITE)
        hf_plan_done(&intent->plan);
    intent->kind = HF_INTENT_NONE;
}

#endif
