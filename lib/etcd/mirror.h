/* mirror.h - a local copy of prefixes that follows etcd through everything that can happen to
 * it.
 *
 * The mirror lists, then watches. Its consumer sees one ordered stream: puts and deletes,
 * `synced` when the copy is complete, `reset` when etcd's history went back and nothing seen
 * before holds. What a lost connection, a compaction or a lost event hid is found by listing
 * again and told as ordinary puts and deletes (`synthesised`). No event comes twice, none comes
 * after a newer one of its key. Events of one revision in one range come together, unless a
 * list found them.
 *
 * A mirror is level-triggered truth, but never proof: it may lag. What is decided on it is
 * guarded by a txn's compares. */
#ifndef HF_ETCD_MIRROR_H
#define HF_ETCD_MIRROR_H

#include "etcd/kv.h"
#include "etcd/recall.h"

enum hf_mirror_kind {
    HF_MIRROR_PUT,
    HF_MIRROR_DELETE, /* kv.key and kv.mod_rev (of the deletion; of the list if synthesised) */
    HF_MIRROR_SYNCED, /* the copy equals etcd at `revision` */
    HF_MIRROR_RESET,  /* forget everything: etcd was restored. The copy is empty now */
};

struct hf_mirror_event {
    enum hf_mirror_kind kind;
    bool synthesised; /* found by a list, not told by the watch */
    hf_rev revision;
    struct hf_kv kv; /* valid during the callback */
};

typedef void (*hf_mirror_fn)(const struct hf_mirror_event *event, void *arg);

/* Something keeps the mirror from following; it goes on trying. For logs and metrics. */
typedef void (*hf_mirror_trouble_fn)(int err, const char *message, hf_ms retry_in, void *arg);

struct hf_mirror_config {
    const struct hf_key_range *ranges; /* copied; none may contain another */
    size_t range_count;                /* at most 32 */
    hf_mirror_fn on_event;
    hf_mirror_trouble_fn on_trouble; /* may be NULL */
    void *arg;
    struct hf_recall *past; /* may be NULL; it is taken when the mirror opens, and given back
                             * when it is closed: etcd must still have it, or the first that is
                             * told is `reset` */
    bool keep_values;       /* so that hf_mirror_get has them, at the price of their memory */

    /* Zero: the default. */
    hf_ms probe_every;    /* a silent watch is probed this often: 5 s */
    hf_ms probe_timeout;  /* and given up when it stays silent: 3 s */
    hf_ms history_every;  /* a restored etcd is looked for this often: 10 s */
    hf_ms resync_every;   /* everything is listed again this often, +- 20 %: 5 min */
    hf_ms page_timeout;   /* a page of a list that takes longer is made smaller: 30 s */
    size_t pending_bytes; /* largest single change that is put together: 256 MiB */
    size_t keys_max;      /* that are followed, in all ranges: any number. Where there are more,
                           * nothing is (HF_ELIMIT, again and again, until there are fewer) */
};

struct hf_mirror;

int hf_mirror_new(struct hf_etcd *etcd, const struct hf_mirror_config *cfg,
                  struct hf_mirror **ret_mirror, struct hf_error *err) HF_MUST_CHECK;

/* No callback comes after this; may be called from one. */
void hf_mirror_close(struct hf_mirror *mirror);

/* A put of our own (key, mod_rev, value) that etcd has answered, of any range: it belongs to
 * the past that etcd must still have. Who writes where it does not look would else not notice
 * that what it wrote is gone. */
void hf_mirror_on_write(struct hf_mirror *mirror, const struct hf_kv *kv);

/* Looks into the copy; what *ret_kv points to is borrowed until the next event. */
bool hf_mirror_get(const struct hf_mirror *mirror, struct hf_bytes key, struct hf_kv *ret_kv);

/* Visits every entry in no particular order, until `fn` returns false. */
void hf_mirror_each(const struct hf_mirror *mirror,
                    bool (*fn)(const struct hf_kv *kv, void *arg), void *arg);

/* Lists everything again as soon as possible, unless that is being done. */
void hf_mirror_resync(struct hf_mirror *mirror);

struct hf_mirror_stats {
    size_t keys;
    bool synced;
    hf_rev revision; /* newest that was seen */
    hf_ms heard_at;  /* when the watch last proved that it works, or the mirror began */
    uint64_t events; /* told by the watch */
    uint64_t stale;  /* dropped because they were old or double */
    uint64_t opens;  /* watch streams opened, ... */
    uint64_t renews; /* ... so many of them only because the one before was old */
    uint64_t lists;  /* complete lists, the first included */
    uint64_t missed; /* changes that a list told after the first sync: lost, or just late */
    uint64_t resets;
};

struct hf_mirror_stats hf_mirror_get_stats(const struct hf_mirror *mirror);

#endif
