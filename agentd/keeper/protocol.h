/* protocol.h - what the keeper and the link say to each other.
 *
 * The keeper (agentd) is the parent of the agents and of the link (agentd-link). It starts the
 * link with two descriptors and the command line that it was given itself:
 *
 *     AGENTD_LINK_FD   one end of an AF_UNIX SOCK_SEQPACKET pair: one packet is one message
 *     AGENTD_PAGE_FD   a memfd of AGENTD_PAGE_BYTES, to be mapped shared: struct agentd_page
 *     AGENTD_KEPT_FD   a memfd for what a link leaves to the next one; its own business
 *
 * Rules:
 *   - Every packet begins with struct agentd_head; `length` is the length of the whole packet.
 *     Numbers are in the byte order of the machine. What stands in reserved fields is 0.
 *   - Texts in fixed fields are NUL-terminated, and every byte after the NUL is 0.
 *   - The keeper speaks first: HELLO, then one AGENT for each process that it holds (ended ones
 *     that were not forgotten included), then SYNCED. Afterwards AGENT is sent whenever
 *     something about a process has changed.
 *   - AGENT is a state, not an event: it is the whole truth about one process at the moment of
 *     sending. A link that was slow sees the newest state only (held, then ended, without
 *     running in between: `begun_ns` tells whether the program ever began), but never misses
 *     the last one: an ended process stays until the link says FORGET.
 *   - The first request is READY. Every request has an id that is not 0 and gets exactly one
 *     REPLY with that id, in the order of the requests. A REPLY of 0 means accepted; the effect
 *     shows in a later AGENT, whose `order` is the id of the latest order (RELEASE, DISCARD,
 *     FREEZE, THAW, END, KILL) that the link gave to that process and `done_order` the latest
 *     that has taken its full effect. Ids must grow.
 *   - A request that breaks a rule changes nothing and is answered with the reason. A packet
 *     without a readable head is answered with id 0.
 *   - A descriptor comes with HOLD and with HELD, one each; what comes with anything else is
 *     closed unseen. A link gives what must outlive it (the sockets that agents send to), and
 *     the next one gets it back before SYNCED.
 *   - While the link does not read its replies the keeper does not read its requests. The
 *     keeper never waits for the link.
 *   - When the link ends, whatever its reason, the keeper starts another with the same command
 *     line, except after SHUTDOWN, or when a link ended before its first READY while no process
 *     was held: then agentd ends with that link's code. A link that exits with
 *     AGENTD_LINK_AGAIN is started again at once, others after 0.1 s doubling to 5 s.
 *   - A link that was silent for twice its TTL after its deadline, or that was told a signal,
 * is asked (ASK). One that has not said ALIVE in time (AGENTD_ANSWER_MS; AGENTD_UPGRADE_MS
 *     after SIGUSR2) is killed, and replaced.
 *     Whether etcd answers the link is no matter: it is to answer the keeper.
 *   - The agents get exactly the environment of SPAWN and RELEASE (and nothing of the
 * keeper's), stdin from /dev/null (unless SPAWN says otherwise), stdout and stderr into
 * <state-dir>/agents/<agent>.log (the older half in <agent>.log.1; a plain file, which the link
 * may read), a session of their own, and no other descriptor.
 *
 * Not for the wire between machines or versions of different layout: `version` in HELLO and
 * READY must be equal, and a link that cannot speak the keeper's version says so and exits. The
 * link that it would follow asks before it goes (agentd/link/successor.h). */
#ifndef AGENTD_KEEPER_PROTOCOL_H
#define AGENTD_KEEPER_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AGENTD_PROTOCOL_VERSION 1

#define AGENTD_LINK_FD    3
#define AGENTD_PAGE_FD    4
#define AGENTD_KEPT_FD    5
#define AGENTD_LINK_AGAIN 75 /* exit code of a link that wants to be started anew (upgrade) */

#define AGENTD_MESSAGE_MAX  131072 /* bytes of a packet */
#define AGENTD_NAME_BYTES   256    /* [a-z0-9][a-z0-9._-]{0,252} and its NUL */
#define AGENTD_ID_BYTES     64     /* instance and op ids: 1 to 63 of [0-9a-zA-Z_-] */
#define AGENTD_BOOT_BYTES   40     /* as /proc/sys/kernel/random/boot_id has it */
#define AGENTD_TEXT_BYTES   256    /* a sentence */
#define AGENTD_PATH_BYTES   512
#define AGENTD_BLOB_MAX     4096  /* bytes remembered for a process */
#define AGENTD_MEMO_MAX     98304 /* bytes remembered for the link itself */
#define AGENTD_TELL_MAX     4096  /* bytes of a TELL: a pipe takes so many at once or none */
#define AGENTD_AGENTS_MAX   4096  /* processes that are held, ended ones included */
#define AGENTD_ENDED_MAX    8     /* ended processes of one agent that wait for FORGET */
#define AGENTD_STRINGS_MAX  4096  /* of argv and env together */
#define AGENTD_ENV_MAX      1024  /* of env alone: names are compared each with each */
#define AGENTD_RLIMITS_MAX  16
#define AGENTD_GROUPS_MAX   32
#define AGENTD_OUTPUT_BYTES 1024
#define AGENTD_GRACE_MAX    3600000 /* milliseconds */
#define AGENTD_EXTEND_MAX   600000  /* milliseconds; what EXTEND can add to the grace of END */
#define AGENTD_TTL_MAX      600000  /* milliseconds; a fence deadline is never further away */
#define AGENTD_KEEP_ID      UINT32_MAX /* uid, gid: those of agentd */

/* clang-format off */
#define AGENTD_MESSAGE_MAP(X)                                                                  \
    /* keeper -> link */                                                                       \
    X(HELLO,      1)  /* struct agentd_hello, memo                                          */ \
    X(AGENT,      2)  /* struct agentd_agent, blob                                          */ \
    X(SYNCED,     3)  /* head only: every process was told                                  */ \
    X(REPLY,      4)  /* struct agentd_reply                                                */ \
    X(SIGNAL,     5)  /* struct agentd_signal: agentd got SIGTERM, SIGINT, SIGHUP, SIGUSR2   */ \
    X(HELD,      13)  /* struct agentd_held, a descriptor: of a link before this one        */ \
    X(ASK,       14)  /* head only: does the link's loop turn? Then it says ALIVE           */ \
    /* link -> keeper */                                                                       \
    X(READY,     16)  /* struct agentd_ready                                                */ \
    X(LEASE,     17)  /* struct agentd_lease: to be remembered                              */ \
    X(MEMO,      18)  /* struct agentd_memo, bytes: to be remembered for the next link      */ \
    X(SPAWN,     19)  /* struct agentd_spawn, strings: make a process, held before its exec */ \
    X(RELEASE,   20)  /* struct agentd_release, strings: it may begin                       */ \
    X(DISCARD,   21)  /* struct agentd_order: it must never begin                           */ \
    X(FREEZE,    22)  /* struct agentd_order                                                */ \
    X(THAW,      23)  /* struct agentd_order                                                */ \
    X(END,       24)  /* struct agentd_order: `signal` now, SIGKILL to all after `grace_ms` */ \
    X(KILL,      25)  /* struct agentd_order: SIGKILL to the whole tree                     */ \
    X(REMEMBER,  26)  /* struct agentd_remember, blob: of one process                       */ \
    X(FORGET,    27)  /* struct agentd_order: an ended process may be forgotten             */ \
    X(SHUTDOWN,  28)  /* struct agentd_shutdown: end all, then agentd exits with the code   */ \
    X(TELL,      29)  /* struct agentd_tell, bytes: to its stdin, where AGENTD_HAS_TELL     */ \
    X(HOLD,      30)  /* struct agentd_held, a descriptor: kept for the next link           */ \
    X(LET,       31)  /* struct agentd_held: not needed any more                            */ \
    X(ALIVE,     32)  /* head only: the answer to ASK                                       */ \
    X(EXTEND,    33)  /* struct agentd_order: the grace of END ends in `grace_ms` from now  */

#define AGENTD_STATE_MAP(X)                                                                    \
    X(MAKING,   0) /* being made; not yet to be released                                    */ \
    X(HELD,     1) /* made, waits before exec for RELEASE or DISCARD                        */ \
    X(STARTING, 2) /* released; exec has not been confirmed yet                             */ \
    X(RUNNING,  3) /* its program runs                                                      */ \
    X(FREEZING, 4) /* being stopped, by FREEZE or by the fence                              */ \
    X(FROZEN,   5) /* no process of the tree runs                                           */ \
    X(THAWING,  6)                                                                             \
    X(ENDING,   7) /* told to end, or its first process has ended and the rest is killed    */ \
    X(STUCK,    8) /* ENDING, and it survived SIGKILL for AGENTD_STUCK_MS; still tried      */ \
    X(ENDED,    9) /* the whole tree is gone; how, is in `exit`                             */

/* What REPLY.code says; the text has the sentence. */
#define AGENTD_CODE_MAP(X)                                                                     \
    X(OK,        0)                                                                            \
    X(MALFORMED, 1) /* length, text or number outside of what stands here                   */ \
    X(UNKNOWN,   2) /* no such type of message, or no such process                          */ \
    X(EXISTS,    3) /* the agent has a process that may run, or the id was used             */ \
    X(STATE,     4) /* not in this state of the process                                     */ \
    X(FENCED,    5) /* the fence deadline has passed (RELEASE, THAW)                        */ \
    X(LIMIT,     6) /* a limit of this page was reached                                     */ \
    X(SYSTEM,    7) /* the kernel refused; the text has its reason                          */ \
    X(FULL,      8) /* not now: it has yet to read what it was told before (TELL)           */
/* clang-format on */

enum agentd_message {
#define X(name, value) AGENTD_##name = (value),
    AGENTD_MESSAGE_MAP(X)
#undef X
};

enum agentd_state {
#define X(name, value) AGENTD_STATE_##name = (value),
    AGENTD_STATE_MAP(X)
#undef X
};

enum agentd_code {
#define X(name, value) AGENTD_CODE_##name = (value),
    AGENTD_CODE_MAP(X)
#undef X
};

#define AGENTD_STUCK_MS   10000
#define AGENTD_ANSWER_MS  10000
#define AGENTD_UPGRADE_MS 3000

/* The shared page. The link stores, the keeper loads; both atomically (__ATOMIC_SEQ_CST), and
 * the keeper afresh before every effect.
 *
 * At `deadline_ns` the keeper freezes (or kills, as SPAWN said) every process that has begun,
 * whatever the link does. 0: no lease is held, as if the deadline had passed. One that is more
 * than AGENTD_TTL_MAX away is taken for garbage, and as passed. The link moves it forward after
 * each renewal that counts, to its send time + 5/6 of the granted TTL; the keeper notices by
 * itself. After moving it back the link sends LEASE, so that the keeper looks at once. A new
 * link finds the page as the last one left it. */
struct agentd_page {
    uint32_t magic;      /* AGENTD_PAGE_MAGIC; set by the keeper */
    uint32_t version;    /* AGENTD_PROTOCOL_VERSION; set by the keeper */
    int64_t deadline_ns; /* CLOCK_BOOTTIME */
};

#define AGENTD_PAGE_MAGIC UINT32_C(0x48464b50)
#define AGENTD_PAGE_BYTES 4096

struct agentd_head {
    uint32_t length; /* of the whole packet */
    uint16_t type;   /* enum agentd_message */
    uint16_t reserved;
    uint64_t id; /* of a request, and of its REPLY; else 0 */
};

/* What the link says of its lease, and gets back in HELLO. All 0: none. */
struct agentd_lease_state {
    int64_t lease_id;
    int64_t ttl_ms;     /* granted; 0 .. AGENTD_TTL_MAX */
    int64_t renewed_ns; /* send time of the last renewal that counts, CLOCK_BOOTTIME */
    uint64_t raft_term; /* highest seen */
};

struct agentd_incarnation {
    int64_t lease_id;
    int64_t create_revision;
    int64_t generation;
};

enum {                         /* agentd_hello.flags */
       AGENTD_HAS_CGROUPS = 1, /* each agent in a cgroup v2; else behind a shim */
       AGENTD_HAS_LOCKED = 2,  /* the keeper's memory is locked */
       AGENTD_HAS_ROOT = 4,    /* processes may get other users */
       AGENTD_HAS_TELL = 8,    /* it knows TELL, its code and AGENTD_SPAWN_TELL_INPUT */
};

struct agentd_hello {
    struct agentd_head head;
    uint32_t version; /* AGENTD_PROTOCOL_VERSION */
    uint32_t flags;
    int32_t keeper_pid;
    uint32_t link_starts; /* 1 for the first link of this keeper */
    uint32_t agents;      /* AGENT messages that follow before SYNCED */
    uint32_t memo_len;    /* bytes after this struct, as the last MEMO had them */
    struct agentd_lease_state lease;
    int64_t lost_lease_id; /* lease of a keeper that crashed here; 0: none. To be revoked */
    char boot_id[AGENTD_BOOT_BYTES];
    char state_dir[AGENTD_PATH_BYTES]; /* absolute */
};

/* Names a process. */
struct agentd_who {
    char agent[AGENTD_NAME_BYTES];
    char instance[AGENTD_ID_BYTES]; /* chosen by the link, never used twice */
};

enum { /* agentd_exit.causes: what the keeper knows about why it ended */
       AGENTD_CAUSE_NOT_MADE = 1,   /* fork, cgroup or shim failed: `error` */
       AGENTD_CAUSE_NOT_BEGUN = 2,  /* user, directory, limits or exec failed: `error` */
       AGENTD_CAUSE_DISCARDED = 4,  /* by DISCARD, or ended while it was held */
       AGENTD_CAUSE_ASKED = 8,      /* END or KILL came before it ended */
       AGENTD_CAUSE_FENCED = 16,    /* killed by the fence */
       AGENTD_CAUSE_OOM = 32,       /* the kernel says that it killed for memory */
       AGENTD_CAUSE_ABANDONED = 64, /* found by a new keeper after a crash, and ended */
       AGENTD_CAUSE_NO_STATUS =
           128, /* wait_status is not known (its shim was killed, or a crash) */
};

struct agentd_exit {
    int32_t wait_status; /* of the first process, as waitpid gives it */
    uint32_t causes;
    int32_t error;       /* errno of NOT_MADE and NOT_BEGUN */
    uint32_t stragglers; /* processes that had to be killed after the first one had ended */
    int64_t ended_ns;    /* CLOCK_BOOTTIME, when the first process was seen dead */
    int64_t user_us;     /* CPU time of the first process and what it waited for */
    int64_t system_us;
    int64_t max_rss_kb;
    char evidence[AGENTD_TEXT_BYTES]; /* a sentence for people */
    char output[AGENTD_OUTPUT_BYTES]; /* the last that it wrote, as far as it is known */
};

enum { /* agentd_spawn.fence */
       AGENTD_FENCE_FREEZE = 0,
       AGENTD_FENCE_KILL = 1,
       AGENTD_FENCE_HOLD = 2, /* the deadline does not touch it */
};

struct agentd_agent {
    struct agentd_head head;
    struct agentd_who who;
    char op_id[AGENTD_ID_BYTES]; /* in flight, as REMEMBER had it; "" for none */
    struct agentd_incarnation incarnation;
    uint32_t state;                  /* enum agentd_state */
    uint32_t fence;                  /* AGENTD_FENCE_... */
    uint32_t fenced;                 /* 1: it was the deadline that froze it; until thawed */
    int32_t pid;                     /* of the first process; 0 while MAKING */
    uint64_t start_time;             /* field 22 of /proc/PID/stat */
    char boot_id[AGENTD_BOOT_BYTES]; /* that pid and start_time belong to */
    int64_t made_ns;                 /* CLOCK_BOOTTIME */
    int64_t begun_ns;                /* exec has succeeded; 0: not (yet) */
    int64_t frozen_ns;               /* stands still since then; 0: does not */
    uint64_t order;                  /* id of the latest order taken */
    uint64_t done_order;             /* and of the latest that is done */
    struct agentd_exit exit;         /* of ENDING, STUCK and ENDED, as far as it is known */
    uint32_t blob_len; /* bytes after this struct, as the last REMEMBER had them */
    uint32_t gone; /* 1: nothing of it runs any more; before ENDED, its last output is kept */
};

struct agentd_reply {
    struct agentd_head head;
    uint32_t code; /* enum agentd_code */
    uint32_t reserved;
    char text[AGENTD_TEXT_BYTES];
};

struct agentd_signal {
    struct agentd_head head;
    int32_t signal; /* the third SIGTERM or SIGINT makes the keeper end all by itself */
    uint32_t reserved;
};

struct agentd_ready {
    struct agentd_head head;
    uint32_t version; /* AGENTD_PROTOCOL_VERSION */
    uint32_t reserved;
};

struct agentd_lease {
    struct agentd_head head;
    struct agentd_lease_state lease;
};

struct agentd_memo {
    struct agentd_head head;
    uint32_t len; /* bytes after this struct, at most AGENTD_MEMO_MAX */
    uint32_t reserved;
};

struct agentd_rlimit {
    uint32_t resource; /* RLIMIT_... */
    uint32_t reserved;
    uint64_t soft, hard; /* UINT64_MAX: none */
};

enum {                               /* agentd_spawn.flags */
       AGENTD_SPAWN_PASS_OUTPUT = 1, /* stdout and stderr appear on agentd's, too */
       AGENTD_SPAWN_PASS_INPUT = 2,  /* stdin is agentd's */
       AGENTD_SPAWN_NO_NEW_PRIVS = 4,
       /* SIGHUP, SIGUSR1, SIGQUIT, SIGWINCH and SIGCONT that agentd gets are for it, too */
       AGENTD_SPAWN_PASS_SIGNALS = 8,
       AGENTD_SPAWN_TELL_INPUT =
           16, /* stdin is a pipe that TELL writes to; not with PASS_INPUT */
};

/* After it `text_len` bytes: cwd, argv[0] .. argv[argc - 1], env[0] .. env[envc - 1], each with
 * its NUL. cwd is absolute; argv[0] is looked up in the PATH of that environment when it has no
 * slash; each of env is NAME=value, no name twice. */
struct agentd_spawn {
    struct agentd_head head;
    struct agentd_who who;
    char op_id[AGENTD_ID_BYTES]; /* "" for none */
    uint32_t uid, gid;           /* AGENTD_KEEP_ID: agentd's; others need AGENTD_HAS_ROOT */
    uint32_t group_count;
    uint32_t groups[AGENTD_GROUPS_MAX]; /* supplementary; set when uid is not KEEP_ID */
    uint32_t rlimit_count;
    struct agentd_rlimit rlimits[AGENTD_RLIMITS_MAX];
    uint64_t memory_max; /* bytes; 0: none. Where the cgroup has a memory controller */
    uint64_t pids_max;   /* 0: none. Likewise */
    uint32_t umask;      /* 0 .. 0777 */
    int32_t nice;        /* -20 .. 19 */
    uint32_t fence;      /* AGENTD_FENCE_... */
    uint32_t flags;      /* AGENTD_SPAWN_... */
    uint32_t argc;       /* at least 1 */
    uint32_t envc;
    uint32_t text_len;
    uint32_t reserved;
};

/* After it `text_len` bytes: `envc` times NAME=value with NUL, on top of SPAWN's environment
 * (the incarnation, which is known only now, and the task to resume). A name that SPAWN had is
 * replaced. Together with their sizes they are at most AGENTD_RELEASE_MAX. */
struct agentd_release {
    struct agentd_head head;
    struct agentd_who who;
    struct agentd_incarnation incarnation;
    uint32_t envc;
    uint32_t text_len;
};

#define AGENTD_RELEASE_MAX 16384

struct agentd_order {
    struct agentd_head head;
    struct agentd_who who;
    uint32_t grace_ms; /* of END and EXTEND, at most AGENTD_GRACE_MAX; else 0 */
    uint32_t signal;   /* of END, to the first process: 1 .. 64; else 0 */
};

/* Replaces what was remembered of a process, in any state of it. */
struct agentd_remember {
    struct agentd_head head;
    struct agentd_who who;
    char op_id[AGENTD_ID_BYTES];
    struct agentd_incarnation incarnation;
    uint32_t blob_len; /* bytes after this struct, at most AGENTD_BLOB_MAX */
    uint32_t reserved;
};

/* What is to be written to the stdin of a process that was let go. It is taken whole or not at
 * all, and each id once: another TELL with the id of the last one that was taken is answered
 * with EXISTS, whichever link sent that. So nobody is told twice what a dead link told it. */
struct agentd_tell {
    struct agentd_head head;
    struct agentd_who who;
    char id[AGENTD_ID_BYTES];
    uint32_t len; /* bytes after this struct, 1 .. AGENTD_TELL_MAX */
    uint32_t reserved;
};

/* The socket of an agent. HOLD replaces what was held for that name. */
struct agentd_held {
    struct agentd_head head;
    char agent[AGENTD_NAME_BYTES];
};

struct agentd_shutdown {
    struct agentd_head head;
    uint32_t code;     /* 0 .. 255 */
    uint32_t grace_ms; /* SIGTERM first, to every first process that runs; 0: SIGKILL at once */
};

/* Checks a packet as one side gets it: head, lengths, texts, numbers, and that strings and
 * bytes at its end are exactly as many as it says. NULL when it is whole, else a sentence about
 * what is wrong (a static string). Pure; reads nothing beyond `len`; `data` needs no alignment
 * beyond 8. */
const char *agentd_check_request(const void *data, size_t len); /* link -> keeper */
const char *agentd_check_news(const void *data, size_t len);    /* keeper -> link */

/* Of a packet that has passed its check: what follows its fixed part. */
const void *agentd_get_rest(const void *data, size_t *ret_len);

/* Single rules, for whoever builds messages. */
bool agentd_is_name(const char *text, size_t size); /* NUL-terminated within size, rest 0 */
bool agentd_is_id(const char *text, size_t size);

/* "RUNNING", "FENCED", "SPAWN"; "?" for a value that is none. Static strings. */
const char *agentd_state_name(uint32_t state);
const char *agentd_code_name(uint32_t code);
const char *agentd_message_name(uint32_t type);

#endif
