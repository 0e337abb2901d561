#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    link_evidence_on_listeners(call->process);
}

/* Who begins to listen knows nothing yet: it hears at once whether work waits, and what it was
 * asked. */
void link_call_events(struct link_call *call)
{
    struct link_process *process = call->process;

    call->next = process->listeners;
    process->listeners = call;
    call->on_cancel = forget;
    call->ops->begin_events(call);
    link_evidence_on_answered(process, &call->debt); /* it may listen for ever */
    process->told_task[0] = '\0';
    link_evidence_on_listeners(process);
    link_api_tell_work(process);
    process->told_nudge[0] = '\0';
    if (process == link_process_get_current(process->agent))
        link_nudge_look(process);
}

/* True when somebody got it. */
static bool send_all(struct link_process *process, const char *name,
                     const ProtobufCMessage *message)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    bool sent = false;

    if (process->listeners == NULL || hf_json_encode(message, &text) != HF_OK)
        return false;
    for (struct link_call *call = process->listeners; call != NULL; call = call->next)
        sent |= call->ops->send_event(call, name, text.data);
    return sent;
}

void link_api_on_jeopardy(struct link_process *process, hf_ms until_wall)
{
    Holdfast__V1__JeopardyEvent event = HOLDFAST__V1__JEOPARDY_EVENT__INIT;
    Google__Protobuf__Timestamp until = GOOGLE__PROTOBUF__TIMESTAMP__INIT;

    until.seconds = until_wall / 1000;
    until.nanos = (int32_t)(until_wall % 1000) * 1000000;
    event.until = &until;
    (void)send_all(process, "jeopardy", &event.base);
}

static void send_length(struct link_process *process, const char *name, hf_ms length,
                        ProtobufCMessage *message, Google__Protobuf__Duration **member)
{
    Google__Protobuf__Duration duration = GOOGLE__PROTOBUF__DURATION__INIT;

    duration.seconds = length / 1000;
    duration.nanos = (int32_t)(length % 1000) * 1000000;
    *member = &duration;
    (void)send_all(process, name, message);
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

void link_api_tell_work(struct link_process *process)
{
    Holdfast__V1__TaskEvent event = HOLDFAST__V1__TASK_EVENT__INIT;
    const struct link *link = process != NULL ? process->agent->link : NULL;
    const char *task;

    if (link == NULL || process->listeners == NULL || link->stopping ||
        link->lease_state != HF_LEASE_HELD)
        return;
    task = hf_node_get_waiting(link->node, process->who.agent);
    if (task != NULL && strcmp(task, process->told_task) != 0) {
        event.id = (char *)task;
        (void)send_all(process, "task", &event.base);
    }
    (void)snprintf(process->told_task, sizeof process->told_task, "%s",
                   task != NULL ? task : "");
}

bool link_api_tell_inquiry(struct link_process *process,
                           const Holdfast__V1__Health__Inquiry *inquiry)
{
    Holdfast__V1__NudgeEvent event = HOLDFAST__V1__NUDGE_EVENT__INIT;

    if (process->listeners == NULL || strcmp(inquiry->id, process->told_nudge) == 0)
        return false;
    event.id = inquiry->id;
    event.text = inquiry->text;
    (void)snprintf(process->told_nudge, sizeof process->told_nudge, "%s", inquiry->id);
    return send_all(process, "nudge", &event.base);
}

void link_api_ping(struct link_process *process)
{
    Holdfast__V1__PingEvent event = HOLDFAST__V1__PING_EVENT__INIT;
    char id[24];

    (void)snprintf(id, sizeof id, "%" PRIu64, ++process->pings);
    event.id = id;
    (void)send_all(process, "ping", &event.base);
}

void link_api_on_ended(struct link_process *process)
{
    process->remembered = process->told; /* nobody has to remember that it leaves any more */
    link_call_on_remembered(process, true);
    while (process->listeners != NULL) {
        struct link_call *call = process->listeners;

        process->listeners = call->next;
        call->on_cancel = NULL;
        call->ops->end_events(call);
        link_process_let(process);
    }
}
