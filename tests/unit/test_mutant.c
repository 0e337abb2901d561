/* A missing rule must be missed: each story here ends otherwise with one. */
#include "core/mutant.h"
#include "unit/engine_fixture.h"
#include "unit/suite.h"

static void begin_mutant(enum hf_mutant mutant)
{
    struct hf_engine_config cfg = {
        .ns = NS, .id = "c1", .policy = policy, .seed = 7, .mutants = hf_mutant_bit(mutant)
    };

    hf_engine_free(engine);
    engine = hf_engine_new(&cfg);
    ck_assert_ptr_nonnull(engine);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i].value != NULL)
            tell_pair(pairs[i].key, &pairs[i]);
    }
    sync_engine();
    lead();
    pass(10000);
    ignore();
}

START_TEST(without_a_grace_who_is_missed_is_given_up_at_once)
{
    begin_mutant(HF_MUTANT_NO_GRACE);
    task_is_owned("t", "in_progress", "a");
    expire(0x1);
    run_engine();
    ck_assert(has("tasks/t", "\"state\":\"pending\""));
}
END_TEST

START_TEST(without_the_rule_who_is_wanted_stopped_is_started)
{
    begin_mutant(HF_MUTANT_NO_WANTED);
    put("wanted/a", "{\"state\":\"stopped\"}");
    agent_ends("a", "terminated");
    run_engine();
    ck_assert_str_ne(get("commands/h1/a"), "");
}
END_TEST

START_TEST(without_withdrawals_a_start_is_waited_for)
{
    begin_mutant(HF_MUTANT_NO_WITHDRAW);
    agent_ends("a", "crashed");
    pass(600000);
    ck_assert_str_ne(get("commands/h1/a"), "");
}
END_TEST

START_TEST(every_mutant_has_a_name_and_says_what_is_missing)
{
    for (enum hf_mutant mutant = 0; mutant < HF_MUTANTS; mutant++) {
        ck_assert_str_ne(hf_mutant_name(mutant), "?");
        ck_assert_str_ne(hf_mutant_text(mutant), "?");
    }
    ck_assert_str_eq(hf_mutant_name(HF_MUTANTS), "?");
    ck_assert_str_eq(hf_mutant_text(HF_MUTANTS), "?");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("mutant");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, without_a_grace_who_is_missed_is_given_up_at_once);
    tcase_add_test(t, without_the_rule_who_is_wanted_stopped_is_started);
    tcase_add_test(t, without_withdrawals_a_start_is_waited_for);
    tcase_add_test(t, every_mutant_has_a_name_and_says_what_is_missing);
    return run("core/mutant", t);
}
