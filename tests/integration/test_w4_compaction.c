/* W4: the revision to resume from, or to read at, was compacted away. */
#include <check.h>
#include <stdlib.h>

#include "support/admin.h"
#include "support/etcd.h"
#include "support/follower.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/writer.h"

enum { BEHIND = 5000 };

static struct hft_etcd etcd;
static struct hft_proxy *proxy;
static struct hft_client client;
static struct hft_follower follower;

static void setup(void)
{
    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(etcd.client.number);
    hft_client_open(&client, hft_proxy_endpoint(proxy), NULL);
    follower = (struct hft_follower){ 0 };
}

static void teardown(void)
{
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&etcd);
}

static void cut_off(void)
{
    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    hft_proxy_cut(proxy);
}

static void compact_all(void)
{
    hft_etcd_compact(&etcd, hft_etcd_revision(&etcd));
}

START_TEST(w4_compacted_while_cut_and_5000_revisions_behind_the_copy_equals_the_truth)
{
    struct hft_writer writer;

    hft_write_many(&client, "w/", 400, 16);
    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 10000);
    cut_off();
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                  .prefix = "w/",
                                                  .keys = 600,
                                                  .delete_percent = 50,
                                                  .in_flight = 16,
                                                  .limit = BEHIND });
    hft_writer_until(&writer, BEHIND, 200000);
    hft_writer_stop(&writer);
    compact_all();
    ck_assert_uint_eq(follower.deletes, 0);

    hft_proxy_door(proxy, HFT_PROXY_OPEN);
    hft_follower_until_synced(&follower, 2, 20000);
    ck_assert_uint_gt(follower.deletes, 50);
    ck_assert_uint_eq(follower.synthesised, follower.events);
    hft_follower_settle(&follower, &etcd, 10000);
    ck_assert_uint_ge(hf_mirror_get_stats(follower.mirror).lists, 2);
    ck_assert_uint_eq(follower.resets, 0);
}
END_TEST

START_TEST(w4_compacted_while_connected_nothing_happens)
{
    hft_write_many(&client, "w/", 100, 16);
    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 10000);
    hft_put(&client, "w/00007", "told", HF_NO_LEASE); /* and then the watch is there */
    hft_follower_settle(&follower, &etcd, 10000);
    for (int i = 0; i < 5; i++) {
        hft_delete(&client, "w/00007");
        hft_put(&client, "w/00007", "", HF_NO_LEASE);
        compact_all();
        hft_follower_settle(&follower, &etcd, 10000);
    }
    hft_follower_assert_undisturbed(&follower);
    ck_assert_uint_le(hf_mirror_get_stats(follower.mirror).lists, 1 + follower.mishaps);
}
END_TEST

/* etcd 3.4 accepts a watch that begins there, but has forgotten the deletions. */
START_TEST(w4_compacted_up_to_the_very_revision_to_resume_from_loses_no_deletion)
{
    hft_write_many(&client, "w/", 10, 16);
    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 10000);
    cut_off();
    hft_etcdctl_ok(&etcd, NULL, "del", "w/00003", NULL); /* the next revision */
    compact_all();
    hft_proxy_door(proxy, HFT_PROXY_OPEN);
    hft_follower_settle(&follower, &etcd, 20000);
    ck_assert_uint_eq(follower.deletes, 1);
}
END_TEST

/* While the first range is told, a key of it is deleted and the list's revision is compacted
 * away, at which the second range is still to be read. */
static bool compacted;

static void compact_once(const struct hf_mirror_event *event, void *arg)
{
    (void)event;
    (void)arg;
    if (compacted)
        return;
    compacted = true;
    hft_etcdctl_ok(&etcd, NULL, "del", "v/00000", NULL);
    hft_etcdctl_ok(&etcd, NULL, "put", "v/00001", "changed", NULL);
    compact_all();
}

START_TEST(w4_compacted_in_the_middle_of_a_list_it_is_begun_anew)
{
    struct hf_key_range ranges[] = { { .key = hf_bytes_of("v/"), .prefix = true },
                                     { .key = hf_bytes_of("w/"), .prefix = true } };

    hft_write_many(&client, "v/", 100, 16);
    hft_write_many(&client, "w/", 100, 16);
    compacted = false;
    follower.on = compact_once;
    hft_follower_start_with(&client, &follower,
                            &(struct hf_mirror_config){ .ranges = ranges, .range_count = 2 });
    hft_follower_until_synced(&follower, 1, 30000);
    ck_assert_uint_gt(follower.troubles, follower.mishaps); /* it was told why */
    ck_assert_uint_eq(follower.deletes, 1);
    hft_follower_settle(&follower, &etcd, 20000);
    ck_assert_uint_eq(follower.synced, 1);
}
END_TEST

START_TEST(w4_compacted_again_and_again_the_copy_equals_the_truth)
{
    struct hft_writer writer;

    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 10000);
    hft_writer_start(&client, &writer,
                     &(struct hft_writer_config){ .endpoint = { etcd.endpoint },
                                                  .prefix = "w/",
                                                  .keys = 300,
                                                  .delete_percent = 40,
                                                  .in_flight = 8 });
    for (unsigned i = 0; i < 8; i++) {
        hft_writer_until(&writer, 150, 20000);
        cut_off();
        hft_writer_until(&writer, 150, 20000);
        compact_all();
        hft_proxy_door(proxy, HFT_PROXY_OPEN);
        hft_follower_until_synced(&follower, i + 2, 20000);
    }
    hft_writer_stop(&writer);
    hft_follower_settle(&follower, &etcd, 20000);
    ck_assert_uint_eq(follower.resets, 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w4");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t,
                   w4_compacted_while_cut_and_5000_revisions_behind_the_copy_equals_the_truth);
    tcase_add_test(t, w4_compacted_while_connected_nothing_happens);
    tcase_add_test(t, w4_compacted_up_to_the_very_revision_to_resume_from_loses_no_deletion);
    tcase_add_test(t, w4_compacted_in_the_middle_of_a_list_it_is_begun_anew);
    tcase_add_test(t, w4_compacted_again_and_again_the_copy_equals_the_truth);
    return hft_suite_run("etcd/mirror: W4", t, NULL);
}
