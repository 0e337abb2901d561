#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/store.h"
#include "etcd/survey.h"

enum finding { FINE, WARNING, TROUBLE };

struct doctor {
    struct cli *cli;
    struct hf_buf out;
    unsigned troubles;
    size_t held, needs_review, lost_hosts, waiting; /* tasks whose role has no live agent */
};

static void HF_PRINTF(3, 4)
    found(struct doctor *doctor, enum finding finding, const char *fmt, ...)
{
    static const struct {
        const char *word;
        enum cli_colour colour;
    } MARKS[] = { { "ok      ", CLI_GOOD }, { "warning ", CLI_WARN }, { "trouble ", CLI_BAD } };
    HF_CLEANUP_FREE char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    cli_out_colour(&doctor->out, MARKS[finding].colour, MARKS[finding].word);
    hf_buf_printf(&doctor->out, "%s\n", text != NULL ? text : "?");
    doctor->troubles += finding == TROUBLE;
}

/* etcd. */

struct asked {
    struct doctor *doctor;
    bool done;
    int err;
};

static void on_status(const struct hf_status_result *result, void *arg)
{
    struct asked *asked = arg;
    struct doctor *doctor = asked->doctor;
    char endpoint[HF_HOST_MAX + 8];

    hf_etcd_get_endpoint(doctor->cli->etcd, endpoint, sizeof endpoint);
    asked->done = true;
    asked->err = cli_explain(doctor->cli, &result->result);
    if (asked->err != HF_OK)
        return;
    found(doctor, FINE, "etcd %s answers at %s; its database has %" PRId64 " MiB",
          result->version, endpoint, result->db_bytes >> 20);
    if (result->leader == 0)
        found(doctor, TROUBLE, "that member knows no leader: the others cannot be reached");
    for (size_t i = 0; i < result->alarm_count; i++)
        found(doctor, TROUBLE, "etcd raises an alarm: %s. See etcdctl alarm list.",
              result->alarms[i]);
}

static void on_survey(const struct hf_survey_result *result, void *arg)
{
    struct asked *asked = arg;

    asked->done = true;
    if (result->result.err != HF_OK || result->answered < result->asked)
        found(asked->doctor, TROUBLE, "of %zu members of etcd %zu answer", result->asked,
              result->answered);
    else if (!result->agrees)
        found(asked->doctor, WARNING, "the members of etcd do not agree at the moment");
    else
        found(asked->doctor, FINE, "all %zu members of etcd agree", result->asked);
}

static int examine_etcd(struct doctor *doctor)
{
    struct cli *cli = doctor->cli;
    struct asked status = { .doctor = doctor }, survey = { .doctor = doctor };
    struct hf_survey *handle;
    int rc = hf_etcd_status(cli->etcd, on_status, &status, NULL);

    if (rc == HF_OK)
        (void)!cli_wait(cli, &status.done, INT64_MAX);
    if (rc != HF_OK || status.err != HF_OK)
        return rc != HF_OK ? rc : status.err;
    rc = hf_etcd_survey(cli->etcd, on_survey, &survey, &handle);
    if (rc == HF_OK)
        (void)!cli_wait(cli, &survey.done, INT64_MAX);
    return rc;
}

/* The controllers. */

static int examine_leader(struct doctor *doctor)
{
    CLI_CLEANUP_RECORD struct cli_record leader = { 0 };
    int rc = cli_read(doctor->cli, (struct hf_key){ .kind = HF_KEY_LEADER }, &leader);

    if (rc != HF_OK)
        return rc;
    if (leader.message == NULL)
        found(doctor, TROUBLE,
              "nobody leads: nothing is recovered. Start holdfast-controller.");
    else
        found(doctor, FINE, "%s leads", ((const Holdfast__V1__Leader *)leader.message)->id);
    return HF_OK;
}

/* The fleet. */

static void examine_object(enum hf_fleet_kind kind, void *object, void *arg)
{
    struct doctor *doctor = arg;
    const struct hf_host *host = object;
    const struct hf_role *role = object;
    const Holdfast__V1__Health *health;
    const Holdfast__V1__Task *task;

    switch (kind) {
    case HF_FLEET_AGENT:
        health = hf_agent_health(object);
        doctor->held += health != NULL && health->held;
        break;
    case HF_FLEET_TASK:
        task = hf_task_record(object);
        doctor->needs_review +=
            task != NULL && task->state == HOLDFAST__V1__TASK__STATE__needs_review;
        break;
    case HF_FLEET_HOST:
        doctor->lost_hosts += host->live.record == NULL && host->record.record != NULL &&
                              !hf_host_record(host)->left;
        break;
    case HF_FLEET_ROLE:
        if (role->pending_count > 0 && role->live_count == 0)
            found(doctor, WARNING, "%zu tasks wait for role %s, of which no agent is live",
                  role->pending_count, role->name);
        break;
    }
}

static int examine_fleet(struct doctor *doctor)
{
    static const enum hf_key_scope SCOPES[] = { HF_KEY_IN_HOSTS, HF_KEY_IN_AGENTS,
                                                HF_KEY_IN_HEALTH, HF_KEY_IN_TASKS };
    struct hf_fleet *fleet = NULL;
    struct hf_fleet_counts counts;
    int rc = cli_load_fleet(doctor->cli, SCOPES, sizeof SCOPES / sizeof SCOPES[0], &fleet);

    if (rc != HF_OK)
        return rc;
    counts = hf_fleet_get_counts(fleet);
    found(doctor, FINE, "%zu of %zu hosts and %zu of %zu agents are live, %zu tasks are known",
          counts.live_hosts, counts.hosts, counts.live_agents, counts.agents, counts.tasks);
    for (enum hf_fleet_kind kind = 0; kind <= HF_FLEET_ROLE; kind++)
        hf_fleet_each(fleet, kind, examine_object, doctor);
    if (doctor->lost_hosts > 0)
        found(doctor, WARNING, "%zu hosts are gone without having said goodbye: holdfast hosts",
              doctor->lost_hosts);
    if (doctor->held > 0)
        found(doctor, TROUBLE, "%zu agents are held: holdfast ps; holdfast restart AGENT",
              doctor->held);
    if (doctor->needs_review > 0)
        found(doctor, TROUBLE, "%zu tasks need a person: holdfast task ls --state needs_review",
              doctor->needs_review);
    if (doctor->cli->bad > 0)
        found(doctor, TROUBLE, "%u records cannot be read (named above): correct them",
              doctor->cli->bad);
    hf_fleet_free(fleet);
    return HF_OK;
}

static int run(struct cli *cli)
{
    struct doctor doctor = { .cli = cli };
    int rc = examine_etcd(&doctor);

    if (rc == HF_OK)
        rc = examine_leader(&doctor);
    if (rc == HF_OK)
        rc = examine_fleet(&doctor);
    if (rc == HF_OK)
        rc = cli_out_text(cli, &doctor.out);
    hf_buf_done(&doctor.out);
    cli->status = doctor.troubles > 0 ? CLI_EXIT_FAILURE : 0;
    return rc;
}

const struct cli_command CLI_DOCTOR = {
    .name = "doctor",
    .args = "",
    .summary = "Examine etcd, the controllers and the fleet, and say what to do.",
    .run = run,
};
