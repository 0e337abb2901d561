/* nudge.h - brings what an agent is asked to it, by the ways that its launcher names, and gets
 * the receipts for the node.
 *
 * Each way is tried by itself: events for whoever begins to listen, however often; stdin and
 * the hook once for each process and inquiry, whatever becomes of the link. Of stdin the keeper
 * knows what it wrote last. That a hook is about to run is remembered before it does: one whose
 * end no link has seen is not run again. */
#ifndef LINK_NUDGE_H
#define LINK_NUDGE_H

#include <uv.h>

#include "agentd/keeper/protocol.h"
#include "agentd/link/ways.h"
#include "base/clock.h"
#include "core/event.h"

struct link;
struct link_process;
struct link_hook;

/* Of the link. */
struct link_nudges {
    uv_timer_t timer; /* of what has to be tried again */
    struct link_hook *hooks;
    unsigned hook_count; /* that run, or are about to */
};

/* Of a process: the last inquiry that was for it. */
struct link_nudge {
    struct hf_receipt receipt;
    bool receipt_due;            /* the node does not know it yet */
    char telling[HF_RECEIPT_ID]; /* what the keeper was asked to write; "": nothing */
    bool told;                   /* it was written, or never will be */
    hf_ms tell_at;               /* not before then */
    hf_ms tell_pause;            /* after which it is tried again */
    uint32_t begun;              /* hooks, ... */
    uint32_t ended;              /* ... and those of them whose end was seen */
    bool hooking;                /* one runs, or is about to */
    bool hooked;                 /* there will be none any more */
    hf_ms hook_at;
    uint64_t awaits; /* what the keeper has to remember before it runs */
};

int link_nudges_open(struct link *link) HF_MUST_CHECK;
void link_nudges_close(struct link *link); /* with what still runs */

/* Whatever is due for what it is asked now; NULL is fine. */
void link_nudge_look(struct link_process *process);

/* The agent says that it has read that. False: it was not asked it. */
bool link_nudge_read(struct link_process *process, const char *id);

void link_nudge_done(struct link_process *process); /* it has ended */

/* What the keeper said to TELL, and to REMEMBER. */
void link_nudge_on_told(const struct agentd_who *who, const struct agentd_reply *reply,
                        void *arg);
void link_nudge_on_remembered(struct link_process *process, bool kept);

/* For the next link: a line without its end, "" when there is nothing to remember. */
void link_nudge_format(const struct link_nudge *nudge, struct hf_buf *out);
void link_nudge_parse(struct link_nudge *nudge, const char *line);

#endif
