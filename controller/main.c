/* holdfast-controller: decides for the whole fleet; several may run, one leads. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/file.h"
#include "base/log.h"
#include "controller/controller.h"
#include "io/secret.h"

static const char USAGE[] =
    "Usage: holdfast-controller [OPTION]...\n"
    "\n"
    "Decides for a fleet: which agents are dead, which tasks are reset, who is started\n"
    "where. Several may run; one leads, the others follow everything and take over.\n";

enum { EXIT_USAGE = 2, EXIT_UNREACHABLE = 5, EXIT_DENIED = 6 };

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

static int complain(const struct hf_error *err)
{
    (void)fprintf(stderr, "holdfast-controller: %s\n", err->text);
    return EXIT_USAGE;
}

static int run(const struct hf_config *cfg, const struct ctl_settings *settings)
{
    struct hf_error err = { "" };
    int rc;

    hf_log_setup(STDERR_FILENO, settings->common.log_level, settings->common.log_format);
    hf_log_identity((const struct hf_log_field[]){ HF_STR("program", "controller"),
                                                   HF_STR("ns", settings->common.namespace),
                                                   HF_STR("id", settings->id) },
                    3);
    for (size_t i = 0; i < cfg->warning_count; i++)
        HF_LOG_WARN("configuration", HF_STR("message", cfg->warnings[i].text));
    rc = ctl_run(settings, &err);
    if (rc == HF_OK)
        return EXIT_SUCCESS;
    HF_LOG_ERROR("cannot_go_on", HF_STR("error", hf_err_name(rc)), HF_STR("message", err.text));
    switch (rc) {
    case HF_EINVAL: return EXIT_USAGE;
    case HF_EAGAIN: return EXIT_UNREACHABLE;
    case HF_EDENIED: return EXIT_DENIED;
    default: return EXIT_FAILURE;
    }
}

int main(int argc, char **argv)
{
    struct ctl_settings settings = { 0 };
    const struct hf_option_group groups[] = { ctl_settings_group(&settings),
                                              ctl_policy_group(&settings.policy),
                                              hf_options_group(&settings.common) };
    HF_CLEANUP_CONFIG struct hf_config cfg = { 0 };
    struct hf_error err = { "out of memory" };
    int rc;

    hf_stdio_fill();
    hf_secret_protect();
    hf_alloc_tune();
    (void)signal(SIGPIPE, SIG_IGN);
    rc = hf_config_init(&cfg, groups, sizeof groups / sizeof groups[0]);
    if (rc == HF_OK)
        rc = hf_options_load(&cfg, &settings.common, argc, argv, environ, &err);
    if (rc == HF_OK && settings.common.help)
        return print_help(&cfg);
    if (rc == HF_OK && settings.common.version)
        return printf("holdfast-controller %s\n", HOLDFAST_VERSION) < 0 ? EXIT_FAILURE
                                                                        : EXIT_SUCCESS;
    if (rc == HF_OK && cfg.arguments.count > 0)
        rc = hf_error_set(&err, HF_EINVAL, "unexpected argument: %s", cfg.arguments.items[0]);
    if (rc == HF_OK)
        rc = ctl_settings_complete(&settings, &err);
    if (rc < 0)
        return complain(&err);
    if (settings.common.config_dump)
        return print_dump(&cfg);
    return run(&cfg, &settings);
}
