/* The model etcd: watches, and what can be wrong with them. */
#include "unit/model_fixture.h"

START_TEST(a_watch_tells_what_happens_from_now_on)
{
    uint64_t id;

    put("a", "1");
    id = watch(0, one("a"), 0);
    ck_assert_int_eq(next_of(id), 0);
    put("a", "2");
    put("ab", "1");
    delete_range(all("a"));
    expect_event(id, "a", 3);
    ck_assert(equals(batch->events[0].kv.value, "2"));
    ck_assert_int_eq(batch->events[0].kv.create_rev, 2);
    ck_assert_int_eq(batch->events[0].kv.version, 2);
    ck_assert(!batch->events[0].deleted);
    expect_event(id, "a", 5);
    ck_assert(batch->events[0].deleted);
    ck_assert_int_eq(batch->events[0].kv.create_rev, 0);
    ck_assert_int_eq(batch->events[0].kv.version, 0);
    ck_assert_int_eq(batch->header.revision, 5);
    ck_assert_int_eq(next_of(id), 0);
}
END_TEST

START_TEST(a_batch_is_all_of_one_revision_and_nothing_else)
{
    struct hfs_op ops[] = { put_op("a/2", "1", 0), put_op("b", "1", 0), put_op("a/1", "1", 0) };
    uint64_t id = watch(0, all("a/"), 0);

    ask((struct hfs_request){ .kind = HFS_TXN, .txn.then = { ops, 3 } });
    put("a/3", "1");
    ck_assert_int_eq(next_of(id), 1);
    ck_assert_uint_eq(batch->count, 2);
    ck_assert(equals(batch->events[0].kv.key, "a/2"));
    ck_assert(equals(batch->events[1].kv.key, "a/1"));
    expect_event(id, "a/3", 3);
}
END_TEST

START_TEST(a_watch_may_begin_in_the_past_and_in_the_future)
{
    uint64_t past, future;

    put("a", "1");
    put("a", "2");
    past = watch(0, all(""), 2);
    future = watch(0, all(""), 5);
    expect_event(past, "a", 2);
    expect_event(past, "a", 3);
    put("a", "3");
    ck_assert_int_eq(next_of(future), 0);
    put("a", "4");
    expect_event(future, "a", 5);
    ck_assert_int_eq(next_of(future), 0);
}
END_TEST

START_TEST(a_watch_from_before_the_compaction_ends)
{
    uint64_t id, other;

    put("a", "1");
    put("a", "2");
    put("a", "3");
    id = watch(0, one("a"), 0);
    ck_assert_int_eq(next_of(id), 0);
    compact(3);
    put("a", "4");
    expect_event(id, "a", 5); /* it had seen all that went */
    other = watch(0, one("a"), 2);
    ck_assert_int_eq(next_of(other), HF_ECOMPACT);
    ck_assert_int_eq(next_of(other), HF_ENOENT);
    other = watch(0, one("a"), 3);
    expect_event(other, "a", 3);
}
END_TEST

START_TEST(w5_a_watch_from_the_compacted_revision_misses_its_deletions)
{
    struct hfs_op ops[] = { delete_op(one("a")), put_op("b", "1", 0) };
    uint64_t id;

    put("a", "1");
    ask((struct hfs_request){ .kind = HFS_TXN, .txn.then = { ops, 2 } });
    compact(3);
    id = watch(0, all(""), 3);
    expect_event(id, "b", 3);
    ck_assert_int_eq(next_of(id), 0);
}
END_TEST

START_TEST(a_cancelled_watch_is_gone)
{
    uint64_t first = watch(0, one("a"), 0), second = watch(0, one("a"), 0);

    put("a", "1");
    hfs_watch_cancel(etcd, first);
    hfs_watch_cancel(etcd, first);
    ck_assert_int_eq(next_of(first), HF_ENOENT);
    expect_event(second, "a", 2);
}
END_TEST

START_TEST(no_more_watches_than_there_is_room_for)
{
    struct hfs_range range = one("a");
    uint64_t id;

    setup_with((struct hfs_etcd_config){ .max_watches = 1 });
    watch(0, range, 0);
    ck_assert_int_eq(hfs_watch_open(etcd, 0, &range, 0, &id), HF_ELIMIT);
}
END_TEST

START_TEST(progress_comes_after_the_events)
{
    uint64_t id = watch(0, one("a"), 0);

    put("a", "1");
    put("b", "1");
    hfs_watch_ask_progress(etcd, id);
    expect_event(id, "a", 2);
    ck_assert_int_eq(next_of(id), 1);
    ck_assert_uint_eq(batch->count, 0);
    ck_assert_int_eq(batch->header.revision, 3);
    ck_assert_int_eq(next_of(id), 0);
}
END_TEST

START_TEST(w3_progress_may_come_before_the_events)
{
    uint64_t id = watch(0, one("a"), 0);

    faults()->early_progress = true;
    put("a", "1");
    hfs_watch_ask_progress(etcd, id);
    ck_assert_int_eq(next_of(id), 1);
    ck_assert_uint_eq(batch->count, 0);
    ck_assert_int_eq(batch->header.revision, 2);
    expect_event(id, "a", 2);
}
END_TEST

START_TEST(w1_a_watch_may_be_silent)
{
    uint64_t id = watch(0, one("a"), 0), born_mute;

    faults()->mute_percent = 100;
    born_mute = watch(0, one("a"), 0);
    faults()->mute_percent = 0;
    put("a", "1");
    expect_event(id, "a", 2);
    hfs_watch_mute(etcd, id);
    put("a", "2");
    hfs_watch_ask_progress(etcd, id);
    compact(3);
    ck_assert_int_eq(next_of(id), 0);
    ck_assert_int_eq(next_of(born_mute), 0);
}
END_TEST

START_TEST(w5_events_may_be_lost)
{
    struct hfs_op ops[] = { put_op("a", "1", 0), put_op("b", "1", 0) };
    uint64_t id = watch(0, all(""), 0);

    faults()->lose_percent = 100;
    put("a", "1");
    ck_assert_int_eq(next_of(id), 0);
    ask((struct hfs_request){ .kind = HFS_TXN, .txn.then = { ops, 2 } });
    ck_assert_int_eq(next_of(id), 1);
    ck_assert_uint_eq(batch->count, 1);
    faults()->lose_percent = 0;
    put("a", "3");
    expect_event(id, "a", 4);
}
END_TEST

START_TEST(w6_events_may_come_twice)
{
    uint64_t id = watch(0, all(""), 0);

    faults()->duplicate_percent = 100;
    put("a", "1");
    put("a", "2");
    expect_event(id, "a", 2);
    expect_event(id, "a", 2);
    expect_event(id, "a", 3);
    expect_event(id, "a", 3);
    ck_assert_int_eq(next_of(id), 0);
}
END_TEST

START_TEST(w6_events_may_come_from_the_past)
{
    uint64_t id;
    bool travelled = false;

    faults()->old_percent = 100;
    for (int i = 0; i < 20; i++)
        put("a", "1");
    compact(10);
    id = watch(0, all(""), 0);
    for (int i = 0; i < 20; i++) {
        put("a", "1");
        ck_assert_int_eq(next_of(id), 1);
        ck_assert_int_eq(batch->events[0].kv.mod_rev, revision());
        ck_assert_int_eq(next_of(id), 1);
        ck_assert_int_ge(batch->events[0].kv.mod_rev, 10);
        travelled |= batch->events[0].kv.mod_rev < revision();
        ck_assert_int_eq(next_of(id), 0);
    }
    ck_assert(travelled);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("watches");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_watch_tells_what_happens_from_now_on);
    tcase_add_test(t, a_batch_is_all_of_one_revision_and_nothing_else);
    tcase_add_test(t, a_watch_may_begin_in_the_past_and_in_the_future);
    tcase_add_test(t, a_watch_from_before_the_compaction_ends);
    tcase_add_test(t, w5_a_watch_from_the_compacted_revision_misses_its_deletions);
    tcase_add_test(t, a_cancelled_watch_is_gone);
    tcase_add_test(t, no_more_watches_than_there_is_room_for);
    tcase_add_test(t, progress_comes_after_the_events);
    tcase_add_test(t, w3_progress_may_come_before_the_events);
    tcase_add_test(t, w1_a_watch_may_be_silent);
    tcase_add_test(t, w5_events_may_be_lost);
    tcase_add_test(t, w6_events_may_come_twice);
    tcase_add_test(t, w6_events_may_come_from_the_past);
    return run("sim/model_etcd watches", t);
}
