#include <string.h>

#include "client/sse.h"
#include "support/chaos.h"
#include "unit/suite.h"

/* All events of a text that comes in pieces of `step` bytes, as "name=data;". */
static int read_all(const char *text, size_t len, size_t step, struct hf_buf *out)
{
    struct hf_sse sse = { 0 };
    int rc = 0, first = HF_OK;

    for (size_t at = 0; at < len && (rc >= 0 || rc == HF_ELIMIT);) {
        size_t left = len - at < step ? len - at : step;

        while (left > 0) {
            size_t used = 0;

            rc = hf_sse_feed(&sse, text + at, left, &used);
            at += used;
            left -= used;
            if (rc == 1)
                hf_buf_printf(out, "%.*s=%.*s;", (int)sse.name.len, sse.name.data,
                              (int)sse.data.len, sse.data.data);
            if (rc == HF_ELIMIT)
                hf_buf_puts(out, "long;");
            if (rc < 0 && first == HF_OK)
                first = rc;
            if (rc < 0 && rc != HF_ELIMIT)
                break;
        }
    }
    hf_sse_done(&sse);
    return first == HF_OK || first == HF_ELIMIT ? out->err : first;
}

static const struct {
    const char *text, *events;
} STREAMS[] = {
    { "event: ping\ndata: {\"id\":\"1\"}\n\n", "ping={\"id\":\"1\"};" },
    { "event: a\r\ndata: 1\r\n\r\nevent: b\r\ndata: 2\r\n\r\n", "a=1;b=2;" },
    { "event: a\rdata: 1\r\revent: b\rdata: 2\r\r", "a=1;b=2;" },
    { ": alive\n\n: alive\n\nevent: a\ndata: 1\n\n", "a=1;" },
    { "data: one\ndata: two\ndata:\ndata\n\n", "=one\ntwo\n\n;" },
    { "data:  two spaces\n\n", "= two spaces;" },
    { "data:none\n\n", "=none;" },
    { "event: a\n\ndata: x\n\n",
      "=x;" }, /* without data there is no event, and no name stays */
    { "event: a\nevent: b\ndata: x\n\n", "b=x;" },
    { "data\n\n", "=;" },
    { "id: 7\nretry: 10\nnonsense\nnonsense: 1\ndata: x\n\n", "=x;" },
    { "\xef\xbb\xbf"
      "data: x\n\n",
      "=x;" },
    { "data: \xef\xbb\xbfx\n\n", "=\xef\xbb\xbfx;" },
    { "dataa: x\n\ndat: x\n\n", "" },
    { "data: cut off", "" },
    { "data: cut off\n", "" },
    { "\n\n\r\r\n", "" },
};

START_TEST(events_are_the_same_in_whatever_pieces_they_come)
{
    size_t len = strlen(STREAMS[_i].text);

    for (size_t step = 1; step <= len; step++) {
        HF_CLEANUP_BUF struct hf_buf out = { 0 };

        ck_assert_int_eq(read_all(STREAMS[_i].text, len, step, &out), HF_OK);
        ck_assert_msg(strcmp(out.len > 0 ? out.data : "", STREAMS[_i].events) == 0,
                      "in steps of %zu: %s", step, out.data);
    }
}
END_TEST

/* What is too long is told, passed over, and keeps no more memory than is allowed for. */
START_TEST(an_event_that_is_too_long_is_passed_over)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 }, out = { 0 };

    for (size_t i = 0; i < HF_SSE_EVENT_MAX / 8; i++)
        hf_buf_puts(&text, _i == 0 ? "data: 0123456789\n" : "0123456789012345");
    hf_buf_puts(&text, "\ndata: late\n\nevent: next\ndata: x\n\n");
    ck_assert_int_eq(text.err, HF_OK);
    ck_assert_int_eq(read_all(text.data, text.len, 1000, &out), HF_OK);
    ck_assert_str_eq(out.data, _i == 0 ? "long;=late;next=x;" : "long;next=x;");
}
END_TEST

START_TEST(another_stream_begins_anew)
{
    struct hf_sse sse = { 0 };
    size_t used;

    ck_assert_int_eq(hf_sse_feed(&sse, "event: a\ndata: half", 19, &used), 0);
    hf_sse_clear(&sse);
    ck_assert_int_eq(hf_sse_feed(&sse, "\xef\xbb\xbf", 3, &used), 0);
    ck_assert_int_eq(hf_sse_feed(&sse, "data: x\n\n", 9, &used), 1);
    ck_assert_uint_eq(sse.name.len, 0);
    ck_assert_str_eq(sse.data.data, "x");
    hf_sse_done(&sse);
}
END_TEST

static int read_one(void *arg)
{
    static const char TEXT[] = "event: stop\ndata: {}\ndata: {}\n\n";
    struct hf_sse sse = { 0 };
    size_t used;
    int rc = hf_sse_feed(&sse, TEXT, sizeof TEXT - 1, &used);

    (void)arg;
    hf_sse_done(&sse);
    return rc == 1 ? HF_OK : rc == 0 ? HF_EINVAL : rc;
}

START_TEST(without_memory_it_says_so)
{
    ck_assert_uint_ge(hft_chaos_run(read_one, NULL), 3);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sse");

    tcase_add_loop_test(t, events_are_the_same_in_whatever_pieces_they_come, 0, COUNT(STREAMS));
    tcase_add_loop_test(t, an_event_that_is_too_long_is_passed_over, 0, 2);
    tcase_add_test(t, another_stream_begins_anew);
    tcase_add_test(t, without_memory_it_says_so);
    return run("client/sse", t);
}
