/* bucket.h - a bucket on this machine, which checks every signature (bucket/bucket.py). */
#ifndef HFT_BUCKET_H
#define HFT_BUCKET_H

#include <stdbool.h>
#include <sys/types.h>

#define HFT_BUCKET_NAME   "checkpoints"
#define HFT_BUCKET_KEY_ID "S3RVER"
#define HFT_BUCKET_SECRET "a+secret/of the test"

struct hft_bucket {
    char dir[300]; /* its own, with its log, its faults and its objects */
    char endpoint[64];
    pid_t pid;
};

/* Fetches what it needs from npm, once. 0, or what main is to return: 77 where somebody said
 * that there is no network (HOLDFAST_OFFLINE=1), and 1 otherwise, since nothing was tested
 * then. */
int hft_bucket_install(void);

/* Begins in the directory `dir`/bucket. */
void hft_bucket_start(struct hft_bucket *bucket, const char *dir);
/* Over TLS, with that certificate (PEM files). */
void hft_bucket_start_tls(struct hft_bucket *bucket, const char *dir, const char *cert,
                          const char *key);
void hft_bucket_stop(struct hft_bucket *bucket);

/* A fault of bucket.py, and its end. */
void hft_bucket_set(const struct hft_bucket *bucket, const char *fault, const char *text);
void hft_bucket_unset(const struct hft_bucket *bucket, const char *fault);

/* How many requests were logged with that text. */
int hft_bucket_count(const struct hft_bucket *bucket, const char *text);

/* How many objects it has whose path has that text; how many uploads that have no end. */
int hft_bucket_objects(const struct hft_bucket *bucket, const char *text);
int hft_bucket_uploads(const struct hft_bucket *bucket);

/* The file of the one object that has that text in its path. */
void hft_bucket_find(const struct hft_bucket *bucket, const char *text, char ret_path[600]);

#endif
