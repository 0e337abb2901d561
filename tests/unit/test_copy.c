/* Lists and events in every order that a faulty etcd or network can bring them in. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "etcd/copy.h"
#include "support/chaos.h"
#include "support/suite.h"

enum { TOLD_MAX = 64 };

/* What the copy told, as text: "+a@5" put, "-a@6" deleted, with "?" when a list found it. */
static struct {
    char text[TOLD_MAX][24];
    size_t count;
} told;

static struct hf_copy copy;

/* Check writes to a pipe in every assertion, which is too much for every event of a property.
 */
#define EXPECT(condition)                                                                      \
    do {                                                                                       \
        if (!(condition))                                                                      \
            ck_abort_msg("not so: " #condition);                                               \
    } while (0)

static void on_change(const struct hf_change *change, void *arg)
{
    struct hf_kv kv;

    (void)arg;
    ck_assert_uint_lt(told.count, TOLD_MAX);
    (void)snprintf(told.text[told.count++], sizeof told.text[0], "%c%.*s@%lld%s",
                   change->deleted ? '-' : '+', (int)change->kv.key.len,
                   (const char *)change->kv.key.data, (long long)change->kv.mod_rev,
                   change->from_list ? "?" : "");
    /* The copy is as new as what it tells. */
    ck_assert_int_eq(hf_copy_get(&copy, change->kv.key, &kv), !change->deleted);
    if (!change->deleted)
        ck_assert_int_eq(kv.mod_rev, change->kv.mod_rev);
}

static void setup(void)
{
    told.count = 0;
    hf_copy_init(&copy, 7, true, on_change, NULL);
}

static void teardown(void)
{
    hf_copy_done(&copy);
}

static void expect_told(const char *const *want, size_t count)
{
    for (size_t i = 0; i < count && i < told.count; i++)
        ck_assert_str_eq(told.text[i], want[i]);
    ck_assert_uint_eq(told.count, count);
    told.count = 0;
}

#define EXPECT_TOLD(...)                                                                       \
    do {                                                                                       \
        const char *const want_[] = { __VA_ARGS__ };                                           \
        expect_told(want_, sizeof want_ / sizeof want_[0]);                                    \
    } while (0)
#define EXPECT_NOTHING_TOLD() ck_assert_uint_eq(told.count, 0)

static struct hf_kv kv_of(const char *key, hf_rev rev)
{
    return (struct hf_kv){ .key = hf_bytes_of(key),
                           .value = hf_bytes_of(key),
                           .create_rev = rev,
                           .mod_rev = rev,
                           .version = 1 };
}

static void put(const char *key, hf_rev rev)
{
    struct hf_kv kv = kv_of(key, rev);

    EXPECT(hf_copy_put(&copy, &kv));
}

static hf_rev listed_at = 10; /* the revision that lists are of */

static void list(const char *key, hf_rev rev)
{
    struct hf_kv kv = kv_of(key, rev);

    EXPECT(hf_copy_list(&copy, &kv, listed_at) == HF_OK);
}

static void erase(const char *key, hf_rev rev)
{
    EXPECT(hf_copy_delete(&copy, hf_bytes_of(key), rev));
}

static bool has(const char *key)
{
    struct hf_kv kv;

    return hf_copy_get(&copy, hf_bytes_of(key), &kv);
}

START_TEST(a_list_then_events_are_told_in_order)
{
    hf_copy_begin_list(&copy);
    list("a", 3);
    list("b", 5);
    hf_copy_end_list(&copy, 6);
    put("c", 7);
    put("a", 8);
    erase("b", 9);
    EXPECT_TOLD("+a@3?", "+b@5?", "+c@7", "+a@8", "-b@9");
    ck_assert_uint_eq(hf_copy_count(&copy), 2);
    ck_assert_uint_eq(copy.stale, 0);
}
END_TEST

START_TEST(w6_duplicates_and_older_events_of_a_key_are_dropped)
{
    put("a", 5);
    put("a", 7);
    told.count = 0;
    put("a", 7);
    put("a", 5);
    erase("a", 6);
    EXPECT_NOTHING_TOLD();
    ck_assert_uint_eq(copy.stale, 3);
    erase("a", 8);
    erase("a", 8);
    EXPECT_TOLD("-a@8");
    ck_assert_uint_eq(copy.stale, 4);
}
END_TEST

START_TEST(w5_events_that_were_lost_are_found_by_the_next_list)
{
    put("gone", 3);
    put("changed", 4);
    put("same", 5);
    told.count = 0;
    hf_copy_begin_list(&copy); /* lost: gone's deletion, a put of changed and one of new */
    list("changed", 9);
    list("new", 8);
    list("same", 5);
    hf_copy_end_list(&copy, 10);
    EXPECT_TOLD("+changed@9?", "+new@8?", "-gone@10?");
    ck_assert(!has("gone"));
}
END_TEST

START_TEST(a_list_of_what_is_known_tells_nothing)
{
    put("a", 3);
    put("b", 4);
    told.count = 0;
    for (int i = 0; i < 3; i++) {
        hf_copy_begin_list(&copy);
        list("a", 3);
        list("b", 4);
        hf_copy_end_list(&copy, 10 + i);
    }
    EXPECT_NOTHING_TOLD();
}
END_TEST

START_TEST(a_list_that_contradicts_what_was_known_is_of_another_history)
{
    struct hf_kv absent = kv_of("b", 6);
    struct hf_kv changed = kv_of("a", 7);
    struct hf_kv undone = kv_of("c", 11);

    hf_copy_begin_list(&copy);
    list("a", 3);
    hf_copy_end_list(&copy, 10);
    put("c", 12);
    told.count = 0;
    hf_copy_begin_list(&copy);
    ck_assert_int_eq(hf_copy_list(&copy, &absent, 12), HF_EHISTORY);
    ck_assert_int_eq(hf_copy_list(&copy, &changed, 12), HF_EHISTORY);
    ck_assert_int_eq(hf_copy_list(&copy, &undone, 12), HF_EHISTORY);
    ck_assert_int_eq(hf_copy_list(&copy, &undone, 11), HF_OK);
    EXPECT_NOTHING_TOLD();
    hf_copy_clear(&copy);
    hf_copy_begin_list(&copy);
    list("b", 6);
    hf_copy_end_list(&copy, 9);
    EXPECT_TOLD("+b@6?");
}
END_TEST

START_TEST(an_older_page_neither_undoes_a_put_nor_brings_back_a_deleted_key)
{
    put("a", 3);
    put("b", 4);
    told.count = 0;
    hf_copy_begin_list(&copy); /* at revision 10 */
    put("a", 11);
    erase("b", 12);
    list("a", 3);
    list("b", 4);
    hf_copy_end_list(&copy, 10);
    EXPECT_TOLD("+a@11", "-b@12");
    ck_assert(has("a"));
    ck_assert(!has("b"));
    ck_assert_uint_eq(hf_copy_count(&copy), 1);
}
END_TEST

START_TEST(a_page_does_not_bring_back_a_key_whose_put_was_lost_and_whose_deletion_was_not)
{
    hf_copy_begin_list(&copy); /* at revision 10; the put at 4 was lost */
    erase("a", 11);
    list("a", 4);
    hf_copy_end_list(&copy, 10);
    EXPECT_NOTHING_TOLD();
    ck_assert_uint_eq(hf_copy_count(&copy), 0);
}
END_TEST

START_TEST(a_key_deleted_twice_during_a_list_stays_deleted_as_of_the_later_one)
{
    put("a", 3);
    told.count = 0;
    hf_copy_begin_list(&copy); /* at revision 10, when it had been put anew at 8 */
    erase("a", 7);
    erase("a", 11); /* the put at 8 was lost */
    list("a", 8);
    hf_copy_end_list(&copy, 10);
    EXPECT_TOLD("-a@7");
    ck_assert(!has("a"));
}
END_TEST

START_TEST(a_key_that_lived_only_before_the_list_goes_although_its_put_came_during_it)
{
    hf_copy_begin_list(&copy); /* at revision 10: put at 8, deleted at 9 */
    put("a", 8);
    hf_copy_end_list(&copy, 10);
    /* The deletion at 9 is older than the list: whoever resumes after it never hears of it. */
    EXPECT_TOLD("+a@8", "-a@10?");
    ck_assert(!has("a"));
}
END_TEST

START_TEST(a_key_put_after_the_list_stays_although_the_list_lacks_it)
{
    hf_copy_begin_list(&copy); /* at revision 10 */
    put("a", 11);
    hf_copy_end_list(&copy, 10);
    EXPECT_TOLD("+a@11");
    ck_assert(has("a"));
}
END_TEST

START_TEST(a_key_deleted_and_put_again_during_a_list_is_there)
{
    put("a", 3);
    told.count = 0;
    hf_copy_begin_list(&copy);
    erase("a", 11);
    put("a", 12);
    list("a", 3);
    hf_copy_end_list(&copy, 10);
    EXPECT_TOLD("-a@11", "+a@12");
    ck_assert_uint_eq(hf_copy_count(&copy), 1);
}
END_TEST

START_TEST(a_list_that_is_dropped_deletes_nothing)
{
    put("a", 3);
    put("b", 4);
    told.count = 0;
    hf_copy_begin_list(&copy);
    erase("a", 11);
    erase("unknown", 12);
    ck_assert_uint_eq(hf_copy_count(&copy), 1);
    hf_copy_drop_list(&copy);
    EXPECT_TOLD("-a@11");
    ck_assert(has("b"));
    ck_assert_uint_eq(hf_copy_count(&copy), 1);
    hf_copy_begin_list(&copy);
    list("b", 4);
    hf_copy_end_list(&copy, 13);
    EXPECT_NOTHING_TOLD();
    ck_assert_uint_eq(copy.table.count, 1); /* what a complete list covers is forgotten */
}
END_TEST

/* etcd was restored from before the deletion, and written past it. */
START_TEST(a_deleted_key_that_a_list_has_from_before_is_of_another_history)
{
    struct hf_kv old = kv_of("a", 4);

    put("a", 4);
    erase("a", 33);
    told.count = 0;
    hf_copy_begin_list(&copy);
    ck_assert_int_eq(hf_copy_list(&copy, &old, 59), HF_EHISTORY);
    EXPECT_NOTHING_TOLD();
    hf_copy_drop_list(&copy);
    ck_assert(!has("a"));
    put("a", 60); /* and if it was put again since, all is well */
    hf_copy_begin_list(&copy);
    list("a", 60);
    hf_copy_end_list(&copy, 61);
    EXPECT_TOLD("+a@60");
}
END_TEST

START_TEST(so_many_deletions_are_remembered_and_no_more)
{
    size_t most = 0;
    char key[16];

    copy.fn = NULL; /* it would be told too much */
    for (int i = 0; i < 20000; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        put(key, 2 * i + 1);
        erase(key, 2 * i + 2);
        most = copy.dead > most ? copy.dead : most;
    }
    ck_assert_uint_eq(hf_copy_count(&copy), 0);
    ck_assert_uint_gt(most, 1000);
    ck_assert_uint_lt(most, 10000);
    ck_assert_uint_eq(copy.table.count, copy.dead);
}
END_TEST

START_TEST(a_cleared_copy_is_empty_and_silent_and_can_be_filled_again)
{
    put("a", 100);
    hf_copy_begin_list(&copy);
    erase("a", 101);
    told.count = 0;
    hf_copy_clear(&copy);
    EXPECT_NOTHING_TOLD();
    ck_assert_uint_eq(hf_copy_count(&copy), 0);
    hf_copy_begin_list(&copy);
    list("a", 5); /* the history went back: the guard must not remember 101 */
    hf_copy_end_list(&copy, 6);
    EXPECT_TOLD("+a@5?");
}
END_TEST

static void stop_at_first(const struct hf_change *change, void *arg)
{
    (void)change;
    ++*(unsigned *)arg;
    hf_copy_stop(&copy);
}

START_TEST(a_copy_stopped_from_inside_tells_nothing_more)
{
    unsigned count = 0;

    put("a", 3);
    put("b", 4);
    put("c", 5);
    copy.fn = stop_at_first;
    copy.arg = &count;
    hf_copy_begin_list(&copy);
    hf_copy_end_list(&copy, 10);
    put("d", 11);
    ck_assert_uint_eq(count, 1);
}
END_TEST

START_TEST(values_are_kept_only_when_asked_for)
{
    struct hf_kv kv;

    put("a", 3);
    ck_assert(hf_copy_get(&copy, hf_bytes_of("a"), &kv));
    ck_assert_uint_eq(kv.value.len, 1);
    hf_copy_done(&copy);
    hf_copy_init(&copy, 7, false, on_change, NULL);
    put("a", 3);
    ck_assert(hf_copy_get(&copy, hf_bytes_of("a"), &kv));
    ck_assert_uint_eq(kv.value.len, 0);
}
END_TEST

/* A store with a history: every change of it, in order, and its content at any revision. */
enum { KEYS = 12, REVS = 60 };

struct change {
    int key; /* of revision = its index */
    bool deleted;
};

static struct change history[REVS + 1];

static uint32_t rng_state;

static unsigned rng(unsigned below)
{
    rng_state = rng_state * 1664525u + 1013904223u;
    return (rng_state >> 8) % below;
}

/* Revision of the put of `key` that holds at `rev`, or 0. */
static hf_rev content_at(int key, hf_rev rev)
{
    for (; rev > 0; rev--) {
        if (history[rev].key == key)
            return history[rev].deleted ? 0 : rev;
    }
    return 0;
}

static void make_history(void)
{
    for (hf_rev rev = 1; rev <= REVS; rev++) {
        int key = (int)rng(KEYS);

        history[rev] =
            (struct change){ .key = key, .deleted = content_at(key, rev - 1) != 0 && rng(2) };
    }
}

static void name_of(int key, char *out)
{
    out[0] = (char)('a' + key);
    out[1] = '\0';
}

/* The consumer: replays what it is told, and insists on the order of each key. */
static struct {
    hf_rev holds[KEYS]; /* 0: not there */
    hf_rev newest[KEYS];
} consumer;

static void replay(const struct hf_change *change, void *arg)
{
    int key = *(const char *)change->kv.key.data - 'a';

    (void)arg;
    EXPECT(change->kv.mod_rev > consumer.newest[key]);
    EXPECT(!change->deleted || consumer.holds[key] != 0);
    consumer.newest[key] = change->kv.mod_rev;
    consumer.holds[key] = change->deleted ? 0 : change->kv.mod_rev;
}

static void deliver(hf_rev rev)
{
    char name[2];

    name_of(history[rev].key, name);
    if (history[rev].deleted)
        erase(name, rev);
    else
        put(name, rev);
}

/* One run: a watch from revision `from` on that loses some of its events before the list's
 * revision, and a list at `list_rev` whose keys come at any moment among the events. */
static void run_once(void)
{
    hf_rev list_rev = 20 + (hf_rev)rng(20), at = 1;
    int listed = 0;
    char name[2];

    listed_at = list_rev;
    hf_copy_begin_list(&copy);
    while (listed <= KEYS) {
        if (at <= REVS && rng(4) != 0) {
            if (at > list_rev || rng(4) != 0)
                deliver(at);
            at++;
            continue;
        }
        if (listed < KEYS && content_at(listed, list_rev) != 0) {
            name_of(listed, name);
            list(name, content_at(listed, list_rev));
        }
        listed++;
    }
    hf_copy_end_list(&copy, list_rev);
    for (; at <= REVS; at++) {
        if (at > list_rev)
            deliver(at);
    }
}

START_TEST(any_mixture_of_a_list_and_events_ends_in_the_truth)
{
    char name[2];

    for (int round = 0; round < 2000; round++) {
        rng_state = (uint32_t)(_i * 100000 + round);
        memset(&consumer, 0, sizeof consumer);
        make_history();
        copy.fn = replay;
        run_once();
        for (int key = 0; key < KEYS; key++) {
            struct hf_kv kv = { 0 };

            name_of(key, name);
            (void)hf_copy_get(&copy, hf_bytes_of(name), &kv);
            EXPECT(kv.mod_rev == content_at(key, REVS));
            EXPECT(consumer.holds[key] == content_at(key, REVS));
        }
        hf_copy_clear(&copy);
        ck_assert_uint_eq(copy.dead, 0);
    }
}
END_TEST

static void ignore(const struct hf_change *change, void *arg)
{
    (void)change;
    (void)arg;
}

static int fill_under_chaos(void *arg)
{
    struct hf_copy own;
    bool ok = true;
    char name[16];

    (void)arg;
    hf_copy_init(&own, 7, true, ignore, NULL);
    hf_copy_begin_list(&own);
    for (int i = 0; i < 100 && ok; i++) {
        (void)snprintf(name, sizeof name, "key%d", i);
        struct hf_kv kv = kv_of(name, i + 1);

        ok = i % 3 == 0   ? hf_copy_list(&own, &kv, 0) == HF_OK
             : i % 3 == 1 ? hf_copy_put(&own, &kv)
                          : hf_copy_delete(&own, kv.key, kv.mod_rev);
    }
    hf_copy_end_list(&own, 50);
    hf_copy_done(&own);
    hft_chaos_stop();
    return ok ? HF_OK : HF_ENOMEM;
}

START_TEST(every_allocation_may_fail)
{
    ck_assert_uint_gt(hft_chaos_run(fill_under_chaos, NULL), 90);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("copy");

    tcase_set_timeout(t, 20);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_list_then_events_are_told_in_order);
    tcase_add_test(t, w6_duplicates_and_older_events_of_a_key_are_dropped);
    tcase_add_test(t, w5_events_that_were_lost_are_found_by_the_next_list);
    tcase_add_test(t, a_list_of_what_is_known_tells_nothing);
    tcase_add_test(t, a_list_that_contradicts_what_was_known_is_of_another_history);
    tcase_add_test(t, an_older_page_neither_undoes_a_put_nor_brings_back_a_deleted_key);
    tcase_add_test(
        t, a_page_does_not_bring_back_a_key_whose_put_was_lost_and_whose_deletion_was_not);
    tcase_add_test(t, a_key_deleted_twice_during_a_list_stays_deleted_as_of_the_later_one);
    tcase_add_test(t,
                   a_key_that_lived_only_before_the_list_goes_although_its_put_came_during_it);
    tcase_add_test(t, a_key_put_after_the_list_stays_although_the_list_lacks_it);
    tcase_add_test(t, a_key_deleted_and_put_again_during_a_list_is_there);
    tcase_add_test(t, a_list_that_is_dropped_deletes_nothing);
    tcase_add_test(t, a_deleted_key_that_a_list_has_from_before_is_of_another_history);
    tcase_add_test(t, so_many_deletions_are_remembered_and_no_more);
    tcase_add_test(t, a_cleared_copy_is_empty_and_silent_and_can_be_filled_again);
    tcase_add_test(t, a_copy_stopped_from_inside_tells_nothing_more);
    tcase_add_test(t, values_are_kept_only_when_asked_for);
    tcase_add_loop_test(t, any_mixture_of_a_list_and_events_ends_in_the_truth, 0, 4);
    tcase_add_test(t, every_allocation_may_fail);
    return hft_suite_run("etcd/copy", t, NULL);
}
