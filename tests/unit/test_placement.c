#include <stdio.h>
#include <string.h>

#include "core/placement.h"
#include "sim/random.h"
#include "unit/suite.h"

enum { S = 1000, FLEET = 64 };

#define HOST      HF_PLACEMENT_HOST
#define WAIT_HOME HF_PLACEMENT_WAIT_HOME
#define WIDEN     HF_PLACEMENT_WIDEN
#define NONE      HF_PLACEMENT_NONE

static char BATCH[] = "batch", GPU[] = "gpu", PYTHON[] = "python", WRITER[] = "writer";
static char UNNAMED[] = "";
static char *POOLS[] = { BATCH, GPU };
static char *LAUNCHERS[] = { PYTHON, WRITER };

/* One host with all that it needs to be fit for the agent below. */
struct box {
    struct hf_placement_host host;
    Holdfast__V1__Host record;
    char name[16];
};

static void furnish(struct box *box, int number)
{
    (void)snprintf(box->name, sizeof box->name, "node-%d", number);
    holdfast__v1__host__init(&box->record);
    box->record.pools = POOLS;
    box->record.n_pools = COUNT(POOLS);
    box->record.launchers = LAUNCHERS;
    box->record.n_launchers = COUNT(LAUNCHERS);
    box->record.capacity = 10;
    box->host = (struct hf_placement_host){
        .name = box->name,
        .record = &box->record,
        .live = true,
    };
}

static Holdfast__V1__Spec agent(void)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    spec.pool = GPU;
    spec.launcher = WRITER;
    return spec;
}

static struct hf_placement_decision place(const struct hf_placement_case *facts, hf_ms now,
                                          uint32_t random)
{
    struct hf_placement_policy p = hf_placement_policy_default();
    struct hf_placement_decision d = hf_placement_decide(&p, facts, now, random);

    ck_assert_ptr_nonnull(d.why);
    ck_assert_ptr_nonnull(d.next);
    ck_assert_int_ge(d.at, now);
    ck_assert_int_eq(d.host != NULL, d.verdict == HOST);
    return d;
}

/* Among these hosts, and there are no others; a last resort will not do. */
static struct hf_placement_decision place_among(const struct box *boxes, size_t count,
                                                const struct hf_placement_host *home, hf_ms now,
                                                uint32_t random)
{
    struct hf_placement_host hosts[FLEET];
    Holdfast__V1__Spec spec = agent();
    struct hf_placement_decision d;

    for (size_t i = 0; i < count; i++)
        hosts[i] = boxes[i].host;
    d = place(&(struct hf_placement_case){ .spec = &spec,
                                           .home = home,
                                           .hosts = hosts,
                                           .count = count,
                                           .is_all = true,
                                           .fresh_only = true },
              now, random);
    for (size_t i = 0; i < count; i++)
        if (d.host == &hosts[i])
            d.host = &boxes[i].host;
    return d;
}

static void expect_host(struct hf_placement_decision d, const struct box *box)
{
    ck_assert_int_eq(d.verdict, HOST);
    ck_assert_str_eq(d.host->name, box->name);
}

static void expect_why(struct hf_placement_decision d, const char *part)
{
    ck_assert_msg(strstr(d.why, part) != NULL, "%s", d.why);
}

static void no_record(struct box *b)
{
    b->host.record = NULL;
}
static void other_pool(struct box *b)
{
    b->record.n_pools = 1;
}
static void no_launcher(struct box *b)
{
    b->record.n_launchers = 1;
}
static void unkillable(struct box *b)
{
    b->host.unkillable = true;
}
static void avoided(struct box *b)
{
    b->host.avoided = true;
}
static void left(struct box *b)
{
    b->record.left = true;
}
static void cordoned(struct box *b)
{
    b->record.cordoned = true;
}
static void passed(struct box *b)
{
    b->host.passed_until = 10 * S;
}
static void gone(struct box *b)
{
    b->host.live = false;
}
static void full(struct box *b)
{
    b->host.agents = 7;
    b->host.starts = 3;
}

static const struct {
    void (*spoil)(struct box *);
    enum hf_placement_fault fault;
    const char *why; /* when all hosts are like this */
} FAULTS[] = {
    { no_record, HF_PLACEMENT_UNKNOWN, "nothing is known" },
    { other_pool, HF_PLACEMENT_POOL, "pool" },
    { no_launcher, HF_PLACEMENT_LAUNCHER, "launcher" },
    { unkillable, HF_PLACEMENT_UNKILLABLE, "killed" },
    { avoided, HF_PLACEMENT_AVOIDED, "could not be started" },
    { left, HF_PLACEMENT_LEFT, "goodbye" },
    { cordoned, HF_PLACEMENT_CORDONED, "cordoned" },
    { gone, HF_PLACEMENT_GONE, "gone" },
    { full, HF_PLACEMENT_FULL, "full" },
    { passed, HF_PLACEMENT_PASSED, "failed lately" },
};

START_TEST(a_host_that_is_not_fit_is_never_chosen)
{
    Holdfast__V1__Spec spec = agent();
    struct box boxes[2];

    furnish(&boxes[0], 0);
    furnish(&boxes[1], 1);
    FAULTS[_i].spoil(&boxes[0]);
    ck_assert_int_eq(hf_placement_judge(&boxes[0].host, &spec, 0), FAULTS[_i].fault);
    boxes[1].host.agents = 9; /* the other one is nearly full, and chosen all the same */
    for (uint32_t i = 0; i < 50; i++)
        expect_host(place_among(boxes, 2, NULL, 0, i * 85899346), &boxes[1]);

    struct hf_placement_decision d = place_among(boxes, 1, NULL, 0, 0);
    ck_assert_int_eq(d.verdict, NONE);
    expect_why(d, FAULTS[_i].why);
}
END_TEST

/* Every pair: of two hosts that will not do, the one that may change sooner is named. */
START_TEST(what_stands_against_all_is_what_may_change_soonest)
{
    for (size_t other = 0; other < COUNT(FAULTS); other++) {
        size_t nearer = other > (size_t)_i ? other : (size_t)_i;
        struct box boxes[2];

        furnish(&boxes[0], 0);
        furnish(&boxes[1], 1);
        FAULTS[_i].spoil(&boxes[0]);
        FAULTS[other].spoil(&boxes[1]);
        expect_why(place_among(boxes, 2, NULL, 0, 0), FAULTS[nearer].why);
    }
}
END_TEST

START_TEST(without_hosts_there_is_no_place)
{
    struct hf_placement_decision d = place_among(NULL, 0, NULL, 5 * S, 0);

    ck_assert_int_eq(d.verdict, NONE);
    ck_assert_int_eq(d.at, 35 * S);
    expect_why(d, "no host");
}
END_TEST

START_TEST(a_host_that_is_passed_over_is_asked_for_when_that_ends)
{
    struct box boxes[2];

    furnish(&boxes[0], 0);
    furnish(&boxes[1], 1);
    boxes[0].host.passed_until = 9 * S;
    boxes[1].host.passed_until = 7 * S;
    ck_assert_int_eq(place_among(boxes, 2, NULL, 1 * S, 0).at, 7 * S);
    expect_host(place_among(boxes, 2, NULL, 7 * S, 0), &boxes[1]);
    boxes[0].host.passed_until = boxes[1].host.passed_until = 90 * S;
    ck_assert_int_eq(place_among(boxes, 2, NULL, 1 * S, 0).at, 31 * S);
}
END_TEST

START_TEST(a_host_that_is_passed_over_is_the_last_resort)
{
    Holdfast__V1__Spec spec = agent();
    struct box boxes[3];
    struct hf_placement_host hosts[3];
    struct hf_placement_case c = { .spec = &spec, .hosts = hosts, .count = 3, .is_all = true };

    for (int i = 0; i < 3; i++) {
        furnish(&boxes[i], i);
        boxes[i].host.passed_until = 9 * S;
        boxes[i].host.agents = (size_t)(5 - i);
        hosts[i] = boxes[i].host;
    }
    /* None is better: the least loaded, though one of the passed may not be it. */
    hosts[2].live = false;
    expect_host(place(&c, 1 * S, 0), &boxes[1]);
    /* A home is no better than others among these, but it is looked at. */
    c.home = &hosts[0];
    expect_host(place(&c, 1 * S, 0), &boxes[1]);
    c.count = 1;
    expect_host(place(&c, 1 * S, 0), &boxes[0]);
    /* There may be better ones among those that were not looked at. */
    c.is_all = false;
    ck_assert_int_eq(place(&c, 1 * S, 0).verdict, WIDEN);
    c.is_all = true;
    c.count = 3;
    hosts[0].passed_until = 0;
    hosts[0].agents = 9;
    expect_host(place(&c, 1 * S, 0), &boxes[0]);
    hosts[0].passed_until = 9 * S;
    c.fresh_only = true;
    ck_assert_int_eq(place(&c, 1 * S, 0).verdict, NONE);
}
END_TEST

START_TEST(a_home_that_is_fit_is_chosen_however_full_it_is)
{
    struct box boxes[2], home;

    furnish(&boxes[0], 0);
    furnish(&boxes[1], 1);
    furnish(&home, 9);
    home.host.agents = 9;
    expect_host(place_among(boxes, 2, &home.host, 0, 0), &home);
    home.host.starts = 1;
    ck_assert_ptr_ne(place_among(boxes, 2, &home.host, 0, 0).host, &home.host);
}
END_TEST

START_TEST(a_home_that_vanished_is_waited_for_and_then_replaced)
{
    struct box boxes[1], home;

    furnish(&boxes[0], 0);
    furnish(&home, 9);
    home.host.live = false;
    home.host.gone_at = 100 * S;
    struct hf_placement_decision d = place_among(boxes, 1, &home.host, 101 * S, 0);
    ck_assert_int_eq(d.verdict, WAIT_HOME);
    ck_assert_int_eq(d.at, 160 * S);
    ck_assert_int_eq(place_among(boxes, 1, &home.host, 160 * S - 1, 0).verdict, WAIT_HOME);
    expect_host(place_among(boxes, 1, &home.host, 160 * S, 0), &boxes[0]);

    d = place_among(NULL, 0, &home.host, 160 * S, 0);
    ck_assert_int_eq(d.verdict, NONE);
    expect_why(d, "gone");
    home.host.live = true;
    expect_host(place_among(boxes, 1, &home.host, 500 * S, 0), &home);
}
END_TEST

/* All that stands against a home for longer than its absence. */
START_TEST(a_home_that_would_not_do_is_not_waited_for)
{
    struct box boxes[1], home;

    if (FAULTS[_i].fault >= HF_PLACEMENT_GONE)
        return;
    furnish(&boxes[0], 0);
    furnish(&home, 9);
    home.host.live = false;
    FAULTS[_i].spoil(&home);
    expect_host(place_among(boxes, 1, &home.host, 1 * S, 0), &boxes[0]);
}
END_TEST

START_TEST(a_home_that_is_among_the_others_has_no_second_chance)
{
    struct box boxes[2];

    furnish(&boxes[0], 0);
    furnish(&boxes[1], 1);
    struct hf_placement_host home = boxes[0].host;
    home.avoided = true; /* the others' list does not know */
    for (uint32_t i = 0; i < 50; i++)
        expect_host(place_among(boxes, 2, &home, 0, i * 85899346), &boxes[1]);
}
END_TEST

START_TEST(the_pool_without_a_name_is_a_pool)
{
    Holdfast__V1__Spec spec = agent();
    struct box box;

    spec.pool = UNNAMED;
    furnish(&box, 0);
    ck_assert_int_eq(hf_placement_judge(&box.host, &spec, 0), HF_PLACEMENT_POOL);
    box.record.n_pools = 0;
    ck_assert_int_eq(hf_placement_judge(&box.host, &spec, 0), HF_PLACEMENT_FIT);
    spec.pool = GPU;
    ck_assert_int_eq(hf_placement_judge(&box.host, &spec, 0), HF_PLACEMENT_POOL);
}
END_TEST

START_TEST(the_least_loaded_is_chosen_for_what_it_can_take)
{
    struct box boxes[3];

    for (int i = 0; i < 3; i++)
        furnish(&boxes[i], i);
    boxes[0].host.agents = 2; /* of 10 */
    boxes[1].host.agents = 3; /* of 20, and one start */
    boxes[1].host.starts = 2;
    boxes[1].record.capacity = 20;
    boxes[2].record.capacity = 0; /* as if it were 100 */
    boxes[2].host.agents = 19;
    expect_host(place_among(boxes, 3, NULL, 0, 0), &boxes[2]);
    boxes[2].host.agents = 21;
    expect_host(place_among(boxes, 3, NULL, 0, 0), &boxes[0]);
    boxes[0].host.starts = 1;
    boxes[2].host.agents = 26;
    expect_host(place_among(boxes, 3, NULL, 0, 0), &boxes[1]);
    boxes[0].host.agents = boxes[1].host.agents =
        20; /* full; the one without a limit never is */
    boxes[2].host.agents = 100000;
    expect_host(place_among(boxes, 3, NULL, 0, 0), &boxes[2]);
}
END_TEST

START_TEST(when_a_sample_will_not_do_all_are_asked_for)
{
    Holdfast__V1__Spec spec = agent();
    struct box box;

    furnish(&box, 0);
    box.record.cordoned = true;
    struct hf_placement_case c = { .spec = &spec, .hosts = &box.host, .count = 1 };
    ck_assert_int_eq(place(&c, 3, 0).verdict, WIDEN);
    ck_assert_int_eq(place(&c, 3, 0).at, 3);
    c.is_all = true;
    ck_assert_int_eq(place(&c, 3, 0).verdict, NONE);
}
END_TEST

/* A thousand agents of a lost host, each placed after a look at four hosts of a hundred. */
START_TEST(the_agents_of_a_lost_host_spread)
{
    enum { HOSTS = 100, AGENTS = 1000 };
    struct hf_placement_policy p = hf_placement_policy_default();
    struct hfs_random random = { (uint64_t)_i };
    Holdfast__V1__Spec spec = agent();
    static struct box boxes[HOSTS];
    size_t most = 0;

    for (int i = 0; i < HOSTS; i++) {
        furnish(&boxes[i], i);
        boxes[i].record.capacity = 0;
    }
    for (int i = 0; i < AGENTS; i++) {
        struct hf_placement_host hosts[HF_PLACEMENT_SAMPLE];
        size_t drawn[HF_PLACEMENT_SAMPLE];
        size_t count = hf_placement_sample(&p, HOSTS, hfs_random_next(&random), drawn);

        ck_assert_uint_eq(count, 4);
        for (size_t k = 0; k < count; k++)
            hosts[k] = boxes[drawn[k]].host;
        struct hf_placement_decision d =
            place(&(struct hf_placement_case){ .spec = &spec, .hosts = hosts, .count = count },
                  0, (uint32_t)hfs_random_next(&random));
        ck_assert_int_eq(d.verdict, HOST);
        boxes[drawn[d.host - hosts]].host.starts++;
    }
    for (int i = 0; i < HOSTS; i++)
        most = boxes[i].host.starts > most ? boxes[i].host.starts : most;
    ck_assert_uint_le(most, 13); /* ten each would be even */
}
END_TEST

START_TEST(equals_are_chosen_equally_often)
{
    struct box boxes[5];
    int chosen[5] = { 0 };
    struct hfs_random random = { 7 };

    for (int i = 0; i < 5; i++)
        furnish(&boxes[i], i);
    boxes[2].host.agents = 1; /* not an equal */
    for (int i = 0; i < 8000; i++) {
        struct hf_placement_decision d =
            place_among(boxes, 5, NULL, 0, (uint32_t)hfs_random_next(&random));

        chosen[d.host->name[5] - '0']++;
    }
    ck_assert_int_eq(chosen[2], 0);
    for (int i = 0; i < 5; i++)
        ck_assert_msg(i == 2 || (chosen[i] > 1800 && chosen[i] < 2200), "%d: %d", i, chosen[i]);
}
END_TEST

START_TEST(a_sample_has_different_hosts_and_leaves_none_out)
{
    struct hf_placement_policy p = hf_placement_policy_default();
    struct hfs_random random = { (uint64_t)_i };
    size_t count = (size_t)_i;
    int drawn[FLEET] = { 0 };

    for (int round = 0; round < 4000; round++) {
        size_t at[HF_PLACEMENT_SAMPLE];
        size_t got = hf_placement_sample(&p, count, hfs_random_next(&random), at);

        ck_assert_uint_eq(got, count < 4 ? count : 4);
        for (size_t i = 0; i < got; i++) {
            ck_assert_uint_lt(at[i], count);
            for (size_t k = 0; k < i; k++)
                ck_assert_uint_ne(at[i], at[k]);
            drawn[at[i]]++;
        }
    }
    for (size_t i = 0; i < count; i++) {
        int fair = 4000 * (count < 4 ? (int)count : 4) / (int)count;

        ck_assert_msg(drawn[i] > fair * 7 / 10 && drawn[i] < fair * 13 / 10, "%zu: %d", i,
                      drawn[i]);
    }
}
END_TEST

/* Random fleets: what is chosen is fit, nothing fit has more room, and none is missed. */
START_TEST(what_is_chosen_is_fit_and_nothing_fit_has_more_room)
{
    struct hfs_random random = { (uint64_t)_i };
    size_t count = hfs_random_below(&random, 12);
    hf_ms now = (hf_ms)hfs_random_below(&random, 20 * S);
    Holdfast__V1__Spec spec = agent();
    struct box boxes[12] = { 0 };
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        furnish(&boxes[i], (int)i);
        boxes[i].host.agents = hfs_random_below(&random, 10);
        if (hfs_random_percent(&random, 60))
            FAULTS[hfs_random_below(&random, COUNT(FAULTS))].spoil(&boxes[i]);
        any = any || hf_placement_judge(&boxes[i].host, &spec, now) == HF_PLACEMENT_FIT;
    }
    struct hf_placement_decision d =
        place_among(boxes, count, NULL, now, (uint32_t)hfs_random_next(&random));
    ck_assert_int_eq(d.verdict, any ? HOST : NONE);
    if (!any)
        return;
    ck_assert_int_eq(hf_placement_judge(d.host, &spec, now), HF_PLACEMENT_FIT);
    for (size_t i = 0; i < count; i++)
        if (hf_placement_judge(&boxes[i].host, &spec, now) == HF_PLACEMENT_FIT)
            ck_assert_uint_le(d.host->agents, boxes[i].host.agents);
}
END_TEST

static const struct {
    struct hf_placement_policy policy;
    const char *want; /* part of the sentence; NULL: it is fine */
} CHECKS[] = {
    { { 60 * S, 30 * S, 4, 100 }, NULL },      { { 0, 1, 1, 1 }, NULL },
    { { -1, 30 * S, 4, 100 }, "home_grace" },  { { 86400001, 30 * S, 4, 100 }, "home_grace" },
    { { 60 * S, 0, 4, 100 }, "ask_again" },    { { 60 * S, 86400001, 4, 100 }, "ask_again" },
    { { 60 * S, 30 * S, 0, 100 }, "sample" },  { { 60 * S, 30 * S, 9, 100 }, "sample" },
    { { 60 * S, 30 * S, 4, 0 }, "unlimited" }, { { 60 * S, 30 * S, 4, 1000001 }, "unlimited" },
};

START_TEST(a_contradiction_is_refused_with_a_sentence)
{
    const char *why = NULL;

    ck_assert_int_eq(hf_placement_policy_check(&CHECKS[_i].policy, &why),
                     CHECKS[_i].want == NULL ? HF_OK : HF_EINVAL);
    if (CHECKS[_i].want == NULL)
        ck_assert_ptr_null(why);
    else
        ck_assert_msg(strstr(why, CHECKS[_i].want) != NULL, "%s", why);
}
END_TEST

START_TEST(verdicts_and_faults_have_names)
{
    ck_assert_str_eq(hf_placement_verdict_name(HOST), "HOST");
    ck_assert_str_eq(hf_placement_verdict_name(WAIT_HOME), "WAIT_HOME");
    ck_assert_str_eq(hf_placement_verdict_name(WIDEN), "WIDEN");
    ck_assert_str_eq(hf_placement_verdict_name(NONE), "NONE");
    ck_assert_str_eq(hf_placement_verdict_name((enum hf_placement_verdict)99), "?");
    for (int i = HF_PLACEMENT_FIT; i <= HF_PLACEMENT_PASSED; i++) {
        ck_assert_str_ne(hf_placement_fault_name((enum hf_placement_fault)i), "?");
        ck_assert_str_ne(hf_placement_fault_text((enum hf_placement_fault)i), "?");
    }
    ck_assert_str_eq(hf_placement_fault_name(HF_PLACEMENT_CORDONED), "CORDONED");
    ck_assert_str_eq(hf_placement_fault_text(HF_PLACEMENT_CORDONED), "it is cordoned");
    ck_assert_str_eq(hf_placement_fault_name((enum hf_placement_fault)99), "?");
    ck_assert_str_eq(hf_placement_fault_text((enum hf_placement_fault)99), "?");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("placement");

    tcase_add_loop_test(t, a_host_that_is_not_fit_is_never_chosen, 0, COUNT(FAULTS));
    tcase_add_loop_test(t, what_stands_against_all_is_what_may_change_soonest, 0,
                        COUNT(FAULTS));
    tcase_add_test(t, without_hosts_there_is_no_place);
    tcase_add_test(t, a_host_that_is_passed_over_is_asked_for_when_that_ends);
    tcase_add_test(t, a_host_that_is_passed_over_is_the_last_resort);
    tcase_add_test(t, a_home_that_is_fit_is_chosen_however_full_it_is);
    tcase_add_test(t, a_home_that_vanished_is_waited_for_and_then_replaced);
    tcase_add_loop_test(t, a_home_that_would_not_do_is_not_waited_for, 0, COUNT(FAULTS));
    tcase_add_test(t, a_home_that_is_among_the_others_has_no_second_chance);
    tcase_add_test(t, the_pool_without_a_name_is_a_pool);
    tcase_add_test(t, the_least_loaded_is_chosen_for_what_it_can_take);
    tcase_add_test(t, when_a_sample_will_not_do_all_are_asked_for);
    tcase_add_loop_test(t, the_agents_of_a_lost_host_spread, 0, 20);
    tcase_add_test(t, equals_are_chosen_equally_often);
    tcase_add_loop_test(t, a_sample_has_different_hosts_and_leaves_none_out, 1, 13);
    tcase_add_loop_test(t, what_is_chosen_is_fit_and_nothing_fit_has_more_room, 0,
                        hft_seeds(500));
    tcase_add_loop_test(t, a_contradiction_is_refused_with_a_sentence, 0, COUNT(CHECKS));
    tcase_add_test(t, verdicts_and_faults_have_names);
    return run("core/placement", t);
}
