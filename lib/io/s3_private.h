/* s3_private.h - one request to an S3 server, and what came of it. */
#ifndef HF_IO_S3_PRIVATE_H
#define HF_IO_S3_PRIVATE_H

#include <curl/curl.h>

#include "io/s3.h"
#include "io/s3_sign.h"

enum {
    S3_ANSWER_MAX = 4 << 20, /* bytes of an answer that is kept */
    S3_TEXT = 300,
    S3_SECRET = 4096,
};

struct s3_keys {
    char id[S3_TEXT];
    char secret[S3_TEXT];
    char token[S3_SECRET]; /* empty: none */
};

struct hf_s3 {
    struct hf_s3_config cfg;
    CURL *curl;
    char base[S3_TEXT * 2]; /* scheme://host[:port] */
    char host[S3_TEXT];     /* as it is signed */
    char *part;             /* of HF_S3_PART bytes; NULL until it is needed */
};

/* Takes the body of an answer piece by piece; false ends the transfer. */
typedef bool (*s3_sink_fn)(const void *data, size_t len, void *arg);

struct s3_request {
    const char *method;
    const char *name; /* of the object, beneath the prefix; NULL: the bucket itself */
    const struct hf_s3_pair *query;
    size_t query_count;
    struct hf_bytes body;
    s3_sink_fn sink;          /* of an answer with status 200; NULL: it is kept */
    void (*begin)(void *arg); /* before each attempt, with the sink's argument; may be NULL */
    void *arg;
};

struct s3_answer {
    long status;   /* of HTTP */
    char code[64]; /* of the error, as the server calls it; may be empty */
    char etag[S3_TEXT];
    int64_t length;     /* that it said; -1: it did not */
    struct hf_buf body; /* of those that are kept */
};

void hf_s3_answer_done(struct s3_answer *answer);
#define S3_CLEANUP_ANSWER __attribute__((cleanup(hf_s3_answer_done)))

/* HF_OK for a status of 2xx. HF_ENOENT for an object, or an upload, that is not there.
 * HF_EDENIED, HF_EAGAIN, HF_EIO, HF_ECANCELED, HF_ENOMEM: with a sentence. */
int hf_s3_ask(struct hf_s3 *s3, const struct s3_request *request, struct s3_answer *ret_answer,
              struct hf_error *err) HF_MUST_CHECK;

/* The keys as they stand now. */
int hf_s3_keys_load(const struct hf_s3_settings *settings, struct s3_keys *ret_keys,
                    struct hf_error *err) HF_MUST_CHECK;

/* The sentence and the code for an answer that is no success. */
int hf_s3_explain(const struct hf_s3 *s3, const struct s3_answer *answer,
                  const char *server_date, struct hf_error *err) HF_MUST_CHECK;

#endif
