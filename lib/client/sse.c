#include "client/sse.h"

#include <stdint.h>
#include <string.h>

static const unsigned char MARK[] = { 0xef, 0xbb, 0xbf }; /* of UTF-8 */

void hf_sse_done(struct hf_sse *sse)
{
    hf_buf_done(&sse->name);
    hf_buf_done(&sse->data);
    hf_buf_done(&sse->line);
    *sse = (struct hf_sse){ 0 };
}

static void begin_event(struct hf_sse *sse)
{
    hf_buf_clear(&sse->name);
    hf_buf_clear(&sse->data);
    sse->has_data = false;
    sse->is_over = false;
    sse->is_dropped = false;
}

void hf_sse_clear(struct hf_sse *sse)
{
    begin_event(sse);
    hf_buf_clear(&sse->line);
    sse->seen = 0;
    sse->after_cr = false;
}

static bool is_field(const struct hf_buf *line, size_t name_len, const char *name)
{
    return name_len == strlen(name) && memcmp(line->data, name, name_len) == 0;
}

/* A line that is not empty; one that begins with a colon is a comment. */
static void take_line(struct hf_sse *sse)
{
    const struct hf_buf *line = &sse->line;
    const char *colon = memchr(line->data, ':', line->len);
    size_t name_len = colon != NULL ? (size_t)(colon - line->data) : line->len;
    size_t at = colon != NULL ? name_len + 1 : line->len;

    if (at < line->len && line->data[at] == ' ')
        at++;
    if (is_field(line, name_len, "event")) {
        hf_buf_clear(&sse->name);
        hf_buf_append(&sse->name, line->data + at, line->len - at);
    } else if (is_field(line, name_len, "data")) {
        if (sse->has_data)
            hf_buf_putc(&sse->data, '\n');
        hf_buf_append(&sse->data, line->data + at, line->len - at);
        sse->has_data = true;
    }
}

static int failure_of(const struct hf_sse *sse)
{
    return sse->line.err != HF_OK   ? sse->line.err
           : sse->name.err != HF_OK ? sse->name.err
                                    : sse->data.err;
}

/* The end of a line: 1 when it ends an event. What is too long is told where it ends. */
static int end_line(struct hf_sse *sse)
{
    bool is_empty = sse->line.len == 0 && sse->line.err == HF_OK;
    int rc;

    if (!is_empty && sse->line.err == HF_OK)
        take_line(sse);
    rc = failure_of(sse);
    hf_buf_clear(&sse->line);
    if (rc == HF_ELIMIT) {
        begin_event(sse);
        sse->is_dropped = true;
        return HF_OK;
    }
    if (rc != HF_OK)
        return rc;
    if (!is_empty)
        return 0;
    if (sse->is_dropped) {
        begin_event(sse);
        return HF_ELIMIT;
    }
    if (sse->has_data) {
        sse->is_over = true;
        return 1;
    }
    begin_event(sse);
    return 0;
}

/* The bytes at the very beginning that are a byte order mark say nothing. Those that only begin
 * like one would be the name of a field that nobody knows, so they are not missed. */
static bool is_mark(struct hf_sse *sse, char c)
{
    if (sse->seen >= sizeof MARK)
        return false;
    if ((unsigned char)c == MARK[sse->seen]) {
        sse->seen++;
        return true;
    }
    sse->seen = sizeof MARK;
    return false;
}

/* How many bytes until something ends a line. */
static size_t plain_length(const char *data, size_t len)
{
    size_t n = 0;

    while (n < len && data[n] != '\n' && data[n] != '\r')
        n++;
    return n;
}

static void prepare(struct hf_sse *sse)
{
    sse->name.limit = sse->data.limit = HF_SSE_EVENT_MAX;
    sse->line.limit = HF_SSE_EVENT_MAX + 16;
    if (sse->is_over)
        begin_event(sse);
}

int hf_sse_feed(struct hf_sse *sse, const char *data, size_t len, size_t *ret_used)
{
    size_t at = 0;
    int rc = 0;

    prepare(sse);
    while (rc == 0 && at < len) {
        size_t plain;

        if (is_mark(sse, data[at])) {
            at++;
            continue;
        }
        plain = plain_length(data + at, len - at);
        if (plain > 0) {
            hf_buf_append(&sse->line, data + at, plain);
            sse->after_cr = false;
            at += plain;
            continue;
        }
        if (data[at] == '\n' && sse->after_cr) {
            sse->after_cr = false;
            at++;
            continue;
        }
        sse->after_cr = data[at] == '\r';
        at++;
        rc = end_line(sse);
    }
    *ret_used = at;
    return rc;
}
