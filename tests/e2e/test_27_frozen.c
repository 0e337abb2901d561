/* Agents that hang are found by what they do not do any more, named, and ended with what was
 * seen of them: those of an agentd that is root, in cgroups, and those of one without rights,
 * behind shims. */
#include "e2e/frozen_fixture.h"
#include "support/history.h"
#include "support/port.h"
#include "support/ticker.h"

enum { FOUND_MS = 5000, HOSTS = 2, KINDS = 7 };

static struct hft_ticker ticker;
static struct hft_history history;
static struct hft_port ports[HOSTS];

/* What is done to it, and what is said of it then. */
static const struct {
    const char *kind;
    const char *mode, *more; /* of who is no pinged.py: NULL */
    const char *ready;       /* it has said */
    int signal;
    const char *why, *seen;
    bool in_time; /* within FOUND_MS */
} KIND[KINDS] = {
    { "stop", "ping", "", "pong 8", SIGSTOP, "it is stopped by a signal", "state T", true },
    /* What it waits for a processor is not held against it, and they need all of them. */
    { "spin", "ping", "", "pong 8", SIGUSR1, "it computes without a pause", "state R", false },
    { "wait", "parent", "", "pong 8", SIGUSR2, "it sleeps", "system call", true },
    { "feed", "watchdog", "detect.watchdog: 2s\n", "fed", SIGUSR2, "no watchdog came for",
      "it sleeps", false },
    /* Its kernel goes on to accept connections. */
    { "serve", NULL, "probe.every: 1s\n", "\"GET / HTTP/1.1\" 200", SIGSTOP, "it took too long",
      "tcp listens at 127.0.0.1", false },
    { "wrap", NULL, "", "pong 8", SIGSTOP, "it is stopped by a signal (python3, pid", "state T",
      true },
    { "keep", "ping", "detect.freeze: report\n", "pong 8", SIGSTOP, "it is stopped by a signal",
      "state T", true },
};

struct person {
    char name[16], more[400];
    hf_rev life;
    int pid;
    hf_ms hung, named; /* when it hangs, and when its report had said how; 0: not yet */
    bool warned;       /* a report before that had only suspected it */
    int family[2];     /* its child, and one that was; 0: it has none */
    int worker;        /* whom its shell waits for; 0: it has none */
};

static struct person people[HOSTS][KINDS];

/* It is a pinged.py that a shell waits for. */
static bool is_wrapped(int kind)
{
    return strcmp(KIND[kind].kind, "wrap") == 0;
}

/* Who is no pinged.py serves over HTTP, or waits for one. */
static void fill_person(int host, int kind)
{
    struct person *person = &people[host][kind];
    int port = ports[host].number, len;

    (void)snprintf(person->name, sizeof person->name, "%s%d", KIND[kind].kind, host + 1);
    len = snprintf(person->more, sizeof person->more, "%s", KIND[kind].more);
    if (is_wrapped(kind))
        (void)snprintf(
            person->more, sizeof person->more,
            "command: [sh, -c, 'python3 %s/pinged.py ping & echo worker $!; wait']\n",
            dir.path);
    else if (KIND[kind].mode == NULL)
        (void)snprintf(person->more + len, sizeof person->more - (size_t)len,
                       "probe.address: http://127.0.0.1:%d/\ncommand: [python3, -u, -m, "
                       "http.server, --bind, 127.0.0.1, %d]\n",
                       port, port);
}

static pid_t start_people(int host, const char *name)
{
    struct cast cast[KINDS];

    for (int i = 0; i < KINDS; i++) {
        fill_person(host, i);
        cast[i] = (struct cast){ people[host][i].name, KIND[i].mode, people[host][i].more };
    }
    return start_host(name, cast, KINDS, host == 1 && geteuid() == 0);
}

static bool is_of_no_rights(pid_t pid)
{
    char path[32];
    struct stat facts;

    (void)snprintf(path, sizeof path, "/proc/%d", (int)pid);
    return stat(path, &facts) == 0 && facts.st_uid == HFT_NOBODY;
}

/* One or two processes that it has named behind that word. */
static int read_pids(const char *host, const struct person *person, const char *word,
                     int *ret_pids)
{
    char file[64], *log;
    const char *said;
    int count;

    (void)snprintf(file, sizeof file, "%s/agents/%s.log", host, person->name);
    log = read_file(file);
    said = strstr(log, word);
    ck_assert_ptr_nonnull(said);
    count = sscanf(said + strlen(word), " %d %d", &ret_pids[0], &ret_pids[1]);
    free(log);
    return count;
}

static void find_family(const char *host, struct person *person)
{
    ck_assert_int_eq(read_pids(host, person, "family", person->family), 2);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(kill(person->family[i], 0), 0);
}

static void find_worker(const char *host, struct person *person)
{
    int found[2];

    ck_assert_int_eq(read_pids(host, person, "worker", found), 1);
    person->worker = found[0];
    ck_assert_int_ne(person->worker, pid_of(person->name));
}

static void await_people(int host, const char *name)
{
    for (int i = 0; i < KINDS; i++) {
        await_said(name, people[host][i].name, KIND[i].ready);
        people[host][i].life = life_of(people[host][i].name);
        people[host][i].pid = pid_of(people[host][i].name);
        if (KIND[i].mode != NULL && strcmp(KIND[i].mode, "parent") == 0)
            find_family(name, &people[host][i]);
        if (is_wrapped(i))
            find_worker(name, &people[host][i]);
        ck_assert(geteuid() != 0 ||
                  is_of_no_rights(pid_of(people[host][i].name)) == (host == 1));
    }
}

/* Those who are to be found in time, or the others: who computes takes every processor, and an
 * agentd without rights that gets none gives everybody more time. */
static void hang_all(bool in_time)
{
    pid_t pid;

    for (int h = 0; h < HOSTS; h++) {
        for (int i = 0; i < KINDS; i++) {
            if (KIND[i].in_time != in_time)
                continue;
            pid = people[h][i].worker != 0 ? people[h][i].worker : pid_of(people[h][i].name);
            people[h][i].hung = now();
            ck_assert_int_eq(kill(pid, KIND[i].signal), 0);
        }
    }
}

/* A report that says of it how it hangs, and that it is frozen; or suspect, before. */
static void take_suspicion(struct person *person, int kind, const struct hft_change *change)
{
    if (strstr(change->value, "\"suspicion\"") == NULL)
        return;
    if (strstr(change->value, "\"frozen\":true") == NULL)
        person->warned = true;
    else if (strstr(change->value, KIND[kind].why) != NULL &&
             strstr(change->value, KIND[kind].seen) != NULL &&
             strstr(change->value, " s of CPU time") != NULL)
        person->named = change->before;
}

static void take_report(const struct hft_change *change, void *arg)
{
    (void)arg;
    for (int h = 0; h < HOSTS; h++) {
        for (int i = 0; i < KINDS; i++) {
            struct person *person = &people[h][i];

            if (strcmp(change->key + strlen(ROOT), key_of(person->name, "report")) == 0 &&
                person->named == 0)
                take_suspicion(person, i, change);
        }
    }
}

static bool are_named(void *arg)
{
    (void)arg;
    hft_history_each(&history, &server, take_report, NULL);
    for (int h = 0; h < HOSTS; h++) {
        for (int i = 0; i < KINDS; i++) {
            if (KIND[i].in_time && people[h][i].named == 0)
                return false;
        }
    }
    return true;
}

/* In the report, and named, within five seconds of a machine that lets us run. */
static void expect_found_in_time(void)
{
    int warned = 0;

    hft_wait_or_fail(are_named, NULL, STEP_MS, "reports that say who is frozen");
    for (int h = 0; h < HOSTS; h++) {
        for (int i = 0; i < KINDS; i++) {
            hf_ms took = people[h][i].named - people[h][i].hung;

            ck_assert_msg(!KIND[i].in_time || took <= FOUND_MS + hft_ticker_stall(&ticker),
                          "%s after %lld ms", people[h][i].name, (long long)took);
            warned += people[h][i].warned;
        }
    }
    ck_assert_int_gt(warned, 0); /* of each, unless both came in one write */
}

static bool lives_again(void *arg)
{
    const struct person *person = arg;

    return life_of(person->name) > person->life;
}

/* Root reads more of a process that sleeps. */
static void expect_kernel_told(const char *exit, int host)
{
    if (geteuid() != 0 || host != 0)
        return;
    expect_in(exit, "wait channel ");
    expect_in(exit, "{\"source\":\"stack\"");
}

static void expect_seen(const struct person *person, const char *source, const char *text)
{
    char part[200];

    (void)snprintf(part, sizeof part, "{\"source\":\"%s\",\"text\":\"%s", source, text);
    expect_in(key_of(person->name, "exit"), part);
    (void)snprintf(part, sizeof part, "%s: %s", source, text);
    expect_shown("explain", person->name, part);
}

/* Whom it has left in other sessions is in no list of its children, and ended all the same. */
static void expect_family_gone(const struct person *person)
{
    char child[64];

    if (person->family[0] == 0)
        return;
    (void)snprintf(child, sizeof child, "sleep (pid %d, child of %d, state S)",
                   person->family[0], person->pid);
    expect_seen(person, "children", child);
    for (int i = 0; i < 2; i++)
        ck_assert_int_ne(kill(person->family[i], 0), 0);
}

static void expect_ended(struct person *person, int host, int kind)
{
    const char *exit = key_of(person->name, "exit");

    await(exit, "\"kind\":\"frozen\"");
    expect_in(exit, KIND[kind].why);
    expect_in(exit, KIND[kind].seen);
    expect_in(exit, "{\"source\":\"output\"");
    expect_in(exit, strstr(KIND[kind].ready, "GET") == NULL ? KIND[kind].ready : "GET / HTTP");
    expect_in(exit, "{\"source\":\"sockets\"");
    expect_in(exit, " s of CPU time");
    if (KIND[kind].signal == SIGUSR2)
        expect_kernel_told(exit, host);
    expect_family_gone(person);
    if (KIND[kind].mode != NULL && strcmp(KIND[kind].mode, "watchdog") == 0)
        expect_seen(person, "report", "state ready, phase feeding");
    expect_shown("explain", person->name, "output: ");
    expect_shown("explain", person->name, "sockets: ");
    hft_wait_or_fail(lives_again, person, STEP_MS, "its successor");
}

/* What its launcher wants to be reported is not ended, and may come back. */
static void expect_kept(const struct person *person)
{
    await(key_of(person->name, "report"), "\"frozen\":true");
    expect_shown("explain", person->name, "found frozen by its agentd (ping");
    ck_assert_int_eq(kill(pid_of(person->name), SIGCONT), 0);
    await_clear(person->name);
    ck_assert_int_eq(life_of(person->name), person->life);
}

START_TEST(who_hangs_is_found_named_and_ended)
{
    static const char *const NAMES[HOSTS] = { "h1", "h2" };
    pid_t agentds[HOSTS];

    for (int h = 0; h < HOSTS; h++)
        hft_port_take(&ports[h]);
    begin_leader();
    hft_history_start(&history, &server);
    for (int h = 0; h < HOSTS; h++)
        agentds[h] = start_people(h, NAMES[h]);
    for (int h = 0; h < HOSTS; h++)
        await_people(h, NAMES[h]);
    hft_ticker_start(&ticker);
    hang_all(true);
    expect_found_in_time();
    hft_ticker_stop(&ticker);
    hang_all(false);
    for (int h = 0; h < HOSTS; h++) {
        for (int i = 0; i < KINDS - 1; i++)
            expect_ended(&people[h][i], h, i);
        expect_kept(&people[h][KINDS - 1]);
    }
    expect_shown("explain", "serve1", "agentd: 3 probes failed in");
    for (int h = 0; h < HOSTS; h++) {
        end_host(NAMES[h], agentds[h]);
        hft_port_release(&ports[h]);
    }
    hft_history_judge(&history, &server);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("frozen");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, who_hangs_is_found_named_and_ended);
    return hft_suite_run("e2e: frozen", t, NULL);
}
