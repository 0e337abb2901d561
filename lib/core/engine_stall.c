#include <stdio.h>

#include "core/engine_private.h"
#include "core/stall.h"

#define CADENCE_MAX INT64_C(3600000) /* a record may promise anything */

static const Holdfast__V1__Report *report_of_life(const struct hf_agent *agent)
{
    const Holdfast__V1__Report *report = (const Holdfast__V1__Report *)agent->report.record;

    return report != NULL && report->incarnation != NULL &&
                   report->incarnation->create_revision == agent->live.seen.create_rev
               ? report
               : NULL;
}

static int64_t life_of(const struct hf_engine *e, const struct hf_agent *agent)
{
    return hf_life_number(e->generation, agent->live.seen.create_rev);
}

/* An agentd of an earlier version does not say when its agents spoke, nor does it pass on what
 * they are asked: nothing can be held against them. One that gives receipts does, though the
 * agent may never have spoken. */
static bool can_be_asked(const struct hf_agent *agent)
{
    const Holdfast__V1__Report *report = report_of_life(agent);

    return report == NULL || report->said_at != NULL || report->nudge != NULL;
}

static bool works_on(const struct hf_agent *agent, const struct hf_task *task)
{
    const Holdfast__V1__Task *record = task != NULL ? hf_task_record(task) : NULL;

    return record != NULL && task->owner == agent &&
           record->state == HOLDFAST__V1__TASK__STATE__in_progress &&
           hf_rows_owner_rev(&(struct hf_seen_task){
               .seen = task->task.seen, .task = record }) == agent->live.seen.create_rev;
}

/* It waits for somebody else, who knows how long that takes; it does not. */
static bool waits_for_others(const Holdfast__V1__Report *report)
{
    return report->state == HOLDFAST__V1__AGENT_STATE__VALUE__waiting ||
           report->state == HOLDFAST__V1__AGENT_STATE__VALUE__parked ||
           report->state == HOLDFAST__V1__AGENT_STATE__VALUE__draining;
}

/* Until when, on our own clock. That it is busy, and for how long it does not know, is no
 * explanation: that it has a task says as much. Nor is what nobody here understands. */
static hf_ms explained_until(const struct hf_engine *e, const struct hf_agent *agent)
{
    const Holdfast__V1__Report *report = report_of_life(agent);

    if (report == NULL || report->state == HOLDFAST__V1__AGENT_STATE__VALUE__unknown ||
        report->state == HOLDFAST__V1__AGENT_STATE__VALUE__ready)
        return 0;
    if (report->until != NULL)
        return hf_clusterclock_local(&e->clock, hf_moment_read(report->until), e->now);
    return waits_for_others(report) ? HF_STALL_NEVER : 0;
}

/* While an inquiry is open, its agentd writes that heartbeats come as often as they are
 * promised, or as all agents may report. */
static hf_ms cadence_of(const struct hf_engine *e, const struct hf_agent *agent)
{
    const Holdfast__V1__Live *live = hf_agent_live(agent);
    const Google__Protobuf__Duration *promised =
        live->cadences != NULL ? live->cadences->heartbeat : NULL;
    hf_ms every =
        promised != NULL && promised->seconds >= 0 && promised->seconds < CADENCE_MAX / 1000
            ? promised->seconds * 1000 + promised->nanos / 1000000
            : CADENCE_MAX;

    return every + hf_engine_report_interval(e);
}

static struct hf_stall_view judge_task(const struct hf_engine *e, const struct hf_agent *agent,
                                       const struct hf_task *task)
{
    const Holdfast__V1__Task *record = hf_task_record(task);
    struct hf_stall_case facts = { .moved = hf_agent_state(agent)->spoke_at,
                                   .explained = explained_until(e, agent) };

    facts.expected = record->expected_completion != NULL
                         ? hf_clusterclock_local(
                               &e->clock, hf_moment_read(record->expected_completion), e->now)
                         : HF_STALL_NEVER;
    return hf_stall_judge(&e->policy.stall, &facts, e->now);
}

static bool is_answered(const struct hf_engine *e, const struct hf_agent *agent,
                        const Holdfast__V1__Health__Inquiry *inquiry)
{
    const Holdfast__V1__Report *report = report_of_life(agent);
    const struct hf_task *task = hf_fleet_get_task(e->fleet, inquiry->task);

    return !can_be_asked(agent) || !works_on(agent, task) ||
           task->task.seen.mod_rev != inquiry->task_revision ||
           hf_stall_is_answer(inquiry, report != NULL ? hf_moment_read(report->said_at) : 0);
}

static struct hf_stall_view judge_asked(const struct hf_engine *e, const struct hf_agent *agent,
                                        const Holdfast__V1__Health__Inquiry *inquiry)
{
    const struct hf_agent_state *state = hf_agent_state(agent);
    const Holdfast__V1__Report *report = report_of_life(agent);
    bool hears = state->heard_at > e->hears_since;
    struct hf_stall_case facts = {
        .asked = true,
        .answered = is_answered(e, agent, inquiry),
        .told = inquiry->told,
        .answer_by =
            hf_clusterclock_local(&e->clock, hf_moment_read(inquiry->answer_by), e->now),
        .beats = report != NULL && report->heartbeat_at != NULL,
        .hears = hears,
        .heard = hears ? state->heard_at : e->hears_since,
        .cadence = cadence_of(e, agent),
    };

    return hf_stall_judge(&e->policy.stall, &facts, e->now);
}

/* Nobody is judged by who has just stood still itself; and what an agent announced may end
 * sooner than it said, which nobody is woken for. */
static void look_again(struct hf_engine *e, const struct hf_agent *agent, hf_ms at)
{
    struct hf_tilt_view tilt = hf_tilt_get(&e->tilt, e->now);
    hf_ms most = e->now + e->policy.stall.progress_max;

    if (at <= e->now)
        at = tilt.can_judge ? e->now : tilt.at;
    hf_engine_wake(e, &hf_agent_state(agent)->item, at < most ? at : most);
}

void hf_engine_watch_stall(struct hf_engine *e, const struct hf_task *task)
{
    const struct hf_agent *agent = task->owner;

    if (hf_task_record(task)->expected_completion != NULL && works_on(agent, task) &&
        hf_stall_open(hf_agent_health(agent), life_of(e, agent)) == NULL)
        look_again(e, agent, judge_task(e, agent, task).at);
}

/* Of those that it works on, the one that is first to be asked about; NULL: none ever is. */
static const struct hf_task *find_task(const struct hf_engine *e, const struct hf_agent *agent,
                                       struct hf_stall_view *ret_view)
{
    const struct hf_task *found = NULL;

    for (const struct hf_task *task = agent->tasks; task != NULL; task = task->next_owned) {
        struct hf_stall_view view;

        if (!works_on(agent, task) || hf_task_record(task)->expected_completion == NULL)
            continue;
        view = judge_task(e, agent, task);
        if (found != NULL && view.at >= ret_view->at)
            continue;
        found = task;
        *ret_view = view;
    }
    return found;
}

/* The record, with an inquiry that replaces what stood there. */
struct draft {
    struct hf_health_draft health;
    Holdfast__V1__Health__Inquiry inquiry;
    Google__Protobuf__Timestamp asked_at, answer_by, said_at;
    char id[HF_ID_LEN + 1];
    char text[2 * HF_NAME_SIZE];
};

static void set_evidence(const struct hf_engine *e, struct hf_health_draft *draft,
                         const char *text)
{
    holdfast__v1__evidence__init(&draft->evidence);
    draft->evidence.source = (char *)"report";
    draft->evidence.text = (char *)text;
    draft->evidence.at = hf_moment_write(hf_engine_clock(e), &draft->evidence_at);
    draft->evidence_list[0] = &draft->evidence;
    draft->record.evidence = draft->evidence_list;
    draft->record.n_evidence = 1;
}

static void fill_inquiry(struct hf_engine *e, const struct hf_agent *agent,
                         const struct hf_task *task, struct draft *ret)
{
    const Holdfast__V1__Report *report = report_of_life(agent);
    hf_ms now = hf_engine_clock(e);

    holdfast__v1__health__inquiry__init(&ret->inquiry);
    hf_draft_id(e, ret->id);
    (void)snprintf(ret->text, sizeof ret->text,
                   "task %s should be done by now and does not move: report progress, announce "
                   "why it has to wait, or fail it",
                   task->name);
    ret->inquiry.id = ret->id;
    ret->inquiry.incarnation = life_of(e, agent);
    ret->inquiry.task = (char *)task->name;
    ret->inquiry.text = ret->text;
    ret->inquiry.asked_at = hf_moment_write(now, &ret->asked_at);
    ret->inquiry.answer_by =
        hf_moment_write(now + e->policy.stall.inquiry_answer, &ret->answer_by);
    ret->inquiry.said_at =
        hf_moment_write(report != NULL ? hf_moment_read(report->said_at) : 0, &ret->said_at);
    ret->inquiry.task_revision = task->task.seen.mod_rev;
}

static int ask(struct hf_engine *e, struct hf_agent *agent, const struct hf_task *task,
               const struct hf_stall_view *view, struct hf_intent *ret)
{
    hf_ms quiet = e->now - hf_agent_state(agent)->spoke_at;
    struct draft draft;

    hf_health_begin(e, agent, &draft.health);
    fill_inquiry(e, agent, task, &draft);
    draft.health.record.inquiry = &draft.inquiry;
    hf_health_set(&draft.health, HOLDFAST__V1__HEALTH__STATE__stuck,
                  hf_draft_why(e, "%s (task %s)", view->why, task->name), view->next,
                  hf_engine_clock(e) + e->policy.stall.inquiry_answer);
    set_evidence(e, &draft.health,
                 hf_draft_evidence(e,
                                   "nothing was said or done for %lld s at least; the task was "
                                   "expected to be done before",
                                   (long long)(quiet / 1000)));
    return hf_health_write(e, agent, &draft.health, NULL, HOLDFAST__V1__EVENT__KIND__stalled,
                           ret);
}

/* Likewise of the one that stands there: what of it changes. */
static void begin(struct hf_engine *e, const struct hf_agent *agent, struct draft *ret)
{
    hf_health_begin(e, agent, &ret->health);
    ret->inquiry = *ret->health.record.inquiry;
    ret->health.record.inquiry = &ret->inquiry;
}

static int close(struct hf_engine *e, struct hf_agent *agent, const struct hf_stall_view *view,
                 struct hf_intent *ret)
{
    struct draft draft;

    begin(e, agent, &draft);
    draft.inquiry.answered = true;
    hf_health_set(&draft.health,
                  hf_engine_is_degraded(agent) ? HOLDFAST__V1__HEALTH__STATE__degraded
                                               : HOLDFAST__V1__HEALTH__STATE__healthy,
                  hf_draft_why(e, "%s (task %s)", view->why, draft.inquiry.task), NULL, 0);
    return hf_health_write(e, agent, &draft.health, NULL, HOLDFAST__V1__EVENT__KIND__answered,
                           ret);
}

/* First the person, then the record that says so: who is told twice is told, too. */
static int tell(struct hf_engine *e, struct hf_agent *agent, const struct hf_stall_view *view,
                struct hf_intent *ret)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    struct draft draft;

    begin(e, agent, &draft);
    if ((state->alerts & HF_ALERT_STALLED) == 0) {
        state->alerts |= HF_ALERT_STALLED;
        return hf_draft_alert(
            e, ret, &state->item,
            &(struct hf_intent_alert){ .kind = HOLDFAST__V1__EVENT__KIND__stalled,
                                       .agent = agent->name,
                                       .host = agent->host != NULL ? agent->host->name : NULL,
                                       .task = draft.inquiry.task,
                                       .why = view->why,
                                       .next = view->next });
    }
    draft.inquiry.told = true;
    hf_health_set(&draft.health, HOLDFAST__V1__HEALTH__STATE__stuck,
                  hf_draft_why(e, "%s (task %s)", view->why, draft.inquiry.task), view->next,
                  0);
    return hf_health_write(e, agent, &draft.health, NULL, HOLDFAST__V1__EVENT__KIND__stalled,
                           ret);
}

static int end(struct hf_engine *e, struct hf_agent *agent, const struct hf_stall_view *view,
               struct hf_intent *ret)
{
    struct hf_agent_state *state = hf_agent_state(agent);
    hf_ms heard = state->heard_at > e->hears_since ? state->heard_at : e->hears_since;
    const struct hf_task *task;
    struct draft draft;

    begin(e, agent, &draft);
    task = hf_fleet_get_task(e->fleet, draft.inquiry.task);
    draft.health.record.end_upto = life_of(e, agent);
    hf_health_set(&draft.health, HOLDFAST__V1__HEALTH__STATE__failing,
                  hf_draft_why(e, "%s (task %s)", view->why, task->name), view->next, 0);
    set_evidence(e, &draft.health,
                 hf_draft_evidence(e, "no report came for %lld s",
                                   (long long)((e->now - heard) / 1000)));
    hf_draft_begin(e, ret);
    hf_health_guard(agent, &ret->plan);
    hf_row_end_stalled(&ret->plan, &e->term,
                       &(struct hf_stalled){
                           .agent = agent->name,
                           .health = agent->health.seen,
                           .next = &draft.health.record,
                           .report = hf_lean_cell_seen(&agent->report),
                           .task = { .seen = task->task.seen, .task = hf_task_record(task) } });
    hf_health_tell(e, agent, &draft.health, HOLDFAST__V1__EVENT__KIND__stalled, ret);
    return hf_draft_end(e, ret, &state->item, NULL, draft.health.record.why);
}

static int judge_open(struct hf_engine *e, struct hf_agent *agent,
                      const Holdfast__V1__Health__Inquiry *inquiry, struct hf_intent *ret)
{
    struct hf_stall_view view = judge_asked(e, agent, inquiry);

    if (view.due == HF_STALL_ANSWERED)
        return close(e, agent, &view, ret);
    if (view.at > e->now || !hf_tilt_can_judge(&e->tilt, e->now)) {
        look_again(e, agent, view.at);
        return 0;
    }
    return view.due == HF_STALL_END ? end(e, agent, &view, ret) : tell(e, agent, &view, ret);
}

int hf_engine_judge_stall(struct hf_engine *e, struct hf_agent *agent, struct hf_intent *ret)
{
    const Holdfast__V1__Health__Inquiry *inquiry =
        hf_stall_open(hf_agent_health(agent), life_of(e, agent));
    struct hf_stall_view view;
    const struct hf_task *task;

    if (inquiry != NULL)
        return judge_open(e, agent, inquiry, ret);
    hf_agent_state(agent)->alerts &= (uint8_t)~HF_ALERT_STALLED;
    task = find_task(e, agent, &view);
    if (task == NULL)
        return 0;
    if (!can_be_asked(agent))
        view.at = HF_STALL_NEVER;
    else if (view.due == HF_STALL_ASK && hf_tilt_can_judge(&e->tilt, e->now))
        return ask(e, agent, task, &view, ret);
    look_again(e, agent, view.at);
    return 0;
}

bool hf_engine_is_asked(const struct hf_engine *e, const struct hf_agent *agent)
{
    return hf_stall_open(hf_agent_health(agent), life_of(e, agent)) != NULL;
}
