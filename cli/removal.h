/* removal.h - what is over is removed, with the entry in the audit trail. */
#ifndef CLI_REMOVAL_H
#define CLI_REMOVAL_H

#include "cli/audit.h"

/* The key that must be there, the one that must not, and the row that removes. */
struct cli_removal {
    const char *what; /* "agent" */
    enum hf_key_kind kept, live;
    bool has_wish; /* what a person wants of it is enough for it to be there */
    void (*row)(struct hf_plan *plan, const char *name, const struct hf_seen *kept);
    const char *how_to_end; /* when it is live: what to do first */
};

int cli_remove(struct cli *cli, const struct cli_removal *removal) HF_MUST_CHECK;

#endif
