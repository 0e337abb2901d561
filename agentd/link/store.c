#include "agentd/link/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agentd/link/store_private.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/sha256.h"
#include "io/root.h"
#include "schema/json.h"
#include "schema/keys.h"

enum {
    COUNT_AGAIN_MS = 60000,
    COUNT_SOON_MS = 1000, /* before somebody is refused */
};

/* Jobs. */

struct link_store_job *link_store_new_job(struct link_store *store, const char *task,
                                          link_stored_fn fn, void *arg)
{
    struct link_store_job *job = hf_calloc(1, sizeof *job);

    if (job == NULL)
        return NULL;
    job->store = store;
    job->fn = fn;
    job->arg = arg;
    job->file = -1;
    (void)snprintf(job->task, sizeof job->task, "%s", task);
    store->jobs++;
    return job;
}

void link_store_finish(struct link_store_job *job, int err, const char *text)
{
    static const char *const NAMES[] = {
        [LINK_IN_ETCD] = "etcd", [LINK_IN_FILE] = "file", [LINK_IN_S3] = "s3"
    };
    struct link_stored stored = { .err = err,
                                  .text = err != HF_OK ? text : NULL,
                                  .store = NAMES[job->kind],
                                  .key = job->key,
                                  .size = job->kind == LINK_IN_S3 ? job->s3.size
                                                                  : (int64_t)job->len,
                                  .body = { job->body, job->body != NULL ? job->len : 0 },
                                  .has_file = job->file >= 0,
                                  .file = job->file };

    memcpy(stored.sha256, job->sha256, sizeof stored.sha256);
    job->store->jobs--;
    if (job->fn != NULL)
        job->fn(&stored, job->arg);
    if (job->file >= 0)
        (void)close(job->file);
    free(job->body);
    free(job);
}

static void on_deferred(struct hf_alarm *alarm)
{
    struct link_store_job *job =
        (struct link_store_job *)((char *)alarm - offsetof(struct link_store_job, alarm));

    link_store_finish(job, job->err, job->text);
}

/* A callback never comes from inside the call that it was given to. */
void link_store_finish_later(struct link_store_job *job, int err, const char *text)
{
    job->err = err;
    job->text = text;
    job->alarm.fn = on_deferred;
    hf_backend_set_alarm(&job->store->cfg.backend, &job->alarm,
                         hf_backend_now(&job->store->cfg.backend));
}

static void no_memory(link_stored_fn fn, void *arg)
{
    /* There is not even memory to wait with. */
    if (fn != NULL)
        fn(&(struct link_stored){ .err = HF_ENOMEM, .text = hf_err_text(HF_ENOMEM) }, arg);
}

int link_store_digest(const void *data, size_t len, char ret_hex[HF_SHA256_HEX_LEN + 1])
{
    uint8_t digest[HF_SHA256_LEN];
    int rc = hf_sha256(data, len, digest);

    if (rc == HF_OK)
        hf_sha256_format(digest, ret_hex);
    return rc;
}

int link_store_judge(const struct link_store_job *job)
{
    char hex[HF_SHA256_HEX_LEN + 1];
    int rc = link_store_digest(job->body, job->len, hex);

    if (rc != HF_OK)
        return rc;
    return (int64_t)job->len == job->want_size && strcmp(hex, job->sha256) == 0 ? HF_OK
                                                                                : HF_ECORRUPT;
}

void link_store_finish_get(struct link_store_job *job, int verdict)
{
    link_store_finish(job, verdict,
                      verdict == HF_ECORRUPT ? "the checkpoint is not what was stored"
                                             : hf_err_text(verdict));
}

/* Whose they are. */

int link_store_make_tag(const char *cluster, char ret_tag[LINK_STORE_TAG_LEN + 1])
{
    uint8_t digest[HF_SHA256_LEN];
    char text[HF_ID_LEN + 1];
    int rc = cluster[0] != '\0' ? hf_sha256(cluster, strlen(cluster), digest) : HF_ENOENT;

    if (rc != HF_OK)
        return rc;
    hf_id_format(0, digest, text);
    memcpy(ret_tag, text + HF_ID_LEN - LINK_STORE_TAG_LEN, LINK_STORE_TAG_LEN + 1);
    return HF_OK;
}

void link_store_set_owner(struct link_store *store, const char *cluster)
{
    if (link_store_make_tag(cluster, store->tag) != HF_OK)
        store->tag[0] = '\0';
}

bool link_store_has_tag(const char *key, const char *tag)
{
    return strlen(key) == HF_ID_LEN + LINK_STORE_TAG_LEN && strcmp(key + HF_ID_LEN, tag) == 0;
}

static int make_key(const struct link_store *store, char ret_key[LINK_STORE_KEY_BYTES])
{
    char id[HF_ID_LEN + 1];
    int rc = hf_id_new(id);

    _Static_assert(HF_ID_LEN + LINK_STORE_TAG_LEN + 1 < LINK_STORE_KEY_BYTES,
                   "there is room for both, and for a dot in front");
    if (rc == HF_OK)
        (void)snprintf(ret_key, LINK_STORE_KEY_BYTES, "%s%s", id, store->tag);
    return rc;
}

/* Where what does not go into etcd goes. */
static void put_beyond(struct link_store_job *job)
{
    const struct link_store *store = job->store;
    int rc = make_key(store, job->key);

    job->kind = job->file >= 0 || (store->s3 != NULL && store->cfg.choice != LINK_STORE_FILE)
                    ? LINK_IN_S3
                    : LINK_IN_FILE;
    if (rc == HF_OK && job->kind == LINK_IN_S3)
        link_store_s3_put(job);
    else if (rc == HF_OK)
        link_store_file_put(job);
    else
        link_store_finish_later(job, rc, hf_err_text(rc));
}

/* The store `etcd`. */

static int etcd_key(const struct link_store_job *job, char ret_key[HF_KEY_SIZE])
{
    char *end;
    long long number = strtoll(job->key, &end, 10);
    struct hf_key key = { HF_KEY_CHECKPOINT_BODY, .name = job->task, .seq = number };
    int len;

    if (*end != '\0' || number <= 0)
        return HF_ENOENT;
    len = hf_key_format(job->store->cfg.ns, &key, ret_key, NULL);
    return len < 0 ? len : HF_OK;
}

static void count(struct link_store_job *job);

/* Others drop bodies, too: nobody is refused on what was counted long ago. */
static void on_etcd_full(struct link_store_job *job)
{
    if (hf_backend_now(&job->store->cfg.backend) - job->store->counted_at >= COUNT_SOON_MS)
        count(job);
    else if (job->store->cfg.choice == LINK_STORE_AUTO)
        put_beyond(job);
    else
        link_store_finish_later(
            job, HF_ELIMIT,
            "the checkpoints in etcd have used up their 64 MiB: set checkpoints.store to "
            "`auto`, `file` or `s3`");
}

/* Whoever asked writes it with the entry that names it, in one Txn. */
static void etcd_put(struct link_store_job *job)
{
    struct link_store *store = job->store;

    if (store->total + (int64_t)job->len > LINK_STORE_ETCD_BUDGET) {
        on_etcd_full(job);
        return;
    }
    store->total += (int64_t)job->len;
    link_store_finish_later(job, HF_OK, NULL);
}

/* How much there is: counted now and then, and kept up to date in between. */
static void on_counted(const struct hf_range_result *result, void *arg)
{
    struct link_store_job *job = arg;
    struct link_store *store = job->store;

    if (result->result.err != HF_OK) {
        link_store_finish(job, HF_EAGAIN, "etcd could not be asked: try again");
        return;
    }
    for (size_t i = 0; i < result->count; i++) {
        ProtobufCMessage *record;
        const Holdfast__V1__Checkpoint *entry;

        if (hf_json_decode(&holdfast__v1__checkpoint__descriptor, result->kvs[i].value.data,
                           result->kvs[i].value.len, NULL, &record, NULL) != HF_OK)
            continue;
        entry = (const Holdfast__V1__Checkpoint *)record;
        if (strcmp(entry->store, "etcd") == 0 && entry->size > 0)
            job->counting += entry->size;
        hf_json_free(record);
    }
    if (result->more)
        return;
    store->total = job->counting;
    store->counted = true;
    store->counted_at = hf_backend_now(&store->cfg.backend);
    etcd_put(job);
}

static void count(struct link_store_job *job)
{
    const struct hf_backend *backend = &job->store->cfg.backend;
    struct hf_range_request request = { .range.prefix = true };
    char prefix[HF_KEY_SIZE];
    int len = hf_key_prefix(job->store->cfg.ns, HF_KEY_IN_CHECKPOINTS, NULL, prefix, NULL);
    int rc = len < 0 ? len : HF_OK;

    job->counting = 0;
    request.range.key = (struct hf_bytes){ prefix, len > 0 ? (size_t)len : 0 };
    if (rc == HF_OK)
        rc = backend->ops->list(backend->self, &request, on_counted, job, &job->list);
    if (rc != HF_OK)
        link_store_finish_later(job, rc, hf_err_text(rc));
}

static void count_then_put(struct link_store_job *job)
{
    const struct link_store *store = job->store;

    if (store->counted &&
        hf_backend_now(&store->cfg.backend) - store->counted_at < COUNT_AGAIN_MS)
        etcd_put(job);
    else
        count(job);
}

static void on_etcd_get(const struct hf_range_result *result, void *arg)
{
    struct link_store_job *job = arg;

    if (result->result.err != HF_OK) {
        link_store_finish(job, HF_EAGAIN, "etcd could not be asked: try again");
        return;
    }
    if (result->count == 0) {
        link_store_finish(job, HF_ENOENT, "the checkpoint's body is not there");
        return;
    }
    job->len = result->kvs[0].value.len;
    job->body = hf_memdup(result->kvs[0].value.data, job->len);
    if (job->body == NULL)
        link_store_finish(job, HF_ENOMEM, hf_err_text(HF_ENOMEM));
    else
        link_store_finish_get(job, link_store_judge(job));
}

static void etcd_get(struct link_store_job *job)
{
    const struct hf_backend *backend = &job->store->cfg.backend;
    struct hf_range_request request = { 0 };
    char key[HF_KEY_SIZE];
    int rc = etcd_key(job, key);

    request.range.key = hf_bytes_of(rc == HF_OK ? key : "");
    if (rc == HF_OK)
        rc = backend->ops->range(backend->self, &request, on_etcd_get, job, &job->call);
    if (rc != HF_OK)
        link_store_finish_later(job, rc, "the checkpoint's key makes no sense");
}

/* A number that nobody else draws, and that sorts by age for people who look. */
static int make_etcd_key(char ret_key[LINK_STORE_KEY_BYTES])
{
    uint32_t word;
    int rc = hf_id_random(&word, sizeof word);
    int64_t number = hf_clock_wall() * (1 << 20) + (word & ((1 << 20) - 1));

    if (rc == HF_OK)
        (void)snprintf(ret_key, LINK_STORE_KEY_BYTES, "%0*lld", HF_KEY_DIGITS,
                       (long long)number);
    return rc;
}

/* All of them. */

static bool makes_root(const struct link_store *store)
{
    return store->cfg.choice == LINK_STORE_AUTO || store->cfg.choice == LINK_STORE_FILE;
}

/* Where files are only read, a directory that nobody made is not made. */
static int open_root(struct link_store *store, struct hf_error *err)
{
    struct hf_error why = { "" };
    HF_CLEANUP_FD int dir = -1;
    int rc;

    if (makes_root(store) && mkdir(store->directory, 0700) != 0 && errno != EEXIST)
        return hf_error_set(err, HF_EIO, "checkpoints.directory %s: %s", store->directory,
                            strerror(errno));
    dir = open(store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!makes_root(store)) {
        (void)(dir >= 0 ? hf_root_read(dir, store->root) : HF_ENOENT);
        return HF_OK;
    }
    if (dir < 0)
        return hf_error_set(err, HF_EIO, "checkpoints.directory %s: %s", store->directory,
                            strerror(errno));
    rc = hf_root_make(dir, store->root, &why);
    return rc == HF_OK ? HF_OK
                       : hf_error_set(err, rc, "checkpoints.directory %s: %s", store->directory,
                                      why.text);
}

int link_store_new(const struct link_store_config *cfg, struct link_store **ret_store,
                   struct hf_error *err)
{
    struct link_store *store = hf_calloc(1, sizeof *store);
    int rc;

    if (store == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    store->cfg = *cfg;
    store->directory = hf_strdup(cfg->directory);
    store->cfg.spool = hf_strdup(cfg->spool);
    if (store->directory == NULL || store->cfg.spool == NULL) {
        link_store_free(store);
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    }
    rc = open_root(store, err);
    if (rc == HF_OK && cfg->s3 != NULL && cfg->s3->bucket != NULL)
        rc = link_s3_new(cfg->loop, cfg->s3, cfg->s3_idle, &store->s3);
    if (rc != HF_OK) {
        link_store_free(store);
        return rc;
    }
    *ret_store = store;
    return HF_OK;
}

void link_store_close(struct link_store *store)
{
    if (store == NULL)
        return;
    store->closing = true;
    link_s3_close(store->s3);
    store->s3 = NULL;
}

void link_store_free(struct link_store *store)
{
    if (store == NULL)
        return;
    free((void *)store->cfg.spool);
    free(store->directory);
    free(store);
}

const char *link_store_get_root(const struct link_store *store)
{
    return store->root;
}

size_t link_store_get_max(const struct link_store *store)
{
    return store->cfg.choice == LINK_STORE_ETCD ? LINK_STORE_ETCD_MAX : LINK_STORE_FILE_MAX;
}

size_t link_store_get_read_max(const struct link_store *store)
{
    if (store->s3 != NULL && store->cfg.choice == LINK_STORE_S3)
        return 0;
    if (store->s3 != NULL && store->cfg.choice == LINK_STORE_AUTO)
        return LINK_STORE_ETCD_MAX;
    return link_store_get_max(store);
}

int64_t link_store_get_file_max(const struct link_store *store)
{
    size_t max = link_store_get_max(store);

    return link_store_get_read_max(store) < max ? LINK_STORE_S3_MAX : (int64_t)max;
}

bool link_store_has_objects(const struct link_store *store)
{
    return store->s3 != NULL;
}

static bool find_kind(const char *name, enum link_store_kind *ret_kind)
{
    if (strcmp(name, "etcd") == 0)
        *ret_kind = LINK_IN_ETCD;
    else if (strcmp(name, "file") == 0)
        *ret_kind = LINK_IN_FILE;
    else if (strcmp(name, "s3") == 0)
        *ret_kind = LINK_IN_S3;
    else
        return false;
    return true;
}

void link_store_put(struct link_store *store, const char *task, struct hf_bytes body,
                    link_stored_fn fn, void *arg)
{
    struct link_store_job *job = link_store_new_job(store, task, fn, arg);
    bool in_etcd = store->cfg.choice == LINK_STORE_ETCD ||
                   (store->cfg.choice == LINK_STORE_AUTO && body.len <= LINK_STORE_ETCD_MAX);
    int rc;

    if (job == NULL) {
        no_memory(fn, arg);
        return;
    }
    job->kind = in_etcd ? LINK_IN_ETCD : LINK_IN_FILE;
    job->len = body.len;
    job->body = hf_memdup(body.data, body.len);
    rc = job->body != NULL ? HF_OK : HF_ENOMEM;
    if (rc == HF_OK && in_etcd) /* else where it takes nobody's time */
        rc = link_store_digest(body.data, body.len, job->sha256);
    if (rc == HF_OK && in_etcd)
        rc = make_etcd_key(job->key);
    if (rc == HF_OK && body.len > link_store_get_max(store))
        rc = HF_ELIMIT;
    if (rc != HF_OK)
        link_store_finish_later(job, rc, hf_err_text(rc));
    else if (in_etcd)
        count_then_put(job);
    else
        put_beyond(job);
}

void link_store_put_file(struct link_store *store, const char *task, int file,
                         link_stored_fn fn, void *arg)
{
    struct link_store_job *job = link_store_new_job(store, task, fn, arg);

    if (job == NULL) {
        (void)close(file);
        no_memory(fn, arg);
        return;
    }
    job->file = file;
    put_beyond(job);
}

static void get_file(struct link_store_job *job, const Holdfast__V1__Checkpoint *entry)
{
    if (entry->root != NULL && strcmp(entry->root->id, job->store->root) != 0)
        link_store_finish_later(job, HF_EAGAIN,
                                "the checkpoint lies in files that this host does not have");
    else
        link_store_file_get(job);
}

static void get(struct link_store_job *job, const Holdfast__V1__Checkpoint *entry)
{
    const struct link_store *store = job->store;

    (void)snprintf(job->sha256, sizeof job->sha256, "%s", entry->sha256);
    (void)snprintf(job->key, sizeof job->key, "%s", entry->key);
    job->want_size = entry->size;
    if (!find_kind(entry->store, &job->kind))
        link_store_finish_later(job, HF_EDENIED, "this host has no such store");
    else if (job->kind == LINK_IN_S3 && store->s3 == NULL)
        link_store_finish_later(
            job, HF_EDENIED,
            "the checkpoint lies in a bucket, and checkpoints.s3 is not set here");
    else if (job->kind == LINK_IN_ETCD)
        etcd_get(job);
    else if (hf_name_check("key", job->key, NULL) != HF_OK ||
             hf_name_check("task", job->task, NULL) != HF_OK)
        link_store_finish_later(job, HF_ECORRUPT, "the checkpoint's key makes no sense");
    else if (job->kind == LINK_IN_S3)
        link_store_s3_get(job);
    else
        get_file(job, entry);
}

void link_store_get(struct link_store *store, const Holdfast__V1__Checkpoint *entry,
                    link_stored_fn fn, void *arg)
{
    struct link_store_job *job = link_store_new_job(store, entry->task, fn, arg);

    if (job == NULL)
        no_memory(fn, arg);
    else
        get(job, entry);
}

void link_store_verify(struct link_store *store, const Holdfast__V1__Checkpoint *entry,
                       link_stored_fn fn, void *arg)
{
    struct link_store_job *job = link_store_new_job(store, entry->task, fn, arg);

    if (job == NULL) {
        no_memory(fn, arg);
        return;
    }
    job->gives_none = true;
    get(job, entry);
}

void link_store_drop(struct link_store *store, const char *task, const char *name,
                     const char *key, int64_t size)
{
    struct link_store_job *job;

    if (strcmp(name, "etcd") == 0) {
        if (store->total >= size)
            store->total -= size;
        return;
    }
    job = link_store_new_job(store, task, NULL, NULL);
    if (job == NULL)
        return;
    (void)snprintf(job->key, sizeof job->key, "%s", key);
    if (!find_kind(name, &job->kind) || (job->kind == LINK_IN_S3 && store->s3 == NULL) ||
        hf_name_check("task", job->task, NULL) != HF_OK ||
        hf_name_check("key", job->key + (job->key[0] == '.'), NULL) != HF_OK)
        link_store_finish_later(job, HF_EINVAL, "");
    else if (job->kind == LINK_IN_S3)
        link_store_s3_drop(job);
    else
        link_store_file_drop(job);
}
