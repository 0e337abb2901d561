/* The cluster as a whole: meta, the clock, a restored etcd, storms, what cannot be read, and
 * the audit trail. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

static void begin_empty(void)
{
    policy = hf_engine_policy_default();
    rev = 100;
    now = UPTIME;
    tells = answers = true;
    shows_guards = false;
    shows_clock = true;
    begin_engine();
}

START_TEST(the_first_leader_creates_meta_and_the_clock)
{
    teardown();
    begin_empty();
    lead();
    expect("meta: put meta (the cluster has no meta record yet)\n"
           "clock: put controller/clock (a leader begins)\n");
    ck_assert(has("meta", "\"schemaVersion\":1"));
    ck_assert(has("meta", "\"report\":\"1s\""));
    ck_assert(has("meta", "\"generation\":0"));
    pass(30000);
    expect("clock: put controller/clock (the cluster clock goes on)\n");
}
END_TEST

START_TEST(a_schema_that_is_newer_than_ours_is_only_read)
{
    teardown();
    begin_empty();
    put("meta", "{\"clusterId\":\"x\",\"schemaVersion\":2}");
    lead();
    pass(100000);
    expect("");
}
END_TEST

START_TEST(a_restored_etcd_gets_another_generation)
{
    task_is_owned("t", "in_progress", "a");
    ignore();
    ck_assert_int_eq(step(&(struct hf_event){ .kind = HF_EVENT_RESET }), HF_OK);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].value != NULL)
            tell_pair(pairs[i].key, &pairs[i]);
    }
    expect("");
    sync_engine();
    expect("meta: put meta (etcd was restored: a new generation begins)\n"
           "storm:  (PARTIAL: etcd's history went back a moment ago: lost leases may mean "
           "nothing)\n");
    ck_assert(has("meta", "\"generation\":1"));
}
END_TEST

START_TEST(a_clock_that_goes_back_means_a_restored_etcd)
{
    const char *json = "{\"now\":\"2001-01-01T00:00:00Z\"}";
    struct hf_event event = { .kind = HF_EVENT_CHANGE,
                              .change = { .key = { .kind = HF_KEY_CLOCK },
                                          .seen = { .create_rev = 1, .mod_rev = 9999 } } };

    ck_assert_int_eq(hf_json_decode(hf_key_get_record(HF_KEY_CLOCK), json, strlen(json), NULL,
                                    &event.change.record, NULL),
                     HF_OK);
    ck_assert_int_eq(step(&event), HF_EHISTORY);
    ck_assert(!hf_engine_get_status(engine, now).synced);
    expect("");
}
END_TEST

/* Ten hosts with an agent and a task each. */
static void build_hosts(void)
{
    for (int i = 0; i < 10; i++) {
        char host[16], agent[16], task[16];

        (void)snprintf(host, sizeof host, "n%d", i);
        (void)snprintf(agent, sizeof agent, "x%d", i);
        (void)snprintf(task, sizeof task, "k%d", i);
        host_joins(host, 0x100 + i);
        agent_lives(agent, host, 0x100 + i, "i");
        task_is_owned(task, "in_progress", agent);
    }
    pass(30000);
    ignore();
}

START_TEST(when_nearly_all_are_lost_at_once_nothing_is_done_and_one_person_is_told)
{
    build_hosts();
    expire(0x1);
    expire(0x2);
    for (int i = 0; i < 10; i++)
        expire(0x100 + i);
    pass(50000);
    /* The first few were suspects before it was a storm. */
    ck_assert_ptr_nonnull(strstr(said.data, "alert storm: "));
    ck_assert_ptr_null(strstr(strstr(said.data, "alert storm: ") + 1, "alert"));
    ck_assert_ptr_null(strstr(said.data, "commands/"));
    ck_assert_ptr_null(strstr(said.data, "tasks/"));
    ck_assert_int_eq(hf_engine_get_status(engine, now).storm.state, HF_STORM_FULL);
    ignore();
    /* Somebody is back: the others are given up, slowly. */
    host_joins("n0", 0x200);
    agent_lives("x0", "n0", 0x200, "i");
    task_is_owned("k0", "in_progress", "x0");
    pass(10000);
    ck_assert_ptr_null(strstr(said.data, "commands/"));
    pass(300000);
    ck_assert_ptr_nonnull(strstr(said.data, "commands/n0/x9"));
    ck_assert_ptr_null(strstr(said.data, "tasks/k0"));
}
END_TEST

START_TEST(what_an_agentd_saw_is_not_held_up_by_a_storm)
{
    build_hosts();
    for (int i = 2; i < 10; i++)
        expire(0x100 + i);
    pass(1000);
    ignore();
    agent_ends("x0", "crashed");
    expect("agent x0: put recoveries/k0, put tasks/k0, put pending/r/k0, put commands/n0/x0, "
           "put health/x0 (it crashed: it is started again)\n");
}
END_TEST

/* The next entry of the audit trail is a person's. */
static void say(const char *word)
{
    char key[64], json[200];
    int seq = 1;

    do
        (void)snprintf(key, sizeof key, "events/%019d", seq++);
    while (get(key)[0] != '\0');
    (void)snprintf(json, sizeof json,
                   "{\"at\":\"2026-01-01T00:00:00Z\",\"kind\":\"operator\",\"why\":\"%s\"}",
                   word);
    put(key, json);
}

static enum hf_storm_state storm_state(void)
{
    return hf_engine_get_status(engine, now).storm.state;
}

START_TEST(what_a_person_holds_is_held_after_hours_and_by_every_leader)
{
    say("storm hold");
    expect("storm:  (FULL: a person holds it)\n");
    expire(0x1);
    pass(2 * 3600000);
    ck_assert_int_eq(storm_state(), HF_STORM_FULL);
    expect("");
    /* The only controller begins with nothing, and finds the word in the trail. */
    begin_engine();
    lead();
    pass(2 * 3600000);
    ck_assert_int_eq(storm_state(), HF_STORM_FULL);
    ck_assert_ptr_null(strstr(said.data, "storm:"));
    ck_assert_ptr_null(strstr(said.data, "commands/"));
    ignore();
    say("storm proceed");
    run_engine();
    ck_assert_int_eq(storm_state(), HF_STORM_PARTIAL);
    pass(300000);
    ck_assert_ptr_nonnull(strstr(said.data, "commands/h2/a"));
    /* And the last word counts. */
    begin_engine();
    lead();
    run_engine();
    ck_assert_int_ne(storm_state(), HF_STORM_FULL);
}
END_TEST

START_TEST(a_leader_that_began_before_it_saw_a_hold_obeys_it)
{
    begin_engine();
    say("storm hold"); /* as a standby */
    ck_assert_int_eq(storm_state(), HF_STORM_FULL);
    lead();
    expect("storm:  (FULL: a person holds it)\n");
    ck_assert_int_eq(hf_engine_get_status(engine, now).storm.at, HF_STORM_NEVER);
}
END_TEST

START_TEST(a_hold_does_not_fall_out_of_the_trail)
{
    int holds = 0;

    policy.ring = 100;
    begin_engine();
    lead();
    ignore();
    say("storm hold");
    for (int i = 0; i < 500; i++) {
        put("tasks/x", "{\"id\":\"x\",\"role\":\"r\",\"state\":\"pending\",\"reservedFor\":"
                       "\"z\"}");
        run_engine();
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        holds += pairs[i].value != NULL && strstr(pairs[i].value, "\"storm hold\"") != NULL;
    ck_assert_int_ge(holds, 1);
    ck_assert_int_le(holds, 2);
    begin_engine();
    lead();
    run_engine();
    ck_assert_int_eq(storm_state(), HF_STORM_FULL);
}
END_TEST

/* Of the newest entry about a storm. */
static bool storm_says(const char *text)
{
    const char *newest = "";
    const char *key = "";

    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].value != NULL && strstr(pairs[i].value, "\"kind\":\"storm\"") != NULL &&
            strcmp(pairs[i].key, key) > 0) {
            key = pairs[i].key;
            newest = pairs[i].value;
        }
    }
    ck_assert_msg(strstr(newest, text) != NULL, "%s", newest);
    return true;
}

START_TEST(the_trail_says_until_when_a_storm_lasts)
{
    build_hosts();
    for (int i = 0; i < 4; i++)
        expire(0x100 + i);
    run_engine();
    ck_assert(storm_says("\"why\":\"PARTIAL: many hosts were lost at once\""));
    ck_assert(storm_says("\"at\":\"20")); /* of what is next */
    /* More are lost: it lasts longer, which is told when the first end has come. */
    pass(50000);
    for (int i = 4; i < 8; i++)
        expire(0x100 + i);
    ignore();
    pass(20000);
    ck_assert_ptr_nonnull(strstr(said.data, "storm:  (PARTIAL"));
    ignore();
    pass(60000);
    ck_assert(storm_says("NORMAL"));
    say("storm hold");
    run_engine();
    ck_assert(storm_says("a person holds it"));
}
END_TEST

START_TEST(what_cannot_be_read_is_set_aside_and_told_of_once)
{
    struct hf_event event = { .kind = HF_EVENT_BAD,
                              .bad = { .key = { HF_KEY_AGENT_EXIT, .name = "a" },
                                       .seen = { .mod_rev = ++rev },
                                       .text = "agents/a/exit",
                                       .why = "expected an object" } };

    task_is_owned("t", "in_progress", "a");
    ck_assert_int_eq(step(&event), HF_OK);
    expect(
        "alert keyspace: /holdfast/default/agents/a/exit cannot be read: expected an object\n");
    erase("agents/a/live");
    pass(60000);
    expect("");
    ck_assert_uint_eq(hf_engine_get_status(engine, now).bad, 1);
    /* Others are not concerned. */
    agent_ends("b", "crashed");
    expect("agent b: put commands/h2/b, put health/b (it crashed: it is started again)\n");
    put("agents/a/exit", "{\"kind\":\"crashed\",\"incarnation\":{\"createRevision\":\"999\"}}");
    expect("agent a: put recoveries/t, put tasks/t, put pending/r/t, put commands/h1/a, "
           "put health/a (it crashed: it is started again)\n");
}
END_TEST

START_TEST(the_audit_trail_is_a_ring)
{
    size_t count = 0;

    teardown();
    begin_empty();
    policy.ring = 100;
    begin_engine();
    lead();
    for (int i = 0; i < 150; i++) {
        char task[16];

        (void)snprintf(task, sizeof task, "u%d", i);
        put("tasks/x", "{\"id\":\"x\",\"role\":\"r\",\"state\":\"pending\",\"reservedFor\":"
                       "\"z\"}");
        run_engine();
    }
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].value != NULL && strstr(pairs[i].key, "/events/") != NULL)
            count++;
    }
    ck_assert_uint_eq(count, 100);
    ck_assert_str_eq(get("events/0000000000000000051"), "");
    ck_assert_str_ne(get("events/0000000000000000052"), "");
    ck_assert(has("events/0000000000000000151", "\"kind\":\"reset\""));
    ck_assert(has("events/0000000000000000151", "\"actor\":\"c1\""));
    ck_assert(has("events/0000000000000000151", "\"task\":\"x\""));
}
END_TEST

START_TEST(another_leader_goes_on_with_the_trail)
{
    agent_ends("a", "crashed");
    ignore();
    begin_engine();
    lead();
    run_engine();
    ck_assert(has("events/0000000000000000005", "\"kind\":\"restart_ordered\""));
    ck_assert(has("events/0000000000000000006", "\"kind\":\"leader\""));
}
END_TEST

START_TEST(a_report_that_says_nothing_new_is_no_work)
{
    char json[200];

    (void)snprintf(json, sizeof json,
                   "{\"incarnation\":{\"createRevision\":\"%lld\"},\"status\":\"healthy\"}",
                   (long long)life_of("a"));
    put("agents/a/report", json);
    run_engine();
    put("agents/a/report", json);
    ck_assert_uint_eq(hf_engine_get_status(engine, now).queued, 0);
    (void)snprintf(json, sizeof json,
                   "{\"incarnation\":{\"createRevision\":\"%lld\"},\"status\":\"degraded\"}",
                   (long long)life_of("a"));
    put("agents/a/report", json);
    expect("agent a: put health/a (it says that it is not well)\n");
    ck_assert(has("health/a", "\"state\":\"degraded\""));
    ck_assert(has("health/a", "\"source\":\"agent\""));
}
END_TEST

static const struct {
    const char *suspicion;
    const char *why, *evidence;
} SUSPICIONS[] = {
    { "\"kind\":\"ping\",\"why\":\"two pings were not answered\",\"evidence\":[{\"source\":"
      "\"proc\",\"text\":\"state S\"}]",
      "agent a: put health/a (its agentd suspects it: two pings were not answered)\n",
      "\"source\":\"proc\",\"text\":\"state S\"" },
    { "\"kind\":\"heartbeat\",\"why\":\"no heartbeat\",\"frozen\":true",
      "agent a: put health/a (its agentd finds it frozen: no heartbeat)\n",
      "\"source\":\"heartbeat\",\"text\":\"no heartbeat\"" },
};

START_TEST(a_suspicion_is_kept_with_the_verdict_that_it_led_to)
{
    char json[400];

    (void)snprintf(json, sizeof json,
                   "{\"incarnation\":{\"createRevision\":\"%lld\"},\"suspicion\":{%s}}",
                   (long long)life_of("a"), SUSPICIONS[_i].suspicion);
    put("agents/a/report", json);
    expect(SUSPICIONS[_i].why);
    ck_assert(has("health/a", SUSPICIONS[_i].evidence));
}
END_TEST

#define FIELD(name) offsetof(struct hf_engine_policy, name)

static const struct {
    size_t at;
    hf_ms value;
    const char *why; /* NULL: the part's own */
} FAULTS[] = {
    { FIELD(ttl), 0, "engine.ttl must be 1 s..1 h" },
    { FIELD(ttl), 3600001, "engine.ttl must be 1 s..1 h" },
    { FIELD(grace_margin), -1, "engine.grace_margin must not be negative" },
    { FIELD(command_within), 0, "engine.command_within must be at least 1 s" },
    { FIELD(avoid_host), -1, "engine.avoid_host must not be negative" },
    { FIELD(unknown_pause), 0, "engine.unknown_pause and engine.told_within must be positive" },
    { FIELD(told_within), 0, "engine.unknown_pause and engine.told_within must be positive" },
    { FIELD(heir_within), -1, "engine.heir_within must be 0..60 s" },
    { FIELD(heir_within), 60001, "engine.heir_within must be 0..60 s" },
    { FIELD(settle_after), -1, "engine.settle_after must be 0..1 s" },
    { FIELD(settle_after), 1001, "engine.settle_after must be 0..1 s" },
    { FIELD(health_every), -1,
      "engine.health_every and engine.demand_after must not be negative" },
    { FIELD(demand_after), -1,
      "engine.health_every and engine.demand_after must not be negative" },
    { FIELD(sweep_after), 29999, "engine.sweep_after must not be below engine.command_within" },
    { FIELD(report_floor), 0, "engine.report_floor and engine.report_rate must be positive" },
    { FIELD(restart.window), -1, NULL },
    { FIELD(task.start_within), -1, NULL },
    { FIELD(tilt.tick), -1, NULL },
    { FIELD(clock.interval), -1, NULL },
    { FIELD(recover.probation), -1, NULL },
    { FIELD(placement.home_grace), -1, NULL },
    { FIELD(storm.window), -1, NULL },
};

START_TEST(a_policy_is_checked)
{
    struct hf_engine_policy p = hf_engine_policy_default();
    const char *why = NULL;

    ck_assert_int_eq(hf_engine_policy_check(&p, &why), HF_OK);
    ck_assert_ptr_null(why);
    memcpy((char *)&p + FAULTS[_i].at, &FAULTS[_i].value, sizeof FAULTS[_i].value);
    ck_assert_int_eq(hf_engine_policy_check(&p, &why), HF_EINVAL);
    ck_assert_ptr_nonnull(why);
    if (FAULTS[_i].why != NULL)
        ck_assert_str_eq(why, FAULTS[_i].why);
}
END_TEST

START_TEST(the_limit_of_unrest_is_one_that_can_be_counted)
{
    struct hf_engine_policy p = hf_engine_policy_default();
    const char *why = NULL;

    ck_assert_uint_eq(p.unrest_limit, 3);
    p.unrest_limit = 16;
    ck_assert_int_eq(hf_engine_policy_check(&p, &why), HF_OK);
    p.unrest_limit = 17;
    ck_assert_int_eq(hf_engine_policy_check(&p, &why), HF_EINVAL);
    p.unrest_limit = 0;
    ck_assert_int_eq(hf_engine_policy_check(&p, &why), HF_EINVAL);
    ck_assert_str_eq(why, "engine.unrest_limit must be 1..16");
}
END_TEST

START_TEST(the_ring_and_the_rate_of_reports_have_a_floor)
{
    struct hf_engine_policy p = hf_engine_policy_default();
    const char *why = NULL;

    p.ring = 99;
    ck_assert_int_eq(hf_engine_policy_check(&p, &why), HF_EINVAL);
    ck_assert_str_eq(why, "engine.ring must be at least 100");
    p.ring = 100;
    ck_assert_int_eq(hf_engine_policy_check(&p, &why), HF_OK);
    p.report_rate = 0;
    ck_assert_int_eq(hf_engine_policy_check(&p, &why), HF_EINVAL);
    ck_assert_str_eq(why, "engine.report_floor and engine.report_rate must be positive");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("cluster");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, the_first_leader_creates_meta_and_the_clock);
    tcase_add_test(t, a_schema_that_is_newer_than_ours_is_only_read);
    tcase_add_test(t, a_restored_etcd_gets_another_generation);
    tcase_add_test(t, a_clock_that_goes_back_means_a_restored_etcd);
    tcase_add_test(t, when_nearly_all_are_lost_at_once_nothing_is_done_and_one_person_is_told);
    tcase_add_test(t, what_an_agentd_saw_is_not_held_up_by_a_storm);
    tcase_add_test(t, what_a_person_holds_is_held_after_hours_and_by_every_leader);
    tcase_add_test(t, a_leader_that_began_before_it_saw_a_hold_obeys_it);
    tcase_add_test(t, a_hold_does_not_fall_out_of_the_trail);
    tcase_add_test(t, the_trail_says_until_when_a_storm_lasts);
    tcase_add_test(t, what_cannot_be_read_is_set_aside_and_told_of_once);
    tcase_add_test(t, the_audit_trail_is_a_ring);
    tcase_add_test(t, another_leader_goes_on_with_the_trail);
    tcase_add_test(t, a_report_that_says_nothing_new_is_no_work);
    tcase_add_loop_test(t, a_suspicion_is_kept_with_the_verdict_that_it_led_to, 0,
                        sizeof SUSPICIONS / sizeof SUSPICIONS[0]);
    tcase_add_loop_test(t, a_policy_is_checked, 0, COUNT(FAULTS));
    tcase_add_test(t, the_limit_of_unrest_is_one_that_can_be_counted);
    tcase_add_test(t, the_ring_and_the_rate_of_reports_have_a_floor);
    return run("core/engine cluster", t);
}
