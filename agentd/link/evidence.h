/* evidence.h - gathers what speaks for and against the agents, and acts on what core/detector
 * makes of it: pings are sent, the node is told of suspicions and of who is frozen.
 *
 * One timer for all processes. A process is judged while the keeper says that it runs; what is
 * frozen by the fence, or about to end, is not. */
#ifndef LINK_EVIDENCE_H
#define LINK_EVIDENCE_H

#include <uv.h>

#include "agentd/link/proc.h"
#include "base/err.h"
#include "schema/config.h"

struct link;
struct link_agent;
struct link_process;
struct link_probe;

/* Of the link: its own health. */
struct link_watch {
    uv_timer_t timer;
    struct hf_tilt tilt;
    bool runs;
    hf_ms due;      /* when the timer should run; 0: whenever it does */
    bool calm;      /* nobody promised anything within a time */
    bool late;      /* the lease, or what is watched, keeps us waiting */
    unsigned boxes; /* that were filled in this turn */
};

/* Who answers for an agent and is below its first process: what a shell, or npm, has started.
 */
struct link_worker {
    pid_t pid; /* 0: nobody */
    uint64_t start_time;
    struct link_proc proc; /* `at` is 0 while it is not there */
};

/* Of a process. Zero until it is looked at first. */
struct link_evidence {
    bool begun;
    hf_ms at; /* when it is looked at next */
    struct hf_detector detector;
    struct hf_detector_policy policy;
    bool ends;             /* who is frozen is ended */
    bool probes;           /* it is asked from outside */
    bool doubts;           /* what a link before this one suspected may still hold */
    hf_ms beat_due;        /* when the next heartbeat is missed; 0: it never sent one */
    struct link_proc proc; /* of the first process */
    struct link_worker worker;
    hf_ms lost;                  /* time that was not its own, since its last sign of life */
    bool seen;                   /* it is suspect since the last look at least */
    struct link_probe *probe;    /* NULL: nobody asks it from outside */
    struct hf_strings probe_env; /* of its program; a block to be freed */
    char probe_why[80];          /* what was wrong with the last answer that was not good */
    enum hf_detector_state told; /* to the node, ... */
    enum hf_source told_source;  /* ... and of which source */
};

int link_watch_open(struct link *link) HF_MUST_CHECK;
void link_watch_close(struct link *link);
void link_watch_wake(struct link *link); /* there is a process that is to be looked at */

/* How often the process is asked once it answers; 0: nobody knows any more. */
hf_ms link_evidence_get_ping(const struct link_process *process);

/* Nobody asks it any more. */
void link_evidence_done(struct link_process *process);

/* It asked something, and has the answer, or does not wait for it any more. */
struct hf_detector_debt link_evidence_on_asked(struct link_process *process);
void link_evidence_on_answered(struct link_process *process, struct hf_detector_debt *debt);
/* Also who sent it, as the kernel says. */
void link_evidence_on_heartbeat(struct link_process *process, pid_t sender);
/* It said how it is, which is in `said`. */
void link_evidence_on_status(struct link_process *process);
void link_evidence_on_pong(struct link_process *process, pid_t sender);
/* Somebody began or ceased to listen to its events. */
void link_evidence_on_listeners(struct link_process *process);
/* What it said of its state, or by sd_notify, is in `said`. A state that has no end gets one.
 */
void link_evidence_on_state(struct link_process *process);
void link_evidence_on_notice(struct link_process *process, pid_t sender);
/* What a link before this one had heard is in `said` again. */
void link_evidence_on_recalled(struct link_process *process);

/* Of all its processes the one that a verdict speaks of, as it was last looked at. */
const struct link_proc *link_evidence_get_subject(const struct link_process *process);

#endif
