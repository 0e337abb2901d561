#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "core/node_private.h"
#include "schema/json.h"

/* A report as it shall stand in etcd; it points into itself and to the agent. */
struct report {
    Holdfast__V1__Report record;
    Holdfast__V1__Report__Progress progress;
    Holdfast__V1__Report__Suspicion suspicion;
    Holdfast__V1__Incarnation incarnation;
    Google__Protobuf__Timestamp at, updated;
};

/* What an earlier link wrote of the progress of this very life is still the newest. */
static void take_back_progress(struct node_agent *a)
{
    const Holdfast__V1__Report *old = (const Holdfast__V1__Report *)a->report.record;

    if (!a->blind || a->has_progress || old == NULL || old->progress == NULL ||
        old->progress->updated == NULL || old->incarnation == NULL ||
        old->incarnation->lease_id != a->life.lease ||
        old->incarnation->create_revision != a->life.create_rev)
        return;
    a->has_progress = true;
    a->percent = old->progress->percent;
    a->progress_wall =
        old->progress->updated->seconds * 1000 + old->progress->updated->nanos / 1000000;
    hf_node_keep_text(a->note, old->progress->note);
}

static void fill_progress(const struct node_agent *a, struct report *ret)
{
    if (!a->has_progress || ret->record.progress != NULL)
        return;
    holdfast__v1__report__progress__init(&ret->progress);
    ret->progress.percent = a->percent;
    ret->progress.note = (char *)a->note;
    ret->updated = hf_node_timestamp(a->progress_wall);
    ret->progress.updated = &ret->updated;
    ret->record.progress = &ret->progress;
}

static void fill_suspicion(const struct node_agent *a, struct report *ret)
{
    if (!a->unwell)
        return;
    holdfast__v1__report__suspicion__init(&ret->suspicion);
    ret->suspicion.kind = (char *)"unresponsive";
    ret->suspicion.since = &ret->at;
    ret->record.suspicion = &ret->suspicion;
    ret->record.reason = (char *)a->end_text;
}

static void fill_report(const struct hf_node *node, const struct node_agent *a,
                        struct report *ret)
{
    if (a->said != NULL)
        ret->record = *(const Holdfast__V1__Report *)a->said;
    else
        holdfast__v1__report__init(&ret->record);
    holdfast__v1__incarnation__init(&ret->incarnation);
    ret->incarnation.lease_id = a->life.lease;
    ret->incarnation.create_revision = a->life.create_rev;
    ret->incarnation.generation = a->life.generation;
    ret->at = hf_node_timestamp(node->wall);
    ret->record.incarnation = &ret->incarnation;
    ret->record.at = &ret->at;
    fill_progress(a, ret);
    fill_suspicion(a, ret);
}

/* What a person would want to see, as a text to compare. */
static int show(const struct report *report, char **ret_text)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    Holdfast__V1__Report seen = report->record;
    Holdfast__V1__Report__Progress progress;
    Holdfast__V1__Report__Suspicion suspicion;
    int err;

    seen.incarnation = NULL;
    seen.at = NULL;
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

static bool has_news(const struct node_agent *a)
{
    return a->said_new || (a->unwell && !a->suspected);
}

static int write_report(struct hf_node *node, struct node_agent *a, const struct report *report,
                        struct hf_intent *ret)
{
    int rc;

    hf_node_plan(node, ret);
    hf_row_report(&ret->plan, &a->life, &a->report.seen, &report->record);
    rc = hf_node_send(node, a, OP_REPORT, "it has something to say that is worth a look", ret);
    if (rc == NODE_INTENT)
        a->said_new = false; /* what is said from here on is new again */
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
    take_back_progress(a);
    fill_report(node, a, &report);
    err = show(&report, &text);
    if (err != HF_OK)
        return err;
    same = a->has_reported && a->reported != NULL && strcmp(a->reported, text) == 0;
    due_at = a->reported_at + (same ? node->policy.report_quiet : report_distance(node));
    if (a->has_reported && node->now < due_at) {
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
        a->said_new = true;
        return;
    }
    free(a->reported);
    a->reported = a->reporting;
    a->reporting = NULL;
    a->reported_at = node->now;
    a->has_reported = true;
    a->suspected = a->unwell;
}
