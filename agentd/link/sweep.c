#include "agentd/link/sweep.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/chain.h"
#include "base/alloc.h"
#include "base/id.h"
#include "base/log.h"
#include "schema/json.h"
#include "schema/keys.h"

enum { MOST_DROPS = 50 }; /* under way: others want something of the bucket, too */

struct link_sweep {
    struct link *link;
    const char *store; /* "file" or "s3" */
    struct hf_call *call;
    char owner[64]; /* that we look for: others may use the same place */
    hf_ms every;
    struct hf_alarm alarm;
    struct link_store_files files; /* that there are, by task */
    size_t at;                     /* the first of the task that is looked at */
    struct link_chain_read *read;
    bool listing;                 /* by somebody who has `files` */
    bool freed;                   /* and goes when that is done */
    struct link_store_files odd;  /* that no entry names, at this look, */
    struct link_store_files last; /* and at the one before */
};

/* Between three and five quarters of it: hosts that began together do not look together. */
static hf_ms choose_pause(const struct link_sweep *sweep)
{
    uint32_t random = 0;

    (void)!hf_id_random(&random, sizeof random); /* without any it is three */
    return sweep->every * 3 / 4 + (hf_ms)(random % (uint64_t)(sweep->every / 2 + 1));
}

static void rest(struct link_sweep *sweep)
{
    link_store_files_done(&sweep->files);
    hf_backend_set_alarm(&sweep->link->backend, &sweep->alarm,
                         link_now(sweep->link) + choose_pause(sweep));
}

/* Nothing is concluded from half a look. */
static void give_up(struct link_sweep *sweep)
{
    link_store_files_done(&sweep->odd);
    link_store_files_done(&sweep->last);
    rest(sweep);
}

/* An entry that cannot be read may name any of them. */
static bool has_entry(const struct link_chain *chain, const char *store, const char *key)
{
    if (chain->unread > 0)
        return true;
    for (size_t i = 0; i < chain->count; i++) {
        if (strcmp(chain->entries[i]->store, store) == 0 &&
            strcmp(chain->entries[i]->key, key) == 0)
            return true;
    }
    return false;
}

static bool was_odd(const struct link_sweep *sweep, const struct link_store_name *name)
{
    for (size_t i = 0; i < sweep->last.count; i++) {
        if (strcmp(sweep->last.names[i].key, name->key) == 0 &&
            strcmp(sweep->last.names[i].task, name->task) == 0)
            return true;
    }
    return false;
}

/* What is too much now is as odd at the next look. */
static int remove_odd(struct link_sweep *sweep, const struct link_store_name *name)
{
    struct link_store *store = sweep->link->store;

    if (link_store_get_drops(store) >= MOST_DROPS || !was_odd(sweep, name))
        return link_store_files_add(&sweep->odd, name);
    link_store_drop(store, name->task, sweep->store, name->key, 0);
    return HF_OK;
}

static void look_at_next(struct link_sweep *sweep);

static void on_chain(int err, struct link_chain *chain, void *arg)
{
    struct link_sweep *sweep = arg;
    const char *task = sweep->files.names[sweep->at].task;
    size_t at = sweep->at;

    sweep->read = NULL;
    for (; err == HF_OK && at < sweep->files.count &&
           strcmp(sweep->files.names[at].task, task) == 0;
         at++) {
        const struct link_store_name *name = &sweep->files.names[at];

        if (!has_entry(chain, sweep->store, name->key))
            err = remove_odd(sweep, name);
    }
    link_chain_free(chain);
    sweep->at = at;
    if (err != HF_OK)
        give_up(sweep);
    else
        look_at_next(sweep);
}

static void look_at_next(struct link_sweep *sweep)
{
    if (sweep->at >= sweep->files.count) {
        link_store_files_done(&sweep->last);
        sweep->last = sweep->odd;
        sweep->odd = (struct link_store_files){ 0 };
        rest(sweep);
    } else if (link_chain_read(sweep->link, sweep->files.names[sweep->at].task, on_chain, sweep,
                               &sweep->read) != HF_OK) {
        give_up(sweep);
    }
}

static void done(struct link_sweep *sweep)
{
    link_store_files_done(&sweep->files);
    link_store_files_done(&sweep->odd);
    link_store_files_done(&sweep->last);
    free(sweep);
}

static void on_files(int err, void *arg)
{
    struct link_sweep *sweep = arg;

    sweep->listing = false;
    if (sweep->freed) {
        done(sweep);
        return;
    }
    sweep->at = 0;
    if (err != HF_OK)
        give_up(sweep);
    else
        look_at_next(sweep);
}

static void on_objects(int err, const char *text, void *arg)
{
    const struct link_sweep *sweep = arg;

    if (err != HF_OK && !sweep->freed)
        HF_LOG_WARN("not_swept", HF_STR("store", "s3"), HF_STR("why", text),
                    HF_STR("next", "looks again later"));
    on_files(err, arg);
}

static int list(struct link_sweep *sweep)
{
    struct link_store *store = sweep->link->store;

    return strcmp(sweep->store, "s3") == 0
               ? link_store_list_objects(store, sweep->owner, &sweep->files, on_objects, sweep)
               : link_store_list_files(store, sweep->owner, &sweep->files, on_files, sweep);
}

/* Asked anew at each look: who has lost etcd's data knows none of its checkpoints either. */
static void on_owner(const struct hf_range_result *result, void *arg)
{
    struct link_sweep *sweep = arg;
    ProtobufCMessage *record = NULL;

    sweep->call = NULL;
    sweep->owner[0] = '\0';
    if (result->result.err == HF_OK && result->count > 0 &&
        hf_json_decode(&holdfast__v1__meta__descriptor, result->kvs[0].value.data,
                       result->kvs[0].value.len, NULL, &record, NULL) == HF_OK) {
        (void)snprintf(sweep->owner, sizeof sweep->owner, "%s",
                       ((const Holdfast__V1__Meta *)record)->cluster_id);
        hf_json_free(record);
    }
    sweep->listing = sweep->owner[0] != '\0'; /* else no controller has been here yet */
    if (!sweep->listing || list(sweep) != HF_OK) {
        sweep->listing = false;
        give_up(sweep);
    }
}

static void look_for_owner(struct link_sweep *sweep)
{
    struct link *link = sweep->link;
    struct hf_range_request request = { 0 };
    char key[HF_KEY_SIZE];
    int len = hf_key_format(link->settings->common.namespace,
                            &(struct hf_key){ .kind = HF_KEY_META }, key, NULL);

    request.range.key = (struct hf_bytes){ key, len > 0 ? (size_t)len : 0 };
    if (len < 0 || link->backend.ops->range(link->backend.self, &request, on_owner, sweep,
                                            &sweep->call) != HF_OK)
        give_up(sweep);
}

static void on_alarm(struct hf_alarm *alarm)
{
    struct link_sweep *sweep =
        (struct link_sweep *)((char *)alarm - offsetof(struct link_sweep, alarm));

    look_for_owner(sweep);
}

int link_sweep_new(struct link *link, const char *store, hf_ms every,
                   struct link_sweep **ret_sweep)
{
    bool is_there = strcmp(store, "s3") == 0 ? link_store_has_objects(link->store)
                                             : link_store_get_root(link->store)[0] != '\0';
    struct link_sweep *sweep = hf_calloc(1, sizeof *sweep);

    if (sweep == NULL)
        return HF_ENOMEM;
    sweep->link = link;
    sweep->store = store;
    sweep->every = every;
    sweep->alarm.fn = on_alarm;
    if (is_there)
        rest(sweep);
    *ret_sweep = sweep;
    return HF_OK;
}

void link_sweep_free(struct link_sweep *sweep)
{
    if (sweep == NULL)
        return;
    hf_backend_unset_alarm(&sweep->link->backend, &sweep->alarm);
    if (sweep->read != NULL)
        link_chain_cancel(sweep->read);
    hf_backend_cancel(&sweep->link->backend, &sweep->call);
    sweep->freed = true;
    if (!sweep->listing)
        done(sweep);
}
