#include "schema/options.h"

#include <string.h>

#include "base/str.h"

/* In the order of enum hf_log_level and enum hf_log_format. */
static const char *const LOG_LEVELS[] = { "debug", "info", "warn", "error", NULL };
static const char *const LOG_FORMATS[] = { "logfmt", "json", NULL };

static const struct hf_option TABLE[] = {
    {
        .key = "etcd.endpoints",
        .flag = "endpoints",
        .env = "HOLDFAST_ENDPOINTS",
        .env_fallback = "ETCDCTL_ENDPOINTS",
        .value = "URL,...",
        HF_OPTION_FIELD(ENDPOINTS, struct hf_options, endpoints),
        .preset = "127.0.0.1:2379",
        .help = "The servers of etcd: one is used at a time, the others stand by.",
    },
    {
        .key = "etcd.discover",
        .flag = "discover",
        .env = "HOLDFAST_DISCOVER",
        HF_OPTION_FIELD(BOOL, struct hf_options, discover),
        .help = "Ask the cluster, too, where its members are, and let those stand by behind "
                "the endpoints. What they advertise must be reachable from here.",
    },
    {
        .key = "etcd.cacert",
        .flag = "cacert",
        .env = "HOLDFAST_CACERT",
        .env_fallback = "ETCDCTL_CACERT",
        .value = "FILE",
        HF_OPTION_FIELD(STRING, struct hf_options, cacert),
        .help = "PEM file with the authorities that etcd's certificate is checked against; "
                "without it the system's are used.",
    },
    {
        .key = "etcd.cert",
        .flag = "cert",
        .env = "HOLDFAST_CERT",
        .env_fallback = "ETCDCTL_CERT",
        .value = "FILE",
        HF_OPTION_FIELD(STRING, struct hf_options, cert),
        .help = "PEM file with the certificate to show to etcd.",
    },
    {
        .key = "etcd.key",
        .flag = "key",
        .env = "HOLDFAST_KEY",
        .env_fallback = "ETCDCTL_KEY",
        .value = "FILE",
        HF_OPTION_FIELD(STRING, struct hf_options, key),
        .help = "PEM file with the private key of that certificate.",
    },
    {
        .key = "etcd.user",
        .flag = "user",
        .env = "HOLDFAST_USER",
        .env_fallback = "ETCDCTL_USER",
        .value = "NAME",
        HF_OPTION_FIELD(STRING, struct hf_options, user),
        .help = "The user to log in to etcd as.",
    },
    {
        .key = "etcd.password_file",
        .flag = "password-file",
        .env = "HOLDFAST_PASSWORD_FILE",
        .value = "FILE",
        HF_OPTION_FIELD(STRING, struct hf_options, password_file),
        .help = "File whose first line is that user's password.",
    },
    {
        .key = "namespace",
        .flag = "namespace",
        .env = "HOLDFAST_NAMESPACE",
        .value = "NAME",
        HF_OPTION_FIELD(NAME, struct hf_options, namespace),
        .preset = "default",
        .help = "The fleet to work in: one trust domain with its own agents, tasks and "
                "controllers.",
        .counts = HF_COUNTS_ON_RESTART,
    },
    {
        .key = "log.level",
        .flag = "log-level",
        .env = "HOLDFAST_LOG_LEVEL",
        HF_OPTION_FIELD(ENUM, struct hf_options, log_level),
        .words = LOG_LEVELS,
        .preset = "info",
        .help = "The least important lines to log.",
    },
    {
        .key = "log.format",
        .flag = "log-format",
        .env = "HOLDFAST_LOG_FORMAT",
        HF_OPTION_FIELD(ENUM, struct hf_options, log_format),
        .words = LOG_FORMATS,
        .preset = "logfmt",
        .help = "The form of a log line.",
    },
    {
        .flag = "config",
        .env = "HOLDFAST_CONFIG",
        .value = "FILE",
        HF_OPTION_FIELD(STRING, struct hf_options, config),
        .help = "YAML or JSON file to read settings from.",
    },
    {
        .flag = "config-dump",
        HF_OPTION_FIELD(BOOL, struct hf_options, config_dump),
        .help = "Print all settings, each with where it came from, and exit.",
    },
    {
        .flag = "version",
        HF_OPTION_FIELD(BOOL, struct hf_options, version),
        .help = "Print the version and exit.",
    },
    {
        .flag = "help",
        .letter = 'h',
        HF_OPTION_FIELD(BOOL, struct hf_options, help),
        .help = "Print this text and exit.",
    },
};

struct hf_option_group hf_options_group(struct hf_options *options)
{
    return (struct hf_option_group){
        .title = "Common options",
        .options = TABLE,
        .count = sizeof TABLE / sizeof TABLE[0],
        .target = options,
        .counts = HF_COUNTS_ON_RELOAD,
    };
}

int hf_options_load(struct hf_config *cfg, const struct hf_options *options, int argc,
                    char *const *argv, char *const *env, struct hf_error *err)
{
    int rc = hf_config_read_args(cfg, argc, argv, err);

    if (rc < 0 || options->help || options->version)
        return rc;
    rc = hf_config_read_env(cfg, env, err);
    if (rc == HF_OK && options->config != NULL)
        rc = hf_config_read_file(cfg, options->config, err);
    if (rc == HF_OK)
        rc = hf_options_check(options, err);
    return rc;
}

static int check_endpoints(const struct hf_strings *endpoints, struct hf_error *err)
{
    struct hf_endpoint endpoint;
    bool first_tls = false;

    for (size_t i = 0; i < endpoints->count; i++) {
        int rc = hf_parse_endpoint(endpoints->items[i], &endpoint, err);

        if (rc < 0)
            return rc;
        if (i == 0)
            first_tls = endpoint.tls;
        if (endpoint.tls != first_tls)
            return hf_error_set(err, HF_EINVAL,
                                "etcd.endpoints: some are https and some are not: write "
                                "https:// before all of them or before none");
    }
    return HF_OK;
}

static bool all_have_scheme(const struct hf_strings *endpoints)
{
    for (size_t i = 0; i < endpoints->count; i++) {
        if (strstr(endpoints->items[i], "://") == NULL)
            return false;
    }
    return true;
}

static int check_tls(const struct hf_options *options, struct hf_error *err)
{
    if (options->cert != NULL && options->key == NULL)
        return hf_error_set(err, HF_EINVAL,
                            "etcd.cert is set without etcd.key: name the file with its "
                            "private key (--key)");
    if (options->key != NULL && options->cert == NULL)
        return hf_error_set(err, HF_EINVAL,
                            "etcd.key is set without etcd.cert: name the file with its "
                            "certificate (--cert)");
    /* etcdctl would encrypt here and we would not: nobody must find that out by accident. */
    if ((options->cacert != NULL || options->cert != NULL) &&
        !all_have_scheme(&options->endpoints))
        return hf_error_set(err, HF_EINVAL,
                            "%s is set, but etcd.endpoints does not say whether to encrypt: "
                            "write https:// (or http://) before each",
                            options->cacert != NULL ? "etcd.cacert" : "etcd.cert");
    return HF_OK;
}

static int check_user(const struct hf_options *options, struct hf_error *err)
{
    /* etcdctl allows it; we do not, because a command line can be read by anyone. */
    if (options->user != NULL && strchr(options->user, ':') != NULL)
        return hf_error_set(err, HF_EINVAL,
                            "etcd.user must not contain a password: put it into a file and "
                            "name that (--password-file)");
    if (options->user != NULL && options->password_file == NULL)
        return hf_error_set(err, HF_EINVAL,
                            "etcd.user is set without etcd.password_file: name the file with "
                            "the password (--password-file)");
    if (options->password_file != NULL && options->user == NULL)
        return hf_error_set(err, HF_EINVAL,
                            "etcd.password_file is set without etcd.user: say whose password "
                            "it is (--user)");
    return HF_OK;
}

int hf_options_check(const struct hf_options *options, struct hf_error *err)
{
    int rc = check_endpoints(&options->endpoints, err);

    if (rc == HF_OK)
        rc = check_tls(options, err);
    if (rc == HF_OK)
        rc = check_user(options, err);
    return rc;
}
