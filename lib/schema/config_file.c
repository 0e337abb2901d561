/* config_file.c - the file's bytes from the disk. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "schema/config_private.h"

#define CHUNK ((size_t)16 << 10)

static int err_from_errno(int e)
{
    switch (e) {
    case ENOENT: return HF_ENOENT;
    case EACCES:
    case EPERM: return HF_EDENIED;
    case ENOMEM: return HF_ENOMEM;
    default: return HF_EIO;
    }
}

/* Reads up to one chunk more than is allowed: that is how an oversized file shows itself.
 * Returns 0 or an errno. */
static int read_all(int fd, struct hf_buf *text)
{
    while (text->len <= HF_CONFIG_FILE_MAX) {
        char *room = hf_buf_reserve(text, CHUNK);
        ssize_t n;

        if (room == NULL)
            return ENOMEM;
        n = read(fd, room, CHUNK);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return errno;
        text->len += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

int hf_config_read_disk(const char *path, struct hf_buf *text, void *unused)
{
    HF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

    (void)unused;
    return fd >= 0 ? read_all(fd, text) : errno;
}

int hf_config_read_file(struct hf_config *cfg, const char *path, struct hf_error *err)
{
    const struct hf_config_place whole = { .source = HF_CONFIG_FILE, .path = path };
    HF_CLEANUP_BUF struct hf_buf text = { .limit = HF_CONFIG_FILE_MAX + 2 * CHUNK };
    int e = cfg->files.read != NULL ? cfg->files.read(path, &text, cfg->files.arg)
                                    : hf_config_read_disk(path, &text, NULL);

    if (e != 0)
        return hf_config_fail(&whole, err_from_errno(e), err, "cannot be read: %s",
                              strerror(e));
    return hf_config_read_text(cfg, path, text.data, text.len, err);
}
