#include <string.h>

#include "base/str.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/tasks.h"
#include "core/task.h"

struct settings {
    const char *until;
    hf_ms timeout;
};

static const struct hf_option TABLE[] = {
    { .flag = "until",
      .value = "STATE",
      HF_OPTION_FIELD(STRING, struct settings, until),
      .help = "Wait for this state, one of " CLI_TASK_STATES
              "; without it, for any that is final: the last four." },
    { .flag = "timeout",
      .value = "DURATION",
      HF_OPTION_FIELD(DURATION, struct settings, timeout),
      .min = 0,
      .max = HF_DURATION_MAX,
      .help = "Give up after this long, with exit status 124; 0 waits for ever." },
};

struct watch {
    struct cli *cli;
    const char *until;
    bool done;
};

static bool is_reached(const struct watch *watch, const Holdfast__V1__Task *task)
{
    return watch->until != NULL ? strcmp(hf_task_state_name(task->state), watch->until) == 0
                                : hf_task_is_final(task->state);
}

static int print_line(struct cli *cli, const Holdfast__V1__Task *task)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    if (cli->output == CLI_JSON)
        return cli_out_json_line(cli, &task->base);
    if (cli->output == CLI_NAME)
        return HF_OK; /* once, when it is there */
    cli_out_colour(&out, cli_task_colour(task->state), hf_task_state_name(task->state));
    if (task->owner != NULL)
        hf_buf_printf(&out, "  by %s", task->owner->agent);
    if (task->attempt > 0)
        hf_buf_printf(&out, "  attempt %d", task->attempt);
    if (task->checkpoint != NULL)
        hf_buf_printf(&out, "  checkpoint %lld", (long long)task->checkpoint->seq);
    if (cli_task_reason(task)[0] != '\0')
        hf_buf_printf(&out, "  (%s)", cli_task_reason(task));
    hf_buf_putc(&out, '\n');
    return cli_out_text(cli, &out);
}

static int on_change(struct hf_fleet_change *change, void *arg)
{
    struct watch *watch = arg;
    const Holdfast__V1__Task *task = (const Holdfast__V1__Task *)change->record;
    int rc;

    if (task == NULL)
        return cli_fail(watch->cli, HF_ENOENT, "task %s was removed", watch->cli->args[0]);
    rc = print_line(watch->cli, task);
    watch->done = is_reached(watch, task);
    /* A final state that is not the awaited one is not left by itself. */
    if (rc == HF_OK && !watch->done && hf_task_is_final(task->state))
        return cli_fail(watch->cli, HF_ECONFLICT, "task %s is %s, not %s", task->id,
                        hf_task_state_name(task->state), watch->until);
    return rc;
}

static int run(struct cli *cli)
{
    const struct settings *settings = cli->settings;
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    struct watch watch = { .cli = cli, .until = settings->until };
    struct hf_clock clock = hf_clock_boottime();
    hf_ms until = settings->timeout > 0 ? hf_clock_now(&clock) + settings->timeout : INT64_MAX;
    int rc = cli_check_task_state(cli, settings->until);

    if (rc == HF_OK)
        rc = cli_read_task(cli, cli->args[0], &record);
    if (rc != HF_OK)
        return rc;
    rc = cli_follow(
        cli, &(struct hf_intent_read){ .key = { .kind = HF_KEY_TASK, .name = cli->args[0] } },
        on_change, &watch, &watch.done, until);
    if (rc == HF_OK && cli->output == CLI_NAME)
        return cli_out_done(cli, cli->args[0], "", "");
    return rc == HF_ETIMEOUT
               ? cli_fail(cli, rc, "task %s is not %s yet", cli->args[0],
                          settings->until != NULL ? settings->until : "in a final state")
               : rc;
}

const struct cli_command CLI_TASK_WATCH = {
    .name = "task watch",
    .args = "TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Follow a task until it has ended, or is in a given state.",
    .more = "With -o name its name alone, when that is so.",
    CLI_OPTIONS(TABLE, struct settings),
    .run = run,
};
