/* said.h - what a process has said of itself so far; its heartbeats and states add up to it. */
#ifndef LINK_SAID_H
#define LINK_SAID_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "holdfast/v1/localapi.pb-c.h"
#include "schema/name.h"

#define LINK_SAID_TEXT 256 /* bytes of a phase, a tool, a reason */

struct link_said {
    Holdfast__V1__AgentStatus__Value status;
    Holdfast__V1__AgentState__Value state;
    char phase[LINK_SAID_TEXT], last_tool[LINK_SAID_TEXT], reason[LINK_SAID_TEXT];
    char task[HF_NAME_SIZE];
    int64_t tokens, errors, sequence;
    int64_t missed; /* heartbeats that did not come, as its agentd counts */
    bool has_percent;
    double percent;
    bool beats;  /* since it was last reported: it sent a heartbeat, */
    bool speaks; /* and said more than that, be it in the same words as before */
    bool has_until;
    int64_t until_s;
    int32_t until_ns;
    bool extended; /* it is busy because it asked for time */
    bool kept;     /* its state is what the keeper remembered, and nothing was said since */
    /* Of the last notice, for whoever judges it: */
    bool feeds;          /* its watchdog, ... */
    bool gives_up;       /* ... which it wants to bite at once, ... */
    int64_t watchdog_ms; /* ... or is to be as long as that; 0: as it is */
    int64_t extend_ms;   /* it has to be given so much time; 0: none */
    bool turns;          /* it said READY or STOPPING */
};

/* HF_EINVAL with a sentence, and nothing taken, when it makes no sense. */
int link_said_take_heartbeat(struct link_said *said, const Holdfast__V1__Heartbeat *beat,
                             struct hf_error *err) HF_MUST_CHECK;
int link_said_take_state(struct link_said *said, const Holdfast__V1__StateRequest *state,
                         struct hf_error *err) HF_MUST_CHECK;

/* The same from a datagram of sd_notify: READY, STOPPING, STATUS (cut where it is too long),
 * WATCHDOG, which says only that it lives, WATCHDOG_USEC and EXTEND_TIMEOUT_USEC. False:
 * nothing of it is for us. */
bool link_said_take_notice(struct link_said *said, const char *text);

/* A state that explains silence has an end: one that has none, or a later one than that, gets
 * it here. Returns for how long it explains silence from now on, in milliseconds; 0: not. */
#define LINK_SAID_MOST_MS INT64_C(604800000) /* a week */
int64_t link_said_settle(struct link_said *said, int64_t wall);

/* It asked for time until then: it is busy, unless it announced something of the kind. */
void link_said_extend(struct link_said *said, int64_t until_wall);
/* It goes on after that, and is ready again if it was busy for nothing else. */
void link_said_end_extension(struct link_said *said);

/* The state that it said last to a link before this one, though that may not have written it,
 * and until when it explains silence; 0: it does not, at `wall`. */
void link_said_keep(struct link_said *said, int state, int64_t until_wall, int64_t wall);

/* What an earlier link wrote of the same process holds where nothing was said since. True: it
 * did not come to write the last state, so somebody should. */
bool link_said_take_report(struct link_said *said, const Holdfast__V1__Report *report);

/* As a record, which points into itself and to what was said. */
struct link_said_report {
    Holdfast__V1__Report record;
    Holdfast__V1__Report__Progress progress;
    Holdfast__V1__Report__CountersEntry entries[4], *counters[4];
    Google__Protobuf__Timestamp until;
};

void link_said_fill(struct link_said *said, struct link_said_report *ret_report);

#endif
