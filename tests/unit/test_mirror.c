/* The mirror against an etcd that does what a real one must not, but does once in a while. */
#include <check.h>
#include <poll.h>
#include <stdlib.h>

#include "support/chaos.h"
#include "support/fake.h"
#include "support/follower.h"
#include "support/suite.h"

enum { UNAVAILABLE = 14, TRIES = 6 };

static struct hft_fake *fake;
static struct hft_client client;
static struct hft_follower follower;

static void setup(void)
{
    fake = hft_fake_new();
    hft_client_open(&client, hft_fake_endpoint(fake), NULL);
    follower = (struct hft_follower){ 0 };
}

static void teardown(void)
{
    hft_follower_stop(&follower);
    hft_client_close(&client);
    hft_fake_free(fake);
}

static unsigned watches_wanted;

static bool is_watched(void *arg)
{
    (void)arg;
    return hft_fake_stats(fake).watches >= watches_wanted;
}

static void until_watched(unsigned watches)
{
    watches_wanted = watches;
    hft_loop_until(&client.loop, is_watched, NULL, 10000, "the watch");
}

static void follow_with(struct hf_mirror_config cfg)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };

    cfg.ranges = &range;
    cfg.range_count = 1;
    hft_follower_start_with(&client, &follower, &cfg);
    hft_follower_until_synced(&follower, 1, 10000);
    until_watched(1);
}

static void follow(void)
{
    follow_with((struct hf_mirror_config){ 0 });
}

static void tell(int64_t first, int64_t last)
{
    hft_fake_tell(fake, first, last, 0, false);
}

static void until_events(unsigned count)
{
    hft_client_until(&client, &follower.events, count, 10000, "the events");
}

static bool has(const char *key)
{
    struct hf_kv kv;

    return hf_mirror_get(follower.mirror, hf_bytes_of(key), &kv);
}

static struct hf_mirror_stats stats(void)
{
    return hf_mirror_get_stats(follower.mirror);
}

START_TEST(the_fake_is_followed_like_an_etcd)
{
    int64_t rev = hft_fake_change(fake, "w/a", "1");

    hft_fake_change(fake, "x", "elsewhere");
    follow();
    ck_assert_uint_eq(follower.puts, 1);
    ck_assert_int_eq(hft_fake_stats(fake).start_rev, rev + 2);
    rev = hft_fake_change(fake, "w/a", "2");
    tell(rev, rev);
    rev = hft_fake_change(fake, "w/a", NULL);
    tell(rev, rev);
    until_events(3);
    ck_assert_uint_eq(follower.deletes, 1);
    ck_assert(!has("w/a"));
}
END_TEST

START_TEST(w3_progress_ahead_of_the_events_does_not_move_the_place_to_resume)
{
    int64_t first, last;

    follow_with((struct hf_mirror_config){ .probe_every = 20 });
    first = hft_fake_change(fake, "w/a", "1");
    tell(first, first);
    until_events(1);
    last = hft_fake_change(fake, "w/b", "2"); /* not told; but the progress says that it was */
    for (unsigned probes = hft_fake_stats(fake).probes;
         hft_fake_stats(fake).probes < probes + 3;)
        (void)uv_run(&client.loop.uv, UV_RUN_ONCE);
    hft_fake_end(fake, UNAVAILABLE, "gone");
    until_watched(2);
    ck_assert_int_le(hft_fake_stats(fake).start_rev, last);
    tell(hft_fake_stats(fake).start_rev, last);
    until_events(2);
    ck_assert(has("w/b"));
}
END_TEST

START_TEST(w2_a_header_ahead_of_its_events_does_not_move_the_place_to_resume)
{
    int64_t first, last;

    follow();
    first = hft_fake_change(fake, "w/a", "1");
    last = hft_fake_change(fake, "w/b", "2");
    hft_fake_tell(fake, first, first, last, false);
    until_events(1);
    hft_fake_end(fake, UNAVAILABLE, "gone");
    until_watched(2);
    ck_assert_int_le(hft_fake_stats(fake).start_rev, last);
}
END_TEST

START_TEST(w5_lost_events_are_found_by_the_next_list)
{
    int64_t rev;

    hft_fake_change(fake, "w/deleted", "1");
    hft_fake_change(fake, "w/changed", "1");
    follow();
    hft_fake_change(fake, "w/deleted", NULL);
    hft_fake_change(fake, "w/changed", "2");
    hft_fake_change(fake, "w/new", "1");
    rev = hft_fake_change(fake, "w/told", "1");
    tell(rev, rev); /* only this one */
    until_events(3);
    ck_assert(has("w/deleted"));
    hf_mirror_resync(follower.mirror);
    until_events(6);
    ck_assert_uint_eq(follower.synthesised, 2 + 3);
    ck_assert(!has("w/deleted"));
    ck_assert(has("w/new"));
    ck_assert_uint_eq(stats().missed, 3);
    ck_assert_uint_eq(follower.synced, 1);
}
END_TEST

START_TEST(w6_events_told_twice_and_from_the_past_are_dropped)
{
    int64_t a, b, gone;

    follow();
    a = hft_fake_change(fake, "w/a", "1");
    b = hft_fake_change(fake, "w/b", "1");
    gone = hft_fake_change(fake, "w/a", NULL);
    tell(a, gone);
    until_events(3);
    tell(a, gone); /* twice */
    tell(a, a);    /* the key is deleted by now */
    tell(b, b);
    b = hft_fake_change(fake, "w/b", "2");
    tell(b, b);
    until_events(4);
    ck_assert_uint_eq(follower.events, 4);
    ck_assert(!has("w/a"));
    ck_assert_uint_eq(stats().stale, 5);
}
END_TEST

START_TEST(w10_pieces_are_told_together_or_not_at_all)
{
    int64_t a, b, c;

    follow();
    a = hft_fake_change(fake, "w/a", "1");
    b = hft_fake_change(fake, "w/b", "1");
    c = hft_fake_change(fake, "w/c", "1");
    hft_fake_tell(fake, a, a, 0, true);
    hft_fake_tell(fake, b, b, 0, true);
    hft_fake_end(fake, UNAVAILABLE, "gone in between");
    until_watched(2);
    ck_assert_uint_eq(follower.events, 0);
    ck_assert_int_le(hft_fake_stats(fake).start_rev, a);
    hft_fake_tell(fake, a, a, 0, true);
    hft_fake_tell(fake, b, c, 0, false);
    until_events(3);
}
END_TEST

START_TEST(w12_a_stale_list_neither_brings_back_what_was_deleted_nor_resets)
{
    int64_t old = hft_fake_change(fake, "w/a", "1");
    uint64_t lists;
    int64_t rev;

    hft_fake_change(fake, "w/b", "1");
    follow();
    rev = hft_fake_change(fake, "w/a", NULL);
    tell(rev, rev);
    until_events(3);
    lists = stats().lists;
    hft_fake_be_stale(fake, old, 4, 1); /* the looks at the history are true, the list is not */
    hf_mirror_resync(follower.mirror);
    while (stats().lists == lists)
        (void)uv_run(&client.loop.uv, UV_RUN_ONCE);
    ck_assert_uint_eq(follower.events, 3);
    ck_assert_uint_eq(follower.troubles, 1);
    ck_assert_int_eq(follower.last_trouble, HF_EHISTORY);
    ck_assert_uint_eq(follower.resets, 0);
}
END_TEST

START_TEST(w7_a_few_stale_answers_about_the_history_are_borne)
{
    int64_t old = hft_fake_change(fake, "w/a", "1");

    hft_fake_change(fake, "w/b", "1");
    follow();
    hft_fake_be_stale(fake, old, 0, 2);
    hft_fake_end(fake, UNAVAILABLE, "gone");
    until_watched(2);
    ck_assert_uint_eq(follower.resets, 0);
}
END_TEST

START_TEST(w7_a_history_that_went_back_resets_although_nothing_was_cut)
{
    int64_t old = hft_fake_change(fake, "w/a", "1");

    hft_fake_change(fake, "w/b", "1");
    follow_with((struct hf_mirror_config){ .history_every = 50 });
    hft_fake_go_back(fake, old);
    hft_client_until(&client, &follower.resets, 1, 10000, "the reset");
    hft_follower_until_synced(&follower, 2, 10000);
    ck_assert_uint_eq(follower.count, 1);
    ck_assert(!has("w/b"));
}
END_TEST

static int64_t write_elsewhere(const char *value)
{
    int64_t rev = hft_fake_change(fake, "x/ours", value);

    hf_mirror_on_write(follower.mirror, &(struct hf_kv){ .key = hf_bytes_of("x/ours"),
                                                         .mod_rev = rev,
                                                         .value = hf_bytes_of(value) });
    return rev;
}

/* Nothing is lost of what is followed: only who wrote the rest can know. */
START_TEST(w7_a_history_without_what_we_wrote_elsewhere_resets)
{
    int64_t seen;

    hft_fake_change(fake, "w/a", "1");
    follow_with((struct hf_mirror_config){ .history_every = 50 });
    seen = write_elsewhere("1");
    (void)write_elsewhere("2");
    hft_fake_go_back(fake, seen);
    hft_fake_change(fake, _i == 0 ? "x/ours" : "x/other", "3"); /* at the revision of ours */
    hft_client_until(&client, &follower.resets, 1, 10000, "the reset");
}
END_TEST

START_TEST(w7_what_others_made_since_of_what_we_wrote_elsewhere_is_no_reset)
{
    hft_fake_change(fake, "w/a", "1");
    follow();
    (void)write_elsewhere("1");
    (void)write_elsewhere("2");
    hft_fake_change(fake, "x/ours", _i == 0 ? "3" : NULL);
    hft_fake_end(fake, UNAVAILABLE, "gone");
    until_watched(2);
    ck_assert_uint_eq(follower.resets, 0);
}
END_TEST

START_TEST(w7_the_same_key_changed_to_another_value_at_the_same_revision_is_another_past)
{
    int64_t old = hft_fake_change(fake, "w/a", "1");

    hft_fake_change(fake, "w/a", "2");
    follow_with((struct hf_mirror_config){ .history_every = 50 });
    hft_fake_go_back(fake, old);
    hft_fake_change(fake, "w/a", "3");
    hft_client_until(&client, &follower.resets, 1, 10000, "the reset");
    hft_follower_until_synced(&follower, 2, 10000);
}
END_TEST

/* Wherever it stands among the keys of a list, the newest is the witness: the past of the other
 * ones is the same. */
START_TEST(w7_of_a_list_the_newest_key_is_the_witness)
{
    static const char *const KEYS[] = { "w/a", "w/b", "w/c" };
    int64_t old = 0;

    for (int i = 1; i <= 3; i++)
        old = hft_fake_change(fake, KEYS[(_i + i) % 3], "1");
    hft_fake_change(fake, KEYS[_i], "2");
    follow_with((struct hf_mirror_config){ .history_every = 50 });
    hft_fake_go_back(fake, old);
    hft_fake_change(fake, "x/other", "1");
    hft_client_until(&client, &follower.resets, 1, 10000, "the reset");
    hft_follower_until_synced(&follower, 2, 10000);
}
END_TEST

/* The list was of a revision at which something else was changed; after the restore it is one
 * of ours. */
START_TEST(w7_what_the_witness_does_not_vouch_for_is_listed_when_a_watch_resumes)
{
    int64_t seen = hft_fake_change(fake, "w/a", "1");

    hft_fake_change(fake, "x/other", "1");
    follow();
    hft_fake_go_back(fake, seen);
    hft_fake_change(fake, "w/b", "1");
    hft_fake_end(fake, UNAVAILABLE, "gone");
    hft_client_until(&client, &follower.resets, 1, 10000, "the reset");
    hft_follower_until_synced(&follower, 2, 10000);
    ck_assert(has("w/b"));
}
END_TEST

START_TEST(w7_a_watch_answered_by_another_cluster_is_not_believed)
{
    int64_t rev;

    follow();
    rev = hft_fake_change(fake, "w/a", "1");
    hft_fake_set_cluster(fake, 815);
    tell(rev, rev);
    hft_client_until(&client, &follower.resets, 1, 10000, "the reset");
    ck_assert_uint_eq(follower.events, 0);
    hft_follower_until_synced(&follower, 2, 10000);
    ck_assert(has("w/a"));
}
END_TEST

static bool is_heard(void *since)
{
    return hf_mirror_get_stats(follower.mirror).heard_at > *(const hf_ms *)since;
}

START_TEST(w1_a_watch_that_answers_no_probe_is_given_up)
{
    int64_t rev;

    follow_with((struct hf_mirror_config){ .probe_every = 50, .probe_timeout = 1000 });
    hft_fake_answer_probes(fake, false);
    hft_client_until(&client, &follower.troubles, 1, 10000, "the watch to be given up");
    ck_assert_int_eq(follower.last_trouble, HF_ETIMEOUT);
    hft_fake_answer_probes(fake, true);
    until_watched(2);
    rev = hft_fake_change(fake, "w/a", "1");
    tell(rev, rev);
    until_events(1);
}
END_TEST

/* Whoever asks how long the watch is silent is not told how long ago it was opened. */
START_TEST(w1_a_watch_that_nobody_confirms_proves_nothing)
{
    hf_ms heard_at;

    follow_with((struct hf_mirror_config){ .probe_every = 50, .probe_timeout = 1000 });
    hft_fake_confirm(fake, false);
    hft_fake_answer_probes(fake, false);
    hft_client_until(&client, &follower.troubles, 1, 10000, "the watch to be given up");
    heard_at = hf_mirror_get_stats(follower.mirror).heard_at;
    ck_assert_int_gt(heard_at, 0);
    until_watched(2);
    ck_assert_int_eq(hf_mirror_get_stats(follower.mirror).heard_at, heard_at);
    until_watched(3);
    ck_assert_int_eq(hf_mirror_get_stats(follower.mirror).heard_at, heard_at);

    hft_fake_confirm(fake, true);
    hft_fake_answer_probes(fake, true);
    until_watched(4);
    hft_loop_until(&client.loop, is_heard, &heard_at, 10000, "a sign of life");
}
END_TEST

static unsigned probes_wanted;

static bool is_probed(void *arg)
{
    (void)arg;
    return hft_fake_stats(fake).probes >= probes_wanted;
}

/* The answer is there when the loop goes on, and so is the time-out. */
START_TEST(w1_a_loop_that_was_held_up_does_not_take_its_watch_for_dead)
{
    follow_with((struct hf_mirror_config){ .probe_every = 20, .probe_timeout = 1500 });
    for (int i = 0; i < 2; i++) {
        probes_wanted = hft_fake_stats(fake).probes + 1;
        hft_loop_until(&client.loop, is_probed, NULL, 10000, "the probe");
        (void)poll(NULL, 0, 1700); /* this is the fault */
    }
    probes_wanted = hft_fake_stats(fake).probes + 1;
    hft_loop_until(&client.loop, is_probed, NULL, 10000, "the next probe");
    ck_assert_uint_eq(follower.troubles, 0);
    ck_assert_uint_eq(hft_fake_stats(fake).watches, 1);
}
END_TEST

static const char *const GARBAGE[] = { "\xff", "\x0a\xff\xff\xff\xff\x0f", "\x0a",
                                       "\x5a\x05hel" };

START_TEST(a_message_that_is_none_ends_the_watch_which_comes_again)
{
    int64_t rev;

    follow();
    hft_fake_send_bytes(fake, GARBAGE[_i], strlen(GARBAGE[_i]));
    hft_client_until(&client, &follower.troubles, 1, 10000, "the trouble to be told");
    ck_assert_int_eq(follower.last_trouble, HF_ECORRUPT);
    until_watched(2);
    rev = hft_fake_change(fake, "w/a", "1");
    tell(rev, rev);
    until_events(1);
}
END_TEST

/* Messages of unknown watches, without events, without keys: none of our business. */
START_TEST(messages_that_mean_nothing_change_nothing)
{
    Etcdserverpb__WatchResponse message = ETCDSERVERPB__WATCH_RESPONSE__INIT;
    Etcdserverpb__Event nothing = ETCDSERVERPB__EVENT__INIT;
    Etcdserverpb__Event *events = &nothing;
    static const int64_t IDS[] = { INT64_MIN, -2, -1, 0, 1, 2, 33, INT64_MAX };
    int64_t rev;

    follow();
    for (size_t i = 0; i < sizeof IDS / sizeof IDS[0]; i++) {
        message.watch_id = IDS[i];
        message.n_events = 0;
        hft_fake_send(fake, &message);
        message.n_events = 1;
        message.events = &events;
        hft_fake_send(fake, &message);
    }
    rev = hft_fake_change(fake, "w/a", "1");
    tell(rev, rev);
    until_events(1);
    ck_assert_uint_eq(follower.events, 1);
    ck_assert_uint_eq(stats().keys, 1);
    ck_assert_uint_eq(follower.troubles, 0);
}
END_TEST

START_TEST(a_watch_that_is_cancelled_comes_again)
{
    Etcdserverpb__WatchResponse message = ETCDSERVERPB__WATCH_RESPONSE__INIT;
    int64_t rev;

    follow();
    message.watch_id = _i == 0 ? 1 : -1;
    message.canceled = 1;
    message.created = _i == 1;
    message.cancel_reason = _i == 2 ? (char *)"something new" : (char *)"";
    hft_fake_send(fake, &message);
    hft_client_until(&client, &follower.troubles, 1, 10000, "the trouble to be told");
    until_watched(2);
    rev = hft_fake_change(fake, "w/a", "1");
    tell(rev, rev);
    until_events(1);
    ck_assert_uint_eq(stats().lists, 1);
}
END_TEST

START_TEST(w4_a_watch_cancelled_by_a_compaction_is_listed)
{
    Etcdserverpb__WatchResponse message = ETCDSERVERPB__WATCH_RESPONSE__INIT;

    hft_fake_change(fake, "w/a", "1");
    follow();
    hft_fake_change(fake, "w/a", NULL);
    hft_fake_change(fake, "w/b", "1");
    message.watch_id = 1;
    message.canceled = 1;
    message.compact_revision = 100;
    hft_fake_send(fake, &message);
    hft_follower_until_synced(&follower, 2, 10000);
    ck_assert(has("w/b"));
    ck_assert(!has("w/a"));
    ck_assert_uint_eq(stats().lists, 2);
}
END_TEST

/* The pages become smaller until they come through, and the list complete. */
START_TEST(list_over_a_slow_line_is_read_in_smaller_pages)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };

    for (int i = 0; i < 1000; i++) {
        char key[16];

        (void)snprintf(key, sizeof key, "w/%d", i);
        hft_fake_change(fake, key, "1");
    }
    hft_fake_be_slow(fake, 700);
    hft_follower_start_with(
        &client, &follower,
        &(struct hf_mirror_config){ .ranges = &range, .range_count = 1, .page_timeout = 1000 });
    hft_follower_until_synced(&follower, 1, 60000);
    ck_assert_uint_eq(follower.puts, 1000);
    ck_assert_uint_ge(follower.troubles, 2);
}
END_TEST

static struct {
    hf_ms pause[4];
    hf_ms at[4];
    unsigned count;
} flaps;

static void on_flap(int err, const char *message, hf_ms retry_in, void *arg)
{
    (void)err;
    (void)message;
    (void)arg;
    ck_assert_uint_lt(flaps.count, 4);
    flaps.at[flaps.count] = hft_now();
    flaps.pause[flaps.count++] = retry_in;
}

static void on_nothing(const struct hf_mirror_event *event, void *arg)
{
    (void)event;
    (void)arg;
}

/* One that is accepted every time, and ended at once: it must not be asked for without a pause.
 * Each is drawn, and one of them may well be none. */
START_TEST(a_watch_that_ends_as_soon_as_it_lives_is_opened_less_and_less_often)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };
    struct hf_mirror *mirror;
    unsigned without = 0;

    ck_assert_int_eq(hf_mirror_new(client.etcd,
                                   &(struct hf_mirror_config){ .ranges = &range,
                                                               .range_count = 1,
                                                               .on_event = on_nothing,
                                                               .on_trouble = on_flap },
                                   &mirror, NULL),
                     HF_OK);
    for (unsigned i = 0; i < 4; i++) {
        until_watched(i + 1);
        hft_fake_end(fake, UNAVAILABLE, "gone");
        hft_client_until(&client, &flaps.count, i + 1, 10000, "the trouble to be told");
        /* Unless the machine let it live for a while. */
        without += i > 0 && flaps.pause[i] == 0 && flaps.at[i] - flaps.at[i - 1] < 1000;
    }
    ck_assert_uint_le(without, 1);
    hf_mirror_close(mirror);
}
END_TEST

static struct {
    struct hf_mirror *mirror;
    unsigned synced, puts;
} bare;

/* Nothing here may need memory. */
static void on_bare_event(const struct hf_mirror_event *event, void *arg)
{
    (void)arg;
    bare.synced += event->kind == HF_MIRROR_SYNCED;
    bare.puts += event->kind == HF_MIRROR_PUT;
}

static unsigned keys_wanted;

static bool has_keys(void *arg)
{
    (void)arg;
    return hf_mirror_get_stats(bare.mirror).keys == keys_wanted &&
           hf_mirror_get_stats(bare.mirror).synced;
}

static void begin_bare(void)
{
    struct hf_key_range range = { .key = hf_bytes_of("w/"), .prefix = true };

    ck_assert_int_eq(hf_mirror_new(client.etcd,
                                   &(struct hf_mirror_config){ .ranges = &range,
                                                               .range_count = 1,
                                                               .on_event = on_bare_event,
                                                               .keep_values = true,
                                                               .history_every = 300 },
                                   &bare.mirror, NULL),
                     HF_OK);
    hft_loop_until(&client.loop, has_keys, NULL, 10000, "the mirror to be synced");
}

/* hft_loop_try without memory, for which Check asks. */
static void turn_until(bool (*cond)(void), hf_ms timeout)
{
    for (hf_ms end = hft_now() + timeout; !cond() && hft_now() < end;) {
        (void)uv_run(&client.loop.uv, UV_RUN_NOWAIT);
        (void)poll(NULL, 0, 1);
    }
}

static bool is_true(void)
{
    return has_keys(NULL);
}

static bool is_true_or_failed(void)
{
    return is_true() || hft_chaos_has_failed();
}

/* A change that is told and listed at the same time, over a watch that ends or not, while the
 * n-th allocation fails: alone, or with all that follow for a while. Returns whether one did.
 */
static bool change_without_memory(size_t n, bool ends, bool persistent)
{
    char key[32];
    int64_t rev;
    bool failed;

    (void)snprintf(key, sizeof key, "w/%u", keys_wanted);
    rev = hft_fake_change(fake, key, "1");
    tell(rev, rev);
    if (ends)
        hft_fake_end(fake, UNAVAILABLE, "gone");
    keys_wanted++;
    hft_chaos_fail_at(n, persistent);
    hf_mirror_resync(bare.mirror);
    turn_until(persistent ? is_true_or_failed : is_true, 10000);
    if (persistent)
        turn_until(is_true, 20);
    failed = hft_chaos_has_failed();
    hft_chaos_stop();
    hft_loop_until(&client.loop, has_keys, NULL, 10000, "the copy to be true again");
    return failed;
}

/* What such a change asks for at the least; what else is under way may add to it. */
static size_t allocations_of_a_change(bool ends)
{
    size_t least = SIZE_MAX;

    for (int i = 0; i < TRIES; i++) {
        (void)change_without_memory(0, ends, false);
        least = hft_chaos_count() < least ? hft_chaos_count() : least;
    }
    return least;
}

START_TEST(any_allocation_may_fail_and_the_copy_becomes_true_all_the_same)
{
    bool ends = _i % 2 == 1, persistent = _i / 2 == 1;
    bool failed = true;
    size_t count;

    for (keys_wanted = 0; keys_wanted < 70; keys_wanted++) {
        char key[16];

        (void)snprintf(key, sizeof key, "w/first%u", keys_wanted);
        hft_fake_change(fake, key, "1");
    }
    hft_fake_replay(fake); /* a list that is under way does not know the change, perhaps */
    begin_bare();
    count = allocations_of_a_change(ends);
    ck_assert_uint_gt(count, 0);
    for (size_t n = 1; failed; n++) { /* until it needs no more of them */
        failed = false;
        for (int i = 0; i < TRIES && !failed; i++)
            failed = change_without_memory(n, ends, persistent);
        ck_assert_msg(failed || n > count, "allocation %zu of %zu was not reached", n, count);
    }
    hf_mirror_close(bare.mirror);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("mirror");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_test(t, the_fake_is_followed_like_an_etcd);
    tcase_add_test(t, w1_a_watch_that_answers_no_probe_is_given_up);
    tcase_add_test(t, w1_a_watch_that_nobody_confirms_proves_nothing);
    tcase_add_test(t, w1_a_loop_that_was_held_up_does_not_take_its_watch_for_dead);
    tcase_add_test(t, w2_a_header_ahead_of_its_events_does_not_move_the_place_to_resume);
    tcase_add_test(t, w3_progress_ahead_of_the_events_does_not_move_the_place_to_resume);
    tcase_add_test(t, w4_a_watch_cancelled_by_a_compaction_is_listed);
    tcase_add_test(t, w5_lost_events_are_found_by_the_next_list);
    tcase_add_test(t, w6_events_told_twice_and_from_the_past_are_dropped);
    tcase_add_test(t, w12_a_stale_list_neither_brings_back_what_was_deleted_nor_resets);
    tcase_add_test(t, w7_a_few_stale_answers_about_the_history_are_borne);
    tcase_add_test(t, w7_a_history_that_went_back_resets_although_nothing_was_cut);
    tcase_add_loop_test(t, w7_a_history_without_what_we_wrote_elsewhere_resets, 0, 2);
    tcase_add_loop_test(t, w7_what_others_made_since_of_what_we_wrote_elsewhere_is_no_reset, 0,
                        2);
    tcase_add_test(
        t, w7_the_same_key_changed_to_another_value_at_the_same_revision_is_another_past);
    tcase_add_loop_test(t, w7_of_a_list_the_newest_key_is_the_witness, 0, 3);
    tcase_add_test(t, w7_what_the_witness_does_not_vouch_for_is_listed_when_a_watch_resumes);
    tcase_add_test(t, w7_a_watch_answered_by_another_cluster_is_not_believed);
    tcase_add_test(t, w10_pieces_are_told_together_or_not_at_all);
    tcase_add_loop_test(t, a_message_that_is_none_ends_the_watch_which_comes_again, 0, 4);
    tcase_add_test(t, messages_that_mean_nothing_change_nothing);
    tcase_add_loop_test(t, a_watch_that_is_cancelled_comes_again, 0, 3);
    tcase_add_test(t, list_over_a_slow_line_is_read_in_smaller_pages);
    tcase_add_test(t, a_watch_that_ends_as_soon_as_it_lives_is_opened_less_and_less_often);
    tcase_add_loop_test(t, any_allocation_may_fail_and_the_copy_becomes_true_all_the_same, 0,
                        4);
    return hft_suite_run("etcd/mirror", t, NULL);
}
