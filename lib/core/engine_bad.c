#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/engine_private.h"

/* A key that holds what cannot be read. What it belongs to is not acted on: nobody knows what
 * it says. */
struct bad {
    const char *name; /* the key's text; first, for the index */
    char *why;
    bool alerted;
};

static void free_bad(struct bad *bad)
{
    free((void *)bad->name);
    free(bad->why);
    free(bad);
}

static struct bad *make_bad(const char *name, const char *why)
{
    struct bad *bad = hf_calloc(1, sizeof *bad);

    if (bad == NULL)
        return NULL;
    bad->name = hf_strdup(name);
    bad->why = hf_strdup(why != NULL ? why : "");
    if (bad->name != NULL && bad->why != NULL)
        return bad;
    free_bad(bad);
    return NULL;
}

/* The key as it stands in etcd; false for one that is none. */
static bool format_key(const struct hf_engine *e, const struct hf_key *key,
                       char ret_text[HF_KEY_SIZE])
{
    return hf_key_format(e->ns, key, ret_text, NULL) > 0;
}

/* Whoever is concerned has to be looked at: it may be acted on again, or not any more. */
static void touch(struct hf_engine *e, const struct hf_key *key)
{
    struct hf_agent *agent = NULL;
    struct hf_task *task = NULL;

    switch (key->kind) {
    case HF_KEY_AGENT_SPEC:
    case HF_KEY_AGENT_LIVE:
    case HF_KEY_AGENT_REPORT:
    case HF_KEY_AGENT_EXIT:
    case HF_KEY_WANTED:
    case HF_KEY_HEALTH: agent = hf_fleet_get_agent(e->fleet, key->name); break;
    case HF_KEY_TASK:
    case HF_KEY_RECOVERY: task = hf_fleet_get_task(e->fleet, key->name); break;
    default: break;
    }
    if (agent != NULL)
        hf_agenda_add(&e->agenda, &hf_agent_state(agent)->item.agenda);
    for (task = agent != NULL ? agent->tasks : task; task != NULL;
         task = agent != NULL ? task->next_owned : NULL)
        hf_agenda_add(&e->agenda, &hf_task_state(task)->item.agenda);
}

int hf_bad_note(struct hf_engine *e, const struct hf_event_bad *event)
{
    char text[HF_KEY_SIZE];
    const char *name = event->text;
    struct bad *bad;

    if (event->key.kind != HF_KEY_KINDS && format_key(e, &event->key, text))
        name = text;
    if (name == NULL)
        name = "?";
    bad = hf_index_get(&e->bad, name);
    if (bad == NULL) {
        bad = make_bad(name, event->why);
        if (bad == NULL)
            return HF_ENOMEM;
        if (hf_index_add(&e->bad, bad) != HF_OK) {
            free_bad(bad);
            return HF_ENOMEM;
        }
    }
    if (event->seen.mod_rev > e->told_rev)
        e->told_rev = event->seen.mod_rev;
    touch(e, &event->key);
    hf_agenda_add(&e->agenda, &e->bad_item.agenda);
    return HF_OK;
}

void hf_bad_forget(struct hf_engine *e, const struct hf_key *key)
{
    char text[HF_KEY_SIZE];
    struct bad *bad = format_key(e, key, text) ? hf_index_get(&e->bad, text) : NULL;

    if (bad == NULL)
        return;
    hf_index_remove(&e->bad, bad);
    free_bad(bad);
    touch(e, key);
}

void hf_bad_clear(struct hf_engine *e)
{
    size_t cursor = 0;
    struct bad *bad;

    while ((bad = hf_index_next(&e->bad, &cursor)) != NULL)
        free_bad(bad);
    hf_index_done(&e->bad);
}

static const char *find(const struct hf_engine *e, const enum hf_key_kind *kinds, size_t count,
                        const char *name)
{
    char text[HF_KEY_SIZE];

    if (e->bad.count == 0 || hf_mutated(e, HF_MUTANT_NO_BAD))
        return NULL;
    for (size_t i = 0; i < count; i++) {
        struct hf_key key = { .kind = kinds[i], .name = name };
        const struct bad *bad = format_key(e, &key, text) ? hf_index_get(&e->bad, text) : NULL;

        if (bad != NULL)
            return bad->why;
    }
    return NULL;
}

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

const char *hf_bad_of_agent(struct hf_engine *e, const char *name)
{
    static const enum hf_key_kind KINDS[] = { HF_KEY_AGENT_SPEC, HF_KEY_AGENT_LIVE,
                                              HF_KEY_AGENT_EXIT, HF_KEY_WANTED, HF_KEY_HEALTH };

    return find(e, KINDS, COUNT(KINDS), name);
}

const char *hf_bad_of_task(struct hf_engine *e, const char *name)
{
    static const enum hf_key_kind KINDS[] = { HF_KEY_TASK, HF_KEY_RECOVERY };

    return find(e, KINDS, COUNT(KINDS), name);
}

const char *hf_bad_of_host(struct hf_engine *e, const char *name)
{
    static const enum hf_key_kind KINDS[] = { HF_KEY_HOST_RECORD, HF_KEY_HOST_LIVE };

    return find(e, KINDS, COUNT(KINDS), name);
}

int hf_engine_decide_bad(struct hf_engine *e, struct hf_intent *ret)
{
    size_t cursor = 0;
    struct bad *bad;

    while ((bad = hf_index_next(&e->bad, &cursor)) != NULL) {
        if (bad->alerted)
            continue;
        bad->alerted = true;
        return hf_draft_alert(
            e, ret, &e->bad_item,
            &(struct hf_intent_alert){
                .kind = HOLDFAST__V1__EVENT__KIND__needs_review,
                .why = hf_draft_why(e, "%s cannot be read: %s", bad->name, bad->why),
                .next = "what it belongs to is left alone until it is corrected" });
    }
    return 0;
}
