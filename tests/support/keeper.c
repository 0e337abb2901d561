#include "support/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "support/process.h"
#include "support/rights.h"
#include "support/suite.h"
#include "support/wait.h"

#define LONG_MS 30000

bool hft_keeper_can(enum hft_keeper_mode mode)
{
    if (mode == HFT_KEEPER_SHIM || geteuid() == 0)
        return true;
    hft_skip("needs root");
    return false;
}

void hft_keeper_init(struct hft_keeper *k, enum hft_keeper_mode mode)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    *k = (struct hft_keeper){ .mode = mode, .link = -1, .held_fd = -1 };
    hft_tempdir_init(&k->dir);
    (void)snprintf(k->state, sizeof k->state, "%s/state", k->dir.path);
    ck_assert_int_eq(mkdir(k->state, 0700), 0);
    (void)snprintf(address.sun_path, sizeof address.sun_path, "%.100s/s", k->dir.path);
    k->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(k->listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(k->listener, 8), 0);
    (void)snprintf(k->agentd, sizeof k->agentd, "%s", HOLDFAST_AGENTD);
    (void)snprintf(k->relay, sizeof k->relay, "%s", HOLDFAST_RELAY);
    if (mode != HFT_KEEPER_NOBODY)
        return;
    hft_copy_program(HOLDFAST_AGENTD, k->dir.path, "agentd");
    hft_copy_program(HOLDFAST_RELAY, k->dir.path, "keeper_relay");
    (void)snprintf(k->agentd, sizeof k->agentd, "%s/agentd", k->dir.path);
    (void)snprintf(k->relay, sizeof k->relay, "%s/keeper_relay", k->dir.path);
    ck_assert_int_eq(chown(k->dir.path, HFT_NOBODY, HFT_NOBODY), 0);
    ck_assert_int_eq(chown(k->state, HFT_NOBODY, HFT_NOBODY), 0);
    ck_assert_int_eq(chown(address.sun_path, HFT_NOBODY, HFT_NOBODY), 0);
}

/* The third of these ends it, with everything that it holds. */
static bool has_ended(void *arg)
{
    (void)kill(*(const pid_t *)arg, SIGTERM);
    return hft_process_has_ended(*(const pid_t *)arg, &(int){ 0 });
}

void hft_keeper_done(struct hft_keeper *k)
{
    if (k->pid > 0)
        hft_wait_or_fail(has_ended, &k->pid, LONG_MS, "the keeper's end");
    if (k->link >= 0)
        (void)close(k->link);
    if (k->held_fd >= 0)
        (void)close(k->held_fd);
    (void)close(k->listener);
    hft_tempdir_done(&k->dir);
}

void hft_keeper_start(struct hft_keeper *k)
{
    char relay[HFT_PATH_MAX + 64], link[HFT_PATH_MAX + 64];
    const char *const argv[] = { k->agentd, "run", "--name", "test", "--state-dir",
                                 k->state,  "--",  "true",   NULL };
    bool is_nobodys = k->mode == HFT_KEEPER_NOBODY;
    const char *env[16] = { relay, link, "HOLDFAST_SECRET=keeper",
                            k->mode == HFT_KEEPER_SHIM ? "HOLDFAST_AGENTD_CGROUPS=off"
                                                       : "A=1" };
    size_t count = 4;

    for (const char *const *more = is_nobodys ? hft_nobody_env() : hft_sanitizer_env();
         *more != NULL; more++)
        env[count++] = *more;
    (void)snprintf(relay, sizeof relay, "HFT_RELAY=%s/s", k->dir.path);
    (void)snprintf(link, sizeof link, "HOLDFAST_AGENTD_LINK=%s", k->relay);
    /* Whoever starts agentd may have left it a descriptor: it must not reach an agent. */
    int stray = dup2(k->listener, 40);
    k->pid = hft_process_spawn(
        &(struct hft_spawn){ .argv = argv, .env = env, .as_nobody = is_nobodys });
    (void)close(stray);
    hft_keeper_accept(k);
}

static void take_page(struct hft_keeper *k)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    char word[8];
    struct iovec part = { word, sizeof word };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    int fd = -1;

    ck_assert_int_eq(recvmsg(k->link, &message, MSG_CMSG_CLOEXEC), 4);
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    if (k->page != NULL)
        (void)munmap(k->page, AGENTD_PAGE_BYTES);
    k->page = mmap(NULL, AGENTD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(k->page, MAP_FAILED);
    ck_assert_uint_eq(k->page->magic, AGENTD_PAGE_MAGIC);
    (void)close(fd);
}

void hft_keeper_accept(struct hft_keeper *k)
{
    struct pollfd poll_fd = { .fd = k->listener, .events = POLLIN };
    struct ucred peer;
    socklen_t len = sizeof peer;

    ck_assert_msg(poll(&poll_fd, 1, LONG_MS) == 1, "no link came");
    if (k->link >= 0)
        (void)close(k->link);
    k->link = accept4(k->listener, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(k->link, 0);
    ck_assert_int_eq(getsockopt(k->link, SOL_SOCKET, SO_PEERCRED, &peer, &len), 0);
    k->link_pid = peer.pid;
    take_page(k);
    k->is_synced = false;
    k->tree_count = 0;
    k->last_id = k->alive_id = 0;
    while (!k->is_synced)
        ck_assert_msg(hft_keeper_take(k, LONG_MS), "no hand-over");
    struct agentd_ready ready = {
        .head = { .length = sizeof ready, .type = AGENTD_READY, .id = ++k->last_id },
        .version = AGENTD_PROTOCOL_VERSION
    };
    ck_assert_uint_eq(hft_keeper_raw(k, &ready, sizeof ready), AGENTD_CODE_OK);
}

void hft_keeper_extend(struct hft_keeper *k, hf_ms from_now)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    __atomic_store_n(&k->page->deadline_ns,
                     now.tv_sec * INT64_C(1000000000) + now.tv_nsec + from_now * 1000000,
                     __ATOMIC_SEQ_CST);
}

struct agentd_agent *hft_keeper_tree(struct hft_keeper *k, const char *instance)
{
    for (size_t i = 0; i < k->tree_count; i++) {
        if (strcmp(k->trees[i].who.instance, instance) == 0)
            return &k->trees[i];
    }
    return NULL;
}

static void keep_tree(struct hft_keeper *k, const struct agentd_agent *news)
{
    struct agentd_agent *tree = hft_keeper_tree(k, news->who.instance);

    if (tree == NULL) {
        ck_assert_uint_lt(k->tree_count, HFT_KEEPER_TREES);
        tree = &k->trees[k->tree_count++];
    }
    *tree = *news;
    memcpy(k->blob, news + 1, news->blob_len);
}

/* A packet, and in k->held_fd what came with it. */
static ssize_t receive(struct hft_keeper *k, void *packet, size_t size)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { packet, size };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t len = recvmsg(k->link, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *cmsg = len > 0 ? CMSG_FIRSTHDR(&message) : NULL;

    if (cmsg != NULL) {
        if (k->held_fd >= 0)
            (void)close(k->held_fd);
        memcpy(&k->held_fd, CMSG_DATA(cmsg), sizeof k->held_fd);
    }
    return len;
}

static void say_alive(struct hft_keeper *k)
{
    struct agentd_head m = { .length = sizeof m, .type = AGENTD_ALIVE, .id = ++k->last_id };

    k->asked++;
    if (k->is_mute)
        return;
    k->alive_id = m.id; /* nobody waits for its reply */
    ck_assert_int_eq(send(k->link, &m, sizeof m, MSG_NOSIGNAL), (ssize_t)sizeof m);
}

bool hft_keeper_take(struct hft_keeper *k, hf_ms timeout)
{
    static _Alignas(8) char packet[AGENTD_MESSAGE_MAX];
    const struct agentd_head *head = (const struct agentd_head *)packet;
    struct pollfd poll_fd = { .fd = k->link, .events = POLLIN };

    if (poll(&poll_fd, 1, (int)timeout) != 1)
        return false;
    ssize_t len = receive(k, packet, sizeof packet);
    if (len <= 0)
        return false;
    const char *why = agentd_check_news(packet, (size_t)len);
    ck_assert_msg(why == NULL, "%s: %s", agentd_message_name(head->type), why);
    switch (head->type) {
    case AGENTD_HELLO:
        memcpy(&k->hello, packet, sizeof k->hello);
        memcpy(k->memo, packet + sizeof k->hello, k->hello.memo_len);
        break;
    case AGENTD_AGENT: keep_tree(k, (const struct agentd_agent *)packet); break;
    case AGENTD_SYNCED: k->is_synced = true; break;
    case AGENTD_HELD:
        memcpy(k->held, ((const struct agentd_held *)packet)->agent, sizeof k->held);
        break;
    case AGENTD_ASK: say_alive(k); break;
    case AGENTD_REPLY:
        if (k->alive_id == 0 || head->id != k->alive_id)
            memcpy(&k->reply, packet, sizeof k->reply);
        break;
    case AGENTD_SIGNAL: k->signal = ((const struct agentd_signal *)packet)->signal; break;
    default: break;
    }
    return true;
}

static void send_with(int to, const void *packet, size_t len, int fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS } };
    struct iovec part = { (void *)packet, len };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };

    if (fd >= 0) {
        memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
    }
    ck_assert_int_eq(sendmsg(to, &message, MSG_NOSIGNAL), (ssize_t)len);
}

static uint32_t ask(struct hft_keeper *k, const void *packet, size_t len, int fd)
{
    uint64_t id =
        len >= sizeof(struct agentd_head) ? ((const struct agentd_head *)packet)->id : 0;

    k->reply = (struct agentd_reply){ .head.id = UINT64_MAX };
    send_with(k->link, packet, len, fd);
    while (k->reply.head.id == UINT64_MAX)
        ck_assert_msg(hft_keeper_take(k, LONG_MS), "no reply");
    ck_assert_uint_eq(k->reply.head.id, id);
    return k->reply.code;
}

uint32_t hft_keeper_raw(struct hft_keeper *k, const void *packet, size_t len)
{
    return ask(k, packet, len, -1);
}

uint32_t hft_keeper_hold(struct hft_keeper *k, uint16_t type, const char *agent, int fd)
{
    struct agentd_held m = { .head = { .length = sizeof m, .type = type, .id = ++k->last_id } };

    (void)snprintf(m.agent, sizeof m.agent, "%s", agent);
    return ask(k, &m, sizeof m, fd);
}

static void put_who(struct agentd_who *who, const char *agent, const char *instance)
{
    (void)snprintf(who->agent, sizeof who->agent, "%s", agent);
    (void)snprintf(who->instance, sizeof who->instance, "%s", instance);
}

uint32_t hft_keeper_spawn(struct hft_keeper *k, const struct hft_keeper_spawn *spawn)
{
    static _Alignas(8) char packet[sizeof(struct agentd_spawn) + 8192];
    struct agentd_spawn *m = (struct agentd_spawn *)packet;
    char *text = (char *)(m + 1);
    int len;

    memset(packet, 0, sizeof packet);
    put_who(&m->who, spawn->agent, spawn->instance);
    m->uid = m->gid = spawn->uid != 0 ? spawn->uid : AGENTD_KEEP_ID;
    m->umask = 022;
    m->fence = spawn->fence;
    m->flags = spawn->flags;
    m->memory_max = spawn->memory_max;
    m->envc = 3;
    if (spawn->program != NULL) {
        m->argc = 1;
        len = snprintf(text, 8192, "/%c%s%c", 0, spawn->program, 0);
    } else {
        m->argc = 3;
        len = snprintf(text, 8192, "/%c/bin/sh%c-c%c%s%c", 0, 0, 0, spawn->script, 0);
    }
    len += snprintf(text + len, 8192 - (size_t)len, "PATH=/usr/bin:/bin%cD=%s%cSEEN=no%c", 0,
                    k->dir.path, 0, 0);
    m->text_len = (uint32_t)len;
    m->head = (struct agentd_head){ .length = (uint32_t)(sizeof *m + (size_t)len),
                                    .type = AGENTD_SPAWN,
                                    .id = ++k->last_id };
    return hft_keeper_raw(k, packet, m->head.length);
}

uint32_t hft_keeper_release(struct hft_keeper *k, const char *agent, const char *instance)
{
    static const char ENV[] = "HOLDFAST_INCARNATION=77\0SEEN=yes";
    struct {
        struct agentd_release fixed;
        char env[sizeof ENV];
    } m = { .fixed = { .head = { .length = sizeof m.fixed + sizeof ENV,
                                 .type = AGENTD_RELEASE,
                                 .id = ++k->last_id },
                       .incarnation = { 5, 77, 0 },
                       .envc = 2,
                       .text_len = sizeof ENV } };

    put_who(&m.fixed.who, agent, instance);
    memcpy(m.env, ENV, sizeof ENV);
    return hft_keeper_raw(k, &m, m.fixed.head.length);
}

static uint32_t order(struct hft_keeper *k, struct agentd_order m, const char *agent,
                      const char *instance)
{
    m.head.length = sizeof m;
    m.head.id = ++k->last_id;
    put_who(&m.who, agent, instance);
    return hft_keeper_raw(k, &m, sizeof m);
}

uint32_t hft_keeper_order(struct hft_keeper *k, uint16_t type, const char *agent,
                          const char *instance)
{
    return order(k, (struct agentd_order){ .head.type = type }, agent, instance);
}

uint32_t hft_keeper_end(struct hft_keeper *k, const char *agent, const char *instance,
                        uint32_t grace_ms)
{
    return order(k,
                 (struct agentd_order){
                     .head.type = AGENTD_END, .grace_ms = grace_ms, .signal = SIGTERM },
                 agent, instance);
}

uint32_t hft_keeper_extend_grace(struct hft_keeper *k, const char *agent, const char *instance,
                                 uint32_t grace_ms)
{
    return order(k, (struct agentd_order){ .head.type = AGENTD_EXTEND, .grace_ms = grace_ms },
                 agent, instance);
}

uint32_t hft_keeper_shutdown(struct hft_keeper *k, uint32_t code, uint32_t grace_ms)
{
    struct agentd_shutdown m = {
        .head = { .length = sizeof m, .type = AGENTD_SHUTDOWN, .id = ++k->last_id },
        .code = code,
        .grace_ms = grace_ms
    };

    return hft_keeper_raw(k, &m, sizeof m);
}

struct agentd_agent *hft_keeper_wait(struct hft_keeper *k, const char *instance,
                                     enum agentd_state state)
{
    hf_ms until = hft_now() + LONG_MS;

    for (;;) {
        struct agentd_agent *tree = hft_keeper_tree(k, instance);

        if (tree != NULL && tree->state == state)
            return tree;
        ck_assert_msg(hft_now() < until && hft_keeper_take(k, until - hft_now()),
                      "%s is %s (wait status 0x%x) and not %s", instance,
                      tree == NULL ? "unknown" : agentd_state_name(tree->state),
                      tree == NULL ? 0 : (unsigned)tree->exit.wait_status,
                      agentd_state_name(state));
    }
}

struct agentd_agent *hft_keeper_run(struct hft_keeper *k, const char *agent,
                                    const char *instance, const char *script)
{
    ck_assert_msg(hft_keeper_spawn(k, &(struct hft_keeper_spawn){ .agent = agent,
                                                                  .instance = instance,
                                                                  .script = script }) ==
                      AGENTD_CODE_OK,
                  "spawn: %s", k->reply.text);
    (void)hft_keeper_wait(k, instance, AGENTD_STATE_HELD);
    ck_assert_msg(hft_keeper_release(k, agent, instance) == AGENTD_CODE_OK, "release: %s",
                  k->reply.text);
    for (;;) {
        struct agentd_agent *tree = hft_keeper_tree(k, instance);

        if (tree->begun_ns != 0 || tree->state == AGENTD_STATE_ENDED)
            return tree;
        ck_assert_msg(hft_keeper_take(k, LONG_MS), "%s does not begin", instance);
    }
}

long hft_keeper_number(struct hft_keeper *k, const char *file)
{
    char path[HFT_PATH_MAX + 64];
    char text[32] = "";
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", k->dir.path, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    (void)!read(fd, text, sizeof text - 1);
    (void)close(fd);
    return strtol(text, NULL, 10);
}

struct file_wait {
    struct hft_keeper *keeper;
    const char *file;
};

static bool has_number(void *arg)
{
    const struct file_wait *wait = arg;

    return hft_keeper_number(wait->keeper, wait->file) != 0;
}

void hft_keeper_wait_file(struct hft_keeper *k, const char *file)
{
    hft_wait_or_fail(has_number, &(struct file_wait){ k, file }, LONG_MS, file);
}

void hft_keeper_make_file(const struct hft_keeper *k, const char *file)
{
    char path[HFT_PATH_MAX + 64];
    int fd;

    (void)snprintf(path, sizeof path, "%s/%s", k->dir.path, file);
    fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    (void)close(fd);
}

void hft_keeper_pass_renewals(struct hft_keeper *k)
{
    enum { RENEWALS = 3, APART_MS = 5100 };
    struct agentd_lease lease = { .head = { .length = sizeof lease, .type = AGENTD_LEASE } };

    for (int i = 0; i < RENEWALS; i++) {
        lease.head.id = ++k->last_id;
        ck_assert_uint_eq(hft_keeper_raw(k, &lease, sizeof lease), AGENTD_CODE_OK);
        hft_pass_until(hft_now() + APART_MS);
    }
}

static bool is_stopped(void *arg)
{
    return hft_process_state(*(const pid_t *)arg) == 'T';
}

void hft_keeper_pause_link(struct hft_keeper *k)
{
    ck_assert_int_eq(kill(k->link_pid, SIGSTOP), 0);
    hft_wait_or_fail(is_stopped, &k->link_pid, LONG_MS, "the link to stop");
}

bool hft_keeper_find_cgroups(char *ret_path, size_t size)
{
    FILE *file = fopen("/proc/self/mountinfo", "re");
    char line[4096], path[1024];
    bool found = false;

    ck_assert_ptr_nonnull(file);
    while (!found && fgets(line, sizeof line, file) != NULL)
        found = strstr(line, " - cgroup2 ") != NULL &&
                sscanf(line, "%*s %*s %*s %*s %1000s", path) == 1;
    (void)fclose(file);
    if (found)
        (void)snprintf(ret_path, size, "%s", path);
    return found;
}

void hft_keeper_move_out(pid_t pid)
{
    char path[1024 + 16];

    ck_assert(hft_keeper_find_cgroups(path, 1024));
    (void)snprintf(path + strlen(path), 16, "/cgroup.procs");
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_gt(fprintf(file, "%d", (int)pid), 0);
    ck_assert_int_eq(fclose(file), 0);
}

char hft_process_state(pid_t pid)
{
    char path[64];
    char text[512] = "";
    int fd;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    (void)!read(fd, text, sizeof text - 1);
    (void)close(fd);
    const char *end = strrchr(text, ')');
    return end != NULL ? end[2] : 0;
}

bool hft_keeper_begin(struct hft_keeper *k, int mode)
{
    bool has_cgroups;

    if (!hft_keeper_can((enum hft_keeper_mode)mode))
        return false;
    hft_keeper_init(k, (enum hft_keeper_mode)mode);
    hft_keeper_start(k);
    has_cgroups = (k->hello.flags & AGENTD_HAS_CGROUPS) != 0;
    if (mode == HFT_KEEPER_CGROUP && !has_cgroups && !hft_has_cgroups()) {
        hft_skip("no cgroup v2 that we may use");
        hft_keeper_done(k);
        return false;
    }
    ck_assert_int_eq(has_cgroups, mode == HFT_KEEPER_CGROUP);
    hft_keeper_extend(k, 60000);
    return true;
}

bool hft_keeper_has_file(const struct hft_keeper *k, const char *file)
{
    char path[HFT_PATH_MAX + 64];

    (void)snprintf(path, sizeof path, "%s/%s", k->dir.path, file);
    return access(path, F_OK) == 0;
}

bool hft_process_is_gone(pid_t pid)
{
    char state = hft_process_state(pid);

    return state == 0 || state == 'Z';
}

static bool is_gone(void *arg)
{
    return hft_process_is_gone(*(const pid_t *)arg);
}

void hft_process_wait_gone(pid_t pid)
{
    hft_wait_or_fail(is_gone, &pid, 30000, "the end of a process");
}
