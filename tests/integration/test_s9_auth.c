/* Users, passwords and tokens that die: S9, W8. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/cleanup.h"
#include "support/admin.h"
#include "support/holder.h"
#include "support/process.h"
#include "support/proxy.h"
#include "support/suite.h"

enum { TOKEN_TTL_S = 5, LOGIN_EVERY_MS = 5000 };

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client; /* as user "app", through the proxy */
static char password_file[HFT_PATH_MAX + 16];
static hf_ms opened_at;

static void write_password(const char *password)
{
    FILE *file = fopen(password_file, "we");

    ck_assert_ptr_nonnull(file);
    (void)fprintf(file, "%s\n", password);
    ck_assert_int_eq(fclose(file), 0);
}

static void open_client(void)
{
    const char *endpoint = hft_proxy_endpoint(proxy);

    opened_at = hft_now();
    hft_client_open_with(&client, &(struct hf_etcd_config){ .endpoints = &endpoint,
                                                            .endpoint_count = 1,
                                                            .user = "app",
                                                            .password_file = password_file,
                                                            .timeout = 20000 });
}

/* An etcd with user "app", who has the keys below "app/". Hashing is made cheap for it. */
static void setup(void)
{
    static const char *const FLAGS[] = { "--bcrypt-cost=4", NULL };

    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true,
                                                        .auth_token_ttl_s = TOKEN_TTL_S,
                                                        .extra_flags = FLAGS });
    hft_etcd_user_add(&server, "app", "secret", "app/");
    (void)snprintf(password_file, sizeof password_file, "%s/password", server.dir.path);
    write_password("secret");
    proxy = hft_proxy_new(server.client.number);
    open_client();
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

/* Logging in is expensive for etcd. */
static void expect_few_logins(uint64_t at_least)
{
    uint64_t logins = hf_etcd_get_stats(client.etcd).logins;
    uint64_t most = 1 + (uint64_t)(hft_now() - opened_at) / LOGIN_EVERY_MS;

    ck_assert_msg(logins >= at_least && logins <= most,
                  "%" PRIu64 " log-ins, not %" PRIu64 " to %" PRIu64, logins, at_least, most);
}

static unsigned tokens_expired(void)
{
    FILE *log = fopen(server.log_file, "re");
    HF_CLEANUP_FREE char *line = NULL;
    unsigned count = 0;
    size_t size = 0;

    ck_assert_ptr_nonnull(log);
    while (getline(&line, &size, log) >= 0)
        count += strstr(line, "deleted a simple token") != NULL &&
                 strstr(line, "\"user-name\":\"app\"") != NULL;
    (void)fclose(log);
    return count;
}

static bool has_expired(void *arg)
{
    return tokens_expired() > *(const unsigned *)arg;
}

static void until_the_token_expires(void)
{
    unsigned before = tokens_expired();

    hft_loop_until(&client.loop, has_expired, &before, 30000, "the token to expire");
}

/* Through another door than the client under test. */
static void put_as_root(const char *key)
{
    hft_etcdctl_ok(&server, NULL, "put", key, "by root", NULL);
}

START_TEST(s9_w8_a_token_that_lives_5s_costs_no_event_no_call_and_no_lease)
{
    struct hft_watcher watcher;
    struct hft_holder holder;
    unsigned events = 0;

    hft_etcd_auth_enable(&server);
    hft_watcher_start(&client, &watcher, "app/");
    hft_holder_start(&client, &holder, 15000);
    hft_holder_register(&holder, "app/live");
    events++;

    for (int round = 0; round < 3; round++) {
        until_the_token_expires();
        if (round > 0) /* the next watch begins with a dead token */
            hft_proxy_cut(proxy);
        put_as_root("app/root");
        hft_client_until(&client, &watcher.puts, ++events, 20000, "the event of another");
        hft_put(&client, "app/own", "", HF_NO_LEASE);
        hft_client_until(&client, &watcher.puts, ++events, 20000, "the event of our own");
    }
    ck_assert_uint_eq(watcher.puts, events);
    ck_assert_uint_eq(watcher.deletes, 0);
    ck_assert_uint_eq(watcher.resets, 0);
    ck_assert_uint_eq(watcher.out_of_order, 0);
    ck_assert_uint_eq(hf_mirror_get_stats(watcher.mirror).missed, 0);
    ck_assert_uint_eq(holder.losses, 0);
    ck_assert_uint_eq(holder.fences, 0);
    expect_few_logins(3);
    hft_watcher_stop(&watcher);
    hft_holder_stop(&holder, true);
}
END_TEST

/* Puts, one after the other for as long as `going`. */
struct chain {
    bool going;
    bool under_way;
    unsigned done, failed;
    char message[256];
};

static void put_next(struct chain *chain);

static void on_put(const struct hf_write_result *result, void *arg)
{
    struct chain *chain = arg;

    chain->under_way = false;
    chain->done++;
    if (result->result.err != HF_OK) {
        chain->failed++;
        (void)snprintf(chain->message, sizeof chain->message, "%s: %s",
                       hf_err_name(result->result.err), result->result.message);
    }
    if (chain->going)
        put_next(chain);
}

static void put_next(struct chain *chain)
{
    chain->under_way = true;
    ck_assert_int_eq(hf_etcd_put(client.etcd, hf_bytes_of("app/chain"), hf_bytes_of("x"),
                                 HF_NO_LEASE, on_put, chain, NULL),
                     HF_OK);
}

static bool is_idle(void *arg)
{
    return !((struct chain *)arg)->under_way;
}

static bool has_ended(void *arg)
{
    int status = 0;

    if (!hft_process_has_ended(*(pid_t *)arg, &status))
        return false;
    ck_assert_int_eq(status, 0);
    return true;
}

/* Every change to users or roles outdates what is under way and kills the user's tokens. */
START_TEST(s9_users_and_roles_changed_under_load_cost_no_call)
{
    char script[512];
    struct chain chains[8] = { 0 };
    pid_t administrator;

    hft_etcd_auth_enable(&server);
    (void)snprintf(
        script, sizeof script,
        "set -e; ctl() { etcdctl --endpoints=%s --user=root:root \"$@\" >/dev/null; }; "
        "for i in 1 2 3 4; do ctl role add r$i; ctl user grant-role app r$i; "
        "ctl user add u$i:pw; done",
        server.endpoint);
    const char *const argv[] = { "sh", "-c", script, NULL };
    const char *const env[] = { "ETCDCTL_API=3", NULL };

    for (int i = 0; i < 8; i++) {
        chains[i].going = true;
        put_next(&chains[i]);
    }
    hft_client_until(&client, &chains[0].done, 1, 20000, "the first put");
    administrator = hft_process_spawn(&(struct hft_spawn){ .argv = argv, .env = env });
    hft_loop_until(&client.loop, has_ended, &administrator, 60000, "the changes");
    for (int i = 0; i < 8; i++) {
        chains[i].going = false;
        hft_loop_until(&client.loop, is_idle, &chains[i], 30000, "the last put");
        ck_assert_msg(chains[i].failed == 0, "%u of %u: %s", chains[i].failed, chains[i].done,
                      chains[i].message);
    }
    expect_few_logins(1); /* whether a put meets a change in the very moment is chance */
}
END_TEST

/* A restart forgets them, unless the log-in is replayed from the log: the put behind it, which
 * an orderly stop brings to disk, prevents that. */
START_TEST(s9_an_etcd_that_forgot_all_tokens_is_logged_in_to_again)
{
    struct hft_watcher watcher;
    struct hft_holder holder;

    hft_etcd_auth_enable(&server);
    hft_watcher_start(&client, &watcher, "app/");
    hft_holder_start(&client, &holder, 15000);
    for (unsigned i = 1; i <= 2; i++) {
        put_as_root("app/root");
        hft_client_until(&client, &watcher.puts, 3 * i - 2, 30000, "an event before");
        hft_etcd_stop(&server);
        hft_etcd_restart(&server);
        put_as_root("app/root");
        hft_client_until(&client, &watcher.puts, 3 * i - 1, 30000, "the event of another");
        hft_put(&client, "app/own", "", HF_NO_LEASE);
        hft_client_until(&client, &watcher.puts, 3 * i, 30000, "the event of our own");
    }
    ck_assert_uint_eq(watcher.puts, 6);
    ck_assert_uint_eq(watcher.resets, 0);
    ck_assert_uint_eq(holder.losses, 0);
    expect_few_logins(3);
    hft_watcher_stop(&watcher);
    hft_holder_stop(&holder, true);
}
END_TEST

static struct hft_outcome put(const char *key)
{
    struct hft_outcome outcome = { 0 };

    ck_assert_int_eq(hf_etcd_put(client.etcd, hf_bytes_of(key), hf_bytes_of(""), HF_NO_LEASE,
                                 hft_on_write, &outcome, NULL),
                     HF_OK);
    hft_await(&client, &outcome, 30000);
    return outcome;
}

START_TEST(s9_a_wrong_password_is_said_clearly_and_a_mended_file_is_enough)
{
    struct hft_outcome outcome;

    hft_etcd_auth_enable(&server);
    write_password("wrong");
    outcome = put("app/a");
    ck_assert_int_eq(outcome.err, HF_EDENIED);
    ck_assert(!outcome.maybe_applied);
    ck_assert_msg(strstr(outcome.message, "invalid user ID or password") != NULL, "%s",
                  outcome.message);
    expect_few_logins(1);

    write_password("secret");
    outcome = put("app/a"); /* waits for the next log-in */
    ck_assert_msg(outcome.err == HF_OK, "%s", outcome.message);
    expect_few_logins(2);
}
END_TEST

START_TEST(s9_a_permission_denied_is_no_reason_to_log_in_again)
{
    struct hft_watcher watcher = { 0 };
    struct hf_key_range range = { .key = hf_bytes_of("other/"), .prefix = true };
    struct hft_outcome outcome;

    hft_etcd_auth_enable(&server);
    hft_put(&client, "app/a", "", HF_NO_LEASE);
    for (int i = 0; i < 3; i++) {
        outcome = put("other/a");
        ck_assert_int_eq(outcome.err, HF_EDENIED);
        ck_assert(!outcome.maybe_applied);
        ck_assert_ptr_nonnull(strstr(outcome.message, "permission denied"));
    }
    expect_few_logins(1);

    /* A mirror that may not read goes on trying, and is there once it may. */
    hft_watcher_begin(&client, &watcher,
                      &(struct hf_mirror_config){ .ranges = &range, .range_count = 1 });
    hft_client_until(&client, &watcher.troubles, 1, 20000, "the mirror to be refused");
    ck_assert_int_eq(watcher.last_trouble, HF_EDENIED);
    hft_etcdctl_ok(&server, NULL, "role", "grant-permission", "--prefix", "app", "readwrite",
                   "other/", NULL);
    hft_client_until(&client, &watcher.synced, 1, 30000, "the mirror to be let in");
    put_as_root("other/a");
    hft_client_until(&client, &watcher.puts, 1, 20000, "its first event");
    hft_watcher_stop(&watcher);
}
END_TEST

/* A reconnecting mirror asks whether the history is still the same, about a key that its user
 * may read. */
START_TEST(s9_an_empty_mirror_resumes_although_its_user_may_read_nothing_else)
{
    struct hft_watcher watcher;

    hft_etcd_auth_enable(&server);
    hft_watcher_start(&client, &watcher, "app/");
    hft_proxy_cut(proxy);
    put_as_root("app/root");
    hft_client_until(&client, &watcher.puts, 1, 20000, "the event");
    ck_assert_int_ne(watcher.last_trouble, HF_EDENIED);
    hft_watcher_stop(&watcher);
}
END_TEST

START_TEST(s9_authentication_may_be_turned_on_under_a_running_client)
{
    struct hft_watcher watcher;

    hft_watcher_start(&client, &watcher, "app/");
    hft_put(&client, "app/a", "", HF_NO_LEASE); /* nobody is asked for a token yet */
    hft_etcd_auth_enable(&server);
    hft_put(&client, "app/b", "", HF_NO_LEASE);
    hft_proxy_cut(proxy);
    put_as_root("app/c");
    hft_client_until(&client, &watcher.puts, 3, 20000, "all events");
    expect_few_logins(2);
    hft_watcher_stop(&watcher);
}
END_TEST

START_TEST(s9_half_of_the_credentials_is_none)
{
    const char *endpoint = server.endpoint;
    struct hf_etcd_config cfg = { .endpoints = &endpoint, .endpoint_count = 1, .user = "app" };
    struct hf_etcd *etcd = NULL;
    struct hf_error err;

    ck_assert_int_eq(hf_etcd_new(&client.loop.uv, &cfg, &etcd, &err), HF_EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "password"));
    cfg.password_file = "/nonexistent/password";
    ck_assert_int_eq(hf_etcd_new(&client.loop.uv, &cfg, &etcd, &err), HF_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, cfg.password_file));
    cfg.user = NULL;
    ck_assert_int_eq(hf_etcd_new(&client.loop.uv, &cfg, &etcd, &err), HF_EINVAL);
    ck_assert_ptr_null(etcd);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("auth");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, s9_w8_a_token_that_lives_5s_costs_no_event_no_call_and_no_lease);
    tcase_add_test(t, s9_users_and_roles_changed_under_load_cost_no_call);
    tcase_add_test(t, s9_an_etcd_that_forgot_all_tokens_is_logged_in_to_again);
    tcase_add_test(t, s9_a_wrong_password_is_said_clearly_and_a_mended_file_is_enough);
    tcase_add_test(t, s9_a_permission_denied_is_no_reason_to_log_in_again);
    tcase_add_test(t, s9_an_empty_mirror_resumes_although_its_user_may_read_nothing_else);
    tcase_add_test(t, s9_authentication_may_be_turned_on_under_a_running_client);
    tcase_add_test(t, s9_half_of_the_credentials_is_none);
    return hft_suite_run("etcd/auth", t, NULL);
}
