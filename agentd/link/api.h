/* api.h - what an agent can ask of its agentd: HTTP with JSON on a socket of its own.
 *
 * One socket per agent, only for the user that it runs as, and a token per process. What
 * changes something is answered after etcd has it, and not before. */
#ifndef LINK_API_H
#define LINK_API_H

#include "agentd/link/link.h"

/* Listens on <state-dir>/agents/<agent>.sock, if it does not already, and gives the socket to
 * the user that its process runs as. HF_EEXIST: something is there that cannot be removed. */
int link_api_open(struct link_agent *agent, uid_t user, struct hf_error *err) HF_MUST_CHECK;
void link_api_close(struct link_agent *agent);
/* There is somebody to hear what the agents say, and we are READY: the keeper may be given what
 * must outlive us. */
void link_api_begin(struct link *link);

const char *link_api_get_path(const struct link_api *api);
/* Where it may send what sd_notify sends; NULL: nowhere. */
const char *link_api_get_notify_path(const struct link_api *api);

/* What the agent is told by GET /v1/events, if it listens. */
void link_api_on_jeopardy(struct link_process *process, hf_ms until_wall);
void link_api_on_thawed(struct link_process *process, hf_ms frozen_for);
void link_api_on_stop(struct link_process *process, hf_ms grace);
/* Tells it of a task that it could claim now, once each. NULL is fine. */
void link_api_tell_work(struct link_process *process);
/* Whoever listens hears what it is asked, once. True: somebody just did. */
bool link_api_tell_inquiry(struct link_process *process,
                           const Holdfast__V1__Health__Inquiry *inquiry);
void link_api_ping(struct link_process *process); /* asks it to answer */
/* Whoever still waits for an answer of it waits in vain. */
void link_api_on_ended(struct link_process *process);

#endif
