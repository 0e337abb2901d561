#include "agentd/link/notify.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/log.h"

enum { NOTICE_BYTES = 4096, AT_ONCE = 16 };

struct link_notify {
    struct link_agent *agent;
    uv_poll_t poll;
    int fd;
    uid_t user; /* that the agent runs as */
    bool kept;  /* the keeper has it for the next link */
    struct sockaddr_un address;
};

/* Who sent it, as the kernel says. Descriptors that came along find no room, and are closed. */
static ssize_t receive(const struct link_notify *notify, char text[NOTICE_BYTES],
                       pid_t *ret_sender)
{
    union {
        char space[CMSG_SPACE(sizeof(struct ucred))];
        struct cmsghdr align;
    } control;
    struct iovec part = { .iov_base = text, .iov_len = NOTICE_BYTES - 1 };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    const struct cmsghdr *header;
    struct ucred sender;
    ssize_t len = recvmsg(notify->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

    if (len < 0)
        return -1;
    text[len] = '\0';
    header = CMSG_FIRSTHDR(&message);
    if ((message.msg_flags & MSG_TRUNC) != 0 || header == NULL ||
        header->cmsg_type != SCM_CREDENTIALS)
        return 0;
    memcpy(&sender, CMSG_DATA(header), sizeof sender);
    *ret_sender = sender.pid;
    return sender.uid == notify->user || sender.uid == geteuid() || sender.uid == 0 ? len : 0;
}

/* The keeper is to wait with SIGKILL, the node with thinking that the keeper does not kill, and
 * the end of agentd with both. */
static void wait_longer(struct link_process *process, hf_ms more)
{
    struct link *link = process->agent->link;
    struct hf_event event = { .kind = HF_EVENT_PROCESS,
                              .process = { .agent = process->who.agent,
                                           .instance_id = process->who.instance,
                                           .news = HF_PROCESS_EXTENDED,
                                           .more = more } };
    uint64_t end = (uint64_t)(more + LINK_WRITE_MS);

    link_channel_extend(link->channel, &process->who, more);
    (void)!hf_runner_feed(link->runner, &event);
    if (link->leaving && uv_timer_get_due_in(&link->timer) < end) {
        uv_timer_set_repeat(&link->timer, end);
        (void)uv_timer_again(&link->timer);
    }
}

/* As systemd has it: whenever one that was asked to end says so, it has that long from then on.
 */
static void extend(struct link_process *process)
{
    struct link_said *said = &process->said;
    hf_ms more = said->extend_ms < AGENTD_EXTEND_MAX ? said->extend_ms : AGENTD_EXTEND_MAX;

    if (more == 0 || process->state != AGENTD_STATE_ENDING || process->gone)
        return;
    wait_longer(process, more);
    if (said->state == HOLDFAST__V1__AGENT_STATE__VALUE__draining)
        link_said_extend(said, hf_clock_wall() + more); /* whoever looks sees it */
}

/* It is one report with what the agent says on its other socket. */
static void take(struct link_process *process, pid_t sender, const char *text)
{
    struct link_ask *ignored;

    if (!link_said_take_notice(&process->said, text))
        return;
    extend(process);
    link_evidence_on_notice(process, sender);
    if (link_ask_report(process, NULL, NULL, &ignored) != HF_OK)
        HF_LOG_WARN("notice_lost", HF_STR("agent", process->who.agent));
}

static void on_notice(uv_poll_t *poll, int status, int events)
{
    const struct link_notify *notify = poll->data;
    char text[NOTICE_BYTES];
    pid_t sender = 0;
    ssize_t len;

    (void)status;
    (void)events;
    for (int i = 0; i < AT_ONCE && (len = receive(notify, text, &sender)) >= 0; i++) {
        struct link_process *process = link_process_get_current(notify->agent);

        if (process != NULL && strlen(text) == (size_t)len)
            take(process, sender, text);
    }
}

static int bind_there(struct link_notify *notify, struct hf_error *err)
{
    const char *path = notify->address.sun_path;
    int on = 1;

    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    (void)unlink(path); /* of a link before this one */
    if (notify->fd < 0 || fchmod(notify->fd, 0600) != 0 ||
        bind(notify->fd, (const struct sockaddr *)&notify->address, sizeof notify->address) !=
            0 ||
        setsockopt(notify->fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        chmod(path, 0600) != 0)
        return hf_error_set(err, HF_EIO, "%s: %s", path, strerror(errno));
    return HF_OK;
}

/* Whoever is connected to it stays so, and what was sent meanwhile waits in it. Without its
 * path nobody else would find it. */
static bool take_over(struct link_notify *notify)
{
    notify->fd = link_channel_take_held(notify->agent->link->channel, notify->agent->name);
    if (notify->fd < 0)
        return false;
    notify->kept = access(notify->address.sun_path, F_OK) == 0;
    if (!notify->kept)
        (void)close(notify->fd);
    return notify->kept;
}

int link_notify_open(struct link_agent *agent, const char *state_dir,
                     struct link_notify **ret_notify, struct hf_error *err)
{
    struct link_notify *notify = hf_calloc(1, sizeof *notify);
    int rc, len;

    if (notify == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    notify->agent = agent;
    notify->user = geteuid();
    notify->fd = -1;
    notify->address.sun_family = AF_UNIX;
    len = snprintf(notify->address.sun_path, sizeof notify->address.sun_path,
                   "%s/agents/%s.note", state_dir, agent->name);
    if (len >= (int)sizeof notify->address.sun_path)
        rc = hf_error_set(err, HF_ELIMIT, "the path of its socket is too long");
    else
        rc = take_over(notify) ? HF_OK : bind_there(notify, err);
    if (rc == HF_OK && uv_poll_init(&agent->link->loop, &notify->poll, notify->fd) != 0)
        rc = hf_error_set(err, HF_EIO, "no event loop");
    if (rc != HF_OK) {
        if (notify->fd >= 0)
            (void)close(notify->fd);
        free(notify);
        return rc;
    }
    notify->poll.data = notify;
    *ret_notify = notify;
    return HF_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct link_notify *notify = handle->data;

    (void)close(notify->fd);
    free(notify);
}

void link_notify_close(struct link_notify *notify)
{
    if (notify == NULL)
        return;
    (void)unlink(notify->address.sun_path);
    link_channel_let(notify->agent->link->channel, notify->agent->name);
    uv_close((uv_handle_t *)&notify->poll, on_closed);
}

void link_notify_begin(struct link_notify *notify)
{
    if (notify == NULL)
        return;
    (void)uv_poll_start(&notify->poll, UV_READABLE, on_notice);
    if (notify->kept)
        return;
    link_channel_hold(notify->agent->link->channel, notify->agent->name, notify->fd);
    notify->kept = true;
}

/* Nobody of those agents has a process that could know the socket. */
void link_notify_drop_unused(struct link *link)
{
    const char *state_dir = link_channel_get_hello(link->channel)->state_dir;
    const char *agent;
    char path[AGENTD_PATH_BYTES + AGENTD_NAME_BYTES + 16];

    while ((agent = link_channel_get_held(link->channel)) != NULL) {
        (void)snprintf(path, sizeof path, "%s/agents/%s.note", state_dir, agent);
        (void)unlink(path);
        link_channel_let(link->channel, agent);
        (void)close(link_channel_take_held(link->channel, NULL));
    }
}

int link_notify_give(struct link_notify *notify, uid_t user, struct hf_error *err)
{
    if (chown(notify->address.sun_path, user, (gid_t)-1) != 0)
        return hf_error_set(err, HF_EIO, "%s: %s", notify->address.sun_path, strerror(errno));
    notify->user = user;
    return HF_OK;
}

const char *link_notify_get_path(const struct link_notify *notify)
{
    return notify->address.sun_path;
}
