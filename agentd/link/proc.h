/* proc.h - what the kernel says of a process of an agent, for a verdict and for people.
 *
 * Reads only what never waits for the process itself (nothing that needs its memory map). */
#ifndef LINK_PROC_H
#define LINK_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "core/detector.h"

struct link_proc {
    pid_t pid;           /* whose it is */
    uint64_t start_time; /* likewise */
    char name[16];
    hf_ms at;            /* when it was read; 0: never */
    char state;          /* R, S, D, T, t ... */
    pid_t tracer;        /* of whoever debugs it; 0: nobody; only where it was asked for */
    int32_t threads;     /* that it has */
    int64_t cpu_ms;      /* of all of them, so far */
    int64_t run_wait_ms; /* that they waited for a processor, so far; as the tracer */
    int32_t processors;  /* that it may use; likewise */
    bool ready;          /* one of them computes, or would if it had a processor; likewise */
    int32_t cpu_percent; /* since the time before; below 0: not known */
    int64_t starved_ms;  /* since then: it could have computed, and got no processor */
    hf_ms busy_since;    /* it used every processor that it got, or waited for one; 0: not */
    bool computes;       /* it did so for long enough to say so */
};

/* False: that process is not there any more. `whole`: also what costs more to find out. What
 * stood in *proc is the time before, if it was of the same process. */
bool link_proc_read(pid_t pid, uint64_t start_time, bool whole, hf_ms now,
                    struct link_proc *proc);

/* When the one that has the number was started; 0: nobody has it, or is dead. */
uint64_t link_proc_find(pid_t pid);

/* It is a child of that one, or of one of its children, and so on. */
bool link_proc_is_below(pid_t pid, pid_t ancestor);

/* Whether that process is there. What was read of the number before is its own, then. */
bool link_proc_is(pid_t pid, uint64_t start_time);

enum hf_process_shape link_proc_shape(const struct link_proc *proc);

/* "is stopped by a signal", "computes without an end" ...: what it does instead of answering.
 */
const char *link_proc_word(const struct link_proc *proc);

/* The same, with the system call that it sleeps in, where that can be read. */
void link_proc_say(const struct link_proc *proc, struct hf_buf *ret);

/* Of whoever has the number: link_proc_is() afterwards tells whether that was the process.
 * State, CPU time, system call and wait channel in one line; its stack in the kernel, empty
 * where that cannot be read. */
void link_proc_describe(const struct link_proc *proc, struct hf_buf *ret);
void link_proc_stack(pid_t pid, struct hf_buf *ret);
/* Its threads, and what each of them does. */
void link_proc_threads(pid_t pid, struct hf_buf *ret);
/* Its children, and with `deep` theirs; returns how many were found. */
size_t link_proc_find_below(pid_t pid, bool deep, pid_t *ret_pids, size_t max);
/* Its children and theirs, and what they do. */
void link_proc_children(pid_t pid, struct hf_buf *ret);
/* All of them together, as far as it matters who kept them from computing. */
struct link_proc_tree {
    bool ready; /* one of them computes, or would if it got a processor or its disk */
    int64_t cpu_ms, run_wait_ms;
};
struct link_proc_tree link_proc_read_tree(pid_t pid);
/* Its open sockets, and with whom. */
void link_proc_sockets(pid_t pid, struct hf_buf *ret);

#endif
