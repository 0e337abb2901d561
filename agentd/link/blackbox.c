#include "agentd/link/blackbox.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "core/moments.h"

enum { OUTPUT_BYTES = 1024, TEXT_BYTES = 1024, LINES = 10, LOST_MIN_MS = 1000 };

/* What an agent prints may be anything: what is no text is shown as `?`. */
static void clean(char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++) {
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            text[i] = text[i] == '\t' ? ' ' : '?';
    }
    for (size_t i = 0; i < len && !hf_str_is_utf8(text, len); i++) {
        if ((unsigned char)text[i] >= 0x80)
            text[i] = '?';
    }
}

static void add(struct link_blackbox *box, const char *source, struct hf_buf *text)
{
    size_t n = box->record.n_evidence;

    if (text->err != HF_OK || text->len == 0 || n == LINK_BLACKBOX_MOST) {
        hf_buf_done(text);
        return;
    }
    if (text->len > TEXT_BYTES)
        text->data[hf_str_cut(text->data, TEXT_BYTES)] = '\0';
    clean(text->data);
    box->texts[n] = *text;
    holdfast__v1__evidence__init(&box->evidence[n]);
    box->evidence[n].source = (char *)source;
    box->evidence[n].text = text->data;
    box->evidence[n].at = &box->at;
    box->list[n] = &box->evidence[n];
    box->record.n_evidence++;
}

/* The last lines, none of them cut. */
static const char *last_lines(const char *text, size_t len)
{
    const char *at = text + len;
    int lines = 0;

    while (at > text && (at[-1] != '\n' || at == text + len || ++lines < LINES))
        at--;
    return at;
}

static void add_output(struct link_process *process, struct link_blackbox *box)
{
    const char *state_dir = link_channel_get_hello(process->agent->link->channel)->state_dir;
    char path[AGENTD_PATH_BYTES + AGENTD_NAME_BYTES + 16], text[OUTPUT_BYTES + 1];
    HF_CLEANUP_FD int fd = -1;
    struct hf_buf output = { 0 };
    off_t size;
    ssize_t len;

    (void)snprintf(path, sizeof path, "%s/agents/%s.log", state_dir, process->who.agent);
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    size = fd >= 0 ? lseek(fd, 0, SEEK_END) : 0;
    len = fd >= 0 ? pread(fd, text, OUTPUT_BYTES, size > OUTPUT_BYTES ? size - OUTPUT_BYTES : 0)
                  : 0;
    while (len > 0 && text[len - 1] == '\n')
        len--;
    if (len <= 0)
        return;
    text[len] = '\0';
    for (const char *p = last_lines(text, (size_t)len); *p != '\0'; p++) {
        if (*p == '\n')
            hf_buf_puts(&output, " | ");
        else
            hf_buf_putc(&output, *p);
    }
    add(box, "output", &output);
}

static void add_said(const struct link_process *process, struct link_blackbox *box)
{
    const struct link_said *said = &process->said;
    const ProtobufCEnumValue *state = protobuf_c_enum_descriptor_get_value(
        &holdfast__v1__agent_state__value__descriptor, (int)said->state);
    const ProtobufCEnumValue *status = protobuf_c_enum_descriptor_get_value(
        &holdfast__v1__agent_status__value__descriptor, (int)said->status);
    struct hf_buf text = { 0 };

    if (said->state != HOLDFAST__V1__AGENT_STATE__VALUE__unknown && state != NULL)
        hf_buf_printf(&text, "state %s", state->name);
    if (text.len > 0 && said->reason[0] != '\0')
        hf_buf_printf(&text, " (%s)", said->reason);
    if (said->status != HOLDFAST__V1__AGENT_STATUS__VALUE__unknown && status != NULL)
        hf_buf_printf(&text, "%sstatus %s", text.len > 0 ? ", " : "", status->name);
    if (said->phase[0] != '\0')
        hf_buf_printf(&text, "%sphase %s", text.len > 0 ? ", " : "", said->phase);
    if (said->last_tool[0] != '\0')
        hf_buf_printf(&text, "%slast tool %s", text.len > 0 ? ", " : "", said->last_tool);
    if (said->task[0] != '\0')
        hf_buf_printf(&text, "%stask %s", text.len > 0 ? ", " : "", said->task);
    if (said->has_percent)
        hf_buf_printf(&text, "%s%.0f %% done", text.len > 0 ? ", " : "", said->percent);
    if (said->tokens != 0 || said->errors != 0)
        hf_buf_printf(&text, "%s%" PRId64 " tokens, %" PRId64 " errors",
                      text.len > 0 ? ", " : "", said->tokens, said->errors);
    add(box, "report", &text);
}

/* Nothing, if its number may have been another's by then. Children are those of the first
 * process, whoever answers for it. */
static void add_process(const struct link_process *process, bool whole,
                        struct link_blackbox *box)
{
    static const char *const SOURCES[] = { "proc", "stack", "threads", "children", "sockets" };
    struct hf_buf texts[sizeof SOURCES / sizeof SOURCES[0]] = { 0 };
    const struct link_proc *proc = link_evidence_get_subject(process);
    bool is_own;

    link_proc_describe(proc, &texts[0]);
    link_proc_stack(proc->pid, &texts[1]);
    if (whole && proc->threads > 1)
        link_proc_threads(proc->pid, &texts[2]);
    if (whole) {
        link_proc_children(process->pid, &texts[3]);
        link_proc_sockets(proc->pid, &texts[4]);
    }
    is_own = proc->at != 0 && link_proc_is(proc->pid, proc->start_time) &&
             link_proc_is(process->pid, process->start_time);
    for (size_t i = 0; i < sizeof SOURCES / sizeof SOURCES[0]; i++) {
        if (is_own)
            add(box, SOURCES[i], &texts[i]);
        else
            hf_buf_done(&texts[i]);
    }
}

static void say_silence(const struct hf_detector *detector, const struct hf_detector_verdict *v,
                        double silence, const char *word, struct link_blackbox *box)
{
    if (detector->awaited != 0)
        (void)snprintf(
            box->why, sizeof box->why,
            "it answered pings before, and does not listen any more since its agentd "
            "has begun anew %.1f s ago: %s",
            silence, word);
    else
        (void)snprintf(box->why, sizeof box->why,
                       "it did not answer %u ping%s, and nothing was heard of it for %.1f s: "
                       "%s",
                       v->missed, v->missed == 1 ? "" : "s", silence, word);
}

static void say_why(const struct link_process *process, const struct hf_detector_verdict *v,
                    hf_ms now, struct link_blackbox *box)
{
    const struct link_evidence *evidence = &process->evidence;
    const struct link_proc *proc = link_evidence_get_subject(process);
    double silence = (double)(now - v->since) / 1000;
    HF_CLEANUP_BUF struct hf_buf said = { 0 };
    const char *word = "it is there";

    if (proc->at != 0)
        link_proc_say(proc, &said);
    if (proc->at != 0 && proc->pid != process->pid)
        hf_buf_printf(&said, " (%s, pid %d)", proc->name, (int)proc->pid);
    if (evidence->lost >= LOST_MIN_MS) /* which is not counted as silence */
        hf_buf_printf(&said, "%s, after %.1f s in which it waited for a processor",
                      said.len > 0 ? "" : word, (double)evidence->lost / 1000);
    if (said.err == HF_OK && said.len > 0)
        word = said.data;
    switch (v->source) {
    case HF_SOURCE_PING: say_silence(&evidence->detector, v, silence, word, box); break;
    case HF_SOURCE_PROBE:
        (void)snprintf(box->why, sizeof box->why, "%u probe%s failed in %.1f s (%s): %s",
                       v->missed, v->missed == 1 ? "" : "s", silence, evidence->probe_why,
                       word);
        break;
    case HF_SOURCE_PROCESS:
        (void)snprintf(box->why, sizeof box->why, "%s since %.1f s", word, silence);
        break;
    default:
        if (evidence->detector.gave_up)
            (void)snprintf(box->why, sizeof box->why, "it said itself that it hangs: %s", word);
        else
            (void)snprintf(box->why, sizeof box->why, "no %s came for %.1f s: %s",
                           hf_source_name(v->source), silence, word);
        break;
    }
}

/* What follows, as its launcher has it. */
static const char *say_next(const struct link_evidence *evidence,
                            const struct hf_detector_verdict *v)
{
    bool convicts = (evidence->policy.convicts & 1U << v->source) != 0;

    if (v->state == HF_DETECTOR_FROZEN)
        return evidence->ends ? "it is ended, and started again as its restart policy says"
                              : "nothing by itself: its launcher wants it to be reported alone";
    if (!convicts)
        return "nothing by itself: this alone does not show that it is frozen";
    return evidence->ends ? "it is frozen, and ended, unless it is heard of before"
                          : "it is called frozen, and left alone, unless it is heard of before";
}

void link_blackbox_fill(struct link_process *process, const struct hf_detector_verdict *verdict,
                        bool whole, hf_ms now, struct link_blackbox *ret)
{
    hf_ms wall = hf_clock_wall();

    *ret = (struct link_blackbox){ .why = "" };
    holdfast__v1__report__suspicion__init(&ret->record);
    ret->record.kind = (char *)hf_source_name(verdict->source);
    ret->record.phi = verdict->phi;
    ret->record.since = hf_moment_write(wall - (now - verdict->since), &ret->since);
    (void)hf_moment_write(wall, &ret->at);
    ret->record.frozen = verdict->state == HF_DETECTOR_FROZEN;
    say_why(process, verdict, now, ret);
    ret->record.why = ret->why;
    ret->record.next = (char *)say_next(&process->evidence, verdict);
    ret->record.evidence = ret->list;
    add_process(process, whole, ret);
    if (!whole)
        return;
    add_output(process, ret);
    add_said(process, ret);
}

void link_blackbox_done(struct link_blackbox *box)
{
    for (size_t i = 0; i < box->record.n_evidence; i++)
        hf_buf_done(&box->texts[i]);
}
