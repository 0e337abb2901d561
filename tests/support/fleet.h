/* fleet.h - a whole fleet of the real programs on a real etcd: controllers, one agentd per
 * host, and demo agents whose work leaves marks in a ledger outside etcd.
 *
 * Host i is called h<i+1>, controller i c<i+1>; agents have role "r" unless a test wants
 * another, and one launcher, which every host has. Times are short: see the constants. A host
 * is nobody's where a test or HOLDFAST_HOST says so (support/rights.h).
 * Everything ends with the test, however that ends. */
#ifndef HFT_FLEET_H
#define HFT_FLEET_H

#include "support/client.h"
#include "support/etcd.h"
#include "support/history.h"
#include "support/program.h"

#define HFT_ROOT "/holdfast/default/"

enum {
    HFT_FLEET_SIZE = 3,
    HFT_FLEET_TTL_MS = 5000,   /* of agentd, unless a test wants another: T */
    HFT_LEADER_TTL_MS = 3000,  /* of a controller */
    HFT_FLEET_STEP_MS = 60000, /* for one thing to happen */
};

struct hft_fleet {
    struct hft_etcd etcd;
    struct hft_client hand;
    struct hft_history history; /* what happens in the etcd, from the first revision on */
    struct hft_program controllers[HFT_FLEET_SIZE];
    struct hft_program hosts[HFT_FLEET_SIZE]; /* .is_nobodys may be set before its start */
    hf_ms ttl;                       /* of agentds that are started from now on, and ... */
    char endpoint[HFT_ENDPOINT_MAX]; /* ... the etcd that they and controllers use */
    enum { HFT_FILES_NONE, HFT_FILES_OWN, HFT_FILES_SHARED } files; /* of those: checkpoints */
    const char *role;          /* of agents of hosts that are started from now on: "r"; ... */
    const char *agent_options; /* ... and more lines for their files, */
    const char *host_options;  /* ... and for those of the hosts */
    char ledger[HFT_PATH_MAX + 32];
    char crashed[HFT_PATH_MAX + 32]; /* made by whoever reached its crash point */
};

void hft_fleet_open(struct hft_fleet *fleet);
/* The same on an etcd that is told more than to be quick. */
void hft_fleet_open_with(struct hft_fleet *fleet, const struct hft_etcd_options *options);
/* Ends every process of the fleet; fails the test when `holdfast invariants` or the history of
 * the etcd shows that an invariant did not hold, a sanitizer complained, or a host had its
 * agents in anything but cgroups or, as nobody, behind shims. */
void hft_fleet_close(struct hft_fleet *fleet);

/* Agents of hosts that are started from now on are this script of sh; $DEMO is the usual one.
 */
void hft_fleet_launch(struct hft_fleet *fleet, const char *script);
/* And their launcher says that, too, which is lines of its file. */
void hft_fleet_launch_with(struct hft_fleet *fleet, const char *options);

/* Starts a controller with these options more (NULL-terminated). */
void hft_fleet_lead(struct hft_fleet *fleet, unsigned i, ...) __attribute__((sentinel));
/* Waits until it leads, now or in its past. */
void hft_fleet_until_leads(struct hft_fleet *fleet, unsigned i);

/* Says which agents have host `i` as their home (NULL-terminated names), and starts its agentd.
 */
void hft_fleet_host(struct hft_fleet *fleet, unsigned i, ...) __attribute__((sentinel));
/* Starts it again with the same configuration. */
void hft_fleet_host_again(struct hft_fleet *fleet, unsigned i);
/* SIGKILL to its agentd and to every process that it ever started. */
void hft_fleet_lose_host(struct hft_fleet *fleet, unsigned i);
/* The link of a running agentd. */
pid_t hft_fleet_link(struct hft_fleet *fleet, unsigned i);

/* Where whoever is started next dies, or stops (lib/io/crash.h), "before:tasks/t"; NULL:
 * nowhere.
 */
void hft_fleet_crash_at(struct hft_fleet *fleet, const char *point);
void hft_fleet_stop_at(struct hft_fleet *fleet, const char *point);
bool hft_fleet_has_crashed(void *fleet);

/* What stands in etcd, by keys without their prefix. The text is to be freed. */
struct hft_outcome hft_fleet_look(struct hft_fleet *fleet, const char *key);
char *hft_fleet_get(struct hft_fleet *fleet, const char *key);
/* Waits until the value has that part; NULL: until the key is not there. */
void hft_fleet_await(struct hft_fleet *fleet, const char *key, const char *part);
/* The number that stands behind "name" in a value. */
long long hft_fleet_number(struct hft_fleet *fleet, const char *key, const char *name);
/* How often a text stands in all values under a prefix. */
unsigned hft_fleet_count(struct hft_fleet *fleet, const char *prefix, const char *part);
/* Whoever leads has counted one start of the agent, and the trail tells of no other: it was
 * ordered, or made by leave and is counted when it has happened. */
void hft_fleet_expect_one_start(struct hft_fleet *fleet, const char *agent);

/* The process of an agent that is live. */
pid_t hft_fleet_agent(struct hft_fleet *fleet, const char *agent);
/* SIGKILL to it. */
void hft_fleet_kill_agent(struct hft_fleet *fleet, const char *agent);

/* Submits a task of role r with so many steps. */
void hft_fleet_submit(struct hft_fleet *fleet, const char *task, unsigned steps,
                      double seconds);
/* Waits until the ledger has that step of the task. */
void hft_fleet_until_step(struct hft_fleet *fleet, const char *task, unsigned step);
/* The last that it has. */
unsigned hft_fleet_last_step(struct hft_fleet *fleet, const char *task);
/* Waits until it is completed, and checks what its work did to the world: every step was done;
 * one after the other; by one process at a time, of which none did anything after its successor
 * had begun; a successor went on behind the last checkpoint, so that it repeated the last step
 * of the one before it or nothing. Returns how many processes worked on it. */
unsigned hft_fleet_until_done(struct hft_fleet *fleet, const char *task, unsigned steps);
unsigned hft_fleet_workers(struct hft_fleet *fleet, const char *task);
/* The first step that the n-th of them did, from 0; 0: it has not done any. */
unsigned hft_fleet_began_with(struct hft_fleet *fleet, const char *task, unsigned worker);

/* Runs holdfast, which must succeed; returns what it said, to be freed. */
char *hft_fleet_cli(struct hft_fleet *fleet, ...) __attribute__((sentinel));
/* `holdfast invariants` finds nothing; no process works for the fleet that etcd does not know:
 * every one that runs an agent is the one its live key names. */
void hft_fleet_check(struct hft_fleet *fleet);

#endif
