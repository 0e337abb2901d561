#include "agentd/link/call.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "holdfast/v1/localapi.pb-c.h"
#include "schema/json.h"

/* Answers. */

void link_call_answer(struct link_call *call, const struct link_answer *answer)
{
    struct link_process *process = call->process;

    call->on_cancel = NULL;
    link_evidence_on_answered(process, &call->debt);
    call->ops->answer(call, answer);
    link_process_let(process);
}

void link_call_reply(struct link_call *call, int status, const ProtobufCMessage *message)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    int rc = hf_json_encode(message, &text);

    if (rc == HF_OK)
        hf_buf_putc(&text, '\n');
    if (rc == HF_OK && text.err == HF_OK)
        link_call_answer(
            call, &(struct link_answer){ .status = status, .body = { text.data, text.len } });
    else
        link_call_error(call, HF_ENOMEM, NULL);
}

void link_call_empty(struct link_call *call, int status)
{
    link_call_answer(call,
                     &(struct link_answer){ .status = status,
                                            .body = hf_bytes_of(status == 204 ? "" : "{}\n") });
}

void link_call_fail(struct link_call *call, int status, const char *code, const char *message,
                    const char *next)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    Holdfast__V1__ErrorReply reply = HOLDFAST__V1__ERROR_REPLY__INIT;
    Holdfast__V1__Error error = HOLDFAST__V1__ERROR__INIT;
    int rc;

    error.code = (char *)code;
    error.message = (char *)message;
    error.next = (char *)next;
    reply.error = &error;
    rc = hf_json_encode(&reply.base, &text);
    if (rc == HF_OK)
        hf_buf_putc(&text, '\n');
    link_call_answer(call,
                     &(struct link_answer){
                         .status = status,
                         .body = rc == HF_OK && text.err == HF_OK
                                     ? (struct hf_bytes){ text.data, text.len }
                                     : hf_bytes_of("{\"error\":{\"code\":\"internal\"}}\n") });
}

static const struct {
    int err;
    int status;
    const char *code;
    const char *next;
} ERRORS[] = {
    { HF_EINVAL, 400, "invalid", "correct the request" },
    { HF_ENOENT, 404, "not_found", "check the name" },
    { HF_EFENCED, 409, "fenced", "stop: another incarnation may be this agent now" },
    { HF_ECONFLICT, 409, "conflict", "read the task again and decide anew" },
    { HF_EEXIST, 409, "conflict", "read it again and decide anew" },
    { HF_ELIMIT, 429, "limit", "wait for earlier requests, or ask for less" },
    { HF_EAGAIN, 503, "unavailable", "try again in a moment" },
    { HF_ETIMEOUT, 503, "unavailable", "try again in a moment" },
    { HF_ENOMEM, 503, "unavailable", "try again in a moment" },
    { HF_ECANCELED, 503, "unavailable", "agentd is being stopped" },
    { HF_ECORRUPT, 500, "corrupt", "a person has to look" },
};

void link_call_error(struct link_call *call, int err, const char *text)
{
    const char *message = text != NULL && text[0] != '\0' ? text : hf_err_text(err);
    const struct link_process *process = call->process;
    struct hf_node_view view;
    bool jeopardy = process != NULL &&
                    hf_node_get_view(process->agent->link->node, process->who.agent,
                                     link_now(process->agent->link), &view) == HF_OK &&
                    view.jeopardy;

    for (size_t i = 0; i < sizeof ERRORS / sizeof ERRORS[0]; i++) {
        if (ERRORS[i].err != err)
            continue;
        link_call_fail(call, ERRORS[i].status,
                       err == HF_EAGAIN && jeopardy ? "jeopardy" : ERRORS[i].code, message,
                       ERRORS[i].next);
        return;
    }
    link_call_fail(call, 503, "unavailable", message, "try again in a moment");
}

/* Bodies. */

bool link_call_is_json(const char *content_type)
{
    static const char TYPE[] = "application/json";

    return content_type != NULL && strncmp(content_type, TYPE, sizeof TYPE - 1) == 0;
}

bool link_call_decode(struct link_call *call, const ProtobufCMessageDescriptor *type,
                      ProtobufCMessage **ret_message)
{
    struct hf_json_options options = { .max_bytes = LINK_JSON_MAX, .reject_unknown = true };
    struct hf_bytes body = call->body.len > 0 ? call->body : hf_bytes_of("{}");
    struct hf_error err = { "" };
    int rc = hf_json_decode(type, body.data, body.len, &options, ret_message, &err);

    if (rc == HF_OK)
        return true;
    if (rc == HF_ELIMIT)
        link_call_fail(call, 413, "too_large", err.text, "send less");
    else
        link_call_error(call, rc, err.text);
    return false;
}

/* Asking the node. */

void link_call_ask(struct link_call *call, struct hf_event_ask *ask, link_reply_fn fn)
{
    int rc = link_ask(call->process, ask, fn, call, &call->ask);

    if (rc != HF_OK)
        link_call_error(call, rc, NULL);
}

void link_call_cancel(struct link_call *call)
{
    if (call->ask != NULL)
        link_ask_cancel(call->process->agent->link, call->ask);
    call->ask = NULL;
    if (call->on_cancel != NULL)
        call->on_cancel(call);
    call->on_cancel = NULL;
    link_evidence_on_answered(call->process, &call->debt);
    link_process_let(call->process);
}

/* Which function. */

static const struct {
    const char *method;
    const char *path; /* `*` is the name of a task, or a nudge's id, which looks like one */
    void (*serve)(struct link_call *call);
} ROUTES[] = {
    { "GET", "/v1/self", link_call_self },
    { "POST", "/v1/heartbeat", link_call_heartbeat },
    { "POST", "/v1/activity", link_call_activity },
    { "POST", "/v1/state", link_call_state },
    { "GET", "/v1/events", link_call_events },
    { "POST", "/v1/pong", link_call_pong },
    { "POST", "/v1/nudges/*/read", link_call_read_nudge },
    { "POST", "/v1/leave", link_call_leave },
    { "POST", "/v1/tasks/claim", link_call_claim },
    { "POST", "/v1/tasks", link_call_submit },
    { "GET", "/v1/tasks/*", link_call_get_task },
    { "POST", "/v1/tasks/*/start", link_call_start },
    { "POST", "/v1/tasks/*/progress", link_call_progress },
    { "POST", "/v1/tasks/*/complete", link_call_complete },
    { "POST", "/v1/tasks/*/fail", link_call_fail_task },
    { "POST", "/v1/tasks/*/release", link_call_release },
    { "PUT", "/v1/tasks/*/checkpoint", link_call_put_checkpoint },
    { "GET", "/v1/tasks/*/checkpoint", link_call_get_checkpoint },
    { "GET", "/v1/tasks/*/checkpoints", link_call_list_checkpoints },
};

/* The name is where the star is; its length, or -1 when the path is another one. */
static ptrdiff_t match(const char *pattern, const char *path, const char **ret_name)
{
    const char *star = strchr(pattern, '*');
    size_t before = star != NULL ? (size_t)(star - pattern) : 0;
    size_t len;

    if (star == NULL)
        return strcmp(pattern, path) == 0 ? 0 : -1;
    if (strncmp(pattern, path, before) != 0)
        return -1;
    *ret_name = path + before;
    len = strcspn(*ret_name, "/");
    return strcmp(star + 1, *ret_name + len) == 0 ? (ptrdiff_t)len : -1;
}

static bool take_name(struct link_call *call, const char *name, size_t len)
{
    struct hf_error err = { "a task's name is too long" };

    if (len < sizeof call->task) {
        memcpy(call->task, name, len);
        call->task[len] = '\0';
        if (hf_name_check("the task's name", call->task, &err) == HF_OK)
            return true;
    }
    link_call_error(call, HF_EINVAL, err.text);
    return false;
}

void link_call_serve(struct link_call *call)
{
    bool exists = false;

    call->process->holders++;
    call->debt = link_evidence_on_asked(call->process);
    for (size_t i = 0; i < sizeof ROUTES / sizeof ROUTES[0]; i++) {
        const char *name = "";
        ptrdiff_t len = match(ROUTES[i].path, call->path, &name);

        if (len < 0)
            continue;
        exists = true;
        if (strcmp(ROUTES[i].method, call->method) != 0)
            continue;
        if (len == 0 || take_name(call, name, (size_t)len))
            ROUTES[i].serve(call);
        return;
    }
    if (exists)
        link_call_fail(call, 405, "method", "this cannot be asked that way",
                       "use the method that the reference names");
    else
        link_call_error(call, HF_ENOENT, "there is nothing at this path");
}
