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
