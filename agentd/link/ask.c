#include <stdlib.h>

#include "agentd/link/link.h"
#include "base/alloc.h"
#include "base/log.h"

struct link_ask {
    struct link_ask *next;
    uint64_t token;
    link_reply_fn fn; /* NULL: whoever asked is gone */
    void *arg;
};

int link_ask(struct link_process *process, struct hf_event_ask *ask, link_reply_fn fn,
             void *arg, struct link_ask **ret_ask)
{
    struct link *link = process->agent->link;
    struct link_ask *next = hf_calloc(1, sizeof *next);
    struct hf_event event = { .kind = HF_EVENT_ASK };
    int rc;

    if (next == NULL)
        return HF_ENOMEM;
    *next = (struct link_ask){
        .next = link->asks, .token = ++link->last_token, .fn = fn, .arg = arg
    };
    link->asks = next;
    *ret_ask = next;
    event.ask = *ask;
    event.ask.token = next->token;
    event.ask.agent = process->who.agent;
    event.ask.instance_id = process->who.instance;
    rc = hf_runner_feed(link->runner, &event); /* which may answer at once */
    if (rc != HF_OK) {
        link->asks = next->next;
        free(next);
        *ret_ask = NULL;
    }
    return rc;
}

int link_ask_report(struct link_process *process, link_reply_fn fn, void *arg,
                    struct link_ask **ret_ask)
{
    struct hf_event_ask ask = { .kind = HF_ASK_REPORT };
    struct link_said_report report;

    if (process->is_orphan && !process->recalled) {
        process->report_waits = true; /* alone it would wipe out what stands there */
        ask.kind = HF_ASK_SELF;
    } else {
        link_said_fill(&process->said, &report);
        ask.report = &report.record;
        ask.beats = process->said.beats;
        ask.speaks = process->said.speaks;
        process->said.beats = process->said.speaks = false;
    }
    return link_ask(process, &ask, fn, arg, ret_ask);
}

/* It is of this process, as one of its lives. */
static bool is_own(const struct link_process *process, const Holdfast__V1__Report *report)
{
    const Holdfast__V1__Incarnation *told = report->incarnation;

    return told != NULL && told->generation == process->incarnation.generation &&
           process->born != 0 && told->create_revision >= process->born &&
           told->create_revision <= process->incarnation.create_revision;
}

void link_ask_recall(struct link_process *process)
{
    struct hf_node_view view;
    struct link_ask *ignored;
    bool unwritten;

    if (process == NULL || !process->is_orphan || process->recalled ||
        hf_node_get_view(process->agent->link->node, process->who.agent,
                         link_now(process->agent->link), &view) != HF_OK ||
        !view.told)
        return;
    process->recalled = true;
    unwritten = process->said.kept;
    if (view.report != NULL && is_own(process, view.report))
        unwritten = link_said_take_report(&process->said, view.report);
    link_evidence_on_recalled(process);
    if ((process->report_waits || unwritten) &&
        link_ask_report(process, NULL, NULL, &ignored) != HF_OK)
        HF_LOG_WARN("report_lost", HF_STR("agent", process->who.agent),
                    HF_STR("next", "the next one says it all"));
}

void link_ask_cancel(struct link *link, struct link_ask *ask)
{
    (void)link;
    ask->fn = NULL; /* the node answers all the same */
}

void link_ask_on_reply(struct link *link, uint64_t token, const struct hf_intent_reply *reply)
{
    HF_LOG_DEBUG("reply", HF_UINT("token", token), HF_STR("error", hf_err_name(reply->err)),
                 HF_STR("message", reply->text));
    for (struct link_ask **at = &link->asks; *at != NULL; at = &(*at)->next) {
        struct link_ask *ask = *at;

        if (ask->token != token)
            continue;
        *at = ask->next;
        if (ask->fn != NULL)
            ask->fn(reply, ask->arg);
        free(ask);
        return;
    }
}

void link_ask_done(struct link *link)
{
    struct hf_intent_reply gone = { .err = HF_EAGAIN, .text = "agentd is being stopped" };

    while (link->asks != NULL)
        link_ask_on_reply(link, link->asks->token, &gone);
}
