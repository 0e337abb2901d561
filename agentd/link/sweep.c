#include "agentd/link/sweep.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/chain.h"
#include "base/alloc.h"

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
