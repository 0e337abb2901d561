#include "agentd/link/launcher.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/link/program.h"
#include "base/alloc.h"
#include "base/buf.h"

/* That a probe is told, beside whom it asks for and that one's role. */
enum { MOST_PROBED = LINK_PROGRAM_VARIABLES - 2 };

static const struct hf_option TABLE[] = {
    {
        .key = "name",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct link_launcher, name),
        .help = "What specs call it.",
        .counts = HF_COUNTS_ON_RELOAD,
    },
    {
        .key = "command",
        .value = "PROGRAM,ARG,...",
        HF_OPTION_FIELD(STRINGS, struct link_launcher, command),
        .help = "The program and its arguments; no shell is involved.",
    },
    {
        .key = "directory",
        .value = "DIR",
        HF_OPTION_FIELD(STRING, struct link_launcher, directory),
        .help = "Where it runs; an absolute path.",
    },
    {
        .key = "environment",
        .value = "NAME=VALUE,...",
        HF_OPTION_FIELD(STRINGS, struct link_launcher, environment),
        .help = "Variables that it gets beside PATH, HOME, LANG, TZ and USER.",
    },
    {
        .key = "parameters",
        .value = "NAME=PATTERN,...",
        HF_OPTION_FIELD(STRINGS, struct link_launcher, parameters),
        .help = "What a spec may pass, each with the pattern that its value must match.",
    },
    {
        .key = "user",
        .value = "NAME",
        HF_OPTION_FIELD(STRING, struct link_launcher, user),
        .help = "The account that it runs as, with its groups; agentd has to be root for any "
                "but its own. Without it, agentd's.",
    },
    {
        .key = "memory_max",
        .value = "BYTES",
        HF_OPTION_FIELD(INT, struct link_launcher, memory_max),
        .min = 0,
        .max = INT64_MAX,
        .help = "Memory of all its processes together, where agents have cgroups with a memory "
                "controller; 0 is no limit.",
    },
    {
        .key = "processes_max",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_launcher, processes_max),
        .min = 0,
        .max = INT32_MAX,
        .help = "How many processes it may have at once, where agents have cgroups; 0 is no "
                "limit.",
    },
    {
        .key = "open_files_max",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_launcher, open_files_max),
        .min = 0,
        .max = INT32_MAX,
        .help = "How many files each of its processes may have open; 0 leaves it at agentd's.",
    },
    {
        .key = "nice",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_launcher, nice),
        .min = -20,
        .max = 19,
        .preset = "0",
        .help = "How far it stands back for other programs.",
    },
    {
        .key = "detect.profile",
        HF_OPTION_FIELD(ENUM, struct link_launcher, detect.profile),
        .words = LINK_DETECT_PROFILES,
        .preset = "default",
        .help =
            "How soon it is frozen that answers pings and then does not: asked every 2 s, 1 "
            "s to answer, 2 in a row (default); 1 s, 1 s, 2 (dev); 3 s, 1 s, 3 (tolerant).",
    },
    {
        .key = "detect.by",
        .value = "SOURCE,...",
        HF_OPTION_FIELD(STRINGS, struct link_launcher, detect.by),
        .preset = LINK_DETECT_BY,
        .help = "What may show that it is frozen, if it has used that before: ping, watchdog, "
                "probe, heartbeat. Anything else only makes it suspect.",
    },
    {
        .key = "detect.freeze",
        HF_OPTION_FIELD(ENUM, struct link_launcher, detect.on_freeze),
        .words = LINK_DETECT_ENDS,
        .preset = "end",
        .help = "What is done with one that is frozen: it is ended, and started again as its "
                "restart policy says; or it is only reported.",
    },
    {
        .key = "detect.watchdog",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_launcher, detect.watchdog),
        .min = 0,
        .max = 86400000,
        .preset = LINK_DETECT_WATCHDOG,
        .help =
            "What it finds as WATCHDOG_USEC, at least 1s. It is judged by it after its first "
            "WATCHDOG=1; 0s: no watchdog.",
    },
    {
        .key = "detect.phi",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_launcher, detect.phi),
        .min = 1,
        .max = 100,
        .preset = "8",
        .help =
            "How unlikely a silence must be, after how it was heard of before, to show that "
            "it is frozen: 8 is one in a hundred million. One that is unpunctual by habit "
            "gets up to twice the time all the same.",
    },
    {
        .key = "probe.address",
        .value = "URL",
        HF_OPTION_FIELD(STRING, struct link_launcher, detect.probe),
        .help =
            "Where it is asked whether it serves: tcp://HOST:PORT, http://HOST:PORT/PATH or "
            "grpc://HOST:PORT/SERVICE (grpc.health.v1, in plain text); the host is a number "
            "or localhost. ${NAME} is the value of that parameter, which must be declared.",
    },
    {
        .key = "probe.command",
        .value = "PROGRAM,ARG,...",
        HF_OPTION_FIELD(STRINGS, struct link_launcher, detect.probe_command),
        .help = "A program that says so instead, by its exit status; it runs as the agent's "
                "user, finds HOLDFAST_AGENT, HOLDFAST_ROLE and the agent's HOLDFAST_PARAM_ "
                "variables, and nothing that it starts outlives it.",
    },
    {
        .key = "probe.every",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_launcher, detect.probe_every),
        .min = 100,
        .max = 86400000,
        .preset = "10s",
        .help = "How often.",
    },
    {
        .key = "probe.timeout",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_launcher, detect.probe_timeout),
        .min = 10,
        .max = 3600000,
        .preset = "1s",
        .help = "How long an answer may take.",
    },
    {
        .key = "probe.misses",
        .value = "N",
        HF_OPTION_FIELD(INT, struct link_launcher, detect.probe_misses),
        .min = 1,
        .max = 100,
        .preset = "3",
        .help =
            "How many must fail in a row, after one was good, while nothing else is heard of "
            "it, for it to be frozen.",
    },
    {
        .key = "nudge.by",
        .value = "WAY,...",
        HF_OPTION_FIELD(STRINGS, struct link_launcher, nudge.by),
        .preset = LINK_WAYS_BY,
        .help =
            "How what it is asked (a nudge) reaches it, each by itself: events (GET "
            "/v1/events), stdin (a line of JSON; its stdin is a pipe then, from its next start "
            "on, else /dev/null), hook (nudge.command).",
        .counts = HF_COUNTS_ON_RELOAD,
    },
    {
        .key = "nudge.command",
        .value = "PROGRAM,ARG,...",
        HF_OPTION_FIELD(STRINGS, struct link_launcher, nudge.command),
        .help = "The program that brings a nudge to it: it runs as the agent does, finds the "
                "text on its stdin, HOLDFAST_AGENT, HOLDFAST_ROLE, HOLDFAST_NAMESPACE, "
                "HOLDFAST_INCARNATION, HOLDFAST_TASK, HOLDFAST_PID and HOLDFAST_NUDGE (the id) "
                "in its environment, and ends with status 0 when it has done so. Up to three "
                "runs, until one has.",
        .counts = HF_COUNTS_ON_RELOAD,
    },
    {
        .key = "nudge.timeout",
        .value = "DURATION",
        HF_OPTION_FIELD(DURATION, struct link_launcher, nudge.timeout),
        .min = 10,
        .max = 600000,
        .preset = "10s",
        .help = "How long a run of it may take; then it is killed.",
        .counts = HF_COUNTS_ON_RELOAD,
    },
};

struct hf_option_group link_launcher_group(struct link_launcher *launcher)
{
    return (struct hf_option_group){
        .title = "A launcher's file",
        .options = TABLE,
        .count = sizeof TABLE / sizeof TABLE[0],
        .target = launcher,
        .counts = HF_COUNTS_ON_START,
    };
}

/* NAME of NAME=rest; 0: it is none. */
static size_t name_length(const char *entry, bool upper)
{
    size_t len = strspn(entry, upper ? "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                       "0123456789_"
                                     : "abcdefghijklmnopqrstuvwxyz0123456789_");

    return entry[len] == '=' ? len : 0;
}

static int compile(const char *entry, regex_t *ret_pattern, struct hf_error *err)
{
    HF_CLEANUP_BUF struct hf_buf whole = { 0 };
    size_t len = name_length(entry, false);
    int rc;

    if (len == 0)
        return hf_error_set(err, HF_EINVAL,
                            "parameters: \"%s\" is not NAME=PATTERN with a name of a-z, 0-9 "
                            "and _",
                            entry);
    hf_buf_printf(&whole, "^(%s)$", entry + len + 1);
    if (whole.err != HF_OK)
        return hf_error_set(err, whole.err, "%s", hf_err_text(whole.err));
    rc = regcomp(ret_pattern, whole.data, REG_EXTENDED | REG_NOSUB);
    if (rc != 0)
        return hf_error_set(err, HF_EINVAL, "parameters: \"%s\" has no valid pattern", entry);
    return HF_OK;
}

static int check_launcher(struct link_launcher *launcher, struct hf_error *err)
{
    int rc;

    if (launcher->name == NULL)
        return hf_error_set(err, HF_EINVAL, "name: a launcher needs one");
    if (launcher->command.count == 0)
        return hf_error_set(err, HF_EINVAL, "command: say what to run");
    if (launcher->directory != NULL && launcher->directory[0] != '/')
        return hf_error_set(err, HF_EINVAL, "directory: must be an absolute path");
    for (size_t i = 0; i < launcher->environment.count; i++) {
        if (name_length(launcher->environment.items[i], true) == 0)
            return hf_error_set(err, HF_EINVAL, "environment: \"%s\" is not NAME=VALUE",
                                launcher->environment.items[i]);
    }
    for (size_t i = 0; i < launcher->parameters.count; i++) {
        regex_t pattern;

        rc = compile(launcher->parameters.items[i], &pattern, err);
        if (rc != HF_OK)
            return rc;
        regfree(&pattern);
    }
    if (launcher->detect.probe_command.count > 0 && launcher->parameters.count > MOST_PROBED)
        return hf_error_set(err, HF_EINVAL,
                            "parameters: at most %d where there is a probe.command",
                            MOST_PROBED);
    rc = link_detect_check_names(&launcher->detect, &launcher->parameters, err);
    if (rc == HF_OK)
        rc = link_detect_complete(&launcher->detect, err);
    if (rc == HF_OK)
        rc = link_ways_complete(&launcher->nudge, err);
    if (rc != HF_OK)
        return rc;
    if (launcher->user == NULL)
        return HF_OK;
    rc = link_user_find(launcher->user, &launcher->as, err);
    if (rc == HF_OK && launcher->as.uid != geteuid()) {
        launcher->detect.target.uid = launcher->as.uid;
        launcher->detect.target.gid = launcher->as.gid;
    }
    return rc;
}

int link_launcher_read(struct link_launcher *launcher, const char *file,
                       struct hf_config_files files, struct hf_error *err)
{
    const struct hf_option_group group = link_launcher_group(launcher);
    struct hf_error why = { "out of memory" };
    int rc = hf_config_init(&launcher->cfg, &group, 1);

    if (rc == HF_OK) {
        launcher->cfg.files = files;
        rc = hf_config_read_file(&launcher->cfg, file, err);
        if (rc != HF_OK)
            return rc;
        rc = check_launcher(launcher, &why);
    }
    return rc == HF_OK ? HF_OK : hf_error_set(err, rc, "%s: %s", file, why.text);
}

void link_launcher_done(struct link_launcher *launcher)
{
    hf_config_done(&launcher->cfg);
}

/* Parameters. */

static const char *find_declared(const struct link_launcher *launcher, const char *name)
{
    for (size_t i = 0; i < launcher->parameters.count; i++) {
        const char *entry = launcher->parameters.items[i];
        size_t len = name_length(entry, false);

        if (len == strlen(name) && strncmp(entry, name, len) == 0)
            return entry;
    }
    return NULL;
}

int link_launcher_check(const struct link_launcher *launcher, const Holdfast__V1__Spec *spec,
                        struct hf_error *err)
{
    for (size_t i = 0; i < spec->n_parameters; i++) {
        const char *name = spec->parameters[i]->key, *value = spec->parameters[i]->value;
        const char *declared = find_declared(launcher, name);
        regex_t pattern;
        bool matches;
        int rc;

        if (declared == NULL)
            return hf_error_set(err, HF_EINVAL, "launcher %s has no parameter %s",
                                launcher->name, name);
        rc = compile(declared, &pattern, err);
        if (rc != HF_OK)
            return rc;
        matches = regexec(&pattern, value, 0, NULL, 0) == 0;
        regfree(&pattern);
        if (!matches)
            return hf_error_set(err, HF_EINVAL,
                                "the value of parameter %s does not match what launcher %s "
                                "allows",
                                name, launcher->name);
    }
    return HF_OK;
}

/* The environment. */

struct env {
    struct hf_buf text; /* entries with their NULs */
    size_t count;
};

static bool has_name(const struct env *env, const char *entry, size_t name_len)
{
    const char *p = env->text.data;

    for (size_t i = 0; i < env->count; i++, p += strlen(p) + 1) {
        if (strncmp(p, entry, name_len) == 0 && p[name_len] == '=')
            return true;
    }
    return false;
}

/* The first of a name stays. */
static void add_entry(struct env *env, const char *entry)
{
    const char *equals = strchr(entry, '=');

    if (equals == NULL || equals == entry || has_name(env, entry, (size_t)(equals - entry)))
        return;
    hf_buf_append(&env->text, entry, strlen(entry) + 1);
    env->count++;
}

static void add_parameters(struct env *env, const Holdfast__V1__Spec *spec)
{
    for (size_t i = 0; i < spec->n_parameters; i++) {
        HF_CLEANUP_BUF struct hf_buf entry = { 0 };

        hf_buf_puts(&entry, "HOLDFAST_PARAM_");
        for (const char *p = spec->parameters[i]->key; *p != '\0'; p++)
            hf_buf_putc(&entry, (char)toupper((unsigned char)*p));
        hf_buf_printf(&entry, "=%s", spec->parameters[i]->value);
        if (entry.err != HF_OK)
            env->text.err = entry.err;
        else
            add_entry(env, entry.data);
    }
}

/* What agentd itself is told by the environment is not for the agents to see: they have their
 * own HOLDFAST_ variables, and no business with etcd's credentials. */
static bool is_inherited(const struct link_launcher *launcher, const char *entry)
{
    static const char *const BASIC[] = { "PATH=", "HOME=", "LANG=", "TZ=", "USER=" };

    if (strncmp(entry, "HOLDFAST_", 9) == 0 || strncmp(entry, "ETCDCTL_", 8) == 0 ||
        strncmp(entry, "NOTIFY_SOCKET=", 14) == 0 || strncmp(entry, "WATCHDOG_", 9) == 0 ||
        strcmp(entry, LINK_LAUNCHER_POOL) == 0)
        return false;
    for (size_t i = 0; i < sizeof BASIC / sizeof BASIC[0]; i++) {
        if (strncmp(entry, BASIC[i], strlen(BASIC[i])) == 0)
            return true;
    }
    return launcher->inherit;
}

/* Of the account; what the launcher itself says wins. */
static void add_user(struct env *env, const struct link_launcher *launcher)
{
    HF_CLEANUP_BUF struct hf_buf entry = { 0 };

    if (launcher->user == NULL)
        return;
    hf_buf_printf(&entry, "HOME=%s", launcher->as.home);
    if (entry.err == HF_OK)
        add_entry(env, entry.data);
    hf_buf_clear(&entry);
    hf_buf_printf(&entry, "USER=%s", launcher->user);
    if (entry.err == HF_OK)
        add_entry(env, entry.data);
    else
        env->text.err = entry.err;
}

static int make_block(struct env *env, struct hf_strings *ret_env)
{
    char *block, *text;
    const char **items;

    if (env->text.err != HF_OK)
        return env->text.err;
    block = hf_calloc(1, (env->count + 1) * sizeof *items + env->text.len + 1);
    if (block == NULL)
        return HF_ENOMEM;
    items = (const char **)(void *)block;
    text = block + (env->count + 1) * sizeof *items;
    if (env->text.len > 0)
        memcpy(text, env->text.data, env->text.len);
    for (size_t i = 0; i < env->count; i++, text += strlen(text) + 1)
        items[i] = text;
    *ret_env = (struct hf_strings){ .items = items, .count = env->count };
    return HF_OK;
}

int link_launcher_make_env(const struct link_launcher *launcher, const Holdfast__V1__Spec *spec,
                           struct hf_strings own, char *const *inherited,
                           struct hf_strings *ret_env)
{
    struct env env = { 0 };
    int rc;

    for (size_t i = 0; i < own.count; i++)
        add_entry(&env, own.items[i]);
    add_parameters(&env, spec);
    for (size_t i = 0; i < launcher->environment.count; i++)
        add_entry(&env, launcher->environment.items[i]);
    add_user(&env, launcher);
    for (char *const *p = inherited; *p != NULL; p++) {
        if (is_inherited(launcher, *p))
            add_entry(&env, *p);
    }
    rc = make_block(&env, ret_env);
    hf_buf_done(&env.text);
    return rc;
}

int link_launcher_make_probe_env(const char *agent, const Holdfast__V1__Spec *spec,
                                 struct hf_strings *ret_env)
{
    HF_CLEANUP_BUF struct hf_buf name = { 0 }, role = { 0 };
    struct env env = { 0 };
    int rc;

    hf_buf_printf(&name, "HOLDFAST_AGENT=%s", agent);
    hf_buf_printf(&role, "HOLDFAST_ROLE=%s", spec->role);
    if (name.err != HF_OK || role.err != HF_OK)
        return HF_ENOMEM;
    add_entry(&env, name.data);
    add_entry(&env, role.data);
    add_parameters(&env, spec);
    rc = make_block(&env, ret_env);
    hf_buf_done(&env.text);
    return rc;
}
