/* model_format.h - requests, answers and events of the model etcd as text.
 *
 * For transcripts and for comparing: equal texts mean equal contents. Ids of cluster and member
 * and the raft term are left out. */
#ifndef HFS_MODEL_FORMAT_H
#define HFS_MODEL_FORMAT_H

#include "sim/model_etcd.h"

/* In quotes, with escapes for what is not plain ASCII. */
void hfs_bytes_format(struct hf_bytes bytes, struct hf_buf *out);

/* "prefix "a"" or ""a"". */
void hfs_range_format(const struct hfs_range *range, struct hf_buf *out);

/* One line without its end. */
void hfs_request_format(const struct hfs_request *request, struct hf_buf *out);
void hfs_event_format(const struct hfs_event *event, struct hf_buf *out);

/* A line, and one more for each operation and for each key that was found; without the last
 * line's end. `kind` is the request's. */
void hfs_answer_format(enum hfs_request_kind kind, const struct hfs_answer *answer,
                       struct hf_buf *out);

#endif
