/* name.h - what a namespace, host, agent, role, task, pool, launcher or store may be called.
 *
 * [a-z0-9]([a-z0-9._-]{0,252}): safe in an etcd key, as a file's name (never "." or "..") and
 * as a host's. Checked at every entrance, so that nothing inside has to ask again. Pure. */
#ifndef HF_SCHEMA_NAME_H
#define HF_SCHEMA_NAME_H

#include <stddef.h>

#include "base/err.h"

#define HF_NAME_MAX  253 /* characters */
#define HF_NAME_SIZE (HF_NAME_MAX + 1)

/* NULL when the bytes are a name; else a static phrase that says what is wrong with the byte at
 * *ret_at. The bytes need no NUL and may hold any. Cannot fail. */
const char *hf_name_fault(const void *text, size_t len, size_t *ret_at);

/* HF_EINVAL unless `text` is a name; NULL is none. `what` begins the sentence: "agent name". */
int hf_name_check(const char *what, const char *text, struct hf_error *err) HF_MUST_CHECK;

/* The same after A-Z became a-z, for host names, which know no case. */
int hf_name_lower(const char *what, const char *text, char ret_name[HF_NAME_SIZE],
                  struct hf_error *err) HF_MUST_CHECK;

#endif
