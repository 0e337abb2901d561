/* notify.h - what an agent says with sd_notify: datagrams to a socket of its own, which it
 * finds as NOTIFY_SOCKET. Nobody is answered; what makes no sense is not heard. */
#ifndef LINK_NOTIFY_H
#define LINK_NOTIFY_H

#include "agentd/link/link.h"

struct link_notify;

/* Receives at <state-dir>/agents/<agent>.note from now on. */
int link_notify_open(struct link_agent *agent, const char *state_dir,
                     struct link_notify **ret_notify, struct hf_error *err) HF_MUST_CHECK;
void link_notify_close(struct link_notify *notify); /* NULL is fine */

/* Gives the socket to the user that the agent runs as. */
int link_notify_give(struct link_notify *notify, uid_t user,
                     struct hf_error *err) HF_MUST_CHECK;

const char *link_notify_get_path(const struct link_notify *notify);

#endif
