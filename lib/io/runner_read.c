#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "io/runner_private.h"
#include "schema/json.h"

/* A task has a handful of checkpoints: not worth a connection of its own. */
enum { PAGE_KEYS = 1000, CHAIN_KEYS = 64 };

/* What was found on one page, as the decider is told of it. */
struct page {
    struct hf_fleet_change *found;
    size_t count;
    char *names; /* that the keys point into */
    size_t names_len;
};

static void page_done(struct page *page)
{
    for (size_t i = 0; i < page->count; i++)
        hf_json_free(page->found[i].record); /* NULL where the decider took it */
    free(page->found);
    free(page->names);
}

static const char *keep_name(struct page *page, const char *name)
{
    char *copy = page->names + page->names_len;
    size_t size;

    if (name == NULL)
        return NULL;
    size = strlen(name) + 1;
    memcpy(copy, name, size);
    page->names_len += size;
    return copy;
}

static int add_found(struct hf_runner *runner, struct page *page, const struct hf_kv *kv)
{
    struct hf_fleet_change change;
    struct hf_error why = { "" };
    char scratch[HF_KEY_SIZE];
    int err = hf_runner_decode(runner, kv, scratch, &change, &why);

    if (err == HF_EINVAL)
        return hf_runner_tell_bad(runner, kv, why.text);
    if (err != HF_OK)
        return err;
    change.key.name = keep_name(page, change.key.name);
    change.key.sub = keep_name(page, change.key.sub);
    page->found[page->count++] = change;
    return HF_OK;
}

/* The names of a key, each with its NUL, take two bytes more than the key at most. */
static int make_room(struct page *page, size_t count, size_t key_bytes)
{
    page->found = hf_calloc(count + 1, sizeof *page->found);
    page->names = hf_calloc(key_bytes + 2 * count + 1, 1);
    return page->found != NULL && page->names != NULL ? HF_OK : HF_ENOMEM;
}

static int make_page(struct hf_runner *runner, const struct hf_range_result *result,
                     struct page *page)
{
    size_t bytes = 0;
    int err;

    for (size_t i = 0; i < result->count; i++)
        bytes += result->kvs[i].key.len;
    err = make_room(page, result->count, bytes);
    for (size_t i = 0; i < result->count && err == HF_OK; i++)
        err = add_found(runner, page, &result->kvs[i]);
    return err;
}

static void cancel(struct hf_reading *reading)
{
    const struct hf_backend *backend = &reading->runner->backend;

    hf_backend_cancel(backend, &reading->call);
    if (reading->list != NULL)
        backend->ops->cancel_list(reading->list);
    reading->list = NULL;
}

static void remove_reading(struct hf_reading *reading)
{
    struct hf_reading **link = &reading->runner->readings;

    while (*link != reading)
        link = &(*link)->next;
    *link = reading->next;
    free(reading);
}

/* It is over, and the decider does not know yet. */
static void fail(struct hf_reading *reading, int err)
{
    cancel(reading);
    reading->failed = true;
    reading->err = err;
    hf_runner_soon(reading->runner);
}

/* A single key that cannot be read is not one that is not there. */
static int tell_page(struct hf_reading *reading, const struct hf_range_result *result)
{
    struct hf_runner *runner = reading->runner;
    struct page page = { 0 };
    struct hf_event event = { .kind = HF_EVENT_ANSWER };
    int err = make_page(runner, result, &page);

    if (err == HF_OK && reading->list == NULL && page.count < result->count)
        err = HF_ECORRUPT;
    event.answer = (struct hf_event_answer){ .token = reading->token,
                                             .revision = result->result.header.revision,
                                             .found = page.found,
                                             .found_count = page.count,
                                             .more = result->more };
    if (err == HF_OK)
        err = hf_runner_step(runner, &event);
    page_done(&page);
    return err;
}

static void on_page(const struct hf_range_result *result, void *arg)
{
    struct hf_reading *reading = arg;
    struct hf_runner *runner = reading->runner;
    int err = result->result.err;

    if (!result->more)
        reading->call = NULL; /* this was the last word of it */
    hf_runner_on_result(runner, &result->result);
    if (err != HF_OK)
        hf_runner_complain(runner, "read", err, result->result.message);
    else
        err = tell_page(reading, result);
    if (!result->more)
        reading->list = NULL;
    if (err != HF_OK)
        fail(reading, err);
    else if (!result->more)
        remove_reading(reading);
    hf_runner_soon(runner);
}

/* What hangs on a lease. What is no key of ours is none of our business, and takes no room:
 * whoever knows its id can attach any number of keys to it. */

static bool is_ours(const struct hf_runner *runner, struct hf_bytes text,
                    char scratch[HF_KEY_SIZE], struct hf_key *ret_key)
{
    return hf_key_parse(runner->cfg.ns, text, scratch, ret_key, NULL) == HF_OK;
}

static int make_names(const struct hf_runner *runner, const struct hf_ttl_result *result,
                      struct page *page)
{
    char scratch[HF_KEY_SIZE];
    struct hf_key key;
    size_t count = 0, bytes = 0;

    for (size_t i = 0; i < result->key_count; i++) {
        if (is_ours(runner, result->keys[i], scratch, &key)) {
            bytes += result->keys[i].len;
            count++;
        }
    }
    if (make_room(page, count, bytes) != HF_OK)
        return HF_ENOMEM;
    for (size_t i = 0; i < result->key_count; i++) {
        if (!is_ours(runner, result->keys[i], scratch, &key))
            continue;
        key.name = keep_name(page, key.name);
        key.sub = keep_name(page, key.sub);
        page->found[page->count++] = (struct hf_fleet_change){ .key = key };
    }
    return HF_OK;
}

static int tell_names(struct hf_reading *reading, const struct hf_ttl_result *result)
{
    struct page page = { 0 };
    struct hf_event event = { .kind = HF_EVENT_ANSWER };
    int err = make_names(reading->runner, result, &page);

    event.answer = (struct hf_event_answer){ .token = reading->token,
                                             .found = page.found,
                                             .found_count = page.count };
    if (err == HF_OK)
        err = hf_runner_step(reading->runner, &event);
    page_done(&page);
    return err;
}

/* The revision of its answer is that of whichever member was asked, which may be behind: it
 * says nothing about etcd's history. */
static void on_ttl(const struct hf_ttl_result *result, void *arg)
{
    struct hf_reading *reading = arg;
    struct hf_runner *runner = reading->runner;
    int err = result->result.err;

    reading->call = NULL;
    if (err != HF_OK)
        hf_runner_complain(runner, "read", err, result->result.message);
    else
        err = tell_names(reading, result);
    if (err != HF_OK)
        fail(reading, err);
    else
        remove_reading(reading);
    hf_runner_soon(runner);
}

static int ask(struct hf_reading *reading, const struct hf_intent_read *read)
{
    struct hf_runner *runner = reading->runner;
    const struct hf_backend *backend = &runner->backend;
    char text[HF_KEY_SIZE];
    struct hf_range_request request = { .range.prefix = read->whole_scope };
    int len;

    if (read->lease != 0)
        return backend->ops->ttl(backend->self, read->lease, on_ttl, reading, &reading->call);
    len = read->whole_scope ? hf_key_prefix(runner->cfg.ns, read->scope, read->name, text, NULL)
                            : hf_key_format(runner->cfg.ns, &read->key, text, NULL);
    if (len < 0)
        return len;
    request.range.key = (struct hf_bytes){ .data = text, .len = (size_t)len };
    if (!read->whole_scope)
        return backend->ops->range(backend->self, &request, on_page, reading, &reading->call);
    request.limit = read->scope == HF_KEY_IN_CHECKPOINTS_TASK ? CHAIN_KEYS : PAGE_KEYS;
    return backend->ops->list(backend->self, &request, on_page, reading, &reading->list);
}

void hf_reading_start(struct hf_runner *runner, const struct hf_intent *intent)
{
    struct hf_reading *reading = runner->spare_reading;
    int err;

    runner->spare_reading = NULL;
    runner->stats.reads++;
    reading->runner = runner;
    reading->token = intent->token;
    reading->next = runner->readings;
    runner->readings = reading;
    err = ask(reading, &intent->read);
    if (err == HF_OK)
        return;
    reading->call = NULL;
    reading->list = NULL;
    fail(reading, err);
}

int hf_readings_tell(struct hf_runner *runner)
{
    struct hf_reading *next;

    for (struct hf_reading *reading = runner->readings; reading != NULL; reading = next) {
        struct hf_event event = { .kind = HF_EVENT_ANSWER,
                                  .answer = { .token = reading->token, .err = reading->err } };

        next = reading->next;
        if (!reading->failed)
            continue;
        if (hf_runner_step(runner, &event) == HF_ENOMEM)
            return HF_ENOMEM;
        remove_reading(reading);
    }
    return HF_OK;
}

void hf_readings_cancel(struct hf_runner *runner)
{
    struct hf_reading *next;

    for (struct hf_reading *reading = runner->readings; reading != NULL; reading = next) {
        next = reading->next;
        cancel(reading);
        free(reading);
    }
    runner->readings = NULL;
    free(runner->spare_reading);
    runner->spare_reading = NULL;
}
