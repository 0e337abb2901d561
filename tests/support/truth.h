/* truth.h - what etcd really holds, to compare copies with.
 *
 * The content comes through etcdctl, so that a fault of our own client cannot hide itself:
 *
 *     struct hft_truth want, got = { 0 };
 *     hft_truth_fetch(&etcd, "a/", &want);
 *     hf_mirror_each(mirror, hft_truth_add, &got);
 *     hft_truth_assert_same(&want, &got, HFT_TRUTH_ALL); */
#ifndef HFT_TRUTH_H
#define HFT_TRUTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "etcd/kv.h"
#include "support/etcd.h"

/* Zero-initialise to collect with hft_truth_add. Owns what its entries point at. */
struct hft_truth {
    struct hf_kv *kvs;
    size_t count;
    size_t cap;
    int64_t revision; /* of the store when it was fetched; 0 when collected */
};

/* Everything under the prefix ("" for all), by one linearizable read, in the order of keys. */
void hft_truth_fetch(const struct hft_etcd *etcd, const char *prefix,
                     struct hft_truth *ret_truth);
/* The same as it was at that revision; 0 is now. */
void hft_truth_fetch_at(const struct hft_etcd *etcd, const char *prefix, int64_t revision,
                        struct hft_truth *ret_truth);
void hft_truth_done(struct hft_truth *truth);

/* Copies an entry whose key is not there yet; `arg` is the struct hft_truth. Returns true: fit
 * for hf_mirror_each. */
bool hft_truth_add(const struct hf_kv *kv, void *arg);

/* For those who follow events: adds or replaces an entry, takes one away if it is there. */
void hft_truth_put(struct hft_truth *truth, const struct hf_kv *kv);
void hft_truth_remove(struct hft_truth *truth, struct hf_bytes key);

/* The entry, or NULL. */
const struct hf_kv *hft_truth_find(const struct hft_truth *truth, struct hf_bytes key);

/* What may differ. */
enum hft_truth_compare { HFT_TRUTH_ALL, HFT_TRUTH_WITHOUT_VALUES };

/* NULL when both are the same; else err->text, which names the first key that differs in value,
 * revisions, version or lease, or is in one of both only. Sorts `got`. */
const char *hft_truth_difference(const struct hft_truth *want, struct hft_truth *got,
                                 enum hft_truth_compare compare, struct hf_error *err);

/* Fails the test with that text. */
void hft_truth_assert_same(const struct hft_truth *want, struct hft_truth *got,
                           enum hft_truth_compare compare);

#define HFT_CLEANUP_TRUTH __attribute__((cleanup(hft_truth_done)))

#endif
