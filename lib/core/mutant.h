/* mutant.h - rules that can be taken away one at a time, to show that each of them is needed.
 *
 * A test that cannot fail proves nothing: with a rule missing, the simulator must find a run in
 * which an invariant is broken, or something hangs. In a program no bit is ever set. */
#ifndef HF_CORE_MUTANT_H
#define HF_CORE_MUTANT_H

#include <stdbool.h>
#include <stdint.h>

/* Rules of a controller. Compares of its writes are left out elsewhere, by the simulator. */
/* clang-format off */
#define HF_MUTANT_RULE_MAP(X)                                                                  \
    X(NO_GRACE,         "who is missed is given up at once")                                   \
    X(NO_ADOPT_GRACE,   "who is back must have adopted its tasks at once")                     \
    X(NO_TILT,          "our own stalls are not noticed")                                      \
    X(NO_STORM,         "nothing is paced, however many are lost")                             \
    X(NO_HOLD,          "what holds through an outage is given up as others are")              \
    X(NO_REST,          "an answered write is not waited for in what is told")                 \
    X(NO_SYNC,          "decisions are made before everything was told")                       \
    X(NO_WANTED,        "who is wanted stopped is started all the same")                       \
    X(NO_BACKOFF,       "every start is ordered at once")                                      \
    X(NO_HELD,          "nobody is held, however often it is started")                         \
    X(NO_START_COUNT,   "starts are not stored")                                               \
    X(NO_RECOVER_COUNT, "recoveries of a task are not counted")                                \
    X(NO_OUTSTANDING,   "a start is ordered although one is outstanding")                      \
    X(NO_WITHDRAW,      "a start that nobody serves is waited for")                            \
    X(NO_TAKE_BACK,     "a task that its owner does not start stays with it")                  \
    X(NO_UNRESERVE,     "a task stays reserved for who does not come")                         \
    X(NO_PROMOTE,       "a queued task stays queued")                                          \
    X(NO_GENERATION,    "a restored etcd goes on with the old numbers")                        \
    X(NO_BAD,           "what cannot be read is taken for absent")                             \
    X(ANY_EXIT,         "any exit is taken for that of the last life")                         \
    X(ANY_CHAIN,        "checkpoints of a task are removed although it is not over")           \
    X(SWEEP_WANTED,     "what people want of an agent is swept with it")                       \
    X(CLOCK_UNWRITTEN,  "decisions are made before the clock of this term is stored")          \
    X(NO_RUNNING_MAX,   "a task is promoted although as many of its role run as may")          \
    X(NO_DEMOTE,        "what nobody has stays pending although too many of its role run")     \
    X(NO_HEIR_COUNT,    "starts by leave are not counted")

/* Rules of an agentd. */
#define HF_MUTANT_NODE_MAP(X)                                                                  \
    X(THAW_UNPROVEN,    "what was frozen runs again before the lease is proven")               \
    X(THAW_UNADOPTED,   "what was frozen runs again before its tasks are its own")             \
    X(ADOPT_SOME,       "who could not adopt all of its tasks goes on with the others")        \
    X(NO_FREEZE,        "what runs is not frozen when its lease is in doubt")                  \
    X(NO_LOST_FREEZE,   "what is not registered any more runs on")                             \
    X(KEEP_REPLACED,    "who was replaced goes on")                                            \
    X(KEEP_COMMANDED,   "who could not rejoin for a command goes on")                          \
    X(END_LATER,        "an order to end an incarnation ends later ones, too")                 \
    X(NO_REAP,          "a life without a process stays")                                      \
    X(NO_LOOK,          "what a dead link left under the lease is not looked for")             \
    X(BOOT_TWICE,       "an agentd starts its agents by itself again and again")               \
    X(START_JEOPARDY,   "processes begin while the lease is in doubt")                         \
    X(CLAIM_JEOPARDY,   "tasks are claimed while the lease is in doubt")                       \
    X(ANY_RESERVED,     "what is reserved for another is claimed")                             \
    X(NO_FENCE_KILL,    "what is to be killed when its lease is in doubt only stands still")   \
    X(ANY_LEAVE,        "who crashed is started again at once, also without leave")

/* Rules of a lease and of an election, in their policies. */
#define HF_MUTANT_LEASE_MAP(X)                                                                 \
    X(NO_FENCE,         "nothing is frozen, however long nobody has heard of etcd")            \
    X(OLD_PROOF,        "what was frozen runs again by a Txn that was sent before")            \
    X(RECEIVE_TIME,     "a renewal counts from when its answer came")                          \
    X(OLD_TERM,         "a renewal counts that an outdated leader answered")                   \
    X(ASKED_TTL,        "a lease is reckoned to last as long as was asked for")                \
    X(LEAD_ON,          "a leader acts on though nothing has proven its lease for long")

/* Numbers, and what lies around the decisions: the simulator takes them away by itself. */
#define HF_MUTANT_NUMBER_MAP(X)                                                                \
    X(ONE_GRACE,        "grace is the same in a partial storm")                                \
    X(NO_RATE,          "in a partial storm nothing is paced")                                 \
    X(NO_FULL,          "nothing is held when everybody is missed")                            \
    X(ENDLESS_FREEZE,   "what stands still does so for ever")                                  \
    X(NO_AGENT_LIMIT,   "an agent may die with tasks as often as it likes")                    \
    X(NO_TASK_BACKOFF,  "every recovery is at once")                                           \
    X(NO_POISON,        "a checkpoint is restored however many it has killed")                 \
    X(NO_PROBATION,     "a recovery is a success as soon as somebody has the task")            \
    X(NO_PASS_OVER,     "a host that does not serve a start is asked again")                   \
    X(NO_MARK,          "who finds its own op_id does not take that for success")              \
    X(SKIP_EVENT,       "a watch goes on one revision too late")                               \
    X(OLD_ANSWER,       "an answer of before what was known is taken for any other")
/* clang-format on */

enum hf_mutant {
#define X(name, text) HF_MUTANT_##name,
    HF_MUTANT_RULE_MAP(X) HF_MUTANT_NODE_MAP(X) HF_MUTANT_LEASE_MAP(X) HF_MUTANT_NUMBER_MAP(X)
#undef X
        HF_MUTANTS, /* how many; at most 64 */
};

/* "NO_GRACE", and the sentence above. Static strings; "?" for a value that is none. */
const char *hf_mutant_name(enum hf_mutant mutant);
const char *hf_mutant_text(enum hf_mutant mutant);

static inline uint64_t hf_mutant_bit(enum hf_mutant mutant)
{
    return UINT64_C(1) << mutant;
}

#endif
