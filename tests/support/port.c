#include "support/port.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"

#define FIRST_PORT         10000
#define FALLBACK_EPHEMERAL 32768
#define TRIES              1000

/* Where the kernel starts to hand out ports by itself. */
static unsigned ephemeral_start(void)
{
    FILE *file = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
    unsigned low = 0;

    /* NOLINTNEXTLINE(cert-err34-c): the kernel writes two small numbers */
    if (file != NULL && fscanf(file, "%u", &low) != 1)
        low = 0;
    if (file != NULL)
        (void)fclose(file);
    return low > FIRST_PORT + TRIES && low < 65536 ? low : FALLBACK_EPHEMERAL;
}

/* An abstract socket name is taken by one process at a time and freed by the kernel at its end.
 */
static int lock_port(unsigned number)
{
    struct sockaddr_un addr = { .sun_family = AF_UNIX };
    int len = snprintf(addr.sun_path + 1, sizeof addr.sun_path - 1, "hft-port-%u", number);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    if (bind(fd, (struct sockaddr *)&addr, size) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

static bool is_free(unsigned number)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET,
        .sin_port = htons((uint16_t)number),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    HF_CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    return bind(fd, (struct sockaddr *)&addr, sizeof addr) == 0;
}

void hft_port_take(struct hft_port *port)
{
    unsigned span = ephemeral_start() - FIRST_PORT;

    for (int i = 0; i < TRIES; i++) {
        uint32_t random;

        ck_assert_int_eq(getrandom(&random, sizeof random, 0), (int)sizeof random);
        unsigned number = FIRST_PORT + random % span;
        int fd = lock_port(number);
        if (fd < 0)
            continue;
        if (is_free(number)) {
            *port = (struct hft_port){ .number = (uint16_t)number, .lock_fd = fd };
            return;
        }
        (void)close(fd);
    }
    ck_abort_msg("no free port in %d tries", TRIES);
}

void hft_port_release(struct hft_port *port)
{
    if (port->number != 0)
        (void)close(port->lock_fd);
    *port = (struct hft_port){ 0 };
}

/* The inode of the socket that listens on 127.0.0.1:<number> as `pid` sees the network, else 0.
 */
static uint64_t listener_inode(uint16_t number, pid_t pid)
{
    char path[64];
    char line[512];
    uint64_t inode = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/net/tcp", (int)pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && inode == 0 && fgets(line, sizeof line, file) != NULL) {
        unsigned addr;
        unsigned local;
        unsigned state;
        uint64_t found;

        /* NOLINTNEXTLINE(cert-err34-c): a table of the kernel's, and a non-match is skipped */
        if (sscanf(line, " %*u: %x:%x %*x:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %" SCNu64, &addr,
                   &local, &state, &found) == 4 &&
            addr == htonl(INADDR_LOOPBACK) && local == number && state == 10 /* listening */)
            inode = found;
    }
    if (file != NULL)
        (void)fclose(file);
    return inode;
}

/* Reset at once, so that nothing is left of it in the kernel's table. */
static bool refuses(uint16_t number)
{
    struct sockaddr_in addr = {
        .sin_family = AF_INET,
        .sin_port = htons(number),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
    struct linger reset = { .l_onoff = 1 };
    HF_CLEANUP_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset), 0);
    return connect(fd, (struct sockaddr *)&addr, sizeof addr) < 0 && errno == ECONNREFUSED;
}

/* The table has thousands of connections that are over, and whoever waits for a listener asks
 * often: where nobody listens at all it is not read. */
bool hft_port_is_listened_by(uint16_t number, pid_t pid)
{
    uint64_t inode = refuses(number) ? 0 : listener_inode(number, pid);
    char want[64];
    char path[64];
    bool found = false;

    (void)snprintf(want, sizeof want, "socket:[%" PRIu64 "]", inode);
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = inode != 0 ? opendir(path) : NULL;
    for (struct dirent *entry; dir != NULL && !found && (entry = readdir(dir)) != NULL;) {
        char target[64] = { 0 };

        found = readlinkat(dirfd(dir), entry->d_name, target, sizeof target - 1) > 0 &&
                strcmp(target, want) == 0;
    }
    if (dir != NULL)
        (void)closedir(dir);
    return found;
}
