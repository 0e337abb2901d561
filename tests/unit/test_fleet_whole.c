/* The fleet as a whole: every kind of key, and everything at once. */
#include "unit/fleet_fixture.h"
#include "unit/suite.h"

START_TEST(the_deletion_of_what_is_not_known_is_nothing)
{
    struct hf_key key = { .kind = (enum hf_key_kind)_i, .name = "x", .sub = "x", .seq = 1 };

    erase_key(key);
    ck_assert_uint_eq(counts().agents + counts().hosts + counts().tasks + counts().roles, 0);
    expect("");
    /* Nor is it when the object is known by something else. */
    put(_i == HF_KEY_WANTED ? HF_KEY_HEALTH : HF_KEY_WANTED, "x", "{}");
    put(_i == HF_KEY_HOST_RECORD ? HF_KEY_HOST_LIVE : HF_KEY_HOST_RECORD, "x", "{}");
    put(_i == HF_KEY_RECOVERY ? HF_KEY_TASK : HF_KEY_RECOVERY, "x", "{}");
    ignore();
    erase_key(key);
    expect("");
    ck_assert_uint_eq(counts().agents + counts().hosts + counts().tasks, 3);
}
END_TEST

static const enum hf_key_kind IGNORED[] = { HF_KEY_PENDING, HF_KEY_CHECKPOINT, HF_KEY_EVENT };

START_TEST(other_kinds_are_ignored)
{
    put_key((struct hf_key){ IGNORED[_i], .name = "x", .sub = "x", .seq = 1 }, "{}");
    expect("");
    ck_assert_uint_eq(counts().agents + counts().hosts + counts().tasks + counts().roles, 0);
}
END_TEST

START_TEST(bodies_are_ignored)
{
    struct hf_fleet_change change = { .key = { (enum hf_key_kind)_i, .name = "x", .seq = 1 },
                                      .seen = { .mod_rev = 7 } };

    ck_assert_int_eq(hf_fleet_apply(fleet, &change), HF_OK);
    expect("");
    ck_assert_uint_eq(counts().tasks, 0);
}
END_TEST

START_TEST(singletons)
{
    put(HF_KEY_META, NULL, "{\"generation\":3}");
    put(HF_KEY_CLOCK, NULL, "{\"leader\":\"c\"}");
    put(HF_KEY_LEADER, NULL, "{\"id\":\"d\"}");
    ck_assert_int_eq(((const Holdfast__V1__Meta *)hf_fleet_get_meta(fleet)->record)->generation,
                     3);
    ck_assert_str_eq(((const Holdfast__V1__Clock *)hf_fleet_get_clock(fleet)->record)->leader,
                     "c");
    ck_assert_str_eq(((const Holdfast__V1__Leader *)hf_fleet_get_leader(fleet)->record)->id,
                     "d");
    put(HF_KEY_META, NULL, "{\"generation\":4}");
    ck_assert_int_eq(((const Holdfast__V1__Meta *)hf_fleet_get_meta(fleet)->record)->generation,
                     4);
    erase(HF_KEY_META, NULL);
    erase(HF_KEY_CLOCK, NULL);
    erase(HF_KEY_LEADER, NULL);
    ck_assert_ptr_null(hf_fleet_get_meta(fleet)->record);
    ck_assert_ptr_null(hf_fleet_get_clock(fleet)->record);
    ck_assert_int_eq(hf_fleet_get_leader(fleet)->seen.mod_rev, 0);
    expect("");
}
END_TEST

static const struct {
    enum hf_key_kind kind;
    bool kept;
} TEXTS[] = {
    { HF_KEY_META, true },         { HF_KEY_CLOCK, true },         { HF_KEY_LEADER, false },
    { HF_KEY_HOST_RECORD, false }, { HF_KEY_HOST_LIVE, false },    { HF_KEY_AGENT_SPEC, false },
    { HF_KEY_AGENT_LIVE, false },  { HF_KEY_AGENT_REPORT, false }, { HF_KEY_AGENT_EXIT, false },
    { HF_KEY_WANTED, true },       { HF_KEY_HEALTH, true },        { HF_KEY_TASK, true },
    { HF_KEY_RECOVERY, true },     { HF_KEY_COMMAND, false },
};

static struct hf_cell cell_of(enum hf_key_kind kind)
{
    switch (kind) {
    case HF_KEY_META: return *hf_fleet_get_meta(fleet);
    case HF_KEY_CLOCK: return *hf_fleet_get_clock(fleet);
    case HF_KEY_LEADER: return *hf_fleet_get_leader(fleet);
    case HF_KEY_HOST_RECORD: return host("x")->record;
    case HF_KEY_HOST_LIVE: return host("x")->live;
    case HF_KEY_TASK: return task("x")->task;
    case HF_KEY_RECOVERY: return task("x")->recovery;
    case HF_KEY_COMMAND: return agent("x")->commands->command;
    default: return agent_cell(agent("x"), kind);
    }
}

START_TEST(the_text_is_kept_of_what_is_written_again)
{
    char text[] = "{\"opIds\":{}}";
    bool has_op_ids = TEXTS[_i].kind != HF_KEY_LEADER && TEXTS[_i].kind != HF_KEY_HOST_LIVE;
    struct hf_cell cell;

    put_key((struct hf_key){ TEXTS[_i].kind, .name = "x", .sub = "x" },
            has_op_ids ? text : "{}");
    memset(text, 'x', sizeof text - 1); /* it was only lent */
    cell = cell_of(TEXTS[_i].kind);
    ck_assert_ptr_nonnull(cell.record);
    if (TEXTS[_i].kept) {
        ck_assert_uint_eq(cell.seen.text.len, sizeof text - 1);
        ck_assert_mem_eq(cell.seen.text.data, "{\"opIds\":{}}", sizeof text - 1);
    } else {
        ck_assert_ptr_null(cell.seen.text.data);
        ck_assert_uint_eq(cell.seen.text.len, 0);
    }
}
END_TEST

/* The whole. */

static void put_one_of_all(void)
{
    put(HF_KEY_META, NULL, "{}");
    put(HF_KEY_AGENT_SPEC, "a", "{\"role\":\"r\"}");
    put(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h\"}");
    put(HF_KEY_HOST_LIVE, "h", "{}");
    put(HF_KEY_TASK, "t", TASK("in_progress", "s", "b"));
    put(HF_KEY_TASK, "u", TASK("pending", "s", ""));
    put_command("h", "b", "{}");
    ignore();
}

/* While one is reported gone, all the others are still there. */
static void look_around(enum hf_fleet_kind kind, void *object, void *arg)
{
    (*(size_t *)arg)++;
    if (kind == HF_FLEET_TASK && ((struct hf_task *)object)->owner != NULL)
        ck_assert_str_eq(((struct hf_task *)object)->owner->name, "b");
    ck_assert_str_eq(role("s")->pending->name, "u");
    ck_assert_str_eq(role("r")->agents->host->name, "h");
    ck_assert_str_eq(host("h")->starts->agent->tasks->name, "t");
}

START_TEST(clear_forgets_everything)
{
    struct hf_fleet_counts none = { 0 }, left;

    put_one_of_all();
    hf_fleet_clear(fleet);
    expect("gone agent a, gone agent b, gone host h, gone role r, gone role s, gone task t, "
           "gone task u");
    left = counts();
    ck_assert_mem_eq(&left, &none, sizeof none);
    ck_assert_ptr_null(agent("a"));
    ck_assert_ptr_null(hf_fleet_get_meta(fleet)->record);
    put_one_of_all(); /* and goes on */
    ck_assert_uint_eq(counts().agents, 2);
    ck_assert_uint_eq(counts().live_agents, 1);
}
END_TEST

START_TEST(what_goes_sees_a_fleet_that_is_whole)
{
    size_t gone = 0;
    struct hf_fleet_config cfg = {
        .on_touched = on_touched, .on_gone = look_around, .arg = &gone, .seed = SEED
    };

    hf_fleet_free(fleet);
    fleet = hf_fleet_new(&cfg);
    put_one_of_all();
    hf_fleet_clear(fleet);
    ck_assert_uint_eq(gone, 7);
}
END_TEST

START_TEST(nobody_needs_to_hear_what_goes)
{
    struct hf_fleet_config cfg = { .on_touched = on_touched };

    hf_fleet_free(fleet);
    fleet = hf_fleet_new(&cfg);
    put_one_of_all();
    erase(HF_KEY_TASK, "u");
    expect("role s, task u");
    hf_fleet_clear(fleet);
    expect("");
    hf_fleet_free(NULL);
}
END_TEST

/* A record may name anything: what is beyond the limit is as if it were not there. */
START_TEST(a_host_reads_so_many_roots_and_no_more)
{
    struct hf_buf json = { 0 };

    hf_buf_puts(&json, "{\"roots\":[\"o0\"");
    for (int i = 1; i < HF_HOST_ROOTS + 2; i++)
        hf_buf_printf(&json, ",\"o%d\"", i);
    hf_buf_puts(&json, "]}");
    put(HF_KEY_HOST_RECORD, "h", json.data);
    put(HF_KEY_HOST_RECORD, "h", json.data); /* and the same again is the same */
    ck_assert_uint_eq(host("h")->reader_count, HF_HOST_ROOTS);
    ck_assert_ptr_nonnull(hf_fleet_get_root(fleet, "o0"));
    ck_assert_ptr_null(hf_fleet_get_root(fleet, "o64"));
    erase(HF_KEY_HOST_RECORD, "h");
    ck_assert_ptr_null(hf_fleet_get_root(fleet, "o0"));
    hf_buf_done(&json);
}
END_TEST

static void mark(enum hf_fleet_kind kind, void *object, void *arg)
{
    size_t *seen = arg;

    (void)kind;
    seen[strtoul(*(const char *const *)object + 1, NULL, 10)]++;
}

START_TEST(each_visits_every_object_once)
{
    size_t seen[100] = { 0 };
    char name[16], json[64];

    for (int i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "x%d", i);
        (void)snprintf(json, sizeof json, "{\"role\":\"x%d\"}", i);
        put(HF_KEY_AGENT_SPEC, name, json);
        put(HF_KEY_HOST_RECORD, name, "{}");
        put(HF_KEY_RECOVERY, name, "{}");
        ignore();
    }
    hf_fleet_each(fleet, (enum hf_fleet_kind)_i, mark, seen);
    for (size_t i = 0; i < COUNT(seen); i++)
        ck_assert_uint_eq(seen[i], 1);
}
END_TEST

static void list(enum hf_fleet_kind kind, void *object, void *arg)
{
    (void)kind;
    hf_buf_puts(arg, *(const char *const *)object);
}

/* Who knows the seed of one fleet knows nothing about where another has its names. */
START_TEST(the_order_depends_on_the_seed)
{
    struct hf_buf orders[2] = { 0 };

    for (uint64_t seed = 0; seed < 2; seed++) {
        hf_fleet_free(fleet);
        fleet =
            hf_fleet_new(&(struct hf_fleet_config){ .on_touched = on_touched, .seed = seed });
        for (char name[] = "a"; name[0] <= 'h'; name[0]++)
            put(HF_KEY_WANTED, name, "{}");
        hf_fleet_each(fleet, HF_FLEET_AGENT, list, &orders[seed]);
    }
    ck_assert_uint_eq(orders[0].len, 8);
    ck_assert_str_ne(orders[0].data, orders[1].data);
    hf_buf_done(&orders[0]);
    hf_buf_done(&orders[1]);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("fleet");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, the_deletion_of_what_is_not_known_is_nothing, HF_KEY_HOST_RECORD,
                        HF_KEY_LEADER);
    tcase_add_loop_test(t, other_kinds_are_ignored, 0, COUNT(IGNORED));
    tcase_add_loop_test(t, bodies_are_ignored, HF_KEY_TASK_PAYLOAD, HF_KEY_KINDS);
    tcase_add_test(t, singletons);
    tcase_add_loop_test(t, the_text_is_kept_of_what_is_written_again, 0, COUNT(TEXTS));
    tcase_add_test(t, clear_forgets_everything);
    tcase_add_test(t, what_goes_sees_a_fleet_that_is_whole);
    tcase_add_test(t, nobody_needs_to_hear_what_goes);
    tcase_add_test(t, a_host_reads_so_many_roots_and_no_more);
    tcase_add_loop_test(t, each_visits_every_object_once, HF_FLEET_AGENT, HF_FLEET_ROLE + 1);
    tcase_add_test(t, the_order_depends_on_the_seed);
    return run("core/fleet as a whole", t);
}
