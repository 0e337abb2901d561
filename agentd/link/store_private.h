/* store_private.h - what the stores share. */
#ifndef LINK_STORE_PRIVATE_H
#define LINK_STORE_PRIVATE_H

#include "agentd/link/s3.h"
#include "agentd/link/store.h"
#include "base/id.h"
#include "base/sha256.h"
#include "schema/name.h"

enum link_store_kind { LINK_IN_ETCD, LINK_IN_FILE, LINK_IN_S3 };

struct link_store {
    struct link_store_config cfg;
    char *directory;
    char root[HF_ID_LEN + 1];         /* its id; empty: it has none, or is not there */
    unsigned jobs;                    /* under way */
    char tag[LINK_STORE_TAG_LEN + 1]; /* that new keys end with; empty: not known */
    struct link_s3 *s3;               /* NULL: there is no bucket */
    unsigned drops;                   /* of objects, under way */
    bool closing;

    int64_t total; /* bytes in etcd, as far as is known */
    bool counted;
    hf_ms counted_at;
};

/* One body on its way. */
struct link_store_job {
    struct link_store *store;
    link_stored_fn fn; /* NULL: nobody waits */
    void *arg;
    enum link_store_kind kind;
    char task[HF_NAME_SIZE];
    char key[LINK_STORE_KEY_BYTES];
    char sha256[HF_SHA256_HEX_LEN + 1];
    char *body;
    size_t len;
    int64_t want_size;
    int file;        /* that has the body, or gets it; -1: none */
    bool gives_none; /* nobody wants the body, if it is long */
    struct link_s3_job s3;
    char told[256]; /* by the helper */
    int64_t counting;
    struct hf_call *call;
    struct hf_list *list;
    uv_work_t work;
    struct hf_alarm alarm;
    int err;
    int verdict; /* on what was read */
    const char *text;
};

struct link_store_job *link_store_new_job(struct link_store *store, const char *task,
                                          link_stored_fn fn, void *arg);
void link_store_finish(struct link_store_job *job, int err, const char *text);
void link_store_finish_later(struct link_store_job *job, int err, const char *text);
void link_store_finish_get(struct link_store_job *job, int verdict);
/* Whether what was read is what its entry says. From any thread, as the next. */
int link_store_judge(const struct link_store_job *job) HF_MUST_CHECK;
int link_store_digest(const void *data, size_t len,
                      char ret_hex[HF_SHA256_HEX_LEN + 1]) HF_MUST_CHECK;

/* HF_ENOENT: nobody is said to be the owner. */
int link_store_make_tag(const char *cluster,
                        char ret_tag[LINK_STORE_TAG_LEN + 1]) HF_MUST_CHECK;
/* Whether that owner put what has this key. */
bool link_store_has_tag(const char *key, const char *tag);

/* store_file.c: in a thread of libuv's pool, since a disk may take its time. */
void link_store_file_put(struct link_store_job *job);
void link_store_file_get(struct link_store_job *job);
void link_store_file_drop(struct link_store_job *job);

/* store_s3.c */
void link_store_s3_put(struct link_store_job *job);
void link_store_s3_get(struct link_store_job *job);
void link_store_s3_drop(struct link_store_job *job);

#endif
