/* Agents, links and shims are killed at random moments, each alone and two at once, on a host
 * with cgroups and on one that is nobody's, with shims: no registration outlives its process,
 * no process its registration, and no end is lost. */
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
enum { AGENTS = 6, HOSTS = 2, CODE = 41, ENVIRONMENT = 16384 };

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
};

static struct hft_fleet fleet;
static struct end ends[AGENTS];
static hf_ms link_killed_at[HOSTS];
static unsigned seed, killed[3]; /* agents, shims, links */

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

static bool has_begun(void *arg)
{
    return look_at(arg, "live").count == 1;
}

static bool is_told(void *arg)
{
    const struct end *end = arg;
    char key[128];

    (void)snprintf(key, sizeof key, "agents/%s/exit", end->agent);
    HF_CLEANUP_FREE char *said = hft_fleet_get(&fleet, key);
    return strstr(said, "\"createRevision\":") != NULL &&
           hft_fleet_number(&fleet, key, "createRevision") >= end->life;
}

/* How it ended was seen by its parent and by nobody else, and reaches etcd whoever died. A
 * signal that came before its trap was set has ended it as well. */
static void expect_its_end(struct end *end)
{
    char key[128];

    hft_wait_or_fail(is_told, end, HFT_FLEET_STEP_MS, "the end of a life");
    (void)snprintf(key, sizeof key, "agents/%s/exit", end->agent);
    HF_CLEANUP_FREE char *said = hft_fleet_get(&fleet, key);
    ck_assert_msg(hft_fleet_number(&fleet, key, "createRevision") == end->life, "%lld: %s",
                  (long long)end->life, said);
    long long signal = hft_fleet_number(&fleet, key, "signal");
    bool has_code = end->signal == SIGUSR1 && hft_fleet_number(&fleet, key, "status") == CODE;
    ck_assert_msg(signal == end->signal || (signal == 0 && has_code), "%s", said);
    end->life = 0;
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

static pid_t parent_of(pid_t pid)
{
    char path[64];
    int parent = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    if (fscanf(file, "%*d %*[^)]) %*c %d", &parent) != 1)
        parent = 0;
    (void)fclose(file);
    return parent;
}

/* The host is the one whose keeper is above its process: directly, or above its shim. */
static void kill_agent(struct end *end, bool by_shim)
{
    struct hft_outcome live = look_at(end->agent, "live");
    pid_t pid = live.count == 1 ? (pid_t)number_of(end->agent, "live", "pid") : 0;
    pid_t parent = pid > 0 ? parent_of(pid) : 0;
    bool has_shim = parent > 0 && parent != fleet.hosts[0].pid && parent != fleet.hosts[1].pid;

    if (parent == 0)
        return; /* it is about to end, by nothing that this test did */
    end->signal = has_shim && by_shim ? SIGKILL : draw(3) == 0 ? SIGUSR1 : SIGKILL;
    if (kill(has_shim && by_shim ? parent : pid, end->signal) != 0)
        return;
    end->life = live.create_rev;
    killed[has_shim && by_shim]++;
}

/* Who dies of its start is waited for: so not all the time. */
static void kill_link(unsigned host)
{
    pid_t link = hft_fleet_link(&fleet, host);

    if (link <= 0 || hft_now() - link_killed_at[host] < LINK_REST_MS)
        return;
    link_killed_at[host] = hft_now();
    if (kill(link, SIGKILL) == 0)
        killed[2]++;
}

static void kill_somebody(void)
{
    struct end *end = &ends[draw(AGENTS)];
    unsigned whom = draw(5); /* an agent, its shim, a link; or a link with one of the others */

    if (end->life != 0)
        expect_its_end(end);
    hft_wait_or_fail(has_begun, (void *)end->agent, HFT_FLEET_STEP_MS, "the agent");
    pass_a_moment();
    if (whom != 2)
        kill_agent(end, whom == 1 || whom == 4);
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
    for (unsigned checks = 1; killed[0] + killed[1] + killed[2] < count;) {
        kill_somebody();
        if (killed[0] + killed[1] + killed[2] < checks * 100)
            continue;
        expect_everybody();
        checks++;
    }
    expect_everybody();
    printf("killed: %u agents, %u shims, %u links\n", killed[0], killed[1], killed[2]);
    for (int i = 0; i < 3 && count >= 100; i++)
        ck_assert_uint_gt(killed[i], count / 20);
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
