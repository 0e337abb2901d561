/* buf.h - a growing byte buffer with a limit and a sticky error.
 *
 * After a failed append every further one is a no-op, so a writer checks once, at the end.
 * The content is always NUL-terminated (the NUL is not counted in len). */
#ifndef HF_BASE_BUF_H
#define HF_BASE_BUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* A borrowed run of bytes. */
struct hf_bytes {
    const void *data;
    size_t len;
};

/* Zero-initialise: `struct hf_buf buf = { .limit = 4096 };`; limit 0 means 64 MiB. */
struct hf_buf {
    char *data; /* NULL while empty */
    size_t len;
    size_t cap;
    size_t limit;
    int err; /* HF_OK, HF_ENOMEM or HF_ELIMIT */
};

void hf_buf_done(struct hf_buf *buf);

/* Empties the buffer, keeps its memory, forgets the error. */
void hf_buf_clear(struct hf_buf *buf);

void hf_buf_append(struct hf_buf *buf, const void *data, size_t len);
void hf_buf_putc(struct hf_buf *buf, char c);
void hf_buf_puts(struct hf_buf *buf, const char *text);
void hf_buf_printf(struct hf_buf *buf, const char *fmt, ...) HF_PRINTF(2, 3);

/* Room for `len` more bytes, zeroed; write them at the returned pointer and add what was
 * written to buf->len. NULL when the buffer has failed. */
char *hf_buf_reserve(struct hf_buf *buf, size_t len);

/* Hands the content out (the caller frees it) and leaves the buffer empty. On failure the
 * buffer keeps its error and the outputs are untouched. ret_len may be NULL. */
int hf_buf_take(struct hf_buf *buf, char **ret_text, size_t *ret_len) HF_MUST_CHECK;

#define HF_CLEANUP_BUF __attribute__((cleanup(hf_buf_done)))

#endif
