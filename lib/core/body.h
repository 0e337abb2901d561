/* body.h - what lies beside a record in etcd: long payloads and results, and checkpoints.
 *
 * Up to HF_BODY_INLINE_MAX bytes of a text stand in the record itself, which everyone mirrors.
 * A longer one, and every checkpoint of the store `etcd`, lies under a key of its own outside
 * of what is mirrored. The Txn that writes the record writes it, too, and the one that removes
 * the record removes it, so that neither is ever without the other. Pure. */
#ifndef HF_CORE_BODY_H
#define HF_CORE_BODY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* The number that the body of an entry has as its key; 0: its body does not lie in etcd, or the
 * entry does not say where. Cannot fail. */
int64_t hf_body_number(const Holdfast__V1__Checkpoint *entry);

/* HF_ELIMIT with a sentence: more than a record has room for. */
int hf_labels_check(Holdfast__V1__Task__LabelsEntry *const *labels, size_t count,
                    struct hf_error *err) HF_MUST_CHECK;

#endif
