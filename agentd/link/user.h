/* user.h - as whom an agent runs: an account of this machine, with its groups. */
#ifndef LINK_USER_H
#define LINK_USER_H

#include "agentd/keeper/protocol.h"
#include "base/err.h"

struct link_user {
    uint32_t uid, gid;
    uint32_t groups[AGENTD_GROUPS_MAX];
    uint32_t group_count;
    char home[AGENTD_PATH_BYTES];
};

/* HF_ENOENT when there is no such account, HF_EDENIED when we may not start anything as it,
 * HF_ELIMIT when it is in too many groups; each with a sentence. */
int link_user_find(const char *name, struct link_user *ret_user,
                   struct hf_error *err) HF_MUST_CHECK;

#endif
