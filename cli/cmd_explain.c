#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/agents.h"
#include "cli/commands.h"
#include "cli/explain.h"
#include "cli/tasks.h"
#include "core/moments.h"
#include "core/rows.h"
#include "core/task.h"
#include "schema/json.h"

static const char UNKNOWN_WANT[] = "in a way that this version does not know";

#define EVIDENCE(record) (const Holdfast__V1__Evidence *const *)(record)->evidence

/* Takes a message out of a record whose text is no longer needed. */
static ProtobufCMessage *take(struct cli_record *record)
{
    return hf_steal(&record->message);
}

/* Agents: the newest of each kind of record, and what it says. */

struct agent {
    struct cli_record spec, live, report, exit, wanted, health;
};

static void forget(struct agent *agent)
{
    cli_record_done(&agent->spec);
    cli_record_done(&agent->live);
    cli_record_done(&agent->report);
    cli_record_done(&agent->exit);
    cli_record_done(&agent->wanted);
    cli_record_done(&agent->health);
}

/* What an agent said and how it ended only tells more; without the rest it is not known how it
 * stands. */
static bool is_dispensable(enum hf_key_kind kind)
{
    return kind == HF_KEY_AGENT_REPORT || kind == HF_KEY_AGENT_EXIT;
}

static int dispense(struct cli *cli, int rc)
{
    if (rc != HF_ECORRUPT)
        return rc;
    (void)fprintf(stderr, "holdfast: warning: %s\n", cli->err.text);
    cli->bad++;
    return HF_OK;
}

static int learn(struct cli *cli, const char *name, struct agent *agent)
{
    const struct {
        enum hf_key_kind kind;
        struct cli_record *record;
    } PARTS[] = { { HF_KEY_AGENT_SPEC, &agent->spec },     { HF_KEY_AGENT_LIVE, &agent->live },
                  { HF_KEY_AGENT_REPORT, &agent->report }, { HF_KEY_AGENT_EXIT, &agent->exit },
                  { HF_KEY_WANTED, &agent->wanted },       { HF_KEY_HEALTH, &agent->health } };
    int rc = HF_OK;

    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0] && rc == HF_OK; i++) {
        rc = cli_read(cli, (struct hf_key){ .kind = PARTS[i].kind, .name = name },
                      PARTS[i].record);
        if (is_dispensable(PARTS[i].kind))
            rc = dispense(cli, rc);
    }
    return rc;
}

/* What followed without an order. */
static const char *describe_heir(const struct agent *agent)
{
    const Holdfast__V1__Exit *end = (const Holdfast__V1__Exit *)agent->exit.message;
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)agent->health.message;

    if (end == NULL || end->succession == NULL)
        return "";
    if (!end->succession->done)
        return "; its agentd starts it again at once, with the leader's leave";
    return health != NULL && health->heir_of == end->succession->heir_of
               ? "; restarted at once by its agentd, with the leader's leave, and not counted "
                 "yet"
               : "; restarted at once by its agentd, with the leader's leave; counted by the "
                 "leader";
}

static int add_life(struct cli_chain *chain, struct agent *agent)
{
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)agent->live.message;
    const Holdfast__V1__Exit *end = (const Holdfast__V1__Exit *)agent->exit.message;
    int rc = HF_OK;

    if (live != NULL)
        rc = cli_chain_add(chain, NULL, agent->live.seen.create_rev, NULL, NULL, 0,
                           "registered on %s as pid %d, alive while lease %llx is held",
                           live->host, live->pid, (unsigned long long)agent->live.seen.lease);
    if (live != NULL)
        cli_chain_date(chain, &live->base);
    if (rc == HF_OK && end != NULL)
        rc = cli_chain_add(
            chain, end->n_evidence > 0 ? end->evidence[0]->at : NULL, agent->exit.seen.mod_rev,
            take(&agent->exit), EVIDENCE(end), end->n_evidence,
            "%s: life %lld ended (status %d, signal %d)%s", cli_exit_name(end->kind),
            end->incarnation != NULL ? (long long)end->incarnation->create_revision : 0,
            end->status, end->signal, describe_heir(agent));
    return rc;
}

/* What became of what it was last asked. */
static int add_receipt(struct cli_chain *chain, hf_rev revision,
                       const Holdfast__V1__Report *report)
{
    const Holdfast__V1__Report__Nudge *nudge = report->nudge;
    const Holdfast__V1__Report__Delivery *delivered = nudge->delivered;
    char at[CLI_AGE_SIZE], read_at[CLI_AGE_SIZE];
    int rc =
        cli_chain_add(chain, NULL, revision, NULL, NULL, 0, "nudge %s: %s%s%s%s, %s%s",
                      nudge->id, delivered != NULL ? "delivered by " : "not delivered yet",
                      delivered != NULL ? delivered->by : "", delivered != NULL ? " at " : "",
                      delivered != NULL ? cli_time(delivered->at, at) : "",
                      nudge->read_at != NULL ? "read at " : "not read yet",
                      nudge->read_at != NULL ? cli_time(nudge->read_at, read_at) : "");

    cli_chain_date(chain, &report->base);
    return rc;
}

/* "parked until 12:00:00 (the provider asks to wait), phase drafting" */
static void describe_words(const Holdfast__V1__Report *report, struct hf_buf *out)
{
    char text[CLI_AGE_SIZE];

    if (report->state != 0)
        hf_buf_printf(out, "%s", cli_state_name(report->state));
    if (report->until != NULL)
        hf_buf_printf(out, " until %s", cli_time(report->until, text));
    if (report->reason[0] != '\0')
        hf_buf_printf(out, "%s(%s)", out->len > 0 ? " " : "", report->reason);
    if (report->phase[0] != '\0')
        hf_buf_printf(out, "%sphase %s", out->len > 0 ? ", " : "", report->phase);
}

/* The steps point into the report, which goes with the last of them. */
static int add_report(struct cli_chain *chain, struct agent *agent,
                      const Holdfast__V1__Report *report)
{
    const Holdfast__V1__Report__Suspicion *suspicion = report->suspicion;
    bool is_old = agent->live.message != NULL && report->incarnation != NULL &&
                  !cli_is_report_of(report, agent->live.seen.create_rev);
    HF_CLEANUP_BUF struct hf_buf words = { 0 };
    hf_rev revision = agent->report.seen.mod_rev;
    int rc = HF_OK;

    describe_words(report, &words);
    if (words.err == HF_OK && words.len > 0)
        rc = cli_chain_add(chain, report->said_at != NULL ? report->said_at : report->at,
                           revision, suspicion == NULL ? take(&agent->report) : NULL, NULL, 0,
                           "said of itself%s: %s", is_old ? " in a life before" : "",
                           words.data);
    if (rc != HF_OK || suspicion == NULL)
        return rc;
    return cli_chain_add(chain, report->at, revision, take(&agent->report), EVIDENCE(suspicion),
                         suspicion->n_evidence, "%s by its agentd (%s, phi %.1f)%s: %s",
                         suspicion->frozen ? "found frozen" : "suspected", suspicion->kind,
                         suspicion->phi, is_old ? " in a life before" : "", suspicion->why);
}

static int add_words(struct cli_chain *chain, struct agent *agent)
{
    const Holdfast__V1__Spec *spec = (const Holdfast__V1__Spec *)agent->spec.message;
    const Holdfast__V1__Report *report = (const Holdfast__V1__Report *)agent->report.message;
    const Holdfast__V1__Wanted *wanted = (const Holdfast__V1__Wanted *)agent->wanted.message;
    int rc = HF_OK;

    if (spec != NULL)
        rc = cli_chain_add(chain, NULL, agent->spec.seen.mod_rev, NULL, NULL, 0,
                           "described: role %s, launcher %s, home %s", spec->role,
                           spec->launcher, spec->home[0] != '\0' ? spec->home : "anywhere");
    if (spec != NULL)
        cli_chain_date(chain, &spec->base);
    if (rc == HF_OK && report != NULL && report->nudge != NULL)
        rc = add_receipt(chain, agent->report.seen.mod_rev, report);
    if (rc == HF_OK && report != NULL)
        rc = add_report(chain, agent, report);
    if (rc == HF_OK && wanted != NULL)
        rc = cli_chain_add(
            chain, NULL, agent->wanted.seen.mod_rev, NULL, NULL, 0, "wanted %s by %s%s%s",
            wanted->state == HOLDFAST__V1__WANTED__STATE__stopped   ? "stopped"
            : wanted->state == HOLDFAST__V1__WANTED__STATE__running ? "running"
                                                                    : UNKNOWN_WANT,
            wanted->by, wanted->reason[0] != '\0' ? ": " : "", wanted->reason);
    if (wanted != NULL)
        cli_chain_date(chain, &wanted->base);
    return rc;
}

static const Holdfast__V1__Report__Suspicion *suspicion_of(const struct agent *agent)
{
    return cli_suspicion_of((const Holdfast__V1__Report *)agent->report.message,
                            agent->live.message != NULL ? agent->live.seen.create_rev : 0);
}

static void judge(const struct agent *agent, char *verdict, size_t size)
{
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)agent->health.message;
    const Holdfast__V1__Wanted *wanted = (const Holdfast__V1__Wanted *)agent->wanted.message;
    bool live = agent->live.message != NULL;
    const Holdfast__V1__Report__Suspicion *suspicion = suspicion_of(agent);

    if (health != NULL && health->held)
        (void)snprintf(verdict, size, "held: %s", health->why);
    else if (wanted != NULL && wanted->state == HOLDFAST__V1__WANTED__STATE__stopped)
        (void)snprintf(verdict, size, "%s: it is wanted stopped",
                       live ? "stopping" : "stopped");
    else if (suspicion != NULL)
        (void)snprintf(verdict, size, "%s: %s", suspicion->frozen ? "frozen" : "suspect",
                       suspicion->why);
    else if (live && (health == NULL || health->state <= HOLDFAST__V1__HEALTH__STATE__healthy))
        (void)snprintf(verdict, size, "healthy: its lease is held");
    else if (health != NULL)
        (void)snprintf(verdict, size, "%s: %s", cli_health_name(health->state), health->why);
    else
        (void)snprintf(verdict, size, "not live: nothing holds a lease for it");
}

/* As the fleet would have it, borrowed from the records. */
static struct hf_agent as_agent(const struct agent *agent)
{
    struct hf_agent view = { .name = "" };

    view.live.record = agent->live.message;
    view.exit.record = agent->exit.message;
    view.wanted.record = agent->wanted.message;
    view.health.record = agent->health.message;
    return view;
}

/* Behind a verdict: since when. */
static void add_since(const struct agent *agent, char *verdict, size_t size)
{
    struct hf_agent view = as_agent(agent);
    Google__Protobuf__Timestamp at;
    char text[CLI_AGE_SIZE];
    size_t len = strlen(verdict);
    hf_ms since = cli_agent_since(&view);

    if (since != 0)
        (void)snprintf(verdict + len, size - len, "; %s since %s",
                       agent->live.message != NULL ? "registered" : "offline",
                       cli_time(hf_moment_write(since, &at), text));
}

static int explain_agent(struct cli *cli, struct agent *agent)
{
    struct cli_chain chain = { .cli = cli, .agent = cli->args[0] };
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)agent->health.message;
    struct hf_agent view = as_agent(agent);
    struct hf_outlook outlook = hf_outlook_agent(&view);
    const Holdfast__V1__Report__Suspicion *suspicion = suspicion_of(agent);
    char verdict[400];
    int rc;

    if (outlook.what == NULL && suspicion != NULL && suspicion->next[0] != '\0')
        outlook.what = suspicion->next;
    judge(agent, verdict, sizeof verdict);
    add_since(agent, verdict, sizeof verdict);
    rc = add_words(&chain, agent);
    if (rc == HF_OK)
        rc = add_life(&chain, agent);
    if (rc == HF_OK && health != NULL)
        rc = cli_chain_add(&chain, NULL, agent->health.seen.mod_rev, NULL, EVIDENCE(health),
                           health->n_evidence, "judged %s: %s", cli_health_name(health->state),
                           health->why);
    if (health != NULL)
        cli_chain_date(&chain, &health->base);
    if (rc == HF_OK)
        rc = cli_chain_add_events(&chain);
    if (rc == HF_OK)
        rc = cli_chain_print(&chain, verdict, outlook);
    cli_chain_done(&chain);
    return rc;
}

/* Tasks. */

static int add_recovery(struct cli_chain *chain, struct cli_record *record)
{
    static const char *const RESULTS[] = { "was ordered", "succeeded", "died", "was refused",
                                           "was withdrawn" };
    const Holdfast__V1__Recovery *recovery = (const Holdfast__V1__Recovery *)record->message;
    int rc = HF_OK;

    for (size_t i = 0; recovery != NULL && i < recovery->n_outcomes && rc == HF_OK; i++) {
        const Holdfast__V1__Recovery__Outcome *outcome = recovery->outcomes[i];
        size_t result = (size_t)outcome->result;
        char from[48] = "the beginning";

        if (outcome->checkpoint != NULL)
            (void)snprintf(from, sizeof from, "checkpoint %lld",
                           (long long)outcome->checkpoint->seq);
        rc = cli_chain_add(chain, outcome->at, record->seen.mod_rev, NULL, NULL, 0,
                           "recovery %zu, from %s, %s", i + 1, from,
                           result < 5 ? RESULTS[result] : "?");
    }
    return rc;
}

static int add_owner_end(struct cli_chain *chain, const struct hf_agent *owner)
{
    const Holdfast__V1__Exit *end = hf_agent_exit(owner);
    int rc;

    if (end == NULL)
        return HF_OK;
    rc = cli_chain_add(chain, end->n_evidence > 0 ? end->evidence[0]->at : NULL,
                       owner->exit.seen.mod_rev, NULL, EVIDENCE(end), end->n_evidence,
                       "its owner %s: %s (status %d, signal %d)", owner->name,
                       cli_exit_name(end->kind), end->status, end->signal);
    cli_chain_date(chain, &end->base);
    return rc;
}

/* Whoever has it decides what becomes of it: how that one is, and on what evidence. */
static int add_owner(struct cli_chain *chain, const struct hf_agent *owner)
{
    const Holdfast__V1__Live *live = hf_agent_live(owner);
    const Holdfast__V1__Health *health = hf_agent_health(owner);
    int rc;

    if (live != NULL) {
        rc = cli_chain_add(chain, NULL, owner->live.seen.create_rev, NULL, NULL, 0,
                           "its owner %s is live on %s as pid %d", owner->name, live->host,
                           live->pid);
        cli_chain_date(chain, &live->base);
    } else {
        rc = add_owner_end(chain, owner);
    }
    if (rc != HF_OK || health == NULL ||
        (live != NULL && health->state <= HOLDFAST__V1__HEALTH__STATE__healthy))
        return rc;
    rc = cli_chain_add(chain, NULL, owner->health.seen.mod_rev, NULL, EVIDENCE(health),
                       health->n_evidence, "its owner %s is judged %s: %s", owner->name,
                       cli_health_name(health->state), health->why);
    cli_chain_date(chain, &health->base);
    return rc;
}

/* The fleet outlives the chain, which points into it. */
static int add_fleet(struct cli *cli, struct cli_chain *chain, const struct cli_record *record,
                     struct hf_fleet **ret_fleet, struct hf_outlook *ret_outlook)
{
    static const enum hf_key_scope SCOPES[] = { HF_KEY_IN_AGENTS, HF_KEY_IN_HEALTH };
    const struct hf_seen_task seen = { .seen = record->seen, .task = cli_task_of(record) };
    CLI_CLEANUP_RECORD struct cli_record leader = { 0 };
    struct hf_task_policy policy;
    const struct hf_agent *owner;
    bool is_known;
    int rc = cli_load_fleet(cli, SCOPES, sizeof SCOPES / sizeof SCOPES[0], ret_fleet);

    if (rc == HF_OK)
        rc = dispense(cli, cli_read(cli, (struct hf_key){ .kind = HF_KEY_LEADER }, &leader));
    if (rc != HF_OK)
        return rc;
    is_known = hf_outlook_policy((const Holdfast__V1__Leader *)leader.message, &policy);
    *ret_outlook =
        hf_outlook_task(*ret_fleet, &seen, is_known ? &policy : NULL, hf_clock_wall());
    owner = seen.task->owner != NULL && hf_task_is_owned(seen.task->state)
                ? hf_fleet_get_agent(*ret_fleet, seen.task->owner->agent)
                : NULL;
    return owner != NULL ? add_owner(chain, owner) : HF_OK;
}

static int explain_task(struct cli *cli, struct cli_record *record)
{
    CLI_CLEANUP_RECORD struct cli_record recovery = { 0 };
    struct cli_chain chain = { .cli = cli, .task = cli->args[0] };
    struct hf_outlook outlook = { 0 };
    struct hf_fleet *fleet = NULL;
    const Holdfast__V1__Task *task = cli_task_of(record);
    const char *owner = task->owner != NULL ? task->owner->agent : "";
    const char *reason = cli_task_reason(task);
    char verdict[300];
    int rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_RECOVERY, .name = cli->args[0] },
                      &recovery);

    (void)snprintf(verdict, sizeof verdict, "%s%s%s%s%s", hf_task_state_name(task->state),
                   owner[0] != '\0' ? ", by " : "", owner, reason[0] != '\0' ? ": " : "",
                   reason);
    if (rc == HF_OK)
        rc = cli_chain_add(&chain, NULL, record->seen.create_rev, NULL, NULL, 0,
                           "submitted for role %s", task->role);
    if (rc == HF_OK && record->seen.mod_rev != record->seen.create_rev)
        rc = cli_chain_add(&chain, NULL, record->seen.mod_rev, NULL, NULL, 0, "%s, attempt %d",
                           hf_task_state_name(task->state), task->attempt);
    cli_chain_date(&chain, &task->base);
    if (rc == HF_OK)
        rc = add_fleet(cli, &chain, record, &fleet, &outlook);
    if (rc == HF_OK)
        rc = add_recovery(&chain, &recovery);
    if (rc == HF_OK)
        rc = cli_chain_add_events(&chain);
    if (rc == HF_OK)
        rc = cli_chain_print(&chain, verdict, outlook);
    cli_chain_done(&chain);
    hf_fleet_free(fleet);
    return rc;
}

static int run(struct cli *cli)
{
    CLI_CLEANUP_RECORD struct cli_record task = { 0 };
    struct agent agent = { 0 };
    const char *name = cli->args[0];
    int rc = hf_name_check("name", name, &cli->err);

    if (rc == HF_OK)
        rc = learn(cli, name, &agent);
    if (rc == HF_OK && agent.spec.message == NULL && agent.live.message == NULL &&
        agent.health.message == NULL)
        rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_TASK, .name = name }, &task);
    if (rc == HF_OK && task.message != NULL)
        rc = explain_task(cli, &task);
    else if (rc == HF_OK && agent.spec.message == NULL && agent.live.message == NULL &&
             agent.health.message == NULL)
        rc = cli_fail(
            cli, HF_ENOENT,
            "there is neither an agent nor a task %s; holdfast ps and holdfast task ls "
            "list them",
            name);
    else if (rc == HF_OK)
        rc = explain_agent(cli, &agent);
    forget(&agent);
    return rc;
}

const struct cli_command CLI_EXPLAIN = {
    .name = "explain",
    .args = "AGENT|TASK",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Say what holds of an agent or a task, on what evidence, and what comes next.",
    .nameless = true,
    .run = run,
};
