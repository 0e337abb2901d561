#include "agentd/link/path.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"

struct reading {
    uv_work_t work;
    link_path_fn fn;
    void *arg;
    struct link_user *as; /* NULL: ourselves */
    struct link_path_limits limits;
    int file;
    char *data;
    size_t len;
    int error; /* errno */
    char path[];
};

static void free_reading(struct reading *reading)
{
    free(reading->as);
    free(reading->data);
    if (reading->file >= 0)
        (void)close(reading->file);
    free(reading);
}

static int open_plainly(const char *path)
{
    struct open_how how = { .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                            .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS };
    long fd = syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);

    return (int)fd;
}

/* The calls themselves and not what libc makes of them, which would change all threads. */
static int set_groups(size_t count, const gid_t *groups)
{
    return (int)syscall(SYS_setgroups, count, groups);
}

/* What is checked when a file is opened belongs to this thread alone for as long as that takes.
 */
static int open_as(const struct link_user *as, const char *path)
{
    gid_t ours[65536 / sizeof(gid_t)];
    int count = getgroups((int)(sizeof ours / sizeof ours[0]), ours);
    int fd = -1, error;

    if (count < 0 || set_groups(as->group_count, as->groups) != 0)
        return -1;
    (void)setfsgid(as->gid);
    (void)setfsuid(as->uid);
    errno = EPERM;
    if ((uid_t)setfsuid((uid_t)-1) == as->uid && (gid_t)setfsgid((gid_t)-1) == as->gid)
        fd = open_plainly(path);
    error = errno;
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
    if (set_groups((size_t)count, ours) != 0)
        abort(); /* never go on as somebody else */
    errno = error;
    return fd;
}

/* What stands in such a file depends on the process that opens it, and on rights that it has
 * beside those to files: it would be what we may know, not whoever asks. */
static bool is_of_kernel(int file)
{
    struct statfs system;

    return fstatfs(file, &system) != 0 || system.f_type == PROC_SUPER_MAGIC;
}

static int look_at(const struct reading *reading)
{
    struct stat info;

    if (fstat(reading->file, &info) != 0)
        return errno;
    if (!S_ISREG(info.st_mode) || (reading->as != NULL && is_of_kernel(reading->file)))
        return EINVAL;
    return info.st_size > reading->limits.max ? EFBIG : 0;
}

/* To its end, whatever size it claims to have; one byte more than is to be read shows that
 * there is more. */
static int read_whole(struct reading *reading)
{
    size_t most = reading->limits.read;

    reading->data = malloc(most + 1);
    if (reading->data == NULL)
        return ENOMEM;
    while (reading->len <= most) {
        ssize_t n = read(reading->file, reading->data + reading->len, most + 1 - reading->len);

        if (n == 0) {
            (void)close(reading->file);
            reading->file = -1;
            return 0;
        }
        if (n < 0 && errno != EINTR)
            return errno;
        reading->len += n > 0 ? (size_t)n : 0;
    }
    return (int64_t)most < reading->limits.max ? 0 : EFBIG;
}

static void work(uv_work_t *handle)
{
    struct reading *reading = handle->data;

    reading->file =
        reading->as != NULL ? open_as(reading->as, reading->path) : open_plainly(reading->path);
    reading->error = reading->file >= 0 ? look_at(reading) : errno;
    if (reading->error == 0)
        reading->error = read_whole(reading);
}

static int err_of(int error)
{
    switch (error) {
    case 0: return HF_OK;
    case ENOENT:
    case ENOTDIR: return HF_ENOENT;
    case EACCES:
    case EPERM: return HF_EDENIED;
    case ELOOP:
    case EINVAL:
    case ENAMETOOLONG: return HF_EINVAL;
    case EFBIG: return HF_ELIMIT;
    case ENOMEM: return HF_ENOMEM;
    default: return HF_EIO;
    }
}

static const char *text_of(int error)
{
    switch (error) {
    case ELOOP: return "it is a link, or lies behind one";
    case EINVAL: return "it is no regular file";
    case EFBIG: return "it is too large";
    default: return strerror(error);
    }
}

static void on_done(uv_work_t *handle, int status)
{
    struct reading *reading = handle->data;
    struct hf_error err = { "" };
    int rc = err_of(status == 0 ? reading->error : EIO);

    if (rc != HF_OK)
        rc = hf_error_set(&err, rc, "path: %.150s: %s", reading->path, text_of(reading->error));
    if (rc == HF_OK && reading->file >= 0) {
        int file = reading->file;

        reading->file = -1;
        reading->fn(rc, err.text, (struct hf_bytes){ 0 }, file, reading->arg);
    } else {
        reading->fn(rc, err.text, (struct hf_bytes){ reading->data, reading->len }, -1,
                    reading->arg);
    }
    free_reading(reading);
}

int link_path_read(uv_loop_t *loop, const char *path, const struct link_user *as,
                   struct link_path_limits limits, link_path_fn fn, void *arg)
{
    struct reading *reading = hf_calloc(1, sizeof *reading + strlen(path) + 1);

    if (reading == NULL)
        return HF_ENOMEM;
    *reading = (struct reading){ .fn = fn, .arg = arg, .limits = limits, .file = -1 };
    reading->work.data = reading;
    memcpy(reading->path, path, strlen(path) + 1);
    if (as != NULL) {
        reading->as = hf_memdup(as, sizeof *as);
        if (reading->as == NULL) {
            free_reading(reading);
            return HF_ENOMEM;
        }
    }
    (void)uv_queue_work(loop, &reading->work, work, on_done); /* EINVAL only */
    return HF_OK;
}
