#include <check.h>
#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "support/chaos.h"
#include "support/suite.h"

START_TEST(appends_make_one_text)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };

    hf_buf_puts(&buf, "a");
    hf_buf_putc(&buf, '-');
    hf_buf_append(&buf, "bcd", 2);
    hf_buf_printf(&buf, "/%d/%s", 42, "x");
    ck_assert_int_eq(buf.err, HF_OK);
    ck_assert_str_eq(buf.data, "a-bc/42/x");
    ck_assert_uint_eq(buf.len, strlen(buf.data));
}
END_TEST

START_TEST(bytes_of_any_value_are_kept)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };

    hf_buf_append(&buf, "a\0b", 3);
    hf_buf_putc(&buf, '\0');
    hf_buf_putc(&buf, '\xff');
    ck_assert_uint_eq(buf.len, 5);
    ck_assert_mem_eq(buf.data, "a\0b\0\xff", 6);
}
END_TEST

START_TEST(empty_appends_need_no_memory)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };

    hf_buf_append(&buf, NULL, 0);
    hf_buf_puts(&buf, "");
    ck_assert_ptr_null(buf.data);
    ck_assert_uint_eq(buf.len, 0);
    ck_assert_int_eq(buf.err, HF_OK);
}
END_TEST

/* Against a plain array, over appends of many lengths: same bytes, always terminated. */
START_TEST(growing_keeps_the_content)
{
    static char want[200000];
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };
    size_t len = 0;

    for (size_t i = 0; i < 600; i++) {
        char piece[300];
        size_t n = i * 7 % sizeof piece;

        memset(piece, (int)('a' + i % 26), n);
        memcpy(want + len, piece, n);
        len += n;
        hf_buf_append(&buf, piece, n);
        ck_assert_uint_eq(buf.len, len);
        ck_assert(buf.data == NULL || buf.data[len] == '\0');
    }
    ck_assert_mem_eq(buf.data, want, len);
}
END_TEST

START_TEST(printf_of_any_length_is_whole)
{
    for (int width = 1; width < 400; width++) {
        HF_CLEANUP_BUF struct hf_buf buf = { 0 };

        hf_buf_puts(&buf, ">");
        hf_buf_printf(&buf, "%0*d", width, 7);
        ck_assert_uint_eq(buf.len, (size_t)width + 1);
        ck_assert_uint_eq(strlen(buf.data), (size_t)width + 1);
        ck_assert_int_eq(buf.data[width], '7');
    }
}
END_TEST

/* Up to the limit and not one byte more, by every way of appending. */
static void append_one_by(struct hf_buf *buf, int way)
{
    char *room;

    switch (way) {
    case 0: hf_buf_append(buf, "x", 1); break;
    case 1: hf_buf_putc(buf, 'x'); break;
    case 2: hf_buf_puts(buf, "x"); break;
    case 3: hf_buf_printf(buf, "%c", 'x'); break;
    default:
        room = hf_buf_reserve(buf, 1);
        if (room != NULL) {
            *room = 'x';
            buf->len++;
        }
    }
}

START_TEST(the_limit_is_exact)
{
    HF_CLEANUP_BUF struct hf_buf buf = { .limit = 100 };

    for (int i = 0; i < 100; i++)
        append_one_by(&buf, _i);
    ck_assert_int_eq(buf.err, HF_OK);
    ck_assert_uint_eq(buf.len, 100);
    append_one_by(&buf, _i);
    ck_assert_int_eq(buf.err, HF_ELIMIT);
    ck_assert_uint_eq(buf.len, 100);
    ck_assert_uint_eq(strlen(buf.data), 100);
}
END_TEST

START_TEST(an_append_beyond_the_limit_adds_nothing_and_sticks)
{
    HF_CLEANUP_BUF struct hf_buf buf = { .limit = 8 };

    hf_buf_puts(&buf, "12345");
    hf_buf_puts(&buf, "6789");
    ck_assert_int_eq(buf.err, HF_ELIMIT);
    for (int way = 0; way < 5; way++)
        append_one_by(&buf, way); /* would fit, but the text would have a hole */
    ck_assert_str_eq(buf.data, "12345");
    ck_assert_int_eq(buf.err, HF_ELIMIT);
    ck_assert_ptr_null(hf_buf_reserve(&buf, 0));
}
END_TEST

START_TEST(lengths_that_wrap_are_beyond_the_limit)
{
    const size_t lengths[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 5, SIZE_MAX / 2 };

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        HF_CLEANUP_BUF struct hf_buf buf = { .limit = i % 2 == 0 ? 0 : SIZE_MAX };

        hf_buf_puts(&buf, "12345");
        ck_assert_ptr_null(hf_buf_reserve(&buf, lengths[i]));
        ck_assert_int_ne(buf.err, HF_OK);
        ck_assert_str_eq(buf.data, "12345");
    }
}
END_TEST

/* A wide character that the C locale has no bytes for; two gigabytes of text fail the same way.
 */
START_TEST(what_printf_cannot_write_is_an_error)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };

    hf_buf_puts(&buf, "kept");
    hf_buf_printf(&buf, "%lc", (wint_t)0x20ac);
    ck_assert_int_eq(buf.err, HF_ELIMIT);
    hf_buf_puts(&buf, "not appended");
    ck_assert_str_eq(buf.data, "kept");
}
END_TEST

START_TEST(the_default_limit_is_64_mib)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };

    ck_assert_ptr_null(hf_buf_reserve(&buf, ((size_t)64 << 20) + 1));
    ck_assert_int_eq(buf.err, HF_ELIMIT);
    hf_buf_clear(&buf);
    ck_assert_ptr_nonnull(hf_buf_reserve(&buf, (size_t)64 << 20));
    ck_assert_int_eq(buf.err, HF_OK);
}
END_TEST

START_TEST(clear_forgets_content_and_error_but_keeps_memory)
{
    HF_CLEANUP_BUF struct hf_buf buf = { .limit = 4 };
    const char *data;

    hf_buf_clear(&buf);
    hf_buf_puts(&buf, "1234");
    data = buf.data;
    hf_buf_puts(&buf, "5");
    ck_assert_int_eq(buf.err, HF_ELIMIT);
    hf_buf_clear(&buf);
    ck_assert_int_eq(buf.err, HF_OK);
    ck_assert_uint_eq(buf.len, 0);
    ck_assert_str_eq(buf.data, "");
    ck_assert_uint_eq(buf.limit, 4);
    hf_buf_puts(&buf, "ab");
    ck_assert_ptr_eq(buf.data, data);
    ck_assert_str_eq(buf.data, "ab");
}
END_TEST

/* However much of the room is used, the content is terminated. */
START_TEST(reserved_room_is_zeroed)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };
    char *room;

    hf_buf_puts(&buf, "a longer text that leaves its bytes behind");
    hf_buf_clear(&buf);
    hf_buf_puts(&buf, "a");
    room = hf_buf_reserve(&buf, 20);
    ck_assert_ptr_nonnull(room);
    room[0] = 'b';
    room[1] = 'c';
    buf.len += 2;
    ck_assert_str_eq(buf.data, "abc");
    ck_assert_uint_eq(buf.len, 3);
}
END_TEST

START_TEST(take_hands_out_and_leaves_an_empty_buffer)
{
    HF_CLEANUP_BUF struct hf_buf buf = { .limit = 10 };
    HF_CLEANUP_FREE char *first = NULL;
    HF_CLEANUP_FREE char *second = NULL;
    size_t len = 0;

    hf_buf_append(&buf, "a\0b", 3);
    ck_assert_int_eq(hf_buf_take(&buf, &first, &len), HF_OK);
    ck_assert_uint_eq(len, 3);
    ck_assert_mem_eq(first, "a\0b", 4);
    ck_assert_ptr_null(buf.data);
    ck_assert_uint_eq(buf.len, 0);
    ck_assert_uint_eq(buf.limit, 10);

    hf_buf_puts(&buf, "next");
    ck_assert_int_eq(hf_buf_take(&buf, &second, NULL), HF_OK);
    ck_assert_str_eq(second, "next");
}
END_TEST

START_TEST(take_of_nothing_is_an_empty_text)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };
    HF_CLEANUP_FREE char *text = NULL;
    size_t len = 7;

    ck_assert_int_eq(hf_buf_take(&buf, &text, &len), HF_OK);
    ck_assert_str_eq(text, "");
    ck_assert_uint_eq(len, 0);
}
END_TEST

START_TEST(take_after_an_error_gives_nothing)
{
    HF_CLEANUP_BUF struct hf_buf buf = { .limit = 2 };
    char *text = NULL;
    size_t len = 7;

    hf_buf_puts(&buf, "123");
    ck_assert_int_eq(hf_buf_take(&buf, &text, &len), HF_ELIMIT);
    ck_assert_ptr_null(text);
    ck_assert_uint_eq(len, 7);
    ck_assert_int_eq(buf.err, HF_ELIMIT);
}
END_TEST

START_TEST(done_may_be_called_twice_and_on_nothing)
{
    struct hf_buf buf = { .limit = 5 };

    hf_buf_puts(&buf, "abc");
    hf_buf_done(&buf);
    hf_buf_done(&buf);
    hf_buf_done(NULL);
    ck_assert_ptr_null(buf.data);
    ck_assert_uint_eq(buf.len, 0);
}
END_TEST

static int build_text(void *arg)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };
    HF_CLEANUP_FREE char *text = NULL;

    (void)arg;
    for (int i = 0; i < 100; i++) {
        hf_buf_puts(&buf, "some text, ");
        hf_buf_printf(&buf, "%d", i);
    }
    return hf_buf_take(&buf, &text, NULL);
}

static int take_nothing(void *arg)
{
    struct hf_buf buf = { 0 };
    HF_CLEANUP_FREE char *text = NULL;

    (void)arg;
    return hf_buf_take(&buf, &text, NULL);
}

START_TEST(a_lack_of_memory_is_reported_at_the_end)
{
    ck_assert_uint_gt(hft_chaos_run(build_text, NULL), 3);
    ck_assert_uint_eq(hft_chaos_run(take_nothing, NULL), 1);
}
END_TEST

/* Once there was no memory the rest is not appended even if there is some again. */
START_TEST(a_lack_of_memory_sticks)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };

    hft_chaos_fail_at(1, false);
    hf_buf_puts(&buf, "a");
    hf_buf_puts(&buf, "b");
    hft_chaos_stop();
    ck_assert_int_eq(buf.err, HF_ENOMEM);
    ck_assert_uint_eq(buf.len, 0);
    hf_buf_clear(&buf);
    hf_buf_puts(&buf, "c");
    ck_assert_str_eq(buf.data, "c");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("buf");

    tcase_add_test(t, appends_make_one_text);
    tcase_add_test(t, bytes_of_any_value_are_kept);
    tcase_add_test(t, empty_appends_need_no_memory);
    tcase_add_test(t, growing_keeps_the_content);
    tcase_add_test(t, printf_of_any_length_is_whole);
    tcase_add_loop_test(t, the_limit_is_exact, 0, 5);
    tcase_add_test(t, an_append_beyond_the_limit_adds_nothing_and_sticks);
    tcase_add_test(t, lengths_that_wrap_are_beyond_the_limit);
    tcase_add_test(t, what_printf_cannot_write_is_an_error);
    tcase_add_test(t, the_default_limit_is_64_mib);
    tcase_add_test(t, clear_forgets_content_and_error_but_keeps_memory);
    tcase_add_test(t, reserved_room_is_zeroed);
    tcase_add_test(t, take_hands_out_and_leaves_an_empty_buffer);
    tcase_add_test(t, take_of_nothing_is_an_empty_text);
    tcase_add_test(t, take_after_an_error_gives_nothing);
    tcase_add_test(t, done_may_be_called_twice_and_on_nothing);
    tcase_add_test(t, a_lack_of_memory_is_reported_at_the_end);
    tcase_add_test(t, a_lack_of_memory_sticks);
    return hft_suite_run("base/buf", t, NULL);
}
