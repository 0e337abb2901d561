/* S14: the cluster changes behind the endpoints that were configured. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "support/cluster.h"
#include "support/follower.h"
#include "support/holder.h"
#include "support/suite.h"

static struct hft_cluster cluster;
static struct hft_client client;

static void setup(void)
{
    /* A young cluster would not let a member go. */
    static const char *const FLAGS[] = { "--strict-reconfig-check=false", NULL };

    hft_cluster_start(&cluster,
                      &(struct hft_etcd_options){ .no_fsync = true, .extra_flags = FLAGS });
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_cluster_done(&cluster);
}

static void open_client(bool discover, bool separate)
{
    const char *only = cluster.member[0].endpoint;

    hft_client_open_with(&client, &(struct hf_etcd_config){ .endpoints = &only,
                                                            .endpoint_count = 1,
                                                            .discover = discover,
                                                            .discover_every = 500,
                                                            .separate_channels = separate });
}

static bool knows(void *count)
{
    return hf_etcd_get_stats(client.etcd).endpoints == *(unsigned *)count;
}

static void until_known(unsigned count)
{
    hft_loop_until(&client.loop, knows, &count, 15000, "the members");
}

START_TEST(s14_client_that_knows_one_member_goes_on_with_another_when_it_dies)
{
    struct hft_follower follower = { 0 };
    struct hft_holder holder;

    open_client(true, _i == 1);
    hft_follower_start(&client, &follower, "k");
    hft_follower_until_synced(&follower, 1, 10000);
    hft_holder_start(&client, &holder, 15000);
    until_known(3);

    hft_etcd_kill(&cluster.member[0]);
    holder.fault_at = hft_now();
    hft_etcdctl_ok(hft_cluster_leader(&cluster), NULL, "put", "k/after", "", NULL);
    hft_client_until(&client, &follower.puts, 1, 15000, "the event from another member");
    hft_holder_until_renewed(&holder, 15000);
    ck_assert_uint_eq(holder.losses, 0);
    ck_assert_int_eq(hft_read_at_last(&client, "k/after").count, 1);
    ck_assert_uint_eq(hf_etcd_get_stats(client.etcd).endpoints, 3);

    hft_follower_settle(&follower, &cluster.member[1], 10000);
    hft_follower_stop(&follower);
    hft_holder_stop(&holder, true);
}
END_TEST

START_TEST(s14_client_that_was_not_asked_to_stays_with_what_was_configured)
{
    open_client(false, false);
    (void)hft_read_at_last(&client, "k");
    hft_etcd_kill(&cluster.member[0]);
    ck_assert_int_ne(hft_read(&client, "k").err, HF_OK);
    ck_assert_uint_eq(hf_etcd_get_stats(client.etcd).endpoints, 1);
}
END_TEST

static void remove_member(const char *name)
{
    char *list = NULL, *end, *line;

    hft_etcdctl_ok(&cluster.member[0], &list, "member", "list", NULL);
    for (line = strtok_r(list, "\n", &end); line != NULL; line = strtok_r(NULL, "\n", &end)) {
        if (strstr(line, name) == NULL)
            continue;
        line[strcspn(line, ",")] = '\0';
        hft_etcdctl_ok(&cluster.member[0], NULL, "member", "remove", line, NULL);
    }
    free(list);
}

START_TEST(s14_member_that_left_is_forgotten_and_the_configured_one_never)
{
    open_client(true, false);
    until_known(3);
    remove_member("m1");
    until_known(2);
    (void)hft_read_at_last(&client, "k"); /* it may have been the leader that left */

    hft_etcd_kill(&cluster.member[0]);
    hft_etcd_restart(&cluster.member[0]);
    until_known(2);
    (void)hft_read_at_last(&client, "k"); /* one of two was gone: nobody leads at first */
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("s14");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 90);
    tcase_add_loop_test(t, s14_client_that_knows_one_member_goes_on_with_another_when_it_dies,
                        0, 2);
    tcase_add_test(t, s14_client_that_was_not_asked_to_stays_with_what_was_configured);
    tcase_add_test(t, s14_member_that_left_is_forgotten_and_the_configured_one_never);
    return hft_suite_run("etcd/members: S14", t, NULL);
}
