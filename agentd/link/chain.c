#include "agentd/link/chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/call.h"
#include "base/alloc.h"
#include "schema/json.h"

struct link_chain_read {
    struct link *link;
    char task[HF_NAME_SIZE];
    link_chain_fn fn;
    void *arg;
    struct link_chain *chain;
    size_t cap, rev_cap;
    struct hf_call *call;
    struct hf_list *list;
};

void link_chain_free(struct link_chain *chain)
{
    if (chain == NULL)
        return;
    for (size_t i = 0; i < chain->count; i++)
        hf_json_free(&chain->entries[i]->base);
    free((void *)chain->entries);
    free(chain->mod_revs);
    free(chain);
}

static void finish(struct link_chain_read *read, int err)
{
    link_chain_fn fn = read->fn;
    struct link_chain *chain = read->chain;
    void *arg = read->arg;

    free(read);
    if (err != HF_OK) {
        link_chain_free(chain);
        chain = NULL;
    }
    fn(err, chain, arg);
}

void link_chain_cancel(struct link_chain_read *read)
{
    const struct hf_backend *backend = &read->link->backend;

    if (read->call != NULL)
        backend->ops->cancel(read->call);
    if (read->list != NULL)
        backend->ops->cancel_list(read->list);
    link_chain_free(read->chain);
    free(read);
}

/* Keys sort by their number, so the list does. One that cannot be read is as if it were not
 * there: the walk passes it over. */
static int take(struct link_chain_read *read, const struct hf_kv *kv)
{
    struct link_chain *chain = read->chain;
    ProtobufCMessage *record;
    int rc = hf_json_decode(&holdfast__v1__checkpoint__descriptor, kv->value.data,
                            kv->value.len, NULL, &record, NULL);

    if (rc == HF_ENOMEM ||
        !hf_grow(&chain->entries, &read->cap, chain->count + 1, sizeof(void *)) ||
        !hf_grow(&chain->mod_revs, &read->rev_cap, chain->count + 1, sizeof *chain->mod_revs)) {
        if (rc == HF_OK)
            hf_json_free(record);
        return HF_ENOMEM;
    }
    if (rc != HF_OK)
        return HF_OK;
    chain->mod_revs[chain->count] = kv->mod_rev;
    chain->entries[chain->count++] = (Holdfast__V1__Checkpoint *)record;
    return HF_OK;
}

static void on_entries(const struct hf_range_result *result, void *arg)
{
    struct link_chain_read *read = arg;
    int rc = result->result.err == HF_OK ? HF_OK : HF_EAGAIN;

    for (size_t i = 0; i < result->count && rc == HF_OK; i++)
        rc = take(read, &result->kvs[i]);
    if (rc == HF_OK && result->more)
        return;
    if (result->more)
        read->link->backend.ops->cancel_list(read->list);
    read->list = NULL;
    finish(read, rc);
}

static void on_recovery(const struct hf_range_result *result, void *arg)
{
    struct link_chain_read *read = arg;
    const struct hf_backend *backend = &read->link->backend;
    struct hf_range_request request = { .range.prefix = true };
    ProtobufCMessage *record = NULL;
    char prefix[HF_KEY_SIZE];
    int rc = result->result.err == HF_OK ? HF_OK : HF_EAGAIN, len;

    read->call = NULL;
    if (rc == HF_OK && result->count > 0 &&
        hf_json_decode(&holdfast__v1__recovery__descriptor, result->kvs[0].value.data,
                       result->kvs[0].value.len, NULL, &record, NULL) != HF_OK)
        record = NULL;
    read->chain->recover = hf_recover_load((const Holdfast__V1__Recovery *)record);
    hf_json_free(record);
    len = hf_key_prefix(read->link->settings->common.namespace, HF_KEY_IN_CHECKPOINTS_TASK,
                        read->task, prefix, NULL);
    request.range.key = (struct hf_bytes){ prefix, len > 0 ? (size_t)len : 0 };
    if (rc == HF_OK)
        rc = len < 0
                 ? len
                 : backend->ops->list(backend->self, &request, on_entries, read, &read->list);
    if (rc != HF_OK)
        finish(read, rc);
}

int link_chain_read(struct link *link, const char *task, link_chain_fn fn, void *arg,
                    struct link_chain_read **ret_read)
{
    struct link_chain_read *read = hf_calloc(1, sizeof *read);
    struct hf_range_request request = { 0 };
    char key[HF_KEY_SIZE];
    int rc, len;

    if (read == NULL || (read->chain = hf_calloc(1, sizeof *read->chain)) == NULL) {
        free(read);
        return HF_ENOMEM;
    }
    read->link = link;
    read->fn = fn;
    read->arg = arg;
    (void)snprintf(read->task, sizeof read->task, "%s", task);
    len = hf_key_format(link->settings->common.namespace,
                        &(struct hf_key){ HF_KEY_RECOVERY, .name = task }, key, NULL);
    request.range.key = (struct hf_bytes){ key, len > 0 ? (size_t)len : 0 };
    rc = len < 0 ? len
                 : link->backend.ops->range(link->backend.self, &request, on_recovery, read,
                                            &read->call);
    if (rc != HF_OK) {
        link_chain_free(read->chain);
        free(read);
        return rc;
    }
    *ret_read = read;
    return HF_OK;
}

/* Old ones. */

struct prune {
    struct link *link;
    int64_t upto;
};

static void on_removed(const struct hf_txn_result *result, void *arg)
{
    (void)result; /* what is left is removed with the next checkpoint */
    (void)arg;
}

static void remove_entry(struct link *link, const Holdfast__V1__Checkpoint *entry,
                         int64_t mod_rev)
{
    char key[HF_KEY_SIZE];
    struct hf_plan_guard guard = { .what = HF_GUARD_MOD, .value = mod_rev, .key = key };
    struct hf_plan_write write = { .key = key };
    struct hf_backend_txn txn = {
        .guards = &guard, .guard_count = 1, .writes = &write, .write_count = 1
    };
    struct hf_call *call;

    if (hf_key_format(
            link->settings->common.namespace,
            &(struct hf_key){ HF_KEY_CHECKPOINT, .name = entry->task, .seq = entry->seq }, key,
            NULL) < 0 ||
        link->backend.ops->txn(link->backend.self, &txn, on_removed, NULL, &call) != HF_OK)
        return;
    link_store_drop(link->store, entry->task, entry->store, entry->key);
}

static void on_prune(int err, struct link_chain *chain, void *arg)
{
    struct prune *prune = arg;

    for (size_t i = 0; err == HF_OK && i < chain->count; i++) {
        if (chain->entries[i]->seq <= prune->upto)
            remove_entry(prune->link, chain->entries[i], chain->mod_revs[i]);
    }
    if (err == HF_OK)
        link_chain_free(chain);
    free(prune);
}

void link_chain_prune(struct link *link, const char *task, int64_t newest)
{
    struct link_chain_read *read;
    struct prune *prune;

    if (newest <= LINK_CHAIN_KEPT)
        return;
    prune = hf_calloc(1, sizeof *prune);
    if (prune == NULL)
        return;
    *prune = (struct prune){ .link = link, .upto = newest - LINK_CHAIN_KEPT };
    if (link_chain_read(link, task, on_prune, prune, &read) != HF_OK)
        free(prune);
}
