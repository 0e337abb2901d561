/* scribe.h - what the keeper hands to its scribe, and the scribe's own half.
 *
 * The scribe is a process of its own because a disk may stall for minutes, and whoever writes
 * to it then stands still as well. It never touches what an agent is or does; when it is
 * killed, the next one goes on with the same pipes. */
#ifndef AGENTD_KEEPER_SCRIBE_H
#define AGENTD_KEEPER_SCRIBE_H

#include <stdint.h>

#include "agentd/keeper/protocol.h"

enum scribe_kind {
    SCRIBE_LOG,    /* read these pipes into agents/<name>.log; descriptors come along */
    SCRIBE_PUT,    /* write the bytes that follow into the file, whole or not at all */
    SCRIBE_RECORD, /* the same over what it holds, which asks nothing of the disk */
    SCRIBE_DROP,   /* remove the file */
    SCRIBE_SAY,    /* the bytes that follow, on stderr */
};

struct scribe_order {
    uint32_t kind;
    uint32_t key;   /* of LOG, PUT and RECORD: names it in the answer */
    uint32_t flags; /* of LOG: AGENTD_SPAWN_PASS_OUTPUT */
    uint32_t len;   /* of PUT, RECORD and SAY: bytes that follow */
    char name[AGENTD_NAME_BYTES + 8];
};

/* scribe -> keeper: nobody holds the other ends of those pipes any more, or a file could not be
 * written. */
struct scribe_end {
    uint32_t key;
    uint32_t not_written;             /* 1: it is about a PUT or a RECORD */
    char output[AGENTD_OUTPUT_BYTES]; /* the last of it, as text */
};

enum { SCRIBE_PUT_MAX = 16384 };

/* The process. Ends when the keeper does. */
_Noreturn void keeper_scribe_main(int keeper_fd, int state_fd);

#endif
