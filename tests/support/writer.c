#include "support/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

enum { PATIENCE_MS = 60000, FAILED_PAUSE_MS = 20, MOST_VALUE_BYTES = 64 * 1024 };

static void change_one(struct hft_writer *writer);

static unsigned draw(struct hft_writer *writer, unsigned below)
{
    writer->random = writer->random * 1664525u + 1013904223u;
    return (writer->random >> 8) % below;
}

static void after_pause(void *arg)
{
    struct hft_writer *writer = arg;

    writer->under_way--;
    change_one(writer);
}

static void on_changed(const struct hf_write_result *result, void *arg)
{
    struct hft_writer *writer = arg;
    hf_ms pause = writer->cfg.pause;

    if (result->result.err == HF_OK) {
        writer->done++;
    } else {
        writer->failed++;
        pause = FAILED_PAUSE_MS; /* a dead etcd fails at once */
    }
    writer->under_way--;
    if (pause == 0) {
        change_one(writer);
    } else if (!writer->stopping) {
        writer->under_way++;
        hft_loop_after(&writer->client->loop, pause, after_pause, writer);
    }
}

static void change_one(struct hft_writer *writer)
{
    const struct hft_writer_config *cfg = &writer->cfg;
    char key[128];
    int err;

    if (writer->stopping || (cfg->limit > 0 && writer->started >= cfg->limit))
        return;
    (void)snprintf(key, sizeof key, "%s%05u", cfg->prefix, draw(writer, cfg->keys));
    writer->started++;
    writer->under_way++;
    if (draw(writer, 100) < cfg->delete_percent) {
        err = hf_etcd_delete(writer->etcd, (struct hf_key_range){ .key = hf_bytes_of(key) },
                             on_changed, writer, NULL);
    } else {
        /* The number makes every value another one, whatever its length. */
        size_t digits = (size_t)snprintf(writer->value, 16, "%u:", writer->started);
        size_t len = digits > cfg->value_bytes ? digits : cfg->value_bytes;

        writer->value[digits] = 'v';
        err = hf_etcd_put(writer->etcd, hf_bytes_of(key),
                          (struct hf_bytes){ .data = writer->value, .len = len }, HF_NO_LEASE,
                          on_changed, writer, NULL);
    }
    ck_assert_int_eq(err, HF_OK);
}

void hft_writer_start(struct hft_client *client, struct hft_writer *writer,
                      const struct hft_writer_config *cfg)
{
    struct hf_etcd_config etcd_cfg = { .endpoints = cfg->endpoint, .keep_order = true };
    struct hf_error err = { "" };

    while (etcd_cfg.endpoint_count < 3 && cfg->endpoint[etcd_cfg.endpoint_count] != NULL)
        etcd_cfg.endpoint_count++;
    *writer = (struct hft_writer){ .cfg = *cfg, .client = client, .random = cfg->seed };
    ck_assert_uint_le(cfg->value_bytes, MOST_VALUE_BYTES);
    writer->value = malloc(MOST_VALUE_BYTES);
    ck_assert_ptr_nonnull(writer->value);
    memset(writer->value, 'v', MOST_VALUE_BYTES);
    ck_assert_msg(hf_etcd_new(&client->loop.uv, &etcd_cfg, &writer->etcd, &err) == HF_OK,
                  "the writer does not start: %s", err.text);
    for (unsigned i = 0; i == 0 || i < cfg->in_flight; i++)
        change_one(writer);
}

void hft_writer_until(struct hft_writer *writer, unsigned count, hf_ms timeout)
{
    hft_client_until(writer->client, &writer->done, writer->done + count, timeout,
                     "the writer to have written");
}

static bool is_idle(void *arg)
{
    return ((struct hft_writer *)arg)->under_way == 0;
}

static void on_closed(void *arg)
{
    *(unsigned *)arg = 1;
}

void hft_writer_stop(struct hft_writer *writer)
{
    unsigned closed = 0;

    writer->stopping = true;
    hft_loop_until(&writer->client->loop, is_idle, writer, PATIENCE_MS, "the writer to end");
    hf_etcd_close(writer->etcd, on_closed, &closed);
    hft_client_until(writer->client, &closed, 1, PATIENCE_MS, "the writer's client to close");
    free(writer->value);
}

enum { AT_ONCE = 64 };

hf_rev hft_write_many(struct hft_client *client, const char *prefix, unsigned count,
                      size_t value_bytes)
{
    struct hf_txn_options patient = { .timeout = PATIENCE_MS };
    char *value = malloc(value_bytes + 1);
    hf_rev last = 0;

    ck_assert_ptr_nonnull(value);
    memset(value, 'v', value_bytes);
    for (unsigned i = 0; i < count; i += AT_ONCE) {
        struct hf_txn *txn = hf_txn_new();
        struct hft_outcome outcome = { 0 };

        for (unsigned k = i; k < i + AT_ONCE && k < count; k++) {
            char key[128];

            (void)snprintf(key, sizeof key, "%s%05u", prefix, k);
            hf_txn_then_put(txn, hf_bytes_of(key),
                            (struct hf_bytes){ .data = value, .len = value_bytes },
                            HF_NO_LEASE);
        }
        ck_assert_int_eq(hf_txn_commit(client->etcd, txn, &patient, hft_on_txn, &outcome, NULL),
                         HF_OK);
        hf_txn_free(txn);
        hft_await(client, &outcome, patient.timeout);
        ck_assert_msg(outcome.err == HF_OK, "%s", outcome.message);
        last = outcome.header.revision;
    }
    free(value);
    return last;
}
