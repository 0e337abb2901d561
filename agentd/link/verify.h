/* verify.h - is the body of a checkpoint whole?
 *
 * The store is asked, unless the body is one that an agent of this link committed a moment ago
 * and that is still at hand: then it is held against the entry here, and etcd is left alone
 * while a successor waits for it.
 *
 * A body that takes long to read is read once, however often that is asked: whoever asks
 * meanwhile waits for the same answer, and who asks in the minutes after it, since it could not
 * wait so long, has it at once. */
#ifndef LINK_VERIFY_H
#define LINK_VERIFY_H

#include "agentd/link/link.h"
#include "core/intent.h"

/* Carries out an HF_INTENT_VERIFY; HF_EVENT_VERIFIED follows, never before this returns. */
void link_verify_begin(struct link *link, const struct hf_intent *intent);

/* Tells the node what was found here. The runner must be free to be fed. */
void link_verify_deliver(struct link *link);

/* A body of that task was not what it was found to be: nothing that is known of it counts. */
void link_verify_forget(struct link *link, const char *task);

void link_verify_done(struct link *link);

#endif
