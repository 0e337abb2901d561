#include "bench/crowd.h"

#include <ctype.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

enum { MOST_PROCESSES = 16384 };

struct process {
    pid_t pid, parent;
    char comm[32];
    bool is_agent;
};

/* All of the machine, in one look. */
static struct process processes[MOST_PROCESSES];
static size_t process_count;

/* By its file: who is started by a run file has the name of that. */
static bool runs_agent(const char *pid)
{
    char path[300], file[4096], *name;
    ssize_t len;

    (void)snprintf(path, sizeof path, "/proc/%s/exe", pid);
    len = readlink(path, file, sizeof file - 1);
    file[len > 0 ? len : 0] = '\0';
    name = strrchr(file, '/');
    return name != NULL && strcmp(name + 1, HFB_AGENT_NAME) == 0;
}

static bool read_process(const char *pid, struct process *ret)
{
    char path[300], text[512], *end;
    FILE *in;
    size_t len;

    (void)snprintf(path, sizeof path, "/proc/%s/stat", pid);
    in = fopen(path, "re");
    if (in == NULL)
        return false;
    len = fread(text, 1, sizeof text - 1, in);
    (void)fclose(in);
    text[len] = '\0';
    end = strrchr(text, ')');
    if (end == NULL || strchr(text, '(') == NULL)
        return false;
    *end = '\0';
    ret->pid = atoi(text);
    (void)snprintf(ret->comm, sizeof ret->comm, "%s", strchr(text, '(') + 1);
    ret->parent = atoi(end + 4); /* behind its state */
    ret->is_agent = runs_agent(pid);
    return true;
}

static void look(void)
{
    DIR *dir = opendir("/proc");
    const struct dirent *entry;

    ck_assert_ptr_nonnull(dir);
    process_count = 0;
    while ((entry = readdir(dir)) != NULL) {
        ck_assert_uint_lt(process_count, MOST_PROCESSES);
        if (isdigit((unsigned char)entry->d_name[0]) &&
            read_process(entry->d_name, &processes[process_count]))
            process_count++;
    }
    (void)closedir(dir);
}

static const struct process *find(pid_t pid)
{
    for (size_t i = 0; i < process_count; i++) {
        if (processes[i].pid == pid)
            return &processes[i];
    }
    return NULL;
}

static bool is_one_of(pid_t pid, const pid_t *roots, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (roots[i] == pid)
            return true;
    }
    return false;
}

static bool is_below(const struct process *process, const pid_t *roots, size_t count)
{
    while (process != NULL && !is_one_of(process->pid, roots, count))
        process = process->parent > 1 ? find(process->parent) : NULL;
    return process != NULL;
}

void hfb_crowd_find(struct hfb_crowd *crowd, const pid_t *roots, size_t count)
{
    crowd->count = 0;
    look();
    for (size_t i = 0; i < process_count; i++) {
        if (processes[i].is_agent || !is_below(&processes[i], roots, count))
            continue;
        ck_assert_uint_lt(crowd->count, HFB_CROWD_MAX);
        crowd->pids[crowd->count++] = processes[i].pid;
    }
}

size_t hfb_crowd_agents(pid_t root, pid_t *ret_pids, size_t max)
{
    size_t count = 0;

    look();
    for (size_t i = 0; i < process_count; i++) {
        if (!processes[i].is_agent || !is_below(&processes[i], &root, 1))
            continue;
        if (count < max)
            ret_pids[count] = processes[i].pid;
        count++;
    }
    return count;
}

int64_t hfb_crowd_cpu_ns(const struct hfb_crowd *crowd)
{
    int64_t sum = 0;

    for (size_t i = 0; i < crowd->count; i++) {
        struct timespec used;
        clockid_t clock;

        ck_assert_msg(clock_getcpuclockid(crowd->pids[i], &clock) == 0 &&
                          clock_gettime(clock, &used) == 0,
                      "process %d is gone", (int)crowd->pids[i]);
        sum += used.tv_sec * INT64_C(1000000000) + used.tv_nsec;
    }
    return sum;
}

static struct hfb_memory memory_of(pid_t pid)
{
    struct hfb_memory memory = { 0, 0 };
    char path[64], line[256];
    FILE *in;

    (void)snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
    in = fopen(path, "re");
    ck_assert_msg(in != NULL, "%s", path);
    while (fgets(line, sizeof line, in) != NULL) {
        if (strncmp(line, "Rss:", 4) == 0)
            memory.rss_kb = atof(line + 4);
        else if (strncmp(line, "Pss:", 4) == 0)
            memory.pss_kb = atof(line + 4);
    }
    (void)fclose(in);
    return memory;
}

struct hfb_memory hfb_crowd_memory(const struct hfb_crowd *crowd)
{
    struct hfb_memory sum = { 0, 0 };

    for (size_t i = 0; i < crowd->count; i++) {
        struct hfb_memory memory = memory_of(crowd->pids[i]);

        sum.rss_kb += memory.rss_kb;
        sum.pss_kb += memory.pss_kb;
    }
    return sum;
}

struct hfb_memory hfb_crowd_largest(const struct hfb_crowd *crowd, const char *comm)
{
    struct hfb_memory largest = { 0, 0 };

    look();
    for (size_t i = 0; i < crowd->count; i++) {
        const struct process *process = find(crowd->pids[i]);
        struct hfb_memory memory;

        if (process == NULL || strcmp(process->comm, comm) != 0)
            continue;
        memory = memory_of(process->pid);
        if (memory.rss_kb > largest.rss_kb)
            largest = memory;
    }
    ck_assert_msg(largest.rss_kb > 0, "there is no %s", comm);
    return largest;
}
