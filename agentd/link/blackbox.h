/* blackbox.h - what is kept of an agent that answers nothing, before it is ended: how its
 * process stands, what it wrote last, its sockets and children, and what it last said. */
#ifndef LINK_BLACKBOX_H
#define LINK_BLACKBOX_H

#include "agentd/link/link.h"

enum { LINK_BLACKBOX_MOST = 8 };

/* A suspicion with its evidence, as a record that points into itself. */
struct link_blackbox {
    Holdfast__V1__Report__Suspicion record;
    Google__Protobuf__Timestamp since, at;
    Holdfast__V1__Evidence evidence[LINK_BLACKBOX_MOST], *list[LINK_BLACKBOX_MOST];
    struct hf_buf texts[LINK_BLACKBOX_MOST];
    char why[300];
};

/* `whole`: with all that takes longer to find out. */
void link_blackbox_fill(struct link_process *process, const struct hf_detector_verdict *verdict,
                        bool whole, hf_ms now, struct link_blackbox *ret);
void link_blackbox_done(struct link_blackbox *box);

#endif
