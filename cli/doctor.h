/* doctor.h - an examination: what is looked at, and what was found. */
#ifndef CLI_DOCTOR_H
#define CLI_DOCTOR_H

#include "base/buf.h"
#include "cli/cli.h"

enum doctor_finding { DOCTOR_FINE, DOCTOR_WARNING, DOCTOR_TROUBLE };

struct doctor {
    struct cli *cli;
    struct doctor_line *lines;
    size_t count, cap;
    int err; /* HF_ENOMEM: one is missing */
    unsigned troubles;
    bool versioned; /* which etcd it is has been said */
};

/* One line of the report. */
void doctor_found(struct doctor *doctor, enum doctor_finding finding, const char *fmt, ...)
    HF_PRINTF(3, 4);

/* doctor_etcd.c: what its own API tells. An error: it cannot be asked at all. */
int doctor_examine_etcd(struct doctor *doctor) HF_MUST_CHECK;

/* The faults of that one. */
void doctor_examine_version(struct doctor *doctor, const char *version);

/* doctor_web.c: how long etcd takes us for whom we say we are. Needs no etcd. */
void doctor_examine_certificate(struct doctor *doctor);

/* What it tells over HTTP alone: quota, disk, clock, authentication, TLS. */
void doctor_examine_web(struct doctor *doctor);

#endif
