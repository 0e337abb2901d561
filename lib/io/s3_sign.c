#include "io/s3_sign.h"

#include <stdbool.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/sha256.h"

static const char SERVICE[] = "s3";

void hf_s3_escape(struct hf_buf *out, const char *text, bool keep_slash)
{
    static const char PLAIN[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (const char *p = text; *p != '\0'; p++) {
        if (strchr(PLAIN, *p) != NULL || (*p == '/' && keep_slash))
            hf_buf_putc(out, *p);
        else
            hf_buf_printf(out, "%%%02X", (unsigned char)*p);
    }
}

void hf_s3_query(struct hf_buf *out, const struct hf_s3_pair *query, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            hf_buf_putc(out, '&');
        hf_s3_escape(out, query[i].name, false);
        hf_buf_putc(out, '=');
        hf_s3_escape(out, query[i].value, false);
    }
}

static void put_signed_names(struct hf_buf *out, const struct hf_s3_signed *what)
{
    for (size_t i = 0; i < what->header_count; i++)
        hf_buf_printf(out, "%s%s", i > 0 ? ";" : "", what->headers[i].name);
}

static int digest_of_request(const struct hf_s3_signed *what,
                             char ret_hex[HF_SHA256_HEX_LEN + 1])
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    uint8_t digest[HF_SHA256_LEN];
    int rc;

    hf_buf_printf(&text, "%s\n%s\n", what->method, what->path);
    hf_s3_query(&text, what->query, what->query_count);
    hf_buf_putc(&text, '\n');
    for (size_t i = 0; i < what->header_count; i++)
        hf_buf_printf(&text, "%s:%s\n", what->headers[i].name, what->headers[i].value);
    hf_buf_putc(&text, '\n');
    put_signed_names(&text, what);
    hf_buf_printf(&text, "\n%s", what->sha256);
    rc = text.err != HF_OK ? text.err : hf_sha256(text.data, text.len, digest);
    if (rc == HF_OK)
        hf_sha256_format(digest, ret_hex);
    return rc;
}

static bool hmac(const void *key, size_t key_len, const void *data, size_t len,
                 uint8_t ret_mac[HF_SHA256_LEN])
{
    unsigned size = HF_SHA256_LEN;

    return HMAC(EVP_sha256(), key, (int)key_len, data, len, ret_mac, &size) != NULL;
}

/* From the secret over date, region and service to what signs. */
static bool sign_text(const struct hf_s3_signed *what, const struct hf_buf *text,
                      uint8_t ret_mac[HF_SHA256_LEN])
{
    static const char END[] = "aws4_request";
    HF_CLEANUP_BUF struct hf_buf first = { 0 };
    uint8_t mac[HF_SHA256_LEN];
    bool fine;

    hf_buf_printf(&first, "AWS4%s", what->secret);
    fine = first.err == HF_OK && hmac(first.data, first.len, what->date, 8, mac) &&
           hmac(mac, sizeof mac, what->region, strlen(what->region), mac) &&
           hmac(mac, sizeof mac, SERVICE, sizeof SERVICE - 1, mac) &&
           hmac(mac, sizeof mac, END, sizeof END - 1, mac) &&
           hmac(mac, sizeof mac, text->data, text->len, ret_mac);
    if (first.data != NULL)
        explicit_bzero(first.data, first.len);
    explicit_bzero(mac, sizeof mac);
    return fine;
}

int hf_s3_sign(const struct hf_s3_signed *what, struct hf_buf *out)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    uint8_t mac[HF_SHA256_LEN];
    char hex[HF_SHA256_HEX_LEN + 1];
    int rc = digest_of_request(what, hex);

    if (rc != HF_OK)
        return rc;
    if (strlen(what->date) != HF_S3_DATE_LEN)
        return HF_EINVAL;
    hf_buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%.8s/%s/%s/aws4_request\n%s", what->date,
                  what->date, what->region, SERVICE, hex);
    if (text.err != HF_OK || !sign_text(what, &text, mac))
        return HF_ENOMEM;
    hf_sha256_format(mac, hex);
    hf_buf_printf(out, "AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/%s/aws4_request,SignedHeaders=",
                  what->key_id, what->date, what->region, SERVICE);
    put_signed_names(out, what);
    hf_buf_printf(out, ",Signature=%s", hex);
    return out->err;
}
