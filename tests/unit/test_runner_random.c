/* Random lives of a runner: whatever order answers, failures, lacks of memory and the end come
 * in, each write has one outcome, and what touches a common key is never under way at once. */
#include "unit/runner_fixture.h"

enum { LIVES = 400, STEPS = 120, AGENTS = 4, TOKENS = 256 };

static uint64_t dice;
static uint64_t token;
static unsigned outcomes[TOKENS];

static unsigned roll(unsigned below)
{
    dice = dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(dice >> 33) % below;
}

/* The decider of the fixture has a short queue: it is refilled when all was given. */
static void ask_for_something(void)
{
    static const char *const NAMES[AGENTS] = { "a", "b", "c", "d" };

    if (toy.given == toy.count)
        toy.given = toy.count = 0;
    if (toy.count == MOST_INTENTS || token + 1 >= TOKENS)
        return;
    switch (roll(4)) {
    case 0: push_health(++token, NAMES[roll(AGENTS)]); break;
    case 1:
        push(HF_INTENT_READ, 1000 + token)->read =
            (struct hf_intent_read){ .whole_scope = roll(2) > 0,
                                     .key = { .kind = HF_KEY_TASK, .name = "t" },
                                     .scope = HF_KEY_IN_TASKS };
        break;
    default:
        push_write(++token, NAMES[roll(AGENTS)], roll(2) > 0 ? NAMES[roll(AGENTS)] : NULL);
        break;
    }
}

/* No two that write one key are open together. */
static void check_open(void)
{
    for (struct hf_call *a = script.calls; a != NULL; a = a->next) {
        for (struct hf_call *b = a->next; b != NULL; b = b->next)
            ck_assert_msg(a->by_itself || b->by_itself || a->kind != HFT_CALL_TXN ||
                              b->kind != HFT_CALL_TXN || strcmp(a->key, b->key) != 0,
                          "two writes of %s are under way", a->key);
    }
}

static struct hf_call *pick_call(void)
{
    size_t count = hft_script_count(&script);
    unsigned nth = count > 0 ? roll((unsigned)count) : 0;

    for (struct hf_call *call = script.calls; call != NULL; call = call->next) {
        if (!call->by_itself && nth-- == 0)
            return call;
    }
    return NULL;
}

static void answer_something(void)
{
    struct hf_kv kv = { .key = hf_bytes_of(NS "tasks/t"), .value = hf_bytes_of("{}") };
    struct hf_call *call = pick_call();

    if (script.lists != NULL && roll(2) > 0) {
        hft_script_answer_list(script.lists, roll(5) == 0 ? HF_EAGAIN : HF_OK, &kv, roll(2),
                               false);
        return;
    }
    if (call == NULL)
        return;
    if (call->kind == HFT_CALL_RANGE)
        hft_script_answer_range(call, roll(5) == 0 ? HF_EAGAIN : HF_OK, &kv, roll(2));
    else if (roll(4) == 0)
        hft_script_fail_txn(call, HF_ETIMEOUT, roll(2) > 0);
    else
        hft_script_answer_txn(call, roll(3) > 0, roll(2), NULL);
}

static void tell_something(void)
{
    static const char *const KEYS[] = { NS "wanted/a", NS "health/b", NS "nonsense" };

    if (mirror() == NULL)
        return;
    switch (roll(6)) {
    case 0: hft_script_sync(mirror()); break;
    case 1: hft_script_tell(mirror(), KEYS[roll(3)], NULL); break;
    case 2:
        if (roll(8) == 0)
            hft_script_reset(mirror());
        break;
    default: hft_script_tell(mirror(), KEYS[roll(3)], roll(4) == 0 ? "broken" : "{}"); break;
    }
}

static void upset_something(void)
{
    static const enum hf_event_kind KINDS[] = { HF_EVENT_CHANGE, HF_EVENT_OUTCOME,
                                                HF_EVENT_ANSWER, HF_EVENT_LEASE,
                                                HF_EVENT_FORGET, HF_EVENT_TERM };

    switch (roll(4)) {
    case 0: script.silent = !script.silent; break;
    case 1: toy.ranges_version++; break;
    case 2:
        toy.answer_to = KINDS[roll(COUNT(KINDS))];
        toy.answer = HF_ENOMEM;
        toy.answers = roll(3);
        break;
    default: toy.deadline = roll(2) > 0 ? INT64_MAX : script.now + roll(500); break;
    }
}

/* The transcript has "<token>=": each is counted, and the transcript emptied. */
static void count_outcomes(void)
{
    for (const char *at = strchr(toy.log, '='); at != NULL; at = strchr(at + 1, '=')) {
        const char *digit = at;

        while (digit > toy.log && digit[-1] >= '0' && digit[-1] <= '9')
            digit--;
        outcomes[strtoul(digit, NULL, 10) % TOKENS]++;
    }
    toy.log[0] = '\0';
}

static void live(bool leads)
{
    struct hf_runner_config cfg = runner_config();
    unsigned steps = roll(STEPS);

    cfg.writes_at_once = 1 + roll(4);
    if (leads)
        cfg.leader = hf_bytes_of("{}");
    start_with(&cfg);
    for (unsigned i = 0; i < steps; i++) {
        switch (roll(6)) {
        case 0: ask_for_something(); break;
        case 1: answer_something(); break;
        case 2: tell_something(); break;
        case 3: upset_something(); break;
        case 4:
            if (leads && hft_script_mirror(&script, LEADER) != NULL)
                hft_script_sync(hft_script_mirror(&script, LEADER));
            break;
        default: hft_script_run(&script, script.now + roll(700)); break;
        }
        check_open();
        count_outcomes();
    }
}

/* Everything is answered, and there is memory: then everything is told. */
static void settle(void)
{
    toy.answers = 0;
    script.silent = false;
    for (int i = 0; i < 200; i++) {
        hft_script_run(&script, script.now + 100);
        while (pick_call() != NULL || script.lists != NULL)
            answer_something();
        check_open();
        count_outcomes();
    }
}

static void check_all_told(void)
{
    for (uint64_t t = 1; t <= token; t++)
        ck_assert_msg(outcomes[t] == 1, "write %d was told %u times", (int)t, outcomes[t]);
    ck_assert_uint_eq(hf_runner_get_stats(runner).flights, 0);
}

START_TEST(random_lives_lose_no_outcome_and_end_clean)
{
    for (unsigned seed = 1; seed <= LIVES; seed++) {
        dice = seed * 2654435761u + (unsigned)_i;
        token = 0;
        memset(outcomes, 0, sizeof outcomes);
        reset_toy();
        live(_i == 1);
        if (roll(2) > 0) {
            settle();
            check_all_told();
        }
        for (uint64_t t = 1; t <= token; t++)
            ck_assert_uint_le(outcomes[t], 1);
        script.silent = roll(2) > 0;
        hf_runner_close(runner, roll(2) > 0, on_closed, NULL);
        hft_script_run(&script, script.now + 10000);
        script.silent = false;
        hft_script_run(&script, script.now);
        ck_assert_uint_eq(closed, 1);
        ck_assert_msg(hft_script_is_clean(&script), "life %u left something", seed);
        stop_intents();
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("random");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, random_lives_lose_no_outcome_and_end_clean, 0, 2);
    return run("io/runner: random", t);
}
