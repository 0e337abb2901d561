/* s3.h - the helpers that talk to an S3 server, and what waits for one.
 *
 * A helper (agentd/s3) is a process, started when there is something to do and none is free; it
 * does one thing at a time, and is let go when there was nothing for a while. One that dies
 * costs nothing: what it was at is given to another, once.
 *
 * What is to be read comes before what is to be written, and one helper is kept for it; what is
 * to be listed or removed has one at most, and is refused first. */
#ifndef LINK_S3_H
#define LINK_S3_H

#include <uv.h>

#include "agentd/s3/packet.h"
#include "base/sha256.h"
#include "io/s3_settings.h"

struct link_s3;
struct link_s3_job;

typedef void (*link_s3_fn)(struct link_s3_job *job, int err, const char *text);

/* What is to be done; the owner's memory until `fn` has come. That may be from inside
 * link_s3_begin. */
struct link_s3_job {
    enum s3_packet_type type;
    char name[640]; /* of the object, or what the names of a list begin with */
    int64_t size;   /* as the packet has it; of a put, what was stored */
    char sha256[HF_SHA256_HEX_LEN + 1];
    const char *owner;                            /* of a list */
    int file;                                     /* to read from or write to; -1: none */
    void (*on_name)(const char *name, void *arg); /* of a list */
    link_s3_fn fn;
    void *arg;

    /* Private. */
    struct link_s3_job *next;
    unsigned tries;
};

/* The settings are borrowed. A helper without work stays for `idle`. */
int link_s3_new(uv_loop_t *loop, const struct hf_s3_settings *settings, hf_ms idle,
                struct link_s3 **ret_s3) HF_MUST_CHECK;

/* Ends the helpers. Whatever is under way or waits is told HF_EAGAIN, from inside this call;
 * after it nothing may be begun. What is left of it goes with the loop's last callbacks. */
void link_s3_close(struct link_s3 *s3);

/* HF_ELIMIT: too much waits already. */
int link_s3_begin(struct link_s3 *s3, struct link_s3_job *job) HF_MUST_CHECK;

#endif
