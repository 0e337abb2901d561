#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "core/moments.h"
#include "core/node_private.h"
#include "core/stall.h"
#include "schema/json.h"

/* A report as it shall stand in etcd; it points into itself and to the agent. */
struct report {
    Holdfast__V1__Report record;
    Holdfast__V1__Report__Progress progress;
    Holdfast__V1__Incarnation incarnation;
    Holdfast__V1__Report__Nudge nudge;
    Holdfast__V1__Report__Delivery delivery;
    Google__Protobuf__Timestamp at, updated, said_at, heartbeat_at, delivered_at, read_at;
};

/* What stands in etcd, if it is of this very life. */
static const Holdfast__V1__Report *find_own(const struct node_agent *a)
{
    const Holdfast__V1__Report *old = (const Holdfast__V1__Report *)a->report.record;

    return old != NULL && old->incarnation != NULL &&
                   old->incarnation->lease_id == a->life.lease &&
                   old->incarnation->create_revision == a->life.create_rev
               ? old
               : NULL;
}

void hf_node_note_answer(const struct hf_node *node, struct node_agent *a)
{
    const Holdfast__V1__Health__Inquiry *inquiry = hf_stall_open(
        (const Holdfast__V1__Health *)a->health.record, hf_node_incarnation(&a->life));

    if (inquiry == NULL || strcmp(inquiry->id, a->receipt.id) != 0 ||
        a->receipt.delivered_wall == 0 || a->receipt.read_wall != 0)
        return;
    a->receipt.read_wall = node->wall;
    a->receipt_new = true;
}

void hf_node_note_word(const struct hf_node *node, struct node_agent *a)
{
    a->said_wall = node->wall > a->said_wall ? node->wall : a->said_wall + 1;
    hf_node_note_answer(node, a);
}

/* 0 is no moment. */
static bool is_earlier(hf_ms moment, hf_ms other)
{
    return moment != 0 && (other == 0 || moment < other);
}

/* The first time counts, of each. */
static bool merge_receipt(struct hf_receipt *into, const struct hf_receipt *from)
{
    bool delivered = is_earlier(from->delivered_wall, into->delivered_wall);
    bool read = is_earlier(from->read_wall, into->read_wall);

    if (delivered) {
        into->delivered_wall = from->delivered_wall;
        memcpy(into->by, from->by, sizeof into->by);
    }
    if (read)
        into->read_wall = from->read_wall;
    return delivered || read;
}

void hf_node_take_receipt(struct node_agent *a, const struct hf_receipt *receipt)
{
    if (strcmp(a->receipt.id, receipt->id) == 0) {
        a->receipt_new |= merge_receipt(&a->receipt, receipt);
        return;
    }
    a->receipt = *receipt;
    a->receipt_new = true;
}

static bool is_same_moment(const Google__Protobuf__Timestamp *a,
                           const Google__Protobuf__Timestamp *b)
{
    return (a == NULL) == (b == NULL) &&
           (a == NULL || (a->seconds == b->seconds && a->nanos == b->nanos));
}

/* One with a time is that of a task, which no heartbeat repeats. */
static double said_percent(const Holdfast__V1__Report *report)
{
    return report->progress != NULL && report->progress->updated == NULL
               ? report->progress->percent
               : 0;
}

/* Counters grow by themselves, in whatever thread sends heartbeats: they are no words. */
static bool is_same_word(const Holdfast__V1__Report *a, const Holdfast__V1__Report *b)
{
    return a->status == b->status && a->state == b->state &&
           said_percent(a) == said_percent(b) && strcmp(a->phase, b->phase) == 0 &&
           strcmp(a->reason, b->reason) == 0 && strcmp(a->last_tool, b->last_tool) == 0 &&
           strcmp(a->task, b->task) == 0 && is_same_moment(a->until, b->until);
}

/* What an earlier link wrote of this very life holds where nothing was said since. */
static void take_back_words(struct node_agent *a)
{
    const Holdfast__V1__Report *old = find_own(a);

    if (!a->blind || old == NULL)
        return;
    if (a->said_wall == 0)
        a->said_wall = hf_moment_read(old->said_at);
    if (a->beat_wall == 0)
        a->beat_wall = hf_moment_read(old->heartbeat_at);
}

void hf_node_take_report(const struct hf_node *node, struct node_agent *a, struct node_ask *ask)
{
    const Holdfast__V1__Report *said = (const Holdfast__V1__Report *)a->said;

    take_back_words(a);
    if (said == NULL && a->blind)
        said = find_own(a);
    if (ask->beats)
        a->beat_wall = node->wall;
    if (ask->speaks || said == NULL ||
        !is_same_word(said, (const Holdfast__V1__Report *)ask->message))
        hf_node_note_word(node, a);
    if (((const Holdfast__V1__Report *)ask->message)->progress != NULL)
        a->progress_newest = false;
    hf_json_free(a->said);
    a->said = ask->message;
    a->said_new = true;
    ask->message = NULL;
}

const Holdfast__V1__Health__Inquiry *hf_node_find_inquiry(const struct node_agent *a)
{
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)a->health.record;
    const Holdfast__V1__Health__Inquiry *inquiry =
        a->reg == REG_HOLDS ? hf_stall_open(health, hf_node_incarnation(&a->life)) : NULL;

    return inquiry != NULL && a->said_wall != 0 && hf_stall_is_answer(inquiry, a->said_wall)
               ? NULL
               : inquiry;
}

/* And what it wrote of an inquiry, unless there is another one by now. */
static void take_back_receipt(struct node_agent *a)
{
    const Holdfast__V1__Report *old = find_own(a);
    struct hf_receipt kept = { .id = "" };

    if (!a->blind || old == NULL || old->nudge == NULL)
        return;
    (void)snprintf(kept.id, sizeof kept.id, "%s", old->nudge->id);
    if (old->nudge->delivered != NULL) {
        (void)snprintf(kept.by, sizeof kept.by, "%s", old->nudge->delivered->by);
        kept.delivered_wall = hf_moment_read(old->nudge->delivered->at);
    }
    kept.read_wall = hf_moment_read(old->nudge->read_at);
    if (a->receipt.id[0] == '\0')
        a->receipt = kept;
    else if (strcmp(a->receipt.id, kept.id) == 0)
        (void)merge_receipt(&a->receipt, &kept);
    /* A word may come before a new link knows what its agent was asked. */
    if (a->receipt.delivered_wall != 0 && a->receipt.read_wall == 0 &&
        a->said_wall > a->receipt.delivered_wall)
        a->receipt.read_wall = a->said_wall;
}

/* So does what it wrote of its progress. */
static void take_back_progress(struct node_agent *a)
{
    const Holdfast__V1__Report *old = find_own(a);

    if (!a->blind || a->has_progress || old == NULL || old->progress == NULL ||
        old->progress->updated == NULL)
        return;
    a->has_progress = true;
    a->percent = old->progress->percent;
    a->progress_wall =
        old->progress->updated->seconds * 1000 + old->progress->updated->nanos / 1000000;
    hf_node_keep_text(a->note, old->progress->note);
}

int hf_node_keep_words(struct node_agent *a)
{
    const Holdfast__V1__Report *old = a->blind && a->said == NULL ? find_own(a) : NULL;

    take_back_words(a);
    take_back_progress(a);
    return old != NULL ? hf_json_copy(&old->base, &a->said) : HF_OK;
}

/* Of what it said of its task and what came with a heartbeat, the newer one. */
static void fill_progress(const struct node_agent *a, struct report *ret)
{
    if (!a->has_progress || (ret->record.progress != NULL && !a->progress_newest))
        return;
    holdfast__v1__report__progress__init(&ret->progress);
    ret->progress.percent = a->percent;
    ret->progress.note = (char *)a->note;
    ret->updated = hf_node_timestamp(a->progress_wall);
    ret->progress.updated = &ret->updated;
    ret->record.progress = &ret->progress;
}

static void fill_receipt(const struct hf_receipt *receipt, struct report *ret)
{
    ret->record.nudge = NULL;
    if (receipt->id[0] == '\0')
        return;
    holdfast__v1__report__nudge__init(&ret->nudge);
    ret->nudge.id = (char *)receipt->id;
    ret->nudge.read_at = hf_moment_write(receipt->read_wall, &ret->read_at);
    ret->record.nudge = &ret->nudge;
    if (receipt->delivered_wall == 0)
        return;
    holdfast__v1__report__delivery__init(&ret->delivery);
    ret->delivery.by = (char *)receipt->by;
    ret->delivery.at = hf_moment_write(receipt->delivered_wall, &ret->delivered_at);
    ret->nudge.delivered = &ret->delivery;
}

/* What it said; or, while it has said nothing to this link, what an earlier one wrote. */
static void fill_words(const struct node_agent *a, struct report *ret)
{
    const Holdfast__V1__Report *said = (const Holdfast__V1__Report *)a->said;

    if (said == NULL && a->blind)
        said = find_own(a);
    if (said != NULL)
        ret->record = *said;
    else
        holdfast__v1__report__init(&ret->record);
    ret->record.n_op_ids = 0;
}

/* What a link before this one suspected stands until we know better. */
static const Holdfast__V1__Report__Suspicion *find_suspicion(const struct node_agent *a)
{
    const Holdfast__V1__Report *old = a->blind && !a->cleared ? find_own(a) : NULL;

    if (a->suspicion != NULL || old == NULL)
        return (const Holdfast__V1__Report__Suspicion *)a->suspicion;
    return old->suspicion;
}

static void fill_report(const struct hf_node *node, const struct node_agent *a,
                        struct report *ret)
{
    fill_words(a, ret);
    holdfast__v1__incarnation__init(&ret->incarnation);
    ret->incarnation.lease_id = a->life.lease;
    ret->incarnation.create_revision = a->life.create_rev;
    ret->incarnation.generation = a->life.generation;
    ret->at = hf_node_timestamp(node->wall);
    ret->record.incarnation = &ret->incarnation;
    ret->record.at = &ret->at;
    ret->record.said_at = hf_moment_write(a->said_wall, &ret->said_at);
    ret->record.heartbeat_at = hf_moment_write(a->beat_wall, &ret->heartbeat_at);
    fill_progress(a, ret);
    fill_receipt(&a->receipt, ret);
    ret->record.suspicion = (Holdfast__V1__Report__Suspicion *)find_suspicion(a);
}

/* What a person would want to see, as a text to compare. */
static int show(const struct report *report, char **ret_text)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    Google__Protobuf__Timestamp once = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Holdfast__V1__Report seen = report->record;
    Holdfast__V1__Report__Progress progress;
    Holdfast__V1__Report__Suspicion suspicion;
    int err;

    seen.incarnation = NULL;
    seen.at = NULL;
    seen.said_at = seen.said_at != NULL ? &once : NULL; /* the first is news, others are not */
    seen.heartbeat_at = seen.heartbeat_at != NULL ? &once : NULL;
    seen.n_counters = 0;
    seen.n_op_ids = 0;
    if (seen.progress != NULL) {
        progress = *seen.progress;
        progress.updated = NULL;
        seen.progress = &progress;
    }
    if (seen.suspicion != NULL) {
        suspicion = *seen.suspicion;
        suspicion.since = NULL;
        suspicion.phi = 0; /* it grows by itself, as the rest changes */
        suspicion.why = (char *)"";
        suspicion.n_evidence = 0;
        seen.suspicion = &suspicion;
    }
    err = hf_json_encode(&seen.base, &text);
    return err == HF_OK ? hf_buf_take(&text, ret_text, NULL) : err;
}

static hf_ms report_distance(const struct hf_node *node)
{
    const Holdfast__V1__Meta *meta = (const Holdfast__V1__Meta *)node->meta.record;
    const Google__Protobuf__Duration *rate =
        meta != NULL && meta->rates != NULL ? meta->rates->report : NULL;
    hf_ms published = rate != NULL && rate->seconds >= 0 && rate->seconds < 86400
                          ? rate->seconds * 1000 + rate->nanos / 1000000
                          : 0;

    return published > node->policy.report_every ? published : node->policy.report_every;
}

/* Who was asked something is heard at once when it answers; until then that its heartbeats come
 * is written as often as they are promised, because it is judged by them. */
static hf_ms quiet_distance(const struct hf_node *node, const struct node_agent *a)
{
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)a->health.record;
    hf_ms least = report_distance(node), quiet = node->policy.report_quiet;
    hf_ms beat = node->policy.heartbeat > least ? node->policy.heartbeat : least;

    if (hf_stall_open(health, hf_node_incarnation(&a->life)) == NULL)
        return quiet;
    if (hf_node_find_inquiry(a) == NULL)
        return least;
    return beat < quiet ? beat : quiet;
}

static bool is_cleared(const struct node_agent *a)
{
    const Holdfast__V1__Report *old = a->blind && a->cleared ? find_own(a) : NULL;

    return old != NULL && old->suspicion != NULL && a->suspicion == NULL;
}

/* A verdict is said at once, however often something was said before. */
static bool has_verdict(const struct node_agent *a)
{
    const Holdfast__V1__Report__Suspicion *suspicion =
        (const Holdfast__V1__Report__Suspicion *)a->suspicion;

    return (a->unwell && !a->suspected) ||
           (a->suspicion_new && suspicion != NULL && suspicion->frozen);
}

static bool has_news(const struct node_agent *a)
{
    return a->said_new || a->suspicion_new || a->receipt_new || is_cleared(a);
}

static int write_report(struct hf_node *node, struct node_agent *a, const struct report *report,
                        struct hf_intent *ret)
{
    int rc;

    hf_node_plan(node, ret);
    hf_row_report(&ret->plan, &a->life, &a->report.seen, &report->record);
    rc = hf_node_send(node, a, OP_REPORT, "it has something to say that is worth a look", ret);
    if (rc != NODE_INTENT)
        return rc;
    /* What is said from here on is new again. */
    a->said_new = a->suspicion_new = a->receipt_new = false;
    a->telling = a->unwell;
    return rc;
}

int hf_node_write_report(struct hf_node *node, struct node_agent *a, struct hf_intent *ret)
{
    struct report report;
    char *text = NULL;
    hf_ms due_at;
    bool same;
    int err;

    if (!has_news(a) || a->reg != REG_HOLDS || !a->settled || a->process != PROCESS_BEGUN ||
        !hf_node_lease_holds(node) || !hf_node_is_told(node, a))
        return NODE_GO_ON;
    take_back_words(a);
    take_back_progress(a);
    take_back_receipt(a);
    fill_report(node, a, &report);
    err = show(&report, &text);
    if (err != HF_OK)
        return err;
    same = a->has_reported && a->reported != NULL && strcmp(a->reported, text) == 0;
    due_at = a->reported_at + (same ? quiet_distance(node, a) : report_distance(node));
    if (a->has_reported && node->now < due_at && !has_verdict(a)) {
        free(text);
        hf_node_wake(a, due_at);
        return NODE_GO_ON;
    }
    free(a->reporting);
    a->reporting = text;
    return write_report(node, a, &report, ret);
}

void hf_node_on_reported(struct hf_node *node, struct node_agent *a,
                         const struct hf_event_outcome *outcome)
{
    if (outcome->outcome != HF_OUTCOME_DONE) {
        a->said_new = a->suspicion_new = true;
        return;
    }
    free(a->reported);
    a->reported = a->reporting;
    a->reporting = NULL;
    a->reported_at = node->now;
    a->has_reported = true;
    a->suspected = a->telling && a->unwell;
}
