#include "cli/demo.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "cli/agents.h"
#include "cli/out.h"
#include "cli/store.h"
#include "core/task.h"
#include "schema/json.h"

enum { PATIENCE_MS = 180000, SYNC_MS = 15000, LOOK_MS = 20 };

static hf_ms now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

void cli_demo_tell(const struct cli_demo *demo, const char *fmt, ...)
{
    hf_ms elapsed = demo->began != 0 ? now() - demo->began : 0;
    HF_CLEANUP_BUF struct hf_buf line = { 0 };
    HF_CLEANUP_FREE char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    if (elapsed < 10000)
        hf_buf_printf(&line, "%6lld ms  ", (long long)elapsed);
    else
        hf_buf_printf(&line, "%7.1f s  ", (double)elapsed / 1000);
    cli_out_wrapped(&line, line.len, text != NULL ? text : "");
    (void)fputs(line.data != NULL ? line.data : "\n", stdout);
    (void)fflush(stdout);
}

/* Choosing. */

struct choice {
    const char *wanted; /* NULL: any */
    struct cli_victim best;
    int64_t checkpoint; /* its number; 0: none */
};

static int64_t checkpoint_of(const Holdfast__V1__Task *task)
{
    return task->checkpoint != NULL ? task->checkpoint->seq : 0;
}

/* One that has something to go on from, whose recovery waits for nothing, and that is not about
 * to be done with its task. */
static bool is_better(const struct choice *choice, const Holdfast__V1__Task *task)
{
    int64_t checkpoint = checkpoint_of(task);

    if (choice->best.pid == 0 || (choice->checkpoint != 0) != (checkpoint != 0))
        return choice->best.pid == 0 || checkpoint != 0;
    if (task->attempt != choice->best.attempt)
        return task->attempt < choice->best.attempt;
    return checkpoint < choice->checkpoint;
}

static void consider(enum hf_fleet_kind kind, void *object, void *arg)
{
    const struct hf_agent *agent = object;
    struct choice *choice = arg;
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)agent->live.record;
    const Holdfast__V1__Task *task;

    (void)kind;
    if (live == NULL || agent->tasks == NULL || !cli_is_of_this_machine(live) ||
        (choice->wanted != NULL && strcmp(choice->wanted, agent->name) != 0))
        return;
    task = (const Holdfast__V1__Task *)agent->tasks->task.record;
    if (!is_better(choice, task))
        return;
    choice->best = (struct cli_victim){ .born = agent->live.seen.create_rev,
                                        .attempt = task->attempt,
                                        .pid = live->pid,
                                        .start_time = live->start_time };
    if (live->ttl != NULL)
        choice->best.ttl = live->ttl->seconds * 1000 + live->ttl->nanos / 1000000;
    choice->best.has_agentd = cli_find_agentd(live, &choice->best.agentd);
    (void)snprintf(choice->best.name, sizeof choice->best.name, "%s", agent->name);
    (void)snprintf(choice->best.host, sizeof choice->best.host, "%s", live->host);
    (void)snprintf(choice->best.task, sizeof choice->best.task, "%s", task->id);
    choice->checkpoint = checkpoint_of(task);
}

static int choose(struct cli *cli, struct cli_victim *ret_victim)
{
    static const enum hf_key_scope SCOPES[] = { HF_KEY_IN_AGENTS, HF_KEY_IN_TASKS };
    struct choice choice = { .wanted = cli->arg_count > 0 ? cli->args[0] : NULL };
    struct hf_fleet *fleet = NULL;
    int rc = cli_load_fleet(cli, SCOPES, sizeof SCOPES / sizeof SCOPES[0], &fleet);

    if (rc != HF_OK)
        return rc;
    hf_fleet_each(fleet, HF_FLEET_AGENT, consider, &choice);
    hf_fleet_free(fleet);
    if (choice.best.pid == 0)
        return cli_fail(cli, HF_ENOENT,
                        "no agent%s%s on this machine is at work on a task. Start a fleet with "
                        "`holdfast up`, and use its HOLDFAST_ENDPOINTS here.",
                        choice.wanted != NULL ? " " : "",
                        choice.wanted != NULL ? choice.wanted : "");
    if (cli_start_time(choice.best.pid) != choice.best.start_time)
        return cli_fail(cli, HF_ENOENT, "%s (pid %d) is not running here any more",
                        choice.best.name, (int)choice.best.pid);
    *ret_victim = choice.best;
    return HF_OK;
}

/* Telling. */

static bool is_called(const char *name, const char *wanted)
{
    return name != NULL && strcmp(name, wanted) == 0;
}

static void on_exit_record(struct cli_demo *demo, const Holdfast__V1__Exit *record)
{
    const ProtobufCEnumValue *kind = protobuf_c_enum_descriptor_get_value(
        &holdfast__v1__exit__kind__descriptor, (int)record->kind);

    if (record->incarnation == NULL ||
        record->incarnation->create_revision != demo->victim.born)
        return;
    if (record->succession != NULL && record->succession->done) {
        cli_demo_tell(demo, "its agentd started it again at once: the leader had given leave");
        return;
    }
    cli_demo_tell(demo, "agentd saw it end and wrote it down: %s%s%s",
                  kind != NULL ? kind->name : "?", record->n_evidence > 0 ? ", " : "",
                  record->n_evidence > 0 ? record->evidence[0]->text : "");
}

static void on_task(struct cli_demo *demo, const Holdfast__V1__Task *task)
{
    const struct cli_victim *victim = &demo->victim;
    const Holdfast__V1__Incarnation *owner =
        task->owner != NULL ? task->owner->incarnation : NULL;

    if (demo->over || strcmp(task->id, victim->task) != 0 || task->attempt <= victim->attempt)
        return;
    if (owner == NULL) {
        cli_demo_tell(demo, "the controller took %s back: %s, attempt %" PRId32 "%s%s",
                      task->id, hf_task_state_name(task->state), task->attempt,
                      task->reserved_for[0] != '\0' ? ", kept for " : "", task->reserved_for);
        return;
    }
    if (task->state == HOLDFAST__V1__TASK__STATE__acknowledged) {
        cli_demo_tell(demo, "%s has %s", task->owner->agent, task->id);
        return;
    }
    cli_demo_tell(demo, "%s is %s again, by %s%s", task->id, hf_task_state_name(task->state),
                  task->owner->agent,
                  task->checkpoint != NULL ? ", from its checkpoint on" : "");
    demo->over = true;
}

/* Its verdict changes while it waits; the numbers in the record change more often. What comes
 * with an order is told with the order. */
static void on_health(struct cli_demo *demo, const Holdfast__V1__Health *health)
{
    char text[sizeof demo->health];

    if (health->command_host[0] != '\0')
        return;
    (void)snprintf(text, sizeof text, "%s%s%s%s%s", cli_health_name(health->state),
                   health->why[0] != '\0' ? ": " : "", health->why,
                   health->next != NULL ? "; next: " : "",
                   health->next != NULL ? health->next->what : "");
    if (strcmp(text, demo->health) == 0)
        return;
    (void)snprintf(demo->health, sizeof demo->health, "%s", text);
    cli_demo_tell(demo, "the controller's verdict on %s: %s", demo->victim.name, text);
}

static void on_life(struct cli_demo *demo, const Holdfast__V1__Live *live, hf_rev born)
{
    if (born == demo->victim.born || born == demo->reborn)
        return;
    demo->reborn = born;
    demo->starts++;
    (void)snprintf(demo->new_host, sizeof demo->new_host, "%s", live->host);
    cli_demo_tell(demo, "%s lives again: pid %" PRId32 " on %s", demo->victim.name, live->pid,
                  live->host);
}

static void on_host(struct cli_demo *demo, bool is_here)
{
    if (is_here == !demo->host_gone)
        return;
    demo->host_gone = !is_here;
    if (is_here)
        cli_demo_tell(demo, "%s is here again, with a new lease", demo->victim.host);
    else
        cli_demo_tell(demo,
                      "the lease of %s is gone, and with it every key that hung on it; a guard "
                      "time runs, in which it may be back",
                      demo->victim.host);
}

static void on_record(struct cli_demo *demo, const struct hf_key *key, hf_rev born,
                      const ProtobufCMessage *record)
{
    bool is_victim = is_called(key->name, demo->victim.name);

    if (key->kind == HF_KEY_AGENT_EXIT && is_victim)
        on_exit_record(demo, (const Holdfast__V1__Exit *)record);
    if (key->kind == HF_KEY_TASK)
        on_task(demo, (const Holdfast__V1__Task *)record);
    if (key->kind == HF_KEY_COMMAND && is_called(key->sub, demo->victim.name))
        cli_demo_tell(demo, "it ordered one start of %s on %s: %s", key->sub, key->name,
                      ((const Holdfast__V1__Command *)record)->reason);
    if (key->kind == HF_KEY_HEALTH && is_victim)
        on_health(demo, (const Holdfast__V1__Health *)record);
    if (key->kind == HF_KEY_AGENT_LIVE && is_victim)
        on_life(demo, (const Holdfast__V1__Live *)record, born);
    if (key->kind == HF_KEY_HOST_LIVE && is_called(key->name, demo->victim.host))
        on_host(demo, true);
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    struct cli_demo *demo = arg;
    char scratch[HF_KEY_SIZE];
    struct hf_key key;
    ProtobufCMessage *record = NULL;
    const ProtobufCMessageDescriptor *type;

    demo->synced = demo->synced || event->kind == HF_MIRROR_SYNCED;
    if (demo->began == 0 || (event->kind != HF_MIRROR_PUT && event->kind != HF_MIRROR_DELETE) ||
        hf_key_parse(demo->cli->common.namespace, event->kv.key, scratch, &key, NULL) != HF_OK)
        return;
    if (event->kind == HF_MIRROR_DELETE) {
        if (key.kind == HF_KEY_AGENT_LIVE && is_called(key.name, demo->victim.name))
            cli_demo_tell(demo, "the key of %s is gone from etcd", demo->victim.name);
        if (key.kind == HF_KEY_HOST_LIVE && is_called(key.name, demo->victim.host))
            on_host(demo, false);
        return;
    }
    type = hf_key_get_record(key.kind);
    if (type == NULL || hf_json_decode(type, event->kv.value.data, event->kv.value.len, NULL,
                                       &record, NULL) != HF_OK)
        return;
    on_record(demo, &key, event->kv.create_rev, record);
    hf_json_free(record);
}

static int follow(struct cli_demo *demo)
{
    struct cli *cli = demo->cli;
    char prefix[HF_KEY_SIZE];
    int len =
        hf_key_prefix(cli->common.namespace, HF_KEY_IN_NAMESPACE, NULL, prefix, &cli->err);
    struct hf_key_range range = { .prefix = true };
    struct hf_mirror_config cfg = {
        .ranges = &range, .range_count = 1, .on_event = on_event, .arg = demo
    };
    int rc;

    if (len < 0)
        return len;
    range.key = (struct hf_bytes){ .data = prefix, .len = (size_t)len };
    rc = hf_mirror_new(cli->etcd, &cfg, &demo->mirror, &cli->err);
    if (rc != HF_OK)
        return rc;
    if (cli_wait(cli, &demo->synced, now() + SYNC_MS) != HF_OK)
        return cli_fail(cli, HF_EAGAIN, "etcd does not answer");
    return HF_OK;
}

int cli_demo_begin(struct cli_demo *demo, struct cli *cli)
{
    int rc;

    *demo = (struct cli_demo){ .cli = cli };
    rc = choose(cli, &demo->victim);
    return rc == HF_OK ? follow(demo) : rc;
}

void cli_demo_act(struct cli_demo *demo)
{
    demo->began = now();
}

void cli_demo_end(struct cli_demo *demo)
{
    if (demo->mirror != NULL)
        hf_mirror_close(demo->mirror);
}

int cli_demo_wait(struct cli_demo *demo, bool (*is_so)(struct cli_demo *demo))
{
    hf_ms until = now() + PATIENCE_MS;

    while (!is_so(demo)) {
        if (now() > until)
            return cli_fail(
                demo->cli, HF_ETIMEOUT,
                "%s is not at work again after %d s: `holdfast explain %s` says why",
                demo->victim.task, PATIENCE_MS / 1000, demo->victim.task);
        if (cli_wait(demo->cli, &demo->stop, now() + LOOK_MS) == HF_OK)
            return cli_fail(demo->cli, HF_ECANCELED, "interrupted");
    }
    return HF_OK;
}

static bool is_over(struct cli_demo *demo)
{
    return demo->over;
}

void cli_demo_tell_end(const struct cli_demo *demo)
{
    cli_demo_tell(demo, "done: it was started %s, on %s, and its work goes on",
                  demo->starts == 1 ? "once" : "more than once, which is a bug",
                  demo->new_host);
}

int cli_demo_watch_recovery(struct cli_demo *demo)
{
    int rc = cli_demo_wait(demo, is_over);

    if (rc == HF_OK)
        cli_demo_tell_end(demo);
    return rc;
}
