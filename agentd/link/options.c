/* options.c - everything that can be set for an agentd, and in the file of an agent: names,
 * limits, presets, and what the manual says of them. */
#include "agentd/link/settings.h"

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
        .counts = HF_COUNTS_ON_RESTART,
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
        .counts = HF_COUNTS_ON_RESTART,
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
            "twice as many at once; each 16 KiB of JSON count as another one. More are "
            "answered with 429.",
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
        .counts = HF_COUNTS_ON_START,
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
        .counts = HF_COUNTS_ON_START,
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
        .counts = HF_COUNTS_ON_START,
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
        .counts = HF_COUNTS_ON_RELOAD,
    };
}

struct hf_option_group link_agent_group(struct link_agent_settings *agent)
{
    return (struct hf_option_group){
        .title = "An agent's file",
        .options = AGENT_TABLE,
        .count = sizeof AGENT_TABLE / sizeof AGENT_TABLE[0],
        .target = agent,
        .counts = HF_COUNTS_ON_RELOAD,
    };
}
