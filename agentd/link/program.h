/* program.h - starts a program of the launcher, beside the agent's own: with the rights of the
 * agent's user, and with nothing of our environment, which has etcd's credentials. */
#ifndef LINK_PROGRAM_H
#define LINK_PROGRAM_H

#include <sys/types.h>
#include <uv.h>

#include "base/err.h"
#include "schema/config.h"

/* More of them are refused with the launcher. */
#define LINK_PROGRAM_WORDS     64  /* of a command */
#define LINK_PROGRAM_VARIABLES 128 /* that it gets beside PATH */

struct link_program {
    struct hf_strings command;
    struct hf_strings env; /* that it gets beside PATH */
    int input;             /* what it reads as its stdin; -1: nothing */
    uid_t uid;             /* that it runs as; -1: as ourselves */
    gid_t gid;
};

/* What it prints is lost: its status, which `fn` gets, is all that it has to say. The handle's
 * `data` must be set before, and be nobody else's. HF_EIO: it cannot be started; *process is a
 * handle all the same, and to be closed. */
int link_program_start(uv_loop_t *loop, const struct link_program *program, uv_exit_cb fn,
                       uv_process_t *process) HF_MUST_CHECK;

/* It has ended, and so does whatever it has left behind. */
void link_program_on_ended(const uv_process_t *process);

/* With its children, if it still runs. */
void link_program_kill(const uv_process_t *process);

#endif
