#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/out.h"
#include "cli/store.h"
#include "holdfast/v1/cli.pb-c.h"

/* What is wrong in the fleet, counted. */
struct examination {
    struct doctor doctor;
    size_t held, needs_review, lost_hosts;
};

/* The report. */

struct doctor_line {
    enum doctor_finding finding;
    char *text;
};

static const struct {
    const char *word;
    enum cli_colour colour;
} MARKS[] = { { "ok", CLI_GOOD }, { "warning", CLI_WARN }, { "trouble", CLI_BAD } };

enum { MARK_WIDTH = 8 };

void doctor_found(struct doctor *doctor, enum doctor_finding finding, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    doctor->troubles += finding == DOCTOR_TROUBLE;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    if (text == NULL ||
        !hf_grow(&doctor->lines, &doctor->cap, doctor->count + 1, sizeof *doctor->lines)) {
        free(text);
        doctor->err = HF_ENOMEM;
        return;
    }
    doctor->lines[doctor->count++] = (struct doctor_line){ .finding = finding, .text = text };
}

static int print_text(const struct doctor *doctor)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    char word[MARK_WIDTH + 1];

    for (size_t i = 0; i < doctor->count; i++) {
        const struct doctor_line *line = &doctor->lines[i];

        (void)snprintf(word, sizeof word, "%-*s", MARK_WIDTH, MARKS[line->finding].word);
        cli_out_colour(&out, MARKS[line->finding].colour, word);
        cli_out_wrapped(&out, MARK_WIDTH, line->text);
    }
    return cli_out_text(doctor->cli, &out);
}

static int print_json(const struct doctor *doctor)
{
    Holdfast__V1__Examination all = HOLDFAST__V1__EXAMINATION__INIT;
    HF_CLEANUP_FREE Holdfast__V1__Examination__Line *lines =
        hf_calloc(doctor->count + 1, sizeof *lines);
    HF_CLEANUP_FREE Holdfast__V1__Examination__Line **list =
        hf_calloc(doctor->count + 1, sizeof(Holdfast__V1__Examination__Line *));

    if (lines == NULL || list == NULL)
        return HF_ENOMEM;
    for (size_t i = 0; i < doctor->count; i++) {
        list[i] = &lines[i];
        holdfast__v1__examination__line__init(&lines[i]);
        lines[i].finding = (char *)MARKS[doctor->lines[i].finding].word;
        lines[i].text = doctor->lines[i].text;
    }
    all.ok = doctor->troubles == 0;
    all.findings = list;
    all.n_findings = doctor->count;
    return cli_out_json(doctor->cli, &all.base);
}

static void forget(struct doctor *doctor)
{
    for (size_t i = 0; i < doctor->count; i++)
        free(doctor->lines[i].text);
    free(doctor->lines);
}

/* The controllers. */

static int examine_leader(struct doctor *doctor)
{
    CLI_CLEANUP_RECORD struct cli_record leader = { 0 };
    int rc = cli_read(doctor->cli, (struct hf_key){ .kind = HF_KEY_LEADER }, &leader);

    if (rc != HF_OK)
        return rc;
    if (leader.message == NULL)
        doctor_found(doctor, DOCTOR_TROUBLE,
                     "nobody leads: nothing is recovered. Start holdfast-controller.");
    else
        doctor_found(doctor, DOCTOR_FINE, "%s leads",
                     ((const Holdfast__V1__Leader *)leader.message)->id);
    return HF_OK;
}

/* The fleet. */

static void examine_object(enum hf_fleet_kind kind, void *object, void *arg)
{
    struct examination *e = arg;
    const struct hf_host *host = object;
    const struct hf_role *role = object;
    const Holdfast__V1__Health *health;
    const Holdfast__V1__Task *task;

    switch (kind) {
    case HF_FLEET_AGENT:
        health = hf_agent_health(object);
        e->held += health != NULL && health->held;
        break;
    case HF_FLEET_TASK:
        task = hf_task_record(object);
        e->needs_review +=
            task != NULL && task->state == HOLDFAST__V1__TASK__STATE__needs_review;
        break;
    case HF_FLEET_HOST:
        e->lost_hosts += host->live.record == NULL && host->record.record != NULL &&
                         !hf_host_record(host)->left;
        break;
    case HF_FLEET_ROLE:
        if (role->pending_count > 0 && role->live_count == 0)
            doctor_found(&e->doctor, DOCTOR_WARNING,
                         "%zu tasks wait for role %s, of which no agent is live",
                         role->pending_count, role->name);
        break;
    }
}

static int examine_fleet(struct examination *e)
{
    static const enum hf_key_scope SCOPES[] = { HF_KEY_IN_HOSTS, HF_KEY_IN_AGENTS,
                                                HF_KEY_IN_HEALTH, HF_KEY_IN_TASKS };
    struct hf_fleet *fleet = NULL;
    struct hf_fleet_counts counts;
    int rc = cli_load_fleet(e->doctor.cli, SCOPES, sizeof SCOPES / sizeof SCOPES[0], &fleet);

    if (rc != HF_OK)
        return rc;
    counts = hf_fleet_get_counts(fleet);
    doctor_found(&e->doctor, DOCTOR_FINE,
                 "%zu of %zu hosts and %zu of %zu agents are live, %zu tasks are known",
                 counts.live_hosts, counts.hosts, counts.live_agents, counts.agents,
                 counts.tasks);
    for (enum hf_fleet_kind kind = 0; kind <= HF_FLEET_ROLE; kind++)
        hf_fleet_each(fleet, kind, examine_object, e);
    if (e->lost_hosts > 0)
        doctor_found(&e->doctor, DOCTOR_WARNING,
                     "%zu hosts are gone without having said goodbye: holdfast hosts",
                     e->lost_hosts);
    if (e->held > 0)
        doctor_found(&e->doctor, DOCTOR_TROUBLE,
                     "%zu agents are held: holdfast ps; holdfast restart AGENT", e->held);
    if (e->needs_review > 0)
        doctor_found(&e->doctor, DOCTOR_TROUBLE,
                     "%zu tasks need a person: holdfast task ls --state needs_review",
                     e->needs_review);
    if (e->doctor.cli->bad > 0)
        doctor_found(&e->doctor, DOCTOR_TROUBLE,
                     "%u records cannot be read (named above): correct them",
                     e->doctor.cli->bad);
    hf_fleet_free(fleet);
    return HF_OK;
}

static int run(struct cli *cli)
{
    struct examination e = { .doctor.cli = cli };
    int rc;

    doctor_examine_certificate(&e.doctor);
    rc = doctor_examine_etcd(&e.doctor);
    if (rc == HF_OK) {
        doctor_examine_web(&e.doctor);
        rc = examine_leader(&e.doctor);
    }
    if (rc == HF_OK)
        rc = examine_fleet(&e);
    if (rc == HF_OK)
        rc = e.doctor.err;
    if (rc == HF_OK)
        rc = cli->output == CLI_JSON ? print_json(&e.doctor) : print_text(&e.doctor);
    else if (e.doctor.troubles > 0 && cli->output != CLI_JSON)
        (void)!print_text(&e.doctor); /* it may be why */
    forget(&e.doctor);
    cli->status = e.doctor.troubles > 0 ? CLI_EXIT_FAILURE : 0;
    return rc;
}

const struct cli_command CLI_DOCTOR = {
    .name = "doctor",
    .args = "",
    .summary = "Examine etcd, the controllers and the fleet, and say what to do.",
    .nameless = true,
    .run = run,
};
