/* Objects <namespace>/<task>/<key> beneath the prefix of the bucket. The helper reads and
 * writes files; what comes from memory, or is short enough to go there, passes through one that
 * is nowhere but in memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agentd/link/store_private.h"
#include "base/alloc.h"
#include "base/file.h"

enum {
    SHORT_BYTES = 64 << 10, /* that whoever verifies may want to keep */
    MOST_OBJECTS = 50000,   /* at one look; the rest comes when these are fewer */
    OLD_UPLOAD_MS = 24 * 3600 * 1000,
};

/* Nothing is concluded about a body from a bucket that cannot be asked. */
static int err_of(enum s3_packet_type type, int err)
{
    if (type == S3_PUT)
        return err == HF_OK || err == HF_ELIMIT || err == HF_ENOMEM ? err : HF_EAGAIN;
    return err == HF_OK || err == HF_ECORRUPT || err == HF_ENOENT || err == HF_ENOMEM
               ? err
               : HF_EAGAIN;
}

/* What failed is told later, unless there is no later. */
static void fail(struct link_store_job *job, int err, const char *text)
{
    (void)snprintf(job->told, sizeof job->told, "%s%s",
                   job->s3.type == S3_GET && err == HF_EAGAIN ? "the bucket: " : "", text);
    if (job->file >= 0)
        (void)close(job->file);
    job->file = -1;
    if (job->store->closing)
        link_store_finish(job, err, job->told);
    else
        link_store_finish_later(job, err, job->told);
}

/* False: it has failed already. */
static bool begin(struct link_store_job *job, enum s3_packet_type type, link_s3_fn fn)
{
    job->s3.type = type;
    job->s3.file = job->file;
    job->s3.fn = fn;
    job->s3.arg = job;
    (void)snprintf(job->s3.name, sizeof job->s3.name, "%s/%s/%s", job->store->cfg.ns, job->task,
                   job->key);
    if (job->store->s3 != NULL && link_s3_begin(job->store->s3, &job->s3) == HF_OK)
        return true;
    fail(job, HF_EAGAIN, "too much waits for the bucket: try again");
    return false;
}

/* Put. */

static void on_put(struct link_s3_job *s3, int err, const char *text)
{
    struct link_store_job *job = s3->arg;

    if (err != HF_OK) {
        fail(job, err_of(S3_PUT, err), text);
        return;
    }
    memcpy(job->sha256, s3->sha256, sizeof job->sha256);
    if (job->file >= 0)
        (void)close(job->file); /* it was ours to read */
    job->file = -1;
    job->len = (size_t)s3->size;
    link_store_finish(job, HF_OK, NULL);
}

static int fill_memory(const char *data, size_t len, int *ret_file)
{
    int file = memfd_create("checkpoint", MFD_CLOEXEC);

    while (file >= 0 && len > 0) {
        ssize_t n = write(file, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            (void)close(file);
            return HF_ENOMEM;
        }
        data += n;
        len -= (size_t)n;
    }
    *ret_file = file;
    return file >= 0 ? HF_OK : HF_ENOMEM;
}

static void work_fill(uv_work_t *work)
{
    struct link_store_job *job = work->data;

    job->err = fill_memory(job->body, job->len, &job->file);
}

static void on_filled(uv_work_t *work, int status)
{
    struct link_store_job *job = work->data;

    (void)status;
    free(job->body);
    job->body = NULL;
    if (job->err != HF_OK)
        link_store_finish(job, job->err, hf_err_text(job->err));
    else
        (void)begin(job, S3_PUT, on_put);
}

void link_store_s3_put(struct link_store_job *job)
{
    job->s3.size = job->file >= 0 ? LINK_STORE_S3_MAX : (int64_t)LINK_STORE_FILE_MAX;
    job->work.data = job;
    if (job->file >= 0)
        (void)begin(job, S3_PUT, on_put);
    else
        (void)uv_queue_work(job->store->cfg.loop, &job->work, work_fill, on_filled);
}

/* Get. */

static int read_back(struct link_store_job *job)
{
    job->body = malloc((size_t)job->want_size + 1);
    if (job->body == NULL)
        return HF_ENOMEM;
    while (job->len < (size_t)job->want_size) {
        ssize_t n = pread(job->file, job->body + job->len, (size_t)job->want_size - job->len,
                          (off_t)job->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return HF_EIO;
        job->len += (size_t)n;
    }
    job->body[job->len] = '\0';
    return link_store_judge(job);
}

static void work_read(uv_work_t *work)
{
    struct link_store_job *job = work->data;

    job->verdict = read_back(job);
    (void)close(job->file);
    job->file = -1;
}

static void on_read(uv_work_t *work, int status)
{
    struct link_store_job *job = work->data;

    (void)status;
    link_store_finish_get(job, job->verdict);
}

static void on_got(struct link_s3_job *s3, int err, const char *text)
{
    struct link_store_job *job = s3->arg;

    err = err_of(S3_GET, err);
    if (err == HF_ECORRUPT)
        fail(job, err, "the checkpoint is not what was stored");
    else if (err == HF_ENOENT)
        fail(job, err, "the checkpoint's body is not there");
    else if (err != HF_OK)
        fail(job, err, text);
    else if (job->file < 0 || job->want_size > (int64_t)LINK_STORE_FILE_MAX)
        link_store_finish_get(job, HF_OK);
    else
        (void)uv_queue_work(job->store->cfg.loop, &job->work, work_read, on_read);
}

/* A file for it: in memory, or where there is more room, and in no directory. */
static bool open_target(struct link_store_job *job)
{
    if (job->gives_none && job->want_size > SHORT_BYTES)
        return true;
    job->file = job->want_size <= (int64_t)LINK_STORE_FILE_MAX
                    ? memfd_create("checkpoint", MFD_CLOEXEC)
                    : hf_file_open_nameless(job->store->cfg.spool);
    return job->file >= 0;
}

void link_store_s3_get(struct link_store_job *job)
{
    job->work.data = job;
    job->s3.size = job->want_size;
    job->s3.type = S3_GET;
    memcpy(job->s3.sha256, job->sha256, sizeof job->s3.sha256);
    if (job->want_size < 0)
        fail(job, HF_ECORRUPT, "the checkpoint's size makes no sense");
    else if (!open_target(job))
        fail(job, HF_EAGAIN, strerror(errno));
    else
        (void)begin(job, S3_GET, on_got);
}

/* What cannot be removed now is found when the objects are looked at. */
static void on_dropped(struct link_s3_job *s3, int err, const char *text)
{
    struct link_store_job *job = s3->arg;

    job->store->drops--;
    if (err != HF_OK)
        fail(job, err, text);
    else
        link_store_finish(job, HF_OK, NULL);
}

void link_store_s3_drop(struct link_store_job *job)
{
    struct link_store *store = job->store;

    store->drops++;
    if (!begin(job, S3_DROP, on_dropped))
        store->drops--;
}

unsigned link_store_get_drops(const struct link_store *store)
{
    return store->drops;
}

/* All of them. */

struct list {
    struct link_store *store;
    struct link_store_files *files;
    void (*fn)(int err, const char *text, void *arg);
    void *arg;
    int err;
    size_t skip; /* of each name: the namespace */
    char *owner;
    char tag[LINK_STORE_TAG_LEN + 1]; /* of those that are wanted */
    struct link_s3_job s3;
};

/* Names that are none of ours are left alone. */
static void on_name(const char *name, void *arg)
{
    struct list *list = arg;
    struct link_store_name found = { 0 };
    char task[HF_NAME_SIZE];
    const char *slash;
    size_t len;

    if (strlen(name) <= list->skip || list->files->count >= MOST_OBJECTS)
        return;
    name += list->skip;
    slash = strchr(name, '/');
    len = slash != NULL ? (size_t)(slash - name) : 0;
    if (len == 0 || len >= sizeof task || strlen(slash + 1) >= sizeof found.key)
        return;
    (void)snprintf(task, sizeof task, "%.*s", (int)len, name);
    (void)snprintf(found.key, sizeof found.key, "%s", slash + 1);
    found.task = task;
    if (link_store_has_tag(found.key, list->tag) &&
        hf_name_check("task", task, NULL) == HF_OK &&
        hf_name_check("key", found.key, NULL) == HF_OK && list->err == HF_OK)
        list->err = link_store_files_add(list->files, &found);
}

static void on_listed(struct link_s3_job *s3, int err, const char *text)
{
    struct list *list = s3->arg;

    list->store->jobs--;
    list->fn(err != HF_OK ? err : list->err, text, list->arg);
    free(list->owner);
    free(list);
}

int link_store_list_objects(struct link_store *store, const char *owner,
                            struct link_store_files *files,
                            void (*fn)(int err, const char *text, void *arg), void *arg)
{
    struct list *list = hf_calloc(1, sizeof *list);
    int rc = HF_OK;

    if (list == NULL)
        return HF_ENOMEM;
    *list = (struct list){ .store = store, .files = files, .fn = fn, .arg = arg };
    list->owner = hf_strdup(owner);
    list->s3 = (struct link_s3_job){ .type = S3_LIST,
                                     .size = OLD_UPLOAD_MS,
                                     .owner = list->owner,
                                     .file = -1,
                                     .on_name = on_name,
                                     .fn = on_listed,
                                     .arg = list };
    (void)snprintf(list->s3.name, sizeof list->s3.name, "%s/", store->cfg.ns);
    list->skip = strlen(list->s3.name);
    store->jobs++;
    rc = list->owner == NULL ? HF_ENOMEM : link_store_make_tag(owner, list->tag);
    if (rc == HF_OK)
        rc = link_s3_begin(store->s3, &list->s3);
    if (rc != HF_OK) {
        store->jobs--;
        free(list->owner);
        free(list);
    }
    return rc;
}
