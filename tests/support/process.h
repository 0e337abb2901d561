/* process.h - child processes of tests. They die with the test unless told otherwise. */
#ifndef HFT_PROCESS_H
#define HFT_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"

struct hft_spawn {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH */
    const char *const
        *env;       /* NULL-terminated NAME=value on top of PATH and HOME; may be NULL */
    int in;         /* descriptors to use; 0 means /dev/null for `in`, ... */
    int out;        /* ... and ours for `out` ... */
    int err;        /* ... and `err` */
    bool outlives;  /* a session of its own, not killed when the test dies */
    bool as_nobody; /* without any rights; needs root (support/rights.h) */
};

/* What a program that was built like this test needs for its sanitizer. */
const char *const *hft_sanitizer_env(void);

/* Starts the program in a clean environment and returns its pid. A program that cannot be
 * executed shows as exit status 127. Start from the test's main thread: the kernel kills the
 * child when the thread that started it ends. */
pid_t hft_process_spawn(const struct hft_spawn *spawn);

/* Reaps the child and returns its wait status; kills it and fails the test after `timeout`. */
int hft_process_reap(pid_t pid, hf_ms timeout);

/* True, and *ret_status set, when the child has ended; it is reaped then. */
bool hft_process_has_ended(pid_t pid, int *ret_status);

/* Sends SIGSTOP or SIGCONT and returns once the whole process has stopped or goes on. */
void hft_process_pause(pid_t pid);
void hft_process_resume(pid_t pid);

/* What a finished program left behind. */
struct hft_output {
    int status; /* exit status, or 128 + signal */
    char *out;  /* NUL-terminated */
    char *err;
};

/* Runs a program to its end, one minute at most. */
void hft_process_run(const char *const argv[], const char *const env[],
                     struct hft_output *ret_output);
void hft_output_done(struct hft_output *output);

#define HFT_CLEANUP_OUTPUT __attribute__((cleanup(hft_output_done)))

#endif
