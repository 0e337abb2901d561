/* successor.h - asks the link that would come next which version it speaks.
 *
 * The keeper stays when another version is installed, and only a link of its own version can go
 * on with it: any other would end, one after the other, until the lease of all agents has run
 * out. So it is asked while the link that it would replace still serves. */
#ifndef LINK_SUCCESSOR_H
#define LINK_SUCCESSOR_H

#include <uv.h>

#include "base/err.h"

/* What it is asked with, alone. It prints its AGENTD_PROTOCOL_VERSION and its release. */
#define LINK_SUCCESSOR_QUESTION "--protocol"

/* HF_OK: it speaks the version, and `text` is its release. Else `text` says why it cannot
 * come. */
typedef void (*link_successor_fn)(int err, const char *text, void *arg);

/* Asks whatever the keeper would start now. The answer comes later, within 10 s. */
int link_successor_ask(uv_loop_t *loop, uint32_t version, link_successor_fn fn,
                       void *arg) HF_MUST_CHECK;

#endif
