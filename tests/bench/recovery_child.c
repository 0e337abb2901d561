/* recovery_child.c - the one program that every supervisor of `./dev bench recovery` restarts.
 *
 *     recovery_child SOCKET,NAME,STATE_FILE
 *
 * Under an agentd its state is the checkpoint of its task; under the others it is the file. It
 * tells SOCKET when it holds the bytes, and ends when whoever measures hangs up. */
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "bench/recovery.h"

enum { HEAD_MAX = 4096, EXIT_FAILED = 3 };

static struct hfb_news news;

static void fail(const char *what)
{
    (void)fprintf(stderr, "recovery_child: %s\n", what);
    exit(EXIT_FAILED);
}

static int reach(const char *path, int type)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

    (void)snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        fail("cannot connect");
    return fd;
}

static void read_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0 || read(fd, news.bytes, sizeof news.bytes) != (ssize_t)sizeof news.bytes)
        fail("cannot read the state");
    (void)close(fd);
}

/* The local API of agentd: one connection, one request after the other. */
struct answer {
    int status;
    size_t len;
    char text[HEAD_MAX + HFB_STATE_BYTES + 1];
    const char *body;
};

static bool is_whole(struct answer *answer)
{
    const char *end = strstr(answer->text, "\r\n\r\n");
    const char *length = strcasestr(answer->text, "Content-Length:");

    if (end == NULL)
        return false;
    answer->body = end + 4;
    return answer->len - (size_t)(answer->body - answer->text) >=
           (length != NULL && length < end ? strtoul(length + 15, NULL, 10) : 0);
}

static struct answer *ask(int fd, const char *method, const char *path, const void *body,
                          size_t len)
{
    static struct answer answer;
    char head[HEAD_MAX];
    int n = snprintf(head, sizeof head,
                     "%s %s HTTP/1.1\r\nHost: agentd\r\nAuthorization: Bearer %s\r\n"
                     "Content-Type: application/%s\r\nContent-Length: %zu\r\n\r\n",
                     method, path, getenv("HOLDFAST_TOKEN"),
                     strcmp(method, "PUT") == 0 ? "octet-stream" : "json", len);

    if (write(fd, head, (size_t)n) != n || write(fd, body, len) != (ssize_t)len)
        fail("cannot ask agentd");
    answer = (struct answer){ .len = 0 };
    while (!is_whole(&answer)) {
        ssize_t got = read(fd, answer.text + answer.len, sizeof answer.text - 1 - answer.len);

        if (got <= 0)
            fail("agentd does not answer");
        answer.len += (size_t)got;
    }
    answer.status = atoi(answer.text + strcspn(answer.text, " "));
    return &answer;
}

static void resume(int fd, const char *task)
{
    struct answer *answer;
    char path[512];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/checkpoint", task);
    answer = ask(fd, "GET", path, "", 0);
    if (answer->status != 200 ||
        answer->text + answer->len - answer->body != (ptrdiff_t)sizeof news.bytes)
        fail("there is no checkpoint");
    (void)memcpy(news.bytes, answer->body, sizeof news.bytes);
}

/* The first life: a task of its own, begun and kept. */
static void begin(int fd, const char *name)
{
    char path[512], json[512];

    (void)snprintf(json, sizeof json, "{\"id\":\"t-%s\",\"role\":\"%s\"}", name, name);
    if (ask(fd, "POST", "/v1/tasks", json, strlen(json))->status / 100 != 2 ||
        ask(fd, "POST", "/v1/tasks/claim", "{\"wait\":\"60s\"}", 14)->status != 200)
        fail("no task");
    (void)snprintf(path, sizeof path, "/v1/tasks/t-%s/start", name);
    if (ask(fd, "POST", path, "{}", 2)->status != 200)
        fail("the task does not start");
    (void)snprintf(path, sizeof path, "/v1/tasks/t-%s/checkpoint", name);
    if (ask(fd, "PUT", path, news.bytes, sizeof news.bytes)->status != 201)
        fail("the checkpoint is not taken");
}

int main(int argc, char **argv)
{
    const char *agentd = getenv("HOLDFAST_SOCKET"), *task = getenv("HOLDFAST_TASK");
    const char *socket, *name, *state;
    char end;
    int fd;

    news.main_ns = hfb_now_ns();
    socket = argc > 1 ? strtok(argv[1], ",") : NULL;
    name = strtok(NULL, ",");
    state = strtok(NULL, ",");
    if (state == NULL)
        fail("usage: recovery_child SOCKET,NAME,STATE_FILE");
    if (agentd != NULL)
        name = getenv("HOLDFAST_AGENT");
    if (agentd != NULL && task != NULL) {
        resume(reach(agentd, SOCK_STREAM), task);
    } else {
        read_file(state);
        if (agentd != NULL)
            begin(reach(agentd, SOCK_STREAM), name);
    }
    news.held_ns = hfb_now_ns();
    news.resumed = agentd == NULL || task != NULL;
    news.pid = (int32_t)getpid();
    (void)snprintf(news.name, sizeof news.name, "%s", name);
    fd = reach(socket, SOCK_SEQPACKET);
    if (send(fd, &news, sizeof news, MSG_NOSIGNAL) != (ssize_t)sizeof news)
        fail("cannot tell");
    return read(fd, &end, 1) < 0 ? EXIT_FAILED : 0;
}
