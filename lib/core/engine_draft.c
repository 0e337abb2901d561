#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/engine_private.h"

/* splitmix64: ids need to differ, not to be secret, and the seed is random. */
static uint64_t draw(struct hf_engine *e)
{
    uint64_t z = (e->stream += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31) ^ e->random;
}

void hf_draft_id(struct hf_engine *e, char ret_id[HF_ID_LEN + 1])
{
    uint64_t words[2] = { draw(e), draw(e) };
    uint8_t random[10];

    for (size_t i = 0; i < sizeof random; i++)
        random[i] = (uint8_t)(words[i / 8] >> (i % 8 * 8));
    hf_id_format(e->wall, random, ret_id);
}

void hf_draft_begin(struct hf_engine *e, struct hf_intent *ret)
{
    char op_id[HF_ID_LEN + 1];

    hf_draft_id(e, op_id);
    *ret = (struct hf_intent){ .kind = HF_INTENT_WRITE };
    hf_plan_init(&ret->plan, e->ns, HF_WRITER_CONTROLLER, op_id);
    e->drafted_tail = 0;
}

/* The ring: what falls out of it goes with what comes in. More than one where earlier plans
 * that should have deleted some were refused. */
static void trim_ring(struct hf_engine *e, struct hf_intent *ret)
{
    for (int i = 0; i < 2; i++) {
        if (e->event_tail == 0 || e->event_tail + e->policy.ring > e->event_seq)
            return;
        if (e->drafted_tail == 0)
            e->drafted_tail = e->event_tail;
        hf_plan_delete(&ret->plan, (struct hf_key){ HF_KEY_EVENT, .seq = e->event_tail++ });
    }
}

static char *text_or_empty(const char *text)
{
    return (char *)(text != NULL ? text : "");
}

void hf_draft_event(struct hf_engine *e, struct hf_intent *ret,
                    const struct hf_draft_event *event)
{
    Holdfast__V1__Event record = HOLDFAST__V1__EVENT__INIT;
    Holdfast__V1__Evidence evidence = HOLDFAST__V1__EVIDENCE__INIT, *list[] = { &evidence };
    Holdfast__V1__Next next = HOLDFAST__V1__NEXT__INIT;
    Google__Protobuf__Timestamp at, next_at;

    record.at = hf_moment_write(e->wall, &at);
    record.kind = event->kind;
    record.actor = e->id;
    record.agent = text_or_empty(event->agent);
    record.task = text_or_empty(event->task);
    record.host = text_or_empty(event->host);
    record.revision = e->told_rev;
    record.correlation_id = ret->plan.op_id;
    record.why = text_or_empty(event->why);
    if (event->evidence != NULL) {
        evidence.source = text_or_empty(event->source);
        evidence.text = (char *)event->evidence;
        evidence.at = record.at;
        record.evidence = list;
        record.n_evidence = 1;
    }
    if (event->next != NULL) {
        next.what = (char *)event->next;
        if (event->next_at != 0 && event->next_at != HF_ENGINE_NEVER)
            next.at = hf_moment_write(e->wall + (event->next_at - e->now), &next_at);
        record.next = &next;
    }
    e->event_seq++;
    if (e->event_tail == 0)
        e->event_tail = e->event_seq;
    hf_row_event(&ret->plan, e->event_seq, &record);
    trim_ring(e, ret);
}

static const char *name_of(const struct hf_item *item)
{
    return item->object != NULL ? *(const char *const *)item->object : "";
}

/* "agent a1", for logs and transcripts. */
static const char *describe(struct hf_engine *e, const struct hf_item *item)
{
    static const char *const KINDS[] = {
        [HF_ITEM_AGENT] = "agent ", [HF_ITEM_HOST] = "host ",   [HF_ITEM_TASK] = "task ",
        [HF_ITEM_ROLE] = "role ",   [HF_ITEM_META] = "meta",    [HF_ITEM_CLOCK] = "clock",
        [HF_ITEM_STORM] = "storm",  [HF_ITEM_BAD] = "keyspace", [HF_ITEM_TRAIL] = "trail",
    };

    (void)snprintf(e->subject, sizeof e->subject, "%s%s", KINDS[item->kind], name_of(item));
    return e->subject;
}

int hf_draft_end(struct hf_engine *e, struct hf_intent *ret, struct hf_item *item,
                 struct hf_item *other, const char *why)
{
    struct hf_error err = { "" };
    int rc = hf_plan_check(&ret->plan, &err);

    if (rc == HF_OK) {
        ret->subject = describe(e, item);
        ret->why = why;
        hf_flight_begin(e, item, other, ret);
        return 1;
    }
    if (e->drafted_tail != 0)
        e->event_tail = e->drafted_tail;
    hf_intent_done(ret);
    if (rc == HF_ENOMEM)
        return HF_ENOMEM;
    /* A record that names what no key can hold, say. Trying again would not help. */
    item->broken = true;
    (void)hf_draft_alert(
        e, ret, item,
        &(struct hf_intent_alert){
            .kind = HOLDFAST__V1__EVENT__KIND__needs_review,
            .agent = item->kind == HF_ITEM_AGENT ? name_of(item) : NULL,
            .task = item->kind == HF_ITEM_TASK ? name_of(item) : NULL,
            .why = hf_draft_why(e, "nothing can be done about it: %s", err.text),
            .next = "its record has to be corrected",
        });
    return 1;
}

int hf_draft_alert(struct hf_engine *e, struct hf_intent *ret, struct hf_item *item,
                   const struct hf_intent_alert *alert)
{
    *ret = (struct hf_intent){ .kind = HF_INTENT_ALERT,
                               .subject = describe(e, item),
                               .why = alert->why,
                               .alert = *alert };
    hf_agenda_add(&e->agenda, &item->agenda);
    return 1;
}

const char *hf_draft_why(struct hf_engine *e, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(e->why, sizeof e->why, fmt, args);
    va_end(args);
    return e->why;
}

const char *hf_draft_evidence(struct hf_engine *e, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(e->evidence, sizeof e->evidence, fmt, args);
    va_end(args);
    return e->evidence;
}
