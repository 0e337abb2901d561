/* Each rule of an agentd that can be taken away, and what happens without it. */
#include "core/mutant.h"
#include "unit/node_fixture.h"

static void without(enum hf_mutant mutant)
{
    mutants = hf_mutant_bit(mutant);
    running();
}

START_TEST(thaw_unproven)
{
    without(HF_MUTANT_THAW_UNPROVEN);
    lease_is(HF_LEASE_FENCED, LEASE, true);
    expect("freeze a#1\n");
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
    expect("thaw a#1 as 104\n");
}
END_TEST

START_TEST(thaw_unadopted)
{
    without(HF_MUTANT_THAW_UNADOPTED);
    lose_lease();
    w.reads_are_off = true; /* nobody knows what it owns */
    lease_is(HF_LEASE_HELD, 43, false);
    expect("thaw a#1 as 107\n");
}
END_TEST

START_TEST(adopt_some)
{
    without(HF_MUTANT_ADOPT_SOME);
    put_owned("t", "in_progress", LEASE, 104);
    lose_lease();
    w.fate = WITHHOLD;
    w.spared = 2; /* the host, and the rejoin */
    lease_is(HF_LEASE_HELD, 43, false);
    ignore();
    put("tasks/t", TASK_OF("t", "pending", ""));
    arrive();
    expect("thaw a#1 as 108\n");
}
END_TEST

START_TEST(no_freeze)
{
    without(HF_MUTANT_NO_FREEZE);
    lease_is(HF_LEASE_FENCED, LEASE, true);
    expect("");
}
END_TEST

START_TEST(no_lost_freeze)
{
    without(HF_MUTANT_NO_LOST_FREEZE);
    lease_is(HF_LEASE_LOST, 0, false);
    wait(60000);
    expect("");
}
END_TEST

START_TEST(keep_replaced)
{
    without(HF_MUTANT_KEEP_REPLACED);
    lose_lease();
    put_leased("agents/a/live", "{\"host\":\"i\",\"instanceId\":\"other\"}", 77);
    expect("");
}
END_TEST

START_TEST(keep_commanded)
{
    without(HF_MUTANT_KEEP_COMMANDED);
    lose_lease();
    put("commands/h/a", "{\"id\":\"1\",\"host\":\"h\"}");
    expect("");
}
END_TEST

START_TEST(end_later)
{
    without(HF_MUTANT_END_LATER);
    put("wanted/a", "{\"endUpto\":\"103\"}");
    expect("stop a#1 within 10000\n");
}
END_TEST

START_TEST(no_reap)
{
    without(HF_MUTANT_NO_REAP);
    put("wanted/a", "{\"state\":\"stopped\"}");
    ignore();
    put_leased("agents/a/live", "{\"host\":\"h\",\"instanceId\":\"ghost\"}", LEASE);
    wait(5000);
    ck_assert_ptr_nonnull(get("agents/a/live"));
}
END_TEST

START_TEST(no_look)
{
    without(HF_MUTANT_NO_LOOK);
    put_leased("agents/b/live", "{\"host\":\"h\",\"instanceId\":\"ghost\"}", LEASE);
    wait(300000);
    ck_assert_uint_eq(w.looks, 0);
    ck_assert_ptr_nonnull(get("agents/b/live"));
}
END_TEST

START_TEST(boot_twice)
{
    without(HF_MUTANT_BOOT_TWICE);
    news("a", HF_PROCESS_ENDED, 1, NULL);
    expect("make a#2\nlet go a#2 as 106\n");
}
END_TEST

START_TEST(start_jeopardy)
{
    without(HF_MUTANT_START_JEOPARDY);
    news("a", HF_PROCESS_ENDED, 1, NULL);
    ignore();
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
    put("commands/h/a", "{\"id\":\"1\",\"host\":\"h\"}");
    expect("make a#2\nlet go a#2 as 107\n");
}
END_TEST

START_TEST(claim_jeopardy)
{
    without(HF_MUTANT_CLAIM_JEOPARDY);
    put_pending("t", "");
    lease_is(HF_LEASE_JEOPARDY, LEASE, false);
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 OK t\n");
}
END_TEST

START_TEST(any_reserved)
{
    without(HF_MUTANT_ANY_RESERVED);
    put("tasks/t", TASK_OF("t", "pending", ",\"reservedFor\":\"b\""));
    put("pending/r/t", "{\"reservedFor\":\"b\"}");
    ask("a", HF_ASK_CLAIM, NULL);
    expect("reply 1 OK t\n");
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_test(t, thaw_unproven);
    tcase_add_test(t, thaw_unadopted);
    tcase_add_test(t, adopt_some);
    tcase_add_test(t, no_freeze);
    tcase_add_test(t, no_lost_freeze);
    tcase_add_test(t, keep_replaced);
    tcase_add_test(t, keep_commanded);
    tcase_add_test(t, end_later);
    tcase_add_test(t, no_reap);
    tcase_add_test(t, no_look);
    tcase_add_test(t, boot_twice);
    tcase_add_test(t, start_jeopardy);
    tcase_add_test(t, claim_jeopardy);
    tcase_add_test(t, any_reserved);
}

int main(void)
{
    return run_stories("core/node_mutant", add_stories);
}
