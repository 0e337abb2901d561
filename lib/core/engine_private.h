/* engine_private.h - what the parts of the engine share.
 *
 *     engine.c         events in, intents out
 *     engine_flight.c  writes under way, and the rest that their objects have afterwards
 *     engine_draft.c   intents: plans, the audit trail, alerts
 *     engine_agent.c   an agent: alive, suspect, started again or not
 *     engine_death.c   what is known of the end of a life, and when it may be judged
 *     engine_start.c   orders and withdrawals of starts
 *     engine_heir.c    leave to start again without an order, and what came of it
 *     engine_place.c   on which host
 *     engine_reset.c   what becomes of a task whose owner is gone
 *     engine_storm.c   the storm guard and those that wait for it
 *     engine_health.c  the health record
 *     engine_task.c    a task: promoted, reset, taken back, reviewed
 *     engine_limit.c   how many tasks of a role run at once
 *     engine_meta.c    meta and the cluster clock
 *     engine_bad.c     keys that cannot be read
 *     engine_stall.c   an agent that stands still with a task: asked, told of, ended
 *     engine_trail.c   the audit trail: what was told of, and what nobody acts on
 *     engine_status.c  status
 *     engine_told.c    what somebody was told of, whoever led
 */
#ifndef HF_CORE_ENGINE_PRIVATE_H
#define HF_CORE_ENGINE_PRIVATE_H

#include "core/agenda.h"
#include "core/engine.h"
#include "core/index.h"
#include "core/moments.h"
#include "core/unrest.h"

/* Every object on the agenda, and the two singletons that are written as well. */
enum hf_item_kind {
    HF_ITEM_AGENT = HF_FLEET_AGENT,
    HF_ITEM_HOST = HF_FLEET_HOST,
    HF_ITEM_TASK = HF_FLEET_TASK,
    HF_ITEM_ROLE = HF_FLEET_ROLE,
    HF_ITEM_META,
    HF_ITEM_CLOCK,
    HF_ITEM_STORM,
    HF_ITEM_BAD,
    HF_ITEM_TRAIL,
};

struct hf_item {
    struct hf_agenda_item agenda; /* first */
    void *object;                 /* NULL before it was touched, and for singletons */
    uint8_t kind;
    bool broken;     /* no plan could be made of it; nothing is tried before it changes */
    uint8_t refused; /* writes in a row */
    uint16_t flight; /* index + 1 of the write that concerns it; 0: none */
};

/* What the engine keeps with each object, in its `user` bytes. The object follows: what every
 * change needs stands last, so that it shares a cache line with the name. */

struct hf_agent_state {
    hf_ms life_at;            /* when `life` came; or its spec, or else anything first, while
                               * none was seen */
    hf_ms health_at;          /* when we last wrote its health for its own sake */
    int64_t join_told;        /* the audit trail tells of lives up to this revision, */
    int64_t end_told;         /* and of their ends */
    int64_t asks_for;         /* life, + 1: what follows its end waits for the storm guard, */
    struct hf_waiters *waits; /* the list in which it is, or NULL */
    struct hf_agent_state *wait_next, *wait_prev;
    struct hf_item item;
    hf_ms heard_at; /* when a report of it was last seen, */
    hf_ms spoke_at; /* and when one that said something new, or a task of it moved */
    hf_ms said;     /* what it said last: when, by its agentd's clock */
    int64_t life;   /* create revision of the live key that was last seen */
    bool granted;   /* which lets it happen */
    bool failed;    /* the start that failed last was noted */
    bool called;    /* its role has work for it */
    bool asked;     /* an inquiry is open, or was when it died */
    bool stays;     /* in that list, by the decision that is being made */
    bool known;     /* something of it was seen before */
    uint8_t mark;   /* what of its report matters, to notice a change */
    uint8_t alerts; /* that were given in this episode */
};

/* Agents that wait for something, in the order in which they came. */
struct hf_waiters {
    struct hf_agent_state *first, *last;
    size_t count;
};

enum {
    HF_ALERT_HELD = 1,
    HF_ALERT_UNKILLABLE = 2,
    HF_ALERT_BAD = 4,
    HF_ALERT_LONELY = 8,
    HF_ALERT_REVIEW = 16,
    HF_ALERT_BROKEN = 32,
    HF_ALERT_LATE = 64,
    HF_ALERT_STALLED = 128,
};

/* Tasks of a role, of which the first is the next one to be promoted, or to be demoted. */
struct hf_ranking {
    struct hf_heap_node *first;
    bool worst_first;
};

struct hf_task_state {
    struct hf_heap_node rank;
    hf_ms since; /* when it came into this state, with this owner */
    struct hf_item item;
    struct hf_ranking *ranking; /* in which it has that rank, or NULL */
    uint32_t owner_rev;         /* whose that was; the low bits, which differ */
    uint8_t state;              /* + 1; 0: never seen */
    uint8_t alerts;
};

enum { HF_PASSED = 4 };

struct hf_host_state {
    struct hf_item item;
    hf_ms known_at; /* when anything was first known of it */
    hf_ms live_at;  /* when its live key came */
    int64_t lease;  /* that it hung on last */
    bool counted;   /* by the storm guard, */
    bool was_live;  /* and as live */
    uint32_t place; /* in the engine's table of hosts, + 1 */
    struct {
        uint32_t launcher; /* hash of its name */
        hf_ms until;
    } passed[HF_PASSED]; /* launchers for which it is a last resort, while this lease lasts */
};

struct hf_role_state {
    struct hf_item item;
    hf_ms lonely_since;        /* valid while lonely: none of its agents lives */
    hf_ms work_since;          /* valid while has_work: a task of it is pending */
    hf_ms called_at;           /* when agents were last woken for it, */
    size_t called_for;         /* for how many tasks since that nobody came for, */
    hf_ms came_at;             /* and when one of them was last here */
    struct hf_waiters dormant; /* agents that are started when there is work */
    uint32_t running_max;      /* tasks of it that may run at once; 0: any number, ... */
    struct hf_ranking offered; /* ... else of those that do, who may be demoted, */
    struct hf_ranking waiting; /* and of those that are queued, who may be promoted */
    size_t running;            /* how many ran when it was last touched */
    bool known;                /* it was touched before */
    bool lonely;
    bool has_work;
    uint8_t alerts;
};

/* A write under way, or answered and not told yet. */
enum hf_flight_phase { HF_FLIGHT_FREE, HF_FLIGHT_OUT, HF_FLIGHT_RESTING };

enum { HF_FLIGHT_ITEMS = 2 };

struct hf_flight {
    uint64_t token;
    struct hf_item *items[HF_FLIGHT_ITEMS]; /* NULL: gone meanwhile, or none */
    enum hf_flight_phase phase;
    int64_t revision;  /* RESTING: until this is told ... */
    hf_ms until;       /* ... or this long at most */
    int64_t tail_from; /* of the audit trail: what its plan deletes, at least */
};

enum { HF_TRAIL_NOTES = 256 };

/* What was seen, and is to be told of unless an action tells of it. */
struct hf_trail_note {
    struct hf_item *item;
    int64_t rev; /* at which it happened */
    hf_ms at;
    uint8_t kind; /* of Holdfast__V1__Event__Kind */
};

struct hf_trail {
    struct hf_trail_note notes[HF_TRAIL_NOTES]; /* oldest first */
    size_t count;
    uint64_t left_out; /* for which there was no room, or no time */
    int64_t revision;  /* the newest that an entry was decided on */
    int64_t saved;     /* thousandths of notes that may be told */
    hf_ms saved_at;
};

/* What somebody is told of once, however often the leader changes meanwhile, and what it is
 * called in the record of the clock. */
/* clang-format off */
#define HF_TOLD_MAP(X)                                                                         \
    X(LATE, "late") /* a task whose deadline is over */                                        \
    X(ROOT, "root") /* a task that nobody here can go on with */                               \
    X(ROLE, "role") /* one that has work and no agent */
/* clang-format on */

enum hf_told_topic {
#define X(name, text) HF_TOLD_##name,
    HF_TOLD_MAP(X)
#undef X
};

enum { HF_TOLD_MOST = 256 }; /* that are remembered; the newest */

struct hf_told {
    char *fresh[HF_TOLD_MOST]; /* not in etcd yet, as far as we know; owned */
    size_t count;
    hf_ms due;                /* when they are to be written; 0: nothing is */
    char *list[HF_TOLD_MOST]; /* what is being written; borrowed */
};

struct hf_engine {
    char *ns, *id;
    struct hf_engine_policy policy;
    struct hf_fleet *fleet;
    struct hf_agenda agenda;
    struct hf_tilt tilt;
    struct hf_clusterclock clock;
    struct hf_item meta_item, clock_item;
    struct hf_item storm_item, bad_item, trail_item;
    struct hf_trail trail;
    struct hf_told told;
    struct hf_storm storm;
    enum hf_storm_state storm_state; /* that was last acted on */
    enum hf_storm_state storm_told;  /* that the audit trail tells of, ... */
    int64_t storm_seq;               /* ... in this entry of it; 0: in none */
    bool storm_person;               /* and whether it says that a person holds it, ... */
    hf_ms storm_until;               /* ... or when it ends, by the wall clock, or NEVER */
    int64_t word_seq;                /* the entry of the last word of a person; 0: none */
    bool word_holds;                 /* which is to hold, or to proceed */
    struct hf_storm_facts facts;
    hf_ms longest_ttl;          /* that was granted */
    struct hf_waiters paced;    /* for the storm guard, */
    struct hf_waiters homeless; /* for a host */
    struct hf_host **hosts;     /* all that are known, to draw from */
    size_t host_count, host_cap;

    struct hf_term term; /* lease 0: we do not lead */
    hf_ms synced_at;
    hf_ms hears_since; /* what is reported would have been heard: we lead, etcd takes writes */
    int64_t told_rev;

    /* For the call that is being made. */
    hf_ms now, wall;
    uint32_t random;
    enum hf_key_kind changing;

    struct hf_flight flights[HF_ENGINE_FLIGHTS];
    size_t flight_count, resting_count;
    int64_t rest_rev; /* the lowest that is waited for, */
    hf_ms rest_until; /* and the earliest end */
    uint64_t last_token;
    hf_ms wrote_at;

    int64_t event_seq;    /* highest in use */
    int64_t event_tail;   /* lowest that may be; 0: none is known */
    int64_t drafted_tail; /* what the plan in the making deletes of it, at least; 0: nothing */

    uint64_t raft_term; /* the highest that was heard of */
    struct hf_unrest unrest;

    uint64_t mutants; /* rules that are missing */
    uint64_t stream;  /* of ids */
    int32_t generation;
    int32_t generation_floor; /* generations up to it belong to a history that is void */
    char cluster_id[64];
    hf_ms meta_at; /* when we last wrote it */

    struct hf_index bad;

    bool ticking;       /* tilt was begun */
    bool synced;        /* everything was told */
    bool wrote;         /* the last write was answered */
    bool history_reset; /* one was noticed */
    bool corrupt;       /* etcd is: nothing is decided, */
    bool corrupt_told;  /* and somebody was told so */

    char subject[300], why[512], evidence[512]; /* of the intent that was given last */
};

static inline struct hf_agent_state *hf_agent_state(const struct hf_agent *agent)
{
    return agent->user;
}
static inline struct hf_task_state *hf_task_state(const struct hf_task *task)
{
    return task->user;
}
static inline struct hf_host_state *hf_host_state(const struct hf_host *host)
{
    return host->user;
}
static inline struct hf_role_state *hf_role_state(const struct hf_role *role)
{
    return role->user;
}

/* Whether this rule is missing. */
static inline bool hf_mutated(const struct hf_engine *e, enum hf_mutant mutant)
{
    return __builtin_expect((e->mutants & hf_mutant_bit(mutant)) != 0, 0);
}

/* engine.c */

/* The cluster clock; never unread when an object is decided. */
hf_ms hf_engine_clock(const struct hf_engine *e);

/* Look at it again at this time of our own clock; only ever brings the alarm forward while it
 * is decided, since every decision begins without one. */
void hf_engine_wake(struct hf_engine *e, struct hf_item *item, hf_ms at);

/* Lists of agents that wait for something; an agent is in one at most, and keeps its place
 * while every decision says so again. */
void hf_engine_wait_in(struct hf_waiters *list, struct hf_agent_state *state);
void hf_engine_wait_out(struct hf_agent_state *state);
void hf_engine_wake_list(struct hf_engine *e, struct hf_waiters *list, size_t most);

/* engine_flight.c */

/* HF_OK, and the write is under way; there must be a free flight. `other` may be NULL. */
void hf_flight_begin(struct hf_engine *e, struct hf_item *item, struct hf_item *other,
                     struct hf_intent *intent);
bool hf_flight_is_free(const struct hf_engine *e);
void hf_flight_on_outcome(struct hf_engine *e, const struct hf_event_outcome *outcome);
void hf_flight_settle(struct hf_engine *e);
void hf_flight_forget(struct hf_engine *e, struct hf_item *item);
hf_ms hf_flight_deadline(const struct hf_engine *e);

/* engine_draft.c */

/* Begins a plan; it ends with hf_draft_end. */
void hf_draft_begin(struct hf_engine *e, struct hf_intent *ret);

/* A fresh id of ours. */
void hf_draft_id(struct hf_engine *e, char ret_id[HF_ID_LEN + 1]);

/* What an action leaves behind. */
struct hf_draft_event {
    Holdfast__V1__Event__Kind kind;
    const char *agent, *task, *host; /* NULL for none */
    const char *why;
    const char *next;
    hf_ms next_at;                 /* of our own clock; 0 or NEVER: no time */
    const char *source, *evidence; /* NULL for none */
};

void hf_draft_event(struct hf_engine *e, struct hf_intent *ret,
                    const struct hf_draft_event *event);

/* 1: *ret is the write, and both items are under way. HF_ENOMEM. 0: it could not be made of
 * what stands in etcd: `item` is broken. `why` is a sentence. */
int hf_draft_end(struct hf_engine *e, struct hf_intent *ret, struct hf_item *item,
                 struct hf_item *other, const char *why);

/* 1: *ret is the alert, and `item` is looked at again at once. */
int hf_draft_alert(struct hf_engine *e, struct hf_intent *ret, struct hf_item *item,
                   const struct hf_intent_alert *alert);

/* Formats into e->why or e->evidence, and returns it. */
const char *hf_draft_why(struct hf_engine *e, const char *fmt, ...) HF_PRINTF(2, 3);
const char *hf_draft_evidence(struct hf_engine *e, const char *fmt, ...) HF_PRINTF(2, 3);

/* engine_death.c */

/* The end of a life. */
struct hf_death {
    int64_t life;                  /* as one number; 0: none is known */
    bool seen;                     /* an exit tells of it */
    Holdfast__V1__Exit__Kind kind; /* unreachable unless seen */
    hf_ms since;                   /* when we missed it, on our own clock */
    hf_ms due;                     /* when it may be judged; `now` or before: now */
    const char *why;               /* a sentence, while it may not */
};

/* generation * 2^48 + create revision. */
int64_t hf_life_number(int32_t generation, int64_t create_rev);

/* The create revision in it. */
int64_t hf_life_revision(int64_t life);

/* Of an agent that is not live. */
struct hf_death hf_death_of_agent(const struct hf_engine *e, const struct hf_agent *agent);

/* Of the owner of a task that is owned; false: the owner is live, or nobody can tell yet. */
bool hf_death_of_owner(const struct hf_engine *e, const struct hf_task *task,
                       struct hf_death *ret_death);

/* Whether the fence policy of an agent that nobody saw die says to wait for its host. */
bool hf_death_is_on_hold(const struct hf_engine *e, const struct hf_agent *agent,
                         const struct hf_death *death);

/* The name of the host that it lived on or was to be started on last; NULL: not known. */
const char *hf_death_host(const struct hf_engine *e, const struct hf_agent *agent);

/* engine_heir.c */

/* What its health record says of leave: the life that has it, 0: none has. */
int64_t hf_heir_get_leave(const struct hf_engine *e, const struct hf_agent *agent);
/* Of an agent that is live, and needs nothing else. */
int hf_heir_give_leave(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret);
/* Its agentd said that it starts it again, by leave: that is waited for until *ret_due. */
bool hf_heir_is_coming(const struct hf_engine *e, const struct hf_agent *agent, hf_ms *ret_due);
/* It was, and that has to be counted before anything else is decided. */
bool hf_heir_is_uncounted(const struct hf_engine *e, const struct hf_agent *agent);
int hf_heir_count(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret);

/* engine_storm.c */

void hf_engine_begin_storm(struct hf_engine *e);
/* An entry of the audit trail: what an earlier leader told of need not be told again, and what
 * a person said holds until a person says otherwise, whoever leads. */
void hf_engine_note_storm(struct hf_engine *e, int64_t seq, const Holdfast__V1__Event *event);
/* Whether what follows this death may happen now; if not, the agent waits for it. */
bool hf_engine_is_granted(struct hf_engine *e, struct hf_agent *agent,
                          const struct hf_death *death);
/* While etcd is corrupt, nothing else is decided. */
void hf_engine_note_corrupt(struct hf_engine *e, bool corrupt);
int hf_engine_decide_corrupt(struct hf_engine *e, struct hf_intent *ret);
/* etcd has another leader. */
void hf_engine_note_raft(struct hf_engine *e);
int hf_engine_decide_storm(struct hf_engine *e, struct hf_intent *ret);

/* engine_health.c: the record as it shall be. It points into itself: do not copy it. */
struct hf_health_draft {
    Holdfast__V1__Health record;
    struct hf_moments started, recovered;
    Google__Protobuf__Timestamp next_start, next_at, evidence_at;
    Holdfast__V1__Next next;
    Holdfast__V1__Evidence evidence, *evidence_list[1];
};

void hf_health_begin(const struct hf_engine *e, const struct hf_agent *agent,
                     struct hf_health_draft *ret_draft);
/* A start that is no longer outstanding in a draft was concluded from a command that we do not
 * see, and a leave that was not used from an exit that does not say so; a watch may have lost
 * either: whoever writes the draft makes sure of it. */
void hf_health_guard(const struct hf_agent *agent, struct hf_plan *plan);
/* `next` NULL: nothing by itself; `at` of the cluster clock, 0: no time. */
void hf_health_set(struct hf_health_draft *draft, Holdfast__V1__Health__State state,
                   const char *why, const char *next, hf_ms at);
void hf_health_set_evidence(const struct hf_engine *e, const struct hf_agent *agent,
                            const struct hf_death *death, struct hf_health_draft *draft);
/* Degraded, on whose word, and with what that one goes by; it is. */
void hf_health_set_unwell(struct hf_engine *e, const struct hf_agent *agent,
                          struct hf_health_draft *draft);
void hf_health_set_restart(const struct hf_engine *e, struct hf_health_draft *draft,
                           const struct hf_restart *restart);
void hf_health_set_recover(struct hf_health_draft *draft,
                           const struct hf_recover_agent *recover);
/* A task was taken from that life. */
void hf_health_set_taken(struct hf_health_draft *draft, int64_t life);
struct hf_restart hf_health_get_restart(const Holdfast__V1__Health *health);

/* Writes it for its own sake, with an event unless its kind is unknown; and with the end of a
 * life, unless `death` is NULL or was told of. */
int hf_health_write(struct hf_engine *e, struct hf_agent *agent, struct hf_health_draft *draft,
                    const struct hf_death *death, Holdfast__V1__Event__Kind kind,
                    struct hf_intent *ret);

/* Its entry of the audit trail, beside whatever writes it. */
void hf_health_tell(struct hf_engine *e, const struct hf_agent *agent,
                    const struct hf_health_draft *draft, Holdfast__V1__Event__Kind kind,
                    struct hf_intent *ret);

/* engine_stall.c */

/* Of an agent that is live: whether it has to be asked why its task does not move, and what
 * follows. It is looked at again when that may be different. */
int hf_engine_judge_stall(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret);
/* An inquiry to its present life is open. */
bool hf_engine_is_asked(const struct hf_engine *e, const struct hf_agent *agent);
/* Of a task whose owner is live: that is looked at when it has to be asked. */
void hf_engine_watch_stall(struct hf_engine *e, const struct hf_task *task);

/* engine_trail.c */

/* Remembers it, to be told of in a while unless an entry tells of it by then. */
void hf_trail_note(struct hf_engine *e, Holdfast__V1__Event__Kind kind, struct hf_item *item,
                   int64_t rev);
/* Likewise that a task is completed or has failed; nothing for other states. */
void hf_trail_note_end(struct hf_engine *e, const struct hf_task *task);
bool hf_trail_has_note(const struct hf_engine *e, Holdfast__V1__Event__Kind kind,
                       const struct hf_item *item);
void hf_trail_forget(struct hf_engine *e, const struct hf_item *item);
void hf_trail_on_event(struct hf_engine *e, const Holdfast__V1__Event *event);
/* Everything was told: what came after the newest entry is noted. */
void hf_trail_begin(struct hf_engine *e);
/* Whether an entry tells that the agent's present life began. */
bool hf_trail_knows_join(const struct hf_agent *agent);
/* How a task ended, or unknown. */
Holdfast__V1__Event__Kind hf_trail_kind_of_end(Holdfast__V1__Task__State state);

/* Entries for a plan. */
void hf_trail_tell_join(struct hf_engine *e, const struct hf_agent *agent,
                        struct hf_intent *ret);
void hf_trail_tell_task(struct hf_engine *e, const struct hf_task *task,
                        Holdfast__V1__Event__Kind kind, struct hf_intent *ret);
/* Once for each life, of an agent that is not live. */
void hf_trail_tell_end(struct hf_engine *e, const struct hf_agent *agent,
                       const struct hf_death *death, struct hf_intent *ret);
/* What shows that it is over. */
void hf_trail_add_evidence(const struct hf_agent *agent, const struct hf_death *death,
                           struct hf_draft_event *event);

/* engine_place.c */

/* Where an agent may be started. */
struct hf_place {
    enum hf_placement_verdict verdict;
    struct hf_host *host; /* of HOST */
    const char *why, *next;
    hf_ms at;
};

enum hf_place_mode {
    HF_PLACE_ANYWHERE,
    HF_PLACE_ELSEWHERE, /* not where it was last */
    HF_PLACE_FRESH,     /* nor on a host that is passed over */
};

/* HF_OK or HF_ENOMEM. */
int hf_engine_place(struct hf_engine *e, const struct hf_agent *agent, enum hf_place_mode mode,
                    const struct hf_death *death, struct hf_place *ret_place) HF_MUST_CHECK;
void hf_engine_pass_over(struct hf_engine *e, const char *name, const char *launcher);
int hf_engine_reserve_host(struct hf_engine *e) HF_MUST_CHECK;
void hf_engine_add_host(struct hf_engine *e, struct hf_host *host);
void hf_engine_remove_host(struct hf_engine *e, struct hf_host *host);

/* engine_root.c */

/* Whether files of that root can be read there; NULL: anywhere. */
bool hf_engine_has_root(const struct hf_host *host, const Holdfast__V1__Root *root);
/* Where an agent can go on with what it owned, or with what waits for its role; NULL: that is
 * no reason to prefer any host. */
struct hf_host *hf_engine_find_rooted(const struct hf_engine *e, const struct hf_agent *agent);
/* Whether an agent of its role lives where the files of a pending task with a root can be read;
 * else why it waits, and what a person can do. */
bool hf_engine_is_served(const struct hf_task *task);
const char *hf_engine_say_rooted(struct hf_engine *e, const struct hf_task *task,
                                 const char **ret_next);
/* How many tasks of a role wait that somebody could go on with. */
size_t hf_engine_count_work(const struct hf_role *role);
/* What is due for a pending task with a root; it is looked at again. */
struct hf_task_wait hf_engine_judge_rooted(struct hf_engine *e, const struct hf_task *task);

/* engine_limit.c */

/* The role is touched; true: another number of its tasks runs, and that may matter. */
bool hf_limit_note_role(const struct hf_engine *e, struct hf_role *role);
void hf_limit_forget_role(struct hf_role *role);
/* The task has changed: its place among others is found anew. */
void hf_limit_note_task(struct hf_task *task);
void hf_limit_forget_task(struct hf_task *task);
/* Nothing but a limit of its role stands against its promotion: it waits for its turn. False:
 * there is no limit, and nothing was done. */
bool hf_limit_wait(struct hf_engine *e, struct hf_task *task);
/* The task was looked at: where its place may matter, its role is, too. */
void hf_limit_look(struct hf_engine *e, const struct hf_task *task);
int hf_engine_decide_limit(struct hf_engine *e, struct hf_role *role, struct hf_intent *ret);
int hf_engine_promote(struct hf_engine *e, struct hf_task *task, struct hf_item *other,
                      const char *why, struct hf_intent *ret);

/* engine_start.c */

int hf_engine_judge_starts(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret);

/* Order a start, with a task of its own if one is due. */
struct hf_start_order {
    struct hf_host *host;
    struct hf_restart restart; /* as it shall be stored */
    const struct hf_death *death;
    const char *why;
    uint32_t attempt;
};

int hf_engine_order(struct hf_engine *e, struct hf_agent *agent,
                    const struct hf_start_order *order, struct hf_intent *ret);

/* engine_reset.c */

/* What is to be done about a task whose owner is gone. */
struct hf_reset_case {
    struct hf_recover recover;
    struct hf_recover_agent agent;
    struct hf_recover_case facts;
    struct hf_recover_decision decision;
};

/* What its owner was given to go on from; 0: nothing. */
int64_t hf_engine_restored(const struct hf_task *task);
void hf_engine_judge_reset(struct hf_engine *e, const struct hf_task *task,
                           const struct hf_death *death, bool successor,
                           struct hf_reset_case *ret_case);
int hf_engine_reset(struct hf_engine *e, struct hf_task *task, const struct hf_death *death,
                    struct hf_intent *ret);

/* engine_bad.c */

int hf_bad_note(struct hf_engine *e, const struct hf_event_bad *event) HF_MUST_CHECK;
void hf_bad_forget(struct hf_engine *e, const struct hf_key *key);
void hf_bad_clear(struct hf_engine *e);
/* NULL, or why the object is not acted on. */
const char *hf_bad_of_agent(struct hf_engine *e, const char *name);
const char *hf_bad_of_task(struct hf_engine *e, const char *name);
const char *hf_bad_of_host(struct hf_engine *e, const char *name);
int hf_engine_decide_bad(struct hf_engine *e, struct hf_intent *ret);

/* Whether somebody was told of it, by whoever led. */
bool hf_told_has(const struct hf_engine *e, enum hf_told_topic topic, const char *name);
void hf_told_add(struct hf_engine *e, enum hf_told_topic topic, const char *name);
/* It does not last any more: when it comes again, it is told again. */
void hf_told_on_over(struct hf_engine *e, enum hf_told_topic topic, const char *name);
/* Whether the clock has to be written for this alone, and what of this it says then. */
bool hf_told_is_due(const struct hf_engine *e, hf_ms now);
void hf_told_write(struct hf_engine *e, Holdfast__V1__Clock *next);
void hf_told_clear(struct hf_engine *e);

/* Decisions: 1, an intent; 0, none; HF_ENOMEM. */

int hf_engine_decide_agent(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret);
/* The same; it leaves the list that it waits in unless the decision says that it waits on. */
int hf_engine_decide_waiting(struct hf_engine *e, struct hf_agent *agent,
                             struct hf_intent *ret);
int hf_engine_decide_task(struct hf_engine *e, struct hf_task *task, struct hf_intent *ret);
int hf_engine_decide_role(struct hf_engine *e, struct hf_role *role, struct hf_intent *ret);
/* Of an agent that is live: it says so, or its agentd suspects it. */
bool hf_engine_is_degraded(const struct hf_agent *agent);
/* How often an agent may report. */
hf_ms hf_engine_report_interval(const struct hf_engine *e);
/* The agent is here: if its role had called it, that is done. */
void hf_engine_answer_call(struct hf_engine *e, struct hf_agent *agent);
/* Meta is there and of a version and a history that we may write in, and the clock runs. */
bool hf_engine_is_ready(const struct hf_engine *e);
/* Whether it takes a write of ours to become ready. */
bool hf_engine_is_due_first(const struct hf_engine *e, hf_ms now);
int hf_engine_decide_meta(struct hf_engine *e, struct hf_intent *ret);
int hf_engine_decide_clock(struct hf_engine *e, struct hf_intent *ret);
int hf_engine_decide_trail(struct hf_engine *e, struct hf_intent *ret);

/* What is worth remembering of a change; whether it has to be decided on. */
bool hf_engine_note_agent(struct hf_engine *e, struct hf_agent *agent);
/* Whether it began a moment ago. Nobody waits for what is to be written about it, and it wants
 * the processors: whoever is written about is looked at again when it has settled. */
bool hf_engine_has_just_begun(struct hf_engine *e, const struct hf_agent *agent,
                              struct hf_item *item);
bool hf_engine_note_task(struct hf_engine *e, struct hf_task *task);
bool hf_engine_note_role(struct hf_engine *e, struct hf_role *role);
bool hf_engine_note_host(struct hf_engine *e, struct hf_host *host);

#endif
