/* Reads anything as etcd's answer to a list. What is read lies inside the input, and where
 * protobuf-c takes it for such an answer as well, both read the same. */
#include <stdint.h>
#include <stdlib.h>

#include "etcd/arena.h"
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

enum { PIECES = 8 };

/* Pieces as long as the first bytes say, each in memory of its own; the last one has the rest.
 */
static void cut_up(struct hf_bytes input, struct hf_bytes pieces[PIECES])
{
    const uint8_t *bytes = input.data;
    size_t at = 0;

    for (size_t i = 0; i < PIECES; i++) {
        size_t len = i < input.len && i < PIECES - 1 ? bytes[i] : input.len;
        uint8_t *copy;

        if (len > input.len - at)
            len = input.len - at;
        copy = malloc(len > 0 ? len : 1);
        require(copy != NULL);
        for (size_t j = 0; j < len; j++)
            copy[j] = bytes[at + j];
        pieces[i] = (struct hf_bytes){ .data = copy, .len = len };
        at += len;
    }
}

static bool same_numbers(const struct hf_range_result *a, const struct hf_range_result *b)
{
    return headers_agree(&a->result.header, &b->result.header) && a->count == b->count &&
           a->more == b->more && a->total == b->total;
}

/* However it is cut, it is the same answer, or none. */
static void check_pieces(struct hf_bytes input, const struct hf_range_result *whole)
{
    struct hf_range_result result = { 0 };
    struct hf_bytes pieces[PIECES], runs[2 * PIECES];
    struct hf_arena arena = { 0 };
    struct hf_kv *kvs = NULL;
    size_t run_count;

    cut_up(input, pieces);
    if (hf_wire_cut(pieces, PIECES, &arena, runs, &run_count) == HF_OK &&
        hf_range_decode(runs, run_count, NULL, &result)) {
        kvs = malloc(result.count * sizeof *kvs + 1);
        require(kvs != NULL &&
                hf_range_decode(runs, run_count, kvs, &result) == (whole != NULL));
    } else {
        require(whole == NULL);
    }
    require(whole == NULL || same_numbers(&result, whole));
    for (size_t i = 0; whole != NULL && i < whole->count; i++)
        require(kvs_agree(&result.kvs[i], &whole->kvs[i]));
    free(kvs);
    hf_arena_clear(&arena, 0);
    for (size_t i = 0; i < PIECES; i++)
        free((void *)pieces[i].data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_bytes input = { .data = data, .len = size };
    struct hf_range_result result = { 0 };
    struct hf_kv *kvs = NULL;
    bool is_answer = hf_range_decode(&input, 1, NULL, &result);
    size_t count = result.count;

    check_varint(input);
    if (is_answer) {
        kvs = malloc(count * sizeof *kvs); /* no larger, so that one too many is noticed */
        require(kvs != NULL || count == 0);
        is_answer = hf_range_decode(&input, 1, kvs, &result);
        require(!is_answer || result.count == count);
    }
    check_pieces(input, is_answer ? &result : NULL);
    if (is_answer)
        check_answer(input, &result);
    free(kvs);
    return 0;
}
