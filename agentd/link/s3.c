#include "agentd/link/s3.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

/* What a job may take: a server that is away uses up its attempts long before that. */
enum {
    MOST_HELPERS = 4,
    MOST_WRITERS = MOST_HELPERS - 1, /* a task that waits to go on is not kept by uploads */
    MOST_WAITING = 1000,
    MOST_BEFORE_CHORE = MOST_WAITING / 2, /* that wait when one more is left for another time */
    MOST_TRIES = 2,
    JOB_MS = 600000,
    BYTES_PER_MS = 64,
};

struct helper {
    struct link_s3 *s3;
    struct link_s3_job *job; /* NULL: it is free */
    uv_process_t process;
    uv_poll_t poll;
    uv_timer_t timer; /* of the job; without one, of its rest */
    int fd;           /* -1: there is no such helper */
    unsigned open;    /* handles that are not closed yet */
};

struct link_s3 {
    uv_loop_t *loop;
    const struct hf_s3_settings *settings;
    hf_ms idle; /* that a helper without work stays */
    struct link_s3_job *first, **end;
    size_t waiting;
    bool closing;
    unsigned open; /* handles of all helpers */
    struct helper helpers[MOST_HELPERS];
};

static void go_on(struct link_s3 *s3);

/* A helper's end. */

static void free_when_closed(struct link_s3 *s3)
{
    if (s3->closing && s3->open == 0)
        free(s3);
}

static void on_closed(uv_handle_t *handle)
{
    struct helper *helper = handle->data;
    struct link_s3 *s3 = helper->s3;

    s3->open--;
    if (--helper->open == 0 && !s3->closing)
        go_on(s3);
    free_when_closed(s3);
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle))
        uv_close(handle, on_closed);
}

static void on_idle(uv_timer_t *timer);

static void finish(struct helper *helper, int err, const char *text)
{
    struct link_s3_job *job = helper->job;

    helper->job = NULL;
    if (helper->fd >= 0)
        (void)uv_timer_start(&helper->timer, on_idle, (uint64_t)helper->s3->idle, 0);
    uv_unref((uv_handle_t *)&helper->poll);
    job->fn(job, err, text);
}

static void push_first(struct link_s3 *s3, struct link_s3_job *job)
{
    job->next = s3->first;
    if (s3->first == NULL)
        s3->end = &job->next;
    s3->first = job;
    s3->waiting++;
}

/* The socket first: who sees it closed gives up what it is at. What it was at is done again by
 * another one, unless it was another one already. */
static void drop_helper(struct helper *helper, const char *why)
{
    struct link_s3_job *job = helper->job;

    if (helper->fd < 0)
        return;
    (void)uv_poll_stop(&helper->poll);
    (void)close(helper->fd);
    helper->fd = -1;
    close_handle((uv_handle_t *)&helper->poll);
    close_handle((uv_handle_t *)&helper->timer);
    if (job == NULL)
        return;
    HF_LOG_WARN("s3_helper_lost", HF_STR("why", why), HF_STR("object", job->name),
                HF_STR("next", job->tries < MOST_TRIES ? "another one tries" : "given up"));
    if (job->tries < MOST_TRIES && !helper->s3->closing) {
        helper->job = NULL;
        push_first(helper->s3, job);
    } else {
        finish(helper, HF_EAGAIN, "what talks to the bucket has died: try again");
    }
}

static void on_exit_of(uv_process_t *process, int64_t status, int number)
{
    struct helper *helper = process->data;

    (void)status;
    drop_helper(helper, number != 0 ? "it was killed" : "it ended");
    close_handle((uv_handle_t *)process);
}

/* It goes when it sees its socket closed. */
static void on_idle(uv_timer_t *timer)
{
    drop_helper(timer->data, "");
}

static void on_late(uv_timer_t *timer)
{
    struct helper *helper = timer->data;

    (void)uv_process_kill(&helper->process, SIGKILL);
    drop_helper(helper, "it took too long");
}

/* What it says. */

static void take_names(const struct link_s3_job *job, const struct s3_packet *packet)
{
    const char *name = s3_packet_get(packet, 0);

    for (uint32_t i = 0; i < packet->count; i++, name += strlen(name) + 1)
        job->on_name(name, job->arg);
}

static void take_end(struct helper *helper, const struct s3_packet *packet)
{
    struct link_s3_job *job = helper->job;
    struct link_s3 *s3 = helper->s3;

    if (packet->err == HF_OK && job->type == S3_PUT) {
        job->size = packet->size;
        (void)snprintf(job->sha256, sizeof job->sha256, "%s", s3_packet_get(packet, 1));
    }
    finish(helper, packet->err, s3_packet_get(packet, 0));
    go_on(s3);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct helper *helper = poll->data;
    union {
        struct s3_packet packet;
        char bytes[S3_PACKET_MAX];
    } room;
    int file = -1;
    ssize_t len = s3_packet_receive(helper->fd, &room, sizeof room, &file);

    (void)events;
    if (file >= 0)
        (void)close(file); /* none is ever given */
    if (status == 0 && len == -EAGAIN)
        return;
    if (len <= 0 || s3_packet_check(&room, (size_t)len) != NULL || helper->job == NULL) {
        (void)uv_process_kill(&helper->process, SIGKILL);
        drop_helper(helper, len == 0 ? "it closed its end" : "it says what makes no sense");
        go_on(helper->s3);
    } else if (room.packet.type == S3_NAMES && helper->job->on_name != NULL) {
        take_names(helper->job, &room.packet);
    } else if (room.packet.type == S3_DONE) {
        take_end(helper, &room.packet);
    }
}

/* A helper's beginning. */

/* Beside us. */
static int find_program(char ret_path[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);
    char *slash;

    if (len <= 0)
        return HF_EIO;
    ret_path[len] = '\0';
    slash = strrchr(ret_path, '/');
    if (slash == NULL)
        return HF_EIO;
    (void)snprintf(slash, PATH_MAX - (size_t)(slash - ret_path), "/agentd-s3");
    return HF_OK;
}

static int spawn(struct helper *helper, const char *path, int theirs)
{
    char *args[] = { (char *)"agentd-s3", NULL };
    uv_stdio_container_t stdio[3] = {
        { .flags = UV_INHERIT_FD, .data.fd = theirs },
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
    };
    uv_process_options_t options = {
        .exit_cb = on_exit_of, .file = path, .args = args, .stdio = stdio, .stdio_count = 3
    };

    return uv_spawn(helper->s3->loop, &helper->process, &options) == 0 ? HF_OK : HF_EIO;
}

static int send_settings(const struct helper *helper)
{
    const struct hf_s3_settings *settings = helper->s3->settings;
    HF_CLEANUP_BUF struct hf_buf packet = { 0 };
    struct s3_packet head = { .type = S3_SETUP,
                              .count = S3_SETUP_COUNT,
                              .err = (int32_t)settings->addressing,
                              .size = settings->timeout };
    const char *texts[S3_SETUP_COUNT] = {
        [S3_SETUP_BUCKET] = settings->bucket,
        [S3_SETUP_ENDPOINT] = settings->endpoint,
        [S3_SETUP_REGION] = settings->region,
        [S3_SETUP_PREFIX] = settings->prefix,
        [S3_SETUP_CREDENTIALS_FILE] = settings->credentials_file,
        [S3_SETUP_PROFILE] = settings->profile,
        [S3_SETUP_ACCESS_KEY_ID] = settings->access_key_id,
        [S3_SETUP_SECRET_ACCESS_KEY] = settings->secret_access_key,
        [S3_SETUP_SESSION_TOKEN] = settings->session_token,
        [S3_SETUP_CACERT] = settings->cacert,
    };
    int rc = s3_packet_make(&packet, &head, texts);

    if (rc == HF_OK && s3_packet_send(helper->fd, &packet, -1) != 0)
        rc = HF_EIO;
    if (packet.data != NULL)
        explicit_bzero(packet.data, packet.len);
    return rc;
}

/* Handles that are begun are closed again when one that follows cannot be. */
static int start_helper(struct link_s3 *s3, struct helper *helper)
{
    char path[PATH_MAX];
    int pair[2], rc = find_program(path);
    bool spawned;

    if (rc != HF_OK)
        return rc;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) != 0)
        return HF_EIO;
    *helper = (struct helper){ .s3 = s3, .fd = pair[0] };
    helper->process.data = helper->poll.data = helper->timer.data = helper;
    rc = spawn(helper, path, pair[1]);
    spawned = rc == HF_OK;
    (void)close(pair[1]);
    helper->open = 3;
    s3->open += 3;
    (void)uv_poll_init(s3->loop, &helper->poll, helper->fd);
    (void)uv_timer_init(s3->loop, &helper->timer);
    if (rc == HF_OK)
        rc = send_settings(helper);
    if (rc == HF_OK && uv_poll_start(&helper->poll, UV_READABLE, on_readable) != 0)
        rc = HF_EIO;
    uv_unref((uv_handle_t *)&helper->process); /* nobody waits for one that is free */
    uv_unref((uv_handle_t *)&helper->poll);
    uv_unref((uv_handle_t *)&helper->timer);
    if (rc != HF_OK)
        drop_helper(helper, "");
    if (!spawned) /* else it ends, and is reaped */
        close_handle((uv_handle_t *)&helper->process);
    return rc;
}

static int send_job(struct helper *helper, struct link_s3_job *job)
{
    HF_CLEANUP_BUF struct hf_buf packet = { 0 };
    const char *texts[] = { job->name, job->type == S3_GET ? job->sha256 : job->owner };
    struct s3_packet head = { .type = job->type,
                              .count = job->type == S3_GET || job->type == S3_LIST ? 2 : 1,
                              .size = job->size };
    int rc = s3_packet_make(&packet, &head, texts);

    if (job->file >= 0)
        (void)lseek(job->file, 0, SEEK_SET); /* one that died may have read of it */
    if (rc == HF_OK && s3_packet_send(helper->fd, &packet, job->file) != 0)
        rc = HF_EIO;
    return rc;
}

static void give(struct helper *helper, struct link_s3_job *job)
{
    helper->job = job;
    job->tries++;
    uv_ref((uv_handle_t *)&helper->poll);
    (void)uv_timer_start(&helper->timer, on_late,
                         (uint64_t)(JOB_MS + (job->size > 0 ? job->size / BYTES_PER_MS : 0)),
                         0);
    if (send_job(helper, job) != HF_OK)
        drop_helper(helper, "it does not listen");
}

/* One that is free; else a place for another one. */
static struct helper *find_helper(struct link_s3 *s3)
{
    struct helper *found = NULL;

    for (size_t i = 0; i < MOST_HELPERS; i++) {
        struct helper *helper = &s3->helpers[i];

        if (helper->fd >= 0 && helper->job == NULL)
            return helper;
        if (helper->fd < 0 && helper->open == 0 && found == NULL)
            found = helper;
    }
    return found;
}

/* Nobody waits for them, and there may be many. */
static bool is_chore(const struct link_s3_job *job)
{
    return job->type == S3_DROP || job->type == S3_LIST;
}

/* Who reads comes first, since a task waits for it; the others in their order, but one helper
 * is enough for chores. NULL: whatever waits has to. */
static struct link_s3_job **choose(struct link_s3 *s3)
{
    struct link_s3_job **found = NULL, **at;
    unsigned writers = 0, chores = 0;

    for (size_t i = 0; i < MOST_HELPERS; i++) {
        const struct link_s3_job *job = s3->helpers[i].job;

        writers += job != NULL && job->type != S3_GET;
        chores += job != NULL && is_chore(job);
    }
    for (at = &s3->first; *at != NULL; at = &(*at)->next) {
        if ((*at)->type == S3_GET)
            return at;
        if (found == NULL && writers < MOST_WRITERS && (chores == 0 || !is_chore(*at)))
            found = at;
    }
    return found;
}

static struct link_s3_job *take_out(struct link_s3 *s3, struct link_s3_job **at)
{
    struct link_s3_job *job = *at;

    *at = job->next;
    if (*at == NULL)
        s3->end = at;
    s3->waiting--;
    return job;
}

static void go_on(struct link_s3 *s3)
{
    struct link_s3_job **next;
    struct helper *helper;

    while (!s3->closing && (next = choose(s3)) != NULL && (helper = find_helper(s3)) != NULL) {
        struct link_s3_job *job = take_out(s3, next);
        int rc = helper->fd < 0 ? start_helper(s3, helper) : HF_OK;

        if (rc == HF_OK)
            give(helper, job);
        else
            job->fn(job, HF_EAGAIN, "what talks to the bucket (agentd-s3) cannot be started");
    }
}

/* From outside. */

int link_s3_new(uv_loop_t *loop, const struct hf_s3_settings *settings, hf_ms idle,
                struct link_s3 **ret_s3)
{
    struct link_s3 *s3 = hf_calloc(1, sizeof *s3);

    if (s3 == NULL)
        return HF_ENOMEM;
    s3->loop = loop;
    s3->settings = settings;
    s3->idle = idle;
    s3->end = &s3->first;
    for (size_t i = 0; i < MOST_HELPERS; i++)
        s3->helpers[i].fd = -1;
    *ret_s3 = s3;
    return HF_OK;
}

void link_s3_close(struct link_s3 *s3)
{
    struct link_s3_job *job;

    if (s3 == NULL)
        return;
    s3->closing = true;
    for (size_t i = 0; i < MOST_HELPERS; i++) {
        struct helper *helper = &s3->helpers[i];

        drop_helper(helper, "agentd ends");
        if (helper->open > 0)
            close_handle((uv_handle_t *)&helper->process);
    }
    while ((job = s3->first) != NULL) {
        s3->first = job->next;
        job->fn(job, HF_EAGAIN, "agentd ends");
    }
    free_when_closed(s3);
}

int link_s3_begin(struct link_s3 *s3, struct link_s3_job *job)
{
    if (s3->waiting >= (is_chore(job) ? MOST_BEFORE_CHORE : MOST_WAITING) || s3->closing)
        return HF_ELIMIT;
    job->next = NULL;
    job->tries = 0;
    *s3->end = job;
    s3->end = &job->next;
    s3->waiting++;
    go_on(s3);
    return HF_OK;
}
