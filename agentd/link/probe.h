/* probe.h - asks a program from outside whether it serves, again and again.
 *
 *     tcp://127.0.0.1:80         it accepts a connection
 *     http://[::1]:80/health     it answers with a status from 200 to 399
 *     grpc://localhost:80/name   grpc.health.v1.Health says that the service (or all) is
 * SERVING a command                  it ends with status 0
 *
 * Only addresses of numbers and localhost: nothing here waits for a name server. No attempt
 * begins before the one before it has ended, and none takes longer than its time-out, but for
 * what whoever has to answer waited for a processor, and at most half a minute of that. */
#ifndef LINK_PROBE_H
#define LINK_PROBE_H

#include <sys/socket.h>
#include <uv.h>

#include "agentd/link/proc.h"
#include "base/clock.h"
#include "base/err.h"
#include "schema/config.h"

#define LINK_PROBE_SERVICE_MAX 100 /* bytes of the name of a service of gRPC */

enum link_probe_kind { LINK_PROBE_TCP, LINK_PROBE_HTTP, LINK_PROBE_GRPC, LINK_PROBE_EXEC };

struct link_probe_target {
    enum link_probe_kind kind;
    struct sockaddr_storage address;
    char host[80];  /* and port, as HTTP wants them */
    char path[200]; /* of HTTP, from `/` on; of gRPC, the service */
    struct hf_strings command;
    uid_t uid; /* that the command runs as; -1: as ourselves */
    gid_t gid;
};

/* The part of an address. HF_EINVAL with a sentence. */
int link_probe_parse(const char *text, struct link_probe_target *ret_target,
                     struct hf_error *err) HF_MUST_CHECK;

/* `why` says what was wrong. */
typedef void (*link_probe_fn)(bool good, const char *why, void *arg);

struct link_probe_config {
    struct link_probe_target target;
    struct hf_strings env; /* of a command, beside where programs are; the caller's */
    hf_ms every, timeout;
    pid_t server; /* who has to answer at an address; 0: not known */
    link_probe_fn fn;
    void *arg;
};

struct link_probe;

/* Asks for the first time after `every`. NULL: no memory. */
struct link_probe *link_probe_new(uv_loop_t *loop, const struct link_probe_config *cfg);
/* The function is not called any more. NULL is fine. */
void link_probe_close(struct link_probe *probe);

/* For the parts: one attempt. */
struct link_attempt {
    struct link_probe *probe;            /* NULL: nobody wants to know any more */
    const struct link_probe_config *cfg; /* likewise */
    enum link_probe_kind kind;
    uv_timer_t timer;
    union {
        uv_tcp_t tcp;
        uv_process_t process;
    };
    uv_connect_t connect;
    uv_write_t write;
    char in[1024];
    size_t in_len;
    char out[600];
    unsigned open; /* handles */
    bool over;
    struct link_proc_tree tree; /* of who has to answer, when its time began, ... */
    bool has_tree;              /* ... if that is known */
    hf_ms length, extended;     /* of that time, unless it is the first; and of all but that */
    uint64_t due;               /* when it is over, as the loop counts */
    bool pardoned;              /* it has got back what we stood still for */
};

/* It came to an end; the first one counts. A program is waited for all the same. */
void link_attempt_end(struct link_attempt *attempt, bool good, const char *why);
void link_attempt_on_closed(uv_handle_t *handle);
void link_attempt_kill(const struct link_attempt *attempt); /* its program, if it still runs */
void link_attempt_exec(struct link_attempt *attempt, uv_loop_t *loop);

/* What the answer says that has come so far. 1: it serves; 0: not known yet; below 0: it does
 * not. gRPC without a library: what to send, too. */
int link_probe_read_http(const char *in, size_t len);
size_t link_probe_put_health(const struct link_probe_target *target, char *out, size_t size);
int link_probe_read_health(const char *in, size_t len);

#endif
