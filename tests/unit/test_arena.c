/* What the arena gives out does not overlap, and goes as a whole. */
#include <stdalign.h>
#include <stdint.h>
#include <string.h>

#include "base/err.h"
#include "etcd/arena.h"
#include "etcd/rpc.pb-c.h"
#include "support/chaos.h"
#include "unit/suite.h"

enum { PIECES = 3000 };

#define MEGABYTE ((size_t)1024 * 1024)

static struct hf_arena arena;

static void teardown(void)
{
    hf_arena_clear(&arena, 0);
}

/* From a byte to more than any chunk; many small, few large. */
static size_t size_of(size_t piece)
{
    if (piece % 500 == 499)
        return 3 * MEGABYTE + piece;
    return piece % 50 == 49 ? 40000 + piece : piece % 97;
}

START_TEST(pieces_of_all_sizes_are_aligned_and_do_not_overlap)
{
    static unsigned char *pieces[PIECES];
    size_t spoiled = 0;

    for (size_t i = 0; i < PIECES; i++) {
        pieces[i] = hf_arena_alloc(&arena, size_of(i));
        ck_assert_ptr_nonnull(pieces[i]);
        ck_assert_uint_eq((uintptr_t)pieces[i] % alignof(max_align_t), 0);
        memset(pieces[i], (int)(i % 251), size_of(i));
    }
    for (size_t i = 0; i < PIECES; i++) {
        for (size_t at = 0; at < size_of(i); at++)
            spoiled += pieces[i][at] != i % 251;
    }
    ck_assert_uint_eq(spoiled, 0);
}
END_TEST

START_TEST(a_size_that_cannot_be_is_refused)
{
    ck_assert_ptr_null(hf_arena_alloc(&arena, SIZE_MAX));
    ck_assert_ptr_null(hf_arena_alloc(&arena, SIZE_MAX / 2 + 1));
    ck_assert_ptr_null(hf_arena_alloc(&arena, SIZE_MAX - alignof(max_align_t)));
    ck_assert_ptr_nonnull(hf_arena_alloc(&arena, 0));
    ck_assert_ptr_nonnull(hf_arena_alloc(&arena, 1));
}
END_TEST

/* How often the system is asked for memory while `size` bytes are taken in small pieces. */
static size_t chunks_for(size_t size)
{
    hft_chaos_fail_at(0, false);
    for (size_t taken = 0; taken < size; taken += 64)
        (void)hf_arena_alloc(&arena, 64);
    hft_chaos_stop();
    return hft_chaos_count();
}

START_TEST(many_small_pieces_need_few_chunks)
{
    size_t chunks = chunks_for(16 * MEGABYTE);

    ck_assert_uint_ge(chunks, 16);
    ck_assert_uint_le(chunks, 24); /* they double up to a megabyte */
}
END_TEST

START_TEST(the_next_message_of_that_size_needs_no_new_memory)
{
    ck_assert_uint_gt(chunks_for(8000), 0);
    for (int message = 0; message < 3; message++) {
        hf_arena_clear(&arena, MEGABYTE);
        ck_assert_uint_eq(chunks_for(8000), 0);
    }
}
END_TEST

START_TEST(no_more_is_kept_than_asked_for)
{
    ck_assert_ptr_nonnull(hf_arena_alloc(&arena, 5 * MEGABYTE));
    hf_arena_clear(&arena, MEGABYTE);
    ck_assert_uint_eq(chunks_for(64), 1);
    hf_arena_clear(&arena, 0);
    ck_assert_ptr_null(arena.chunks);
    ck_assert_uint_eq(chunks_for(64), 1);
}
END_TEST

START_TEST(of_many_chunks_one_is_kept)
{
    ck_assert_uint_gt(chunks_for(3 * MEGABYTE), 3);
    hf_arena_clear(&arena, MEGABYTE);
    ck_assert_uint_eq(chunks_for(MEGABYTE / 2), 0);
    ck_assert_uint_eq(chunks_for(MEGABYTE), 1); /* the others are gone */
}
END_TEST

/* A message that protobuf-c takes apart in the arena. */
enum { EVENTS = 400 };

static uint8_t packed[64 * 1024];
static size_t packed_len;

static void pack_events(void)
{
    Etcdserverpb__WatchResponse answer = ETCDSERVERPB__WATCH_RESPONSE__INIT;
    static Etcdserverpb__Event events[EVENTS];
    static Etcdserverpb__KeyValue kvs[EVENTS];
    static Etcdserverpb__Event *list[EVENTS];
    static char value[] = "what an event brings";

    for (size_t i = 0; i < EVENTS; i++) {
        etcdserverpb__key_value__init(&kvs[i]);
        kvs[i].value = (ProtobufCBinaryData){ .data = (uint8_t *)value, .len = sizeof value };
        kvs[i].mod_revision = (int64_t)i + 1;
        etcdserverpb__event__init(&events[i]);
        events[i].kv = &kvs[i];
        list[i] = &events[i];
    }
    answer.events = list;
    answer.n_events = EVENTS;
    ck_assert_uint_le(etcdserverpb__watch_response__get_packed_size(&answer), sizeof packed);
    packed_len = etcdserverpb__watch_response__pack(&answer, packed);
}

START_TEST(a_message_is_unpacked_into_it_and_goes_with_it)
{
    ProtobufCAllocator allocator = hf_arena_allocator(&arena);
    int64_t sum = 0;

    pack_events();
    for (int message = 0; message < 3; message++) {
        Etcdserverpb__WatchResponse *answer =
            etcdserverpb__watch_response__unpack(&allocator, packed_len, packed);

        ck_assert_ptr_nonnull(answer);
        ck_assert_uint_eq(answer->n_events, EVENTS);
        for (size_t i = 0; i < EVENTS; i++)
            sum += answer->events[i]->kv->mod_revision;
        hf_arena_clear(&arena, MEGABYTE);
    }
    ck_assert_int_eq(sum, (int64_t)3 * EVENTS * (EVENTS + 1) / 2);
}
END_TEST

static int unpack_under_chaos(void *arg)
{
    struct hf_arena own = { 0 };
    ProtobufCAllocator allocator = hf_arena_allocator(&own);
    const void *answer = etcdserverpb__watch_response__unpack(&allocator, packed_len, packed);

    (void)arg;
    hft_chaos_stop();
    hf_arena_clear(&own, 0);
    return answer != NULL ? HF_OK : HF_ENOMEM;
}

START_TEST(every_allocation_may_fail)
{
    pack_events();
    ck_assert_uint_ge(hft_chaos_run(unpack_under_chaos, NULL), 2);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("arena");

    tcase_set_timeout(t, 20);
    tcase_add_checked_fixture(t, NULL, teardown);
    tcase_add_test(t, pieces_of_all_sizes_are_aligned_and_do_not_overlap);
    tcase_add_test(t, a_size_that_cannot_be_is_refused);
    tcase_add_test(t, many_small_pieces_need_few_chunks);
    tcase_add_test(t, the_next_message_of_that_size_needs_no_new_memory);
    tcase_add_test(t, no_more_is_kept_than_asked_for);
    tcase_add_test(t, of_many_chunks_one_is_kept);
    tcase_add_test(t, a_message_is_unpacked_into_it_and_goes_with_it);
    tcase_add_test(t, every_allocation_may_fail);
    return run("etcd/arena", t);
}
