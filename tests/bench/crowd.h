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

/* These processes and everything below them but the agents. */
void hfb_crowd_find(struct hfb_crowd *crowd, const pid_t *roots, size_t count);

/* Of all their threads, also those that are gone, in nanoseconds. */
int64_t hfb_crowd_cpu_ns(const struct hfb_crowd *crowd);

/* In kB. What several share counts for each in rss_kb, and in part in pss_kb. */
struct hfb_memory {
    double rss_kb;
    double pss_kb;
};
struct hfb_memory hfb_crowd_memory(const struct hfb_crowd *crowd);

/* The largest of those of that name, of which there must be one. */
struct hfb_memory hfb_crowd_largest(const struct hfb_crowd *crowd, const char *comm);

/* Those agents below `root`, at most `max`; returns how many there are. */
size_t hfb_crowd_agents(pid_t root, pid_t *ret_pids, size_t max);

#endif
