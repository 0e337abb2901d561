/* What comes next, by the records alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "core/outlook.h"
#include "core/rows.h"
#include "schema/json.h"
#include "schema/keys.h"
#include "unit/suite.h"

#define NS   "default"
#define WALL INT64_C(1790000000000)
#define MIN  INT64_C(60000)

static struct hf_fleet *fleet;
static int64_t rev;

static void ignore(enum hf_fleet_kind kind, void *object, void *arg)
{
    (void)kind;
    (void)object;
    (void)arg;
}

static struct hf_task_policy usual;
static const struct hf_task_policy *policy; /* of the leader; NULL: nobody knows it */

static void open_fleet(void)
{
    struct hf_fleet_config cfg = { .seed = 1, .on_touched = ignore };

    rev = 100;
    fleet = hf_fleet_new(&cfg);
    ck_assert_ptr_nonnull(fleet);
    usual = hf_task_policy_default();
    policy = &usual;
}

static void close_fleet(void)
{
    hf_fleet_free(fleet);
}

static ProtobufCMessage *parse(enum hf_key_kind kind, const char *json)
{
    ProtobufCMessage *record = NULL;
    struct hf_error err = { "" };

    ck_assert_msg(hf_json_decode(hf_key_get_record(kind), json, strlen(json), NULL, &record,
                                 &err) == HF_OK,
                  "%s: %s", json, err.text);
    return record;
}

static int64_t tell(enum hf_key_kind kind, const char *name, const char *json)
{
    struct hf_fleet_change change = {
        .key = { .kind = kind, .name = name },
        .seen = { .lease = 7 },
        .record = parse(kind, json),
    };

    change.seen.create_rev = change.seen.mod_rev = ++rev;
    ck_assert_int_eq(hf_fleet_apply(fleet, &change), HF_OK);
    return rev;
}

/* The op_id of a write so long ago. */
static const char *op_id(hf_ms ago)
{
    static char id[HF_ID_LEN + 1];

    hf_id_format(WALL - ago, (const uint8_t[10]){ 0 }, id);
    return id;
}

static struct hf_outlook ask(const char *json)
{
    Holdfast__V1__Task *task = (Holdfast__V1__Task *)parse(HF_KEY_TASK, json);
    struct hf_seen_task seen = { .seen = { .create_rev = 1, .mod_rev = 200 }, .task = task };
    struct hf_outlook outlook = hf_outlook_task(fleet, &seen, policy, WALL);
    static char what[200];

    (void)snprintf(what, sizeof what, "%s", outlook.what != NULL ? outlook.what : "nothing");
    outlook.what = what;
    hf_json_free(&task->base);
    return outlook;
}

static struct hf_outlook ask_state(const char *state, const char *more, hf_ms ago)
{
    char json[400];

    (void)snprintf(
        json, sizeof json,
        "{\"id\":\"t\",\"role\":\"r\",\"state\":\"%s\",\"opIds\":{\"owner\":\"%s\"}%s}", state,
        op_id(ago), more);
    return ask(json);
}

static void expect(struct hf_outlook outlook, const char *part, hf_ms at)
{
    ck_assert_msg(strstr(outlook.what, part) != NULL, "%s", outlook.what);
    ck_assert_int_eq(outlook.at, at);
}

START_TEST(a_record_says_when_it_was_written)
{
    ProtobufCMessage *task;
    char json[200], older[HF_ID_LEN + 1];

    (void)snprintf(older, sizeof older, "%s", op_id(5 * MIN));
    (void)snprintf(json, sizeof json,
                   "{\"opIds\":{\"owner\":\"%s\",\"controller\":\"%s\",\"operator\":\"x\"}}",
                   older, op_id(2 * MIN));
    task = parse(HF_KEY_TASK, json);
    ck_assert_int_eq(hf_outlook_written(task), WALL - 2 * MIN);
    hf_json_free(task);
    task = parse(HF_KEY_TASK, "{}");
    ck_assert_int_eq(hf_outlook_written(task), 0);
    hf_json_free(task);
    ck_assert_int_eq(hf_outlook_written(NULL), 0);
}
END_TEST

START_TEST(pending_work_waits_for_its_role)
{
    char exit[200];

    expect(ask_state("pending", "", 1 * MIN), "somebody is told", WALL + 4 * MIN);
    expect(ask_state("pending", "", 6 * MIN), "a person has to look",
           WALL + (24 * 60 - 6) * MIN);
    expect(ask("{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\"}"), "somebody is told", 0);
    expect(ask_state("pending", ",\"reservedFor\":\"a\"", 0), "is started with it", 0);
    /* Its last agent ended after it was submitted. */
    (void)tell(HF_KEY_AGENT_SPEC, "a", "{\"role\":\"r\"}");
    (void)snprintf(exit, sizeof exit, "{\"kind\":\"crashed\",\"opIds\":{\"owner\":\"%s\"}}",
                   op_id(1 * MIN));
    (void)tell(HF_KEY_AGENT_EXIT, "a", exit);
    expect(ask_state("pending", "", 6 * MIN), "somebody is told", WALL + 4 * MIN);
    (void)tell(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h\"}");
    expect(ask_state("pending", "", 6 * MIN), "an agent of its role takes it", 0);
}
END_TEST

/* Times are those of who leads; with nobody, or one who does not say, there are none. */
START_TEST(how_long_work_waits_is_the_leader_s_to_say)
{
    Holdfast__V1__Leader *leader = (Holdfast__V1__Leader *)parse(
        HF_KEY_LEADER, "{\"id\":\"c\",\"waits\":{\"startWithin\":\"7s\",\"alertAfter\":"
                       "\"0.500s\",\"reviewAfter\":\"3600s\"}}");
    Holdfast__V1__Leader *silent =
        (Holdfast__V1__Leader *)parse(HF_KEY_LEADER, "{\"id\":\"c\"}");
    struct hf_task_policy said;

    ck_assert(!hf_outlook_policy(NULL, &said));
    ck_assert(!hf_outlook_policy(silent, &said));
    ck_assert(hf_outlook_policy(leader, &said));
    ck_assert_int_eq(said.start_within, 7000);
    ck_assert_int_eq(said.alert_after, 500);
    policy = &said;
    expect(ask_state("pending", "", 1 * MIN), "a person has to look", WALL + 59 * MIN);
    policy = NULL;
    expect(ask_state("pending", "", 1 * MIN), "somebody is told", 0);
    hf_json_free(&leader->base);
    hf_json_free(&silent->base);
}
END_TEST

START_TEST(owned_work_follows_its_owner)
{
    char owner[200];
    int64_t life;

    (void)tell(HF_KEY_AGENT_SPEC, "a", "{\"role\":\"r\"}");
    life = tell(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h\"}");
    (void)snprintf(owner, sizeof owner,
                   ",\"owner\":{\"agent\":\"a\",\"incarnation\":{\"createRevision\":\"%lld\"}}",
                   (long long)life);
    expect(ask_state("acknowledged", owner, 30000), "released to anyone", WALL + 90000);
    expect(ask_state("in_progress", owner, 0), "its owner brings it to an end", 0);
    (void)tell(HF_KEY_HEALTH, "a", "{\"state\":\"suspect\",\"next\":{\"what\":\"x\"}}");
    expect(ask_state("in_progress", owner, 0), "its owner brings it to an end", 0);

    ck_assert_int_eq(
        hf_fleet_apply(
            fleet, &(struct hf_fleet_change){ .key = { .kind = HF_KEY_AGENT_LIVE, .name = "a" },
                                              .seen = { .mod_rev = ++rev } }),
        HF_OK);
    expect(ask_state("in_progress", owner, 0), "is given up, and it is reset", 0);
    (void)tell(
        HF_KEY_HEALTH, "a",
        "{\"state\":\"suspect\",\"next\":{\"what\":\"x\",\"at\":\"2026-09-21T14:13:29Z\"}"
        "}");
    expect(ask_state("in_progress", owner, 0), "is given up, and it is reset",
           INT64_C(1790000009000));
    (void)tell(HF_KEY_HEALTH, "a", "{\"state\":\"failing\"}");
    expect(ask_state("in_progress", owner, 0), "it is reset: its owner is gone", 0);
    (void)tell(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h\"}");
    expect(ask_state("in_progress", owner, 0), "adopts it, or it is reset", 0);
    expect(ask_state("in_progress", ",\"owner\":{\"agent\":\"z\"}", 0), "is not known", 0);
}
END_TEST

static const struct {
    const char *task;
    int64_t life; /* that was asked, after the present one */
    bool answered, counts;
} INQUIRIES[] = { { "t", 0, false, true },
                  { "t", INT64_C(1) << 48, false, true }, /* of another generation */
                  { "t", -1, false, false },
                  { "t", 0, true, false },
                  { "u", 0, false, false } };

START_TEST(what_its_owner_was_asked_comes_first)
{
    char json[400], owner[200];
    int64_t life;

    life = tell(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h\"}");
    (void)snprintf(owner, sizeof owner,
                   ",\"owner\":{\"agent\":\"a\",\"incarnation\":{\"createRevision\":\"%lld\"}}",
                   (long long)life);
    (void)snprintf(json, sizeof json,
                   "{\"state\":\"stuck\",\"next\":{\"what\":\"unless it answers\",\"at\":"
                   "\"2026-09-21T14:13:29Z\"},\"inquiry\":{\"task\":\"%s\",\"incarnation\":"
                   "\"%lld\",\"answered\":%s}}",
                   INQUIRIES[_i].task, (long long)(life + INQUIRIES[_i].life),
                   INQUIRIES[_i].answered ? "true" : "false");
    (void)tell(HF_KEY_HEALTH, "a", json);
    expect(ask_state("in_progress", owner, 0),
           INQUIRIES[_i].counts ? "unless it answers" : "its owner brings it to an end",
           INQUIRIES[_i].counts ? INT64_C(1790000009000) : 0);
}
END_TEST

START_TEST(what_has_ended_waits_for_nobody_but_a_person)
{
    expect(ask_state("completed", "", 0), "nothing", 0);
    expect(ask_state("cancelled", "", 0), "nothing", 0);
    expect(ask_state("needs_review", "", 0), "task retry", 0);
    expect(ask_state("queued", "", 0), "limit", 0);
    expect(ask_state(
               "queued",
               ",\"next\":{\"what\":\"its backoff is over\",\"at\":\"2026-09-21T14:13:29Z\"}",
               0),
           "backoff", INT64_C(1790000009000));
    expect(ask_state(
               "queued",
               ",\"next\":{\"what\":\"its backoff is over\",\"at\":\"2026-09-21T14:13:19Z\"}",
               0),
           "a limit of its role", 0);
    expect(ask_state("queued", ",\"next\":{\"what\":\"fewer of its role run\"}", 0),
           "fewer of its role run", 0);
}
END_TEST

static void expect_agent(const char *part)
{
    const char *what = hf_outlook_agent(hf_fleet_get_agent(fleet, "a")).what;

    ck_assert_msg(part == NULL ? what == NULL : what != NULL && strstr(what, part) != NULL,
                  "%s", what != NULL ? what : "nothing");
}

START_TEST(an_agent_has_an_outlook_before_the_leader_wrote_one)
{
    (void)tell(HF_KEY_AGENT_SPEC, "a", "{\"role\":\"r\"}");
    expect_agent("gives it up unless it comes back");
    (void)tell(HF_KEY_AGENT_EXIT, "a", "{\"kind\":\"crashed\"}");
    expect_agent("whether it is started again");
    (void)tell(HF_KEY_AGENT_LIVE, "a", "{\"host\":\"h\"}");
    expect_agent(NULL);
    (void)tell(HF_KEY_HEALTH, "a", "{\"next\":{\"what\":\"its start\"}}");
    expect_agent("its start");
    (void)tell(HF_KEY_WANTED, "a", "{\"state\":\"stopped\"}");
    expect_agent("its agentd ends it");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("outlook");

    tcase_add_checked_fixture(t, open_fleet, close_fleet);
    tcase_add_test(t, a_record_says_when_it_was_written);
    tcase_add_test(t, pending_work_waits_for_its_role);
    tcase_add_test(t, how_long_work_waits_is_the_leader_s_to_say);
    tcase_add_test(t, owned_work_follows_its_owner);
    tcase_add_loop_test(t, what_its_owner_was_asked_comes_first, 0, COUNT(INQUIRIES));
    tcase_add_test(t, what_has_ended_waits_for_nobody_but_a_person);
    tcase_add_test(t, an_agent_has_an_outlook_before_the_leader_wrote_one);
    return run("core/outlook", t);
}
