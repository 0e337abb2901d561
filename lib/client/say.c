/* How the agent is: heartbeats, states, who it is, goodbye. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "client/fields.h"
#include "client/private.h"
#include "client/request.h"
#include "schema/name.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* One of `count` words, NULL where a value has none. */
static int find_word(const char *const *words, size_t count, unsigned value, const char *what,
                     const char **ret_word, struct hf_error *err)
{
    if (value >= count)
        return hf_error_set(err, HF_EINVAL, "%s: there is no %u", what, value);
    *ret_word = words[value];
    return HF_OK;
}

static int add_report(struct hf_buf *body, const struct hf_client_report *report,
                      struct hf_error *err)
{
    static const char *const STATUS[] = { NULL, "healthy", "busy", "degraded" };
    const char *status = NULL;
    int rc = find_word(STATUS, COUNT(STATUS), report->status, "status", &status, err);

    if (rc != HF_OK)
        return rc;
    if (!(report->percent >= 0 && report->percent <= 100))
        return hf_error_set(err, HF_EINVAL, "percent: 0 to 100");
    if (report->tokens < 0 || report->errors < 0 || report->sequence < 0)
        return hf_error_set(err, HF_EINVAL, "tokens, errors, sequence: none is below 0");
    hf_fields_add_text(body, "status", status);
    hf_fields_add_text(body, "phase", report->phase);
    hf_fields_add_text(body, "lastTool", report->last_tool);
    hf_fields_add_text(body, "task", report->task);
    hf_fields_add_int(body, "tokens", report->tokens);
    hf_fields_add_int(body, "errors", report->errors);
    hf_fields_add_int(body, "sequence", report->sequence);
    hf_fields_add_number(body, "progress", report->percent);
    return HF_OK;
}

static int read_waiting(const struct hf_buf *body, struct hf_client_waiting *ret_waiting,
                        struct hf_error *err)
{
    struct hf_client_waiting waiting = { 0 };
    const struct hf_field inner[] = {
        { .name = "nudges", .kind = HF_FIELD_INT32, .place = &waiting.nudges },
        { .name = "tasks", .kind = HF_FIELD_INT32, .place = &waiting.tasks },
        { .name = "stop", .kind = HF_FIELD_BOOL, .place = &waiting.stop },
    };
    const struct hf_field outer[] = {
        { .name = "interval", .kind = HF_FIELD_DURATION, .place = &waiting.interval },
        { .name = "waiting", .kind = HF_FIELD_OBJECT, .inner = inner, .size = COUNT(inner) },
    };
    int rc = hf_fields_read(body->data, body->len, outer, COUNT(outer), err);

    if (rc == HF_OK && ret_waiting != NULL)
        *ret_waiting = waiting;
    return hf_request_corrupt(rc, err);
}

static int beat(struct hf_client *client, const char *path,
                const struct hf_client_report *report, struct hf_client_waiting *ret_waiting,
                struct hf_error *err)
{
    HF_CLEANUP_ANSWER struct hf_answer answer = { 0 };
    HF_CLEANUP_BUF struct hf_buf body = { 0 };
    struct hf_request request = { .method = "POST", .path = path };
    int rc = HF_OK;

    hf_fields_begin(&body);
    if (report != NULL)
        rc = add_report(&body, report, err);
    hf_fields_end(&body);
    if (rc == HF_OK)
        rc = hf_request_json(client, &request, &body, &answer, err);
    return rc < 0 ? rc : read_waiting(&answer.body, ret_waiting, err);
}

int hf_client_heartbeat(struct hf_client *client, const struct hf_client_report *report,
                        struct hf_client_waiting *ret_waiting, struct hf_error *err)
{
    return beat(client, "/v1/heartbeat", report, ret_waiting, err);
}

int hf_client_activity(struct hf_client *client, const struct hf_client_report *report,
                       struct hf_client_waiting *ret_waiting, struct hf_error *err)
{
    return beat(client, "/v1/activity", report, ret_waiting, err);
}

/* A request whose answer says nothing more than that it was granted. */
static int say(const struct hf_client *client, struct hf_request *request, struct hf_buf *body,
               struct hf_error *err)
{
    HF_CLEANUP_ANSWER struct hf_answer answer = { 0 };
    int rc = hf_request_json(client, request, body, &answer, err);

    return rc < 0 ? rc : HF_OK;
}

int hf_client_set_state(struct hf_client *client, enum hf_client_state state, hf_ms for_ms,
                        const char *reason, struct hf_error *err)
{
    static const char *const STATES[] = { "ready", "busy", "waiting", "parked", "draining" };
    struct hf_request request = { .method = "POST", .path = "/v1/state" };
    HF_CLEANUP_BUF struct hf_buf body = { 0 };
    const char *word = NULL;
    int rc = find_word(STATES, COUNT(STATES), state, "state", &word, err);

    if (rc != HF_OK)
        return rc;
    if (for_ms < 0 || for_ms > HF_DURATION_MAX)
        return hf_error_set(err, HF_EINVAL, "a state may last for 0 to ten years");
    hf_fields_begin(&body);
    hf_fields_add_text(&body, "state", word);
    if (for_ms > 0)
        hf_fields_add_time(&body, "until", hf_clock_wall() + for_ms);
    hf_fields_add_text(&body, "reason", reason);
    hf_fields_end(&body);
    return say(client, &request, &body, err);
}

int hf_client_busy(struct hf_client *client, hf_ms for_ms, const char *reason,
                   struct hf_error *err)
{
    if (for_ms <= 0)
        return hf_error_set(err, HF_EINVAL, "for how long it is busy has to be said");
    return hf_client_set_state(client, HF_CLIENT_BUSY, for_ms, reason, err);
}

int hf_client_ready(struct hf_client *client, struct hf_error *err)
{
    return hf_client_set_state(client, HF_CLIENT_READY, 0, NULL, err);
}

int hf_client_leave(struct hf_client *client, const char *reason, struct hf_error *err)
{
    struct hf_request request = { .method = "POST", .path = "/v1/leave" };
    HF_CLEANUP_BUF struct hf_buf body = { 0 };

    hf_fields_begin(&body);
    hf_fields_add_text(&body, "reason", reason);
    hf_fields_end(&body);
    return say(client, &request, &body, err);
}

int hf_client_read_nudge(struct hf_client *client, const char *id, struct hf_error *err)
{
    char path[HF_REQUEST_PATH_SIZE];
    struct hf_request request = { .method = "POST", .path = path };
    int rc = hf_name_check("id", id, err);

    if (rc != HF_OK)
        return rc;
    (void)snprintf(path, sizeof path, "/v1/nudges/%s/read", id);
    return say(client, &request, NULL, err);
}

enum { PONG_MS = 2000 };

/* An answer that comes too late is none, and whoever takes events waits here: nobody tries for
 * long. */
int hf_client_pong(struct hf_client *client, const char *id, struct hf_error *err)
{
    struct hf_request request = { .method = "POST", .path = "/v1/pong", .only_once = true };
    HF_CLEANUP_BUF struct hf_buf body = { 0 };

    if (client->timeout > PONG_MS)
        request.timeout = PONG_MS - client->timeout;
    hf_fields_begin(&body);
    hf_fields_add_text(&body, "id", id);
    hf_fields_end(&body);
    return say(client, &request, &body, err);
}

int hf_client_read_self(struct hf_client *client, struct hf_client_self *ret_self,
                        struct hf_error *err)
{
    HF_CLEANUP_ANSWER struct hf_answer answer = { 0 };
    struct hf_request request = { .method = "GET", .path = "/v1/self" };
    struct hf_client_self self = { .jeopardy = false };
    const struct hf_field fields[] = {
        { "agent", HF_FIELD_NAME, self.agent, sizeof self.agent, NULL },
        { "role", HF_FIELD_NAME, self.role, sizeof self.role, NULL },
        { "task", HF_FIELD_NAME, self.task, sizeof self.task, NULL },
        { .name = "fencingToken", .kind = HF_FIELD_INT, .place = &self.fencing_token },
        { .name = "ttl", .kind = HF_FIELD_DURATION, .place = &self.ttl },
        { .name = "jeopardy", .kind = HF_FIELD_BOOL, .place = &self.jeopardy },
    };
    int rc = hf_request_json(client, &request, NULL, &answer, err);

    if (rc < 0)
        return rc;
    rc = hf_fields_read(answer.body.data, answer.body.len, fields, COUNT(fields), err);
    if (rc == HF_OK)
        *ret_self = self;
    return hf_request_corrupt(rc, err);
}
