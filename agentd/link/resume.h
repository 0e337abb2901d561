/* resume.h - the checkpoint that a start was decided on, kept for the process that begins.
 *
 * What an agent here commits is kept as well, as long as there is room: it is what its
 * successor will go on from.
 *
 * Its bytes were read and verified before the transaction that gave the task to this life, and
 * only this life can add to the chain: until it does or loses the task, what it asks for is
 * what is kept here. */
#ifndef LINK_RESUME_H
#define LINK_RESUME_H

#include "agentd/link/link.h"
#include "agentd/link/store.h"

/* Keeps a body that was verified for a start, or that was just stored. What cannot be kept is
 * read again. */
void link_resume_keep(struct link *link, const char *task, int64_t seq,
                      const struct link_stored *stored);

/* The body of that entry, if it is kept here with the size and the digest that it names; else
 * NULL. Borrowed until the loop turns. */
const struct link_stored *link_resume_find(const struct link *link,
                                           const Holdfast__V1__Checkpoint *entry);
bool link_resume_has(const struct link *link, const Holdfast__V1__Checkpoint *entry);

/* The process begins with that checkpoint of that task; task NULL: with none. */
void link_resume_grant(struct link_process *process, const char *task, int64_t seq);

/* What it goes on from; NULL: not known here. Borrowed until the loop turns. */
const struct link_stored *link_resume_get(const struct link_process *process, const char *task,
                                          int64_t *ret_seq);

/* It is told of a task: what is kept for one that it lost, even if it has it again, is not what
 * it goes on from. NULL: of none. */
void link_resume_on_task(struct link_process *process, const Holdfast__V1__Task *task);

/* It adds to the chain, or has ended. */
void link_resume_forget(struct link_process *process);

void link_resume_done(struct link *link);

#endif
