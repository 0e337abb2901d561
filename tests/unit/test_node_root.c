/* Checkpoints that lie in files: who has them goes on from them, and nobody else starts over.
 */
#include "unit/node_fixture.h"

#define RESUME "{\"id\":\"1\",\"host\":\"h\",\"task\":\"t\"}"
#define MINE   "{\"id\":\"mine\",\"host\":\"h\"}"
#define THEIRS "{\"id\":\"theirs\",\"host\":\"far\"}"

static void ended(void)
{
    running();
    news("a", HF_PROCESS_READY, 0, NULL);
    news("a", HF_PROCESS_ENDED, 1, NULL);
    ignore();
}

/* Two checkpoints, the newer one in files. */
static void put_chain(const char *root)
{
    char value[300];

    put("checkpoints/t/0000000000000000001", "{\"task\":\"t\",\"seq\":\"1\"}");
    (void)snprintf(value, sizeof value,
                   "{\"task\":\"t\",\"seq\":\"2\",\"parent\":\"1\",\"root\":%s}", root);
    put("checkpoints/t/0000000000000000002", value);
}

static void put_waiting(const char *root)
{
    char value[300];

    (void)snprintf(value, sizeof value,
                   TASK_OF("t", "pending", ",\"checkpoint\":{\"seq\":\"2\"},\"root\":%s"),
                   root);
    put("tasks/t", value);
    (void)snprintf(value, sizeof value, "{\"root\":%s}", root);
    put("pending/r/t", value);
}

START_TEST(who_has_the_files_goes_on_from_them)
{
    ended();
    put_chain(MINE);
    put_waiting(MINE);
    put("commands/h/a", RESUME);
    expect("make a#2\nverify 2\nlet go a#2 as 111 with t from 2\n");
}
END_TEST

START_TEST(a_start_from_files_of_another_host_is_refused_and_the_task_waits_for_it)
{
    ended();
    put_chain(THEIRS);
    put("tasks/t",
        TASK_OF("t", "pending", ",\"checkpoint\":{\"seq\":\"2\"},\"reservedFor\":\"a\""));
    put("commands/h/a", RESUME);
    run_node();
    ck_assert_ptr_null(strstr(w.log, "verify"));
    ck_assert_ptr_null(strstr(w.log, "let go"));
    ck_assert_ptr_null(get("commands/h/a"));
    has("agents/a/exit", "\"kind\":\"start_failed\"");
    has("agents/a/exit", "checkpoint 2 lies in files of host far");
    has("agents/a/exit", "share checkpoints.directory");
    has("tasks/t", "\"reservedFor\":\"\"");
    has("tasks/t", "\"root\":{\"id\":\"theirs\",\"host\":\"far\",\"lost\":false}");
    has("pending/r/t", "\"root\":{\"id\":\"theirs\"");
}
END_TEST

START_TEST(what_another_host_has_to_go_on_with_is_not_claimed)
{
    running();
    put_chain(THEIRS);
    put_waiting(THEIRS);
    ask("a", HF_ASK_CLAIM, NULL);
    expect("");
    put("pending/r/u", "{}");
    put("tasks/u", TASK_OF("u", "pending", ""));
    expect("reply 1 OK u\n");
}
END_TEST

/* An index entry may be older than what the task says. */
START_TEST(the_task_has_the_last_word_about_where_its_checkpoint_lies)
{
    running();
    put_waiting(THEIRS);
    put("pending/r/t", "{}");
    ask("a", HF_ASK_CLAIM, NULL);
    wait(5000);
    expect("reply 1 ENOENT\n");
    has("tasks/t", "\"state\":\"pending\"");
}
END_TEST

START_TEST(who_asks_for_what_lies_elsewhere_is_told_where)
{
    running();
    put_chain(THEIRS);
    put_pending("t", ",\"checkpoint\":{\"seq\":\"2\"}");
    ask("a", HF_ASK_CLAIM, NULL);
    ignore();
    ask("a", HF_ASK_RESTORE, "t");
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "reply 2 EAGAIN\n"));
    ck_assert_ptr_null(strstr(w.log, "verify"));
}
END_TEST

START_TEST(what_a_person_gave_up_is_passed_over)
{
    running();
    put_chain(THEIRS);
    put_waiting("{\"id\":\"theirs\",\"host\":\"far\",\"lost\":true}");
    put("pending/r/t", "{}");
    ask("a", HF_ASK_CLAIM, NULL);
    ignore();
    has("tasks/t", "\"state\":\"acknowledged\"");
    ask("a", HF_ASK_RESTORE, "t");
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "verify 1\n"));
    ck_assert_ptr_nonnull(strstr(w.log, "reply 2 OK t seq 1\n"));
}
END_TEST

START_TEST(a_task_says_where_its_newest_checkpoint_lies)
{
    Holdfast__V1__Checkpoint entry = HOLDFAST__V1__CHECKPOINT__INIT;
    Holdfast__V1__Root root = HOLDFAST__V1__ROOT__INIT;

    running();
    put_pending("t", "");
    ask("a", HF_ASK_CLAIM, NULL);
    ask("a", HF_ASK_START, "t");
    ignore();
    entry.task = (char *)"t";
    root.id = (char *)"mine";
    root.host = (char *)"h";
    for (int i = 0; i < 2; i++) {
        char id[32];

        (void)snprintf(id, sizeof id, "%s", instance("a"));
        entry.root = i == 0 ? &root : NULL;
        must((struct hf_event){ .kind = HF_EVENT_ASK,
                                .ask = { .token = ++w.ask,
                                         .kind = HF_ASK_CHECKPOINT,
                                         .agent = "a",
                                         .instance_id = id,
                                         .task = "t",
                                         .checkpoint = &entry } });
        ignore();
        has("tasks/t", i == 0 ? "\"root\":{\"id\":\"mine\"" : "\"checkpoint\":{\"seq\":\"2\"}");
    }
    ck_assert_ptr_null(strstr(get("tasks/t"), "mine"));
    has("checkpoints/t/0000000000000000001", "\"root\":{\"id\":\"mine\",\"host\":\"h\"");
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, who_has_the_files_goes_on_from_them);
    tcase_add_test(t, a_start_from_files_of_another_host_is_refused_and_the_task_waits_for_it);
    tcase_add_test(t, what_another_host_has_to_go_on_with_is_not_claimed);
    tcase_add_test(t, the_task_has_the_last_word_about_where_its_checkpoint_lies);
    tcase_add_test(t, who_asks_for_what_lies_elsewhere_is_told_where);
    tcase_add_test(t, what_a_person_gave_up_is_passed_over);
    tcase_add_test(t, a_task_says_where_its_newest_checkpoint_lies);
}

int main(void)
{
    return run_stories("core/node_root", add_stories);
}
