/* chain.h - the checkpoints of a task as etcd has them: reads them all, and removes old ones.
 */
#ifndef LINK_CHAIN_H
#define LINK_CHAIN_H

#include "agentd/link/link.h"

struct link_chain {
    Holdfast__V1__Checkpoint **entries; /* oldest first */
    int64_t *mod_revs;                  /* of each */
    size_t count;
    size_t unread; /* others that are there and cannot be decoded */
};

void link_chain_free(struct link_chain *chain);

struct link_chain_read;

/* The chain belongs to whoever is told; there is none without HF_OK. */
typedef void (*link_chain_fn)(int err, struct link_chain *chain, void *arg);

int link_chain_read(struct link *link, const char *task, link_chain_fn fn, void *arg,
                    struct link_chain_read **ret_read) HF_MUST_CHECK;
void link_chain_cancel(struct link_chain_read *read);

/* All but the newest few up to `newest` are removed, entries and bodies, as far as possible, by
 * the agent's present life and no other. */
void link_chain_prune(struct link *link, const char *agent, const char *task, int64_t newest);

#endif
