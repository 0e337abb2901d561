#include <check.h>
#include <string.h>

#include "io/metrics.h"
#include "support/suite.h"

START_TEST(a_value_has_its_label_escaped)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    hf_metrics_head(&out, "x", "gauge", "An x.");
    hf_metrics_value(&out, "x", "why", "a\"b\\c\nd", 0.5);
    ck_assert_str_eq(out.data, "# HELP x An x.\n# TYPE x gauge\n"
                               "x{why=\"a\\\"b\\\\c\\nd\"} 0.5\n");
}
END_TEST

START_TEST(a_large_counter_keeps_its_last_digit)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    hf_metrics_single(&out, "x", "counter", "An x.", 9007199254740991.0);
    ck_assert_ptr_nonnull(strstr(out.data, "x 9007199254740991\n"));
}
END_TEST

START_TEST(a_histogram_is_cumulative_and_ends_with_everything)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    struct hf_histogram h = { 0 };

    hf_histogram_observe(&h, 0);
    hf_histogram_observe(&h, 5);
    hf_histogram_observe(&h, 61000);
    hf_histogram_write(&h, &out, "took_seconds", "How long.");
    ck_assert_ptr_nonnull(strstr(out.data, "took_seconds_bucket{le=\"0.001\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "took_seconds_bucket{le=\"0.002\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "took_seconds_bucket{le=\"0.005\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "took_seconds_bucket{le=\"60\"} 2\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "took_seconds_bucket{le=\"+Inf\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "took_seconds_count 3\n"));
    ck_assert_ptr_nonnull(strstr(out.data, "took_seconds_sum 61.005"));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("metrics");

    tcase_add_test(t, a_value_has_its_label_escaped);
    tcase_add_test(t, a_large_counter_keeps_its_last_digit);
    tcase_add_test(t, a_histogram_is_cumulative_and_ends_with_everything);
    return hft_suite_run("io/metrics", t, NULL);
}
