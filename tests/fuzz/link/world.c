#include "link/world.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agentd/link/api.h"
#include "base/log.h"
#include "io/connect.h"
#include "sim/client.h"

enum {
    PROCESSES = 32,
    BOOT_MS = 1000000,
    START_MS = 30000,
    END_MS = 60000,
    LONG_MS = 100,
    KILLED = 9
};

struct process {
    struct agentd_agent told; /* as the link heard of it last */
    char blob[AGENTD_BLOB_MAX];
    char token[LINK_TOKEN_BYTES];
    bool used;
};

static struct {
    char directory[64];
    struct link_settings settings;
    struct hf_config cfg;
    struct hfs_world sim;
    struct hfs_etcd *model;
    struct hfs_net net;
    struct hfs_process self;
    struct hfs_client client;
    struct link link;
    int keeper; /* the other end of the link's descriptor */
    uint64_t start_time;
    struct process processes[PROCESSES];
    char token[LINK_TOKEN_BYTES];
} world;

void fuzz_fail(const char *file, int line, const char *what)
{
    (void)fprintf(stderr, "%s:%d: %s\n", file, line, what);
    abort();
}

struct link *fuzz_link_get(void)
{
    return &world.link;
}

const char *fuzz_link_get_token(void)
{
    return world.token;
}

const char *fuzz_link_get_path(const char *name)
{
    static char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", world.directory, name);
    return path;
}

/* Time: libuv, libmicrohttpd and our own code all ask here. */

int clock_gettime(clockid_t clock, struct timespec *ret)
{
    hf_ms now = BOOT_MS + world.sim.now;

    if (clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME && clock != CLOCK_MONOTONIC_COARSE)
        return (int)syscall(SYS_clock_gettime, clock, ret);
    ret->tv_sec = now / 1000;
    ret->tv_nsec = now % 1000 * 1000000;
    return 0;
}

/* etcd: what lib/io would make of a real one. */

struct hf_etcd_config hf_connect_config(const struct hf_options *options)
{
    (void)options;
    return (struct hf_etcd_config){ 0 };
}

int hf_connect_new(uv_loop_t *loop, const struct hf_etcd_config *cfg, struct hf_etcd **ret_etcd,
                   struct hf_error *err)
{
    (void)loop;
    (void)cfg;
    (void)err;
    *ret_etcd = &world.client.etcd;
    return HF_OK;
}

void hf_etcd_close(struct hf_etcd *etcd, hf_etcd_closed_fn fn, void *arg)
{
    (void)etcd;
    fn(arg);
}

int hf_backend_etcd_new(uv_loop_t *loop, struct hf_etcd *etcd,
                        struct hf_backend_etcd **ret_backend)
{
    (void)loop;
    (void)etcd;
    *ret_backend = NULL;
    return HF_OK;
}

void hf_backend_etcd_close(struct hf_backend_etcd *backend, hf_etcd_closed_fn fn, void *arg)
{
    (void)backend;
    (void)fn;
    (void)arg;
}

struct hf_backend hf_backend_etcd_get(struct hf_backend_etcd *backend)
{
    (void)backend;
    return hfs_client_backend(&world.client);
}

/* The keeper. */

static void send_packet(const void *packet, size_t len)
{
    fuzz_must(agentd_check_news(packet, len) == NULL);
    fuzz_must(send(world.keeper, packet, len, MSG_DONTWAIT) == (ssize_t)len);
}

static void tell(struct process *process, enum agentd_state state)
{
    struct {
        struct agentd_agent told;
        char blob[AGENTD_BLOB_MAX];
    } packet;
    struct agentd_agent *told = &process->told;

    told->state = state;
    told->gone = state == AGENTD_STATE_ENDED;
    if (state == AGENTD_STATE_ENDED) {
        told->exit.wait_status = KILLED;
        told->exit.causes = AGENTD_CAUSE_ASKED;
    }
    told->frozen_ns = state == AGENTD_STATE_FROZEN ? (BOOT_MS + world.sim.now) * 1000000 : 0;
    told->head = (struct agentd_head){ .length = (uint32_t)(sizeof *told + told->blob_len),
                                       .type = AGENTD_AGENT };
    packet.told = *told;
    memcpy(packet.blob, process->blob, told->blob_len);
    send_packet(&packet, told->head.length);
}

static struct process *find(const struct agentd_who *who)
{
    for (size_t i = 0; i < PROCESSES; i++) {
        struct process *process = &world.processes[i];

        if (process->used && strcmp(process->told.who.instance, who->instance) == 0)
            return process;
    }
    return NULL;
}

/* The token is in the environment of every process. */
static void take_token(struct process *process, const struct agentd_spawn *spawn)
{
    static const char NAME[] = "HOLDFAST_TOKEN=";
    const char *text = (const char *)(spawn + 1);

    for (uint32_t i = 0; i < 1 + spawn->argc + spawn->envc; i++, text += strlen(text) + 1) {
        if (strncmp(text, NAME, sizeof NAME - 1) == 0)
            (void)snprintf(process->token, sizeof process->token, "%s", text + sizeof NAME - 1);
    }
}

static void spawn(const struct agentd_spawn *request)
{
    struct process *process = world.processes;

    while (process < world.processes + PROCESSES && process->used)
        process++;
    fuzz_must(process < world.processes + PROCESSES && find(&request->who) == NULL);
    *process = (struct process){ .used = true };
    process->told = (struct agentd_agent){ .who = request->who,
                                           .fence = request->fence,
                                           .pid = getpid(),
                                           .start_time = world.start_time,
                                           .made_ns = (BOOT_MS + world.sim.now) * 1000000 };
    memcpy(process->told.op_id, request->op_id, sizeof process->told.op_id);
    memcpy(process->told.boot_id, "boot", 4);
    take_token(process, request);
    tell(process, AGENTD_STATE_HELD);
}

static void release(struct process *process, const struct agentd_release *request)
{
    process->told.incarnation = request->incarnation;
    process->told.begun_ns = (BOOT_MS + world.sim.now) * 1000000;
    memcpy(world.token, process->token, sizeof world.token);
    tell(process, AGENTD_STATE_RUNNING);
}

static void remember(struct process *process, const struct agentd_remember *request)
{
    process->told.incarnation = request->incarnation;
    process->told.blob_len = request->blob_len;
    memcpy(process->blob, request + 1, request->blob_len);
}

/* All orders begin alike. */
static void obey(const struct agentd_order *order)
{
    struct process *process = find(&order->who);

    if (process == NULL)
        return;
    process->told.order = process->told.done_order = order->head.id;
    switch (order->head.type) {
    case AGENTD_RELEASE: release(process, (const void *)order); break;
    case AGENTD_REMEMBER: remember(process, (const void *)order); break;
    case AGENTD_FREEZE: tell(process, AGENTD_STATE_FROZEN); break;
    case AGENTD_THAW: tell(process, AGENTD_STATE_RUNNING); break;
    case AGENTD_FORGET: process->used = false; break;
    default: tell(process, AGENTD_STATE_ENDED); break;
    }
}

static void serve(const void *packet, size_t len)
{
    const struct agentd_head *head = packet;
    struct agentd_reply reply = {
        .head = { .length = sizeof reply, .type = AGENTD_REPLY, .id = head->id }
    };

    fuzz_must(agentd_check_request(packet, len) == NULL);
    send_packet(&reply, sizeof reply);
    if (head->type == AGENTD_SPAWN)
        spawn(packet);
    else if (head->type >= AGENTD_RELEASE && head->type <= AGENTD_FORGET)
        obey(packet);
}

static void serve_link(void)
{
    _Alignas(8) static char packet[AGENTD_MESSAGE_MAX];
    ssize_t len;

    while ((len = recv(world.keeper, packet, sizeof packet, MSG_DONTWAIT)) > 0)
        serve(packet, (size_t)len);
}

/* Nobody else gets the numbers that a link looks at, and what it would log is formed, too. */
static void reserve_descriptors(void)
{
    static int log = -1;

    for (int fd = AGENTD_LINK_FD; fd <= AGENTD_KEPT_FD; fd++)
        fuzz_must(fcntl(fd, F_GETFD) >= 0 || dup2(STDERR_FILENO, fd) == fd);
    if (log < 0)
        log = open("/dev/null", O_WRONLY | O_CLOEXEC);
    hf_log_setup(log, HF_LOG_LEVEL_DEBUG, HF_LOG_LOGFMT);
}

int fuzz_link_give_descriptors(void)
{
    struct agentd_page page = { .magic = AGENTD_PAGE_MAGIC,
                                .version = AGENTD_PROTOCOL_VERSION };
    int pair[2], memory;

    reserve_descriptors();
    memory = memfd_create("page", MFD_CLOEXEC);
    fuzz_must(memory >= 0 && ftruncate(memory, AGENTD_PAGE_BYTES) == 0 &&
              write(memory, &page, sizeof page) == sizeof page &&
              dup2(memory, AGENTD_PAGE_FD) >= 0 && close(memory) == 0);
    fuzz_must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0 &&
              dup2(pair[1], AGENTD_LINK_FD) >= 0 && close(pair[1]) == 0);
    return pair[0];
}

static void say_hello(void)
{
    struct agentd_hello hello = { .head = { .length = sizeof hello, .type = AGENTD_HELLO },
                                  .version = AGENTD_PROTOCOL_VERSION,
                                  .keeper_pid = getpid(),
                                  .link_starts = 1,
                                  .boot_id = "boot" };
    struct agentd_head synced = { .length = sizeof synced, .type = AGENTD_SYNCED };

    (void)snprintf(hello.state_dir, sizeof hello.state_dir, "%s", world.directory);
    send_packet(&hello, sizeof hello);
    send_packet(&synced, sizeof synced);
}

/* Life. */

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(fuzz_link_get_path(name), "we");

    fuzz_must(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static uint64_t read_start_time(void)
{
    char text[1024] = "";
    FILE *file = fopen("/proc/self/stat", "re");
    const char *at;

    fuzz_must(file != NULL && fgets(text, sizeof text, file) != NULL && fclose(file) == 0);
    at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 22; field++)
        at = strchr(at + 1, ' ');
    fuzz_must(at != NULL);
    return strtoull(at, NULL, 10);
}

static void remove_directory(void)
{
    static const char *const FILES[] = { "agents/a1.sock", "agents/a1.note",
                                         "agents/a1.log",  "agents",
                                         "agentd.yaml",    "worker.yaml",
                                         "a1.yaml",        "" };

    for (size_t i = 0; i < sizeof FILES / sizeof FILES[0]; i++)
        (void)remove(fuzz_link_get_path(FILES[i]));
}

/* Once: what does not change from one input to the next. */
static void prepare(void)
{
    const struct hf_option_group groups[] = { link_settings_group(&world.settings),
                                              hf_options_group(&world.settings.common) };
    char *nothing[] = { NULL }, *argv[] = { (char *)"agentd", (char *)"--config", NULL, NULL };
    char path[128];
    struct hf_error err;

    reserve_descriptors();
    (void)snprintf(world.directory, sizeof world.directory, "/tmp/fuzz-link-XXXXXX");
    fuzz_must(mkdtemp(world.directory) != NULL && atexit(remove_directory) == 0);
    world.start_time = read_start_time();
    write_file("worker.yaml", "name: worker\ncommand: [sleep, '600']\n");
    write_file("a1.yaml", "name: a1\nrole: r1\nlauncher: worker\nmax_tasks: 4\n");
    write_file("agentd.yaml", "host: h1\nlaunchers: [worker.yaml]\nagents: [a1.yaml]\n"
                              "namespace: " HFS_NS "\napi: { rate: 100000 }\n"
                              "checkpoints: { store: etcd }\n");
    (void)snprintf(path, sizeof path, "%s", fuzz_link_get_path("agentd.yaml"));
    argv[2] = path;
    fuzz_must(hf_config_init(&world.cfg, groups, 2) == HF_OK);
    if (hf_options_load(&world.cfg, &world.settings.common, 3, argv, nothing, &err) != HF_OK ||
        link_settings_complete(&world.settings, &world.cfg, &err) != HF_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        abort();
    }
}

void fuzz_link_wait(hf_ms length)
{
    hf_ms until = world.sim.now + length, step = length > LONG_MS ? LONG_MS / 2 : 1;

    while (world.sim.now < until) {
        hf_ms next = world.sim.now + step;

        serve_link();
        while (hfs_world_step(&world.sim, next))
            continue;
        (void)uv_run(&world.link.loop, UV_RUN_NOWAIT);
    }
}

static bool is_begun(void)
{
    const struct link_agent *agent = world.link.agents;
    const struct link_process *process = link_process_get_current(agent);

    return process != NULL && process->state == AGENTD_STATE_RUNNING && agent->api != NULL;
}

void fuzz_link_open(void)
{
    if (world.directory[0] == '\0')
        prepare();
    memset(world.processes, 0, sizeof world.processes);
    world.token[0] = '\0';
    hfs_world_init(&world.sim, 1);
    fuzz_must(hfs_etcd_new(&(struct hfs_etcd_config){ .seed = 2 }, &world.model) == HF_OK);
    hfs_net_init(&world.net, &world.sim, world.model);
    hfs_process_init(&world.self, &world.sim, "h1");
    world.self.clock_offset = BOOT_MS;
    hfs_client_init(&world.client, &world.net, &world.self, 3);
    world.keeper = fuzz_link_give_descriptors();
    say_hello();
    fuzz_must(link_open(&world.link, &world.settings) == HF_OK);
    for (int i = 0; i < START_MS && !is_begun(); i++)
        fuzz_link_wait(1);
    fuzz_must(is_begun());
}

void fuzz_link_close(void)
{
    link_stop(&world.link, 0);
    for (int i = 0; i < END_MS && uv_loop_alive(&world.link.loop) != 0; i++)
        fuzz_link_wait(1);
    fuzz_must(link_done(&world.link) == 0);
    (void)close(world.keeper);
    hfs_client_done(&world.client);
    hfs_net_done(&world.net);
    hfs_etcd_free(world.model);
    hfs_world_done(&world.sim);
}
