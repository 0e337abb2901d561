/* crowd.h - what a supervisor and its helpers cost: processor time and memory, as the kernel
 * counts them, without what they look after. */
#ifndef HFB_CROWD_H
#define HFB_CROWD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { HFB_CROWD_MAX = 4096 };

/* The file of the program that is looked after. */
#define HFB_AGENT_NAME "idle_agent"

struct hfb_crowd {
    pid_t pids[HFB_CROWD_MAX];
    size_t count;
};

/* Adds this process and everything below it but the agents. */
void hfb_crowd_add(struct hfb_crowd *crowd, pid_t root);

/* Of all their threads, also those that are gone, in nanoseconds. */
int64_t hfb_crowd_cpu_ns(const struct hfb_crowd *crowd);

/* In kB. What several share counts for each in rss_kb, and in part in pss_kb. */
struct hfb_memory {
    double rss_kb;
    double pss_kb;
};
struct hfb_memory hfb_crowd_memory(const struct hfb_crowd *crowd);

/* The largest of those of that name; nothing where there is none. */
struct hfb_memory hfb_crowd_largest(const struct hfb_crowd *crowd, const char *comm);

/* Those agents below `root`, at most `max`; returns how many there are. */
size_t hfb_crowd_agents(pid_t root, pid_t *ret_pids, size_t max);

#endif
