/* world.h - a whole link of agentd, for whatever a fuzzer says on its sockets.
 *
 * All of agentd/link runs as it is, with its loop, its HTTP server and its sockets. Around it,
 * etcd is the simulator's model, the keeper is one that obeys at once, and every clock is the
 * simulator's: nobody waits. There is one agent, `a1`, whose process is this one. */
#ifndef FUZZ_LINK_WORLD_H
#define FUZZ_LINK_WORLD_H

#include "agentd/link/link.h"

/* Its agent runs and is registered. */
void fuzz_link_open(void);
/* Ends it in order. Whatever is left over then is found. */
void fuzz_link_close(void);

/* So many milliseconds pass, one after the other. */
void fuzz_link_wait(hf_ms length);

/* Gives this process the descriptors that a link finds, with a fence page; returns the keeper's
 * end. For a part of the link alone. */
int fuzz_link_give_descriptors(void);

struct link *fuzz_link_get(void);
const char *fuzz_link_get_token(void); /* of the process that began last */

/* The path of a file in its state directory. */
const char *fuzz_link_get_path(const char *name);

/* Or the fuzzer has found something. */
#define fuzz_must(holds) ((holds) ? (void)0 : fuzz_fail(__FILE__, __LINE__, #holds))

_Noreturn void fuzz_fail(const char *file, int line, const char *what);

#endif
