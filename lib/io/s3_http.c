/* One request: signed, sent, and sent again when that may help. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "io/s3_private.h"
#include "io/s3_xml.h"

enum { ATTEMPTS = 5, PAUSE_MS = 200, PAUSE_MOST_MS = 5000, LOOK_MS = 50 };

/* An attempt. */
struct attempt {
    struct hf_s3 *s3;
    const struct s3_request *request;
    struct s3_answer *answer;
    size_t sent;
    char date[64]; /* that the server said */
    bool refused;  /* the sink took no more */
    bool over;     /* nobody waits for it any more */
    char text[CURL_ERROR_SIZE];
};

void hf_s3_answer_done(struct s3_answer *answer)
{
    hf_buf_done(&answer->body);
}

/* What libcurl asks us. */

static size_t on_upload(char *out, size_t size, size_t count, void *arg)
{
    struct attempt *attempt = arg;
    const struct hf_bytes *body = &attempt->request->body;
    size_t len = size * count;

    if (len > body->len - attempt->sent)
        len = body->len - attempt->sent;
    if (len > 0)
        memcpy(out, (const char *)body->data + attempt->sent, len);
    attempt->sent += len;
    return len;
}

static int on_rewind(void *arg, curl_off_t offset, int origin)
{
    struct attempt *attempt = arg;

    if (origin != SEEK_SET || offset < 0 || (size_t)offset > attempt->request->body.len)
        return CURL_SEEKFUNC_CANTSEEK;
    attempt->sent = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static size_t on_download(char *data, size_t size, size_t count, void *arg)
{
    struct attempt *attempt = arg;
    struct s3_answer *answer = attempt->answer;
    size_t len = size * count;
    long status = 0;

    (void)curl_easy_getinfo(attempt->s3->curl, CURLINFO_RESPONSE_CODE, &status);
    if (attempt->request->sink != NULL && status == 200) {
        attempt->refused = !attempt->request->sink(data, len, attempt->request->arg);
        return attempt->refused ? 0 : len;
    }
    hf_buf_append(&answer->body, data, len);
    return answer->body.err == HF_OK ? len : 0;
}

/* Keeps the value of one header. */
static void keep_header(struct hf_bytes line, const char *name, char *out, size_t size)
{
    const char *text = line.data;
    size_t len = strlen(name);

    if (line.len <= len || strncasecmp(text, name, len) != 0)
        return;
    text += len;
    line.len -= len;
    while (line.len > 0 && *text == ' ') {
        text++;
        line.len--;
    }
    while (line.len > 0 && (unsigned char)text[line.len - 1] <= ' ')
        line.len--;
    if (line.len < size) {
        memcpy(out, text, line.len);
        out[line.len] = '\0';
    }
}

static size_t on_header(char *data, size_t size, size_t count, void *arg)
{
    struct attempt *attempt = arg;
    struct hf_bytes line = { data, size * count };

    keep_header(line, "ETag:", attempt->answer->etag, sizeof attempt->answer->etag);
    keep_header(line, "Date:", attempt->date, sizeof attempt->date);
    return line.len;
}

static bool is_over(const struct hf_s3 *s3)
{
    return s3->cfg.is_over != NULL && s3->cfg.is_over(s3->cfg.arg);
}

static int on_progress(void *arg, curl_off_t total, curl_off_t now, curl_off_t up_total,
                       curl_off_t up)
{
    struct attempt *attempt = arg;

    (void)total, (void)now, (void)up_total, (void)up;
    attempt->over = is_over(attempt->s3);
    return attempt->over ? 1 : 0;
}

/* What is sent. */

static void put_path(const struct hf_s3 *s3, const char *name, struct hf_buf *out)
{
    const struct hf_s3_settings *settings = &s3->cfg.settings;

    hf_buf_putc(out, '/');
    if (settings->addressing == HF_S3_PATH)
        hf_buf_printf(out, "%s%s", settings->bucket, name != NULL ? "/" : "");
    if (name != NULL) {
        hf_s3_escape(out, settings->prefix, true);
        hf_s3_escape(out, name, true);
    }
}

static bool add_header(struct curl_slist **list, const char *name, const char *value)
{
    HF_CLEANUP_BUF struct hf_buf line = { 0 };
    struct curl_slist *longer;

    hf_buf_printf(&line, "%s:%s%s", name, value[0] != '\0' ? " " : "", value);
    longer = line.err == HF_OK ? curl_slist_append(*list, line.data) : NULL;
    if (longer != NULL)
        *list = longer;
    return longer != NULL;
}

static int make_headers(const struct hf_s3 *s3, const struct s3_request *request,
                        const char *path, const struct s3_keys *keys, struct curl_slist **list)
{
    HF_CLEANUP_BUF struct hf_buf authorization = { 0 };
    uint8_t digest[HF_SHA256_LEN];
    char sha256[HF_SHA256_HEX_LEN + 1], date[HF_S3_DATE_LEN + 1];
    time_t now = time(NULL);
    struct tm utc;
    const struct hf_s3_pair headers[] = { { "host", s3->host },
                                          { "x-amz-content-sha256", sha256 },
                                          { "x-amz-date", date },
                                          { "x-amz-security-token", keys->token } };
    size_t count = keys->token[0] != '\0' ? 4 : 3;
    struct hf_s3_signed what = { .method = request->method,
                                 .path = path,
                                 .query = request->query,
                                 .query_count = request->query_count,
                                 .headers = headers,
                                 .header_count = count,
                                 .sha256 = sha256,
                                 .date = date,
                                 .region = s3->cfg.settings.region,
                                 .key_id = keys->id,
                                 .secret = keys->secret };
    int rc =
        hf_sha256(request->body.len > 0 ? request->body.data : "", request->body.len, digest);

    if (rc != HF_OK)
        return rc;
    hf_sha256_format(digest, sha256);
    (void)gmtime_r(&now, &utc);
    (void)strftime(date, sizeof date, "%Y%m%dT%H%M%SZ", &utc);
    rc = hf_s3_sign(&what, &authorization);
    for (size_t i = 0; i < count && rc == HF_OK; i++)
        rc = add_header(list, headers[i].name, headers[i].value) ? HF_OK : HF_ENOMEM;
    if (rc == HF_OK && (!add_header(list, "Authorization", authorization.data) ||
                        !add_header(list, "Expect", "") || !add_header(list, "Accept", "*/*") ||
                        !add_header(list, "Content-Type", "")))
        rc = HF_ENOMEM;
    return rc;
}

static void set_limits(CURL *curl, const struct hf_s3_settings *settings)
{
    (void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)settings->timeout);
    (void)curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME,
                           (long)((settings->timeout + 999) / 1000));
    (void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    if (settings->cacert != NULL)
        (void)curl_easy_setopt(curl, CURLOPT_CAINFO, settings->cacert);
}

static void set_method(CURL *curl, struct attempt *attempt)
{
    const struct s3_request *request = attempt->request;

    (void)curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    if (strcmp(request->method, "HEAD") == 0) {
        (void)curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    } else if (strcmp(request->method, "PUT") == 0 || strcmp(request->method, "POST") == 0) {
        (void)curl_easy_setopt(curl, CURLOPT_UPLOAD, 1L);
        (void)curl_easy_setopt(curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->body.len);
        (void)curl_easy_setopt(curl, CURLOPT_READFUNCTION, on_upload);
        (void)curl_easy_setopt(curl, CURLOPT_READDATA, attempt);
        (void)curl_easy_setopt(curl, CURLOPT_SEEKFUNCTION, on_rewind);
        (void)curl_easy_setopt(curl, CURLOPT_SEEKDATA, attempt);
    }
}

static CURLcode perform(struct attempt *attempt, const char *url, struct curl_slist *headers)
{
    CURL *curl = attempt->s3->curl;
    curl_off_t length = -1;
    CURLcode rc;

    curl_easy_reset(curl); /* which keeps its connections */
    set_limits(curl, &attempt->s3->cfg.settings);
    set_method(curl, attempt);
    (void)curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    (void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_download);
    (void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, attempt);
    (void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, attempt);
    (void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    (void)curl_easy_setopt(curl, CURLOPT_XFERINFODATA, attempt);
    (void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, attempt->text);
    rc = curl_easy_setopt(curl, CURLOPT_URL, url);
    if (rc == CURLE_OK)
        rc = curl_easy_perform(curl);
    attempt->answer->status = 0;
    (void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &attempt->answer->status);
    (void)curl_easy_getinfo(curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length);
    attempt->answer->length = length;
    return rc;
}

/* What came of it. */

static int explain_failure(const struct attempt *attempt, CURLcode code, struct hf_error *err)
{
    const char *text = attempt->text[0] != '\0' ? attempt->text : curl_easy_strerror(code);

    if (attempt->over)
        return hf_error_set(err, HF_ECANCELED, "nobody waits for it any more");
    if (attempt->refused)
        return hf_error_set(err, HF_ECORRUPT, "it is another object");
    if (code == CURLE_OUT_OF_MEMORY)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE)
        return hf_error_set(err, HF_EDENIED,
                            "%.100s: %.100s; checkpoints.s3.cacert names who is believed",
                            attempt->s3->base, text);
    return hf_error_set(err, HF_EAGAIN, "%.100s does not answer: %.120s", attempt->s3->base,
                        text);
}

static bool is_passing(const struct s3_answer *answer)
{
    return (answer->status >= 500 && answer->status != 501) || answer->status == 429 ||
           answer->status == 408 || strcmp(answer->code, "RequestTimeout") == 0 ||
           strcmp(answer->code, "SlowDown") == 0;
}

static int judge(struct attempt *attempt, CURLcode code, bool *ret_again, struct hf_error *err)
{
    struct s3_answer *answer = attempt->answer;
    struct hf_bytes body = { answer->body.data, answer->body.len };
    int rc;

    if (code != CURLE_OK) {
        rc = explain_failure(attempt, code, err);
        *ret_again = rc == HF_EAGAIN;
        return rc;
    }
    answer->code[0] = '\0';
    if (answer->status / 100 == 2)
        return HF_OK;
    if (!hf_s3_xml_text(body, "Code", answer->code, sizeof answer->code))
        answer->code[0] = '\0';
    *ret_again = is_passing(answer);
    return hf_s3_explain(attempt->s3, answer, attempt->date, err);
}

static int try(struct hf_s3 *s3, const struct s3_request *request, struct s3_answer *answer,
               bool *ret_again, struct hf_error *err)
{
    struct attempt attempt = { .s3 = s3, .request = request, .answer = answer };
    HF_CLEANUP_BUF struct hf_buf path = { 0 };
    HF_CLEANUP_BUF struct hf_buf url = { 0 };
    struct curl_slist *headers = NULL;
    struct s3_keys keys;
    int rc = hf_s3_keys_load(&s3->cfg.settings, &keys, err);

    if (rc != HF_OK)
        return rc;
    hf_buf_clear(&answer->body);
    answer->body.limit = S3_ANSWER_MAX;
    answer->etag[0] = '\0'; /* of an attempt before */
    if (request->begin != NULL)
        request->begin(request->arg);
    put_path(s3, request->name, &path);
    hf_buf_printf(&url, "%s%s%s", s3->base, path.data, request->query_count > 0 ? "?" : "");
    hf_s3_query(&url, request->query, request->query_count);
    rc = path.err != HF_OK ? path.err : url.err;
    if (rc == HF_OK)
        rc = make_headers(s3, request, path.data, &keys, &headers);
    if (rc == HF_OK)
        rc = judge(&attempt, perform(&attempt, url.data, headers), ret_again, err);
    else
        (void)hf_error_set(err, rc, "%s", hf_err_text(rc));
    curl_slist_free_all(headers);
    explicit_bzero(&keys, sizeof keys);
    return rc;
}

/* Full jitter. False: nobody waits any more. */
static bool pause_before(const struct hf_s3 *s3, unsigned attempt)
{
    int64_t most = s3->cfg.pause > 0 ? s3->cfg.pause : PAUSE_MS;
    uint32_t random = 0;

    most <<= attempt - 1;
    if (most > PAUSE_MOST_MS)
        most = PAUSE_MOST_MS;
    (void)!hf_id_random(&random, sizeof random);
    for (int64_t left = 1 + random % most; left > 0; left -= LOOK_MS) {
        if (is_over(s3))
            return false;
        (void)usleep((useconds_t)(left < LOOK_MS ? left : LOOK_MS) * 1000);
    }
    return true;
}

int hf_s3_ask(struct hf_s3 *s3, const struct s3_request *request, struct s3_answer *ret_answer,
              struct hf_error *err)
{
    bool again = true;
    int rc = HF_EAGAIN;

    for (unsigned i = 1; i <= ATTEMPTS && again; i++) {
        if (i > 1 && !pause_before(s3, i - 1))
            return hf_error_set(err, HF_ECANCELED, "nobody waits for it any more");
        again = false;
        rc = try(s3, request, ret_answer, &again, err);
    }
    return rc;
}
