/* auth.h - the token of a client with a user name: logs in when needed, not more often.
 *
 * Tokens of etcd die of disuse, of a restart and of any change to users. Nothing of that is
 * fatal: whoever is told that the token is no good says so here, waits, and asks again. Logging
 * in costs etcd 150 ms of bcrypt, so it is done at most every five seconds. Internal to
 * lib/etcd. */
#ifndef HF_ETCD_AUTH_H
#define HF_ETCD_AUTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "etcd/timer.h"

struct hf_etcd;
struct hf_auth_waiter;

typedef void (*hf_auth_fn)(struct hf_auth_waiter *waiter, int err, const char *message);

/* Lives inside whoever waits. */
struct hf_auth_waiter {
    hf_auth_fn fn;
    struct hf_auth_waiter *next;
    bool waiting;
};

struct hf_auth {
    char *user; /* NULL: no authentication */
    char *password_file;
    char *token; /* NULL: none; "": the server wants none */
    uint64_t generation;
    struct hf_call *login;
    bool tried;
    hf_ms last_login;
    struct hf_timer timer;
    struct hf_auth_waiter *waiters;
    struct hf_auth_waiter *telling; /* those who are being told just now */
};

int hf_auth_init(struct hf_auth *auth, const char *user, const char *password_file,
                 struct hf_error *err) HF_MUST_CHECK;
void hf_auth_done(struct hf_auth *auth);

/* True when requests can go out now; *ret_token is borrowed, NULL when none is to be sent. */
bool hf_auth_ready(const struct hf_etcd *etcd, const char **ret_token,
                   uint64_t *ret_generation);

/* Calls waiter->fn, never at once, when there is a token or logging in has failed. */
void hf_auth_wait(struct hf_etcd *etcd, struct hf_auth_waiter *waiter);
void hf_auth_cancel(struct hf_etcd *etcd, struct hf_auth_waiter *waiter);

/* The token of that generation was refused. */
void hf_auth_refused(struct hf_etcd *etcd, uint64_t generation);

#endif
