#include "io/s3_settings.h"

#include <string.h>

#include "base/str.h"

const char *const hf_s3_addressings[] = { "path", "virtual_host", NULL };

enum {
    BUCKET_MIN = 3,
    BUCKET_MAX = 63,
    PREFIX_MAX = 400,
    ENDPOINT_MAX = 280,
    TOKEN_MAX = 4000
};

static bool is_of(const char *text, const char *more)
{
    for (; *text != '\0'; text++) {
        bool is_plain = (*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9');

        if (!is_plain && strchr(more, *text) == NULL)
            return false;
    }
    return true;
}

/* Such names are the same in a path, in a host's name and in what is signed. */
static bool is_bucket(const char *text)
{
    size_t len = strlen(text);

    return len >= BUCKET_MIN && len <= BUCKET_MAX && is_of(text, "-.") && text[0] != '.' &&
           text[0] != '-' && strstr(text, "..") == NULL;
}

static bool is_prefix(const char *text)
{
    return strlen(text) <= PREFIX_MAX && is_of(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ-._/") &&
           text[0] != '/' && strstr(text, "//") == NULL && strstr(text, "./") == NULL;
}

static bool is_endpoint(const char *text)
{
    struct hf_endpoint endpoint;

    return (strncmp(text, "http://", 7) == 0 || strncmp(text, "https://", 8) == 0) &&
           strlen(text) < ENDPOINT_MAX && hf_parse_endpoint(text, &endpoint, NULL) == HF_OK;
}

int hf_s3_settings_check(const struct hf_s3_settings *settings, struct hf_error *err)
{
    const char *endpoint = settings->endpoint;

    if (settings->bucket == NULL)
        return HF_OK;
    if (!is_bucket(settings->bucket))
        return hf_error_set(err, HF_EINVAL,
                            "checkpoints.s3.bucket: %.64s cannot be the name of a bucket",
                            settings->bucket);
    if (!is_prefix(settings->prefix))
        return hf_error_set(err, HF_EINVAL,
                            "checkpoints.s3.prefix: letters, digits, - . _ and / between them");
    if (endpoint != NULL && !is_endpoint(endpoint))
        return hf_error_set(err, HF_EINVAL,
                            "checkpoints.s3.endpoint: %.100s is not https://HOST[:PORT] or "
                            "http://HOST[:PORT]",
                            endpoint);
    if ((settings->access_key_id == NULL) != (settings->secret_access_key == NULL))
        return hf_error_set(err, HF_EINVAL,
                            "HOLDFAST_S3_ACCESS_KEY_ID and HOLDFAST_S3_SECRET_ACCESS_KEY: "
                            "either both or none");
    if (settings->session_token != NULL && strlen(settings->session_token) > TOKEN_MAX)
        return hf_error_set(err, HF_EINVAL,
                            "HOLDFAST_S3_SESSION_TOKEN: it has more than %d bytes", TOKEN_MAX);
    if (settings->access_key_id == NULL && settings->credentials_file == NULL)
        return hf_error_set(err, HF_EINVAL,
                            "checkpoints.s3.credentials_file: say where the key of the bucket "
                            "stands, or set HOLDFAST_S3_ACCESS_KEY_ID and "
                            "HOLDFAST_S3_SECRET_ACCESS_KEY");
    return HF_OK;
}
