/* stray.h - what a program that we started has left behind: processes that went into a session
 * of their own, or whose parent has ended. They become our children when nobody else is left,
 * and end with the program that they came from. */
#ifndef LINK_STRAY_H
#define LINK_STRAY_H

#include <stddef.h>

#include <uv.h>

enum { LINK_STRAY_MARK = 64 };

/* From now on they come to us; those that a link before this one left to the keeper end. */
void link_stray_begin(void);

/* What a program is to have in its environment, so that it is known what belongs to it: the
 * handle's `data` tells whether it still runs. */
void link_stray_mark(const void *data, char ret_entry[LINK_STRAY_MARK]);

/* Ends what belongs to no process that the loop waits for. */
void link_stray_sweep(uv_loop_t *loop);

#endif
