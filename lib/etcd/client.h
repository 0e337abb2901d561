/* client.h - an asynchronous etcd v3 client on a libuv loop: connections, credentials, life.
 *
 * Everything runs on the loop's thread: every function is called there and every callback comes
 * there. No call blocks, except hf_etcd_new (it reads the credential files) and the last step
 * of hf_etcd_close (a few milliseconds). A callback never runs inside the function that it was
 * given to. The other headers say what can be asked: kv.h, txn.h, lease.h, mirror.h, survey.h.
 *
 * One endpoint is used at a time. When it fails, or does not answer within the client's own
 * deadlines, the next one is used; nothing waits for TCP to notice. */
#ifndef HF_ETCD_CLIENT_H
#define HF_ETCD_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "etcd/result.h"

/* Credential files differ from those in use: HF_OK, the new ones are used for every connection
 * from now on; else why not, and the old ones stay in use. */
typedef void (*hf_etcd_renewed_fn)(int err, const char *message, void *arg);

/* Zero means the default for every member but endpoints. Strings are copied. */
struct hf_etcd_config {
    const char *const
        *endpoints; /* "http://10.0.0.1:2379", "https://[::1]:2379", "etcd:2379" */
    size_t endpoint_count;
    bool keep_order; /* begin with the first; otherwise a random one, so that a fleet spreads */

    /* Ask the cluster, too, where its members are, and use those behind the ones above: URLs of
     * the same scheme, 64 endpoints in all. */
    bool discover;
    hf_ms discover_every; /* 60 s, +- 20 % */

    const char *cacert;      /* PEM file; NULL: the system's roots */
    const char *cert;        /* PEM file of the client certificate, with `key` */
    const char *key;         /* PEM file */
    const char *server_name; /* name to expect in the server's certificate, if not the host */
    hf_ms tls_poll;          /* how often renewed files are looked for; default 30 s */

    /* Tells of what was found then, a failure once, when it lasts: files may be half written.
     * It must not close the client. */
    hf_etcd_renewed_fn on_renewed;
    void *renewed_arg;

    const char *user;          /* NULL: no authentication */
    const char *password_file; /* one line; read anew at each log-in */

    hf_ms timeout;         /* for a call that names none; default 5 s */
    hf_ms attempt_timeout; /* of one attempt, where there may be another; default 2 s */

    /* Own connections for leases, watches and everything else, so that none delays another
     * (for a controller); otherwise they share one (for the many small clients). Lists of a
     * mirror always have one of their own while they run. */
    bool separate_channels;

    struct hf_clock clock; /* for tests; default hf_clock_boottime() */
};

/* HF_EINVAL or HF_ENOENT with a sentence in *err: bad endpoints, unreadable or unfit files.
 * Does not connect yet. */
int hf_etcd_new(uv_loop_t *loop, const struct hf_etcd_config *cfg, struct hf_etcd **ret_etcd,
                struct hf_error *err) HF_MUST_CHECK;

typedef void (*hf_etcd_closed_fn)(void *arg);

/* Cancels what is under way (each callback comes with HF_ECANCELED), then frees everything and
 * calls `fn`, which may be NULL. Mirrors and renewers must have been closed before. */
void hf_etcd_close(struct hf_etcd *etcd, hf_etcd_closed_fn fn, void *arg);

/* Looks now whether the credential files changed; every connection that is made from then on
 * has the new ones. Streams stay on theirs until it ends: no lease and no event is lost. On
 * failure the old files stay in use. */
int hf_etcd_reload_tls(struct hf_etcd *etcd, struct hf_error *err) HF_MUST_CHECK;

/* When the client's own certificate ends, in seconds of the wall clock; 0: there is none. */
int64_t hf_etcd_get_certificate_end(const struct hf_etcd *etcd);

/* Counters since the start, for metrics. */
struct hf_etcd_stats {
    uint64_t calls;        /* unary attempts */
    uint64_t failures;     /* attempts that failed for want of a server */
    uint64_t retries;      /* attempts after the first */
    uint64_t budget_spent; /* retries that the budget refused */
    uint64_t rotations;    /* times that an endpoint was given up for the next */
    uint64_t logins;       /* tried, with success or not */
    uint64_t tls_reloads;
    uint64_t endpoints; /* not counted: how many there are now, configured and discovered */
};

struct hf_etcd_stats hf_etcd_get_stats(const struct hf_etcd *etcd);

/* Writes "host:port" of the endpoint that unary calls use now. */
void hf_etcd_get_endpoint(const struct hf_etcd *etcd, char *out, size_t size);

/* The clock that all times of this client are read from. */
const struct hf_clock *hf_etcd_get_clock(const struct hf_etcd *etcd);

#endif
