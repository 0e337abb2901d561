/* checkpoints.h - the chain of a task, and what its entries stand for. */
#ifndef CLI_CHECKPOINTS_H
#define CLI_CHECKPOINTS_H

#include "base/buf.h"
#include "cli/cli.h"
#include "holdfast/v1/records.pb-c.h"
#include "io/s3_settings.h"

/* Oldest first. Zero-initialise. */
struct cli_checkpoints {
    Holdfast__V1__Checkpoint **entries;
    size_t count, cap;
    int64_t head; /* that the task names; 0: none */
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
    struct hf_s3_settings s3;
};
extern const struct hf_option CLI_BODY_OPTIONS[2 + HF_S3_OPTION_COUNT];

/* What came of a look at a body. */
enum cli_body {
    CLI_BODY_WHOLE,
    CLI_BODY_BAD,    /* nobody can read it as it was */
    CLI_BODY_UNSEEN, /* it cannot be looked at from here, and may be whole */
};

struct cli_body_found {
    enum cli_body what;
    char text[300]; /* "whole", or what is wrong, and what to do where something can be done */
};

/* Where it lies: "etcd", "file on node-7". */
const char *cli_body_where(const Holdfast__V1__Checkpoint *entry, char ret_text[300]);

/* Reads the body of an entry and holds it against size and digest. One in a bucket, which may
 * be longer than memory, is not kept. */
int cli_body_look(struct cli *cli, const Holdfast__V1__Checkpoint *entry,
                  struct cli_body_found *ret_found) HF_MUST_CHECK;

/* The same, and prints it if it is whole. */
int cli_body_print(struct cli *cli, const Holdfast__V1__Checkpoint *entry,
                   struct cli_body_found *ret_found) HF_MUST_CHECK;

#endif
