/* body.h - texts of a task that are too long for its record: the payload and the result.
 *
 * Up to HF_BODY_INLINE_MAX bytes stand in the record itself, which everyone mirrors. A longer
 * one lies under a key of its own outside of what is mirrored, written by the Txn that writes
 * the record, which then only says how long it is and what it hashes to. Pure. */
#ifndef HF_CORE_BODY_H
#define HF_CORE_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/sha256.h"
#include "holdfast/v1/records.pb-c.h"

#define HF_BODY_INLINE_MAX ((size_t)64 << 10)  /* bytes in a record */
#define HF_BODY_MAX        ((size_t)512 << 10) /* at all: a Txn of etcd has 1.5 MiB */

/* Labels stay in the record, which every write of the task repeats. */
#define HF_LABELS_MAX   64
#define HF_LABELS_BYTES ((size_t)16 << 10) /* of all of them */

/* What a record says of a body; points into itself. */
struct hf_body {
    Holdfast__V1__Body record;
    char sha256[HF_SHA256_HEX_LEN + 1];
};

int hf_body_init(struct hf_body *body, struct hf_bytes text) HF_MUST_CHECK;

/* Whether the record means these bytes. */
bool hf_body_matches(const Holdfast__V1__Body *record, struct hf_bytes text);

/* HF_ELIMIT with a sentence: more than a record has room for. */
int hf_labels_check(Holdfast__V1__Task__LabelsEntry *const *labels, size_t count,
                    struct hf_error *err) HF_MUST_CHECK;

#endif
