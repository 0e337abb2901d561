#include <stdlib.h>

#include "agentd/link/api.h"
#include "agentd/link/call.h"
#include "holdfast/v1/localapi.pb-c.h"
#include "schema/json.h"

/* Who listens: a list of its own per process. */

static void forget(struct link_call *call)
{
    struct link_call **at = &call->process->listeners;

    while (*at != NULL && *at != call)
        at = &(*at)->next;
    if (*at != NULL)
        *at = call->next;
}

void link_call_events(struct link_call *call)
{
    call->next = call->process->listeners;
    call->process->listeners = call;
    call->on_cancel = forget;
    call->ops->begin_events(call);
}

static void send_all(struct link_process *process, const char *name,
                     const ProtobufCMessage *message)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    if (process->listeners == NULL || hf_json_encode(message, &text) != HF_OK)
        return;
    for (struct link_call *call = process->listeners; call != NULL; call = call->next)
        call->ops->send_event(call, name, text.data);
}

void link_api_on_jeopardy(struct link_process *process, hf_ms until_wall)
{
    Holdfast__V1__JeopardyEvent event = HOLDFAST__V1__JEOPARDY_EVENT__INIT;
    Google__Protobuf__Timestamp until = GOOGLE__PROTOBUF__TIMESTAMP__INIT;

    until.seconds = until_wall / 1000;
    until.nanos = (int32_t)(until_wall % 1000) * 1000000;
    event.until = &until;
    send_all(process, "jeopardy", &event.base);
}

static void send_length(struct link_process *process, const char *name, hf_ms length,
                        ProtobufCMessage *message, Google__Protobuf__Duration **member)
{
    Google__Protobuf__Duration duration = GOOGLE__PROTOBUF__DURATION__INIT;

    duration.seconds = length / 1000;
    duration.nanos = (int32_t)(length % 1000) * 1000000;
    *member = &duration;
    send_all(process, name, message);
    *member = NULL;
}

void link_api_on_thawed(struct link_process *process, hf_ms frozen_for)
{
    Holdfast__V1__ThawedEvent event = HOLDFAST__V1__THAWED_EVENT__INIT;

    send_length(process, "thawed", frozen_for, &event.base, &event.frozen_for);
}

void link_api_on_stop(struct link_process *process, hf_ms grace)
{
    Holdfast__V1__StopEvent event = HOLDFAST__V1__STOP_EVENT__INIT;

    send_length(process, "stop", grace, &event.base, &event.grace);
}

void link_api_on_ended(struct link_process *process)
{
    while (process->listeners != NULL) {
        struct link_call *call = process->listeners;

        process->listeners = call->next;
        call->on_cancel = NULL;
        call->ops->end_events(call);
        link_process_let(process);
    }
}
