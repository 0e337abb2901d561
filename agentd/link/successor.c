#include "agentd/link/successor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agentd/link/program.h"
#include "agentd/link/stray.h"
#include "base/alloc.h"
#include "base/cleanup.h"

enum { PATIENCE_MS = 10000, ANSWER_BYTES = 64 };

struct successor {
    uv_process_t process;
    uv_timer_t timer;
    unsigned open; /* handles */
    int out;       /* what it prints */
    int failed;    /* to start: libuv's reason */
    int64_t status;
    bool late;
    uint32_t version; /* that it must speak */
    link_successor_fn fn;
    void *arg;
};

/* As the keeper finds it: our own path, unresolved, is the one that the keeper started. */
static const char *get_path(void)
{
    const char *wish = getenv("HOLDFAST_AGENTD_LINK");

    /* NOLINTNEXTLINE(performance-no-int-to-ptr): that is how the kernel gives a text */
    return wish != NULL ? wish : (const char *)getauxval(AT_EXECFN);
}

/* "1 0.4.0" */
static bool parse_answer(int fd, char text[ANSWER_BYTES], uintmax_t *ret_version,
                         const char **ret_release)
{
    ssize_t len = pread(fd, text, ANSWER_BYTES - 1, 0);
    char *end;

    text[len > 0 ? len : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    if (text[0] < '0' || text[0] > '9')
        return false;
    *ret_version = strtoumax(text, &end, 10);
    *ret_release = end + strspn(end, " ");
    return *end == ' ';
}

static void judge(const struct successor *s)
{
    struct hf_error err = { "" };
    char text[ANSWER_BYTES];
    const char *release = "";
    uintmax_t version = 0;
    int rc = HF_OK;

    if (s->failed != 0)
        rc = hf_error_set(&err, HF_EIO, "the link that is installed cannot be started: %s",
                          uv_strerror(s->failed));
    else if (s->late)
        rc = hf_error_set(&err, HF_ETIMEOUT,
                          "the link that is installed did not say within %d s which version "
                          "it speaks",
                          PATIENCE_MS / 1000);
    else if (s->status != 0 || !parse_answer(s->out, text, &version, &release))
        rc = hf_error_set(&err, HF_EINVAL,
                          "the link that is installed does not say which version it speaks "
                          "(status %" PRId64 "): if it is an older one, restart agentd at a "
                          "quiet time",
                          s->status);
    else if (version != s->version)
        rc = hf_error_set(&err, HF_EINVAL,
                          "the link that is installed (%s) speaks version %ju, the keeper that "
                          "runs version %" PRIu32 ": restart agentd at a quiet time",
                          release, version, s->version);
    s->fn(rc, rc == HF_OK ? release : err.text, s->arg);
}

static void on_closed(uv_handle_t *handle)
{
    struct successor *s = handle->data;

    if (--s->open > 0)
        return;
    judge(s);
    (void)close(s->out);
    free(s);
}

static void finish(struct successor *s)
{
    uv_close((uv_handle_t *)&s->timer, on_closed);
    uv_close((uv_handle_t *)&s->process, on_closed);
}

static void on_ended(uv_process_t *process, int64_t status, int signal)
{
    struct successor *s = process->data;

    s->status = signal != 0 ? 128 + signal : status;
    link_program_on_ended(process);
    finish(s);
}

static void on_late(uv_timer_t *timer)
{
    struct successor *s = timer->data;

    s->late = true;
    link_program_kill(&s->process);
}

/* It is one of ours and gets what it would have as a link, and what strays are known by. */
static int spawn(struct successor *s)
{
    const char *path = get_path();
    char *args[] = { (char *)path, (char *)LINK_SUCCESSOR_QUESTION, NULL };
    char mark[LINK_STRAY_MARK];
    uv_stdio_container_t stdio[3] = {
        { .flags = UV_IGNORE },
        { .flags = UV_INHERIT_FD, .data.fd = s->out },
        { .flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO },
    };
    uv_process_options_t options = { .exit_cb = on_ended,
                                     .file = path,
                                     .args = args,
                                     .flags = UV_PROCESS_DETACHED, /* to be killed whole */
                                     .stdio = stdio,
                                     .stdio_count = 3 };
    HF_CLEANUP_FREE char **env = NULL;
    size_t count = 0;

    while (environ[count] != NULL)
        count++;
    env = hf_calloc(count + 2, sizeof *env);
    if (env != NULL) {
        memcpy((void *)env, (const void *)environ, count * sizeof *env);
        link_stray_mark(s, mark);
        env[count] = mark;
        options.env = env;
    } /* else it has ours, and no mark */
    return uv_spawn(s->timer.loop, &s->process, &options);
}

int link_successor_ask(uv_loop_t *loop, uint32_t version, link_successor_fn fn, void *arg)
{
    struct successor *s = hf_calloc(1, sizeof *s);

    if (s == NULL)
        return HF_ENOMEM;
    *s = (struct successor){ .open = 2, .out = -1, .version = version, .fn = fn, .arg = arg };
    s->process.data = s->timer.data = s;
    s->out = memfd_create("holdfast-answer", MFD_CLOEXEC);
    if (s->out < 0 || uv_timer_init(loop, &s->timer) != 0) {
        if (s->out >= 0)
            (void)close(s->out);
        free(s);
        return HF_EIO;
    }
    s->failed = spawn(s);
    if (s->failed != 0)
        finish(s);
    else
        (void)uv_timer_start(&s->timer, on_late, PATIENCE_MS, 0);
    return HF_OK;
}
