#include <string.h>
#include <strings.h>

#include "cli/audit.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "holdfast/v1/cli.pb-c.h"
#include "schema/json.h"

/* Status: the newest word of the audit trail on it, if it is of the present leader. */

struct newest {
    Holdfast__V1__Event *event; /* taken */
};

static int on_event(struct hf_fleet_change *found, void *arg)
{
    Holdfast__V1__Event *event = (Holdfast__V1__Event *)found->record;
    struct newest *newest = arg;

    /* A leader begins in calm: what the one before it said is over. */
    if (event->kind != HOLDFAST__V1__EVENT__KIND__storm &&
        event->kind != HOLDFAST__V1__EVENT__KIND__leader)
        return HF_OK;
    hf_json_free(newest->event != NULL ? &newest->event->base : NULL);
    newest->event = event;
    found->record = NULL;
    return HF_OK;
}

static Holdfast__V1__StormStatus__State state_of(const Holdfast__V1__Event *event)
{
    if (event == NULL || event->kind != HOLDFAST__V1__EVENT__KIND__storm)
        return HOLDFAST__V1__STORM_STATUS__STATE__normal;
    if (strncasecmp(event->why, "full", 4) == 0)
        return HOLDFAST__V1__STORM_STATUS__STATE__full;
    if (strncasecmp(event->why, "partial", 7) == 0)
        return HOLDFAST__V1__STORM_STATUS__STATE__partial;
    return HOLDFAST__V1__STORM_STATUS__STATE__normal;
}

static int print(struct cli *cli, const Holdfast__V1__Event *event)
{
    static const char *const NAMES[] = { "normal", "partial", "full" };
    Holdfast__V1__StormStatus status = HOLDFAST__V1__STORM_STATUS__INIT;
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    char text[CLI_AGE_SIZE];

    status.state = state_of(event);
    if (event != NULL)
        status.since = event->at;
    if (event != NULL && event->next != NULL)
        status.until = event->next->at;
    if (cli->output == CLI_JSON)
        return cli_out_json(cli, &status.base);
    cli_out_field(&out, "state", "%s", NAMES[status.state]);
    cli_out_field(&out, "since", "%s", cli_time(status.since, text));
    if (status.state != HOLDFAST__V1__STORM_STATUS__STATE__normal) {
        cli_out_field(&out, "why", "%s", event->why);
        cli_out_field(&out, "next", "%s", event->next != NULL ? event->next->what : "");
    }
    return cli_out_text(cli, &out);
}

static int run_status(struct cli *cli)
{
    struct newest newest = { NULL };
    int rc = cli_list(cli, HF_KEY_IN_EVENTS, NULL, on_event, &newest);

    if (rc == HF_OK)
        rc = print(cli, newest.event);
    hf_json_free(newest.event != NULL ? &newest.event->base : NULL);
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
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    int rc = cli_act(cli, &(struct cli_act){ .fill = fill, .what = what });

    if (rc != HF_OK || cli->output == CLI_JSON)
        return rc;
    hf_buf_printf(&out, "%s\n", then);
    return cli_out_text(cli, &out);
}

static int run_proceed(struct cli *cli)
{
    return say(cli, "storm proceed", "The leader goes on at the slow rate.");
}

static int run_hold(struct cli *cli)
{
    return say(cli, "storm hold",
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
