/* Certificates: mutual TLS, everything that can be wrong with them, and their renewal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <check.h>

#include "support/admin.h"
#include "support/holder.h"
#include "support/pki.h"
#include "support/proxy.h"
#include "support/suite.h"
#include "support/wait.h"

enum { HOUR_S = 3600, STEP_MS = 5000 };

static struct hft_pki pki;
static struct hft_cert cert; /* of the client */
static struct hft_etcd_tls tls;
static struct hft_etcd server;
static struct hft_proxy *proxy;
static char endpoint[64]; /* of the proxy, by its name in the certificate */

static void setup(void)
{
    hft_pki_init(&pki);
    hft_pki_issue(&pki, "client", HOUR_S, &cert);
    tls = hft_pki_tls(&pki, &cert);
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true, .tls = &tls });
    proxy = hft_proxy_new(server.client.number);
    (void)snprintf(endpoint, sizeof endpoint, "https://localhost:%u", hft_proxy_port(proxy));
}

static void teardown(void)
{
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
    hft_pki_done(&pki);
}

static struct hf_etcd_config config(void)
{
    static const char *endpoints[1];

    endpoints[0] = endpoint;
    return (struct hf_etcd_config){ .endpoints = endpoints,
                                    .endpoint_count = 1,
                                    .cacert = pki.ca,
                                    .cert = cert.cert,
                                    .key = cert.key,
                                    .timeout = hft_patience(STEP_MS) };
}

START_TEST(tls_a_client_with_a_certificate_does_everything)
{
    struct hf_etcd_config cfg = config();
    struct hft_watcher watcher;
    struct hft_holder holder;
    struct hft_client client;

    hft_client_open_with(&client, &cfg);
    hft_watcher_start(&client, &watcher, "k");
    hft_holder_start(&client, &holder, 15000);
    hft_put(&client, "k", "v", holder.lease);
    hft_client_until(&client, &watcher.puts, 1, 10000, "the event");
    hft_holder_stop(&holder, true);
    hft_client_until(&client, &watcher.deletes, 1, 10000, "the key to go with the lease");
    hft_watcher_stop(&watcher);
    hft_client_close(&client);
}
END_TEST

/* Everything needs a new connection; a put on the old one would have no known outcome. */
static void cut(struct hft_client *client)
{
    hft_proxy_cut(proxy);
    ck_assert_int_eq(hft_read(client, "k").err, HF_OK);
}

/* A call with a client of that configuration; what went wrong must be told. */
static void expect_failure(const struct hf_etcd_config *cfg, const char *words)
{
    struct hft_client client;
    struct hft_outcome outcome;

    hft_client_open_with(&client, cfg);
    do { /* that a busy machine was too slow says nothing of trust */
        outcome = hft_read(&client, "k");
    } while (outcome.err == HF_ETIMEOUT);
    ck_assert_int_eq(outcome.err, HF_EAGAIN);
    ck_assert_msg(strcasestr(outcome.message, words) != NULL, "\"%s\" does not say \"%s\"",
                  outcome.message, words);
    hft_client_close(&client);
}

START_TEST(tls_a_server_of_another_authority_is_not_trusted_and_the_message_says_so)
{
    struct hf_etcd_config cfg = config();
    struct hft_pki other;

    hft_pki_init(&other);
    cfg.cacert = other.ca;
    expect_failure(&cfg, "certificate verify failed");
    hft_pki_done(&other);
}
END_TEST

START_TEST(tls_a_server_of_another_name_is_not_trusted_unless_that_name_is_expected)
{
    struct hf_etcd_config cfg = config();
    struct hft_client client;

    cfg.server_name = "etcd.example";
    expect_failure(&cfg, "Peer name etcd.example is not in peer certificate");

    (void)snprintf(endpoint, sizeof endpoint, "https://127.0.0.1:%u", hft_proxy_port(proxy));
    cfg.server_name = "localhost";
    hft_client_open_with(&client, &cfg);
    hft_put(&client, "k", "v", HF_NO_LEASE);
    hft_client_close(&client);
}
END_TEST

START_TEST(tls_a_client_without_a_certificate_or_with_an_expired_one_is_refused)
{
    struct hf_etcd_config cfg = config();
    struct hft_cert expired;

    cfg.cert = cfg.key = NULL;
    expect_failure(&cfg, "failed to connect");
    hft_pki_issue(&pki, "expired", -1, &expired);
    cfg.cert = expired.cert;
    cfg.key = expired.key;
    expect_failure(&cfg, "failed to connect");
}
END_TEST

static void expect_refused(struct hf_etcd_config cfg, int code, const char *words)
{
    struct hft_loop loop;
    struct hf_etcd *etcd = NULL;
    struct hf_error err = { "" };

    hft_loop_init(&loop);
    ck_assert_int_eq(hf_etcd_new(&loop.uv, &cfg, &etcd, &err), code);
    ck_assert_msg(strstr(err.text, words) != NULL, "\"%s\" does not say \"%s\"", err.text,
                  words);
    ck_assert_ptr_null(etcd);
    hft_loop_done(&loop);
}

START_TEST(tls_files_that_cannot_work_are_refused_before_anything_is_dialled)
{
    const char *plain = "http://127.0.0.1:1";
    struct hf_etcd_config cfg;
    struct hft_cert other;

    hft_pki_issue(&pki, "other", HOUR_S, &other);
    cfg = config();
    cfg.key = NULL;
    expect_refused(cfg, HF_EINVAL, "key");
    cfg = config();
    cfg.key = other.key;
    expect_refused(cfg, HF_EINVAL, other.key);
    cfg = config();
    cfg.cert = "/nonexistent/client.crt";
    expect_refused(cfg, HF_ENOENT, "/nonexistent/client.crt");
    cfg = config();
    cfg.cacert = cert.key; /* a key is no certificate */
    expect_refused(cfg, HF_EINVAL, cert.key);
    cfg = config();
    cfg.endpoints = &plain;
    expect_refused(cfg, HF_EINVAL, "https");
}
END_TEST

/* Holds the lease, follows a key and goes through a renewal of the certificate. What is under
 * way stays on its connection; whatever connects afterwards shows the new one. */
START_TEST(tls_a_renewed_certificate_is_used_without_losing_a_lease_or_an_event)
{
    struct hf_etcd_config cfg = config();
    struct hft_watcher watcher;
    struct hft_holder holder;
    struct hft_client client;
    struct hft_cert renewed;
    struct hf_error err = { "" };
    unsigned connections;

    hft_client_open_with(&client, &cfg);
    hft_watcher_start(&client, &watcher, "k");
    hft_holder_start(&client, &holder, 15000);
    hft_holder_register(&holder, "k/live");
    connections = (unsigned)hft_proxy_stats(proxy).accepted;

    ck_assert_int_eq(hf_etcd_reload_tls(client.etcd, &err), HF_OK); /* nothing new */
    ck_assert_uint_eq(hf_etcd_get_stats(client.etcd).tls_reloads, 0);
    hft_pki_issue(&pki, "client", HOUR_S, &renewed); /* in place of the old files */
    ck_assert_str_eq(renewed.cert, cert.cert);
    ck_assert_msg(hf_etcd_reload_tls(client.etcd, &err) == HF_OK, "%s", err.text);
    ck_assert_uint_eq(hf_etcd_get_stats(client.etcd).tls_reloads, 1);

    hft_put(&client, "k/a", "v", HF_NO_LEASE); /* on a new connection */
    ck_assert_uint_gt(hft_proxy_stats(proxy).accepted, connections);
    hft_client_until(&client, &watcher.puts, 2, 10000, "the event");
    holder.fault_at = hft_now();
    hft_holder_until_renewed(&holder, 10000);

    cut(&client); /* now everybody needs the new one */
    holder.fault_at = hft_now();
    holder.renewed_at = 0;
    hft_put(&client, "k/b", "v", HF_NO_LEASE);
    hft_client_until(&client, &watcher.puts, 3, 10000, "the next event");
    hft_holder_until_renewed(&holder, 10000);
    ck_assert_uint_eq(holder.losses, 0);
    ck_assert_uint_eq(holder.fences, 0);
    ck_assert_uint_eq(watcher.deletes, 0);
    ck_assert_uint_eq(hf_mirror_get_stats(watcher.mirror).missed, 0);
    hft_holder_stop(&holder, true);
    hft_watcher_stop(&watcher);
    hft_client_close(&client);
}
END_TEST

static struct {
    unsigned renewed, refused;
    char why[256];
} told;

static void on_renewed(int err, const char *message, void *arg)
{
    ck_assert_ptr_eq(arg, &told);
    if (err == HF_OK)
        told.renewed++;
    else
        told.refused++;
    (void)snprintf(told.why, sizeof told.why, "%s", message);
}

static struct hf_etcd_config polling(void)
{
    struct hf_etcd_config cfg = config();

    cfg.tls_poll = 50;
    cfg.on_renewed = on_renewed;
    cfg.renewed_arg = &told;
    return cfg;
}

START_TEST(tls_renewed_files_are_found_by_looking_now_and_then)
{
    struct hf_etcd_config cfg = polling();
    struct hft_client client;

    hft_client_open_with(&client, &cfg);
    hft_put(&client, "k", "1", HF_NO_LEASE);
    ck_assert_uint_eq(told.renewed, 0);
    hft_pki_issue(&pki, "client", HOUR_S, &cert);
    hft_client_until(&client, &told.renewed, 1, 10000, "the new files to be found");
    ck_assert_uint_eq(hf_etcd_get_stats(client.etcd).tls_reloads, 1);
    hft_put(&client, "k", "2", HF_NO_LEASE);
    hft_client_close(&client);
}
END_TEST

static bool is_told_once(void *arg)
{
    (void)arg;
    return told.refused == 1;
}

/* A renewal that was left half done is told once, and so is its end. */
START_TEST(tls_files_that_stay_unfit_are_told_of_once)
{
    struct hf_etcd_config cfg = polling();
    struct hft_client client;
    struct hft_cert other;

    hft_client_open_with(&client, &cfg);
    hft_pki_issue(&pki, "other", HOUR_S, &other);
    ck_assert_int_eq(rename(other.key, cert.key), 0);
    hft_client_until(&client, &told.refused, 1, 10000, "the refusal");
    ck_assert_msg(strstr(told.why, cert.key) != NULL, "%s", told.why);
    hft_loop_hold(&client.loop, is_told_once, NULL, 500, "no second word on it");
    ck_assert_uint_eq(told.renewed, 0);
    ck_assert_int_eq(rename(other.cert, cert.cert), 0);
    hft_client_until(&client, &told.renewed, 1, 10000, "the new files to be found");
    ck_assert_uint_eq(told.refused, 1);
    hft_client_close(&client);
}
END_TEST

START_TEST(tls_a_key_that_does_not_fit_is_refused_and_the_old_pair_stays_in_use)
{
    struct hf_etcd_config cfg = config();
    struct hft_client client;
    struct hft_cert other;
    struct hf_error err = { "" };

    hft_client_open_with(&client, &cfg);
    hft_put(&client, "k", "1", HF_NO_LEASE);
    hft_pki_issue(&pki, "other", HOUR_S, &other);
    ck_assert_int_eq(rename(other.key, cert.key),
                     0); /* the key came, its certificate did not */
    ck_assert_int_eq(hf_etcd_reload_tls(client.etcd, &err), HF_EINVAL);
    ck_assert_msg(strstr(err.text, cert.key) != NULL, "%s", err.text);
    ck_assert_uint_eq(hf_etcd_get_stats(client.etcd).tls_reloads, 0);
    cut(&client);
    hft_put(&client, "k", "2", HF_NO_LEASE);

    ck_assert_int_eq(rename(other.cert, cert.cert), 0); /* there it is */
    ck_assert_msg(hf_etcd_reload_tls(client.etcd, &err) == HF_OK, "%s", err.text);
    hft_put(&client, "k", "3", HF_NO_LEASE);
    ck_assert_int_eq(unlink(cert.key), 0);
    ck_assert_int_eq(hf_etcd_reload_tls(client.etcd, &err), HF_ENOENT);
    cut(&client);
    hft_put(&client, "k", "4", HF_NO_LEASE);
    hft_client_close(&client);
}
END_TEST

static const struct {
    long delay_s, lifetime_s;
    const char *words;
} UNFIT[] = {
    { 0, -60, "has expired" },
    { HOUR_S, 2 * HOUR_S, "is not valid yet" },
};

/* It fits its key, and would still lock us out. */
START_TEST(tls_a_renewed_certificate_that_is_not_valid_now_does_not_replace_a_good_one)
{
    struct hf_etcd_config cfg = polling();
    struct hft_client client;
    struct hft_cert renewed;

    hft_client_open_with(&client, &cfg);
    hft_put(&client, "k", "1", HF_NO_LEASE);
    pki.delay_s = UNFIT[_i].delay_s;
    hft_pki_issue(&pki, "client", UNFIT[_i].lifetime_s, &renewed);
    pki.delay_s = 0;
    hft_client_until(&client, &told.refused, 1, 10000, "the refusal");
    ck_assert_msg(strstr(told.why, cert.cert) != NULL &&
                      strstr(told.why, UNFIT[_i].words) != NULL,
                  "%s", told.why);
    ck_assert_uint_eq(hf_etcd_get_stats(client.etcd).tls_reloads, 0);
    cut(&client); /* the old one still opens the door */
    hft_put(&client, "k", "2", HF_NO_LEASE);
    hft_pki_issue(&pki, "client", HOUR_S, &renewed);
    hft_client_until(&client, &told.renewed, 1, 10000, "the good one to be found");
    cut(&client);
    hft_put(&client, "k", "3", HF_NO_LEASE);
    hft_client_close(&client);
}
END_TEST

static void append_file(const char *from, const char *to)
{
    char text[4096];
    FILE *in = fopen(from, "re"), *out = fopen(to, "ae");
    size_t len;

    ck_assert(in != NULL && out != NULL);
    len = fread(text, 1, sizeof text, in);
    ck_assert_uint_eq(fwrite(text, 1, len, out), len);
    ck_assert_int_eq(fclose(in) + fclose(out), 0);
}

/* As an authority is replaced: both are trusted for a while, and then the new one alone. */
START_TEST(tls_a_renewed_bundle_of_authorities_is_used)
{
    struct hf_etcd_config cfg = polling();
    struct hft_client client;
    struct hft_pki other;
    char both[HFT_PKI_PATH_MAX + 8];

    hft_pki_init(&other);
    (void)snprintf(both, sizeof both, "%s.both", pki.ca);
    append_file(pki.ca, both);
    cfg.cacert = both;
    hft_client_open_with(&client, &cfg);
    hft_put(&client, "k", "1", HF_NO_LEASE);
    append_file(other.ca, both);
    hft_client_until(&client, &told.renewed, 1, 10000, "the bundle to be found");
    cut(&client);
    hft_put(&client, "k", "2", HF_NO_LEASE);
    ck_assert_int_eq(rename(other.ca, both), 0); /* which did not make etcd's certificate */
    hft_client_until(&client, &told.renewed, 2, 10000, "the new authority to be found");
    hft_proxy_cut(proxy);
    ck_assert_int_ne(hft_read(&client, "k").err, HF_OK);
    hft_client_close(&client);
    hft_pki_done(&other);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("tls");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, tls_a_client_with_a_certificate_does_everything);
    tcase_add_test(t, tls_a_server_of_another_authority_is_not_trusted_and_the_message_says_so);
    tcase_add_test(t, tls_a_server_of_another_name_is_not_trusted_unless_that_name_is_expected);
    tcase_add_test(t, tls_a_client_without_a_certificate_or_with_an_expired_one_is_refused);
    tcase_add_test(t, tls_files_that_cannot_work_are_refused_before_anything_is_dialled);
    tcase_add_test(t, tls_a_renewed_certificate_is_used_without_losing_a_lease_or_an_event);
    tcase_add_test(t, tls_renewed_files_are_found_by_looking_now_and_then);
    tcase_add_test(t, tls_files_that_stay_unfit_are_told_of_once);
    tcase_add_test(t, tls_a_key_that_does_not_fit_is_refused_and_the_old_pair_stays_in_use);
    tcase_add_loop_test(
        t, tls_a_renewed_certificate_that_is_not_valid_now_does_not_replace_a_good_one, 0,
        sizeof UNFIT / sizeof UNFIT[0]);
    tcase_add_test(t, tls_a_renewed_bundle_of_authorities_is_used);
    return hft_suite_run("etcd/tls", t, NULL);
}
