/* run.h - one seed, one history: what is drawn from it, how it is lived through, and whether
 * everything held.
 *
 * First the faults, each at its time; then they stop, and everything must come to rest. */
#ifndef HFS_RUN_H
#define HFS_RUN_H

#include "sim/cluster.h"

/* What can happen at a moment. `a` and `b` say to whom, `length` for how long. */
/* clang-format off */
#define HFS_FAULTS(X)                                                                          \
    X(SUBMIT,           "submit")                                                              \
    X(KILL_AGENT,       "kill an agent")                                                       \
    X(CRASH_LINK,       "crash a link")                                                        \
    X(CRASH_HOST,       "crash a host")                                                        \
    X(CRASH_CONTROLLER, "crash a controller")                                                  \
    X(PAUSE_LINK,       "pause a link")                                                        \
    X(SUSPEND_HOST,     "suspend a host")                                                      \
    X(PAUSE_CONTROLLER, "pause a controller")                                                  \
    X(SLOW_LOOP,        "slow a loop")                                                         \
    X(CUT_HOST,         "cut a host off")                                                      \
    X(CUT_CONTROLLER,   "cut a controller off")                                                \
    X(CUT_MEMBER,       "cut a host from a member")                                            \
    X(NETWORK,          "spoil the network")                                                   \
    X(MEMBER,           "harm a member of etcd")                                               \
    X(CHANGE_LEADER,    "change etcd's leader")                                                \
    X(REVOKE,           "revoke leases that were renewed")                                     \
    X(LYING,            "lie about renewals")                                                  \
    X(LATE_EXPIRY,      "let leases expire late")                                              \
    X(WATCHES,          "spoil the watches")                                                   \
    X(COMPACT,          "compact")                                                             \
    X(SNAPSHOT,         "take a snapshot")                                                     \
    X(RESTORE,          "restore the snapshot")                                                \
    X(NO_SPACE,         "fill etcd's disk")                                                    \
    X(STOP,             "stop an agent")                                                       \
    X(START,            "want an agent again")                                                 \
    X(RESTART,          "restart an agent")                                                    \
    X(CANCEL,           "cancel a task")                                                       \
    X(RETRY,            "retry a task")                                                        \
    X(REMOVE,           "remove an agent")                                                     \
    X(LATE,             "keep transactions back")                                              \
    X(GARBAGE,          "make a spec unreadable")                                              \
    X(VANISH,           "let a host vanish for good")                                          \
    X(LEAVE,            "end an agentd as it should")                                          \
    X(RESIGN,           "end a controller as it should")                                       \
    X(LOSE_HOST,        "say that a host is lost")                                             \
    X(REMOVE_HOST,      "remove a host")                                                       \
    X(PROCEED,          "let a storm proceed")
/* clang-format on */

enum hfs_fault_kind {
#define X(name, text) HFS_FAULT_##name,
    HFS_FAULTS(X)
#undef X
        HFS_FAULT_KINDS, /* how many */
};

struct hfs_fault {
    enum hfs_fault_kind kind;
    hf_ms at, length;
    unsigned a, b;
    bool off; /* by whoever looks for the smallest story */
};

enum {
    HFS_FAULTS_MAX = 96,
    HFS_FAULT_FIRST_LATER = HFS_FAULT_VANISH, /* from here on: drawn beside the others */
    HFS_FAULT_LATE_CONTROLLER = 10000,        /* `a` of LATE from here on: controllers' alone */
    HFS_FAULT_OF_AGENT = 10000, /* `a` of CANCEL from here on: what that agent has */
    HFS_FAULT_ORDERLY = 10000,  /* `a` of CRASH_CONTROLLER from here on: it resigns */
    HFS_FAULT_FORGETS = 10000,  /* `b` of CRASH_CONTROLLER from here on: it lacks memory */
    HFS_FAULT_OF_HOST = 10000,  /* `a` of GARBAGE from here on: a host is cordoned */
    HFS_FAULT_ANSWERS = 10000,  /* `a` of NETWORK from here on: only answers are slow */
    HFS_FAULT_READS = 10000,    /* `b` of PAUSE_LINK from here on: then it reads first */
    HFS_FAULT_STALLS = 10000,   /* `a` of MEMBER from here on: the disk of who leads hangs */
    HFS_FAULT_MUTE = 10000,     /* `a` of WATCHES from here on: none that is opened tells */
    HFS_FAULT_RELEASE = 10000,  /* `a` of START from here on: one that is held is released */
};

struct hfs_run {
    struct hfs_cluster_config cluster;
    struct hfs_fault faults[HFS_FAULTS_MAX];
    unsigned fault_count;
    hf_ms duration; /* of the faults */
    bool faultless;
};

struct hfs_verdict {
    bool ok;
    char why[600];
    hf_ms time;     /* how long it took, virtually */
    uint64_t steps; /* of the world */
    struct hfs_check_counts counts;
    size_t tasks, final;
};

typedef void (*hfs_note_fn)(const char *line, void *arg);

/* Draws everything from the seed. The second leaves out what is rare, for whoever adds faults
 * of a certain kind: agents with other policies, pauses of an hour, hosts that come and go. */
void hfs_run_draw(struct hfs_run *run, uint64_t seed);
void hfs_run_draw_common(struct hfs_run *run, uint64_t seed);

/* For whoever draws otherwise: one more fault, anywhere in the history; and all of them in
 * their order. */
void hfs_run_add(struct hfs_run *run, struct hfs_random *dice, enum hfs_fault_kind kind);
void hfs_run_sort(struct hfs_run *run);

/* Lives through it. `note` may be NULL. */
struct hfs_verdict hfs_run(const struct hfs_run *run, hfs_note_fn note, void *arg);

const char *hfs_fault_name(enum hfs_fault_kind kind);

/* Whether it makes watches leave out events without a word. */
bool hfs_fault_loses_events(const struct hfs_fault *fault);

/* Puts one fault into effect at once (faults.c). What it leaves behind ends with
 * hfs_faults_heal. */
struct hfs_trouble;
struct hfs_trouble *hfs_trouble_new(struct hfs_cluster *cluster);
void hfs_trouble_free(struct hfs_trouble *trouble);
void hfs_trouble_make(struct hfs_trouble *trouble, const struct hfs_fault *fault);
void hfs_trouble_heal(struct hfs_trouble *trouble);

/* Lets time pass until everything is done (true), or an invariant is violated, or something is
 * late (sim/rest.h). `lossy`: watches may have left out events. */
bool hfs_run_come_to_rest(struct hfs_cluster *cluster, bool lossy, char *ret_why, size_t size);

#endif
