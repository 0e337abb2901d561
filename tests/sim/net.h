/* net.h - the network between processes and the model etcd: it carries requests, answers and
 * watches, and delays, loses and repeats them.
 *
 * Deterministic; all chance is the world's. What was sent arrives even when its sender is dead
 * by then. Streams are like TCP: in order, and after the first loss for ever silent. */
#ifndef HFS_NET_H
#define HFS_NET_H

#include "sim/world.h"

#define HFS_NS "sim"

/* All off to begin with; delay_max 0: one millisecond. */
struct hfs_net_faults {
    hf_ms delay_max;         /* a message takes 1 ms to this */
    uint8_t slow_percent;    /* some take longer, and are overtaken: */
    hf_ms slow_max;          /* up to this */
    uint8_t lose_percent;    /* of requests, and of answers */
    uint8_t repeat_percent;  /* of requests, which then come twice */
    hf_ms answer_max;        /* answers alone take so much longer, at most */
    uint8_t late_percent;    /* of Txns, or of a copy of them, which are kept back ... */
    hf_ms late_max;          /* ... up to so long, and come when it is worst: see below */
    enum hfs_role late_role; /* ... of these alone, and then at any time; HFS_NOBODY: of all */
};

/* Whoever keeps Txns back may have an aim, which is one compare: while any are kept back, it is
 * those that have it, and they come when all that they compare holds but for this. After a
 * restore somebody else uses the same etcd meanwhile, just so much that a key gets the revision
 * that they know it by. */
struct hfs_aim {
    const struct hfs_dropped *at; /* NULL: no aim */
    bool drops;                   /* etcd does not get to see that compare */
    bool relapses;                /* they come after a restore, and not before, */
    hf_ms way;                    /* which takes so long, at least; 0: a minute */
    bool withholds;               /* all that have it, and nothing else of them comes */
    bool provokes;                /* what they compare is made to change: see sim/provoke.h */
};

struct hfs_stream;
struct hfs_parcel;
struct hfs_letter;
struct hfs_dropped;

struct hfs_net {
    struct hfs_world *world;
    struct hfs_etcd *etcd;
    struct hfs_net_faults faults;
    struct hfs_timer clock; /* of the etcd */
    struct hfs_stream *streams;
    /* Txns that were kept back. They come at any time, or just after somebody has changed a key
     * that they compare: where only that compare stands between them and harm. */
    struct hfs_parcel *late;
    struct hfs_aim aim;
    bool relapsed; /* the etcd was restored */
    bool is_blind; /* what made a compare fail is not looked at */
    bool skips;    /* a watch begins one revision too late */
    hf_ms page_ms; /* lists come in pages, with up to so long between them; 0: at once */
    struct hfs_census *census;        /* of all compares (sim/mutants.h), or NULL */
    hfs_rev pumped;                   /* up to which the watches were told */
    const struct hfs_process *writer; /* whose request is being served; NULL: nobody's */
    /* A request leaves (true: it gets lost); the store has changed, by a request of `writer`
     * (NULL: by etcd itself); a request was answered. NULL: nobody asks. Must not send anything
     * from inside. */
    bool (*on_send)(struct hfs_process *from, struct hfs_letter *letter, void *arg);
    void (*on_commit)(const struct hfs_process *writer, void *arg);
    void (*on_served)(const struct hfs_process *from, struct hfs_letter *letter,
                      const struct hfs_answer *answer, void *arg);
    /* All of a Txn is kept back with an aim. */
    void (*on_withheld)(const struct hfs_process *from, const struct hfs_letter *letter,
                        void *arg);
    void *arg;
    uint64_t requests; /* that were served */
};

void hfs_net_init(struct hfs_net *net, struct hfs_world *world, struct hfs_etcd *etcd);

/* No process may be using it any more. */
void hfs_net_done(struct hfs_net *net);

/* Something was done to the etcd from outside: what follows from it happens. */
void hfs_net_poke(struct hfs_net *net);

/* Requests. */

/* A request that several attempts share. */
struct hfs_letter {
    unsigned refs;
    struct hfs_request *request;
    hf_ms made_at;
    int64_t known_rev; /* the newest change that whoever made it had been told by a watch */
    unsigned applied;  /* how often: a Txn whose compares held */
    bool withheld;     /* no copy of it comes but the one that is kept back */
};

struct hfs_letter *hfs_letter_new(const struct hfs_request *request, hf_ms now);
void hfs_letter_unref(struct hfs_letter *letter);

struct hfs_exchange;
typedef void (*hfs_exchange_fn)(const struct hfs_answer *answer, void *arg);

/* Sends it; `fn` is called at most once, and the exchange is gone then. */
struct hfs_exchange *hfs_net_send(struct hfs_net *net, struct hfs_process *from,
                                  unsigned member, struct hfs_letter *letter,
                                  hfs_exchange_fn fn, void *arg);

/* `fn` will not be called; what was sent is on its way. NULL is fine. */
void hfs_exchange_drop(struct hfs_exchange *exchange);

/* Streams of watches. */

struct hfs_stream_handler {
    void (*on_created)(size_t range, void *arg);
    void (*on_batch)(size_t range, const struct hfs_batch *batch, void *arg);
    void (*on_end)(int err, void *arg); /* the stream is gone */
};

struct hfs_stream *hfs_stream_open(struct hfs_net *net, struct hfs_process *from,
                                   unsigned member, const struct hfs_stream_handler *handler,
                                   void *arg);

/* One more range, whose index is the number of those before it. */
void hfs_stream_watch(struct hfs_stream *stream, const struct hfs_range *range,
                      hfs_rev start_rev);
void hfs_stream_ask(struct hfs_stream *stream);

/* No handler is called any more. NULL is fine. */
void hfs_stream_close(struct hfs_stream *stream);

#endif
