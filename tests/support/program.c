#include "support/program.h"

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
#include "support/rights.h"
#include "support/text.h"
#include "support/wait.h"

enum { MOST_ARGS = 40, MOST_ENV = 12, STOP_MS = 60000 };

struct arguments {
    char path[HFT_PATH_MAX + 64];
    const char *items[MOST_ARGS];
    size_t count;
};

static void add(struct arguments *args, const char *item)
{
    ck_assert_uint_lt(args->count, MOST_ARGS);
    args->items[args->count++] = item;
}

static void add_all(struct arguments *args, va_list more)
{
    const char *item;

    do {
        item = va_arg(more, const char *);
        add(args, item);
    } while (item != NULL);
}

static void begin(struct arguments *args, const char *directory, const char *name,
                  const char *endpoint)
{
    *args = (struct arguments){ .count = 0 };
    (void)snprintf(args->path, sizeof args->path, "%s/%s", directory, name);
    add(args, args->path);
    add(args, "--endpoints");
    add(args, endpoint);
}

/* The sanitizers' variables and those of the caller. */
static void join_env(const char *const sanitizers[], const char *const env[],
                     const char *const more[], const char *ret_env[MOST_ENV + 1])
{
    const char *const *lists[] = { sanitizers, env, more };
    size_t count = 0;

    for (size_t l = 0; l < sizeof lists / sizeof lists[0]; l++) {
        for (size_t i = 0; lists[l] != NULL && lists[l][i] != NULL; i++) {
            ck_assert_uint_lt(count, MOST_ENV);
            ret_env[count++] = lists[l][i];
        }
    }
    ret_env[count] = NULL;
}

/* Only those that were built for it know of points to end or stop at. */
static bool is_armed(const struct hft_program *program)
{
    return strncmp(program->env, "HOLDFAST_CRASH_AT=", strlen("HOLDFAST_CRASH_AT=")) == 0 ||
           strncmp(program->env, "HOLDFAST_STOP_AT=", strlen("HOLDFAST_STOP_AT=")) == 0;
}

void hft_program_start(struct hft_program *program, const char *name, const char *dir,
                       const char *label, const char *endpoint, ...)
{
    const char *programs = is_armed(program) ? HOLDFAST_ARMED_PROGRAMS : HOLDFAST_PROGRAMS;
    char copies[HFT_PATH_MAX + 8];
    struct arguments args;
    const char *own[] = { program->env[0] != '\0' ? program->env : NULL, NULL };
    const char *env[MOST_ENV + 1];
    HF_CLEANUP_FD int log = -1;
    va_list more;

    if (program->is_nobodys) {
        hft_settle_nobody(dir, programs);
        (void)snprintf(copies, sizeof copies, "%s/bin", dir);
        programs = copies;
    }
    begin(&args, programs, name, endpoint);
    va_start(more, endpoint);
    add_all(&args, more);
    va_end(more);
    (void)snprintf(program->log_file, sizeof program->log_file, "%s/%s.log", dir, label);
    log = open(program->log_file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(log, 0);
    join_env(program->is_nobodys ? hft_nobody_env() : hft_sanitizer_env(), own,
             program->more_env, env);
    program->pid = hft_process_spawn(&(struct hft_spawn){ .argv = args.items,
                                                          .env = env,
                                                          .out = log,
                                                          .err = log,
                                                          .as_nobody = program->is_nobodys });
}

static int status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int hft_program_wait(struct hft_program *program, hf_ms timeout)
{
    int status = hft_process_reap(program->pid, timeout);

    program->pid = 0;
    return status_of(status);
}

int hft_program_stop(struct hft_program *program)
{
    ck_assert_int_eq(kill(program->pid, SIGTERM), 0);
    return hft_program_wait(program, STOP_MS);
}

void hft_program_kill(struct hft_program *program)
{
    ck_assert_int_eq(kill(program->pid, SIGKILL), 0);
    (void)hft_program_wait(program, STOP_MS);
}

unsigned hft_program_count(const struct hft_program *program, const char *text)
{
    HF_CLEANUP_FREE char *log = hft_read_text(program->log_file, NULL);
    unsigned count = 0;

    for (const char *at = log; (at = strstr(at, text)) != NULL; count++)
        at += strcspn(at, "\n");
    return count;
}

bool hft_program_said(const struct hft_program *program, const char *text)
{
    return hft_program_count(program, text) > 0;
}

struct saying {
    const struct hft_program *program;
    const char *text;
};

static bool is_said(void *arg)
{
    const struct saying *saying = arg;

    return hft_program_said(saying->program, saying->text);
}

void hft_program_until_said(const struct hft_program *program, const char *text, hf_ms timeout)
{
    if (!hft_wait(is_said, &(struct saying){ program, text }, timeout)) {
        HF_CLEANUP_FREE char *log = hft_read_text(program->log_file, NULL);

        ck_abort_msg("\"%s\" was not said within %lld ms, but:\n%s", text, (long long)timeout,
                     log);
    }
}

pid_t hft_cli_spawn(const char *endpoint, ...)
{
    struct arguments args;
    HF_CLEANUP_FD int null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    va_list more;

    ck_assert_int_ge(null_fd, 0);
    begin(&args, HOLDFAST_PROGRAMS, "holdfast", endpoint);
    va_start(more, endpoint);
    add_all(&args, more);
    va_end(more);
    return hft_process_spawn(&(struct hft_spawn){
        .argv = args.items, .env = hft_sanitizer_env(), .out = null_fd, .err = null_fd });
}

void hft_cli_env(const char *const env[], struct hft_output *ret_output, const char *endpoint,
                 ...)
{
    struct arguments args;
    const char *all[MOST_ENV + 1];
    va_list more;

    begin(&args, HOLDFAST_PROGRAMS, "holdfast", endpoint);
    va_start(more, endpoint);
    add_all(&args, more);
    va_end(more);
    join_env(hft_sanitizer_env(), env, NULL, all);
    hft_process_run(args.items, all, ret_output);
}
