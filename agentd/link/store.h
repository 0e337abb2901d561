/* store.h - where the bodies of checkpoints are kept.
 *
 * Two stores, by the names that stand in chain entries: `etcd` (small bodies beside the
 * records, outside of what everyone mirrors) and `file` (beneath a directory of this host, or
 * of several, which has an id: io/root.h). A body is never changed, and one that no entry names
 * does not count: a file is written before its entry and goes after it, what lies in etcd comes
 * and goes with it, in the same Txn. */
#ifndef LINK_STORE_H
#define LINK_STORE_H

#include "base/buf.h"
#include "holdfast/v1/records.pb-c.h"
#include "io/backend.h"

#include <uv.h>

#define LINK_STORE_ETCD_MAX    ((size_t)64 << 10) /* bytes of one body */
#define LINK_STORE_FILE_MAX    ((size_t)16 << 20)
#define LINK_STORE_ETCD_BUDGET ((int64_t)64 << 20) /* of all of them */
#define LINK_STORE_KEY_BYTES   32

struct link_store;

enum link_store_choice {
    LINK_STORE_AUTO, /* into etcd while it fits, into a file beyond */
    LINK_STORE_ETCD,
    LINK_STORE_FILE,
};

struct link_store_config {
    uv_loop_t *loop;
    struct hf_backend backend;
    const char *ns;
    const char *directory;         /* of the store `file`; made when it is not there */
    enum link_store_choice choice; /* where new bodies go */
};

int link_store_new(const struct link_store_config *cfg, struct link_store **ret_store,
                   struct hf_error *err) HF_MUST_CHECK;
void link_store_free(struct link_store *store); /* nothing may be under way */

/* The id of the directory whose files are read here; empty: there is none. */
const char *link_store_get_root(const struct link_store *store);

/* How large a body may be. */
size_t link_store_get_max(const struct link_store *store);

/* What came of it. `text` is a sentence when it failed; the rest is valid when it did not. */
struct link_stored {
    int err;
    const char *text;
    const char *store;
    const char *key;
    char sha256[65];
    int64_t size;
    struct hf_bytes body; /* of get; of put into etcd: it is not written yet */
};

typedef void (*link_stored_fn)(const struct link_stored *stored, void *arg);

/* Writes a body that nobody can have seen before, or, where it shall lie in etcd, finds room
 * for it: then `fn` writes it with its entry. The bytes are copied. `fn` comes later. */
void link_store_put(struct link_store *store, const char *task, struct hf_bytes body,
                    link_stored_fn fn, void *arg);

/* Reads the body of an entry and holds it against its size and digest: HF_ECORRUPT or HF_ENOENT
 * when it can never be read as it was. HF_EAGAIN when that cannot be said: also while the
 * directory is not the one that it was, as when what was mounted there is not any more. */
void link_store_get(struct link_store *store, const Holdfast__V1__Checkpoint *entry,
                    link_stored_fn fn, void *arg);

/* Of a body that no entry names any more: removes the file, as far as that is possible; what
 * lay in etcd, or was to, went with its entry, and only its bytes are free for others. */
void link_store_drop(struct link_store *store, const char *task, const char *name,
                     const char *key, int64_t size);

/* Files of the store, those of one task together. Zero-initialise. */
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

/* Lists them all into *files, which is left alone until `fn` comes. */
int link_store_list_files(struct link_store *store, struct link_store_files *files,
                          void (*fn)(int err, void *arg), void *arg) HF_MUST_CHECK;

#endif
