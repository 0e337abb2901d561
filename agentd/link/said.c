#include "agentd/link/said.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"

static const char MISSED[] = "heartbeats_missed";
static const char EXTENDED[] = "it asked for time"; /* why it is busy, if for nothing else */

/* A number that the schema has no name for: of who speaks a later version, or nonsense. */
static bool has_name(const ProtobufCEnumDescriptor *type, int value)
{
    return protobuf_c_enum_descriptor_get_value(type, value) != NULL;
}

/* A text that is too long is not cut: who sent it should know. */
static int take_text(const char *what, const char *text, char place[LINK_SAID_TEXT],
                     struct hf_error *err)
{
    if (text[0] == '\0')
        return HF_OK;
    if (strlen(text) >= LINK_SAID_TEXT)
        return hf_error_set(err, HF_EINVAL, "%s: at most %d bytes", what, LINK_SAID_TEXT - 1);
    memcpy(place, text, strlen(text) + 1);
    return HF_OK;
}

static int take_numbers(struct link_said *said, const Holdfast__V1__Heartbeat *beat,
                        struct hf_error *err)
{
    if (beat->tokens < 0 || beat->errors < 0 || beat->sequence < 0)
        return hf_error_set(err, HF_EINVAL, "tokens, errors, sequence: none is below 0");
    if (!(beat->progress >= 0 && beat->progress <= 100))
        return hf_error_set(err, HF_EINVAL, "progress: a percentage, 0 to 100");
    said->tokens = beat->tokens != 0 ? beat->tokens : said->tokens;
    said->errors = beat->errors != 0 ? beat->errors : said->errors;
    said->sequence = beat->sequence != 0 ? beat->sequence : said->sequence;
    if (beat->progress > 0) {
        said->has_percent = true;
        said->percent = beat->progress;
    }
    return HF_OK;
}

int link_said_take_heartbeat(struct link_said *said, const Holdfast__V1__Heartbeat *beat,
                             struct hf_error *err)
{
    struct link_said next = *said;
    int rc = take_text("phase", beat->phase, next.phase, err);

    if (rc == HF_OK)
        rc = take_text("lastTool", beat->last_tool, next.last_tool, err);
    if (rc == HF_OK)
        rc = take_numbers(&next, beat, err);
    if (rc == HF_OK && beat->task[0] != '\0')
        rc = hf_name_check("task", beat->task, err);
    if (rc == HF_OK && !has_name(&holdfast__v1__agent_status__value__descriptor, beat->status))
        rc = hf_error_set(err, HF_EINVAL, "status: one of healthy, busy, degraded");
    if (rc != HF_OK)
        return rc;
    if (beat->task[0] != '\0')
        memcpy(next.task, beat->task, strlen(beat->task) + 1);
    if (beat->status != HOLDFAST__V1__AGENT_STATUS__VALUE__unknown)
        next.status = beat->status;
    *said = next;
    return HF_OK;
}

int link_said_take_state(struct link_said *said, const Holdfast__V1__StateRequest *state,
                         struct hf_error *err)
{
    struct link_said next = *said;
    int rc;

    if (state->state == HOLDFAST__V1__AGENT_STATE__VALUE__unknown ||
        !has_name(&holdfast__v1__agent_state__value__descriptor, state->state))
        return hf_error_set(err, HF_EINVAL,
                            "state: one of ready, busy, waiting, parked, draining");
    next.reason[0] = '\0';
    rc = take_text("reason", state->reason, next.reason, err);
    if (rc != HF_OK)
        return rc;
    next.state = state->state;
    next.extended = next.kept = false;
    next.has_until = state->until != NULL;
    if (next.has_until) {
        next.until_s = state->until->seconds;
        next.until_ns = state->until->nanos;
    }
    next.speaks = true;
    *said = next;
    return HF_OK;
}

#define MINUTE_MS INT64_C(60000)
#define DAY_MS    (MINUTE_MS * 24 * 60)

/* What is announced without an end lasts so long. */
static int64_t length_of(Holdfast__V1__AgentState__Value state)
{
    switch (state) {
    case HOLDFAST__V1__AGENT_STATE__VALUE__busy:
    case HOLDFAST__V1__AGENT_STATE__VALUE__draining: return 10 * MINUTE_MS;
    case HOLDFAST__V1__AGENT_STATE__VALUE__parked: return 60 * MINUTE_MS;
    case HOLDFAST__V1__AGENT_STATE__VALUE__waiting: return DAY_MS;
    default: return 0;
    }
}

static void set_end(struct link_said *said, int64_t wall)
{
    said->has_until = true;
    said->until_s = wall / 1000;
    said->until_ns = (int32_t)(wall % 1000) * 1000000;
}

int64_t link_said_settle(struct link_said *said, int64_t wall)
{
    int64_t length = length_of(said->state);
    bool keeps = length == 0;

    if (length != 0 && said->has_until) {
        /* Seconds first: a day in the year 9999 has more milliseconds than one may multiply. */
        int64_t seconds = said->until_s - wall / 1000;

        if (seconds <= LINK_SAID_MOST_MS / 1000)
            length = said->until_s * 1000 + said->until_ns / 1000000 - wall;
        keeps = seconds <= LINK_SAID_MOST_MS / 1000 && length <= LINK_SAID_MOST_MS;
        length = keeps ? length : LINK_SAID_MOST_MS;
    }
    if (!keeps)
        set_end(said, wall + length);
    return length > 0 ? length : 0;
}

void link_said_extend(struct link_said *said, int64_t until_wall)
{
    said->kept = false;
    if (length_of(said->state) == 0) {
        said->state = HOLDFAST__V1__AGENT_STATE__VALUE__busy;
        said->extended = true;
        (void)snprintf(said->reason, sizeof said->reason, "%s", EXTENDED);
    }
    set_end(said, until_wall);
}

void link_said_end_extension(struct link_said *said)
{
    if (!said->extended)
        return;
    said->state = HOLDFAST__V1__AGENT_STATE__VALUE__ready;
    said->has_until = said->extended = false;
    said->reason[0] = '\0';
}

static void take_status(struct link_said *said, const char *text, size_t len)
{
    while (len >= LINK_SAID_TEXT || (len > 0 && !hf_str_is_utf8(text, len)))
        len--;
    (void)snprintf(said->phase, sizeof said->phase, "%.*s", (int)len, text);
}

static bool is_line(const char *line, size_t len, const char *text)
{
    return len == strlen(text) && strncmp(line, text, len) == 0;
}

/* The number of microseconds behind the name, in milliseconds, never 0. */
static bool take_usec(const char *line, size_t len, const char *name, int64_t *ret_ms)
{
    size_t skip = strlen(name);
    char digits[24];
    uint64_t usec;

    if (len <= skip || len - skip >= sizeof digits || strncmp(line, name, skip) != 0)
        return false;
    memcpy(digits, line + skip, len - skip);
    digits[len - skip] = '\0';
    if (hf_parse_u64(digits, 1, INT64_MAX, &usec) != HF_OK)
        return false;
    *ret_ms = (int64_t)(usec / 1000 + (usec % 1000 != 0));
    return true;
}

static bool take_turn(struct link_said *said, Holdfast__V1__AgentState__Value state)
{
    said->state = state;
    said->reason[0] = '\0'; /* that of the state before */
    said->has_until = said->extended = said->kept = false;
    said->turns = true;
    return true;
}

static bool take_line(struct link_said *said, const char *line, size_t len)
{
    static const char STATUS[] = "STATUS=";

    if (is_line(line, len, "READY=1"))
        return take_turn(said, HOLDFAST__V1__AGENT_STATE__VALUE__ready);
    if (is_line(line, len, "STOPPING=1"))
        return take_turn(said, HOLDFAST__V1__AGENT_STATE__VALUE__draining);
    if (len >= strlen(STATUS) && strncmp(line, STATUS, strlen(STATUS)) == 0) {
        take_status(said, line + strlen(STATUS), len - strlen(STATUS));
        return true;
    }
    if (is_line(line, len, "WATCHDOG=1")) {
        said->beats = said->feeds = true;
        return true;
    }
    if (is_line(line, len, "WATCHDOG=trigger")) {
        said->gives_up = true;
        return true;
    }
    return take_usec(line, len, "WATCHDOG_USEC=", &said->watchdog_ms) ||
           take_usec(line, len, "EXTEND_TIMEOUT_USEC=", &said->extend_ms);
}

bool link_said_take_notice(struct link_said *said, const char *text)
{
    bool taken = false;

    while (*text != '\0') {
        size_t len = strcspn(text, "\n");

        taken |= take_line(said, text, len);
        text += len + (text[len] == '\n' ? 1 : 0);
    }
    return taken;
}

static void fill_text(char place[LINK_SAID_TEXT], const char *text)
{
    if (place[0] == '\0')
        (void)snprintf(place, LINK_SAID_TEXT, "%.*s", (int)hf_str_cut(text, LINK_SAID_TEXT - 1),
                       text);
}

void link_said_keep(struct link_said *said, int state, int64_t until_wall, int64_t wall)
{
    if (state == HOLDFAST__V1__AGENT_STATE__VALUE__unknown ||
        !has_name(&holdfast__v1__agent_state__value__descriptor, state))
        return;
    said->state = (Holdfast__V1__AgentState__Value)state;
    said->kept = true;
    if (length_of(said->state) != 0)
        set_end(said, until_wall != 0 ? until_wall : wall);
}

static void fill_reason(struct link_said *said, const Holdfast__V1__Report *report)
{
    fill_text(said->reason, report->reason);
    said->extended = said->state == HOLDFAST__V1__AGENT_STATE__VALUE__busy &&
                     strcmp(said->reason, EXTENDED) == 0;
}

/* A state and what belongs to it. */
static void fill_state(struct link_said *said, const Holdfast__V1__Report *report)
{
    if (said->kept && said->state == report->state)
        fill_reason(said, report);
    if (said->state != HOLDFAST__V1__AGENT_STATE__VALUE__unknown)
        return;
    said->state = report->state;
    fill_reason(said, report);
    said->has_until = report->until != NULL;
    if (said->has_until) {
        said->until_s = report->until->seconds;
        said->until_ns = report->until->nanos;
    }
}

static void fill_counter(struct link_said *said,
                         const Holdfast__V1__Report__CountersEntry *entry)
{
    int64_t *counter = strcmp(entry->key, "errors") == 0     ? &said->errors
                       : strcmp(entry->key, MISSED) == 0     ? &said->missed
                       : strcmp(entry->key, "sequence") == 0 ? &said->sequence
                       : strcmp(entry->key, "tokens") == 0   ? &said->tokens
                                                             : NULL;

    if (counter != NULL && *counter == 0)
        *counter = entry->value;
}

bool link_said_take_report(struct link_said *said, const Holdfast__V1__Report *report)
{
    const Holdfast__V1__Report__Progress *progress = report->progress;
    bool is_newer = said->kept && said->state != report->state;

    fill_state(said, report);
    fill_text(said->phase, report->phase);
    fill_text(said->last_tool, report->last_tool);
    if (said->task[0] == '\0' && strlen(report->task) < sizeof said->task)
        memcpy(said->task, report->task, strlen(report->task) + 1);
    if (said->status == HOLDFAST__V1__AGENT_STATUS__VALUE__unknown)
        said->status = report->status;
    for (size_t i = 0; i < report->n_counters; i++)
        fill_counter(said, report->counters[i]);
    /* One with a time is that of a task, which the node knows. */
    if (!said->has_percent && progress != NULL && progress->updated == NULL) {
        said->has_percent = true;
        said->percent = progress->percent;
    }
    return is_newer;
}

static void add_counter(struct link_said_report *report, const char *name, int64_t value)
{
    Holdfast__V1__Report__CountersEntry *entry = &report->entries[report->record.n_counters];

    if (value == 0)
        return;
    holdfast__v1__report__counters_entry__init(entry);
    entry->key = (char *)name;
    entry->value = value;
    report->counters[report->record.n_counters++] = entry;
}

void link_said_fill(struct link_said *said, struct link_said_report *ret_report)
{
    Holdfast__V1__Report *record = &ret_report->record;

    holdfast__v1__report__init(record);
    record->status = said->status;
    record->state = said->state;
    record->phase = said->phase;
    record->last_tool = said->last_tool;
    record->reason = said->reason;
    record->task = said->task;
    record->counters = ret_report->counters;
    add_counter(ret_report, "errors", said->errors);
    add_counter(ret_report, MISSED, said->missed);
    add_counter(ret_report, "sequence", said->sequence);
    add_counter(ret_report, "tokens", said->tokens);
    if (said->has_percent) {
        holdfast__v1__report__progress__init(&ret_report->progress);
        ret_report->progress.percent = said->percent;
        record->progress = &ret_report->progress;
    }
    if (said->has_until) {
        google__protobuf__timestamp__init(&ret_report->until);
        ret_report->until.seconds = said->until_s;
        ret_report->until.nanos = said->until_ns;
        record->until = &ret_report->until;
    }
}
