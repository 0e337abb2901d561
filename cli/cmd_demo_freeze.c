/* demo freeze: a host stands still for longer than its lease, and comes back. Its agent goes on
 * elsewhere meanwhile, and the two never work at the same time. */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/demo.h"

struct freeze {
    struct cli_demo demo;
    uv_signal_t interrupt, terminate;
};

static void on_signal(uv_signal_t *signal, int number)
{
    struct freeze *freeze = signal->data;

    (void)number;
    freeze->demo.stop = true;
}

/* Whoever stops us must not leave a link behind that stands still. */
static void watch_signals(struct freeze *freeze, struct cli *cli)
{
    freeze->interrupt.data = freeze->terminate.data = freeze;
    (void)uv_signal_init(&cli->loop, &freeze->interrupt);
    (void)uv_signal_init(&cli->loop, &freeze->terminate);
    (void)uv_signal_start(&freeze->interrupt, on_signal, SIGINT);
    (void)uv_signal_start(&freeze->terminate, on_signal, SIGTERM);
}

static bool is_link_here(const struct cli_demo *demo)
{
    const struct cli_process *link = &demo->victim.agentd.link;

    return cli_start_time(link->pid) == link->start_time;
}

static int signal_link(struct cli_demo *demo, int number)
{
    pid_t pid = demo->victim.agentd.link.pid;

    if (!is_link_here(demo))
        return cli_fail(demo->cli, HF_ENOENT, "the link (pid %d) is not running any more",
                        (int)pid);
    if (kill(pid, number) != 0)
        return cli_fail(demo->cli, errno == EPERM ? HF_EDENIED : HF_EIO, "kill %d: %s",
                        (int)pid, strerror(errno));
    return HF_OK;
}

/* The first process of the agent, as /proc has it now. */

static bool is_gone(struct cli_demo *demo)
{
    struct cli_process process;

    return !cli_process_read(demo->victim.pid, &process) ||
           process.start_time != demo->victim.start_time || process.state == 'Z';
}

static bool is_frozen(struct cli_demo *demo)
{
    return !is_gone(demo) && cli_stands_still(demo->victim.pid, demo->victim.agentd.cgroup);
}

/* Or something happened that should not have, before. */
static bool is_frozen_or_not(struct cli_demo *demo)
{
    return is_frozen(demo) || is_gone(demo) || demo->host_gone || !is_link_here(demo);
}

static bool is_over(struct cli_demo *demo)
{
    return demo->over || !is_frozen(demo) || !is_link_here(demo);
}

static bool is_back(struct cli_demo *demo)
{
    return is_gone(demo) && !demo->host_gone;
}

static int stop_link(struct cli_demo *demo)
{
    const struct cli_victim *victim = &demo->victim;
    int rc = signal_link(demo, SIGSTOP);

    if (rc != HF_OK)
        return rc;
    cli_demo_tell(demo,
                  "SIGSTOP of the link of agentd on %s (pid %d): nobody renews its lease of "
                  "%.0f s any more",
                  victim->host, (int)victim->agentd.link.pid, (double)victim->ttl / 1000);
    cli_demo_tell(demo,
                  "%s (pid %d, at %s) runs on; the keeper (pid %d) will freeze it "
                  "when five sixths of the lease have passed",
                  victim->name, (int)victim->pid, victim->task,
                  (int)victim->agentd.link.parent);
    rc = cli_demo_wait(demo, is_frozen_or_not);
    if (rc != HF_OK)
        return rc;
    if (!is_frozen(demo))
        return cli_fail(demo->cli, HF_EIO, "%s was not frozen in time", victim->name);
    cli_demo_tell(demo, "the keeper has frozen it%s",
                  demo->host_gone ? "" : ", while its lease still counts");
    return HF_OK;
}

static int watch_the_other(struct cli_demo *demo)
{
    const struct cli_victim *victim = &demo->victim;
    int rc;

    cli_demo_tell(demo, "waiting until the lease has run out and another host goes on");
    rc = cli_demo_wait(demo, is_over);
    if (rc != HF_OK)
        return rc;
    if (!is_frozen(demo))
        return cli_fail(demo->cli, HF_EIO, "%s (pid %d) is not frozen any more", victim->name,
                        (int)victim->pid);
    if (!demo->over)
        return cli_fail(demo->cli, HF_EIO, "the link on %s has ended", victim->host);
    cli_demo_tell(demo, "its old process (pid %d on %s) is still there, and stands still",
                  (int)victim->pid, victim->host);
    return HF_OK;
}

static int let_it_go_on(struct cli_demo *demo)
{
    const struct cli_victim *victim = &demo->victim;
    int rc = signal_link(demo, SIGCONT);

    if (rc != HF_OK)
        return rc;
    cli_demo_tell(demo, "SIGCONT of the link on %s, which finds its lease gone", victim->host);
    rc = cli_demo_wait(demo, is_back);
    if (rc != HF_OK)
        return rc;
    cli_demo_tell(demo, "its agentd has ended the old process of %s (pid %d)", victim->name,
                  (int)victim->pid);
    cli_demo_tell_end(demo);
    return HF_OK;
}

static int tell(struct cli_demo *demo)
{
    int rc;

    if (!demo->victim.has_agentd)
        return cli_fail(demo->cli, HF_ENOENT, "the agentd of %s on %s cannot be found here",
                        demo->victim.name, demo->victim.host);
    cli_demo_act(demo);
    rc = stop_link(demo);
    if (rc == HF_OK)
        rc = watch_the_other(demo);
    if (rc == HF_OK)
        return let_it_go_on(demo);
    if (is_link_here(demo))
        (void)kill(demo->victim.agentd.link.pid, SIGCONT);
    return rc;
}

static int run(struct cli *cli)
{
    struct freeze freeze;
    int rc = cli_demo_begin(&freeze.demo, cli);

    if (rc == HF_OK) {
        watch_signals(&freeze, cli);
        rc = tell(&freeze.demo);
        uv_close((uv_handle_t *)&freeze.interrupt, NULL);
        uv_close((uv_handle_t *)&freeze.terminate, NULL);
        (void)uv_run(&cli->loop, UV_RUN_NOWAIT); /* while they are still there */
    }
    cli_demo_end(&freeze.demo);
    return rc;
}

const struct cli_command CLI_DEMO_FREEZE = {
    .name = "demo freeze",
    .args = "[AGENT]",
    .arg_max = 1,
    .summary = "Let the host of an agent stand still and come back, and tell what follows.",
    .more =
        "The link of its agentd is stopped for longer than its lease, until the agent works "
        "on\n"
        "another host, and goes on then. The agent must run on this machine and be at work on\n"
        "a task; without a name one of them is chosen.",
    .nameless = true,
    .run = run,
};
