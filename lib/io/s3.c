#include "io/s3.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "io/s3_private.h"
#include "io/s3_xml.h"

enum { PORT_HTTP = 80, PORT_HTTPS = 443, NAME_MAX_BYTES = 1024 };

static const char MARK[] = ".holdfast-owner";

/* The client. */

/* Requests are signed for the host as they name it: with its port where that is not the usual
 * one. */
static int set_endpoint(struct hf_s3 *s3, struct hf_error *err)
{
    const struct hf_s3_settings *settings = &s3->cfg.settings;
    char given[S3_TEXT], whole[S3_TEXT + 8];
    struct hf_endpoint endpoint;
    const char *host, *after;
    bool usual;
    int rc;

    if (settings->endpoint != NULL)
        (void)snprintf(given, sizeof given, "%s", settings->endpoint);
    else
        (void)snprintf(given, sizeof given, "https://s3.%s.amazonaws.com", settings->region);
    given[strcspn(given, "\r\n")] = '\0';
    host = strstr(given, "://") + 3;
    after = strrchr(host, ']');
    usual = strchr(after != NULL ? after : host, ':') == NULL;
    given[strlen(given) - (given[strlen(given) - 1] == '/' ? 1 : 0)] = '\0';
    (void)snprintf(whole, sizeof whole, "%s%s", given,
                   !usual                             ? ""
                   : strncmp(given, "https:", 6) == 0 ? ":443"
                                                      : ":80");
    rc = hf_parse_endpoint(whole, &endpoint, err);
    if (rc != HF_OK)
        return rc;
    usual = endpoint.port == (endpoint.tls ? PORT_HTTPS : PORT_HTTP);
    (void)snprintf(s3->host, sizeof s3->host, "%s%s%s", endpoint.ipv6 ? "[" : "", endpoint.host,
                   endpoint.ipv6 ? "]" : "");
    if (settings->addressing == HF_S3_VIRTUAL_HOST)
        (void)snprintf(s3->host, sizeof s3->host, "%s.%.200s", settings->bucket, endpoint.host);
    if (!usual)
        (void)snprintf(s3->host + strlen(s3->host), sizeof s3->host - strlen(s3->host), ":%u",
                       endpoint.port);
    (void)snprintf(s3->base, sizeof s3->base, "%s://%s", endpoint.tls ? "https" : "http",
                   s3->host);
    return HF_OK;
}

int hf_s3_new(const struct hf_s3_config *cfg, struct hf_s3 **ret_s3, struct hf_error *err)
{
    struct hf_s3 *s3;
    int rc = cfg->settings.bucket == NULL
                 ? hf_error_set(err, HF_EINVAL, "checkpoints.s3.bucket: say which")
                 : hf_s3_settings_check(&cfg->settings, err);

    if (rc != HF_OK)
        return rc;
    s3 = hf_calloc(1, sizeof *s3);
    if (s3 == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK ||
        (s3->curl = curl_easy_init()) == NULL) {
        free(s3);
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    }
    s3->cfg = *cfg;
    rc = set_endpoint(s3, err);
    if (rc != HF_OK) {
        hf_s3_free(s3);
        return rc;
    }
    *ret_s3 = s3;
    return HF_OK;
}

void hf_s3_free(struct hf_s3 *s3)
{
    if (s3 == NULL)
        return;
    curl_easy_cleanup(s3->curl);
    curl_global_cleanup();
    free(s3->part);
    free(s3);
}

/* Put. */

/* One part of what is read; shorter only at its end. */
static int read_part(struct hf_s3 *s3, int fd, size_t *ret_len, struct hf_error *err)
{
    size_t len = 0;

    if (s3->part == NULL)
        s3->part = malloc(HF_S3_PART);
    if (s3->part == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    while (len < HF_S3_PART) {
        ssize_t n = read(fd, s3->part + len, HF_S3_PART - len);

        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return hf_error_set(err, HF_EIO, "what is to be stored cannot be read: %s",
                                strerror(errno));
        len += n > 0 ? (size_t)n : 0;
    }
    *ret_len = len;
    return HF_OK;
}

/* An upload in parts. */
struct upload {
    struct hf_s3 *s3;
    const char *name;
    char id[NAME_MAX_BYTES];
    struct hf_buf list; /* the parts, as the server wants to have them confirmed */
    int number;         /* of the last one */
};

static int begin_upload(struct upload *upload, struct hf_error *err)
{
    S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };
    const struct hf_s3_pair query[] = { { "uploads", "" } };
    int rc = hf_s3_ask(
        upload->s3,
        &(struct s3_request){
            .method = "POST", .name = upload->name, .query = query, .query_count = 1 },
        &answer, err);

    if (rc != HF_OK)
        return rc;
    if (!hf_s3_xml_text((struct hf_bytes){ answer.body.data, answer.body.len }, "UploadId",
                        upload->id, sizeof upload->id))
        return hf_error_set(err, HF_EIO, "%.100s began no upload", upload->s3->base);
    return HF_OK;
}

static int put_part(struct upload *upload, size_t len, struct hf_error *err)
{
    S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };
    char number[16];
    const struct hf_s3_pair query[] = { { "partNumber", number }, { "uploadId", upload->id } };
    int rc;

    (void)snprintf(number, sizeof number, "%d", ++upload->number);
    rc = hf_s3_ask(upload->s3,
                   &(struct s3_request){ .method = "PUT",
                                         .name = upload->name,
                                         .query = query,
                                         .query_count = 2,
                                         .body = { upload->s3->part, len } },
                   &answer, err);
    if (rc != HF_OK)
        return rc;
    if (answer.etag[0] == '\0')
        return hf_error_set(err, HF_EIO, "%.100s took a part and gave no ETag",
                            upload->s3->base);
    hf_buf_printf(&upload->list, "<Part><PartNumber>%d</PartNumber><ETag>", upload->number);
    hf_s3_xml_escape(&upload->list, answer.etag);
    hf_buf_puts(&upload->list, "</ETag></Part>");
    return upload->list.err;
}

/* Whether the object is there with that many bytes. */
static bool is_there(const struct upload *upload, int64_t size)
{
    S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };
    struct s3_request request = { .method = "HEAD", .name = upload->name };

    return hf_s3_ask(upload->s3, &request, &answer, NULL) == HF_OK && answer.length == size;
}

static int end_upload(struct upload *upload, int64_t size, struct hf_error *err)
{
    static const char DONE[] = "<CompleteMultipartUploadResult";
    S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    const struct hf_s3_pair query[] = { { "uploadId", upload->id } };
    struct s3_request request = {
        .method = "POST", .name = upload->name, .query = query, .query_count = 1
    };
    int rc;

    hf_buf_puts(&text, "<CompleteMultipartUpload>");
    hf_buf_append(&text, upload->list.data, upload->list.len);
    hf_buf_puts(&text, "</CompleteMultipartUpload>");
    if (text.err != HF_OK)
        return hf_error_set(err, text.err, "out of memory");
    request.body = (struct hf_bytes){ text.data, text.len };
    rc = hf_s3_ask(upload->s3, &request, &answer, err);
    /* The answer to a first request may have been lost, and the upload be over. */
    if (rc == HF_ENOENT && is_there(upload, size))
        return HF_OK;
    if (rc != HF_OK)
        return rc == HF_ENOENT ? HF_EAGAIN : rc;
    /* A failure may come with status 200, since the server says that before it begins. */
    if (answer.body.len == 0 ||
        memmem(answer.body.data, answer.body.len, DONE, sizeof DONE - 1) == NULL)
        return hf_error_set(err, HF_EAGAIN, "%.100s could not join the parts",
                            upload->s3->base);
    return HF_OK;
}

static int abort_upload(struct hf_s3 *s3, const char *name, const char *id,
                        struct hf_error *err)
{
    S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };
    const struct hf_s3_pair query[] = { { "uploadId", id } };
    int rc = hf_s3_ask(s3,
                       &(struct s3_request){
                           .method = "DELETE", .name = name, .query = query, .query_count = 1 },
                       &answer, err);

    return rc == HF_ENOENT ? HF_OK : rc;
}

/* What shows already that it is too long is not sent for nothing. */
static bool is_too_long(int fd, int64_t size, int64_t max)
{
    struct stat info;

    return size > max ||
           (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && (int64_t)info.st_size > max);
}

static int upload_parts(struct upload *upload, int fd, size_t len, int64_t max,
                        struct hf_sha256 *sha, int64_t *size, struct hf_error *err)
{
    int rc = HF_OK;

    while (rc == HF_OK && len > 0) {
        *size += (int64_t)len;
        if (is_too_long(fd, *size, max))
            return hf_error_set(err, HF_ELIMIT, "it has more than %" PRId64 " bytes", max);
        rc = hf_sha256_update(sha, upload->s3->part, len);
        if (rc == HF_OK)
            rc = put_part(upload, len, err);
        if (rc == HF_OK)
            rc = read_part(upload->s3, fd, &len, err);
    }
    return rc == HF_OK ? end_upload(upload, *size, err) : rc;
}

/* What is begun and comes to no end is taken back, even when nobody waits for it any more. */
static int put_in_parts(struct hf_s3 *s3, const char *name, int fd, size_t len, int64_t max,
                        struct hf_sha256 *sha, int64_t *size, struct hf_error *err)
{
    struct upload upload = { .s3 = s3, .name = name };
    bool (*is_over)(void *) = s3->cfg.is_over;
    int rc = begin_upload(&upload, err);

    if (rc == HF_OK)
        rc = upload_parts(&upload, fd, len, max, sha, size, err);
    if (rc != HF_OK && upload.id[0] != '\0') {
        s3->cfg.is_over = NULL;
        (void)!abort_upload(s3, name, upload.id, NULL);
        s3->cfg.is_over = is_over;
    }
    hf_buf_done(&upload.list);
    return rc;
}

static int put_whole(struct hf_s3 *s3, const char *name, size_t len, struct hf_error *err)
{
    S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };

    return hf_s3_ask(
        s3, &(struct s3_request){ .method = "PUT", .name = name, .body = { s3->part, len } },
        &answer, err);
}

int hf_s3_put(struct hf_s3 *s3, const char *name, int fd, int64_t max,
              struct hf_s3_object *ret_object, struct hf_error *err)
{
    struct hf_sha256 *sha = hf_sha256_new();
    uint8_t digest[HF_SHA256_LEN];
    int64_t size = 0;
    size_t len = 0;
    int rc = sha != NULL ? read_part(s3, fd, &len, err)
                         : hf_error_set(err, HF_ENOMEM, "out of memory");

    if (rc == HF_OK && (int64_t)len > max)
        rc = hf_error_set(err, HF_ELIMIT, "it has more than %" PRId64 " bytes", max);
    if (rc == HF_OK && len == HF_S3_PART) {
        rc = put_in_parts(s3, name, fd, len, max, sha, &size, err);
    } else if (rc == HF_OK) {
        size = (int64_t)len;
        rc = hf_sha256_update(sha, s3->part, len);
        if (rc == HF_OK)
            rc = put_whole(s3, name, len, err);
    }
    if (rc == HF_OK)
        rc = hf_sha256_final(sha, digest);
    if (rc == HF_OK) {
        ret_object->size = size;
        hf_sha256_format(digest, ret_object->sha256);
    }
    hf_sha256_free(sha);
    return rc == HF_ENOENT ? HF_EAGAIN : rc; /* nothing is asked for here */
}

/* Get. */

struct download {
    int fd; /* -1: nowhere */
    int64_t want, size;
    struct hf_sha256 *sha;
    int err; /* why no more is taken */
    int number;
};

static void begin_download(void *arg)
{
    struct download *download = arg;

    hf_sha256_free(download->sha);
    download->sha = hf_sha256_new();
    download->size = 0;
    download->err = HF_OK;
}

static bool write_all(int fd, const char *data, size_t len, int64_t at)
{
    while (len > 0) {
        ssize_t n = pwrite(fd, data, len, at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        data += n;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static bool take_download(const void *data, size_t len, void *arg)
{
    struct download *download = arg;

    if (download->sha == NULL)
        download->err = HF_ENOMEM;
    else if (download->size + (int64_t)len > download->want)
        download->err = HF_ECORRUPT; /* enough to see that it is another one */
    else if (download->fd >= 0 && !write_all(download->fd, data, len, download->size)) {
        download->err = HF_EIO;
        download->number = errno;
    } else
        download->err = hf_sha256_update(download->sha, data, len);
    download->size += (int64_t)len;
    return download->err == HF_OK;
}

static int judge_download(const struct download *download, const struct hf_s3_object *want,
                          struct hf_error *err)
{
    uint8_t digest[HF_SHA256_LEN];
    char hex[HF_SHA256_HEX_LEN + 1];

    if (download->size != want->size)
        return hf_error_set(err, HF_ECORRUPT, "its body has another size");
    if (download->sha == NULL || hf_sha256_final(download->sha, digest) != HF_OK)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    hf_sha256_format(digest, hex);
    return strcmp(hex, want->sha256) == 0
               ? HF_OK
               : hf_error_set(err, HF_ECORRUPT, "its body has another digest");
}

int hf_s3_get(struct hf_s3 *s3, const char *name, const struct hf_s3_object *want, int fd,
              struct hf_error *err)
{
    S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };
    struct download download = { .fd = fd, .want = want->size };
    int rc = hf_s3_ask(s3,
                       &(struct s3_request){ .method = "GET",
                                             .name = name,
                                             .sink = take_download,
                                             .begin = begin_download,
                                             .arg = &download },
                       &answer, err);

    /* Every server of S3 says an ETag. Whoever does not says nothing about our object either.
     */
    if (answer.etag[0] == '\0' && (rc == HF_OK || download.err == HF_ECORRUPT))
        rc =
            hf_error_set(err, HF_EAGAIN, "what answers at %.100s is no server of S3", s3->base);
    else if (download.err == HF_ECORRUPT)
        rc = hf_error_set(err, HF_ECORRUPT, "its body has another size");
    else if (download.err == HF_EIO)
        rc = hf_error_set(err, HF_EIO, "there is no room for it here: %s",
                          strerror(download.number));
    else if (download.err != HF_OK)
        rc = hf_error_set(err, download.err, "%s", hf_err_text(download.err));
    else if (rc == HF_OK)
        rc = judge_download(&download, want, err);
    hf_sha256_free(download.sha);
    return rc;
}

/* The rest. */

int hf_s3_drop(struct hf_s3 *s3, const char *name, struct hf_error *err)
{
    S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };
    int rc =
        hf_s3_ask(s3, &(struct s3_request){ .method = "DELETE", .name = name }, &answer, err);

    return rc == HF_ENOENT ? HF_OK : rc;
}

/* The whole name with the prefix, as lists have it. */
static int put_prefix(const struct hf_s3 *s3, const char *under, struct hf_buf *out,
                      struct hf_error *err)
{
    hf_buf_printf(out, "%s%s", s3->cfg.settings.prefix, under);
    return out->err == HF_OK ? HF_OK : hf_error_set(err, out->err, "out of memory");
}

static int tell_names(const struct hf_s3 *s3, struct hf_bytes doc, hf_s3_name_fn fn, void *arg)
{
    size_t skip = strlen(s3->cfg.settings.prefix);
    struct hf_bytes entry;
    int rc = HF_OK;

    while (rc == HF_OK && hf_s3_xml_next(&doc, "Contents", &entry)) {
        char name[NAME_MAX_BYTES + 1];

        if (hf_s3_xml_text(entry, "Key", name, sizeof name) &&
            strncmp(name, s3->cfg.settings.prefix, skip) == 0)
            rc = fn(name + skip, arg);
    }
    return rc;
}

int hf_s3_list(struct hf_s3 *s3, const char *under, hf_s3_name_fn fn, void *arg,
               struct hf_error *err)
{
    HF_CLEANUP_BUF struct hf_buf prefix = { 0 };
    char token[NAME_MAX_BYTES] = "", more[8] = "true";
    int rc = put_prefix(s3, under, &prefix, err);

    while (rc == HF_OK && strcmp(more, "true") == 0) {
        S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };
        const struct hf_s3_pair query[] = { { "continuation-token", token },
                                            { "list-type", "2" },
                                            { "prefix", prefix.data } };
        size_t skip = token[0] == '\0' ? 1 : 0;
        struct hf_bytes doc;

        rc = hf_s3_ask(s3,
                       &(struct s3_request){
                           .method = "GET", .query = query + skip, .query_count = 3 - skip },
                       &answer, err);
        if (rc != HF_OK)
            return rc;
        doc = (struct hf_bytes){ answer.body.data, answer.body.len };
        rc = tell_names(s3, doc, fn, arg);
        (void)snprintf(more, sizeof more, "false");
        (void)hf_s3_xml_text(doc, "IsTruncated", more, sizeof more);
        if (strcmp(more, "true") == 0 &&
            !hf_s3_xml_text(doc, "NextContinuationToken", token, sizeof token))
            return hf_error_set(err, HF_EIO, "%.100s gives half a list", s3->base);
    }
    return rc;
}

/* One page will do: what is left over is found another time. */
int hf_s3_abort_old(struct hf_s3 *s3, const char *under, hf_ms age, struct hf_error *err)
{
    S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };
    HF_CLEANUP_BUF struct hf_buf prefix = { 0 };
    struct hf_s3_pair query[] = { { "prefix", "" }, { "uploads", "" } };
    size_t skip = strlen(s3->cfg.settings.prefix);
    struct hf_bytes doc, entry;
    int rc = put_prefix(s3, under, &prefix, err);

    query[0].value = prefix.data;
    if (rc == HF_OK)
        rc = hf_s3_ask(
            s3, &(struct s3_request){ .method = "GET", .query = query, .query_count = 2 },
            &answer, err);
    if (answer.status == 501 || answer.status == 405)
        return HF_OK;
    doc = (struct hf_bytes){ answer.body.data, answer.body.len };
    while (rc == HF_OK && hf_s3_xml_next(&doc, "Upload", &entry)) {
        char name[NAME_MAX_BYTES + 1], id[NAME_MAX_BYTES], begun[64];
        hf_ms at;

        if (hf_s3_xml_text(entry, "Key", name, sizeof name) &&
            hf_s3_xml_text(entry, "UploadId", id, sizeof id) &&
            hf_s3_xml_text(entry, "Initiated", begun, sizeof begun) &&
            hf_parse_time(begun, &at) == HF_OK && hf_clock_wall() - at > age &&
            strncmp(name, prefix.data, prefix.len) == 0)
            rc = abort_upload(s3, name + skip, id, err);
    }
    return rc;
}

/* Two who begin at once: the last one wins, and the other sees it at its next look. */
int hf_s3_claim(struct hf_s3 *s3, const char *under, const char *owner, struct hf_error *err)
{
    S3_CLEANUP_ANSWER struct s3_answer answer = { 0 };
    HF_CLEANUP_BUF struct hf_buf name = { 0 };
    struct s3_request read = { .method = "GET" };
    struct s3_request write = { .method = "PUT", .body = { owner, strlen(owner) } };
    int rc;

    hf_buf_printf(&name, "%s%s", under, MARK);
    if (name.err != HF_OK)
        return hf_error_set(err, name.err, "out of memory");
    read.name = write.name = name.data;
    rc = hf_s3_ask(s3, &read, &answer, err);
    if (rc == HF_ENOENT)
        return hf_s3_ask(s3, &write, &answer, err);
    if (rc != HF_OK)
        return rc;
    if (answer.body.len == strlen(owner) && memcmp(answer.body.data, owner, strlen(owner)) == 0)
        return HF_OK;
    return hf_error_set(err, HF_ECONFLICT,
                        "bucket %.64s: %.80s%.60s belongs to another fleet (%.*s): set "
                        "checkpoints.s3.prefix to something of your own",
                        s3->cfg.settings.bucket, s3->cfg.settings.prefix, name.data,
                        (int)(answer.body.len < 40 ? answer.body.len : 40), answer.body.data);
}
