#include "base/sha256.h"

#include <assert.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

struct hf_sha256 {
    EVP_MD_CTX *ctx;
    bool finished;
};

struct hf_sha256 *hf_sha256_new(void)
{
    struct hf_sha256 *sha = hf_calloc(1, sizeof *sha);

    if (sha == NULL)
        return NULL;
    sha->ctx = EVP_MD_CTX_new();
    if (sha->ctx == NULL || EVP_DigestInit_ex(sha->ctx, EVP_sha256(), NULL) != 1) {
        hf_sha256_free(sha);
        return NULL;
    }
    return sha;
}

void hf_sha256_free(struct hf_sha256 *sha)
{
    if (sha == NULL)
        return;
    EVP_MD_CTX_free(sha->ctx);
    free(sha);
}

int hf_sha256_update(struct hf_sha256 *sha, const void *data, size_t len)
{
    assert(!sha->finished);

    if (len == 0)
        return HF_OK;
    return EVP_DigestUpdate(sha->ctx, data, len) == 1 ? HF_OK : HF_EIO;
}

int hf_sha256_final(struct hf_sha256 *sha, uint8_t ret_digest[HF_SHA256_LEN])
{
    uint8_t digest[HF_SHA256_LEN];

    assert(!sha->finished);

    sha->finished = true;
    if (EVP_DigestFinal_ex(sha->ctx, digest, NULL) != 1)
        return HF_EIO;
    memcpy(ret_digest, digest, sizeof digest);
    return HF_OK;
}

int hf_sha256(const void *data, size_t len, uint8_t ret_digest[HF_SHA256_LEN])
{
    struct hf_sha256 *sha = hf_sha256_new();
    int rc;

    if (sha == NULL)
        return HF_ENOMEM;
    rc = hf_sha256_update(sha, data, len);
    if (rc == HF_OK)
        rc = hf_sha256_final(sha, ret_digest);
    hf_sha256_free(sha);
    return rc;
}

void hf_sha256_format(const uint8_t digest[HF_SHA256_LEN], char ret_hex[HF_SHA256_HEX_LEN + 1])
{
    static const char DIGITS[] = "0123456789abcdef";

    for (size_t i = 0; i < HF_SHA256_LEN; i++) {
        ret_hex[2 * i] = DIGITS[digest[i] >> 4];
        ret_hex[2 * i + 1] = DIGITS[digest[i] & 15];
    }
    ret_hex[HF_SHA256_HEX_LEN] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

int hf_sha256_parse(const char *hex, uint8_t ret_digest[HF_SHA256_LEN])
{
    uint8_t digest[HF_SHA256_LEN];

    if (strnlen(hex, HF_SHA256_HEX_LEN + 1) != HF_SHA256_HEX_LEN)
        return HF_EINVAL;
    for (size_t i = 0; i < HF_SHA256_LEN; i++) {
        int high = hex_value(hex[2 * i]);
        int low = hex_value(hex[2 * i + 1]);

        if (high < 0 || low < 0)
            return HF_EINVAL;
        digest[i] = (uint8_t)(high << 4 | low);
    }
    memcpy(ret_digest, digest, sizeof digest);
    return HF_OK;
}
