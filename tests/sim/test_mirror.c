/* The client of the simulator, under every fault of the network and of the model etcd: the copy
 * that a mirror keeps is the truth in the end, and what it told is a story that leads there. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "sim/client.h"
#include "sim/random.h"

enum { KEYS = 12, WRITES = 150, READERS = 2 };

struct reader {
    struct hfs_process process;
    struct hfs_client client;
    struct hf_mirror *mirror;
    /* What was told: the newest revision of each key, or 0. */
    int64_t told[KEYS];
    int64_t newest[KEYS]; /* deleted ones, too */
    bool synced;
    unsigned resets, events;
};

struct stage {
    struct hfs_world world;
    struct hfs_etcd *etcd;
    struct hfs_net net;
    struct hfs_process writer;
    struct hfs_client client;
    struct reader readers[READERS];
    struct hfs_random dice;
    struct hfs_snapshot *snapshot;
    bool restores;
};

static size_t key_number(struct hf_bytes key)
{
    return (size_t)(((const char *)key.data)[key.len - 1] - 'a');
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    struct reader *reader = arg;
    size_t n;

    switch (event->kind) {
    case HF_MIRROR_SYNCED: reader->synced = true; return;
    case HF_MIRROR_RESET:
        reader->synced = false;
        reader->resets++;
        memset(reader->told, 0, sizeof reader->told);
        memset(reader->newest, 0, sizeof reader->newest);
        return;
    default: break;
    }
    n = key_number(event->kv.key);
    ck_assert_uint_lt(n, KEYS);
    ck_assert_int_gt(event->kv.mod_rev, reader->newest[n]);
    reader->newest[n] = event->kv.mod_rev;
    reader->told[n] = event->kind == HF_MIRROR_PUT ? event->kv.mod_rev : 0;
    reader->events++;
}

static void open_reader(struct stage *stage, struct reader *reader, uint64_t seed)
{
    static const struct hf_key_range RANGES[] = {
        { .key = { .data = "a/", .len = 2 }, .prefix = true },
        { .key = { .data = "b/", .len = 2 }, .prefix = true },
    };
    struct hf_mirror_config cfg = { .ranges = RANGES,
                                    .range_count = 2,
                                    .on_event = on_event,
                                    .arg = reader,
                                    .resync_every = 60000 };

    memset(reader, 0, sizeof *reader);
    hfs_process_init(&reader->process, &stage->world, "reader");
    reader->process.clock_offset = 1000000;
    hfs_client_init(&reader->client, &stage->net, &reader->process, seed);
    ck_assert_int_eq(hf_mirror_new(&reader->client.etcd, &cfg, &reader->mirror, NULL), HF_OK);
}

static void set_up(struct stage *stage, uint64_t seed)
{
    memset(stage, 0, sizeof *stage);
    hfs_world_init(&stage->world, seed);
    ck_assert_int_eq(hfs_etcd_new(&(struct hfs_etcd_config){ .seed = seed + 1 }, &stage->etcd),
                     HF_OK);
    hfs_net_init(&stage->net, &stage->world, stage->etcd);
    stage->dice.state = seed + 2;
    hfs_process_init(&stage->writer, &stage->world, "writer");
    hfs_client_init(&stage->client, &stage->net, &stage->writer, seed + 3);
    for (size_t i = 0; i < READERS; i++)
        open_reader(stage, &stage->readers[i], seed + 4 + i);
}

static void tear_down(struct stage *stage)
{
    for (size_t i = 0; i < READERS; i++) {
        hf_mirror_close(stage->readers[i].mirror);
        hfs_client_done(&stage->readers[i].client);
    }
    hfs_client_done(&stage->client);
    hfs_net_done(&stage->net);
    hfs_etcd_free(stage->etcd);
    hfs_snapshot_free(stage->snapshot);
    hfs_world_done(&stage->world);
}

static void run(struct stage *stage, hf_ms length)
{
    hf_ms until = stage->world.now + length;

    while (hfs_world_step(&stage->world, until))
        continue;
}

static void ignore(struct hf_call *call, struct hfs_outcome *outcome)
{
    (void)call;
    (void)outcome;
}

/* "a/a" .. "b/l": in two ranges, by turns. */
static void write_something(struct stage *stage)
{
    size_t n = (size_t)hfs_random_below(&stage->dice, KEYS);
    char key[] = { (char)("ab"[n % 2]), '/', (char)('a' + (char)n) };
    struct hfs_request request = { .kind = HFS_PUT };

    request.op.put = (struct hfs_put_request){ .key = { key, 3 }, .value = { "v", 1 } };
    if (hfs_random_percent(&stage->dice, 30)) {
        request.kind = HFS_DELETE;
        request.op.erase = (struct hfs_range){ .key = { key, 3 } };
    }
    (void)hfs_call_start(&stage->client, &request,
                         &(struct hfs_call_spec){ .lane = HF_LANE_UNARY, .decode = ignore });
}

static void check_truth(struct stage *stage)
{
    const struct hfs_store *store = hfs_etcd_get_store(stage->etcd);

    for (size_t r = 0; r < READERS; r++) {
        struct reader *reader = &stage->readers[r];

        ck_assert(reader->synced);
        for (size_t n = 0; n < KEYS; n++) {
            char key[] = { (char)("ab"[n % 2]), '/', (char)('a' + (char)n) };
            const struct hfs_entry *entry =
                hfs_store_get(store, (struct hf_bytes){ .data = key, .len = 3 });
            struct hf_kv kv = { 0 };
            bool found = hf_mirror_get(reader->mirror, (struct hf_bytes){ key, 3 }, &kv);

            ck_assert_int_eq(reader->told[n], entry != NULL ? entry->mod_rev : 0);
            ck_assert_int_eq(found ? kv.mod_rev : 0, reader->told[n]);
        }
    }
}

/* Switches some faults on; what is drawn differs from seed to seed. */
static void draw_faults(struct stage *stage)
{
    struct hfs_faults *faults = hfs_etcd_get_faults(stage->etcd);
    struct hfs_random *dice = &stage->dice;

    stage->net.faults.delay_max = 1 + (hf_ms)hfs_random_below(dice, 50);
    if (hfs_random_percent(dice, 50))
        stage->net.faults.lose_percent = (uint8_t)hfs_random_below(dice, 20);
    if (hfs_random_percent(dice, 50)) {
        stage->net.faults.slow_percent = (uint8_t)hfs_random_below(dice, 10);
        stage->net.faults.slow_max = (hf_ms)hfs_random_below(dice, 8000);
    }
    if (hfs_random_percent(dice, 30))
        stage->net.faults.repeat_percent = 10;
    if (hfs_random_percent(dice, 50))
        faults->duplicate_percent = faults->old_percent = 10;
    if (hfs_random_percent(dice, 30))
        faults->mute_percent = 20;
    if (hfs_random_percent(dice, 30))
        faults->lose_percent = 10;
    stage->restores = hfs_random_percent(dice, 50);
    faults->early_progress = hfs_random_percent(dice, 50);
}

static void heal(struct stage *stage)
{
    stage->net.faults = (struct hfs_net_faults){ .delay_max = 3 };
    *hfs_etcd_get_faults(stage->etcd) = (struct hfs_faults){ 0 };
    for (unsigned m = 0; m < HFS_MEMBERS; m++) {
        ck_assert_int_eq(hfs_etcd_set_member(stage->etcd, m, HFS_MEMBER_UP), HF_OK);
        for (size_t r = 0; r < READERS; r++)
            stage->readers[r].process.paths[m] = HFS_PATH_OPEN;
    }
    hfs_net_poke(&stage->net);
}

/* One thing that goes wrong. */
static void go_wrong(struct stage *stage)
{
    struct hfs_random *dice = &stage->dice;
    unsigned member = (unsigned)hfs_random_below(dice, HFS_MEMBERS);
    struct reader *reader = &stage->readers[hfs_random_below(dice, READERS)];
    const struct hfs_store *store = hfs_etcd_get_store(stage->etcd);
    struct hfs_request compact = { .kind = HFS_COMPACT };

    switch (hfs_random_below(dice, 8)) {
    case 0:
        ck_assert_int_eq(hfs_etcd_set_member(stage->etcd, member,
                                             (enum hfs_member_state)hfs_random_below(dice, 5)),
                         HF_OK);
        break;
    case 1: reader->process.paths[member] = (enum hfs_path)hfs_random_below(dice, 3); break;
    case 2: hfs_process_pause(&reader->process, (hf_ms)hfs_random_below(dice, 20000)); break;
    case 3:
        compact.compact = store->revision - (hfs_rev)hfs_random_below(dice, 5);
        (void)hfs_call_start(
            &stage->client, &compact,
            &(struct hfs_call_spec){ .lane = HF_LANE_UNARY, .decode = ignore });
        break;
    case 4: (void)!hfs_etcd_change_leader(stage->etcd); break;
    case 5:
        hfs_snapshot_free(stage->snapshot);
        ck_assert_int_eq(hfs_etcd_snapshot(stage->etcd, &stage->snapshot), HF_OK);
        break;
    case 6:
        if (stage->snapshot != NULL && stage->restores)
            ck_assert_int_eq(hfs_etcd_restore(stage->etcd, stage->snapshot), HF_OK);
        break;
    default: reader->process.turn_max = (hf_ms)hfs_random_below(dice, 100); break;
    }
    hfs_net_poke(&stage->net);
}

START_TEST(a_copy_follows_without_faults)
{
    struct stage stage;

    set_up(&stage, 7);
    for (int i = 0; i < WRITES; i++) {
        write_something(&stage);
        run(&stage, 20);
    }
    run(&stage, 200);
    check_truth(&stage);
    ck_assert_uint_eq(stage.readers[0].resets, 0);
    ck_assert_uint_gt(stage.readers[0].events, WRITES / 2);
    tear_down(&stage);
}
END_TEST

START_TEST(a_copy_is_the_truth_again_after_every_fault)
{
    uint64_t seed = (uint64_t)_i + 1;
    struct stage stage;

    set_up(&stage, seed);
    draw_faults(&stage);
    for (int i = 0; i < WRITES; i++) {
        write_something(&stage);
        run(&stage, (hf_ms)hfs_random_below(&stage.dice, 1000));
        if (hfs_random_percent(&stage.dice, 10))
            go_wrong(&stage);
    }
    heal(&stage);
    run(&stage, 100000); /* a resync finds what lost events have hidden */
    check_truth(&stage);
    tear_down(&stage);
}
END_TEST

static void write_key(struct stage *stage, const char *key)
{
    struct hfs_request request = { .kind = HFS_PUT };

    request.op.put = (struct hfs_put_request){ .key = { key, 3 }, .value = { "v", 1 } };
    (void)hfs_call_start(&stage->client, &request,
                         &(struct hfs_call_spec){ .lane = HF_LANE_UNARY, .decode = ignore });
    run(stage, 1000);
}

/* The stream is well, and so is the other watch on it: only a list can help, and not only by
 * what it finds. */
START_TEST(a_watch_that_is_dead_beside_a_live_one_does_not_outlive_a_list)
{
    struct reader *reader;
    struct stage stage;

    set_up(&stage, 7);
    reader = &stage.readers[0];
    run(&stage, 1000);
    for (uint64_t id = 2; id <= 4; id += 2) /* of each reader the second one */
        hfs_watch_mute(stage.etcd, id);
    write_key(&stage, "a/a");
    write_key(&stage, "b/b");
    ck_assert_int_ne(reader->told[0], 0);
    ck_assert_int_eq(reader->told[1], 0);
    run(&stage, 75000);
    ck_assert_int_ne(reader->told[1], 0);
    write_key(&stage, "b/d");
    ck_assert_int_ne(reader->told[3], 0);
    tear_down(&stage);
}
END_TEST

static void close_mirror(struct reader *reader)
{
    hf_mirror_close(reader->mirror);
    reader->mirror = NULL;
    reader->synced = false;
    reader->events = 0;
    memset(reader->newest, 0, sizeof reader->newest);
}

static void open_mirror(struct reader *reader, const char *prefix, struct hf_recall *past)
{
    struct hf_key_range range = { .key = { .data = prefix, .len = 2 }, .prefix = true };
    struct hf_mirror_config cfg = {
        .ranges = &range, .range_count = 1, .on_event = on_event, .arg = reader, .past = past
    };

    ck_assert_int_eq(hf_mirror_new(&reader->client.etcd, &cfg, &reader->mirror, NULL), HF_OK);
}

/* What was seen of one range is a witness for another; nothing is told before it was heard. The
 * last thing that was seen may come again at the same revision: then another one is heard. */
START_TEST(a_mirror_that_follows_another_notices_what_was_restored_between_them)
{
    bool restored = _i > 0, written_past = _i == 2, repeated = _i == 3;
    struct hf_recall past = { 0 };
    struct reader *reader;
    struct stage stage;

    set_up(&stage, 7);
    reader = &stage.readers[0];
    close_mirror(reader);
    open_mirror(reader, "a/", &past);
    write_key(&stage, "b/b");
    ck_assert_int_eq(hfs_etcd_snapshot(stage.etcd, &stage.snapshot), HF_OK);
    write_key(&stage, "a/a");
    write_key(&stage, "a/c");
    ck_assert_int_ne(reader->told[0], 0);
    close_mirror(reader);
    if (restored)
        ck_assert_int_eq(hfs_etcd_restore(stage.etcd, stage.snapshot), HF_OK);
    for (int i = 0; i < 3 && written_past; i++)
        write_key(&stage, "c/c");
    if (repeated) {
        write_key(&stage, "c/c");
        write_key(&stage, "a/c");
    }
    open_mirror(reader, "b/", &past);
    run(&stage, 5000);
    ck_assert(reader->synced);
    ck_assert_uint_eq(reader->resets, restored);
    ck_assert_uint_eq(reader->events, 1);
    close_mirror(reader);
    hf_recall_done(&past);
    tear_down(&stage);
}
END_TEST

/* The whole point of a seed. */
START_TEST(the_same_seed_gives_the_same_history)
{
    uint64_t steps[2], requests[2];

    for (int i = 0; i < 2; i++) {
        struct stage stage;

        set_up(&stage, 42);
        draw_faults(&stage);
        for (int n = 0; n < WRITES; n++) {
            write_something(&stage);
            run(&stage, (hf_ms)hfs_random_below(&stage.dice, 1000));
            if (hfs_random_percent(&stage.dice, 10))
                go_wrong(&stage);
        }
        steps[i] = stage.world.steps;
        requests[i] = stage.net.requests;
        tear_down(&stage);
    }
    ck_assert_uint_eq(steps[0], steps[1]);
    ck_assert_uint_eq(requests[0], requests[1]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sim/mirror");
    TCase *t = tcase_create("mirror");

    tcase_add_test(t, a_copy_follows_without_faults);
    tcase_add_loop_test(t, a_copy_is_the_truth_again_after_every_fault, 0, 200);
    /* Two that were restored, written past and compacted, and had deleted what came back. */
    tcase_add_loop_test(t, a_copy_is_the_truth_again_after_every_fault, 5179, 5180);
    tcase_add_loop_test(t, a_copy_is_the_truth_again_after_every_fault, 5498, 5499);
    tcase_add_test(t, a_watch_that_is_dead_beside_a_live_one_does_not_outlive_a_list);
    tcase_add_loop_test(t, a_mirror_that_follows_another_notices_what_was_restored_between_them,
                        0, 4);
    tcase_add_test(t, the_same_seed_gives_the_same_history);
    suite_add_tcase(s, t);

    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
