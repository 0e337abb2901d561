/* s3_settings.h - what can be set about a bucket, for every program that reads or writes one.
 *
 * A program has a struct hf_s3_settings as the member `s3` of its own settings, and
 * HF_S3_OPTIONS in its table. */
#ifndef HF_IO_S3_SETTINGS_H
#define HF_IO_S3_SETTINGS_H

#include "schema/config.h"

enum hf_s3_addressing {
    HF_S3_PATH,         /* https://endpoint/bucket/object */
    HF_S3_VIRTUAL_HOST, /* https://bucket.endpoint/object */
};

/* Texts belong to the hf_config that filled it. */
struct hf_s3_settings {
    const char *bucket; /* NULL: there is no such store here */
    const char *endpoint;
    const char *region;
    const char *prefix;
    enum hf_s3_addressing addressing;
    const char *credentials_file;
    const char *profile;
    const char *access_key_id, *secret_access_key, *session_token;
    const char *cacert;
    hf_ms timeout;
};

extern const char *const hf_s3_addressings[];

/* HF_EINVAL, with a sentence, when they contradict each other or cannot be meant. */
int hf_s3_settings_check(const struct hf_s3_settings *settings,
                         struct hf_error *err) HF_MUST_CHECK;

/* clang-format off */
#define HF_S3_OPTIONS(container)                                                               \
    {                                                                                          \
        .key = "checkpoints.s3.bucket",                                                        \
        .flag = "s3-bucket",                                                                   \
        .env = "HOLDFAST_S3_BUCKET",                                                           \
        .value = "NAME",                                                                       \
        HF_OPTION_FIELD(STRING, container, s3.bucket),                                         \
        .help = "The bucket of the store `s3`; without it there is no such store.",            \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.endpoint",                                                      \
        .flag = "s3-endpoint",                                                                 \
        .env = "HOLDFAST_S3_ENDPOINT",                                                         \
        .value = "URL",                                                                        \
        HF_OPTION_FIELD(STRING, container, s3.endpoint),                                       \
        .help = "The server that has it: http:// or https://, a host, perhaps a port. Without "\
                "it, that of Amazon in the region.",                                           \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.region",                                                        \
        .flag = "s3-region",                                                                   \
        .env = "HOLDFAST_S3_REGION",                                                           \
        .value = "NAME",                                                                       \
        HF_OPTION_FIELD(STRING, container, s3.region),                                         \
        .preset = "us-east-1",                                                                 \
        .help = "The region that requests are signed for.",                                    \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.prefix",                                                        \
        .flag = "s3-prefix",                                                                   \
        .env = "HOLDFAST_S3_PREFIX",                                                           \
        .value = "TEXT",                                                                       \
        HF_OPTION_FIELD(STRING, container, s3.prefix),                                         \
        .preset = "holdfast/",                                                                 \
        .help = "What the names of our objects begin with. Only one fleet may use it: what no "\
                "checkpoint of it names is removed there.",                                    \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.addressing",                                                    \
        .flag = "s3-addressing",                                                               \
        HF_OPTION_FIELD(ENUM, container, s3.addressing),                                       \
        .words = hf_s3_addressings,                                                            \
        .preset = "path",                                                                      \
        .help = "Where the bucket's name stands: in the path, or before the host's name.",     \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.credentials_file",                                              \
        .flag = "s3-credentials-file",                                                         \
        .env = "HOLDFAST_S3_CREDENTIALS_FILE",                                                 \
        .value = "FILE",                                                                       \
        HF_OPTION_FIELD(STRING, container, s3.credentials_file),                               \
        .help = "File with aws_access_key_id and aws_secret_access_key, as Amazon's own tools "\
                "have it. It is read again for each request, so that keys can be renewed.",    \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.profile",                                                       \
        .flag = "s3-profile",                                                                  \
        .value = "NAME",                                                                       \
        HF_OPTION_FIELD(STRING, container, s3.profile),                                        \
        .preset = "default",                                                                   \
        .help = "The section of that file.",                                                   \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.access_key_id",                                                 \
        .env = "HOLDFAST_S3_ACCESS_KEY_ID",                                                    \
        .value = "ID",                                                                         \
        HF_OPTION_FIELD(STRING, container, s3.access_key_id),                                  \
        .help = "Instead of a file: the id of the key. Agents never see these variables.",     \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.secret_access_key",                                             \
        .env = "HOLDFAST_S3_SECRET_ACCESS_KEY",                                                \
        .value = "KEY",                                                                        \
        HF_OPTION_FIELD(STRING, container, s3.secret_access_key),                              \
        .secret = true,                                                                        \
        .help = "The key itself.",                                                             \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.session_token",                                                 \
        .env = "HOLDFAST_S3_SESSION_TOKEN",                                                    \
        .value = "TOKEN",                                                                      \
        HF_OPTION_FIELD(STRING, container, s3.session_token),                                  \
        .secret = true,                                                                        \
        .help = "What goes with a key that is only lent.",                                     \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.cacert",                                                        \
        .flag = "s3-cacert",                                                                   \
        .env = "HOLDFAST_S3_CACERT",                                                           \
        .value = "FILE",                                                                       \
        HF_OPTION_FIELD(STRING, container, s3.cacert),                                         \
        .help = "PEM file with the authorities that the server's certificate is checked "      \
                "against; without it the system's are used.",                                  \
    },                                                                                         \
    {                                                                                          \
        .key = "checkpoints.s3.timeout",                                                       \
        .flag = "s3-timeout",                                                                  \
        .value = "DURATION",                                                                   \
        HF_OPTION_FIELD(DURATION, container, s3.timeout),                                      \
        .min = 1000,                                                                           \
        .max = 600000,                                                                         \
        .preset = "30s",                                                                       \
        .help = "How long the server may take for a connection, or send and take nothing, "    \
                "before a request is given up and, four times, begun again.",                  \
    }
#define HF_S3_OPTION_COUNT 12
/* clang-format on */

#endif
