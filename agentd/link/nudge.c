#include "agentd/link/nudge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agentd/link/api.h"
#include "agentd/link/program.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/log.h"

enum {
    AGAIN_MS = 1000,      /* what could not be done is tried again, ... */
    AGAIN_MAX_MS = 30000, /* ... after pauses that double up to that */
    MOST_HOOKS = 4,       /* that run at once */
    MOST_RUNS = 3,        /* of a hook that fails */
};

/* A hook that runs. */
struct link_hook {
    struct link_hook *next;
    struct link *link;
    struct link_process *process;
    char id[HF_RECEIPT_ID]; /* there may be another inquiry by its end */
    uv_process_t program;
    uv_timer_t timer;
    unsigned open; /* handles */
    bool late;
};

static struct link *link_of(const struct link_process *process)
{
    return process->agent->link;
}

/* Receipts. */

static void hand_in(struct link_process *process)
{
    struct link_nudge *nudge = &process->nudge;

    if (nudge->receipt_due && link_of(process)->runner != NULL)
        nudge->receipt_due = !link_process_tell_receipt(process, &nudge->receipt);
}

static void keep(struct link_process *process)
{
    if (process->freed || link_of(process)->over)
        return;
    process->nudge.receipt_due = true;
    (void)link_remember(process); /* etcd has it, too, in a moment */
    hand_in(process);
}

static void deliver(struct link_process *process, enum link_way way)
{
    struct hf_receipt *receipt = &process->nudge.receipt;

    HF_LOG_INFO("nudged", HF_STR("agent", process->who.agent), HF_STR("nudge", receipt->id),
                HF_STR("by", link_way_name(way)));
    if (receipt->delivered_wall != 0)
        return;
    receipt->delivered_wall = hf_clock_wall();
    (void)snprintf(receipt->by, sizeof receipt->by, "%s", link_way_name(way));
    keep(process);
}

bool link_nudge_read(struct link_process *process, const char *id)
{
    struct hf_receipt *receipt = &process->nudge.receipt;

    if (strcmp(receipt->id, id) != 0)
        return false;
    if (receipt->read_wall == 0) {
        receipt->read_wall = hf_clock_wall();
        keep(process);
    }
    return true;
}

/* What has to wait. */

static void on_again(uv_timer_t *timer)
{
    ((struct link *)timer->data)->dirty = true;
}

static void try_again(struct link *link)
{
    if (!link->over && !uv_is_active((uv_handle_t *)&link->nudges.timer))
        (void)uv_timer_start(&link->nudges.timer, on_again, AGAIN_MS, 0);
}

/* True when it is; else it is looked at again. */
static bool is_due(struct link_process *process, hf_ms at)
{
    if (at <= link_now(link_of(process)))
        return true;
    try_again(link_of(process));
    return false;
}

/* stdin */

static void tell(struct link_process *process, const Holdfast__V1__Health__Inquiry *inquiry)
{
    HF_CLEANUP_BUF struct hf_buf line = { 0 };
    struct link_nudge *nudge = &process->nudge;
    int rc;

    if (nudge->told || nudge->telling[0] != '\0' || !is_due(process, nudge->tell_at))
        return;
    rc = link_ways_format(inquiry->id, inquiry->text, AGENTD_TELL_MAX, &line);
    if (rc == HF_OK)
        rc = link_channel_tell(link_of(process)->channel, &process->who, inquiry->id,
                               (struct hf_bytes){ line.data, line.len });
    if (rc == HF_OK) {
        memcpy(nudge->telling, nudge->receipt.id, sizeof nudge->telling);
        return;
    }
    nudge->told = rc != HF_ENOMEM;
    HF_LOG_WARN("not_nudged", HF_STR("agent", process->who.agent), HF_STR("by", "stdin"),
                HF_STR("why", rc == HF_ENOENT
                                  ? "the keeper is of an older version: restart agentd"
                                  : hf_err_text(rc)));
}

static void wait_for_room(struct link_process *process)
{
    struct link_nudge *nudge = &process->nudge;

    if (nudge->tell_pause == 0)
        HF_LOG_WARN("nudge_waits", HF_STR("agent", process->who.agent), HF_STR("by", "stdin"),
                    HF_STR("why", "it does not read its stdin"), HF_STR("next", "tries again"));
    nudge->tell_pause = nudge->tell_pause == 0                  ? AGAIN_MS
                        : nudge->tell_pause >= AGAIN_MAX_MS / 2 ? AGAIN_MAX_MS
                                                                : nudge->tell_pause * 2;
    nudge->tell_at = link_now(link_of(process)) + nudge->tell_pause;
    try_again(link_of(process));
}

void link_nudge_on_told(const struct agentd_who *who, const struct agentd_reply *reply,
                        void *arg)
{
    struct link_process *process = link_process_find(arg, who);
    struct link_nudge *nudge = process != NULL ? &process->nudge : NULL;
    bool current = nudge != NULL && strcmp(nudge->telling, nudge->receipt.id) == 0;

    if (nudge == NULL)
        return;
    nudge->telling[0] = '\0';
    link_of(process)->dirty = true;
    if (!current)
        return; /* it is asked something else by now */
    if (reply->code == AGENTD_CODE_FULL) {
        wait_for_room(process);
        return;
    }
    nudge->told = true;
    /* EXISTS: a link before this one had it told. */
    if (reply->code == AGENTD_CODE_OK ||
        (reply->code == AGENTD_CODE_EXISTS && nudge->receipt.delivered_wall == 0))
        deliver(process, LINK_BY_STDIN);
    else if (reply->code != AGENTD_CODE_EXISTS)
        HF_LOG_WARN("not_nudged", HF_STR("agent", who->agent), HF_STR("by", "stdin"),
                    HF_STR("why", reply->text));
}

/* The hook. */

static void let_hook(struct link_hook *hook)
{
    struct link_hook **at = &hook->link->nudges.hooks;

    if (--hook->open > 0)
        return;
    while (*at != hook)
        at = &(*at)->next;
    *at = hook->next;
    link_process_let(hook->process);
    free(hook);
}

static void on_closed(uv_handle_t *handle)
{
    let_hook(handle->data);
}

static void on_late(uv_timer_t *timer)
{
    struct link_hook *hook = timer->data;

    hook->late = true;
    link_program_kill(&hook->program);
}

/* A run has ended, or could not begin. */
static void end_run(struct link_process *process, const char *why)
{
    struct link_nudge *nudge = &process->nudge;
    bool again = why != NULL && nudge->begun < MOST_RUNS;

    link_of(process)->nudges.hook_count--;
    nudge->hooking = false;
    nudge->ended = nudge->begun;
    nudge->hooked = !again;
    nudge->hook_at = link_now(link_of(process)) + ((hf_ms)AGAIN_MS << nudge->ended);
    if (why != NULL)
        HF_LOG_WARN("not_nudged", HF_STR("agent", process->who.agent), HF_STR("by", "hook"),
                    HF_UINT("run", nudge->begun), HF_STR("why", why),
                    HF_STR("next", again ? "tries again" : "gives up"));
    if (why == NULL)
        deliver(process, LINK_BY_HOOK);
    if (!process->freed && !process->gone)
        (void)link_remember(process);
    link_of(process)->dirty = true;
}

static void on_hook_ended(uv_process_t *program, int64_t status, int signal)
{
    struct link_hook *hook = program->data;
    const char *why = hook->late                   ? "it took too long"
                      : signal != 0 || status != 0 ? "its status says that it failed"
                                                   : NULL;

    if (!hook->link->over && strcmp(hook->process->nudge.receipt.id, hook->id) == 0)
        end_run(hook->process, why);
    else
        hook->link->nudges.hook_count--;
    link_program_on_ended(program);
    uv_close((uv_handle_t *)&hook->timer, on_closed);
    uv_close((uv_handle_t *)program, on_closed);
}

/* What it reads: the text, in a file that has no name. */
static int open_text(const char *text)
{
    int fd = memfd_create("nudge", MFD_CLOEXEC);
    size_t len = strlen(text);

    if (fd >= 0 && (write(fd, text, len) != (ssize_t)len || lseek(fd, 0, SEEK_SET) != 0)) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Of what the hook gets; it points into itself. */
struct hook_env {
    char texts[7][HF_NAME_SIZE + 32];
    const char *items[7];
};

static struct hf_strings fill_env(const struct link_process *process,
                                  const Holdfast__V1__Health__Inquiry *inquiry,
                                  struct hook_env *env)
{
    const struct link_agent *agent = process->agent;
    char incarnation[24], pid[16];
    const char *const names[] = { "AGENT", "ROLE", "NAMESPACE", "INCARNATION",
                                  "TASK",  "PID",  "NUDGE" };
    const char *const values[] = { agent->name,
                                   link_process_get_spec(process)->role,
                                   agent->link->settings->common.namespace,
                                   incarnation,
                                   inquiry->task,
                                   pid,
                                   inquiry->id };

    (void)snprintf(incarnation, sizeof incarnation, "%" PRId64,
                   link_process_incarnation(process));
    (void)snprintf(pid, sizeof pid, "%" PRId32, process->pid);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        (void)snprintf(env->texts[i], sizeof env->texts[i], "HOLDFAST_%s=%s", names[i],
                       values[i]);
        env->items[i] = env->texts[i];
    }
    return (struct hf_strings){ .items = env->items, .count = sizeof names / sizeof names[0] };
}

static int start_hook(struct link_hook *hook, const struct link_launcher *launcher,
                      const Holdfast__V1__Health__Inquiry *inquiry)
{
    HF_CLEANUP_FD int input = open_text(inquiry->text);
    bool as_other = launcher->user != NULL && launcher->as.uid != geteuid();
    struct hook_env env;
    const struct link_program program = { .command = launcher->nudge.command,
                                          .env = fill_env(hook->process, inquiry, &env),
                                          .input = input,
                                          .uid = as_other ? launcher->as.uid : (uid_t)-1,
                                          .gid = as_other ? launcher->as.gid : (gid_t)-1 };

    return input < 0
               ? HF_EIO
               : link_program_start(&hook->link->loop, &program, on_hook_ended, &hook->program);
}

/* The keeper knows that it is about to. */
static void run_hook(struct link_process *process, const struct link_launcher *launcher,
                     const Holdfast__V1__Health__Inquiry *inquiry)
{
    struct link *link = link_of(process);
    struct link_hook *hook = hf_calloc(1, sizeof *hook);

    if (hook == NULL) {
        end_run(process, "out of memory");
        return;
    }
    hook->link = link;
    hook->process = process;
    hook->program.data = hook->timer.data = hook;
    (void)snprintf(hook->id, sizeof hook->id, "%s", inquiry->id);
    process->holders++;
    hook->next = link->nudges.hooks;
    link->nudges.hooks = hook;
    hook->open = 2;
    (void)uv_timer_init(&link->loop, &hook->timer); /* which cannot fail */
    if (start_hook(hook, launcher, inquiry) == HF_OK) {
        (void)uv_timer_start(&hook->timer, on_late, (uint64_t)launcher->nudge.timeout, 0);
        return;
    }
    end_run(process, "it cannot be started");
    uv_close((uv_handle_t *)&hook->timer, on_closed);
    if (hook->program.loop != NULL)
        uv_close((uv_handle_t *)&hook->program, on_closed);
    else
        let_hook(hook); /* uv_spawn was not even tried */
}

static void begin_hook(struct link_process *process)
{
    struct link_nudge *nudge = &process->nudge;
    struct link *link = link_of(process);

    if (nudge->hooked || nudge->hooking || !is_due(process, nudge->hook_at))
        return;
    if (link->nudges.hook_count >= MOST_HOOKS) {
        try_again(link);
        return;
    }
    link->nudges.hook_count++;
    nudge->hooking = true;
    nudge->begun++;
    nudge->awaits = process->told + 1;
    if (!link_remember(process)) {
        nudge->awaits = 0;
        end_run(process, "out of memory");
    }
}

static const struct link_launcher *find_launcher(const struct link_process *process)
{
    const Holdfast__V1__Spec *spec = link_process_get_spec(process);

    return spec != NULL
               ? link_settings_find_launcher(link_of(process)->settings, spec->launcher)
               : NULL;
}

static const Holdfast__V1__Health__Inquiry *find_inquiry(const struct link_process *process)
{
    return hf_node_get_inquiry(link_of(process)->node, process->who.agent);
}

void link_nudge_on_remembered(struct link_process *process, bool kept)
{
    struct link_nudge *nudge = &process->nudge;
    const Holdfast__V1__Health__Inquiry *inquiry = find_inquiry(process);
    const struct link_launcher *launcher = find_launcher(process);

    if (nudge->awaits == 0 || process->remembered < nudge->awaits)
        return;
    nudge->awaits = 0;
    if (process->gone)
        end_run(process, "it has ended");
    else if (!kept || launcher == NULL || launcher->nudge.command.count == 0)
        end_run(process, "agentd cannot remember it, or does not know the hook any more");
    else if (inquiry == NULL || strcmp(inquiry->id, nudge->receipt.id) != 0)
        end_run(process, "it has been answered");
    else
        run_hook(process, launcher, inquiry);
}

/* A hook that runs is not disturbed. */
void link_nudge_done(struct link_process *process)
{
    if (process->nudge.awaits == 0)
        return;
    process->nudge.awaits = 0;
    process->nudge.hooking = false;
    link_of(process)->nudges.hook_count--;
}

/* All of them. */

static void begin(struct link_process *process, const Holdfast__V1__Health__Inquiry *inquiry)
{
    struct link_nudge *nudge = &process->nudge;
    char telling[sizeof nudge->telling];

    if (strcmp(nudge->receipt.id, inquiry->id) == 0)
        return;
    link_nudge_done(process);
    memcpy(telling, nudge->telling, sizeof telling);
    *nudge = (struct link_nudge){ .hooked = false };
    memcpy(nudge->telling, telling, sizeof telling);
    (void)snprintf(nudge->receipt.id, sizeof nudge->receipt.id, "%s", inquiry->id);
}

/* What is remembered of it has a line of its own. */
static bool is_usable(const Holdfast__V1__Health__Inquiry *inquiry)
{
    return strlen(inquiry->id) < HF_RECEIPT_ID && strpbrk(inquiry->id, " \t\r\n") == NULL;
}

void link_nudge_look(struct link_process *process)
{
    const Holdfast__V1__Health__Inquiry *inquiry;
    const struct link_launcher *launcher;
    unsigned ways;

    if (process == NULL)
        return;
    hand_in(process);
    inquiry = find_inquiry(process);
    if (inquiry == NULL || !is_usable(inquiry) || process->state != AGENTD_STATE_RUNNING)
        return;
    begin(process, inquiry);
    launcher = find_launcher(process);
    ways = launcher != NULL && launcher->nudge.set != 0 ? launcher->nudge.set : LINK_BY_EVENTS;
    if ((ways & LINK_BY_EVENTS) != 0 && link_api_tell_inquiry(process, inquiry))
        deliver(process, LINK_BY_EVENTS);
    inquiry = find_inquiry(process); /* the node was fed */
    if ((ways & LINK_BY_STDIN) != 0 && inquiry != NULL)
        tell(process, inquiry);
    if ((ways & LINK_BY_HOOK) != 0)
        begin_hook(process);
}

/* Life. */

int link_nudges_open(struct link *link)
{
    link->nudges.timer.data = link;
    return uv_timer_init(&link->loop, &link->nudges.timer) == 0 ? HF_OK : HF_EIO;
}

void link_nudges_close(struct link *link)
{
    uv_close((uv_handle_t *)&link->nudges.timer, NULL);
    for (struct link_hook *hook = link->nudges.hooks; hook != NULL; hook = hook->next)
        link_program_kill(&hook->program);
}
