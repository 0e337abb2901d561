/* program.h - the project's own programs as children of a test, each on an etcd of the test.
 *
 * Their environment is clean, so nothing of the machine's configuration reaches them. */
#ifndef HFT_PROGRAM_H
#define HFT_PROGRAM_H

#include "support/process.h"
#include "support/tempdir.h"

/* A daemon with its log in a file. Zero-initialise. */
struct hft_program {
    pid_t pid; /* 0 while it does not run */
    char log_file[HFT_PATH_MAX + 64];
    char env[HFT_PATH_MAX + 128]; /* one NAME=value for its next start; empty: none */
    const char *const *more_env;  /* more of them, NULL-terminated; may be NULL */
    bool is_nobodys;              /* an agentd without rights, from a copy in <dir> */
};

/* Starts <name> with --endpoints and the other arguments (NULL-terminated); its log goes to
 * <dir>/<label>.log, behind what is there. */
void hft_program_start(struct hft_program *program, const char *name, const char *dir,
                       const char *label, const char *endpoint, ...) __attribute__((sentinel));

/* SIGTERM; waits for its end and returns its exit status, or 128 + signal. */
int hft_program_stop(struct hft_program *program);
/* SIGKILL, likewise. */
void hft_program_kill(struct hft_program *program);

/* Waits for its end by itself. */
int hft_program_wait(struct hft_program *program, hf_ms timeout);

/* True when the log has that text. */
bool hft_program_said(const struct hft_program *program, const char *text);
/* How many lines of the log have it. */
unsigned hft_program_count(const struct hft_program *program, const char *text);
/* Waits until the log has it; fails the test, and prints the log, otherwise. */
void hft_program_until_said(const struct hft_program *program, const char *text, hf_ms timeout);

/* Starts `holdfast` with --endpoints and these arguments; what it says goes nowhere. To be
 * reaped by the caller. */
pid_t hft_cli_spawn(const char *endpoint, ...) __attribute__((sentinel));

/* Runs `holdfast` with --endpoints and these arguments to its end; `env` as in struct
 * hft_spawn. */
void hft_cli_env(const char *const env[], struct hft_output *ret_output, const char *endpoint,
                 ...) __attribute__((sentinel));
#define hft_cli(ret_output, ...) hft_cli_env(NULL, ret_output, __VA_ARGS__)

#endif
