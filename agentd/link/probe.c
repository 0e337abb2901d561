#include "agentd/link/probe.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"

enum {
    STATUS_LINE = 12, /* bytes of it that are looked at */
    EXTENDED_MAX_MS = 30000,
    LATE_MS = 10, /* that a timer of ours may be */
};

struct link_probe {
    struct link_probe_config cfg;
    uv_loop_t *loop;
    uv_timer_t timer;
    struct link_attempt *attempt; /* NULL: none is under way */
};

/* Addresses. */

static const struct {
    const char *scheme;
    enum link_probe_kind kind;
} SCHEMES[] = { { "tcp://", LINK_PROBE_TCP },
                { "http://", LINK_PROBE_HTTP },
                { "grpc://", LINK_PROBE_GRPC } };

static bool fill_address(const char *host, uint16_t port, struct link_probe_target *target)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&target->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&target->address;
    const char *name = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;

    return uv_ip4_addr(name, port, v4) == 0 || uv_ip6_addr(name, port, v6) == 0;
}

/* HOST:PORT or [HOST]:PORT, up to `end`. */
static bool parse_host(const char *text, const char *end, struct link_probe_target *target)
{
    char host[64] = "";
    size_t len = (size_t)(end - text);
    const char *colon = len > 0 ? memrchr(text, ':', len) : NULL;
    bool brackets = len > 0 && text[0] == '[';
    size_t host_len = colon != NULL ? (size_t)(colon - text) : 0;
    uint64_t port;
    char digits[8] = "";

    if (colon == NULL || (size_t)(end - colon - 1) >= sizeof digits || len >= 80)
        return false;
    memcpy(digits, colon + 1, (size_t)(end - colon - 1));
    if (brackets && (host_len < 2 || text[host_len - 1] != ']'))
        return false;
    host_len -= brackets ? 2 : 0;
    if (host_len == 0 || host_len >= sizeof host)
        return false;
    memcpy(host, text + (brackets ? 1 : 0), host_len);
    (void)snprintf(target->host, sizeof target->host, "%.*s", (int)len, text);
    return hf_parse_u64(digits, 1, 65535, &port) == HF_OK &&
           fill_address(host, (uint16_t)port, target);
}

int link_probe_parse(const char *text, struct link_probe_target *ret_target,
                     struct hf_error *err)
{
    struct link_probe_target target = { .uid = (uid_t)-1, .gid = (gid_t)-1 };
    const char *rest = NULL, *end;

    for (size_t i = 0; i < sizeof SCHEMES / sizeof SCHEMES[0] && rest == NULL; i++) {
        if (strncmp(text, SCHEMES[i].scheme, strlen(SCHEMES[i].scheme)) == 0) {
            target.kind = SCHEMES[i].kind;
            rest = text + strlen(SCHEMES[i].scheme);
        }
    }
    if (rest == NULL)
        return hf_error_set(err, HF_EINVAL,
                            "\"%s\" begins with none of tcp://, http://, grpc://", text);
    end = strchrnul(rest, '/');
    if (!parse_host(rest, end, &target))
        return hf_error_set(err, HF_EINVAL,
                            "\"%s\": an address is HOST:PORT, the host a number or localhost",
                            text);
    if (strlen(end) >= sizeof target.path || strcspn(end, " \t\r\n") != strlen(end) ||
        (target.kind == LINK_PROBE_TCP && *end != '\0'))
        return hf_error_set(err, HF_EINVAL, "\"%s\" has a path that cannot be asked for", text);
    if (target.kind == LINK_PROBE_GRPC && strlen(end) > LINK_PROBE_SERVICE_MAX + 1)
        return hf_error_set(err, HF_EINVAL, "\"%s\": a service has a name of at most %d bytes",
                            text, LINK_PROBE_SERVICE_MAX);
    if (target.kind == LINK_PROBE_HTTP)
        (void)snprintf(target.path, sizeof target.path, "%s", *end != '\0' ? end : "/");
    else if (*end != '\0')
        (void)snprintf(target.path, sizeof target.path, "%s", end + 1);
    *ret_target = target;
    return HF_OK;
}

/* One attempt. */

void link_attempt_on_closed(uv_handle_t *handle)
{
    struct link_attempt *attempt = handle->data;

    if (--attempt->open > 0)
        return;
    if (attempt->probe != NULL)
        attempt->probe->attempt = NULL;
    free(attempt);
}

void link_attempt_end(struct link_attempt *attempt, bool good, const char *why)
{
    if (attempt->over)
        return;
    attempt->over = true;
    uv_close((uv_handle_t *)&attempt->timer, link_attempt_on_closed);
    if (attempt->kind != LINK_PROBE_EXEC && attempt->open > 1)
        uv_close((uv_handle_t *)&attempt->tcp, link_attempt_on_closed);
    if (attempt->probe != NULL)
        attempt->cfg->fn(good, why, attempt->cfg->arg);
}

/* For how much of the last `length` who has to answer could not, because others had the
 * processors. A program began with its attempt; of a server nothing is known before the first
 * time that it is late. */
static hf_ms find_lost(struct link_attempt *attempt, hf_ms length)
{
    bool is_program = attempt->kind == LINK_PROBE_EXEC, known = is_program || attempt->has_tree;
    pid_t pid = is_program ? attempt->process.pid : attempt->cfg->server;
    struct link_proc_tree before = attempt->tree;
    hf_ms waited, idle;

    if (pid <= 0)
        return 0;
    attempt->tree = link_proc_read_tree(pid);
    attempt->has_tree = true;
    idle = length - (attempt->tree.cpu_ms - before.cpu_ms);
    waited = known ? attempt->tree.run_wait_ms - before.run_wait_ms : 0;
    if (attempt->tree.ready && (!known || waited < idle))
        waited = known ? idle : length;
    return waited < 0 ? 0 : waited < length ? waited : length;
}

/* It gets back what it waited for, unless that is hardly anything. */
static bool extend(struct link_attempt *attempt)
{
    hf_ms timeout = attempt->cfg->timeout;
    hf_ms lost = find_lost(attempt, attempt->length != 0 ? attempt->length : timeout);

    if (lost <= timeout / 10 || attempt->extended >= EXTENDED_MAX_MS)
        return false;
    attempt->length = lost;
    attempt->extended += lost;
    return true;
}

static void on_timeout(uv_timer_t *timer);

static void set_time(struct link_attempt *attempt, hf_ms length)
{
    attempt->due = uv_now(attempt->timer.loop) + (uint64_t)length;
    (void)uv_timer_start(&attempt->timer, on_timeout, (uint64_t)length, 0);
}

/* The loop runs timers before it reads: the answer may have waited for us. Once is enough. */
static bool pardon(struct link_attempt *attempt)
{
    hf_ms late = (hf_ms)(uv_now(attempt->timer.loop) - attempt->due);

    if (attempt->pardoned || late <= LATE_MS)
        return false;
    attempt->pardoned = true;
    set_time(attempt, late < attempt->cfg->timeout ? late : attempt->cfg->timeout);
    return true;
}

static void on_timeout(uv_timer_t *timer)
{
    struct link_attempt *attempt = timer->data;

    if (attempt->probe != NULL && pardon(attempt))
        return;
    if (attempt->probe != NULL && extend(attempt)) {
        set_time(attempt, attempt->length);
        return;
    }
    if (attempt->kind == LINK_PROBE_EXEC)
        link_attempt_kill(attempt);
    link_attempt_end(attempt, false, "it took too long");
}

static void on_space(uv_handle_t *handle, size_t size, uv_buf_t *ret_buf)
{
    struct link_attempt *attempt = handle->data;

    (void)size;
    *ret_buf = uv_buf_init(attempt->in + attempt->in_len,
                           (unsigned)(sizeof attempt->in - attempt->in_len));
}

/* "HTTP/1.1 200", and anything behind it on that line. */
int link_probe_read_http(const char *in, size_t len)
{
    const char *end = memchr(in, '\n', len);

    if (end == NULL)
        return 0;
    return end - in >= STATUS_LINE && memcmp(in, "HTTP/1.", 7) == 0 && in[8] == ' ' &&
                   (in[9] == '2' || in[9] == '3')
               ? 1
               : -1;
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buf)
{
    struct link_attempt *attempt = stream->data;
    int good;

    (void)buf;
    if (len == 0 || attempt->over)
        return;
    if (len < 0) {
        link_attempt_end(attempt, false, "it hung up without an answer");
        return;
    }
    attempt->in_len += (size_t)len;
    good = attempt->kind == LINK_PROBE_HTTP
               ? link_probe_read_http(attempt->in, attempt->in_len)
               : link_probe_read_health(attempt->in, attempt->in_len);
    if (good == 0 && attempt->in_len == sizeof attempt->in)
        good = -1;
    if (good != 0)
        link_attempt_end(attempt, good > 0,
                         good > 0 ? "it serves" : "it answers that it does not serve");
}

static void on_written(uv_write_t *write, int status)
{
    struct link_attempt *attempt = write->data;

    if (status != 0 && !attempt->over)
        link_attempt_end(attempt, false, uv_strerror(status));
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct link_attempt *attempt = connect->data;
    const struct link_probe_target *target;
    uv_buf_t buf;
    size_t len;

    if (attempt->over)
        return;
    target = &attempt->cfg->target;
    if (status != 0 || target->kind == LINK_PROBE_TCP) {
        link_attempt_end(attempt, status == 0, status == 0 ? "it serves" : uv_strerror(status));
        return;
    }
    len = target->kind == LINK_PROBE_HTTP
              ? (size_t)snprintf(attempt->out, sizeof attempt->out,
                                 "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n"
                                 "User-Agent: holdfast\r\n\r\n",
                                 target->path, target->host)
              : link_probe_put_health(target, attempt->out, sizeof attempt->out);
    buf = uv_buf_init(attempt->out, (unsigned)len);
    attempt->write.data = attempt;
    if (uv_read_start((uv_stream_t *)&attempt->tcp, on_space, on_read) != 0 ||
        uv_write(&attempt->write, (uv_stream_t *)&attempt->tcp, &buf, 1, on_written) != 0)
        link_attempt_end(attempt, false, "it cannot be asked");
}

static void begin_connection(struct link_attempt *attempt, uv_loop_t *loop)
{
    (void)uv_tcp_init(loop, &attempt->tcp); /* no socket is made yet: it cannot fail */
    attempt->tcp.data = attempt->connect.data = attempt;
    attempt->open++;
    if (uv_tcp_connect(&attempt->connect, &attempt->tcp,
                       (const struct sockaddr *)&attempt->cfg->target.address,
                       on_connected) != 0)
        link_attempt_end(attempt, false, "it cannot be reached");
}

/* Again and again. */

static void on_due(uv_timer_t *timer)
{
    struct link_probe *probe = timer->data;
    struct link_attempt *attempt;

    if (probe->attempt != NULL)
        return;
    attempt = hf_calloc(1, sizeof *attempt);
    if (attempt == NULL)
        return; /* it is asked the next time */
    attempt->probe = probe;
    attempt->cfg = &probe->cfg;
    attempt->kind = probe->cfg.target.kind;
    probe->attempt = attempt;
    (void)uv_timer_init(probe->loop, &attempt->timer); /* which cannot fail */
    attempt->timer.data = attempt;
    attempt->open = 1;
    set_time(attempt, probe->cfg.timeout);
    if (attempt->kind == LINK_PROBE_EXEC)
        link_attempt_exec(attempt, probe->loop);
    else
        begin_connection(attempt, probe->loop);
}

struct link_probe *link_probe_new(uv_loop_t *loop, const struct link_probe_config *cfg)
{
    struct link_probe *probe = hf_calloc(1, sizeof *probe);

    if (probe == NULL)
        return NULL;
    probe->cfg = *cfg;
    probe->loop = loop;
    (void)uv_timer_init(loop, &probe->timer);
    probe->timer.data = probe;
    (void)uv_timer_start(&probe->timer, on_due, (uint64_t)cfg->every, (uint64_t)cfg->every);
    return probe;
}

static void on_probe_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void link_probe_close(struct link_probe *probe)
{
    struct link_attempt *attempt;

    if (probe == NULL)
        return;
    attempt = probe->attempt;
    if (attempt != NULL) {
        attempt->probe = NULL;
        if (!attempt->over && attempt->kind == LINK_PROBE_EXEC)
            link_attempt_kill(attempt);
        link_attempt_end(attempt, false, "");
    }
    uv_close((uv_handle_t *)&probe->timer, on_probe_closed);
}
