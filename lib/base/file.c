#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

static bool write_all(int fd, const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        len -= (size_t)n;
    }
    return true;
}

static bool is_no_file(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && !S_ISREG(info.st_mode);
}

int hf_file_write(const char *path, const void *data, size_t len, struct hf_error *err)
{
    bool in_place = is_no_file(path);
    HF_CLEANUP_FD int fd = -1;
    char beside[PATH_MAX];

    if (snprintf(beside, sizeof beside, "%s%s", path, in_place ? "" : ".new") >=
        (int)sizeof beside)
        return hf_error_set(err, HF_EINVAL, "%s: the name is too long", path);
    fd = open(beside, O_WRONLY | O_CLOEXEC | (in_place ? 0 : O_CREAT | O_TRUNC), 0644);
    if (fd < 0 || !write_all(fd, data, len) || (!in_place && rename(beside, path) != 0)) {
        int why = errno;

        if (fd >= 0 && !in_place)
            (void)unlink(beside);
        return hf_error_set(err, HF_EIO, "%s cannot be written: %s", path, strerror(why));
    }
    return HF_OK;
}

/* Not every file system can do it at once. */
int hf_file_open_nameless(const char *directory)
{
    int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    char name[PATH_MAX];

    if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
        return fd;
    if (snprintf(name, sizeof name, "%s/.holdfast-XXXXXX", directory) >= (int)sizeof name) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = mkostemp(name, O_CLOEXEC);
    if (fd >= 0)
        (void)unlink(name);
    return fd;
}

void hf_stdio_fill(void)
{
    int fd = open("/dev/null", O_RDWR);

    while (fd >= 0 && fd <= STDERR_FILENO)
        fd = open("/dev/null", O_RDWR);
    if (fd >= 0)
        (void)close(fd);
}

static bool is_program(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISREG(info.st_mode) && access(path, X_OK) == 0;
}

bool hf_file_is_program(const char *name, const char *path)
{
    char file[PATH_MAX];

    if (strchr(name, '/') != NULL)
        return is_program(name);
    while (path[0] != '\0') {
        size_t len = strcspn(path, ":");

        if (snprintf(file, sizeof file, "%.*s/%s", (int)len, path, name) < (int)sizeof file &&
            is_program(file))
            return true;
        path += len + (path[len] == ':' ? 1 : 0);
    }
    return false;
}
