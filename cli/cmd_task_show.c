#include "base/cleanup.h"
#include "cli/commands.h"
#include "cli/tasks.h"
#include "core/body.h"
#include "core/task.h"

struct settings {
    bool payload, result;
};

static const struct hf_option TABLE[] = {
    { .flag = "payload",
      HF_OPTION_FIELD(BOOL, struct settings, payload),
      .help = "Only its payload, as it was given, whole." },
    { .flag = "result",
      HF_OPTION_FIELD(BOOL, struct settings, result),
      .help = "Only its result, as it was given, whole." },
};

/* A text of the record, or the body that stands in for it. */
static int print_text(struct cli *cli, const char *text, const Holdfast__V1__Body *body,
                      enum hf_key_kind kind)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    const struct hf_key key = { .kind = kind, .name = cli->args[0] };
    bool found = false;
    int rc;

    if (body == NULL) {
        hf_buf_puts(&out, text);
        return cli_out_text(cli, &out);
    }
    rc = cli_read_body(cli, key, &out, &found);
    if (rc == HF_OK &&
        (!found || !hf_body_matches(body, (struct hf_bytes){ out.data, out.len })))
        return cli_fail(cli, HF_ECORRUPT, "what etcd has is not what the task %s says it is",
                        cli->args[0]);
    return rc == HF_OK ? cli_out_text(cli, &out) : rc;
}

/* With what its owner says of it. */
static int print_whole(struct cli *cli, const Holdfast__V1__Task *task)
{
    CLI_CLEANUP_RECORD struct cli_record report = { 0 };
    int rc = HF_OK;

    if (task->owner != NULL && hf_task_is_owned(task->state) &&
        hf_name_check("agent", task->owner->agent, NULL) == HF_OK)
        rc = cli_read(
            cli, (struct hf_key){ .kind = HF_KEY_AGENT_REPORT, .name = task->owner->agent },
            &report);
    if (rc == HF_ECORRUPT) /* it is a remark, not the task */
        rc = HF_OK;
    if (rc != HF_OK)
        return rc;
    return cli_print_task_with(
        cli, task, cli_progress_of((const Holdfast__V1__Report *)report.message, task->id));
}

static int run(struct cli *cli)
{
    const struct settings *settings = cli->settings;
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    const Holdfast__V1__Task *task;
    int rc;

    if (settings->payload && settings->result)
        return cli_fail(cli, HF_EINVAL, "--payload and --result: choose one");
    rc = cli_read_task(cli, cli->args[0], &record);
    if (rc != HF_OK)
        return rc;
    task = cli_task_of(&record);
    if (settings->payload)
        return print_text(cli, task->payload, task->payload_body, HF_KEY_TASK_PAYLOAD);
    if (settings->result)
        return print_text(cli, task->result, task->result_body, HF_KEY_TASK_RESULT);
    return print_whole(cli, task);
}

const struct cli_command CLI_TASK_SHOW = {
    .name = "task show",
    .args = "TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Show everything about a task.",
    CLI_OPTIONS(TABLE, struct settings),
    .run = run,
};
