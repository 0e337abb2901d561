/* fleet.h - what is known of hosts, agents, roles and tasks, built from what etcd told.
 *
 * An index, nothing more: it decides nothing and forgets nothing that stands in etcd. Every
 * look-up is O(1), every change costs the same however large the fleet is, and every object
 * that a change concerns is reported, so that somebody can look at it again. Pure; all memory
 * is its own, and a change that finds none leaves everything as it was (HF_ENOMEM).
 *
 * An object comes to be with the first key, task or command that names it, and goes with the
 * last: an agent that owns a task is known, even when nothing else is known of it. */
#ifndef HF_CORE_FLEET_H
#define HF_CORE_FLEET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "core/index.h"
#include "core/rows.h"

struct hf_fleet;
struct hf_agent;
struct hf_host;
struct hf_role;
struct hf_task;
struct hf_command;
struct hf_root;
struct hf_rooted;
struct hf_reader;
struct hf_waiting;

/* One key: how it was last seen, and its record; all zero while it does not exist. */
struct hf_cell {
    struct hf_seen seen; /* without its text, unless it is a record that we write again */
    ProtobufCMessage *record;
};

/* Likewise, of a record that only others write: nobody needs its text. */
struct hf_lean_cell {
    struct {
        int64_t create_rev;
        int64_t mod_rev;
        int64_t lease;
    } seen;
    ProtobufCMessage *record;
};

static inline struct hf_seen hf_lean_cell_seen(const struct hf_lean_cell *cell)
{
    return (struct hf_seen){ .create_rev = cell->seen.create_rev,
                             .mod_rev = cell->seen.mod_rev,
                             .lease = cell->seen.lease };
}

/* What was seen of lives that are over. Most agents have none: it is made with the first. */
struct hf_past {
    struct hf_lean_cell live; /* the live key of the last life whose end was seen */
    hf_ms gone_at;            /* when the deletion of a live key was last seen ... */
    int64_t gone_rev;         /* ... if this is not 0: when the life that ended was created */
};

/* Every object begins with its name (core/index.h), and with what changes most often. Read-only
 * for others, except what `user` points to: it is the engine's, allocated with the object
 * (user_size), and the fleet looks no further; in a command, `user` itself is. */

struct hf_agent {
    const char *name;
    void *user;
    struct hf_lean_cell report, live, spec, exit;
    struct hf_cell wanted, health;
    struct hf_past *past;        /* NULL while no end of a life was seen */
    struct hf_role *role;        /* by its spec; NULL without one */
    struct hf_host *host;        /* where it lives; NULL while it does not */
    struct hf_task *tasks;       /* that it owns; next_owned */
    struct hf_command *commands; /* starts that are outstanding, one at most if all is well */
    struct hf_agent *next_in_role, **at_in_role;
    struct hf_agent *next_on_host, **at_on_host;
};

/* A host has one or two; what a record names beyond this is not taken to be read there. */
enum { HF_HOST_ROOTS = 64 };

struct hf_host {
    const char *name;
    void *user;
    struct hf_cell live, record;
    hf_ms live_gone_at;        /* when the deletion of live was seen; valid without live ... */
    int64_t live_gone_rev;     /* ... if this is not 0: when what ended was created */
    struct hf_command *starts; /* outstanding here; next_here */
    struct hf_agent *lives;    /* agents that live here; next_on_host */
    size_t agents;             /* how many they are */
    size_t commands;           /* how many starts */
    struct hf_reader *readers; /* one for each root that its record names */
    size_t reader_count;
};

struct hf_task {
    const char *name;
    void *user;
    struct hf_cell task, recovery;
    struct hf_agent *owner; /* while it is acknowledged or in progress; else NULL */
    struct hf_role *role;
    struct hf_task *next_owned, **at_owned;     /* in owner->tasks */
    struct hf_task *next_pending, **at_pending; /* in role->pending; at is NULL if it is not */
    struct hf_waiting *waiting;                 /* while it is pending and has a root */
    bool runs;                                  /* and in its role's count of those that run */
};

/* Exists while an agent or a task names it. */
struct hf_role {
    const char *name;
    void *user;
    struct hf_agent *agents; /* next_in_role */
    struct hf_task *pending; /* next_pending */
    size_t agent_count, live_count, pending_count;
    size_t stranded_count;   /* of the pending: no host that is open reads their files */
    size_t running_count;    /* tasks that are pending, acknowledged or in progress */
    size_t users;            /* agents and tasks that refer to it */
    struct hf_index rooted;  /* struct hf_rooted, by the ids of the roots */
    struct hf_rooted *calls; /* those that only lack an agent; next_call */
};

/* Files that not every host can read. Exists while a host or a pending task names it. */
struct hf_root {
    const char *name;          /* its id */
    struct hf_reader *readers; /* hosts that are open and read it; next_open */
    struct hf_rooted *roles;   /* next_of_root */
    size_t users;              /* readers, open or not, and roles */
};

/* A host that reads a root. */
struct hf_reader {
    struct hf_root *root;
    struct hf_host *host;
    struct hf_reader *next_open, **at_open; /* in root->readers; at is NULL if it is not */
};

/* A role and a root. Exists while it counts anything. */
struct hf_rooted {
    const char *name; /* the id of the root */
    struct hf_role *role;
    struct hf_root *root;
    struct hf_waiting *tasks; /* that are pending */
    size_t pending_count;
    size_t live_count; /* agents of that role, live on hosts that read it, open or not; one
                          counts as often as its host's record says so */
    size_t stranded;   /* what it adds to its role's stranded_count */
    struct hf_rooted *next_of_root, **at_of_root;
    struct hf_rooted *next_call, **at_call; /* at is NULL if it is not in role->calls */
};

/* A task that waits for an agent where its files are. */
struct hf_waiting {
    struct hf_task *task;
    struct hf_rooted *rooted;
    struct hf_waiting *next, **at; /* in rooted->tasks */
};

struct hf_command {
    struct hf_cell command;
    struct hf_agent *agent;
    struct hf_host *host;
    struct hf_command *next, **at;           /* in agent->commands */
    struct hf_command *next_here, **at_here; /* in host->starts */
    struct {
        int64_t rev; /* of the command that was looked at, */
        hf_ms at;    /* and when it first was */
    } user;
};

enum hf_fleet_kind { HF_FLEET_AGENT, HF_FLEET_HOST, HF_FLEET_TASK, HF_FLEET_ROLE };

enum { HF_FLEET_KINDS = HF_FLEET_ROLE + 1 };

/* Something that concerns this object has changed, or (hf_fleet_each) here it is. It must not
 * change the fleet. What is touched is touched amid the change: remember it, and look at it
 * when hf_fleet_apply has returned. */
typedef void (*hf_fleet_fn)(enum hf_fleet_kind kind, void *object, void *arg);

/* The object is about to be freed: forget it. */
typedef void (*hf_fleet_gone_fn)(enum hf_fleet_kind kind, void *object, void *arg);

struct hf_fleet_config {
    hf_fleet_fn on_touched;
    hf_fleet_gone_fn on_gone; /* may be NULL */
    void *arg;
    uint64_t seed; /* random, because others choose the names */
    /* Bytes that come with every object of a kind: zeroed, `user` points to them. */
    size_t user_size[HF_FLEET_KINDS];
};

struct hf_fleet *hf_fleet_new(const struct hf_fleet_config *cfg); /* NULL: no memory */
void hf_fleet_free(struct hf_fleet *fleet);

/* One change of one key. */
struct hf_fleet_change {
    struct hf_key key;
    struct hf_seen seen;      /* of a put; its text is copied where a rewrite will need it */
    ProtobufCMessage *record; /* of a put: made by hf_json_decode; NULL: the key was deleted */
    hf_ms at;                 /* when we learned of it */
};

/* Takes the change in; on success the record belongs to the fleet. Kinds of keys that say
 * nothing about the objects above (events, bodies, checkpoints, pending entries) are ignored,
 * and their records freed; so is the deletion of what is not known. What a change touches:
 *
 *     spec                     the agent, and the roles that it leaves and joins
 *     live                     the agent, and the hosts that it leaves and joins; its role when
 *                              it comes or goes; its tasks when another life begins or one ends
 *     exit                     the agent and its tasks
 *     report, wanted, health   the agent
 *     host live                the host; the agents with a start there when it comes or goes
 *     host record              the host
 *     task                     the task, its roles, and the agents that lose and get it
 *     recovery                 the task
 *     command                  its agent and its host
 *
 * On failure (HF_ENOMEM) nobody is told anything. */
int hf_fleet_apply(struct hf_fleet *fleet, const struct hf_fleet_change *change) HF_MUST_CHECK;

/* Forgets everything, as after a history reset. All objects are reported gone, in a fleet that
 * is still whole, before the first is freed. */
void hf_fleet_clear(struct hf_fleet *fleet);

/* Borrowed; NULL when it is not known. */
struct hf_agent *hf_fleet_get_agent(const struct hf_fleet *fleet, const char *name);
struct hf_host *hf_fleet_get_host(const struct hf_fleet *fleet, const char *name);
struct hf_task *hf_fleet_get_task(const struct hf_fleet *fleet, const char *name);
struct hf_role *hf_fleet_get_role(const struct hf_fleet *fleet, const char *name);
const struct hf_root *hf_fleet_get_root(const struct hf_fleet *fleet, const char *id);

/* Singletons; a cell without a record when they do not exist. */
const struct hf_cell *hf_fleet_get_meta(const struct hf_fleet *fleet);
const struct hf_cell *hf_fleet_get_clock(const struct hf_fleet *fleet);
const struct hf_cell *hf_fleet_get_leader(const struct hf_fleet *fleet);

struct hf_fleet_counts {
    size_t agents, live_agents, hosts, live_hosts, tasks, roles, commands;
};

struct hf_fleet_counts hf_fleet_get_counts(const struct hf_fleet *fleet);

/* Visits every object of a kind, in no particular order; `fn` must not change the fleet. */
void hf_fleet_each(const struct hf_fleet *fleet, enum hf_fleet_kind kind, hf_fleet_fn fn,
                   void *arg);

/* The records with their types; NULL when there is none. */
static inline const Holdfast__V1__Spec *hf_agent_spec(const struct hf_agent *agent)
{
    return (const Holdfast__V1__Spec *)agent->spec.record;
}
static inline const Holdfast__V1__Live *hf_agent_live(const struct hf_agent *agent)
{
    return (const Holdfast__V1__Live *)agent->live.record;
}
static inline const Holdfast__V1__Live *hf_agent_past(const struct hf_agent *agent)
{
    return agent->past != NULL ? (const Holdfast__V1__Live *)agent->past->live.record : NULL;
}
/* When the life that it was the live key of was created; 0 where there is none. */
static inline int64_t hf_agent_past_rev(const struct hf_agent *agent)
{
    return agent->past != NULL ? agent->past->live.seen.create_rev : 0;
}
/* When the life was created whose end was last seen, and when that was; 0: none was. */
static inline int64_t hf_agent_gone_rev(const struct hf_agent *agent)
{
    return agent->past != NULL ? agent->past->gone_rev : 0;
}
static inline hf_ms hf_agent_gone_at(const struct hf_agent *agent)
{
    return agent->past != NULL ? agent->past->gone_at : 0;
}
static inline const Holdfast__V1__Exit *hf_agent_exit(const struct hf_agent *agent)
{
    return (const Holdfast__V1__Exit *)agent->exit.record;
}
static inline const Holdfast__V1__Wanted *hf_agent_wanted(const struct hf_agent *agent)
{
    return (const Holdfast__V1__Wanted *)agent->wanted.record;
}
static inline const Holdfast__V1__Health *hf_agent_health(const struct hf_agent *agent)
{
    return (const Holdfast__V1__Health *)agent->health.record;
}
static inline const Holdfast__V1__Host *hf_host_record(const struct hf_host *host)
{
    return (const Holdfast__V1__Host *)host->record.record;
}
static inline const Holdfast__V1__Task *hf_task_record(const struct hf_task *task)
{
    return (const Holdfast__V1__Task *)task->task.record;
}
/* Where its newest checkpoint lies; NULL: every host may go on with it. */
static inline const Holdfast__V1__Root *hf_record_root(const Holdfast__V1__Task *record)
{
    return record != NULL && record->root != NULL && !record->root->lost ? record->root : NULL;
}
static inline const Holdfast__V1__Root *hf_task_root(const struct hf_task *task)
{
    return hf_record_root(hf_task_record(task));
}
/* Whether something may be started there. */
static inline bool hf_host_is_open(const struct hf_host *host)
{
    const Holdfast__V1__Host *record = hf_host_record(host);

    return record != NULL && host->live.record != NULL && !record->left && !record->cordoned;
}
static inline const Holdfast__V1__Recovery *hf_task_recovery(const struct hf_task *task)
{
    return (const Holdfast__V1__Recovery *)task->recovery.record;
}

#endif
