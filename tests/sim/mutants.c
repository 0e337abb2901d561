#include "sim/mutants.h"

#include <stdio.h>
#include <string.h>

#define ABSENT (1U << HF_GUARD_ABSENT)
#define MOD    (1U << HF_GUARD_MOD)
#define CREATE (1U << HF_GUARD_CREATE)
#define GONE   (1U << HF_GUARD_GONE)
#define LEASE  (1U << HF_GUARD_LEASE)
#define TEXT   (1U << HF_GUARD_TEXT)

/* Why some harm nothing. */
static const char BY_GRANT[] = "etcd grants what was asked for or more, and refuses the rest: "
                               "whoever reckons with what it "
                               "asked for stops sooner, never later";
static const char BY_TERM[] =
    "every write of a controller compares L: what a leader decides beyond its time is refused "
    "as soon as somebody else may lead";
static const char BY_HEAD[] =
    "M(task) implies it: the entry's number is that of the head + 1, and whoever put an entry "
    "with that number has moved the head with the same Txn; a backup has both or neither";
static const char BY_OWNED[] = "M(task), L and the owner's life gone imply it: who leads "
                               "changes the recovery of a task that "
                               "has an owner only with the task, or while that owner is live; "
                               "a person, only with the task";
static const char BY_QUEUED[] =
    "M(task) and L imply it: when a task may be had was stored by the Txn that queued it, and "
    "nothing else changes that while it is queued";
static const char BY_RESERVED[] =
    "M(command), M(task) and L imply it: while the start is outstanding and the task waits for "
    "it, who leads changes its recovery with one of them, and a person with the task";
static const char BY_FINAL[] =
    "M(task) implies it: of a task that is final nothing is counted any more; all that can "
    "come "
    "between is that the counting is closed, and it is cleared either way";
static const char BY_HEALTH[] =
    "M(health) and that the host which health names has no start imply it: a start is put with "
    "the health record that names its host, and another one only when that one is gone";
static const char BY_HOST[] = "the same Txn compares the host's live key, which hangs on the "
                              "same lease: both end together";
static const char BY_LIVES[] =
    "the same Txn compares the live keys of all that runs, which hang on the same lease: they "
    "end together";
static const char BY_COMMAND[] =
    "M(command) is the same to the byte, so it is the start that was refused, and the name of "
    "the key says that it is that host: what one agentd of it could not start is refused once. "
    "And M(record) is, so it is what the host said of itself with that lease";
static const char BY_JOIN[] =
    "M(record) implies it: a host that comes puts its record with its live key, and whoever "
    "removes it has read the record first, and then that the key is not there";
static const char BY_OUTSTANDING[] =
    "M(command) and L imply it: while a start is outstanding, who leads writes nothing of the "
    "agent but its withdrawal, and a person releases only who is held, of whom no start is";
static const char BY_OWN_WORD[] = "A implies all that matters: what is put over is a word of "
                                  "the same life, which is shown and "
                                  "never a verdict";
static const char BY_SESSION[] =
    "the session takes nothing for unfrozen before a Txn sent after the freeze has committed, "
    "and "
    "in what is left of that lease's time the keeper stops it at five sixths";
static const char BY_KEEPER[] = "the keeper stops everything at five sixths, and a second "
                                "after a lease is known to be lost, "
                                "by itself: the link's word comes at the same moment";
static const char BY_WITHDRAWAL[] =
    "the rejoin compares that no command is there, and an agentd that has a process makes no "
    "second one: who does not make way is not registered while the start stands, be it frozen "
    "or "
    "on hold; when that is withdrawn it adopts all of its tasks, or is killed";

static const char BY_LEAVE[] =
    "M(health) implies it: leave is written while no start is outstanding, and a start is "
    "ordered with the health record, which then gives leave to nobody";

/* clang-format off */
#define DROP(NAME, ROW, KIND, COMPARES, PROFILE, ...)                                          \
    { .name = #NAME, .profile = PROFILE,                                                       \
      .dropped = { HF_ROW_##ROW, HF_KEY_##KIND, COMPARES }, .equivalent = __VA_ARGS__ }
/* A, L and M(k). */
#define LIFE(ROW, PROFILE, ...)                                                                \
    DROP(ROW##_LIFE, ROW, AGENT_LIVE, CREATE | LEASE, PROFILE, __VA_ARGS__)
#define TERM(ROW, PROFILE, ...)                                                                \
    DROP(ROW##_TERM, ROW, LEADER, CREATE | LEASE, PROFILE, __VA_ARGS__)
#define SAME(ROW, KIND, PROFILE, ...)                                                          \
    DROP(ROW##_##KIND, ROW, KIND, MOD | TEXT, PROFILE, __VA_ARGS__)
/* One half of them, in all rows alike. */
#define HALF(KIND, COMPARES, PROFILE, ...)                                                     \
    { .name = #KIND "_" #COMPARES, .profile = PROFILE,                                         \
      .dropped = { HFS_ANY_ROW, HF_KEY_##KIND, COMPARES }, .equivalent = __VA_ARGS__ }
#define NONE(ROW, KIND, PROFILE, ...)                                                          \
    DROP(ROW##_NO_##KIND, ROW, KIND, ABSENT, PROFILE, __VA_ARGS__)

static const struct hfs_mutant MUTANTS[] = {
    NONE(SUBMIT, TASK, "aimed", NULL),
    NONE(JOIN, HOST_LIVE, "relapsed aimed", NULL),
    SAME(JOIN, HOST_RECORD, "comebacks", NULL),
    DROP(HOST_HERE, HOST, HOST_LIVE, CREATE | LEASE, "reloads", NULL),
    SAME(HOST, HOST_RECORD, "reloads", NULL),
    SAME(SPEC, AGENT_SPEC, "aimed", NULL),

    NONE(START_BY_COMMAND, AGENT_LIVE, "comebacks orders", NULL),
    SAME(START_BY_COMMAND, AGENT_SPEC, "specs returns", NULL),
    SAME(START_BY_COMMAND, WANTED, "stops aimed", NULL),
    SAME(START_BY_COMMAND, COMMAND, "aimed", NULL),
    SAME(START_BY_COMMAND, TASK, "cancelled", NULL),

    NONE(BOOT_START, AGENT_LIVE, "aimed", NULL),
    SAME(BOOT_START, AGENT_SPEC, "returns", NULL),
    SAME(BOOT_START, WANTED, "returns", NULL),
    NONE(BOOT_START, COMMAND, "aimed", NULL),

    NONE(REJOIN, AGENT_LIVE, "aimed", NULL),
    SAME(REJOIN, AGENT_SPEC, "returns", NULL),
    SAME(REJOIN, WANTED, "aimed", NULL),
    NONE(REJOIN, COMMAND, "aimed", NULL),

    NONE(LOCAL_RESTART, LEADER, "leaderless headless", NULL),
    NONE(LOCAL_RESTART, AGENT_LIVE, "leaderless headless", NULL),
    SAME(LOCAL_RESTART, AGENT_SPEC, "leaderless headless", NULL),
    SAME(LOCAL_RESTART, WANTED, "leaderless headless", NULL),
    NONE(LOCAL_RESTART, COMMAND, "orphans", NULL),

    NONE(SUCCEED, AGENT_LIVE, "heirs", NULL),
    SAME(SUCCEED, AGENT_SPEC, "specs aimed", NULL),
    SAME(SUCCEED, WANTED, "stops aimed", NULL),
    NONE(SUCCEED, COMMAND, "heirs aimed", BY_LEAVE),
    SAME(SUCCEED, HEALTH, "heirs", NULL),
    SAME(SUCCEED, AGENT_EXIT, "heirs givers", NULL),
    SAME(SUCCEED, TASK, "cancelled", NULL),

    LIFE(REAP, "orders people aimed", NULL),
    LIFE(CLAIM, "aimed", NULL),
    SAME(CLAIM, TASK, "aimed", NULL),
    LIFE(TASK, "aimed", NULL),
    SAME(TASK, TASK, "aimed", NULL),
    LIFE(RELEASE, "released", NULL),
    SAME(RELEASE, TASK, "released", NULL),
    LIFE(CHECKPOINT, "aimed", NULL),
    SAME(CHECKPOINT, TASK, "cancelled aimed", NULL),
    NONE(CHECKPOINT, CHECKPOINT, "aimed", BY_HEAD),
    LIFE(REPORT, "aimed", NULL),
    SAME(REPORT, AGENT_REPORT, "aimed", NULL),
    LIFE(END, "aimed", NULL),
    LIFE(ADOPT, "aimed", NULL),
    SAME(ADOPT, TASK, "aimed", NULL),

    TERM(RESET, "terms aimed again", NULL),
    SAME(RESET, TASK, "cancelled", NULL),
    SAME(RESET, RECOVERY, "again cancelled", BY_OWNED),
    DROP(RESET_OWNER_GONE, RESET, AGENT_LIVE, GONE, "watches relapsed", NULL),
    TERM(ORDER, "terms", NULL),
    SAME(ORDER, HEALTH, "aimed late orders", NULL),
    NONE(ORDER, COMMAND, "unheard", BY_HEALTH),
    NONE(ORDER, AGENT_LIVE, "aimed", NULL),
    SAME(ORDER, AGENT_SPEC, "specs", NULL),
    SAME(ORDER, WANTED, "stops", NULL),
    TERM(PROMOTE, "terms again", NULL),
    SAME(PROMOTE, TASK, "again", NULL),
    SAME(PROMOTE, RECOVERY, "again", BY_QUEUED),
    TERM(DEMOTE, "crowded", NULL),
    SAME(DEMOTE, TASK, "crowded", NULL),
    DROP(REFUSE_HOST, REFUSE, HOST_LIVE, CREATE | LEASE, "refusals aimed", NULL),
    SAME(REFUSE, COMMAND, "aimed", NULL),
    SAME(REFUSE, TASK, "cancelled", NULL),
    TERM(WITHDRAW, "recalled", NULL),
    SAME(WITHDRAW, COMMAND, "withdrawals", NULL),
    SAME(WITHDRAW, HEALTH, "withdrawals", BY_OUTSTANDING),
    SAME(WITHDRAW, TASK, "recalled", NULL),
    SAME(WITHDRAW, RECOVERY, "cancelled withdrawals", BY_RESERVED),
    TERM(TAKE_BACK, "lazily", NULL),
    SAME(TAKE_BACK, TASK, "lazily", NULL),
    TERM(REVIEW, "reviewed", NULL),
    SAME(REVIEW, TASK, "reviewed", NULL),
    SAME(REVIEW, RECOVERY, "again", BY_OWNED),
    DROP(REVIEW_OWNER_GONE, REVIEW, AGENT_LIVE, GONE, "overlooked", NULL),

    TERM(END_STALLED, "quiet", NULL),
    SAME(END_STALLED, HEALTH, "quiet", NULL),
    SAME(END_STALLED, AGENT_REPORT, "quiet", NULL),
    SAME(END_STALLED, TASK, "quiet", NULL),
    SAME(WANT, WANTED, "aimed", NULL),
    SAME(CANCEL, TASK, "aimed", NULL),
    SAME(RETRY, TASK, "aimed", NULL),
    SAME(RETRY, RECOVERY, "aimed", BY_FINAL),
    NONE(REMOVE_AGENT, AGENT_LIVE, "people returns", NULL),
    SAME(REMOVE_AGENT, AGENT_SPEC, "people returns specs", NULL),
    TERM(SWEEP, "swept", NULL),
    NONE(SWEEP, AGENT_LIVE, "swept", NULL),
    SAME(SWEEP, AGENT_SPEC, "swept", NULL),
    TERM(SWEEP_CHAIN, "terms aimed", NULL),
    SAME(SWEEP_CHAIN, TASK, "cancelled aimed", NULL),
    NONE(REMOVE_HOST, HOST_LIVE, "leavers", BY_JOIN),
    SAME(REMOVE_HOST, HOST_RECORD, "leavers", NULL),
    SAME(OPERATE, HOST_RECORD, "leavers", NULL),
    SAME(OPERATE, HEALTH, "releases", NULL),
    SAME(LEAVE, HOST_RECORD, "leavers", NULL),

    TERM(WRITE, "terms", NULL),
    SAME(WRITE, META, "aimed", NULL),
    SAME(WRITE, CLOCK, "aimed", NULL),
    SAME(WRITE, HEALTH, "aimed", NULL),
    SAME(WRITE, RECOVERY, "aimed", NULL),
    TERM(CLOSE, "reviewed", NULL),
    SAME(CLOSE, TASK, "relapsed", NULL),
    SAME(CLOSE, RECOVERY, "aimed", NULL),
    TERM(LEAD, "aimed terms", NULL),
    NONE(EVENT, EVENT, "aimed", NULL),
    NONE(NO_START, COMMAND, "unheard", NULL),
    SAME(NO_HEIR, AGENT_EXIT, "overlooked heirs", NULL),
    DROP(RESIGN_TERM, RESIGN, LEADER, CREATE | LEASE, "resigns", NULL),
    NONE(CAMPAIGN, LEADER, "aimed", NULL),
    DROP(PROOF_LIFE, PROOF, AGENT_LIVE, CREATE | LEASE, "lies", BY_HOST),
    DROP(PROOF_HOST, PROOF, HOST_LIVE, CREATE | LEASE, "lies", BY_LIVES),
    { .name = "PROOF_ALL", .profile = "ghosts",
      .dropped = { HF_ROW_PROOF, HFS_ANY_KIND, CREATE | LEASE } },
    DROP(PROOF_TERM, PROOF, LEADER, CREATE | LEASE, "lies", BY_TERM),

    HALF(AGENT_LIVE, CREATE, "aimed", NULL),
    HALF(AGENT_LIVE, LEASE, "relapsed", NULL),
    HALF(HOST_LIVE, CREATE, "aimed relapsed reloads", BY_COMMAND),
    HALF(HOST_LIVE, LEASE, "relapsed reloads", BY_COMMAND),
    HALF(LEADER, CREATE, "resigns relapsed", NULL),
    HALF(LEADER, LEASE, "relapsed", NULL),
    HALF(HOST_RECORD, TEXT, "losses", NULL),
    HALF(AGENT_SPEC, TEXT, "relapsed", NULL),
    HALF(AGENT_REPORT, TEXT, "relapsed", BY_OWN_WORD),
    HALF(WANTED, TEXT, "relapsed", NULL),
    HALF(HEALTH, TEXT, "releases", NULL),
    HALF(TASK, TEXT, "relapsed", NULL),
    HALF(COMMAND, TEXT, "calls", NULL),
    HALF(RECOVERY, TEXT, "givers", NULL),
    HALF(META, TEXT, "rates", NULL),
    HALF(CLOCK, TEXT, "releases", NULL),

    /* Rules. */
#define RULE(NAME, PROFILE, ...)                                                               \
    { .name = #NAME, .rules = UINT64_C(1) << HF_MUTANT_##NAME, .profile = PROFILE,             \
      .equivalent = __VA_ARGS__ }
    RULE(NO_GRACE, "calm", NULL),
    RULE(NO_ADOPT_GRACE, "returns", NULL),
    RULE(NO_TILT, "stalls", NULL),
    RULE(NO_STORM, "blackout", NULL),
    RULE(NO_HOLD, "hold", NULL),
    RULE(NO_REST, "calm", NULL),
    RULE(NO_SYNC, "forgetful", NULL),
    RULE(NO_WANTED, "people", NULL),
    RULE(NO_BACKOFF, "calm", NULL),
    RULE(NO_HELD, NULL, NULL),
    RULE(NO_START_COUNT, NULL, NULL),
    RULE(NO_RECOVER_COUNT, NULL, NULL),
    RULE(NO_HEIR_COUNT, NULL, NULL),
    RULE(NO_OUTSTANDING, "orders", NULL),
    RULE(NO_WITHDRAW, "calm", NULL),
    RULE(NO_TAKE_BACK, "lazy", NULL),
    RULE(NO_UNRESERVE, "stops", NULL),
    RULE(NO_PROMOTE, NULL, NULL),
    RULE(NO_GENERATION, "restores", NULL),
    RULE(NO_BAD, "garbage", NULL),
    RULE(ANY_EXIT, "calm", NULL),
    RULE(ANY_CHAIN, "calm", NULL),
    RULE(SWEEP_WANTED, "swept", NULL),
    RULE(THAW_UNPROVEN, "calm", BY_SESSION),
    RULE(THAW_UNADOPTED, "calm", NULL),
    RULE(ADOPT_SOME, "calm", NULL),
    RULE(NO_FREEZE, "calm", BY_KEEPER),
    RULE(NO_LOST_FREEZE, "calm", BY_KEEPER),
    RULE(KEEP_REPLACED, "orders", NULL),
    RULE(KEEP_COMMANDED, "hold", BY_WITHDRAWAL),
    RULE(END_LATER, "people", NULL),
    RULE(NO_REAP, "people", NULL),
    RULE(NO_LOOK, "guests", NULL, .aim = { HF_ROW_REJOIN, HF_KEY_AGENT_LIVE, ABSENT }),
    RULE(BOOT_TWICE, NULL, NULL),
    RULE(START_JEOPARDY, NULL, NULL),
    RULE(CLAIM_JEOPARDY, "pauses", NULL),
    RULE(ANY_RESERVED, NULL, NULL),
    RULE(ANY_LEAVE, NULL, NULL),
    RULE(CLOCK_UNWRITTEN, "clocks", NULL, .aim = { HF_ROW_WRITE, HF_KEY_CLOCK, MOD | TEXT }),
    RULE(NO_FENCE_KILL, "kills", NULL),
    RULE(NO_FENCE, "calm", NULL),
    RULE(OLD_PROOF, "lies", NULL),
    RULE(RECEIVE_TIME, "receipts", NULL),
    RULE(OLD_TERM, "liars", NULL),
    RULE(ASKED_TTL, "calm", BY_GRANT),
    RULE(LEAD_ON, "late", BY_TERM),
    RULE(ONE_GRACE, "storms", NULL),
    RULE(NO_RATE, "storms", NULL),
    RULE(NO_FULL, "blackout", NULL),
    RULE(ENDLESS_FREEZE, "outages", NULL),
    RULE(NO_AGENT_LIMIT, "again", NULL),
    RULE(NO_TASK_BACKOFF, "again", NULL),
    RULE(NO_POISON, NULL, NULL),
    RULE(NO_PROBATION, "again", NULL),
    RULE(NO_PASS_OVER, "withdrawals", NULL),
    RULE(NO_RUNNING_MAX, "queues crowded", NULL),
    RULE(NO_DEMOTE, "queues", NULL),
    RULE(NO_MARK, "words", NULL),
    RULE(SKIP_EVENT, NULL, NULL),
    RULE(OLD_ANSWER, "restores", NULL),
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

void hfs_mutant_apply(const struct hfs_mutant *mutant, bool only_aim, struct hfs_run *run)
{
    struct hfs_cluster_config *cfg = &run->cluster;

    if (mutant->dropped.row != HF_ROW_NONE)
        cfg->aim.at = &mutant->dropped;
    else if (mutant->aim.row != HF_ROW_NONE)
        cfg->aim.at = &mutant->aim;
    cfg->aim.withholds = mutant->aim.row != HF_ROW_NONE;
    cfg->aim.drops = !only_aim && mutant->dropped.row != HF_ROW_NONE;
    cfg->mutants = only_aim ? 0 : mutant->rules;
}

bool hfs_dropped_has(const struct hfs_dropped *dropped, struct hfs_census *census,
                     const struct hf_plan_guard *guard)
{
    unsigned bit = 1U << guard->what;
    char scratch[HF_KEY_SIZE];
    struct hf_key key;
    bool has;

    if ((dropped == NULL && census == NULL) ||
        hf_key_parse(HFS_NS, hf_bytes_of(guard->key), scratch, &key, NULL) != HF_OK)
        return false;
    has = dropped != NULL && (dropped->row == guard->row || dropped->row == HFS_ANY_ROW) &&
          (dropped->kind == key.kind || dropped->kind == HFS_ANY_KIND) &&
          (dropped->compares & bit) != 0;
    if (census != NULL) {
        census->compares[guard->row][key.kind] |= (uint8_t)bit;
        census->dropped += has;
    }
    return has;
}

bool hfs_dropped_rides(const struct hfs_dropped *dropped, const struct hf_plan_guard *guard)
{
    if (dropped == NULL)
        return false;
    if (dropped->row == HF_ROW_REAP)
        return guard->row == HF_ROW_START_BY_COMMAND || guard->row == HF_ROW_BOOT_START;
    return dropped->kind == HF_KEY_LEADER && dropped->row == HFS_ANY_ROW &&
           guard->row == HF_ROW_CAMPAIGN;
}

static const char *const WHATS[] = {
    [HF_GUARD_ABSENT] = "absent", [HF_GUARD_MOD] = "mod",     [HF_GUARD_CREATE] = "create",
    [HF_GUARD_GONE] = "gone",     [HF_GUARD_LEASE] = "lease", [HF_GUARD_TEXT] = "text",
};

static unsigned left_out(int row, int kind)
{
    unsigned compares = 0;

    for (size_t i = 0; i < COUNT; i++) {
        int its_row = (int)MUTANTS[i].dropped.row;

        if ((its_row == row || its_row == (int)HFS_ANY_ROW) &&
            (int)MUTANTS[i].dropped.kind == kind)
            compares |= MUTANTS[i].dropped.compares;
    }
    return compares;
}

bool hfs_mutants_find_missing(const struct hfs_census *census, char *ret_text, size_t size)
{
    for (int row = 0; row < HF_ROWS; row++) {
        for (int kind = 0; kind < HF_KEY_KINDS; kind++) {
            unsigned missing = census->compares[row][kind] & ~left_out(row, kind);

            if (missing == 0)
                continue;
            (void)snprintf(ret_text, size, "%s of key kind %d in row %s",
                           WHATS[__builtin_ctz(missing)], kind, hf_row_name((enum hf_row)row));
            return true;
        }
    }
    return false;
}
