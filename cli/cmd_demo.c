/* demo: does to one agent of a running fleet what happens to agents, and tells what Holdfast
 * saw and did about it, as etcd told it, with times. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/local.h"
#include "cli/out.h"
#include "cli/store.h"
#include "core/task.h"
#include "etcd/mirror.h"
#include "schema/json.h"

enum { PATIENCE_MS = 180000, SYNC_MS = 15000 };

/* The agent that it is done to, as it was before. */
struct victim {
    char name[HF_NAME_SIZE];
    char host[HF_NAME_SIZE];
    char task[HF_NAME_SIZE];
    hf_rev born; /* its life */
    int32_t attempt;
    pid_t pid;
    int64_t start_time;
};

struct scene {
    struct cli *cli;
    struct victim victim;
    struct hf_mirror *mirror;
    hf_ms began; /* 0: not yet */
    bool synced, over;
    hf_rev reborn;   /* its newest life; 0: none yet */
    unsigned starts; /* how many lives it has had since */
};

static hf_ms now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

__attribute__((format(printf, 2, 3))) static void tell(const struct scene *scene,
                                                       const char *fmt, ...)
{
    hf_ms elapsed = scene->began != 0 ? now() - scene->began : 0;
    va_list args;

    if (elapsed < 10000)
        (void)printf("%6lld ms  ", (long long)elapsed);
    else
        (void)printf("%7.1f s  ", (double)elapsed / 1000);
    va_start(args, fmt);
    (void)vprintf(fmt, args);
    va_end(args);
    (void)putchar('\n');
    (void)fflush(stdout);
}

/* Choosing. */

struct choice {
    const char *wanted; /* NULL: any */
    struct victim best;
    bool with_checkpoint;
};

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
    if (choice->best.pid != 0 && (choice->with_checkpoint || task->checkpoint == NULL))
        return;
    choice->best = (struct victim){ .born = agent->live.seen.create_rev,
                                    .attempt = task->attempt,
                                    .pid = live->pid,
                                    .start_time = live->start_time };
    (void)snprintf(choice->best.name, sizeof choice->best.name, "%s", agent->name);
    (void)snprintf(choice->best.host, sizeof choice->best.host, "%s", live->host);
    (void)snprintf(choice->best.task, sizeof choice->best.task, "%s", task->id);
    choice->with_checkpoint = task->checkpoint != NULL;
}

static int choose(struct cli *cli, struct victim *ret_victim)
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

static void on_exit_record(struct scene *scene, const Holdfast__V1__Exit *record)
{
    const ProtobufCEnumValue *kind = protobuf_c_enum_descriptor_get_value(
        &holdfast__v1__exit__kind__descriptor, (int)record->kind);

    if (record->incarnation == NULL ||
        record->incarnation->create_revision != scene->victim.born)
        return;
    tell(scene, "agentd saw it end and wrote it down: %s%s%s", kind != NULL ? kind->name : "?",
         record->n_evidence > 0 ? ", " : "",
         record->n_evidence > 0 ? record->evidence[0]->text : "");
}

static void on_task(struct scene *scene, const Holdfast__V1__Task *task)
{
    const struct victim *victim = &scene->victim;
    const Holdfast__V1__Incarnation *owner =
        task->owner != NULL ? task->owner->incarnation : NULL;

    if (strcmp(task->id, victim->task) != 0 || task->attempt <= victim->attempt)
        return;
    if (owner == NULL) {
        tell(scene, "the controller took %s from the dead: %s, attempt %" PRId32 "%s%s",
             task->id, hf_task_state_name(task->state), task->attempt,
             task->reserved_for[0] != '\0' ? ", kept for " : "", task->reserved_for);
        return;
    }
    if (task->state == HOLDFAST__V1__TASK__STATE__acknowledged) {
        tell(scene, "%s has %s", task->owner->agent, task->id);
        return;
    }
    tell(scene, "%s is %s again, by %s%s", task->id, hf_task_state_name(task->state),
         task->owner->agent, task->checkpoint != NULL ? ", from its checkpoint on" : "");
    scene->over = true;
}

static void on_record(struct scene *scene, const struct hf_key *key, hf_rev born,
                      const ProtobufCMessage *record)
{
    bool is_victim = key->name != NULL && strcmp(key->name, scene->victim.name) == 0;

    if (key->kind == HF_KEY_AGENT_EXIT && is_victim)
        on_exit_record(scene, (const Holdfast__V1__Exit *)record);
    if (key->kind == HF_KEY_TASK)
        on_task(scene, (const Holdfast__V1__Task *)record);
    if (key->kind == HF_KEY_COMMAND && strcmp(key->sub, scene->victim.name) == 0)
        tell(scene, "it ordered one start of %s on %s: %s", key->sub, key->name,
             ((const Holdfast__V1__Command *)record)->reason);
    if (key->kind == HF_KEY_AGENT_LIVE && is_victim && born != scene->victim.born &&
        born != scene->reborn) {
        const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)record;

        scene->reborn = born;
        scene->starts++;
        tell(scene, "%s lives again: pid %" PRId32 " on %s", key->name, live->pid, live->host);
    }
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    struct scene *scene = arg;
    char scratch[HF_KEY_SIZE];
    struct hf_key key;
    ProtobufCMessage *record = NULL;
    const ProtobufCMessageDescriptor *type;

    scene->synced = scene->synced || event->kind == HF_MIRROR_SYNCED;
    if (scene->began == 0 ||
        (event->kind != HF_MIRROR_PUT && event->kind != HF_MIRROR_DELETE) ||
        hf_key_parse(scene->cli->common.namespace, event->kv.key, scratch, &key, NULL) != HF_OK)
        return;
    if (event->kind == HF_MIRROR_DELETE) {
        if (key.kind == HF_KEY_AGENT_LIVE && strcmp(key.name, scene->victim.name) == 0)
            tell(scene, "its key is gone from etcd");
        return;
    }
    type = hf_key_get_record(key.kind);
    if (type == NULL || hf_json_decode(type, event->kv.value.data, event->kv.value.len, NULL,
                                       &record, NULL) != HF_OK)
        return;
    on_record(scene, &key, event->kv.create_rev, record);
    hf_json_free(record);
}

static int follow(struct scene *scene)
{
    struct cli *cli = scene->cli;
    char prefix[HF_KEY_SIZE];
    int len =
        hf_key_prefix(cli->common.namespace, HF_KEY_IN_NAMESPACE, NULL, prefix, &cli->err);
    struct hf_key_range range = { .prefix = true };
    struct hf_mirror_config cfg = {
        .ranges = &range, .range_count = 1, .on_event = on_event, .arg = scene
    };
    int rc;

    if (len < 0)
        return len;
    range.key = (struct hf_bytes){ .data = prefix, .len = (size_t)len };
    rc = hf_mirror_new(cli->etcd, &cfg, &scene->mirror, &cli->err);
    if (rc != HF_OK)
        return rc;
    if (cli_wait(cli, &scene->synced, now() + SYNC_MS) != HF_OK)
        return cli_fail(cli, HF_EAGAIN, "etcd does not answer");
    return HF_OK;
}

static int watch_recovery(struct scene *scene)
{
    struct cli *cli = scene->cli;

    if (cli_wait(cli, &scene->over, now() + PATIENCE_MS) != HF_OK)
        return cli_fail(cli, HF_ETIMEOUT,
                        "%s is not at work again after %d s: `holdfast explain %s` says why",
                        scene->victim.task, PATIENCE_MS / 1000, scene->victim.task);
    tell(scene, "done: it was started %s, and its work goes on",
         scene->starts == 1 ? "once" : "more than once, which is a bug");
    return HF_OK;
}

static int crash(struct cli *cli)
{
    struct scene scene = { .cli = cli };
    int rc = choose(cli, &scene.victim);

    if (rc == HF_OK)
        rc = follow(&scene);
    if (rc == HF_OK) {
        scene.began = now();
        if (kill(scene.victim.pid, SIGKILL) != 0)
            rc = cli_fail(cli, errno == EPERM ? HF_EDENIED : HF_EIO, "kill %d: %s",
                          (int)scene.victim.pid, strerror(errno));
    }
    if (rc == HF_OK) {
        tell(&scene, "kill -9 of %s (pid %d on %s), in the middle of %s", scene.victim.name,
             (int)scene.victim.pid, scene.victim.host, scene.victim.task);
        rc = watch_recovery(&scene);
    }
    if (scene.mirror != NULL)
        hf_mirror_close(scene.mirror);
    return rc;
}

const struct cli_command CLI_DEMO_CRASH = {
    .name = "demo crash",
    .args = "[AGENT]",
    .arg_max = 1,
    .summary = "Kill an agent in the middle of its work, and tell what follows.",
    .more =
        "The agent must run on this machine and be at work on a task. Without a name one of\n"
        "them is chosen.",
    .run = crash,
};
