/* watch.h - one watch stream over several ranges that proves that it works, or ends.
 *
 * A silent watch is asked for its progress; if it stays silent it is given up, and its endpoint
 * with it. The progress that it answers is a sign of life and nothing else: etcd 3.4 sends it
 * out of step with the events. Internal to lib/etcd. */
#ifndef HF_ETCD_WATCH_H
#define HF_ETCD_WATCH_H

#include "etcd/client.h"
#include "etcd/range.h"
#include "etcd/rpc.pb-c.h"

struct hf_watch;

struct hf_watch_range {
    const struct hf_range_bounds *bounds; /* borrowed until the watch is closed */
    hf_rev start_rev;
};

struct hf_watch_handler {
    /* Every range is being watched. */
    void (*on_live)(void *arg);
    /* One complete batch of events of a range may come in several messages: `last` ends it.
     * What came of an incomplete batch when the stream ends is never told. */
    void (*on_events)(size_t range, const Etcdserverpb__WatchResponse *message, bool last,
                      void *arg);
    /* The watch is over and must be forgotten; until the return it can still be asked when it
     * was heard. HF_ECOMPACT: the start revision is gone. HF_ELIMIT: see pending_bytes. */
    void (*on_end)(int err, const char *message, void *arg);
};

struct hf_watch_config {
    const struct hf_watch_range *ranges;
    size_t range_count;
    hf_ms probe_every;
    hf_ms probe_timeout;
    size_t pending_bytes; /* of one batch in several messages; beyond: HF_ELIMIT */
    const struct hf_watch_handler *handler;
    void *arg;
};

/* No handler is called from inside. */
int hf_watch_open(struct hf_etcd *etcd, const struct hf_watch_config *cfg,
                  struct hf_watch **ret_watch) HF_MUST_CHECK;

/* No handler is called any more; may be called from one. NULL is fine. */
void hf_watch_close(struct hf_watch *watch);

/* When the last message came; 0: none did yet. */
hf_ms hf_watch_get_heard_at(const struct hf_watch *watch);

#endif
