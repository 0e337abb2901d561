/* agentd-link: started by agentd, with the command line that agentd was given. It alone reads
 * that, and says what is wrong with it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/keeper/place.h"
#include "agentd/link/link.h"
#include "agentd/link/successor.h"
#include "agentd/link/trial.h"
#include "agentd/link/upgrade.h"
#include "base/alloc.h"
#include "base/log.h"
#include "io/secret.h"

static const char USAGE[] =
    "Usage: agentd run --name NAME [OPTION]... -- COMMAND...\n"
    "       agentd --config FILE [OPTION]...\n"
    "       agentd check [--config FILE]\n"
    "       agentd upgrade [--state-dir DIR | --name NAME]\n"
    "\n"
    "Starts agents, registers them in etcd for as long as they live, and tells the fleet\n"
    "how they ended.\n";

enum {
    EXIT_USAGE = 2,
    EXIT_NOT_FOUND = 3,
    EXIT_UNREACHABLE = 5,
    EXIT_DENIED = 6,
    EXIT_TIMEOUT = 124
};

static int print(struct hf_buf *text)
{
    bool fine = text->err == HF_OK && fwrite(text->data, 1, text->len, stdout) == text->len &&
                fflush(stdout) == 0;

    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print_help(const struct hf_config *cfg)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    hf_buf_printf(&text, "%s\n", USAGE);
    hf_config_write_help(cfg, &text);
    return print(&text);
}

static int print_dump(const struct hf_config *cfg)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    hf_config_write_dump(cfg, &text);
    return print(&text);
}

static int check(const struct link_settings *settings)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    struct hf_error err = { "" };
    int rc = link_trial_parts(settings, &err);

    if (rc == HF_OK)
        rc = link_trial_launchers(settings, &err);
    if (rc != HF_OK) {
        (void)fprintf(stderr, "agentd: %s\n", err.text);
        return EXIT_USAGE;
    }
    hf_buf_printf(&text, "host %s, namespace %s: %zu launcher%s, %zu agent%s, no fault found\n",
                  settings->host, settings->common.namespace, settings->launcher_count,
                  settings->launcher_count == 1 ? "" : "s", settings->agent_count,
                  settings->agent_count == 1 ? "" : "s");
    return print(&text);
}

/* The keeper gets the signals and says what becomes of them; a terminal or a service manager
 * sends them to everyone. */
static void ignore_signals(void)
{
    const int numbers[] = { SIGINT,  SIGTERM, SIGHUP,  SIGPIPE, SIGUSR1,
                            SIGUSR2, SIGQUIT, SIGTSTP, SIGTTIN, SIGTTOU };

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        (void)signal(numbers[i], SIG_IGN);
}

/* Agents may wait for a link that can begin. One that cannot leaves the files as they are by
 * now to the next one, if that could: to correct them is enough. */
static void look_for_correction(const struct link_settings *settings)
{
    struct hf_error err = { "" };
    LINK_CLEANUP_KEPT struct link_kept now = { 0 };

    link_kept_begin(&now);
    if (link_settings_check_again(settings, link_kept_get_files(&now), &err) == HF_OK)
        link_kept_leave(&now);
}

static void refuse(const struct link_settings *settings, const char *why)
{
    char dir[AGENTD_PATH_BYTES];

    if ((settings->mode == LINK_RUN || settings->mode == LINK_CONFIG) &&
        fcntl(AGENTD_LINK_FD, F_GETFD) >= 0 &&
        agentd_choose_state_dir(settings->argv, dir, sizeof dir) == 0)
        link_upgrade_refuse(dir, why);
}

static int run(const struct hf_config *cfg, const struct link_settings *settings,
               struct link_kept *kept)
{
    struct hf_error err = { "" };
    int rc;

    hf_log_setup(STDERR_FILENO, settings->common.log_level, settings->common.log_format);
    hf_log_identity((const struct hf_log_field[]){ HF_STR("program", "agentd"),
                                                   HF_STR("ns", settings->common.namespace) },
                    2);
    for (size_t i = 0; i < cfg->warning_count; i++)
        HF_LOG_WARN("configuration", HF_STR("message", cfg->warnings[i].text));
    if (fcntl(AGENTD_LINK_FD, F_GETFD) < 0 || fcntl(AGENTD_PAGE_FD, F_GETFD) < 0) {
        (void)fprintf(stderr, "agentd-link: is started by agentd, not by hand\n");
        return EXIT_USAGE;
    }
    ignore_signals();
    if (!kept->given)
        link_kept_leave(kept);
    link_kept_done(kept); /* all of it was read; the keeper has it for the next link */
    rc = link_run(settings, &err);
    if (rc == HF_OK)
        return EXIT_SUCCESS;
    HF_LOG_ERROR("cannot_go_on", HF_STR("error", hf_err_name(rc)), HF_STR("message", err.text));
    refuse(settings, err.text);
    if (rc == HF_EINVAL)
        look_for_correction(settings);
    /* What it had opened, threads and all, goes with the process. */
    _Exit(rc == HF_EINVAL ? EXIT_USAGE : rc == HF_EDENIED ? EXIT_DENIED : EXIT_FAILURE);
}

static int upgrade(const struct link_settings *settings)
{
    struct hf_error err = { "the path of the state directory is too long" };
    char dir[AGENTD_PATH_BYTES];
    int rc = HF_EINVAL;

    if (agentd_choose_state_dir(settings->argv, dir, sizeof dir) == 0)
        rc = link_upgrade(dir, &err);
    if (rc == HF_OK)
        return EXIT_SUCCESS;
    (void)fprintf(stderr, "agentd: %s\n", err.text);
    switch (rc) {
    case HF_ENOENT: return EXIT_NOT_FOUND;
    case HF_EDENIED: return EXIT_DENIED;
    case HF_ETIMEOUT: return EXIT_TIMEOUT;
    default: return EXIT_FAILURE;
    }
}

static int serve(const struct hf_config *cfg, struct link_settings *settings,
                 struct link_kept *kept)
{
    struct hf_error err = { "" };
    int rc = link_settings_complete(settings, cfg, &err);

    if (rc != HF_OK) {
        (void)fprintf(stderr, "agentd: %s\n", err.text);
        refuse(settings, err.text);
        if (kept->given && rc != HF_ENOMEM && settings->host != NULL)
            look_for_correction(settings); /* what the last link had does no more */
        return EXIT_USAGE;
    }
    if (settings->common.config_dump)
        return print_dump(cfg);
    if (settings->mode == LINK_UPGRADE)
        return upgrade(settings);
    return settings->mode == LINK_CHECK ? check(settings) : run(cfg, settings, kept);
}

/* Before libuv makes them, which is when the first one is needed. An agent whose file system
 * hangs may hold two: with the usual four, two such agents would stop the checkpoints of all
 * others. */
static void ask_for_threads(void)
{
    static char pool[] = LINK_LAUNCHER_POOL;

    if (getenv("UV_THREADPOOL_SIZE") == NULL)
        (void)putenv(pool);
}

/* Whoever would give way to us asks. Nothing else is looked at: the settings are not ours. */
static int print_protocol(void)
{
    bool fine =
        printf("%d %s\n", AGENTD_PROTOCOL_VERSION, HOLDFAST_VERSION) > 0 && fflush(stdout) == 0;

    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    struct link_settings settings = { .argc = argc, .argv = argv };
    const struct hf_option_group groups[] = { link_settings_group(&settings),
                                              hf_options_group(&settings.common) };
    HF_CLEANUP_CONFIG struct hf_config cfg = { 0 };
    struct hf_error err = { "out of memory" };
    LINK_CLEANUP_KEPT struct link_kept kept = { 0 };
    int rc;

    if (argc == 2 && strcmp(argv[1], LINK_SUCCESSOR_QUESTION) == 0)
        return print_protocol();
    hf_secret_protect();
    hf_alloc_tune();
    ask_for_threads();
    link_kept_take(&kept);
    settings.files = link_kept_get_files(&kept);
    rc = hf_config_init(&cfg, groups, 2);
    cfg.files = settings.files;
    if (rc == HF_OK)
        rc = hf_options_load(&cfg, &settings.common, argc, argv, environ, &err);
    if (rc < 0) {
        (void)fprintf(stderr, "agentd: %s\n", err.text);
        return EXIT_USAGE;
    }
    if (settings.common.help)
        return print_help(&cfg);
    if (settings.common.version)
        return printf("agentd %s\n", HOLDFAST_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    rc = serve(&cfg, &settings, &kept);
    link_settings_done(&settings);
    return rc;
}
