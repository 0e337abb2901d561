/* Incidents in virtual time: a driver as lease.h describes it, an etcd with moods, and the
 * transcript of what happened. A change of behaviour shows as a diff of the transcripts. */
#include <stdio.h>
#include <string.h>

#include "unit/lease_fixture.h"

enum { RTT = 20, LATE = 4000, MAIL_MAX = 16, LOG_MAX = 4096 };

enum mood {
    WELL,     /* answers after RTT */
    SLOW,     /* answers after LATE */
    SILENT,   /* answers nothing */
    REFUSING, /* every call fails after RTT */
    DEPOSED,  /* renews, with a term of the past */
    REVOKES,  /* well, but deletes the lease and all its keys at this moment */
    ASLEEP,   /* it is we who stand still */
    END,
};

/* What is under way to us. */
struct mail {
    enum { RENEWED, RENEW_FAILED, GRANTED, VERIFIED, REFUSED, VERIFY_FAILED, DELETED } kind;
    hf_ms at;
    struct hf_lease_reply reply;
};

struct world {
    struct hf_lease lease;
    hf_ms now;
    enum mood mood;
    int64_t alive;  /* the lease that etcd has; 0: none */
    int64_t issued; /* last lease id that was asked for */
    int64_t asked;  /* the lease that we wait for */
    struct mail mail[MAIL_MAX];
    size_t mail_count;
    enum hf_lease_state state;
    bool frozen;
    char log[LOG_MAX];
    size_t log_len;
};

static void tell(struct world *w, const char *text, const char *detail)
{
    w->log_len += (size_t)snprintf(w->log + w->log_len, LOG_MAX - w->log_len, "%6.3f %s%s\n",
                                   (double)w->now / 1000, text, detail);
    ck_assert_uint_lt(w->log_len, LOG_MAX);
}

static void post(struct world *w, int kind, hf_ms delay, int64_t ttl_s)
{
    ck_assert_uint_lt(w->mail_count, MAIL_MAX);
    w->mail[w->mail_count++] = (struct mail){
        .kind = kind,
        .at = w->now + delay,
        .reply = { .id = kind == GRANTED ? w->issued : w->lease.id,
                   .sent_at = w->now,
                   .ttl_s = ttl_s,
                   .member = MEMBER,
                   .term = w->mood == DEPOSED ? 1 : 2,
                   .revision = 100 },
    };
}

/* etcd hears a call of the given kind; `failure` is what its failure is called. */
static void call(struct world *w, int kind, int failure)
{
    bool known = kind == GRANTED || w->alive == w->lease.id;
    int64_t ttl_s = known || w->mood == DEPOSED ? T / 1000 : 0;

    if (kind == VERIFIED && !known)
        kind = REFUSED;
    switch (w->mood) {
    case WELL:
    case REVOKES: post(w, kind, RTT, ttl_s); break;
    case SLOW: post(w, kind, LATE, ttl_s); break;
    case REFUSING: post(w, failure, RTT, 0); break;
    case DEPOSED:
        if (kind == RENEWED)
            post(w, kind, RTT, ttl_s);
        break;
    case SILENT:
    case ASLEEP:
    case END: break;
    }
    if (kind == GRANTED && (w->mood == WELL || w->mood == REVOKES))
        w->alive = w->issued;
}

static void deliver(struct world *w, const struct mail *m)
{
    enum hf_lease_verdict verdict;

    switch (m->kind) {
    case RENEWED:
        verdict = hf_lease_on_reply(&w->lease, &m->reply, w->now, 0);
        if (verdict != HF_LEASE_COUNTED)
            tell(w, "reply is ", hf_lease_verdict_name(verdict));
        break;
    case RENEW_FAILED: hf_lease_on_renew_failed(&w->lease, m->reply.sent_at, w->now, 0); break;
    case GRANTED:
        w->asked = 0;
        verdict = hf_lease_on_granted(&w->lease, &m->reply, w->now, 0);
        tell(w, "grant is ", hf_lease_verdict_name(verdict));
        break;
    case VERIFIED:
        if (hf_lease_on_verified(&w->lease, m->reply.id, m->reply.sent_at, w->now))
            tell(w, "verified", "");
        break;
    case REFUSED:
    case DELETED: hf_lease_on_lost(&w->lease, m->reply.id, w->now); break;
    case VERIFY_FAILED: hf_lease_on_verify_failed(&w->lease, w->now, 0); break;
    }
}

static void note_state(struct world *w, const struct hf_lease_step *step)
{
    if (step->state != w->state)
        tell(w, hf_lease_state_name(step->state), "");
    if (step->frozen != w->frozen)
        tell(w, step->frozen ? "freeze" : "thaw", "");
    w->state = step->state;
    w->frozen = step->frozen;
}

static void drive(struct world *w)
{
    for (;;) {
        struct hf_lease_step step = hf_lease_next(&w->lease, w->now);

        note_state(w, &step);
        switch (step.what) {
        case HF_LEASE_NONE:
            if (step.state == HF_LEASE_LOST && w->asked == 0) {
                w->asked = ++w->issued;
                call(w, GRANTED, GRANTED);
            }
            return;
        case HF_LEASE_RENEW:
            tell(w, "renew", step.rotate ? ", next endpoint" : "");
            hf_lease_on_renew_sent(&w->lease, w->now);
            call(w, RENEWED, RENEW_FAILED);
            break;
        case HF_LEASE_ABANDON:
            tell(w, "abandon", "");
            hf_lease_on_renew_failed(&w->lease, w->lease.sent_at, w->now, 0);
            break;
        case HF_LEASE_VERIFY:
            tell(w, "verify", "");
            hf_lease_on_verify_sent(&w->lease, w->now);
            call(w, VERIFIED, VERIFY_FAILED);
            break;
        }
    }
}

static void deliver_all(struct world *w)
{
    for (size_t i = 0; i < w->mail_count;) {
        struct mail m = w->mail[i];

        if (m.at > w->now) {
            i++;
            continue;
        }
        w->mail[i] = w->mail[--w->mail_count];
        deliver(w, &m);
    }
}

static void enter(struct world *w, enum mood mood)
{
    static const char *const NEWS[] = {
        [WELL] = "etcd is well",      [SLOW] = "etcd is slow",
        [SILENT] = "etcd is silent",  [REFUSING] = "etcd refuses",
        [DEPOSED] = "deposed leader", [REVOKES] = "etcd revokes",
        [ASLEEP] = "we stand still",  [END] = "end",
    };

    w->mood = mood;
    w->asked = 0; /* a grant that nobody heard is asked for again */
    if (w->now > 0)
        tell(w, "-- ", NEWS[mood]);
    if (mood == REVOKES) {
        w->alive = 0;
        post(w, DELETED, RTT, 0);
    }
}

static hf_ms next_moment(const struct world *w, hf_ms limit)
{
    hf_ms at = hf_lease_deadline(&w->lease, w->now);

    at = at < limit ? at : limit;
    for (size_t i = 0; i < w->mail_count; i++)
        at = w->mail[i].at < at ? w->mail[i].at : at;
    return at;
}

struct spell {
    hf_ms from;
    enum mood mood;
};

static void play(struct world *w, const struct spell *spells)
{
    struct hf_lease_policy p = exact_policy();

    hf_lease_init(&w->lease, &p);
    for (const struct spell *s = spells; s->mood != END; s++) {
        w->now = s->from;
        enter(w, s->mood);
        if (s->mood == ASLEEP)
            continue;
        drive(w);
        for (hf_ms at; (at = next_moment(w, s[1].from)) < s[1].from; drive(w)) {
            w->now = at;
            deliver_all(w);
        }
    }
}

static const struct {
    const char *name;
    struct spell spells[6];
    const char *want;
} INCIDENTS[] = {
    { "nothing happens",
      { { 0, WELL }, { 11000, END } },
      " 0.020 grant is COUNTED\n"
      " 0.020 HELD\n"
      " 5.000 renew\n"
      "10.000 renew\n" },
    { "etcd is silent for too long, then comes back: frozen, and nothing was lost",
      { { 0, WELL }, { 4000, SILENT }, { 14000, WELL }, { 17000, END } },
      " 0.020 grant is COUNTED\n"
      " 0.020 HELD\n"
      " 4.000 -- etcd is silent\n"
      " 5.000 renew\n"
      " 7.500 abandon\n"
      " 7.500 renew, next endpoint\n"
      "10.000 JEOPARDY\n"
      "10.000 abandon\n"
      "10.000 renew, next endpoint\n"
      "12.500 FENCED\n"
      "12.500 freeze\n"
      "12.500 abandon\n"
      "12.500 renew, next endpoint\n"
      "14.000 -- etcd is well\n"
      "15.000 abandon\n"
      "15.000 renew, next endpoint\n"
      "15.020 verify\n"
      "15.040 verified\n"
      "15.040 HELD\n"
      "15.040 thaw\n" },
    { "etcd refuses for three seconds: it is asked again and again, and nobody notices",
      { { 0, WELL }, { 4000, REFUSING }, { 7000, WELL }, { 13000, END } },
      " 0.020 grant is COUNTED\n"
      " 0.020 HELD\n"
      " 4.000 -- etcd refuses\n"
      " 5.000 renew\n"
      " 5.270 renew, next endpoint\n"
      " 5.540 renew, next endpoint\n"
      " 5.810 renew, next endpoint\n"
      " 6.080 renew, next endpoint\n"
      " 6.350 renew, next endpoint\n"
      " 6.620 renew, next endpoint\n"
      " 6.890 renew, next endpoint\n"
      " 7.000 -- etcd is well\n"
      " 7.160 renew, next endpoint\n"
      " 7.180 verify\n"
      " 7.200 verified\n"
      "12.160 renew\n" },
    { "answers are late: they count from when they were asked for",
      { { 0, WELL }, { 4000, SLOW }, { 12000, WELL }, { 18000, END } },
      " 0.020 grant is COUNTED\n"
      " 0.020 HELD\n"
      " 4.000 -- etcd is slow\n"
      " 5.000 renew\n"
      " 7.500 abandon\n"
      " 7.500 renew, next endpoint\n"
      "10.000 abandon\n"
      "10.000 renew, next endpoint\n"
      "12.000 -- etcd is well\n"
      "12.500 abandon\n"
      "12.500 renew, next endpoint\n"
      "12.520 verify\n"
      "12.540 verified\n"
      "14.000 reply is OLDER\n"
      "17.500 renew\n" },
    { "a deposed leader renews: it does not count, and the next endpoint is asked",
      { { 0, WELL }, { 4000, DEPOSED }, { 5100, WELL }, { 12000, END } },
      " 0.020 grant is COUNTED\n"
      " 0.020 HELD\n"
      " 4.000 -- deposed leader\n"
      " 5.000 renew\n"
      " 5.020 reply is STALE\n"
      " 5.100 -- etcd is well\n"
      " 5.270 renew, next endpoint\n"
      " 5.290 verify\n"
      " 5.310 verified\n"
      "10.270 renew\n" },
    { "etcd revokes the lease of a healthy client: registered anew before anything is frozen",
      { { 0, WELL }, { 6000, REVOKES }, { 12000, END } },
      " 0.020 grant is COUNTED\n"
      " 0.020 HELD\n"
      " 5.000 renew\n"
      " 6.000 -- etcd revokes\n"
      " 6.020 LOST\n"
      " 6.040 grant is COUNTED\n"
      " 6.040 HELD\n"
      " 6.040 verify\n"
      " 6.060 verified\n"
      "11.020 renew\n" },
    { "the lease expires while we are cut off: frozen until registered under a new one",
      { { 0, WELL }, { 4000, SILENT }, { 20000, REVOKES }, { 24000, END } },
      " 0.020 grant is COUNTED\n"
      " 0.020 HELD\n"
      " 4.000 -- etcd is silent\n"
      " 5.000 renew\n"
      " 7.500 abandon\n"
      " 7.500 renew, next endpoint\n"
      "10.000 JEOPARDY\n"
      "10.000 abandon\n"
      "10.000 renew, next endpoint\n"
      "12.500 FENCED\n"
      "12.500 freeze\n"
      "12.500 abandon\n"
      "12.500 renew, next endpoint\n"
      "15.000 abandon\n"
      "15.000 renew, next endpoint\n"
      "17.500 abandon\n"
      "17.500 renew, next endpoint\n"
      "20.000 -- etcd revokes\n"
      "20.000 abandon\n"
      "20.000 renew, next endpoint\n"
      "20.020 reply is REFUSED\n"
      "20.020 LOST\n"
      "20.040 grant is COUNTED\n"
      "20.040 FENCED\n"
      "20.040 verify\n"
      "20.060 verified\n"
      "20.060 HELD\n"
      "20.060 thaw\n" },
    { "the lease is lost and etcd is gone: frozen after the grace, not after five sixths",
      { { 0, WELL }, { 6000, REVOKES }, { 6015, SILENT }, { 9000, WELL }, { 12000, END } },
      " 0.020 grant is COUNTED\n"
      " 0.020 HELD\n"
      " 5.000 renew\n"
      " 6.000 -- etcd revokes\n"
      " 6.015 -- etcd is silent\n"
      " 6.020 LOST\n"
      " 7.020 freeze\n"
      " 9.000 -- etcd is well\n"
      " 9.020 grant is COUNTED\n"
      " 9.020 FENCED\n"
      " 9.020 verify\n"
      " 9.040 verified\n"
      " 9.040 HELD\n"
      " 9.040 thaw\n" },
    { "we stand still for a quarter of a minute: frozen at once on waking",
      { { 0, WELL }, { 6000, ASLEEP }, { 21000, WELL }, { 24000, END } },
      " 0.020 grant is COUNTED\n"
      " 0.020 HELD\n"
      " 5.000 renew\n"
      " 6.000 -- we stand still\n"
      "21.000 -- etcd is well\n"
      "21.000 FENCED\n"
      "21.000 freeze\n"
      "21.000 renew\n"
      "21.020 verify\n"
      "21.040 verified\n"
      "21.040 HELD\n"
      "21.040 thaw\n" },
};

START_TEST(an_incident_goes_as_its_transcript_says)
{
    struct world w = { 0 };

    play(&w, INCIDENTS[_i].spells);
    if (strcmp(w.log, INCIDENTS[_i].want) != 0)
        ck_abort_msg("%s\n--- expected\n%s--- happened\n%s", INCIDENTS[_i].name,
                     INCIDENTS[_i].want, w.log);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("lease");

    tcase_add_loop_test(t, an_incident_goes_as_its_transcript_says, 0, COUNT(INCIDENTS));
    return run("core/lease, incidents", t);
}
