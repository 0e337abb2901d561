/* ways.h - how what an agent is asked (a nudge) reaches it, as its launcher says. */
#ifndef LINK_WAYS_H
#define LINK_WAYS_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "schema/config.h"

enum link_way {
    LINK_BY_EVENTS = 1, /* GET /v1/events */
    LINK_BY_STDIN = 2,  /* a line on its stdin, which the keeper has the other end of */
    LINK_BY_HOOK = 4,   /* a program of the launcher */
};

struct link_ways {
    struct hf_strings by;
    struct hf_strings command; /* the hook */
    hf_ms timeout;             /* that it may take */
    unsigned set;              /* of enum link_way, once it is complete; 0: events */
};

#define LINK_WAYS_BY "events"

/* HF_EINVAL with a sentence when a word is none, or a hook is missing or never run. */
int link_ways_complete(struct link_ways *ways, struct hf_error *err) HF_MUST_CHECK;

/* "events" ... A static string. */
const char *link_way_name(enum link_way way);

/* The line that stands for a nudge on stdin, at most `max` bytes with its end: where it would
 * be longer, the text is cut. HF_ELIMIT: not even without a text. */
int link_ways_format(const char *id, const char *text, size_t max,
                     struct hf_buf *ret_line) HF_MUST_CHECK;

#endif
