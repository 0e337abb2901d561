/* want.h - start, stop and restart: what a person wants of an agent. */
#ifndef CLI_WANT_H
#define CLI_WANT_H

#include "cli/cli.h"

struct cli_want {
    bool stopped;     /* what is wanted */
    bool ends;        /* the life that it has now must end */
    bool releases;    /* from being held */
    const char *host; /* only of who lives there and shall run; NULL: of anybody */
    const char *what; /* for the audit trail */
    const char *then; /* printed: what follows */
};

struct cli_want_settings {
    const char *reason;
};

/* The options of all three. */
extern const struct hf_option CLI_WANT_OPTIONS[1];

/* Of the agent that the command line names; prints what follows. */
int cli_want(struct cli *cli, const struct cli_want *want) HF_MUST_CHECK;

/* Of any, without a word. */
int cli_want_of(struct cli *cli, const char *agent, const char *reason,
                const struct cli_want *want) HF_MUST_CHECK;

#endif
