#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/id.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/tasks.h"
#include "core/body.h"
#include "core/moments.h"
#include "core/rows.h"
#include "core/task.h"

#define MOST_MS (INT64_C(366) * 24 * 3600 * 1000)

struct settings {
    const char *role;
    const char *id;
    const char *payload;
    int64_t priority;
    struct hf_strings labels;
    hf_ms expected, deadline;
    bool queued;
};

static const struct hf_option TABLE[] = {
    { .flag = "role",
      .value = "ROLE",
      HF_OPTION_FIELD(NAME, struct settings, role),
      .help = "Agents of this role may take it. Required." },
    { .flag = "id",
      .value = "NAME",
      HF_OPTION_FIELD(NAME, struct settings, id),
      .help = "The name of the task; one is made up without it. Submitting the same task under "
              "the same name again changes nothing." },
    { .flag = "payload",
      .value = "TEXT|@FILE",
      HF_OPTION_FIELD(STRING, struct settings, payload),
      .help = "What there is to do: up to 512 KiB of text; @FILE reads a file, @- standard "
              "input." },
    { .flag = "priority",
      .value = "NUMBER",
      HF_OPTION_FIELD(INT, struct settings, priority),
      .min = -1000000,
      .max = 1000000,
      .preset = "0",
      .help = "Tasks with a higher one are taken first." },
    { .flag = "label",
      .value = "KEY=VALUE,...",
      HF_OPTION_FIELD(STRINGS, struct settings, labels),
      .help = "Labels that the task carries." },
    { .flag = "expected",
      .value = "DURATION",
      HF_OPTION_FIELD(DURATION, struct settings, expected),
      .min = 1,
      .max = MOST_MS,
      .help = "It is expected to be completed after so long. An agent that stands still with "
              "it after that is asked why (task.progress_max of the controller)." },
    { .flag = "deadline",
      .value = "DURATION",
      HF_OPTION_FIELD(DURATION, struct settings, deadline),
      .min = 1,
      .max = MOST_MS,
      .help = "If it has not ended after so long, somebody is told (alert.command of the "
              "controller). It goes on all the same." },
    { .flag = "queued",
      HF_OPTION_FIELD(BOOL, struct settings, queued),
      .help =
          "It waits in the queue until the controller lets it be taken, which it does as "
          "far as the limit of its role allows (task.running_max); without it an agent that "
          "is free may be faster than the limit." },
};

/* Payload. */

static int read_all(struct cli *cli, int fd, const char *name, struct hf_buf *out)
{
    for (;;) {
        char chunk[8192];
        ssize_t n = read(fd, chunk, sizeof chunk);

        if (n == 0)
            return HF_OK;
        if (n < 0)
            return cli_fail(cli, HF_EIO, "%s cannot be read", name);
        hf_buf_append(out, chunk, (size_t)n);
        if (out->len > HF_BODY_MAX)
            return HF_OK; /* more than enough to be refused */
    }
}

static int read_payload(struct cli *cli, const char *given, struct hf_buf *out)
{
    const char *file = given + 1;
    HF_CLEANUP_FD int fd = -1;

    if (given[0] != '@') {
        hf_buf_puts(out, given);
        return HF_OK;
    }
    if (strcmp(file, "-") == 0)
        return read_all(cli, STDIN_FILENO, "standard input", out);
    fd = open(file, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return cli_fail(cli, HF_EINVAL, "%s cannot be opened: %s", file, strerror(errno));
    return read_all(cli, fd, file, out);
}

static int check_payload(struct cli *cli, const struct hf_buf *payload)
{
    if (payload->err != HF_OK)
        return cli_fail(cli, payload->err, "%s", hf_err_text(payload->err));
    if (payload->len > HF_BODY_MAX)
        return cli_fail(
            cli, HF_EINVAL,
            "the payload has more than 512 KiB: put it where the agent can read it, "
            "and say where");
    if (payload->len > 0 && (!hf_str_is_utf8(payload->data, payload->len) ||
                             memchr(payload->data, '\0', payload->len) != NULL))
        return cli_fail(cli, HF_EINVAL,
                        "the payload is no UTF-8 text: encode it, for example with base64");
    return HF_OK;
}

/* Labels. */

struct labels {
    Holdfast__V1__Task__LabelsEntry entries[HF_LABELS_MAX];
    Holdfast__V1__Task__LabelsEntry *list[HF_LABELS_MAX];
    char *texts[HF_LABELS_MAX];
    size_t count;
};

static void free_labels(struct labels *labels)
{
    for (size_t i = 0; i < labels->count; i++)
        free(labels->texts[i]);
}

static int parse_labels(struct cli *cli, const struct hf_strings *given, struct labels *labels)
{
    for (size_t i = 0; i < given->count; i++) {
        const char *mark = strchr(given->items[i], '=');
        char *text;

        if (mark == NULL || mark == given->items[i])
            return cli_fail(cli, HF_EINVAL, "--label: %s is not KEY=VALUE", given->items[i]);
        if (labels->count == HF_LABELS_MAX)
            return cli_fail(cli, HF_EINVAL, "--label: more than %d", HF_LABELS_MAX);
        text = strdup(given->items[i]);
        if (text == NULL)
            return cli_fail(cli, HF_ENOMEM, "out of memory");
        text[mark - given->items[i]] = '\0';
        holdfast__v1__task__labels_entry__init(&labels->entries[i]);
        labels->entries[i].key = text;
        labels->entries[i].value = text + (mark - given->items[i]) + 1;
        labels->list[i] = &labels->entries[i];
        labels->texts[i] = text;
        labels->count++;
    }
    return hf_labels_check(labels->list, labels->count, &cli->err) == HF_OK ? HF_OK : HF_EINVAL;
}

/* Submission. */

/* A task of that name stands there: it is this one, submitted before, or another one. */
static int compare_with_old(struct cli *cli, const Holdfast__V1__Task *task,
                            const Holdfast__V1__Task *old)
{
    bool same = old->payload_body != NULL
                    ? hf_body_matches(old->payload_body, hf_bytes_of(task->payload))
                    : strcmp(task->payload, old->payload) == 0;

    if (same && strcmp(task->role, old->role) == 0)
        return cli_print_task(cli, old);
    return cli_fail(cli, HF_EEXIST,
                    "there is another task %s already (%s, role %s); choose another --id",
                    task->id, hf_task_state_name(old->state), old->role);
}

static int submit(struct cli *cli, const Holdfast__V1__Task *task, bool queued)
{
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    struct hf_plan plan;
    int rc = cli_plan_begin(cli, &plan);
    int committed;

    if (rc != HF_OK)
        return rc;
    if (queued)
        hf_row_enqueue(&plan, task);
    else
        hf_row_submit(&plan, task);
    committed = cli_commit(cli, &plan);
    if (committed != HF_OK && committed != HF_ECONFLICT)
        return committed;
    rc = cli_read_task(cli, task->id, &record);
    if (rc != HF_OK)
        return rc;
    return committed == HF_OK ? cli_print_task(cli, cli_task_of(&record))
                              : compare_with_old(cli, task, cli_task_of(&record));
}

static int run(struct cli *cli)
{
    const struct settings *settings = cli->settings;
    HF_CLEANUP_BUF struct hf_buf payload = { .limit = 4 * HF_BODY_MAX };
    struct labels labels = { .count = 0 };
    Holdfast__V1__Task task = HOLDFAST__V1__TASK__INIT;
    Google__Protobuf__Timestamp expected, deadline;
    char id[HF_ID_LEN + 1];
    int rc = HF_OK;

    if (settings->role == NULL)
        return cli_fail(cli, HF_EINVAL, "--role is missing: say which agents may take it");
    if (settings->id == NULL)
        rc = hf_id_new(id);
    if (rc == HF_OK && settings->payload != NULL)
        rc = read_payload(cli, settings->payload, &payload);
    if (rc == HF_OK)
        rc = check_payload(cli, &payload);
    if (rc == HF_OK)
        rc = parse_labels(cli, &settings->labels, &labels);
    if (rc == HF_OK) {
        task.id = settings->id != NULL ? (char *)settings->id : id;
        task.role = (char *)settings->role;
        task.priority = (int32_t)settings->priority;
        task.payload = payload.data != NULL ? payload.data : (char *)"";
        task.labels = labels.list;
        task.n_labels = labels.count;
        if (settings->expected > 0)
            task.expected_completion =
                hf_moment_write(hf_clock_wall() + settings->expected, &expected);
        if (settings->deadline > 0)
            task.deadline = hf_moment_write(hf_clock_wall() + settings->deadline, &deadline);
        rc = submit(cli, &task, settings->queued);
    }
    free_labels(&labels);
    return rc;
}

const struct cli_command CLI_TASK_SUBMIT = {
    .name = "task submit",
    .args = "",
    .summary = "Submit a task for agents of a role.",
    CLI_OPTIONS(TABLE, struct settings),
    .run = run,
};
