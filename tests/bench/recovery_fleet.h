/* recovery_fleet.h - the fleet that `./dev bench recovery` measures: a real etcd,
 * controllers, an agentd with many agents. */
#ifndef HFB_RECOVERY_FLEET_H
#define HFB_RECOVERY_FLEET_H

#include <stddef.h>
#include <stdint.h>

#include "support/client.h"
#include "support/etcd.h"
#include "support/program.h"

#define HFB_AGENT "w%03u"

enum { HFB_VICTIMS = 16, HFB_ASKED = 5, HFB_KILLED = 2, HFB_LEADER_TTL_MS = 10000 };

/* When each step of one recovery was seen, on CLOCK_MONOTONIC in nanoseconds. */
struct hfb_trace {
    int64_t killed;  /* by us */
    int64_t written; /* the death is in etcd */
    int64_t ordered; /* the task is reset and a start ordered, in one Txn */
    int64_t started; /* the successor is registered, with the task */
    int64_t begun;   /* its main() */
    int64_t held;    /* it has the bytes */
};

/* As a table, or as the objects of --json: `ours` is the median of each step, `peer` what it
 * took in the median run. Sorts them. */
void hfb_trace_print(struct hfb_trace *traces, size_t count, bool as_json);

struct hfb_fleet {
    struct hft_etcd etcd;
    struct hft_client client;
    struct hft_tempdir dir;
    struct hft_program controllers[2], agentd;
    struct hf_mirror *mirror;
    bool synced;
    struct hfb_trace trace; /* of the recovery that is under way */
    struct {
        int64_t deleted, reset;
    } victims[HFB_VICTIMS];
    hf_rev last_put;
    int64_t elected; /* when the newest leader was seen, ... */
    int64_t acted;   /* ... and the first write of its term */
    unsigned leader; /* of the controllers */
    unsigned controllers_started;
};

void hfb_fleet_start(struct hfb_fleet *fleet);
void hfb_fleet_done(struct hfb_fleet *fleet);

/* One agentd with `count` agents of that child; each has a task of its own. */
void hfb_fleet_start_agents(struct hfb_fleet *fleet, const char *child, const char *socket,
                            const char *state, unsigned count);
void hfb_fleet_stop_agents(struct hfb_fleet *fleet);

/* Follows etcd from now on, filling fleet->trace. */
void hfb_fleet_watch(struct hfb_fleet *fleet);
void hfb_fleet_unwatch(struct hfb_fleet *fleet);

/* Lets hosts among many vanish, and tells by how many milliseconds the reset of each one's task
 * came later than the grace that it had. */
void hfb_fleet_expire(struct hfb_fleet *fleet, double ret_lags[HFB_VICTIMS]);

/* Ends the leader by that signal; returns the milliseconds until the other one has
 * written something as the leader, and starts a new standby. */
double hfb_fleet_fail_over(struct hfb_fleet *fleet, int signal);

#endif
