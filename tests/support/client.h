/* client.h - the etcd client as a test wants it: on a loop of its own, one step after another.
 *
 * The functions run the loop until the answer is there and fail the test unless it is what the
 * name says. Use the asynchronous calls of lib/etcd directly where the moment matters. */
#ifndef HFT_CLIENT_H
#define HFT_CLIENT_H

#include "io/backend_etcd.h"
#include "support/loop.h"

struct hft_client {
    struct hft_loop loop;
    struct hf_etcd *etcd;
    struct hf_backend_etcd *backend_etcd;
    struct hf_backend backend; /* over `etcd` */
};

/* Up to four endpoints, used in that order. A call that has no time of its own may take half a
 * minute: on a busy machine etcd may be late. */
void hft_client_open(struct hft_client *client, const char *endpoint, ...)
    __attribute__((sentinel));
/* The same with a whole configuration. */
void hft_client_open_with(struct hft_client *client, const struct hf_etcd_config *cfg);
void hft_client_close(struct hft_client *client);

/* Each returns the revision at which it happened. */
hf_rev hft_put(struct hft_client *client, const char *key, const char *value, int64_t lease);
hf_rev hft_delete(struct hft_client *client, const char *key);

/* A new lease with that TTL; returns its id. */
int64_t hft_grant(struct hft_client *client, int64_t ttl_s);
void hft_revoke(struct hft_client *client, int64_t lease);

/* What became of a call: an error code is a result here, not a failure of the test. */
struct hft_outcome {
    bool done;
    int err;
    bool maybe_applied;
    bool succeeded; /* of a txn */
    unsigned resent;
    int64_t count; /* of keys read */
    int64_t id;    /* of a lease that was granted */
    int64_t ttl_s; /* of a grant, or left */
    int64_t deleted;
    hf_ms sent_at;
    struct hf_etcd_header header;
    char message[256];
    char value[256]; /* of the first key read */
    hf_rev create_rev, mod_rev;
    int64_t version;
    int64_t lease;
};

/* Callbacks that fill it; `arg` is a struct hft_outcome. */
void hft_on_write(const struct hf_write_result *result, void *arg);
void hft_on_range(const struct hf_range_result *result, void *arg);
void hft_on_grant(const struct hf_grant_result *result, void *arg);
void hft_on_ttl(const struct hf_ttl_result *result, void *arg);
void hft_on_status(const struct hf_status_result *result, void *arg);
void hft_on_txn(const struct hf_txn_result *result, void *arg);

/* Runs the loop until the outcome is there. */
void hft_await(struct hft_client *client, struct hft_outcome *outcome, hf_ms timeout);

/* Started, awaited, told: a key as it is now, a txn (which is freed). */
struct hft_outcome hft_read(struct hft_client *client, const char *key);
struct hft_outcome hft_commit(struct hft_client *client, struct hf_txn *txn, bool resend);

/* The whole value of a key, or of all keys under a prefix, each with a newline behind it; empty
 * where there is none. To be freed. */
char *hft_read_values(struct hft_client *client, const char *key, bool prefix);

/* Reads until there is an answer: the first read after a fault may have to wait longer than its
 * time for the members to elect. */
struct hft_outcome hft_read_at_last(struct hft_client *client, const char *key);

/* Renewals of one lease, one after the other. */
struct hft_renewals {
    struct hf_renewer *renewer;
    unsigned count;
    struct hf_renewal last; /* its message is kept below */
    hf_ms ended_at;
    char message[256];
};

void hft_renewals_start(struct hft_client *client, struct hft_renewals *renewals,
                        int64_t lease);
void hft_renewals_stop(struct hft_renewals *renewals);

/* Sends one and waits for its end, whatever that is. */
struct hf_renewal hft_renew(struct hft_client *client, struct hft_renewals *renewals,
                            hf_ms timeout);

/* A mirror that records what it was told. */
struct hft_watcher {
    struct hf_mirror *mirror;
    unsigned puts, deletes, synced, resets, troubles;
    unsigned out_of_order; /* events older than one of the same key before them */
    hf_rev last_rev;
    hf_ms last_at; /* when the last put or delete was told */
    int last_trouble;
    char last_key[256]; /* of the last put or delete */
};

/* What a mirror that a test begins is told to do differently: unless the configuration says so,
 * a watch is given a minute to answer a probe, so that an etcd that is late on a busy machine
 * is not taken for a dead one. */
void hft_be_patient(struct hf_mirror_config *cfg);

/* Starts it on one prefix (or with a whole configuration, whose callbacks are replaced) and
 * waits until it is synced. */
void hft_watcher_start(struct hft_client *client, struct hft_watcher *watcher,
                       const char *prefix);
void hft_watcher_start_with(struct hft_client *client, struct hft_watcher *watcher,
                            const struct hf_mirror_config *cfg);
/* The same without waiting. */
void hft_watcher_begin(struct hft_client *client, struct hft_watcher *watcher,
                       const struct hf_mirror_config *cfg);
void hft_watcher_stop(struct hft_watcher *watcher);

/* Conditions for hft_loop_until. */
struct hft_at_least {
    const unsigned *counter;
    unsigned count;
};
bool hft_counted(void *at_least);

/* Runs the loop until the counter has reached `count`. */
void hft_client_until(struct hft_client *client, const unsigned *counter, unsigned count,
                      hf_ms timeout, const char *what);

#endif
