/* A link that thinks nothing: it connects to the test's socket, hands over the fence page, and
 * passes every packet on in both directions. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "agentd/keeper/protocol.h"

static int dial(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        exit(3);
    return fd;
}

static void hand_over_page(int fd)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS } };
    struct iovec part = { (void *)"page", 4 };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };

    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &(int){ AGENTD_PAGE_FD }, sizeof(int));
    if (sendmsg(fd, &message, 0) < 0)
        exit(3);
}

/* Descriptors as well. */
static void pass_on(int from, int to)
{
    static char packet[AGENTD_MESSAGE_MAX + 1];
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = { packet, sizeof packet };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };
    ssize_t len = recvmsg(from, &message, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *cmsg = CMSG_FIRSTHDR(&message);

    if (len <= 0)
        exit(0);
    part.iov_len = (size_t)len;
    if (sendmsg(to, &message, MSG_NOSIGNAL) < 0)
        exit(3);
    if (cmsg != NULL) {
        int fd;

        memcpy(&fd, CMSG_DATA(cmsg), sizeof fd);
        (void)close(fd);
    }
}

int main(int argc, char **argv)
{
    const char *path = getenv("HFT_RELAY");

    if (argc > 1 && strcmp(argv[1], "check") == 0)
        return 42; /* a command for the link alone */
    if (path == NULL)
        return 2;
    int fd = dial(path);
    hand_over_page(fd);
    for (;;) {
        struct pollfd fds[] = { { .fd = AGENTD_LINK_FD, .events = POLLIN },
                                { .fd = fd, .events = POLLIN } };

        (void)poll(fds, 2, -1);
        if (fds[0].revents != 0)
            pass_on(AGENTD_LINK_FD, fd);
        if (fds[1].revents != 0)
            pass_on(fd, AGENTD_LINK_FD);
    }
}
