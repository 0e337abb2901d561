/* store.h - where the bodies of checkpoints are kept.
 *
 * Three stores, by the names that stand in chain entries: `etcd` (small bodies beside the
 * records, outside of what everyone mirrors), `file` (beneath a directory of this host, or of
 * several, which has an id: io/root.h) and `s3` (objects in a bucket: io/s3.h). A body is never
 * changed, and one that no entry names does not count: a file or an object is written before
 * its entry and goes after it, what lies in etcd comes and goes with it, in the same Txn. */
#ifndef LINK_STORE_H
#define LINK_STORE_H

#include "base/buf.h"
#include "holdfast/v1/records.pb-c.h"
#include "io/backend.h"
#include "io/s3_settings.h"

#include <uv.h>

#define LINK_STORE_ETCD_MAX    ((size_t)64 << 10) /* bytes of one body */
#define LINK_STORE_FILE_MAX    ((size_t)16 << 20)
#define LINK_STORE_S3_MAX      ((int64_t)1 << 30)  /* of one that an agent has in a file */
#define LINK_STORE_ETCD_BUDGET ((int64_t)64 << 20) /* of all of them */
#define LINK_STORE_KEY_BYTES   40
#define LINK_STORE_TAG_LEN     5 /* with an id, no more than an older agentd reads */

struct link_store;

enum link_store_choice {
    LINK_STORE_AUTO, /* into etcd while it fits; beyond, into a bucket or else a file */
    LINK_STORE_ETCD,
    LINK_STORE_FILE,
    LINK_STORE_S3,
};

struct link_store_config {
    uv_loop_t *loop;
    struct hf_backend backend;
    const char *ns;
    const char *directory;           /* of the store `file`; made when it is not there */
    enum link_store_choice choice;   /* where new bodies go */
    const struct hf_s3_settings *s3; /* borrowed; without a bucket there is no such store */
    hf_ms s3_idle;                   /* that a helper without work stays */
    const char *spool;               /* directory for what comes out of it and is long */
};

int link_store_new(const struct link_store_config *cfg, struct link_store **ret_store,
                   struct hf_error *err) HF_MUST_CHECK;
/* Ends what only helpers work on. Whoever waits for that is told before this returns. */
void link_store_close(struct link_store *store);
void link_store_free(struct link_store *store); /* closed, and nothing under way */

/* The id of the directory whose files are read here; empty: there is none. */
const char *link_store_get_root(const struct link_store *store);

/* Whose the bodies are that are put from now on: `cluster` is the id in `meta`, or empty. The
 * keys of files and objects end with a tag made of it, since fleets and namespaces may share a
 * directory or a bucket, and none knows the checkpoints of another. */
void link_store_set_owner(struct link_store *store, const char *cluster);

/* How large a body may be; one that is in a file of the agent. */
size_t link_store_get_max(const struct link_store *store);
int64_t link_store_get_file_max(const struct link_store *store);

/* Of those: what is larger goes as the file that it is to where it is kept. */
size_t link_store_get_read_max(const struct link_store *store);

/* What came of it. `text` is a sentence when it failed; the rest is valid when it did not. */
struct link_stored {
    int err;
    const char *text;
    const char *store;
    const char *key;
    char sha256[65];
    int64_t size;
    struct hf_bytes body; /* of get; of put into etcd: it is not written yet */
    bool has_file;        /* of get, where it is too long for memory: an open file of `size` */
    int file;             /* bytes, which is closed when the call returns */
};

typedef void (*link_stored_fn)(const struct link_stored *stored, void *arg);

/* Writes a body that nobody can have seen before, or, where it shall lie in etcd, finds room
 * for it: then `fn` writes it with its entry. The bytes are copied. `fn` comes later. */
void link_store_put(struct link_store *store, const char *task, struct hf_bytes body,
                    link_stored_fn fn, void *arg);

/* The same of what an agent has in a file, from its beginning; the descriptor is taken. */
void link_store_put_file(struct link_store *store, const char *task, int file,
                         link_stored_fn fn, void *arg);

/* Reads the body of an entry and holds it against its size and digest: HF_ECORRUPT or HF_ENOENT
 * when it can never be read as it was. HF_EAGAIN when that cannot be said: also while the
 * directory is not the one that it was, as when what was mounted there is not any more. */
void link_store_get(struct link_store *store, const Holdfast__V1__Checkpoint *entry,
                    link_stored_fn fn, void *arg);

/* The same for whoever wants to know whether it is whole: one that is long is not given. */
void link_store_verify(struct link_store *store, const Holdfast__V1__Checkpoint *entry,
                       link_stored_fn fn, void *arg);

/* Of a body that no entry names any more: removes the file or the object, as far as that is
 * possible; what lay in etcd, or was to, went with its entry, and only its bytes are free for
 * others. */
void link_store_drop(struct link_store *store, const char *task, const char *name,
                     const char *key, int64_t size);

/* How many objects are to be removed and are not yet. */
unsigned link_store_get_drops(const struct link_store *store);

/* Files or objects of a store, those of one task together. Zero-initialise. */
struct link_store_name {
    char *task;
    char key[LINK_STORE_KEY_BYTES];
};

struct link_store_files {
    struct link_store_name *names;
    size_t count, cap;
};

int link_store_files_add(struct link_store_files *files,
                         const struct link_store_name *name) HF_MUST_CHECK; /* a copy */
void link_store_files_done(struct link_store_files *files);

/* Lists those of `owner` (link_store_set_owner) into *files, which is left alone until `fn`
 * comes. What nobody's key or another's ends with is not among them. */
int link_store_list_files(struct link_store *store, const char *owner,
                          struct link_store_files *files, void (*fn)(int err, void *arg),
                          void *arg) HF_MUST_CHECK;

/* The same for the objects of this namespace; `text` is a sentence. */
int link_store_list_objects(struct link_store *store, const char *owner,
                            struct link_store_files *files,
                            void (*fn)(int err, const char *text, void *arg),
                            void *arg) HF_MUST_CHECK;
bool link_store_has_objects(const struct link_store *store); /* there is such a store */

#endif
