/* Agents, links and shims are killed at random moments, each alone and two at once, and agents
 * before their programs have begun, on a host with cgroups and on one that is nobody's, with
 * shims: no registration outlives its process, no process its registration, and no end is lost.
 */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/keeper.h"
#include "support/suite.h"
#include "support/wait.h"

/* The shortest lease that production has: a link that dies again and again must save it. */
enum { DAILY = 20, MOMENT_MS = 100, LINK_REST_MS = 1000, TTL_MS = 10000 };
enum { AGENTS = 6, HOSTS = 2, CODE = 41, ENVIRONMENT = 16384, RECENT = 16 };
enum { HELD_MS = 2000, HELD_LOOK_NS = 300000 };
enum { AGENT, SHIM, LINK, HELD, KINDS }; /* who is killed */

static const char *const NAMES[AGENTS] = { "a1", "a2", "a3", "b1", "b2", "b3" };

/* One that works, and one that has left for a session of its own. */
static const char SCRIPT[] = "trap 'exit 41' USR1\n"
                             "(setsid sleep 100000 &)\n"
                             "\"$DEMO\" &\n"
                             "wait\n";

/* How a life is to end, since somebody was killed. */
struct end {
    const char *agent;
    hf_rev life; /* 0: none is under way */
    int signal;
    bool may_be_replaced; /* its successor may have been killed before it began */
};

static struct hft_fleet fleet;
static struct end ends[AGENTS];
static hf_ms link_killed_at[HOSTS];
static unsigned seed, killed[KINDS];
static pid_t recent[RECENT]; /* those who were killed last, alive as they may seem */
static unsigned recent_count;

static void setup(void)
{
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

/* How many kills; ./dev test --all has more of them. */
static unsigned how_many(void)
{
    const char *text = getenv("HOLDFAST_KILLS");

    return text != NULL ? (unsigned)strtoul(text, NULL, 10) : DAILY;
}

static unsigned draw(unsigned of)
{
    return (unsigned)rand_r(&seed) % of;
}

/* Lets a random moment come. */
static void pass_a_moment(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = draw(MOMENT_MS) * 1000000L }, NULL);
}

static struct hft_outcome look_at(const char *agent, const char *what)
{
    char key[128];

    (void)snprintf(key, sizeof key, "agents/%s/%s", agent, what);
    return hft_fleet_look(&fleet, key);
}

static long long number_of(const char *agent, const char *what, const char *name)
{
    char key[128];

    (void)snprintf(key, sizeof key, "agents/%s/%s", agent, what);
    return hft_fleet_number(&fleet, key, name);
}

/* Whose start has failed on both hosts is held, until a person forgives. */
static bool has_begun(void *arg)
{
    char key[128];

    if (look_at(arg, "live").count == 1)
        return true;
    (void)snprintf(key, sizeof key, "health/%s", (const char *)arg);
    HF_CLEANUP_FREE char *health = hft_fleet_get(&fleet, key);
    if (strstr(health, "\"held\":true") != NULL)
        free(hft_fleet_cli(&fleet, "start", (const char *)arg, NULL));
    return false;
}

/* The number behind a name in an exit; 0: there is none. */
static long long number_in(const char *exit, const char *name)
{
    char quoted[64];
    const char *at;

    (void)snprintf(quoted, sizeof quoted, "\"%s\":", name);
    at = strstr(exit, quoted);
    if (at == NULL)
        return 0;
    at += strlen(quoted);
    return strtoll(at + (*at == '"'), NULL, 10);
}

/* A start that never became an incarnation is told of as the end of none. */
static bool is_told(void *arg)
{
    const struct end *end = arg;
    char key[128];

    (void)snprintf(key, sizeof key, "agents/%s/exit", end->agent);
    HF_CLEANUP_FREE char *said = hft_fleet_get(&fleet, key);
    hf_rev life = number_in(said, "createRevision");
    return life >= end->life || (life == 0 && end->may_be_replaced &&
                                 look_at(end->agent, "exit").mod_rev > end->life);
}

struct search {
    const struct end *end;
    char key[128];
    char *found; /* the exit of that life, as it was written last */
};

static void find_exit(const struct hft_change *change, void *arg)
{
    struct search *search = arg;

    if (change->deleted || strcmp(change->key, search->key) != 0 ||
        number_in(change->value, "createRevision") != search->end->life)
        return;
    free(search->found);
    search->found = strdup(change->value);
}

/* What is said of that life, or was until more was to be said of its successor. */
static char *get_exit(const struct end *end)
{
    struct search search = { .end = end };
    char *said;

    (void)snprintf(search.key, sizeof search.key, "agents/%s/exit", end->agent);
    said = hft_fleet_get(&fleet, search.key);
    if (number_in(said, "createRevision") == end->life)
        return said;
    /* Who was seen held may have begun when it was killed. */
    ck_assert_msg(end->may_be_replaced && (strstr(said, "start_failed") != NULL ||
                                           number_in(said, "signal") == SIGKILL),
                  "%lld: %s", (long long)end->life, said);
    (void)snprintf(search.key, sizeof search.key, HFT_ROOT "agents/%s/exit", end->agent);
    hft_history_each(&fleet.history, &fleet.etcd, find_exit, &search);
    ck_assert_msg(search.found != NULL, "the end of %lld is lost: %s", (long long)end->life,
                  said);
    free(said);
    return search.found;
}

/* How it ended was seen by its parent and by nobody else, and reaches etcd whoever died. A
 * signal that came before its trap was set has ended it as well. */
static void expect_its_end(struct end *end)
{
    hft_wait_or_fail(is_told, end, HFT_FLEET_STEP_MS, "the end of a life");
    HF_CLEANUP_FREE char *said = get_exit(end);
    long long signal = number_in(said, "signal");
    bool has_code = end->signal == SIGUSR1 && number_in(said, "status") == CODE;
    ck_assert_msg(signal == end->signal || (signal == 0 && has_code), "%s", said);
    end->life = 0;
    end->may_be_replaced = false;
    /* A person who forgives: ten starts in ten minutes would be held. */
    free(hft_fleet_cli(&fleet, "start", end->agent, NULL));
}

/* What somebody's environment says of a name; false: nothing. */
static bool read_environment(pid_t pid, const char *name, char *ret, size_t size)
{
    char path[64], text[ENVIRONMENT];
    HF_CLEANUP_FD int fd = -1;
    ssize_t len = 0, got;
    size_t name_len = strlen(name);

    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (got = read(fd, text + len, sizeof text - 1 - (size_t)len)) > 0)
        len += got;
    text[len] = '\0';
    for (const char *p = text; p < text + len; p += strlen(p) + 1) {
        if (strncmp(p, name, name_len) == 0 && p[name_len] == '=') {
            (void)snprintf(ret, size, "%s", p + name_len + 1);
            return true;
        }
    }
    return false;
}

struct process {
    char name[32];
    pid_t parent; /* 0: there is no such process */
    pid_t session;
};

static struct process look_up(pid_t pid)
{
    char path[64];
    struct process process = { .name = "" };
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return process;
    if (fscanf(file, "%*d (%31[^)]) %*c %d %*d %d", process.name, &process.parent,
               &process.session) != 3)
        process.parent = 0;
    (void)fclose(file);
    return process;
}

static bool was_killed(pid_t pid)
{
    for (int i = 0; i < RECENT; i++) {
        if (recent[i] == pid)
            return true;
    }
    return false;
}

static void note_killed(pid_t pid)
{
    recent[recent_count++ % RECENT] = pid;
}

/* The host is the one whose keeper is above its process: directly, or above its shim. */
static void kill_agent(struct end *end, bool by_shim)
{
    struct hft_outcome live = look_at(end->agent, "live");
    pid_t pid = live.count == 1 ? (pid_t)number_of(end->agent, "live", "pid") : 0;
    pid_t parent = pid > 0 ? look_up(pid).parent : 0;
    bool has_shim = parent > 0 && parent != fleet.hosts[0].pid && parent != fleet.hosts[1].pid;

    if (parent == 0 || was_killed(pid))
        return; /* it is about to end, not by this kill */
    end->signal = has_shim && by_shim ? SIGKILL : draw(3) == 0 ? SIGUSR1 : SIGKILL;
    if (kill(has_shim && by_shim ? parent : pid, end->signal) != 0)
        return;
    note_killed(pid);
    end->life = live.create_rev;
    killed[has_shim && by_shim ? SHIM : AGENT]++;
}

/* One that was made and has not begun has the name of its parent, a keeper or a shim, and a
 * session of its own, which neither a link nor a scribe has. */
static pid_t find_held(pid_t parent, const char *name)
{
    char path[64];
    pid_t found = 0;
    int child;
    FILE *children;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)parent, (int)parent);
    children = fopen(path, "re");
    while (children != NULL && found == 0 && fscanf(children, "%d", &child) == 1) {
        struct process process = look_up(child);

        if (process.session != child || was_killed(child))
            continue;
        if (strcmp(process.name, name) == 0)
            found = child;
        else if (strcmp(process.name, "agentd-shim") == 0)
            found = find_held(child, process.name);
    }
    if (children != NULL)
        (void)fclose(children);
    return found;
}

static bool has_killed_held(void)
{
    for (int i = 0; i < HOSTS; i++) {
        pid_t pid = find_held(fleet.hosts[i].pid, "agentd");

        if (pid > 0 && kill(pid, SIGKILL) == 0) {
            note_killed(pid);
            killed[HELD]++;
            return true;
        }
    }
    return false;
}

/* Whoever is started next ends before its program has begun: the successor of somebody who was
 * killed, for all others live. It is held for some milliseconds only. */
static void kill_held(void)
{
    hf_ms until = hft_now() + HELD_MS;

    while (!has_killed_held()) {
        if (hft_now() >= until)
            return;
        nanosleep(&(struct timespec){ .tv_nsec = HELD_LOOK_NS }, NULL);
    }
    for (int i = 0; i < AGENTS; i++)
        ends[i].may_be_replaced = ends[i].may_be_replaced || ends[i].life != 0;
}

/* Who dies of its start is waited for: so not all the time. */
static void kill_link(unsigned host)
{
    pid_t link = hft_fleet_link(&fleet, host);

    if (link <= 0 || hft_now() - link_killed_at[host] < LINK_REST_MS)
        return;
    link_killed_at[host] = hft_now();
    if (kill(link, SIGKILL) == 0)
        killed[LINK]++;
}

static void kill_somebody(void)
{
    struct end *end = &ends[draw(AGENTS)];
    /* An agent, its shim, a link; a link with one of the others; an agent and its successor. */
    unsigned whom = draw(6);

    if (end->life != 0)
        expect_its_end(end);
    hft_wait_or_fail(has_begun, (void *)end->agent, HFT_FLEET_STEP_MS, "the agent");
    pass_a_moment();
    if (whom != 2)
        kill_agent(end, whom == 1 || whom == 4);
    if (whom == 5) {
        if (end->life != 0)
            kill_held();
        return;
    }
    if (whom >= 3 && draw(2) == 0)
        pass_a_moment();
    if (whom >= 2)
        kill_link(draw(HOSTS));
}

/* Processes of a life that is not the one in etcd, and agents without a process. */
static void count_strangers(pid_t pid, unsigned *strangers, unsigned *members)
{
    char ledger[sizeof fleet.ledger], agent[64], life[32], own[32] = "";

    if (!read_environment(pid, "LEDGER", ledger, sizeof ledger) ||
        strcmp(ledger, fleet.ledger) != 0 ||
        !read_environment(pid, "HOLDFAST_AGENT", agent, sizeof agent) ||
        !read_environment(pid, "HOLDFAST_INCARNATION", life, sizeof life))
        return;
    struct hft_outcome live = look_at(agent, "live");
    pid_t main_pid = live.count == 1 ? (pid_t)number_of(agent, "live", "pid") : 0;
    if (main_pid == 0 || !read_environment(main_pid, "HOLDFAST_INCARNATION", own, sizeof own) ||
        strcmp(own, life) != 0)
        ++*strangers;
    else if (main_pid == pid)
        ++*members;
}

struct census {
    unsigned members;
};

static bool is_everybody_known(void *arg)
{
    const struct census *census = arg;
    unsigned strangers = 0, members = 0;
    DIR *proc = opendir("/proc");
    const struct dirent *entry;

    ck_assert_ptr_nonnull(proc);
    while ((entry = readdir(proc)) != NULL) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);

        if (pid > 0)
            count_strangers(pid, &strangers, &members);
    }
    (void)closedir(proc);
    return strangers == 0 && members == census->members &&
           hft_fleet_count(&fleet, "agents/", "\"pid\":") >= members;
}

/* One that has ended and that nobody waited for. */
static bool has_no_zombie(void *arg)
{
    const struct hft_program *host = arg;
    char path[64], line[16] = "";
    FILE *children;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)host->pid,
                   (int)host->pid);
    children = fopen(path, "re");
    if (children == NULL)
        return true; /* this kernel does not say */
    bool clean = true;
    while (fscanf(children, "%15s", line) == 1)
        clean = clean && hft_process_state((pid_t)strtol(line, NULL, 10)) != 'Z';
    (void)fclose(children);
    return clean;
}

/* Everybody lives, once, and nobody else. */
static void expect_everybody(void)
{
    for (int i = 0; i < AGENTS; i++) {
        if (ends[i].life != 0)
            expect_its_end(&ends[i]);
        hft_wait_or_fail(has_begun, (void *)NAMES[i], HFT_FLEET_STEP_MS, NAMES[i]);
    }
    hft_wait_or_fail(is_everybody_known, &(struct census){ AGENTS }, HFT_FLEET_STEP_MS,
                     "each agent to have its process and none more");
    for (int i = 0; i < HOSTS; i++)
        hft_wait_or_fail(has_no_zombie, &fleet.hosts[i], HFT_FLEET_STEP_MS,
                         "no zombie of a keeper");
    free(hft_fleet_cli(&fleet, "invariants", NULL));
}

static void begin(void)
{
    fleet.ttl = TTL_MS;
    fleet.hosts[1].is_nobodys = true;
    hft_fleet_launch(&fleet, SCRIPT);
    hft_fleet_lead(&fleet, 0, "--recovery-backoff", "100ms", "--recovery-limit", "16",
                   "--recovery-hourly-limit", "32", NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_host(&fleet, 0, "a1", "a2", "a3", NULL);
    hft_fleet_host(&fleet, 1, "b1", "b2", "b3", NULL);
    for (int i = 0; i < AGENTS; i++)
        ends[i] = (struct end){ .agent = NAMES[i] };
}

static unsigned count_killed(void)
{
    unsigned sum = 0;

    for (int i = 0; i < KINDS; i++)
        sum += killed[i];
    return sum;
}

static bool is_nobody_live(void *arg)
{
    (void)arg;
    for (int i = 0; i < AGENTS; i++) {
        if (look_at(NAMES[i], "live").count != 0)
            return false;
    }
    return true;
}

START_TEST(nothing_is_left_behind_by_kills_at_random_moments)
{
    unsigned count = how_many();

    seed = (unsigned)hft_now();
    printf("seed %u\n", seed); /* of who and when; the rest is up to the machine */
    begin();
    for (unsigned checks = 1; count_killed() < count;) {
        kill_somebody();
        if (count_killed() < checks * 100)
            continue;
        expect_everybody();
        checks++;
    }
    expect_everybody();
    printf("killed: %u agents, %u shims, %u links, %u before they had begun\n", killed[AGENT],
           killed[SHIM], killed[LINK], killed[HELD]);
    /* Who is held is seen, or is not. */
    for (int i = 0; i < KINDS && count >= 100; i++)
        ck_assert_uint_gt(killed[i], i == HELD ? 0 : count / 20);
    hft_fleet_submit(&fleet, "last", 3, 0.1);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "last", 3), 1);
    for (int i = 0; i < HOSTS; i++)
        ck_assert_int_eq(hft_program_stop(&fleet.hosts[i]), 0);
    ck_assert(is_nobody_live(NULL));
    ck_assert(is_everybody_known(&(struct census){ 0 }));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("kills");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, getenv("HOLDFAST_KILLS") != NULL ? 3000 : 240);
    tcase_add_test(t, nothing_is_left_behind_by_kills_at_random_moments);
    return hft_suite_run("e2e: kills", t, NULL);
}
