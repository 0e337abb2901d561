/* tasks.h - how tasks are shown, for the commands that show them. */
#ifndef CLI_TASKS_H
#define CLI_TASKS_H

#include "cli/cli.h"
#include "cli/out.h"
#include "cli/store.h"

/* HF_ENOENT with a sentence when there is none. */
int cli_read_task(struct cli *cli, const char *id, struct cli_record *ret_record) HF_MUST_CHECK;

static inline const Holdfast__V1__Task *cli_task_of(const struct cli_record *record)
{
    return (const Holdfast__V1__Task *)record->message;
}

/* All of them, for help; the last four are final. */
#define CLI_TASK_STATES                                                                        \
    "queued, pending, acknowledged, in_progress, completed, failed, cancelled or needs_review"

/* HF_EINVAL with a sentence unless it is one; NULL is fine. */
int cli_check_task_state(struct cli *cli, const char *name) HF_MUST_CHECK;

/* Why it is as it is; "" where its record still says why it was once taken from an owner. */
const char *cli_task_reason(const Holdfast__V1__Task *task);

enum cli_colour cli_task_colour(Holdfast__V1__Task__State state);

/* One task as the output format wants it: all of it, or its id alone. `progress` is what its
 * owner says of it, or NULL. */
int cli_print_task_with(struct cli *cli, const Holdfast__V1__Task *task,
                        const Holdfast__V1__Report__Progress *progress) HF_MUST_CHECK;
int cli_print_task(struct cli *cli, const Holdfast__V1__Task *task) HF_MUST_CHECK;

/* What a report says of this task, or NULL. */
const Holdfast__V1__Report__Progress *cli_progress_of(const Holdfast__V1__Report *report,
                                                      const char *task);

#endif
