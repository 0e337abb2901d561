/* W11: one mirror over several ranges, on one watch stream; and which ranges it takes. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/etcd.h"
#include "support/follower.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/writer.h"

static struct hft_etcd etcd;
static struct hft_proxy *proxy;
static struct hft_client client;

static void setup(void)
{
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(etcd.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&etcd);
}

#define PREFIX(text)                                                                           \
    {                                                                                          \
        .key = { .data = (text), .len = sizeof(text) - 1 }, .prefix = true                     \
    }
#define KEY(text)                                                                              \
    {                                                                                          \
        .key = {.data = (text), .len = sizeof(text) - 1 }                                      \
    }

START_TEST(w11_several_ranges_are_followed_over_one_stream_through_cuts)
{
    struct hf_key_range ranges[] = { PREFIX("a/"), PREFIX("b/"), PREFIX("c/") };
    struct hft_follower follower = { 0 };
    struct hft_writer writers[3];
    const char *const prefixes[] = { "a/", "b/", "other/" };

    hft_write_many(&client, "b/", 100, 16);
    hft_follower_start_with(&client, &follower,
                            &(struct hf_mirror_config){ .ranges = ranges, .range_count = 3 });
    hft_follower_until_synced(&follower, 1, 10000);
    ck_assert_uint_eq(follower.puts, 100);
    for (unsigned i = 0; i < 3; i++)
        hft_writer_start(&client, &writers[i],
                         &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                      .prefix = prefixes[i],
                                                      .keys = 50,
                                                      .delete_percent = 30,
                                                      .seed = i });
    for (int i = 0; i < 6; i++) {
        hft_writer_until(&writers[0], 100, 20000);
        hft_proxy_cut(proxy);
    }
    for (int i = 0; i < 3; i++)
        hft_writer_stop(&writers[i]);
    hft_follower_settle(&follower, &etcd, 20000);
    ck_assert_uint_eq(follower.synced, 1);
    hft_follower_stop(&follower);
}
END_TEST

/* Keys of different ranges that were changed together are told, each range's together. */
START_TEST(w11_a_txn_over_several_ranges_is_told_in_all_of_them)
{
    struct hf_key_range ranges[] = { PREFIX("a/"), PREFIX("b/") };
    struct hft_follower follower = { 0 };
    struct hf_txn *txn = hf_txn_new();

    hft_follower_start_with(&client, &follower,
                            &(struct hf_mirror_config){ .ranges = ranges, .range_count = 2 });
    hft_follower_until_synced(&follower, 1, 10000);
    hf_txn_then_put(txn, hf_bytes_of("a/1"), hf_bytes_of(""), HF_NO_LEASE);
    hf_txn_then_put(txn, hf_bytes_of("b/1"), hf_bytes_of(""), HF_NO_LEASE);
    hf_txn_then_put(txn, hf_bytes_of("a/2"), hf_bytes_of(""), HF_NO_LEASE);
    ck_assert_int_eq(hft_commit(&client, txn, false).err, HF_OK);
    hft_client_until(&client, &follower.puts, 3, 5000, "all keys");
    ck_assert_int_eq(follower.last_rev[0], follower.last_rev[1]);
    hft_follower_settle(&follower, &etcd, 5000);
    hft_follower_stop(&follower);
}
END_TEST

static void ignore(const struct hf_mirror_event *event, void *arg)
{
    ++((unsigned *)arg)[event->kind];
}

static int open_mirror(const struct hf_key_range *ranges, size_t count, unsigned *counts,
                       struct hf_mirror **ret_mirror)
{
    struct hf_error err = { "" };
    int code = hf_mirror_new(
        client.etcd,
        &(struct hf_mirror_config){
            .ranges = ranges, .range_count = count, .on_event = ignore, .arg = counts },
        ret_mirror, &err);

    ck_assert_int_eq(code == HF_OK, err.text[0] == '\0');
    return code;
}

START_TEST(w11_a_single_key_and_odd_bytes_make_ranges_too)
{
    struct hf_key_range ranges[] = { KEY("one"), PREFIX("\xff\xff"), PREFIX("\x01\xff"),
                                     PREFIX("nul\0nul") };
    struct hf_bytes keys[] = { { "one", 3 },        { "one/not", 7 },   { "\xff\xff", 2 },
                               { "\xff\xfe", 2 },   { "\x01\xffz", 3 }, { "\x02", 1 },
                               { "nul\0nul/1", 9 }, { "nul\0num", 7 } };
    unsigned counts[4] = { 0 };
    struct hf_mirror *mirror;

    ck_assert_int_eq(open_mirror(ranges, 4, counts, &mirror), HF_OK);
    hft_client_until(&client, &counts[HF_MIRROR_SYNCED], 1, 10000, "the mirror to be synced");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct hft_outcome outcome = { 0 };

        ck_assert_int_eq(hf_etcd_put(client.etcd, keys[i], hf_bytes_of(""), HF_NO_LEASE,
                                     hft_on_write, &outcome, NULL),
                         HF_OK);
        hft_await(&client, &outcome, 5000);
        ck_assert_int_eq(outcome.err, HF_OK);
    }
    hft_client_until(&client, &counts[HF_MIRROR_PUT], 4, 5000, "the keys of the ranges");
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        struct hf_kv kv;

        ck_assert_msg(hf_mirror_get(mirror, keys[i], &kv) == (i % 2 == 0), "key %zu", i);
    }
    hf_mirror_close(mirror);
    ck_assert_uint_eq(counts[HF_MIRROR_PUT], 4);
}
END_TEST

START_TEST(w11_the_empty_prefix_is_everything)
{
    struct hf_key_range all = { .prefix = true };
    unsigned counts[4] = { 0 };
    struct hf_mirror *mirror;

    hft_put(&client, "a", "", HF_NO_LEASE);
    ck_assert_int_eq(open_mirror(&all, 1, counts, &mirror), HF_OK);
    hft_client_until(&client, &counts[HF_MIRROR_SYNCED], 1, 10000, "the mirror to be synced");
    hft_put(&client, "\xff\xff", "", HF_NO_LEASE);
    hft_put(&client, "\x01", "", HF_NO_LEASE);
    hft_client_until(&client, &counts[HF_MIRROR_PUT], 3, 5000, "all keys");
    hf_mirror_close(mirror);
}
END_TEST

static const struct {
    struct hf_key_range first, second;
    int want;
} PAIRS[] = {
    { PREFIX("a/"), PREFIX("b/"), HF_OK },     { PREFIX("a/"), PREFIX("a"), HF_EINVAL },
    { PREFIX("a/"), PREFIX("a/"), HF_EINVAL }, { PREFIX("a/"), KEY("a/1"), HF_EINVAL },
    { KEY("a"), PREFIX("a/"), HF_OK },         { KEY("a"), PREFIX("a"), HF_EINVAL },
    { KEY("a"), KEY("a"), HF_EINVAL },         { KEY("a"), KEY("b"), HF_OK },
    { PREFIX(""), PREFIX("b/"), HF_EINVAL },   { PREFIX(""), KEY("b"), HF_EINVAL },
    { KEY(""), KEY("b"), HF_EINVAL },
};

START_TEST(w11_ranges_that_contain_one_another_are_refused)
{
    struct hf_key_range both[] = { PAIRS[_i].first, PAIRS[_i].second };
    struct hf_key_range turned[] = { PAIRS[_i].second, PAIRS[_i].first };
    unsigned counts[4] = { 0 };
    struct hf_mirror *mirror = NULL;

    ck_assert_int_eq(open_mirror(both, 2, counts, &mirror), PAIRS[_i].want);
    hf_mirror_close(mirror);
    mirror = NULL;
    ck_assert_int_eq(open_mirror(turned, 2, counts, &mirror), PAIRS[_i].want);
    hf_mirror_close(mirror);
}
END_TEST

START_TEST(w11_32_ranges_are_taken_and_no_more)
{
    struct hf_key_range ranges[33];
    char names[33][8];
    unsigned counts[4] = { 0 };
    struct hf_mirror *mirror = NULL;

    for (int i = 0; i < 33; i++) {
        (void)snprintf(names[i], sizeof names[i], "r%02d/", i);
        ranges[i] = (struct hf_key_range){ .key = hf_bytes_of(names[i]), .prefix = true };
    }
    ck_assert_int_eq(open_mirror(ranges, 33, counts, &mirror), HF_ELIMIT);
    ck_assert_int_eq(open_mirror(ranges, 0, counts, &mirror), HF_ELIMIT);
    ck_assert_int_eq(open_mirror(ranges, 32, counts, &mirror), HF_OK);
    hft_client_until(&client, &counts[HF_MIRROR_SYNCED], 1, 10000, "the mirror to be synced");
    hft_put(&client, "r00/a", "", HF_NO_LEASE);
    hft_put(&client, "r31/a", "", HF_NO_LEASE);
    hft_put(&client, "r32/a", "", HF_NO_LEASE);
    hft_client_until(&client, &counts[HF_MIRROR_PUT], 2, 5000, "the keys of the ranges");
    hf_mirror_close(mirror);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w11");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, w11_several_ranges_are_followed_over_one_stream_through_cuts);
    tcase_add_test(t, w11_a_txn_over_several_ranges_is_told_in_all_of_them);
    tcase_add_test(t, w11_a_single_key_and_odd_bytes_make_ranges_too);
    tcase_add_test(t, w11_the_empty_prefix_is_everything);
    tcase_add_loop_test(t, w11_ranges_that_contain_one_another_are_refused, 0,
                        sizeof PAIRS / sizeof PAIRS[0]);
    tcase_add_test(t, w11_32_ranges_are_taken_and_no_more);
    return hft_suite_run("etcd/mirror: W11", t, NULL);
}
