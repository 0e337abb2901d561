#include "agentd/link/probe.h"
#include "agentd/link/program.h"

static void on_ended(uv_process_t *process, int64_t status, int signal)
{
    struct link_attempt *attempt = process->data;

    link_attempt_end(attempt, status == 0 && signal == 0,
                     signal != 0   ? "its program was killed"
                     : status != 0 ? "its program says that it does not serve"
                                   : "it serves");
    link_program_on_ended(process);
    uv_close((uv_handle_t *)process, link_attempt_on_closed);
}

void link_attempt_kill(const struct link_attempt *attempt)
{
    link_program_kill(&attempt->process);
}

void link_attempt_exec(struct link_attempt *attempt, uv_loop_t *loop)
{
    const struct link_probe_target *target = &attempt->cfg->target;
    const struct link_program program = { .command = target->command,
                                          .env = attempt->cfg->env,
                                          .input = -1,
                                          .uid = target->uid,
                                          .gid = target->gid };

    attempt->process.data = attempt;
    attempt->open++;
    if (link_program_start(loop, &program, on_ended, &attempt->process) == HF_OK)
        return;
    link_attempt_end(attempt, false, "its program cannot be started");
    uv_close((uv_handle_t *)&attempt->process, link_attempt_on_closed);
}
