/* One directory per task beneath the store's own, one file per body. A body is written under
 * another name, made durable, and only then given its own: what has a name is whole. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agentd/link/store_private.h"
#include "base/cleanup.h"
#include "io/root.h"

enum { DIRECTORY_MODE = 0700, FILE_MODE = 0600, PUT_TRIES = 3 };

static int err_of(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR: return HF_ENOENT;
    case ELOOP: return HF_ECORRUPT; /* a link where a file should be */
    case ENOMEM: return HF_ENOMEM;
    case ENOSPC:
    case EDQUOT: return HF_ELIMIT;
    default: return HF_EAGAIN; /* another hour, or another host, may read it */
    }
}

static const char *text_of(int number)
{
    return number == ESTALE ? "checkpoints.directory is not the directory that it was"
                            : strerror(number);
}

/* What is not in a directory that took the place of ours may well be in ours. */
static int check_root(const struct link_store *store, int root)
{
    char id[HF_ID_LEN + 1];

    return store->root[0] == '\0' ||
                   (hf_root_read(root, id) == HF_OK && strcmp(id, store->root) == 0)
               ? 0
               : ESTALE;
}

static int open_task(const struct link_store_job *job, bool make, int *ret_fd)
{
    HF_CLEANUP_FD int root = open(job->store->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    HF_CLEANUP_FD int parent = -1;
    int rc = root < 0 ? errno : check_root(job->store, root);

    if (rc != 0)
        return rc == ENOENT && job->store->root[0] != '\0' ? ESTALE : rc;
    if (make && mkdirat(root, job->task, DIRECTORY_MODE) == 0) {
        parent = open(job->store->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (parent < 0 || fsync(parent) != 0)
            return errno;
    } else if (make && errno != EEXIST) {
        return errno;
    }
    *ret_fd = openat(root, job->task, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return *ret_fd < 0 ? errno : 0;
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        data += n;
        len -= (size_t)n;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

static int try_put(const struct link_store_job *job)
{
    char name[LINK_STORE_KEY_BYTES + 8];
    HF_CLEANUP_FD int task = -1;
    HF_CLEANUP_FD int fd = -1;
    int rc = open_task(job, true, &task);

    if (rc != 0)
        return rc;
    (void)snprintf(name, sizeof name, ".%s", job->key);
    fd = openat(task, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return errno;
    rc = write_all(fd, job->body, job->len);
    if (rc == 0 && renameat(task, name, task, job->key) != 0)
        rc = errno;
    if (rc == 0 && fsync(task) != 0)
        rc = errno;
    if (rc != 0)
        (void)unlinkat(task, name, 0);
    return rc;
}

static int put(const struct link_store_job *job)
{
    int rc = ENOENT;

    for (int i = 0; i < PUT_TRIES && rc == ENOENT; i++)
        rc = try_put(job);
    return rc;
}

static int read_all(int fd, struct link_store_job *job)
{
    struct stat info;

    if (fstat(fd, &info) != 0)
        return errno;
    if (!S_ISREG(info.st_mode) || info.st_size > (off_t)LINK_STORE_FILE_MAX)
        return ELOOP;
    job->body = malloc((size_t)info.st_size + 1);
    if (job->body == NULL)
        return ENOMEM;
    while (job->len < (size_t)info.st_size) {
        ssize_t n = read(fd, job->body + job->len, (size_t)info.st_size - job->len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        if (n == 0)
            break; /* shorter than it was: the digest tells */
        job->len += (size_t)n;
    }
    job->body[job->len] = '\0';
    return 0;
}

static int get(struct link_store_job *job)
{
    HF_CLEANUP_FD int task = -1;
    HF_CLEANUP_FD int fd = -1;
    int rc = open_task(job, false, &task);

    if (rc != 0)
        return rc;
    fd = openat(task, job->key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? errno : read_all(fd, job);
}

/* With the last body its directory goes; whoever puts one there at that moment makes another.
 */
static void remove_if_empty(const struct link_store_job *job)
{
    HF_CLEANUP_FD int root = open(job->store->directory, O_PATH | O_DIRECTORY | O_CLOEXEC);

    if (root >= 0)
        (void)unlinkat(root, job->task, AT_REMOVEDIR);
}

static int drop(const struct link_store_job *job)
{
    HF_CLEANUP_FD int task = -1;
    int rc = open_task(job, false, &task);

    if (rc == 0 && unlinkat(task, job->key, 0) != 0)
        rc = errno;
    if (rc == 0)
        remove_if_empty(job);
    return rc;
}

/* On the pool's threads, and back. To digest what is large takes longer than a loop that has a
 * lease to renew may stand still, so that is done there, too. */

static void work_put(uv_work_t *work)
{
    struct link_store_job *job = work->data;

    job->err = link_store_digest(job->body, job->len, job->sha256) == HF_OK ? put(job) : ENOMEM;
}

static void work_get(uv_work_t *work)
{
    struct link_store_job *job = work->data;

    job->err = get(job);
    if (job->err == 0)
        job->verdict = link_store_judge(job);
}

static void work_drop(uv_work_t *work)
{
    struct link_store_job *job = work->data;

    job->err = drop(job);
}

static void on_done(uv_work_t *work, int status)
{
    struct link_store_job *job = work->data;

    (void)status;
    if (job->err != 0)
        link_store_finish(job, err_of(job->err), text_of(job->err));
    else
        link_store_finish(job, HF_OK, NULL);
}

static void on_got(uv_work_t *work, int status)
{
    struct link_store_job *job = work->data;

    (void)status;
    if (job->err != 0)
        link_store_finish(job, err_of(job->err), text_of(job->err));
    else
        link_store_finish_get(job, job->verdict);
}

static void queue(struct link_store_job *job, uv_work_cb work, uv_after_work_cb after)
{
    job->work.data = job;
    (void)uv_queue_work(job->store->cfg.loop, &job->work, work, after); /* EINVAL only */
}

void link_store_file_put(struct link_store_job *job)
{
    queue(job, work_put, on_done);
}

void link_store_file_get(struct link_store_job *job)
{
    queue(job, work_get, on_got);
}

void link_store_file_drop(struct link_store_job *job)
{
    queue(job, work_drop, on_done);
}
