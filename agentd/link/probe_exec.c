#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "agentd/link/probe.h"

enum { MOST_ARGS = 32 };

static void on_ended(uv_process_t *process, int64_t status, int signal)
{
    struct link_attempt *attempt = process->data;

    link_attempt_end(attempt, status == 0 && signal == 0,
                     signal != 0   ? "its program was killed"
                     : status != 0 ? "its program says that it does not serve"
                                   : "it serves");
    uv_close((uv_handle_t *)process, link_attempt_on_closed);
}

void link_attempt_kill(const struct link_attempt *attempt)
{
    if (attempt->process.pid > 1 && uv_is_active((const uv_handle_t *)&attempt->process))
        (void)kill(-attempt->process.pid, SIGKILL);
}

/* What it prints is lost: its status is all that it has to say. Of our environment, which has
 * etcd's credentials, it gets nothing but where programs are. */
void link_attempt_exec(struct link_attempt *attempt, uv_loop_t *loop)
{
    const struct link_probe_target *target = &attempt->cfg->target;
    const char *places = getenv("PATH");
    char *args[MOST_ARGS + 1] = { NULL }, path[4096], *env[] = { path, NULL };
    uv_process_options_t options = { .exit_cb = on_ended, .args = args, .env = env };

    (void)snprintf(path, sizeof path, "PATH=%s", places != NULL ? places : "/usr/bin:/bin");
    for (size_t i = 0; i < target->command.count && i < MOST_ARGS; i++)
        args[i] = (char *)target->command.items[i];
    options.file = args[0];
    options.flags =
        UV_PROCESS_DETACHED; /* in a group of its own, to be killed with its children */
    if (target->uid != (uid_t)-1) {
        options.flags |= UV_PROCESS_SETUID | UV_PROCESS_SETGID;
        options.uid = target->uid;
        options.gid = target->gid;
    }
    attempt->process.data = attempt;
    attempt->open++;
    if (uv_spawn(loop, &attempt->process, &options) == 0) {
        /* We may stand before everything of ordinary priority; it does not. */
        if (getpriority(PRIO_PROCESS, 0) < 0)
            (void)setpriority(PRIO_PROCESS, (id_t)attempt->process.pid, 0);
        return;
    }
    link_attempt_end(attempt, false, "its program cannot be started");
    uv_close((uv_handle_t *)&attempt->process, link_attempt_on_closed);
}
