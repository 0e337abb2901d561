#include "sim/speed.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sim/run.h"

enum { TASKS = 60, VIRTUAL_S = 3600 };

static double cpu_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static struct hfs_run *make_run(void)
{
    struct hfs_run *run = hfs_alloc(sizeof *run);

    run->cluster = (struct hfs_cluster_config){
        .seed = 1, .hosts = HFS_SPEED_AGENTS, .controllers = 2, .agent_count = HFS_SPEED_AGENTS
    };
    for (unsigned i = 0; i < HFS_SPEED_AGENTS; i++) {
        struct hfs_agent_config *agent = &run->cluster.agents[i];

        (void)snprintf(agent->name, sizeof agent->name, "a%u", i + 1);
        (void)snprintf(agent->role, sizeof agent->role, "r1");
        agent->home = i;
    }
    run->duration = (hf_ms)VIRTUAL_S * 1000;
    for (unsigned i = 0; i < TASKS; i++)
        run->faults[run->fault_count++] = (struct hfs_fault){
            .kind = HFS_FAULT_SUBMIT, .at = (hf_ms)i * VIRTUAL_S * 1000 / TASKS, .a = i + 1
        };
    return run;
}

struct hfs_speed hfs_speed_measure(void)
{
    struct hfs_run *run = make_run();
    double begun = cpu_seconds();
    struct hfs_verdict verdict = hfs_run(run, NULL, NULL);
    struct hfs_speed speed = { .time = verdict.time, .took = cpu_seconds() - begun };

    free(run);
    speed.factor = (double)speed.time / 1000 / speed.took;
    speed.ok = verdict.ok && verdict.final == TASKS;
    (void)snprintf(speed.why, sizeof speed.why, "%s",
                   verdict.ok ? "a task was not done" : verdict.why);
    return speed;
}
