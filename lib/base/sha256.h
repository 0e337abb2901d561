/* sha256.h - SHA-256 over memory, whole or in pieces (libcrypto). */
#ifndef HF_BASE_SHA256_H
#define HF_BASE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define HF_SHA256_LEN     32
#define HF_SHA256_HEX_LEN 64

/* Opaque; create, feed, finish. */
struct hf_sha256;

struct hf_sha256 *hf_sha256_new(void); /* NULL when there is no memory */
void hf_sha256_free(struct hf_sha256 *sha);
int hf_sha256_update(struct hf_sha256 *sha, const void *data, size_t len) HF_MUST_CHECK;

/* Writes the digest; the object may only be freed afterwards. */
int hf_sha256_final(struct hf_sha256 *sha, uint8_t ret_digest[HF_SHA256_LEN]) HF_MUST_CHECK;

/* All in one. */
int hf_sha256(const void *data, size_t len, uint8_t ret_digest[HF_SHA256_LEN]) HF_MUST_CHECK;

/* Lower-case hex, and back (either case). */
void hf_sha256_format(const uint8_t digest[HF_SHA256_LEN], char ret_hex[HF_SHA256_HEX_LEN + 1]);
int hf_sha256_parse(const char *hex, uint8_t ret_digest[HF_SHA256_LEN]) HF_MUST_CHECK;

#endif
