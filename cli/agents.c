#include "cli/agents.h"

#include <stdio.h>

#include "core/moments.h"
#include "core/outlook.h"

int cli_read_generation(struct cli *cli, int32_t *ret_generation)
{
    CLI_CLEANUP_RECORD struct cli_record meta = { 0 };
    int rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_META }, &meta);

    if (rc != HF_OK)
        return rc;
    *ret_generation =
        meta.message != NULL ? ((const Holdfast__V1__Meta *)meta.message)->generation : 0;
    return HF_OK;
}

int cli_show_generation(struct cli *cli, int32_t *ret_generation)
{
    int rc = cli_read_generation(cli, ret_generation);

    if (rc != HF_ECORRUPT)
        return rc;
    (void)fprintf(stderr, "holdfast: warning: %s\n", cli->err.text);
    cli->bad++;
    *ret_generation = 0;
    return HF_OK;
}

const char *cli_agent_role(const struct hf_agent *agent)
{
    const Holdfast__V1__Spec *spec = hf_agent_spec(agent);

    return spec != NULL ? spec->role : "";
}

const char *cli_agent_host(const struct hf_agent *agent)
{
    const Holdfast__V1__Live *live = hf_agent_live(agent);
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    const Holdfast__V1__Spec *spec = hf_agent_spec(agent);

    if (live != NULL)
        return live->host;
    if (health != NULL && health->host[0] != '\0')
        return health->host;
    return spec != NULL ? spec->home : "";
}

Holdfast__V1__Health__State cli_agent_health(const struct hf_agent *agent)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);

    if (health != NULL && health->state != HOLDFAST__V1__HEALTH__STATE__unknown)
        return health->state;
    return agent->live.record != NULL ? HOLDFAST__V1__HEALTH__STATE__healthy
                                      : HOLDFAST__V1__HEALTH__STATE__unknown;
}

bool cli_is_report_of(const Holdfast__V1__Report *report, int64_t create_rev)
{
    return report != NULL && report->incarnation != NULL && create_rev != 0 &&
           report->incarnation->create_revision == create_rev;
}

/* A report is also written when its agentd has something to say of it. */
const Google__Protobuf__Timestamp *cli_report_said(const Holdfast__V1__Report *report)
{
    const Google__Protobuf__Timestamp *said = report != NULL ? report->said_at : NULL;
    const Google__Protobuf__Timestamp *beat = report != NULL ? report->heartbeat_at : NULL;

    if (said == NULL && beat == NULL)
        return report != NULL && report->suspicion == NULL ? report->at : NULL;
    return hf_moment_read(said) > hf_moment_read(beat) ? said : beat;
}

const Holdfast__V1__Report__Suspicion *cli_suspicion_of(const Holdfast__V1__Report *report,
                                                        int64_t create_rev)
{
    return cli_is_report_of(report, create_rev) ? report->suspicion : NULL;
}

const char *cli_agent_verdict(const struct hf_agent *agent)
{
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    const Holdfast__V1__Wanted *wanted = hf_agent_wanted(agent);
    const Holdfast__V1__Report__Suspicion *suspicion =
        cli_suspicion_of((const Holdfast__V1__Report *)agent->report.record,
                         agent->live.record != NULL ? agent->live.seen.create_rev : 0);

    if (health != NULL && health->held)
        return "held";
    if (wanted != NULL && wanted->state == HOLDFAST__V1__WANTED__STATE__stopped)
        return agent->live.record != NULL ? "stopping" : "stopped";
    if (wanted != NULL && wanted->state != HOLDFAST__V1__WANTED__STATE__running &&
        agent->live.record == NULL)
        return "unclear"; /* nobody here knows what is wanted, so nobody starts it */
    if (agent->live.record == NULL &&
        cli_agent_health(agent) == HOLDFAST__V1__HEALTH__STATE__unknown)
        return "gone";
    if (suspicion != NULL)
        return suspicion->frozen ? "frozen" : "suspect";
    return cli_health_name(cli_agent_health(agent));
}

/* An exit tells of its own life only: one that nobody saw end was missed by the controller. */
hf_ms cli_agent_since(const struct hf_agent *agent)
{
    const Holdfast__V1__Live *live = hf_agent_live(agent);
    const Holdfast__V1__Exit *end = hf_agent_exit(agent);
    const Holdfast__V1__Health *health = hf_agent_health(agent);
    int64_t life =
        end != NULL && end->incarnation != NULL
            ? cli_number(end->incarnation->generation, end->incarnation->create_revision)
            : 0;

    if (live != NULL)
        return hf_outlook_written(&live->base);
    if (end != NULL && (health == NULL || life >= health->incarnation))
        return hf_outlook_written(&end->base);
    if (health != NULL && health->n_evidence > 0 && health->evidence[0]->at != NULL)
        return hf_moment_read(health->evidence[0]->at);
    return 0;
}

/* A value that only a newer version knows has no name. */
static const char *name_of(const ProtobufCEnumDescriptor *type, int value)
{
    const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value(type, value);

    return found != NULL ? found->name : "?";
}

const char *cli_health_name(Holdfast__V1__Health__State state)
{
    return name_of(&holdfast__v1__health__state__descriptor, (int)state);
}

const char *cli_state_name(Holdfast__V1__AgentState__Value state)
{
    return name_of(&holdfast__v1__agent_state__value__descriptor, (int)state);
}

const char *cli_exit_name(Holdfast__V1__Exit__Kind kind)
{
    return name_of(&holdfast__v1__exit__kind__descriptor, (int)kind);
}

const char *cli_event_name(Holdfast__V1__Event__Kind kind)
{
    return name_of(&holdfast__v1__event__kind__descriptor, (int)kind);
}

enum cli_colour cli_health_colour(Holdfast__V1__Health__State state)
{
    switch (state) {
    case HOLDFAST__V1__HEALTH__STATE__healthy: return CLI_GOOD;
    case HOLDFAST__V1__HEALTH__STATE__suspect:
    case HOLDFAST__V1__HEALTH__STATE__degraded:
    case HOLDFAST__V1__HEALTH__STATE__stuck: return CLI_WARN;
    case HOLDFAST__V1__HEALTH__STATE__failing: return CLI_BAD;
    default: return CLI_PLAIN;
    }
}
