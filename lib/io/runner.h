/* runner.h - the one glue between a decider and the world: events in, intents out, outcomes
 * back.
 *
 * Follows what the decider wants mirrored, tells it every change, carries its writes and reads
 * out, and holds the lease (an agentd) or stands for leadership (a controller). The link, the
 * controller and the simulator run this same code over their backends (io/backend.h).
 *
 * Guarantees, for every order of events:
 *   - the decider is never called from inside one of its own calls, nor asked for intents
 *     amid what one revision changed in one range;
 *   - writes that touch a common key (one of them changes it) are sent one after the other, in
 *     the order in which they were asked for; each has exactly one outcome;
 *   - a controller's write is sent only while it can act at that very moment;
 *   - what the decider cannot take in for want of memory is told again later: an outcome as it
 *     was, what a mirror told by opening it anew (HF_EVENT_FORGET);
 *   - where there are more keys than may be followed, nothing is decided until there are fewer;
 *   - after a history reset everyone hears of it: decider, lease and candidate. The mirror
 *     finds it out, the decider, or the first write that is answered with a revision of before
 *     what was known when it was sent. */
#ifndef HF_IO_RUNNER_H
#define HF_IO_RUNNER_H

#include "io/candidate.h"
#include "io/decider.h"
#include "io/session.h"

struct hf_runner;

/* Zero means the default, where one is named. */
struct hf_runner_config {
    const char *ns; /* copied */
    struct hf_decider decider;
    struct hf_lease_policy lease;
    unsigned writes_at_once; /* 64 */
    size_t keys_max;         /* that are followed: any number; see below */

    /* A controller: stands for leadership, with this as what its key says of it. Without a
     * value: an agentd, which holds a lease. */
    struct hf_bytes leader;
    struct hf_bytes (*get_leader)(
        void *arg); /* as in struct hf_candidate_config. May be NULL */
    struct hf_election_policy election;
    hf_ms survey_every; /* a leader asks all members of etcd how they are: 10 s */

    const struct hf_lease_record *resume; /* an agentd: as in struct hf_session_config */

    /* An intent that is not etcd's: a process, a reply, an alert, a body to be verified. What
     * it points to is valid during the call, from which the runner must not be fed. */
    void (*on_intent)(const struct hf_intent *intent, void *arg);
    /* An agentd: the lease changed. May be NULL. */
    void (*on_lease)(const struct hf_session_view *view, void *arg);
    /* A failed attempt, for the log. May be NULL. */
    void (*on_trouble)(const char *what, int err, const char *message, void *arg);
    void *arg;
};

/* Begins at once; the decider must outlive it. HF_EINVAL with a sentence when a policy
 * contradicts itself. */
int hf_runner_new(const struct hf_backend *backend, const struct hf_runner_config *cfg,
                  struct hf_runner **ret_runner, struct hf_error *err) HF_MUST_CHECK;

typedef void (*hf_runner_closed_fn)(void *arg);

/* Ends it, whatever is under way; allowed from any callback. From now on nothing comes but `fn`
 * (may be NULL), later. A controller gives its key back; an agentd gives its lease back with
 * `revoke`, else the lease lives on to be resumed. */
void hf_runner_close(struct hf_runner *runner, bool revoke, hf_runner_closed_fn fn, void *arg);

/* Tells the decider something that only the owner knows: HF_EVENT_PROCESS, ASK or VERIFIED.
 * HF_ENOMEM: it was not taken in; HF_ECANCELED: the runner is closing. Not from on_intent. */
int hf_runner_feed(struct hf_runner *runner, struct hf_event *event) HF_MUST_CHECK;

/* Counters since the start, for metrics. */
struct hf_runner_stats {
    uint64_t events;    /* that the decider took in */
    uint64_t intents;   /* that it gave */
    uint64_t writes[4]; /* ended, by enum hf_outcome */
    uint64_t reads;
    uint64_t bad;     /* keys or records that could not be read */
    uint64_t forgets; /* times that everything had to be told again, for want of memory, ... */
    uint64_t resets;  /* ... and because etcd's history went back */
    size_t flights;   /* not counted: writes waiting or under way */
    bool synced;      /* likewise: everything was told since the last of them */
};

struct hf_runner_stats hf_runner_get_stats(const struct hf_runner *runner);

/* When its watch last proved that it works; 0: there is none. */
hf_ms hf_runner_get_heard_at(const struct hf_runner *runner);

/* What holds at this moment. A runner has one of the two; the other is all zero. */
struct hf_session_view hf_runner_get_lease(const struct hf_runner *runner);
struct hf_candidate_view hf_runner_get_candidate(const struct hf_runner *runner);

/* A controller: its lease is proven at this very moment, so etcd answers. */
bool hf_runner_is_proven(const struct hf_runner *runner);

#endif
