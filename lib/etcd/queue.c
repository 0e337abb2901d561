#include "etcd/queue.h"

#include <stddef.h>

#include <grpc/support/log.h>

#include "base/log.h"

/* libgrpc is not instrumented: ThreadSanitizer must be told that a tag which went in at
 * start_batch and came out of the queue was handed over properly. */
#if defined(__SANITIZE_THREAD__)
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define HAND_OVER_OUT(tag) __tsan_release(tag)
#define HAND_OVER_IN(tag)  __tsan_acquire(tag)
#else
#define HAND_OVER_OUT(tag) ((void)(tag))
#define HAND_OVER_IN(tag)  ((void)(tag))
#endif

void hf_signals_block(sigset_t *ret_old)
{
    sigset_t all;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, ret_old);
}

void hf_signals_restore(const sigset_t *old)
{
    (void)pthread_sigmask(SIG_SETMASK, old, NULL);
}

void hf_queue_post(struct hf_queue *queue, struct hf_tag *tag, bool ok)
{
    bool was_empty;

    tag->ok = ok;
    tag->next = NULL;
    pthread_mutex_lock(&queue->lock);
    was_empty = queue->head == NULL;
    *queue->tail = tag;
    queue->tail = &tag->next;
    pthread_mutex_unlock(&queue->lock);
    if (was_empty)
        (void)uv_async_send(&queue->wake);
}

static void *drain(void *arg)
{
    struct hf_queue *queue = arg;

    for (;;) {
        grpc_event event =
            grpc_completion_queue_next(queue->cq, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);
        struct hf_tag *tag = event.tag;
        bool ok = event.success != 0;

        if (event.type == GRPC_QUEUE_SHUTDOWN)
            return NULL;
        HAND_OVER_IN(tag);
        if (tag->at_once == NULL || !tag->at_once(tag, ok))
            hf_queue_post(queue, tag, ok);
    }
}

static void on_wake(uv_async_t *wake)
{
    struct hf_queue *queue =
        (struct hf_queue *)((char *)wake - offsetof(struct hf_queue, wake));
    struct hf_tag *tag;

    pthread_mutex_lock(&queue->lock);
    tag = queue->head;
    queue->head = NULL;
    queue->tail = &queue->head;
    pthread_mutex_unlock(&queue->lock);

    while (tag != NULL) {
        struct hf_tag *next = tag->next; /* the tag's owner may be freed by fn */

        tag->fn(tag, tag->ok);
        tag = next;
    }
}

/* gRPC would write to stderr by itself; its words are for whoever debugs. */
static void on_grpc_log(gpr_log_func_args *args)
{
    HF_LOG_DEBUG("grpc", HF_STR("message", args->message), HF_STR("file", args->file),
                 HF_INT("line", args->line));
}

static void stop_grpc(struct hf_queue *queue)
{
    grpc_completion_queue_destroy(queue->cq);
    grpc_shutdown_blocking();
    (void)pthread_mutex_destroy(&queue->lock);
}

int hf_queue_init(struct hf_queue *queue, uv_loop_t *loop)
{
    sigset_t old;
    int failed;

    (void)pthread_mutex_init(&queue->lock, NULL);
    queue->head = NULL;
    queue->tail = &queue->head;

    hf_signals_block(&old);
    gpr_set_log_function(on_grpc_log);
    grpc_init();
    queue->cq = grpc_completion_queue_create_for_next(NULL);
    failed = pthread_create(&queue->thread, NULL, drain, queue);
    hf_signals_restore(&old);
    if (failed != 0) {
        grpc_completion_queue_shutdown(queue->cq);
        stop_grpc(queue);
        return HF_EAGAIN;
    }
    (void)pthread_setname_np(queue->thread, "hf-etcd");

    /* The thread needs the handle only when there is something to hand over. */
    if (uv_async_init(loop, &queue->wake, on_wake) != 0) {
        grpc_completion_queue_shutdown(queue->cq);
        (void)pthread_join(queue->thread, NULL);
        stop_grpc(queue);
        return HF_EIO;
    }
    return HF_OK;
}

bool hf_queue_start(struct hf_queue *queue, grpc_call *call, const grpc_op *ops, size_t count,
                    struct hf_tag *tag)
{
    (void)queue;
    HAND_OVER_OUT(tag);
    return grpc_call_start_batch(call, ops, count, tag, NULL) == GRPC_CALL_OK;
}

void hf_queue_close(struct hf_queue *queue, uv_close_cb fn)
{
    grpc_completion_queue_shutdown(queue->cq);
    (void)pthread_join(queue->thread, NULL);
    stop_grpc(queue);
    uv_close((uv_handle_t *)&queue->wake, fn);
}
