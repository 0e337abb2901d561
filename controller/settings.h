/* settings.h - what can be set for a controller: flags, environment and file by one table. */
#ifndef CTL_SETTINGS_H
#define CTL_SETTINGS_H

#include "core/engine.h"
#include "schema/name.h"
#include "schema/options.h"

enum { CTL_LIMITS = 64, CTL_RUNNING_MOST = 1000000 };

/* Texts belong to the hf_config that filled it. */
struct ctl_settings {
    struct hf_options common;
    const char *id; /* never NULL after ctl_settings_complete */
    hf_ms ttl;
    const char *listen;
    const char *port_file;
    hf_ms home_grace;
    hf_ms keep_chain;
    hf_ms recovery_backoff;
    int64_t recovery_limit, recovery_hourly_limit;
    hf_ms recovery_probation;
    int64_t running_max;
    struct hf_strings running_max_of;
    struct hf_strings alert_command;
    hf_ms alert_timeout;
    char made_id[300]; /* where no id was given */
    char limit_roles[CTL_LIMITS][HF_NAME_SIZE];
    struct hf_task_limit limits[CTL_LIMITS]; /* what running_max_of says */
    size_t limit_count;
};

/* The controller's own table, filling *settings (NULL to only print it). Cannot fail. */
struct hf_option_group ctl_settings_group(struct ctl_settings *settings);

/* What the engine is to go by; it must not outlive the settings. */
struct hf_engine_policy ctl_settings_get_policy(const struct ctl_settings *settings);

/* Fills in what depends on the machine, and checks the rest. */
int ctl_settings_complete(struct ctl_settings *settings, struct hf_error *err) HF_MUST_CHECK;

#endif
