#include <string.h>
#include <strings.h>

#include "cli/audit.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "core/storm.h"
#include "holdfast/v1/cli.pb-c.h"
#include "schema/json.h"

/* Status: the newest word of the audit trail on it. Every leader tells of a storm that begins,
 * changes or ends; one that takes over tells of what is not so any more. */

struct newest {
    Holdfast__V1__Event *first; /* taken: of those that tell of the same state, */
    Holdfast__V1__Event *last;  /* and the newest of them; may be the same */
};

static Holdfast__V1__StormStatus__State state_of(const Holdfast__V1__Event *event)
{
    if (event == NULL)
        return HOLDFAST__V1__STORM_STATUS__STATE__normal;
    if (strncasecmp(event->why, "full", 4) == 0)
        return HOLDFAST__V1__STORM_STATUS__STATE__full;
    if (strncasecmp(event->why, "partial", 7) == 0)
        return HOLDFAST__V1__STORM_STATUS__STATE__partial;
    return HOLDFAST__V1__STORM_STATUS__STATE__normal;
}

static void free_event(Holdfast__V1__Event *event)
{
    hf_json_free(event != NULL ? &event->base : NULL);
}

static int on_event(struct hf_fleet_change *found, void *arg)
{
    Holdfast__V1__Event *event = (Holdfast__V1__Event *)found->record;
    struct newest *newest = arg;

    if (event->kind != HOLDFAST__V1__EVENT__KIND__storm)
        return HF_OK;
    if (newest->last != newest->first)
        free_event(newest->last);
    if (newest->first == NULL || state_of(newest->first) != state_of(event)) {
        free_event(newest->first);
        newest->first = event;
    }
    newest->last = event;
    found->record = NULL;
    return HF_OK;
}

static int print(struct cli *cli, const struct newest *newest)
{
    const Holdfast__V1__Event *event = newest->last;
    static const char *const NAMES[] = { "normal", "partial", "full" };
    Holdfast__V1__StormStatus status = HOLDFAST__V1__STORM_STATUS__INIT;
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    char text[CLI_AGE_SIZE];

    status.state = state_of(event);
    if (event != NULL)
        status.since = newest->first->at;
    if (event != NULL && event->next != NULL)
        status.until = event->next->at;
    if (cli->output == CLI_JSON)
        return cli_out_json(cli, &status.base);
    if (cli->output == CLI_NAME) {
        hf_buf_printf(&out, "%s\n", NAMES[status.state]);
        return cli_out_text(cli, &out);
    }
    cli_out_field(&out, "state", "%s", NAMES[status.state]);
    cli_out_field(&out, "since", "%s", cli_time(status.since, text));
    if (status.state != HOLDFAST__V1__STORM_STATUS__STATE__normal) {
        cli_out_field(&out, "why", "%s", event->why);
        cli_out_field(&out, "next", "%s", event->next != NULL ? event->next->what : "");
        if (status.until != NULL)
            cli_out_field(&out, "until", "%s, if nothing else happens",
                          cli_time(status.until, text));
    }
    return cli_out_text(cli, &out);
}

static int run_status(struct cli *cli)
{
    struct newest newest = { .last = NULL };
    int rc = cli_list(cli, HF_KEY_IN_EVENTS, NULL, on_event, &newest);

    if (rc == HF_OK)
        rc = print(cli, &newest);
    if (newest.last != newest.first)
        free_event(newest.last);
    free_event(newest.first);
    return rc;
}

const struct cli_command CLI_STORM_STATUS = {
    .name = "storm status",
    .args = "",
    .summary = "Show whether so many vanished at once that restarts are paced or held.",
    .run = run_status,
};

/* A person's word: an entry of the audit trail, which the leader obeys. */

static int fill(struct cli *cli, struct hf_plan *plan, void *arg)
{
    CLI_CLEANUP_RECORD struct cli_record leader = { 0 };
    int rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_LEADER }, &leader);

    (void)arg;
    if (rc != HF_OK)
        return rc;
    if (leader.message == NULL)
        return cli_fail(cli, HF_ENOENT,
                        "nobody leads who could obey. Start holdfast-controller.");
    hf_plan_guard(plan, (struct hf_key){ .kind = HF_KEY_LEADER }, HF_GUARD_CREATE,
                  leader.seen.create_rev);
    return HF_OK;
}

static int say(struct cli *cli, const char *what, const char *then)
{
    int rc = cli_act(cli, &(struct cli_act){ .fill = fill, .what = what });

    return rc == HF_OK ? cli_out_done(cli, "storm", what + strlen("storm "), then) : rc;
}

static int run_proceed(struct cli *cli)
{
    return say(cli, HF_STORM_WORD_PROCEED, "The leader goes on at the slow rate.");
}

static int run_hold(struct cli *cli)
{
    return say(cli, HF_STORM_WORD_HOLD,
               "The leader resets and restarts nothing that rests on silence, until somebody "
               "says holdfast storm proceed.");
}

const struct cli_command CLI_STORM_PROCEED = {
    .name = "storm proceed",
    .args = "",
    .summary = "Let restarts go on although many vanished at once.",
    .run = run_proceed,
};

const struct cli_command CLI_STORM_HOLD = {
    .name = "storm hold",
    .args = "",
    .summary = "Hold restarts of agents that nobody saw die.",
    .run = run_hold,
};
