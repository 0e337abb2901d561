/* history.h - a witness of everything that happens in an etcd, and the judgement of it.
 *
 * The witness is a program of its own (tests/e2e/historian.c), which watches from the first
 * revision on. In the end all of it is told to the checkers that the simulator has, one
 * revision after the other: sim/history.h says what they can see there and what they cannot.
 * Nothing may be compacted. */
#ifndef HFT_HISTORY_H
#define HFT_HISTORY_H

#include "core/recover.h"
#include "core/restart.h"
#include "support/etcd.h"

enum { HFT_HISTORY_EXCUSED = 16 };

/* Zero-initialise. */
struct hft_history {
    pid_t pid; /* 0: nobody watches */
    char file[HFT_PATH_MAX + 32];
    struct hf_recover_policy recover; /* of the controllers */
    struct hf_restart_policy restart;
    uint32_t running_max;
    int64_t excused[HFT_HISTORY_EXCUSED]; /* revisions that the test itself made */
    size_t excused_count;
};

/* Begins with the revisions that there are, with the default policies. */
void hft_history_start(struct hft_history *history, const struct hft_etcd *etcd);

/* These options of a controller, some of which are about policies (NULL-terminated). */
void hft_history_take_options(struct hft_history *history, const char *const words[]);

/* The test made that revision, to spoil something: it is not judged. */
void hft_history_excuse(struct hft_history *history, int64_t revision);

/* A change, as the witness saw it. */
struct hft_change {
    int64_t revision;
    hf_ms after, before; /* it was made between them, on CLOCK_BOOTTIME */
    bool deleted;
    int64_t create_rev;
    const char *key, *value; /* each with a NUL behind it */
};

typedef void (*hft_change_fn)(const struct hft_change *change, void *arg);

/* Tells of every change, of which the oldest comes first: those that etcd has now, if it is
 * running. */
void hft_history_each(const struct hft_history *history, const struct hft_etcd *etcd,
                      hft_change_fn fn, void *arg);

/* Waits until everything has been told that etcd has (if that is running), ends the witness,
 * and fails the test with the first violation. Does nothing where nobody watches. */
void hft_history_judge(struct hft_history *history, const struct hft_etcd *etcd);

#endif
