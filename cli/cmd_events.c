#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "cli/agents.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/trail.h"
#include "core/moments.h"

struct settings {
    bool follow;
    hf_ms since;
    const char *agent, *task;
};

static const struct hf_option TABLE[] = {
    { .flag = "follow",
      .letter = 'f',
      HF_OPTION_FIELD(BOOL, struct settings, follow),
      .help = "Go on with what happens from now on." },
    { .flag = "since",
      .value = "DURATION",
      HF_OPTION_FIELD(DURATION, struct settings, since),
      .min = 0,
      .max = HF_DURATION_MAX,
      .help = "Only what happened in this time; without it, everything that is kept." },
    { .flag = "agent",
      .value = "AGENT",
      HF_OPTION_FIELD(NAME, struct settings, agent),
      .help = "Only what is about this agent." },
    { .flag = "task",
      .value = "TASK",
      HF_OPTION_FIELD(NAME, struct settings, task),
      .help = "Only what is about this task." },
};

struct events {
    struct cli *cli;
    const struct settings *settings;
    hf_ms after_wall;
    int64_t seen; /* the newest that was printed: a list may tell it again */
};

static int print_name(struct cli *cli, int64_t seq)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    hf_buf_printf(&out, "%" PRId64 "\n", seq);
    return cli_out_text(cli, &out);
}

static int print(struct cli *cli, const Holdfast__V1__Event *event, int64_t seq)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    char time[CLI_AGE_SIZE], kind[64];

    if (cli->output == CLI_JSON)
        return cli_out_json_line(cli, &event->base);
    if (cli->output == CLI_NAME)
        return print_name(cli, seq);
    hf_buf_printf(&out, "%s  ", cli_time(event->at, time));
    (void)snprintf(kind, sizeof kind, "%-15s", cli_event_name(event->kind));
    cli_out_colour(&out, cli_event_colour(event->kind), kind);
    hf_buf_puts(&out, "  ");
    cli_event_write(&out, event);
    if (cli->output == CLI_WIDE)
        hf_buf_printf(&out, "  (by %s)", event->actor);
    hf_buf_putc(&out, '\n');
    return cli_out_text(cli, &out);
}

static bool is_wanted(const struct events *events, const Holdfast__V1__Event *event)
{
    const struct settings *wanted = events->settings;

    return hf_moment_read(event->at) >= events->after_wall &&
           (wanted->agent == NULL || strcmp(wanted->agent, event->agent) == 0) &&
           (wanted->task == NULL || strcmp(wanted->task, event->task) == 0);
}

static int on_event(struct hf_fleet_change *found, void *arg)
{
    const Holdfast__V1__Event *event = (const Holdfast__V1__Event *)found->record;
    struct events *events = arg;

    if (event == NULL || found->key.kind != HF_KEY_EVENT || found->key.seq <= events->seen)
        return HF_OK;
    events->seen = found->key.seq;
    return is_wanted(events, event) ? print(events->cli, event, found->key.seq) : HF_OK;
}

static int run(struct cli *cli)
{
    const struct settings *settings = cli->settings;
    struct events events = {
        .cli = cli,
        .settings = settings,
        .after_wall = settings->since > 0 ? hf_clock_wall() - settings->since : INT64_MIN,
    };
    bool never = false;

    if (!settings->follow)
        return cli_list(cli, HF_KEY_IN_EVENTS, NULL, on_event, &events);
    return cli_follow(
        cli, &(struct hf_intent_read){ .whole_scope = true, .scope = HF_KEY_IN_EVENTS },
        on_event, &events, &never, INT64_MAX);
}

const struct cli_command CLI_EVENTS = {
    .name = "events",
    .args = "",
    .summary = "Show the audit trail: what was decided, when and why.",
    .more = "With -o name the number of each event alone, which its key in etcd ends with.",
    CLI_OPTIONS(TABLE, struct settings),
    .run = run,
};
