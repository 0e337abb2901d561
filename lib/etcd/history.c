#include "etcd/history.h"

#include <stddef.h>
#include <string.h>

#include "base/hash.h"
#include "etcd/internal.h"

/* A linearizable read of etcd 3.4 can be stale when a member was paused, so an older revision
 * is believed only when it is seen again a little later. */
enum { DOUBTS = 3, ASK_AGAIN_MS = 500, LARGEST_KEY = 64 * 1024 };

static void on_answer(const struct hf_range_result *answer, void *arg);

static void conclude(struct hf_history *history, int err, const char *message)
{
    history->doubts = 0;
    history->thorough = false;
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

static struct hf_bytes key_of(const struct hf_witness *witness)
{
    return (struct hf_bytes){ .data = witness->key.data, .len = witness->key.len };
}

static bool is_there(const struct hf_witness *witness)
{
    return witness->key.len > 0;
}

/* The newest of before that revision of those that are asked about; NULL: none. */
static struct hf_witness *find_before(struct hf_history *history, hf_rev rev)
{
    struct hf_witness *list = history->past.witnesses, *own = &history->past.own;
    size_t count = history->thorough ? HF_WITNESSES : 1;
    struct hf_witness *found = is_there(own) && own->mod_rev < rev ? own : NULL;

    for (size_t i = 0; i < count && is_there(&list[i]); i++) {
        if (list[i].mod_rev < rev && (found == NULL || list[i].mod_rev >= found->mod_rev))
            found = &list[i];
    }
    return found;
}

/* The one that was asked about, unless newer ones have taken its place. */
static struct hf_witness *find_asked(struct hf_history *history)
{
    struct hf_witness *found = find_before(history, history->asked.mod_rev + 1);

    return found != NULL && found->mod_rev == history->asked.mod_rev ? found : NULL;
}

/* About a key at the revision of a change, where that can be asked for. */
static void ask_about(struct hf_history *history, const struct hf_witness *witness)
{
    history->asked = *witness;
    history->asked.key = (struct hf_buf){ 0 };
    history->asked_before = false;
    send_question(history, &(struct hf_range_request){
                               .range.key = key_of(witness),
                               .revision = witness->compacted ? 0 : witness->mod_rev });
}

static void ask(struct hf_history *history)
{
    const struct hf_witness *newest = find_before(history, INT64_MAX);

    history->asked_rev = history->past.revision;
    if (newest != NULL) {
        ask_about(history, newest);
        return;
    }
    history->asked = (struct hf_witness){ 0 };
    history->asked_before = false;
    send_question(history, &(struct hf_range_request){ .range.key = history->readable,
                                                       .keys_only = true });
}

/* That a key is not there is a poor witness, since another history may lack it as well: it must
 * have been there one revision earlier, too. False when there is nothing more to ask. */
static bool ask_before(struct hf_history *history)
{
    const struct hf_witness *witness = find_asked(history);

    if (!history->asked.deleted || history->asked.compacted || history->asked_before ||
        witness == NULL)
        return false;
    history->asked_before = true;
    send_question(history,
                  &(struct hf_range_request){ .range.key = key_of(witness),
                                              .keys_only = true,
                                              .revision = history->asked.mod_rev - 1 });
    return true;
}

/* What was asked about is as it was: now an older one. False: there is none. */
static bool ask_next(struct hf_history *history)
{
    const struct hf_witness *witness = find_before(history, history->asked.mod_rev);

    if (history->asked.mod_rev == 0 || witness == NULL)
        return false;
    ask_about(history, witness);
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
    return kv->mod_rev == witness->mod_rev &&
           (witness->version == HF_VERSION_UNKNOWN ||
            (kv->create_rev == witness->create_rev && kv->version == witness->version)) &&
           kv->value.len == witness->value_len &&
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
    return kv->mod_rev > witness->mod_rev &&
           (witness->version == HF_VERSION_UNKNOWN ||
            (kv->create_rev == witness->create_rev && kv->version > witness->version));
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

/* One is as it was. */
static void go_on(struct hf_history *history)
{
    if (!ask_before(history) && !ask_next(history))
        conclude(history, HF_OK, "");
}

static void on_compacted(struct hf_history *history)
{
    struct hf_witness *witness = find_asked(history);

    if (history->asked_before) { /* what could be asked was right */
        go_on(history);
        return;
    }
    if (witness == NULL) {
        ask(history);
        return;
    }
    witness->compacted = true;
    ask_about(history, witness);
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
        else
            go_on(history);
        return;
    case HF_ECOMPACT: on_compacted(history); return;
    case HF_EHISTORY: doubt(history); return;
    default: conclude(history, answer->result.err, answer->result.message); return;
    }
}

void hf_history_init(struct hf_history *history, struct hf_etcd *etcd, struct hf_bytes readable,
                     hf_history_fn fn, void *arg)
{
    *history = (struct hf_history){
        .etcd = etcd, .readable = readable, .fn = fn, .arg = arg, .again = { .fn = ask_again }
    };
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

/* Where a change belongs: before those that are older, and in the place of one of the same
 * revision unless that says more, as a longer value does. HF_WITNESSES: nowhere. */
static size_t find_place(const struct hf_history *history, hf_rev rev, size_t value_len)
{
    const struct hf_witness *list = history->past.witnesses;
    size_t at = 0;

    while (at < HF_WITNESSES && is_there(&list[at]) && list[at].mod_rev > rev)
        at++;
    if (at < HF_WITNESSES && is_there(&list[at]) && list[at].mod_rev == rev &&
        value_len < list[at].value_len)
        return HF_WITNESSES;
    return at;
}

/* Room for one there: the oldest goes, or who was of that very revision. */
static struct hf_witness *make_room(struct hf_history *history, size_t at, hf_rev rev)
{
    struct hf_witness *list = history->past.witnesses;
    struct hf_witness spare = list[HF_WITNESSES - 1];

    if (!is_there(&list[at]) || list[at].mod_rev == rev)
        return &list[at];
    memmove(&list[at + 1], &list[at], (HF_WITNESSES - 1 - at) * sizeof *list);
    list[at] = spare;
    return &list[at];
}

/* Without memory for its key it is none; the others close up. */
static void drop(struct hf_history *history, struct hf_witness *witness)
{
    struct hf_witness *last = &history->past.witnesses[HF_WITNESSES - 1];
    struct hf_buf key = witness->key;

    memmove(witness, witness + 1, (size_t)(last - witness) * sizeof *witness);
    *last = (struct hf_witness){ .key = key };
    hf_buf_clear(&last->key);
}

/* False: there was no memory for its key. */
static bool set_witness(struct hf_witness *witness, const struct hf_kv *kv)
{
    struct hf_buf key = witness->key;

    key.limit = LARGEST_KEY;
    hf_buf_clear(&key);
    hf_buf_append(&key, kv->key.data, kv->key.len);
    *witness = (struct hf_witness){ .key = key,
                                    .create_rev = kv->create_rev,
                                    .mod_rev = kv->mod_rev,
                                    .version = kv->version,
                                    .value_len = kv->value.len,
                                    .value_hash = hf_hash(0, kv->value.data, kv->value.len),
                                    .deleted = kv->version == 0 };
    return key.err == HF_OK;
}

void hf_history_on_change(struct hf_history *history, const struct hf_kv *kv)
{
    size_t at = find_place(history, kv->mod_rev, kv->value.len);
    struct hf_witness *witness;

    if (at == HF_WITNESSES)
        return;
    witness = make_room(history, at, kv->mod_rev);
    if (!set_witness(witness, kv))
        drop(history, witness);
}

void hf_history_on_write(struct hf_history *history, const struct hf_kv *kv)
{
    struct hf_witness *own = &history->past.own;
    struct hf_kv put = *kv;

    put.version = HF_VERSION_UNKNOWN;
    if (is_there(own) && own->mod_rev > put.mod_rev)
        return;
    if (!set_witness(own, &put))
        hf_buf_clear(&own->key);
}

/* The newest, and of one revision the longest, which says the most. */
static bool is_better(const struct hf_kv *kv, const struct hf_kv *other)
{
    return kv->mod_rev > other->mod_rev ||
           (kv->mod_rev == other->mod_rev && kv->value.len > other->value.len);
}

void hf_history_on_listed(struct hf_history *history, const struct hf_kv *kv)
{
    struct hf_kv *listed = history->listed;
    size_t at = HF_WITNESSES;

    while (at > 0 && is_better(kv, &listed[at - 1]))
        at--;
    if (at == HF_WITNESSES)
        return;
    memmove(&listed[at + 1], &listed[at], (HF_WITNESSES - 1 - at) * sizeof *listed);
    listed[at] = *kv;
}

void hf_history_end_page(struct hf_history *history)
{
    for (size_t i = 0; i < HF_WITNESSES && history->listed[i].mod_rev > 0; i++)
        hf_history_on_change(history, &history->listed[i]);
    memset(history->listed, 0, sizeof history->listed);
}

hf_rev hf_history_get_vouched(const struct hf_history *history)
{
    const struct hf_witness *newest = &history->past.witnesses[0];

    return is_there(newest) ? newest->mod_rev : 0;
}

void hf_history_check(struct hf_history *history, bool thorough)
{
    history->thorough |= thorough;
    if (!hf_history_is_checking(history))
        ask(history);
}
