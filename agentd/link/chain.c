#include "agentd/link/chain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/call.h"
#include "base/alloc.h"
#include "core/body.h"
#include "schema/json.h"

struct link_chain_read {
    struct link *link;
    link_chain_fn fn;
    void *arg;
    struct link_chain *chain;
    size_t cap, rev_cap;
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
    if (read->list != NULL)
        read->link->backend.ops->cancel_list(read->list);
    link_chain_free(read->chain);
    free(read);
}

/* Keys sort by their number, so the list does. One that cannot be read is only counted: the
 * walk passes it over, but what it names is not to be thrown away. */
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
    if (rc != HF_OK) {
        chain->unread++;
        return HF_OK;
    }
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

int link_chain_read(struct link *link, const char *task, link_chain_fn fn, void *arg,
                    struct link_chain_read **ret_read)
{
    struct link_chain_read *read = hf_calloc(1, sizeof *read);
    struct hf_range_request request = { .range.prefix = true };
    char prefix[HF_KEY_SIZE];
    int rc, len;

    if (read == NULL || (read->chain = hf_calloc(1, sizeof *read->chain)) == NULL) {
        free(read);
        return HF_ENOMEM;
    }
    read->link = link;
    read->fn = fn;
    read->arg = arg;
    len = hf_key_prefix(link->settings->common.namespace, HF_KEY_IN_CHECKPOINTS_TASK, task,
                        prefix, NULL);
    request.range.key = (struct hf_bytes){ prefix, len > 0 ? (size_t)len : 0 };
    rc = len < 0 ? len
                 : link->backend.ops->list(link->backend.self, &request, on_entries, read,
                                           &read->list);
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
    char agent[AGENTD_NAME_BYTES];
    int64_t lease, create_rev; /* of the life that may do it */
};

/* A body: one in etcd goes with the entry that names it, a file when that has gone. */
struct removal {
    struct link *link;
    char task[HF_NAME_SIZE];
    char store[8];
    char key[LINK_STORE_KEY_BYTES];
    int64_t size;
};

static void on_removed(const struct hf_txn_result *result, void *arg)
{
    struct removal *removal = arg;

    /* What is left is removed with the next checkpoint. */
    if (result->result.err == HF_OK && result->succeeded)
        link_store_drop(removal->link->store, removal->task, removal->store, removal->key,
                        removal->size);
    free(removal);
}

static void remove_entry(const struct prune *prune, const Holdfast__V1__Checkpoint *entry,
                         int64_t mod_rev)
{
    struct link *link = prune->link;
    const char *ns = link->settings->common.namespace;
    char key[HF_KEY_SIZE], body[HF_KEY_SIZE], live[HF_KEY_SIZE];
    struct hf_plan_guard guards[] = {
        { .what = HF_GUARD_CREATE, .value = prune->create_rev, .key = live },
        { .what = HF_GUARD_LEASE, .value = prune->lease, .key = live },
        { .what = HF_GUARD_MOD, .value = mod_rev, .key = key },
    };
    struct hf_plan_write writes[] = { { .key = key }, { .key = body } };
    int64_t number = hf_body_number(entry);
    struct hf_backend_txn txn = { .guards = guards,
                                  .guard_count = sizeof guards / sizeof guards[0],
                                  .writes = writes,
                                  .write_count = number > 0 ? 2 : 1 };
    struct removal *removal = hf_calloc(1, sizeof *removal);
    struct hf_call *call;

    if (removal == NULL || strlen(entry->store) >= sizeof removal->store ||
        strlen(entry->key) >= sizeof removal->key) { /* the latter is not of our making */
        free(removal);
        return;
    }
    removal->link = link;
    (void)snprintf(removal->task, sizeof removal->task, "%s", entry->task);
    (void)snprintf(removal->store, sizeof removal->store, "%s", entry->store);
    (void)snprintf(removal->key, sizeof removal->key, "%s", entry->key);
    removal->size = entry->size;
    if (hf_key_format(ns, &(struct hf_key){ HF_KEY_AGENT_LIVE, .name = prune->agent }, live,
                      NULL) < 0 ||
        hf_key_format(
            ns, &(struct hf_key){ HF_KEY_CHECKPOINT, .name = entry->task, .seq = entry->seq },
            key, NULL) < 0 ||
        (number > 0 &&
         hf_key_format(
             ns, &(struct hf_key){ HF_KEY_CHECKPOINT_BODY, .name = entry->task, .seq = number },
             body, NULL) < 0) ||
        link->backend.ops->txn(link->backend.self, &txn, on_removed, removal, &call) != HF_OK)
        free(removal);
}

static void on_prune(int err, struct link_chain *chain, void *arg)
{
    struct prune *prune = arg;

    for (size_t i = 0; err == HF_OK && i < chain->count; i++) {
        if (chain->entries[i]->seq <= prune->upto)
            remove_entry(prune, chain->entries[i], chain->mod_revs[i]);
    }
    if (err == HF_OK)
        link_chain_free(chain);
    free(prune);
}

void link_chain_prune(struct link *link, const char *agent, const char *task, int64_t newest)
{
    struct link_chain_read *read;
    struct hf_node_view view;
    struct prune *prune;

    if (newest <= LINK_CHAIN_KEPT ||
        hf_node_get_view(link->node, agent, link_now(link), &view) != HF_OK ||
        view.life.create_rev == 0)
        return;
    prune = hf_calloc(1, sizeof *prune);
    if (prune == NULL)
        return;
    *prune = (struct prune){ .link = link,
                             .upto = newest - LINK_CHAIN_KEPT,
                             .lease = view.life.lease,
                             .create_rev = view.life.create_rev };
    (void)snprintf(prune->agent, sizeof prune->agent, "%s", agent);
    if (link_chain_read(link, task, on_prune, prune, &read) != HF_OK)
        free(prune);
}
