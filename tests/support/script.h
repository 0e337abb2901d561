/* script.h - a backend without an etcd: time and answers are what a test says they are.
 *
 * Grants, renewals, revocations, what concerns `leader_key` and looks whether keys are still
 * there are answered by themselves, unless the test says otherwise. Every other request
 * waits until the test answers it. Nothing here asserts by Check while it works, so that
 * allocations may fail; a request without memory fails as a real one would. */
#ifndef HFT_SCRIPT_H
#define HFT_SCRIPT_H

#include "io/backend.h"

/* What was asked and is still open. */
struct hf_call {
    struct hft_script *script;
    struct hf_call *next;
    enum { HFT_CALL_TXN, HFT_CALL_RANGE, HFT_CALL_GRANT, HFT_CALL_REVOKE, HFT_CALL_TTL } kind;
    union {
        hf_txn_fn txn;
        hf_range_fn range;
        hf_grant_fn grant;
        hf_write_fn write;
        hf_ttl_fn ttl;
    } fn;
    void *arg;
    hf_ms sent_at;
    int64_t lease, ttl_s;
    char key[160]; /* first that a txn writes, or that is read; "lease" of what hangs on one */
    size_t guards, writes;
    bool by_itself; /* answered by the script */
};

struct hf_list {
    struct hft_script *script;
    struct hf_list *next;
    hf_range_fn fn;
    void *arg;
    char prefix[160];
};

struct hf_renewer {
    struct hft_script *script;
    struct hf_renewer *next;
    int64_t lease;
    hf_renewal_fn fn;
    void *arg;
    bool under_way;
    hf_ms sent_at;
};

struct hf_mirror {
    struct hft_script *script;
    struct hf_mirror *next;
    struct hf_mirror_config cfg;
    char first[160]; /* of its ranges */
};

struct hf_survey {
    struct hft_script *script;
    hf_survey_fn fn;
    void *arg;
};

/* Zero-initialise; the test may change whatever comes before `alarms`. */
struct hft_script {
    hf_ms now;
    hf_rev revision;
    const char *leader_key;
    bool silent; /* leases are not answered */
    bool refute; /* looks fail: a key is gone */
    bool survey_agrees, survey_corrupt;
    int survey_err;    /* HF_OK: it is answered */
    const char *words; /* of what fails; NULL: our own */

    struct hf_alarms alarms;
    uint64_t random;
    struct hf_call *calls; /* oldest first */
    struct hf_list *lists;
    struct hf_renewer *renewers;
    struct hf_mirror *mirrors;
    struct hf_survey *survey;
    struct hf_kv leader; /* as the campaign left it; create_rev 0: not there */
    unsigned mirrors_opened, looks, revoked;
    hf_rev told_rev;            /* of the last write that a mirror was told of, */
    char told_key[HF_KEY_SIZE]; /* and its key */
};

struct hf_backend hft_script_backend(struct hft_script *script);

/* True when nothing is left open. */
bool hft_script_is_clean(const struct hft_script *script);

/* Answers what is answered by itself and rings what is due, until nothing is left to do now;
 * then lets time pass, in the steps of the alarms, until `until`. */
void hft_script_run(struct hft_script *script, hf_ms until);

/* The open txn, or read, whose first key ends so; NULL. */
struct hf_call *hft_script_find(const struct hft_script *script, const char *end);
/* How many that the test has to answer are open. */
size_t hft_script_count(const struct hft_script *script);

/* Ends a txn: done or refused at the next revision (`kv`, if given, is what it finds then), or
 * failed. `resent`: a copy of it may have arrived before. */
void hft_script_answer_txn(struct hf_call *call, bool succeeded, unsigned resent,
                           const struct hf_kv *kv);
void hft_script_fail_txn(struct hf_call *call, int err, bool maybe_applied);

void hft_script_answer_range(struct hf_call *call, int err, const struct hf_kv *kvs,
                             size_t count);
/* What hangs on a lease. */
void hft_script_answer_ttl(struct hf_call *call, int err, const struct hf_bytes *keys,
                           size_t count);
/* One page of a list; with more to come it stays open. */
void hft_script_answer_list(struct hf_list *list, int err, const struct hf_kv *kvs,
                            size_t count, bool more);

/* The mirror of the runner, or of a candidate: whose first range begins so. NULL. */
struct hf_mirror *hft_script_mirror(const struct hft_script *script, const char *first);

/* A put (value not NULL) or a deletion at the next revision. */
void hft_script_tell(struct hf_mirror *mirror, const char *key, const char *value);
void hft_script_sync(struct hf_mirror *mirror);
void hft_script_reset(struct hf_mirror *mirror);

#endif
