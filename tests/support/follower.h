/* follower.h - a consumer of a mirror that trusts it in nothing.
 *
 * It rebuilds the content from what it is told, and fails the test as soon as something is told
 * that the header of mirror.h rules out: an event older than one of its key before, events of
 * the watch out of order, one that skips a version of its key, a deletion of what is not there,
 * anything after the end. */
#ifndef HFT_FOLLOWER_H
#define HFT_FOLLOWER_H

#include "support/client.h"
#include "support/etcd.h"

#define HFT_FOLLOWER_RANGES 4

struct hft_follower {
    struct hft_client *client;
    struct hf_mirror *mirror; /* NULL after the stop */
    void *keys;               /* tree of what was told of each key */
    size_t count;             /* keys that are there */
    char prefix[HFT_FOLLOWER_RANGES][64];
    size_t range_count;
    hf_rev last_rev[HFT_FOLLOWER_RANGES]; /* of the watch's events */

    unsigned events; /* puts and deletes */
    unsigned puts, deletes;
    unsigned synthesised; /* of them */
    unsigned synced, resets, troubles;
    unsigned denied;  /* troubles that were HF_EDENIED */
    unsigned mishaps; /* troubles that were for want of a connection or an answer in time */
    int last_trouble;
    hf_rev synced_rev;
    hf_ms last_at;   /* when the last put or delete came */
    hf_ms silence;   /* longest time between two of them since the mark */
    hf_ms reset_at;  /* of the last reset */
    hf_mirror_fn on; /* also called with every event, with `arg` of the follower; may be NULL */
    void *arg;
};

/* Follows one prefix with the defaults (but see hft_be_patient); or as configured, whose
 * prefixes must be texts and whose callbacks are replaced. Values are kept. Does not wait. */
void hft_follower_start(struct hft_client *client, struct hft_follower *follower,
                        const char *prefix);
void hft_follower_start_with(struct hft_client *client, struct hft_follower *follower,
                             const struct hf_mirror_config *cfg);
void hft_follower_stop(struct hft_follower *follower);

/* Runs the loop until it was synced `count` times. */
void hft_follower_until_synced(struct hft_follower *follower, unsigned count, hf_ms timeout);

/* The mirror had no reason to fail, list or open its watch again, and did not: but for what a
 * connection that broke explains, which a busy machine may bring about. */
void hft_follower_assert_undisturbed(const struct hft_follower *follower);

/* Measures the silence from now on. */
void hft_follower_mark(struct hft_follower *follower);

/* Puts one more key under each prefix through etcdctl and runs the loop until that has arrived
 * and both the mirror's copy and what was told are what etcdctl says; fails the test with the
 * difference otherwise. Nobody else may write meanwhile. */
void hft_follower_settle(struct hft_follower *follower, const struct hft_etcd *etcd,
                         hf_ms timeout);

#endif
