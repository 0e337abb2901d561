/* live.h - a fleet as it is now, drawn again and again; and work for the one that `up` shows.
 */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include "cli/cli.h"

enum { CLI_LIVE_EVENTS = 10 };

struct cli_live {
    const char *endpoint;
    const char *programs; /* the directory that our programs lie in */
    bool demo;            /* give its agents something to do */

    bool terminal;     /* there is one that can be drawn on, */
    bool screen;       /* standard output is a terminal: draw on it; else print what is new */
    int64_t last_seq;  /* of the newest event that was printed */
    unsigned bad;      /* records that could not be read, when that was last said */
    int64_t next_task; /* number of the next task to be submitted */
    bool all_live;     /* when it was shown last, every agent was */
};

void cli_live_begin(struct cli_live *live);

/* Reads everything and shows it. While etcd does not answer it says so, and succeeds. */
int cli_live_refresh(struct cli *cli, struct cli_live *live) HF_MUST_CHECK;

void cli_live_end(struct cli_live *live);

#endif
