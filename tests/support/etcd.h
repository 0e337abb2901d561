/* etcd.h - a real etcd of the test's own: Debian's program as a child on free loopback ports.
 *
 * It dies with the test, its data lives in a scratch directory, and it is only used once the
 * listener on its port is known to be this very child. Ports and data survive stop, kill and
 * restart. Start it inside the test, not in main: Check runs every test in its own process. */
#ifndef HFT_ETCD_H
#define HFT_ETCD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "support/port.h"
#include "support/tempdir.h"

/* Files for TLS; with a client certificate here etcd demands one from every client. */
struct hft_etcd_tls {
    const char *ca;
    const char *cert;
    const char *key;
    const char *client_cert; /* what etcdctl shows; NULL: clients need none */
    const char *client_key;
};

/* Zero or NULL means etcd's own default. What it points at is borrowed until hft_etcd_done. */
struct hft_etcd_options {
    const char *name;     /* "m0" when NULL */
    bool no_fsync;        /* quicker; for tests which do not pull the plug */
    int64_t quota_bytes;  /* --quota-backend-bytes */
    int auth_token_ttl_s; /* --auth-token-ttl */
    int heartbeat_ms;     /* --heartbeat-interval */
    int election_ms;      /* --election-timeout */
    const struct hft_etcd_tls *tls;
    const char *const *extra_flags; /* NULL-terminated, put last */
};

#define HFT_ENDPOINT_MAX 64

/* Read the fields as you like; change them only through the functions. */
struct hft_etcd {
    struct hft_etcd_options options;
    struct hft_tempdir dir;
    char data_dir[HFT_PATH_MAX + 16];
    char log_file[HFT_PATH_MAX + 16];
    struct hft_port client;
    struct hft_port peer;
    struct hft_port metrics;         /* plain HTTP even with TLS: /metrics, /health */
    char endpoint[HFT_ENDPOINT_MAX]; /* http(s)://127.0.0.1:port for clients */
    char peer_url[HFT_ENDPOINT_MAX]; /* that the others know: its own, or a proxy's */
    char initial_cluster[4 * HFT_ENDPOINT_MAX];
    char user[64]; /* "name:password" for etcdctl, once authentication is on; else empty */
    pid_t pid;     /* 0 while it does not run */
    bool paused;
};

/* Starts a single member and waits until it serves clients. */
void hft_etcd_start(struct hft_etcd *etcd, const struct hft_etcd_options *options);

/* Ends it, whatever its state, and removes its data. */
void hft_etcd_done(struct hft_etcd *etcd);

/* SIGTERM and SIGKILL; both return when the process is gone. */
void hft_etcd_stop(struct hft_etcd *etcd);
void hft_etcd_kill(struct hft_etcd *etcd);

/* SIGSTOP and SIGCONT: half-open, connections stay and nothing answers. */
void hft_etcd_pause(struct hft_etcd *etcd);
void hft_etcd_resume(struct hft_etcd *etcd);

/* Starts a stopped or killed one again, on the same ports and data, and waits for it. */
void hft_etcd_restart(struct hft_etcd *etcd);

/* The steps of hft_etcd_start, for clusters, where nobody is ready alone. `init` takes ports
 * and a directory; `run` starts the process. `wait_ready` fails the test after 30 s, and
 * returns false when the process ended because a port was taken meanwhile: try again with
 * others. */
void hft_etcd_init(struct hft_etcd *etcd, const struct hft_etcd_options *options);
void hft_etcd_run(struct hft_etcd *etcd);
bool hft_etcd_wait_ready(struct hft_etcd *etcd);

/* Runs `etcdctl <arguments ..., NULL>` against this member and returns its exit status; its
 * standard output goes to *ret_output (free it; may be NULL). */
int hft_etcdctl(const struct hft_etcd *etcd, char **ret_output, ...) __attribute__((sentinel));

/* The same; fails the test, with what etcdctl said, unless it exits with 0. */
void hft_etcdctl_ok(const struct hft_etcd *etcd, char **ret_output, ...)
    __attribute__((sentinel));

/* The value of a series of /metrics (name and labels exactly as printed there), or `otherwise`
 * when it is not there or the member does not answer. */
double hft_etcd_metric(const struct hft_etcd *etcd, const char *series, double otherwise);

/* The store's revision as this member has applied it. */
int64_t hft_etcd_revision(const struct hft_etcd *etcd);

#endif
