#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/api.h"
#include "agentd/link/call.h"
#include "base/str.h"
#include "holdfast/v1/localapi.pb-c.h"
#include "schema/json.h"

static Google__Protobuf__Duration duration_of(hf_ms value)
{
    Google__Protobuf__Duration duration = GOOGLE__PROTOBUF__DURATION__INIT;

    duration.seconds = value / 1000;
    duration.nanos = (int32_t)(value % 1000) * 1000000;
    return duration;
}

static bool get_view(struct link_call *call, struct hf_node_view *ret_view)
{
    struct link *link = call->process->agent->link;

    if (hf_node_get_view(link->node, call->process->who.agent, link_now(link), ret_view) ==
        HF_OK)
        return true;
    link_call_error(call, HF_ENOENT, "there is no such agent here");
    return false;
}

/* self */

void link_call_self(struct link_call *call)
{
    Holdfast__V1__Self self = HOLDFAST__V1__SELF__INIT;
    Holdfast__V1__Incarnation incarnation = HOLDFAST__V1__INCARNATION__INIT;
    Google__Protobuf__Duration ttl;
    struct hf_node_view view;

    if (!get_view(call, &view))
        return;
    ttl = duration_of(view.ttl);
    self.agent = call->process->who.agent;
    if (link_process_get_spec(call->process) != NULL)
        self.role = link_process_get_spec(call->process)->role;
    if (view.registered) {
        incarnation.lease_id = view.life.lease;
        incarnation.create_revision = view.life.create_rev;
        incarnation.generation = view.life.generation;
        self.incarnation = &incarnation;
    }
    self.state = call->process->said.state;
    self.jeopardy = view.jeopardy;
    self.ttl = &ttl;
    self.fencing_token = view.incarnation;
    if (view.task != NULL)
        self.task = (char *)view.task;
    link_call_reply(call, 200, &self.base);
}

/* heartbeat, activity, state: what the agent says adds up to one report */

static void on_said(const struct hf_intent_reply *reply, void *arg)
{
    struct link_call *call = arg;
    Holdfast__V1__HeartbeatReply answer = HOLDFAST__V1__HEARTBEAT_REPLY__INIT;
    Holdfast__V1__HeartbeatReply__Waiting waiting =
        HOLDFAST__V1__HEARTBEAT_REPLY__WAITING__INIT;
    Google__Protobuf__Duration interval =
        duration_of(call->process->agent->link->settings->heartbeat);

    call->ask = NULL;
    if (reply->err != HF_OK) {
        link_call_error(call, reply->err, reply->text);
        return;
    }
    waiting.tasks = reply->tasks < INT32_MAX ? (int32_t)reply->tasks : INT32_MAX;
    waiting.nudges = (int32_t)reply->nudges;
    waiting.stop = reply->stop || call->process->agent->link->stopping;
    answer.interval = &interval;
    answer.waiting = &waiting;
    link_call_reply(call, 200, &answer.base);
}

static void say(struct link_call *call, link_reply_fn fn)
{
    int rc = link_ask_report(call->process, fn, call, &call->ask);

    if (rc != HF_OK)
        link_call_error(call, rc, NULL);
}

static void take_heartbeat(struct link_call *call, bool beats)
{
    ProtobufCMessage *message;
    const Holdfast__V1__Heartbeat *beat;
    struct hf_error err = { "" };
    int rc;

    if (!link_call_decode(call, &holdfast__v1__heartbeat__descriptor, &message))
        return;
    beat = (const Holdfast__V1__Heartbeat *)message;
    rc = link_said_take_heartbeat(&call->process->said, beat, &err);
    if (rc == HF_OK && beat->status != HOLDFAST__V1__AGENT_STATUS__VALUE__unknown)
        link_evidence_on_status(call->process);
    hf_json_free(message);
    if (rc != HF_OK) {
        link_call_error(call, rc, err.text);
        return;
    }
    if (beats)
        link_evidence_on_heartbeat(call->process, call->sender);
    call->process->said.beats |= beats;
    call->process->said.speaks |= !beats;
    say(call, on_said);
}

void link_call_heartbeat(struct link_call *call)
{
    take_heartbeat(call, true);
}

/* What it does speaks for it, also where it is the same as before; and promises nothing. */
void link_call_activity(struct link_call *call)
{
    take_heartbeat(call, false);
}

static void on_state_said(const struct hf_intent_reply *reply, void *arg)
{
    struct link_call *call = arg;

    call->ask = NULL;
    if (reply->err != HF_OK)
        link_call_error(call, reply->err, reply->text);
    else
        link_call_empty(call, 200);
}

void link_call_state(struct link_call *call)
{
    ProtobufCMessage *message;
    struct hf_error err = { "" };
    int rc;

    if (!link_call_decode(call, &holdfast__v1__state_request__descriptor, &message))
        return;
    rc = link_said_take_state(&call->process->said, (const Holdfast__V1__StateRequest *)message,
                              &err);
    hf_json_free(message);
    if (rc != HF_OK) {
        link_call_error(call, rc, err.text);
        return;
    }
    link_evidence_on_state(call->process);
    say(call, on_state_said);
}

void link_call_pong(struct link_call *call)
{
    struct link_process *process = call->process;
    ProtobufCMessage *message;
    uint64_t id;
    int rc;

    if (!link_call_decode(call, &holdfast__v1__pong__descriptor, &message))
        return;
    rc = hf_parse_u64(((const Holdfast__V1__Pong *)message)->id, 1, UINT64_MAX, &id);
    hf_json_free(message);
    if (rc != HF_OK) {
        link_call_error(call, HF_EINVAL, "id: that of the ping");
        return;
    }
    /* One that a link before this one has sent may be answered late. */
    if (id <= process->pings && id > process->pongs) {
        process->pongs = id;
        link_evidence_on_pong(process, call->sender);
    }
    link_call_empty(call, 204);
}

void link_call_read_nudge(struct link_call *call)
{
    if (link_nudge_read(call->process, call->task))
        link_call_empty(call, 200);
    else
        link_call_error(call, HF_ENOENT, "it was never asked that, or something else since");
}

/* leave: the keeper remembers it before it is answered, for a link that dies afterwards must
 * not make a crash of it */

static void forget_leaver(struct link_call *call)
{
    struct link_call **at = &call->process->leavers;

    while (*at != NULL && *at != call)
        at = &(*at)->next;
    if (*at != NULL)
        *at = call->next;
}

void link_call_on_remembered(struct link_process *process, bool kept)
{
    struct link_call *call, **at = &process->leavers;

    while ((call = *at) != NULL) {
        if (call->awaits > process->remembered) {
            at = &call->next;
            continue;
        }
        *at = call->next;
        call->on_cancel = NULL;
        if (kept)
            link_call_empty(call, 200);
        else
            link_call_error(call, HF_EAGAIN, "agentd cannot remember that it leaves");
    }
}

static void on_leave_granted(const struct hf_intent_reply *reply, void *arg)
{
    struct link_call *call = arg;
    struct link_process *process = call->process;

    call->ask = NULL;
    if (reply->err != HF_OK) {
        link_call_error(call, reply->err, reply->text);
        return;
    }
    process->leaving = true;
    call->next = process->leavers;
    process->leavers = call;
    call->awaits = process->told + 1;
    call->on_cancel = forget_leaver;
    if (!link_remember(process)) {
        forget_leaver(call);
        call->on_cancel = NULL;
        link_call_error(call, HF_ENOMEM, NULL);
    }
}

void link_call_leave(struct link_call *call)
{
    struct link_process *process = call->process;
    ProtobufCMessage *message;
    struct hf_event_ask ask = { .kind = HF_ASK_LEAVE, .text = process->leave_text };
    const char *reason;

    if (!link_call_decode(call, &holdfast__v1__leave_request__descriptor, &message))
        return;
    reason = ((const Holdfast__V1__LeaveRequest *)message)->reason;
    (void)snprintf(process->leave_text, sizeof process->leave_text, "%.*s",
                   (int)hf_str_cut(reason, sizeof process->leave_text - 1), reason);
    hf_json_free(message);
    link_call_ask(call, &ask, on_leave_granted);
}
