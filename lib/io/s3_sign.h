/* s3_sign.h - AWS Signature Version 4, for the one service that we speak to.
 *
 * Pure. Written here although libcurl has it (CURLOPT_AWS_SIGV4): what libcurl makes of a query
 * and of headers differs from version to version, and its clock cannot be an argument. */
#ifndef HF_IO_S3_SIGN_H
#define HF_IO_S3_SIGN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define HF_S3_DATE_LEN 16 /* 20130524T000000Z */

/* A header or a query parameter. */
struct hf_s3_pair {
    const char *name, *value;
};

struct hf_s3_signed {
    const char *method;
    const char *path; /* encoded, from "/" on */
    const struct hf_s3_pair *query;
    size_t query_count; /* sorted by name, nothing encoded yet */
    const struct hf_s3_pair *headers;
    size_t header_count; /* sorted by name, names in lower case: all that are signed */
    const char *sha256;  /* of the body, in hex */
    const char *date;    /* as in x-amz-date */
    const char *region;
    const char *key_id, *secret;
};

/* Appends the value of the header Authorization. */
int hf_s3_sign(const struct hf_s3_signed *what, struct hf_buf *out) HF_MUST_CHECK;

/* Appends the text with everything escaped that is not [A-Za-z0-9-._~], nor, where it may
 * stand, a slash. */
void hf_s3_escape(struct hf_buf *out, const char *text, bool keep_slash);

/* Appends name=value&... as it is signed and as it is to be sent. */
void hf_s3_query(struct hf_buf *out, const struct hf_s3_pair *query, size_t count);

#endif
