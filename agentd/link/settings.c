#include "agentd/link/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/link/trial.h"
#include "base/alloc.h"
#include "schema/json.h"

static const char *const RESTARTS[] = { "on_failure", "always", "never", NULL };
static const char *const FENCES[] = { "freeze", "kill", "hold", NULL };
static const char *const CLASSES[] = { "active", "critical", "background", "idle", NULL };
static const char *const STORES[] = { "auto", "etcd", "file", "s3", NULL };

static const struct hf_option TABLE[] = {
    {
        .flag = "name",
        .env = "HOLDFAST_AGENT_NAME",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct link_settings, run.name),
        .help = "run: the agent's name, the only one of its kind in the namespace.",
    },
    {
        .flag = "role",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct link_settings, run.role),
        .help = "run: the work that it takes; without it, its name.",
    },
    {
        .flag = "restart",
        HF_OPTION_FIELD(ENUM, struct link_settings, run.restart),
        .words = RESTARTS,
        .preset = "on_failure",
        .help = "run: when it is started again after its end.",
    },
    {
        .flag = "fence",
        HF_OPTION_FIELD(ENUM, struct link_settings, run.fence),
        .words = FENCES,
        .preset = "freeze",
        .help = "run: what happens to it while nobody can be sure of its registration.",
    },
    {
        .flag = "detect-profile",
        HF_OPTION_FIELD(ENUM, struct link_settings, detect.profile),
        .words = LINK_DETECT_PROFILES,
        .preset = "default",
        .help = "run: how soon it is frozen that answers pings and then does not.",
    },
    {
        .flag = "detect-by",
        .value = "SOURCE,...",
        HF_OPTION_FIELD(STRINGS, struct link_settings, detect.by),
        .preset = LINK_DETECT_BY,
        .help = "run: what may show that it is frozen (ping, watchdog, probe, heartbeat).",
    },
    {
        .flag = "detect-freeze",
        HF_OPTION_FIELD(ENUM, struct link_settings, detect.on_freeze),
        .words = LINK_DETECT_ENDS,
        .preset = "end",
        .help = "run: whether it is ended when it is frozen, or that is only reported.",
    },
    {
        .flag = "watchdog",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_settings, detect.watchdog),
        .min = 0,
        .max = 86400000,
        .preset = LINK_DETECT_WATCHDOG,
        .help = "run: what it finds as WATCHDOG_USEC, at least 1s; 0s: no watchdog.",
    },
    {
        .flag = "detect-phi",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_settings, detect.phi),
        .min = 1,
        .max = 100,
        .preset = "8",
        .help = "run: how unlikely a silence must be, after how it was heard of before, to "
                "show that "
                "it is frozen: 8 is one in a hundred million. One that is unpunctual by habit "
                "gets up to twice the time all the same.",
    },
    {
        .flag = "probe",
        .value = "URL",
        HF_OPTION_FIELD(STRING, struct link_settings, detect.probe),
        .help =
            "run: where it is asked whether it serves: tcp://HOST:PORT, http://HOST:PORT/PATH "
            "or "
            "grpc://HOST:PORT/SERVICE (grpc.health.v1, in plain text); the host is a number "
            "or localhost.",
    },
    {
        .flag = "probe-command",
        .value = "PROGRAM,ARG,...",
        HF_OPTION_FIELD(STRINGS, struct link_settings, detect.probe_command),
        .help = "run: a program that says so instead, by its exit status; it runs as the "
                "agent's user, and nothing that it starts outlives it.",
    },
    {
        .flag = "probe-every",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_settings, detect.probe_every),
        .min = 100,
        .max = 86400000,
        .preset = "10s",
        .help = "run: how often it is asked.",
    },
    {
        .flag = "probe-timeout",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_settings, detect.probe_timeout),
        .min = 10,
        .max = 3600000,
        .preset = "1s",
        .help = "run: how long an answer may take.",
    },
    {
        .flag = "probe-misses",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_settings, detect.probe_misses),
        .min = 1,
        .max = 100,
        .preset = "3",
        .help = "run: how many must fail in a row, after one was good, while nothing else is "
                "heard of "
                "it, for it to be frozen.",
    },
    {
        .flag = "once",
        HF_OPTION_FIELD(BOOL, struct link_settings, once),
        .help = "run: end after the agent's first end, whatever it was.",
    },
    {
        .key = "host",
        .flag = "host",
        .env = "HOLDFAST_HOST",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct link_settings, host),
        .help = "The name of this agentd among the hosts; without it the machine's name (run: "
                "with the agent's name behind it, since one machine may run many).",
    },
    {
        .key = "pool",
        .flag = "pool",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct link_settings, pool),
        .preset = "default",
        .help = "The pool that this host belongs to.",
    },
    {
        .key = "ttl",
        .flag = "ttl",
        .env = "HOLDFAST_TTL",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_settings, ttl),
        .min = 2000,
        .max = 600000,
        .preset = "15s",
        .help = "How long a registration outlives its agentd. Below 10s only for trying out, "
                "with a single etcd.",
    },
    {
        .key = "stop_grace",
        .flag = "stop-grace",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_settings, stop_grace),
        .min = 0,
        .max = 3600000,
        .preset = "10s",
        .help = "How long an agent that is asked to end may take before it is killed.",
    },
    {
        .key = "start_seconds",
        .flag = "start-seconds",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_settings, start_seconds),
        .min = 0,
        .max = 600000,
        .preset = "1s",
        .help = "An agent that fails this soon, before it said READY or asked anything, could "
                "not be started: it is tried on another host, and then held.",
    },
    {
        .key = "heartbeat",
        .flag = "heartbeat",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_settings, heartbeat),
        .min = 1000,
        .max = 3600000,
        .preset = "30s",
        .help =
            "How often agents are asked to send a heartbeat. It is promised to others: three "
            "that do not come say that they have stopped.",
    },
    {
        .key = "capacity",
        .flag = "capacity",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_settings, capacity),
        .min = 0,
        .max = 1000000,
        .help = "How many agents may run here at once; 0 is no limit.",
    },
    {
        .key = "api.rate",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_settings, rate),
        .min = 1,
        .max = 100000,
        .preset = "200",
        .help =
            "How many requests each process of an agent may make per second on average, and "
            "twice as many at once; more are answered with 429.",
    },
    {
        .flag = "state-dir",
        .env = "HOLDFAST_STATE_DIR",
        .value = "DIR",
        HF_OPTION_FIELD(STRING, struct link_settings, state_dir),
        .help = "Where sockets, logs and what outlives this agentd are kept.",
    },
    {
        .key = "etcd.keys_max",
        .flag = "keys-max",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_settings, keys_max),
        .min = 1000,
        .max = 1000000000,
        .preset = "2000000",
        .help =
            "How many keys of etcd are followed at most, so that nobody who writes too many "
            "can use up the memory of this host. While there are more, nothing is decided, "
            "and the log says how many there are.",
    },
    {
        .key = "checkpoints.store",
        .flag = "store",
        HF_OPTION_FIELD(ENUM, struct link_settings, store),
        .words = STORES,
        .preset = "auto",
        .help =
            "Where new checkpoints go: into etcd (64 KiB each, 64 MiB in all), into files, "
            "into the bucket of checkpoints.s3, or into etcd while they fit and beyond that "
            "into the bucket, if there is one, else into files.",
    },
    {
        .key = "checkpoints.sweep",
        .flag = "store-sweep",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_settings, store_sweep),
        .min = 1000,
        .max = 86400000,
        .preset = "10m",
        .help = "How often the files of the store `file` and the objects of the store `s3` are "
                "looked at; one that belongs to no checkpoint at two looks in a row is "
                "removed.",
    },
    {
        .key = "checkpoints.directory",
        .flag = "store-dir",
        .value = "DIR",
        HF_OPTION_FIELD(STRING, struct link_settings, store_dir),
        .help =
            "Where the store `file` keeps them; without it, under the state directory. "
            "A task goes on only where its checkpoint can be read: let hosts that start the "
            "same agents share one.",
    },
    HF_S3_OPTIONS(struct link_settings),
    {
        .key = "checkpoints.s3.idle",
        .flag = "s3-idle",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_settings, s3_idle),
        .min = 100,
        .max = 3600000,
        .preset = "30s",
        .help = "How long a process that talks to the bucket stays when it has nothing to do.",
    },
    {
        .key = "launchers",
        .value = "FILE,...",
        HF_OPTION_FIELD(STRINGS, struct link_settings, launcher_files),
        .help = "One file per launcher: what may run on this host.",
    },
    {
        .key = "agents",
        .value = "FILE,...",
        HF_OPTION_FIELD(STRINGS, struct link_settings, agent_files),
        .help = "One file per agent that belongs to this host.",
    },
};

static const struct hf_option AGENT_TABLE[] = {
    {
        .key = "name",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct link_agent_settings, name),
        .help = "The only one of its kind in the namespace.",
    },
    {
        .key = "role",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct link_agent_settings, role),
        .help = "The work that it takes; without it, its name.",
    },
    {
        .key = "launcher",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct link_agent_settings, launcher),
        .help = "How it is started.",
    },
    {
        .key = "pool",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct link_agent_settings, pool),
        .preset = "default",
        .help = "Hosts that may run it when its own cannot.",
    },
    {
        .key = "parameters",
        .value = "NAME=VALUE,...",
        HF_OPTION_FIELD(STRINGS, struct link_agent_settings, parameters),
        .help = "Values for the launcher's parameters.",
    },
    {
        .key = "restart",
        HF_OPTION_FIELD(ENUM, struct link_agent_settings, restart),
        .words = RESTARTS,
        .preset = "on_failure",
        .help = "When it is started again after its end.",
    },
    {
        .key = "fence",
        HF_OPTION_FIELD(ENUM, struct link_agent_settings, fence),
        .words = FENCES,
        .preset = "freeze",
        .help = "What happens to it while nobody can be sure of its registration.",
    },
    {
        .key = "class",
        HF_OPTION_FIELD(ENUM, struct link_agent_settings, class),
        .words = CLASSES,
        .preset = "active",
        .help = "How often it must be heard of.",
    },
    {
        .key = "max_tasks",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_agent_settings, max_tasks),
        .min = 1,
        .max = 1000,
        .preset = "1",
        .help = "How many tasks it may own at once.",
    },
};

struct hf_option_group link_settings_group(struct link_settings *settings)
{
    return (struct hf_option_group){
        .title = "Options of agentd",
        .options = TABLE,
        .count = sizeof TABLE / sizeof TABLE[0],
        .target = settings,
    };
}

struct hf_option_group link_agent_group(struct link_agent_settings *agent)
{
    return (struct hf_option_group){
        .title = "An agent's file",
        .options = AGENT_TABLE,
        .count = sizeof AGENT_TABLE / sizeof AGENT_TABLE[0],
        .target = agent,
    };
}

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
