/* speed.h - how much faster than life a fleet without faults lives in the simulator. */
#ifndef HFS_SPEED_H
#define HFS_SPEED_H

#include <stdbool.h>

#include "base/clock.h"

enum { HFS_SPEED_AGENTS = 20, HFS_SPEED_TARGET = 10000 };

struct hfs_speed {
    hf_ms time;    /* that passed for the fleet */
    double took;   /* seconds of our own work, however busy the machine is with others' */
    double factor; /* the one by the other */
    bool ok;       /* every task was done, and no invariant broken */
    char why[600]; /* if not */
};

/* An hour of a fleet with a host for each agent, two controllers and a task a minute. */
struct hfs_speed hfs_speed_measure(void);

#endif
