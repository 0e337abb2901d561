#include "etcd/auth.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "etcd/call.h"
#include "etcd/internal.h"
#include "etcd/rpc.pb-c.h"

enum { LOGIN_EVERY_MS = 5000, LARGEST_PASSWORD = 4096 };

static struct hf_etcd *client_of(struct hf_timer *timer)
{
    return (struct hf_etcd *)((char *)timer - offsetof(struct hf_etcd, auth.timer));
}

static void tell_all(struct hf_etcd *etcd, int err, const char *message)
{
    struct hf_auth *auth = &etcd->auth;

    /* A waiter that is told may wait again (that is for the next round) or cancel others. */
    auth->telling = auth->waiters;
    auth->waiters = NULL;
    while (auth->telling != NULL) {
        struct hf_auth_waiter *waiter = auth->telling;

        auth->telling = waiter->next;
        waiter->waiting = false;
        waiter->fn(waiter, err, message);
    }
}

static void on_login(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    struct hf_auth *auth = &etcd->auth;
    Etcdserverpb__AuthenticateResponse *answer = NULL;
    const char *token = NULL;

    auth->login = NULL;
    if (outcome->result.err == HF_OK)
        answer = hf_call_unpack(etcd, &etcdserverpb__authenticate_response__descriptor,
                                outcome->body, &outcome->result);
    if (answer != NULL)
        token = answer->token;
    else if (strstr(outcome->result.message, "authentication is not enabled") != NULL)
        token = "";

    if (token == NULL) {
        tell_all(etcd, outcome->result.err, outcome->result.message);
        return;
    }
    free(auth->token);
    auth->token = hf_strdup(token);
    auth->generation++;
    tell_all(etcd, auth->token != NULL ? HF_OK : HF_ENOMEM, hf_err_text(HF_ENOMEM));
}

static int read_password(const struct hf_auth *auth, char **ret_password, struct hf_error *err)
{
    int code = hf_file_read(auth->password_file, LARGEST_PASSWORD, ret_password, err);

    if (code == HF_OK)
        (*ret_password)[strcspn(*ret_password, "\r\n")] = '\0';
    return code;
}

static void log_in(struct hf_timer *timer)
{
    struct hf_etcd *etcd = client_of(timer);
    struct hf_auth *auth = &etcd->auth;
    Etcdserverpb__AuthenticateRequest request = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;
    HF_CLEANUP_FREE char *password = NULL;
    struct hf_error err;
    int code = read_password(auth, &password, &err);

    if (code == HF_OK) {
        request.name = auth->user;
        request.password = password;
        code = hf_call_start(etcd,
                             &(struct hf_call_spec){
                                 .method = "/etcdserverpb.Auth/Authenticate",
                                 .request = &request.base,
                                 .lane = HF_LANE_UNARY,
                                 .repeatable = true,
                                 .without_token = true,
                                 .decode = on_login,
                             },
                             &auth->login);
        (void)hf_error_set(&err, code, "%s", hf_err_text(code));
        explicit_bzero(password, strlen(password));
    }
    auth->tried = true;
    auth->last_login = hf_etcd_now(etcd);
    if (code == HF_OK)
        etcd->stats.logins++;
    else
        tell_all(etcd, code, err.text);
}

int hf_auth_init(struct hf_auth *auth, const char *user, const char *password_file,
                 struct hf_error *err)
{
    HF_CLEANUP_FREE char *password = NULL;
    int code;

    *auth = (struct hf_auth){ .timer = { .fn = log_in } };
    if (user == NULL && password_file == NULL)
        return HF_OK;
    if (user == NULL || password_file == NULL)
        return hf_error_set(err, HF_EINVAL,
                            "a user needs a password file, and a password file its user");
    auth->user = hf_strdup(user);
    auth->password_file = hf_strdup(password_file);
    if (auth->user == NULL || auth->password_file == NULL)
        code = hf_error_set(err, HF_ENOMEM, "out of memory");
    else
        code = read_password(auth, &password, err);
    if (code != HF_OK)
        hf_auth_done(auth);
    return code;
}

void hf_auth_done(struct hf_auth *auth)
{
    free(auth->user);
    free(auth->password_file);
    free(auth->token);
    *auth = (struct hf_auth){ 0 };
}

bool hf_auth_ready(const struct hf_etcd *etcd, const char **ret_token, uint64_t *ret_generation)
{
    const struct hf_auth *auth = &etcd->auth;

    if (auth->user != NULL && auth->token == NULL)
        return false;
    *ret_token = auth->user != NULL && auth->token[0] != '\0' ? auth->token : NULL;
    *ret_generation = auth->generation;
    return true;
}

void hf_auth_wait(struct hf_etcd *etcd, struct hf_auth_waiter *waiter)
{
    struct hf_auth *auth = &etcd->auth;
    hf_ms at = auth->tried ? auth->last_login + LOGIN_EVERY_MS : 0;

    waiter->waiting = true;
    waiter->next = auth->waiters;
    auth->waiters = waiter;
    if (auth->login != NULL || hf_timer_is_armed(&auth->timer))
        return;
    hf_timer_start(&etcd->timers, &auth->timer, at);
}

static bool unlink_from(struct hf_auth_waiter **list, const struct hf_auth_waiter *waiter)
{
    for (; *list != NULL; list = &(*list)->next) {
        if (*list == waiter) {
            *list = waiter->next;
            return true;
        }
    }
    return false;
}

void hf_auth_cancel(struct hf_etcd *etcd, struct hf_auth_waiter *waiter)
{
    if (!waiter->waiting)
        return;
    if (!unlink_from(&etcd->auth.waiters, waiter))
        (void)unlink_from(&etcd->auth.telling, waiter);
    waiter->waiting = false;
}

void hf_auth_refused(struct hf_etcd *etcd, uint64_t generation)
{
    struct hf_auth *auth = &etcd->auth;

    if (auth->user == NULL || auth->generation != generation)
        return;
    free(auth->token);
    auth->token = NULL;
}
