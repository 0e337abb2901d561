#include <stdio.h>
#include <string.h>

#include "client/head.h"
#include "unit/suite.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
    const char *text;
    int status;
    int64_t length, seq;
    const char *sha256;
} HEADS[] = {
    { "HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n", 200, 12, 0, "" },
    { "HTTP/1.0 204\r\n\r\n", 204, -1, 0, "" },
    { "HTTP/1.1 409 Conflict\ncontent-length:0\n\n", 409, 0, 0, "" },
    { "HTTP/1.1 200 OK\r\nX-Holdfast-Seq:  17 \r\nx-holdfast-sha256: " DIGEST "\r\nOther: "
      "\xc3\xa9\t,\r\n\r\n",
      200, -1, 17, DIGEST },
    { "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\nEmpty:\r\n\r\n", 200, 5, 0,
      "" },
};

START_TEST(a_head_is_read_once_it_is_whole)
{
    size_t len = strlen(HEADS[_i].text);
    struct hf_head head = { 0 };
    char text[400];

    for (size_t part = 0; part < len; part++)
        ck_assert_int_eq(hf_head_parse(HEADS[_i].text, part, &head, NULL), 0);
    (void)snprintf(text, sizeof text, "%sbody", HEADS[_i].text);
    ck_assert_int_eq(hf_head_parse(text, len + 4, &head, NULL), (int)len);
    ck_assert_int_eq(head.status, HEADS[_i].status);
    ck_assert_int_eq(head.length, HEADS[_i].length);
    ck_assert_int_eq(head.seq, HEADS[_i].seq);
    ck_assert_str_eq(head.sha256, HEADS[_i].sha256);
}
END_TEST

static const struct {
    const char *text, *why;
} BAD[] = {
    { "HTTP/2 200 OK\r\n\r\n", "first line" },
    { "HTTP/1.1  200 OK\r\n\r\n", "first line" },
    { "HTTP/1.1 20 OK\r\n\r\n", "first line" },
    { "HTTP/1.1 2000 OK\r\n\r\n", "first line" },
    { "HTTP/1.1 099 OK\r\n\r\n", "first line" },
    { "HTTP/1.1 600 OK\r\n\r\n", "first line" },
    { "HTTP/1.x 200 OK\r\n\r\n", "first line" },
    { "\r\n\r\n", "first line" },
    { "nonsense\r\n", "first line" },
    { "HTTP/1.1 200 OK\r\n: x\r\n\r\n", "malformed" },
    { "HTTP/1.1 200 OK\r\nName\r\n\r\n", "malformed" },
    { "HTTP/1.1 200 OK\r\nName : x\r\n\r\n", "malformed" },
    { "HTTP/1.1 200 OK\r\nA: 1\r\n folded\r\n\r\n", "malformed" },
    { "HTTP/1.1 200 OK\r\nA: \x01\r\n\r\n", "malformed" },
    { "HTTP/1.1 200 OK\r\nA: a\rb\r\n\r\n", "malformed" },
    { "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 1e3\r\n\r\n", "Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", "Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n", "Content-Length" },
    { "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "Content-Length" },
    { "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "transfer encoding" },
    { "HTTP/1.1 200 OK\r\nX-Holdfast-Seq: x\r\n\r\n", "X-Holdfast-Seq" },
    { "HTTP/1.1 200 OK\r\nX-Holdfast-Sha256: 12\r\n\r\n", "X-Holdfast-Sha256" },
};

START_TEST(what_is_no_head_is_refused_with_the_reason)
{
    struct hf_head head = { .status = 7 };
    struct hf_error err = { "" };

    ck_assert_int_eq(hf_head_parse(BAD[_i].text, strlen(BAD[_i].text), &head, &err), HF_EINVAL);
    ck_assert_msg(strstr(err.text, BAD[_i].why) != NULL, "%s", err.text);
    ck_assert_int_eq(head.status, 7);
}
END_TEST

START_TEST(a_head_without_end_is_refused)
{
    static char text[HF_HEAD_MAX + 1];
    struct hf_head head;

    memset(text, 'x', sizeof text);
    memcpy(text, "HTTP/1.1 200 OK\r\nA: ", 20);
    ck_assert_int_eq(hf_head_parse(text, HF_HEAD_MAX - 1, &head, NULL), 0);
    ck_assert_int_eq(hf_head_parse(text, HF_HEAD_MAX, &head, NULL), HF_ELIMIT);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("head");

    tcase_add_loop_test(t, a_head_is_read_once_it_is_whole, 0, COUNT(HEADS));
    tcase_add_loop_test(t, what_is_no_head_is_refused_with_the_reason, 0, COUNT(BAD));
    tcase_add_test(t, a_head_without_end_is_refused);
    return run("client/head", t);
}
