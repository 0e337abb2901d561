/* keeper.h - a real agentd keeper, with the test as its link.
 *
 * The program that the keeper starts as its link relays every packet to the test, so the test
 * speaks for the link, and the link can be killed and stopped like the real one. */
#ifndef HFT_KEEPER_H
#define HFT_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

#include "agentd/keeper/protocol.h"
#include "base/clock.h"
#include "support/tempdir.h"

/* How a keeper holds its trees. */
enum hft_keeper_mode {
    HFT_KEEPER_CGROUP, /* needs root */
    HFT_KEEPER_SHIM,
    HFT_KEEPER_NOBODY, /* shims, and no rights; needs root to become nobody */
    HFT_KEEPER_MODES,
};

#define HFT_KEEPER_TREES 64

struct hft_keeper {
    enum hft_keeper_mode mode;
    struct hft_tempdir dir; /* .path/state is the state directory */
    char state[HFT_PATH_MAX + 16];
    char agentd[HFT_PATH_MAX + 16], relay[HFT_PATH_MAX + 16]; /* the programs */
    pid_t pid;                                                /* of the keeper */
    int listener;                                             /* links connect here */
    int link;       /* the link that is connected; -1 */
    pid_t link_pid; /* its process */
    struct agentd_page *page;
    struct agentd_hello hello;
    char memo[AGENTD_MEMO_MAX];
    bool is_synced;
    uint64_t last_id;
    unsigned asked; /* how often it was asked whether it lives, ... */
    bool is_mute;   /* ... which it does not say */
    uint64_t alive_id;
    int signal;                   /* the latest that the keeper told */
    char held[AGENTD_NAME_BYTES]; /* whose descriptor was handed over last, ... */
    int held_fd;                  /* ... and that; -1 */
    struct agentd_reply reply;
    struct agentd_agent trees[HFT_KEEPER_TREES]; /* as the keeper told them last */
    char blob[AGENTD_BLOB_MAX];                  /* of the latest */
    size_t tree_count;
};

/* False, with the reason on stdout, when this machine cannot do it. */
bool hft_keeper_can(enum hft_keeper_mode mode);

void hft_keeper_init(struct hft_keeper *k, enum hft_keeper_mode mode);
void hft_keeper_done(struct hft_keeper *k); /* kills what still runs */

/* Starts agentd in the same state directory; waits for its link, which is READY then. */
void hft_keeper_start(struct hft_keeper *k);

/* All of the above, with a fence that is far away; false when this machine cannot do it. */
bool hft_keeper_begin(struct hft_keeper *k, int mode);

/* Waits for the next link, takes the hand-over and says READY. */
void hft_keeper_accept(struct hft_keeper *k);

/* Moves the fence deadline to so long from now. */
void hft_keeper_extend(struct hft_keeper *k, hf_ms from_now);

/* Sends a packet as it is; takes news until its reply, and returns that reply's code. */
uint32_t hft_keeper_raw(struct hft_keeper *k, const void *packet, size_t len);

struct hft_keeper_spawn {
    const char *agent, *instance;
    const char *script;  /* for /bin/sh -c, with $D as a scratch directory; or ... */
    const char *program; /* ... a program without arguments */
    uint32_t fence, flags;
    uint32_t uid;        /* 0: as agentd */
    uint64_t memory_max; /* bytes; 0: no limit */
};

/* For a script: children that left for another session and another parent. */
#define HFT_KEEPER_ESCAPE                                                                      \
    "(setsid sh -c 'sleep 1000 & echo $! > $D/deep; (setsid sleep 1000 & echo $! > "           \
    "$D/deeper);"                                                                              \
    " echo $$ > $D/escaped; wait' &); while ! test -s $D/escaped; do sleep 0.01; done; "

/* Each returns the code of the reply. */
uint32_t hft_keeper_spawn(struct hft_keeper *k, const struct hft_keeper_spawn *spawn);
uint32_t hft_keeper_release(struct hft_keeper *k, const char *agent, const char *instance);
uint32_t hft_keeper_order(struct hft_keeper *k, uint16_t type, const char *agent,
                          const char *instance);
uint32_t hft_keeper_end(struct hft_keeper *k, const char *agent, const char *instance,
                        uint32_t grace_ms);
uint32_t hft_keeper_extend_grace(struct hft_keeper *k, const char *agent, const char *instance,
                                 uint32_t grace_ms);
uint32_t hft_keeper_shutdown(struct hft_keeper *k, uint32_t code, uint32_t grace_ms);

/* HOLD or LET; -1: no descriptor goes along. */
uint32_t hft_keeper_hold(struct hft_keeper *k, uint16_t type, const char *agent, int fd);

/* SPAWN, wait for HELD, RELEASE, wait for RUNNING (or its end); returns the tree. */
struct agentd_agent *hft_keeper_run(struct hft_keeper *k, const char *agent,
                                    const char *instance, const char *script);

/* The tree as it was told last; NULL: it was not. */
struct agentd_agent *hft_keeper_tree(struct hft_keeper *k, const char *instance);

/* Takes news until it is in that state. */
struct agentd_agent *hft_keeper_wait(struct hft_keeper *k, const char *instance,
                                     enum agentd_state state);

/* Takes one packet; false when none came in time or the link is gone. */
bool hft_keeper_take(struct hft_keeper *k, hf_ms timeout);

/* Stops the link's process; SIGCONT to link_pid lets it go on. */
void hft_keeper_pause_link(struct hft_keeper *k);

/* The file in the scratch directory as a number, 0 while there is none. */
long hft_keeper_number(struct hft_keeper *k, const char *file);
void hft_keeper_wait_file(struct hft_keeper *k, const char *file);
bool hft_keeper_has_file(const struct hft_keeper *k, const char *file);
void hft_keeper_make_file(const struct hft_keeper *k, const char *file);

/* Lets renewals pass for so long that who was killed for memory before was killed long ago. */
void hft_keeper_pass_renewals(struct hft_keeper *k);

/* Where cgroup v2 is mounted; false: nowhere. */
bool hft_keeper_find_cgroups(char *ret_path, size_t size);
/* Takes it out of its cgroup, into the first of all. */
void hft_keeper_move_out(pid_t pid);

/* The state of a process as /proc has it, 0 when there is none. */
char hft_process_state(pid_t pid);

/* It has ended, whoever is to reap it. */
bool hft_process_is_gone(pid_t pid);
void hft_process_wait_gone(pid_t pid);

#endif
