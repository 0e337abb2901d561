#include "base/buf.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define LIMIT_DEFAULT ((size_t)64 << 20)
#define CAP_MIN       64

void hf_buf_done(struct hf_buf *buf)
{
    if (buf == NULL)
        return;
    free(buf->data);
    *buf = (struct hf_buf){ .limit = buf->limit };
}

void hf_buf_clear(struct hf_buf *buf)
{
    buf->len = 0;
    buf->err = HF_OK;
    if (buf->data != NULL)
        buf->data[0] = '\0';
}

/* Room for `len` more bytes and their NUL, or NULL with buf->err set. */
static char *make_room(struct hf_buf *buf, size_t len)
{
    size_t limit = buf->limit != 0 ? buf->limit : LIMIT_DEFAULT;
    size_t need;

    if (buf->err != HF_OK)
        return NULL;
    if (__builtin_add_overflow(buf->len, len, &need) || need > limit || need == SIZE_MAX) {
        buf->err = HF_ELIMIT;
        return NULL;
    }
    need++;
    if (!hf_grow(&buf->data, &buf->cap, need > CAP_MIN ? need : CAP_MIN, 1)) {
        buf->err = HF_ENOMEM;
        return NULL;
    }
    return buf->data + buf->len;
}

void hf_buf_append(struct hf_buf *buf, const void *data, size_t len)
{
    char *room;

    if (len == 0) /* data may be NULL then, and an empty buffer stays without memory */
        return;
    room = make_room(buf, len);
    if (room == NULL)
        return;
    memcpy(room, data, len);
    room[len] = '\0';
    buf->len += len;
}

void hf_buf_putc(struct hf_buf *buf, char c)
{
    hf_buf_append(buf, &c, 1);
}

void hf_buf_puts(struct hf_buf *buf, const char *text)
{
    hf_buf_append(buf, text, strlen(text));
}

void hf_buf_printf(struct hf_buf *buf, const char *fmt, ...)
{
    va_list args;
    char *room;
    int len;

    va_start(args, fmt);
    len = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    if (len < 0) { /* longer than printf can count */
        if (buf->err == HF_OK)
            buf->err = HF_ELIMIT;
        return;
    }
    room = make_room(buf, (size_t)len);
    if (room == NULL)
        return;
    va_start(args, fmt);
    (void)vsnprintf(room, (size_t)len + 1, fmt, args); /* it fits: that was measured above */
    va_end(args);
    buf->len += (size_t)len;
}

char *hf_buf_reserve(struct hf_buf *buf, size_t len)
{
    char *room = make_room(buf, len);

    /* Zeroed, so that the content stays terminated however much of it the caller uses. */
    if (room != NULL)
        memset(room, 0, len + 1);
    return room;
}

int hf_buf_take(struct hf_buf *buf, char **ret_text, size_t *ret_len)
{
    char *end = make_room(buf, 0); /* even an empty content is a text to free */

    if (end == NULL)
        return buf->err;
    *end = '\0';
    *ret_text = buf->data;
    if (ret_len != NULL)
        *ret_len = buf->len;
    *buf = (struct hf_buf){ .limit = buf->limit };
    return HF_OK;
}
