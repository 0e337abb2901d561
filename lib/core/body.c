#include "core/body.h"

#include <string.h>

#include "base/str.h"

int hf_body_init(struct hf_body *body, struct hf_bytes text)
{
    uint8_t digest[HF_SHA256_LEN];
    int rc = hf_sha256(text.data, text.len, digest);

    if (rc != HF_OK)
        return rc;
    holdfast__v1__body__init(&body->record);
    hf_sha256_format(digest, body->sha256);
    body->record.size = (int64_t)text.len;
    body->record.sha256 = body->sha256;
    return HF_OK;
}

bool hf_body_matches(const Holdfast__V1__Body *record, struct hf_bytes text)
{
    struct hf_body body;

    return record->size == (int64_t)text.len && hf_body_init(&body, text) == HF_OK &&
           strcmp(record->sha256, body.sha256) == 0;
}

int64_t hf_body_number(const Holdfast__V1__Checkpoint *entry)
{
    int64_t number;

    if (strcmp(entry->store, "etcd") != 0 ||
        hf_parse_i64(entry->key, 1, INT64_MAX, &number) != HF_OK)
        return 0;
    return number;
}

int hf_labels_check(Holdfast__V1__Task__LabelsEntry *const *labels, size_t count,
                    struct hf_error *err)
{
    size_t bytes = 0;

    for (size_t i = 0; i < count && i <= HF_LABELS_MAX; i++)
        bytes += strlen(labels[i]->key) + strlen(labels[i]->value);
    if (count <= HF_LABELS_MAX && bytes <= HF_LABELS_BYTES)
        return HF_OK;
    return hf_error_set(err, HF_ELIMIT, "labels: at most %d, with %zu bytes in all",
                        HF_LABELS_MAX, HF_LABELS_BYTES);
}
