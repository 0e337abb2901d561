#include "support/client.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/id.h"

enum { MOST_ENDPOINTS = 4, STEP_MS = 30000, PROBE_MS = 60000 };

void hft_client_open_with(struct hft_client *client, const struct hf_etcd_config *cfg)
{
    struct hf_error err = { "" };

    hft_loop_init(&client->loop);
    ck_assert_msg(hf_etcd_new(&client->loop.uv, cfg, &client->etcd, &err) == HF_OK,
                  "the client does not start: %s", err.text);
    ck_assert_int_eq(hf_backend_etcd_new(&client->loop.uv, client->etcd, &client->backend_etcd),
                     HF_OK);
    client->backend = hf_backend_etcd_get(client->backend_etcd);
}

void hft_client_open(struct hft_client *client, const char *endpoint, ...)
{
    const char *endpoints[MOST_ENDPOINTS];
    size_t count = 0;
    va_list args;

    va_start(args, endpoint);
    for (; endpoint != NULL; endpoint = va_arg(args, const char *)) {
        ck_assert_uint_lt(count, MOST_ENDPOINTS);
        endpoints[count++] = endpoint;
    }
    va_end(args);
    hft_client_open_with(client, &(struct hf_etcd_config){ .endpoints = endpoints,
                                                           .endpoint_count = count,
                                                           .keep_order = true,
                                                           .timeout = STEP_MS });
}

static void on_closed(void *arg)
{
    ++*(unsigned *)arg;
}

void hft_client_close(struct hft_client *client)
{
    unsigned closed = 0;

    hf_backend_etcd_close(client->backend_etcd, on_closed, &closed);
    hf_etcd_close(client->etcd, on_closed, &closed);
    hft_client_until(client, &closed, 2, STEP_MS, "the client to close");
    hft_loop_done(&client->loop);
}

bool hft_counted(void *at_least)
{
    const struct hft_at_least *wanted = at_least;

    return *wanted->counter >= wanted->count;
}

void hft_client_until(struct hft_client *client, const unsigned *counter, unsigned count,
                      hf_ms timeout, const char *what)
{
    struct hft_at_least wanted = { .counter = counter, .count = count };

    hft_loop_until(&client->loop, hft_counted, &wanted, timeout, what);
}

static bool is_done(void *outcome)
{
    return ((struct hft_outcome *)outcome)->done;
}

void hft_await(struct hft_client *client, struct hft_outcome *outcome, hf_ms timeout)
{
    hft_loop_until(&client->loop, is_done, outcome, timeout, "etcd's answer");
}

static void fill(struct hft_outcome *outcome, const struct hf_etcd_result *result)
{
    ck_assert_msg(!outcome->done, "a callback came twice");
    outcome->done = true;
    outcome->err = result->err;
    outcome->maybe_applied = result->maybe_applied;
    outcome->resent = result->resent;
    outcome->sent_at = result->sent_at;
    outcome->header = result->header;
    (void)snprintf(outcome->message, sizeof outcome->message, "%s", result->message);
}

static void fill_kv(struct hft_outcome *outcome, const struct hf_kv *kvs, size_t count)
{
    outcome->count = (int64_t)count;
    if (count == 0)
        return;
    (void)snprintf(outcome->value, sizeof outcome->value, "%.*s", (int)kvs->value.len,
                   (const char *)kvs->value.data);
    outcome->create_rev = kvs->create_rev;
    outcome->mod_rev = kvs->mod_rev;
    outcome->version = kvs->version;
    outcome->lease = kvs->lease;
}

void hft_on_write(const struct hf_write_result *result, void *arg)
{
    fill(arg, &result->result);
    ((struct hft_outcome *)arg)->deleted = result->deleted;
}

void hft_on_range(const struct hf_range_result *result, void *arg)
{
    fill(arg, &result->result);
    fill_kv(arg, result->kvs, result->count);
}

void hft_on_grant(const struct hf_grant_result *result, void *arg)
{
    fill(arg, &result->result);
    ((struct hft_outcome *)arg)->id = result->id;
    ((struct hft_outcome *)arg)->ttl_s = result->ttl_s;
}

void hft_on_ttl(const struct hf_ttl_result *result, void *arg)
{
    fill(arg, &result->result);
    ((struct hft_outcome *)arg)->ttl_s = result->ttl_s;
    ((struct hft_outcome *)arg)->count = (int64_t)result->key_count;
}

void hft_on_status(const struct hf_status_result *result, void *arg)
{
    struct hft_outcome *outcome = arg;

    fill(outcome, &result->result);
    outcome->count = (int64_t)result->alarm_count;
    if (result->alarm_count > 0)
        (void)snprintf(outcome->value, sizeof outcome->value, "%s", result->alarms[0]);
}

void hft_on_txn(const struct hf_txn_result *result, void *arg)
{
    struct hft_outcome *outcome = arg;

    fill(outcome, &result->result);
    outcome->succeeded = result->succeeded;
    for (size_t i = 0; i < result->answer_count; i++) {
        if (result->answers[i].count > 0)
            fill_kv(outcome, result->answers[i].kvs, result->answers[i].count);
    }
}

static void expect_ok(struct hft_client *client, struct hft_outcome *outcome, int started)
{
    ck_assert_int_eq(started, HF_OK);
    hft_await(client, outcome, STEP_MS);
    ck_assert_msg(outcome->err == HF_OK, "%s: %s", hf_err_name(outcome->err), outcome->message);
}

hf_rev hft_put(struct hft_client *client, const char *key, const char *value, int64_t lease)
{
    struct hft_outcome outcome = { 0 };

    expect_ok(client, &outcome,
              hf_etcd_put(client->etcd, hf_bytes_of(key), hf_bytes_of(value), lease,
                          hft_on_write, &outcome, NULL));
    return outcome.header.revision;
}

hf_rev hft_delete(struct hft_client *client, const char *key)
{
    struct hft_outcome outcome = { 0 };

    expect_ok(client, &outcome,
              hf_etcd_delete(client->etcd, (struct hf_key_range){ .key = hf_bytes_of(key) },
                             hft_on_write, &outcome, NULL));
    return outcome.header.revision;
}

int64_t hft_grant(struct hft_client *client, int64_t ttl_s)
{
    struct hft_outcome outcome = { 0 };
    int64_t id;

    ck_assert_int_eq(hf_id_random_63(&id), HF_OK);
    expect_ok(client, &outcome,
              hf_etcd_lease_grant(client->etcd, id, ttl_s, 0, hft_on_grant, &outcome, NULL));
    ck_assert_int_ge(outcome.ttl_s, ttl_s);
    return id;
}

void hft_revoke(struct hft_client *client, int64_t lease)
{
    struct hft_outcome outcome = { 0 };

    expect_ok(client, &outcome,
              hf_etcd_lease_revoke(client->etcd, lease, hft_on_write, &outcome, NULL));
}

struct hft_outcome hft_read(struct hft_client *client, const char *key)
{
    struct hf_range_request request = { .range.key = hf_bytes_of(key) };
    struct hft_outcome outcome = { 0 };

    ck_assert_int_eq(hf_etcd_range(client->etcd, &request, hft_on_range, &outcome, NULL),
                     HF_OK);
    hft_await(client, &outcome, STEP_MS);
    return outcome;
}

struct values {
    bool done;
    int err;
    char *text; /* all of them, one after the other */
    size_t len;
};

static void on_values(const struct hf_range_result *result, void *arg)
{
    struct values *values = arg;

    values->done = true;
    values->err = result->result.err;
    for (size_t i = 0; i < result->count; i++) {
        struct hf_bytes value = result->kvs[i].value;
        char *longer = realloc(values->text, values->len + value.len + 2);

        ck_assert_ptr_nonnull(longer);
        memcpy(longer + values->len, value.data, value.len);
        values->text = longer;
        values->len += value.len;
        values->text[values->len++] = '\n';
        values->text[values->len] = '\0';
    }
}

static bool are_there(void *arg)
{
    return ((struct values *)arg)->done;
}

char *hft_read_values(struct hft_client *client, const char *key, bool prefix)
{
    struct hf_range_request request = { .range = { .key = hf_bytes_of(key),
                                                   .prefix = prefix } };
    struct values values = { 0 };

    ck_assert_int_eq(hf_etcd_range(client->etcd, &request, on_values, &values, NULL), HF_OK);
    hft_loop_until(&client->loop, are_there, &values, STEP_MS, key);
    ck_assert_msg(values.err == HF_OK, "%s: %s", key, hf_err_text(values.err));
    if (values.text == NULL)
        values.text = calloc(1, 1);
    ck_assert_ptr_nonnull(values.text);
    return values.text;
}

struct hft_outcome hft_read_at_last(struct hft_client *client, const char *key)
{
    hf_ms deadline = hft_now() + hft_patience(STEP_MS);
    struct hft_outcome outcome = hft_read(client, key);

    while (outcome.err != HF_OK) {
        ck_assert_msg(outcome.err == HF_EAGAIN || outcome.err == HF_ETIMEOUT, "%s: %s",
                      hf_err_name(outcome.err), outcome.message);
        ck_assert_msg(hft_now() < deadline, "no answer at all: %s", outcome.message);
        outcome = hft_read(client, key);
    }
    return outcome;
}

struct hft_outcome hft_commit(struct hft_client *client, struct hf_txn *txn, bool resend)
{
    struct hf_txn_options options = { .resend = resend };
    struct hft_outcome outcome = { 0 };

    ck_assert_int_eq(hf_txn_commit(client->etcd, txn, &options, hft_on_txn, &outcome, NULL),
                     HF_OK);
    hf_txn_free(txn);
    hft_await(client, &outcome, STEP_MS);
    return outcome;
}

static void on_renewal(const struct hf_renewal *renewal, void *arg)
{
    struct hft_renewals *renewals = arg;

    renewals->count++;
    renewals->last = *renewal;
    renewals->ended_at = hft_now();
    (void)snprintf(renewals->message, sizeof renewals->message, "%s", renewal->message);
    renewals->last.message = renewals->message;
}

void hft_renewals_start(struct hft_client *client, struct hft_renewals *renewals, int64_t lease)
{
    *renewals = (struct hft_renewals){ 0 };
    ck_assert_int_eq(
        hf_renewer_new(client->etcd, lease, on_renewal, renewals, &renewals->renewer), HF_OK);
}

void hft_renewals_stop(struct hft_renewals *renewals)
{
    hf_renewer_close(renewals->renewer);
    renewals->renewer = NULL;
}

struct hf_renewal hft_renew(struct hft_client *client, struct hft_renewals *renewals,
                            hf_ms timeout)
{
    unsigned before = renewals->count;

    ck_assert_int_eq(hf_renewer_send(renewals->renewer, timeout), HF_OK);
    hft_client_until(client, &renewals->count, before + 1, timeout + STEP_MS,
                     "the renewal to end");
    return renewals->last;
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    struct hft_watcher *watcher = arg;

    switch (event->kind) {
    case HF_MIRROR_SYNCED: watcher->synced++; return;
    case HF_MIRROR_RESET:
        watcher->resets++;
        watcher->last_rev = 0;
        return;
    case HF_MIRROR_PUT: watcher->puts++; break;
    case HF_MIRROR_DELETE: watcher->deletes++; break;
    }
    if (!event->synthesised && event->revision < watcher->last_rev)
        watcher->out_of_order++;
    watcher->last_rev = event->revision;
    watcher->last_at = hft_now();
    (void)snprintf(watcher->last_key, sizeof watcher->last_key, "%.*s", (int)event->kv.key.len,
                   (const char *)event->kv.key.data);
}

static void on_trouble(int err, const char *message, hf_ms retry_in, void *arg)
{
    struct hft_watcher *watcher = arg;

    (void)message;
    (void)retry_in;
    watcher->troubles++;
    watcher->last_trouble = err;
}

void hft_be_patient(struct hf_mirror_config *cfg)
{
    if (cfg->probe_timeout == 0)
        cfg->probe_timeout = PROBE_MS;
}

void hft_watcher_begin(struct hft_client *client, struct hft_watcher *watcher,
                       const struct hf_mirror_config *cfg)
{
    struct hf_mirror_config own = *cfg;
    struct hf_error err = { "" };

    *watcher = (struct hft_watcher){ 0 };
    hft_be_patient(&own);
    own.on_event = on_event;
    own.on_trouble = on_trouble;
    own.arg = watcher;
    ck_assert_msg(hf_mirror_new(client->etcd, &own, &watcher->mirror, &err) == HF_OK,
                  "the mirror does not start: %s", err.text);
}

void hft_watcher_start_with(struct hft_client *client, struct hft_watcher *watcher,
                            const struct hf_mirror_config *cfg)
{
    hft_watcher_begin(client, watcher, cfg);
    hft_client_until(client, &watcher->synced, 1, STEP_MS, "the mirror to be synced");
}

void hft_watcher_start(struct hft_client *client, struct hft_watcher *watcher,
                       const char *prefix)
{
    struct hf_key_range range = { .key = hf_bytes_of(prefix), .prefix = true };

    hft_watcher_start_with(
        client, watcher,
        &(struct hf_mirror_config){ .ranges = &range, .range_count = 1, .keep_values = true });
}

void hft_watcher_stop(struct hft_watcher *watcher)
{
    hf_mirror_close(watcher->mirror);
    watcher->mirror = NULL;
}
