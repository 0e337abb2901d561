/* chain.h - decides from which checkpoint a task goes on: the newest one that can be trusted.
 *
 * Pure: no clock, no allocation, no I/O; a plain value that may be copied. It runs in the
 * agentd that is about to start or hand out the task. The machine says which entry to verify,
 * is told what came of it, and goes on to an older one until it has an answer:
 *
 *     hf_chain_init(&chain, &policy, head, &recover);
 *     while ((step = hf_chain_next(&chain)).verdict == HF_CHAIN_VERIFY)
 *         hf_chain_on_verified(&chain, step.seq, result, parent);
 *
 * An entry that was restored and whose successor died `poison` times, by the outcomes of
 * recoveries/<task>, is passed over unread. One that cannot be read at the moment says nothing
 * about itself: it is read again, and then the start is refused, because another host, or a
 * later hour, may read it. One that lies in files of another host is not even read again: only
 * a host that has them can tell. Work is given up only for what is known to be bad.
 *
 * Guarantees:
 *   - what is used was verified, is no poison, and everything newer was found to be bad;
 *   - every entry but an unreadable one is asked for once, from the newest to the oldest, and
 *     `tries` answers in all lead to a verdict, whatever they are;
 *   - a person is told when work is lost, and of each kind of damage that was passed over. */
#ifndef HF_CORE_CHAIN_H
#define HF_CORE_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"
#include "core/recover.h"

struct hf_chain_policy {
    uint32_t poison;    /* this many deaths condemn a checkpoint */
    uint32_t tries;     /* answers after which no older entry is asked for */
    uint32_t rereads;   /* of one that cannot be read, before the start is refused */
    hf_ms reread_after; /* how long to wait before each */
};

/* 2, 100, 3, 2 s: a start that is refused is refused before it would be withdrawn. Cannot fail.
 */
struct hf_chain_policy hf_chain_policy_default(void);

/* HF_EINVAL, and a sentence in *ret_why, when the policy contradicts itself. */
int hf_chain_policy_check(const struct hf_chain_policy *policy,
                          const char **ret_why) HF_MUST_CHECK;

/* What came of an entry: its record in etcd, its link, and its body in the store. */
/* clang-format off */
#define HF_CHAIN_RESULT_MAP(X)                                                                 \
    X(VALID,      "is whole")                                                                  \
    X(CORRUPT,    "does not hash to what its record says")                                     \
    X(MISSING,    "is not there: its record, or its body")                                     \
    X(BROKEN,     "has a record that contradicts itself or its place in the chain")            \
    X(ELSEWHERE,  "lies in files that this host does not have")                                \
    X(UNREADABLE, "cannot be read at the moment")
/* clang-format on */

enum hf_chain_result {
#define X(name, text) HF_CHAIN_##name,
    HF_CHAIN_RESULT_MAP(X)
#undef X
};

enum hf_chain_verdict {
    HF_CHAIN_VERIFY,     /* verify .seq, after .wait */
    HF_CHAIN_USE,        /* go on from .seq */
    HF_CHAIN_START_OVER, /* there is none to go on from */
    HF_CHAIN_REFUSE,     /* refuse the start, or give the task back */
};

struct hf_chain_step {
    enum hf_chain_verdict verdict;
    const char *why;  /* a sentence; static */
    const char *next; /* what happens next; static */
    int64_t seq;      /* of VERIFY and USE; else 0 */
    hf_ms wait;       /* of VERIFY: before it is read; 0 but for one that is read again */
    bool alert;       /* work is lost, or an entry was found to be bad: a person is told */
};

/* Read-only for callers. */
struct hf_chain {
    struct hf_chain_policy policy;
    const struct hf_recover *recover; /* borrowed until there is a verdict */
    int64_t head;
    int64_t at;        /* the entry in question; 0: there is none left */
    uint32_t answers;  /* so far */
    uint32_t reread;   /* how often the entry in question could not be read */
    bool used;         /* it is whole */
    bool elsewhere;    /* it lies where this host cannot look */
    uint32_t poisoned; /* passed over unread */
    uint32_t found[HF_CHAIN_UNREADABLE + 1]; /* how many came to which result */
};

/* `head` is the task's newest checkpoint; 0: it has none. `policy` must have passed its check.
 */
void hf_chain_init(struct hf_chain *chain, const struct hf_chain_policy *policy, int64_t head,
                   const struct hf_recover *recover);

/* What to do now. Asking changes nothing. Cannot fail. */
struct hf_chain_step hf_chain_next(const struct hf_chain *chain);

/* Entry `seq` was verified. `parent` is what its record names, 0 for none, -1 if that could not
 * be read; an entry that names itself or a newer one is BROKEN, whatever else was found.
 * Ignored unless it was asked for. */
void hf_chain_on_verified(struct hf_chain *chain, int64_t seq, enum hf_chain_result result,
                          int64_t parent);

/* "VALID" ..., "VERIFY" ...; "?" for a value that is none. Static strings. */
const char *hf_chain_result_name(enum hf_chain_result result);
const char *hf_chain_verdict_name(enum hf_chain_verdict verdict);

/* "does not hash to what its record says"; "?" for a value that is none. */
const char *hf_chain_result_text(enum hf_chain_result result);

#endif
