/* demo.h - what the demos share: an agent that is at work is chosen, something is done to it,
 * and what etcd says of it from then on is told, with the time since. */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

#include "cli/cli.h"
#include "cli/local.h"
#include "etcd/mirror.h"

/* The agent that it is done to, as it was before. */
struct cli_victim {
    char name[HF_NAME_SIZE];
    char host[HF_NAME_SIZE];
    char task[HF_NAME_SIZE];
    hf_rev born; /* its life */
    int32_t attempt;
    pid_t pid;
    int64_t start_time;
    hf_ms ttl; /* of its lease */
    bool has_agentd;
    struct cli_agentd agentd; /* that started it, if it could be found */
};

struct cli_demo {
    struct cli *cli;
    struct cli_victim victim;
    struct hf_mirror *mirror;
    hf_ms began; /* 0: not yet */
    bool synced;
    bool over;      /* the task is at work again */
    bool stop;      /* somebody wants an end */
    bool host_gone; /* the lease of the victim's host has run out, and it is not back */
    hf_rev reborn;  /* its newest life; 0: none yet */
    char new_host[HF_NAME_SIZE];
    char health[256]; /* what was told of it last */
    unsigned starts;  /* how many lives it has had since */
};

/* Chooses the agent that the command line names, or one with a checkpoint, and follows etcd. */
int cli_demo_begin(struct cli_demo *demo, struct cli *cli) HF_MUST_CHECK;
void cli_demo_end(struct cli_demo *demo);

/* From here on time runs. */
void cli_demo_act(struct cli_demo *demo);
void cli_demo_tell(const struct cli_demo *demo, const char *fmt, ...) HF_PRINTF(2, 3);

/* Waits until it is so: HF_ETIMEOUT when it is not after a while, HF_ECANCELED after `stop`. */
int cli_demo_wait(struct cli_demo *demo, bool (*is_so)(struct cli_demo *demo)) HF_MUST_CHECK;

/* Waits until the task is at work again, and says how that ended. */
int cli_demo_watch_recovery(struct cli_demo *demo) HF_MUST_CHECK;
void cli_demo_tell_end(const struct cli_demo *demo);

#endif
