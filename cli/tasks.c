#include "cli/tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/moments.h"
#include "core/task.h"

int cli_read_task(struct cli *cli, const char *id, struct cli_record *ret_record)
{
    int rc = hf_name_check("task", id, &cli->err);

    if (rc == HF_OK)
        rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_TASK, .name = id }, ret_record);
    if (rc == HF_OK && ret_record->message == NULL)
        return cli_fail(cli, HF_ENOENT, "there is no task %s; holdfast task ls lists them", id);
    return rc;
}

int cli_check_task_state(struct cli *cli, const char *name)
{
    const ProtobufCEnumDescriptor *type = &holdfast__v1__task__state__descriptor;

    if (name == NULL || protobuf_c_enum_descriptor_get_value_by_name(type, name) != NULL)
        return HF_OK;
    return cli_fail(cli, HF_EINVAL,
                    "%s is no state of a task; these are queued, pending, acknowledged, "
                    "in_progress, completed, failed, cancelled, needs_review",
                    name);
}

enum cli_colour cli_task_colour(Holdfast__V1__Task__State state)
{
    switch (state) {
    case HOLDFAST__V1__TASK__STATE__completed: return CLI_GOOD;
    case HOLDFAST__V1__TASK__STATE__failed:
    case HOLDFAST__V1__TASK__STATE__needs_review: return CLI_BAD;
    case HOLDFAST__V1__TASK__STATE__queued: return CLI_WARN;
    case HOLDFAST__V1__TASK__STATE__cancelled: return CLI_DIM;
    default: return CLI_PLAIN;
    }
}

static void write_labels(const Holdfast__V1__Task *task, struct hf_buf *out)
{
    for (size_t i = 0; i < task->n_labels; i++)
        cli_out_field(out, i == 0 ? "labels" : "", "%s=%s", task->labels[i]->key,
                      task->labels[i]->value);
}

static void write_text(const char *title, const char *text, const Holdfast__V1__Body *body,
                       struct hf_buf *out)
{
    if (body != NULL)
        cli_out_field(out, title, "%" PRId64 " bytes, sha256 %s", body->size, body->sha256);
    else
        cli_out_field(out, title, "%s", text);
}

const char *cli_task_reason(const Holdfast__V1__Task *task)
{
    bool over =
        hf_task_is_owned(task->state) || task->state == HOLDFAST__V1__TASK__STATE__completed;

    return over ? "" : task->reason;
}

static bool is_late(const Holdfast__V1__Task *task)
{
    return task->deadline != NULL && !hf_task_is_final(task->state) &&
           hf_moment_read(task->deadline) < hf_clock_wall();
}

static void write_progress(const Holdfast__V1__Report__Progress *progress, struct hf_buf *out)
{
    char age[CLI_AGE_SIZE];

    if (progress == NULL)
        return;
    cli_age(progress->updated, age);
    cli_out_field(out, "progress", "%.0f%%%s%s%s%s%s", progress->percent,
                  progress->note[0] != '\0' ? ", " : "", progress->note,
                  age[0] != '\0' ? " (" : "", age, age[0] != '\0' ? " ago)" : "");
}

static void write_times(const Holdfast__V1__Task *task, struct hf_buf *out)
{
    char at[CLI_AGE_SIZE];

    if (task->checkpoint != NULL)
        cli_out_field(out, "checkpoint", "%" PRId64, task->checkpoint->seq);
    cli_out_field(out, "expected", "%s", cli_time(task->expected_completion, at));
    cli_out_field(out, "deadline", is_late(task) ? "%s, which is over" : "%s",
                  cli_time(task->deadline, at));
    cli_out_field(out, "reserved for", "%s", task->reserved_for);
    cli_out_field(out, "reason", "%s", cli_task_reason(task));
    if (task->next != NULL)
        cli_out_field(out, "next", "%s %s", task->next->what, cli_until(task->next->at, at));
}

static void write_task(const Holdfast__V1__Task *task,
                       const Holdfast__V1__Report__Progress *progress, struct hf_buf *out)
{
    cli_out_field(out, "task", "%s", task->id);
    cli_out_field(out, "role", "%s", task->role);
    hf_buf_printf(out, "%-12s ", "state");
    cli_out_colour(out, cli_task_colour(task->state), hf_task_state_name(task->state));
    hf_buf_putc(out, '\n');
    if (task->owner != NULL)
        cli_out_field(out, "owner", "%s", task->owner->agent);
    cli_out_field(out, "attempt", "%" PRId32, task->attempt);
    cli_out_field(out, "priority", "%" PRId32, task->priority);
    write_labels(task, out);
    write_progress(progress, out);
    write_times(task, out);
    write_text("payload", task->payload, task->payload_body, out);
    write_text("result", task->result, task->result_body, out);
}

const Holdfast__V1__Report__Progress *cli_progress_of(const Holdfast__V1__Report *report,
                                                      const char *task)
{
    if (report == NULL || report->progress == NULL || strcmp(report->task, task) != 0)
        return NULL;
    return report->progress;
}

int cli_print_task(struct cli *cli, const Holdfast__V1__Task *task)
{
    return cli_print_task_with(cli, task, NULL);
}

int cli_print_task_with(struct cli *cli, const Holdfast__V1__Task *task,
                        const Holdfast__V1__Report__Progress *progress)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    if (cli->output == CLI_JSON)
        return cli_out_json(cli, &task->base);
    if (cli->output == CLI_NAME)
        hf_buf_printf(&out, "%s\n", task->id);
    else
        write_task(task, progress, &out);
    return cli_out_text(cli, &out);
}
