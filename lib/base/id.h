/* id.h - random identities from the kernel's generator. */
#ifndef HF_BASE_ID_H
#define HF_BASE_ID_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

#define HF_ID_LEN 26 /* characters of a text id, without the NUL */

/* Fills the bytes; HF_EIO when the kernel has no randomness to give. */
int hf_id_random(void *out, size_t len) HF_MUST_CHECK;

/* 1 .. 2^63-1: fit for an etcd lease id. */
int hf_id_random_63(int64_t *ret_id) HF_MUST_CHECK;

/* A 128-bit id, 48 bits of wall time first so that ids sort by age, as 26 lower-case characters
 * that are valid in a name ([0-9a-z] without i, l, o, u). */
int hf_id_new(char ret_id[HF_ID_LEN + 1]) HF_MUST_CHECK;

/* The same from given parts, for tests. Cannot fail. */
void hf_id_format(hf_ms wall, const uint8_t random[10], char ret_id[HF_ID_LEN + 1]);

/* The wall time in an id of ours; HF_EINVAL for a text that is none. */
int hf_id_get_time(const char *id, hf_ms *ret_wall) HF_MUST_CHECK;

#endif
