/* profile_private.h - what a profile is made of, for the two files that know. */
#ifndef HFS_PROFILE_PRIVATE_H
#define HFS_PROFILE_PRIVATE_H

#include "sim/profile.h"

enum {
    MOST_KINDS = 20,
    STALL_MS = 3100,
    LONG_MS = 32000,
    RETURN_MS = 800, /* in which a controller that is back leads again, or nearly */
    DEATHS = 3,
    DEAF_MS = 30000,
    SLIP_MS = 2000,
    BOOT_MS = 70, /* then the specs of an agentd are there, and few of its agents */
    BACKUP_MS = 3000,
    PAST_MS = 800,
    AWAY_MS = 8000, /* less than its lease lasts */
    LONG_RUN_MS = 120000,
    LONG_STEP_MS = 15000,
    OUTAGE_MS = 3800000,
    COMEBACK_MS = 23000,
    PAUSE_MS = 9500,
    BEAT_MS = 2000,
    QUIET_MS = 15000,
    ANSWER_MS = 10000,
    SWEEP_MS = 30000, /* less may not be configured */
    PAGE_MS = 3000,   /* between the pages of a list, at most */
    EARLY_MS = 2000,
    BRIEF_MS = 300, /* in which an agentd decides on what has just ended */
    SAID = 24       /* what is said and done around a restore, in either past */
};

/* What several faults bring about together, each at its moment (profile_plots.c). */
enum hfs_plot {
    HFS_PLOT_NONE,
    HFS_PLOT_GHOSTS,    /* leases that have just ended are renewed, of hosts that hear little */
    HFS_PLOT_LIARS,     /* who led goes on answering renewals, to hosts that hear little */
    HFS_PLOT_RECEIPTS,  /* answers lie about while nobody reads them; then there are none */
    HFS_PLOT_FORGETFUL, /* whoever leads forgets everything when somebody dies */
    HFS_PLOT_CLOCKS,    /* leaders come and go, some of them old and some new */
    HFS_PLOT_CALLS,     /* starts are ordered twice, once in a past that is forgotten */
    HFS_PLOT_RETURNS,   /* what was recovered is given back, in a past that is forgotten */
    HFS_PLOT_RELEASES,  /* somebody is held, and released, in a past that is forgotten */
    HFS_PLOT_RATES,     /* the fleet has another size, again and again, and another past */
    HFS_PLOT_LOSSES,    /* a host is said to be lost, in a past that is forgotten */
    HFS_PLOT_GUESTS,    /* links die after agents that register again on hosts not their own */
    HFS_PLOT_HEIRS,     /* who crashes at work has leave; nobody leads, or no host is free */
};

struct hfs_profile {
    const char *name;
    enum hfs_plot plot;
    hf_ms page_ms; /* between the pages of a list, where that is less than PAGE_MS */
    enum hfs_fault_kind kinds[MOST_KINDS]; /* one that stands twice is drawn twice as often */
    size_t kind_count;
    hf_ms step_max;                      /* of tasks; 0: as drawn */
    unsigned hosts, controllers, agents; /* at least */
    enum hfs_fault_kind chaser;          /* of whoever is killed, a moment later; 0: nothing */
    unsigned troubles;                   /* as many, and up to as many more */
    bool calm;                           /* no message is slow */
    bool one_role;
    bool few_hosts, few_controllers; /* no more than that */
    bool make_fails;                 /* some processes cannot be made */
    bool holds;                      /* some agents run on through any outage */
    bool resigns;                    /* some controllers end as they should */
    bool cordons;                    /* nothing is to be started on some hosts, for a while */
    bool comebacks;                  /* a host that was cut off is back when it was given up */
    bool pauses;      /* a link stands still for about as long as a lease lasts */
    bool releases;    /* some tasks are given back */
    bool kills;       /* some agents are killed instead of frozen */
    bool paged;       /* what is listed comes bit by bit */
    bool storms;      /* most hosts are lost at once */
    hf_ms outage;     /* a host is cut off for so long */
    bool crashes;     /* every other one dies with every task */
    bool lazy;        /* one agent takes tasks and does not begin with them */
    bool restores;    /* etcd is restored from a backup */
    bool workers;     /* whoever is there works */
    bool relapses;    /* one of a moment ago, while what followed from it is on its way */
    bool relapsed;    /* one of any time before, while certain Txns are kept back for it */
    bool short_stops; /* whoever stands still does so for less than a lease lasts, */
    bool long_stops;  /* or for so long that nobody leads any more */
    bool orphans;     /* ... and leads again for just as long as it takes to order a start */
    bool deaf;        /* a host that is cut off hears nothing, for long, and is heard */
    bool standstills; /* some stand still with their tasks, and are asked why */
    bool very_late;   /* every other Txn is kept back, nearly always */
    bool provokes;    /* ... always, and what it compares changes then */
    bool early;       /* what is to be done is known at the beginning */
    bool reloads;     /* every link has other settings than the one before it */
    bool sweeps;      /* all agents are transient, and removed as soon as that may be */
    bool long_run, long_faults, lossy;
    uint32_t running_max; /* tasks of a role that may run at once; 0: any number */
    bool priorities;      /* and some of them are more urgent than others */
};

void hfs_profile_plot(struct hfs_run *run, struct hfs_random *dice, enum hfs_plot plot);

#endif
