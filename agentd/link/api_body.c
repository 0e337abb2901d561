/* A task whose payload or result is too long for its record, shown whole. */
#include <stdlib.h>
#include <string.h>

#include "agentd/link/call.h"
#include "base/alloc.h"
#include "core/body.h"
#include "schema/json.h"

struct filling {
    int status;
    ProtobufCMessage *task;
    char *payload, *result;
    struct hf_call *read;
};

static void free_filling(struct filling *filling)
{
    hf_json_free(filling->task);
    free(filling->payload);
    free(filling->result);
    free(filling);
}

static void cancel(struct link_call *call)
{
    struct filling *filling = call->state;
    const struct hf_backend *backend = &call->process->agent->link->backend;

    backend->ops->cancel(filling->read);
    free_filling(filling);
    call->state = NULL;
}

/* HF_EAGAIN: the record was written anew since it was read. */
static int take(const struct link_call *call, const struct hf_range_result *result,
                struct hf_key key, const Holdfast__V1__Body *body, char **ret_text)
{
    char text[HF_KEY_SIZE];
    int len =
        hf_key_format(call->process->agent->link->settings->common.namespace, &key, text, NULL);

    if (body == NULL)
        return HF_OK;
    for (size_t i = 0; len > 0 && i < result->count; i++) {
        const struct hf_kv *kv = &result->kvs[i];

        if (kv->key.len != (size_t)len || memcmp(kv->key.data, text, (size_t)len) != 0)
            continue;
        if (!hf_body_matches(body, kv->value))
            return HF_EAGAIN;
        *ret_text = hf_strndup(kv->value.data, kv->value.len);
        return *ret_text != NULL ? HF_OK : HF_ENOMEM;
    }
    return HF_ECORRUPT;
}

static int take_all(const struct link_call *call, const struct hf_range_result *result,
                    struct filling *filling)
{
    const Holdfast__V1__Task *task = (const Holdfast__V1__Task *)filling->task;
    int rc = take(call, result, (struct hf_key){ HF_KEY_TASK_PAYLOAD, .name = task->id },
                  task->payload_body, &filling->payload);

    return rc == HF_OK
               ? take(call, result, (struct hf_key){ HF_KEY_TASK_RESULT, .name = task->id },
                      task->result_body, &filling->result)
               : rc;
}

static void show(struct link_call *call, const struct filling *filling)
{
    Holdfast__V1__Task whole = *(const Holdfast__V1__Task *)filling->task;

    if (filling->payload != NULL)
        whole.payload = filling->payload;
    if (filling->result != NULL)
        whole.result = filling->result;
    link_call_reply(call, filling->status, &whole.base);
}

static void on_read(const struct hf_range_result *result, void *arg)
{
    struct link_call *call = arg;
    struct filling *filling = call->state;
    int rc;

    call->state = NULL;
    call->on_cancel = NULL;
    rc = result->result.err != HF_OK ? HF_EAGAIN : take_all(call, result, filling);
    if (rc == HF_OK)
        show(call, filling);
    else
        link_call_error(call, rc,
                        rc == HF_ECORRUPT ? "the task's payload or result is not there"
                                          : "the task's payload or result could not be read");
    free_filling(filling);
}

static int begin(struct link_call *call, struct filling *filling,
                 const Holdfast__V1__Task *task)
{
    struct link *link = call->process->agent->link;
    struct hf_range_request request = { .range.prefix = true };
    char prefix[HF_KEY_SIZE];
    int len = hf_key_prefix(link->settings->common.namespace, HF_KEY_IN_DATA_TASK, task->id,
                            prefix, NULL);
    int rc = len < 0 ? len : hf_json_copy(&task->base, &filling->task);

    if (rc != HF_OK)
        return rc;
    request.range.key = (struct hf_bytes){ prefix, (size_t)len };
    return link->backend.ops->range(link->backend.self, &request, on_read, call,
                                    &filling->read);
}

void link_call_reply_task(struct link_call *call, int status, const Holdfast__V1__Task *task)
{
    struct filling *filling;
    int rc = HF_ENOMEM;

    if (task->payload_body == NULL && task->result_body == NULL) {
        link_call_reply(call, status, &task->base);
        return;
    }
    filling = hf_calloc(1, sizeof *filling);
    if (filling != NULL) {
        filling->status = status;
        rc = begin(call, filling, task);
    }
    if (rc != HF_OK) {
        if (filling != NULL)
            free_filling(filling);
        link_call_error(call, rc, NULL);
        return;
    }
    call->state = filling;
    call->on_cancel = cancel;
}
