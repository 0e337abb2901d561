/* Whether a body is whole: read once, however often that is asked. */
#include <check.h>
#include <string.h>

#include "agentd/link/resume.h"
#include "agentd/link/verify.h"
#include "io/runner.h"
#include "unit/suite.h"

/* The store and the runner of this link are the test. */

static struct link the_link;
static hf_ms now;

enum { MOST = 16 };

static struct {
    link_stored_fn fn;
    void *arg;
} reads[MOST];
static size_t read_count;

static struct hf_event_verified told[MOST];
static size_t told_count;

static const struct hf_intent *asks_when_told;

void link_store_verify(struct link_store *store, const Holdfast__V1__Checkpoint *entry,
                       link_stored_fn fn, void *arg)
{
    (void)store;
    (void)entry;
    ck_assert_uint_lt(read_count, MOST);
    reads[read_count].fn = fn;
    reads[read_count++].arg = arg;
}

int hf_runner_feed(struct hf_runner *runner, struct hf_event *event)
{
    const struct hf_intent *next = asks_when_told;

    (void)runner;
    ck_assert_int_eq(event->kind, HF_EVENT_VERIFIED);
    ck_assert_uint_lt(told_count, MOST);
    told[told_count++] = event->verified;
    asks_when_told = NULL;
    if (next != NULL)
        link_verify_begin(&the_link, next);
    return HF_OK;
}

static hf_ms get_now(void *self)
{
    (void)self;
    return now;
}

static const struct hf_backend_ops OPS = { .now = get_now };

static void setup(void)
{
    the_link = (struct link){ .backend.ops = &OPS, .runner = (struct hf_runner *)&the_link };
    now = 1000000;
    read_count = told_count = 0;
    asks_when_told = NULL;
}

static void teardown(void)
{
    link_verify_done(&the_link);
    link_resume_done(&the_link);
}

static Holdfast__V1__Checkpoint make_entry(void)
{
    Holdfast__V1__Checkpoint entry = HOLDFAST__V1__CHECKPOINT__INIT;

    entry.task = (char *)"t1";
    entry.seq = 3;
    entry.size = 1 << 30;
    entry.store = (char *)"s3";
    entry.key = (char *)"k3";
    entry.sha256 = (char *)"d3";
    return entry;
}

static void ask(uint64_t token, const Holdfast__V1__Checkpoint *entry)
{
    struct hf_intent intent = { .kind = HF_INTENT_VERIFY, .token = token, .verify = entry };

    link_verify_begin(&the_link, &intent);
}

/* So long after it was asked. */
static void answer(size_t at, hf_ms after, int err)
{
    now += after;
    ck_assert_uint_lt(at, read_count);
    reads[at].fn(&(struct link_stored){ .err = err, .size = 1 << 30 }, reads[at].arg);
}

static void expect_told(size_t at, uint64_t token, int err)
{
    ck_assert_uint_lt(at, told_count);
    ck_assert_uint_eq(told[at].token, token);
    ck_assert_int_eq(told[at].err, err);
}

/* Three asks of a minute each, the first two given up. */
START_TEST(who_asks_while_it_is_read_waits_for_the_same)
{
    Holdfast__V1__Checkpoint entry = make_entry();

    ask(1, &entry);
    now += 60000;
    ask(2, &entry);
    now += 60000;
    ask(3, &entry);
    ck_assert_uint_eq(read_count, 1);
    ck_assert_uint_eq(told_count, 0);
    answer(0, 30000, HF_OK);
    ck_assert_uint_eq(told_count, 3);
    for (size_t i = 0; i < 3; i++)
        expect_told(i, i + 1, HF_OK);
}
END_TEST

static const struct {
    int err;
    hf_ms took, later;
    bool kept;
} VERDICTS[] = {
    { HF_OK, 70000, 0, true },         { HF_OK, 70000, 299999, true },
    { HF_OK, 70000, 300000, false },   { HF_ECORRUPT, 70000, 60000, true },
    { HF_ENOENT, 70000, 60000, true }, /* not known: */
    { HF_EAGAIN, 70000, 0, false },    { HF_ENOMEM, 70000, 0, false },
    { HF_OK, 1999, 0, false }, /* read again as fast */
    { HF_ENOENT, 100, 0, false },
};

START_TEST(who_comes_back_later_is_answered_at_once)
{
    Holdfast__V1__Checkpoint entry = make_entry();

    ask(1, &entry);
    answer(0, VERDICTS[_i].took, VERDICTS[_i].err);
    expect_told(0, 1, VERDICTS[_i].err);
    now += VERDICTS[_i].later;
    ask(2, &entry);
    ck_assert_uint_eq(told_count, 1); /* never from inside */
    ck_assert_uint_eq(read_count, VERDICTS[_i].kept ? 1 : 2);
    if (!VERDICTS[_i].kept)
        return;
    ck_assert(the_link.dirty);
    link_verify_deliver(&the_link);
    ck_assert_uint_eq(told_count, 2);
    expect_told(1, 2, VERDICTS[_i].err);
}
END_TEST

static void change(Holdfast__V1__Checkpoint *entry, int what)
{
    static Holdfast__V1__Root root;

    switch (what) {
    case 0: entry->task = (char *)"t2"; break;
    case 1: entry->seq = 4; break;
    case 2: entry->sha256 = (char *)"d4"; break;
    case 3: entry->store = (char *)"file"; break;
    case 4: entry->key = (char *)"k4"; break;
    case 5: entry->size = 7; break;
    default:
        root = (Holdfast__V1__Root)HOLDFAST__V1__ROOT__INIT;
        root.id = (char *)"elsewhere";
        entry->root = &root;
        break;
    }
}

START_TEST(another_body_is_read_itself)
{
    Holdfast__V1__Checkpoint entry = make_entry(), other = make_entry();

    change(&other, _i);
    ask(1, &entry);
    ask(2, &other);
    ck_assert_uint_eq(read_count, 2);
    answer(0, 70000, HF_ECORRUPT);
    ck_assert_uint_eq(told_count, 1);
    answer(1, 0, HF_OK);
    expect_told(1, 2, HF_OK);
}
END_TEST

/* It was whole, and then it was read and was not. */
START_TEST(what_turned_out_to_be_wrong_is_forgotten)
{
    Holdfast__V1__Checkpoint entry = make_entry(), other = make_entry();

    other.task = (char *)"t2";
    ask(1, &entry);
    ask(2, &other);
    answer(0, 70000, HF_OK);
    answer(1, 0, HF_OK);
    link_verify_forget(&the_link, "t1");
    ask(3, &other);
    ck_assert_uint_eq(read_count, 2);
    ask(4, &entry);
    ck_assert_uint_eq(read_count, 3);
    link_verify_forget(&the_link, "t1"); /* what is being read is not known yet */
    ask(5, &entry);
    ck_assert_uint_eq(read_count, 3);
    answer(2, 0, HF_ECORRUPT);
    expect_told(2, 4, HF_ECORRUPT);
    expect_told(3, 5, HF_ECORRUPT);
}
END_TEST

START_TEST(who_is_told_may_ask_for_the_same_at_once)
{
    Holdfast__V1__Checkpoint entry = make_entry();
    struct hf_intent again = { .kind = HF_INTENT_VERIFY, .token = 9, .verify = &entry };

    asks_when_told = &again;
    ask(1, &entry);
    ask(2, &entry);
    answer(0, 1000, HF_EAGAIN);
    ck_assert_uint_eq(told_count, 2);
    ck_assert_uint_eq(read_count, 2);
    answer(1, 1000, HF_OK);
    expect_told(2, 9, HF_OK);
}
END_TEST

START_TEST(the_end_leaves_nothing)
{
    Holdfast__V1__Checkpoint entry = make_entry();

    ask(1, &entry);
    answer(0, 70000, HF_OK);
    ask(2, &entry); /* waits to be delivered */
    entry.seq = 4;
    ask(3, &entry); /* is looked at */
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("verify");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, who_asks_while_it_is_read_waits_for_the_same);
    tcase_add_loop_test(t, who_comes_back_later_is_answered_at_once, 0, COUNT(VERDICTS));
    tcase_add_loop_test(t, another_body_is_read_itself, 0, 7);
    tcase_add_test(t, what_turned_out_to_be_wrong_is_forgotten);
    tcase_add_test(t, who_is_told_may_ask_for_the_same_at_once);
    tcase_add_test(t, the_end_leaves_nothing);
    return run("agentd/verify", t);
}
