/* Messages as etcd writes them, as others might, and as nobody should; protobuf-c, which shares
 * no code with our reader, says what each of them means. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "etcd/arena.h"
#include "etcd/range.h"
#include "etcd/wire.h"
#include "support/chaos.h"
#include "unit/range_oracle.h"
#include "unit/suite.h"

static uint64_t rng_state;

static uint64_t rng(uint64_t below)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (rng_state >> 24) % below;
}

/* Nothing of ours is behind it, so that a sanitizer notices a byte too many. */
static void *copy_of(const void *data, size_t len)
{
    void *copy;

    if (len == 0)
        return NULL;
    copy = malloc(len);
    ck_assert_ptr_nonnull(copy);
    return memcpy(copy, data, len);
}

/* Varints. */

static const struct {
    uint64_t value;
    size_t len;
} NUMBERS[] = {
    { 0, 1 },           { 1, 1 },
    { 127, 1 },         { 128, 2 },
    { 16383, 2 },       { 16384, 3 },
    { UINT32_MAX, 5 },  { (uint64_t)1 << 56, 9 },
    { INT64_MAX, 9 },   { (uint64_t)1 << 63, 10 },
    { UINT64_MAX, 10 },
};

START_TEST(a_number_is_read_back_from_as_few_bytes_as_it_needs)
{
    uint8_t bytes[HF_VARINT_MAX];
    uint64_t value = 1;

    ck_assert_uint_eq(hf_varint_put(bytes, NUMBERS[_i].value), NUMBERS[_i].len);
    ck_assert_uint_eq(hf_varint_get(bytes, NUMBERS[_i].len, &value), NUMBERS[_i].len);
    ck_assert_uint_eq(value, NUMBERS[_i].value);
}
END_TEST

START_TEST(every_bit_of_a_number_survives)
{
    uint8_t bytes[HF_VARINT_MAX];
    uint64_t value = 1;

    for (unsigned bit = 0; bit < 64; bit++) {
        for (uint64_t delta = 0; delta <= 2; delta++) {
            uint64_t number = ((uint64_t)1 << bit) + delta - 1;
            size_t len = hf_varint_put(bytes, number);

            ck_assert_uint_eq(hf_varint_get(bytes, len, &value), len);
            ck_assert_uint_eq(value, number);
        }
    }
}
END_TEST

START_TEST(a_number_that_is_cut_off_is_none)
{
    uint8_t bytes[HF_VARINT_MAX];
    uint64_t value = 77;
    size_t len = hf_varint_put(bytes, UINT64_MAX);

    for (size_t part = 0; part < len; part++) {
        uint8_t *copy = copy_of(bytes, part);

        ck_assert_uint_eq(hf_varint_get(copy, part, &value), 0);
        free(copy);
    }
    ck_assert_uint_eq(value, 77);
}
END_TEST

START_TEST(a_number_in_more_bytes_than_it_needs_is_the_same_number)
{
    uint64_t value = 1;

    ck_assert_uint_eq(hf_varint_get((const uint8_t *)"\x85\x80\x00", 3, &value), 3);
    ck_assert_uint_eq(value, 5);
    ck_assert_uint_eq(
        hf_varint_get((const uint8_t *)"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 10, &value),
        10);
    ck_assert_uint_eq(value, 0);
}
END_TEST

START_TEST(a_number_of_more_than_64_bits_is_none)
{
    uint64_t value = 77;

    ck_assert_uint_eq(
        hf_varint_get((const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 10, &value),
        0);
    ck_assert_uint_eq(hf_varint_get((const uint8_t *)"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
                                                     "\x00",
                                    11, &value),
                      0);
    ck_assert_uint_eq(value, 77);
}
END_TEST

/* Fields. */

#define MESSAGE(text)                                                                          \
    {                                                                                          \
        .data = (text), .len = sizeof(text) - 1                                                \
    }

START_TEST(every_kind_of_field_is_walked)
{
    struct hf_wire wire = { .rest = MESSAGE("\x08\x96\x01"                         /* 1: 150 */
                                            "\x11\x01\x02\x03\x04\x05\x06\x07\x08" /* 2 */
                                            "\x1a\x03\x61\x00\x62"                 /* 3 */
                                            "\x25\x01\x02\x03\x04"                 /* 4 */
                                            "\x1a\x00"                             /* 3 */
                                            "\xfa\xff\xff\xff\x0f\x01\x7a"         /* last */
                                            "\x08\x00") };

    ck_assert(hf_wire_next(&wire));
    ck_assert_uint_eq(wire.tag, HF_WIRE_NUMBER(1));
    ck_assert_uint_eq(wire.value, 150);
    ck_assert(hf_wire_next(&wire));
    ck_assert_uint_eq(wire.tag, HF_WIRE_NUMBER(2) | 1);
    ck_assert(hf_wire_next(&wire));
    ck_assert_uint_eq(wire.tag, HF_WIRE_BYTES(3));
    ck_assert(bytes_agree(wire.bytes, (struct hf_bytes)MESSAGE("a\0b")));
    ck_assert(hf_wire_next(&wire));
    ck_assert_uint_eq(wire.tag, HF_WIRE_NUMBER(4) | 5);
    ck_assert(hf_wire_next(&wire));
    ck_assert_uint_eq(wire.tag, HF_WIRE_BYTES(3));
    ck_assert_uint_eq(wire.bytes.len, 0);
    ck_assert(hf_wire_next(&wire));
    ck_assert_uint_eq(wire.tag, HF_WIRE_BYTES(536870911));
    ck_assert(bytes_agree(wire.bytes, (struct hf_bytes)MESSAGE("z")));
    ck_assert(hf_wire_next(&wire));
    ck_assert_uint_eq(wire.value, 0);
    ck_assert(!hf_wire_next(&wire));
    ck_assert(!wire.broken);
}
END_TEST

START_TEST(nothing_is_a_message_without_fields)
{
    struct hf_wire wire = { 0 };

    ck_assert(!hf_wire_next(&wire));
    ck_assert(!wire.broken);
}
END_TEST

static const struct hf_bytes BROKEN[] = {
    MESSAGE("\x88"),                                             /* a tag, cut off */
    MESSAGE("\x08"),                                             /* a number, absent */
    MESSAGE("\x08\x96"),                                         /* cut off */
    MESSAGE("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"),     /* too large */
    MESSAGE("\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"), /* too long */
    MESSAGE("\x0a"),                                             /* a length, absent */
    MESSAGE("\x0a\x80"),                                         /* cut off */
    MESSAGE("\x0a\x02x"),                                        /* of more than there is */
    MESSAGE("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x"),    /* of all memory */
    MESSAGE("\x09\x01\x02\x03\x04\x05\x06\x07"),                 /* eight bytes, cut off */
    MESSAGE("\x0d\x01\x02\x03"),                                 /* four bytes, cut off */
    MESSAGE("\x0b\x0c"),                                         /* a group */
    MESSAGE("\x0e\x01"),                                         /* kinds that there are not */
    MESSAGE("\x0f\x01"),
    MESSAGE("\x00\x01"),                     /* field 0 */
    MESSAGE("\x80\x80\x80\x80\x10\x01"),     /* field 2^29 */
    MESSAGE("\x88\x80\x80\x80\x80\x01\x01"), /* a tag of more than 32 bits */
};

START_TEST(a_broken_message_ends_the_walk_for_good)
{
    HF_CLEANUP_FREE uint8_t *bytes = copy_of(BROKEN[_i].data, BROKEN[_i].len);
    struct hf_wire wire = { .rest = { .data = bytes, .len = BROKEN[_i].len } };

    ck_assert(!hf_wire_next(&wire));
    ck_assert(wire.broken);
    ck_assert(!hf_wire_next(&wire));
}
END_TEST

/* Answers to lists. */

/* Reads as a call does: counts, then decodes. The caller frees result->kvs. */
static bool read_runs(const struct hf_bytes *runs, size_t run_count,
                      struct hf_range_result *result)
{
    struct hf_kv *kvs = NULL;
    size_t count;

    *result = (struct hf_range_result){ .result.sent_at = 11 };
    if (!hf_range_decode(runs, run_count, NULL, result))
        return false;
    count = result->count;
    kvs = malloc(count * sizeof *kvs + 1);
    if (!hf_range_decode(runs, run_count, kvs, result)) {
        free(kvs);
        return false;
    }
    ck_assert_uint_eq(result->count, count);
    ck_assert_int_eq(result->result.sent_at, 11);
    return true;
}

static bool read_range(struct hf_bytes body, struct hf_range_result *result)
{
    return read_runs(&body, 1, result);
}

/* Reads a copy that ends where its memory ends, and holds it against protobuf-c. */
static void expect_agreement(struct hf_bytes body, bool must_be_whole)
{
    HF_CLEANUP_FREE uint8_t *bytes = copy_of(body.data, body.len);
    Etcdserverpb__RangeResponse *theirs =
        etcdserverpb__range_response__unpack(NULL, body.len, bytes);
    struct hf_range_result ours;
    bool whole = read_range((struct hf_bytes){ .data = bytes, .len = body.len }, &ours);

    ck_assert_int_eq(whole, theirs != NULL);
    ck_assert(whole || !must_be_whole);
    if (whole) {
        ck_assert(ranges_agree(&ours, theirs));
        etcdserverpb__range_response__free_unpacked(theirs, NULL);
        free((struct hf_kv *)ours.kvs);
    }
}

static uint64_t some_number(void)
{
    static const uint64_t ODD[] = {
        0, 1, 127, 128, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX,
    };

    return rng(2) ? ODD[rng(COUNT(ODD))] : rng_state >> rng(64);
}

static struct hf_bytes some_bytes(void)
{
    static uint8_t noise[70000];
    static bool is_filled;
    size_t len = rng(50) == 0 ? 60000 : rng(8) == 0 ? 300 : 20;

    for (size_t i = 0; !is_filled && i < sizeof noise; i++)
        noise[i] = (uint8_t)rng(256);
    is_filled = true;
    len = rng(len);
    return (struct hf_bytes){ .data = noise + rng(sizeof noise - len), .len = len };
}

static void write_varint(struct hf_buf *out, uint64_t value)
{
    uint8_t bytes[HF_VARINT_MAX];

    hf_buf_append(out, bytes, hf_varint_put(bytes, value));
}

static void write_number(struct hf_buf *out, uint32_t field)
{
    write_varint(out, HF_WIRE_NUMBER(field));
    write_varint(out, some_number());
}

static void write_bytes(struct hf_buf *out, uint32_t field, struct hf_bytes bytes)
{
    write_varint(out, HF_WIRE_BYTES(field));
    write_varint(out, bytes.len);
    hf_buf_append(out, bytes.data, bytes.len);
}

static void write_unknown(struct hf_buf *out)
{
    uint32_t field = 7 + (uint32_t)rng(rng(2) ? 100 : 536870000);

    switch (rng(4)) {
    case 0: write_number(out, field); break;
    case 1: write_bytes(out, field, some_bytes()); break;
    case 2:
        write_varint(out, HF_WIRE_NUMBER(field) | 1);
        hf_buf_append(out, "12345678", 8);
        break;
    default:
        write_varint(out, HF_WIRE_NUMBER(field) | 5);
        hf_buf_append(out, "1234", 4);
        break;
    }
}

/* Its fields in any order, any number of times. */
static void write_part(struct hf_buf *out, uint32_t field, bool is_kv)
{
    HF_CLEANUP_BUF struct hf_buf part = { 0 };

    for (uint64_t n = rng(12); n > 0; n--) {
        uint32_t inner = 1 + (uint32_t)rng(is_kv ? 7 : 5);

        if (inner == (is_kv ? 7 : 5))
            write_unknown(&part);
        else if (is_kv && (inner == 1 || inner == 5))
            write_bytes(&part, inner, some_bytes());
        else
            write_number(&part, inner);
    }
    write_bytes(out, field, (struct hf_bytes){ .data = part.data, .len = part.len });
}

static void write_any_answer(struct hf_buf *out)
{
    for (uint64_t n = rng(12); n > 0; n--) {
        switch (rng(8)) {
        case 0: write_unknown(out); break;
        case 1: write_part(out, 1, false); break;
        case 2: write_number(out, 3); break;
        case 3: write_number(out, 4); break;
        default: write_part(out, 2, true); break;
        }
    }
}

START_TEST(any_order_repetition_and_unknown_field_is_read_as_protobuf_reads_it)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    rng_state = (uint64_t)_i;
    for (int round = 0; round < 3000; round++) {
        hf_buf_clear(&out);
        write_any_answer(&out);
        ck_assert_int_eq(out.err, HF_OK);
        expect_agreement((struct hf_bytes){ .data = out.data, .len = out.len }, true);
    }
}
END_TEST

enum { KVS_MAX = 40 };

static void pack_some_answer(struct hf_buf *out)
{
    Etcdserverpb__RangeResponse answer = ETCDSERVERPB__RANGE_RESPONSE__INIT;
    Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
    Etcdserverpb__KeyValue kvs[KVS_MAX];
    Etcdserverpb__KeyValue *kv_list[KVS_MAX];

    header.cluster_id = some_number();
    header.member_id = some_number();
    header.revision = (int64_t)some_number();
    header.raft_term = some_number();
    answer.header = rng(8) ? &header : NULL;
    answer.more = rng(2) != 0;
    answer.count = (int64_t)some_number();
    answer.n_kvs = rng(KVS_MAX);
    answer.kvs = kv_list;
    for (size_t i = 0; i < answer.n_kvs; i++) {
        etcdserverpb__key_value__init(&kvs[i]);
        kvs[i].key = hf_bytes_to(some_bytes());
        kvs[i].value = hf_bytes_to(some_bytes());
        kvs[i].create_revision = (int64_t)some_number();
        kvs[i].mod_revision = (int64_t)some_number();
        kvs[i].version = (int64_t)some_number();
        kvs[i].lease = (int64_t)some_number();
        kv_list[i] = &kvs[i];
    }
    uint8_t *room = (uint8_t *)hf_buf_reserve(
        out, etcdserverpb__range_response__get_packed_size(&answer) + 1);
    ck_assert_ptr_nonnull(room);
    out->len += etcdserverpb__range_response__pack(&answer, room);
}

START_TEST(what_protobuf_packs_is_read_as_it_unpacks_it)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    rng_state = 1000 + (uint64_t)_i;
    for (int round = 0; round < 500; round++) {
        hf_buf_clear(&out);
        pack_some_answer(&out);
        expect_agreement((struct hf_bytes){ .data = out.data, .len = out.len }, true);
    }
}
END_TEST

START_TEST(any_beginning_of_an_answer_is_read_as_protobuf_reads_it)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    rng_state = 2000;
    for (unsigned answers = 0; answers < 20;) {
        hf_buf_clear(&out);
        pack_some_answer(&out);
        if (out.len > 3000)
            continue;
        for (size_t len = 0; len < out.len; len++)
            expect_agreement((struct hf_bytes){ .data = out.data, .len = len }, false);
        answers++;
    }
}
END_TEST

START_TEST(an_answer_without_fields_is_an_empty_list)
{
    struct hf_range_result result;

    ck_assert(read_range((struct hf_bytes){ 0 }, &result));
    ck_assert_uint_eq(result.count, 0);
    ck_assert_int_eq(result.total, 0);
    ck_assert_int_eq(result.result.header.revision, 0);
    ck_assert(!result.more);
    free((struct hf_kv *)result.kvs);
}
END_TEST

START_TEST(of_two_headers_the_last_one_counts)
{
    struct hf_bytes body = MESSAGE("\x0a\x04\x08\x07\x18\x05" /* cluster 7, revision 5 */
                                   "\x0a\x02\x18\x06");       /* revision 6 */
    struct hf_range_result result;

    expect_agreement(body, true);
    ck_assert(read_range(body, &result));
    ck_assert_uint_eq(result.result.header.cluster_id, 0);
    ck_assert_int_eq(result.result.header.revision, 6);
    free((struct hf_kv *)result.kvs);
}
END_TEST

START_TEST(fields_of_an_unexpected_kind_are_not_taken_for_ours)
{
    struct hf_bytes body = MESSAGE("\x20\x03"                             /* 3 keys in all */
                                   "\x08\x01\x10\x02"                     /* header, kvs */
                                   "\x1a\x01\x01"                         /* more */
                                   "\x21\x01\x02\x03\x04\x05\x06\x07\x08" /* total */
                                   "\x12\x0a\x0a\x01k"                    /* one key: "k", */
                                   "\x08\x01\x1d\x01\x02\x03\x04");       /* key, mod_rev */
    struct hf_range_result result;

    ck_assert(read_range(body, &result));
    ck_assert_int_eq(result.total, 3);
    ck_assert(!result.more);
    ck_assert_uint_eq(result.count, 1);
    ck_assert(bytes_agree(result.kvs[0].key, hf_bytes_of("k")));
    ck_assert_int_eq(result.kvs[0].mod_rev, 0);
    free((struct hf_kv *)result.kvs);
}
END_TEST

static const struct hf_bytes BROKEN_ANSWERS[] = {
    MESSAGE("\x20"),                      /* no total */
    MESSAGE("\x20\x01\x12\x05\x0a\x01k"), /* a key beyond the end */
    MESSAGE("\x12\x03\x0a\x05k\x20\x01"), /* a key beyond the end of its pair */
    MESSAGE("\x12\x02\x18\x80\x20\x01"),  /* a revision beyond the end of its pair */
    MESSAGE("\x0a\x01\x18\x20\x01"),      /* a header without its revision */
    MESSAGE("\x20\x01\x0c"),              /* the end of a group */
};

START_TEST(a_broken_answer_is_none)
{
    struct hf_range_result result;

    expect_agreement(BROKEN_ANSWERS[_i], false);
    ck_assert(!read_range(BROKEN_ANSWERS[_i], &result));
}
END_TEST

/* Answers in pieces. */

enum { PIECES_MAX = 400 };

/* A message, cut up anywhere; each piece has memory of its own. */
struct cut {
    struct hf_bytes pieces[PIECES_MAX];
    size_t count;
    struct hf_arena arena;
    struct hf_bytes runs[2 * PIECES_MAX];
    size_t run_count;
};

static void add_piece(struct cut *cut, const uint8_t *bytes, size_t len)
{
    ck_assert_uint_lt(cut->count, PIECES_MAX);
    cut->pieces[cut->count++] = (struct hf_bytes){ .data = copy_of(bytes, len), .len = len };
}

/* Pieces of at most `longest` bytes, some of them empty. */
static void cut_up(struct cut *cut, struct hf_bytes body, size_t longest)
{
    const uint8_t *at = body.data, *end = at + body.len;

    memset(cut, 0, sizeof *cut);
    while (at < end) {
        size_t len = rng(longest + 1);

        if (len > (size_t)(end - at) || cut->count + 2 == PIECES_MAX)
            len = (size_t)(end - at);
        add_piece(cut, at, len);
        at += len;
    }
}

static void done(struct cut *cut)
{
    for (size_t i = 0; i < cut->count; i++)
        free((void *)cut->pieces[i].data);
    hf_arena_clear(&cut->arena, 0);
}

static int find_runs(struct cut *cut)
{
    memset(cut->runs, 0xee, sizeof cut->runs);
    return hf_wire_cut(cut->pieces, cut->count, &cut->arena, cut->runs, &cut->run_count);
}

static bool same_answers(const struct hf_range_result *a, const struct hf_range_result *b)
{
    bool same = headers_agree(&a->result.header, &b->result.header) && a->count == b->count &&
                a->more == b->more && a->total == b->total;

    for (size_t i = 0; same && i < a->count; i++)
        same = kvs_agree(&a->kvs[i], &b->kvs[i]);
    return same;
}

/* However it is cut, it is the same message; and where it is none, it stays none. */
static bool expect_same_in_pieces(struct hf_bytes body, size_t longest)
{
    struct hf_range_result whole, parts;
    bool is_whole = read_range(body, &whole);
    struct cut cut;
    int err;

    cut_up(&cut, body, longest);
    err = find_runs(&cut);
    ck_assert(err == HF_OK || (err == HF_ECORRUPT && !is_whole));
    if (err == HF_OK) {
        ck_assert_uint_le(cut.run_count, 2 * cut.count);
        ck_assert_int_eq(read_runs(cut.runs, cut.run_count, &parts), is_whole);
    }
    if (is_whole) {
        ck_assert(same_answers(&whole, &parts));
        free((struct hf_kv *)whole.kvs);
        free((struct hf_kv *)parts.kvs);
    }
    done(&cut);
    return is_whole;
}

START_TEST(an_answer_in_pieces_is_the_same_answer)
{
    static const size_t LONGEST[] = { 1, 2, 7, 40, 1000, 100000 };
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    rng_state = 500 + (uint64_t)_i;
    for (int n = 0; n < 400; n++) {
        hf_buf_clear(&out);
        write_any_answer(&out);
        ck_assert(expect_same_in_pieces((struct hf_bytes){ .data = out.data, .len = out.len },
                                        LONGEST[_i]));
    }
}
END_TEST

START_TEST(an_answer_in_pieces_that_is_cut_off_or_spoiled_is_none)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    rng_state = 900 + (uint64_t)_i;
    for (int n = 0; n < 600; n++) {
        hf_buf_clear(&out);
        do
            write_any_answer(&out);
        while (out.len == 0);
        if (rng(2))
            ((uint8_t *)out.data)[rng(out.len < 40 ? out.len : 40)] = (uint8_t)rng(256);
        (void)expect_same_in_pieces((struct hf_bytes){ .data = out.data, .len = rng(out.len) },
                                    1 + rng(30));
    }
}
END_TEST

/* Each of them is as long as its tag says, and yet no field; if one were taken for a run, there
 * would be more runs than there is room for. */
START_TEST(what_is_broken_within_a_piece_is_not_put_together)
{
    static const uint8_t FIELDS_0[] = "\x00\x01\x00\x01\x00\x01\x00\x01";
    struct cut cut = { .count = 0 };

    add_piece(&cut, FIELDS_0, sizeof FIELDS_0 - 1);
    add_piece(&cut, FIELDS_0, sizeof FIELDS_0 - 1);
    ck_assert_int_eq(find_runs(&cut), HF_ECORRUPT);
    done(&cut);
}
END_TEST

START_TEST(only_what_crosses_between_pieces_is_copied)
{
    static const struct hf_bytes BODY = MESSAGE("\x20\x03\x12\x03\x0a\x01k\x12\x03\x0a\x01l");
    const uint8_t *bytes = BODY.data;
    struct cut cut = { .count = 0 };

    add_piece(&cut, bytes, 4); /* the total, and the first pair's length */
    add_piece(&cut, bytes + 4, BODY.len - 4);
    ck_assert_int_eq(find_runs(&cut), HF_OK);
    ck_assert_uint_eq(cut.run_count, 3);
    ck_assert_ptr_eq(cut.runs[0].data, cut.pieces[0].data);
    ck_assert(bytes_agree(cut.runs[1], (struct hf_bytes)MESSAGE("\x12\x03\x0a\x01k")));
    ck_assert_ptr_eq(cut.runs[2].data, (const uint8_t *)cut.pieces[1].data + 3);
    ck_assert_uint_eq(cut.runs[2].len, 5);
    done(&cut);
}
END_TEST

START_TEST(no_piece_is_no_run)
{
    struct cut cut = { .count = 0 };

    ck_assert_int_eq(find_runs(&cut), HF_OK);
    ck_assert_uint_eq(cut.run_count, 0);
    add_piece(&cut, NULL, 0);
    ck_assert_int_eq(find_runs(&cut), HF_OK);
    ck_assert_uint_eq(cut.run_count, 0);
    done(&cut);
}
END_TEST

static int cut_under_chaos(void *arg)
{
    struct cut *cut = arg;
    int err = find_runs(cut);

    hft_chaos_stop();
    hf_arena_clear(&cut->arena, 0);
    return err;
}

START_TEST(there_may_be_no_memory_for_what_crosses)
{
    static const uint8_t NOISE[60000];
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    struct cut cut;

    rng_state = 7;
    for (int n = 0; n < 3; n++)
        write_bytes(&out, 2, (struct hf_bytes){ .data = NOISE, .len = sizeof NOISE });
    cut_up(&cut, (struct hf_bytes){ .data = out.data, .len = out.len }, 9000);
    ck_assert_uint_ge(hft_chaos_run(cut_under_chaos, &cut), 2);
    done(&cut);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("wire");

    tcase_set_timeout(t, 20);
    tcase_add_loop_test(t, a_number_is_read_back_from_as_few_bytes_as_it_needs, 0,
                        COUNT(NUMBERS));
    tcase_add_test(t, every_bit_of_a_number_survives);
    tcase_add_test(t, a_number_that_is_cut_off_is_none);
    tcase_add_test(t, a_number_in_more_bytes_than_it_needs_is_the_same_number);
    tcase_add_test(t, a_number_of_more_than_64_bits_is_none);
    tcase_add_test(t, every_kind_of_field_is_walked);
    tcase_add_test(t, nothing_is_a_message_without_fields);
    tcase_add_loop_test(t, a_broken_message_ends_the_walk_for_good, 0, COUNT(BROKEN));
    tcase_add_loop_test(t, any_order_repetition_and_unknown_field_is_read_as_protobuf_reads_it,
                        0, 4);
    tcase_add_loop_test(t, what_protobuf_packs_is_read_as_it_unpacks_it, 0, 4);
    tcase_add_test(t, any_beginning_of_an_answer_is_read_as_protobuf_reads_it);
    tcase_add_test(t, an_answer_without_fields_is_an_empty_list);
    tcase_add_test(t, of_two_headers_the_last_one_counts);
    tcase_add_test(t, fields_of_an_unexpected_kind_are_not_taken_for_ours);
    tcase_add_loop_test(t, a_broken_answer_is_none, 0, COUNT(BROKEN_ANSWERS));
    tcase_add_loop_test(t, an_answer_in_pieces_is_the_same_answer, 0, 6);
    tcase_add_loop_test(t, an_answer_in_pieces_that_is_cut_off_or_spoiled_is_none, 0, 4);
    tcase_add_test(t, what_is_broken_within_a_piece_is_not_put_together);
    tcase_add_test(t, only_what_crosses_between_pieces_is_copied);
    tcase_add_test(t, no_piece_is_no_run);
    tcase_add_test(t, there_may_be_no_memory_for_what_crosses);
    return run("etcd/wire", t);
}
