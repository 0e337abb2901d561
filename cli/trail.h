/* trail.h - how entries of the audit trail are shown, for the commands that show them. */
#ifndef CLI_TRAIL_H
#define CLI_TRAIL_H

#include "cli/out.h"
#include "holdfast/v1/records.pb-c.h"

enum cli_colour cli_event_colour(Holdfast__V1__Event__Kind kind);

/* "w1, task t1: its process ended [status 1]": whom it is about, why, and the evidence. */
void cli_event_write(struct hf_buf *out, const Holdfast__V1__Event *event);

#endif
