#include "agentd/link/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/resume.h"
#include "agentd/link/store.h"
#include "base/alloc.h"
#include "base/log.h"

/* What took longer may have taken longer than whoever asked could wait: it will ask again. What
 * is found at once is looked for at once, too. */
enum { LONG_MS = 2000, KEPT_MS = 300000, MOST_KEPT = 256 };

/* Who is to be told. */
struct link_verify {
    struct link_verify *next;
    uint64_t token;
    int err;
};

/* A body that is looked at, or was. */
struct link_verdict {
    struct link_verdict *next; /* an older one */
    struct link *link;
    struct link_verify *waiting;
    bool known;
    int err;
    hf_ms begun, ended;
    int64_t seq, size;
    char *task, *store, *key, *sha256, *root; /* of the entry */
};

static void tell(const struct link *link, struct link_verify *verify)
{
    struct hf_event event = { .kind = HF_EVENT_VERIFIED,
                              .verified = { .token = verify->token, .err = verify->err } };

    if (link->runner != NULL && hf_runner_feed(link->runner, &event) != HF_OK)
        HF_LOG_WARN("not_verified", HF_STR("why", "out of memory"));
    free(verify);
}

static void push_last(struct link_verify **at, struct link_verify *verify)
{
    while (*at != NULL)
        at = &(*at)->next;
    *at = verify;
}

static void free_all(struct link_verify **at)
{
    struct link_verify *verify;

    while ((verify = *at) != NULL) {
        *at = verify->next;
        free(verify);
    }
}

/* Verdicts. */

static void verdict_free(struct link_verdict *verdict)
{
    if (verdict == NULL)
        return;
    free_all(&verdict->waiting);
    free(verdict->task);
    free(verdict->store);
    free(verdict->key);
    free(verdict->sha256);
    free(verdict->root);
    free(verdict);
}

static const char *root_of(const Holdfast__V1__Checkpoint *entry)
{
    return entry->root != NULL ? entry->root->id : "";
}

static struct link_verdict *verdict_new(struct link *link,
                                        const Holdfast__V1__Checkpoint *entry)
{
    struct link_verdict *verdict = hf_calloc(1, sizeof *verdict);

    if (verdict == NULL)
        return NULL;
    *verdict = (struct link_verdict){ .link = link,
                                      .begun = link_now(link),
                                      .seq = entry->seq,
                                      .size = entry->size,
                                      .task = hf_strdup(entry->task),
                                      .store = hf_strdup(entry->store),
                                      .key = hf_strdup(entry->key),
                                      .sha256 = hf_strdup(entry->sha256),
                                      .root = hf_strdup(root_of(entry)) };
    if (verdict->task != NULL && verdict->store != NULL && verdict->key != NULL &&
        verdict->sha256 != NULL && verdict->root != NULL)
        return verdict;
    verdict_free(verdict);
    return NULL;
}

/* The same body: a number alone may be another one by now. */
static bool is_of(const struct link_verdict *verdict, const Holdfast__V1__Checkpoint *entry)
{
    return verdict->seq == entry->seq && verdict->size == entry->size &&
           strcmp(verdict->task, entry->task) == 0 &&
           strcmp(verdict->store, entry->store) == 0 && strcmp(verdict->key, entry->key) == 0 &&
           strcmp(verdict->sha256, entry->sha256) == 0 &&
           strcmp(verdict->root, root_of(entry)) == 0;
}

/* The oldest go first; those that are looked at stay. */
static void forget_old(struct link *link)
{
    struct link_verdict **at = &link->verdicts, *verdict;
    hf_ms now = link_now(link);
    size_t kept = 0;

    while ((verdict = *at) != NULL) {
        if (!verdict->known || (now - verdict->ended < KEPT_MS && ++kept <= MOST_KEPT)) {
            at = &verdict->next;
            continue;
        }
        *at = verdict->next;
        verdict_free(verdict);
    }
}

static struct link_verdict *find(const struct link *link, const Holdfast__V1__Checkpoint *entry)
{
    struct link_verdict *verdict = link->verdicts;

    while (verdict != NULL && !is_of(verdict, entry))
        verdict = verdict->next;
    return verdict;
}

static void take_out(struct link *link, const struct link_verdict *verdict)
{
    struct link_verdict **at = &link->verdicts;

    while (*at != verdict)
        at = &(*at)->next;
    *at = verdict->next;
}

/* That it cannot be read now says nothing of later. */
static bool is_to_be_kept(const struct link_verdict *verdict)
{
    return (verdict->err == HF_OK || verdict->err == HF_ECORRUPT ||
            verdict->err == HF_ENOENT) &&
           verdict->ended - verdict->begun >= LONG_MS;
}

static void on_stored(const struct link_stored *stored, void *arg)
{
    struct link_verdict *verdict = arg;
    struct link *link = verdict->link;
    struct link_verify *waiting = verdict->waiting, *verify;
    struct link_stored kept = *stored;

    if ((int64_t)kept.body.len != kept.size)
        kept.err = HF_ELIMIT; /* it was too long to be given */
    link_resume_keep(link, verdict->task, verdict->seq, &kept);
    verdict->waiting = NULL;
    verdict->known = true;
    verdict->err = stored->err;
    verdict->ended = link_now(link);
    if (!is_to_be_kept(verdict)) {
        take_out(link, verdict);
        verdict_free(verdict);
    }
    /* Whoever is told may ask for more at once. */
    while ((verify = waiting) != NULL) {
        waiting = verify->next;
        verify->err = stored->err;
        tell(link, verify);
    }
}

/* From outside. */

void link_verify_begin(struct link *link, const struct hf_intent *intent)
{
    const Holdfast__V1__Checkpoint *entry = intent->verify;
    struct link_verify *verify = hf_calloc(1, sizeof *verify);
    struct link_verdict *verdict;

    if (verify == NULL)
        return; /* the start is withdrawn in time */
    verify->token = intent->token;
    forget_old(link);
    verdict = find(link, entry);
    if (link_resume_has(link, entry) || (verdict != NULL && verdict->known)) {
        verify->err = link_resume_has(link, entry) ? HF_OK : verdict->err;
        push_last(&link->verifies, verify);
        link->dirty = true;
        return;
    }
    if (verdict != NULL) {
        push_last(&verdict->waiting, verify);
        return;
    }
    verdict = verdict_new(link, entry);
    if (verdict == NULL) {
        free(verify);
        return;
    }
    verdict->waiting = verify;
    verdict->next = link->verdicts;
    link->verdicts = verdict;
    link_store_verify(link->store, entry, on_stored, verdict);
}

void link_verify_forget(struct link *link, const char *task)
{
    struct link_verdict **at = &link->verdicts, *verdict;

    while ((verdict = *at) != NULL) {
        if (!verdict->known || strcmp(verdict->task, task) != 0) {
            at = &verdict->next;
            continue;
        }
        *at = verdict->next;
        verdict_free(verdict);
    }
}

void link_verify_deliver(struct link *link)
{
    struct link_verify *verify;

    while ((verify = link->verifies) != NULL) {
        link->verifies = verify->next;
        tell(link, verify);
    }
}

void link_verify_done(struct link *link)
{
    struct link_verdict *verdict;

    free_all(&link->verifies);
    while ((verdict = link->verdicts) != NULL) {
        link->verdicts = verdict->next;
        verdict_free(verdict);
    }
}
