/* What a server's refusal means, and what to do about it. */
#include <stdio.h>
#include <string.h>

#include "io/s3_private.h"
#include "io/s3_xml.h"

enum about { OBJECT, KEY, SECRET, TOKEN, CLOCK, RIGHT, REGION, BUCKET };

static const struct {
    const char *code;
    int err;
    enum about about;
} KNOWN[] = {
    { "NoSuchKey", HF_ENOENT, OBJECT },
    { "NoSuchUpload", HF_ENOENT, OBJECT },
    { "InvalidAccessKeyId", HF_EDENIED, KEY },
    { "SignatureDoesNotMatch", HF_EDENIED, SECRET },
    { "InvalidToken", HF_EDENIED, TOKEN },
    { "ExpiredToken", HF_EDENIED, TOKEN },
    { "TokenRefreshRequired", HF_EDENIED, TOKEN },
    { "RequestTimeTooSkewed", HF_EDENIED, CLOCK },
    { "AccessDenied", HF_EDENIED, RIGHT },
    { "AllAccessDisabled", HF_EDENIED, RIGHT },
    { "AuthorizationHeaderMalformed", HF_EDENIED, REGION },
    { "PermanentRedirect", HF_EDENIED, REGION },
    { "TemporaryRedirect", HF_EDENIED, REGION },
    { "IllegalLocationConstraintException", HF_EDENIED, REGION },
    { "NoSuchBucket", HF_EDENIED, BUCKET },
    { "InvalidBucketName", HF_EDENIED, BUCKET },
};

static int explain_known(const struct hf_s3 *s3, const struct s3_answer *answer, int code,
                         enum about about, const char *server_date, struct hf_error *err)
{
    const struct hf_s3_settings *settings = &s3->cfg.settings;
    const char *where = settings->access_key_id != NULL ? "HOLDFAST_S3_ACCESS_KEY_ID"
                                                        : settings->credentials_file;
    char region[64] = "another one";

    switch (about) {
    case OBJECT: return hf_error_set(err, code, "it is not there");
    case KEY:
        return hf_error_set(err, code, "%.80s does not know the access key of %.100s", s3->base,
                            where);
    case SECRET:
        return hf_error_set(err, code,
                            "%.60s: the secret key of %.100s does not fit its id, or something "
                            "on the way changes requests",
                            s3->base, where);
    case TOKEN:
        return hf_error_set(err, code, "%.80s: the session token of %.100s is over: renew it",
                            s3->base, where);
    case CLOCK:
        return hf_error_set(err, code,
                            "%.80s: this machine's clock is wrong; there it is %.40s", s3->base,
                            server_date[0] != '\0' ? server_date : "another time");
    case RIGHT:
        return hf_error_set(err, code,
                            "%.60s: the key of %.100s may not do this in bucket %.64s",
                            s3->base, where, settings->bucket);
    case REGION:
        (void)hf_s3_xml_text((struct hf_bytes){ answer->body.data, answer->body.len }, "Region",
                             region, sizeof region);
        return hf_error_set(err, code,
                            "bucket %.64s is not in checkpoints.s3.region %.40s, but in %.40s",
                            settings->bucket, settings->region, region);
    case BUCKET:
        return hf_error_set(err, code, "%.80s has no bucket %.64s", s3->base, settings->bucket);
    }
    return code;
}

int hf_s3_explain(const struct hf_s3 *s3, const struct s3_answer *answer,
                  const char *server_date, struct hf_error *err)
{
    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        if (strcmp(answer->code, KNOWN[i].code) == 0)
            return explain_known(s3, answer, KNOWN[i].err, KNOWN[i].about, server_date, err);
    }
    /* Whoever stands in between may say 404, too, and knows nothing of our object. */
    if (answer->status == 403 || answer->status == 401)
        return explain_known(s3, answer, HF_EDENIED, RIGHT, server_date, err);
    return hf_error_set(err,
                        answer->status >= 500 || answer->status == 429 ? HF_EAGAIN : HF_EIO,
                        "%.100s answers with status %ld%s%.60s", s3->base, answer->status,
                        answer->code[0] != '\0' ? ", " : "", answer->code);
}
