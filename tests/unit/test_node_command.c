/* Starts that were ordered, with the task that they are for and the checkpoint that it goes on
 * from. */
#include "unit/node_fixture.h"

#define COMMAND "{\"id\":\"1\",\"host\":\"h\"}"
#define RESUME  "{\"id\":\"1\",\"host\":\"h\",\"task\":\"t\"}"

/* A host whose agent has ended, and somebody leads. */
static void ended(void)
{
    running();
    news("a", HF_PROCESS_READY, 0, NULL);
    news("a", HF_PROCESS_ENDED, 1, NULL);
    ignore();
}

START_TEST(a_command_starts_it)
{
    ended();
    w.quiet = false;
    put("commands/h/a", COMMAND);
    expect("make a#2\n"
           "if absent(agents/a/live), mod(agents/a/spec) = 103, text(agents/a/spec), "
           "mod(wanted/a) = 0, "
           "mod(commands/h/a) = 106, text(commands/h/a) then put agents/a/live, delete "
           "commands/h/a\n"
           "let go a#2 as 107\n");
}
END_TEST

START_TEST(a_command_starts_it_with_a_task)
{
    ended();
    put("tasks/t", TASK_OF("t", "pending", ",\"reservedFor\":\"a\""));
    put("pending/r/t", "{\"reservedFor\":\"a\"}");
    w.quiet = false;
    put("commands/h/a", RESUME);
    expect("make a#2\n"
           "read tasks/t\n"
           "if absent(agents/a/live), mod(agents/a/spec) = 103, text(agents/a/spec), "
           "mod(wanted/a) = 0, "
           "mod(commands/h/a) = 108, text(commands/h/a), mod(tasks/t) = 106, text(tasks/t) "
           "then put agents/a/live, "
           "delete commands/h/a, put tasks/t, delete pending/r/t\n"
           "let go a#2 as 109 with t from 0\n");
    has("tasks/t", "\"state\":\"acknowledged\"");
    w.quiet = true;
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 OK t\n"); /* offered again: it has not started it */
    ask("a", HF_ASK_START, "t");
    expect("reply 2 OK t\n");
    has("tasks/t", "\"createRevision\":\"109\"");
}
END_TEST

/* The leader puts the task and a command that says how, at one revision. */
static void order_carrying(const char *task, const char *task_text, const char *recovery_text)
{
    char value[2000] =
        "{\"id\":\"1\",\"host\":\"h\",\"task\":\"t\",\"taskCreateRevision\":\"106\"";
    const char *const names[] = { "taskText", "recoveryText" };
    const char *const texts[] = { task_text, recovery_text };

    for (size_t i = 0; i < COUNT(texts); i++) {
        size_t len = strlen(value);

        len += (size_t)snprintf(value + len, sizeof value - len, ",\"%s\":\"", names[i]);
        for (const char *c = texts[i]; *c != '\0'; c++)
            len += (size_t)snprintf(value + len, sizeof value - len, *c == '"' ? "\\%c" : "%c",
                                    *c);
        (void)snprintf(value + len, sizeof value - len, "\"");
    }
    (void)snprintf(value + strlen(value), sizeof value - strlen(value), "}");
    w.rev++;
    write_pair(ROOT "tasks/t", task, 0);
    write_pair(ROOT "commands/h/a", value, 0);
    tell(ROOT "commands/h/a");
}

#define CARRIED    TASK_OF("t", "pending", ",\"reservedFor\":\"a\"")
#define RECOVERY_1 "{\"task\":\"t\",\"attempts\":1}"

START_TEST(a_command_that_carries_its_task_needs_no_read)
{
    ended();
    put("pending/r/t", "{\"reservedFor\":\"a\"}");
    w.quiet = false;
    order_carrying(CARRIED, CARRIED, RECOVERY_1);
    expect("make a#2\n"
           "if absent(agents/a/live), mod(agents/a/spec) = 103, text(agents/a/spec), "
           "mod(wanted/a) = 0, "
           "mod(commands/h/a) = 107, text(commands/h/a), mod(tasks/t) = 107, text(tasks/t) "
           "then put agents/a/live, "
           "delete commands/h/a, put tasks/t, delete pending/r/t\n"
           "let go a#2 as 108 with t from 0\n");
    has("tasks/t", "\"state\":\"acknowledged\"");
}
END_TEST

START_TEST(what_a_command_carries_of_a_task_that_changed_since_is_not_taken_twice)
{
    ended();
    w.keeper_is_off = true;
    order_carrying(CARRIED, CARRIED, RECOVERY_1);
    expect("make a#2\n");
    put("tasks/t", TASK_OF("t", "cancelled", ""));
    news("a", HF_PROCESS_HELD, 0, NULL);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "refused"));
    w.log[0] = '\0';
    wait(1000);
    expect("let go a#2 as 108\n");
    has("tasks/t", "\"state\":\"cancelled\"");
}
END_TEST

static const struct {
    const char *task, *recovery;
} NONSENSE[] = {
    { "nonsense", RECOVERY_1 },
    { TASK_OF("u", "pending", ",\"reservedFor\":\"a\""), RECOVERY_1 },
    { CARRIED, "nonsense" },
    { CARRIED, "" },
    { "", RECOVERY_1 },
};

START_TEST(what_a_command_carries_and_makes_no_sense_is_read)
{
    ended();
    w.quiet = false;
    order_carrying(CARRIED, NONSENSE[_i].task, NONSENSE[_i].recovery);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "read tasks/t\n"));
    ck_assert_ptr_nonnull(strstr(w.log, "with t from 0\n"));
}
END_TEST

/* Both were put by the Txn that the command came with. */
START_TEST(poison_that_a_command_tells_of_is_not_restored_again)
{
    ended();
    put_checkpoints(2);
#define AT_2 TASK_OF("t", "pending", ",\"reservedFor\":\"a\",\"checkpoint\":{\"seq\":\"2\"}")
    order_carrying(
        AT_2, AT_2,
        "{\"task\":\"t\",\"attempts\":2,\"outcomes\":["
        "{\"at\":\"2026-01-01T00:00:00Z\",\"checkpoint\":{\"seq\":\"2\"},\"result\":\"died\"},"
        "{\"at\":\"2026-01-01T00:01:00Z\",\"checkpoint\":{\"seq\":\"2\"},\"result\":\"died\"}]"
        "}");
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "verify 1\n"));
    ck_assert_ptr_null(strstr(w.log, "verify 2\n"));
    has("tasks/t", "\"restored\":{\"seq\":\"1\"}");
}
END_TEST

START_TEST(a_task_that_is_not_to_be_had_any_more_does_not_keep_the_agent_from_starting)
{
    ended();
    put("tasks/t", TASK_OF("t", "cancelled", ""));
    put("commands/h/a", RESUME);
    expect("make a#2\nlet go a#2 as 108\n");
    ended();
    put("tasks/t", TASK_OF("t", "pending", ",\"reservedFor\":\"b\""));
    put("commands/h/a", RESUME);
    expect("make a#2\nlet go a#2 as 108\n");
    ended();
    put("commands/h/a", RESUME);
    expect("make a#2\nlet go a#2 as 107\n");
}
END_TEST

START_TEST(a_task_that_changes_amid_the_start_is_read_again)
{
    ended();
    put("tasks/t", TASK_OF("t", "pending", ""));
    w.keeper_is_off = true;
    put("commands/h/a", RESUME);
    expect("make a#2\n");
    put("tasks/t", TASK_OF("t", "pending", ",\"attempt\":2"));
    news("a", HF_PROCESS_HELD, 0, NULL);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "refused"));
    ck_assert_ptr_null(strstr(w.log, "let go"));
    w.log[0] = '\0';
    wait(1000); /* what was refused is not among what it mirrors */
    expect("let go a#2 as 109 with t from 0\n");
}
END_TEST

/* What failed for a start that was withdrawn says nothing of the next one. */
START_TEST(a_failure_that_no_start_waits_for_is_forgotten)
{
    ended();
    w.keeper_is_off = true;
    put("commands/h/a", COMMAND);
    expect("make a#2\n");
    erase("commands/h/a");
    run_node();
    news("a", HF_PROCESS_FAILED, 0, "there are too many processes");
    wait(60000);
    ignore();
    w.keeper_is_off = false;
    put("commands/h/a", COMMAND);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "let go a#3"));
    ck_assert_ptr_null(strstr(get("agents/a/exit"), "start_failed"));
}
END_TEST

/* The answer is about the task of the command that was there when it was asked for. */
START_TEST(a_task_that_was_read_for_another_command_is_not_taken)
{
    struct hf_intent read = { .kind = HF_INTENT_NONE };
    struct hf_fleet_change found;
    char scratch[HF_KEY_SIZE];

    ended();
    put("tasks/t", TASK_OF("t", "pending", ""));
    put("tasks/u", TASK_OF("u", "pending", ",\"reservedFor\":\"a\""));
    put("commands/h/a", RESUME);
    while (read.kind != HF_INTENT_READ) {
        if (read.kind != HF_INTENT_NONE)
            carry_out(&read);
        ck_assert_int_eq(next_intent(&read), 1);
    }
    put("commands/h/a", "{\"id\":\"2\",\"host\":\"h\",\"task\":\"u\"}");
    found = make_change(ROOT "tasks/t", scratch);
    must((struct hf_event){
        .kind = HF_EVENT_ANSWER,
        .answer = {
            .token = read.token, .revision = w.rev, .found = &found, .found_count = 1 } });
    hf_json_free(found.record);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "with u from 0"));
    has("tasks/t", "\"state\":\"pending\"");
}
END_TEST

/* Recovery. */

START_TEST(a_recovery_begins_from_the_newest_checkpoint_that_is_whole)
{
    ended();
    put_checkpoints(3);
    put("tasks/t", TASK_OF("t", "pending", ",\"checkpoint\":{\"seq\":\"3\"}"));
    put("commands/h/a", RESUME);
    expect("make a#2\nverify 3\nlet go a#2 as 111 with t from 3\n");
    has("tasks/t", "\"restored\":{\"seq\":\"3\"}");
}
END_TEST

START_TEST(a_bad_checkpoint_is_passed_over)
{
    ended();
    put_checkpoints(3);
    erase("checkpoints/t/0000000000000000003");
    put("checkpoints/t/0000000000000000002",
        "{\"task\":\"other\",\"seq\":\"2\",\"parent\":\"1\"}");
    put("tasks/t", TASK_OF("t", "pending", ",\"checkpoint\":{\"seq\":\"3\"}"));
    put("commands/h/a", RESUME);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "verify 1\n"));
    ck_assert_ptr_nonnull(strstr(w.log, "alert a: "));
    ck_assert_ptr_nonnull(strstr(w.log, "with t from 1\n"));
    has("tasks/t", "\"restored\":{\"seq\":\"1\"}");
}
END_TEST

static const int BAD[] = { HF_ECORRUPT, HF_ENOENT };

START_TEST(without_a_checkpoint_that_is_whole_the_task_starts_over)
{
    ended();
    put_checkpoints(2);
    put("tasks/t", TASK_OF("t", "pending", ",\"checkpoint\":{\"seq\":\"2\"}"));
    w.verify_err = BAD[_i];
    put("commands/h/a", RESUME);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "verify 2\nverify 1\nalert a: "));
    ck_assert_ptr_nonnull(strstr(w.log, "with t from 0\n"));
    has("tasks/t", "\"restored\":{\"seq\":\"0\"}");
}
END_TEST

START_TEST(a_checkpoint_that_cannot_be_read_now_is_left_to_another_host)
{
    ended();
    put_checkpoints(1);
    put("tasks/t",
        TASK_OF("t", "pending", ",\"checkpoint\":{\"seq\":\"1\"},\"reservedFor\":\"a\""));
    w.verify_err = HF_EIO;
    put("commands/h/a", RESUME);
    wait(20000);
    ck_assert_ptr_nonnull(strstr(w.log, "verify 1\nverify 1\n"));
    ck_assert_ptr_nonnull(strstr(w.log, "discard a#2\n")); /* it was made meanwhile */
    ck_assert_ptr_null(get("commands/h/a"));
    has("agents/a/exit", "\"kind\":\"start_failed\"");
    has("tasks/t", "\"reservedFor\":\"\"");
    w.log[0] = '\0';
    w.verify_err = HF_OK; /* and the next order finds it readable */
    put("commands/h/a", RESUME);
    run_node();
    ck_assert_ptr_nonnull(strstr(w.log, "with t from 1\n"));
}
END_TEST

START_TEST(poison_is_not_restored_again)
{
    ended();
    put_checkpoints(2);
    put("tasks/t", TASK_OF("t", "pending", ",\"checkpoint\":{\"seq\":\"2\"}"));
    put("recoveries/t",
        "{\"task\":\"t\",\"attempts\":2,\"outcomes\":["
        "{\"at\":\"2026-01-01T00:00:00Z\",\"checkpoint\":{\"seq\":\"2\"},\"result\":\"died\"},"
        "{\"at\":\"2026-01-01T00:01:00Z\",\"checkpoint\":{\"seq\":\"2\"},\"result\":\"died\"}]"
        "}");
    put("commands/h/a", RESUME);
    run_node();
    ck_assert_ptr_null(strstr(w.log, "verify 2"));
    ck_assert_ptr_nonnull(strstr(w.log, "verify 1\n"));
}
END_TEST

START_TEST(a_chain_that_cannot_be_read_is_read_again)
{
    ended();
    put_checkpoints(1);
    put("tasks/t", TASK_OF("t", "pending", ",\"checkpoint\":{\"seq\":\"1\"}"));
    w.reads_are_off = true;
    put("commands/h/a", RESUME);
    expect("make a#2\n");
    w.reads_are_off = false;
    wait(1000);
    ck_assert_ptr_nonnull(strstr(w.log, "with t from 1\n"));
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, a_command_starts_it);
    tcase_add_test(t, a_command_starts_it_with_a_task);
    tcase_add_test(t, a_command_that_carries_its_task_needs_no_read);
    tcase_add_test(t, what_a_command_carries_of_a_task_that_changed_since_is_not_taken_twice);
    tcase_add_loop_test(t, what_a_command_carries_and_makes_no_sense_is_read, 0,
                        COUNT(NONSENSE));
    tcase_add_test(t, poison_that_a_command_tells_of_is_not_restored_again);
    tcase_add_test(t,
                   a_task_that_is_not_to_be_had_any_more_does_not_keep_the_agent_from_starting);
    tcase_add_test(t, a_task_that_changes_amid_the_start_is_read_again);
    tcase_add_test(t, a_failure_that_no_start_waits_for_is_forgotten);
    tcase_add_test(t, a_task_that_was_read_for_another_command_is_not_taken);
    tcase_add_test(t, a_recovery_begins_from_the_newest_checkpoint_that_is_whole);
    tcase_add_test(t, a_bad_checkpoint_is_passed_over);
    tcase_add_loop_test(t, without_a_checkpoint_that_is_whole_the_task_starts_over, 0,
                        COUNT(BAD));
    tcase_add_test(t, a_checkpoint_that_cannot_be_read_now_is_left_to_another_host);
    tcase_add_test(t, poison_is_not_restored_again);
    tcase_add_test(t, a_chain_that_cannot_be_read_is_read_again);
}

int main(void)
{
    return run_stories("core/node_command", add_stories);
}
