#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/link/call.h"
#include "agentd/link/chain.h"
#include "agentd/link/path.h"
#include "agentd/link/resume.h"
#include "agentd/link/verify.h"
#include "base/alloc.h"
#include "base/log.h"
#include "holdfast/v1/localapi.pb-c.h"
#include "schema/json.h"

/* put: the body first, or with the entry that names it; then what is too old goes. */

struct link_put {
    struct link_call *call; /* NULL: whoever asked is gone */
    struct link *link;
    char agent[AGENTD_NAME_BYTES];
    char task[HF_NAME_SIZE];
    char store[8];
    char key[LINK_STORE_KEY_BYTES];
    char sha256[65];
    int64_t size;
    struct link_agent *of;
    size_t bytes; /* of the body, */
    size_t kept;  /* and how many of them are kept until it is committed; 0: too many */
    char body[];
};

/* What one agent may have under way, so that the memory and the disk are there for others. */
enum { KEPT_BYTES = 16 << 10, MOST_LOANS = 2, MOST_PUTS = 4, MOST_GETS = 4 };

static void cancel_put(struct link_call *call)
{
    ((struct link_put *)call->state)->call = NULL;
    call->state = NULL;
}

static void free_put(struct link_put *put)
{
    put->of->put_bytes -= put->bytes;
    free(put);
}

static struct link_call *end_put(struct link_put *put)
{
    struct link_call *call = put->call;

    if (call != NULL) {
        call->state = NULL;
        call->on_cancel = NULL;
    }
    free_put(put);
    return call;
}

/* `root` is what the entry refers to where it has one. */
static void fill_entry(const struct link_put *put, Holdfast__V1__Checkpoint *entry,
                       Holdfast__V1__Root *root)
{
    holdfast__v1__checkpoint__init(entry);
    holdfast__v1__root__init(root);
    root->id = (char *)link_store_get_root(put->link->store);
    root->host = (char *)put->link->settings->host;
    if (strcmp(put->store, "file") == 0 && root->id[0] != '\0')
        entry->root = root;
    entry->task = (char *)put->task;
    entry->sha256 = (char *)put->sha256;
    entry->size = put->size;
    entry->store = (char *)put->store;
    entry->key = (char *)put->key;
}

static void reply_entry(const struct link_put *put, int64_t seq)
{
    Holdfast__V1__Checkpoint entry;
    Holdfast__V1__Root root;
    Holdfast__V1__Incarnation incarnation = HOLDFAST__V1__INCARNATION__INIT;
    struct link_call *call = put->call;
    struct hf_node_view view;

    fill_entry(put, &entry, &root);
    entry.seq = seq;
    entry.parent = seq - 1;
    if (hf_node_get_view(put->link->node, call->process->who.agent, link_now(put->link),
                         &view) == HF_OK) {
        incarnation.lease_id = view.life.lease;
        incarnation.create_revision = view.life.create_rev;
        incarnation.generation = view.life.generation;
        entry.incarnation = &incarnation;
    }
    link_call_reply(call, 201, &entry.base);
}

/* Its successor will want it, and etcd will have something else to do then. */
static void keep_body(const struct link_put *put, int64_t seq)
{
    struct link_stored stored = { .body = { put->body, put->kept } };

    if (put->kept == 0)
        return;
    memcpy(stored.sha256, put->sha256, sizeof stored.sha256);
    link_resume_keep(put->link, put->task, seq, &stored);
}

/* The node answers even when nobody waits any more, so that nothing is left half done. */
static void on_entry(const struct hf_intent_reply *reply, void *arg)
{
    struct link_put *put = arg;
    struct link_call *call = put->call;

    if (call != NULL) {
        call->state = NULL;
        call->on_cancel = NULL;
    }
    if (reply->err == HF_OK) {
        if (call != NULL)
            reply_entry(put, reply->seq);
        keep_body(put, reply->seq);
        link_chain_prune(put->link, put->agent, put->task, reply->seq);
    } else {
        if (reply->err == HF_ECONFLICT || reply->err == HF_EINVAL || reply->err == HF_ENOENT)
            link_store_drop(put->link->store, put->task, put->store, put->key, put->size);
        if (call != NULL)
            link_call_error(call, reply->err, reply->text);
    }
    free_put(put);
}

static void refuse_size(struct link_call *call)
{
    char sentence[128];

    const struct link_store *store = call->process->agent->link->store;
    bool by_path = link_store_get_file_max(store) > (int64_t)link_store_get_max(store);

    (void)snprintf(sentence, sizeof sentence, "a checkpoint here has at most %zu bytes%s",
                   link_store_get_max(store), by_path ? ", and 1 GiB by its path" : "");
    link_call_fail(call, 413, "too_large", sentence,
                   "store it elsewhere and keep where it is, or let agentd use files or a "
                   "bucket (checkpoints.store)");
}

/* A bucket has a limit for each, the other stores for all of them: only that may be another
 * day.
 */
static void refuse_body(struct link_call *call, const struct link_stored *stored)
{
    if (stored->err == HF_ELIMIT && strcmp(stored->store, "s3") == 0)
        refuse_size(call); /* it has grown since it was opened */
    else
        link_call_error(call, stored->err, stored->text);
}

static void on_body_put(const struct link_stored *stored, void *arg)
{
    struct link_put *put = arg;
    struct link_call *call = put->call;
    Holdfast__V1__Checkpoint entry;
    Holdfast__V1__Root root;
    struct hf_event_ask ask = { .kind = HF_ASK_CHECKPOINT,
                                .task = put->task,
                                .checkpoint = &entry };
    struct link_ask *ignored;
    int rc = stored->err;

    if (rc == HF_OK && call == NULL) /* nobody names it, so nobody would remove it either */
        link_store_drop(put->link->store, put->task, stored->store, stored->key, stored->size);
    if (rc != HF_OK || call == NULL) {
        call = end_put(put);
        if (call != NULL)
            refuse_body(call, stored);
        return;
    }
    (void)snprintf(put->store, sizeof put->store, "%s", stored->store);
    (void)snprintf(put->key, sizeof put->key, "%s", stored->key);
    memcpy(put->sha256, stored->sha256, sizeof put->sha256);
    put->size = stored->size;
    fill_entry(put, &entry, &root);
    if (strcmp(stored->store, "etcd") == 0)
        ask.body = stored->body;
    rc = link_ask(call->process, &ask, on_entry, put, &ignored);
    if (rc != HF_OK) {
        link_store_drop(put->link->store, put->task, stored->store, stored->key, stored->size);
        link_call_error(end_put(put), rc, NULL);
    }
}

/* NULL: it was answered. */
static struct link_put *begin_put(struct link_call *call, struct hf_bytes body)
{
    struct link_agent *agent = call->process->agent;
    struct link *link = agent->link;
    size_t kept = body.len <= KEPT_BYTES ? body.len : 0;
    struct link_put *put;

    if (agent->put_bytes + body.len > MOST_PUTS * LINK_STORE_FILE_MAX) {
        link_call_error(call, HF_ELIMIT, "too many bytes of checkpoints are on their way");
        return NULL;
    }
    put = hf_calloc(1, sizeof *put + kept);
    if (put == NULL) {
        link_call_error(call, HF_ENOMEM, NULL);
        return NULL;
    }
    link_store_set_owner(link->store, hf_node_get_cluster(link->node));
    put->call = call;
    put->link = link;
    put->of = agent;
    put->bytes = body.len;
    agent->put_bytes += body.len;
    put->kept = kept;
    if (kept > 0)
        memcpy(put->body, body.data, kept);
    (void)snprintf(put->agent, sizeof put->agent, "%s", call->process->who.agent);
    memcpy(put->task, call->task, sizeof put->task);
    call->state = put;
    call->on_cancel = cancel_put;
    link_resume_forget(call->process);
    return put;
}

static void put_body(struct link_call *call, struct hf_bytes body)
{
    struct link *link = call->process->agent->link;
    struct link_put *put = begin_put(call, body);

    if (put != NULL)
        link_store_put(link->store, call->task, body, on_body_put, put);
}

/* put by path: the agent has written it to a file of its own */

struct loan {
    struct link_call *call; /* NULL: whoever asked is gone */
    struct link_agent *agent;
    struct link_put *put; /* of a file that goes to its store as it is */
};

static void cancel_loan(struct link_call *call)
{
    ((struct loan *)call->state)->call = NULL;
    call->state = NULL;
}

static void refuse_file(struct link_call *call, int err, const char *text)
{
    if (err == HF_ELIMIT)
        refuse_size(call);
    else if (err == HF_EDENIED)
        link_call_error(call, HF_EINVAL, text); /* not the agent is denied, but this file */
    else
        link_call_error(call, err, text);
}

/* A file that goes to its store as it is, and counts as being read until it is there. */
static void on_file_put(const struct link_stored *stored, void *arg)
{
    struct loan *loan = arg;
    struct link_put *put = loan->put;

    loan->agent->loans--;
    free(loan);
    on_body_put(stored, put);
}

/* False: it was answered. */
static bool put_open(struct loan *loan, int file)
{
    loan->put = begin_put(loan->call, (struct hf_bytes){ 0 });
    if (loan->put == NULL)
        return false;
    link_store_put_file(loan->agent->link->store, loan->call->task, file, on_file_put, loan);
    return true;
}

static void on_file(int err, const char *text, struct hf_bytes content, int file, void *arg)
{
    struct loan *loan = arg;
    struct link_call *call = loan->call;

    if (call != NULL) {
        call->state = NULL;
        call->on_cancel = NULL;
    }
    if (call != NULL && file >= 0 && put_open(loan, file))
        return;
    if (call != NULL && file < 0 && err == HF_OK)
        put_body(call, content);
    else if (call != NULL && file < 0)
        refuse_file(call, err, text);
    if (file >= 0)
        (void)close(file);
    loan->agent->loans--;
    free(loan);
}

static void put_file(struct link_call *call, const char *path)
{
    struct link *link = call->process->agent->link;
    struct link_user room;
    const struct link_user *user = link_process_get_user(call->process, &room);
    struct link_path_limits limits = { .read = link_store_get_read_max(link->store),
                                       .max = link_store_get_file_max(link->store) };
    struct loan *loan;
    int rc;

    if (path[0] != '/') {
        link_call_error(call, HF_EINVAL,
                        path[0] == '\0' ? "path: where the checkpoint is"
                                        : "path: from the root on, since agentd is elsewhere");
        return;
    }
    if (call->process->agent->loans == MOST_LOANS) {
        link_call_error(call, HF_ELIMIT, "other files are being read for this agent");
        return;
    }
    loan = hf_calloc(1, sizeof *loan);
    if (loan == NULL) {
        link_call_error(call, HF_ENOMEM, NULL);
        return;
    }
    *loan = (struct loan){ .call = call, .agent = call->process->agent };
    rc = link_path_read(&link->loop, path, user, limits, on_file, loan);
    if (rc != HF_OK) {
        free(loan);
        link_call_error(call, rc, NULL);
        return;
    }
    loan->agent->loans++;
    call->state = loan;
    call->on_cancel = cancel_loan;
}

void link_call_put_checkpoint(struct link_call *call)
{
    ProtobufCMessage *message;

    if (!link_call_is_json(call->content_type)) {
        if (call->body.len > link_store_get_max(call->process->agent->link->store))
            refuse_size(call);
        else
            put_body(call, call->body);
        return;
    }
    if (!link_call_decode(call, &holdfast__v1__checkpoint_path__descriptor, &message))
        return;
    put_file(call, ((const Holdfast__V1__CheckpointPath *)message)->path);
    hf_json_free(message);
}

/* list */

static void on_listed(int err, struct link_chain *chain, void *arg)
{
    struct link_call *call = arg;
    Holdfast__V1__CheckpointList list = HOLDFAST__V1__CHECKPOINT_LIST__INIT;

    call->state = NULL;
    call->on_cancel = NULL;
    if (err != HF_OK) {
        link_call_error(call, err, "etcd could not be asked");
        return;
    }
    list.checkpoints = chain->entries;
    list.n_checkpoints = chain->count;
    link_call_reply(call, 200, &list.base);
    link_chain_free(chain);
}

static void cancel_read(struct link_call *call)
{
    link_chain_cancel(call->state);
}

void link_call_list_checkpoints(struct link_call *call)
{
    struct link_chain_read *read;
    int rc = link_chain_read(call->process->agent->link, call->task, on_listed, call, &read);

    if (rc != HF_OK) {
        link_call_error(call, rc, NULL);
        return;
    }
    call->state = read;
    call->on_cancel = cancel_read;
}

/* get: which one is for the node to say, which keeps in the task what it said */

struct get {
    struct link_call *call; /* NULL: whoever asked is gone, */
    struct link_agent *of;  /* but it counts for the agent until it is fetched */
    int64_t seq;
};

static void cancel_get(struct link_call *call)
{
    struct get *get = call->state;

    get->call = NULL;
    get->of = call->process->agent;
    call->is_get = false;
    call->state = NULL;
}

static void answer_body(struct link_call *call, const struct link_stored *stored, int64_t seq)
{
    struct link_answer answer = { .status = 200,
                                  .type = "application/octet-stream",
                                  .body = stored->body,
                                  .has_file = stored->has_file,
                                  .file = stored->file,
                                  .size = stored->size,
                                  .sha256 = stored->sha256 };
    char text[24];

    (void)snprintf(text, sizeof text, "%lld", (long long)seq);
    answer.seq = text;
    link_call_answer(call, &answer);
}

/* It was whole a moment ago: what is not any more is looked for anew when it is asked again. */
static void on_body(const struct link_stored *stored, void *arg)
{
    struct get *get = arg;
    struct link_call *call = get->call;

    if (call != NULL) {
        call->state = NULL;
        call->on_cancel = NULL;
        if (stored->err == HF_ECORRUPT || stored->err == HF_ENOENT)
            link_verify_forget(call->process->agent->link, call->task);
        if (stored->err == HF_OK)
            answer_body(call, stored, get->seq);
        else
            link_call_error(call, HF_EAGAIN, stored->text);
    } else {
        get->of->gets--;
    }
    free(get);
}

static void on_restored(const struct hf_intent_reply *reply, void *arg)
{
    struct link_call *call = arg;
    const struct link_stored *kept;
    struct get *get;

    call->ask = NULL;
    if (reply->err != HF_OK) {
        link_call_error(call, reply->err, reply->text);
        return;
    }
    if (reply->checkpoint == NULL) {
        link_call_error(call, HF_ENOENT, "it has no checkpoint to go on from");
        return;
    }
    /* What was found to be whole because it is kept here need not be whole in its store. */
    kept = link_resume_find(call->process->agent->link, reply->checkpoint);
    if (kept != NULL) {
        answer_body(call, kept, reply->seq);
        return;
    }
    get = hf_calloc(1, sizeof *get);
    if (get == NULL) {
        link_call_error(call, HF_ENOMEM, NULL);
        return;
    }
    *get = (struct get){ .call = call, .seq = reply->seq };
    call->state = get;
    call->on_cancel = cancel_get;
    link_store_get(call->process->agent->link->store, reply->checkpoint, on_body, get);
}

void link_call_get_checkpoint(struct link_call *call)
{
    struct hf_event_ask ask = { .kind = HF_ASK_RESTORE, .task = call->task };
    struct link_agent *agent = call->process->agent;
    int64_t seq;
    const struct link_stored *kept = link_resume_get(call->process, call->task, &seq);

    if (agent->gets == MOST_GETS) {
        link_call_error(call, HF_ELIMIT, "other checkpoints are being read for this agent");
        return;
    }
    agent->gets++;
    call->is_get = true;
    /* Whoever may have lost its task meanwhile is answered by the node, which knows. */
    if (kept != NULL && agent->link->lease_state == HF_LEASE_HELD) {
        answer_body(call, kept, seq);
        return;
    }
    link_call_ask(call, &ask, on_restored);
}
