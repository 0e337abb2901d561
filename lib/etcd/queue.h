/* queue.h - gRPC's completion queue, drained by a thread that only hands over.
 *
 * The thread sleeps in the completion queue, appends what it gets to a list and wakes the loop
 * once per batch; the loop runs the tags in the order of their completion. This is the only
 * place where two threads of ours meet. Internal to lib/etcd. */
#ifndef HF_ETCD_QUEUE_H
#define HF_ETCD_QUEUE_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

#include <grpc/grpc.h>
#include <uv.h>

#include "base/err.h"

struct hf_tag;
typedef void (*hf_tag_fn)(struct hf_tag *tag, bool ok);

/* One batch under way. Lives inside its owner, which must outlive it. */
struct hf_tag {
    struct hf_tag *next;
    hf_tag_fn fn;
    bool ok;

    /* Usually NULL. Runs on the queue's thread as soon as the batch is done; true: that was
     * all, the loop need not see this tag. For streams, whose next message may be there
     * already. */
    bool (*at_once)(struct hf_tag *tag, bool ok);
};

struct hf_queue {
    grpc_completion_queue *cq;
    pthread_t thread;
    uv_async_t wake;
    pthread_mutex_t lock; /* guards the two below, which both threads touch */
    struct hf_tag *head;
    struct hf_tag **tail;
};

/* Calls grpc_init. On failure nothing is left to undo. */
int hf_queue_init(struct hf_queue *queue, uv_loop_t *loop) HF_MUST_CHECK;

/* Starts a batch whose completion runs tag->fn on the loop. False when gRPC refuses it. */
bool hf_queue_start(struct hf_queue *queue, grpc_call *call, const grpc_op *ops, size_t count,
                    struct hf_tag *tag);

/* Has the loop run tag->fn. From any thread; the tag must not be under way. */
void hf_queue_post(struct hf_queue *queue, struct hf_tag *tag, bool ok);

/* Every batch must have come back, every call and channel be gone. Joins the thread, shuts gRPC
 * down, then closes the handle: `fn` is the last word. queue->wake.data is the caller's. */
void hf_queue_close(struct hf_queue *queue, uv_close_cb fn);

/* gRPC starts threads at odd moments; they must not take the program's signals. */
void hf_signals_block(sigset_t *ret_old);
void hf_signals_restore(const sigset_t *old);

#endif
