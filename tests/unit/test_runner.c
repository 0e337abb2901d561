#include "unit/runner_fixture.h"

START_TEST(what_a_mirror_tells_is_decoded_and_told_in_order)
{
    start_agentd();
    ck_assert_str_eq(heard(), "lease LOST lease HELD cluster 2 ");
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    hft_script_tell(mirror(), NS "commands/h1/a1", "{\"attempt\":1}");
    hft_script_sync(mirror());
    hft_script_tell(mirror(), NS "wanted/a1", NULL);
    ck_assert_str_eq(heard(), "put 7:a1@11 put 12:h1/a1@12 synced@12 delete 7:a1@13 ");
    ck_assert(hf_runner_get_stats(runner).synced);
    stop();
}
END_TEST

START_TEST(what_cannot_be_read_is_told_as_such)
{
    start_agentd();
    (void)heard();
    hft_script_tell(mirror(), NS "wanted/a1", "{\"state\":7e99}");
    hft_script_tell(mirror(), NS "nonsense/\x01", "{}");
    hft_script_tell(mirror(), NS "nonsense/\x01", NULL);
    hft_script_tell(mirror(), NS "wanted/a1", NULL);
    ck_assert_str_eq(heard(), "bad wanted/a1 bad nonsense/?! delete 7:a1@14 ");
    ck_assert_uint_eq(hf_runner_get_stats(runner).bad, 2);
    stop();
}
END_TEST

/* A decider that is asked in the middle would act on half of a Txn. */
START_TEST(nobody_is_asked_for_intents_amid_what_is_told)
{
    unsigned asked;

    start_agentd();
    asked = toy.asked;
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    hft_script_tell(mirror(), NS "wanted/a2", "{}");
    ck_assert_uint_eq(toy.asked, asked);
    turn();
    ck_assert_uint_gt(toy.asked, asked);
    stop();
}
END_TEST

START_TEST(writes_of_one_key_follow_one_another_and_others_go_side_by_side)
{
    start_agentd();
    push_write(1, "a", NULL);
    push_write(2, "a", NULL);
    push_write(3, "b", NULL);
    push_write(4, "a", NULL);
    hft_script_sync(mirror());
    turn();
    ck_assert_uint_eq(hft_script_count(&script), 2);
    (void)heard();

    hft_script_answer_txn(hft_script_find(&script, "wanted/a"), true, 0, NULL);
    turn();
    ck_assert_uint_eq(hft_script_count(&script), 2);
    hft_script_answer_txn(hft_script_find(&script, "wanted/a"), false, 0, NULL);
    turn();
    hft_script_answer_txn(hft_script_find(&script, "wanted/b"), true, 0, NULL);
    turn();
    hft_script_answer_txn(hft_script_find(&script, "wanted/a"), true, 0, NULL);
    turn();
    ck_assert_str_eq(heard(), "1=done@11 2=refused@11 3=done@12 4=done@13 ");
    ck_assert_uint_eq(hf_runner_get_stats(runner).flights, 0);
    stop();
}
END_TEST

START_TEST(a_write_waits_for_one_that_changes_what_it_guards_and_the_other_way_round)
{
    start_agentd();
    push_write(1, "a", "x"); /* guards health/x */
    push_health(2, "x");
    push_write(3, "b", "x");
    push_write(4, "c", "y");
    hft_script_sync(mirror());
    turn();
    ck_assert_uint_eq(hft_script_count(&script), 2); /* 1 and 4 */
    ck_assert_ptr_null(hft_script_find(&script, "health/x"));
    hft_script_answer_txn(hft_script_find(&script, "wanted/a"), true, 0, NULL);
    turn();
    ck_assert_ptr_nonnull(hft_script_find(&script, "health/x"));
    ck_assert_ptr_null(hft_script_find(&script, "wanted/b"));
    hft_script_answer_txn(hft_script_find(&script, "health/x"), true, 0, NULL);
    turn();
    ck_assert_ptr_nonnull(hft_script_find(&script, "wanted/b"));
    stop();
}
END_TEST

/* One that counts on what is under way, and is refused where it comes first. */
START_TEST(a_write_that_goes_at_once_waits_for_nobody_and_is_waited_for)
{
    start_agentd();
    push_write(1, "a", NULL);
    push_write(2, "a", NULL);
    toy.intents[toy.count - 1].plan.at_once = true;
    push_write(3, "a", NULL);
    hft_script_sync(mirror());
    turn();
    ck_assert_uint_eq(hft_script_count(&script), 2);
    (void)heard();
    hft_script_answer_txn(hft_script_find(&script, "wanted/a"), true, 0, NULL);
    turn();
    ck_assert_uint_eq(hft_script_count(&script), 1); /* 3 waits for both */
    hft_script_answer_txn(hft_script_find(&script, "wanted/a"), true, 0, NULL);
    turn();
    hft_script_answer_txn(hft_script_find(&script, "wanted/a"), true, 0, NULL);
    turn();
    ck_assert_str_eq(heard(), "1=done@11 2=done@12 3=done@13 ");
    ck_assert_uint_eq(hf_runner_get_stats(runner).flights, 0);
    stop();
}
END_TEST

START_TEST(only_so_many_are_sent_at_once)
{
    static const char *const AGENTS[] = { "a", "b", "c", "d", "e" };
    struct hf_runner_config cfg = runner_config();

    cfg.writes_at_once = 2;
    start_with(&cfg);
    for (size_t i = 0; i < COUNT(AGENTS); i++)
        push_write(i + 1, AGENTS[i], NULL);
    hft_script_sync(mirror());
    turn();
    for (size_t left = COUNT(AGENTS); left > 0; left--) {
        ck_assert_uint_eq(hf_runner_get_stats(runner).flights, left);
        ck_assert_uint_eq(hft_script_count(&script), left < 2 ? left : 2);
        hft_script_answer_txn(hft_script_find(&script, ""), true, 0, NULL);
        turn();
    }
    stop();
}
END_TEST

START_TEST(outcomes_are_what_etcd_and_the_marks_say)
{
    struct hf_kv ours = { .value = hf_bytes_of("{\"opIds\":{\"operator\":\"op3\"}}"),
                          .mod_rev = 7 };
    struct hf_kv theirs = { .value = hf_bytes_of("{\"opIds\":{\"operator\":\"else\"}}"),
                            .mod_rev = 8 };
    struct hf_kv copied = { .value = hf_bytes_of("{\"opIds\":{\"operator\":\"op5\"}}"),
                            .mod_rev = 9 };

    start_agentd();
    push_write(1, "a", NULL);
    push_write(2, "b", NULL);
    push_write(3, "c", NULL);
    push_write(4, "d", NULL);
    push_write(5, "e", NULL);
    hft_script_sync(mirror());
    turn();
    (void)heard();
    hft_script_fail_txn(hft_script_find(&script, "/a"), HF_ETIMEOUT, true);
    hft_script_fail_txn(hft_script_find(&script, "/b"), HF_ENOSPACE, false);
    hft_script_answer_txn(hft_script_find(&script, "/c"), false, 1, &ours);
    hft_script_answer_txn(hft_script_find(&script, "/d"), false, 1, &theirs);
    hft_script_answer_txn(hft_script_find(&script, "/e"), false, 0, &copied);
    turn();
    ck_assert_str_eq(heard(),
                     "cluster 2 full 1=unknown@0 2=failed@0 3=done@7 4=refused@10 5=done@9 ");
    ck_assert_str_eq(troubles, "write:ETIMEOUT write:ENOSPACE ");
    stop();
}
END_TEST

/* It need not be in what is followed. What a copy of it did is not known to the byte. */
START_TEST(a_mirror_is_told_of_what_was_written)
{
    struct hf_kv copied = { .value = hf_bytes_of("{\"opIds\":{\"operator\":\"op2\"}}"),
                            .mod_rev = 90 };

    start_agentd();
    push_write(1, "a", NULL);
    push_write(2, "b", NULL);
    hft_script_sync(mirror());
    turn();
    hft_script_answer_txn(hft_script_find(&script, "/a"), true, 0, NULL);
    hft_script_answer_txn(hft_script_find(&script, "/b"), false, 0, &copied);
    turn();
    ck_assert_int_eq(script.told_rev, script.revision);
    ck_assert_ptr_nonnull(strstr(script.told_key, "/a"));
    stop();
}
END_TEST

START_TEST(etcd_that_refuses_a_write_as_corrupt_is_corrupt)
{
    start_agentd();
    push_write(1, "a", NULL);
    push_write(2, "b", NULL);
    hft_script_sync(mirror());
    turn();
    (void)heard();
    /* Bytes that make no sense to us are nobody's fault yet. */
    hft_script_fail_txn(hft_script_find(&script, "/a"), HF_ECORRUPT, false);
    turn();
    ck_assert_ptr_null(strstr(heard(), "corrupt"));
    script.words = "etcdserver: corrupt cluster";
    hft_script_fail_txn(hft_script_find(&script, "/b"), HF_ECORRUPT, false);
    turn();
    ck_assert_ptr_nonnull(strstr(heard(), " corrupt "));
    stop();
}
END_TEST

START_TEST(a_leader_is_told_its_term_and_writes_only_while_it_can_act)
{
    start_leader();
    ck_assert_str_eq(heard(), "follows leads@11 ");
    push_write(1, "a", NULL);
    hft_script_sync(mirror());
    turn();
    ck_assert_uint_eq(hft_script_count(&script), 1);

    script.silent = true; /* nobody renews: it must stop by its own clock */
    script.now += 11000;  /* and is told so only afterwards: this thread stood still */
    push_write(2, "b", NULL);
    hft_script_sync(mirror());
    turn();
    ck_assert_uint_eq(hft_script_count(&script), 1);
    ck_assert_str_eq(heard(), "synced@11 synced@11 follows 2=failed@0 ");
    script.silent = false;
    stop();
}
END_TEST

START_TEST(a_leader_asks_all_members_how_they_are)
{
    script.survey_agrees = true;
    start_leader();
    (void)heard();
    hft_script_run(&script, script.now + 10000);
    ck_assert_str_eq(heard(), "cluster 2 well ");
    script.survey_agrees = false;
    hft_script_run(&script, script.now + 10000);
    ck_assert_str_eq(heard(), "cluster 2 ");
    script.survey_corrupt = true;
    hft_script_run(&script, script.now + 10000);
    ck_assert_str_eq(heard(), "cluster 2 corrupt ");
    script.survey_corrupt = false;
    hft_script_run(&script, script.now + 10000);
    ck_assert_str_eq(heard(), "cluster 2 ");
    stop();
}
END_TEST

START_TEST(a_survey_that_is_refused_is_told_of_once)
{
    start_leader();
    script.survey_err = HF_EDENIED;
    hft_script_run(&script, script.now + 10000);
    hft_script_run(&script, script.now + 10000);
    ck_assert_str_eq(troubles, "survey:EDENIED ");
    script.survey_err = HF_EAGAIN;
    hft_script_run(&script, script.now + 10000);
    hft_script_run(&script, script.now + 10000);
    script.survey_err = HF_EDENIED;
    hft_script_run(&script, script.now + 10000);
    ck_assert_str_eq(troubles, "survey:EDENIED survey:EAGAIN survey:EAGAIN survey:EDENIED ");
    script.survey_err = HF_OK;
    stop();
}
END_TEST

START_TEST(the_keys_under_a_lease_are_compared_some_at_a_time_before_it_thaws)
{
    toy.keys = 70; /* more than two Txns have room for */
    start_agentd();
    script.silent = true;
    script.now += 14000;
    turn();
    ck_assert_str_eq(heard(), "lease LOST lease HELD cluster 2 lease FENCED frozen ");
    ck_assert_uint_eq(script.looks, 0);
    script.silent = false;
    hft_script_run(&script, script.now + 1000);
    ck_assert_uint_eq(script.looks, 3);
    ck_assert_ptr_nonnull(strstr(heard(), "lease HELD "));
    stop();
}
END_TEST

START_TEST(a_lease_whose_keys_are_gone_or_not_known_does_not_thaw)
{
    toy.keys = HF_EAGAIN;
    start_agentd();
    script.silent = true;
    script.now += 14000;
    turn();
    script.silent = false;
    (void)heard();
    hft_script_run(&script, script.now + 2000);
    ck_assert_ptr_nonnull(strstr(troubles, "verify:EAGAIN"));
    ck_assert_ptr_null(strstr(heard(), "HELD"));
    ck_assert(hf_runner_get_lease(runner).frozen);

    toy.keys = 2;
    toy.keys_under = hf_runner_get_lease(runner).lease;
    script.refute = true;
    hft_script_run(&script, script.now + 2000);
    ck_assert_ptr_nonnull(strstr(troubles, "verify:EFENCED"));
    ck_assert_int_ne(hf_runner_get_lease(runner).lease, toy.keys_under);
    stop();
}
END_TEST

/* An agent may end, and its key go, while the keys are being compared. */
START_TEST(a_key_that_its_owner_removed_meanwhile_is_not_held_against_the_lease)
{
    int64_t lease;

    toy.keys = 2;
    toy.keys_less = 1;
    start_agentd();
    lease = hf_runner_get_lease(runner).lease;
    script.silent = true;
    script.now += 14000;
    turn();
    script.silent = false;
    script.refute = true;
    while (script.looks < 1)
        hft_script_run(&script, script.now + 1);
    script.refute = false;
    hft_script_run(&script, script.now + 2000);
    ck_assert_uint_ge(script.looks, 2);
    ck_assert_int_eq(hf_runner_get_lease(runner).state, HF_LEASE_HELD);
    ck_assert_int_eq(hf_runner_get_lease(runner).lease, lease);
    stop();
}
END_TEST

START_TEST(a_lease_that_the_decider_knows_to_be_lost_is_replaced)
{
    int64_t first;

    start_agentd();
    first = hf_runner_get_lease(runner).lease;
    (void)heard();
    push(HF_INTENT_LOST, 0)->lease = first;
    hft_script_sync(mirror());
    turn();
    ck_assert_int_ne(hf_runner_get_lease(runner).lease, first);
    ck_assert_ptr_nonnull(strstr(heard(), "lease HELD "));
    stop();
}
END_TEST

START_TEST(reads_are_answered_key_by_key_and_page_by_page)
{
    struct hf_kv kvs[] = {
        { .key = hf_bytes_of(NS "tasks/t1"), .value = hf_bytes_of("{}"), .mod_rev = 3 },
        { .key = hf_bytes_of(NS "tasks/t2"), .value = hf_bytes_of("broken"), .mod_rev = 4 },
        { .key = hf_bytes_of(NS "tasks/t3"), .value = hf_bytes_of("{}"), .mod_rev = 5 },
    };
    struct hf_intent_read one = { .key = { .kind = HF_KEY_TASK, .name = "t1" } };

    start_agentd();
    push(HF_INTENT_READ, 1)->read = one;
    push(HF_INTENT_READ, 2)->read =
        (struct hf_intent_read){ .whole_scope = true, .scope = HF_KEY_IN_TASKS };
    push(HF_INTENT_READ, 3)->read = one;
    push(HF_INTENT_READ, 4)->read = one;
    push(HF_INTENT_READ, 5)->read = (struct hf_intent_read){ .key = { .kind = HF_KEY_TASK } };
    hft_script_sync(mirror());
    turn();
    ck_assert_str_eq(script.lists->prefix, NS "tasks/");
    ck_assert_str_eq(heard(), "lease LOST lease HELD cluster 2 synced@10 5:EINVAL ");

    hft_script_answer_range(hft_script_find(&script, "tasks/t1"), HF_OK, &kvs[0], 1);
    hft_script_answer_list(script.lists, HF_OK, kvs, 2, true);
    hft_script_answer_list(script.lists, HF_OK, &kvs[2], 1, false);
    hft_script_answer_range(hft_script_find(&script, "tasks/t1"), HF_OK, &kvs[1], 1);
    hft_script_answer_range(hft_script_find(&script, "tasks/t1"), HF_EAGAIN, NULL, 0);
    turn();
    ck_assert_str_eq(heard(), "1:9:t1, bad tasks/t2 2:9:t1,... 2:9:t3, bad tasks/t2 "
                              "4:EAGAIN 3:ECORRUPT ");
    stop();
}
END_TEST

/* Of the keys only the names are known, and not all of them need be ours, or keys that we would
 * ever write. */
START_TEST(what_hangs_on_a_lease_is_told_by_name)
{
    char endless[100000];
    struct hf_bytes keys[] = {
        hf_bytes_of(NS "hosts/h/live"),
        hf_bytes_of("/another/key"),
        hf_bytes_of(NS),
        { 0 },
        { .data = endless, .len = sizeof endless },
        { .data = NS "agents/a\0b/live", .len = sizeof NS "agents/a\0b/live" - 1 },
        hf_bytes_of(NS "agents/../live"),
        hf_bytes_of(NS "agents/b/live"),
    };

    memset(endless, 'a', sizeof endless);
    memcpy(endless, NS "agents/", sizeof NS "agents/" - 1);
    start_agentd();
    push(HF_INTENT_READ, 1)->read = (struct hf_intent_read){ .lease = 42 };
    push(HF_INTENT_READ, 2)->read = (struct hf_intent_read){ .lease = 42 };
    hft_script_sync(mirror());
    turn();
    ck_assert_int_eq(hft_script_find(&script, "lease")->lease, 42);
    (void)heard();
    hft_script_answer_ttl(hft_script_find(&script, "lease"), HF_OK, keys,
                          sizeof keys / sizeof keys[0]);
    hft_script_answer_ttl(hft_script_find(&script, "lease"), HF_EAGAIN, NULL, 0);
    turn();
    ck_assert_str_eq(heard(), "1:2:h,4:b, 2:EAGAIN ");
    stop();
}
END_TEST

START_TEST(intents_that_are_not_etcds_go_to_the_owner_and_its_news_come_in)
{
    struct hf_event ask = { .kind = HF_EVENT_ASK, .ask = { .agent = "a1" } };

    start_agentd();
    (void)heard();
    push(HF_INTENT_REPLY, 1);
    push(HF_INTENT_PROCESS, 0);
    ck_assert_int_eq(hf_runner_feed(runner, &ask), HF_OK);
    turn();
    ck_assert_str_eq(heard(), "ask a1 intent 6 intent 5 ");
    toy.answer = HF_ENOMEM;
    toy.answer_to = HF_EVENT_ASK;
    toy.answers = 1;
    ck_assert_int_eq(hf_runner_feed(runner, &ask), HF_ENOMEM);
    hf_runner_close(runner, true, on_closed, NULL);
    ck_assert_int_eq(hf_runner_feed(runner, &ask), HF_ECANCELED);
    closed = 0;
    hft_script_run(&script, script.now + 10000);
    ck_assert_uint_eq(closed, 1);
    ck_assert(hft_script_is_clean(&script));
}
END_TEST

START_TEST(time_is_told_when_the_decider_wants_it)
{
    unsigned before;

    toy.deadline = UPTIME + 4000;
    start_agentd();
    before = toy.times;
    hft_script_run(&script, UPTIME + 3900);
    ck_assert_uint_eq(toy.times, before);
    toy.deadline = INT64_MAX;
    hft_script_run(&script, UPTIME + 4000);
    ck_assert_uint_eq(toy.times, before + 1);
    stop();
}
END_TEST

START_TEST(a_thread_that_stood_still_is_noticed)
{
    toy.deadline = UPTIME + 4000;
    start_agentd();
    toy.deadline = UPTIME + 59000;
    script.silent = true;
    script.now = UPTIME + 7001;
    hft_script_run(&script, UPTIME + 7001);
    ck_assert_ptr_nonnull(strstr(troubles, "loop:ETIMEOUT"));
    script.silent = false;
    stop();
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("runner");

    tcase_add_checked_fixture(t, reset_toy, NULL);
    tcase_add_test(t, what_a_mirror_tells_is_decoded_and_told_in_order);
    tcase_add_test(t, what_cannot_be_read_is_told_as_such);
    tcase_add_test(t, nobody_is_asked_for_intents_amid_what_is_told);
    tcase_add_test(t, writes_of_one_key_follow_one_another_and_others_go_side_by_side);
    tcase_add_test(t,
                   a_write_waits_for_one_that_changes_what_it_guards_and_the_other_way_round);
    tcase_add_test(t, a_write_that_goes_at_once_waits_for_nobody_and_is_waited_for);
    tcase_add_test(t, only_so_many_are_sent_at_once);
    tcase_add_test(t, outcomes_are_what_etcd_and_the_marks_say);
    tcase_add_test(t, a_mirror_is_told_of_what_was_written);
    tcase_add_test(t, etcd_that_refuses_a_write_as_corrupt_is_corrupt);
    tcase_add_test(t, a_leader_is_told_its_term_and_writes_only_while_it_can_act);
    tcase_add_test(t, a_leader_asks_all_members_how_they_are);
    tcase_add_test(t, a_survey_that_is_refused_is_told_of_once);
    tcase_add_test(t, the_keys_under_a_lease_are_compared_some_at_a_time_before_it_thaws);
    tcase_add_test(t, a_lease_whose_keys_are_gone_or_not_known_does_not_thaw);
    tcase_add_test(t, a_key_that_its_owner_removed_meanwhile_is_not_held_against_the_lease);
    tcase_add_test(t, a_lease_that_the_decider_knows_to_be_lost_is_replaced);
    tcase_add_test(t, reads_are_answered_key_by_key_and_page_by_page);
    tcase_add_test(t, what_hangs_on_a_lease_is_told_by_name);
    tcase_add_test(t, intents_that_are_not_etcds_go_to_the_owner_and_its_news_come_in);
    tcase_add_test(t, time_is_told_when_the_decider_wants_it);
    tcase_add_test(t, a_thread_that_stood_still_is_noticed);
    return run("io/runner", t);
}
