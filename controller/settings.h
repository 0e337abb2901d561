/* settings.h - what can be set for a controller: flags, environment and file by one table. */
#ifndef CTL_SETTINGS_H
#define CTL_SETTINGS_H

#include "controller/policy.h"
#include "core/engine.h"
#include "schema/name.h"
#include "schema/options.h"

enum { CTL_LIMITS = 64, CTL_RUNNING_MOST = 1000000 };

/* Texts belong to the hf_config that filled it. */
struct ctl_settings {
    struct hf_options common;
    const char *id; /* never NULL after ctl_settings_complete */
    hf_ms ttl;
    hf_ms etcd_wait; /* at the start, for its first answer */
    const char *listen;
    const char *port_file;
    int64_t running_max;
    int64_t keys_max; /* of etcd, that are followed */
    struct hf_strings running_max_of;
    struct hf_strings alert_command;
    hf_ms alert_timeout;
    struct ctl_policy policy;
    struct hf_engine_policy engine; /* what follows from it, after ctl_settings_complete */
    char made_id[300];              /* where no id was given */
    char limit_roles[CTL_LIMITS][HF_NAME_SIZE];
    struct hf_task_limit limits[CTL_LIMITS]; /* what running_max_of says */
    size_t limit_count;
};

/* The controller's own table, filling *settings (NULL to only print it). Cannot fail. */
struct hf_option_group ctl_settings_group(struct ctl_settings *settings);

/* Fills in what depends on the machine, and checks the rest. */
int ctl_settings_complete(struct ctl_settings *settings, struct hf_error *err) HF_MUST_CHECK;

#endif
