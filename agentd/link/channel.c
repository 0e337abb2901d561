#include "agentd/link/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/log.h"

enum { START_MS = 30000, NS_PER_MS = 1000000 };

/* A request that was not answered yet, sent or not. */
struct request {
    struct request *next;
    uint64_t id;
    uint16_t type;
    bool has_who;
    struct agentd_who who;
    bool sent;
    int fd; /* goes along with it; -1 */
    size_t len;
    char packet[];
};

/* What a link before this one gave to the keeper, until somebody takes it. */
struct held {
    struct held *next;
    int fd;
    char agent[AGENTD_NAME_BYTES];
};

struct link_channel {
    struct link_channel_config cfg;
    uv_poll_t poll;
    int fd;
    struct agentd_page *page;
    struct agentd_hello hello;
    char *memo;
    struct request *requests; /* in the order of their ids */
    struct request **last;
    uint64_t last_id;
    struct held *held;
    bool synced, broken, polled, finishing;
    _Alignas(8) char packet[AGENTD_MESSAGE_MAX];
};

static void break_up(struct link_channel *channel, const char *why)
{
    if (channel->broken)
        return;
    channel->broken = true;
    if (channel->polled)
        (void)uv_poll_stop(&channel->poll);
    channel->cfg.on_broken(why, channel->cfg.arg);
}

/* Sending. */

static void on_poll(uv_poll_t *poll, int status, int events);

static ssize_t send_request(const struct link_channel *channel, struct request *request)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS } };
    struct iovec part = { request->packet, request->len };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    ssize_t sent;

    if (request->fd >= 0) {
        memcpy(CMSG_DATA(&control.head), &request->fd, sizeof request->fd);
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
    }
    do
        sent = sendmsg(channel->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    while (sent < 0 && errno == EINTR);
    return sent;
}

static void free_request(struct request *request)
{
    if (request->fd >= 0)
        (void)close(request->fd);
    free(request);
}

/* Not yet read on what the kernel does not take: the rest waits for the socket. */
static void flush(struct link_channel *channel)
{
    bool full = false;

    for (struct request *request = channel->requests; request != NULL && !full;
         request = request->next) {
        ssize_t sent;

        if (request->sent)
            continue;
        sent = send_request(channel, request);
        if (sent < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
            break_up(channel, strerror(errno));
            return;
        }
        full = sent < 0;
        request->sent = !full;
    }
    if (!full && channel->finishing)
        link_channel_close(channel);
    else if (channel->polled && !channel->broken)
        (void)uv_poll_start(&channel->poll, UV_READABLE | (full ? UV_WRITABLE : 0), on_poll);
}

/* `fixed` begins with a struct agentd_head, whose type is set; `rest` follows it. The
 * descriptor becomes the request's. */
static int request_with(struct link_channel *channel, void *fixed, size_t fixed_len,
                        const struct agentd_who *who, struct hf_bytes rest, int fd)
{
    struct agentd_head *head = fixed;
    struct request *next;

    if (channel->broken)
        return HF_OK;
    if (fixed_len + rest.len > AGENTD_MESSAGE_MAX)
        return HF_ELIMIT;
    next = hf_calloc(1, sizeof *next + fixed_len + rest.len);
    if (next == NULL) {
        break_up(channel, "out of memory");
        return HF_ENOMEM;
    }
    head->id = ++channel->last_id;
    head->length = (uint32_t)(fixed_len + rest.len);
    next->id = head->id;
    next->type = head->type;
    next->len = head->length;
    next->fd = fd;
    if (who != NULL) {
        next->who = *who;
        next->has_who = true;
    }
    memcpy(next->packet, fixed, fixed_len);
    if (rest.len > 0)
        memcpy(next->packet + fixed_len, rest.data, rest.len);
    *channel->last = next;
    channel->last = &next->next;
    flush(channel);
    return HF_OK;
}

static int request(struct link_channel *channel, void *fixed, size_t fixed_len,
                   const struct agentd_who *who, struct hf_bytes rest)
{
    return request_with(channel, fixed, fixed_len, who, rest, -1);
}

static const struct hf_bytes NOTHING = { NULL, 0 };

void link_channel_ready(struct link_channel *channel)
{
    struct agentd_ready ready = { .head.type = AGENTD_READY,
                                  .version = AGENTD_PROTOCOL_VERSION };

    (void)request(channel, &ready, sizeof ready, NULL, NOTHING);
}

void link_channel_lease(struct link_channel *channel, const struct agentd_lease_state *lease)
{
    struct agentd_lease message = { .head.type = AGENTD_LEASE, .lease = *lease };

    (void)request(channel, &message, sizeof message, NULL, NOTHING);
}

void link_channel_memo(struct link_channel *channel, const char *text)
{
    struct hf_bytes bytes = { text, strnlen(text, AGENTD_MEMO_MAX) };
    struct agentd_memo memo = { .head.type = AGENTD_MEMO, .len = (uint32_t)bytes.len };

    (void)request(channel, &memo, sizeof memo, NULL, bytes);
}

static void put_strings(struct hf_buf *out, struct hf_strings strings)
{
    for (size_t i = 0; i < strings.count; i++)
        hf_buf_append(out, strings.items[i], strlen(strings.items[i]) + 1);
}

static void set_user_and_limits(struct agentd_spawn *message,
                                const struct link_launcher *launcher)
{
    message->uid = message->gid = AGENTD_KEEP_ID;
    if (launcher->user != NULL && launcher->as.uid != geteuid()) {
        message->uid = launcher->as.uid;
        message->gid = launcher->as.gid;
        message->group_count = launcher->as.group_count;
        memcpy(message->groups, launcher->as.groups, sizeof message->groups);
    }
    message->memory_max = (uint64_t)launcher->memory_max;
    message->pids_max = (uint64_t)launcher->processes_max;
    message->nice = (int32_t)launcher->nice;
    if (launcher->open_files_max > 0)
        message->rlimits[message->rlimit_count++] =
            (struct agentd_rlimit){ .resource = RLIMIT_NOFILE,
                                    .soft = (uint64_t)launcher->open_files_max,
                                    .hard = (uint64_t)launcher->open_files_max };
}

int link_channel_spawn(struct link_channel *channel, const struct link_spawn *spawn)
{
    HF_CLEANUP_BUF struct hf_buf texts = { .limit = AGENTD_MESSAGE_MAX };
    struct agentd_spawn message = { .head.type = AGENTD_SPAWN,
                                    .who = *spawn->who,
                                    .umask = 022,
                                    .fence = spawn->fence,
                                    .flags = spawn->flags,
                                    .argc = (uint32_t)spawn->argv.count,
                                    .envc = (uint32_t)spawn->env.count };

    set_user_and_limits(&message, spawn->launcher);
    hf_buf_append(&texts, spawn->cwd, strlen(spawn->cwd) + 1);
    put_strings(&texts, spawn->argv);
    put_strings(&texts, spawn->env);
    if (texts.err != HF_OK)
        return texts.err;
    message.text_len = (uint32_t)texts.len;
    return request(channel, &message, sizeof message, spawn->who,
                   (struct hf_bytes){ texts.data, texts.len });
}

void link_channel_release(struct link_channel *channel, const struct agentd_who *who,
                          const struct agentd_incarnation *incarnation, struct hf_strings env)
{
    HF_CLEANUP_BUF struct hf_buf texts = { .limit = AGENTD_RELEASE_MAX };
    struct agentd_release message = { .head.type = AGENTD_RELEASE,
                                      .who = *who,
                                      .incarnation = *incarnation,
                                      .envc = (uint32_t)env.count };

    put_strings(&texts, env);
    if (texts.err != HF_OK) {
        break_up(channel, hf_err_text(texts.err));
        return;
    }
    message.text_len = (uint32_t)texts.len;
    (void)request(channel, &message, sizeof message, who,
                  (struct hf_bytes){ texts.data, texts.len });
}

void link_channel_remember(struct link_channel *channel, const struct agentd_who *who,
                           const struct agentd_incarnation *incarnation, const char *blob)
{
    struct hf_bytes bytes = { blob, strnlen(blob, AGENTD_BLOB_MAX) };
    struct agentd_remember message = { .head.type = AGENTD_REMEMBER,
                                       .who = *who,
                                       .incarnation = *incarnation,
                                       .blob_len = (uint32_t)bytes.len };

    (void)request(channel, &message, sizeof message, who, bytes);
}

int link_channel_tell(struct link_channel *channel, const struct agentd_who *who,
                      const char *id, struct hf_bytes line)
{
    struct agentd_tell message = { .head.type = AGENTD_TELL,
                                   .who = *who,
                                   .len = (uint32_t)line.len };

    if ((channel->hello.flags & AGENTD_HAS_TELL) == 0)
        return HF_ENOENT;
    if (strlen(id) >= sizeof message.id)
        return HF_EINVAL;
    memcpy(message.id, id, strlen(id));
    if (!agentd_is_id(message.id, sizeof message.id))
        return HF_EINVAL;
    return request(channel, &message, sizeof message, who, line);
}

void link_channel_order(struct link_channel *channel, enum agentd_message type,
                        const struct agentd_who *who)
{
    struct agentd_order message = { .head.type = (uint16_t)type, .who = *who };

    (void)request(channel, &message, sizeof message, who, NOTHING);
}

void link_channel_end(struct link_channel *channel, const struct agentd_who *who, int signal,
                      hf_ms grace)
{
    struct agentd_order message = { .head.type = AGENTD_END, .who = *who };

    message.grace_ms = (uint32_t)(grace < AGENTD_GRACE_MAX ? grace : AGENTD_GRACE_MAX);
    message.signal = (uint32_t)signal;
    (void)request(channel, &message, sizeof message, who, NOTHING);
}

void link_channel_extend(struct link_channel *channel, const struct agentd_who *who,
                         hf_ms grace)
{
    struct agentd_order message = { .head.type = AGENTD_EXTEND, .who = *who };

    message.grace_ms = (uint32_t)grace;
    (void)request(channel, &message, sizeof message, who, NOTHING);
}

void link_channel_shutdown(struct link_channel *channel, int code)
{
    struct agentd_shutdown message = { .head.type = AGENTD_SHUTDOWN, .code = (uint32_t)code };

    (void)request(channel, &message, sizeof message, NULL, NOTHING);
}

/* What the next link gets, too. */

static struct agentd_held name_held(enum agentd_message type, const char *agent)
{
    struct agentd_held message = { .head.type = (uint16_t)type };

    memcpy(message.agent, agent, strnlen(agent, sizeof message.agent - 1));
    return message;
}

void link_channel_hold(struct link_channel *channel, const char *agent, int fd)
{
    struct agentd_held message = name_held(AGENTD_HOLD, agent);
    int copy = channel->broken ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (copy >= 0 &&
        request_with(channel, &message, sizeof message, NULL, NOTHING, copy) != HF_OK)
        (void)close(copy);
}

void link_channel_let(struct link_channel *channel, const char *agent)
{
    struct agentd_held message = name_held(AGENTD_LET, agent);

    (void)request(channel, &message, sizeof message, NULL, NOTHING);
}

int link_channel_take_held(struct link_channel *channel, const char *agent)
{
    for (struct held **at = &channel->held; *at != NULL; at = &(*at)->next) {
        struct held *held = *at;
        int fd = held->fd;

        if (agent != NULL && strcmp(held->agent, agent) != 0)
            continue;
        *at = held->next;
        free(held);
        return fd;
    }
    return -1;
}

const char *link_channel_get_held(const struct link_channel *channel)
{
    return channel->held != NULL ? channel->held->agent : NULL;
}

/* The page. */

hf_ms link_channel_get_deadline(const struct link_channel *channel)
{
    return __atomic_load_n(&channel->page->deadline_ns, __ATOMIC_SEQ_CST) / NS_PER_MS;
}

void link_channel_set_deadline(struct link_channel *channel, hf_ms at)
{
    __atomic_store_n(&channel->page->deadline_ns, at * NS_PER_MS, __ATOMIC_SEQ_CST);
}

/* Receiving. */

static void on_reply(struct link_channel *channel, const struct agentd_reply *reply)
{
    struct request *answered = channel->requests;

    if (answered == NULL || answered->id != reply->head.id) {
        break_up(channel, reply->text[0] != '\0' ? reply->text : "an answer to nothing");
        return;
    }
    channel->requests = answered->next;
    if (channel->requests == NULL)
        channel->last = &channel->requests;
    if (answered->type == AGENTD_TELL)
        channel->cfg.on_told(&answered->who, reply, channel->cfg.arg);
    else if (reply->code != AGENTD_CODE_OK)
        HF_LOG_WARN("refused", HF_STR("request", agentd_message_name(answered->type)),
                    HF_STR("agent", answered->who.agent),
                    HF_STR("code", agentd_code_name(reply->code)),
                    HF_STR("message", reply->text));
    if (reply->code != AGENTD_CODE_OK && answered->has_who)
        channel->cfg.on_refused(answered->type, &answered->who, reply, channel->cfg.arg);
    if (answered->type == AGENTD_REMEMBER)
        channel->cfg.on_remembered(&answered->who, reply, channel->cfg.arg);
    free_request(answered);
}

static void on_held(struct link_channel *channel, const struct agentd_held *told, int fd)
{
    struct held *held = fd >= 0 ? hf_calloc(1, sizeof *held) : NULL;

    if (held == NULL) { /* the agent's next process gets another one */
        if (fd >= 0)
            (void)close(fd);
        return;
    }
    held->fd = fd;
    memcpy(held->agent, told->agent, sizeof held->agent);
    held->next = channel->held;
    channel->held = held;
}

static void on_agent(struct link_channel *channel, const void *packet)
{
    size_t len;
    const void *rest = agentd_get_rest(packet, &len);
    char blob[AGENTD_BLOB_MAX + 1];

    memcpy(blob, rest, len);
    blob[len] = '\0';
    channel->cfg.on_agent(packet, blob, channel->cfg.arg);
}

static void on_hello(struct link_channel *channel, const struct agentd_hello *hello)
{
    size_t len;
    const void *rest = agentd_get_rest(hello, &len);

    channel->hello = *hello;
    free(channel->memo);
    channel->memo = hf_memdup(rest, len);
    if (channel->memo == NULL)
        break_up(channel, "out of memory");
    else if (hello->version != AGENTD_PROTOCOL_VERSION)
        break_up(channel, "the keeper is of another version: restart agentd");
}

static void on_synced(struct link_channel *channel)
{
    if (channel->memo == NULL)
        break_up(channel, "the keeper does not say who it is");
    channel->synced = !channel->broken;
}

static void say_alive(struct link_channel *channel)
{
    struct agentd_head message = { .type = AGENTD_ALIVE };

    (void)request(channel, &message, sizeof message, NULL, NOTHING);
}

/* A descriptor comes with nothing but HELD. */
static void on_packet(struct link_channel *channel, size_t len, int fd)
{
    const struct agentd_head *head = (const struct agentd_head *)channel->packet;
    const char *fault = agentd_check_news(channel->packet, len);

    if (fd >= 0 && (fault != NULL || head->type != AGENTD_HELD))
        (void)close(fd);
    if (fault != NULL) {
        break_up(channel, fault);
        return;
    }
    switch (head->type) {
    case AGENTD_HELLO: on_hello(channel, (const void *)channel->packet); break;
    case AGENTD_AGENT: on_agent(channel, channel->packet); break;
    case AGENTD_HELD: on_held(channel, (const void *)channel->packet, fd); break;
    case AGENTD_ASK: say_alive(channel); break;
    case AGENTD_SYNCED: on_synced(channel); break;
    case AGENTD_REPLY: on_reply(channel, (const void *)channel->packet); break;
    case AGENTD_SIGNAL:
        channel->cfg.on_signal(((const struct agentd_signal *)(const void *)head)->signal,
                               channel->cfg.arg);
        break;
    default: break;
    }
}

static ssize_t receive_packet(struct link_channel *channel, int *ret_fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { channel->packet, sizeof channel->packet };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = CMSG_LEN(sizeof(int)) };
    ssize_t len = recvmsg(channel->fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const struct cmsghdr *cmsg = len > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    *ret_fd = -1;
    if (cmsg != NULL && cmsg->cmsg_type == SCM_RIGHTS &&
        cmsg->cmsg_len >= CMSG_LEN(sizeof(int)))
        memcpy(ret_fd, CMSG_DATA(cmsg), sizeof *ret_fd);
    return len;
}

/* True: there may be more. */
static bool receive(struct link_channel *channel)
{
    int fd;
    ssize_t len = receive_packet(channel, &fd);

    if (len < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return false;
    if (len < 0 && errno == EINTR)
        return true;
    if (len <= 0) {
        break_up(channel, len == 0 ? "the keeper has gone" : strerror(errno));
        return false;
    }
    on_packet(channel, (size_t)len, fd);
    return !channel->broken;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct link_channel *channel = poll->data;

    if (status < 0) {
        break_up(channel, uv_strerror(status));
        return;
    }
    if ((events & UV_READABLE) != 0)
        while (receive(channel))
            ;
    if ((events & UV_WRITABLE) != 0 && !channel->broken)
        flush(channel);
}

/* Life. */

static int wait_for_start(struct link_channel *channel, struct hf_error *err)
{
    struct pollfd ready = { .fd = channel->fd, .events = POLLIN };

    while (!channel->synced && !channel->broken) {
        int rc = poll(&ready, 1, START_MS);

        if (rc < 0 && errno == EINTR)
            continue;
        if (rc <= 0)
            return hf_error_set(err, HF_EIO, "the keeper does not say what it holds");
        while (!channel->synced && receive(channel))
            ;
    }
    return channel->broken
               ? hf_error_set(err, HF_EIO, "the keeper cannot be understood, or is gone")
               : HF_OK;
}

static int map_page(struct link_channel *channel, struct hf_error *err)
{
    void *page =
        mmap(NULL, AGENTD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, AGENTD_PAGE_FD, 0);

    if (page == MAP_FAILED)
        return hf_error_set(err, HF_EIO, "the fence page cannot be mapped: %s",
                            strerror(errno));
    channel->page = page;
    if (channel->page->magic != AGENTD_PAGE_MAGIC)
        return hf_error_set(err, HF_EIO, "descriptor %d is no fence page", AGENTD_PAGE_FD);
    return HF_OK;
}

int link_channel_open(uv_loop_t *loop, const struct link_channel_config *cfg,
                      struct link_channel **ret_channel, struct hf_error *err)
{
    struct link_channel *channel = hf_calloc(1, sizeof *channel);
    int rc;

    if (channel == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    channel->cfg = *cfg;
    channel->fd = AGENTD_LINK_FD;
    channel->last = &channel->requests;
    (void)fcntl(AGENTD_LINK_FD, F_SETFD, FD_CLOEXEC);
    (void)fcntl(AGENTD_PAGE_FD, F_SETFD, FD_CLOEXEC);
    rc = map_page(channel, err);
    if (rc == HF_OK)
        rc = wait_for_start(channel, err);
    if (rc == HF_OK && uv_poll_init(loop, &channel->poll, channel->fd) != 0)
        rc = hf_error_set(err, HF_EIO, "the keeper's socket cannot be watched");
    if (rc != HF_OK) {
        channel->broken = true;
        link_channel_close(channel);
        return rc;
    }
    channel->polled = true;
    channel->poll.data = channel;
    (void)uv_poll_start(&channel->poll, UV_READABLE, on_poll);
    *ret_channel = channel;
    return HF_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct link_channel *channel = handle->data;

    while (channel->requests != NULL) {
        struct request *next = channel->requests->next;

        free_request(channel->requests);
        channel->requests = next;
    }
    for (int fd; (fd = link_channel_take_held(channel, NULL)) >= 0;)
        (void)close(fd);
    free(channel->memo);
    free(channel);
}

void link_channel_close(struct link_channel *channel)
{
    if (channel == NULL)
        return;
    if (channel->page != NULL)
        (void)munmap(channel->page, AGENTD_PAGE_BYTES);
    channel->broken = true;
    if (channel->polled) {
        uv_close((uv_handle_t *)&channel->poll, on_closed);
        return;
    }
    channel->poll.data = channel;
    on_closed((uv_handle_t *)&channel->poll);
}

void link_channel_close_when_sent(struct link_channel *channel)
{
    channel->finishing = true;
    flush(channel);
}

const struct agentd_hello *link_channel_get_hello(const struct link_channel *channel)
{
    return &channel->hello;
}

const char *link_channel_get_memo(const struct link_channel *channel)
{
    return channel->memo;
}
