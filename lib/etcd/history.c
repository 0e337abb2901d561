#include "etcd/history.h"

#include <stddef.h>

#include "base/hash.h"
#include "etcd/internal.h"

/* A linearizable read of etcd 3.4 can be stale when a member was paused, so an older revision
 * is believed only when it is seen again a little later. */
enum { DOUBTS = 3, ASK_AGAIN_MS = 500, LARGEST_KEY = 64 * 1024 };

static void on_answer(const struct hf_range_result *answer, void *arg);

static void conclude(struct hf_history *history, int err, const char *message)
{
    history->doubts = 0;
    history->fn(err, message, history->arg);
}

static void ask_later(struct hf_history *history)
{
    hf_timer_start(&history->etcd->timers, &history->again,
                   hf_etcd_now(history->etcd) + ASK_AGAIN_MS);
}

static void send_question(struct hf_history *history, const struct hf_range_request *request)
{
    if (hf_etcd_range(history->etcd, request, on_answer, history, &history->call) == HF_OK)
        return;
    /* Never from inside hf_history_check: the timer asks again. */
    history->call = NULL;
    ask_later(history);
}

static struct hf_bytes witness_key(const struct hf_history *history)
{
    return (struct hf_bytes){ .data = history->past.key.data, .len = history->past.key.len };
}

static void ask(struct hf_history *history)
{
    struct hf_range_request request = { .range.key = history->readable, .keys_only = true };

    history->asked_rev = history->past.revision;
    history->asked = (struct hf_witness){ 0 };
    history->asked_before = false;
    if (history->past.key.len > 0) {
        history->asked = history->past.witness;
        request.keys_only = false;
        request.range.key = witness_key(history);
        request.revision = history->asked.compacted ? 0 : history->asked.mod_rev;
    }
    send_question(history, &request);
}

/* That a key is not there is a poor witness, since another history may lack it as well: it must
 * have been there one revision earlier, too. False when there is nothing more to ask. */
static bool ask_before(struct hf_history *history)
{
    if (!history->asked.deleted || history->asked.compacted || history->asked_before ||
        history->past.key.len == 0 || history->past.witness.mod_rev != history->asked.mod_rev)
        return false;
    history->asked_before = true;
    send_question(history,
                  &(struct hf_range_request){ .range.key = witness_key(history),
                                              .keys_only = true,
                                              .revision = history->asked.mod_rev - 1 });
    return true;
}

static void ask_again(struct hf_timer *timer)
{
    ask((struct hf_history *)((char *)timer - offsetof(struct hf_history, again)));
}

static void doubt(struct hf_history *history)
{
    if (++history->doubts >= DOUBTS)
        conclude(history, HF_EHISTORY, "etcd's revision went back");
    else
        ask_later(history);
}

/* What etcd has at the witness's revision must be the witness. */
static bool is_witness(const struct hf_witness *witness, const struct hf_range_result *answer)
{
    const struct hf_kv *kv = answer->kvs;

    if (answer->count == 0 || witness->version == 0)
        return answer->count == 0 && witness->version == 0;
    return kv->mod_rev == witness->mod_rev && kv->create_rev == witness->create_rev &&
           kv->version == witness->version && kv->value.len == witness->value_len &&
           hf_hash(0, kv->value.data, kv->value.len) == witness->value_hash;
}

/* Where only the present can be asked: is it one that the witness can have become? */
static bool may_follow(const struct hf_witness *witness, const struct hf_range_result *answer)
{
    const struct hf_kv *kv = answer->kvs;

    if (answer->count == 0 || kv->create_rev > witness->mod_rev)
        return true;
    if (kv->mod_rev == witness->mod_rev)
        return is_witness(witness, answer);
    return kv->create_rev == witness->create_rev && kv->mod_rev > witness->mod_rev &&
           kv->version > witness->version;
}

static bool agrees(const struct hf_history *history, const struct hf_range_result *answer)
{
    const struct hf_witness *asked = &history->asked;

    if (asked->mod_rev == 0) /* there was no witness */
        return true;
    if (history->asked_before)
        return answer->count > 0;
    return asked->compacted ? may_follow(asked, answer) : is_witness(asked, answer);
}

static void on_answer(const struct hf_range_result *answer, void *arg)
{
    struct hf_history *history = arg;
    const struct hf_etcd_header *header = &answer->result.header;

    history->call = NULL;
    switch (answer->result.err) {
    case HF_OK:
        if (!hf_history_on_header(history, header))
            conclude(history, HF_EHISTORY, "another cluster answers");
        else if (header->revision < history->asked_rev)
            doubt(history);
        else if (!agrees(history, answer))
            conclude(history, HF_EHISTORY, "etcd has another past than the one we saw");
        else if (!ask_before(history))
            conclude(history, HF_OK, "");
        return;
    case HF_ECOMPACT:
        if (history->asked_before) { /* what could be asked was right */
            conclude(history, HF_OK, "");
            return;
        }
        if (history->past.witness.mod_rev == history->asked.mod_rev)
            history->past.witness.compacted = true;
        ask(history);
        return;
    case HF_EHISTORY: doubt(history); return;
    default: conclude(history, answer->result.err, answer->result.message); return;
    }
}

void hf_history_init(struct hf_history *history, struct hf_etcd *etcd, struct hf_bytes readable,
                     hf_history_fn fn, void *arg)
{
    *history = (struct hf_history){ .etcd = etcd,
                                    .readable = readable,
                                    .fn = fn,
                                    .arg = arg,
                                    .past.key.limit = LARGEST_KEY,
                                    .again = { .fn = ask_again } };
}

void hf_history_cancel(struct hf_history *history)
{
    if (history->call != NULL)
        hf_call_cancel(history->call);
    history->call = NULL;
    hf_timer_stop(&history->etcd->timers, &history->again);
}

void hf_history_done(struct hf_history *history)
{
    hf_history_cancel(history);
    hf_recall_done(&history->past);
}

void hf_history_resume(struct hf_history *history, struct hf_recall *past)
{
    hf_recall_done(&history->past);
    history->past = *past;
    history->past.key.limit = LARGEST_KEY;
    *past = (struct hf_recall){ 0 };
}

struct hf_recall hf_history_take_past(struct hf_history *history)
{
    struct hf_recall past = history->past;

    hf_history_cancel(history);
    history->past = (struct hf_recall){ 0 };
    return past;
}

void hf_history_forget(struct hf_history *history)
{
    hf_history_cancel(history);
    hf_recall_forget(&history->past);
    history->doubts = 0;
}

bool hf_history_on_header(struct hf_history *history, const struct hf_etcd_header *header)
{
    if (header->cluster_id == 0)
        return true;
    if (history->past.cluster_id == 0)
        history->past.cluster_id = header->cluster_id;
    if (history->past.cluster_id != header->cluster_id)
        return false;
    if (header->revision > history->past.revision)
        history->past.revision = header->revision;
    return true;
}

void hf_history_on_change(struct hf_history *history, const struct hf_kv *kv, bool listed)
{
    bool deleted = kv->version == 0;

    if (kv->mod_rev < history->past.witness.mod_rev && history->past.key.len > 0)
        return;
    /* Of one revision the longest value is the best witness: it says the most. */
    if (kv->mod_rev == history->past.witness.mod_rev && history->past.key.len > 0 &&
        kv->value.len < history->past.witness.value_len)
        return;
    if (deleted && listed) /* some time ago, nobody knows when: no witness */
        return;
    hf_buf_clear(&history->past.key);
    hf_buf_append(&history->past.key, kv->key.data, kv->key.len);
    if (history->past.key.err != HF_OK) { /* without a witness the revision alone must do */
        hf_buf_clear(&history->past.key);
        return;
    }
    history->past.witness =
        (struct hf_witness){ .create_rev = kv->create_rev,
                             .mod_rev = kv->mod_rev,
                             .version = kv->version,
                             .value_len = kv->value.len,
                             .value_hash = hf_hash(0, kv->value.data, kv->value.len),
                             .deleted = deleted };
}

hf_rev hf_history_get_vouched(const struct hf_history *history)
{
    return history->past.key.len > 0 ? history->past.witness.mod_rev : 0;
}

void hf_history_check(struct hf_history *history)
{
    if (!hf_history_is_checking(history))
        ask(history);
}
