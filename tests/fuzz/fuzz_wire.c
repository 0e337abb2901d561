/* Reads anything as etcd's answer to a list. What is read lies inside the input, and where
 * protobuf-c takes it for such an answer as well, both read the same. */
#include <stdint.h>
#include <stdlib.h>

#include "etcd/range.h"
#include "etcd/wire.h"
#include "unit/range_oracle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void require_inside(struct hf_bytes part, struct hf_bytes whole)
{
    uintptr_t begin = (uintptr_t)whole.data;
    uintptr_t at = (uintptr_t)part.data;

    require(part.len == 0 ||
            (at >= begin && part.len <= whole.len && at - begin <= whole.len - part.len));
}

static void check_varint(struct hf_bytes input)
{
    uint8_t again[HF_VARINT_MAX];
    uint64_t value, same;
    size_t len = hf_varint_get(input.data, input.len, &value);

    if (len == 0)
        return;
    require(len <= input.len && len <= HF_VARINT_MAX);
    size_t shortest = hf_varint_put(again, value);
    require(shortest <= len);
    require(hf_varint_get(again, shortest, &same) == shortest && same == value);
}

/* protobuf-c takes a bool of any kind, even from a string; we skip what is not a number. */
static bool has_odd_more(struct hf_bytes input)
{
    struct hf_wire wire = { .rest = input };
    bool odd = false;

    while (hf_wire_next(&wire))
        odd |= wire.tag >> 3 == 3 && wire.tag != HF_WIRE_NUMBER(3);
    return odd;
}

static void check_answer(struct hf_bytes input, struct hf_range_result *ours)
{
    Etcdserverpb__RangeResponse *theirs =
        etcdserverpb__range_response__unpack(NULL, input.len, input.data);

    for (size_t i = 0; i < ours->count; i++) {
        require_inside(ours->kvs[i].key, input);
        require_inside(ours->kvs[i].value, input);
    }
    if (theirs == NULL)
        return; /* all other fields of an unexpected kind are errors to it; we skip them, too */
    if (has_odd_more(input))
        ours->more = theirs->more != 0;
    require(ranges_agree(ours, theirs));
    etcdserverpb__range_response__free_unpacked(theirs, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_bytes input = { .data = data, .len = size };
    struct hf_range_result result = { 0 };
    struct hf_kv *kvs;
    size_t count;

    check_varint(input);
    if (!hf_range_decode(input, NULL, &result))
        return 0;
    count = result.count;
    kvs = malloc(count * sizeof *kvs); /* no larger, so that one too many is noticed */
    require(kvs != NULL || count == 0);
    if (kvs != NULL && hf_range_decode(input, kvs, &result)) {
        require(result.count == count);
        check_answer(input, &result);
    }
    free(kvs);
    return 0;
}
