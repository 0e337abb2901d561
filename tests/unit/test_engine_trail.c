/* The audit trail: what each thing that happens leaves in it, once, whoever leads. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

static int by_key(const void *a, const void *b)
{
    return strcmp((*(struct pair *const *)a)->key, (*(struct pair *const *)b)->key);
}

static struct hf_buf told;

/* Kinds and subjects of all entries from that number on: "ended a, reset t/a, ...". */
static const char *trail_from(int seq)
{
    struct pair *list[COUNT(pairs)];
    size_t count = 0;
    char first[64];

    (void)snprintf(first, sizeof first, "/holdfast/" NS "/events/%019d", seq);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        if (pairs[i].value != NULL && strstr(pairs[i].key, "/events/") != NULL &&
            strcmp(pairs[i].key, first) >= 0)
            list[count++] = &pairs[i];
    }
    qsort(list, count, sizeof list[0], by_key);
    hf_buf_clear(&told);
    for (size_t i = 0; i < count; i++) {
        const Holdfast__V1__Event *event;
        ProtobufCMessage *record;

        ck_assert_int_eq(hf_json_decode(hf_key_get_record(HF_KEY_EVENT), list[i]->value,
                                        strlen(list[i]->value), NULL, &record, NULL),
                         HF_OK);
        event = (const Holdfast__V1__Event *)record;
        hf_buf_printf(&told, "%s%s%s%s%s%s", i > 0 ? ", " : "",
                      protobuf_c_enum_descriptor_get_value(
                          &holdfast__v1__event__kind__descriptor, (int)event->kind)
                          ->name,
                      event->task[0] != '\0' ? " " : "", event->task,
                      event->agent[0] != '\0' ? " " : "", event->agent);
        hf_json_free(record);
    }
    hf_buf_printf(&told, "%s", "");
    return told.data;
}

static void forget_told(void)
{
    hf_buf_done(&told);
    teardown();
}

static int next_seq(void)
{
    char key[64];
    int seq = 1;

    do
        (void)snprintf(key, sizeof key, "events/%019d", seq++);
    while (get(key)[0] != '\0');
    return seq - 1;
}

static bool entry_has(int seq, const char *text)
{
    char key[64];

    (void)snprintf(key, sizeof key, "events/%019d", seq);
    ck_assert_msg(has(key, text), "%s", get(key));
    return true;
}

START_TEST(who_joins_is_told_of_without_any_other_write)
{
    ck_assert_str_eq(trail_from(1), "leader, joined a, joined b");
    ck_assert(entry_has(2, "pid 0, live key of revision"));
    agent_lives("c", "h1", 0x1, "three");
    expect("");
    pass(2000);
    expect("");
    ck_assert_str_eq(trail_from(4), "joined c");
}
END_TEST

START_TEST(one_recovery_leaves_exactly_this)
{
    int from = next_seq();

    task_waits("t", "pending");
    pass(2000);
    task_is_owned("t", "in_progress", "a");
    pass(5000);
    agent_ends("a", "crashed");
    run_engine();
    pass(500);
    host_serves("h1", "a", 0x1, "again", "t");
    pass(5000);
    task_is_owned("t", "completed", "a");
    pass(5000);
    ck_assert_str_eq(trail_from(from),
                     "submitted t, ended a, reset t a, restart_ordered t a, joined a, "
                     "recovered t, completed t a");
    ck_assert(entry_has(from + 1, "signal 11"));
    ck_assert(entry_has(from + 1, "\"why\":\"it crashed\""));
    ck_assert(entry_has(from + 2, "signal 11"));
    ck_assert(entry_has(from + 2, "\"at\":\"2026"));
    ck_assert(entry_has(from + 3, "signal 11"));
    ck_assert(entry_has(from + 6, "it is completed, by a"));
}
END_TEST

START_TEST(a_task_that_nothing_happened_to_is_told_of_twice)
{
    int from = next_seq();

    task_waits("t", "pending");
    pass(3000);
    task_is_owned("t", "acknowledged", "a");
    task_is_owned("t", "in_progress", "a");
    task_is_owned("t", "completed", "a");
    pass(3000);
    task_waits("u", "pending");
    pass(3000);
    put("tasks/u", "{\"id\":\"u\",\"role\":\"r\",\"state\":\"failed\",\"reason\":\"no paper\","
                   "\"owner\":{\"agent\":\"b\"}}");
    pass(3000);
    ck_assert_str_eq(trail_from(from), "submitted t, completed t a, submitted u, failed u b");
    ck_assert(entry_has(from + 3, "it failed, by b: no paper"));
}
END_TEST

START_TEST(an_end_is_told_of_once_whatever_follows)
{
    int from = next_seq();

    agent_ends("a", "crashed");
    run_engine();
    pass(31000); /* its host does not serve it: another host, and so on */
    begin_engine();
    lead();
    pass(60000);
    trail_from(from);
    ck_assert_ptr_nonnull(strstr(told.data, "ended a"));
    ck_assert_ptr_null(strstr(strstr(told.data, "ended a") + 1, "ended a"));
}
END_TEST

START_TEST(who_is_back_after_a_suspicion_is_cleared_and_has_not_joined)
{
    int from = next_seq();

    expire(0x1);
    pass(2000);
    host_joins("h1", 0x11);
    agent_lives("a", "h1", 0x11, "one");
    pass(30000);
    ck_assert_str_eq(trail_from(from), "suspect a, cleared a");
    ck_assert(entry_has(from, "\"next\":{\"what\":\"it is given up\",\"at\":\"20"));
}
END_TEST

START_TEST(the_next_leader_tells_what_this_one_did_not)
{
    int from = next_seq();

    task_waits("t", "pending");
    agent_lives("c", "h1", 0x1, "three");
    begin_engine(); /* before the notes were told */
    lead();
    pass(3000);
    begin_engine();
    lead();
    pass(3000);
    ck_assert_str_eq(trail_from(from), "leader, joined c, submitted t, leader");
}
END_TEST

START_TEST(a_standby_drops_what_the_leader_told)
{
    int from = next_seq();

    begin_engine();
    agent_lives("c", "h1", 0x1, "three");
    put("events/0000000000000000004",
        "{\"kind\":\"joined\",\"agent\":\"c\",\"revision\":\"9999\"}");
    lead();
    pass(3000);
    ck_assert_str_eq(trail_from(from), "joined c, leader");
}
END_TEST

START_TEST(a_flood_does_not_push_everything_else_out_of_the_ring)
{
    int from = next_seq();
    unsigned count = 0;

    for (int i = 0; i < 300; i++) {
        char task[16];

        (void)snprintf(task, sizeof task, "u%d", i);
        task_waits(task, "pending");
        pass(10);
        (void)snprintf(task, sizeof task, "tasks/u%d", i);
        erase(task);
        task_waits("t", "pending");
        erase("tasks/t");
    }
    pass(60000);
    for (const char *at = trail_from(from); (at = strstr(at, "submitted")) != NULL; at++)
        count++;
    ck_assert_uint_lt(count, 10); /* what is gone again is not worth an entry */
    for (int i = 0; i < 240; i++) {
        char task[16];

        (void)snprintf(task, sizeof task, "v%d", i);
        task_waits(task, "cancelled");
    }
    count = 0;
    pass(10000);
    for (const char *at = trail_from(from); (at = strstr(at, "submitted")) != NULL; at++)
        count++;
    ck_assert_uint_ge(count, 190);
    ck_assert_uint_le(count, 225);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("trail");

    tcase_add_checked_fixture(t, setup, forget_told);
    tcase_add_test(t, who_joins_is_told_of_without_any_other_write);
    tcase_add_test(t, one_recovery_leaves_exactly_this);
    tcase_add_test(t, a_task_that_nothing_happened_to_is_told_of_twice);
    tcase_add_test(t, an_end_is_told_of_once_whatever_follows);
    tcase_add_test(t, who_is_back_after_a_suspicion_is_cleared_and_has_not_joined);
    tcase_add_test(t, the_next_leader_tells_what_this_one_did_not);
    tcase_add_test(t, a_standby_drops_what_the_leader_told);
    tcase_add_test(t, a_flood_does_not_push_everything_else_out_of_the_ring);
    return run("core/engine trail", t);
}
