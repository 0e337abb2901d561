/* W8: a watch that is refused is both created and cancelled, on a stream that stays open. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/admin.h"
#include "support/follower.h"
#include "support/proxy.h"
#include "support/suite.h"

static struct hft_etcd etcd;
static struct hft_proxy *proxy;
static struct hft_client client; /* as user "app", who has a role of that name */
static struct hft_follower follower;

static void setup(void)
{
    static const char *const FLAGS[] = { "--bcrypt-cost=4", NULL };
    char password_file[HFT_PATH_MAX + 16];
    const char *endpoint;
    FILE *file;

    hft_etcd_start(&etcd, &(struct hft_etcd_options){ .no_fsync = true, .extra_flags = FLAGS });
    hft_etcd_user_add(&etcd, "app", "secret", "unused/");
    hft_etcd_auth_enable(&etcd);
    (void)snprintf(password_file, sizeof password_file, "%s/password", etcd.dir.path);
    file = fopen(password_file, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("secret\n", file), 0);
    ck_assert_int_eq(fclose(file), 0);
    proxy = hft_proxy_new(etcd.client.number);
    endpoint = hft_proxy_endpoint(proxy);
    hft_client_open_with(&client, &(struct hf_etcd_config){ .endpoints = &endpoint,
                                                            .endpoint_count = 1,
                                                            .user = "app",
                                                            .password_file = password_file });
    hft_etcdctl_ok(&etcd, NULL, "put", "w/a", "1", NULL);
}

static void teardown(void)
{
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&etcd);
}

static void grant(void)
{
    hft_etcdctl_ok(&etcd, NULL, "role", "grant-permission", "--prefix", "app", "read", "w/",
                   NULL);
}

START_TEST(w8_a_list_refused_for_want_of_permission_is_told_and_made_when_it_is_granted)
{
    hft_follower_start(&client, &follower, "w/");
    hft_client_until(&client, &follower.denied, 2, 20000, "the refusal to be told");
    ck_assert_int_eq(follower.last_trouble, HF_EDENIED);
    ck_assert_uint_eq(follower.events, 0);
    grant();
    hft_follower_until_synced(&follower, 1, 20000);
    hft_follower_settle(&follower, &etcd, 10000);
}
END_TEST

/* The one key that is still allowed is the one by which the mirror knows the history: that is
 * checked, and then the watch over all keys is refused. */
START_TEST(w8_a_watch_refused_for_want_of_permission_is_told_and_goes_on_when_it_is_granted)
{
    unsigned denied;

    grant();
    hft_follower_start(&client, &follower, "w/");
    hft_follower_until_synced(&follower, 1, 20000);
    hft_etcdctl_ok(&etcd, NULL, "role", "revoke-permission", "--prefix", "app", "w/", NULL);
    hft_etcdctl_ok(&etcd, NULL, "role", "grant-permission", "app", "read", "w/a", NULL);
    hft_proxy_cut(proxy);
    denied = follower.denied;
    hft_client_until(&client, &follower.denied, denied + 3, 20000, "the refusal to be told");
    ck_assert_int_eq(follower.last_trouble, HF_EDENIED);
    ck_assert_uint_gt(hf_mirror_get_stats(follower.mirror).opens, 2);

    hft_etcdctl_ok(&etcd, NULL, "put", "w/b", "2", NULL);
    hft_etcdctl_ok(&etcd, NULL, "del", "w/a", NULL);
    grant();
    hft_follower_settle(&follower, &etcd, 20000);
    ck_assert_uint_eq(follower.synced, 1);
    ck_assert_uint_eq(follower.deletes, 1);
    ck_assert_uint_eq(follower.resets, 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("w8");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 90);
    tcase_add_test(
        t, w8_a_list_refused_for_want_of_permission_is_told_and_made_when_it_is_granted);
    tcase_add_test(
        t, w8_a_watch_refused_for_want_of_permission_is_told_and_goes_on_when_it_is_granted);
    return hft_suite_run("etcd/mirror: W8", t, NULL);
}
