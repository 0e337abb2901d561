#include "sim/mutants.h"

#include <string.h>

#include "sim/cluster.h"

#define ABSENT (1U << HF_GUARD_ABSENT)
#define MOD    (1U << HF_GUARD_MOD)
#define CREATE (1U << HF_GUARD_CREATE)
#define GONE   (1U << HF_GUARD_GONE)
#define LEASE  (1U << HF_GUARD_LEASE)
#define TEXT   (1U << HF_GUARD_TEXT)
#define SAME   (MOD | TEXT)

/* Why some harm nothing. Every argument is from the table of transactions: which other compare
 * of the same Txn fails whenever the one that was left out would have. */
static const char SAME_KEY[] =
    "the other half of L implies it: a leader's key is put once and never put over, so the "
    "revision that created it and the lease that it hangs on name the same key; and nobody "
    "campaigns twice under one lease that lost its key (core/election)";
static const char SAME_LIFE[] =
    "create_revision(live), the other half of A, implies it: a live key is put once and never "
    "put over, so the revision that created it names its lease, too";
static const char BY_LIST[] = "M(meta) and M(clock) imply it: a mirror tells all that it "
                              "listed at one go, so whoever was "
                              "not told everything was told nothing, and all that can be "
                              "decided on nothing is to put meta "
                              "and the clock, which compare that there is none";
static const char BY_HEAD[] =
    "M(task) implies it: the entry's number is that of the head + 1, and whoever put an entry "
    "with that number has moved the head with the same Txn";
static const char BY_SESSION[] =
    "the session takes nothing for unfrozen before a Txn sent after the freeze has committed, "
    "and "
    "in what is left of that lease's time the keeper stops it at five sixths";
static const char BY_KEEPER[] = "the keeper stops everything at five sixths, and a second "
                                "after a lease is known to be lost, "
                                "by itself: the link's word comes at the same moment";
static const char BY_WITHDRAWAL[] = "the rejoin compares that no command is there: who does "
                                    "not make way stands still until it is "
                                    "withdrawn, and adopts all of its tasks then or is killed";

/* clang-format off */
static const struct hfs_mutant MUTANTS[] = {
    /* L and what goes with it: Txns of a controller. */
#define CONTROLLER(NAME, KIND, COMPARES, PROFILE, TEXT)                                        \
    { .name = #NAME, .text = TEXT, .profile = PROFILE,                                         \
      .dropped = { HFS_CONTROLLER, HF_KEY_##KIND, COMPARES } }
    CONTROLLER(DROP_TERM, LEADER, CREATE | LEASE, "late", "that somebody else leads"),
    CONTROLLER(DROP_CAMPAIGN, LEADER, ABSENT, "late", "that somebody leads already"),
    CONTROLLER(DROP_TASK, TASK, SAME, "stops", "that the task was changed"),
    CONTROLLER(DROP_TASK_TEXT, TASK, TEXT, "relapses", "that another past changed the task"),
    CONTROLLER(DROP_RECOVERY, RECOVERY, SAME, "late", "that its recovery was counted"),
    CONTROLLER(DROP_OWNER_GONE, AGENT_LIVE, GONE, "watches", "that its owner is live"),
    CONTROLLER(DROP_LIVE_ABSENT, AGENT_LIVE, ABSENT, "late", "that the agent is live"),
    CONTROLLER(DROP_HEALTH, HEALTH, SAME, "late", "that a start was ordered"),
    CONTROLLER(DROP_COMMAND, COMMAND, SAME, "withdrawals", "that the command was served"),
    CONTROLLER(DROP_NO_COMMAND, COMMAND, ABSENT, "unheard", "that a start is outstanding"),
    CONTROLLER(DROP_SPEC, AGENT_SPEC, SAME, "specs", "that the agent is another one"),
    CONTROLLER(DROP_WANTED, WANTED, SAME, "stops", "that it is wanted stopped"),
    CONTROLLER(DROP_EVENT, EVENT, ABSENT, "late", "that the entry's number is taken"),
    CONTROLLER(DROP_CLOCK, CLOCK, SAME, "late", "that the cluster clock has gone on"),
    /* A and what goes with it: Txns of an agentd. */
#define AGENTD(NAME, KIND, COMPARES, PROFILE, TEXT)                                            \
    { .name = #NAME, .text = TEXT, .profile = PROFILE,                                         \
      .dropped = { HFS_AGENTD, HF_KEY_##KIND, COMPARES } }
    AGENTD(AGENTD_LIFE, AGENT_LIVE, CREATE | LEASE, "late", "that the life is over"),
    AGENTD(AGENTD_LIFE_CREATE, AGENT_LIVE, CREATE, "late", "that the life is another one"),
    AGENTD(AGENTD_LIVE_ABSENT, AGENT_LIVE, ABSENT, "late", "that the agent is live"),
    AGENTD(AGENTD_TASK, TASK, SAME, "people", "that the task was changed"),
    AGENTD(AGENTD_WANTED, WANTED, SAME, "stops", "that it is wanted stopped"),
    AGENTD(AGENTD_SPEC, AGENT_SPEC, SAME, "people", "that the agent is another one"),
    AGENTD(AGENTD_COMMAND, COMMAND, SAME, "orders", "that the command was withdrawn"),
    AGENTD(AGENTD_NO_COMMAND, COMMAND, ABSENT, "orders", "that a start was ordered here"),
    AGENTD(AGENTD_NO_LEADER, LEADER, ABSENT, "headless", "that somebody leads"),
    AGENTD(AGENTD_HOST_LIVE, HOST_LIVE, CREATE | LEASE, "refusals", "that the host is another"),
    AGENTD(AGENTD_REPORT, AGENT_REPORT, SAME, "late", "that a later report is there"),
    /* A person, or a program that speaks for one. */
#define PERSON(NAME, KIND, COMPARES, PROFILE, TEXT)                                            \
    { .name = #NAME, .text = TEXT, .profile = PROFILE,                                         \
      .dropped = { HFS_PERSON, HF_KEY_##KIND, COMPARES } }
    PERSON(PERSON_SUBMIT, TASK, ABSENT, "people", "that the task is there already"),
    PERSON(PERSON_TASK, TASK, SAME, "people", "that the task was changed"),
    PERSON(PERSON_WANTED, WANTED, SAME, "people", "that somebody else has spoken"),
    /* Without these nothing can happen. */
    { .name = "DROP_LEADER", .text = "that the key of this lease is another one",
      .dropped = { HFS_CONTROLLER, HF_KEY_LEADER, CREATE }, .profile = "late",
      .equivalent = SAME_KEY },
    { .name = "DROP_LEADER_LEASE", .text = "that the key hangs on another lease",
      .dropped = { HFS_CONTROLLER, HF_KEY_LEADER, LEASE }, .profile = "late",
      .equivalent = SAME_KEY },
    { .name = "AGENTD_LIFE_LEASE", .text = "that the live key hangs on another lease",
      .dropped = { HFS_AGENTD, HF_KEY_AGENT_LIVE, LEASE }, .profile = "late",
      .equivalent = SAME_LIFE },
    { .name = "AGENTD_CHECKPOINT", .text = "that the entry is there",
      .dropped = { HFS_AGENTD, HF_KEY_CHECKPOINT, ABSENT }, .profile = "late",
      .equivalent = BY_HEAD },
    /* Rules. */
#define RULE(NAME, PROFILE, WHY)                                                               \
    { .name = #NAME, .rules = UINT64_C(1) << HF_MUTANT_##NAME, .profile = PROFILE,             \
      .equivalent = WHY }
    RULE(NO_GRACE, "calm", NULL),
    RULE(NO_ADOPT_GRACE, "calm", NULL),
    RULE(NO_TILT, "stalls", NULL),
    RULE(NO_STORM, "blackout", NULL),
    RULE(NO_HOLD, "hold", NULL),
    RULE(NO_REST, "calm", NULL),
    RULE(NO_SYNC, "late", BY_LIST),
    RULE(NO_WANTED, "people", NULL),
    RULE(NO_BACKOFF, "calm", NULL),
    RULE(NO_HELD, NULL, NULL),
    RULE(NO_START_COUNT, NULL, NULL),
    RULE(NO_RECOVER_COUNT, NULL, NULL),
    RULE(NO_OUTSTANDING, "orders", NULL),
    RULE(NO_WITHDRAW, "calm", NULL),
    RULE(NO_TAKE_BACK, "lazy", NULL),
    RULE(NO_UNRESERVE, "stops", NULL),
    RULE(NO_PROMOTE, NULL, NULL),
    RULE(NO_GENERATION, "restores", NULL),
    RULE(NO_BAD, "garbage", NULL),
    RULE(ANY_EXIT, "calm", NULL),
    RULE(ANY_CHAIN, "calm", NULL),
    RULE(THAW_UNPROVEN, "calm", BY_SESSION),
    RULE(THAW_UNADOPTED, "calm", NULL),
    RULE(ADOPT_SOME, "calm", NULL),
    RULE(NO_FREEZE, "calm", BY_KEEPER),
    RULE(NO_LOST_FREEZE, "calm", BY_KEEPER),
    RULE(KEEP_REPLACED, "orders", NULL),
    RULE(KEEP_COMMANDED, "calm", BY_WITHDRAWAL),
    RULE(END_LATER, "people", NULL),
    RULE(NO_REAP, "people", NULL),
    RULE(BOOT_TWICE, NULL, NULL),
    RULE(START_JEOPARDY, NULL, NULL),
    RULE(CLAIM_JEOPARDY, NULL, NULL),
    RULE(ANY_RESERVED, NULL, NULL),
};
/* clang-format on */

enum { COUNT = sizeof MUTANTS / sizeof MUTANTS[0] };

const struct hfs_mutant *hfs_mutants_get(size_t *ret_count)
{
    *ret_count = COUNT;
    return MUTANTS;
}

const struct hfs_mutant *hfs_mutants_find(const char *name)
{
    for (size_t i = 0; i < COUNT; i++) {
        if (strcmp(MUTANTS[i].name, name) == 0)
            return &MUTANTS[i];
    }
    return NULL;
}

bool hfs_dropped_has(const struct hfs_dropped *dropped, const struct hfs_process *process,
                     const struct hf_plan_guard *guard)
{
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    if (dropped == NULL || (dropped->compares & 1U << guard->what) == 0 ||
        dropped->writer != process->role)
        return false;
    return hf_key_parse(HFS_NS, (struct hf_bytes){ guard->key, strlen(guard->key) }, scratch,
                        &key, NULL) == HF_OK &&
           key.kind == dropped->kind;
}
