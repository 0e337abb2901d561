/* kv.h - read, list, put and delete keys; ask a member how it is.
 *
 * Requests borrow their arguments for the call only. Results are valid during the callback.
 * Each function returns HF_OK when the callback will come (once), else what is wrong with the
 * request (HF_EINVAL, HF_ELIMIT) or HF_ENOMEM. `ret_call` may be NULL. Reads are linearizable.
 */
#ifndef HF_ETCD_KV_H
#define HF_ETCD_KV_H

#include <stddef.h>

#include "base/buf.h"
#include "etcd/result.h"

struct hf_kv {
    struct hf_bytes key;
    struct hf_bytes value;
    hf_rev create_rev;
    hf_rev mod_rev;
    int64_t version;
    int64_t lease; /* 0: none */
};

/* Which keys: one, or all that begin with it. An empty prefix is every key. */
struct hf_key_range {
    struct hf_bytes key;
    bool prefix;
};

static inline struct hf_bytes hf_bytes_of(const char *text)
{
    return (struct hf_bytes){ .data = text, .len = __builtin_strlen(text) };
}

struct hf_range_request {
    struct hf_key_range range;
    hf_rev revision; /* 0: now. HF_ECOMPACT when it is gone, HF_EHISTORY when it is not yet */
    int64_t limit;   /* 0: none */
    bool keys_only;
    bool count_only;
    hf_ms timeout; /* 0: the client's */
};

struct hf_range_result {
    struct hf_etcd_result result;
    const struct hf_kv *kvs;
    size_t count;
    int64_t total; /* keys in the range, whatever the limit */
    bool more;
};

typedef void (*hf_range_fn)(const struct hf_range_result *result, void *arg);

int hf_etcd_range(struct hf_etcd *etcd, const struct hf_range_request *request, hf_range_fn fn,
                  void *arg, struct hf_call **ret_call) HF_MUST_CHECK;

/* All of a range at one revision, page by page: `fn` is called for each page, with `more` set
 * on all but the last; result.header.revision is the revision of the list. Runs on a connection
 * of its own unless pages are small. On failure `fn` comes once more with the error.
 * request->limit is the size of a page (0: what is quickest; up to 64 is small). The handle
 * stays valid until the last page. */
struct hf_list;

int hf_etcd_list(struct hf_etcd *etcd, const struct hf_range_request *request, hf_range_fn fn,
                 void *arg, struct hf_list **ret_list) HF_MUST_CHECK;
void hf_list_cancel(struct hf_list *list);

struct hf_write_result {
    struct hf_etcd_result result;
    int64_t deleted; /* of a delete */
};

typedef void (*hf_write_fn)(const struct hf_write_result *result, void *arg);

#define HF_NO_LEASE 0

/* A put replaces the lease of the key, too: an ephemeral key is put with its lease every time.
 * Unguarded writes are not sent again when their outcome is unknown; use a txn where it
 * matters. */
int hf_etcd_put(struct hf_etcd *etcd, struct hf_bytes key, struct hf_bytes value, int64_t lease,
                hf_write_fn fn, void *arg, struct hf_call **ret_call) HF_MUST_CHECK;
int hf_etcd_delete(struct hf_etcd *etcd, struct hf_key_range range, hf_write_fn fn, void *arg,
                   struct hf_call **ret_call) HF_MUST_CHECK;

struct hf_status_result {
    struct hf_etcd_result result;
    const char *version;
    const char *endpoint; /* who was asked */
    int64_t db_bytes;
    int64_t db_used_bytes;
    uint64_t leader; /* member id; 0: it knows none */
    uint64_t raft_index;
    uint64_t raft_applied_index;
    const char *const *alarms; /* "memberID:… alarm:NOSPACE " as etcd words them */
    size_t alarm_count;
    bool is_learner;
};

typedef void (*hf_status_fn)(const struct hf_status_result *result, void *arg);

/* Of the member that unary calls use now. */
int hf_etcd_status(struct hf_etcd *etcd, hf_status_fn fn, void *arg,
                   struct hf_call **ret_call) HF_MUST_CHECK;

#endif
