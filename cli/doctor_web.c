#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/doctor.h"
#include "cli/store.h"

enum {
    WEB_TIMEOUT_S = 5,
    WEB_MAX = 8 << 20, /* bytes of an answer */
    CLOCK_SLACK_S = 2, /* a Date has whole seconds, and the answer was on its way */
    CERTIFICATE_SOON_S = 14 * 24 * 3600,
    COMPACT_REVISIONS = 1000000,
};

/* What one request brought. */
struct web {
    CURLcode rc;
    struct hf_buf body;
    time_t date;    /* of the server's clock; -1: it did not say */
    time_t expires; /* its certificate; -1: it has none */
};

static size_t on_body(char *data, size_t size, size_t count, void *arg)
{
    struct web *web = arg;

    if (web->body.len + count > WEB_MAX)
        return 0;
    hf_buf_append(&web->body, data, size * count);
    return count;
}

static void read_certificate(CURL *curl, struct web *web)
{
    static const char NAME[] = "Expire date:";
    struct curl_certinfo *info = NULL;

    if (curl_easy_getinfo(curl, CURLINFO_CERTINFO, &info) != CURLE_OK || info == NULL ||
        info->num_of_certs < 1)
        return;
    for (const struct curl_slist *line = info->certinfo[0]; line != NULL; line = line->next)
        if (strncasecmp(line->data, NAME, sizeof NAME - 1) == 0)
            web->expires = curl_getdate(line->data + sizeof NAME - 1, NULL);
}

/* Asks the endpoint that unary calls use; with `post` NULL it is a GET. */
static void ask(const struct doctor *doctor, bool tls, const char *path, const char *post,
                struct web *ret)
{
    const struct hf_options *options = &doctor->cli->common;
    char endpoint[HF_HOST_MAX + 8], url[HF_HOST_MAX + 80];
    struct curl_header *date;
    CURL *curl = curl_easy_init();

    *ret = (struct web){ .rc = CURLE_OUT_OF_MEMORY, .date = -1, .expires = -1 };
    if (curl == NULL)
        return;
    hf_etcd_get_endpoint(doctor->cli->etcd, endpoint, sizeof endpoint);
    (void)snprintf(url, sizeof url, "%s://%s%s", tls ? "https" : "http", endpoint, path);
    (void)curl_easy_setopt(curl, CURLOPT_URL, url);
    (void)curl_easy_setopt(curl, CURLOPT_PROXY, "");
    (void)curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)WEB_TIMEOUT_S);
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_CERTINFO, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, ret);
    (void)curl_easy_setopt(curl, CURLOPT_CAINFO, options->cacert);
    (void)curl_easy_setopt(curl, CURLOPT_SSLCERT, options->cert);
    (void)curl_easy_setopt(curl, CURLOPT_SSLKEY, options->key);
    if (post != NULL)
        (void)curl_easy_setopt(curl, CURLOPT_POSTFIELDS, post);
    ret->rc = curl_easy_perform(curl);
    hf_buf_putc(&ret->body, '\0');
    if (ret->body.data == NULL)
        ret->rc = CURLE_OUT_OF_MEMORY;
    if (curl_easy_header(curl, "Date", 0, CURLH_HEADER, -1, &date) == CURLHE_OK)
        ret->date = curl_getdate(date->value, NULL);
    read_certificate(curl, ret);
    curl_easy_cleanup(curl);
}

/* Metrics. */

/* The line that begins with that name, behind the name. */
static const char *find_metric(const char *text, const char *name)
{
    size_t len = strlen(name);

    while (text != NULL && strncmp(text, name, len) != 0) {
        text = strchr(text, '\n');
        text = text != NULL ? text + 1 : NULL;
    }
    return text != NULL ? text + len : NULL;
}

static double metric(const char *text, const char *name, double otherwise)
{
    const char *at = find_metric(text, name);

    return at != NULL ? strtod(at, NULL) : otherwise;
}

static void examine_quota(struct doctor *doctor, const char *text)
{
    double quota = metric(text, "etcd_server_quota_backend_bytes ", 0);
    double size = metric(text, "etcd_mvcc_db_total_size_in_bytes ", 0);
    double share = quota > 0 ? size / quota : 0;

    if (quota <= 0)
        return;
    doctor_found(doctor,
                 share > 0.8   ? DOCTOR_TROUBLE
                 : share > 0.5 ? DOCTOR_WARNING
                               : DOCTOR_FINE,
                 "%.0f%% of the quota of %.0f MiB are used%s", share * 100, quota / (1 << 20),
                 share > 0.5 ? ": when it is full, etcd refuses every write. Compact and "
                               "defragment it, or raise --quota-backend-bytes."
                             : "");
}

/* A disk that hangs for as long as a lease lasts can cost every lease. */
static void examine_disk(struct doctor *doctor, const char *text)
{
    static const char BUCKET[] = "etcd_disk_wal_fsync_duration_seconds_bucket{le=\"";
    double all = metric(text, "etcd_disk_wal_fsync_duration_seconds_count ", 0);
    const char *at = find_metric(text, BUCKET);

    while (at != NULL) {
        char *end;
        double bound = strtod(at, &end);
        const char *value = strchr(end, ' ');

        if (value != NULL && strtod(value, NULL) >= 0.99 * all && all > 0) {
            doctor_found(doctor, bound > 0.2 ? DOCTOR_WARNING : DOCTOR_FINE,
                         "99 of 100 writes reach etcd's disk within %.0f ms%s", bound * 1000,
                         bound > 0.2 ? ": give it a faster one, of its own" : "");
            return;
        }
        at = find_metric(strchr(at, '\n'), BUCKET);
    }
}

static void examine_compaction(struct doctor *doctor, const char *text)
{
    double compacted = metric(text, "etcd_debugging_mvcc_db_compaction_keys_total ", 1);
    double revision = metric(text, "etcd_debugging_mvcc_current_revision ", 0);

    if (compacted <= 0 && revision > COMPACT_REVISIONS)
        doctor_found(doctor, DOCTOR_WARNING,
                     "nobody compacts etcd: %.0f revisions. Set "
                     "--auto-compaction-retention=1h.",
                     revision);
}

/* Where etcd does not tell everyone by itself. */
static void examine_version(struct doctor *doctor, const char *text)
{
    const char *at = find_metric(text, "etcd_server_version{server_version=\"");
    char version[32];

    if (doctor->versioned || at == NULL || sscanf(at, "%31[^\"]", version) != 1)
        return;
    doctor_found(doctor, DOCTOR_FINE, "etcd %s answers", version);
    doctor_examine_version(doctor, version);
}

static void examine_clock(struct doctor *doctor, time_t date)
{
    long long ahead = (long long)date - hf_clock_wall() / 1000;

    if (date == -1)
        return;
    if (ahead > CLOCK_SLACK_S || ahead < -CLOCK_SLACK_S)
        doctor_found(doctor, DOCTOR_WARNING,
                     "the clock of etcd's host is %lld s %s this one: synchronise them",
                     ahead > 0 ? ahead : -ahead, ahead > 0 ? "ahead of" : "behind");
    else
        doctor_found(doctor, DOCTOR_FINE, "the clock of etcd's host agrees with this one");
}

static void examine_metrics(struct doctor *doctor, bool tls, time_t *ret_expires)
{
    struct web web;

    ask(doctor, tls, "/metrics", NULL, &web);
    *ret_expires = web.expires;
    if (web.rc != CURLE_OK) {
        doctor_found(
            doctor, DOCTOR_WARNING,
            "etcd serves no metrics there (%s): its quota, disk and clock are not known",
            curl_easy_strerror(web.rc));
    } else {
        examine_version(doctor, web.body.data);
        examine_quota(doctor, web.body.data);
        examine_disk(doctor, web.body.data);
        examine_compaction(doctor, web.body.data);
        examine_clock(doctor, web.date);
    }
    hf_buf_done(&web.body);
}

/* Who may do what. */

static bool is_local(const struct hf_endpoint *endpoint)
{
    return strcmp(endpoint->host, "localhost") == 0 || strcmp(endpoint->host, "::1") == 0 ||
           (endpoint->ipv4 && strncmp(endpoint->host, "127.", 4) == 0);
}

static void examine_authentication(struct doctor *doctor, const struct hf_endpoint *endpoint)
{
    struct web web;

    /* The only question about it that needs no permission: nobody's name, no password. With
     * authentication on etcd turns a certificate with a name away before it looks at them. */
    ask(doctor, endpoint->tls, "/v3/auth/authenticate", "{\"name\":\"\",\"password\":\"\"}",
        &web);
    if (web.rc == CURLE_OK && (strstr(web.body.data, "CommonName of client") != NULL ||
                               strstr(web.body.data, "user name is empty") != NULL ||
                               strstr(web.body.data, "authentication failed") != NULL))
        doctor_found(doctor, DOCTOR_FINE, "authentication is on");
    else if (web.rc != CURLE_OK ||
             strstr(web.body.data, "authentication is not enabled") == NULL)
        doctor_found(doctor, DOCTOR_WARNING, "whether authentication is on cannot be seen");
    else if (is_local(endpoint))
        doctor_found(doctor, DOCTOR_FINE,
                     "authentication is off, at an address of this machine alone");
    else
        doctor_found(doctor, DOCTOR_WARNING,
                     "authentication is off: whoever reaches etcd may change everything");
    hf_buf_done(&web.body);
}

static const char *format_day(time_t when, char ret_text[32])
{
    struct tm day;

    if (gmtime_r(&when, &day) == NULL || strftime(ret_text, 32, "%Y-%m-%d", &day) == 0)
        (void)snprintf(ret_text, 32, "?");
    return ret_text;
}

void doctor_examine_certificate(struct doctor *doctor)
{
    time_t end = (time_t)hf_etcd_get_certificate_end(doctor->cli->etcd);
    time_t left = end - (time_t)(hf_clock_wall() / 1000);
    char day[32];

    if (end == 0)
        return;
    if (left < 0)
        doctor_found(
            doctor, DOCTOR_TROUBLE,
            "our own certificate, %s, has expired on %s: etcd turns it away. Renew it.",
            doctor->cli->common.cert, format_day(end, day));
    else
        doctor_found(doctor, left < CERTIFICATE_SOON_S ? DOCTOR_WARNING : DOCTOR_FINE,
                     "our own certificate, %s, ends on %s", doctor->cli->common.cert,
                     format_day(end, day));
}

static void examine_tls(struct doctor *doctor, const struct hf_endpoint *endpoint,
                        time_t expires)
{
    const char *own = doctor->cli->common.cert != NULL ? "with a certificate of our own"
                                                       : "without a certificate of our own";
    char until[32];

    if (!endpoint->tls) {
        doctor_found(doctor, is_local(endpoint) ? DOCTOR_FINE : DOCTOR_WARNING,
                     "the way to etcd is not encrypted%s",
                     is_local(endpoint) ? ", and does not leave this machine" : "");
        return;
    }
    if (expires == -1) {
        doctor_found(doctor, DOCTOR_FINE, "the way to etcd is encrypted, %s", own);
        return;
    }
    doctor_found(doctor,
                 expires - hf_clock_wall() / 1000 < CERTIFICATE_SOON_S ? DOCTOR_WARNING
                                                                       : DOCTOR_FINE,
                 "the way to etcd is encrypted, %s; etcd's certificate ends on %s", own,
                 format_day(expires, until));
}

void doctor_examine_web(struct doctor *doctor)
{
    const struct hf_strings *configured = &doctor->cli->common.endpoints;
    char text[HF_HOST_MAX + 8];
    struct hf_endpoint endpoint;
    time_t expires;
    bool tls = configured->count > 0 &&
               hf_parse_endpoint(configured->items[0], &endpoint, NULL) == HF_OK &&
               endpoint.tls;

    hf_etcd_get_endpoint(doctor->cli->etcd, text, sizeof text);
    if (hf_parse_endpoint(text, &endpoint, NULL) != HF_OK)
        return;
    endpoint.tls = tls; /* all endpoints have one scheme */
    examine_metrics(doctor, tls, &expires);
    examine_authentication(doctor, &endpoint);
    examine_tls(doctor, &endpoint, expires);
}
