/* The link and the agent are killed at random moments, each alone and both at once: no
 * registration outlives its process, no process its registration, and no end is lost. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/fleet.h"
#include "support/keeper.h"
#include "support/suite.h"
#include "support/wait.h"

/* The shortest lease that production has: a link that dies again and again must save it. */
enum { DAILY = 20, MOMENT_MS = 300, TTL_MS = 10000 };

static struct hft_fleet fleet;
static unsigned seed;

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

/* Lets a random moment come. */
static void pass_a_moment(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = rand_r(&seed) % MOMENT_MS * 1000000L }, NULL);
}

static bool has_begun(void *arg)
{
    (void)arg;
    return hft_fleet_look(&fleet, "agents/w1/live").count == 1;
}

/* Where it is not running at this moment there is nothing to kill. */
static hf_rev kill_agent(void)
{
    struct hft_outcome live = hft_fleet_look(&fleet, "agents/w1/live");

    if (live.count == 0)
        return 0;
    (void)kill(hft_fleet_agent(&fleet, "w1"), SIGKILL);
    return live.create_rev;
}

static void kill_link(void)
{
    pid_t link = hft_fleet_link(&fleet, 0);

    if (link > 0)
        (void)kill(link, SIGKILL);
}

struct end {
    hf_rev life;
};

static bool is_told(void *arg)
{
    const struct end *end = arg;

    return hft_fleet_look(&fleet, "agents/w1/exit").count == 1 &&
           hft_fleet_number(&fleet, "agents/w1/exit", "createRevision") >= end->life;
}

/* How it ended was seen by its parent and by nobody else, and reaches etcd whoever died. */
static void expect_its_end(hf_rev life)
{
    hft_wait_or_fail(is_told, &(struct end){ life }, HFT_FLEET_STEP_MS, "the end of a life");
    ck_assert_int_eq(hft_fleet_number(&fleet, "agents/w1/exit", "createRevision"), life);
    ck_assert_int_eq(hft_fleet_number(&fleet, "agents/w1/exit", "signal"), SIGKILL);
}

/* One that has ended and that nobody waited for. */
static bool has_no_zombie(void *arg)
{
    char path[64], line[16] = "";
    FILE *children;

    (void)arg;
    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)fleet.hosts[0].pid,
                   (int)fleet.hosts[0].pid);
    children = fopen(path, "re");
    if (children == NULL)
        return true; /* this kernel does not say */
    bool clean = true;
    while (fscanf(children, "%15s", line) == 1)
        clean = clean && hft_process_state((pid_t)strtol(line, NULL, 10)) != 'Z';
    (void)fclose(children);
    return clean;
}

/* A person who forgives: ten starts in ten minutes would be held. */
static void forgive(void)
{
    free(hft_fleet_cli(&fleet, "start", "w1", NULL));
}

static void kill_once(unsigned i)
{
    hf_rev life = 0;
    unsigned whom = (unsigned)rand_r(&seed) % 3; /* link, agent, both */

    hft_wait_or_fail(has_begun, NULL, HFT_FLEET_STEP_MS, "the agent");
    pass_a_moment();
    if (whom != 0)
        life = kill_agent();
    if (whom == 2 && rand_r(&seed) % 2 == 0)
        pass_a_moment();
    if (whom != 1)
        kill_link();
    if (life != 0) {
        expect_its_end(life);
        forgive();
    }
    if (i % 10 == 9)
        hft_fleet_check(&fleet);
}

START_TEST(nothing_is_left_behind_by_kills_at_random_moments)
{
    unsigned count = how_many();

    seed = (unsigned)hft_now();
    printf("seed %u\n", seed); /* of who and when; the rest is up to the machine */
    fleet.ttl = TTL_MS;
    hft_fleet_lead(&fleet, 0, "--recovery-backoff", "100ms", "--recovery-limit", "16",
                   "--recovery-hourly-limit", "32", NULL);
    hft_fleet_until_leads(&fleet, 0);
    hft_fleet_host(&fleet, 0, "w1", NULL);
    for (unsigned i = 0; i < count; i++)
        kill_once(i);
    hft_wait_or_fail(has_begun, NULL, HFT_FLEET_STEP_MS, "the agent");
    hft_wait_or_fail(has_no_zombie, NULL, HFT_FLEET_STEP_MS, "no zombie of the keeper");
    hft_fleet_check(&fleet);
    hft_fleet_submit(&fleet, "last", 3, 0.1);
    ck_assert_uint_eq(hft_fleet_until_done(&fleet, "last", 3), 1);
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
