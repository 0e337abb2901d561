#include "client/task.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/id.h"
#include "base/str.h"
#include "client/fields.h"
#include "client/private.h"
#include "client/request.h"
#include "schema/name.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum {
    WAIT_MAX_MS = 300000, /* that agentd lets anybody wait */
    WAIT_MS = 30000       /* of whoever does not say for how long */
};

/* Records. */

void hf_client_task_done(struct hf_client_task *task)
{
    free(task->id);
    free(task->role);
    free(task->payload);
    free(task->result);
    free(task->reason);
    free(task->json);
    *task = (struct hf_client_task){ 0 };
}

static enum hf_client_task_state state_of(const char *word)
{
    static const char *const WORDS[] = {
        "queued",    "pending", "acknowledged", "in_progress",
        "completed", "failed",  "cancelled",    "needs_review"
    };

    for (size_t i = 0; i < COUNT(WORDS); i++) {
        if (strcmp(word, WORDS[i]) == 0)
            return (enum hf_client_task_state)(HF_CLIENT_TASK_QUEUED + i);
    }
    return HF_CLIENT_TASK_UNKNOWN;
}

/* So that nobody has to look whether there is one. */
static bool fill_texts(struct hf_client_task *task)
{
    char **texts[] = { &task->role, &task->payload, &task->result, &task->reason };

    for (size_t i = 0; i < COUNT(texts); i++) {
        if (*texts[i] == NULL && (*texts[i] = hf_strdup("")) == NULL)
            return false;
    }
    return true;
}

static int parse(const char *text, size_t len, struct hf_client_task *task,
                 struct hf_error *err)
{
    char state[32] = "";
    const struct hf_field checkpoint = { .name = "seq",
                                         .kind = HF_FIELD_INT,
                                         .place = &task->checkpoint };
    const struct hf_field fields[] = {
        { .name = "id", .kind = HF_FIELD_TEXT, .place = (void *)&task->id },
        { .name = "role", .kind = HF_FIELD_TEXT, .place = (void *)&task->role },
        { .name = "payload", .kind = HF_FIELD_TEXT, .place = (void *)&task->payload },
        { .name = "result", .kind = HF_FIELD_TEXT, .place = (void *)&task->result },
        { .name = "reason", .kind = HF_FIELD_TEXT, .place = (void *)&task->reason },
        { .name = "state", .kind = HF_FIELD_CUT, .place = state, .size = sizeof state },
        { .name = "attempt", .kind = HF_FIELD_INT32, .place = &task->attempt },
        { .name = "priority", .kind = HF_FIELD_INT32, .place = &task->priority },
        { .name = "checkpoint", .kind = HF_FIELD_OBJECT, .inner = &checkpoint, .size = 1 },
    };
    int rc = hf_fields_read(text, len, fields, COUNT(fields), err);

    if (rc != HF_OK)
        return rc;
    /* It will stand in the path of what is asked next. */
    rc = hf_name_check("the task's id", task->id, err);
    if (rc != HF_OK)
        return rc;
    task->state = state_of(state);
    task->json = hf_memdup(text, len);
    if (task->json == NULL || !fill_texts(task))
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    return HF_OK;
}

int hf_client_task_parse(const char *text, size_t len, struct hf_client_task *ret_task,
                         struct hf_error *err)
{
    struct hf_client_task task = { 0 };
    int rc = parse(text, len, &task, err);

    if (rc == HF_OK)
        *ret_task = task;
    else
        hf_client_task_done(&task);
    return rc;
}

/* Requests. */

/* `ret_task` may be NULL: then nobody wants to know. */
static int ask(const struct hf_client *client, struct hf_request *request,
               const struct hf_buf *body, struct hf_client_task *ret_task, struct hf_error *err)
{
    HF_CLEANUP_ANSWER struct hf_answer answer = { 0 };
    int status = hf_request_json(client, request, body, &answer, err), rc = HF_OK;

    if (status < 0)
        return status;
    if (ret_task != NULL && status != 204)
        rc = hf_client_task_parse(answer.body.data, answer.body.len, ret_task, err);
    return rc != HF_OK ? hf_request_corrupt(rc, err) : status;
}

int hf_client_claim(struct hf_client *client, hf_ms wait, struct hf_client_task *ret_task,
                    struct hf_error *err)
{
    struct hf_request request = { .method = "POST",
                                  .path = "/v1/tasks/claim",
                                  .is_wait = true };
    HF_CLEANUP_BUF struct hf_buf body = { 0 };
    int status;

    if (wait < 0)
        return hf_error_set(err, HF_EINVAL, "wait: not below 0");
    wait = wait < WAIT_MAX_MS ? wait : WAIT_MAX_MS;
    request.timeout = wait;
    hf_fields_begin(&body);
    hf_fields_add_duration(&body, "wait", wait);
    hf_fields_end(&body);
    status = ask(client, &request, &body, ret_task, err);
    return status < 0 ? status : status != 204;
}

int hf_client_next_task(struct hf_client *client, struct hf_client_task *ret_task,
                        struct hf_error *err)
{
    for (;;) {
        struct hf_client_task task = { 0 };
        int rc = hf_client_claim(client, WAIT_MS, &task, err);

        if (rc == 0)
            continue;
        if (rc > 0)
            rc = hf_client_start(client, task.id, err);
        if (rc == HF_OK) {
            task.state = HF_CLIENT_TASK_IN_PROGRESS;
            *ret_task = task;
            return 1;
        }
        hf_client_task_done(&task);
        if (rc != HF_ECONFLICT) /* else it was taken away in this very moment */
            return rc;
    }
}

int hf_client_submit(struct hf_client *client, const char *id, const char *role,
                     const char *payload, int32_t priority, struct hf_client_task *ret_task,
                     struct hf_error *err)
{
    struct hf_request request = { .method = "POST", .path = "/v1/tasks" };
    HF_CLEANUP_BUF struct hf_buf body = { 0 };
    char made_up[HF_ID_LEN + 1];
    int status, rc = hf_name_check("role", role, err);

    if (rc == HF_OK && id != NULL)
        rc = hf_name_check("id", id, err);
    if (rc != HF_OK)
        return rc;
    /* By us, so that what has to be asked twice is still one task. */
    if (id == NULL && hf_id_new(made_up) != HF_OK)
        return hf_error_set(err, HF_EIO, "no random numbers for an id");
    hf_fields_begin(&body);
    hf_fields_add_text(&body, "id", id != NULL ? id : made_up);
    hf_fields_add_text(&body, "role", role);
    hf_fields_add_text(&body, "payload", payload);
    hf_fields_add_int(&body, "priority", priority);
    hf_fields_end(&body);
    status = ask(client, &request, &body, ret_task, err);
    return status < 0 ? status : status == 201;
}

int hf_client_read_task(struct hf_client *client, const char *id,
                        struct hf_client_task *ret_task, struct hf_error *err)
{
    struct hf_request request = { .method = "GET" };
    char path[HF_REQUEST_PATH_SIZE];
    int rc = hf_request_path(id, "", path, err);

    if (rc != HF_OK)
        return rc;
    request.path = path;
    rc = ask(client, &request, NULL, ret_task, err);
    return rc < 0 ? rc : HF_OK;
}

/* What becomes of a task; the body is what was said of it. */
static int work(const struct hf_client *client, const char *id, const char *what,
                const struct hf_buf *body, struct hf_error *err)
{
    struct hf_request request = { .method = "POST" };
    char path[HF_REQUEST_PATH_SIZE];
    int rc = hf_request_path(id, what, path, err);

    if (rc != HF_OK)
        return rc;
    request.path = path;
    rc = ask(client, &request, body, NULL, err);
    return rc < 0 ? rc : HF_OK;
}

static int work_with(const struct hf_client *client, const char *id, const char *what,
                     const char *name, const char *text, struct hf_error *err)
{
    HF_CLEANUP_BUF struct hf_buf body = { 0 };

    hf_fields_begin(&body);
    hf_fields_add_text(&body, name, text);
    hf_fields_end(&body);
    return work(client, id, what, &body, err);
}

int hf_client_start(struct hf_client *client, const char *id, struct hf_error *err)
{
    return work(client, id, "start", NULL, err);
}

int hf_client_progress(struct hf_client *client, const char *id, double percent,
                       const char *note, struct hf_error *err)
{
    HF_CLEANUP_BUF struct hf_buf body = { 0 };

    if (!(percent >= 0 && percent <= 100))
        return hf_error_set(err, HF_EINVAL, "percent: 0 to 100");
    hf_fields_begin(&body);
    hf_fields_add_number(&body, "percent", percent);
    hf_fields_add_text(&body, "note", note);
    hf_fields_end(&body);
    return work(client, id, "progress", &body, err);
}

int hf_client_complete(struct hf_client *client, const char *id, const char *result,
                       struct hf_error *err)
{
    return work_with(client, id, "complete", "result", result, err);
}

int hf_client_fail(struct hf_client *client, const char *id, const char *reason,
                   struct hf_error *err)
{
    return work_with(client, id, "fail", "reason", reason, err);
}

int hf_client_release(struct hf_client *client, const char *id, const char *reason,
                      struct hf_error *err)
{
    return work_with(client, id, "release", "reason", reason, err);
}
