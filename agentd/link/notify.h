/* notify.h - what an agent says with sd_notify: datagrams to a socket of its own, which it
 * finds as NOTIFY_SOCKET. Nobody is answered; what makes no sense is not heard. */
#ifndef LINK_NOTIFY_H
#define LINK_NOTIFY_H

#include "agentd/link/link.h"

struct link_notify;

/* Is there at <state-dir>/agents/<agent>.note from now on; what a link before this one had
 * there goes on. What is sent waits in it until we begin. */
int link_notify_open(struct link_agent *agent, const char *state_dir,
                     struct link_notify **ret_notify, struct hf_error *err) HF_MUST_CHECK;
void link_notify_close(struct link_notify *notify); /* NULL is fine */

/* Receives. The keeper, to whom we are READY, holds it for the next link, so that nobody who
 * sends notices that another one receives. NULL is fine. */
void link_notify_begin(struct link_notify *notify);
/* Likewise: what a link before this one had for agents that have no process now. */
void link_notify_drop_unused(struct link *link);

/* Gives the socket to the user that the agent runs as. */
int link_notify_give(struct link_notify *notify, uid_t user,
                     struct hf_error *err) HF_MUST_CHECK;

const char *link_notify_get_path(const struct link_notify *notify);

#endif
