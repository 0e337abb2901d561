/* fake.h - an etcd that does as it is told: wrong answers that a real one gives once a year.
 *
 * It has a store with a history, answers ranges from it, takes puts, and tells a watch what the
 * test says, and nothing by itself but that a watch was created and, unless told otherwise, its
 * progress.
 * It runs in a thread of its own; all functions may be called from any. Other calls are
 * answered with UNIMPLEMENTED. */
#ifndef HFT_FAKE_H
#define HFT_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "etcd/rpc.pb-c.h"

#define HFT_FAKE_TIMES 8

struct hft_fake;

struct hft_fake *hft_fake_new(void);
void hft_fake_free(struct hft_fake *fake);

/* "http://127.0.0.1:<port>" */
const char *hft_fake_endpoint(const struct hft_fake *fake);

/* The store: every change is a revision of its own, which is returned; the first is 2. A NULL
 * value deletes the key. */
int64_t hft_fake_change(struct hft_fake *fake, const char *key, const char *value);

/* Forgets every change after `revision`, as a restored backup does. */
void hft_fake_go_back(struct hft_fake *fake, int64_t revision);

void hft_fake_set_cluster(struct hft_fake *fake, uint64_t cluster_id);

/* After `skip` more, answers `count` ranges as if `revision` were the newest: stale reads. */
void hft_fake_be_stale(struct hft_fake *fake, int64_t revision, unsigned skip, unsigned count);

/* A line so slow that a range which asks for more than so many keys is not answered in any
 * time; 0: all are, as at first. */
void hft_fake_be_slow(struct hft_fake *fake, int64_t most_keys);

/* Answers the next `count` calls, watches aside, with that status; `details` is a literal. */
void hft_fake_refuse(struct hft_fake *fake, unsigned count, int code, const char *details);

/* What it has seen. */
struct hft_fake_stats {
    unsigned calls;                  /* watches aside, since the last hft_fake_refuse */
    hf_ms called_at[HFT_FAKE_TIMES]; /* of the first of them */
    unsigned ranges;
    unsigned streams; /* of watches, opened */
    unsigned watches; /* created */
    unsigned probes;
    int64_t start_rev; /* of the last watch that was created */
};

struct hft_fake_stats hft_fake_stats(struct hft_fake *fake);

/* Whether probes are answered; they are at first. */
void hft_fake_answer_probes(struct hft_fake *fake, bool answer);

/* Whether it says that a watch was created; it does at first. */
void hft_fake_confirm(struct hft_fake *fake, bool confirm);

/* From now on a watch that begins in the past is told what has happened since, as by etcd. */
void hft_fake_replay(struct hft_fake *fake);

/* Tells the changes of the revisions `first` to `last`, in that order, in one message whose
 * header says `header_rev` (0: the newest); `fragment`: more of it will follow. */
void hft_fake_tell(struct hft_fake *fake, int64_t first, int64_t last, int64_t header_rev,
                   bool fragment);

/* Sends any message to the newest stream, or any bytes. */
void hft_fake_send(struct hft_fake *fake, const Etcdserverpb__WatchResponse *message);
void hft_fake_send_bytes(struct hft_fake *fake, const void *bytes, size_t len);

/* Ends the newest stream, after what was sent to it. */
void hft_fake_end(struct hft_fake *fake, int code, const char *details);

#endif
