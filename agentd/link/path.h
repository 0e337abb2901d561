/* path.h - a file that an agent names, read with that agent's rights: it gets nothing through
 * us that it could not read itself. No link is followed on the way. */
#ifndef LINK_PATH_H
#define LINK_PATH_H

#include <stdint.h>

#include <uv.h>

#include "agentd/link/user.h"
#include "base/buf.h"

/* Its content, valid during the call, or, where there is more than was to be read, the open
 * file, which the callee closes; else `file` is -1. `text` is a sentence when it failed:
 * HF_EINVAL, HF_ENOENT, HF_EDENIED, HF_EIO, HF_ENOMEM, or HF_ELIMIT when it is too large. */
typedef void (*link_path_fn)(int err, const char *text, struct hf_bytes content, int file,
                             void *arg);

struct link_path_limits {
    size_t read; /* bytes: what has more is opened and not read, ... */
    int64_t max; /* ... and what has more than that is refused */
};

/* Reads or opens the regular file at an absolute path on another thread, since a file system
 * may take its time; `as`: with whose rights (copied), NULL for our own. `fn` comes once,
 * later. */
int link_path_read(uv_loop_t *loop, const char *path, const struct link_user *as,
                   struct link_path_limits limits, link_path_fn fn, void *arg) HF_MUST_CHECK;

#endif
