#include "agentd/s3/packet.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* How many texts each type has; of S3_NAMES any number but none. */
static const uint32_t TEXTS[] = {
    [S3_SETUP] = S3_SETUP_COUNT,
    [S3_PUT] = 1,
    [S3_GET] = 2,
    [S3_DROP] = 1,
    [S3_LIST] = 2,
    [S3_NAMES] = 0,
    [S3_DONE] = 2,
};

int s3_packet_make(struct hf_buf *out, const struct s3_packet *head, const char *const *texts)
{
    out->limit = S3_PACKET_MAX;
    hf_buf_append(out, head, sizeof *head);
    for (uint32_t i = 0; i < head->count; i++)
        hf_buf_append(out, texts[i] != NULL ? texts[i] : "",
                      texts[i] != NULL ? strlen(texts[i]) + 1 : 1);
    return out->err;
}

const char *s3_packet_check(const void *data, size_t len)
{
    const struct s3_packet *packet = data;
    const char *at = (const char *)data + sizeof *packet;
    const char *end = (const char *)data + len;

    if (len < sizeof *packet || len > S3_PACKET_MAX)
        return "it has no length that a packet has";
    if (packet->type < S3_SETUP || packet->type > S3_DONE || packet->zero != 0)
        return "it is of no type that is known";
    if (packet->type == S3_NAMES ? packet->count == 0 : packet->count != TEXTS[packet->type])
        return "it has not as many texts as its type";
    for (uint32_t i = 0; i < packet->count; i++) {
        const char *nul = at < end ? memchr(at, '\0', (size_t)(end - at)) : NULL;

        if (nul == NULL || nul - at >= S3_PACKET_TEXT)
            return "a text has no end, or is too long";
        at = nul + 1;
    }
    return at == end ? NULL : "something stands behind its texts";
}

const char *s3_packet_get(const struct s3_packet *packet, uint32_t number)
{
    const char *at = (const char *)(packet + 1);

    while (number-- > 0)
        at += strlen(at) + 1;
    return at;
}

union control {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
};

int s3_packet_send(int fd, const struct hf_buf *packet, int file)
{
    struct iovec data = { .iov_base = packet->data, .iov_len = packet->len };
    union control control = { 0 };
    struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
    ssize_t n;

    if (file >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof file);
        memcpy(CMSG_DATA(&control.head), &file, sizeof file);
    }
    do
        n = sendmsg(fd, &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return n < 0 ? errno : 0;
}

ssize_t s3_packet_receive(int fd, void *data, size_t size, int *ret_file)
{
    struct iovec into = { .iov_base = data, .iov_len = size };
    union control control = { 0 };
    struct msghdr message = { .msg_iov = &into,
                              .msg_iovlen = 1,
                              .msg_control = &control,
                              .msg_controllen = sizeof control };
    const struct cmsghdr *given;
    ssize_t n;

    do
        n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    *ret_file = -1;
    if (n < 0)
        return -errno;
    given = CMSG_FIRSTHDR(&message);
    if (given != NULL && given->cmsg_level == SOL_SOCKET && given->cmsg_type == SCM_RIGHTS &&
        given->cmsg_len == CMSG_LEN(sizeof(int)))
        memcpy(ret_file, CMSG_DATA(given), sizeof *ret_file);
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0)
        return n;
    if (*ret_file >= 0)
        (void)close(*ret_file);
    *ret_file = -1;
    return -EMSGSIZE;
}
