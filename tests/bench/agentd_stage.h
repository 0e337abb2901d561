/* agentd_stage.h - an etcd, an agentd with any number of agents, and another client of the same
 * etcd that watches: where `./dev bench agentd` measures. */
#ifndef HFB_AGENTD_STAGE_H
#define HFB_AGENTD_STAGE_H

#include "bench/crowd.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/pki.h"
#include "support/program.h"

enum { HFB_TTL_S = 15 }; /* of every lease here: agentd's default */

struct hfb_stage_options {
    const char *agent;    /* the program, with its arguments as a list of YAML */
    unsigned count;       /* of agents */
    bool with_mtls;       /* between agentd and etcd */
    bool without_cgroups; /* each agent has a shim */
};

struct hfb_stage {
    struct hft_etcd etcd;
    struct hft_pki pki;
    struct hft_cert cert;
    struct hft_client client;
    struct hft_tempdir dir;
    struct hft_program agentd;
    struct hf_mirror *mirror;
    struct hfb_stage_options options;
    bool synced;
    unsigned live, sessions;    /* keys of agents, and of Go's sessions, that were put */
    unsigned exits;             /* of agents, whoever they were, since all were registered */
    char exit_key[256];         /* where who was killed will have its exit */
    int64_t exit_ns, commit_ns; /* when that, or the newest commit of ours, was seen, ... */
    int64_t dead_ns;            /* ... and who was killed had ended */
    char exit_value[4096];      /* of that exit */
    double start_ms;            /* until all agents were registered */
};

/* Returns when all agents are registered, the watcher has seen it, and they are running. */
void hfb_stage_open(struct hfb_stage *stage, const struct hfb_stage_options *options);
void hfb_stage_close(struct hfb_stage *stage);

/* agentd without its agents: keeper, link, scribe and shims. */
void hfb_stage_crowd(const struct hfb_stage *stage, struct hfb_crowd *ret_crowd);

/* Fails unless all agents are there that were registered: the dead cost nothing. Not after a
 * kill. */
void hfb_stage_demand_all(const struct hfb_stage *stage);

/* Lets the loop turn for so long. */
void hfb_stage_rest(struct hfb_stage *stage, hf_ms span);

/* Milliseconds from SIGKILL to an agent until the watcher has its exit; and until it was dead,
 * for which it needs a processor itself. */
double hfb_stage_kill(struct hfb_stage *stage, pid_t agent, double *ret_dead_ms);

/* Milliseconds of a transaction like the one that writes an end (two compares, an exit of the
 * same length put, a key deleted), from its beginning to etcd's answer; and until the watcher
 * has it. */
double hfb_stage_commit(struct hfb_stage *stage, double *ret_seen_ms);

#endif
