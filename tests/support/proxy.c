#include "support/proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <check.h>

#include "support/port.h"
#include "support/wait.h"

#define CHUNK_BYTES     65536
#define QUEUE_BYTES     (8U << 20) /* a sender waits when so much waits in the proxy */
#define CONNS_MAX       512
#define POLL_IDLE_MS    1000
#define LISTEN_QUEUED   128
#define LISTEN_AGAIN_MS 10000
#define FIRST_BYTES     1024

/* Bytes read together; they leave together, once due. */
struct chunk {
    struct chunk *next;
    hf_ms due;
    size_t len;
    size_t sent;
    char data[];
};

/* One direction of one connection: from fd[way] to fd[!way]. */
struct flow {
    struct chunk *head;
    struct chunk *tail;
    size_t queued;
    bool ended; /* the sender has closed its half */
    bool shut;  /* and the receiver has been told */
};

struct conn {
    struct conn *next;
    int fd[2]; /* client, server */
    struct flow flow[2];
    char first[FIRST_BYTES]; /* words of the client, as a text */
    size_t first_len;
    bool broken; /* an error on either side: reset both */
};

struct rule {
    enum hft_proxy_mode mode;
    hf_ms delay;
    bool cuts;
    uint64_t cuts_after; /* bytes still to pass; valid when cuts */
};

struct hft_proxy {
    pthread_t thread;
    struct hft_port port;
    char endpoint[32];
    uint16_t upstream;
    int wake_fd;
    struct hf_clock clock;

    pthread_mutex_t lock; /* guards all below; held by the thread except while it polls */
    pthread_cond_t obeyed;
    uint64_t orders;      /* given to the thread ... */
    uint64_t orders_done; /* ... and carried out by it */
    struct rule rule[2];
    char held_talk[128]; /* see hft_proxy_hold_talk; empty: none */
    enum hft_proxy_door door;
    bool cut;
    bool stopping;
    int listen_fd; /* -1 while refusing */
    struct conn *conns;
    struct hft_proxy_stats stats;
};

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

/* -1 when the port cannot be listened on. */
static int open_listener(uint16_t port)
{
    struct sockaddr_in addr = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -1;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) == 0 &&
        bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0 && listen(fd, LISTEN_QUEUED) == 0)
        return fd;
    int why = errno;
    (void)close(fd);
    errno = why;
    return -1;
}

/* A process that was just forked holds the old listener until it executes its program. */
static int open_listener_again(uint16_t port)
{
    hf_ms give_up = hft_now() + LISTEN_AGAIN_MS;
    int fd;

    while ((fd = open_listener(port)) < 0 && errno == EADDRINUSE && hft_now() < give_up)
        (void)poll(NULL, 0, 5);
    return fd;
}

static void reset_and_close(int fd)
{
    struct linger now = { .l_onoff = 1, .l_linger = 0 };

    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    (void)close(fd);
}

static void pop_chunk(struct flow *flow)
{
    struct chunk *chunk = flow->head;

    flow->head = chunk->next;
    flow->queued -= chunk->len;
    free(chunk);
}

static void free_conn(struct conn *conn)
{
    for (int way = 0; way < 2; way++) {
        while (conn->flow[way].head != NULL)
            pop_chunk(&conn->flow[way]);
        if (conn->broken)
            reset_and_close(conn->fd[way]);
        else
            (void)close(conn->fd[way]);
    }
    free(conn);
}

/* Removes the connections that are over; all of them when `all`. */
static void sweep(struct hft_proxy *proxy, bool all)
{
    struct conn **slot = &proxy->conns;

    while (*slot != NULL) {
        struct conn *conn = *slot;

        conn->broken |= all;
        if (conn->broken || (conn->flow[0].shut && conn->flow[1].shut)) {
            *slot = conn->next;
            free_conn(conn);
            proxy->stats.open--;
        } else {
            slot = &conn->next;
        }
    }
}

/* Dials on at once, without waiting for it: the server's silence must become the client's. */
static void adopt(struct hft_proxy *proxy, int client)
{
    struct sockaddr_in addr = loopback(proxy->upstream);
    struct conn *conn = calloc(1, sizeof *conn);
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (conn == NULL || server < 0 || proxy->stats.open >= CONNS_MAX ||
        (connect(server, (struct sockaddr *)&addr, sizeof addr) != 0 && errno != EINPROGRESS)) {
        free(conn);
        if (server >= 0)
            (void)close(server);
        reset_and_close(client);
        return;
    }
    (void)setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    (void)setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
    *conn = (struct conn){ .fd = { client, server }, .next = proxy->conns };
    proxy->conns = conn;
    proxy->stats.open++;
}

static void accept_all(struct hft_proxy *proxy)
{
    int fd;

    while (proxy->listen_fd >= 0 &&
           (fd = accept4(proxy->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK)) >= 0) {
        proxy->stats.accepted++;
        adopt(proxy, fd);
    }
}

static void move_door(struct hft_proxy *proxy)
{
    if (proxy->door == HFT_PROXY_REFUSE && proxy->listen_fd >= 0) {
        (void)close(proxy->listen_fd);
        proxy->listen_fd = -1;
    } else if (proxy->door == HFT_PROXY_OPEN && proxy->listen_fd < 0) {
        proxy->listen_fd = open_listener_again(proxy->port.number);
    }
}

static bool would_block(void)
{
    return errno == EAGAIN || errno == EINTR;
}

/* Only the head of the queue is ever sent: a delay that was shortened lets nothing overtake. */
static void enqueue(struct flow *flow, struct chunk *chunk)
{
    if (flow->head == NULL)
        flow->head = chunk;
    else
        flow->tail->next = chunk;
    flow->tail = chunk;
    flow->queued += chunk->len;
}

static bool is_held(const struct hft_proxy *proxy, const struct conn *conn, int way)
{
    return proxy->rule[way].mode == HFT_PROXY_HOLD ||
           (proxy->held_talk[0] != '\0' && strstr(conn->first, proxy->held_talk) != NULL);
}

static bool wants_input(const struct hft_proxy *proxy, const struct conn *conn, int way)
{
    const struct flow *flow = &conn->flow[way];

    return !is_held(proxy, conn, way) && !flow->ended && flow->queued < QUEUE_BYTES;
}

static void remember_first(struct conn *conn, const char *bytes, size_t len)
{
    size_t room = FIRST_BYTES - 1 - conn->first_len;

    if (len > room)
        len = room;
    memcpy(conn->first + conn->first_len, bytes, len);
    conn->first_len += len;
}

static void take_input(struct hft_proxy *proxy, struct conn *conn, int way)
{
    struct flow *flow = &conn->flow[way];
    const struct rule *rule = &proxy->rule[way];

    while (wants_input(proxy, conn, way)) {
        struct chunk *chunk = malloc(sizeof *chunk + CHUNK_BYTES);
        if (chunk == NULL)
            abort(); /* a test without memory has nothing to say */
        ssize_t n = recv(conn->fd[way], chunk->data, CHUNK_BYTES, 0);

        if (n > 0 && way == HFT_PROXY_UP)
            remember_first(conn, chunk->data, (size_t)n);
        if (n > 0 && rule->mode == HFT_PROXY_PASS) {
            chunk->next = NULL;
            chunk->len = (size_t)n;
            chunk->sent = 0;
            chunk->due = hf_clock_now(&proxy->clock) + rule->delay;
            enqueue(flow, chunk);
        } else {
            free(chunk);
        }
        if (n > 0)
            proxy->stats.read[way] += (uint64_t)n;
        flow->ended |= n == 0;
        conn->broken |= n < 0 && !would_block();
        if (n <= 0)
            return;
    }
}

/* How much of the chunk may go now; a pending cut-after limits it. */
static size_t allowance(const struct rule *rule, const struct chunk *chunk)
{
    size_t left = chunk->len - chunk->sent;

    return rule->cuts && rule->cuts_after < left ? (size_t)rule->cuts_after : left;
}

static bool is_due(const struct hft_proxy *proxy, const struct conn *conn, int way)
{
    const struct flow *flow = &conn->flow[way];

    return !is_held(proxy, conn, way) && flow->head != NULL &&
           flow->head->due <= hf_clock_now(&proxy->clock);
}

static void give_output(struct hft_proxy *proxy, struct conn *conn, int way)
{
    struct flow *flow = &conn->flow[way];
    struct rule *rule = &proxy->rule[way];

    while (is_due(proxy, conn, way)) {
        size_t len = allowance(rule, flow->head);
        ssize_t n = len > 0 ? send(conn->fd[!way], flow->head->data + flow->head->sent, len,
                                   MSG_NOSIGNAL)
                            : 0;

        if (n < 0) {
            conn->broken |= !would_block();
            return;
        }
        proxy->stats.forwarded[way] += (uint64_t)n;
        flow->head->sent += (size_t)n;
        if (rule->cuts && (rule->cuts_after -= (uint64_t)n) == 0) {
            rule->cuts = false;
            proxy->cut = true;
            return;
        }
        if (flow->head->sent == flow->head->len)
            pop_chunk(flow);
    }
}

static void pass_end_on(struct hft_proxy *proxy, struct conn *conn, int way)
{
    struct flow *flow = &conn->flow[way];

    if (flow->ended && !flow->shut && flow->head == NULL && !is_held(proxy, conn, way)) {
        flow->shut = true;
        (void)shutdown(conn->fd[!way], SHUT_WR);
    }
}

static void work(struct hft_proxy *proxy)
{
    move_door(proxy);
    accept_all(proxy);
    for (struct conn *conn = proxy->conns; conn != NULL; conn = conn->next) {
        for (int way = 0; way < 2 && !conn->broken; way++) {
            take_input(proxy, conn, way);
            give_output(proxy, conn, way);
            pass_end_on(proxy, conn, way);
        }
    }
    sweep(proxy, proxy->cut);
    proxy->cut = false;
    proxy->orders_done = proxy->orders;
    (void)pthread_cond_broadcast(&proxy->obeyed);
}

/* A descriptor without wishes is left out: poll would report its hang-up again and again, and
 * in HOLD that is not to be noticed. */
static struct pollfd wish(int fd, bool in, bool out)
{
    short events = (short)((in ? POLLIN : 0) | (out ? POLLOUT : 0));

    return (struct pollfd){ .fd = events != 0 ? fd : -1, .events = events };
}

static hf_ms time_to_due(const struct hft_proxy *proxy, const struct conn *conn, hf_ms now)
{
    hf_ms least = POLL_IDLE_MS;

    for (int way = 0; way < 2; way++) {
        const struct flow *flow = &conn->flow[way];
        if (proxy->rule[way].mode == HFT_PROXY_HOLD || flow->head == NULL)
            continue;
        if (flow->head->due > now && flow->head->due - now < least)
            least = flow->head->due - now;
    }
    return least;
}

static nfds_t gather(struct hft_proxy *proxy, struct pollfd *fds, hf_ms *ret_timeout)
{
    hf_ms now = hf_clock_now(&proxy->clock);
    hf_ms timeout = POLL_IDLE_MS;
    nfds_t count = 0;

    fds[count++] = wish(proxy->wake_fd, true, false);
    fds[count++] = wish(proxy->listen_fd, proxy->listen_fd >= 0, false);
    for (struct conn *conn = proxy->conns; conn != NULL; conn = conn->next) {
        hf_ms due = time_to_due(proxy, conn, now);

        timeout = due < timeout ? due : timeout;
        for (int way = 0; way < 2; way++)
            fds[count++] =
                wish(conn->fd[way], wants_input(proxy, conn, way), is_due(proxy, conn, !way));
    }
    *ret_timeout = timeout;
    return count;
}

static void *run(void *arg)
{
    static const size_t FDS_MAX = 2 + 2 * CONNS_MAX;
    struct hft_proxy *proxy = arg;
    struct pollfd *fds = calloc(FDS_MAX, sizeof *fds);

    if (fds == NULL)
        abort();
    (void)pthread_mutex_lock(&proxy->lock);
    while (!proxy->stopping) {
        hf_ms timeout;
        eventfd_t ignored;

        work(proxy);
        nfds_t count = gather(proxy, fds, &timeout);
        (void)pthread_mutex_unlock(&proxy->lock);
        if (poll(fds, count, (int)timeout) > 0 && (fds[0].revents & POLLIN) != 0)
            (void)eventfd_read(proxy->wake_fd, &ignored);
        (void)pthread_mutex_lock(&proxy->lock);
    }
    sweep(proxy, true);
    (void)pthread_mutex_unlock(&proxy->lock);
    free(fds);
    return NULL;
}

static void start_thread(struct hft_proxy *proxy)
{
    sigset_t all;
    sigset_t before;

    /* Signals belong to the program under test, never to this thread. */
    sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    ck_assert_int_eq(pthread_create(&proxy->thread, NULL, run, proxy), 0);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct hft_proxy *hft_proxy_new(uint16_t upstream)
{
    struct hft_proxy *proxy = calloc(1, sizeof *proxy);

    ck_assert_ptr_nonnull(proxy);
    proxy->upstream = upstream;
    proxy->clock = hf_clock_boottime();
    proxy->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ck_assert_int_ge(proxy->wake_fd, 0);
    ck_assert_int_eq(pthread_mutex_init(&proxy->lock, NULL), 0);
    ck_assert_int_eq(pthread_cond_init(&proxy->obeyed, NULL), 0);
    hft_port_take(&proxy->port);
    (void)snprintf(proxy->endpoint, sizeof proxy->endpoint, "http://127.0.0.1:%u",
                   proxy->port.number);
    proxy->listen_fd = open_listener(proxy->port.number);
    ck_assert_msg(proxy->listen_fd >= 0, "cannot listen: %s", strerror(errno));
    start_thread(proxy);
    return proxy;
}

static void lock(struct hft_proxy *proxy)
{
    ck_assert_int_eq(pthread_mutex_lock(&proxy->lock), 0);
}

static void unlock_and_wake(struct hft_proxy *proxy)
{
    (void)pthread_mutex_unlock(&proxy->lock);
    (void)eventfd_write(proxy->wake_fd, 1);
}

void hft_proxy_free(struct hft_proxy *proxy)
{
    if (proxy == NULL)
        return;
    lock(proxy);
    proxy->stopping = true;
    unlock_and_wake(proxy);
    ck_assert_int_eq(pthread_join(proxy->thread, NULL), 0);
    if (proxy->listen_fd >= 0)
        (void)close(proxy->listen_fd);
    (void)close(proxy->wake_fd);
    hft_port_release(&proxy->port);
    (void)pthread_cond_destroy(&proxy->obeyed);
    (void)pthread_mutex_destroy(&proxy->lock);
    free(proxy);
}

uint16_t hft_proxy_port(const struct hft_proxy *proxy)
{
    return proxy->port.number;
}

const char *hft_proxy_endpoint(const struct hft_proxy *proxy)
{
    return proxy->endpoint;
}

void hft_proxy_set(struct hft_proxy *proxy, enum hft_proxy_way way, enum hft_proxy_mode mode)
{
    lock(proxy);
    proxy->rule[way].mode = mode;
    unlock_and_wake(proxy);
}

void hft_proxy_set_both(struct hft_proxy *proxy, enum hft_proxy_mode mode)
{
    lock(proxy);
    proxy->rule[HFT_PROXY_UP].mode = mode;
    proxy->rule[HFT_PROXY_DOWN].mode = mode;
    unlock_and_wake(proxy);
}

void hft_proxy_delay(struct hft_proxy *proxy, enum hft_proxy_way way, hf_ms delay)
{
    lock(proxy);
    proxy->rule[way].delay = delay;
    unlock_and_wake(proxy);
}

void hft_proxy_hold_talk(struct hft_proxy *proxy, const char *text)
{
    lock(proxy);
    (void)snprintf(proxy->held_talk, sizeof proxy->held_talk, "%s", text != NULL ? text : "");
    unlock_and_wake(proxy);
}

/* Descriptors are closed by the thread alone, which may be polling them. */
static void wait_until_obeyed(struct hft_proxy *proxy)
{
    uint64_t mine = ++proxy->orders;

    (void)eventfd_write(proxy->wake_fd, 1);
    while (proxy->orders_done < mine)
        (void)pthread_cond_wait(&proxy->obeyed, &proxy->lock);
}

void hft_proxy_door(struct hft_proxy *proxy, enum hft_proxy_door door)
{
    lock(proxy);
    proxy->door = door;
    wait_until_obeyed(proxy);
    bool open = proxy->listen_fd >= 0;
    (void)pthread_mutex_unlock(&proxy->lock);
    ck_assert_msg(open == (door == HFT_PROXY_OPEN), "cannot listen on port %u again",
                  proxy->port.number);
}

void hft_proxy_cut(struct hft_proxy *proxy)
{
    lock(proxy);
    proxy->cut = true;
    wait_until_obeyed(proxy);
    (void)pthread_mutex_unlock(&proxy->lock);
}

void hft_proxy_heal(struct hft_proxy *proxy)
{
    hft_proxy_door(proxy, HFT_PROXY_REFUSE);
    hft_proxy_cut(proxy);
    hft_proxy_set_both(proxy, HFT_PROXY_PASS);
    hft_proxy_hold_talk(proxy, NULL);
    hft_proxy_delay(proxy, HFT_PROXY_UP, 0);
    hft_proxy_delay(proxy, HFT_PROXY_DOWN, 0);
    hft_proxy_door(proxy, HFT_PROXY_OPEN);
}

void hft_proxy_cut_after(struct hft_proxy *proxy, enum hft_proxy_way way, uint64_t bytes)
{
    ck_assert_uint_gt(bytes, 0);
    lock(proxy);
    proxy->rule[way].cuts = true;
    proxy->rule[way].cuts_after = bytes;
    unlock_and_wake(proxy);
}

struct hft_proxy_stats hft_proxy_stats(struct hft_proxy *proxy)
{
    lock(proxy);
    struct hft_proxy_stats stats = proxy->stats;
    (void)pthread_mutex_unlock(&proxy->lock);
    return stats;
}
