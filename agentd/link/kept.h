/* kept.h - the files that the settings come from, as they were when they were read.
 *
 * A link that follows a dead one goes on with what that one had, since the agents do: a file
 * that somebody is in the middle of editing costs none of them. What changed counts when agentd
 * is told to read it (SIGHUP), or when no link can begin with what the last one had. The keeper
 * holds the bytes from one link to the next. */
#ifndef LINK_KEPT_H
#define LINK_KEPT_H

#include <jansson.h>

#include "schema/config.h"

struct link_kept {
    json_t *files; /* path: text. NULL: nothing can be kept */
    bool given;    /* by the link before; else the disk is read, and noted here */
};

/* What the last link left, or nothing yet. Without memory nothing is kept. */
void link_kept_take(struct link_kept *kept);
void link_kept_begin(struct link_kept *kept);
void link_kept_done(struct link_kept *kept);
#define LINK_CLEANUP_KEPT __attribute__((cleanup(link_kept_done)))

/* Reads from there; for a configuration that is about to be read. */
struct hf_config_files link_kept_get_files(struct link_kept *kept);

/* Leaves all that was read to the next link. */
void link_kept_leave(const struct link_kept *kept);

#endif
