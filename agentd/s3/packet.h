/* packet.h - what the link and its helper for S3 say to each other.
 *
 * Packets over a socket pair, one request at a time, each with an answer; some carry an open
 * file. A packet is a struct and some texts behind it. Both sides are ours, but the link lives
 * longer: it believes a packet only after it was checked. */
#ifndef S3_PACKET_H
#define S3_PACKET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

#define S3_PACKET_MAX  16384
#define S3_PACKET_TEXT 4096 /* bytes of one text, with its NUL */

enum s3_packet_type {
    S3_SETUP = 1, /* the settings, once; `size` is the timeout, `err` the addressing */
    S3_PUT,       /* a name; `size` is the most that there may be; with the file */
    S3_GET,       /* a name, a digest; `size`; perhaps with a file to write to */
    S3_DROP,      /* a name */
    S3_LIST,      /* what names begin with, whose they are; `size` is the age of old uploads */
    S3_NAMES,     /* answer: some of the names, more packets follow */
    S3_DONE,      /* answer: `err`, a sentence, `size`, a digest */
};

/* The texts of S3_SETUP; an empty one is not set. */
enum s3_setup {
    S3_SETUP_BUCKET,
    S3_SETUP_ENDPOINT,
    S3_SETUP_REGION,
    S3_SETUP_PREFIX,
    S3_SETUP_CREDENTIALS_FILE,
    S3_SETUP_PROFILE,
    S3_SETUP_ACCESS_KEY_ID,
    S3_SETUP_SECRET_ACCESS_KEY,
    S3_SETUP_SESSION_TOKEN,
    S3_SETUP_CACERT,
    S3_SETUP_COUNT,
};

struct s3_packet {
    uint32_t type;
    uint32_t count; /* texts, each with its NUL */
    int32_t err;
    uint32_t zero;
    int64_t size;
};

/* A whole packet in `out`, which is empty. */
int s3_packet_make(struct hf_buf *out, const struct s3_packet *head,
                   const char *const *texts) HF_MUST_CHECK;

/* NULL when the bytes are a packet with as many texts as its type has; else what is wrong. */
const char *s3_packet_check(const void *data, size_t len);

/* A text of a packet that was checked. */
const char *s3_packet_get(const struct s3_packet *packet, uint32_t number);

/* Sends all of it, with a file unless that is -1. Returns 0 or an errno. */
int s3_packet_send(int fd, const struct hf_buf *packet, int file) HF_MUST_CHECK;

/* Receives one into `data`, which is aligned as a struct s3_packet. Returns its length, 0 at
 * the end, or a negative errno. *ret_file is a file that came with it, or -1. */
ssize_t s3_packet_receive(int fd, void *data, size_t size, int *ret_file) HF_MUST_CHECK;

#endif
