/* s3.h - objects in a bucket: put, get, drop and list (libcurl).
 *
 * Blocking, for a process of its own: agentd has a helper for it (agentd/s3), so that the link
 * needs neither libcurl's memory nor its patience. One object is one connection, reused.
 *
 * Memory is bounded whatever an object's size is: what is longer than HF_S3_PART goes up in
 * parts, and what comes down goes where it belongs piece by piece. What failed for a reason
 * that may pass is tried again, a few times, with pauses; an upload in parts that failed is
 * aborted, so that nothing is left of it. */
#ifndef HF_IO_S3_H
#define HF_IO_S3_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/sha256.h"
#include "io/s3_settings.h"

#define HF_S3_PART ((size_t)8 << 20)

struct hf_s3;

struct hf_s3_config {
    struct hf_s3_settings settings; /* texts are borrowed for the life of the client */
    /* Asked now and then while something is under way: true ends it with HF_ECANCELED. NULL:
     * nobody is asked. */
    bool (*is_over)(void *arg);
    void *arg;
    hf_ms pause; /* before the second attempt; doubles. 0: 200 ms */
};

/* HF_EINVAL with a sentence when the settings are no good. */
int hf_s3_new(const struct hf_s3_config *cfg, struct hf_s3 **ret_s3,
              struct hf_error *err) HF_MUST_CHECK;
void hf_s3_free(struct hf_s3 *s3);

/* What was stored. */
struct hf_s3_object {
    int64_t size;
    char sha256[HF_SHA256_HEX_LEN + 1];
};

/* Stores what is read from `fd`, from where it stands to its end; names are beneath the prefix
 * of the settings. HF_ELIMIT: there is more than `max`. HF_EAGAIN, HF_EDENIED, HF_EIO: with a
 * sentence. */
int hf_s3_put(struct hf_s3 *s3, const char *name, int fd, int64_t max,
              struct hf_s3_object *ret_object, struct hf_error *err) HF_MUST_CHECK;

/* Writes an object to `fd` (-1: nowhere), from offset 0 on, and holds it against `want`.
 * HF_ENOENT only when the server says that there is no such object, HF_ECORRUPT when it is
 * another one; everything else means that nothing is known of it. */
int hf_s3_get(struct hf_s3 *s3, const char *name, const struct hf_s3_object *want, int fd,
              struct hf_error *err) HF_MUST_CHECK;

/* Nothing is there afterwards; that nothing was is fine. */
int hf_s3_drop(struct hf_s3 *s3, const char *name, struct hf_error *err) HF_MUST_CHECK;

/* Returns an error to stop. */
typedef int (*hf_s3_name_fn)(const char *name, void *arg);

/* All names that begin with `under`, beneath the prefix. */
int hf_s3_list(struct hf_s3 *s3, const char *under, hf_s3_name_fn fn, void *arg,
               struct hf_error *err) HF_MUST_CHECK;

/* Aborts uploads of such names that were begun more than `age` ago and never came to an end,
 * since whoever began them was killed. A server that cannot list them has none. */
int hf_s3_abort_old(struct hf_s3 *s3, const char *under, hf_ms age,
                    struct hf_error *err) HF_MUST_CHECK;

/* Says who uses the names that begin with `under`: HF_OK when it is `owner`, by now or already;
 * HF_ECONFLICT with a sentence when it is somebody else. */
int hf_s3_claim(struct hf_s3 *s3, const char *under, const char *owner,
                struct hf_error *err) HF_MUST_CHECK;

#endif
