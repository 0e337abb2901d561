/* root.h - who a directory of checkpoints is.
 *
 * The same path on two hosts may be one directory that they share, or two. So each has an id in
 * a file of its own, random and made once: whoever finds the id that a checkpoint names has the
 * directory that it was put into, and whoever finds another, or none, cannot say anything about
 * the checkpoint. Blocking: at start, or on a worker. */
#ifndef HF_IO_ROOT_H
#define HF_IO_ROOT_H

#include "base/err.h"
#include "base/id.h"

#define HF_ROOT_FILE ".holdfast-root"

/* The id of the directory that `dir` is open on. HF_ENOENT: it has none; HF_ECORRUPT: what
 * stands there is none. */
int hf_root_read(int dir, char ret_id[HF_ID_LEN + 1]) HF_MUST_CHECK;

/* The same, and makes it first where there is none: of several who try at once, one does. */
int hf_root_make(int dir, char ret_id[HF_ID_LEN + 1], struct hf_error *err) HF_MUST_CHECK;

#endif
