/* cluster.h - a simulated fleet: hosts with keeper, link and agents, controllers, a person,
 * over one model etcd.
 *
 * Links and controllers are the real node, engine and runner. The keeper is a model: parent of
 * the processes, it acts on the fence deadline by itself and hands what it holds to the next
 * link. Agents are model programs. Everything happens in virtual time; one seed, one history.
 */
#ifndef HFS_CLUSTER_H
#define HFS_CLUSTER_H

#include "core/engine.h"
#include "core/node.h"
#include "io/runner.h"
#include "sim/check.h"
#include "sim/client.h"

enum {
    HFS_HOSTS = 24,
    HFS_AGENTS = 24,
    HFS_CONTROLLERS = 3,
    HFS_TASKS_LATER = 3,
    HFS_TEXT = 48,
};

/* What a program does with its life. */
enum hfs_program_kind {
    HFS_WORKER,        /* takes tasks, step by step */
    HFS_IDLE,          /* says nothing for as long as it lives */
    HFS_FLAKY,         /* a worker that dies now and then */
    HFS_CRASH_START,   /* dies as soon as it begins, every time */
    HFS_CRASH_STEP,    /* a worker that dies at the same step of every task */
    HFS_FINISHER,      /* a worker that goes home after each task */
    HFS_LAZY,          /* takes a task, and never begins with it */
    HFS_PROGRAM_KINDS, /* how many */
};

/* How it stands still with a task. */
enum hfs_standstill {
    HFS_MOVES,
    HFS_HANGS,   /* nothing comes of it any more */
    HFS_STALLS,  /* its heartbeats come, and nothing else */
    HFS_PONDERS, /* likewise, until it is asked why: then it goes on */
    HFS_NAPS,    /* nothing comes of it for about as long as it is waited for */
    HFS_STANDSTILLS,
};

struct hfs_agent_config {
    char name[HFS_TEXT];
    char role[HFS_TEXT];
    unsigned home; /* host */
    enum hfs_program_kind kind;
    Holdfast__V1__Spec__Restart restart;
    Holdfast__V1__Spec__Fence fence;
    int32_t max_tasks; /* at once; 0: one */
    bool transient;    /* removed some time after its end */
};

/* Zero: none, or off. */
struct hfs_cluster_config {
    uint64_t seed;
    unsigned hosts, controllers;
    struct hfs_agent_config agents[HFS_AGENTS];
    unsigned agent_count;
    uint8_t corrupt_percent; /* of checkpoints: their body is not what the entry says */
    uint8_t missing_percent;
    uint8_t poison_percent;    /* they kill whoever goes on from them */
    uint8_t make_fail_percent; /* processes that cannot be made */
    uint8_t release_percent;   /* turns in which a program gives its task back */
    uint8_t report_percent;    /* turns in which a program reports, instead of working */
    uint8_t stubborn_percent;  /* processes that do not end when they are asked to */
    hf_ms step_max;            /* a step of a task takes 50 ms to this; 0: 1 s */
    unsigned steps_max;        /* of a task; 0: 5 */
    hf_ms step_exact;          /* each step takes this; 0: as drawn */
    unsigned steps_exact;      /* each task has so many; 0: as drawn */
    bool keeps_all;            /* a checkpoint after each step; else as drawn, ... */
    bool keeps_none;           /* ... or none at all */
    bool own_files;            /* checkpoints lie in files of their host, which has its own */
    hf_ms keep_chain;          /* of a task that is over; 0: as long as by default */
    bool note_values;          /* in the transcript */
    uint64_t mutants;          /* rules that are missing (core/mutant.h) */
    struct hfs_aim aim;        /* of whoever keeps Txns back */
    struct hfs_census *census; /* NULL: nobody counts */
    hf_ms page_ms;             /* lists come in pages, with up to so long between them */
    uint32_t report_rate;      /* of all agents together, a second; 0: by default */
    bool calm;                 /* no message is slow: moments can be judged, too */
    bool priorities;           /* tasks have some */
    uint32_t running_max;      /* tasks of one role that may run at once; 0: any number */
    hf_ms expected;            /* tasks should be done so long after they were given out */
    hf_ms heartbeat;           /* programs send heartbeats so often */
    hf_ms progress_max;        /* of the controllers, as is the next; 0: as by default */
    hf_ms inquiry_answer;
    hf_ms sweep_after; /* transient agents are removed so long after their end; likewise */
    bool reloads;      /* every link has other settings than the one before it */
    bool minded;       /* a person who is told that somebody stands still restarts it */
    uint8_t standstill_percent; /* turns in which a program begins to, once in its life; a
                                 * person who is told of it restarts it */
};

struct hfs_cluster;
struct hfs_host;
struct hfs_link;

/* A process of an agent. */
struct hfs_agent {
    struct hfs_host *host;
    const struct hfs_agent_config *config;
    struct hfs_agent *next; /* of the host */
    struct hfs_timer timer; /* what its program does next */
    struct hfs_timer making, ending, forced, ready, settling;
    char instance[HFS_TEXT];
    int32_t pid;
    int64_t start_time;
    bool held, begun, frozen, ended;
    bool killed; /* it does nothing any more, and ends in a moment */
    hf_ms frozen_at;
    hf_ms fenced_at; /* when the time of its lease was over; -1: it stands still otherwise */
    bool missed;     /* its program was due while it stood still */
    bool stubborn;
    Holdfast__V1__Spec__Fence fence;
    Holdfast__V1__Exit__Kind exit_kind;
    int32_t exit_status, exit_signal;
    int64_t lease, incarnation;

    /* Its program. */
    uint64_t ask; /* token of what it waits for; 0: nothing */
    enum hf_ask_kind asked;
    hf_ms asked_at;
    char task[HFS_TEXT]; /* empty: none */
    struct {
        char name[HFS_TEXT];
        bool restores;        /* it has a checkpoint */
    } later[HFS_TASKS_LATER]; /* tasks that are its own, too, and wait for their turn */
    unsigned later_count;
    unsigned step, steps;
    size_t body; /* of the checkpoint that it asked to keep */
    bool started, leaving, degraded;
    enum hfs_standstill standstill;
    bool stood;     /* it did so once */
    bool beats;     /* what it reports is a heartbeat, */
    hf_ms beat_at;  /* and when it sent the last one */
    bool releasing; /* it gives its task back */
    bool restoring; /* it has a task, and asks what to go on from */
    bool poisoned;  /* it went on from a checkpoint that kills */
};

struct hfs_host {
    struct hfs_cluster *cluster;
    unsigned number;
    char name[HFS_TEXT];
    char process_name[HFS_TEXT];
    struct hfs_process process; /* of the link */
    struct hfs_process machine; /* of the keeper, and of what it keeps */
    bool up;                    /* the keeper runs */
    bool starts_nothing;        /* what is to be made there cannot be */
    bool gone;                  /* for good */
    bool leaving;               /* its agentd was told to end, */
    bool returns;               /* and shall begin again when it has */
    unsigned boots;
    char boot_id[HFS_TEXT];
    int64_t last_lease; /* stands in its state directory */

    struct hf_lease_record record; /* shared with the link */
    struct hfs_timer fence;
    struct hfs_agent *agents;
    bool started[HFS_AGENTS]; /* since this keeper began */

    struct hfs_link *link; /* NULL: none */
    unsigned links;        /* that it has had */
    struct hfs_timer restart;
    bool machine_stands; /* suspended: nothing of it runs */
    struct hfs_timer resume;
    struct hfs_timer leave; /* while it is leaving */
    hf_ms leave_by;
};

struct hfs_controller {
    struct hfs_cluster *cluster;
    char name[HFS_TEXT];
    struct hfs_process process;
    struct hfs_brain *brain; /* NULL: it is down */
    struct hfs_timer restart;
};

/* A checkpoint's body, as the store of the fleet has it. */
struct hfs_body {
    char task[HFS_TEXT];
    char key[HFS_TEXT];
    unsigned step;
    int verdict; /* HF_OK, HF_ECORRUPT, HF_ENOENT */
    bool poison;
    int64_t seq;
};

/* Somebody who listens. All may be NULL. */
struct hfs_ear {
    /* As in sim/net.h, after the checkers have looked. */
    void (*on_commit)(const struct hfs_process *writer, void *arg);
    /* A request leaves its sender; true: it gets lost. */
    bool (*on_send)(struct hfs_process *from, struct hfs_letter *letter, void *arg);
    /* A program asks its agentd for something; true: it is not heard. */
    bool (*on_ask)(struct hfs_agent *agent, void *arg);
    void *arg;
};

/* What is about to happen because a Txn is kept back (sim/provoke.h). */
struct hfs_provocation {
    struct hfs_timer timer;
    enum hf_key_kind kind; /* of what it compares */
    char name[HFS_TEXT];
    const struct hfs_process *from;
};

struct hfs_cluster {
    struct hfs_cluster_config cfg;
    struct hfs_ear ear;
    struct hfs_provocation provocation;
    struct hfs_world world;
    struct hfs_etcd *etcd;
    struct hfs_net net;
    struct hfs_check *check;
    struct hfs_random dice; /* of programs and keepers */
    struct hfs_host hosts[HFS_HOSTS];
    struct hfs_controller controllers[HFS_CONTROLLERS];

    struct hfs_process person;
    struct hfs_client person_client;
    struct hfs_errand *errands;
    size_t submitted, accepted;

    struct hfs_link *dead_links; /* that are not quite gone */
    struct hfs_brain *dead_brains;
    struct hfs_body *bodies;
    size_t body_count, body_cap;
    uint64_t last_token;
    int32_t last_pid;
    uint64_t effects; /* steps that programs did */
};

struct hfs_cluster *hfs_cluster_new(const struct hfs_cluster_config *cfg,
                                    void (*note)(const char *line, void *arg), void *arg);
void hfs_cluster_free(struct hfs_cluster *cluster);

/* Lets time pass; false as soon as an invariant is violated. */
bool hfs_cluster_run(struct hfs_cluster *cluster, hf_ms length);

/* Whom an alert is about, for the transcript. */
const char *hfs_alert_subject(const struct hf_intent_alert *alert);

/* keeper.c */

void hfs_keeper_start(struct hfs_host *host);
/* The machine is gone, and everything on it. */
void hfs_keeper_crash(struct hfs_host *host);
/* Its agentd ends, as it should: it says so, ends its processes, writes that, and gives its
 * lease back. */
void hfs_keeper_leave(struct hfs_host *host);
/* Everything on it stands still for so long. */
void hfs_keeper_suspend(struct hfs_host *host, hf_ms length);
void hfs_keeper_on_act(struct hfs_host *host, const struct hf_intent_process *act);
void hfs_keeper_on_lease(struct hfs_host *host, const struct hf_lease_record *record);
/* The process ends by itself. */
void hfs_keeper_end(struct hfs_agent *agent, Holdfast__V1__Exit__Kind kind, int32_t status,
                    int32_t signal);
/* Something new begins there: it must be sure of its lease. */
void hfs_keeper_judge(struct hfs_host *host, const char *what);
void hfs_keeper_on_link_gone(struct hfs_host *host);
/* A link begins to listen: what happened meanwhile is told. */
void hfs_keeper_on_link(struct hfs_host *host);
/* A link has heard of the end of a process. */
void hfs_keeper_on_told(struct hfs_host *host, const char *instance);
struct hfs_agent *hfs_keeper_find(struct hfs_host *host, const char *instance);

/* agent.c: the programs. */

void hfs_agent_begin(struct hfs_agent *agent, const char *task, int64_t checkpoint);
void hfs_agent_on_timer(struct hfs_timer *timer);
void hfs_agent_on_reply(struct hfs_agent *agent, uint64_t token,
                        const struct hf_intent_reply *reply);
int hfs_cluster_verify(struct hfs_cluster *cluster, const Holdfast__V1__Checkpoint *entry);

/* link.c */

void hfs_link_start(struct hfs_host *host);
void hfs_link_crash(struct hfs_host *host);
/* It gives its lease back, and ends. */
void hfs_link_end(struct hfs_host *host);
/* Writes that the host leaves; `fn` is called in the end, whatever came of it. */
void hfs_link_say_goodbye(struct hfs_host *host, void (*fn)(struct hfs_host *host));
/* Delivers to the link, a moment later; lost when there is none by then. */
void hfs_link_tell(struct hfs_host *host, const struct hf_event *event);

/* Whether that process is the agent's, as its link sees it; after its end: until that is
 * written.
 */
bool hfs_link_has(const struct hfs_host *host, const char *agent, const char *instance);
/* What its link says about an agent; "" without a link. */
const char *hfs_link_why(const struct hfs_host *host, const char *agent);
void hfs_links_done(struct hfs_cluster *cluster);

/* controller.c */

void hfs_controller_start(struct hfs_controller *controller);
void hfs_controller_crash(struct hfs_controller *controller);
/* It ends as it should, and gives the leadership back; another one begins a moment later. */
void hfs_controller_resign(struct hfs_controller *controller);
/* It lacks memory for the next change that it hears of: it has to forget all that it knows, and
 * to read it anew. */
void hfs_controller_forget(struct hfs_controller *controller);
void hfs_controllers_done(struct hfs_cluster *cluster);

/* person.c: somebody who gives out work, and interferes. */

void hfs_person_submit(struct hfs_cluster *cluster, const char *task, const char *role);
void hfs_person_enqueue(struct hfs_cluster *cluster, const char *task, const char *role);
void hfs_person_want(struct hfs_cluster *cluster, const char *agent, bool running);
/* Ends the life that the agent has now, so that another begins. */
void hfs_person_restart(struct hfs_cluster *cluster, const char *agent);
/* One that is held may be started again. */
void hfs_person_release(struct hfs_cluster *cluster, const char *agent);
void hfs_person_cancel(struct hfs_cluster *cluster, const char *task);
void hfs_person_retry(struct hfs_cluster *cluster, const char *task);
void hfs_person_retry_lost(struct hfs_cluster *cluster, const char *task);
void hfs_person_remove(struct hfs_cluster *cluster, const char *agent);
/* Of one that is not here: it will not come back; its record goes. */
void hfs_person_lose_host(struct hfs_cluster *cluster, const char *host);
void hfs_person_remove_host(struct hfs_cluster *cluster, const char *host);
void hfs_person_proceed(struct hfs_cluster *cluster); /* through a storm */
void hfs_person_done(struct hfs_cluster *cluster);
size_t hfs_person_count(const struct hfs_cluster *cluster); /* errands under way */

#endif
