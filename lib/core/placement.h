/* placement.h - decides on which host an agent is started: at home, elsewhere, or nowhere yet.
 *
 * Pure: no clock, no randomness, no allocation, no I/O. The caller gives the home and a few
 * other hosts, drawn with hf_placement_sample, so that a start costs the same in a pool of ten
 * hosts and of ten thousand; only when none of these will do it is asked for all of them.
 *
 * A host is fit when it is live, has not left, is of the agent's pool, has its launcher, is not
 * cordoned, has room, and nothing of this agent speaks against it: a process there that cannot
 * be killed, a start that failed. The pool without a name is one like any other: that of the
 * hosts that name none. A host that is passed over is a last resort: it is taken when no host
 * is fit, since an agent that nobody starts is worse than a start that may fail.
 *
 * Guarantees:
 *   - what is chosen is fit, and no host of those given is fit and less loaded; or none of all
 *     hosts is fit, and the same holds for those that are only passed over;
 *   - a home that is fit is always chosen; one that has vanished is waited for, but not for
 *     longer than `home_grace`, and not if it would not be fit when it came back;
 *   - among equals the random word decides, so that the agents of a lost host spread. */
#ifndef HF_CORE_PLACEMENT_H
#define HF_CORE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "holdfast/v1/records.pb-c.h"

#define HF_PLACEMENT_NEVER  INT64_MAX
#define HF_PLACEMENT_SAMPLE 8 /* hosts that a sample has at most */

struct hf_placement_policy {
    hf_ms home_grace;   /* how long a home that vanished is waited for */
    hf_ms ask_again;    /* at the latest, when no host would do */
    uint32_t sample;    /* hosts that are looked at first, 1..HF_PLACEMENT_SAMPLE */
    uint32_t unlimited; /* a host without a limit is as full as one with this capacity */
};

/* 60 s, 30 s, 4, 100. Cannot fail. */
struct hf_placement_policy hf_placement_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_placement_policy_check(const struct hf_placement_policy *policy,
                              const char **ret_why) HF_MUST_CHECK;

/* One host, as it matters to one agent. */
struct hf_placement_host {
    const char *name;
    const Holdfast__V1__Host *record; /* NULL: it has none, and is not fit */
    size_t agents;                    /* that live there */
    size_t starts;                    /* that are ordered there and not served yet */
    hf_ms gone_at;      /* when it was seen to vanish, or we began to look; unless live */
    hf_ms passed_until; /* a last resort for this launcher until then; 0: it is not */
    bool live;
    bool unkillable; /* a process of this agent there cannot be killed */
    bool avoided;    /* the agent failed to start there, or has to go elsewhere */
};

/* What is to be placed, and where it might be. All is borrowed for the call. */
struct hf_placement_case {
    const Holdfast__V1__Spec *spec;
    const struct hf_placement_host *home;  /* NULL: it has none that is known */
    const struct hf_placement_host *hosts; /* others; one that is the home is passed over */
    size_t count;
    bool is_all;     /* there are no others than these */
    bool fresh_only; /* one that is passed over will not do */
};

enum hf_placement_verdict {
    HF_PLACEMENT_HOST,      /* on .host */
    HF_PLACEMENT_WAIT_HOME, /* not yet: its home may come back until .at */
    HF_PLACEMENT_WIDEN,     /* none of these: ask with all hosts of the pool */
    HF_PLACEMENT_NONE,      /* no host can take it; ask again at .at or when one changes */
};

struct hf_placement_decision {
    enum hf_placement_verdict verdict;
    const char *why;  /* a sentence; static */
    const char *next; /* what happens next, or what would change it; static */
    hf_ms at;         /* `now` for HOST and WIDEN */
    const struct hf_placement_host *host; /* of HOST: one of those given */
};

/* Changes nothing. Cannot fail. */
struct hf_placement_decision hf_placement_decide(const struct hf_placement_policy *policy,
                                                 const struct hf_placement_case *facts,
                                                 hf_ms now, uint32_t random);

/* Draws different indices of `count` hosts, as many as the policy says, or all if there are
 * fewer. Every set is as likely as any other. Returns how many. */
size_t hf_placement_sample(const struct hf_placement_policy *policy, size_t count,
                           uint64_t random, size_t ret_indices[HF_PLACEMENT_SAMPLE]);

/* What stands against a host. The later it stands here, the sooner it may change. */
/* clang-format off */
#define HF_PLACEMENT_FAULT_MAP(X)                                                              \
    X(FIT,        "it can take it")                                                            \
    X(UNKNOWN,    "nothing is known of it")                                                    \
    X(POOL,       "it is of another pool")                                                     \
    X(LAUNCHER,   "it does not have the launcher")                                             \
    X(UNKILLABLE, "a process of the agent there cannot be killed")                             \
    X(AVOIDED,    "the agent could not be started there")                                      \
    X(LEFT,       "it said goodbye")                                                           \
    X(CORDONED,   "it is cordoned")                                                            \
    X(GONE,       "it is gone")                                                                \
    X(FULL,       "it is full")                                                                \
    X(PASSED,     "a start there failed a while ago")
/* clang-format on */

enum hf_placement_fault {
#define X(name, text) HF_PLACEMENT_##name,
    HF_PLACEMENT_FAULT_MAP(X)
#undef X
};

/* The first thing that stands against a host, in the order above; FIT for none. */
enum hf_placement_fault hf_placement_judge(const struct hf_placement_host *host,
                                           const Holdfast__V1__Spec *spec, hf_ms now);

/* "HOST" ..., "CORDONED" ..., "it is cordoned" ...; "?" for a value that is none. Static. */
const char *hf_placement_verdict_name(enum hf_placement_verdict verdict);
const char *hf_placement_fault_name(enum hf_placement_fault fault);
const char *hf_placement_fault_text(enum hf_placement_fault fault);

#endif
