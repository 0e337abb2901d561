#include "core/moments.h"
#include "unit/suite.h"

#define STAMP(s, ns)                                                                           \
    {                                                                                          \
        .base = PROTOBUF_C_MESSAGE_INIT(&google__protobuf__timestamp__descriptor),             \
        .seconds = (s), .nanos = (ns),                                                         \
    }

static const struct {
    Google__Protobuf__Timestamp stamp;
    hf_ms want;
} READ[] = {
    { STAMP(1769846951, 430000000), INT64_C(1769846951430) },
    { STAMP(1, 999999999), 1999 },
    { STAMP(-1, 250000000), -750 },
    { STAMP(INT64_MAX, 0), INT64_MAX },
    { STAMP(INT64_MAX / 1000, 999000000), INT64_MAX },
    { STAMP(INT64_MIN, 0), INT64_MIN },
};

START_TEST(a_stamp_is_read_in_milliseconds_and_saturates)
{
    ck_assert_int_eq(hf_moment_read(&READ[_i].stamp), READ[_i].want);
}
END_TEST

static const hf_ms MOMENTS[] = { 1, 999, 1000, INT64_C(1769846951430), -1, -999, -1000, -1001 };

START_TEST(what_was_written_is_read_as_it_was)
{
    Google__Protobuf__Timestamp stamp;

    ck_assert_ptr_eq(hf_moment_write(MOMENTS[_i], &stamp), &stamp);
    ck_assert_int_eq(hf_moment_read(&stamp), MOMENTS[_i]);
    ck_assert_int_ge(stamp.nanos, 0);
    ck_assert_int_lt(stamp.nanos, 1000000000);
}
END_TEST

START_TEST(no_moment_is_no_stamp)
{
    Google__Protobuf__Timestamp stamp;

    ck_assert_ptr_null(hf_moment_write(0, &stamp));
    ck_assert_int_eq(hf_moment_read(NULL), 0);
}
END_TEST

START_TEST(a_list_comes_back_as_it_was)
{
    struct hf_backoff times = { 0 };
    struct hf_moments moments;

    for (hf_ms at = 100; at < 2000; at += 333)
        hf_backoff_on_attempt(&times, at);
    hf_moments_write(&times, &moments);
    ck_assert_uint_eq(moments.count, times.count);
    struct hf_backoff back = hf_moments_read(moments.list, moments.count);
    ck_assert_uint_eq(back.count, times.count);
    for (uint8_t i = 0; i < times.count; i++)
        ck_assert_int_eq(back.at[i], times.at[i]);
}
END_TEST

START_TEST(of_a_list_that_is_too_long_the_newest_are_kept)
{
    Google__Protobuf__Timestamp stamps[HF_BACKOFF_KEPT + 3];
    Google__Protobuf__Timestamp *list[COUNT(stamps)];

    for (size_t i = 0; i < COUNT(stamps); i++)
        list[i] = hf_moment_write((hf_ms)i + 1, &stamps[i]);
    struct hf_backoff back = hf_moments_read(list, COUNT(list));
    ck_assert_uint_eq(back.count, HF_BACKOFF_KEPT);
    ck_assert_int_eq(back.at[0], 4);
    ck_assert_int_eq(back.at[back.count - 1], COUNT(stamps));
    ck_assert_uint_eq(hf_moments_read(NULL, 0).count, 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("moments");

    tcase_add_loop_test(t, a_stamp_is_read_in_milliseconds_and_saturates, 0, COUNT(READ));
    tcase_add_loop_test(t, what_was_written_is_read_as_it_was, 0, COUNT(MOMENTS));
    tcase_add_test(t, no_moment_is_no_stamp);
    tcase_add_test(t, a_list_comes_back_as_it_was);
    tcase_add_test(t, of_a_list_that_is_too_long_the_newest_are_kept);
    return run("core/moments", t);
}
