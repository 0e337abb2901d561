#include "cli/explain.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "cli/agents.h"
#include "cli/out.h"
#include "core/moments.h"
#include "schema/json.h"

struct cli_step {
    Holdfast__V1__Explanation__Step step;
    ProtobufCMessage *message; /* that it points into */
    hf_ms written;             /* by whoever wrote it; 0: not known */
    Google__Protobuf__Timestamp at;
};

void cli_chain_done(struct cli_chain *chain)
{
    for (size_t i = 0; i < chain->count; i++) {
        free(chain->steps[i].step.what);
        hf_json_free(chain->steps[i].message);
    }
    free(chain->steps);
}

int cli_chain_add(struct cli_chain *chain, const Google__Protobuf__Timestamp *at,
                  int64_t revision, ProtobufCMessage *message,
                  const Holdfast__V1__Evidence *const *evidence, size_t evidence_count,
                  const char *fmt, ...)
{
    struct cli_step *added;
    char *what = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&what, fmt, args) < 0)
        what = NULL;
    va_end(args);
    if (what == NULL || !hf_grow(&chain->steps, &chain->cap, chain->count + 1, sizeof *added)) {
        free(what);
        hf_json_free(message);
        return cli_fail(chain->cli, HF_ENOMEM, "out of memory");
    }
    added = &chain->steps[chain->count++];
    holdfast__v1__explanation__step__init(&added->step);
    added->step.at = (Google__Protobuf__Timestamp *)at;
    added->step.revision = revision;
    added->step.what = what;
    added->step.evidence = (Holdfast__V1__Evidence **)evidence;
    added->step.n_evidence = evidence_count;
    added->message = message;
    added->written = 0;
    return HF_OK;
}

void cli_chain_date(struct cli_chain *chain, const ProtobufCMessage *record)
{
    if (chain->count > 0)
        chain->steps[chain->count - 1].written = hf_outlook_written(record);
}

/* Steps move while they are added. */
static void set_times(struct cli_chain *chain)
{
    for (size_t i = 0; i < chain->count; i++) {
        struct cli_step *step = &chain->steps[i];

        if (step->step.at == NULL && step->written != 0)
            step->step.at = hf_moment_write(step->written, &step->at);
    }
}

static bool is_same(const char *wanted, const char *name)
{
    return wanted != NULL && strcmp(wanted, name) == 0;
}

static int on_event(struct hf_fleet_change *found, void *arg)
{
    struct cli_chain *chain = arg;
    const Holdfast__V1__Event *event = (const Holdfast__V1__Event *)found->record;

    if (!is_same(chain->agent, event->agent) && !is_same(chain->task, event->task) &&
        !is_same(chain->host, event->host))
        return HF_OK;
    found->record = NULL;
    /* Who or what else it is about: an agent has many tasks, and a task many owners. */
    return cli_chain_add(chain, event->at, found->seen.mod_rev, (ProtobufCMessage *)event,
                         (const Holdfast__V1__Evidence *const *)event->evidence,
                         event->n_evidence, "%s by %s%s%s%s%s: %s", cli_event_name(event->kind),
                         event->actor,
                         chain->task == NULL && event->task[0] != '\0' ? ", task " : "",
                         chain->task == NULL ? event->task : "",
                         chain->agent == NULL && event->agent[0] != '\0' ? ", agent " : "",
                         chain->agent == NULL ? event->agent : "", event->why);
}

int cli_chain_add_events(struct cli_chain *chain)
{
    return cli_list(chain->cli, HF_KEY_IN_EVENTS, NULL, on_event, chain);
}

static int by_revision(const void *a, const void *b)
{
    const struct cli_step *left = a, *right = b;

    return (left->step.revision > right->step.revision) -
           (left->step.revision < right->step.revision);
}

static int print_json(struct cli_chain *chain, const char *verdict,
                      const Holdfast__V1__Next *next)
{
    Holdfast__V1__Explanation all = HOLDFAST__V1__EXPLANATION__INIT;
    HF_CLEANUP_FREE Holdfast__V1__Explanation__Step **list =
        hf_calloc(chain->count + 1, sizeof(Holdfast__V1__Explanation__Step *));

    if (list == NULL)
        return cli_fail(chain->cli, HF_ENOMEM, "out of memory");
    for (size_t i = 0; i < chain->count; i++)
        list[i] = &chain->steps[i].step;
    all.subject = (char *)chain->cli->args[0];
    all.verdict = (char *)verdict;
    all.chain = list;
    all.n_chain = chain->count;
    all.next = (Holdfast__V1__Next *)next;
    return cli_out_json(chain->cli, &all.base);
}

enum { WHAT_COLUMN = 33 }; /* behind revision and time */

static int print_text(struct cli_chain *chain, const char *verdict,
                      const Holdfast__V1__Next *next)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    char text[CLI_AGE_SIZE], words[800];
    int column;

    (void)snprintf(words, sizeof words, "%s is %s", chain->cli->args[0], verdict);
    cli_out_wrapped(&out, 0, words);
    hf_buf_putc(&out, '\n');
    for (size_t i = 0; i < chain->count; i++) {
        const Holdfast__V1__Explanation__Step *step = &chain->steps[i].step;

        hf_buf_printf(&out, "%10lld  %-19s  ", (long long)step->revision,
                      cli_time(step->at, text));
        cli_out_wrapped(&out, WHAT_COLUMN, step->what);
        for (size_t e = 0; e < step->n_evidence; e++) {
            column = snprintf(NULL, 0, "%*s%s: ", WHAT_COLUMN, "", step->evidence[e]->source);
            hf_buf_printf(&out, "%*s%s: ", WHAT_COLUMN, "", step->evidence[e]->source);
            cli_out_wrapped(&out, (size_t)column, step->evidence[e]->text);
        }
    }
    (void)snprintf(words, sizeof words, "%s%s%s",
                   next != NULL ? next->what : "nothing by itself",
                   next != NULL && next->at != NULL ? " " : "",
                   next != NULL ? cli_until(next->at, text) : "");
    hf_buf_puts(&out, "\nnext: ");
    cli_out_wrapped(&out, strlen("next: "), words);
    return cli_out_text(chain->cli, &out);
}

/* The length of a command for the subject at the beginning of the text, up to what follows it;
 * 0: there is none. */
static size_t match_command(const struct cli_chain *chain, const char *text)
{
    static const char *const OF_AGENTS[] = { "`holdfast restart`", "`holdfast start`" };
    static const char *const OF_TASKS[] = { "`holdfast task retry`",
                                            "`holdfast task retry --lost-files`",
                                            "`holdfast task cancel`" };
    const char *const *commands = chain->task != NULL ? OF_TASKS : OF_AGENTS;
    size_t count = chain->task != NULL ? sizeof OF_TASKS / sizeof OF_TASKS[0]
                                       : sizeof OF_AGENTS / sizeof OF_AGENTS[0];

    for (size_t i = 0; i < count; i++) {
        if (strncmp(text, commands[i], strlen(commands[i])) == 0)
            return strlen(commands[i]) - 1;
    }
    return 0;
}

/* What is to be done, such that it can be copied: the records name commands without the agent
 * or the task that they belong to. */
static void name_subject(const struct cli_chain *chain, const char *what, struct hf_buf *out)
{
    while (*what != '\0') {
        size_t len = match_command(chain, what);

        hf_buf_append(out, what, len > 0 ? len : 1);
        if (len > 0)
            hf_buf_printf(out, " %s", chain->cli->args[0]);
        what += len > 0 ? len : 1;
    }
}

int cli_chain_print(struct cli_chain *chain, const char *verdict, struct hf_outlook outlook)
{
    Holdfast__V1__Next next = HOLDFAST__V1__NEXT__INIT;
    const Holdfast__V1__Next *shown = outlook.what != NULL ? &next : NULL;
    HF_CLEANUP_BUF struct hf_buf what = { 0 };
    Google__Protobuf__Timestamp at;

    name_subject(chain, outlook.what != NULL ? outlook.what : "", &what);
    hf_buf_putc(&what, '\0');
    if (what.err != HF_OK)
        return cli_fail(chain->cli, HF_ENOMEM, "out of memory");
    next.what = (char *)what.data;
    if (outlook.at != 0)
        next.at = hf_moment_write(outlook.at, &at);
    if (chain->count > 0)
        qsort(chain->steps, chain->count, sizeof *chain->steps, by_revision);
    set_times(chain);
    return chain->cli->output == CLI_JSON ? print_json(chain, verdict, shown)
                                          : print_text(chain, verdict, shown);
}
