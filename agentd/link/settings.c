#include "agentd/link/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/link/trial.h"
#include "base/alloc.h"
#include "schema/json.h"

/* The words of the command line. */

static int sort_words(struct link_settings *settings, const struct hf_config *cfg,
                      struct hf_error *err)
{
    struct hf_strings words = cfg->arguments;
    const char *verb = cfg->before_dashes > 0 ? words.items[0] : NULL;

    if (cfg->before_dashes > 1)
        return hf_error_set(err, HF_EINVAL,
                            "unexpected argument: %s (the agent's command stands behind --)",
                            words.items[1]);
    if (verb == NULL)
        settings->mode = LINK_CONFIG;
    else if (strcmp(verb, "run") == 0)
        settings->mode = LINK_RUN;
    else if (strcmp(verb, "check") == 0)
        settings->mode = LINK_CHECK;
    else if (strcmp(verb, "upgrade") == 0)
        settings->mode = LINK_UPGRADE;
    else
        return hf_error_set(err, HF_EINVAL, "unknown command: %s (run, check or upgrade)",
                            verb);
    settings->command.items = words.items + cfg->before_dashes;
    settings->command.count = words.count - cfg->before_dashes;
    if (settings->mode != LINK_RUN && settings->command.count > 0)
        return hf_error_set(err, HF_EINVAL, "unexpected argument: %s",
                            settings->command.items[0]);
    if (settings->mode == LINK_CONFIG && settings->common.config == NULL)
        return hf_error_set(err, HF_EINVAL,
                            "nothing to do: `agentd run --name NAME -- COMMAND...` starts one "
                            "agent, `agentd --config FILE` those of a file");
    return HF_OK;
}

static int complete_run(struct link_settings *settings, struct hf_error *err)
{
    struct link_launcher *launcher;

    if (settings->run.name == NULL)
        return hf_error_set(err, HF_EINVAL, "run: the agent needs a name (--name)");
    if (settings->command.count == 0)
        return hf_error_set(err, HF_EINVAL,
                            "run: say what to run, behind -- (agentd run --name %s -- "
                            "COMMAND...)",
                            settings->run.name);
    if (settings->agent_files.count > 0 || settings->launcher_files.count > 0)
        return hf_error_set(err, HF_EINVAL,
                            "run: the configuration has agents or launchers of its own");
    if (link_detect_check_names(&settings->detect, &(struct hf_strings){ 0 }, err) != HF_OK ||
        link_detect_complete(&settings->detect, err) != HF_OK)
        return HF_EINVAL;
    launcher = hf_calloc(1, sizeof *launcher);
    if (launcher == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    /* A name that no other host has: this command is nobody else's to start. */
    (void)snprintf(settings->made_launcher, sizeof settings->made_launcher, "run.%.240s",
                   settings->run.name);
    launcher->name = settings->made_launcher;
    launcher->command = settings->command;
    launcher->detect = settings->detect;
    launcher->inherit = launcher->pass_output = launcher->pass_signals = true;
    /* In a session of its own nothing would keep it from taking what is typed for a shell. */
    launcher->pass_input = isatty(STDIN_FILENO) == 0;
    settings->launchers = launcher;
    settings->launcher_count = 1;
    settings->run.launcher = launcher->name;
    settings->run.pool = settings->pool;
    return HF_OK;
}

/* Files. */

/* Beside the file that names it. */
static int resolve(const char *base, const char *file, char out[4096], struct hf_error *err)
{
    const char *slash = base != NULL ? strrchr(base, '/') : NULL;
    int len = file[0] == '/' || slash == NULL
                  ? snprintf(out, 4096, "%s", file)
                  : snprintf(out, 4096, "%.*s/%s", (int)(slash - base), base, file);

    return len < 4096 ? HF_OK : hf_error_set(err, HF_ELIMIT, "%s: too long a path", file);
}

static int read_agent(struct link_agent_settings *agent, const char *file,
                      struct hf_config_files files, struct hf_error *err)
{
    const struct hf_option_group group = link_agent_group(agent);
    int rc = hf_config_init(&agent->cfg, &group, 1);

    if (rc != HF_OK)
        return hf_error_set(err, rc, "out of memory");
    agent->cfg.files = files;
    rc = hf_config_read_file(&agent->cfg, file, err);
    if (rc == HF_OK && agent->name == NULL)
        rc = hf_error_set(err, HF_EINVAL, "%s: name: an agent needs one", file);
    if (rc == HF_OK && agent->launcher == NULL)
        rc = hf_error_set(err, HF_EINVAL, "%s: launcher: say how %s is started", file,
                          agent->name);
    return rc;
}

static int read_launchers(struct link_settings *settings, struct hf_error *err)
{
    int rc = HF_OK;

    settings->launchers =
        hf_calloc(settings->launcher_files.count + 1, sizeof *settings->launchers);
    if (settings->launchers == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    for (size_t i = 0; i < settings->launcher_files.count && rc == HF_OK; i++) {
        struct link_launcher *launcher = &settings->launchers[i];
        char path[4096];

        rc = resolve(settings->common.config, settings->launcher_files.items[i], path, err);
        if (rc == HF_OK) {
            settings->launcher_count = i + 1;
            rc = link_launcher_read(launcher, path, settings->files, err);
        }
        for (size_t j = 0; j < i && rc == HF_OK; j++) {
            if (strcmp(settings->launchers[j].name, launcher->name) == 0)
                rc = hf_error_set(err, HF_EINVAL, "%s: there is a launcher %s already", path,
                                  launcher->name);
        }
    }
    return rc;
}

static int check_agent(const struct link_settings *settings,
                       const struct link_agent_settings *agent, struct hf_error *err)
{
    const struct link_launcher *launcher =
        link_settings_find_launcher(settings, agent->launcher);
    Holdfast__V1__Spec *spec;
    int rc;

    if (launcher == NULL)
        return hf_error_set(err, HF_EINVAL, "agent %s: there is no launcher %s", agent->name,
                            agent->launcher);
    rc = link_settings_make_spec(settings, agent, &spec);
    if (rc != HF_OK)
        return hf_error_set(err, rc, "agent %s: parameters: each is NAME=VALUE, no name twice",
                            agent->name);
    rc = link_launcher_check(launcher, spec, err);
    hf_json_free(&spec->base);
    return rc;
}

static int read_agents(struct link_settings *settings, struct hf_error *err)
{
    int rc = HF_OK;

    settings->agents = hf_calloc(settings->agent_files.count + 1, sizeof *settings->agents);
    if (settings->agents == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    for (size_t i = 0; i < settings->agent_files.count && rc == HF_OK; i++) {
        struct link_agent_settings *agent = &settings->agents[i];
        char path[4096];

        rc = resolve(settings->common.config, settings->agent_files.items[i], path, err);
        if (rc == HF_OK) {
            settings->agent_count = i + 1;
            rc = read_agent(agent, path, settings->files, err);
        }
        for (size_t j = 0; j < i && rc == HF_OK; j++) {
            if (strcmp(settings->agents[j].name, agent->name) == 0)
                rc = hf_error_set(err, HF_EINVAL, "%s: there is an agent %s already", path,
                                  agent->name);
        }
        if (rc == HF_OK)
            rc = check_agent(settings, agent, err);
    }
    return rc;
}

static int make_host(struct link_settings *settings, struct hf_error *err)
{
    char machine[HF_NAME_SIZE] = "", lower[HF_NAME_SIZE];
    int rc;

    if (gethostname(machine, sizeof machine - 1) != 0)
        return hf_error_set(err, HF_EIO, "this machine has no name: choose one with --host");
    rc = hf_name_lower("the machine's name", machine, lower, err);
    if (rc < 0)
        return rc;
    (void)snprintf(settings->made_host, sizeof settings->made_host, "%s%s%s", lower,
                   settings->mode == LINK_RUN ? "." : "",
                   settings->mode == LINK_RUN ? settings->run.name : "");
    settings->host = settings->made_host;
    return hf_name_check("host", settings->host, err);
}

static int check_bucket(const struct link_settings *settings, struct hf_error *err)
{
    if (settings->store == LINK_STORE_S3 && settings->s3.bucket == NULL)
        return hf_error_set(err, HF_EINVAL,
                            "checkpoints.store is s3: say with checkpoints.s3.bucket where");
    return hf_s3_settings_check(&settings->s3, err);
}

int link_settings_complete(struct link_settings *settings, const struct hf_config *cfg,
                           struct hf_error *err)
{
    int rc = sort_words(settings, cfg, err);

    if (rc == HF_OK && settings->mode == LINK_RUN)
        rc = complete_run(settings, err);
    if (rc == HF_OK && settings->host == NULL)
        rc = make_host(settings, err);
    if (rc == HF_OK)
        rc = check_bucket(settings, err);
    if (rc != HF_OK || settings->mode == LINK_RUN)
        return rc;
    rc = read_launchers(settings, err);
    return rc == HF_OK ? read_agents(settings, err) : rc;
}

void link_settings_done(struct link_settings *settings)
{
    for (size_t i = 0; i < settings->launcher_count; i++)
        link_launcher_done(&settings->launchers[i]);
    for (size_t i = 0; i < settings->agent_count; i++)
        hf_config_done(&settings->agents[i].cfg);
    free(settings->launchers);
    free(settings->agents);
}

const struct link_launcher *link_settings_find_launcher(const struct link_settings *settings,
                                                        const char *name)
{
    for (size_t i = 0; i < settings->launcher_count; i++) {
        if (strcmp(settings->launchers[i].name, name) == 0)
            return &settings->launchers[i];
    }
    return NULL;
}

const struct link_user *link_settings_find_user(const struct link_settings *settings,
                                                const Holdfast__V1__Spec *spec)
{
    const struct link_launcher *launcher =
        spec != NULL ? link_settings_find_launcher(settings, spec->launcher) : NULL;

    return launcher != NULL && launcher->user != NULL && launcher->as.uid != geteuid()
               ? &launcher->as
               : NULL;
}

/* Specs. */

struct parameter {
    Holdfast__V1__Spec__ParametersEntry entry;
    char name[64];
};

static int fill_parameters(const struct hf_strings *given, struct parameter *parameters,
                           Holdfast__V1__Spec__ParametersEntry **list)
{
    for (size_t i = 0; i < given->count; i++) {
        struct parameter *parameter = &parameters[i];
        const char *equals = strchr(given->items[i], '=');
        size_t len = equals != NULL ? (size_t)(equals - given->items[i]) : 0;

        if (len == 0 || len >= sizeof parameter->name)
            return HF_EINVAL;
        holdfast__v1__spec__parameters_entry__init(&parameter->entry);
        memcpy(parameter->name, given->items[i], len);
        parameter->entry.key = parameter->name;
        parameter->entry.value = (char *)(equals + 1);
        list[i] = &parameter->entry;
    }
    return HF_OK;
}

int link_settings_make_spec(const struct link_settings *settings,
                            const struct link_agent_settings *agent,
                            Holdfast__V1__Spec **ret_spec)
{
    ProtobufCMessage *copy;
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;
    size_t count = agent->parameters.count;
    struct parameter *parameters = hf_calloc(count + 1, sizeof *parameters);
    Holdfast__V1__Spec__ParametersEntry **list = hf_calloc(count + 1, sizeof(void *));
    int rc = parameters != NULL && list != NULL ? HF_OK : HF_ENOMEM;

    if (rc == HF_OK)
        rc = fill_parameters(&agent->parameters, parameters, list);
    spec.role = (char *)(agent->role != NULL ? agent->role : agent->name);
    spec.class_ = (Holdfast__V1__Spec__Class)agent->class;
    spec.launcher = (char *)agent->launcher;
    spec.parameters = list;
    spec.n_parameters = count;
    spec.pool = (char *)agent->pool;
    spec.home = (char *)settings->host;
    spec.restart = (Holdfast__V1__Spec__Restart)agent->restart;
    spec.fence = (Holdfast__V1__Spec__Fence)agent->fence;
    spec.transient = settings->mode == LINK_RUN;
    spec.max_tasks = (int32_t)agent->max_tasks;
    if (rc == HF_OK)
        rc = hf_json_copy(&spec.base, &copy);
    if (rc == HF_OK)
        *ret_spec = (Holdfast__V1__Spec *)copy;
    free(parameters);
    free((void *)list);
    return rc;
}

/* What the lease and the lives in etcd are kept under stays as long as they do. */
static int check_unchanged(const struct link_settings *now, const struct link_settings *next,
                           struct hf_error *err)
{
    const char *what = NULL;

    if (strcmp(now->common.namespace, next->common.namespace) != 0)
        what = "namespace";
    else if (strcmp(now->host, next->host) != 0)
        what = "host";
    else if (now->ttl != next->ttl)
        what = "ttl";
    if (what == NULL)
        return HF_OK;
    return hf_error_set(err, HF_EINVAL,
                        "%s cannot change while the agents live: restart agentd for that",
                        what);
}

int link_settings_check_again(const struct link_settings *settings,
                              struct hf_config_files files, struct hf_error *err)
{
    struct link_settings next = { .files = files };
    const struct hf_option_group groups[] = { link_settings_group(&next),
                                              hf_options_group(&next.common) };
    HF_CLEANUP_CONFIG struct hf_config cfg = { 0 };
    int rc = hf_config_init(&cfg, groups, 2);

    if (rc != HF_OK)
        return hf_error_set(err, rc, "%s", hf_err_text(rc));
    cfg.files = files;
    rc = hf_options_load(&cfg, &next.common, settings->argc, settings->argv, environ, err);
    if (rc == HF_OK)
        rc = link_settings_complete(&next, &cfg, err);
    if (rc == HF_OK)
        rc = check_unchanged(settings, &next, err);
    if (rc == HF_OK)
        rc = link_trial_parts(&next, err);
    link_settings_done(&next);
    return rc;
}
