/* judged.h - how a process is judged, from its start to its end: as its launcher said when it
 * was started, whatever the launcher says now, and by what the process has shown since. The
 * keeper remembers it from one link to the next, as two lines. */
#ifndef LINK_JUDGED_H
#define LINK_JUDGED_H

#include <jansson.h>

#include "agentd/link/detect.h"
#include "base/buf.h"

struct link_judged {
    struct link_detect detect; /* if `kept` is there, whose texts it borrows */
    json_t *kept;
    const char **words;   /* of lists */
    hf_ms watchdog;       /* as the process has set it itself; 0: it did not */
    uint8_t used;         /* bits 1 << source: what it has begun to use */
    hf_ms announced_wall; /* until then it explained its silence; 0: nothing is announced */
    int state;            /* that it said last, by its number in the schema; 0: not known */
};

/* Begins as the launcher says. HF_ENOMEM: it is judged by what the launcher says later. */
int link_judged_begin(struct link_judged *judged,
                      const struct link_detect *detect) HF_MUST_CHECK;
void link_judged_done(struct link_judged *judged);

/* Two lines, each with its end. */
void link_judged_format(const struct link_judged *judged, struct hf_buf *text);
/* One of them; false: it is another one. What makes no sense is not taken. */
bool link_judged_read(struct link_judged *judged, const char *line, size_t len);

#endif
