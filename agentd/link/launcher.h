/* launcher.h - what may run on this host: a command that a spec can only name, never change.
 *
 * A file of its own, in YAML or JSON:
 *
 *     name: worker
 *     command: [python3, /opt/worker.py]
 *     directory: /opt
 *     environment: [LANG=C.UTF-8]
 *     parameters: [model=[a-z0-9.-]{1\,40}]
 *     user: worker
 *     memory_max: 2000000000
 *
 * A parameter is declared by name and pattern (POSIX extended, for the whole value). A spec
 * passes values, which arrive as HOLDFAST_PARAM_<NAME>; what was not declared, or does not
 * match, is refused. */
#ifndef LINK_LAUNCHER_H
#define LINK_LAUNCHER_H

#include "agentd/link/detect.h"
#include "agentd/link/user.h"
#include "agentd/link/ways.h"
#include "holdfast/v1/records.pb-c.h"
#include "schema/config.h"

struct link_launcher {
    struct hf_config cfg; /* owns the texts, if it came from a file */
    const char *name;
    struct hf_strings command;
    const char *directory;         /* NULL: the directory that agentd was started in */
    struct hf_strings environment; /* NAME=value */
    struct hf_strings parameters;  /* NAME=pattern */
    const char *user;              /* NULL: agentd's own */
    struct link_user as;           /* of `user` */
    int64_t memory_max;            /* bytes of its tree; 0: no limit, here and below */
    int64_t processes_max;         /* of its tree */
    int64_t open_files_max;        /* of each process */
    int64_t nice;
    struct link_detect detect;
    struct link_ways nudge;
    bool inherit;      /* it gets agentd's own environment */
    bool pass_output;  /* what it prints appears on agentd's output, too */
    bool pass_input;   /* it reads what agentd could */
    bool pass_signals; /* it gets the signals that agentd gets and has no use for */
};

struct hf_option_group link_launcher_group(struct link_launcher *launcher);

int link_launcher_read(struct link_launcher *launcher, const char *file,
                       struct hf_config_files files, struct hf_error *err) HF_MUST_CHECK;
void link_launcher_done(struct link_launcher *launcher);

/* HF_EINVAL with a sentence when the spec's parameters are not what the launcher declares. */
int link_launcher_check(const struct link_launcher *launcher, const Holdfast__V1__Spec *spec,
                        struct hf_error *err) HF_MUST_CHECK;

/* How many threads this link has for files; the nought tells it from what others ask for their
 * own, which their agents inherit. */
#define LINK_LAUNCHER_POOL "UV_THREADPOOL_SIZE=016"

/* The environment of a process: `own` wins over the launcher's, which wins over what is
 * inherited. Parameters are in it. A block to be freed with free. */
int link_launcher_make_env(const struct link_launcher *launcher, const Holdfast__V1__Spec *spec,
                           struct hf_strings own, char *const *inherited,
                           struct hf_strings *ret_env) HF_MUST_CHECK;

/* What a program that probes one of its agents is told beside that: whom it asks for. */
int link_launcher_make_probe_env(const char *agent, const Holdfast__V1__Spec *spec,
                                 struct hf_strings *ret_env) HF_MUST_CHECK;

#endif
