/* runner_private.h - the inside of a runner, shared by its files and by nobody else. */
#ifndef HF_IO_RUNNER_PRIVATE_H
#define HF_IO_RUNNER_PRIVATE_H

#include "io/commit.h"
#include "io/crash.h"
#include "io/runner.h"

/* One write: waiting for others, under way, or answered and still to be told. */
struct hf_flight {
    struct hf_runner *runner;
    struct hf_flight *next;
    struct hf_plan plan;
    uint32_t keys[HF_PLAN_WRITES + HF_PLAN_GUARDS]; /* hashes: the written ones come first */
    size_t written, touched;
    size_t blockers; /* earlier ones that touch a common key */
    enum { HF_FLIGHT_WAITING, HF_FLIGHT_SENT, HF_FLIGHT_ANSWERED } state;
    struct hf_commit *commit; /* while it is sent */
    hf_rev known;             /* the newest revision that was known when it was sent, ... */
    uint64_t resets;          /* ... and how often etcd had gone back by then */
    struct hf_event_outcome outcome;
};

/* One read under way, or one whose failure is still to be told. */
struct hf_reading {
    struct hf_runner *runner;
    struct hf_reading *next;
    uint64_t token;
    struct hf_call *call; /* of a single key */
    struct hf_list *list; /* of a scope */
    bool failed;
    int err;
};

/* What is known of etcd itself. */
struct hf_runner_cluster {
    struct hf_event_cluster seen;
    bool untold;
    struct hf_alarm alarm; /* for the next survey */
    struct hf_survey *survey;
    bool refused; /* the last one was: some releases of etcd answer only root */
};

struct hf_runner {
    struct hf_backend backend;
    struct hf_runner_config cfg; /* its ns is owned */
    uint32_t seed;
    struct hf_runner_stats stats;

    struct hf_session *session;     /* one of the two */
    struct hf_candidate *candidate; /* */
    bool lease_untold, term_untold;

    struct hf_alarm turn; /* when to look at everything again */
    bool in_turn, in_intent;
    bool again; /* something came up during the turn */

    hf_rev newest;            /* revision that etcd is known to have reached, since a reset */
    struct hf_mirror *mirror; /* NULL while there is none */
    struct hf_recall past;    /* what the one before saw of etcd's */
    uint64_t ranges_version;  /* that it follows */
    hf_ms open_at;            /* not before then */
    bool voided;              /* what was told is void, and that is still to be told ... */
    bool voided_by_reset;     /* ... as HF_EVENT_RESET */
    bool lacks_memory;        /* something could not be told: try again in a while */

    struct hf_flight *flights; /* in the order of their intents */
    struct hf_flight **flights_end;
    size_t sent;
    struct hf_flight *spare_flight; /* so that an intent that was given can be kept */
    struct hf_reading *readings;
    struct hf_reading *spare_reading;
    struct hf_runner_cluster cluster;
    struct hf_crash crash;

    struct hf_decider_key *keys; /* that hang on the lease, while they are asked for */
    size_t key_count;
    char key_text[HF_KEY_SIZE];

    bool closing, revoke;
    hf_runner_closed_fn closed_fn;
    void *closed_arg;
};

static inline hf_ms hf_runner_now(const struct hf_runner *runner)
{
    return hf_backend_now(&runner->backend);
}

void hf_runner_complain(struct hf_runner *runner, const char *what, int err,
                        const char *message);

/* Has everything looked at as soon as whoever calls us has returned. */
void hf_runner_soon(struct hf_runner *runner);

/* Tells the decider; see hf_decider_ops.step. A contradiction in history is dealt with here. */
int hf_runner_step(struct hf_runner *runner, struct hf_event *event) HF_MUST_CHECK;

/* etcd has reached that revision: it told of a change, or wrote what it was asked to. */
static inline void hf_runner_on_revision(struct hf_runner *runner, hf_rev revision)
{
    if (revision > runner->newest)
        runner->newest = revision;
}

/* etcd's history went back: whoever else remembers something hears of it. */
void hf_runner_spread_reset(struct hf_runner *runner);

/* What etcd said with an answer, or how it refused one. */
void hf_runner_on_result(struct hf_runner *runner, const struct hf_etcd_result *result);

/* Mirror. */

/* Everything that was told is void; it is told again `pause` from now. */
void hf_runner_forget(struct hf_runner *runner, bool by_reset, hf_ms pause);

/* Opens the mirror if there is none and it is time to, or anew if it follows other ranges. */
void hf_runner_follow(struct hf_runner *runner, hf_ms now);

/* Decodes a key and its value into a change, or *ret_bad: HF_EINVAL. The key's names lie in
 * `scratch`; on success the caller owns the record. */
int hf_runner_decode(struct hf_runner *runner, const struct hf_kv *kv,
                     char scratch[HF_KEY_SIZE], struct hf_fleet_change *ret_change,
                     struct hf_error *ret_why) HF_MUST_CHECK;

/* Tells that a key cannot be read. */
int hf_runner_tell_bad(struct hf_runner *runner, const struct hf_kv *kv,
                       const char *why) HF_MUST_CHECK;

/* Writes. */

/* Takes the plan over; the spare flight must be there. */
void hf_flight_start(struct hf_runner *runner, struct hf_intent *intent);
/* Sends what may be sent now. */
void hf_flights_launch(struct hf_runner *runner);
/* Tells outcomes; HF_ENOMEM when one is left untold. */
int hf_flights_tell(struct hf_runner *runner) HF_MUST_CHECK;
void hf_flights_cancel(struct hf_runner *runner);

/* Reads. The same for them. */
void hf_reading_start(struct hf_runner *runner, const struct hf_intent *intent);
int hf_readings_tell(struct hf_runner *runner) HF_MUST_CHECK;
void hf_readings_cancel(struct hf_runner *runner);

/* The cluster. */
void hf_runner_survey_later(struct hf_runner *runner);
void hf_runner_survey_cancel(struct hf_runner *runner);

#endif
