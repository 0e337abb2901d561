#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/call.h"
#include "agentd/link/resume.h"
#include "base/alloc.h"
#include "core/body.h"
#include "holdfast/v1/localapi.pb-c.h"
#include "schema/json.h"

/* An answer that shows the task as it is now. */
static void on_task(const struct hf_intent_reply *reply, void *arg)
{
    struct link_call *call = arg;

    call->ask = NULL;
    link_resume_on_task(call->process, reply->task);
    if (reply->err != HF_OK)
        link_call_error(call, reply->err, reply->text);
    else if (reply->task != NULL)
        link_call_reply(call, 200, &reply->task->base);
    else
        link_call_empty(call, 200);
}

static bool fits(struct link_call *call, const char *what, const char *text, size_t max)
{
    char sentence[128];

    if (strlen(text) <= max)
        return true;
    (void)snprintf(sentence, sizeof sentence, "%s: at most %zu bytes", what, max);
    link_call_fail(call, 413, "too_large", sentence, "keep it elsewhere, and pass where it is");
    return false;
}

/* claim */

static void on_claimed(const struct hf_intent_reply *reply, void *arg)
{
    struct link_call *call = arg;

    if (reply->err == HF_ENOENT) {
        call->ask = NULL;
        link_call_empty(call, 204);
    } else if (reply->err == HF_OK && reply->task != NULL) {
        call->ask = NULL;
        link_resume_on_task(call->process, reply->task);
        link_call_reply_task(call, 200, reply->task);
    } else {
        on_task(reply, arg);
    }
}

void link_call_claim(struct link_call *call)
{
    struct link *link = call->process->agent->link;
    struct hf_event_ask ask = { .kind = HF_ASK_CLAIM };
    const Google__Protobuf__Duration *wait;
    ProtobufCMessage *message;
    hf_ms length = 0;

    if (!link_call_decode(call, &holdfast__v1__claim_request__descriptor, &message))
        return;
    wait = ((const Holdfast__V1__ClaimRequest *)message)->wait;
    if (wait != NULL && wait->seconds < LINK_WAIT_MAX_MS / 1000)
        length = wait->seconds * 1000 + wait->nanos / 1000000;
    else if (wait != NULL)
        length = LINK_WAIT_MAX_MS;
    hf_json_free(message);
    if (length < 0) {
        link_call_error(call, HF_EINVAL, "wait: not before now");
        return;
    }
    if (link->stopping) {
        link_call_error(call, HF_ECANCELED, "agentd is being stopped: nothing new begins");
        return;
    }
    ask.until = link_now(link) + length;
    link_call_ask(call, &ask, on_claimed);
}

/* submit */

static void on_submitted(const struct hf_intent_reply *reply, void *arg)
{
    struct link_call *call = arg;

    if (reply->err == HF_OK && reply->task != NULL) {
        call->ask = NULL;
        link_call_reply(call, reply->existed ? 200 : 201, &reply->task->base);
        return;
    }
    on_task(reply, arg);
}

static bool check_submit(struct link_call *call, const Holdfast__V1__SubmitRequest *given)
{
    struct hf_error err = { "" };
    int rc = hf_name_check("role", given->role, &err);

    if (rc == HF_OK && given->id[0] != '\0')
        rc = hf_name_check("id", given->id, &err);
    if (rc != HF_OK) {
        link_call_error(call, rc, err.text);
        return false;
    }
    return fits(call, "payload", given->payload, HF_BODY_MAX);
}

/* The labels of both are the same pairs of texts. */
static void submit(struct link_call *call, const Holdfast__V1__SubmitRequest *given,
                   Holdfast__V1__Task__LabelsEntry **labels)
{
    Holdfast__V1__Task task = HOLDFAST__V1__TASK__INIT;
    struct hf_event_ask ask = { .kind = HF_ASK_SUBMIT, .next_task = &task };
    struct hf_error err = { "" };

    for (size_t i = 0; i < given->n_labels; i++) {
        labels[i] = (Holdfast__V1__Task__LabelsEntry *)(labels + given->n_labels) + i;
        holdfast__v1__task__labels_entry__init(labels[i]);
        labels[i]->key = given->labels[i]->key;
        labels[i]->value = given->labels[i]->value;
    }
    task.id = given->id;
    task.role = given->role;
    task.state =
        given->queued ? HOLDFAST__V1__TASK__STATE__queued : HOLDFAST__V1__TASK__STATE__pending;
    task.payload = given->payload;
    task.priority = given->priority;
    task.labels = labels;
    task.n_labels = given->n_labels;
    task.expected_completion = given->expected_completion;
    task.deadline = given->deadline;
    if (hf_labels_check(labels, given->n_labels, &err) != HF_OK)
        link_call_fail(call, 413, "too_large", err.text, "put the rest into the payload");
    else
        link_call_ask(call, &ask, on_submitted);
}

void link_call_submit(struct link_call *call)
{
    const Holdfast__V1__SubmitRequest *given;
    Holdfast__V1__Task__LabelsEntry **labels;
    ProtobufCMessage *message;

    if (!link_call_decode(call, &holdfast__v1__submit_request__descriptor, &message))
        return;
    given = (const Holdfast__V1__SubmitRequest *)message;
    if (check_submit(call, given)) {
        labels = hf_calloc(given->n_labels + 1, sizeof(void *) + sizeof **labels);
        if (labels == NULL)
            link_call_error(call, HF_ENOMEM, NULL);
        else
            submit(call, given, labels);
        free((void *)labels);
    }
    hf_json_free(message);
}

/* get */

static void on_read(const struct hf_range_result *result, void *arg)
{
    struct link_call *call = arg;
    ProtobufCMessage *task;

    call->state = NULL;
    call->on_cancel = NULL;
    if (result->result.err != HF_OK) {
        link_call_error(call, HF_EAGAIN, "etcd could not be asked");
    } else if (result->count == 0) {
        link_call_error(call, HF_ENOENT, "there is no such task");
    } else if (hf_json_decode(&holdfast__v1__task__descriptor, result->kvs[0].value.data,
                              result->kvs[0].value.len, NULL, &task, NULL) != HF_OK) {
        link_call_error(call, HF_ECORRUPT, "the task's record cannot be read");
    } else {
        link_call_reply_task(call, 200, (const Holdfast__V1__Task *)task);
        hf_json_free(task);
    }
}

static void cancel_read(struct link_call *call)
{
    const struct hf_backend *backend = &call->process->agent->link->backend;

    backend->ops->cancel(call->state);
}

void link_call_get_task(struct link_call *call)
{
    struct link *link = call->process->agent->link;
    struct hf_range_request request = { 0 };
    char key[HF_KEY_SIZE];
    struct hf_call *read;
    int len = hf_key_format(link->settings->common.namespace,
                            &(struct hf_key){ HF_KEY_TASK, .name = call->task }, key, NULL);
    int rc = len < 0 ? len : HF_OK;

    request.range.key = (struct hf_bytes){ key, len > 0 ? (size_t)len : 0 };
    if (rc == HF_OK)
        rc = link->backend.ops->range(link->backend.self, &request, on_read, call, &read);
    if (rc != HF_OK) {
        link_call_error(call, rc, NULL);
        return;
    }
    call->state = read;
    call->on_cancel = cancel_read;
}

/* start, progress, complete, fail, release */

void link_call_start(struct link_call *call)
{
    struct hf_event_ask ask = { .kind = HF_ASK_START, .task = call->task };

    link_call_ask(call, &ask, on_task);
}

void link_call_progress(struct link_call *call)
{
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;
    Holdfast__V1__Report__Progress progress = HOLDFAST__V1__REPORT__PROGRESS__INIT;
    struct hf_event_ask ask = { .kind = HF_ASK_PROGRESS,
                                .task = call->task,
                                .report = &report };
    const Holdfast__V1__ProgressRequest *given;
    ProtobufCMessage *message;

    if (!link_call_decode(call, &holdfast__v1__progress_request__descriptor, &message))
        return;
    given = (const Holdfast__V1__ProgressRequest *)message;
    progress.percent = given->percent;
    progress.note = given->note;
    report.progress = &progress;
    if (!(given->percent >= 0 && given->percent <= 100)) {
        link_call_error(call, HF_EINVAL, "percent: 0 to 100");
    } else if (fits(call, "note", given->note, LINK_REASON_MAX)) {
        call->process->said.has_percent = false; /* this is the newer word */
        link_call_ask(call, &ask, on_task);
    }
    hf_json_free(message);
}

void link_call_complete(struct link_call *call)
{
    struct hf_event_ask ask = { .kind = HF_ASK_COMPLETE, .task = call->task };
    ProtobufCMessage *message;

    if (!link_call_decode(call, &holdfast__v1__complete_request__descriptor, &message))
        return;
    ask.text = ((const Holdfast__V1__CompleteRequest *)message)->result;
    if (fits(call, "result", ask.text, HF_BODY_MAX))
        link_call_ask(call, &ask, on_task);
    hf_json_free(message);
}

static void end_with_reason(struct link_call *call, enum hf_ask_kind kind)
{
    struct hf_event_ask ask = { .kind = kind, .task = call->task };
    ProtobufCMessage *message;

    if (!link_call_decode(call, &holdfast__v1__fail_request__descriptor, &message))
        return;
    ask.text = ((const Holdfast__V1__FailRequest *)message)->reason;
    if (fits(call, "reason", ask.text, LINK_REASON_MAX))
        link_call_ask(call, &ask, on_task);
    hf_json_free(message);
}

void link_call_fail_task(struct link_call *call)
{
    end_with_reason(call, HF_ASK_FAIL);
}

void link_call_release(struct link_call *call)
{
    end_with_reason(call, HF_ASK_RELEASE);
}
