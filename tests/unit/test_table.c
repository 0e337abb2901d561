/* The table against an array that is searched from one end to the other. */
#include <stdio.h>
#include <string.h>

#include "etcd/table.h"
#include "support/chaos.h"
#include "unit/suite.h"

enum { KEYS_MAX = 2000, KEY_ROOM = 32 };

static struct hf_table table;

/* What the table should hold. */
static struct {
    uint8_t key[KEY_ROOM];
    size_t key_len;
    struct hf_kv kv;
    unsigned visits;
    bool is_there;
} oracle[KEYS_MAX];

static size_t key_count;
static uint64_t rng_state;

static size_t rng(size_t below)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (rng_state >> 33) % below;
}

/* Keys of all lengths, with NULs in them, of which some differ in one byte only. */
static void make_keys(size_t count)
{
    key_count = count;
    memset(oracle, 0, sizeof oracle);
    for (size_t i = 1; i < count; i++) { /* the first is empty */
        oracle[i].key_len = sizeof(uint16_t) + rng(KEY_ROOM - sizeof(uint16_t));
        uint16_t number = (uint16_t)i;
        memcpy(oracle[i].key + oracle[i].key_len - sizeof number, &number, sizeof number);
    }
}

static struct hf_bytes key_of(size_t i)
{
    return (struct hf_bytes){ .data = oracle[i].key, .len = oracle[i].key_len };
}

static int64_t some_number(void)
{
    static const int64_t ODD[] = { 0, 1, -1, INT64_MAX, INT64_MIN, 127, 128, INT64_MIN + 1 };

    return rng(4) == 0 ? ODD[rng(COUNT(ODD))] : (int64_t)(rng_state >> rng(64));
}

static size_t count_oracle(void)
{
    size_t count = 0;

    for (size_t i = 0; i < key_count; i++)
        count += oracle[i].is_there;
    return count;
}

static size_t index_of(const struct hf_entry *entry)
{
    for (size_t i = 0; i < key_count; i++) {
        if (oracle[i].key_len == entry->key_len &&
            memcmp(oracle[i].key, entry->bytes, entry->key_len) == 0)
            return i;
    }
    ck_abort_msg("the table has a key that was never put");
}

/* One assertion for all of it: Check is slow. */
static bool is_as_put(const struct hf_entry *entry, const struct hf_kv *want)
{
    struct hf_kv kv = hf_entry_kv(entry);

    return kv.key.len == want->key.len &&
           memcmp(kv.key.data, want->key.data, kv.key.len) == 0 &&
           kv.value.len == want->value.len &&
           memcmp(kv.value.data, want->value.data, kv.value.len) == 0 &&
           kv.create_rev == want->create_rev && kv.mod_rev == want->mod_rev &&
           kv.version == want->version && kv.lease == want->lease &&
           entry->mod_rev == want->mod_rev && entry->seen == 0 && entry->dead == 0;
}

static void expect_entry(size_t i, const struct hf_entry *entry)
{
    bool is_right =
        oracle[i].is_there ? entry != NULL && is_as_put(entry, &oracle[i].kv) : entry == NULL;

    ck_assert_msg(is_right, "key %zu", i);
}

static void put(size_t i)
{
    static const char TEXT[] = "what a value may be, with a NUL \0 in it";
    size_t value_len = rng(sizeof TEXT);
    bool keep_value = rng(4) != 0;
    struct hf_kv kv = { .key = key_of(i),
                        .value = { .data = TEXT, .len = value_len },
                        .create_rev = some_number(),
                        .mod_rev = some_number(),
                        .version = some_number(),
                        .lease = some_number() };

    oracle[i].is_there = true;
    oracle[i].kv = kv;
    if (!keep_value)
        oracle[i].kv.value.len = 0;
    if (kv.key.len == 0)
        kv.key.data = NULL; /* as an answer has it that lacks the field */
    expect_entry(i, hf_table_put(&table, &kv, keep_value));
}

static void remove_key(size_t i)
{
    struct hf_entry *entry = hf_table_get(&table, key_of(i));

    expect_entry(i, entry);
    if (entry != NULL)
        hf_table_remove(&table, entry);
    oracle[i].is_there = false;
}

static void expect_all(void)
{
    size_t count = 0;

    ck_assert_uint_eq(table.count, count_oracle());
    for (size_t i = 0; i < key_count; i++)
        expect_entry(i, hf_table_get(&table, key_of(i)));
    for (size_t cursor = 0; hf_table_next(&table, &cursor) != NULL; cursor++)
        count++;
    ck_assert_uint_eq(count, table.count);
}

/* Few keys keep the table small and full, so that entries collide and wrap around its end. */
static const size_t KEY_COUNTS[] = { 2, 40, 49, 50, 98, 99, 400, KEYS_MAX };

START_TEST(after_any_puts_and_removals_it_holds_what_was_put_last)
{
    rng_state = (uint64_t)_i;
    table.seed = (uint64_t)_i * 0x123456789abcdef;
    make_keys(KEY_COUNTS[_i]);
    for (int round = 0; round < 20; round++) {
        size_t puts = rng(4); /* of four operations: grow, shrink, or stay */

        for (size_t n = 0; n < key_count; n++) {
            if (rng(4) <= puts)
                put(rng(key_count));
            else
                remove_key(rng(key_count));
        }
        expect_all();
    }
}
END_TEST

/* The seed decides which entries collide and wrap while the table grows. */
START_TEST(every_seed_finds_every_key)
{
    make_keys(120);
    for (uint64_t seed = 0; seed < 500; seed++) {
        size_t found = 0;

        hf_table_done(&table);
        table.seed = seed;
        for (size_t i = 0; i < key_count; i++) {
            struct hf_kv kv = { .key = key_of(i), .mod_rev = (hf_rev)i };

            (void)hf_table_put(&table, &kv, false);
        }
        for (size_t i = 0; i < key_count; i++) {
            const struct hf_entry *entry = hf_table_get(&table, key_of(i));

            found += entry != NULL && entry->mod_rev == (hf_rev)i;
        }
        ck_assert_uint_eq(found, key_count);
    }
}
END_TEST

/* Removes about one of `share` entries while walking. Whatever stays was visited, perhaps twice
 * when it moved from the beginning of the table to its end. */
static void sweep(size_t share)
{
    struct hf_entry *entry;
    size_t cursor = 0;

    for (size_t i = 0; i < key_count; i++)
        oracle[i].visits = 0;
    while ((entry = hf_table_next(&table, &cursor)) != NULL) {
        size_t i = index_of(entry);

        oracle[i].visits++;
        if (rng(share) == 0) {
            hf_table_remove(&table, entry);
            oracle[i].is_there = false;
        } else {
            cursor++;
        }
    }
    for (size_t i = 0; i < key_count; i++)
        ck_assert(!oracle[i].is_there || oracle[i].visits == 1 || oracle[i].visits == 2);
}

START_TEST(a_walk_that_removes_misses_no_entry)
{
    rng_state = 77 + (uint64_t)_i;
    table.seed = (uint64_t)_i;
    make_keys(48); /* as many as the smallest table holds */
    for (int round = 0; round < 300; round++) {
        for (size_t i = 0; i < key_count; i++)
            put(i);
        ck_assert_uint_eq(table.mask, 63);
        sweep(1 + rng(5));
        expect_all();
    }
}
END_TEST

START_TEST(an_empty_table_has_nothing_and_can_be_emptied)
{
    size_t cursor = 0;

    ck_assert_ptr_null(hf_table_get(&table, hf_bytes_of("a")));
    ck_assert_ptr_null(hf_table_next(&table, &cursor));
    hf_table_done(&table);
    make_keys(10);
    put(3);
    hf_table_done(&table);
    ck_assert_uint_eq(table.count, 0);
    ck_assert_ptr_null(hf_table_get(&table, key_of(3)));
    put(4);
    ck_assert_uint_eq(table.count, 1);
}
END_TEST

START_TEST(marks_stay_until_the_key_is_put_again)
{
    make_keys(200);
    put(1);
    struct hf_entry *entry = hf_table_get(&table, key_of(1));
    entry->seen = INT32_MAX;
    entry->dead = 1;
    for (size_t i = 2; i < key_count; i++) /* it moves into larger tables meanwhile */
        put(i);
    ck_assert_ptr_eq(hf_table_get(&table, key_of(1)), entry);
    ck_assert_uint_eq(entry->seen, INT32_MAX);
    ck_assert_uint_eq(entry->dead, 1);
    put(1);
    expect_entry(1, hf_table_get(&table, key_of(1)));
}
END_TEST

static const struct {
    hf_rev create_rev, mod_rev;
    int64_t version, lease;
} NUMBERS[] = {
    { 5, 5, 1, 0 },
    { 1, INT64_MAX, INT64_MAX, INT64_MAX },
    { 9, 3, 1, 7 }, /* created after it was modified */
    { INT64_MAX, INT64_MIN, INT64_MIN, -1 },
    { INT64_MIN, INT64_MAX, -1, INT64_MIN },
    { -1, 0, 0, 0x7fffffffffffff80 },
};

START_TEST(numbers_are_kept_whatever_a_server_makes_of_them)
{
    struct hf_kv kv = { .key = hf_bytes_of("k"),
                        .value = hf_bytes_of("v"),
                        .create_rev = NUMBERS[_i].create_rev,
                        .mod_rev = NUMBERS[_i].mod_rev,
                        .version = NUMBERS[_i].version,
                        .lease = NUMBERS[_i].lease };
    const struct hf_entry *entry = hf_table_put(&table, &kv, true);

    ck_assert_ptr_nonnull(entry);
    kv = hf_entry_kv(entry);
    ck_assert_int_eq(kv.create_rev, NUMBERS[_i].create_rev);
    ck_assert_int_eq(kv.mod_rev, NUMBERS[_i].mod_rev);
    ck_assert_int_eq(kv.version, NUMBERS[_i].version);
    ck_assert_int_eq(kv.lease, NUMBERS[_i].lease);
}
END_TEST

START_TEST(a_key_longer_than_can_be_is_refused)
{
    struct hf_kv kv = { .key = { .data = "k", .len = (size_t)UINT32_MAX + 1 } };

    ck_assert_ptr_null(hf_table_put(&table, &kv, false));
    ck_assert_uint_eq(table.count, 0);
}
END_TEST

enum { CHAOS_KEYS = 120 };

static struct hf_kv numbered(char *name, size_t size, int number)
{
    (void)snprintf(name, size, "key%d", number);
    return (struct hf_kv){ .key = hf_bytes_of(name), .mod_rev = number, .version = 1 };
}

/* Puts every key, and in the end the first one again; whatever fails, what was there stays. */
static int fill_under_chaos(void *arg)
{
    struct hf_table own = { .seed = 3 };
    bool is_intact = true, ok = true;
    char name[16];
    int done = 0;

    (void)arg;
    while (ok && done <= CHAOS_KEYS) {
        struct hf_kv kv = numbered(name, sizeof name, done % CHAOS_KEYS);

        ok = hf_table_put(&own, &kv, true) != NULL;
        done += ok;
    }
    hft_chaos_stop();
    for (int i = 0; i < done && i < CHAOS_KEYS; i++) {
        struct hf_kv kv = numbered(name, sizeof name, i);
        const struct hf_entry *entry = hf_table_get(&own, kv.key);

        is_intact = is_intact && entry != NULL && entry->mod_rev == i;
    }
    is_intact = is_intact && own.count == (size_t)(done < CHAOS_KEYS ? done : CHAOS_KEYS);
    hf_table_done(&own);
    ck_assert(is_intact);
    return ok ? HF_OK : HF_ENOMEM;
}

START_TEST(every_allocation_may_fail_and_the_table_stays_as_it_was)
{
    ck_assert_uint_gt(hft_chaos_run(fill_under_chaos, NULL), CHAOS_KEYS);
}
END_TEST

static void setup(void)
{
    table = (struct hf_table){ .seed = 42 };
}

static void teardown(void)
{
    hf_table_done(&table);
}

int main(void)
{
    TCase *t = tcase_create("table");

    tcase_set_timeout(t, 20);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, after_any_puts_and_removals_it_holds_what_was_put_last, 0,
                        COUNT(KEY_COUNTS));
    tcase_add_test(t, every_seed_finds_every_key);
    tcase_add_loop_test(t, a_walk_that_removes_misses_no_entry, 0, 8);
    tcase_add_test(t, an_empty_table_has_nothing_and_can_be_emptied);
    tcase_add_test(t, marks_stay_until_the_key_is_put_again);
    tcase_add_loop_test(t, numbers_are_kept_whatever_a_server_makes_of_them, 0, COUNT(NUMBERS));
    tcase_add_test(t, a_key_longer_than_can_be_is_refused);
    tcase_add_test(t, every_allocation_may_fail_and_the_table_stays_as_it_was);
    return run("etcd/table", t);
}
