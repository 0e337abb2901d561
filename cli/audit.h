/* audit.h - what an operator does, with its entry in the audit trail, as one transaction. */
#ifndef CLI_AUDIT_H
#define CLI_AUDIT_H

#include "cli/store.h"

struct cli_act {
    /* Reads what it needs, decides, and fills the plan. Called anew, on what etcd has then,
     * when somebody was faster. HF_OK, or why not with a sentence. */
    int (*fill)(struct cli *cli, struct hf_plan *plan, void *arg);
    void *arg;
    const char *agent, *host, *task; /* whom it is about; NULL for none */
    const char *what;                /* was done: "stopped", for the trail */
    const char *reason;              /* given by the operator; NULL for none */
};

/* HF_ECONFLICT when others were faster several times in a row. */
int cli_act(struct cli *cli, const struct cli_act *act) HF_MUST_CHECK;

/* Who is at the keyboard, for records and the trail. Static. */
const char *cli_operator(void);

#endif
