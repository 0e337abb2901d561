#include "agentd/link/evidence.h"

#include <stdio.h>
#include <stdlib.h>

#include "agentd/link/api.h"
#include "agentd/link/blackbox.h"
#include "agentd/link/link.h"
#include "agentd/link/probe.h"
#include "base/log.h"

enum {
    TICK_MS = 1000,         /* at the latest; ... */
    CALM_MS = 2000,         /* ... where nobody promised anything within a time, then */
    SOON_MS = 20,           /* and not sooner; */
    LATE_MS = 10,           /* who is later than that reads before it judges; */
    GRID_MS = 50,           /* what is due at nearly the same time is done at once */
    WATCH_SILENT_MS = 6500, /* a watch shows every five seconds that it works */
    SUSPECT_MS = 250,       /* who is suspect is looked at so often, ... */
    CLOSE_MS = 60000,       /* ... for so long, */
    PROCESS_MS = 2000,      /* and the process of anybody else */
    LOST_MAX_MS = 30000,    /* what starves for longer has too many threads itself */
    GAP_MAX_MS = 3000,      /* between two looks; after a longer one nobody is judged at once */
    WATCHDOG_MAX_MS = 86400000,
    SLOW_MS = 600000, /* who says that it is busy has more time for so long */
    MOST_BOXES = 4,   /* that are filled in one turn: the lease waits behind them */
};

static hf_ms now_of(const struct link_process *process)
{
    return link_now(process->agent->link);
}

/* As its launcher said when it was started; of one that an older agentd has started, as the
 * launcher says now. NULL: nobody knows any more. */
static const struct link_detect *find_detect(const struct link_process *process)
{
    const Holdfast__V1__Spec *spec = link_process_get_spec(process);
    const struct link_launcher *launcher =
        spec != NULL
            ? link_settings_find_launcher(process->agent->link->settings, spec->launcher)
            : NULL;

    if (process->judged.kept != NULL)
        return &process->judged.detect;
    return launcher != NULL ? &launcher->detect : NULL;
}

hf_ms link_evidence_get_ping(const struct link_process *process)
{
    const struct link_detect *detect = find_detect(process);

    return detect != NULL ? hf_detector_policy_for(detect->profile).ping_every : 0;
}

/* What it has shown a link before this one. */
static void recall(struct link_process *process, hf_ms now)
{
    struct hf_detector *detector = &process->evidence.detector;
    const struct link_judged *judged = &process->judged;
    hf_ms left = judged->announced_wall - hf_clock_wall();

    hf_detector_recall(detector, judged->used, now);
    hf_detector_set_watchdog(detector, judged->watchdog);
    if (judged->announced_wall != 0 && left > 0)
        hf_detector_announce(detector,
                             now + (left < LINK_SAID_MOST_MS ? left : LINK_SAID_MOST_MS), now);
}

/* What is heard before it is looked at first counts as well. */
static struct hf_detector *need_detector(struct link_process *process)
{
    struct link *link = process->agent->link;
    struct link_evidence *evidence = &process->evidence;
    const struct link_detect *detect;

    if (evidence->begun)
        return &evidence->detector;
    detect = find_detect(process);
    evidence->begun = true;
    /* Nobody knows any more how it is to be judged: then it is not ended. */
    evidence->policy = detect != NULL ? link_detect_policy(detect, link->settings->heartbeat)
                                      : hf_detector_policy_for(HF_DETECTOR_DEFAULT);
    evidence->ends = detect != NULL && detect->on_freeze == LINK_ON_FREEZE_END;
    evidence->probes = detect != NULL && detect->has_probe;
    evidence->doubts = process->is_orphan;
    hf_detector_init(&evidence->detector, link_now(link));
    if (process->is_orphan)
        recall(process, link_now(link));
    link_watch_wake(link);
    return &evidence->detector;
}

static void wake(struct link_process *process)
{
    process->evidence.at = 0;
    link_watch_wake(process->agent->link);
}

/* What is heard. */

/* A wrapper sleeps while what it has started computes, is starved, or stopped. Of one that is
 * asked, who answers counts, whoever else beats for it. */
static void note_worker(struct link_process *process, enum hf_source source, pid_t sender)
{
    struct link_worker *worker = &process->evidence.worker;

    if (source != HF_SOURCE_PING && process->evidence.detector.heard[HF_SOURCE_PING].used)
        return;
    if (sender == worker->pid && link_proc_find(sender) == worker->start_time)
        return;
    *worker = (struct link_worker){ 0 };
    if (sender != process->pid && link_proc_is_below(sender, process->pid)) {
        worker->pid = sender;
        worker->start_time = link_proc_find(sender);
    }
}

struct hf_detector_debt link_evidence_on_asked(struct link_process *process)
{
    process->evidence.lost = 0;
    return hf_detector_on_asked(need_detector(process), now_of(process));
}

void link_evidence_on_answered(struct link_process *process, struct hf_detector_debt *debt)
{
    struct hf_detector *detector = need_detector(process);

    hf_detector_on_answered(detector, &process->evidence.policy, debt, now_of(process));
}

/* Half an interval is left to whoever is a little late. */
static hf_ms beat_after(const struct link_process *process, hf_ms now)
{
    hf_ms every = process->agent->link->settings->heartbeat;

    return now + every + every / 2;
}

void link_evidence_on_heartbeat(struct link_process *process, pid_t sender)
{
    process->evidence.beat_due = beat_after(process, now_of(process));
    hf_detector_on_beat(need_detector(process), HF_SOURCE_HEARTBEAT, now_of(process));
    note_worker(process, HF_SOURCE_HEARTBEAT, sender);
}

void link_evidence_on_status(struct link_process *process)
{
    bool busy = process->said.status == HOLDFAST__V1__AGENT_STATUS__VALUE__busy;

    hf_detector_slow(need_detector(process), busy ? now_of(process) + SLOW_MS : 0);
}

void link_evidence_on_pong(struct link_process *process, pid_t sender)
{
    struct hf_detector *detector = need_detector(process);

    hf_detector_on_answer(detector, &process->evidence.policy, now_of(process));
    note_worker(process, HF_SOURCE_PING, sender);
    process->evidence.lost = 0;
}

void link_evidence_on_listeners(struct link_process *process)
{
    hf_detector_on_listens(need_detector(process), process->listeners != NULL, now_of(process));
    wake(process);
}

/* What the next link has to know of it. */
static void remember(struct link_process *process, hf_ms now)
{
    const struct hf_detector *detector = &process->evidence.detector;
    struct link_judged *judged = &process->judged;
    uint8_t used = hf_detector_get_used(detector);
    int state = process->said.state != HOLDFAST__V1__AGENT_STATE__VALUE__unknown
                    ? (int)process->said.state
                    : judged->state;
    hf_ms announced =
        detector->announced_until != 0 ? detector->announced_until - now + hf_clock_wall() : 0;

    if (used == judged->used && detector->watchdog == judged->watchdog &&
        state == judged->state && llabs(announced - judged->announced_wall) < TICK_MS)
        return;
    judged->used = used;
    judged->state = state;
    judged->watchdog = detector->watchdog;
    judged->announced_wall = announced;
    (void)link_remember(process); /* without it, it is judged by less */
}

/* From the wall clock, on which the agent says it, to ours, once. It is told that it was heard:
 * from then on every link knows it. */
void link_evidence_on_state(struct link_process *process)
{
    hf_ms length = link_said_settle(&process->said, hf_clock_wall());

    hf_detector_announce(need_detector(process), length > 0 ? now_of(process) + length : 0,
                         now_of(process));
    remember(process, now_of(process));
    wake(process);
}

/* Who asks for time is busy meanwhile, and shows so. */
static void extend(struct link_process *process, hf_ms length, hf_ms now)
{
    if (now + length <= process->evidence.detector.announced_until)
        return;
    link_said_extend(&process->said, hf_clock_wall() + length);
    link_evidence_on_state(process);
}

void link_evidence_on_notice(struct link_process *process, pid_t sender)
{
    struct hf_detector *detector = need_detector(process);
    struct link_said *said = &process->said;
    hf_ms now = now_of(process);

    hf_detector_on_activity(detector, now);
    process->evidence.lost = 0;
    if (said->feeds) {
        hf_detector_on_beat(detector, HF_SOURCE_WATCHDOG, now);
        note_worker(process, HF_SOURCE_WATCHDOG, sender);
    }
    if (said->watchdog_ms != 0)
        hf_detector_set_watchdog(detector, said->watchdog_ms < LINK_DETECT_WATCHDOG_MIN_MS
                                               ? LINK_DETECT_WATCHDOG_MIN_MS
                                           : said->watchdog_ms > WATCHDOG_MAX_MS
                                               ? WATCHDOG_MAX_MS
                                               : said->watchdog_ms);
    if (said->turns) /* READY or STOPPING */
        link_evidence_on_state(process);
    if (said->feeds && now >= detector->announced_until)
        link_said_end_extension(said);
    if (said->extend_ms != 0)
        extend(process,
               said->extend_ms < LINK_SAID_MOST_MS ? said->extend_ms : LINK_SAID_MOST_MS, now);
    if (said->gives_up) {
        hf_detector_give_up(detector, now);
        wake(process);
    }
    said->feeds = said->turns = said->gives_up = false;
    said->watchdog_ms = said->extend_ms = 0;
}

/* The keeper may know of more than etcd was told: nothing gets shorter. */
void link_evidence_on_recalled(struct link_process *process)
{
    struct hf_detector *detector = need_detector(process);
    hf_ms now = now_of(process);
    hf_ms length = link_said_settle(&process->said, hf_clock_wall());

    if (length > 0 && now + length > detector->announced_until)
        hf_detector_announce(detector, now + length, now);
    link_evidence_on_status(process);
    wake(process);
}

static void on_probed(bool good, const char *why, void *arg)
{
    struct link_process *process = arg;
    struct link_evidence *evidence = &process->evidence;

    if (process->state != AGENTD_STATE_RUNNING || process->frozen_at != 0)
        return; /* it cannot answer, and need not */
    HF_LOG_DEBUG("probed", HF_STR("agent", process->who.agent), HF_BOOL("good", good),
                 HF_STR("why", why));
    if (!good)
        (void)snprintf(evidence->probe_why, sizeof evidence->probe_why, "%s", why);
    if (good && evidence->detector.probed && evidence->detector.probe_failed == 0)
        return; /* as ever */
    hf_detector_on_probe(&evidence->detector, good, now_of(process));
    wake(process);
}

/* Who is asked, and by whom: as the spec has it that the process was made of. */
static int find_target(struct link_process *process, const struct link_detect *detect,
                       struct link_probe_config *cfg)
{
    static const Holdfast__V1__Spec none = HOLDFAST__V1__SPEC__INIT;
    const Holdfast__V1__Spec *spec =
        link_process_get_spec(process) != NULL ? link_process_get_spec(process) : &none;
    struct hf_error err = { "out of memory" };
    int rc = link_detect_find_target(detect, spec, &cfg->target, &err);

    if (rc == HF_OK && cfg->target.kind == LINK_PROBE_EXEC)
        rc = link_launcher_make_probe_env(process->who.agent, spec,
                                          &process->evidence.probe_env);
    cfg->env = process->evidence.probe_env;
    if (rc != HF_OK)
        HF_LOG_WARN("not_probed", HF_STR("agent", process->who.agent), HF_STR("why", err.text));
    return rc;
}

/* Begins when the process runs. */
static void need_probe(struct link_process *process)
{
    struct link *link = process->agent->link;
    const struct link_detect *detect;
    struct link_probe_config cfg = { .fn = on_probed, .arg = process };

    if (process->evidence.probe != NULL || !process->evidence.probes)
        return;
    detect = find_detect(process);
    if (find_target(process, detect, &cfg) != HF_OK) {
        process->evidence.probes = false;
        return;
    }
    cfg.every = detect->probe_every;
    cfg.timeout = detect->probe_timeout;
    cfg.server = process->pid;
    process->evidence.probe = link_probe_new(&link->loop, &cfg);
}

void link_evidence_done(struct link_process *process)
{
    link_probe_close(process->evidence.probe);
    process->evidence.probe = NULL;
    free((void *)process->evidence.probe_env.items);
    process->evidence.probe_env = (struct hf_strings){ 0 };
}

/* What is made of it. */

static void log_verdict(const struct link_process *process, const char *event,
                        const char *source, const char *why)
{
    HF_LOG_WARN(event, HF_STR("agent", process->who.agent), HF_INT("pid", process->pid),
                HF_INT("incarnation", link_process_incarnation(process)),
                HF_STR("source", source), HF_STR("why", why));
}

static void tell_suspicion(struct link_process *process, const struct hf_detector_verdict *v,
                           hf_ms now)
{
    struct link_evidence *evidence = &process->evidence;
    bool frozen = v->state == HF_DETECTOR_FROZEN, ends = frozen && evidence->ends;
    struct link_watch *watch = &process->agent->link->watch;
    struct link_blackbox box;

    if (frozen && watch->boxes++ >= MOST_BOXES)
        return; /* at its next look */
    link_blackbox_fill(process, v, frozen, now, &box);
    if (link_process_tell_suspicion(process, ends ? HF_PROCESS_UNWELL : HF_PROCESS_SUSPECT,
                                    &box.record)) {
        evidence->told = v->state;
        evidence->told_source = v->source;
        log_verdict(process, frozen ? "frozen" : "suspect", box.record.kind, box.why);
    }
    link_blackbox_done(&box);
}

/* What a link before this one suspected is taken back when we know enough of it. */
static void clear_doubts(struct link_process *process, const struct hf_detector_verdict *v,
                         hf_ms now)
{
    struct link_evidence *evidence = &process->evidence;

    if (!evidence->doubts || v->state != HF_DETECTOR_WELL ||
        !hf_detector_is_known(&evidence->detector, &evidence->policy, now))
        return;
    evidence->doubts = !link_process_tell_suspicion(process, HF_PROCESS_CLEARED, NULL);
}

static void tell_verdict(struct link_process *process, const struct hf_detector_verdict *v,
                         hf_ms now)
{
    struct link_evidence *evidence = &process->evidence;

    clear_doubts(process, v, now);
    if (v->state == HF_DETECTOR_WELL && evidence->told != HF_DETECTOR_WELL &&
        link_process_tell_suspicion(process, HF_PROCESS_CLEARED, NULL)) {
        log_verdict(process, "cleared", hf_source_name(evidence->told_source),
                    "it was heard of again");
        evidence->told = HF_DETECTOR_WELL;
    }
    /* What is over at the next look was nothing; and only then is it known whether it computes.
     * Who is to be ended stays frozen unless it is well again in time. */
    if (v->state != HF_DETECTOR_WELL && evidence->seen &&
        !(evidence->told == HF_DETECTOR_FROZEN && evidence->ends) &&
        (v->state != evidence->told || v->source != evidence->told_source))
        tell_suspicion(process, v, now);
    evidence->seen = v->state != HF_DETECTOR_WELL;
}

/* How often a process is looked at: closely while it is about to be judged. */
static hf_ms pace_of(const struct hf_detector *detector, hf_ms now)
{
    return detector->suspect_at != 0 && now - detector->suspect_at < CLOSE_MS ? SUSPECT_MS
                                                                              : PROCESS_MS;
}

static void read_worker(struct link_worker *worker, bool whole, hf_ms now)
{
    if (worker->pid == 0 || link_proc_find(worker->pid) != worker->start_time ||
        !link_proc_read(worker->pid, worker->start_time, whole, now, &worker->proc))
        worker->proc = (struct link_proc){ 0 };
}

/* Who does not go on is the reason; where that is neither of them, or both, the worker. */
static bool is_workers(const struct link_evidence *evidence)
{
    return evidence->worker.proc.at != 0 &&
           (link_proc_shape(&evidence->worker.proc) != HF_PROCESS_GOES ||
            link_proc_shape(&evidence->proc) == HF_PROCESS_GOES);
}

const struct link_proc *link_evidence_get_subject(const struct link_process *process)
{
    const struct link_evidence *evidence = &process->evidence;

    return is_workers(evidence) ? &evidence->worker.proc : &evidence->proc;
}

/* What either of them waited for is not held against the agent. */
static hf_ms find_starved(const struct link_evidence *evidence)
{
    hf_ms first = evidence->proc.starved_ms, worker = evidence->worker.proc.starved_ms;

    return first > worker ? first : worker;
}

/* How its processes stand; and how much of the time was not its own. */
static void look_at_process(struct link_process *process, hf_ms now)
{
    struct link_evidence *evidence = &process->evidence;
    struct hf_detector *detector = &evidence->detector;
    bool suspect = detector->suspect_at != 0;
    hf_ms before = evidence->proc.at, waited;

    if (before != 0 && now - before < pace_of(detector, now) - SOON_MS)
        return;
    /* Who answers is looked at only when it does not, or need not. */
    if (!suspect && detector->heard[HF_SOURCE_PING].used &&
        detector->shape == HF_PROCESS_GOES && !hf_detector_is_explained(detector))
        return;
    if (!link_proc_read(process->pid, process->start_time, suspect, now, &evidence->proc))
        return; /* it has ended, and the keeper tells us so */
    read_worker(&evidence->worker, suspect, now);
    hf_detector_on_shape(detector, link_proc_shape(link_evidence_get_subject(process)), now);
    if (!suspect || now - before > GAP_MAX_MS)
        return;
    waited = find_starved(evidence); /* 0 where it is not known */
    if (waited > 0 && evidence->lost + waited <= LOST_MAX_MS) {
        evidence->lost += waited;
        hf_detector_on_lost(detector, waited, now);
    }
}

/* Of who has begun to send them, and has not said that it will be silent. They are reported
 * when their number has doubled: who never sends another is not written about for ever. */
static void count_missed_beats(struct link_process *process, bool can_judge, hf_ms now)
{
    struct link_evidence *evidence = &process->evidence;
    hf_ms every = process->agent->link->settings->heartbeat;
    int64_t before = process->said.missed;
    struct link_ask *ignored;

    if (evidence->beat_due == 0 || every <= 0)
        return;
    if (!can_judge || evidence->detector.announced_until > now) {
        evidence->beat_due = beat_after(process, now);
        return;
    }
    for (; evidence->beat_due <= now; evidence->beat_due += every)
        process->said.missed++;
    if (process->said.missed > before && process->said.missed >= 2 * before)
        (void)!link_ask_report(process, NULL, NULL, &ignored); /* the next one says it, too */
}

static hf_ms look_at(struct link_process *process, const struct hf_tilt_view *us, hf_ms now)
{
    struct link_evidence *evidence = &process->evidence;
    struct hf_detector *detector = need_detector(process);
    struct hf_detector_verdict verdict;
    hf_ms next;

    if (process->state != AGENTD_STATE_RUNNING || process->frozen_at != 0) {
        hf_detector_begin_anew(detector, now); /* it was not its own doing */
        link_evidence_done(process);           /* nor is it asked */
        count_missed_beats(process, false, now);
        return now + TICK_MS;
    }
    need_probe(process);
    count_missed_beats(process, us->can_judge, now);
    remember(process, now);
    look_at_process(process, now);
    verdict = hf_detector_look(detector, &evidence->policy, us, now);
    if (verdict.state != HF_DETECTOR_WELL)
        look_at_process(process, now); /* for whoever reads why */
    if (us->can_judge)                 /* what is not known was not refuted */
        tell_verdict(process, &verdict, now);
    if (verdict.ping_due) {
        link_api_ping(process);
        hf_detector_on_ping(detector, &evidence->policy, now);
    }
    next = verdict.ping_due ? now + evidence->policy.ping_answer : verdict.at;
    return next < now + pace_of(detector, now) ? next : now + pace_of(detector, now);
}

/* It is judged by its process alone, and nothing speaks against that. */
static bool is_calm(const struct link_evidence *evidence)
{
    const struct hf_detector *detector = &evidence->detector;

    return !evidence->probes && !detector->listens && detector->suspect_at == 0 &&
           hf_detector_get_used(detector) == 0;
}

static hf_ms look_at_all(struct link *link, hf_ms now, bool *ret_any)
{
    struct hf_tilt_view us = hf_tilt_get(&link->watch.tilt, now);
    hf_ms next = now + CALM_MS;

    link->watch.calm = true;

    for (struct link_agent *agent = link->agents; agent != NULL; agent = agent->next) {
        for (struct link_process *p = agent->processes; p != NULL; p = p->next) {
            if (!p->begun || p->gone)
                continue;
            *ret_any = true;
            if (now >= p->evidence.at || !us.can_judge)
                p->evidence.at = look_at(p, &us, now);
            next = p->evidence.at < next ? p->evidence.at : next;
            link->watch.calm = link->watch.calm && is_calm(&p->evidence);
        }
    }
    return link->watch.calm || next < now + TICK_MS ? next : now + TICK_MS;
}

/* What is late of ours, as a sentence; NULL: nothing. An attempt to renew begins at a third of
 * the lease and takes a sixth at most. */
static const char *find_late(const struct link *link, hf_ms now)
{
    const struct hf_session_view lease = hf_runner_get_lease(link->runner);
    hf_ms heard_at = hf_runner_get_heard_at(link->runner);

    if (lease.lease != 0 && now - lease.record.counted_at > lease.record.ttl / 2)
        return "the lease was not renewed in time";
    if (heard_at != 0 && now - heard_at > WATCH_SILENT_MS)
        return "what we watch in etcd has gone silent";
    return NULL;
}

/* What keeps our own renewals and our watch waiting may keep the agents waiting, too: a
 * machine, or an etcd, that is overloaded. */
static void look_at_ourselves(struct link *link, hf_ms now)
{
    const char *late = find_late(link, now);

    if (late != NULL)
        hf_tilt_on_late(&link->watch.tilt);
    if (late != NULL && !link->watch.late)
        HF_LOG_DEBUG("late", HF_STR("why", late), HF_STR("next", "every agent has more time"));
    link->watch.late = late != NULL;
}

/* What was not watched so closely before says nothing about us. */
static void tick(struct link *link, hf_ms now)
{
    const struct hf_tilt_policy policy = hf_tilt_policy_default();

    if (link->watch.calm)
        hf_tilt_init(&link->watch.tilt, &policy, now);
    look_at_ourselves(link, now);
    hf_tilt_on_tick(&link->watch.tilt, now);
}

static void on_time(uv_timer_t *timer);

static void set_timer(struct link *link, hf_ms now, hf_ms at)
{
    link->watch.due = at;
    (void)uv_timer_start(&link->watch.timer, on_time, (uint64_t)(at - now), 0);
}

/* The loop runs timers before it reads: after a stall of ours, what came meanwhile is read
 * before anybody is judged by it. */
static bool must_read_first(struct link *link, hf_ms now)
{
    if (link->watch.due == 0 || now - link->watch.due <= LATE_MS)
        return false;
    set_timer(link, now, now + SOON_MS);
    link->watch.due = 0; /* once is enough */
    return true;
}

static void on_time(uv_timer_t *timer)
{
    struct link *link = timer->data;
    hf_ms now, next;
    bool any = false;

    if (link->runner == NULL || link->over) {
        link->watch.runs = false;
        return;
    }
    now = link_now(link);
    if (must_read_first(link, now))
        return;
    tick(link, now);
    link->watch.boxes = 0;
    next = look_at_all(link, now, &any);
    link->watch.runs = any;
    if (!any)
        return;
    next = next - now < SOON_MS ? now + SOON_MS : next;
    next = (next + GRID_MS - 1) / GRID_MS * GRID_MS;
    set_timer(link, now, next);
}

/* Life. */

int link_watch_open(struct link *link)
{
    link->watch.timer.data = link;
    return uv_timer_init(&link->loop, &link->watch.timer) == 0 ? HF_OK : HF_EIO;
}

void link_watch_close(struct link *link)
{
    for (struct link_agent *agent = link->agents; agent != NULL; agent = agent->next) {
        for (struct link_process *p = agent->processes; p != NULL; p = p->next)
            link_evidence_done(p);
    }
    uv_close((uv_handle_t *)&link->watch.timer, NULL);
}

void link_watch_wake(struct link *link)
{
    struct hf_tilt_policy policy = hf_tilt_policy_default();

    if (link->over || (link->watch.runs && uv_timer_get_due_in(&link->watch.timer) <= SOON_MS))
        return;
    if (!link->watch.runs)
        hf_tilt_init(&link->watch.tilt, &policy, link_now(link));
    link->watch.runs = true;
    set_timer(link, link_now(link), link_now(link) + SOON_MS);
}
