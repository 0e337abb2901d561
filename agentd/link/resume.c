#include "agentd/link/resume.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/sha256.h"

/* What is larger, or one too many, is read again. */
enum { KEPT_BYTES = 64 << 10, KEPT_ALL_BYTES = 1 << 20 };

struct link_resume {
    struct link_resume *next;
    char task[HF_NAME_SIZE];
    int64_t seq;
    struct link_stored stored;
    char body[];
};

/* All that do not fit into so many bytes go, the oldest first. */
static void shorten(struct link_resume **at, size_t bytes)
{
    for (; *at != NULL && sizeof **at + (*at)->stored.body.len <= bytes; at = &(*at)->next)
        bytes -= sizeof **at + (*at)->stored.body.len;
    while (*at != NULL) {
        struct link_resume *gone = *at;

        *at = gone->next;
        free(gone);
    }
}

void link_resume_done(struct link *link)
{
    shorten(&link->verified, 0);
}

void link_resume_forget(struct link_process *process)
{
    free(process->resume);
    process->resume = NULL;
}

/* The same number may be another body by now: of a task that was submitted anew, or of an etcd
 * that was restored. */
static void drop_task(struct link_resume **at, const char *task)
{
    while (*at != NULL) {
        struct link_resume *found = *at;

        if (strcmp(found->task, task) != 0) {
            at = &found->next;
            continue;
        }
        *at = found->next;
        free(found);
    }
}

void link_resume_keep(struct link *link, const char *task, int64_t seq,
                      const struct link_stored *stored)
{
    struct link_resume *resume;

    drop_task(&link->verified, task);
    if (stored->err != HF_OK || stored->body.len > KEPT_BYTES)
        return;
    resume = hf_calloc(1, sizeof *resume + stored->body.len);
    if (resume == NULL)
        return;
    (void)snprintf(resume->task, sizeof resume->task, "%s", task);
    resume->seq = seq;
    if (stored->body.len > 0)
        memcpy(resume->body, stored->body.data, stored->body.len);
    memcpy(resume->stored.sha256, stored->sha256, sizeof resume->stored.sha256);
    resume->stored.body = (struct hf_bytes){ resume->body, stored->body.len };
    resume->next = link->verified;
    link->verified = resume;
    shorten(&link->verified, KEPT_ALL_BYTES);
}

const struct link_stored *link_resume_find(const struct link *link,
                                           const Holdfast__V1__Checkpoint *entry)
{
    const struct link_resume *kept = link->verified;
    uint8_t digest[HF_SHA256_LEN];
    char hex[HF_SHA256_HEX_LEN + 1];

    while (kept != NULL && (kept->seq != entry->seq || strcmp(kept->task, entry->task) != 0))
        kept = kept->next;
    if (kept == NULL || (int64_t)kept->stored.body.len != entry->size ||
        hf_sha256(kept->stored.body.data, kept->stored.body.len, digest) != HF_OK)
        return NULL;
    hf_sha256_format(digest, hex);
    return strcmp(hex, entry->sha256) == 0 ? &kept->stored : NULL;
}

bool link_resume_has(const struct link *link, const Holdfast__V1__Checkpoint *entry)
{
    return link_resume_find(link, entry) != NULL;
}

void link_resume_grant(struct link_process *process, const char *task, int64_t seq)
{
    struct link_resume **at = &process->agent->link->verified, *found;

    while (task != NULL && (found = *at) != NULL) {
        if (strcmp(found->task, task) == 0 && found->seq == seq) {
            *at = found->next;
            free(process->resume);
            process->resume = found;
            return;
        }
        at = &found->next;
    }
}

const struct link_stored *link_resume_get(const struct link_process *process, const char *task,
                                          int64_t *ret_seq)
{
    const struct link_resume *resume = process->resume;

    if (resume == NULL || strcmp(resume->task, task) != 0)
        return NULL;
    *ret_seq = resume->seq;
    return &resume->stored;
}

void link_resume_on_task(struct link_process *process, const Holdfast__V1__Task *task)
{
    const struct link_resume *resume = process != NULL ? process->resume : NULL;

    if (resume == NULL || task == NULL || strcmp(resume->task, task->id) != 0)
        return;
    if ((task->state != HOLDFAST__V1__TASK__STATE__acknowledged &&
         task->state != HOLDFAST__V1__TASK__STATE__in_progress) ||
        task->restored == NULL || task->restored->seq != resume->seq)
        link_resume_forget(process);
}
