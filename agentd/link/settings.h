/* settings.h - what can be set for an agentd: the command line, the environment, its file, and
 * the files of launchers and agents that this names. */
#ifndef LINK_SETTINGS_H
#define LINK_SETTINGS_H

#include "agentd/link/launcher.h"
#include "agentd/link/store.h"
#include "holdfast/v1/records.pb-c.h"
#include "io/s3_settings.h"
#include "schema/name.h"
#include "schema/options.h"

enum link_mode {
    LINK_RUN,     /* agentd run: one agent, whose command stands on the command line */
    LINK_CONFIG,  /* agentd --config: any number */
    LINK_CHECK,   /* agentd check: only look whether everything is in order */
    LINK_UPGRADE, /* agentd upgrade: another agentd gets a new link */
};

/* An agent that is configured here. */
struct link_agent_settings {
    struct hf_config cfg; /* owns the texts */
    const char *name;
    const char *role; /* NULL: as its name */
    const char *launcher;
    const char *pool;
    struct hf_strings parameters; /* NAME=value */
    enum { LINK_ON_FAILURE, LINK_ALWAYS, LINK_NEVER } restart;
    enum { LINK_FREEZE, LINK_KILL, LINK_HOLD } fence;
    enum { LINK_ACTIVE, LINK_CRITICAL, LINK_BACKGROUND, LINK_IDLE } class;
    int64_t max_tasks;
};

/* Texts belong to the hf_config that filled it. */
struct link_settings {
    struct hf_options common;
    enum link_mode mode;
    int argc; /* the command line, to be read again */
    char **argv;
    struct hf_config_files files; /* where all of them are read */

    /* Of run. */
    struct link_agent_settings run;
    bool once;
    struct hf_strings command;
    struct link_detect detect;

    const char *host; /* never NULL once complete */
    const char *pool;
    hf_ms ttl;
    hf_ms stop_grace;
    hf_ms start_seconds;
    hf_ms heartbeat; /* that agents are asked for */
    int64_t capacity;
    int64_t rate;                 /* requests that a process may make per second */
    const char *state_dir;        /* the keeper's; here only so that the flag is known */
    enum link_store_choice store; /* where new checkpoints go */
    hf_ms store_sweep;
    int64_t keys_max; /* of etcd, that are followed */
    const char *store_dir;
    struct hf_s3_settings s3;
    hf_ms s3_idle;
    struct hf_strings launcher_files;
    struct hf_strings agent_files;

    struct link_launcher *launchers;
    size_t launcher_count;
    struct link_agent_settings *agents;
    size_t agent_count;
    char made_host[2 * HF_NAME_SIZE];
    char made_launcher[HF_NAME_SIZE];
};

struct hf_option_group link_settings_group(struct link_settings *settings);
struct hf_option_group link_agent_group(struct link_agent_settings *agent);

/* Sorts the words of the command line, reads the files of launchers and agents, and checks
 * that they fit together. */
int link_settings_complete(struct link_settings *settings, const struct hf_config *cfg,
                           struct hf_error *err) HF_MUST_CHECK;
void link_settings_done(struct link_settings *settings);

/* Whether everything could be read anew as it stands in those files, goes on under the same
 * names, and lets a link begin. */
int link_settings_check_again(const struct link_settings *settings,
                              struct hf_config_files files, struct hf_error *err) HF_MUST_CHECK;

/* NULL: there is none of that name. */
const struct link_launcher *link_settings_find_launcher(const struct link_settings *settings,
                                                        const char *name);

/* As whom its launcher lets it run; NULL: as ourselves. The spec may be NULL. */
const struct link_user *link_settings_find_user(const struct link_settings *settings,
                                                const Holdfast__V1__Spec *spec);

/* The agent's spec as a message of its own (hf_json_free). */
int link_settings_make_spec(const struct link_settings *settings,
                            const struct link_agent_settings *agent,
                            Holdfast__V1__Spec **ret_spec) HF_MUST_CHECK;

#endif
