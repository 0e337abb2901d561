/* holdfast_fixture.h - an agentd that says what a script tells it to, and the client beside it.
 */
#ifndef HF_TESTS_UNIT_HOLDFAST_FIXTURE_H
#define HF_TESTS_UNIT_HOLDFAST_FIXTURE_H

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/holdfast.h"
#include "support/tempdir.h"
#include "unit/suite.h"

#define TASK "{\"id\":\"t1\",\"role\":\"r1\",\"state\":\"pending\",\"payload\":\"5\"}"
#define REFUSAL(code)                                                                          \
    "{\"error\":{\"code\":\"" code "\",\"message\":\"no\",\"next\":\"do better\"}}"

enum { MOST = 64, TEXT_MAX = 4096 };

/* The agentd: one connection after the other, each with the next answer; the last for all that
 * follow. */
static struct hft_tempdir dir;
static char path[300];
static int listener;
static pthread_t thread;
static const char *answers[MOST]; /* NULL: it hangs up without one */
static size_t n_answers, n_asked;
static bool is_hasty; /* it says all at once, */
static bool stays;    /* and does not hang up */
static int takes_ms;  /* before it answers, or hangs up */
static int lines[MOST];
static size_t n_lines;
static char asked[MOST][TEXT_MAX];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static inline void add_answer(const char *text)
{
    answers[n_answers++] = text;
}

/* A request with its body. */
static inline void read_request(int fd, char *text)
{
    size_t len = 0, want = SIZE_MAX;

    while (len < want && len < TEXT_MAX - 1) {
        ssize_t n = read(fd, text + len, TEXT_MAX - 1 - len);
        const char *end, *length;

        if (n <= 0)
            break;
        len += (size_t)n;
        text[len] = '\0';
        end = strstr(text, "\r\n\r\n");
        length = strstr(text, "Content-Length: ");
        if (end != NULL)
            want = (size_t)(end + 4 - text) +
                   (length != NULL ? strtoul(length + 16, NULL, 10) : 0);
    }
}

/* Byte by byte, so that nothing is whole before its time. */
static inline void say(int fd, const char *text)
{
    size_t step = is_hasty ? strlen(text) : 1;

    for (; *text != '\0'; text += step) {
        if (send(fd, text, step, MSG_NOSIGNAL) != (ssize_t)step)
            return;
    }
}

static inline void *serve(void *arg)
{
    for (;;) {
        int fd = accept(listener, NULL, NULL);
        size_t n;

        if (fd < 0)
            return arg;
        (void)pthread_mutex_lock(&lock);
        n = n_asked < MOST - 1 ? n_asked : MOST - 1;
        read_request(fd, asked[n]);
        n_asked = n + 1;
        (void)pthread_mutex_unlock(&lock);
        n = n < n_answers ? n : n_answers - 1;
        (void)poll(NULL, 0, takes_ms);
        if (answers[n] != NULL)
            say(fd, answers[n]);
        (void)pthread_mutex_lock(&lock);
        if (stays && n_lines < MOST)
            lines[n_lines++] = fd;
        else
            (void)close(fd);
        (void)pthread_mutex_unlock(&lock);
    }
}

/* Ends the newest connection that stayed, whoever else has it, if there is one. */
static inline bool cut(void *arg)
{
    size_t n;

    (void)arg;
    (void)pthread_mutex_lock(&lock);
    n = n_lines;
    if (n > 0)
        (void)shutdown(lines[n - 1], SHUT_RDWR);
    (void)pthread_mutex_unlock(&lock);
    return n > 0;
}

static inline struct hf_client *begin(hf_ms patience)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    struct hf_client_config cfg = { .socket = path, .token = "secret", .patience = patience };
    struct hf_client *client = NULL;

    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, 16), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, NULL), 0);
    ck_assert_int_eq(hf_client_new(&cfg, &client, NULL), HF_OK);
    return client;
}

static inline void end(struct hf_client *client)
{
    hf_client_free(client);
    (void)shutdown(listener, SHUT_RDWR);
    (void)pthread_join(thread, NULL);
    while (n_lines > 0)
        (void)close(lines[--n_lines]);
    (void)close(listener);
}

static inline void setup(void)
{
    hft_tempdir_init(&dir);
    (void)snprintf(path, sizeof path, "%s/a1.sock", dir.path);
}

static inline void teardown(void)
{
    hft_tempdir_done(&dir);
}

static inline size_t times_asked(void)
{
    size_t times;

    (void)pthread_mutex_lock(&lock);
    times = n_asked;
    (void)pthread_mutex_unlock(&lock);
    return times;
}

/* The n-th request, from 0 on. */
static inline bool was_asked(size_t n, const char *part)
{
    bool was;

    (void)pthread_mutex_lock(&lock);
    was = n < n_asked && strstr(asked[n], part) != NULL;
    (void)pthread_mutex_unlock(&lock);
    return was;
}

#define OK(json) "HTTP/1.0 200 OK\r\n\r\n" json

#endif
