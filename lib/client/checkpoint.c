#include <stdlib.h>
#include <string.h>

#include "client/fields.h"
#include "client/private.h"
#include "client/request.h"

/* agentd says nothing before all of a checkpoint is stored, or fetched: with a bucket that
 * takes minutes. A link that dies closes the connection, and one that hangs is replaced. */
enum { TIMEOUT_MS = 15 * 60 * 1000 };

void hf_client_checkpoint_done(struct hf_client_checkpoint *checkpoint)
{
    free(checkpoint->data);
    *checkpoint = (struct hf_client_checkpoint){ .data = NULL };
}

/* Saving. */

static int read_seq(const struct hf_buf *body, int64_t *ret_seq, struct hf_error *err)
{
    int64_t seq = 0;
    const struct hf_field field = { .name = "seq", .kind = HF_FIELD_INT, .place = &seq };
    int rc = hf_fields_read(body->data, body->len, &field, 1, err);

    if (rc == HF_OK && seq < 1)
        rc = hf_error_set(err, HF_EINVAL, "a checkpoint without its number");
    if (rc == HF_OK && ret_seq != NULL)
        *ret_seq = seq;
    return hf_request_corrupt(rc, err);
}

int hf_client_save(struct hf_client *client, const char *id, const void *data, size_t len,
                   int64_t *ret_seq, struct hf_error *err)
{
    HF_CLEANUP_ANSWER struct hf_answer answer = { 0 };
    struct hf_request request = { .method = "PUT",
                                  .type = "application/octet-stream",
                                  .body = { data, len },
                                  .timeout = TIMEOUT_MS };
    char path[HF_REQUEST_PATH_SIZE];
    int rc = hf_request_path(id, "checkpoint", path, err);

    if (rc != HF_OK)
        return rc;
    request.path = path;
    rc = hf_request_json(client, &request, NULL, &answer, err);
    return rc < 0 ? rc : read_seq(&answer.body, ret_seq, err);
}

int hf_client_save_file(struct hf_client *client, const char *id, const char *path,
                        int64_t *ret_seq, struct hf_error *err)
{
    HF_CLEANUP_ANSWER struct hf_answer answer = { 0 };
    HF_CLEANUP_BUF struct hf_buf body = { 0 };
    struct hf_request request = { .method = "PUT", .timeout = TIMEOUT_MS };
    char where[HF_REQUEST_PATH_SIZE];
    int rc = hf_request_path(id, "checkpoint", where, err);

    if (rc != HF_OK)
        return rc;
    if (path == NULL || path[0] != '/')
        return hf_error_set(err, HF_EINVAL,
                            "path: from the root on, since agentd is elsewhere");
    request.path = where;
    hf_fields_begin(&body);
    hf_fields_add_text(&body, "path", path);
    hf_fields_end(&body);
    rc = hf_request_json(client, &request, &body, &answer, err);
    return rc < 0 ? rc : read_seq(&answer.body, ret_seq, err);
}

/* Loading. */

/* 1, or 0 when there is none. */
static int load(const struct hf_client *client, const char *id, int fd,
                struct hf_answer *answer, struct hf_error *err)
{
    struct hf_request request = { .method = "GET", .timeout = TIMEOUT_MS, .fd = fd };
    char path[HF_REQUEST_PATH_SIZE];
    int rc = hf_request_path(id, "checkpoint", path, err);

    if (rc != HF_OK)
        return rc;
    request.path = path;
    answer->body.limit = client->checkpoint_max;
    rc = hf_request_do(client, &request, answer, err);
    if (rc < 0)
        return rc == HF_ENOENT ? 0 : rc;
    /* What has no length may have been cut off, and nobody would know. */
    if (rc != 200 || answer->head.seq < 1 || answer->head.sha256[0] == '\0' ||
        answer->head.length < 0)
        return hf_error_set(err, HF_ECORRUPT,
                            "agentd's answer: a checkpoint without number, digest or length");
    return 1;
}

static void describe(const struct hf_answer *answer, struct hf_client_checkpoint *checkpoint)
{
    checkpoint->len = (size_t)answer->head.length;
    checkpoint->seq = answer->head.seq;
    memcpy(checkpoint->sha256, answer->head.sha256, sizeof checkpoint->sha256);
}

int hf_client_load(struct hf_client *client, const char *id,
                   struct hf_client_checkpoint *ret_checkpoint, struct hf_error *err)
{
    HF_CLEANUP_ANSWER struct hf_answer answer = { 0 };
    struct hf_client_checkpoint checkpoint = { .data = NULL };
    int rc = load(client, id, -1, &answer, err);

    if (rc <= 0)
        return rc;
    describe(&answer, &checkpoint);
    rc = hf_buf_take(&answer.body, &checkpoint.data, NULL);
    if (rc != HF_OK)
        return hf_error_set(err, rc, "%s", hf_err_text(rc));
    *ret_checkpoint = checkpoint;
    return 1;
}

int hf_client_load_to(struct hf_client *client, const char *id, int fd,
                      struct hf_client_checkpoint *ret_checkpoint, struct hf_error *err)
{
    HF_CLEANUP_ANSWER struct hf_answer answer = { 0 };
    struct hf_client_checkpoint checkpoint = { .data = NULL };
    int rc;

    if (fd < 0)
        return hf_error_set(err, HF_EINVAL, "fd: a descriptor that is open");
    rc = load(client, id, fd, &answer, err);
    if (rc <= 0)
        return rc;
    describe(&answer, &checkpoint);
    *ret_checkpoint = checkpoint;
    return 1;
}
