/* history.h - does etcd still have the history that we saw?
 *
 * An etcd restored from a backup keeps its cluster id, its members and often its term, but its
 * revision goes back, and revisions that we know are given out again for other changes. A watch
 * that is resumed there is accepted and stays silent. So the newest change that we saw is kept
 * as a witness, and etcd is asked, by linearizable reads, what it has at that revision.
 * Internal to lib/etcd. */
#ifndef HF_ETCD_HISTORY_H
#define HF_ETCD_HISTORY_H

#include "etcd/kv.h"
#include "etcd/recall.h"
#include "etcd/timer.h"

/* HF_OK: it is the same. HF_EHISTORY: it is not. Anything else: could not be asked. */
typedef void (*hf_history_fn)(int err, const char *message, void *arg);

struct hf_history {
    struct hf_etcd *etcd;
    hf_history_fn fn;
    void *arg;
    struct hf_bytes readable;          /* a key that we may read, be it there or not */
    struct hf_recall past;             /* that we saw */
    struct hf_kv listed[HF_WITNESSES]; /* the best of the page under way; point into it */

    struct hf_call *call;
    hf_rev asked_rev;        /* the newest revision when the call was made ... */
    struct hf_witness asked; /* ... and a witness, without its key: both go on meanwhile */
    bool asked_before;       /* the call is about the revision before a deletion */
    bool thorough;           /* all witnesses are asked about, not only the newest */
    struct hf_timer again;
    unsigned doubts; /* answers in a row that looked like an older history */
};

/* `readable` is borrowed: what is asked about while there is no witness. It must be one that
 * our user has the permission to read. */
void hf_history_init(struct hf_history *history, struct hf_etcd *etcd, struct hf_bytes readable,
                     hf_history_fn fn, void *arg);
void hf_history_done(struct hf_history *history);

/* Goes on from what somebody saw before; moved out of *past. */
void hf_history_resume(struct hf_history *history, struct hf_recall *past);

/* Moves what was seen out, for whoever comes next. */
struct hf_recall hf_history_take_past(struct hf_history *history);

/* Everything seen belongs to another history: begin anew. */
void hf_history_forget(struct hf_history *history);

/* Reports a header. False when it is of another cluster. */
bool hf_history_on_header(struct hf_history *history, const struct hf_etcd_header *header);

/* Reports a put or a deletion (key and mod_rev only) that etcd told us of. */
void hf_history_on_change(struct hf_history *history, const struct hf_kv *kv);

/* Reports a put of our own (key, mod_rev and value) that etcd has answered: what it made of the
 * rest is not known. */
void hf_history_on_write(struct hf_history *history, const struct hf_kv *kv);

/* Reports a put that a page of a list told us of. Of its thousands only the newest are worth
 * remembering, so the bytes must stay until the page has ended. */
void hf_history_on_listed(struct hf_history *history, const struct hf_kv *kv);
void hf_history_end_page(struct hf_history *history);

/* Asks; `fn` comes once, later. While an earlier question is open that is asked to its end.
 * `thorough`: about everything that is remembered, as whoever was away for a while should. */
void hf_history_check(struct hf_history *history, bool thorough);

/* The revision up to which a history that passed the check is the one that we saw: that of the
 * newest witness. 0: there is none. */
hf_rev hf_history_get_vouched(const struct hf_history *history);

/* Forgets the question that is open, if one is: whoever was asked is not trusted to answer. */
void hf_history_cancel(struct hf_history *history);

static inline bool hf_history_is_checking(const struct hf_history *history)
{
    return history->call != NULL || hf_timer_is_armed(&history->again);
}

#endif
