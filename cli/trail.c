#include "cli/trail.h"

enum cli_colour cli_event_colour(Holdfast__V1__Event__Kind kind)
{
    switch (kind) {
    case HOLDFAST__V1__EVENT__KIND__joined:
    case HOLDFAST__V1__EVENT__KIND__recovered:
    case HOLDFAST__V1__EVENT__KIND__cleared:
    case HOLDFAST__V1__EVENT__KIND__completed: return CLI_GOOD;
    case HOLDFAST__V1__EVENT__KIND__suspect:
    case HOLDFAST__V1__EVENT__KIND__reset:
    case HOLDFAST__V1__EVENT__KIND__restart_ordered:
    case HOLDFAST__V1__EVENT__KIND__succeeded:
    case HOLDFAST__V1__EVENT__KIND__storm: return CLI_WARN;
    case HOLDFAST__V1__EVENT__KIND__ended:
    case HOLDFAST__V1__EVENT__KIND__held:
    case HOLDFAST__V1__EVENT__KIND__needs_review:
    case HOLDFAST__V1__EVENT__KIND__history_reset: return CLI_BAD;
    default: return CLI_PLAIN;
    }
}

/* Two agents of the same task would make a column too wide: they stand one after the other. */
static void write_subject(struct hf_buf *out, const Holdfast__V1__Event *event)
{
    const char *parts[] = { event->agent, event->task, event->host };
    static const char *const KINDS[] = { "", "task ", "host " };
    bool first = true;

    for (size_t i = 0; i < 3; i++) {
        if (parts[i][0] == '\0')
            continue;
        hf_buf_printf(out, "%s%s%s", first ? "" : ", ", KINDS[i], parts[i]);
        first = false;
    }
    hf_buf_puts(out, first ? event->actor : "");
}

void cli_event_write(struct hf_buf *out, const Holdfast__V1__Event *event)
{
    write_subject(out, event);
    if (event->why[0] != '\0')
        hf_buf_printf(out, ": %s", event->why);
    for (size_t i = 0; i < event->n_evidence; i++)
        hf_buf_printf(out, "%s%s%s", i == 0 ? " [" : "; ", event->evidence[i]->text,
                      i + 1 == event->n_evidence ? "]" : "");
}
