/* candidate.h - one of several that want to lead: core/election decides, the backend does.
 *
 * Holds a lease of its own, follows the key with a mirror, campaigns when nobody has it, steps
 * down by its own clock. Its owner hears of every change and asks hf_candidate_can_act before
 * every effect; each of its txns compares the key all the same. */
#ifndef HF_IO_CANDIDATE_H
#define HF_IO_CANDIDATE_H

#include "core/election.h"
#include "io/session.h"

struct hf_candidate;

struct hf_candidate_view {
    enum hf_election_state state;
    hf_rev term;   /* create revision of our key; 0 when it is not ours */
    int64_t lease; /* ours; 0: none */
};

struct hf_candidate_config {
    const char *key;
    struct hf_bytes value; /* what the key says of us */

    /* Instead of `value`, asked for with each campaign: it may say since when. May be NULL. */
    struct hf_bytes (*get_value)(void *arg);
    struct hf_lease_policy lease;
    struct hf_election_policy election;

    /* The view changed. Must not close the candidate. */
    void (*on_change)(const struct hf_candidate_view *view, void *arg);
    /* A failed attempt, for the log. May be NULL. */
    void (*on_trouble)(const char *what, int err, const char *message, void *arg);
    void *arg;
};

/* Stands at once. HF_EINVAL with a sentence when a policy contradicts itself. */
int hf_candidate_new(const struct hf_backend *backend, const struct hf_candidate_config *cfg,
                     struct hf_candidate **ret_candidate, struct hf_error *err) HF_MUST_CHECK;

typedef void (*hf_candidate_closed_fn)(void *arg);

/* Gives the key back, so that another can lead at once, then ends; `fn` (may be NULL) is the
 * last callback, and may come before this returns. Takes a few seconds at most when etcd does
 * not answer. */
void hf_candidate_close(struct hf_candidate *candidate, hf_candidate_closed_fn fn, void *arg);

struct hf_candidate_view hf_candidate_get_view(const struct hf_candidate *candidate);

/* True only as leader with a proven lease at this very moment. */
bool hf_candidate_can_act(const struct hf_candidate *candidate);

/* Leading or not, its lease is proven at this very moment: etcd answers. */
bool hf_candidate_is_proven(const struct hf_candidate *candidate);

/* etcd was restored from a backup. */
void hf_candidate_on_history_reset(struct hf_candidate *candidate);

/* Any other answer of etcd: it teaches terms and revisions. */
void hf_candidate_on_header(struct hf_candidate *candidate,
                            const struct hf_etcd_header *header);

#endif
