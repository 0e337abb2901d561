/* A crowd of a hundred agents who are well, each in its own way, on a machine that a hog takes
 * for itself time and again: nobody may be blamed. Then twenty of them hang, and ten more
 * beside the hog, and all of those are found, named and ended in time, and nobody else.
 *
 * HOLDFAST_CROWD_S says for how many seconds they are watched first. */
#include <glob.h>
#include <sys/resource.h>

#include "base/cleanup.h"
#include "e2e/frozen_fixture.h"
#include "support/history.h"
#include "support/ticker.h"

enum {
    CROWD = 100,
    WATCHED_S = 600,
    REFUTED_MAX = 10, /* suspicions, in all that time */
    FOUND_MS = 5000,
    BURST_MS = 5000, /* of the hog, ... */
    ROUND_MS = 15000 /* ... as often */
};

/* Who is there; the way is that of crowd/member.c. */
static const struct {
    const char *way, *more;
    int count;
} PARTS[] = {
    /* idle */
    { "ping", "", 20 },
    { "feed", "detect.watchdog: 3s\n", 6 },
    { "beat", "", 2 },
    { "plain", "", 2 },
    /* busy in long calls */
    { "tool", "", 17 },
    { "hand", "", 7 },
    { "extend", "detect.watchdog: 3s\n", 6 },
    /* chatty */
    { "talk", "", 20 },
    { "say", "", 10 },
    /* and close to a hog */
    { "beside", "", 10 },
};

struct person {
    char name[16], more[1000];
    hf_rev life;
};

static struct person people[CROWD];
static struct hft_history history;
static struct hft_ticker ticker;
static pid_t agentd;

/* The crowd. */

static void invite(void)
{
    struct cast cast[CROWD];
    int count = 0;

    hft_copy_program(HOLDFAST_MEMBER, dir.path, "member");
    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0]; i++) {
        for (int j = 1; j <= PARTS[i].count; j++, count++) {
            struct person *person = &people[count];

            (void)snprintf(person->name, sizeof person->name, "%s%d", PARTS[i].way, j);
            (void)snprintf(person->more, sizeof person->more,
                           "%scommand: [%s/member, %s, %s/hog]\n", PARTS[i].more, dir.path,
                           PARTS[i].way, dir.path);
            cast[count] = (struct cast){ person->name, NULL, person->more };
        }
    }
    ck_assert_int_eq(count, CROWD);
    agentd = start_host("h1", cast, CROWD, false);
    for (int i = 0; i < CROWD; i++)
        await_said("h1", people[i].name, "begins to");
    for (int i = 0; i < CROWD; i++)
        people[i].life = life_of(people[i].name);
}

static struct person *find_person(const char *name, size_t len)
{
    for (int i = 0; i < CROWD; i++) {
        if (strlen(people[i].name) == len && strncmp(people[i].name, name, len) == 0)
            return &people[i];
    }
    return NULL;
}

/* The hog, of which each of the agents beside it has a part as well. */

enum { MOST_HOGS = 32 };

static struct {
    pid_t pids[MOST_HOGS];
    long count;
    unsigned bursts;
} hog;

/* Every other time it is more important than everybody else. */
static void burn(void)
{
    bool goes_first = hog.bursts++ % 2 == 1;

    write_file("hog", "");
    hog.count = sysconf(_SC_NPROCESSORS_ONLN);
    hog.count = hog.count < MOST_HOGS ? hog.count : MOST_HOGS;
    for (long i = 0; i < hog.count; i++) {
        hog.pids[i] = fork();
        ck_assert_int_ge(hog.pids[i], 0);
        if (hog.pids[i] == 0) {
            if (goes_first)
                (void)setpriority(PRIO_PROCESS, 0, -10); /* where that is allowed */
            for (;;)
                ;
        }
    }
}

static void cool(void)
{
    char path[300];

    (void)snprintf(path, sizeof path, "%s/hog", dir.path);
    (void)unlink(path);
    for (long i = 0; i < hog.count; i++) {
        (void)kill(hog.pids[i], SIGKILL);
        (void)waitpid(hog.pids[i], NULL, 0);
    }
    hog.count = 0;
}

/* What was said of them. */

struct talk {
    hf_rev until;        /* what happens later is not looked at, ... */
    bool excused[CROWD]; /* ... nor who hangs */
    bool suspect[CROWD];
    unsigned suspicions;
};

/* Of an agent's keys: whose, and which; NULL: it is none of them. */
static struct person *subject_of(const struct hft_change *change, const char **ret_kind)
{
    static const char PREFIX[] = ROOT "agents/";
    const char *name = change->key + sizeof PREFIX - 1, *slash;

    if (strncmp(change->key, PREFIX, sizeof PREFIX - 1) != 0 ||
        (slash = strchr(name, '/')) == NULL)
        return NULL;
    *ret_kind = slash + 1;
    return find_person(name, (size_t)(slash - name));
}

/* Whatever is refuted is told, and no more. */
static void count_suspicion(const struct hft_change *change, const struct person *person,
                            struct talk *talk)
{
    const char *suspicion = strstr(change->value, "\"suspicion\"");
    bool *suspect = &talk->suspect[person - people];

    ck_assert_msg(suspicion == NULL || strstr(suspicion, "\"frozen\":true") == NULL,
                  "%s is blamed: %s", person->name, change->value);
    if (suspicion != NULL && !*suspect) {
        talk->suspicions++;
        printf("%s: %.300s\n", person->name, suspicion);
    }
    *suspect = suspicion != NULL;
}

static void expect_no_blame(const struct hft_change *change, void *arg)
{
    struct talk *talk = arg;
    const char *kind;
    const struct person *person = subject_of(change, &kind);

    if (person == NULL || change->revision > talk->until || talk->excused[person - people])
        return;
    if (strcmp(kind, "report") == 0)
        count_suspicion(change, person, talk);
    ck_assert_msg(strcmp(kind, "exit") != 0, "%s ended: %s", person->name, change->value);
    ck_assert_msg(strcmp(kind, "live") != 0 ||
                      (!change->deleted && change->create_rev == person->life),
                  "%s is another one: %s", person->name, change->value);
}

static long seconds_to_watch(void)
{
    const char *text = getenv("HOLDFAST_CROWD_S");

    return text != NULL ? strtol(text, NULL, 10) : WATCHED_S;
}

static void watch_the_crowd(void)
{
    hf_ms begun = hft_now(), length = (hf_ms)seconds_to_watch() * 1000;
    struct talk talk = { .until = 0 };

    hft_ticker_mark(&ticker);
    for (hf_ms at = begun; at < begun + length; at += ROUND_MS) {
        hft_pass_until(at + ROUND_MS - BURST_MS);
        burn();
        hft_pass_until(at + ROUND_MS);
        cool();
    }
    talk.until = hft_etcd_revision(&server);
    hft_history_each(&history, &server, expect_no_blame, &talk);
    printf("%lld s, %lld revisions: %u suspicions that were refuted; we stood still for %lld "
           "ms\n",
           (long long)(hft_now() - begun) / 1000, (long long)talk.until, talk.suspicions,
           (long long)hft_ticker_stall(&ticker));
    ck_assert_uint_le(talk.suspicions, REFUTED_MAX);
}

/* Who hangs. */

/* As FAULTS of crowd/member.c has them, and one more. */
enum fault { COMPUTES, AWAITS_WHO_COMPUTES, READS, DEADLOCKED, STOPPED };

/* What is said of the process, and of the thread that hangs, which need not be its first. */
static const struct {
    const char *why, *seen;
    bool computes;
} WORDS[] = {
    [COMPUTES] = { "it computes without a pause", "state R", true },
    [AWAITS_WHO_COMPUTES] = { "it computes without a pause", "state R)", true },
    [READS] = { "it sleeps", " in read", false },
    [DEADLOCKED] = { "it sleeps", " in futex", false },
    [STOPPED] = { "it is stopped by a signal", "state T", false },
};

/* Those of a group hang at once, or one after the other; while the hog rests, or runs. */
enum { GROUPS = 6, GROUP = 5, RESTING = 4 };

static const struct {
    const char *name;
    enum fault fault;
} PLAN[GROUPS][GROUP] = {
    { { "ping1", STOPPED },
      { "hand1", COMPUTES },
      { "talk1", READS },
      { "feed1", DEADLOCKED },
      { "beside1", AWAITS_WHO_COMPUTES } },
    { { "ping2", AWAITS_WHO_COMPUTES },
      { "hand2", READS },
      { "talk2", STOPPED },
      { "feed2", COMPUTES },
      { "beside2", DEADLOCKED } },
    { { "ping3", READS },
      { "hand3", STOPPED },
      { "talk3", DEADLOCKED },
      { "feed3", STOPPED },
      { "beside3", COMPUTES } },
    { { "ping4", COMPUTES },
      { "hand4", DEADLOCKED },
      { "talk4", AWAITS_WHO_COMPUTES },
      { "feed4", READS },
      { "beside4", STOPPED } },
    { { "ping5", READS },
      { "hand5", STOPPED },
      { "talk5", DEADLOCKED },
      { "feed5", STOPPED },
      { "beside5", COMPUTES } },
    { { "ping6", COMPUTES },
      { "hand6", DEADLOCKED },
      { "talk6", AWAITS_WHO_COMPUTES },
      { "feed6", READS },
      { "beside6", STOPPED } },
};

struct victim {
    const char *name;
    enum fault fault;
    const struct person *person;
    pid_t pid;
    hf_ms since, found, ended; /* ended: its exit was written */
    bool seen;                 /* we have seen that it was found */
    hf_ms stall;               /* that we saw until then, ... */
    hf_ms waited, waited_then; /* ... and what it waited for a processor in all, and before */
};

static struct victim victims[GROUPS][GROUP];

/* All its threads together, in milliseconds; 0: it is gone. */
static hf_ms read_wait(pid_t pid)
{
    char pattern[64], text[100];
    hf_ms sum = 0;
    glob_t files;

    (void)snprintf(pattern, sizeof pattern, "/proc/%d/task/*/schedstat", (int)pid);
    if (glob(pattern, 0, NULL, &files) != 0)
        return 0;
    for (size_t i = 0; i < files.gl_pathc; i++) {
        FILE *file = fopen(files.gl_pathv[i], "re");
        long long used, waited;

        if (file == NULL)
            continue;
        if (fgets(text, sizeof text, file) != NULL &&
            sscanf(text, "%lld %lld", &used, &waited) == 2)
            sum += waited / 1000000;
        (void)fclose(file);
    }
    globfree(&files);
    return sum;
}

static void hang(struct victim *victim)
{
    int number = victim->fault == STOPPED ? SIGSTOP : SIGRTMIN + (int)victim->fault;

    victim->pid = pid_of(victim->name);
    victim->waited = victim->waited_then = read_wait(victim->pid);
    victim->since = hft_now();
    ck_assert_int_eq(kill(victim->pid, number), 0);
}

static bool is_found(const struct victim *victim)
{
    char *report = look_whole(key_of(victim->name, "report"));
    bool found = strstr(report, "\"frozen\":true") != NULL;

    free(report);
    return found;
}

/* What counts is what was lost until it was found. */
static bool has_ended(struct victim *victim)
{
    bool ended = look(key_of(victim->name, "exit")).count > 0;

    if (!victim->seen) {
        hf_ms waited = read_wait(victim->pid);

        victim->waited = waited > victim->waited ? waited : victim->waited;
        victim->stall = hft_ticker_stall(&ticker);
        victim->seen = ended || is_found(victim);
    }
    return ended;
}

struct round {
    struct victim *victims;
    int count;
    hf_ms cool_at;
};

static bool is_over(void *arg)
{
    const struct round *round = arg;
    bool over = true;

    for (int i = 0; i < round->count; i++)
        over = has_ended(&round->victims[i]) && over;
    if (over || hft_now() >= round->cool_at)
        cool();
    return over;
}

static void hang_some(struct victim *some, int count, bool beside_hog)
{
    struct round round = { .victims = some, .count = count, .cool_at = hft_now() + BURST_MS };

    hft_ticker_mark(&ticker);
    if (beside_hog)
        burn();
    for (int i = 0; i < count; i++)
        hang(&some[i]);
    hft_wait_or_fail(is_over, &round, STEP_MS, "the ends of who hangs");
}

static void choose_victims(void)
{
    for (int i = 0; i < GROUPS * GROUP; i++) {
        struct victim *victim = &victims[i / GROUP][i % GROUP];

        victim->name = PLAN[i / GROUP][i % GROUP].name;
        victim->fault = PLAN[i / GROUP][i % GROUP].fault;
        victim->person = find_person(victim->name, strlen(victim->name));
        ck_assert_ptr_nonnull(victim->person);
    }
}

static void expect_named(const struct victim *victim, const char *exit)
{
    printf("%s after %lld ms, ended after %lld; we stood still for %lld, it for %lld: %.500s\n",
           victim->name, (long long)(victim->found - victim->since),
           (long long)(victim->ended - victim->since), (long long)victim->stall,
           (long long)(victim->waited - victim->waited_then), strstr(exit, "\"evidence\""));
    ck_assert_msg(strstr(exit, "\"kind\":\"frozen\"") != NULL &&
                      strstr(exit, WORDS[victim->fault].why) != NULL &&
                      strstr(exit, WORDS[victim->fault].seen) != NULL,
                  "%s: %s", victim->name, exit);
}

/* The report, then the exit of the life that hung. */
static void take_finding(const struct hft_change *change, void *arg)
{
    struct victim *victim = arg;
    const char *kind;

    if (subject_of(change, &kind) != victim->person || change->before < victim->since)
        return;
    if (victim->found == 0 && strcmp(kind, "report") == 0 &&
        strstr(change->value, "\"frozen\":true") != NULL &&
        strstr(change->value, WORDS[victim->fault].why) != NULL)
        victim->found = change->before;
    if (victim->ended == 0 && strcmp(kind, "exit") == 0) {
        victim->ended = change->before;
        expect_named(victim, change->value);
    }
}

/* What who computes waits for a processor, beside a hog or other tests, is not held against it,
 * so it is found later. */
static void expect_found(struct victim *victim)
{
    hf_ms took, lost;

    hft_history_each(&history, &server, take_finding, victim);
    took = victim->found - victim->since;
    lost = victim->stall;
    if (WORDS[victim->fault].computes)
        lost += victim->waited - victim->waited_then;
    ck_assert_msg(victim->found != 0 && victim->ended != 0, "%s was not found", victim->name);
    ck_assert_msg(took <= FOUND_MS + lost, "%s after %lld ms, of which %lld were lost",
                  victim->name, (long long)took, (long long)lost);
}

static void let_some_hang(void)
{
    for (int i = 0; i < GROUPS; i++) {
        bool at_once = i % 2 == 0, beside_hog = i >= RESTING;

        for (int j = 0; j < GROUP; j += at_once ? GROUP : 1)
            hang_some(&victims[i][j], at_once ? GROUP : 1, beside_hog);
    }
    for (int i = 0; i < GROUPS * GROUP; i++)
        expect_found(&victims[i / GROUP][i % GROUP]);
}

/* Everybody else is as before. */
static void expect_rest_well(void)
{
    struct talk talk = { .until = INT64_MAX };

    for (int i = 0; i < GROUPS * GROUP; i++)
        talk.excused[victims[i / GROUP][i % GROUP].person - people] = true;
    hft_history_each(&history, &server, expect_no_blame, &talk);
    for (int i = 0; i < CROWD; i++)
        ck_assert_msg(talk.excused[i] || life_of(people[i].name) == people[i].life,
                      "%s is another one", people[i].name);
}

static void expect_explained(const char *agent, const char *part)
{
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };

    hft_cli(&output, server.endpoint, "explain", agent, NULL);
    printf("%s", output.out);
    ck_assert_msg(strstr(output.out, part) != NULL, "%s is not in:\n%s", part, output.out);
}

START_TEST(who_is_well_is_not_blamed_and_who_hangs_is_found)
{
    begin_leader();
    hft_history_start(&history, &server);
    hft_ticker_start(&ticker);
    invite();
    watch_the_crowd();
    choose_victims();
    let_some_hang();
    expect_rest_well();
    expect_explained("ping1", "it is stopped by a signal");
    expect_explained("ping2", "it computes without a pause");
    expect_explained("ping3", "it sleeps in read");
    end_host("h1", agentd);
    hft_ticker_stop(&ticker);
    hft_history_judge(&history, &server);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("crowd");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, (double)seconds_to_watch() + 900);
    tcase_add_test(t, who_is_well_is_not_blamed_and_who_hangs_is_found);
    return hft_suite_run("crowd", t, NULL);
}
