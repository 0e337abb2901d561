#include "agentd/link/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/resume.h"
#include "agentd/link/store.h"
#include "base/alloc.h"
#include "base/log.h"

struct link_verify {
    struct link_verify *next; /* of those that wait to be told */
    struct link *link;
    uint64_t token;
    int64_t seq;
    char task[HF_NAME_SIZE];
};

static void tell(struct link_verify *verify, int err)
{
    struct hf_event event = { .kind = HF_EVENT_VERIFIED,
                              .verified = { .token = verify->token, .err = err } };

    if (verify->link->runner != NULL && hf_runner_feed(verify->link->runner, &event) != HF_OK)
        HF_LOG_WARN("not_verified", HF_STR("why", "out of memory"));
    free(verify);
}

static void on_stored(const struct link_stored *stored, void *arg)
{
    struct link_verify *verify = arg;
    struct link_stored kept = *stored;

    if ((int64_t)kept.body.len != kept.size)
        kept.err = HF_ELIMIT; /* it was too long to be given */
    link_resume_keep(verify->link, verify->task, verify->seq, &kept);
    tell(verify, stored->err);
}

void link_verify_begin(struct link *link, const struct hf_intent *intent)
{
    struct link_verify *verify = hf_calloc(1, sizeof *verify), **at = &link->verifies;

    if (verify == NULL)
        return; /* the start is withdrawn in time */
    *verify = (struct link_verify){ .link = link,
                                    .token = intent->token,
                                    .seq = intent->verify->seq };
    (void)snprintf(verify->task, sizeof verify->task, "%s", intent->verify->task);
    if (!link_resume_has(link, intent->verify)) {
        link_store_verify(link->store, intent->verify, on_stored, verify);
        return;
    }
    while (*at != NULL)
        at = &(*at)->next;
    *at = verify;
    link->dirty = true;
}

void link_verify_deliver(struct link *link)
{
    struct link_verify *verify;

    while ((verify = link->verifies) != NULL) {
        link->verifies = verify->next;
        tell(verify, HF_OK);
    }
}

void link_verify_done(struct link *link)
{
    struct link_verify *verify;

    while ((verify = link->verifies) != NULL) {
        link->verifies = verify->next;
        free(verify);
    }
}
