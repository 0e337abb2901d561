#include "support/etcd.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"
#include "support/http.h"
#include "support/process.h"
#include "support/wait.h"

#define READY_TIMEOUT_MS 30000
#define STOP_TIMEOUT_MS  30000
#define START_TRIES      5
#define ARGS_MAX         64
#define LOG_TAIL_BYTES   8192

/* A command line under construction; it owns its words. */
struct args {
    char *word[ARGS_MAX + 1];
    size_t count;
};

static void args_done(struct args *args)
{
    for (size_t i = 0; i < args->count; i++)
        free(args->word[i]);
}

#define CLEANUP_ARGS __attribute__((cleanup(args_done)))

__attribute__((format(printf, 2, 3))) static void add(struct args *args, const char *fmt, ...)
{
    va_list list;

    ck_assert_uint_lt(args->count, ARGS_MAX);
    va_start(list, fmt);
    ck_assert_int_ge(vasprintf(&args->word[args->count], fmt, list), 0);
    va_end(list);
    args->count++;
}

/* stderr gets the end of etcd's log, so that a failed start explains itself. */
static void show_log(const struct hft_etcd *etcd)
{
    HF_CLEANUP_FD int fd = open(etcd->log_file, O_RDONLY | O_CLOEXEC);
    char tail[LOG_TAIL_BYTES];

    if (fd < 0)
        return;
    if (lseek(fd, -LOG_TAIL_BYTES, SEEK_END) < 0)
        (void)lseek(fd, 0, SEEK_SET);
    ssize_t n = read(fd, tail, sizeof tail);
    (void)fprintf(stderr, "--- end of %s\n%.*s\n---\n", etcd->log_file, n > 0 ? (int)n : 0,
                  tail);
}

static bool log_contains(const struct hft_etcd *etcd, const char *text)
{
    FILE *file = fopen(etcd->log_file, "re");
    HF_CLEANUP_FREE char *line = NULL;
    size_t size = 0;
    bool found = false;

    ck_assert_ptr_nonnull(file);
    while (!found && getline(&line, &size, file) >= 0)
        found = strstr(line, text) != NULL;
    (void)fclose(file);
    return found;
}

void hft_etcd_init(struct hft_etcd *etcd, const struct hft_etcd_options *options)
{
    const char *scheme = options->tls != NULL ? "https" : "http";

    *etcd = (struct hft_etcd){ .options = *options };
    if (etcd->options.name == NULL)
        etcd->options.name = "m0";
    hft_tempdir_init(&etcd->dir);
    hft_port_take(&etcd->client);
    hft_port_take(&etcd->peer);
    hft_port_take(&etcd->metrics);

    (void)snprintf(etcd->data_dir, sizeof etcd->data_dir, "%s/data", etcd->dir.path);
    (void)snprintf(etcd->log_file, sizeof etcd->log_file, "%s/etcd.log", etcd->dir.path);
    (void)snprintf(etcd->endpoint, sizeof etcd->endpoint, "%s://127.0.0.1:%u", scheme,
                   etcd->client.number);
    (void)snprintf(etcd->peer_url, sizeof etcd->peer_url, "http://127.0.0.1:%u",
                   etcd->peer.number);
    (void)snprintf(etcd->initial_cluster, sizeof etcd->initial_cluster, "%s=%s",
                   etcd->options.name, etcd->peer_url);
}

static void add_tls(struct args *args, const struct hft_etcd_tls *tls)
{
    add(args, "--cert-file=%s", tls->cert);
    add(args, "--key-file=%s", tls->key);
    if (tls->client_cert != NULL) {
        add(args, "--trusted-ca-file=%s", tls->ca);
        add(args, "--client-cert-auth");
    }
}

static void server_args(struct args *args, const struct hft_etcd *etcd)
{
    const struct hft_etcd_options *o = &etcd->options;

    add(args, "etcd");
    add(args, "--name=%s", o->name);
    add(args, "--data-dir=%s", etcd->data_dir);
    add(args, "--listen-client-urls=%s", etcd->endpoint);
    add(args, "--advertise-client-urls=%s", etcd->endpoint);
    add(args, "--listen-peer-urls=http://127.0.0.1:%u", etcd->peer.number);
    add(args, "--initial-advertise-peer-urls=%s", etcd->peer_url);
    add(args, "--initial-cluster=%s", etcd->initial_cluster);
    add(args, "--listen-metrics-urls=http://127.0.0.1:%u", etcd->metrics.number);
    add(args, "--backend-batch-limit=500"); /* as we advise everyone to run it */
    add(args, "--logger=zap");
    if (o->no_fsync)
        add(args, "--unsafe-no-fsync");
    if (o->quota_bytes != 0)
        add(args, "--quota-backend-bytes=%lld", (long long)o->quota_bytes);
    if (o->auth_token_ttl_s != 0)
        add(args, "--auth-token-ttl=%d", o->auth_token_ttl_s);
    if (o->heartbeat_ms != 0)
        add(args, "--heartbeat-interval=%d", o->heartbeat_ms);
    if (o->election_ms != 0)
        add(args, "--election-timeout=%d", o->election_ms);
    if (o->tls != NULL)
        add_tls(args, o->tls);
    for (size_t i = 0; o->extra_flags != NULL && o->extra_flags[i] != NULL; i++)
        add(args, "%s", o->extra_flags[i]);
}

void hft_etcd_run(struct hft_etcd *etcd)
{
    CLEANUP_ARGS struct args args = { 0 };
    HF_CLEANUP_FD int log =
        open(etcd->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

    ck_assert_int_eq(etcd->pid, 0);
    ck_assert_int_ge(log, 0);
    server_args(&args, etcd);
    etcd->pid = hft_process_spawn(&(struct hft_spawn){
        .argv = (const char *const *)args.word,
        .out = log,
        .err = log,
    });
}

/* The client port is bound early, but answers only once the member has published itself: until
 * then the request waits, and nobody has to ask again. */
static bool serves_clients(const struct hft_etcd *etcd)
{
    HF_CLEANUP_FREE char *answer = NULL;

    if (etcd->options.tls != NULL)
        return true; /* etcdctl will wait for it */
    return hft_http_get(etcd->client.number, "/version", &answer) == 200;
}

static bool is_ready_or_dead(void *arg)
{
    struct hft_etcd *etcd = arg;
    int status;

    if (hft_process_has_ended(etcd->pid, &status)) {
        etcd->pid = 0;
        return true;
    }
    return hft_port_is_listened_by(etcd->client.number, etcd->pid) &&
           hft_port_is_listened_by(etcd->metrics.number, etcd->pid) && serves_clients(etcd) &&
           hft_etcd_metric(etcd, "etcd_server_has_leader", 0) == 1;
}

bool hft_etcd_wait_ready(struct hft_etcd *etcd)
{
    HF_CLEANUP_FREE char *ignored = NULL;

    if (!hft_wait(is_ready_or_dead, etcd, hft_patience(READY_TIMEOUT_MS))) {
        show_log(etcd);
        ck_abort_msg("%s was not ready in time", etcd->options.name);
    }
    if (etcd->pid == 0) {
        if (log_contains(etcd, "address already in use"))
            return false;
        show_log(etcd);
        ck_abort_msg("%s ended while starting", etcd->options.name);
    }
    if (etcd->options.tls != NULL &&
        hft_etcdctl(etcd, &ignored, "endpoint", "status", NULL) != 0) {
        show_log(etcd);
        ck_abort_msg("%s does not serve clients", etcd->options.name);
    }
    return true;
}

void hft_etcd_start(struct hft_etcd *etcd, const struct hft_etcd_options *options)
{
    for (int i = 0; i < START_TRIES; i++) {
        hft_etcd_init(etcd, options);
        hft_etcd_run(etcd);
        if (hft_etcd_wait_ready(etcd))
            return;
        hft_etcd_done(etcd);
    }
    ck_abort_msg("its ports were taken %d times in a row", START_TRIES);
}

void hft_etcd_restart(struct hft_etcd *etcd)
{
    hft_etcd_run(etcd);
    ck_assert_msg(hft_etcd_wait_ready(etcd), "someone took a port of %s", etcd->options.name);
}

static void end(struct hft_etcd *etcd, int sig)
{
    ck_assert_int_ne(etcd->pid, 0);
    ck_assert_int_eq(kill(etcd->pid, sig), 0);
    (void)hft_process_reap(etcd->pid, STOP_TIMEOUT_MS);
    etcd->pid = 0;
    etcd->paused = false;
}

void hft_etcd_stop(struct hft_etcd *etcd)
{
    end(etcd, SIGTERM);
}

void hft_etcd_kill(struct hft_etcd *etcd)
{
    end(etcd, SIGKILL);
}

void hft_etcd_pause(struct hft_etcd *etcd)
{
    hft_process_pause(etcd->pid);
    etcd->paused = true;
}

void hft_etcd_resume(struct hft_etcd *etcd)
{
    hft_process_resume(etcd->pid);
    etcd->paused = false;
}

void hft_etcd_done(struct hft_etcd *etcd)
{
    if (etcd->pid != 0)
        hft_etcd_kill(etcd);
    hft_port_release(&etcd->client);
    hft_port_release(&etcd->peer);
    hft_port_release(&etcd->metrics);
    hft_tempdir_done(&etcd->dir);
}

static void client_args(struct args *args, const struct hft_etcd *etcd, va_list list)
{
    const struct hft_etcd_tls *tls = etcd->options.tls;

    add(args, "etcdctl");
    add(args, "--endpoints=%s", etcd->endpoint);
    add(args, "--dial-timeout=60s"); /* the machine may be busy */
    add(args, "--command-timeout=60s");
    if (tls != NULL)
        add(args, "--cacert=%s", tls->ca);
    if (tls != NULL && tls->client_cert != NULL) {
        add(args, "--cert=%s", tls->client_cert);
        add(args, "--key=%s", tls->client_key);
    }
    if (etcd->user[0] != '\0')
        add(args, "--user=%s", etcd->user);
    for (const char *word; (word = va_arg(list, const char *)) != NULL;)
        add(args, "%s", word);
}

static void run_etcdctl(const struct hft_etcd *etcd, va_list list,
                        struct hft_output *ret_output)
{
    static const char *const ENV[] = { "ETCDCTL_API=3", NULL };
    CLEANUP_ARGS struct args args = { 0 };

    client_args(&args, etcd, list);
    hft_process_run((const char *const *)args.word, ENV, ret_output);
    ck_assert_msg(ret_output->status != 127, "etcdctl is not installed");
}

int hft_etcdctl(const struct hft_etcd *etcd, char **ret_output, ...)
{
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };
    va_list list;

    va_start(list, ret_output);
    run_etcdctl(etcd, list, &output);
    va_end(list);
    if (ret_output != NULL)
        *ret_output = hf_steal(&output.out);
    return output.status;
}

void hft_etcdctl_ok(const struct hft_etcd *etcd, char **ret_output, ...)
{
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };
    va_list list;

    va_start(list, ret_output);
    run_etcdctl(etcd, list, &output);
    va_end(list);
    ck_assert_msg(output.status == 0, "etcdctl failed with %d: %s", output.status, output.err);
    if (ret_output != NULL)
        *ret_output = hf_steal(&output.out);
}

double hft_etcd_metric(const struct hft_etcd *etcd, const char *series, double otherwise)
{
    HF_CLEANUP_FREE char *body = NULL;
    size_t len = strlen(series);

    if (hft_http_get(etcd->metrics.number, "/metrics", &body) != 200)
        return otherwise;
    for (const char *line = body; line != NULL && *line != '\0';) {
        if (strncmp(line, series, len) == 0 && line[len] == ' ')
            return strtod(line + len + 1, NULL);
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return otherwise;
}

int64_t hft_etcd_revision(const struct hft_etcd *etcd)
{
    double revision = hft_etcd_metric(etcd, "etcd_debugging_mvcc_current_revision", -1);

    ck_assert_msg(revision >= 1, "%s does not tell its revision", etcd->options.name);
    return (int64_t)revision;
}
