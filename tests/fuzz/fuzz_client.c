/* Whatever agentd might send an agent: what is understood of it does not depend on the pieces
 * that it came in, and is what it seems to be. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "client/event.h"
#include "client/head.h"
#include "client/sse.h"
#include "client/task.h"
#include "schema/name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds)
        abort();
}

static void try_head(const char *text, size_t len)
{
    struct hf_head head, again;
    struct hf_error err;
    int n = hf_head_parse(text, len, &head, &err);

    if (n <= 0)
        return;
    must((size_t)n <= len && head.status >= 100 && head.status < 600 && head.length >= -1);
    must(hf_head_parse(text, (size_t)n, &again, &err) == n && again.status == head.status &&
         again.length == head.length && again.seq == head.seq);
    must(hf_head_parse(text, (size_t)n - 1, &again, &err) == 0);
}

static void try_event(const struct hf_sse *sse)
{
    struct hf_client_event event;
    struct hf_error err;
    int rc =
        hf_client_event_parse((struct hf_bytes){ sse->name.data, sse->name.len },
                              (struct hf_bytes){ sse->data.data, sse->data.len }, &event, &err);

    if (rc == 1)
        must(hf_str_is_utf8(event.id, strlen(event.id)) &&
             hf_str_is_utf8(event.text, strlen(event.text)));
}

/* All that the stream tells, in pieces of `step` bytes. */
static void read_stream(const char *text, size_t len, size_t step, struct hf_buf *told)
{
    struct hf_sse sse = { 0 };

    for (size_t at = 0; at < len;) {
        size_t end = len - at < step ? len : at + step;

        while (at < end) {
            size_t used;
            int rc = hf_sse_feed(&sse, text + at, end - at, &used);

            must(used > 0 && used <= end - at);
            at += used;
            if (rc == 1) {
                try_event(&sse);
                hf_buf_append(told, sse.name.data, sse.name.len);
                hf_buf_putc(told, '=');
                hf_buf_append(told, sse.data.data, sse.data.len);
            }
            hf_buf_printf(told, "%s", rc == 0 ? "" : rc == 1 ? ";" : "!");
        }
    }
    hf_sse_done(&sse);
}

static void try_stream(const char *text, size_t len)
{
    static const size_t STEPS[] = { 1, 7 };
    HF_CLEANUP_BUF struct hf_buf whole = { 0 };

    read_stream(text, len, len + 1, &whole);
    for (size_t i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        HF_CLEANUP_BUF struct hf_buf parts = { 0 };

        read_stream(text, len, STEPS[i], &parts);
        must(parts.len == whole.len &&
             (whole.len == 0 || memcmp(parts.data, whole.data, whole.len) == 0));
    }
}

static void try_task(const char *text, size_t len)
{
    struct hf_client_task task;
    struct hf_error err;

    if (hf_client_task_parse(text, len, &task, &err) != HF_OK)
        return;
    must(hf_name_check("id", task.id, NULL) == HF_OK && task.checkpoint >= INT64_MIN);
    must(hf_str_is_utf8(task.payload, strlen(task.payload)) && task.role != NULL &&
         task.result != NULL && task.reason != NULL);
    must(memcmp(task.json, text, len) == 0);
    hf_client_task_done(&task);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy without a NUL behind it, so that nobody reads there unnoticed. */
    char *text = malloc(size > 0 ? size : 1);

    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    try_head(text, size);
    try_stream(text, size);
    try_task(text, size);
    free(text);
    return 0;
}
