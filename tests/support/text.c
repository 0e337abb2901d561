#include "support/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"

enum { FIRST_SIZE = 16384 };

char *hft_read_text(const char *path, size_t *ret_len)
{
    HF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0, size = FIRST_SIZE;
    char *text = malloc(size);
    ssize_t n;

    ck_assert_ptr_nonnull(text);
    while (fd >= 0 && (n = read(fd, text + len, size - 1 - len)) > 0) {
        len += (size_t)n;
        if (len < size - 1)
            continue;
        size *= 2;
        text = realloc(text, size);
        ck_assert_ptr_nonnull(text);
    }
    text[len] = '\0';
    if (ret_len != NULL)
        *ret_len = len;
    return text;
}
