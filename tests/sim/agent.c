/* agent.c - what the agents' programs do: ask for work, do it step by step, keep checkpoints,
 * and sometimes die of it. */
#include <stdio.h>
#include <string.h>

#include "sim/cluster.h"

enum {
    CLAIM_MS = 30000,
    ANSWER_MS = 20000,
    AGAIN_MS = 1000,
    STEP_MS = 1000,
    STEPS = 5,
    POLL_MS = 50, /* after a pause of the whole machine the keeper needs a moment, too */
};

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static struct hfs_cluster *cluster_of(const struct hfs_agent *agent)
{
    return agent->host->cluster;
}

static void after(struct hfs_agent *agent, hf_ms length)
{
    struct hfs_world *world = &cluster_of(agent)->world;

    hfs_timer_start(world, &agent->timer, world->now + length);
}

static hf_ms draw_step(struct hfs_agent *agent)
{
    struct hfs_cluster *cluster = cluster_of(agent);
    hf_ms most = cluster->cfg.step_max > 0 ? cluster->cfg.step_max : STEP_MS;

    if (cluster->cfg.step_exact > 0)
        return cluster->cfg.step_exact;
    return 50 + (hf_ms)hfs_random_below(&cluster->dice, (uint64_t)most);
}

/* How long a task is, is its own. */
static unsigned steps_of(struct hfs_cluster *cluster, const char *task)
{
    unsigned sum = 0, most = cluster->cfg.steps_max > 0 ? cluster->cfg.steps_max : STEPS;

    if (cluster->cfg.steps_exact > 0)
        return cluster->cfg.steps_exact;
    for (const char *c = task; *c != '\0'; c++)
        sum = sum * 31 + (unsigned char)*c;
    return 1 + sum % most;
}

/* Checkpoints. */

static struct hfs_body *find_body(struct hfs_cluster *cluster, const char *task,
                                  const char *key)
{
    for (size_t i = 0; i < cluster->body_count; i++) {
        struct hfs_body *body = &cluster->bodies[i];

        if (strcmp(body->task, task) == 0 && strcmp(body->key, key) == 0)
            return body;
    }
    return NULL;
}

int hfs_cluster_verify(struct hfs_cluster *cluster, const Holdfast__V1__Checkpoint *entry)
{
    const struct hfs_body *body = find_body(cluster, entry->task, entry->key);

    return body != NULL ? body->verdict : HF_ENOENT;
}

/* The newest body with that number; a number may be used again when its Txn came to nothing. */
static const struct hfs_body *body_of(struct hfs_cluster *cluster, const char *task,
                                      int64_t seq)
{
    for (size_t i = cluster->body_count; i-- > 0;) {
        const struct hfs_body *body = &cluster->bodies[i];

        if (strcmp(body->task, task) == 0 && body->seq == seq)
            return body;
    }
    return NULL;
}

static struct hfs_body *make_body(struct hfs_agent *agent)
{
    struct hfs_cluster *cluster = cluster_of(agent);
    struct hfs_body *body;

    hfs_grow(&cluster->bodies, &cluster->body_cap, cluster->body_count + 1, sizeof *body);
    body = &cluster->bodies[cluster->body_count++];
    *body = (struct hfs_body){ .step = agent->step, .verdict = HF_OK };
    (void)snprintf(body->task, sizeof body->task, "%s", agent->task);
    (void)snprintf(body->key, sizeof body->key, "%zu", cluster->body_count);
    if (hfs_random_percent(&cluster->dice, cluster->cfg.corrupt_percent))
        body->verdict = HF_ECORRUPT;
    else if (hfs_random_percent(&cluster->dice, cluster->cfg.missing_percent))
        body->verdict = HF_ENOENT;
    body->poison = hfs_random_percent(&cluster->dice, cluster->cfg.poison_percent);
    agent->body = cluster->body_count - 1;
    return body;
}

/* Asking. */

static const char *const ASKS[] = { "who it is",        "to report",  "for a task",
                                    "to submit",        "to start",   "progress",
                                    "to complete",      "to fail",    "to release",
                                    "for a checkpoint", "to restore", "to leave" };

static void ask(struct hfs_agent *agent, enum hf_ask_kind kind, hf_ms wait)
{
    struct hfs_cluster *cluster = cluster_of(agent);
    struct hf_event event = { .kind = HF_EVENT_ASK };
    Holdfast__V1__Checkpoint entry = HOLDFAST__V1__CHECKPOINT__INIT;
    Holdfast__V1__Root root = HOLDFAST__V1__ROOT__INIT;
    Holdfast__V1__Report report = HOLDFAST__V1__REPORT__INIT;
    Holdfast__V1__Report__Progress progress = HOLDFAST__V1__REPORT__PROGRESS__INIT;

    hfs_note(&cluster->world, "  %s asks %s %s", agent->config->name, ASKS[kind], agent->task);
    agent->ask = ++cluster->last_token;
    agent->asked = kind;
    agent->asked_at = cluster->world.now;
    event.ask = (struct hf_event_ask){ .token = agent->ask,
                                       .kind = kind,
                                       .agent = agent->config->name,
                                       .instance_id = agent->instance,
                                       .task = agent->task[0] != '\0' && kind != HF_ASK_CLAIM
                                                   ? agent->task
                                                   : NULL,
                                       .text = "" };
    if (kind == HF_ASK_CLAIM)
        event.ask.until = hfs_process_now(&agent->host->machine) + wait;
    if (kind == HF_ASK_PROGRESS) {
        progress.percent = 100.0 * agent->step / (agent->steps + 1);
        report.progress = &progress;
        event.ask.report = &report;
    }
    if (kind == HF_ASK_REPORT) {
        agent->degraded ^= !agent->beats;
        event.ask.beats = agent->beats;
        report.status = agent->degraded ? HOLDFAST__V1__AGENT_STATUS__VALUE__degraded
                                        : HOLDFAST__V1__AGENT_STATUS__VALUE__unknown;
        event.ask.report = &report;
    }
    if (kind == HF_ASK_CHECKPOINT) {
        const struct hfs_body *body = make_body(agent);

        entry.task = agent->task;
        entry.sha256 =
            (char *)"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        entry.store = (char *)(cluster->cfg.own_files ? "file" : "etcd");
        entry.key = (char *)body->key;
        root.id = root.host = agent->host->name;
        entry.root = cluster->cfg.own_files ? &root : NULL;
        event.ask.checkpoint = &entry;
        if (!cluster->cfg.own_files)
            event.ask.body = hf_bytes_of("what was done");
    }
    if (cluster->ear.on_ask == NULL || !cluster->ear.on_ask(agent, cluster->ear.arg))
        hfs_link_tell(agent->host, &event);
    /* A link that died does not answer. */
    after(agent, wait + ANSWER_MS);
}

static void take_task(struct hfs_agent *agent, const char *task, int64_t checkpoint);

/* One that was taken before and waits for its turn. */
static void take_later(struct hfs_agent *agent)
{
    char task[HFS_TEXT];
    bool restores = agent->later[0].restores;

    memcpy(task, agent->later[0].name, sizeof task);
    agent->later_count--;
    memmove(&agent->later[0], &agent->later[1], agent->later_count * sizeof agent->later[0]);
    if (!restores) {
        take_task(agent, task, 0);
        return;
    }
    memcpy(agent->task, task, sizeof task);
    agent->restoring = true;
    ask(agent, HF_ASK_RESTORE, 0);
}

static void look_for_work(struct hfs_agent *agent)
{
    agent->task[0] = '\0';
    agent->started = agent->restoring = agent->releasing = false;
    agent->step = 0;
    agent->poisoned = false;
    agent->standstill = HFS_MOVES;
    if (agent->later_count > 0) {
        take_later(agent);
        return;
    }
    if (agent->config->kind == HFS_IDLE)
        return; /* idle is normal */
    ask(agent, HF_ASK_CLAIM, CLAIM_MS);
}

static void take_task(struct hfs_agent *agent, const char *task, int64_t checkpoint)
{
    struct hfs_cluster *cluster = cluster_of(agent);
    const struct hfs_body *body = checkpoint > 0 ? body_of(cluster, task, checkpoint) : NULL;

    (void)snprintf(agent->task, sizeof agent->task, "%s", task);
    agent->steps = steps_of(cluster, task);
    agent->step = body != NULL && body->verdict == HF_OK ? body->step : 0;
    agent->poisoned = body != NULL && body->poison;
    agent->started = false;
    agent->restoring = false;
    hfs_check_goes_on(cluster->check, agent->config->name, agent->instance, task, checkpoint);
    if (agent->config->kind != HFS_LAZY)
        ask(agent, HF_ASK_START, 0);
    else
        hfs_timer_stop(&cluster->world, &agent->timer); /* of the claim that was answered */
}

static void die(struct hfs_agent *agent, int32_t status)
{
    hfs_keeper_end(agent,
                   status == 0 ? HOLDFAST__V1__EXIT__KIND__finished
                               : HOLDFAST__V1__EXIT__KIND__crashed,
                   status, 0);
}

/* One step of the task: an effect. True: the program died of it. */
static bool do_step(struct hfs_agent *agent)
{
    struct hfs_cluster *cluster = cluster_of(agent);

    agent->step++;
    cluster->effects++;
    if (cluster->world.now > agent->host->machine.stands_until + POLL_MS)
        hfs_check_effect(cluster->check, agent->config->name, agent->instance, agent->task);
    if (agent->poisoned || (agent->config->kind == HFS_CRASH_STEP && agent->step == 2) ||
        (agent->config->kind == HFS_FLAKY && hfs_random_percent(&cluster->dice, 5))) {
        die(agent, 1);
        return true;
    }
    return false;
}

static bool keeps(struct hfs_cluster *cluster)
{
    if (cluster->cfg.keeps_all || cluster->cfg.keeps_none)
        return cluster->cfg.keeps_all;
    return hfs_random_percent(&cluster->dice, 40);
}

/* Another one beside the one that it has. */
static bool wants_more(const struct hfs_agent *agent)
{
    return (int32_t)agent->later_count + 1 < agent->config->max_tasks &&
           agent->later_count < HFS_TASKS_LATER &&
           hfs_random_percent(&cluster_of(agent)->dice, 25);
}

/* Dice are thrown only where they decide something: other histories stay as they are. */
static void draw_standstill(struct hfs_agent *agent)
{
    struct hfs_cluster *cluster = cluster_of(agent);

    if (cluster->cfg.standstill_percent == 0 || agent->stood || !agent->started ||
        !hfs_random_percent(&cluster->dice, cluster->cfg.standstill_percent))
        return;
    agent->stood = true;
    agent->standstill = HFS_HANGS + (enum hfs_standstill)hfs_random_below(
                                        &cluster->dice, HFS_STANDSTILLS - HFS_HANGS);
}

/* It goes on just when it would be ended, and says so or works first. */
static void nap(struct hfs_agent *agent)
{
    struct hfs_cluster *cluster = cluster_of(agent);
    hf_ms answer = cluster->cfg.inquiry_answer;

    agent->standstill = HFS_MOVES;
    agent->beats = hfs_random_percent(&cluster->dice, 50);
    after(agent, cluster->cfg.progress_max + answer / 2 +
                     (hf_ms)hfs_random_below(&cluster->dice, (uint64_t)answer * 2));
}

/* Who works does so between heartbeats; who stands still does nothing else. */
static bool beats(struct hfs_agent *agent)
{
    const struct hfs_cluster *cluster = cluster_of(agent);
    bool moves = agent->standstill == HFS_MOVES;

    if (cluster->cfg.heartbeat == 0 ||
        (moves &&
         (agent->beats || (agent->beat_at != 0 &&
                           cluster->world.now < agent->beat_at + cluster->cfg.heartbeat))))
        return !moves;
    agent->beat_at = cluster->world.now;
    agent->beats = true;
    ask(agent, HF_ASK_REPORT, 0);
    return true;
}

/* True: it does nothing else in this turn, or ever. */
static bool beats_or_stands(struct hfs_agent *agent)
{
    if (agent->standstill == HFS_NAPS)
        nap(agent);
    else if (agent->standstill != HFS_HANGS)
        return beats(agent);
    return true;
}

static void work(struct hfs_agent *agent)
{
    struct hfs_cluster *cluster = cluster_of(agent);

    draw_standstill(agent);
    if (beats_or_stands(agent))
        return;
    agent->beats = false;
    if (agent->restoring) {
        ask(agent, HF_ASK_RESTORE, 0);
    } else if (!agent->started) {
        ask(agent, HF_ASK_START, 0);
    } else if (agent->config->max_tasks > 1 && wants_more(agent)) {
        ask(agent, HF_ASK_CLAIM, 0);
    } else if (agent->releasing ||
               hfs_random_percent(&cluster->dice, cluster->cfg.release_percent)) {
        agent->releasing = true; /* until somebody has heard of it */
        ask(agent, HF_ASK_RELEASE, 0);
    } else if (hfs_random_percent(&cluster->dice, cluster->cfg.report_percent)) {
        ask(agent, HF_ASK_REPORT, 0);
    } else if (agent->step >= agent->steps) {
        ask(agent, HF_ASK_COMPLETE, 0);
    } else if (!do_step(agent)) {
        if (keeps(cluster))
            ask(agent, HF_ASK_CHECKPOINT, 0);
        else
            after(agent, draw_step(agent));
    }
}

void hfs_agent_on_timer(struct hfs_timer *timer)
{
    struct hfs_agent *agent = OWNER(timer, struct hfs_agent, timer);

    if (agent->frozen) {
        agent->missed = true;
        return;
    }
    if (agent->killed)
        return;
    agent->ask = 0; /* what has not been answered will not be */
    if (agent->leaving || agent->config->kind == HFS_CRASH_START)
        die(agent, agent->leaving ? 0 : 1);
    else if (agent->task[0] == '\0')
        look_for_work(agent);
    else
        work(agent);
}

void hfs_agent_begin(struct hfs_agent *agent, const char *task, int64_t checkpoint)
{
    if (agent->config->kind == HFS_CRASH_START)
        after(agent, 100);
    else if (task != NULL)
        take_task(agent, task, checkpoint);
    else
        after(agent, 10);
}

/* Answers. */

static bool has_task(const struct hfs_agent *agent, const char *task)
{
    for (unsigned i = 0; i < agent->later_count; i++) {
        if (strcmp(agent->later[i].name, task) == 0)
            return true;
    }
    return strcmp(agent->task, task) == 0;
}

static void on_claimed_more(struct hfs_agent *agent, const struct hf_intent_reply *reply)
{
    if (reply->err == HF_OK && reply->task != NULL && !has_task(agent, reply->task->id) &&
        agent->later_count < HFS_TASKS_LATER) {
        unsigned i = agent->later_count++;

        (void)snprintf(agent->later[i].name, HFS_TEXT, "%s", reply->task->id);
        agent->later[i].restores = reply->task->checkpoint != NULL;
    }
    after(agent, draw_step(agent));
}

static void on_claimed(struct hfs_agent *agent, const struct hf_intent_reply *reply)
{
    if (agent->task[0] != '\0') {
        on_claimed_more(agent, reply);
        return;
    }
    if (reply->err != HF_OK || reply->task == NULL) {
        after(agent, AGAIN_MS);
    } else if (reply->task->checkpoint == NULL) {
        take_task(agent, reply->task->id, 0);
    } else {
        (void)snprintf(agent->task, sizeof agent->task, "%s", reply->task->id);
        agent->restoring = true;
        ask(agent, HF_ASK_RESTORE, 0);
    }
}

static void on_completed(struct hfs_agent *agent)
{
    agent->task[0] = '\0';
    agent->leaving = agent->config->kind == HFS_FINISHER;
    after(agent, 10);
}

/* It was asked why it stands still, or goes on standing. */
static void on_beat_heard(struct hfs_agent *agent, const struct hf_intent_reply *reply)
{
    if (agent->standstill == HFS_PONDERS && reply->nudges > 0) {
        agent->standstill = HFS_MOVES;
        ask(agent, HF_ASK_PROGRESS, 0);
    } else {
        after(agent, agent->standstill != HFS_MOVES ? cluster_of(agent)->cfg.heartbeat
                                                    : draw_step(agent));
    }
}

static bool is_about_task(enum hf_ask_kind kind)
{
    return kind == HF_ASK_START || kind == HF_ASK_CHECKPOINT || kind == HF_ASK_RESTORE ||
           kind == HF_ASK_COMPLETE || kind == HF_ASK_RELEASE;
}

/* One that may have several tasks is not told of those that it has: it must not forget one
 * because etcd is full. */
static bool is_passing(const struct hfs_agent *agent, const struct hf_intent_reply *reply)
{
    return reply->err == HF_ENOSPACE && agent->config->max_tasks > 1;
}

void hfs_agent_on_reply(struct hfs_agent *agent, uint64_t token,
                        const struct hf_intent_reply *reply)
{
    struct hfs_cluster *cluster = cluster_of(agent);

    /* One that stands still reads nothing; it asks again when it goes on. */
    if (agent->ask != token || agent->ended || agent->frozen || agent->killed)
        return;
    agent->ask = 0;
    hfs_note(&cluster->world, "  %s is told %s: %s %s", agent->config->name,
             hf_err_name(reply->err), ASKS[agent->asked],
             reply->task != NULL ? reply->task->id : "");
    if (is_about_task(agent->asked) && reply->err != HF_EAGAIN && reply->err != HF_ETIMEOUT)
        hfs_check_heard(cluster->check, agent->instance, agent->asked_at);
    if (agent->asked == HF_ASK_CHECKPOINT && reply->err == HF_OK)
        cluster->bodies[agent->body].seq = reply->seq;
    if (agent->asked == HF_ASK_CLAIM) {
        on_claimed(agent, reply);
    } else if (reply->err == HF_EAGAIN || reply->err == HF_ETIMEOUT ||
               is_passing(agent, reply)) {
        after(agent, AGAIN_MS);
    } else if (reply->err == HF_ECONFLICT ||
               (reply->err != HF_OK && agent->asked != HF_ASK_CHECKPOINT)) {
        agent->task[0] = '\0'; /* it is not ours, or not any more */
        after(agent, AGAIN_MS);
    } else if (agent->asked == HF_ASK_COMPLETE) {
        on_completed(agent);
    } else if (agent->asked == HF_ASK_RELEASE) {
        look_for_work(agent);
    } else if (agent->asked == HF_ASK_REPORT && agent->beats) {
        on_beat_heard(agent, reply);
    } else if (agent->asked == HF_ASK_RESTORE) {
        take_task(agent, reply->task->id, reply->seq);
    } else {
        agent->started |= agent->asked == HF_ASK_START;
        after(agent, draw_step(agent));
    }
}
