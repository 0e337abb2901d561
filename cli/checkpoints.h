/* checkpoints.h - the chain of a task, and what its entries stand for. */
#ifndef CLI_CHECKPOINTS_H
#define CLI_CHECKPOINTS_H

#include "base/buf.h"
#include "cli/cli.h"
#include "holdfast/v1/records.pb-c.h"

/* Oldest first. Zero-initialise. */
struct cli_checkpoints {
    Holdfast__V1__Checkpoint **entries;
    size_t count, cap;
};

/* HF_ENOENT, with a sentence, when there is no such task. */
int cli_checkpoints_read(struct cli *cli, const char *task,
                         struct cli_checkpoints *chain) HF_MUST_CHECK;
void cli_checkpoints_done(struct cli_checkpoints *chain);
#define CLI_CLEANUP_CHECKPOINTS __attribute__((cleanup(cli_checkpoints_done)))

/* The options of what looks at bodies. */
struct cli_body_settings {
    int64_t seq; /* 0: all, or the newest */
    const char *store_dir;
};
extern const struct hf_option CLI_BODY_OPTIONS[2];

/* Reads the body of an entry and holds it against size and digest. HF_OK with NULL in
 * *ret_fault when it is whole, or with what is wrong with it. */
int cli_body_read(struct cli *cli, const Holdfast__V1__Checkpoint *entry, struct hf_buf *out,
                  const char **ret_fault) HF_MUST_CHECK;

#endif
