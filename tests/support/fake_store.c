#include "support/fake_store.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

void hft_fake_store_done(struct hft_fake_store *store)
{
    hft_fake_store_go_back(store, 1);
    free(store->changes);
    *store = (struct hft_fake_store){ 0 };
}

int64_t hft_fake_store_newest(const struct hft_fake_store *store)
{
    return (int64_t)store->count + 1;
}

int64_t hft_fake_store_change(struct hft_fake_store *store, const char *key, const char *value)
{
    struct hft_fake_change change = { .key = hf_strdup(key),
                                      .value = value != NULL ? hf_strdup(value) : NULL };

    if (!hf_grow(&store->changes, &store->cap, store->count + 1, sizeof store->changes[0]))
        abort();
    store->changes[store->count++] = change;
    return hft_fake_store_newest(store);
}

uint8_t *hft_fake_store_put(struct hft_fake_store *store,
                            const Etcdserverpb__PutRequest *request,
                            Etcdserverpb__ResponseHeader *header, size_t *ret_len)
{
    Etcdserverpb__PutResponse reply = ETCDSERVERPB__PUT_RESPONSE__INIT;
    char *key = hf_memdup(request->key.data, request->key.len);
    char *value = hf_memdup(request->value.data, request->value.len);
    uint8_t *bytes;

    if (key == NULL || value == NULL)
        abort();
    header->revision = hft_fake_store_change(store, key, value);
    free(key);
    free(value);
    reply.header = header;
    bytes = malloc(etcdserverpb__put_response__get_packed_size(&reply));
    if (bytes == NULL)
        abort();
    *ret_len = etcdserverpb__put_response__pack(&reply, bytes);
    return bytes;
}

void hft_fake_store_go_back(struct hft_fake_store *store, int64_t revision)
{
    while (hft_fake_store_newest(store) > revision) {
        struct hft_fake_change *last = &store->changes[--store->count];

        free(last->key);
        free(last->value);
    }
}

static const struct hft_fake_change *change_of(const struct hft_fake_store *store, int64_t rev)
{
    return &store->changes[rev - 2];
}

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){ .data = (uint8_t *)text,
                                  .len = text != NULL ? strlen(text) : 0 };
}

Etcdserverpb__KeyValue hft_fake_store_kv(const struct hft_fake_store *store, int64_t revision)
{
    const struct hft_fake_change *change = change_of(store, revision);
    Etcdserverpb__KeyValue kv = ETCDSERVERPB__KEY_VALUE__INIT;

    kv.key = bytes_of(change->key);
    kv.value = bytes_of(change->value);
    kv.mod_revision = revision;
    for (int64_t rev = revision; change->value != NULL && rev >= 2; rev--) {
        if (strcmp(change_of(store, rev)->key, change->key) != 0)
            continue;
        if (change_of(store, rev)->value == NULL)
            break;
        kv.create_revision = rev;
        kv.version++;
    }
    return kv;
}

static int compare(ProtobufCBinaryData a, ProtobufCBinaryData b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared > 0 ? memcmp(a.data, b.data, shared) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_keys(const void *a, const void *b)
{
    return compare((*(Etcdserverpb__KeyValue *const *)a)->key,
                   (*(Etcdserverpb__KeyValue *const *)b)->key);
}

static bool is_in(const char *key, const Etcdserverpb__RangeRequest *request)
{
    int order = compare(bytes_of(key), request->key);

    if (request->range_end.len == 0)
        return order == 0;
    return order >= 0 && compare(bytes_of(key), request->range_end) < 0;
}

static bool is_last_of_key(const struct hft_fake_store *store, int64_t rev, int64_t until)
{
    for (int64_t r = rev + 1; r <= until; r++) {
        if (strcmp(change_of(store, r)->key, change_of(store, rev)->key) == 0)
            return false;
    }
    return true;
}

uint8_t *hft_fake_store_range(const struct hft_fake_store *store,
                              const Etcdserverpb__RangeRequest *request, int64_t revision,
                              Etcdserverpb__ResponseHeader *header, size_t *ret_len)
{
    Etcdserverpb__RangeResponse response = ETCDSERVERPB__RANGE_RESPONSE__INIT;
    Etcdserverpb__KeyValue *kvs = hf_calloc(store->count + 1, sizeof *kvs);
    Etcdserverpb__KeyValue **pointers =
        hf_calloc(store->count + 1, sizeof(Etcdserverpb__KeyValue *));
    uint8_t *bytes;

    if (kvs == NULL || pointers == NULL)
        abort();
    for (int64_t rev = 2; rev <= revision; rev++) {
        const struct hft_fake_change *change = change_of(store, rev);

        if (change->value == NULL || !is_in(change->key, request) ||
            !is_last_of_key(store, rev, revision))
            continue;
        kvs[response.n_kvs] = hft_fake_store_kv(store, rev);
        pointers[response.n_kvs] = &kvs[response.n_kvs];
        response.n_kvs++;
    }
    response.header = header;
    response.kvs = pointers;
    response.count = (int64_t)response.n_kvs;
    qsort(pointers, response.n_kvs, sizeof *pointers, compare_keys);
    response.more = request->limit > 0 && response.count > request->limit;
    if (response.more)
        response.n_kvs = (size_t)request->limit;
    bytes = malloc(etcdserverpb__range_response__get_packed_size(&response) + 1);
    if (bytes == NULL)
        abort();
    *ret_len = etcdserverpb__range_response__pack(&response, bytes);
    free(kvs);
    free(pointers);
    return bytes;
}
