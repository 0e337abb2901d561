#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/link/api.h"
#include "agentd/link/link.h"
#include "agentd/link/resume.h"
#include "base/alloc.h"
#include "base/id.h"
#include "base/log.h"
#include "schema/json.h"

enum { CODE_NOT_FOUND = 127, CODE_NOT_RUN = 126, CODE_SIGNAL = 128 };

/* A start that failed before there was a process: told when the runner may be fed. */
struct link_later {
    struct link_later *next;
    struct agentd_who who;
    char text[AGENTD_TEXT_BYTES];
};

/* Processes. */

struct link_process *link_process_find(struct link *link, const struct agentd_who *who)
{
    const struct link_agent *agent = link_find_agent(link, who->agent);
    struct link_process *process = agent != NULL ? agent->processes : NULL;

    while (process != NULL && strcmp(process->who.instance, who->instance) != 0)
        process = process->next;
    return process;
}

struct link_process *link_process_add(struct link_agent *agent, const char *instance)
{
    struct link_process *process = hf_calloc(1, sizeof *process);

    if (process == NULL)
        return NULL;
    process->agent = agent;
    (void)snprintf(process->who.agent, sizeof process->who.agent, "%s", agent->name);
    (void)snprintf(process->who.instance, sizeof process->who.instance, "%s", instance);
    process->next = agent->processes;
    agent->processes = process;
    return process;
}

void link_process_free(struct link_process *process)
{
    struct link_process **at = &process->agent->processes;

    while (*at != process)
        at = &(*at)->next;
    *at = process->next;
    link_api_on_ended(process);
    link_evidence_done(process);
    link_nudge_done(process);
    process->freed = true;
    process->holders++;
    link_process_let(process);
}

void link_process_let(struct link_process *process)
{
    if (--process->holders > 0 || !process->freed)
        return;
    link_resume_forget(process);
    link_judged_done(&process->judged);
    if (process->spec != NULL)
        hf_json_free(&process->spec->base);
    free(process);
}

const Holdfast__V1__Spec *link_process_get_spec(const struct link_process *process)
{
    return process->spec != NULL ? process->spec : process->agent->spec;
}

const struct link_user *link_process_get_user(const struct link_process *process,
                                              struct link_user *room)
{
    const struct link_user *user =
        link_settings_find_user(process->agent->link->settings, link_process_get_spec(process));

    if (!process->has_user || (user != NULL && user->uid == process->uid))
        return user;
    if (process->uid == geteuid())
        return NULL;
    /* In which other groups it was is not known any more: it gets nothing by them. */
    *room = (struct link_user){ .uid = process->uid, .gid = process->gid };
    return room;
}

struct link_process *link_process_get_current(const struct link_agent *agent)
{
    struct hf_node_view view;

    if (hf_node_get_view(agent->link->node, agent->name, link_now(agent->link), &view) !=
            HF_OK ||
        view.instance_id == NULL)
        return NULL;
    for (struct link_process *p = agent->processes; p != NULL; p = p->next) {
        if (strcmp(p->who.instance, view.instance_id) == 0)
            return p;
    }
    return NULL;
}

static bool is_same_life(const struct agentd_incarnation *known, const struct hf_life *life)
{
    return known->lease_id == life->lease && known->create_revision == life->create_rev &&
           known->generation == life->generation;
}

/* News for the node. */

/* What the keeper knows about why it ended, where that is more than its status. */
static Holdfast__V1__Exit__Kind kind_of(const struct link *link, const struct agentd_exit *exit)
{
    if ((exit->causes & AGENTD_CAUSE_OOM) != 0)
        return HOLDFAST__V1__EXIT__KIND__oom;
    if ((exit->causes & AGENTD_CAUSE_FENCED) != 0)
        return HOLDFAST__V1__EXIT__KIND__fenced;
    if ((exit->causes & (AGENTD_CAUSE_NOT_MADE | AGENTD_CAUSE_NOT_BEGUN)) != 0)
        return HOLDFAST__V1__EXIT__KIND__start_failed;
    if (link->stopping && (exit->causes & AGENTD_CAUSE_ASKED) != 0)
        return HOLDFAST__V1__EXIT__KIND__terminated;
    if ((exit->causes & (AGENTD_CAUSE_NO_STATUS | AGENTD_CAUSE_ABANDONED)) != 0)
        return HOLDFAST__V1__EXIT__KIND__crashed;
    return HOLDFAST__V1__EXIT__KIND__unknown;
}

static int32_t code_of(const struct agentd_exit *exit)
{
    if ((exit->causes & (AGENTD_CAUSE_NOT_MADE | AGENTD_CAUSE_NOT_BEGUN)) != 0)
        return exit->error == ENOENT ? CODE_NOT_FOUND : CODE_NOT_RUN;
    if ((exit->causes & AGENTD_CAUSE_NO_STATUS) != 0)
        return 1;
    return WIFSIGNALED(exit->wait_status) ? CODE_SIGNAL + WTERMSIG(exit->wait_status)
                                          : WEXITSTATUS(exit->wait_status);
}

static bool feed(struct link *link, struct hf_event *event)
{
    int rc = hf_runner_feed(link->runner, event);

    if (rc == HF_ENOMEM)
        link->dirty = true; /* it is tried again at the next turn */
    return rc == HF_OK;
}

static struct hf_event news_of(const struct link_process *process, enum hf_process_news news)
{
    struct hf_event event = { .kind = HF_EVENT_PROCESS };

    event.process = (struct hf_event_process){ .agent = process->who.agent,
                                               .instance_id = process->who.instance,
                                               .news = news,
                                               .pid = process->pid,
                                               .start_time = (int64_t)process->start_time,
                                               .ping = link_evidence_get_ping(process) };
    return event;
}

static bool tell(struct link_process *process, enum hf_process_news news, const char *text)
{
    struct hf_event event = news_of(process, news);

    event.process.text = text;
    return feed(process->agent->link, &event);
}

bool link_process_tell_suspicion(struct link_process *process, enum hf_process_news news,
                                 const Holdfast__V1__Report__Suspicion *suspicion)
{
    struct hf_event event = news_of(process, news);

    event.process.suspicion = suspicion;
    return feed(process->agent->link, &event);
}

bool link_process_tell_receipt(struct link_process *process, const struct hf_receipt *receipt)
{
    struct hf_event event = news_of(process, HF_PROCESS_NUDGED);

    event.process.receipt = receipt;
    return feed(process->agent->link, &event);
}

void link_process_speaks(struct link_process *process)
{
    if (!process->spoken)
        process->spoken = tell(process, HF_PROCESS_READY, NULL);
}

static bool tell_end(struct link_process *process)
{
    const struct agentd_exit *exit = &process->exit;
    struct hf_event event = { .kind = HF_EVENT_PROCESS };
    bool by_signal = process->code > CODE_SIGNAL && WIFSIGNALED(exit->wait_status);

    event.process =
        (struct hf_event_process){ .agent = process->who.agent,
                                   .instance_id = process->who.instance,
                                   .news = HF_PROCESS_ENDED,
                                   .pid = process->pid,
                                   .start_time = (int64_t)process->start_time,
                                   .kind = kind_of(process->agent->link, exit),
                                   .status = by_signal ? 0 : process->code,
                                   .signal = by_signal ? process->code - CODE_SIGNAL : 0,
                                   .core = by_signal && WCOREDUMP(exit->wait_status),
                                   .text = exit->evidence };
    return feed(process->agent->link, &event);
}

static void tell_news(struct link_process *process)
{
    const struct agentd_exit *exit = &process->exit;
    bool ended = process->gone;

    if (ended && !process->told_held)
        process->told_ended =
            process->told_ended || tell(process, HF_PROCESS_FAILED, exit->evidence);
    else if (ended && !process->told_ended)
        process->told_ended = tell_end(process);
    if (ended)
        return;
    if (!process->told_held && process->state >= AGENTD_STATE_HELD)
        process->told_held = tell(process, HF_PROCESS_HELD, NULL);
    if (!process->told_stuck && process->state == AGENTD_STATE_STUCK)
        process->told_stuck = tell(process, HF_PROCESS_UNKILLABLE, exit->evidence);
    if (!process->told_frozen && process->state == AGENTD_STATE_FROZEN)
        process->told_frozen = tell(process, HF_PROCESS_FROZEN, NULL);
    if (process->told_frozen && process->state == AGENTD_STATE_RUNNING &&
        tell(process, HF_PROCESS_THAWED, NULL))
        process->told_frozen = false;
}

int64_t link_process_incarnation(const struct link_process *process)
{
    return hf_node_incarnation(
        &(struct hf_life){ .create_rev = process->incarnation.create_revision,
                           .generation = (int32_t)process->incarnation.generation });
}

static void log_process(const struct link_process *process, const char *event, const char *why)
{
    HF_LOG_INFO(event, HF_STR("agent", process->who.agent), HF_INT("pid", process->pid),
                HF_INT("incarnation", link_process_incarnation(process)), HF_STR("why", why));
}

static void on_state(struct link_process *process, bool was_gone)
{
    hf_ms now = link_now(process->agent->link);

    if (process->state == AGENTD_STATE_FROZEN && process->frozen_at == 0) {
        process->frozen_at = now;
        log_process(process, "fenced", "it stands still until its registration is proven");
    }
    if (process->state == AGENTD_STATE_RUNNING && process->frozen_at != 0) {
        log_process(process, "thawed", "its registration is proven");
        link_api_on_thawed(process, now - process->frozen_at);
        process->frozen_at = 0;
    }
    if (process->gone && !was_gone) {
        link_api_on_ended(process);
        link_evidence_done(process);
    }
    if (process->state == AGENTD_STATE_ENDED)
        process->agent->link->dirty = true; /* what was told before may be forgotten now */
    if (process->state == AGENTD_STATE_RUNNING)
        link_watch_wake(process->agent->link);
}

void link_process_on_agent(const struct agentd_agent *told, const char *blob, void *arg)
{
    struct link *link = arg;
    struct link_process *process = link_process_find(link, &told->who);
    struct link_agent *agent;
    bool was_gone;

    if (process == NULL) { /* of a link before this one */
        agent = link_need_agent(link, told->who.agent);
        process = agent != NULL ? link_process_add(agent, told->who.instance) : NULL;
        if (process == NULL)
            return; /* it is told again to the next link */
        link_remember_read(process, blob);
        process->incarnation = told->incarnation;
        if (process->born == 0)
            process->born = told->incarnation.create_revision;
        process->told_held = process->is_orphan = true;
        process->told_frozen = told->state == AGENTD_STATE_FROZEN;
    }
    was_gone = process->gone;
    process->state = (enum agentd_state)told->state;
    process->gone = told->gone != 0 || told->state == AGENTD_STATE_ENDED;
    process->pid = told->pid;
    process->start_time = told->start_time;
    process->begun |= told->begun_ns != 0 || told->state == AGENTD_STATE_STARTING ||
                      told->state == AGENTD_STATE_RUNNING;
    process->exit = told->exit;
    if (process->gone)
        process->code = code_of(&told->exit);
    if (link->runner == NULL)
        return; /* not begun yet: it is part of what the node begins with */
    on_state(process, was_gone);
    tell_news(process);
}

/* One that runs is more than one that ran, whose end may have to be written; what was made in
 * good time for its successor can be made again. */
static int rank(const struct link_process *process)
{
    return process->begun ? (process->gone ? 2 : 3) : (process->gone ? 0 : 1);
}

/* What was made for the successor of one that has ended, by a link before this one, whose start
 * may have been registered since. */
static void hand_over_spare(struct link_process *spare, struct hf_node_held *held)
{
    spare->is_spare = true;
    held->spare_id = spare->who.instance;
    held->spare_pid = spare->pid;
    held->spare_start_time = (int64_t)spare->start_time;
}

struct hf_node_held link_process_get_held(const struct link_agent *agent)
{
    struct hf_node_held held = { .started = agent->started,
                                 .spec_written = agent->spec_written };
    struct link_process *best = NULL;

    for (struct link_process *p = agent->processes; p != NULL; p = p->next) {
        if (p->state != AGENTD_STATE_MAKING && !link_process_is_abandoned(p) &&
            (best == NULL || rank(p) > rank(best)))
            best = p;
    }
    if (best == NULL)
        return held;
    for (struct link_process *p = agent->processes; p != NULL && best->gone; p = p->next) {
        if (p != best && p->state == AGENTD_STATE_HELD && !link_process_is_abandoned(p))
            hand_over_spare(p, &held);
    }
    held.ping = link_evidence_get_ping(best);
    held.instance_id = best->who.instance;
    held.pid = best->pid;
    held.start_time = (int64_t)best->start_time;
    held.begun = best->begun;
    held.frozen = best->state == AGENTD_STATE_FROZEN || best->state == AGENTD_STATE_FREEZING;
    held.lease = best->incarnation.lease_id;
    held.create_rev = best->incarnation.create_revision;
    held.generation = (int32_t)best->incarnation.generation;
    held.leaving = best->leaving;
    held.leave_text = best->leave_text;
    return held;
}

/* Making one. */

static void fail_later(struct link *link, const struct hf_intent_process *act, const char *text)
{
    struct link_later *later = hf_calloc(1, sizeof *later), **at = &link->later;

    HF_LOG_WARN("not_started", HF_STR("agent", act->agent), HF_STR("why", text));
    if (later == NULL)
        return; /* the node waits, and a person sees why */
    (void)snprintf(later->who.agent, sizeof later->who.agent, "%s", act->agent);
    (void)snprintf(later->who.instance, sizeof later->who.instance, "%s", act->instance_id);
    (void)snprintf(later->text, sizeof later->text, "%s", text);
    while (*at != NULL)
        at = &(*at)->next;
    *at = later;
    link->dirty = true;
}

void link_process_deliver(struct link *link)
{
    struct link_later *later;

    while ((later = link->later) != NULL) {
        struct hf_event event = { .kind = HF_EVENT_PROCESS,
                                  .process = { .agent = later->who.agent,
                                               .instance_id = later->who.instance,
                                               .news = HF_PROCESS_FAILED,
                                               .text = later->text } };

        if (link->runner != NULL && !feed(link, &event) && link->dirty)
            return;
        link->later = later->next;
        free(later);
    }
}

static void make(struct link *link, const struct hf_intent_process *act)
{
    struct hf_error err = { "out of memory" };

    /* A refusal would speak against this host. The command is withdrawn when the host is gone,
     * or served by the next agentd here. */
    if (!link->stopping && link_process_make(link, act, &err) != HF_OK)
        fail_later(link, act, err.text);
}

/* What the node wants of one that exists. */

static void take_life(struct link_process *process, const struct hf_life *life)
{
    process->incarnation = (struct agentd_incarnation){ .lease_id = life->lease,
                                                        .create_revision = life->create_rev,
                                                        .generation = life->generation };
}

static bool get_life(const struct link_agent *agent, struct hf_life *ret_life)
{
    struct hf_node_view view;

    if (hf_node_get_view(agent->link->node, agent->name, link_now(agent->link), &view) !=
            HF_OK ||
        !view.registered)
        return false;
    *ret_life = view.life;
    return true;
}

static void let_go(struct link_process *process, const struct hf_intent_process *act)
{
    struct link *link = process->agent->link;
    char incarnation[64], task[HF_NAME_SIZE + 16];
    const char *items[2] = { incarnation, task };
    struct hf_strings env = { .items = items, .count = act->task != NULL ? 2 : 1 };
    struct hf_life life;

    if (get_life(process->agent, &life))
        take_life(process, &life);
    process->born = process->incarnation.create_revision;
    (void)snprintf(incarnation, sizeof incarnation, "HOLDFAST_INCARNATION=%lld",
                   (long long)act->incarnation);
    (void)snprintf(task, sizeof task, "HOLDFAST_TASK=%s", act->task != NULL ? act->task : "");
    process->begun = true;
    process->agent->ended = false;
    process->agent->started = true;
    link_resume_grant(process, act->task, act->checkpoint);
    link_channel_release(link->channel, &process->who, &process->incarnation, env);
    link->memo_due = true;
    log_process(process, "joined", act->why);
}

void link_process_act(struct link *link, const struct hf_intent_process *act)
{
    struct agentd_who who = { "", "" };
    struct link_process *process;

    if (act->act == HF_PROCESS_MAKE) {
        make(link, act);
        return;
    }
    (void)snprintf(who.agent, sizeof who.agent, "%s", act->agent);
    (void)snprintf(who.instance, sizeof who.instance, "%s", act->instance_id);
    process = link_process_find(link, &who);
    if (process == NULL || process->gone)
        return;
    switch (act->act) {
    case HF_PROCESS_LET_GO: let_go(process, act); break;
    case HF_PROCESS_DISCARD: link_channel_order(link->channel, AGENTD_DISCARD, &who); break;
    case HF_PROCESS_STOP:
        log_process(process, "stopping", act->why);
        link_api_on_stop(process, act->grace);
        link_channel_end(link->channel, &who, SIGTERM, act->grace);
        break;
    case HF_PROCESS_KILL:
        log_process(process, "killing", act->why);
        link_channel_order(link->channel, AGENTD_KILL, &who);
        break;
    case HF_PROCESS_FREEZE: link_channel_order(link->channel, AGENTD_FREEZE, &who); break;
    case HF_PROCESS_THAW: link_channel_order(link->channel, AGENTD_THAW, &who); break;
    case HF_PROCESS_MAKE: break;
    }
}

/* What the keeper would not do. */
void link_process_on_refused(uint16_t type, const struct agentd_who *who,
                             const struct agentd_reply *reply, void *arg)
{
    struct link *link = arg;
    struct link_process *process = link_process_find(link, who);

    if (process == NULL)
        return;
    if (type == AGENTD_SPAWN) {
        process->exit.causes = AGENTD_CAUSE_NOT_MADE;
        (void)snprintf(process->exit.evidence, sizeof process->exit.evidence, "%s",
                       reply->text);
        process->state = AGENTD_STATE_ENDED;
        process->gone = true;
        process->unknown = true; /* the keeper has nothing to forget */
        tell_news(process);
    } else if (type == AGENTD_RELEASE) {
        /* It never began, and what it was registered for is over: its end says so. */
        link_channel_order(link->channel, AGENTD_DISCARD, who);
    } else if (type == AGENTD_THAW && process->state == AGENTD_STATE_FROZEN) {
        (void)tell(process, HF_PROCESS_FROZEN, NULL); /* still */
    }
}

/* What is settled. */

static void on_end_written(struct link *link, struct link_process *process)
{
    struct link_agent *agent = process->agent;

    if (process->begun) {
        agent->ended = true;
        agent->code = process->code;
        if (link->settings->mode == LINK_RUN)
            link_memo_write(link); /* before the keeper forgets */
        log_process(process, "ended", "its end is written");
    }
    if (!process->unknown)
        link_channel_order(link->channel, AGENTD_FORGET, &process->who);
    link_process_free(process);
}

void link_process_settle(struct link *link, struct link_agent *agent)
{
    struct link_process *next, *current = link_process_get_current(agent);
    struct hf_life life;

    for (struct link_process *p = agent->processes; p != NULL; p = next) {
        next = p->next;
        tell_news(p);
        if (p != current && p->state == AGENTD_STATE_ENDED && (p->told_ended || !p->begun))
            on_end_written(link, p);
        else if (p != current && !p->begun && p->is_orphan && !p->is_spare && !p->discarded) {
            p->discarded = true; /* the link that wanted it is gone */
            link_channel_order(link->channel, AGENTD_DISCARD, &p->who);
        }
    }
    if (current == NULL || !current->begun || current->gone || !get_life(agent, &life) ||
        is_same_life(&current->incarnation, &life))
        return;
    take_life(current, &life);
    (void)link_remember(current); /* the next link finds it in etcd */
    log_process(current, "adopted", "it is registered anew");
}

bool link_process_has_ended(const struct link_agent *agent)
{
    const struct link_process *process = agent->processes;

    while (process != NULL && process->state != AGENTD_STATE_ENDED)
        process = process->next;
    return process != NULL;
}

/* The end of all. */

void link_process_end_all(struct link *link)
{
    for (struct link_agent *agent = link->agents; agent != NULL; agent = agent->next) {
        for (struct link_process *p = agent->processes; p != NULL; p = p->next) {
            if (p->gone)
                continue;
            link_api_on_stop(p, link->settings->stop_grace);
            if (p->begun)
                link_channel_end(link->channel, &p->who, link->stop_signal,
                                 link->settings->stop_grace);
            else
                link_channel_order(link->channel, AGENTD_DISCARD, &p->who);
        }
    }
}

bool link_process_is_abandoned(const struct link_process *process)
{
    return process->state == AGENTD_STATE_ENDED &&
           (process->exit.causes & AGENTD_CAUSE_ABANDONED) != 0;
}

bool link_process_are_all_gone(const struct link *link)
{
    for (const struct link_agent *agent = link->agents; agent != NULL; agent = agent->next) {
        if (agent->processes != NULL)
            return false;
    }
    return true;
}
