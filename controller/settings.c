#include "controller/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "schema/name.h"

static const struct hf_option TABLE[] = {
    {
        .key = "controller.id",
        .flag = "id",
        .env = "HOLDFAST_CONTROLLER_ID",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct ctl_settings, id),
        .help = "The name of this controller among the others of its namespace; without it the "
                "host's name and the process id.",
    },
    {
        .key = "controller.ttl",
        .flag = "ttl",
        .env = "HOLDFAST_CONTROLLER_TTL",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_settings, ttl),
        .min = 2000,
        .max = 600000,
        .preset = "10s",
        .help = "How long a leader that vanished is waited for before another one leads.",
    },
    {
        .key = "controller.etcd_wait",
        .flag = "etcd-wait",
        .env = "HOLDFAST_CONTROLLER_ETCD_WAIT",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_settings, etcd_wait),
        .min = 1000,
        .max = 86400000,
        .preset = "30s",
        .help = "How long etcd is waited for at the start; then this ends with status 5, and "
                "whoever looks after it may start it again. Once etcd has answered it is "
                "waited for without end.",
    },
    {
        .key = "etcd.keys_max",
        .flag = "keys-max",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_settings, keys_max),
        .min = 1000,
        .max = 1000000000,
        .preset = "2000000",
        .help =
            "How many keys of etcd are followed at most, so that nobody who writes too many "
            "can use up the memory of this host. While there are more, nothing is decided, "
            "and the log says how many there are.",
    },
    {
        .key = "controller.listen",
        .flag = "listen",
        .env = "HOLDFAST_CONTROLLER_LISTEN",
        .value = "ADDRESS:PORT",
        HF_OPTION_FIELD(STRING, struct ctl_settings, listen),
        .help = "Where to serve /healthz, /readyz and /metrics over HTTP; port 0 takes a free "
                "one. Without it nothing is served.",
    },
    {
        .key = "controller.port_file",
        .flag = "port-file",
        .value = "FILE",
        HF_OPTION_FIELD(STRING, struct ctl_settings, port_file),
        .help = "File that the port is written to once it is served.",
    },
    {
        .key = "task.running_max",
        .flag = "running-max",
        .value = "N",
        HF_OPTION_FIELD(INT, struct ctl_settings, running_max),
        .min = 0,
        .max = CTL_RUNNING_MOST,
        .preset = "0",
        .help = "How many tasks of one role may be pending, acknowledged or in progress at "
                "once; what is more waits in the queue while nobody has it. 0 for any number.",
    },
    {
        .key = "task.running_max_of",
        .flag = "running-max-of",
        .value = "ROLE=N,...",
        HF_OPTION_FIELD(STRINGS, struct ctl_settings, running_max_of),
        .help = "The same for tasks of these roles, instead of task.running_max.",
    },
    {
        .key = "alert.command",
        .flag = "alert-command",
        .env = "HOLDFAST_ALERT_COMMAND",
        .value = "PROGRAM,ARG,...",
        HF_OPTION_FIELD(STRINGS, struct ctl_settings, alert_command),
        .help = "Program to run, without a shell, when a person should hear of something; the "
                "event comes as JSON on its standard input.",
    },
    {
        .key = "alert.timeout",
        .flag = "alert-timeout",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct ctl_settings, alert_timeout),
        .min = 100,
        .max = 600000,
        .preset = "10s",
        .help = "How long that program may take before it is killed.",
    },
};

struct hf_option_group ctl_settings_group(struct ctl_settings *settings)
{
    return (struct hf_option_group){
        .title = "Options of holdfast-controller",
        .options = TABLE,
        .count = sizeof TABLE / sizeof TABLE[0],
        .target = settings,
    };
}

/* "coder=5"; the role is copied to `role`. */
static int read_limit(const char *text, char role[HF_NAME_SIZE], struct hf_task_limit *limit,
                      struct hf_error *err)
{
    const char *mark = strchr(text, '=');
    size_t len = mark != NULL ? (size_t)(mark - text) : 0;
    uint64_t number;

    *limit = (struct hf_task_limit){ .role = role };
    if (mark == NULL || hf_parse_u64(mark + 1, 0, CTL_RUNNING_MOST, &number) != HF_OK)
        return hf_error_set(err, HF_EINVAL,
                            "task.running_max_of: %s is not ROLE=N, with N from 0 to %d", text,
                            CTL_RUNNING_MOST);
    limit->running_max = (uint32_t)number;
    (void)snprintf(role, HF_NAME_SIZE, "%.*s", len < HF_NAME_SIZE ? (int)len : 0, text);
    return hf_name_check("task.running_max_of: role", role, err);
}

static bool is_named(const struct ctl_settings *settings, const char *role)
{
    for (size_t i = 0; i < settings->limit_count; i++) {
        if (strcmp(settings->limits[i].role, role) == 0)
            return true;
    }
    return false;
}

/* What the engine goes by must not outlive the settings. */
static int read_limits(struct ctl_settings *settings, struct hf_error *err)
{
    const struct hf_strings *given = &settings->running_max_of;
    struct hf_task_limit limit;

    settings->limit_count = 0;
    if (given->count > CTL_LIMITS)
        return hf_error_set(err, HF_ELIMIT, "task.running_max_of names more than %d roles",
                            CTL_LIMITS);
    for (size_t i = 0; i < given->count; i++) {
        int rc = read_limit(given->items[i], settings->limit_roles[i], &limit, err);

        if (rc != HF_OK)
            return rc;
        if (is_named(settings, limit.role))
            return hf_error_set(err, HF_EINVAL, "task.running_max_of names %s twice",
                                limit.role);
        settings->limits[settings->limit_count++] = limit;
    }
    settings->engine.task.running_max = (uint32_t)settings->running_max;
    settings->engine.task.limits = settings->limits;
    settings->engine.task.limit_count = settings->limit_count;
    return HF_OK;
}

static int make_id(struct ctl_settings *settings, struct hf_error *err)
{
    char host[HF_NAME_SIZE] = "", name[HF_NAME_SIZE];
    int rc;

    if (gethostname(host, sizeof host - 1) != 0)
        return hf_error_set(err, HF_EIO, "this host has no name: choose one with --id");
    rc = hf_name_lower("host name", host, name, err);
    if (rc < 0)
        return rc;
    (void)snprintf(settings->made_id, sizeof settings->made_id, "%s-%d", name, (int)getpid());
    settings->id = settings->made_id;
    return hf_name_check("controller.id", settings->id, err);
}

/* There is neither TLS nor a token: whoever can connect may read. */
static int check_listen(const char *listen, struct hf_error *err)
{
    static const char *const LOCAL[] = { "127.", "[::1]:", "localhost:" };

    for (size_t i = 0; i < sizeof LOCAL / sizeof LOCAL[0]; i++) {
        if (strncmp(listen, LOCAL[i], strlen(LOCAL[i])) == 0)
            return HF_OK;
    }
    return hf_error_set(err, HF_EINVAL,
                        "controller.listen: %s is not an address of this machine alone: use "
                        "127.0.0.1:PORT",
                        listen);
}

/* It is wanted when something went wrong, and that is late to find that it is not there. */
static int check_alert(const struct hf_strings *command, struct hf_error *err)
{
    const char *path = getenv("PATH");

    if (command->count == 0 ||
        hf_file_is_program(command->items[0], path != NULL ? path : "/bin:/usr/bin"))
        return HF_OK;
    return hf_error_set(err, HF_EINVAL, "alert.command: %s is not a program that can be run",
                        command->items[0]);
}

int ctl_settings_complete(struct ctl_settings *settings, struct hf_error *err)
{
    int rc = settings->listen != NULL ? check_listen(settings->listen, err) : HF_OK;

    if (rc == HF_OK)
        rc = check_alert(&settings->alert_command, err);
    if (rc == HF_OK)
        rc = ctl_policy_get(&settings->policy, &settings->engine, err);
    if (rc == HF_OK)
        rc = read_limits(settings, err);
    if (rc != HF_OK)
        return rc;
    if (settings->port_file != NULL && settings->listen == NULL)
        return hf_error_set(err, HF_EINVAL,
                            "controller.port_file is set without controller.listen: say where "
                            "to serve (--listen 127.0.0.1:0)");
    return settings->id != NULL ? HF_OK : make_id(settings, err);
}
