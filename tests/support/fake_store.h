/* fake_store.h - the keys of a fake etcd, with all that they ever were. */
#ifndef HFT_FAKE_STORE_H
#define HFT_FAKE_STORE_H

#include <stddef.h>
#include <stdint.h>

#include "etcd/rpc.pb-c.h"

struct hft_fake_change {
    char *key;
    char *value; /* NULL: deleted */
};

/* Zero-initialise. Revision 1 is the empty store. */
struct hft_fake_store {
    struct hft_fake_change *changes; /* [revision - 2] */
    size_t count;
    size_t cap;
};

void hft_fake_store_done(struct hft_fake_store *store);

int64_t hft_fake_store_newest(const struct hft_fake_store *store);

/* One change is one revision, which is returned. */
int64_t hft_fake_store_change(struct hft_fake_store *store, const char *key, const char *value);

/* The same as a request asks for it, whose key and value are texts: the packed answer, with the
 * revision in the header. The caller frees it. */
uint8_t *hft_fake_store_put(struct hft_fake_store *store,
                            const Etcdserverpb__PutRequest *request,
                            Etcdserverpb__ResponseHeader *header, size_t *ret_len);

/* Forgets every change after `revision`. */
void hft_fake_store_go_back(struct hft_fake_store *store, int64_t revision);

/* What that revision made of the key that it changed; version 0 when it deleted it. Borrowed.
 */
Etcdserverpb__KeyValue hft_fake_store_kv(const struct hft_fake_store *store, int64_t revision);

/* The packed answer to a range as of `revision`, at most that of the header; all of it in one
 * page, in no order. The caller frees it. */
uint8_t *hft_fake_store_range(const struct hft_fake_store *store,
                              const Etcdserverpb__RangeRequest *request, int64_t revision,
                              Etcdserverpb__ResponseHeader *header, size_t *ret_len);

#endif
