/* path.h - a file that an agent names, read with that agent's rights: it gets nothing through
 * us that it could not read itself. No link is followed on the way. */
#ifndef LINK_PATH_H
#define LINK_PATH_H

#include <stdint.h>

#include <uv.h>

#include "agentd/link/user.h"
#include "base/buf.h"

/* The content is valid during the call; `text` is a sentence when it failed: HF_EINVAL,
 * HF_ENOENT, HF_EDENIED, HF_EIO, HF_ENOMEM, or HF_ELIMIT when there is more than was to be
 * read. */
typedef void (*link_path_fn)(int err, const char *text, struct hf_bytes content, void *arg);

/* Reads the regular file at an absolute path, at most `max` bytes, on another thread; `as`:
 * with whose rights (copied), NULL for our own. `fn` comes once, later. */
int link_path_read(uv_loop_t *loop, const char *path, const struct link_user *as, size_t max,
                   link_path_fn fn, void *arg) HF_MUST_CHECK;

/* The file itself, which the callee closes; `size` is what it has at the moment. */
typedef void (*link_path_opened_fn)(int err, const char *text, int file, int64_t size,
                                    void *arg);

/* The same without reading it. */
int link_path_open(uv_loop_t *loop, const char *path, const struct link_user *as, int64_t max,
                   link_path_opened_fn fn, void *arg) HF_MUST_CHECK;

#endif
