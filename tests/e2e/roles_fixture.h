/* roles_fixture.h - an etcd that demands client certificates, with the roles that examples/etcd
 * makes, and one certificate for each of them. */
#ifndef ROLES_FIXTURE_H
#define ROLES_FIXTURE_H

#include <check.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "etcd/watch.h"
#include "support/fleet.h"
#include "support/pki.h"

#define SCRIPTS HOLDFAST_SOURCE_DIR "/examples/etcd/"
#define DATA    "/holdfast-data/default/"

enum { MOST_WORDS = 16 };

static const char *const ROLES[] = { "controller", "agentd", "submitter", "operator",
                                     "viewer" };
enum { ROLE_COUNT = sizeof ROLES / sizeof ROLES[0] };

static struct hft_fleet fleet; /* on an etcd that demands certificates */
static struct hft_tempdir dir; /* of all certificates */
static struct hft_cert server_cert, root;
static char ca[HFT_PKI_PATH_MAX];
static struct hft_etcd_tls tls;

static inline struct hft_cert cert_of(const char *name)
{
    struct hft_cert cert;

    (void)snprintf(cert.cert, sizeof cert.cert, "%s/%s.crt", dir.path, name);
    (void)snprintf(cert.key, sizeof cert.key, "%s/%s.key", dir.path, name);
    return cert;
}

/* The scripts. */

/* Runs one of them with the certificate of `who` in its environment. */
static inline struct hft_output script(const char *name, const char *who, ...)
{
    struct hft_cert cert = cert_of(who);
    char path[sizeof SCRIPTS + 32], endpoints[200], cacert[HFT_PKI_PATH_MAX + 32],
        file[HFT_PKI_PATH_MAX + 32], key[HFT_PKI_PATH_MAX + 32];
    const char *env[] = { endpoints, cacert, file, key, NULL };
    const char *words[MOST_WORDS] = { path };
    struct hft_output output = { 0 };
    va_list more;

    (void)snprintf(path, sizeof path, SCRIPTS "%s", name);
    (void)snprintf(endpoints, sizeof endpoints, "ETCDCTL_ENDPOINTS=%s", fleet.etcd.endpoint);
    (void)snprintf(cacert, sizeof cacert, "ETCDCTL_CACERT=%s", ca);
    (void)snprintf(file, sizeof file, "ETCDCTL_CERT=%s", cert.cert);
    (void)snprintf(key, sizeof key, "ETCDCTL_KEY=%s", cert.key);
    va_start(more, who);
    for (size_t i = 1; (words[i] = va_arg(more, const char *)) != NULL; i++)
        ck_assert_uint_lt(i + 1, MOST_WORDS);
    va_end(more);
    hft_process_run(words, env, &output);
    return output;
}

static void expect_output(struct hft_output output, int status, const char *part)
{
    ck_assert_msg(output.status == status, "exited with %d: %s%s", output.status, output.out,
                  output.err);
    ck_assert_msg(strstr(output.out, part) != NULL || strstr(output.err, part) != NULL,
                  "does not say \"%s\": %s%s", part, output.out, output.err);
    hft_output_done(&output);
}

static inline void certify(const char *name)
{
    expect_output(script("certificates.sh", "root", dir.path, "client", name, NULL), 0,
                  "valid for 30 days");
}

static inline void make_certificates(void)
{
    (void)snprintf(ca, sizeof ca, "%s/ca.crt", dir.path);
    expect_output(script("certificates.sh", "root", dir.path, "authority", NULL), 0, "made");
    expect_output(script("certificates.sh", "root", dir.path, "server", "m1", "IP:127.0.0.1",
                         "DNS:localhost", NULL),
                  0, "valid for 30 days");
    certify("root");
    for (size_t i = 0; i < ROLE_COUNT; i++)
        certify(ROLES[i]);
}

static inline struct hf_etcd_config config_of(const struct hft_cert *cert)
{
    static const char *endpoints[1];

    endpoints[0] = fleet.etcd.endpoint;
    return (struct hf_etcd_config){ .endpoints = endpoints,
                                    .endpoint_count = 1,
                                    .cacert = ca,
                                    .cert = cert->cert,
                                    .key = cert->key,
                                    .timeout = hft_patience(0) };
}

/* An etcd that demands certificates, without roles yet. */
static inline void setup_bare(void)
{
    struct hf_etcd_config cfg;

    hft_tempdir_init(&dir);
    make_certificates();
    server_cert = cert_of("m1");
    root = cert_of("root");
    tls = (struct hft_etcd_tls){ .ca = ca,
                                 .cert = server_cert.cert,
                                 .key = server_cert.key,
                                 .client_cert = root.cert,
                                 .client_key = root.key };
    fleet = (struct hft_fleet){ .ttl = HFT_FLEET_TTL_MS, .role = "r", .agent_options = "" };
    hft_etcd_start(&fleet.etcd, &(struct hft_etcd_options){ .no_fsync = true, .tls = &tls });
    (void)snprintf(fleet.endpoint, sizeof fleet.endpoint, "%s", fleet.etcd.endpoint);
    (void)snprintf(fleet.ledger, sizeof fleet.ledger, "%s/ledger", fleet.etcd.dir.path);
    cfg = config_of(&root);
    hft_client_open_with(&fleet.hand, &cfg);
}

/* The same with everything that the scripts make. */
static inline void setup(void)
{
    setup_bare();
    expect_output(script("roles.sh", "root", "roles", NULL), 0, "as they should be");
    for (size_t i = 0; i < ROLE_COUNT; i++)
        expect_output(script("roles.sh", "root", "user", ROLES[i], ROLES[i], NULL), 0, "made");
    expect_output(script("roles.sh", "root", "enable", NULL), 0, "authentication is on");
}

static inline void teardown(void)
{
    for (unsigned i = 0; i < HFT_FLEET_SIZE; i++) {
        if (fleet.hosts[i].pid != 0)
            hft_fleet_lose_host(&fleet, i);
        if (fleet.controllers[i].pid != 0)
            hft_program_kill(&fleet.controllers[i]);
    }
    hft_client_close(&fleet.hand);
    hft_etcd_done(&fleet.etcd);
    hft_tempdir_done(&dir);
}

/* Runs holdfast as one of the roles. */
static inline struct hft_output as(const char *role, ...)
{
    struct hft_cert cert = cert_of(role);
    const char *words[MOST_WORDS] = { NULL };
    struct hft_output output = { 0 };
    va_list more;
    size_t count = 0;

    va_start(more, role);
    while ((words[count] = va_arg(more, const char *)) != NULL)
        ck_assert_uint_lt(++count, MOST_WORDS);
    va_end(more);
    /* What follows the last word is not looked at. */
    hft_cli(&output, fleet.etcd.endpoint, "--cacert", ca, "--cert", cert.cert, "--key",
            cert.key, words[0], words[1], words[2], words[3], words[4], words[5], words[6],
            words[7], words[8], words[9], NULL);
    return output;
}

/* Watches until the handler, whose `arg` the outcome is, calls that done. */
static inline void watch_until_done(struct hft_client *client, struct hf_range_bounds *bounds,
                                    hf_rev from, const struct hf_watch_handler *handler,
                                    struct hft_outcome *outcome)
{
    struct hf_watch_range range = { .bounds = bounds, .start_rev = from };
    struct hf_watch_config cfg = { .ranges = &range,
                                   .range_count = 1,
                                   .probe_every = hft_patience(0),
                                   .probe_timeout = hft_patience(0),
                                   .pending_bytes = 1 << 20,
                                   .handler = handler,
                                   .arg = outcome };
    struct hf_watch *watch;

    ck_assert_int_eq(hf_watch_open(client->etcd, &cfg, &watch), HF_OK);
    hft_await(client, outcome, hft_patience(0));
    if (outcome->err == HF_OK)
        hf_watch_close(watch);
}

#endif
