/* A fleet of the real programs under random faults, and what must be true when they stop: every
 * task was completed, its steps were done in order and by one process at a time, and etcd shows
 * nothing that must never be.
 *
 * HOLDFAST_CHAOS_SEED draws who is hit by what and when, HOLDFAST_CHAOS_MINUTES says for how
 * long. The rest is up to the machine, so that a seed is a beginning and not a history. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "support/fleet.h"
#include "support/suite.h"
#include "support/wait.h"

enum {
    CONTROLLERS = 2,
    AGENTS = 6,    /* two at home on each host */
    AT_ONCE = 6,   /* tasks that are not done */
    STEPS = 12,    /* of each */
    MOMENT = 1500, /* ms between faults, at most */
    FINISH_MS = 600000,
};

static struct hft_fleet fleet;
static unsigned seed, submitted;
static double minutes;
static hf_ms back_at[2 * HFT_FLEET_SIZE]; /* of hosts, then controllers; 0: it runs */

static void setup(void)
{
    const char *text = getenv("HOLDFAST_CHAOS_SEED");

    seed = text != NULL ? (unsigned)strtoul(text, NULL, 10) : (unsigned)hft_now();
    text = getenv("HOLDFAST_CHAOS_MINUTES");
    minutes = text != NULL ? strtod(text, NULL) : 2;
    printf("replay: ./dev test chaos --seed %u --minutes %g\n", seed, minutes);
    (void)fflush(stdout);
    hft_fleet_open(&fleet);
}

static void teardown(void)
{
    hft_fleet_close(&fleet);
}

static unsigned draw(unsigned below)
{
    return (unsigned)rand_r(&seed) % below;
}

static void rest(unsigned ms)
{
    nanosleep(&(struct timespec){ .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L }, NULL);
}

static void start_controller(unsigned i)
{
    hft_fleet_lead(&fleet, i, "--recovery-backoff", "100ms", "--recovery-limit", "16",
                   "--recovery-hourly-limit", "32", NULL);
}

static void start_everything(void)
{
    for (unsigned i = 0; i < CONTROLLERS; i++)
        start_controller(i);
    hft_fleet_host(&fleet, 0, "w1", "w2", NULL);
    hft_fleet_host(&fleet, 1, "w3", "w4", NULL);
    hft_fleet_host(&fleet, 2, "w5", "w6", NULL);
}

/* Work. */

static void submit_some(void)
{
    unsigned done = hft_fleet_count(&fleet, "tasks/", "\"state\":\"completed\"");

    while (submitted < done + AT_ONCE) {
        char task[16];

        (void)snprintf(task, sizeof task, "t%u", submitted++);
        hft_fleet_submit(&fleet, task, STEPS, 0.1);
    }
}

/* A person who forgives: who was started too often, and what was recovered too often. */
static void forgive(void)
{
    for (unsigned i = 1; i <= AGENTS; i++) {
        char health[32], agent[16];

        (void)snprintf(agent, sizeof agent, "w%u", i);
        (void)snprintf(health, sizeof health, "health/w%u", i);
        HF_CLEANUP_FREE char *text = hft_fleet_get(&fleet, health);

        if (strstr(text, "\"held\":true") != NULL)
            free(hft_fleet_cli(&fleet, "start", agent, NULL));
    }
    for (unsigned i = 0; i < submitted; i++) {
        char key[32];

        (void)snprintf(key, sizeof key, "tasks/t%u", i);
        HF_CLEANUP_FREE char *text = hft_fleet_get(&fleet, key);

        if (strstr(text, "\"state\":\"needs_review\"") != NULL)
            free(hft_fleet_cli(&fleet, "task", "retry", key + strlen("tasks/"), NULL));
    }
}

/* Faults. */

/* Of an agent that is registered; 0: it is not. */
static pid_t agent_pid(unsigned i)
{
    char key[32];
    const char *at;

    (void)snprintf(key, sizeof key, "agents/w%u/live", i + 1);
    HF_CLEANUP_FREE char *text = hft_fleet_get(&fleet, key);

    at = strstr(text, "\"pid\":");
    return at != NULL ? (pid_t)strtol(at + strlen("\"pid\":"), NULL, 10) : 0;
}

static void stop_for(pid_t pid, unsigned ms)
{
    if (pid <= 0 || kill(pid, SIGSTOP) != 0)
        return;
    rest(ms);
    (void)kill(pid, SIGCONT);
}

static void lose_host(unsigned i, bool whole)
{
    if (back_at[i] != 0)
        return;
    if (whole)
        hft_fleet_lose_host(&fleet, i);
    else
        hft_program_kill(&fleet.hosts[i]); /* the next agentd finds what it left */
    back_at[i] = hft_now() + draw(whole ? 12000 : 3000) + 1;
}

static void lose_controller(unsigned i)
{
    if (back_at[HFT_FLEET_SIZE + i] != 0)
        return;
    hft_program_kill(&fleet.controllers[i]);
    back_at[HFT_FLEET_SIZE + i] = hft_now() + draw(6000) + 1;
}

static void bring_back(hf_ms now)
{
    for (unsigned i = 0; i < HFT_FLEET_SIZE + CONTROLLERS; i++) {
        if (back_at[i] == 0 || now < back_at[i])
            continue;
        back_at[i] = 0;
        if (i < HFT_FLEET_SIZE)
            hft_fleet_host_again(&fleet, i);
        else
            start_controller(i - HFT_FLEET_SIZE);
    }
}

static void hit_etcd(void)
{
    if (draw(2) == 0) {
        hft_etcd_pause(&fleet.etcd);
        rest(draw(8000)); /* shorter than a lease, or longer */
        hft_etcd_resume(&fleet.etcd);
    } else {
        hft_etcd_kill(&fleet.etcd);
        rest(draw(3000));
        hft_etcd_restart(&fleet.etcd);
    }
}

static void hit_somebody(void)
{
    unsigned host = draw(HFT_FLEET_SIZE), agent = draw(AGENTS), other = draw(CONTROLLERS);
    pid_t link = hft_fleet_link(&fleet, host), pid = agent_pid(agent);
    unsigned dice = draw(100), span = draw(7000);

    if (dice < 30 && pid > 0)
        (void)kill(pid, SIGKILL);
    else if (dice < 50 && link > 0 && back_at[host] == 0)
        (void)kill(link, SIGKILL);
    else if (dice < 60 && back_at[host] == 0)
        stop_for(link, span);
    else if (dice < 65)
        stop_for(pid, span / 2);
    else if (dice < 72)
        lose_host(host, true);
    else if (dice < 79)
        lose_host(host, false);
    else if (dice < 87)
        lose_controller(other);
    else if (dice < 95 && back_at[HFT_FLEET_SIZE + other] == 0)
        stop_for(fleet.controllers[other].pid, span);
    else if (dice >= 95)
        hit_etcd();
}

/* The end. */

static bool is_all_done(void *arg)
{
    (void)arg;
    forgive();
    return hft_fleet_count(&fleet, "tasks/", "\"state\":\"completed\"") == submitted;
}

START_TEST(when_faults_stop_all_work_is_done_and_nothing_twice)
{
    hf_ms end;
    unsigned faults = 0, workers = 0;

    start_everything();
    hft_fleet_await(&fleet, "agents/w1/live", "\"pid\"");
    end = hft_now() + (hf_ms)(minutes * 60000);
    while (hft_now() < end) {
        submit_some();
        hit_somebody();
        rest(draw(MOMENT));
        bring_back(hft_now());
        if (++faults % 20 == 0)
            forgive();
    }
    bring_back(INT64_MAX);
    hft_wait_or_fail(is_all_done, NULL, FINISH_MS, "the end of all tasks");
    for (unsigned i = 0; i < submitted; i++) {
        char task[16];

        (void)snprintf(task, sizeof task, "t%u", i);
        workers += hft_fleet_until_done(&fleet, task, STEPS);
    }
    hft_fleet_check(&fleet);
    printf("%u faults, %u tasks, by %u processes\n", faults, submitted, workers);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("chaos");
    const char *text = getenv("HOLDFAST_CHAOS_MINUTES");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, (text != NULL ? strtod(text, NULL) : 2) * 60 + 900);
    tcase_add_test(t, when_faults_stop_all_work_is_done_and_nothing_twice);
    return hft_suite_run("chaos", t, NULL);
}
