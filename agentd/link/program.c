#include "agentd/link/program.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "agentd/link/stray.h"

static void put(struct hf_strings strings, char **list, size_t most)
{
    for (size_t i = 0; i < strings.count && i < most; i++)
        list[i] = (char *)strings.items[i];
}

int link_program_start(uv_loop_t *loop, const struct link_program *program, uv_exit_cb fn,
                       uv_process_t *process)
{
    const char *places = getenv("PATH");
    char *args[LINK_PROGRAM_WORDS + 1] = { NULL }, *env[LINK_PROGRAM_VARIABLES + 3] = { NULL };
    char path[4096], mark[LINK_STRAY_MARK];
    uv_stdio_container_t input = { .flags = UV_INHERIT_FD, .data.fd = program->input };
    uv_process_options_t options = { .exit_cb = fn, .args = args, .env = env };

    (void)snprintf(path, sizeof path, "PATH=%s", places != NULL ? places : "/usr/bin:/bin");
    link_stray_mark(process->data, mark);
    env[0] = path;
    env[1] = mark;
    put(program->env, env + 2, LINK_PROGRAM_VARIABLES);
    put(program->command, args, LINK_PROGRAM_WORDS);
    options.file = args[0];
    options.flags =
        UV_PROCESS_DETACHED; /* in a group of its own, to be killed with its children */
    if (program->uid != (uid_t)-1) {
        options.flags |= UV_PROCESS_SETUID | UV_PROCESS_SETGID;
        options.uid = program->uid;
        options.gid = program->gid;
    }
    if (program->input >= 0) {
        options.stdio = &input;
        options.stdio_count = 1;
    }
    if (uv_spawn(loop, process, &options) != 0)
        return HF_EIO;
    /* We may stand before everything of ordinary priority; it does not. */
    if (getpriority(PRIO_PROCESS, 0) < 0)
        (void)setpriority(PRIO_PROCESS, (id_t)process->pid, 0);
    return HF_OK;
}

void link_program_on_ended(const uv_process_t *process)
{
    (void)kill(-process->pid, SIGKILL); /* of its group whoever is left, ... */
    link_stray_sweep(process->loop);    /* ... and who has left it */
}

void link_program_kill(const uv_process_t *process)
{
    if (process->pid > 1 && uv_is_active((const uv_handle_t *)process))
        (void)kill(-process->pid, SIGKILL);
}
