/* explain.h - the chain of evidence for a verdict, put together from records and events. */
#ifndef CLI_EXPLAIN_H
#define CLI_EXPLAIN_H

#include "cli/cli.h"
#include "cli/store.h"
#include "core/outlook.h"
#include "holdfast/v1/cli.pb-c.h"

/* Everything that it shows belongs to it. */
struct cli_chain {
    struct cli *cli;
    const char *agent, *task, *host; /* that it is about, one of them */
    struct cli_step *steps;
    size_t count, cap;
};

void cli_chain_done(struct cli_chain *chain);

/* One step: what a record says, `message` being the record that the evidence lies in (taken
 * over, also on failure; may be NULL). */
int cli_chain_add(struct cli_chain *chain, const Google__Protobuf__Timestamp *at,
                  int64_t revision, ProtobufCMessage *message,
                  const Holdfast__V1__Evidence *const *evidence, size_t evidence_count,
                  const char *fmt, ...) HF_PRINTF(7, 8) HF_MUST_CHECK;

/* The step that was added last happened when `record` was last written, unless it has a time of
 * its own. */
void cli_chain_date(struct cli_chain *chain, const ProtobufCMessage *record);

/* All events about the subject. */
int cli_chain_add_events(struct cli_chain *chain) HF_MUST_CHECK;

/* Sorted by revision, with the verdict and what is next. */
int cli_chain_print(struct cli_chain *chain, const char *verdict,
                    struct hf_outlook outlook) HF_MUST_CHECK;

#endif
