#include "agentd/link/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/call.h"
#include "agentd/link/chain.h"
#include "base/alloc.h"
#include "schema/json.h"

/* etcd. */

/* What changes the task between a look and the removal refuses it: a busy owner is looked at
 * again, until it is quiet for long enough. */
enum { MOST_BODIES = 256, MOST_LOOKS = 20 };

struct body {
    int64_t number; /* its key */
    int64_t mod_rev;
};

struct link_leftovers {
    struct link *link;
    struct link_leftovers *next; /* of the link */
    unsigned looks;
    char agent[AGENTD_NAME_BYTES];
    char task[HF_NAME_SIZE];
    int64_t lease, create_rev; /* of the life that may do it */
    uint64_t puts;             /* that it had begun */
    int64_t task_rev;          /* of the task while it owned it */
    struct hf_list *list;
    size_t asked; /* removals without an answer */
    bool refused; /* one of them */
    size_t count;
    struct body bodies[MOST_BODIES];
};

static void drop(struct link_leftovers *left)
{
    struct link_leftovers **at = &left->link->leftovers;

    while (*at != left)
        at = &(*at)->next;
    *at = left->next;
    free(left);
}

void link_sweep_done(struct link *link)
{
    while (link->leftovers != NULL)
        drop(link->leftovers);
}

static bool is_named(const struct link_chain *chain, int64_t number)
{
    for (size_t i = 0; i < chain->count; i++) {
        if (strcmp(chain->entries[i]->store, "etcd") == 0 &&
            strtoll(chain->entries[i]->key, NULL, 10) == number)
            return true;
    }
    return false;
}

static struct link_process *find_owner(struct link *link, const char *name)
{
    struct link_agent *agent = link_find_agent(link, name);

    return agent != NULL ? link_process_get_current(agent) : NULL;
}

static bool look(struct link_leftovers *left);

/* What is on its way has no entry yet: then it is looked at after that one. */
static void look_again(struct link_leftovers *left)
{
    struct link_process *owner = find_owner(left->link, left->agent);

    if (++left->looks < MOST_LOOKS && !link_call_is_putting(left->link, left->task) &&
        look(left))
        return;
    if (owner != NULL)
        owner->swept[0] = '\0';
    drop(left);
}

static void on_erased(const struct hf_txn_result *result, void *arg)
{
    struct link_leftovers *left = arg;

    left->refused |= result->result.err != HF_OK || !result->succeeded;
    if (--left->asked > 0)
        return;
    if (left->refused)
        look_again(left);
    else
        drop(left);
}

static void erase(struct link_leftovers *left, const struct body *body)
{
    const struct hf_backend *backend = &left->link->backend;
    const char *ns = left->link->settings->common.namespace;
    char key[HF_KEY_SIZE], live[HF_KEY_SIZE], task[HF_KEY_SIZE];
    struct hf_plan_guard guards[] = {
        { .what = HF_GUARD_CREATE, .value = left->create_rev, .key = live },
        { .what = HF_GUARD_LEASE, .value = left->lease, .key = live },
        { .what = HF_GUARD_MOD, .value = left->task_rev, .key = task },
        { .what = HF_GUARD_MOD, .value = body->mod_rev, .key = key },
    };
    struct hf_plan_write write = { .key = key };
    struct hf_backend_txn txn = { .guards = guards,
                                  .guard_count = sizeof guards / sizeof guards[0],
                                  .writes = &write,
                                  .write_count = 1 };
    struct hf_key parts = { HF_KEY_CHECKPOINT_BODY, .name = left->task, .seq = body->number };
    struct hf_call *call;

    if (hf_key_format(ns, &(struct hf_key){ HF_KEY_AGENT_LIVE, .name = left->agent }, live,
                      NULL) >= 0 &&
        hf_key_format(ns, &(struct hf_key){ HF_KEY_TASK, .name = left->task }, task, NULL) >=
            0 &&
        hf_key_format(ns, &parts, key, NULL) >= 0 &&
        backend->ops->txn(backend->self, &txn, on_erased, left, &call) == HF_OK)
        left->asked++;
}

/* What it has begun to put since then may be among the bodies, and not have its entry yet. */
static bool has_put_nothing(const struct link_leftovers *left)
{
    struct link_process *owner = find_owner(left->link, left->agent);

    return owner != NULL && owner->puts == left->puts;
}

static void on_entries(int err, struct link_chain *chain, void *arg)
{
    struct link_leftovers *left = arg;
    bool may_erase = err == HF_OK && has_put_nothing(left);

    for (size_t i = 0; may_erase && i < left->count; i++) {
        if (!is_named(chain, left->bodies[i].number))
            erase(left, &left->bodies[i]);
    }
    if (err == HF_OK)
        link_chain_free(chain);
    if (!may_erase)
        look_again(left);
    else if (left->asked == 0)
        drop(left);
}

/* The bodies first: what is put after that is not among them, and what had been put when we
 * began has its entry when these are read. */
static void on_bodies(const struct hf_range_result *result, void *arg)
{
    struct link_leftovers *left = arg;
    const char *ns = left->link->settings->common.namespace;
    struct link_chain_read *read;
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    for (size_t i = 0; i < result->count && left->count < MOST_BODIES; i++) {
        if (hf_key_parse(ns, result->kvs[i].key, scratch, &key, NULL) == HF_OK)
            left->bodies[left->count++] =
                (struct body){ .number = key.seq, .mod_rev = result->kvs[i].mod_rev };
    }
    if (result->result.err == HF_OK && result->more)
        return;
    if (result->result.err != HF_OK ||
        link_chain_read(left->link, left->task, on_entries, left, &read) != HF_OK)
        drop(left);
}

static void list_bodies(struct link_leftovers *left)
{
    struct hf_range_request request = { .range.prefix = true, .keys_only = true };
    const struct hf_backend *backend = &left->link->backend;
    char prefix[HF_KEY_SIZE];
    int len = hf_key_prefix(left->link->settings->common.namespace, HF_KEY_IN_DATA_CHECKPOINTS,
                            left->task, prefix, NULL);

    request.range.key = (struct hf_bytes){ prefix, len > 0 ? (size_t)len : 0 };
    if (len < 0 ||
        backend->ops->list(backend->self, &request, on_bodies, left, &left->list) != HF_OK)
        drop(left);
}

static bool is_owned(const struct hf_kv *kv, const char *agent)
{
    ProtobufCMessage *record;
    const Holdfast__V1__Task *task;
    bool owned;

    if (hf_json_decode(&holdfast__v1__task__descriptor, kv->value.data, kv->value.len, NULL,
                       &record, NULL) != HF_OK)
        return false;
    task = (const Holdfast__V1__Task *)record;
    owned = task->owner != NULL && strcmp(task->owner->agent, agent) == 0;
    hf_json_free(record);
    return owned;
}

/* While the task stays as it is now, nobody else can be about to add to its chain. */
static void on_task(const struct hf_range_result *result, void *arg)
{
    struct link_leftovers *left = arg;

    if (result->result.err != HF_OK || result->count == 0 ||
        !is_owned(result->kvs, left->agent)) {
        drop(left);
        return;
    }
    left->task_rev = result->kvs[0].mod_rev;
    list_bodies(left);
}

/* False: it cannot be, and nothing was begun. */
static bool look(struct link_leftovers *left)
{
    struct link *link = left->link;
    struct hf_range_request request = { 0 };
    const struct link_process *owner = find_owner(link, left->agent);
    struct hf_node_view view;
    struct hf_call *call;
    char key[HF_KEY_SIZE];
    int len = hf_key_format(link->settings->common.namespace,
                            &(struct hf_key){ HF_KEY_TASK, .name = left->task }, key, NULL);

    if (len < 0 || owner == NULL ||
        hf_node_get_view(link->node, left->agent, link_now(link), &view) != HF_OK ||
        view.life.create_rev == 0)
        return false;
    left->lease = view.life.lease;
    left->create_rev = view.life.create_rev;
    left->puts = owner->puts;
    left->count = 0;
    left->refused = false;
    request.range.key = (struct hf_bytes){ key, (size_t)len };
    return link->backend.ops->range(link->backend.self, &request, on_task, left, &call) ==
           HF_OK;
}

void link_sweep_task(struct link *link, const char *agent, const char *task)
{
    struct link_leftovers *left = hf_calloc(1, sizeof *left);

    if (left == NULL)
        return;
    left->link = link;
    (void)snprintf(left->agent, sizeof left->agent, "%s", agent);
    (void)snprintf(left->task, sizeof left->task, "%s", task);
    left->next = link->leftovers;
    link->leftovers = left;
    if (!look(left))
        drop(left);
}

/* Files. */

struct link_sweep {
    struct link *link;
    hf_ms every;
    struct hf_alarm alarm;
    struct link_store_files files; /* that there are, by task */
    size_t at;                     /* the first of the task that is looked at */
    struct link_chain_read *read;
    bool listing;                 /* by a worker, which has `files` */
    bool freed;                   /* and goes when that is done */
    struct link_store_files odd;  /* that no entry names, at this look, */
    struct link_store_files last; /* and at the one before */
};

static void rest(struct link_sweep *sweep)
{
    link_store_files_done(&sweep->files);
    hf_backend_set_alarm(&sweep->link->backend, &sweep->alarm,
                         link_now(sweep->link) + sweep->every);
}

/* Nothing is concluded from half a look. */
static void give_up(struct link_sweep *sweep)
{
    link_store_files_done(&sweep->odd);
    link_store_files_done(&sweep->last);
    rest(sweep);
}

static bool has_entry(const struct link_chain *chain, const char *key)
{
    for (size_t i = 0; i < chain->count; i++) {
        if (strcmp(chain->entries[i]->store, "file") == 0 &&
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

        if (has_entry(chain, name->key))
            continue;
        if (was_odd(sweep, name))
            link_store_drop(sweep->link->store, name->task, "file", name->key, 0);
        else
            err = link_store_files_add(&sweep->odd, name);
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

static void on_alarm(struct hf_alarm *alarm)
{
    struct link_sweep *sweep =
        (struct link_sweep *)((char *)alarm - offsetof(struct link_sweep, alarm));

    sweep->listing = true;
    if (link_store_list_files(sweep->link->store, &sweep->files, on_files, sweep) != HF_OK) {
        sweep->listing = false;
        give_up(sweep);
    }
}

int link_sweep_new(struct link *link, hf_ms every, struct link_sweep **ret_sweep)
{
    struct link_sweep *sweep = hf_calloc(1, sizeof *sweep);

    if (sweep == NULL)
        return HF_ENOMEM;
    sweep->link = link;
    sweep->every = every;
    sweep->alarm.fn = on_alarm;
    if (link_store_get_root(link->store)[0] != '\0')
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
    sweep->freed = true;
    if (!sweep->listing)
        done(sweep);
}
