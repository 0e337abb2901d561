/* What the link and its helper say to each other: made, sent, received, and not believed. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "agentd/s3/packet.h"
#include "support/suite.h"

static struct hf_buf make(struct s3_packet head, const char *const *texts)
{
    struct hf_buf packet = { 0 };

    ck_assert_int_eq(s3_packet_make(&packet, &head, texts), HF_OK);
    return packet;
}

START_TEST(texts_and_a_file_arrive)
{
    HF_CLEANUP_BUF struct hf_buf packet =
        make((struct s3_packet){ .type = S3_GET, .count = 2, .size = 7 },
             (const char *[]){ "default/t1/x", "digest" });
    union {
        struct s3_packet packet;
        char bytes[S3_PACKET_MAX];
    } got;
    int pair[2], file = open("/dev/null", O_RDONLY | O_CLOEXEC), given = -1;
    ssize_t len;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(s3_packet_send(pair[0], &packet, file), 0);
    len = s3_packet_receive(pair[1], &got, sizeof got, &given);
    ck_assert_int_eq(len, (ssize_t)packet.len);
    ck_assert_ptr_null(s3_packet_check(&got, (size_t)len));
    ck_assert_int_eq(got.packet.size, 7);
    ck_assert_str_eq(s3_packet_get(&got.packet, 0), "default/t1/x");
    ck_assert_str_eq(s3_packet_get(&got.packet, 1), "digest");
    ck_assert_int_ge(given, 0);
    ck_assert_int_eq(fcntl(given, F_GETFD), FD_CLOEXEC);
    (void)close(given);
    (void)close(file);
    (void)close(pair[0]);
    ck_assert_int_eq(s3_packet_receive(pair[1], &got, sizeof got, &given), 0);
    ck_assert_int_eq(given, -1);
    (void)close(pair[1]);
}
END_TEST

START_TEST(what_is_too_long_for_the_receiver_is_an_error)
{
    HF_CLEANUP_BUF struct hf_buf packet = make(
        (struct s3_packet){ .type = S3_DROP, .count = 1 }, (const char *[]){ "default/t1/x" });
    struct s3_packet small;
    int pair[2], given;

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    ck_assert_int_eq(s3_packet_send(pair[0], &packet, pair[0]), 0);
    ck_assert_int_eq(s3_packet_receive(pair[1], &small, sizeof small, &given), -EMSGSIZE);
    ck_assert_int_eq(given, -1);
    (void)close(pair[0]);
    (void)close(pair[1]);
}
END_TEST

START_TEST(a_text_that_has_no_room_is_an_error)
{
    static char text[S3_PACKET_MAX];
    HF_CLEANUP_BUF struct hf_buf packet = { 0 };
    struct s3_packet head = { .type = S3_DROP, .count = 1 };

    memset(text, 'x', sizeof text - 1);
    ck_assert_int_eq(s3_packet_make(&packet, &head, (const char *[]){ text }), HF_ELIMIT);
}
END_TEST

/* A good packet with one thing wrong. */
static const struct {
    size_t at; /* of the byte that is another, and which; -1: none is */
    int byte;
    int longer; /* by so many bytes */
} WRONG[] = {
    { .at = offsetof(struct s3_packet, type), .byte = 0 },
    { .at = offsetof(struct s3_packet, type), .byte = S3_DONE + 1 },
    { .at = offsetof(struct s3_packet, type), .byte = S3_PUT },
    { .at = offsetof(struct s3_packet, zero), .byte = 1 },
    { .at = offsetof(struct s3_packet, count), .byte = 3 },
    { .at = sizeof(struct s3_packet), .byte = 0 },
    { .byte = -1, .longer = 1 },
    { .byte = -1, .longer = -1 },
    { .byte = -1, .longer = -100 },
};

START_TEST(what_is_not_as_it_should_be_is_refused)
{
    HF_CLEANUP_BUF struct hf_buf packet = make((struct s3_packet){ .type = S3_GET, .count = 2 },
                                               (const char *[]){ "name", "digest" });
    size_t len = packet.len;

    ck_assert_ptr_null(s3_packet_check(packet.data, packet.len));
    hf_buf_append(&packet, "x", 2);
    if (WRONG[_i].byte >= 0)
        packet.data[WRONG[_i].at] = (char)WRONG[_i].byte;
    len = WRONG[_i].longer == -100 ? 3 : len + (size_t)WRONG[_i].longer;
    ck_assert_ptr_nonnull(s3_packet_check(packet.data, len));
}
END_TEST

int main(void)
{
    TCase *packets = tcase_create("packets");

    tcase_add_test(packets, texts_and_a_file_arrive);
    tcase_add_test(packets, what_is_too_long_for_the_receiver_is_an_error);
    tcase_add_test(packets, a_text_that_has_no_room_is_an_error);
    tcase_add_loop_test(packets, what_is_not_as_it_should_be_is_refused, 0,
                        sizeof WRONG / sizeof WRONG[0]);
    return hft_suite_run("agentd/s3/packet", packets, NULL);
}
