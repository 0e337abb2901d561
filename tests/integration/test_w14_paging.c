/* W14: a list is read page by page, and is of one revision all the same. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/admin.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/follower.h"
#include "support/suite.h"
#include "support/truth.h"
#include "support/writer.h"

enum { KEYS = 25000, MANY_KEYS = 80000 };

static struct hft_etcd etcd;
static struct hft_client client;

static void setup(void)
{
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, etcd.endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_etcd_done(&etcd);
}

/* What a list brought. */
enum { PAGES_MAX = 16 };

struct taken {
    struct hft_truth content;
    struct hf_list *list;
    hf_rev revision;
    unsigned pages, ended;
    size_t sizes[PAGES_MAX]; /* of the first pages */
    unsigned cancel_at;      /* page; 0: never */
    int err;
};

static void on_page(const struct hf_range_result *page, void *arg)
{
    struct taken *taken = arg;

    ck_assert_uint_eq(taken->ended, 0);
    if (page->result.err != HF_OK) {
        taken->err = page->result.err;
        taken->ended = 1;
        return;
    }
    if (taken->pages == 0)
        taken->revision = page->result.header.revision;
    if (taken->pages < PAGES_MAX)
        taken->sizes[taken->pages] = page->count;
    taken->pages++;
    ck_assert_int_eq(page->result.header.revision, taken->revision);
    for (size_t i = 0; i < page->count; i++)
        (void)hft_truth_add(&page->kvs[i], &taken->content);
    taken->ended = !page->more;
    if (taken->pages == taken->cancel_at) {
        hf_list_cancel(taken->list);
        taken->ended = 1;
    }
}

static void start_list(struct taken *taken, int64_t page, hf_rev revision)
{
    struct hf_range_request request = { .range = { .key = hf_bytes_of("w/"), .prefix = true },
                                        .limit = page,
                                        .revision = revision };

    ck_assert_int_eq(hf_etcd_list(client.etcd, &request, on_page, taken, &taken->list), HF_OK);
}

static void end_list(struct taken *taken)
{
    hft_client_until(&client, &taken->ended, 1, 60000, "the end of the list");
}

static void expect_truth(struct taken *taken)
{
    HFT_CLEANUP_TRUTH struct hft_truth want = { 0 };

    ck_assert_int_eq(taken->err, HF_OK);
    hft_truth_fetch_at(&etcd, "w/", taken->revision, &want);
    hft_truth_assert_same(&want, &taken->content, HFT_TRUTH_ALL);
    hft_truth_done(&taken->content);
}

START_TEST(w14_25000_keys_in_small_pages_under_a_writer_are_of_one_revision)
{
    struct taken taken = { 0 };
    struct hft_writer writer;
    unsigned before;

    hft_write_many(&client, "w/", KEYS, 16);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                  .prefix = "w/",
                                                  .keys = KEYS + 1000,
                                                  .delete_percent = 50,
                                                  .in_flight = 8 });
    hft_writer_until(&writer, 100, 10000);
    before = writer.done;
    start_list(&taken, 250, 0);
    end_list(&taken);
    ck_assert_uint_gt(writer.done, before); /* it did write meanwhile */
    hft_writer_stop(&writer);
    ck_assert_uint_ge(taken.pages, KEYS / 250 - 2);
    expect_truth(&taken);
}
END_TEST

/* The list says itself how large its pages are: from the first one on few and large ones, and a
 * small one at the end, while keys come and go. */
START_TEST(w14_a_list_without_a_limit_has_few_pages_of_one_revision)
{
    struct taken taken = { 0 };
    struct hft_writer writer;

    hft_write_many(&client, "w/", MANY_KEYS, 16);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                  .prefix = "w/",
                                                  .keys = MANY_KEYS + 5000,
                                                  .delete_percent = 30,
                                                  .in_flight = 8 });
    hft_writer_until(&writer, 100, 10000);
    start_list(&taken, 0, 0);
    end_list(&taken);
    hft_writer_stop(&writer);
    ck_assert_uint_eq(taken.pages, 3);
    ck_assert_uint_gt(taken.sizes[0], taken.sizes[1]);
    ck_assert_uint_gt(taken.sizes[1], taken.sizes[2]);
    expect_truth(&taken);
}
END_TEST

static void put_large(unsigned number)
{
    static char value[1000 * 1000];
    char key[16];

    for (size_t i = 0; i < sizeof value - 1; i++)
        value[i] = (char)('a' + (i + number) % 26);
    (void)snprintf(key, sizeof key, "w/1/%02u", number);
    hft_put(&client, key, value, HF_NO_LEASE);
}

/* Values that lie in many of gRPC's pieces each, between small ones, of which a piece holds
 * many. */
START_TEST(w14_large_values_are_read_in_every_page)
{
    struct taken taken = { 0 };

    hft_write_many(&client, "w/0/", 12, 3);
    for (unsigned i = 0; i < 12; i++)
        put_large(i);
    hft_write_many(&client, "w/2/", 12, 70 * 1000);
    start_list(&taken, (int64_t)_i * 7, 0);
    end_list(&taken);
    ck_assert_uint_eq(taken.content.count, 36);
    ck_assert_uint_eq(taken.pages, _i == 0 ? 1 : (36 + _i * 7 - 1) / (_i * 7));
    expect_truth(&taken);
}
END_TEST

START_TEST(w14_a_list_of_an_old_revision_is_what_was_then)
{
    struct taken taken = { 0 };
    hf_rev old = hft_write_many(&client, "w/", 1000, 16);

    hft_write_many(&client, "w/", 1500, 32);
    hft_etcdctl_ok(&etcd, NULL, "del", "--prefix", "w/000", NULL);
    start_list(&taken, 77, old);
    end_list(&taken);
    ck_assert_int_eq(taken.revision, old);
    ck_assert_uint_eq(taken.content.count, 1000);
    expect_truth(&taken);
}
END_TEST

/* Pages of every size around the number of keys. */
START_TEST(w14_the_last_page_is_known_whatever_its_size)
{
    static const int64_t SIZES[] = { 0, 1, 2, 3, 19, 20, 21, 1000 };
    struct taken taken = { 0 };

    hft_write_many(&client, "w/", 20, 16);
    start_list(&taken, SIZES[_i], 0);
    end_list(&taken);
    ck_assert_uint_eq(taken.content.count, 20);
    expect_truth(&taken);
}
END_TEST

START_TEST(w14_nothing_is_one_empty_page)
{
    struct taken taken = { 0 };

    start_list(&taken, 0, 0);
    end_list(&taken);
    ck_assert_uint_eq(taken.pages, 1);
    ck_assert_uint_eq(taken.content.count, 0);
}
END_TEST

START_TEST(w14_a_list_may_be_cancelled_at_any_page)
{
    struct taken taken = { .cancel_at = (unsigned)_i };

    hft_write_many(&client, "w/", 40, 16);
    start_list(&taken, 10, 0);
    if (_i == 0)
        hf_list_cancel(taken.list);
    else
        end_list(&taken);
    hft_put(&client, "w/other", "", HF_NO_LEASE);
    ck_assert_uint_eq(taken.pages, (unsigned)_i);
    hft_truth_done(&taken.content);
}
END_TEST

START_TEST(w14_a_list_overtaken_by_a_compaction_says_so)
{
    struct taken taken = { 0 };

    hft_write_many(&client, "w/", 1000, 16);
    start_list(&taken, 10, 0);
    hft_client_until(&client, &taken.pages, 1, 10000, "the first page");
    hft_etcdctl_ok(&etcd, NULL, "put", "x", "", NULL);
    hft_etcd_compact(&etcd, hft_etcd_revision(&etcd));
    end_list(&taken);
    ck_assert_int_eq(taken.err, HF_ECOMPACT);
    hft_truth_done(&taken.content);
}
END_TEST

/* The mirror's first list, under a writer, and the watch that goes on where it ended. */
START_TEST(w14_a_mirror_begun_under_a_writer_misses_nothing_between_list_and_watch)
{
    struct hft_follower follower = { 0 };
    struct hft_writer writer;

    hft_write_many(&client, "w/", KEYS, 16);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                  .prefix = "w/",
                                                  .keys = KEYS + 1000,
                                                  .delete_percent = 50,
                                                  .in_flight = 8 });
    hft_writer_until(&writer, 100, 10000);
    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 30000);
    hft_writer_until(&writer, 300, 10000);
    hft_writer_stop(&writer);
    hft_follower_settle(&follower, &etcd, 20000);
    hft_follower_assert_undisturbed(&follower);
    ck_assert_uint_le(hf_mirror_get_stats(follower.mirror).lists, 1 + follower.mishaps);
    hft_follower_stop(&follower);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w14");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, w14_25000_keys_in_small_pages_under_a_writer_are_of_one_revision);
    tcase_add_test(t, w14_a_list_without_a_limit_has_few_pages_of_one_revision);
    tcase_add_loop_test(t, w14_large_values_are_read_in_every_page, 0, 3);
    tcase_add_test(t, w14_a_list_of_an_old_revision_is_what_was_then);
    tcase_add_loop_test(t, w14_the_last_page_is_known_whatever_its_size, 0, 8);
    tcase_add_test(t, w14_nothing_is_one_empty_page);
    tcase_add_loop_test(t, w14_a_list_may_be_cancelled_at_any_page, 0, 4);
    tcase_add_test(t, w14_a_list_overtaken_by_a_compaction_says_so);
    tcase_add_test(t, w14_a_mirror_begun_under_a_writer_misses_nothing_between_list_and_watch);
    return hft_suite_run("etcd/list: W14", t, NULL);
}
