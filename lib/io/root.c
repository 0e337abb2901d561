#include "io/root.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "schema/name.h"

enum { FILE_MODE = 0644 }; /* it is no secret */

int hf_root_read(int dir, char ret_id[HF_ID_LEN + 1])
{
    HF_CLEANUP_FD int fd =
        openat(dir, HF_ROOT_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    char text[HF_ID_LEN + 2];
    ssize_t n;

    if (fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? HF_ENOENT : HF_EIO;
    do
        n = read(fd, text, sizeof text);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return HF_EIO;
    if (n != HF_ID_LEN + 1 || text[HF_ID_LEN] != '\n')
        return HF_ECORRUPT;
    text[HF_ID_LEN] = '\0';
    if (hf_name_check("root", text, NULL) != HF_OK)
        return HF_ECORRUPT;
    memcpy(ret_id, text, sizeof(char[HF_ID_LEN + 1]));
    return HF_OK;
}

/* Under another name first, and made durable: what has its own name is whole. A link, not a
 * rename, because it never takes the place of what another host has put there meanwhile. */
static int write_new(int dir, const char *id)
{
    char name[sizeof HF_ROOT_FILE + HF_ID_LEN + 2], text[HF_ID_LEN + 2];
    HF_CLEANUP_FD int fd = -1;
    int rc = 0;

    (void)snprintf(name, sizeof name, "%s.%s", HF_ROOT_FILE, id);
    (void)snprintf(text, sizeof text, "%s\n", id);
    fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return errno;
    if (write(fd, text, HF_ID_LEN + 1) != HF_ID_LEN + 1)
        rc = EIO;
    else if (fsync(fd) != 0 || linkat(dir, name, dir, HF_ROOT_FILE, 0) != 0)
        rc = errno;
    (void)unlinkat(dir, name, 0);
    if (rc == 0 && fsync(dir) != 0)
        rc = errno;
    return rc == EEXIST ? 0 : rc;
}

int hf_root_make(int dir, char ret_id[HF_ID_LEN + 1], struct hf_error *err)
{
    char id[HF_ID_LEN + 1];
    int rc = hf_root_read(dir, ret_id);

    if (rc == HF_ENOENT) {
        int number;

        rc = hf_id_new(id);
        if (rc != HF_OK)
            return hf_error_set(err, rc, "%s", hf_err_text(rc));
        number = write_new(dir, id);
        if (number != 0)
            return hf_error_set(err, HF_EIO, "its id cannot be written: %s", strerror(number));
        rc = hf_root_read(dir, ret_id);
    }
    if (rc != HF_OK)
        return hf_error_set(err, rc, HF_ROOT_FILE " there cannot be read: %s", hf_err_text(rc));
    return HF_OK;
}
