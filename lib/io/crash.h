/* crash.h - ends or stops this process at a chosen point of one of its writes, for tests of
 * what others make of it. Here a point is nothing: only the programs that tests arm, which are
 * linked with tests/support/armed/crash.c in place of io/crash.c and never installed, know how.
 *
 * HOLDFAST_CRASH_AT=STAGE:KEY[#N][@FILE] chooses: at the N-th write (the first, without a
 * number) that changes a key which begins with KEY, given without its namespace. STAGE is
 *   before  it is decided and not sent,
 *   sent    it is handed to etcd's connection: it may have arrived or not,
 *   done    etcd has answered, and whoever decided has not heard of it.
 * HOLDFAST_STOP_AT is the same with SIGSTOP for SIGKILL. FILE is created then; where it exists
 * already nothing happens. So a process that is started anew with the same environment dies
 * once, and a test sees when it was. */
#ifndef HF_IO_CRASH_H
#define HF_IO_CRASH_H

#include "core/plan.h"

enum hf_crash_stage { HF_CRASH_BEFORE, HF_CRASH_SENT, HF_CRASH_DONE };

/* Zero-initialise: counts the writes that were met. */
struct hf_crash {
    unsigned met;
};

void hf_crash_point(struct hf_crash *crash, enum hf_crash_stage stage,
                    const struct hf_plan *plan);

#endif
