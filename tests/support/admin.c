#include "support/admin.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/cleanup.h"
#include "support/base64.h"
#include "support/http.h"

#define FILL_VALUE_BYTES (512 << 10)
#define FILL_PUTS_MAX    10000

void hft_etcd_snapshot_save(const struct hft_etcd *etcd, const char *path)
{
    hft_etcdctl_ok(etcd, NULL, "snapshot", "save", path, NULL);
}

void hft_etcd_snapshot_restore(const struct hft_etcd *etcd, const char *path)
{
    char name[128];
    char data_dir[sizeof etcd->data_dir + 16];
    char cluster[sizeof etcd->initial_cluster + 32];
    char peer[HFT_ENDPOINT_MAX + 40];

    ck_assert_int_eq(etcd->pid, 0);
    hft_remove_tree(etcd->data_dir);
    (void)snprintf(name, sizeof name, "--name=%s", etcd->options.name);
    (void)snprintf(data_dir, sizeof data_dir, "--data-dir=%s", etcd->data_dir);
    (void)snprintf(cluster, sizeof cluster, "--initial-cluster=%s", etcd->initial_cluster);
    (void)snprintf(peer, sizeof peer, "--initial-advertise-peer-urls=%s", etcd->peer_url);
    hft_etcdctl_ok(etcd, NULL, "snapshot", "restore", path, name, data_dir, cluster, peer,
                   NULL);
}

void hft_etcd_compact(const struct hft_etcd *etcd, int64_t revision)
{
    char text[24];

    (void)snprintf(text, sizeof text, "%" PRId64, revision);
    hft_etcdctl_ok(etcd, NULL, "compaction", "--physical", text, NULL);
}

/* Asks etcd's JSON gateway for one put; 0 or the HTTP status. */
static int put_one(struct hft_http *http, const char *key, const char *value64,
                   int64_t *ret_revision)
{
    HF_CLEANUP_FREE char *key64 = hft_base64_encode(key, strlen(key));
    HF_CLEANUP_FREE char *request = NULL;
    HF_CLEANUP_FREE char *reply = NULL;

    ck_assert_int_gt(asprintf(&request, "{\"key\":\"%s\",\"value\":\"%s\"}", key64, value64),
                     0);
    int status = hft_http_post(http, "/v3/kv/put", request, &reply);
    if (status == 200) {
        const char *revision = strstr(reply, "\"revision\":\"");

        ck_assert_msg(revision != NULL, "etcd's gateway answered: %s", reply);
        *ret_revision = strtoll(revision + strlen("\"revision\":\""), NULL, 10);
    }
    return status;
}

static char *make_value64(size_t bytes)
{
    char *value = malloc(bytes + 1);

    ck_assert_ptr_nonnull(value);
    memset(value, 'v', bytes);
    char *value64 = hft_base64_encode(value, bytes);
    free(value);
    return value64;
}

int64_t hft_etcd_put_many(const struct hft_etcd *etcd, const char *prefix, size_t count,
                          size_t value_bytes)
{
    HF_CLEANUP_FREE char *value64 = make_value64(value_bytes);
    struct hft_http http;
    int64_t revision = 0;

    hft_http_open(&http, etcd->client.number);
    for (size_t i = 0; i < count; i++) {
        char key[256];

        ck_assert_int_lt(snprintf(key, sizeof key, "%s%06zu", prefix, i), (int)sizeof key);
        int status = put_one(&http, key, value64, &revision);
        ck_assert_msg(status == 200, "put %zu of %zu failed with HTTP %d", i, count, status);
    }
    hft_http_close(&http);
    return revision;
}

void hft_etcd_fill(const struct hft_etcd *etcd)
{
    HF_CLEANUP_FREE char *value64 = make_value64(FILL_VALUE_BYTES);
    struct hft_http http;
    int64_t ignored;
    int status = 200;

    hft_http_open(&http, etcd->client.number);
    for (int i = 0; status == 200; i++) {
        char key[32];

        ck_assert_int_lt(i, FILL_PUTS_MAX);
        (void)snprintf(key, sizeof key, "fill/%d", i);
        status = put_one(&http, key, value64, &ignored);
    }
    hft_http_close(&http);
    ck_assert_msg(hft_etcd_has_alarm(etcd, "NOSPACE"), "no alarm; the put failed with HTTP %d",
                  status);
}

void hft_etcd_make_room(const struct hft_etcd *etcd)
{
    hft_etcdctl_ok(etcd, NULL, "del", "--prefix", "fill/", NULL);
    hft_etcd_compact(etcd, hft_etcd_revision(etcd));
    hft_etcdctl_ok(etcd, NULL, "defrag", NULL);
    hft_etcd_disarm(etcd);
}

/* etcdctl has no word for it. */
void hft_etcd_raise_corrupt(const struct hft_etcd *etcd)
{
    HF_CLEANUP_FREE char *body = NULL;
    struct hft_http http;
    int status;

    hft_http_open(&http, etcd->client.number);
    status = hft_http_post(&http, "/v3/maintenance/alarm",
                           "{\"action\":\"ACTIVATE\",\"memberID\":\"1\",\"alarm\":\"CORRUPT\"}",
                           &body);
    hft_http_close(&http);
    ck_assert_msg(status == 200, "HTTP %d: %s", status, body != NULL ? body : "");
    ck_assert(hft_etcd_has_alarm(etcd, "CORRUPT"));
}

void hft_etcd_disarm(const struct hft_etcd *etcd)
{
    hft_etcdctl_ok(etcd, NULL, "alarm", "disarm", NULL);
}

bool hft_etcd_has_alarm(const struct hft_etcd *etcd, const char *name)
{
    HF_CLEANUP_FREE char *list = NULL;

    hft_etcdctl_ok(etcd, &list, "alarm", "list", NULL);
    return strstr(list, name) != NULL;
}

void hft_etcd_user_add(const struct hft_etcd *etcd, const char *name, const char *password,
                       const char *prefix)
{
    char credentials[128];

    ck_assert_int_lt(snprintf(credentials, sizeof credentials, "%s:%s", name, password),
                     (int)sizeof credentials);
    hft_etcdctl_ok(etcd, NULL, "user", "add", credentials, NULL);
    if (prefix == NULL)
        return;
    hft_etcdctl_ok(etcd, NULL, "role", "add", name, NULL);
    hft_etcdctl_ok(etcd, NULL, "role", "grant-permission", "--prefix", name, "readwrite",
                   prefix, NULL);
    hft_etcdctl_ok(etcd, NULL, "user", "grant-role", name, name, NULL);
}

void hft_etcd_auth_enable(struct hft_etcd *etcd)
{
    hft_etcd_user_add(etcd, "root", "root", NULL);
    hft_etcdctl_ok(etcd, NULL, "user", "grant-role", "root", "root", NULL);
    hft_etcdctl_ok(etcd, NULL, "auth", "enable", NULL);
    (void)snprintf(etcd->user, sizeof etcd->user, "root:root");
}
