/* keeper.h - the parts of the keeper, and what they share.
 *
 * One thread, one epoll loop, no queue: what is to be done or told follows from the state of
 * the slots, so that nothing is lost when the link dies, hangs or is slow. Nothing in the loop
 * waits: not for the link, not for an agent, and not for a disk (which is the scribe's to wait
 * for), because the fence must fall on time. */
#ifndef AGENTD_KEEPER_KEEPER_H
#define AGENTD_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "agentd/keeper/protocol.h"
#include "io/sdnotify.h"

#define KEEPER_NEVER  INT64_MAX
#define KEEPER_MS     INT64_C(1000000)
#define KEEPER_SECOND INT64_C(1000000000)

#define KEEPER_INSTANCE_ENV "HOLDFAST_INSTANCE=" /* what an agent's children inherit */

/* A process that is to be stopped or was. */
struct keeper_stopped {
    pid_t pid;
    uint64_t start_time;
    int64_t switches; /* of its threads, at the last look; -1: there was none */
    bool was_stopped; /* by itself, before we came: it is not to be continued */
    bool is_seen;     /* in the present scan */
};

enum keeper_goal { GOAL_RUN, GOAL_STILL, GOAL_GONE };

/* One process tree: an agent's instance. */
struct keeper_slot {
    struct agentd_agent a; /* what the link is told */
    char *blob;            /* a.blob_len bytes */
    enum keeper_goal goal;
    bool released;   /* it was let go; the fence is for it */
    bool main_gone;  /* the first process was reaped, by us or by its shim */
    bool dirty;      /* the link has not heard of the latest change */
    bool forgotten;  /* the link does not want it any more; only its record is to be removed */
    bool unrecorded; /* its record on disk is older than the slot, ... */
    int64_t record_at;          /* ... and is written then; 0: not decided */
    bool is_put_off;            /* not before then: it could not be written */
    uint32_t flags;             /* AGENTD_SPAWN_... */
    int64_t kill_at;            /* END: when its grace is over; KEEPER_NEVER */
    int64_t kill_latest;        /* ... however often it is extended */
    int64_t freeze_since;       /* it is being stopped since then; 0: it stands */
    int freeze_looks;           /* ... and somebody was found so often who resists */
    int64_t kill_since;         /* SIGKILL is being sent since then; 0 */
    int64_t look_at;            /* when a frozen or ending tree is to be looked at again */
    int64_t gone_ns;            /* the whole tree was gone; its output may still be under way */
    int pidfd;                  /* of the first process; -1 */
    int gate_fd;                /* the held child waits at its other end; -1 */
    int exec_fd;                /* ends when exec succeeds; else brings the error; -1 */
    int tell_fd;                /* what is written here is on its stdin; -1 */
    char told[AGENTD_ID_BYTES]; /* id of what was written there last */
    int log_fds[2];             /* kept for a scribe that has to be started anew; -1 */
    bool log_open;              /* the scribe has them and has not seen their end */
    bool log_due;               /* the scribe is still to be given them */
    uint32_t key;  /* names the slot in the loop and to the scribe; never used twice */
    int cgroup_fd; /* the directory; -1 behind a shim */
    pid_t shim;    /* 0 in a cgroup */
    uint64_t shim_start;
    int shim_fd;
    bool shim_gone;
    size_t oom_from;    /* how many the kernel log had named before it was made */
    int64_t oom_before; /* how many of our cgroup were killed for memory before; -1: unknown */
    int64_t oom_own_sample, oom_own_before; /* of its own: when looked at last, and before */
    struct keeper_stopped *stopped;
    size_t stopped_count, stopped_cap;
    int looks_due; /* without a find, after somebody was found outside its cgroup */
};

/* A descriptor that outlives the link that gave it. */
struct keeper_held {
    struct keeper_held *next;
    int fd;
    bool dirty; /* the link has not got it */
    char agent[AGENTD_NAME_BYTES];
};

/* What /proc said, in one look. */
struct keeper_process {
    pid_t pid, ppid, session;
    uint64_t start_time;
    char state;
    int threads;
    int32_t owner; /* index of a slot, or OWNER_... */
    bool is_still; /* nothing of it has run since the scan before */
    bool is_loose; /* it was not told to stand before this scan, or has run since the last */
};

enum {
    OWNER_NONE = -1,
    OWNER_STRAY = -2,  /* a child of ours that we did not make */
    OWNER_ABOVE = -3,  /* its parent's */
    OWNER_UNSURE = -4, /* it could not be looked at now */
};

struct keeper_scan {
    struct keeper_process *list; /* by growing pid */
    size_t count, cap;
    bool is_cut;    /* for want of memory or descriptors: somebody may not be in it */
    bool is_unsure; /* of somebody, whose it is: OWNER_UNSURE */
};

/* What a service manager knows of us. */
enum keeper_service {
    SERVICE_UNKNOWN,
    SERVICE_WAITING,
    SERVICE_HELD,
    SERVICE_FENCED,
    SERVICE_STOPPING,
};

struct keeper {
    char **argv; /* as agentd got it; the link gets it, too */
    char state_dir[AGENTD_PATH_BYTES];
    char boot_id[AGENTD_BOOT_BYTES];
    pid_t oom_pids[64]; /* that the kernel log named as killed for memory, a ring */
    size_t oom_count;
    int oom_fd;            /* counts those of our cgroup; -1 */
    int64_t oom_sample;    /* that count, ... */
    int64_t oom_sampled;   /* ... as it was then */
    size_t oom_next;       /* whose own cgroup is looked at next */
    bool oom_is_told;      /* the kernel log names them as we know them */
    int state_fd, lock_fd; /* the state directory, and its lock */
    int epoll_fd, signal_fd, fence_fd, kmsg_fd;
    int cgroup_fd;        /* base directory of the agents' cgroups; -1: shims */
    char cgroup_name[64]; /* of that: "/holdfast-.../" */
    int oom_score;        /* of those that are not the keeper; INT32_MIN: untouched */
    int nice;             /* of the agents, unless their launcher says otherwise, ... */
    struct rlimit files;  /* ... and how many files they may open; the keeper may open more */
    uint32_t flags;       /* AGENTD_HAS_... */
    pid_t pid;
    uint64_t born; /* start time of its first child, as /proc has it */

    struct agentd_page *page;
    int64_t armed_ns; /* the fence timer is set to; 0: to nothing */
    int page_fd;
    int kept_fd; /* -1: none */

    int link_fd;
    pid_t link;
    uint32_t link_starts;
    int64_t link_at;      /* when to start the next one; KEEPER_NEVER: it runs */
    int64_t link_started; /* when the latest was */
    int64_t link_delay;
    int64_t link_heard;       /* when it last said anything */
    int64_t link_answer_by;   /* it was asked whether it lives; KEEPER_NEVER: it was not */
    uint64_t last_id;         /* of a request of this link */
    uint64_t signals;         /* bit n: signal n is to be told */
    struct agentd_reply *out; /* a reply that the socket did not take yet */
    char *in;                 /* a request as it was read, ... */
    int in_fd;                /* ... and the descriptor that came with it; -1 */
    struct keeper_held *held;
    size_t held_count;
    int64_t link_lost; /* since then no link is ready, though one was; 0 */
    struct agentd_lease_state lease;
    int64_t lost_lease_id;
    char *memo;
    uint32_t memo_len;
    int stop_signals; /* SIGTERM and SIGINT so far, ... */
    int stop_signal;  /* ... and the latest of them */

    int scribe_fd;
    pid_t scribe;
    int64_t scribe_at; /* when to start the next one; KEEPER_NEVER: it runs */
    int64_t record_at; /* our own files are not written before then: they could not be */

    struct hf_sdnotify service;
    enum keeper_service service_told;
    int64_t watchdog_at; /* when to say that the loop turns */
    int64_t service_end; /* until then it was asked to wait for our end */

    struct keeper_slot **slots;
    size_t slot_count, slot_cap;
    int64_t forgotten_gone_ns; /* when the latest was gone of those that are forgotten */
    struct keeper_scan scan;
    int64_t stop_until; /* when everything has ended: wait so long for the link's FORGETs */
    uint32_t last_key;
    int exit_code;
    bool stopping;
    bool link_blocked;   /* its socket took no more; nothing is read meanwhile */
    bool link_ready;     /* this one has said READY */
    bool link_was_ready; /* one has */
    bool hello_due, synced_due, reply_due, ask_due;
    bool lease_unrecorded, link_unrecorded;
    pid_t link_failed; /* the latest that ended before it was ready, if none was since; 0 */
    int link_failed_code;
};

/* proc.c - small things about processes and files. */
int64_t keeper_now(void); /* CLOCK_BOOTTIME in ns, read afresh */
void keeper_log(const char *level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* From now on the scribe at the other end writes the lines; -1: we do. */
void keeper_log_through(int scribe_fd);
ssize_t keeper_read_at(int dir_fd, const char *name, char *buf, size_t size); /* with a NUL */
int keeper_write_at(int dir_fd, const char *name, const char *text); /* -errno on failure */
/* Over what the file holds, which a disk without room takes as well; -errno on failure. */
int keeper_overwrite(int fd, const char *text);
bool keeper_read_stat(pid_t pid, struct keeper_process *ret);
/* Whether a thread of it runs or could, and how often they were given and left a processor, all
 * together; false when it is gone. */
bool keeper_read_threads(pid_t pid, bool *ret_runs, int64_t *ret_switches);
bool keeper_is_blocked(pid_t pid); /* a thread of it is, in the kernel, or it is gone */
typedef void (*keeper_number_fn)(pid_t number, void *arg);
/* Calls for each entry of a directory of /proc that is a number; false: it cannot be read. */
bool keeper_each_number(const char *path, keeper_number_fn fn, void *arg);
/* Sends the signal if that very process still is there. */
bool keeper_signal(pid_t pid, uint64_t start_time, int signal);
void keeper_close(int *fd);
/* So many files are left that it can look at everybody, and start a link, whatever it was given
 * to hold. Asked before it takes anything that stays. */
bool keeper_has_spare_files(void);
/* In a forked child: closes all but these (-1 are skipped) and 0, 1, 2. */
void keeper_keep_only(int *fds, size_t count);
void keeper_reset_signals(void);                            /* in a forked child */
void keeper_copy(char *out, size_t size, const char *text); /* zero-padded, cut if need be */

/* slot.c - the table of process trees, and where each of them is going. */
struct keeper_slot *keeper_slot_new(struct keeper *k, const struct agentd_who *who);
void keeper_slot_free(struct keeper *k, struct keeper_slot *s);
struct keeper_slot *keeper_slot_find(struct keeper *k, const struct agentd_who *who);
struct keeper_slot *keeper_slot_by_key(struct keeper *k, uint32_t key);
void keeper_slot_changed(struct keeper_slot *s, enum agentd_state state);
void keeper_slot_freeze(struct keeper *k, struct keeper_slot *s);
void keeper_slot_thaw(struct keeper *k, struct keeper_slot *s);
void keeper_slot_end(struct keeper *k, struct keeper_slot *s, int signal, int64_t grace_ns);
/* It says that it needs longer: never less than it has. False: it was not asked to end. */
bool keeper_slot_extend(struct keeper_slot *s, int64_t grace_ns);
void keeper_slot_kill(struct keeper *k, struct keeper_slot *s, uint32_t cause);
/* The first process is gone. ru may be NULL; so may status, when nobody knows it. */
void keeper_slot_main_gone(struct keeper *k, struct keeper_slot *s, const int *status,
                           const struct rusage *ru);
/* Takes every tree a step towards its goal; returns when to look again. */
int64_t keeper_settle(struct keeper *k, int64_t now);
/* Removes what the ended leave behind; nobody waits for that, so the link is told before. */
void keeper_tidy(struct keeper *k);

/* child.c - makes a process, holds it, lets it go. */
int keeper_spawn(struct keeper *k, const struct agentd_spawn *m, const char **ret_why);
int keeper_release(struct keeper *k, struct keeper_slot *s, const struct agentd_release *m);
void keeper_on_exec(struct keeper *k, struct keeper_slot *s);
/* Writes all of it to its stdin, or nothing: -EAGAIN, or -EPIPE where nobody reads. */
int keeper_tell(struct keeper_slot *s, const struct agentd_tell *m);

/* What a child needs to become an agent. */
struct keeper_plan {
    const struct agentd_spawn *spawn;
    int gate_fd, exec_fd, in_fd, out_fd, err_fd;
    int oom_score;
    int nice;
    struct rlimit files;
    pid_t parent;
};
_Noreturn void keeper_child_main(struct keeper_plan *plan);

/* shim.c - the subreaper of one agent, where there is no cgroup. */
struct keeper_shim_news {
    pid_t pid;     /* of the agent's first process */
    int32_t gone;  /* 0: it was made; 1: it has ended */
    int32_t error; /* fork failed */
    int32_t status;
    struct rusage rusage;
};
_Noreturn void keeper_shim_main(int keeper_fd, struct keeper_plan *plan);
void keeper_on_shim(struct keeper *k, struct keeper_slot *s);

/* owner.c - the slot that it belongs to; never OWNER_STRAY. */
int32_t keeper_owner_find(const struct keeper *k, const struct keeper_process *process);
/* Whether the keeper has children that it did not make, or may have. */
bool keeper_has_orphans(const struct keeper *k);

/* tree.c - all processes of an agent: found, stopped, continued, killed. */
/* What a look at everybody need not be waited for: all in its cgroup are told to stand. */
void keeper_tree_halt(struct keeper *k, struct keeper_slot *s);
/* Looks at every process there is; stops or kills, as it comes by, those of the trees that are
 * to be looked at now. */
void keeper_scan(struct keeper *k, int64_t now);
void keeper_scan_nobody(struct keeper *k); /* what the last scan has found counts no more */
/* True: it stands still. Else it may run on, or it can only end what it does in the kernel. */
bool keeper_tree_freeze(struct keeper *k, struct keeper_slot *s, bool *ret_may_run);
bool keeper_tree_thaw(struct keeper *k, struct keeper_slot *s); /* true: runs */
/* How many were left to be killed, 0 when the tree is gone; with a cgroup, kills them. */
size_t keeper_tree_kill(struct keeper *k, struct keeper_slot *s);
/* SIGKILL to everything under a process, but not to itself; returns how many that were. */
size_t keeper_tree_kill_below(struct keeper_scan *scan, pid_t root);
struct keeper_stopped *keeper_stopped_find(const struct keeper_slot *s,
                                           const struct keeper_process *process);

/* cgroup.c - one cgroup v2 per agent. */
void keeper_cgroup_init(struct keeper *k);
void keeper_cgroup_done(struct keeper *k);
int keeper_cgroup_make(struct keeper *k, struct keeper_slot *s, const struct agentd_spawn *m);
int keeper_cgroup_enter(int cgroup_fd, pid_t pid);
void keeper_cgroup_remove(struct keeper *k, struct keeper_slot *s);
bool keeper_cgroup_is_populated(int cgroup_fd); /* so is one that cannot be read */
/* 1: all in it stand, as the kernel says; 0: it is told to; -errno: it could not be told. */
int keeper_cgroup_freeze(int cgroup_fd);
bool keeper_cgroup_thaw(int cgroup_fd); /* true: they run, as the kernel says */
/* Somebody may have moved the first process elsewhere: then it is moved back. */
void keeper_cgroup_take_back(const struct keeper *k, const struct keeper_slot *s);
/* The slot in whose cgroup it is, or in one below; OWNER_NONE. */
int32_t keeper_cgroup_find(const struct keeper *k, pid_t pid);
/* All in it at once, but for those whose first thread is gone: the kernel sends the signal to
 * that alone. They are for the second time. */
void keeper_cgroup_kill(int cgroup_fd, bool again);
/* What counts those in our own cgroup that were killed for memory, in v1 or v2; -1: nothing. */
int keeper_cgroup_open_memory(void);
void keeper_cgroup_empty_old(struct keeper *k); /* what a crashed keeper left */

/* fence.c - the deadline. */
int keeper_fence_init(struct keeper *k);
bool keeper_fence_has_passed(struct keeper *k);
int64_t
keeper_fence_get(struct keeper *k); /* the deadline; 0: none, or one that makes no sense */
void keeper_fence_check(struct keeper *k);

/* oom.c - was it the kernel, for memory? */
void keeper_oom_init(struct keeper *k);
void keeper_oom_begin(struct keeper *k, struct keeper_slot *s); /* it is about to be made */
void keeper_oom_sample(struct keeper *k);                       /* now and then */
bool keeper_oom_killed(struct keeper *k, struct keeper_slot *s);
/* How many of its own cgroup were killed for memory; 0 where nobody counts them. */
int64_t keeper_oom_count(const struct keeper_slot *s);

/* link.c and request.c - the other half of agentd. */
int keeper_link_start(struct keeper *k);
void keeper_link_ended(struct keeper *k, int status);
void keeper_link_read(struct keeper *k);
void keeper_link_flush(struct keeper *k);
/* Whoever does not answer until then is killed, and another one comes. */
void keeper_link_ask(struct keeper *k, int64_t answer_by);
/* Asks whoever was silent for too long; returns when to look again. */
int64_t keeper_link_watch(struct keeper *k, int64_t now);
_Noreturn void keeper_link_exec(char **argv);
uint32_t keeper_request(struct keeper *k, const void *data, const char **ret_why);
void keeper_shutdown(struct keeper *k, int code, int64_t grace_ns);

/* hold.c - descriptors that are kept from link to link. */
uint32_t keeper_hold(struct keeper *k, const char *agent, int fd, const char **ret_why);
void keeper_let(struct keeper *k, const char *agent);
void keeper_let_all(struct keeper *k);
/* Nobody who sends shall wait for a link that does not come: without one for long, what has
 * arrived is thrown away. Returns when to look again. */
int64_t keeper_held_drain(struct keeper *k, int64_t now);

/* dictate.c and scribe.c - a process that does all that could wait for a disk: logs and
 * records. */
int keeper_scribe_start(struct keeper *k);
void keeper_scribe_close(struct keeper *k); /* it goes when it has done what it was told */
void keeper_scribe_ended(struct keeper *k);
void keeper_scribe_read(struct keeper *k);
/* Hands over what is due, without waiting; returns when there will be more. */
int64_t keeper_scribe_flush(struct keeper *k, int64_t now);
/* Hands over all that is due, and waits for a scribe that is slow, but not for ever. */
void keeper_scribe_finish(struct keeper *k);

/* state.c - the state directory. */
int keeper_state_open(struct keeper *k);
void keeper_state_recover(struct keeper *k); /* ends what a crashed keeper left */
/* The directory of the records, which the scribe has locked while it lives; or -1. */
int keeper_state_open_run(const struct keeper *k);
/* Builds the file that stands for the slot; returns its length. */
size_t keeper_state_encode(const struct keeper_slot *s, char *buf, size_t size);

/* service.c - what a service manager is told. */
void keeper_service_init(struct keeper *k);
/* Says what is new; returns when there will be more. */
int64_t keeper_service_tell(struct keeper *k, int64_t now);

/* signals.c - what agentd gets: some for the link, some for agents, the rest for nobody. */
int keeper_signals_open(struct keeper *k);
void keeper_signals_read(struct keeper *k);

/* main.c - the loop. */
enum { WATCH_SIGNAL = 1, WATCH_FENCE, WATCH_LINK, WATCH_SCRIBE, WATCH_EXEC, WATCH_SHIM };
void keeper_watch(struct keeper *k, int fd, uint32_t kind, uint32_t key);

#endif
