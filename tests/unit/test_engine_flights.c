/* Writes under way: one for each object, until it was told what became of it. */
#include "support/chaos.h"
#include "unit/engine_fixture.h"
#include "unit/suite.h"

START_TEST(an_object_is_left_alone_while_a_write_of_it_is_under_way)
{
    answers = false;
    task_is_owned("t", "in_progress", "a");
    agent_ends("a", "crashed");
    expect("agent a: put recoveries/t, put tasks/t, put pending/r/t, put commands/h1/a, "
           "put health/a (it crashed: it is started again)\n");
    put("wanted/a", "{\"state\":\"running\"}");
    task_is_owned("u", "in_progress", "b");
    pass(60000);
    expect("");
    ck_assert_uint_eq(hf_engine_get_status(engine, now).flights, 3); /* clock, trail */
}
END_TEST

START_TEST(what_was_done_is_waited_for_until_it_is_told)
{
    answers = tells = false;
    put("wanted/a", "{\"state\":\"running\"}");
    agent_ends("a", "crashed");
    tells = true;
    tell_pair(full_key("agents/a/exit"), find_pair(full_key("agents/a/exit")));
    tell_pair(full_key("agents/a/live"), NULL);
    tell_pair(full_key("wanted/a"), find_pair(full_key("wanted/a")));
    expect("agent a: put commands/h1/a, put health/a (it crashed: it is started again)\n");
    tells = false;
    ck_assert(execute(&kept.plan));
    answer(&kept, HF_OUTCOME_DONE);
    expect("");
    ck_assert_uint_eq(hf_engine_get_status(engine, now).resting, 1);
    tell_pair(full_key("health/a"), find_pair(full_key("health/a")));
    tell_pair(full_key("commands/h1/a"), find_pair(full_key("commands/h1/a")));
    expect("");
    ck_assert_uint_eq(hf_engine_get_status(engine, now).resting, 0);
}
END_TEST

START_TEST(what_was_refused_is_decided_anew_on_what_is_told_then)
{
    answers = false;
    agent_ends("a", "crashed");
    expect("agent a: put commands/h1/a, put health/a (it crashed: it is started again)\n");
    /* Somebody was faster. */
    agent_lives("a", "h1", 0x1, "five");
    ck_assert(!execute(&kept.plan));
    answer(&kept, HF_OUTCOME_REFUSED);
    expect("");
    pass(60000);
    ck_assert_ptr_null(strstr(said.data != NULL ? said.data : "", "agent a"));
}
END_TEST

START_TEST(what_is_refused_again_and_again_is_tried_more_and_more_slowly)
{
    int tries = 0;

    answers = false;
    agent_ends("a", "crashed");
    for (int ms = 0; ms < 10000; ms++) {
        hf_buf_clear(&said);
        pass(1);
        if (said.len > 0 && strncmp(said.data, "agent a", 7) == 0) {
            tries++;
            answer(&kept, HF_OUTCOME_REFUSED);
        }
    }
    ck_assert_int_ge(tries, 4);
    ck_assert_int_le(tries, 9);
}
END_TEST

START_TEST(what_has_no_outcome_is_decided_anew_after_a_pause)
{
    answers = false;
    agent_ends("a", "crashed");
    ignore();
    answer(&kept, HF_OUTCOME_UNKNOWN);
    pass(999);
    expect("");
    pass(1);
    expect("agent a: put commands/h1/a, put health/a (it crashed: it is started again)\n");
    /* It had happened after all. */
    rev++;
    ck_assert(execute(&kept.plan));
    answer(&kept, HF_OUTCOME_UNKNOWN);
    pass(5000);
    expect("");
}
END_TEST

START_TEST(an_outcome_that_nobody_waits_for_is_ignored)
{
    struct hf_event event = { .kind = HF_EVENT_OUTCOME, .outcome = { .token = 12345 } };

    ck_assert_int_eq(step(&event), HF_OK);
    expect("");
}
END_TEST

START_TEST(an_object_may_go_while_its_write_is_under_way)
{
    answers = false;
    agent_ends("a", "crashed");
    ignore();
    erase("agents/a/exit");
    erase("agents/a/spec");
    ck_assert_ptr_null(hf_fleet_get_agent(hf_engine_get_fleet(engine), "a"));
    answer(&kept, HF_OUTCOME_REFUSED);
    expect("");
}
END_TEST

START_TEST(no_more_writes_are_under_way_than_there_is_room_for)
{
    answers = false;
    for (int i = 0; i < HF_ENGINE_FLIGHTS + 44; i++) {
        char task[16];

        (void)snprintf(task, sizeof task, "q%d", i);
        task_waits(task, "queued");
    }
    run_engine();
    ck_assert_uint_eq(hf_engine_get_status(engine, now).flights, HF_ENGINE_FLIGHTS);
    ck_assert_uint_ge(hf_engine_get_status(engine, now).queued, 44);
    ck_assert_int_gt(hf_engine_deadline(engine, now), now);
}
END_TEST

/* The call, and once more if it lacked memory. */
static int step_again(struct hf_engine *e, struct hf_event *event, int *lacks)
{
    int err = hf_engine_step(e, event, 1000);

    if (err != HF_ENOMEM)
        return err;
    ++*lacks;
    return hf_engine_step(e, event, 1000);
}

static int next_again(struct hf_engine *e, struct hf_intent *intent, int *lacks)
{
    int rc = hf_engine_next(e, 1000, WALL, 1, intent);

    if (rc != HF_ENOMEM)
        return rc;
    ++*lacks;
    return hf_engine_next(e, 1000, WALL, 1, intent);
}

/* Every allocation fails once; the call is repeated, and the story ends as it always does. */
static int crash_story(void *arg)
{
    struct hf_engine_config cfg = { .ns = NS, .id = "c1", .policy = policy, .seed = 7 };
    struct hf_engine *e = hf_engine_new(&cfg);
    static const struct {
        enum hf_key_kind kind;
        const char *name;
        const char *json;
    } KEYS[] = {
        { HF_KEY_META, NULL, "{\"clusterId\":\"x\",\"schemaVersion\":1}" },
        { HF_KEY_CLOCK, NULL, "{\"now\":\"2026-01-31T08:00:00Z\"}" },
        { HF_KEY_HOST_RECORD, "h1", "{\"launchers\":[\"w\"]}" },
        { HF_KEY_HOST_LIVE, "h1", "{}" },
        { HF_KEY_AGENT_SPEC, "a", "{\"role\":\"r\",\"launcher\":\"w\",\"home\":\"h1\"}" },
        { HF_KEY_AGENT_EXIT, "a", "{\"kind\":\"crashed\"}" },
        { HF_KEY_TASK, "t",
          "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"owner\":{\"agent\":\"a\","
          "\"incarnation\":{\"createRevision\":\"2\"}}}" },
    };
    struct hf_event bad = { .kind = HF_EVENT_BAD,
                            .bad = { .key = { HF_KEY_TASK, .name = "z" }, .why = "no JSON" } };
    struct hf_event synced = { .kind = HF_EVENT_SYNCED, .revision = 100 };
    struct hf_event term = { .kind = HF_EVENT_TERM, .term = { .lease = 1, .create_rev = 1 } };
    struct hf_intent intent = { .kind = HF_INTENT_NONE };
    int err = e != NULL ? HF_OK : HF_ENOMEM, writes = 0, lacks = 0;

    (void)arg;
    for (size_t i = 0; i < COUNT(KEYS) && err == HF_OK; i++) {
        struct hf_event event = {
            .kind = HF_EVENT_CHANGE,
            .change = { .key = { KEYS[i].kind, .name = KEYS[i].name },
                        .seen = { .create_rev = 10 + (int64_t)i,
                                  .mod_rev = 10 + (int64_t)i,
                                  .lease = 5,
                                  .text = { KEYS[i].json, strlen(KEYS[i].json) } } }
        };

        err = hf_json_decode(hf_key_get_record(KEYS[i].kind), KEYS[i].json,
                             strlen(KEYS[i].json), NULL, &event.change.record, NULL);
        if (err == HF_OK)
            err = step_again(e, &event, &lacks);
        if (err != HF_OK)
            hf_json_free(event.change.record);
    }
    if (err == HF_OK)
        err = step_again(e, &bad, &lacks);
    if (err == HF_OK)
        err = step_again(e, &synced, &lacks);
    if (err == HF_OK)
        err = step_again(e, &term, &lacks);
    while (err >= 0 && (err = next_again(e, &intent, &lacks)) == 1) {
        writes += intent.kind == HF_INTENT_WRITE ? 1 : 0;
        hf_intent_done(&intent);
    }
    hf_engine_free(e);
    if (err == HF_OK && writes != 1)
        return HF_EINVAL;
    return err == HF_OK && lacks > 0 ? HF_ENOMEM : err;
}

START_TEST(without_memory_nothing_is_lost_or_broken)
{
    hft_chaos_adopt_jansson();
    ck_assert_uint_gt(hft_chaos_run(crash_story, NULL), 20);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("flights");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, an_object_is_left_alone_while_a_write_of_it_is_under_way);
    tcase_add_test(t, what_was_done_is_waited_for_until_it_is_told);
    tcase_add_test(t, what_was_refused_is_decided_anew_on_what_is_told_then);
    tcase_add_test(t, what_is_refused_again_and_again_is_tried_more_and_more_slowly);
    tcase_add_test(t, what_has_no_outcome_is_decided_anew_after_a_pause);
    tcase_add_test(t, an_outcome_that_nobody_waits_for_is_ignored);
    tcase_add_test(t, an_object_may_go_while_its_write_is_under_way);
    tcase_add_test(t, no_more_writes_are_under_way_than_there_is_room_for);
    tcase_add_test(t, without_memory_nothing_is_lost_or_broken);
    return run("core/engine flights", t);
}
