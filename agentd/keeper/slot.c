#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

/* How long we wait, at most, for what cannot be waited for with a descriptor. */
#define LOOK_AGAIN   (2 * KEEPER_MS)
#define LOOK_STILL   KEEPER_SECOND      /* is somebody else continuing what we stopped? */
#define OUTPUT_GRACE (100 * KEEPER_MS)  /* for the last output of a tree that is gone */
#define FREEZE_LIMIT (1000 * KEEPER_MS) /* then the fence kills what it cannot stop */
#define FREEZE_LOOKS 5                  /* ... and has found to resist so often */

struct keeper_slot *keeper_slot_new(struct keeper *k, const struct agentd_who *who)
{
    struct keeper_slot *s = calloc(1, sizeof *s);

    if (s == NULL)
        return NULL;
    if (k->slot_count == k->slot_cap) {
        size_t cap = k->slot_cap == 0 ? 16 : k->slot_cap * 2;
        struct keeper_slot **slots = reallocarray(k->slots, cap, sizeof(void *));

        if (slots == NULL) {
            free(s);
            return NULL;
        }
        k->slots = slots;
        k->slot_cap = cap;
    }
    s->a.head = (struct agentd_head){ .type = AGENTD_AGENT };
    s->a.who = *who;
    keeper_copy(s->a.boot_id, sizeof s->a.boot_id, k->boot_id);
    s->kill_at = s->look_at = KEEPER_NEVER;
    s->oom_before = -1;
    s->pidfd = s->gate_fd = s->exec_fd = s->tell_fd = s->cgroup_fd = s->shim_fd = -1;
    s->log_fds[0] = s->log_fds[1] = -1;
    s->key = ++k->last_key;
    k->slots[k->slot_count++] = s;
    return s;
}

static void close_all(struct keeper_slot *s)
{
    keeper_close(&s->pidfd);
    keeper_close(&s->gate_fd);
    keeper_close(&s->exec_fd);
    keeper_close(&s->tell_fd);
    keeper_close(&s->shim_fd);
    keeper_close(&s->log_fds[0]);
    keeper_close(&s->log_fds[1]);
    s->log_open = s->log_due = false;
}

void keeper_slot_free(struct keeper *k, struct keeper_slot *s)
{
    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i] != s)
            continue;
        memmove(&k->slots[i], &k->slots[i + 1], (k->slot_count - i - 1) * sizeof(void *));
        k->slot_count--;
        break;
    }
    if (s->gone_ns > k->forgotten_gone_ns)
        k->forgotten_gone_ns = s->gone_ns;
    keeper_cgroup_remove(k, s);
    close_all(s);
    free(s->stopped);
    free(s->blob);
    free(s);
}

struct keeper_slot *keeper_slot_find(struct keeper *k, const struct agentd_who *who)
{
    for (size_t i = 0; i < k->slot_count; i++) {
        struct keeper_slot *s = k->slots[i];

        if (!s->forgotten && strcmp(s->a.who.instance, who->instance) == 0 &&
            strcmp(s->a.who.agent, who->agent) == 0)
            return s;
    }
    return NULL;
}

struct keeper_slot *keeper_slot_by_key(struct keeper *k, uint32_t key)
{
    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i]->key == key)
            return k->slots[i];
    }
    return NULL;
}

void keeper_slot_changed(struct keeper_slot *s, enum agentd_state state)
{
    s->a.state = state;
    s->dirty = true;
    s->unrecorded = true;
}

void keeper_slot_freeze(struct keeper *k, struct keeper_slot *s)
{
    (void)k;
    s->goal = GOAL_STILL;
    s->freeze_since = keeper_now();
    s->freeze_looks = 0;
    s->look_at = 0;
    keeper_slot_changed(s, AGENTD_STATE_FREEZING);
}

void keeper_slot_thaw(struct keeper *k, struct keeper_slot *s)
{
    (void)k;
    s->goal = GOAL_RUN;
    s->look_at = 0;
    keeper_slot_changed(s, AGENTD_STATE_THAWING);
}

void keeper_slot_kill(struct keeper *k, struct keeper_slot *s, uint32_t cause)
{
    (void)k;
    if (!s->main_gone)
        s->a.exit.causes |= cause;
    s->kill_at = KEEPER_NEVER;
    s->goal = GOAL_GONE;
    s->look_at = 0;
    if (s->a.state != AGENTD_STATE_STUCK)
        keeper_slot_changed(s, AGENTD_STATE_ENDING);
}

/* Asking is for what runs: who stands still could not answer. */
void keeper_slot_end(struct keeper *k, struct keeper_slot *s, int signal, int64_t grace_ns)
{
    if (s->goal != GOAL_RUN || !s->released || s->pidfd < 0 || grace_ns == 0) {
        keeper_slot_kill(k, s, AGENTD_CAUSE_ASKED);
        return;
    }
    int64_t kill_at = keeper_now() + grace_ns;
    if (s->kill_at == KEEPER_NEVER)
        s->kill_latest = kill_at + AGENTD_EXTEND_MAX * KEEPER_MS;
    if (kill_at < s->kill_at)
        s->kill_at = kill_at;
    if (!s->main_gone)
        s->a.exit.causes |= AGENTD_CAUSE_ASKED;
    (void)syscall(SYS_pidfd_send_signal, s->pidfd, signal, NULL, 0);
    keeper_slot_changed(s, AGENTD_STATE_ENDING);
}

bool keeper_slot_extend(struct keeper_slot *s, int64_t grace_ns)
{
    int64_t kill_at = keeper_now() + grace_ns;

    if (s->kill_at == KEEPER_NEVER)
        return false;
    kill_at = kill_at < s->kill_latest ? kill_at : s->kill_latest;
    if (kill_at > s->kill_at)
        s->kill_at = kill_at;
    return true;
}

static void describe(struct keeper_slot *s)
{
    struct agentd_exit *e = &s->a.exit;
    int status = e->wait_status;

    if (e->evidence[0] != '\0')
        return;
    if ((e->causes & AGENTD_CAUSE_NO_STATUS) != 0)
        keeper_copy(e->evidence, sizeof e->evidence, "ended unseen: nobody knows its status");
    else if ((e->causes & AGENTD_CAUSE_OOM) != 0 && WIFSIGNALED(status))
        keeper_copy(e->evidence, sizeof e->evidence, "killed by the kernel for memory");
    else if (WIFSIGNALED(status))
        (void)snprintf(e->evidence, sizeof e->evidence, "killed by signal %d (%s)%s",
                       WTERMSIG(status), sigdescr_np(WTERMSIG(status)),
                       WCOREDUMP(status) ? ", core dumped" : "");
    else
        (void)snprintf(e->evidence, sizeof e->evidence, "exited with status %d",
                       WEXITSTATUS(status));
}

/* Unless that is what was said of itself. */
static void add_losses(struct keeper_slot *s)
{
    struct agentd_exit *e = &s->a.exit;
    bool is_said = (e->causes & AGENTD_CAUSE_OOM) != 0 && WIFSIGNALED(e->wait_status);
    int64_t count = is_said ? 0 : keeper_oom_count(s);
    size_t len = strlen(e->evidence);

    if (count > 0)
        (void)snprintf(e->evidence + len, sizeof e->evidence - len,
                       "; the kernel killed %jd of its processes for memory", (intmax_t)count);
}

void keeper_slot_main_gone(struct keeper *k, struct keeper_slot *s, const int *status,
                           const struct rusage *ru)
{
    struct agentd_exit *e = &s->a.exit;

    if (s->main_gone)
        return;
    if (s->exec_fd >= 0)
        keeper_on_exec(k, s);
    s->main_gone = true;
    e->ended_ns = keeper_now();
    if (status == NULL)
        e->causes |= AGENTD_CAUSE_NO_STATUS;
    else
        e->wait_status = *status;
    if (ru != NULL) {
        e->user_us = ru->ru_utime.tv_sec * 1000000 + ru->ru_utime.tv_usec;
        e->system_us = ru->ru_stime.tv_sec * 1000000 + ru->ru_stime.tv_usec;
        e->max_rss_kb = ru->ru_maxrss;
    }
    if (!s->released && (e->causes & AGENTD_CAUSE_NOT_MADE) == 0)
        e->causes |= AGENTD_CAUSE_DISCARDED;
    if (status != NULL && s->goal != GOAL_GONE && keeper_oom_killed(k, s))
        e->causes |= AGENTD_CAUSE_OOM;
    describe(s);
    add_losses(s);
    keeper_slot_kill(k, s, 0);
}

static void finish(struct keeper_slot *s, int64_t now)
{
    if (s->gone_ns == 0) {
        s->gone_ns = now;
        s->a.gone = 1;
        s->dirty = true; /* whoever starts the next one need not wait for the scribe */
    }
    if ((s->log_open || s->log_due) && now < s->gone_ns + OUTPUT_GRACE) {
        s->look_at = s->gone_ns + OUTPUT_GRACE;
        return;
    }
    close_all(s);
    s->stopped_count = 0;
    s->look_at = s->kill_at = KEEPER_NEVER;
    s->a.done_order = s->a.order;
    s->a.frozen_ns = 0;
    keeper_slot_changed(s, AGENTD_STATE_ENDED);
}

/* When to look again, after a look that began `now`. We rest for as long as it took, at least:
 * the keeper goes before everybody, and whom it waits for needs a processor to stop or to end.
 */
static int64_t soon(int64_t now)
{
    int64_t done = keeper_now();

    return done + (done - now > LOOK_AGAIN ? done - now : LOOK_AGAIN);
}

static void kill_on(struct keeper *k, struct keeper_slot *s, int64_t now)
{
    size_t left = s->gone_ns != 0 ? 0 : keeper_tree_kill(k, s);

    if (left == 0 && s->shim_gone && !s->main_gone)
        keeper_slot_main_gone(k, s, NULL, NULL); /* its shim took the status with it */
    if (left == 0 && s->main_gone) {
        finish(s, now);
        return;
    }
    size_t others = left - (s->shim > 0 && !s->shim_gone && left > 0);
    if (s->main_gone && others > s->a.exit.stragglers)
        s->a.exit.stragglers = (uint32_t)others;
    if (s->kill_since == 0)
        s->kill_since = now;
    /* The longer it takes, the less often. */
    int64_t wait = (now - s->kill_since) / 8;
    int64_t look_at = now + (wait > 50 * LOOK_AGAIN ? 50 * LOOK_AGAIN : wait);
    s->look_at = soon(now) > look_at ? soon(now) : look_at;
    if (now - s->kill_since > AGENTD_STUCK_MS * KEEPER_MS && s->a.state != AGENTD_STATE_STUCK)
        keeper_slot_changed(s, AGENTD_STATE_STUCK);
}

static void freeze_on(struct keeper *k, struct keeper_slot *s, int64_t now)
{
    bool may_run;

    if (!keeper_tree_freeze(k, s, &may_run)) {
        s->look_at = soon(now);
        if (s->freeze_since == 0) {
            s->freeze_since = now;
            s->freeze_looks = 0;
        }
        s->freeze_looks += may_run;
        if (may_run && s->a.fenced != 0 && s->freeze_looks >= FREEZE_LOOKS &&
            now - s->freeze_since > FREEZE_LIMIT)
            keeper_slot_kill(k, s, AGENTD_CAUSE_FENCED);
        return;
    }
    /* Whom a signal has stopped, and not the cgroup, anybody may continue. */
    s->look_at = s->cgroup_fd < 0 || s->stopped_count > 0 ? now + LOOK_STILL : KEEPER_NEVER;
    s->freeze_since = 0;
    if (s->a.state == AGENTD_STATE_FROZEN)
        return;
    s->a.frozen_ns = now;
    s->a.done_order = s->a.order;
    keeper_slot_changed(s, AGENTD_STATE_FROZEN);
}

static void thaw_on(struct keeper *k, struct keeper_slot *s, int64_t now)
{
    if (!keeper_tree_thaw(k, s)) {
        s->look_at = now + LOOK_AGAIN;
        return;
    }
    s->look_at = KEEPER_NEVER;
    s->a.frozen_ns = 0;
    s->a.fenced = 0;
    s->a.done_order = s->a.order;
    /* It may have been frozen between its release and its exec. */
    keeper_slot_changed(s, s->a.begun_ns == 0 ? AGENTD_STATE_STARTING : AGENTD_STATE_RUNNING);
}

void keeper_tidy(struct keeper *k)
{
    for (size_t i = 0; i < k->slot_count; i++) {
        if (k->slots[i]->a.state == AGENTD_STATE_ENDED)
            keeper_cgroup_remove(k, k->slots[i]);
    }
}

static bool needs_step(const struct keeper_slot *s, int64_t now)
{
    return s->a.state != AGENTD_STATE_ENDED && (s->look_at <= now || s->kill_at <= now);
}

/* Nobody of it is left but who has left its cgroup; and those are children of ours, or below
 * one that is. */
static bool needs_look(const struct keeper *k, const struct keeper_slot *s)
{
    if (s->goal == GOAL_RUN || s->gone_ns != 0)
        return false;
    if (s->cgroup_fd < 0 || s->goal != GOAL_GONE || !s->main_gone)
        return true;
    return s->stopped_count > 0 || s->looks_due > 0 ||
           keeper_cgroup_is_populated(s->cgroup_fd) || keeper_has_orphans(k);
}

/* One look for all that need it, after nobody is left who can be halted without. It takes
 * milliseconds, for which the end of an agent that has nobody else does not wait. */
static void look(struct keeper *k, int64_t now)
{
    bool is_due = false;

    for (size_t i = 0; i < k->slot_count; i++) {
        struct keeper_slot *s = k->slots[i];

        if (!needs_step(s, now))
            continue;
        if (s->kill_at <= now)
            keeper_slot_kill(k, s, AGENTD_CAUSE_ASKED);
        if (s->goal == GOAL_STILL)
            keeper_tree_halt(k, s);
        is_due = is_due || needs_look(k, s);
    }
    if (is_due)
        keeper_scan(k, now);
    else
        keeper_scan_nobody(k);
}

int64_t keeper_settle(struct keeper *k, int64_t now)
{
    int64_t next = KEEPER_NEVER;

    look(k, now);
    for (size_t i = 0; i < k->slot_count; i++) {
        struct keeper_slot *s = k->slots[i];

        if (!needs_step(s, now)) {
            next = s->look_at < next ? s->look_at : next;
            next = s->kill_at < next ? s->kill_at : next;
            continue;
        }
        if (s->goal == GOAL_GONE)
            kill_on(k, s, now);
        else if (s->goal == GOAL_STILL)
            freeze_on(k, s, now);
        else
            thaw_on(k, s, now);
        next = s->look_at < next ? s->look_at : next;
        next = s->kill_at < next ? s->kill_at : next;
    }
    return next;
}
