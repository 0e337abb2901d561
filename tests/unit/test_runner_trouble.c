#include "support/chaos.h"
#include "unit/runner_fixture.h"

static void fail_next(enum hf_event_kind kind, int err)
{
    toy.answer_to = kind;
    toy.answer = err;
    toy.answers = 1;
}

START_TEST(a_change_without_memory_has_everything_told_again)
{
    start_agentd();
    (void)heard();
    fail_next(HF_EVENT_CHANGE, HF_ENOMEM);
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    ck_assert_ptr_null(mirror()); /* what it would tell now is of no use */
    turn();
    ck_assert_str_eq(heard(), "forget ");
    ck_assert_ptr_null(mirror());
    hft_script_run(&script, script.now + 1000);
    ck_assert_ptr_nonnull(mirror());
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    ck_assert_str_eq(heard(), "put 7:a1@12 ");
    ck_assert_uint_eq(hf_runner_get_stats(runner).forgets, 1);
    stop();
}
END_TEST

static void trouble(int err)
{
    mirror()->cfg.on_trouble(err, hf_err_text(err), 0, mirror()->cfg.arg);
}

START_TEST(a_mirror_without_memory_may_have_told_one_half_of_a_txn)
{
    start_agentd();
    hft_script_sync(mirror());
    turn();
    (void)heard();
    trouble(HF_EAGAIN); /* it goes on by itself */
    turn();
    ck_assert_ptr_nonnull(mirror());
    ck_assert_str_eq(heard(), "");
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    trouble(HF_ENOMEM);
    ck_assert_ptr_null(mirror());
    push(HF_INTENT_ALERT, 0);
    turn();
    ck_assert_str_eq(heard(), "put 7:a1@11 forget intent 4 ");
    hft_script_run(&script, script.now + 1000);
    ck_assert_ptr_nonnull(mirror());
    stop();
}
END_TEST

/* Somebody wrote more than we may take in: nothing is decided, and whether there is less by now
 * is looked at now and then. */
START_TEST(a_mirror_with_too_much_to_follow_has_everything_forgotten)
{
    start_agentd();
    hft_script_sync(mirror());
    turn();
    (void)heard();
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    trouble(HF_ELIMIT);
    ck_assert_ptr_null(mirror());
    turn();
    ck_assert_str_eq(heard(), "put 7:a1@11 forget ");
    ck_assert(!hf_runner_get_stats(runner).synced);
    hft_script_run(&script, script.now + 9000);
    ck_assert_ptr_null(mirror());
    hft_script_run(&script, script.now + 1000);
    ck_assert_ptr_nonnull(mirror());
    ck_assert_uint_eq(hf_runner_get_stats(runner).resets, 0);
    stop();
}
END_TEST

/* What follows would be taken for news of before. */
START_TEST(nothing_is_told_before_what_became_void_was_told)
{
    start_agentd();
    push_write(1, "a", NULL);
    hft_script_sync(mirror());
    turn();
    (void)heard();
    fail_next(HF_EVENT_CHANGE, HF_ENOMEM);
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    hft_script_answer_txn(hft_script_find(&script, "wanted/a"), true, 0, NULL);
    fail_next(HF_EVENT_FORGET, HF_ENOMEM);
    turn();
    ck_assert_str_eq(heard(), "");
    hft_script_run(&script, script.now + 100);
    ck_assert_str_eq(heard(), "forget 1=done@12 ");
    stop();
}
END_TEST

START_TEST(an_outcome_without_memory_is_told_later)
{
    start_agentd();
    push_write(1, "a", NULL);
    hft_script_sync(mirror());
    turn();
    (void)heard();
    fail_next(HF_EVENT_OUTCOME, HF_ENOMEM);
    hft_script_answer_txn(hft_script_find(&script, "wanted/a"), true, 0, NULL);
    turn();
    ck_assert_str_eq(heard(), "");
    hft_script_run(&script, script.now + 100);
    ck_assert_str_eq(heard(), "1=done@11 ");
    stop();
}
END_TEST

START_TEST(a_page_without_memory_fails_the_read)
{
    struct hf_kv kv = { .key = hf_bytes_of(NS "tasks/t1"), .value = hf_bytes_of("{}") };

    start_agentd();
    push(HF_INTENT_READ, 2)->read =
        (struct hf_intent_read){ .whole_scope = true, .scope = HF_KEY_IN_TASKS };
    hft_script_sync(mirror());
    turn();
    (void)heard();
    fail_next(HF_EVENT_ANSWER, HF_ENOMEM);
    hft_script_answer_list(script.lists, HF_OK, &kv, 1, true);
    ck_assert_ptr_null(script.lists);
    turn();
    ck_assert_str_eq(heard(), "2:ENOMEM ");
    stop();
}
END_TEST

START_TEST(a_history_reset_reaches_everyone)
{
    int64_t first;

    start_agentd();
    first = hf_runner_get_lease(runner).lease;
    (void)heard();
    hft_script_reset(mirror());
    ck_assert_str_eq(heard(), "reset ");
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    turn();
    ck_assert_int_ne(hf_runner_get_lease(runner).lease, first);
    ck_assert_uint_eq(hf_runner_get_stats(runner).resets, 1);
    stop();
}
END_TEST

START_TEST(a_contradiction_that_only_the_decider_sees_is_a_reset_too)
{
    int64_t first;

    start_agentd();
    first = hf_runner_get_lease(runner).lease;
    (void)heard();
    fail_next(HF_EVENT_CHANGE, HF_EHISTORY);
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    ck_assert_ptr_null(mirror());
    turn();
    ck_assert_ptr_nonnull(strstr(heard(), "reset "));
    ck_assert_ptr_nonnull(mirror());
    ck_assert_int_ne(hf_runner_get_lease(runner).lease, first);
    ck_assert_uint_eq(hf_runner_get_stats(runner).resets, 1);
    stop();
}
END_TEST

START_TEST(a_contradiction_that_is_seen_amid_a_turn_is_told_by_itself)
{
    start_agentd();
    push_write(1, "a", NULL);
    hft_script_sync(mirror());
    turn();
    (void)heard();
    fail_next(HF_EVENT_OUTCOME, HF_EHISTORY);
    hft_script_answer_txn(hft_script_find(&script, "wanted/a"), true, 0, NULL);
    script.silent = true; /* so that no other news set it going */
    turn();
    ck_assert_ptr_nonnull(strstr(heard(), "reset "));
    ck_assert_ptr_nonnull(mirror());
    script.silent = false;
    stop();
}
END_TEST

/* Something is known of etcd, and then a write is sent. */
static struct hf_call *send_write(uint64_t token, const char *agent, const char *key)
{
    hft_script_tell(mirror(), NS "wanted/z", "{}");
    push_write(token, agent, NULL);
    hft_script_sync(mirror());
    turn();
    (void)heard();
    return hft_script_find(&script, key);
}

/* Done or refused: an answer that knows less than we did when we asked is of another history.
 */
START_TEST(an_answer_of_before_what_was_known_is_a_reset)
{
    struct hf_call *call;
    int64_t first;

    start_agentd();
    first = hf_runner_get_lease(runner).lease;
    call = send_write(1, "a", "wanted/a");
    script.revision -= 5;
    hft_script_answer_txn(call, _i == 0, 0, NULL);
    ck_assert_ptr_null(mirror());
    ck_assert_uint_eq(hf_runner_get_stats(runner).resets, 1);
    ck_assert_ptr_nonnull(strstr(troubles, "EHISTORY"));
    turn();
    ck_assert_int_eq(strncmp(heard(), "reset ", strlen("reset ")), 0);
    ck_assert_ptr_nonnull(mirror());
    ck_assert_int_eq(mirror()->cfg.past->revision, 0);
    ck_assert_int_ne(hf_runner_get_lease(runner).lease, first);
    stop();
}
END_TEST

/* Members answer when they like: what was not known when it was sent is held against nobody.
 */
START_TEST(answers_out_of_order_are_no_reset)
{
    struct hf_call *first, *second;

    start_agentd();
    first = send_write(1, "a", "wanted/a");
    push_write(2, "b", NULL);
    hft_script_sync(mirror());
    turn();
    second = hft_script_find(&script, "wanted/b");
    script.revision += 10;
    hft_script_answer_txn(second, true, 0, NULL);
    script.revision -= 9;
    hft_script_answer_txn(first, true, 0, NULL);
    turn();
    ck_assert_uint_eq(hf_runner_get_stats(runner).resets, 0);
    /* Whoever is asked from now on has to know what the second one knew. */
    push_write(3, "c", NULL);
    hft_script_sync(mirror());
    turn();
    hft_script_answer_txn(hft_script_find(&script, "wanted/c"), true, 0, NULL);
    ck_assert_uint_eq(hf_runner_get_stats(runner).resets, 1);
    turn();
    stop();
}
END_TEST

/* It was asked in a history that is known to be over: it neither ends this one, nor teaches
 * what this one has to know. */
START_TEST(an_answer_to_what_was_sent_before_a_reset_says_nothing)
{
    struct hf_call *call;
    hf_rev before;

    start_agentd();
    call = send_write(1, "a", "wanted/a");
    before = script.revision;
    hft_script_reset(mirror());
    script.revision = _i == 0 ? before - 8 : before + 8;
    hft_script_answer_txn(call, true, 0, NULL);
    turn();
    ck_assert_uint_eq(hf_runner_get_stats(runner).resets, 1);
    script.revision = before - 6;
    call = send_write(2, "b", "wanted/b");
    hft_script_answer_txn(call, true, 0, NULL);
    turn();
    ck_assert_uint_eq(hf_runner_get_stats(runner).resets, 1);
    stop();
}
END_TEST

START_TEST(a_leader_gives_its_term_up_when_history_went_back)
{
    start_leader();
    (void)heard();
    hft_script_reset(mirror());
    ck_assert_str_eq(heard(), "reset ");
    hft_script_sync(hft_script_mirror(&script, LEADER));
    hft_script_run(&script, script.now + 2000);
    ck_assert_ptr_nonnull(strstr(heard(), "leads@"));
    stop();
}
END_TEST

START_TEST(other_ranges_are_followed_by_another_mirror)
{
    start_agentd();
    (void)heard();
    ck_assert_uint_eq(script.mirrors_opened, 1);
    toy.ranges_version++;
    hft_script_sync(mirror());
    turn();
    ck_assert_str_eq(heard(), "synced@10 forget ");
    ck_assert_uint_eq(script.mirrors_opened, 2);
    ck_assert_ptr_nonnull(mirror());
    stop();
}
END_TEST

START_TEST(the_next_mirror_begins_with_the_past_that_the_last_one_saw)
{
    start_agentd();
    ck_assert_int_eq(mirror()->cfg.past->revision, 0);
    mirror()->cfg.past->revision = 94; /* as it would be given back */
    toy.ranges_version++;
    hft_script_sync(mirror());
    turn();
    ck_assert_int_eq(mirror()->cfg.past->revision, 94);
    fail_next(HF_EVENT_CHANGE, HF_ENOMEM);
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    hft_script_run(&script, script.now + 1000);
    ck_assert_int_eq(mirror()->cfg.past->revision, 94);
    fail_next(HF_EVENT_CHANGE, HF_EHISTORY);
    hft_script_tell(mirror(), NS "wanted/a1", "{}");
    turn();
    ck_assert_int_eq(mirror()->cfg.past->revision, 0); /* of another history */
    stop();
}
END_TEST

/* Everything at once, and then the end. */
static void fill_the_air(void)
{
    push_write(1, "a", NULL);
    push_write(2, "a", NULL);
    push_write(3, "b", NULL);
    push(HF_INTENT_READ, 4)->read =
        (struct hf_intent_read){ .whole_scope = true, .scope = HF_KEY_IN_TASKS };
    push(HF_INTENT_READ, 5)->read =
        (struct hf_intent_read){ .key = { .kind = HF_KEY_TASK, .name = "t" } };
    hft_script_sync(mirror());
    turn();
}

START_TEST(an_agentd_closes_with_everything_under_way)
{
    start_agentd();
    fill_the_air();
    ck_assert_uint_eq(hft_script_count(&script), 3);
    hf_runner_close(runner, _i == 0, on_closed, NULL);
    ck_assert_uint_eq(closed, 0); /* not from inside */
    hft_script_run(&script, script.now + 10000);
    ck_assert_uint_eq(closed, 1);
    ck_assert_uint_eq(script.revoked, _i == 0 ? 1 : 0);
    ck_assert(hft_script_is_clean(&script));
}
END_TEST

START_TEST(a_controller_closes_with_everything_under_way)
{
    start_leader();
    fill_the_air();
    script.silent = _i == 1; /* the second time nobody answers any more */
    hft_script_run(&script, script.now + 100);
    hf_runner_close(runner, false, on_closed, NULL);
    hft_script_run(&script, script.now + 10000);
    ck_assert_uint_eq(closed, 1);
    script.silent = false;
    turn();
    ck_assert(hft_script_is_clean(&script));
}
END_TEST

START_TEST(a_runner_may_be_closed_from_an_intent_and_gives_no_other)
{
    start_agentd();
    push(HF_INTENT_REPLY, 1);
    push(HF_INTENT_REPLY, 2);
    push_write(3, "a", NULL);
    close_at_intent = true;
    hft_script_sync(mirror());
    hft_script_run(&script, script.now + 10000);
    ck_assert_uint_eq(intents_seen, 1);
    ck_assert_uint_eq(closed, 1);
    ck_assert(hft_script_is_clean(&script));
    stop();
}
END_TEST

START_TEST(a_policy_that_contradicts_itself_is_refused)
{
    struct hf_backend backend = hft_script_backend(&script);
    struct hf_runner_config cfg = runner_config();
    struct hf_error err = { "" };

    if (_i == 0)
        cfg.lease.ttl = 0;
    cfg.leader = _i == 0 ? (struct hf_bytes){ 0 } : hf_bytes_of("{}");
    cfg.election.retry_min = -1;
    ck_assert_int_eq(hf_runner_new(&backend, &cfg, &runner, &err), HF_EINVAL);
    ck_assert_str_ne(err.text, "");
    ck_assert(hft_script_is_clean(&script));
}
END_TEST

/* A whole life during which the n-th allocation fails, or all from there on: what has to be
 * told is told in the end, once, unless there never is any memory again, and nothing is left
 * behind. */
static int live_through(bool leads)
{
    struct hf_backend backend = hft_script_backend(&script);
    struct hf_runner_config cfg = runner_config();
    struct hf_kv kv = { .key = hf_bytes_of(NS "tasks/t1"), .value = hf_bytes_of("{}") };
    int err;

    if (leads)
        cfg.leader = hf_bytes_of("{}");
    err = hf_runner_new(&backend, &cfg, &runner, NULL);
    if (err != HF_OK)
        return err;
    for (int second = 0; second < 30; second++) {
        struct hf_call *call;

        hft_script_run(&script, script.now + 1000);
        if (leads && hft_script_mirror(&script, LEADER) != NULL && second == 0)
            hft_script_sync(hft_script_mirror(&script, LEADER));
        if (mirror() != NULL && second % 3 == 0)
            hft_script_tell(mirror(), NS "wanted/a1", "{}");
        while ((call = hft_script_find(&script, "")) != NULL) {
            if (call->kind == HFT_CALL_TXN)
                hft_script_answer_txn(call, true, 0, NULL);
            else
                hft_script_answer_range(call, HF_OK, &kv, call->key[0] == '/' ? 1 : 0);
        }
    }
    hf_runner_close(runner, true, on_closed, NULL);
    hft_script_run(&script, script.now + 10000);
    return HF_OK;
}

static void push_a_life(void)
{
    push_write(1, "a", NULL);
    push_write(2, "a", NULL);
    push(HF_INTENT_READ, 3)->read =
        (struct hf_intent_read){ .key = { .kind = HF_KEY_TASK, .name = "t1" } };
}

static void check_told_once(const char *what)
{
    const char *first = strstr(toy.log, what);

    ck_assert_msg(first != NULL, "%s is missing in %s", what, toy.log);
    ck_assert_msg(strstr(first + 1, what) == NULL, "%s comes twice in %s", what, toy.log);
}

START_TEST(a_life_survives_any_allocation_that_fails)
{
    bool failed = true;

    hft_chaos_adopt_jansson();
    for (size_t n = 1; failed; n++) {
        int err;

        reset_toy();
        push_a_life();
        hft_chaos_fail_at(n, _i >= 2);
        err = live_through(_i % 2 == 1);
        hft_chaos_stop();
        failed = hft_chaos_has_failed();
        ck_assert_msg(hft_script_is_clean(&script), "allocation %zu: something is left", n);
        if (err != HF_OK) {
            ck_assert_int_eq(err, HF_ENOMEM);
            stop_intents();
            continue;
        }
        ck_assert_uint_eq(closed, 1);
        stop_intents();
        if (_i >= 2 && failed)
            continue;
        check_told_once("1=");
        check_told_once("2=");
        check_told_once(" 3:");
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("trouble");

    tcase_add_checked_fixture(t, reset_toy, NULL);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_change_without_memory_has_everything_told_again);
    tcase_add_test(t, a_mirror_without_memory_may_have_told_one_half_of_a_txn);
    tcase_add_test(t, a_mirror_with_too_much_to_follow_has_everything_forgotten);
    tcase_add_test(t, nothing_is_told_before_what_became_void_was_told);
    tcase_add_test(t, an_outcome_without_memory_is_told_later);
    tcase_add_test(t, a_page_without_memory_fails_the_read);
    tcase_add_test(t, a_history_reset_reaches_everyone);
    tcase_add_test(t, a_contradiction_that_only_the_decider_sees_is_a_reset_too);
    tcase_add_test(t, a_contradiction_that_is_seen_amid_a_turn_is_told_by_itself);
    tcase_add_loop_test(t, an_answer_of_before_what_was_known_is_a_reset, 0, 2);
    tcase_add_test(t, answers_out_of_order_are_no_reset);
    tcase_add_loop_test(t, an_answer_to_what_was_sent_before_a_reset_says_nothing, 0, 2);
    tcase_add_test(t, a_leader_gives_its_term_up_when_history_went_back);
    tcase_add_test(t, other_ranges_are_followed_by_another_mirror);
    tcase_add_test(t, the_next_mirror_begins_with_the_past_that_the_last_one_saw);
    tcase_add_loop_test(t, an_agentd_closes_with_everything_under_way, 0, 2);
    tcase_add_loop_test(t, a_controller_closes_with_everything_under_way, 0, 2);
    tcase_add_test(t, a_runner_may_be_closed_from_an_intent_and_gives_no_other);
    tcase_add_loop_test(t, a_policy_that_contradicts_itself_is_refused, 0, 2);
    tcase_add_loop_test(t, a_life_survives_any_allocation_that_fails, 0, 4);
    return run("io/runner: trouble", t);
}
