/* scenario.h - an incident as a script, and the transcript of what the fleet did about it.
 *
 * A file under scenarios/ begins with a sentence that says what it shows (`#`), then has
 * blocks: what happens, a line `----`, and what was told of it, up to an empty line. The words
 * of the script stand in scenario_parse.c. Faults come only from the script; the checkers look
 * at every step as they do for random seeds, and in the end everything must come to rest. */
#ifndef HFS_SCENARIO_H
#define HFS_SCENARIO_H

#include <limits.h>

#include "base/buf.h"
#include "base/err.h"
#include "sim/cluster.h"
#include "sim/crash.h"

/* What a line of a script may say. In a pattern, words in capitals stand for values: NAME,
 * HOST (h1), CONTROLLER (c1, or `leader`), AGENT, COUNT, TIME (15s), PROGRAM, POLICY, STATE (of
 * a task), KEY, CHECKPOINT (t1/3). */
/* clang-format off */
#define HFS_SETUP(X)                                                                           \
    X(HOSTS,              "hosts COUNT")                                                       \
    X(CONTROLLERS,        "controllers COUNT")                                                 \
    X(SEED,               "seed COUNT")                                                        \
    X(NEW_AGENT,          "agent NAME role NAME on HOST")                                      \
    X(NEW_PROGRAM,        "agent NAME role NAME on HOST PROGRAM")                              \
    X(RESTART_POLICY,     "restart AGENT POLICY")                                              \
    X(HOLDS,              "agent AGENT holds")                                                 \
    X(STEPS,              "steps COUNT of TIME")                                               \
    X(KEEPS_ALL,          "checkpoint after every step")                                       \
    X(KEEPS_NONE,         "no checkpoints")                                                    \
    X(OWN_FILES,          "hosts share no files")                                              \
    X(RUNNING_MAX,        "at most COUNT tasks of a role run")                                 \
    X(EXPECTED,           "tasks should take TIME")                                            \
    X(HEARTBEATS,         "heartbeats every TIME")

#define HFS_ACTIONS(X)                                                                         \
    X(TASK,               "task NAME for NAME")                                                \
    X(TASK_QUEUED,        "task NAME for NAME queued")                                         \
    X(AGENT_CRASH,        "agent AGENT crash")                                                 \
    X(AGENT_STATUS,       "agent AGENT exit COUNT")                                            \
    X(AGENT_HANGS,        "agent AGENT hangs")                                                 \
    X(AGENT_STALLS,       "agent AGENT stalls")                                                \
    X(AGENT_PONDERS,      "agent AGENT stalls until it is asked")                              \
    X(HOST_CRASH,         "host HOST crash")                                                   \
    X(HOST_START,         "host HOST start")                                                   \
    X(HOST_LEAVE,         "host HOST leave")                                                   \
    X(HOST_LOST,          "person lost HOST")                                                  \
    X(HOST_CUT,           "host HOST cut")                                                     \
    X(HOST_DEAF,          "host HOST deaf")                                                    \
    X(HOST_HEAL,          "host HOST heal")                                                    \
    X(HOST_BREAK,         "host HOST starts nothing")                                          \
    X(HOST_SUSPEND,       "host HOST suspend TIME")                                            \
    X(LINK_CRASH,         "link HOST crash")                                                   \
    X(LINK_PAUSE,         "link HOST pause TIME")                                              \
    X(CONTROLLER_CRASH,   "controller CONTROLLER crash")                                       \
    X(CONTROLLER_START,   "controller CONTROLLER start")                                       \
    X(CONTROLLER_PAUSE,   "controller CONTROLLER pause TIME")                                  \
    X(CONTROLLER_CUT,     "controller CONTROLLER cut")                                         \
    X(CONTROLLER_HEAL,    "controller CONTROLLER heal")                                        \
    X(ETCD_STALL,         "etcd stall TIME")                                                   \
    X(ETCD_ELECT,         "etcd elect")                                                        \
    X(ETCD_REVOKE,        "etcd revoke all")                                                   \
    X(ETCD_REVOKE_HOST,   "etcd revoke HOST")                                                  \
    X(PERSON_STOP,        "person stop AGENT")                                                 \
    X(PERSON_START,       "person start AGENT")                                                \
    X(PERSON_RESTART,     "person restart AGENT")                                              \
    X(PERSON_RELEASE,     "person release AGENT")                                              \
    X(PERSON_CANCEL,      "person cancel NAME")                                                \
    X(PERSON_RETRY,       "person retry NAME")                                                 \
    X(PERSON_RETRY_LOST,  "person retry NAME without its files")                               \
    X(CORRUPT,            "checkpoint corrupt CHECKPOINT")                                     \
    X(LOSE,               "checkpoint lose CHECKPOINT")                                        \
    X(POISON,             "checkpoint poison CHECKPOINT")                                      \
    X(LATE_COPY,          "late copy of KEY")                                                  \
    X(HOLD,               "hold KEY")                                                          \
    X(RELEASE,            "release KEY")                                                       \
    X(WAIT,               "wait TIME")                                                         \
    X(WAIT_STATE,         "wait until NAME STATE")
/* clang-format on */

enum hfs_word {
#define X(name, pattern) HFS_WORD_##name,
    HFS_SETUP(X) HFS_ACTIONS(X)
#undef X
        HFS_WORDS, /* how many */
};

/* One line of the script. */
struct hfs_act {
    enum hfs_word word;
    unsigned line;
    char name[HFS_TEXT]; /* the agent, the task or the key, or the first NAME */
    char role[HFS_TEXT]; /* the second NAME */
    unsigned number;     /* of the host or controller, from 0; the COUNT; the checkpoint */
    int choice;          /* the PROGRAM, POLICY or STATE */
    hf_ms time;
};

#define HFS_LEADER UINT_MAX /* for the number of a controller: whoever leads by then */

struct hfs_block {
    char *script; /* as it stands in the file */
    char *told;   /* the transcript, as it stands there */
    size_t end;   /* of its acts */
};

struct hfs_scenario {
    struct hfs_cluster_config cluster;
    struct hfs_act *acts;
    size_t act_count, act_cap;
    struct hfs_block *blocks;
    size_t count, cap;
};

/* Reads a script; on failure err says in which line, and what would have been understood. */
int hfs_scenario_parse(struct hfs_scenario *scenario, const char *file, char *text,
                       struct hf_error *err) HF_MUST_CHECK;
void hfs_scenario_done(struct hfs_scenario *scenario);

/* Lives through it. *ret_text is the whole file as it should be (the caller frees it). False:
 * an invariant is violated, or it does not come to rest; `why` says so. */
bool hfs_scenario_run(const struct hfs_scenario *scenario, char **ret_text, char *why,
                      size_t size);

/* Likewise, with one process ended at one of its steps; *ret_steps, unless NULL, is how many it
 * made in all. Nothing is compared: the story may be another one. */
bool hfs_scenario_run_with(const struct hfs_scenario *scenario, const struct hfs_crash *crash,
                           uint64_t *ret_steps, char **ret_text, char *why, size_t size);

/* scenario_file.c */

/* Reads a file; false, with a reason on stderr. */
bool hfs_scenario_load(struct hfs_scenario *scenario, const char *path);

/* What is done with a file of scenarios/. */
enum hfs_scenario_use {
    HFS_SCENARIO_PRINT,  /* its transcript */
    HFS_SCENARIO_UPDATE, /* the expected part is written anew */
    HFS_SCENARIO_COMPARE /* what is different is printed */
};

/* False, with a reason on stderr: it cannot be read, something is violated, or (COMPARE) the
 * story is another one. */
bool hfs_scenario_file(const char *path, enum hfs_scenario_use use);

/* Calls `fn` for each file of a folder, by their names; returns how many there are. */
int hfs_scenario_each(const char *folder, void (*fn)(const char *path, void *arg), void *arg);

/* All of a folder. An empty folder is a failure, too. */
bool hfs_scenario_folder(const char *path, enum hfs_scenario_use use);

#endif
