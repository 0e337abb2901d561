/* agents.h - how agents are named, numbered and judged, for the commands that show them. */
#ifndef CLI_AGENTS_H
#define CLI_AGENTS_H

#include "cli/cli.h"
#include "cli/out.h"
#include "cli/store.h"

/* An incarnation or a term as the one number that only grows. */
static inline int64_t cli_number(int32_t generation, int64_t create_rev)
{
    /* Unsigned, because a record may say anything. */
    return (int64_t)(((uint64_t)generation << 48) + (uint64_t)create_rev);
}

/* Of meta; 0 before there is one. */
int cli_read_generation(struct cli *cli, int32_t *ret_generation) HF_MUST_CHECK;
/* The same for what is only shown: where meta cannot be read, a warning and 0. */
int cli_show_generation(struct cli *cli, int32_t *ret_generation) HF_MUST_CHECK;

/* Borrowed from the agent's records; "" when nothing says it. */
const char *cli_agent_role(const struct hf_agent *agent);
const char *cli_agent_host(const struct hf_agent *agent);

/* The health record's, with what the others show where there is none. */
Holdfast__V1__Health__State cli_agent_health(const struct hf_agent *agent);

/* Whether it tells of the life that was registered at that revision; 0 and NULL: no. */
bool cli_is_report_of(const Holdfast__V1__Report *report, int64_t create_rev);
/* When its agent last said anything, if only that it lives; NULL: never in that life. */
const Google__Protobuf__Timestamp *cli_report_said(const Holdfast__V1__Report *report);
/* What its agentd has against the present life; NULL: nothing. */
const Holdfast__V1__Report__Suspicion *cli_suspicion_of(const Holdfast__V1__Report *report,
                                                        int64_t create_rev);
/* In one word, for people: also "stopped", "held" and "gone". */
const char *cli_agent_verdict(const struct hf_agent *agent);

/* When its present life was registered; or, of one that is not live, when it went offline. By
 * the clock of whoever wrote that down; 0: nobody did. */
hf_ms cli_agent_since(const struct hf_agent *agent);

const char *cli_health_name(Holdfast__V1__Health__State state);
const char *cli_state_name(Holdfast__V1__AgentState__Value state);
const char *cli_exit_name(Holdfast__V1__Exit__Kind kind);
const char *cli_event_name(Holdfast__V1__Event__Kind kind);
enum cli_colour cli_health_colour(Holdfast__V1__Health__State state);

#endif
