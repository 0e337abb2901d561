/* holdfast: the fleet in etcd, for people and scripts. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/str.h"
#include "cli/commands.h"
#include "cli/store.h"

/* In the order in which help shows them. */
static const struct cli_command *const COMMANDS[] = {
    &CLI_UP,
    &CLI_DEMO_CRASH,
    &CLI_DEMO_HOST,
    &CLI_DEMO_FREEZE,
    &CLI_PS,
    &CLI_EXPLAIN,
    &CLI_LOGS,
    &CLI_TASK_SUBMIT,
    &CLI_TASK_LS,
    &CLI_TASK_SHOW,
    &CLI_TASK_WATCH,
    &CLI_TASK_CANCEL,
    &CLI_TASK_RETRY,
    &CLI_TASK_RM,
    &CLI_START,
    &CLI_STOP,
    &CLI_RESTART,
    &CLI_AGENT_RM,
    &CLI_HOSTS,
    &CLI_HOST_CORDON,
    &CLI_HOST_UNCORDON,
    &CLI_HOST_DRAIN,
    &CLI_HOST_LOST,
    &CLI_HOST_RM,
    &CLI_CHECKPOINT_LS,
    &CLI_CHECKPOINT_GET,
    &CLI_CHECKPOINT_VERIFY,
    &CLI_EVENTS,
    &CLI_LEADER,
    &CLI_STORM_STATUS,
    &CLI_STORM_PROCEED,
    &CLI_STORM_HOLD,
    &CLI_INVARIANTS,
    &CLI_DOCTOR,
};

enum { COMMAND_COUNT = sizeof COMMANDS / sizeof COMMANDS[0], NAME_WIDTH = 18 };

static const char *const OUTPUTS[] = { "table", "json", "wide", "name", NULL };

static const struct hf_option TABLE[] = {
    {
        .flag = "output",
        .letter = 'o',
        HF_OPTION_FIELD(ENUM, struct cli, output),
        .words = OUTPUTS,
        .preset = "table",
        .help = "What to print: a table for people (wide: with everything in it), JSON, or "
                "names alone, one per line.",
    },
};

int cli_exit_status(int err)
{
    switch (err) {
    case HF_OK: return EXIT_SUCCESS;
    case HF_EINVAL: return CLI_EXIT_USAGE;
    case HF_ENOENT: return CLI_EXIT_NOT_FOUND;
    case HF_EEXIST:
    case HF_ECONFLICT:
    case HF_EFENCED: return CLI_EXIT_CONFLICT;
    case HF_EAGAIN: return CLI_EXIT_UNREACHABLE;
    case HF_EDENIED: return CLI_EXIT_DENIED;
    case HF_ETIMEOUT: return CLI_EXIT_TIMEOUT;
    default: return CLI_EXIT_FAILURE;
    }
}

int cli_fail(struct cli *cli, int err, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(cli->err.text, sizeof cli->err.text, fmt, args);
    va_end(args);
    return err;
}

/* Finding the command, before its flags can be read: they are its own. */

/* The common option that this word sets, if it is a flag whose value is the next word. */
static bool takes_next(const char *word)
{
    const struct hf_option_group groups[] = { hf_options_group(NULL),
                                              { .options = TABLE, .count = 1 } };

    if (word[0] != '-' || strchr(word, '=') != NULL)
        return false;
    for (size_t g = 0; g < 2; g++) {
        for (size_t i = 0; i < groups[g].count; i++) {
            const struct hf_option *option = &groups[g].options[i];

            if (option->type != HF_OPTION_BOOL &&
                ((word[1] == '-' && strcmp(word + 2, option->flag) == 0) ||
                 (word[1] == option->letter && word[1] != '\0' && word[2] == '\0')))
                return true;
        }
    }
    return false;
}

struct words {
    const char *items[2];
    size_t count;
};

static struct words find_words(int argc, char *const *argv)
{
    struct words words = { .count = 0 };

    for (int i = 1; i < argc && words.count < 2; i++) {
        if (strcmp(argv[i], "--") == 0)
            break;
        if (takes_next(argv[i]))
            i++;
        else if (argv[i][0] != '-')
            words.items[words.count++] = argv[i];
    }
    return words;
}

/* How many of the words are the command's name: 0 when they are not. */
static size_t matches(const struct cli_command *command, const struct words *words)
{
    const char *space = strchr(command->name, ' ');
    size_t first = space != NULL ? (size_t)(space - command->name) : strlen(command->name);

    if (words->count == 0 || strlen(words->items[0]) != first ||
        strncmp(words->items[0], command->name, first) != 0)
        return 0;
    if (space == NULL)
        return 1;
    return words->count == 2 && strcmp(words->items[1], space + 1) == 0 ? 2 : 0;
}

static const struct cli_command *find_command(const struct words *words, size_t *ret_words)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        *ret_words = matches(COMMANDS[i], words);
        if (*ret_words > 0)
            return COMMANDS[i];
    }
    return NULL;
}

/* Help. */

static int print(const struct hf_buf *text)
{
    bool fine = text->err == HF_OK && fwrite(text->data, 1, text->len, stdout) == text->len &&
                fflush(stdout) == 0;

    return fine ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* All commands, or those that begin with `word`; returns how many. */
static size_t list_commands(struct hf_buf *out, const char *word)
{
    size_t len = word != NULL ? strlen(word) : 0, count = 0;

    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct cli_command *command = COMMANDS[i];

        if (word != NULL &&
            (strncmp(command->name, word, len) != 0 || command->name[len] != ' '))
            continue;
        hf_buf_printf(out, "  %-*s %s\n", NAME_WIDTH, command->name, command->summary);
        count++;
    }
    return count;
}

static int print_overview(void)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    hf_buf_puts(&out,
                "Usage: holdfast COMMAND [OPTION]...\n\n"
                "Shows and steers a fleet of agents. Every command needs etcd alone.\n\n");
    (void)list_commands(&out, NULL);
    hf_buf_puts(&out,
                "\nholdfast COMMAND --help says more, also of the options that all have.\n"
                "Exit status: 0 ok, 1 failure, 2 usage, 3 not found, 4 conflict, 5 etcd\n"
                "unreachable, 6 denied, 124 timeout.\n");
    return print(&out);
}

static int print_help(const struct cli_command *command, const struct hf_config *cfg)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    hf_buf_printf(&out, "Usage: holdfast %s%s%s [OPTION]...\n\n%s\n", command->name,
                  command->args[0] != '\0' ? " " : "", command->args, command->summary);
    if (command->more != NULL)
        hf_buf_printf(&out, "\n%s\n", command->more);
    hf_buf_putc(&out, '\n');
    hf_config_write_help(cfg, &out);
    return print(&out);
}

static int complain(const struct cli *cli, int rc)
{
    (void)fprintf(stderr, "holdfast: %s\n",
                  cli->err.text[0] != '\0' ? cli->err.text : hf_err_text(rc));
    return cli_exit_status(rc);
}

/* The nearest of all first words, or of those that follow `word`. */
static const char *suggest(const char *wrong)
{
    const char *names[COMMAND_COUNT];

    for (size_t i = 0; i < COMMAND_COUNT; i++)
        names[i] = COMMANDS[i]->name;
    return hf_str_nearest(wrong, names, COMMAND_COUNT);
}

/* No command, a word that only begins one, or none that we know. */
static int without_command(const struct words *words, int argc, char *const *argv)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    struct cli cli = { 0 };
    char wrong[200];
    const char *near;

    for (int i = 1; i < argc && words->count == 0; i++) {
        if (strcmp(argv[i], "--version") == 0)
            return printf("holdfast %s\n", HOLDFAST_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return print_overview();
    }
    if (words->count == 0) {
        (void)print_overview();
        return CLI_EXIT_USAGE;
    }
    if (strcmp(words->items[0], "help") == 0)
        return print_overview();
    (void)snprintf(wrong, sizeof wrong, "%s%s%s", words->items[0], words->count > 1 ? " " : "",
                   words->count > 1 ? words->items[1] : "");
    hf_buf_printf(&out, "holdfast %s is followed by one of:\n\n", words->items[0]);
    if (list_commands(&out, words->items[0]) > 0) {
        (void)print(&out);
        for (int i = 1; i < argc; i++) {
            if (strcmp(argv[i], "--help") == 0)
                return EXIT_SUCCESS;
        }
        return CLI_EXIT_USAGE;
    }
    near = suggest(wrong) != NULL ? suggest(wrong) : suggest(words->items[0]);
    return complain(&cli,
                    cli_fail(&cli, HF_EINVAL,
                             "there is no command \"%s\"%s%s%s; holdfast --help lists them",
                             words->items[0], near != NULL ? ": did you mean " : "",
                             near != NULL ? near : "", near != NULL ? "?" : ""));
}

/* Running one. */

static int check_args(struct cli *cli, const struct cli_command *command)
{
    if (cli->arg_count >= command->arg_min && cli->arg_count <= command->arg_max)
        return HF_OK;
    if (cli->arg_count > command->arg_max)
        return cli_fail(cli, HF_EINVAL, "unexpected argument: %s", cli->args[command->arg_max]);
    return cli_fail(cli, HF_EINVAL, "%s is missing; holdfast %s --help says more",
                    command->args, command->name);
}

static int print_dump(const struct hf_config *cfg)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };

    hf_config_write_dump(cfg, &text);
    return print(&text);
}

static int run(struct cli *cli, const struct cli_command *command, const struct hf_config *cfg)
{
    int rc = check_args(cli, command);

    if (rc == HF_OK && cli->output == CLI_NAME && command->nameless)
        rc = cli_fail(cli, HF_EINVAL, "what holdfast %s prints has no names: leave -o name out",
                      command->name);

    hf_log_setup(STDERR_FILENO, cli->common.log_level, cli->common.log_format);
    for (size_t i = 0; i < cfg->warning_count; i++)
        (void)fprintf(stderr, "holdfast: warning: %s\n", cfg->warnings[i].text);
    if (rc == HF_OK && !command->offline)
        rc = cli_connect(cli);
    if (rc == HF_OK)
        rc = command->run(cli);
    cli_disconnect(cli);
    return rc == HF_OK ? cli->status : complain(cli, rc);
}

int main(int argc, char **argv)
{
    struct words words = find_words(argc, argv);
    size_t used = 0;
    const struct cli_command *command = find_command(&words, &used);
    HF_CLEANUP_CONFIG struct hf_config cfg = { 0 };
    HF_CLEANUP_FREE void *settings = NULL;
    struct cli cli = { 0 };
    int rc;

    hf_stdio_fill();
    (void)signal(SIGPIPE, SIG_IGN);
    if (command == NULL)
        return without_command(&words, argc, argv);
    settings = hf_calloc(1, command->settings_size > 0 ? command->settings_size : 1);
    if (settings == NULL)
        return complain(&cli, HF_ENOMEM);
    const struct hf_option_group groups[] = {
        { .title = "Options",
          .options = command->options,
          .count = command->option_count,
          .target = settings },
        { .title = "Output", .options = TABLE, .count = 1, .target = &cli },
        hf_options_group(&cli.common),
    };
    rc = hf_config_init(&cfg, command->option_count > 0 ? groups : groups + 1,
                        command->option_count > 0 ? 3 : 2);
    if (rc == HF_OK)
        rc = hf_options_load(&cfg, &cli.common, argc, argv, environ, &cli.err);
    if (rc != HF_OK)
        return complain(&cli, rc);
    if (cli.common.help)
        return print_help(command, &cfg);
    if (cli.common.version)
        return printf("holdfast %s\n", HOLDFAST_VERSION) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    if (cli.common.config_dump)
        return print_dump(&cfg);
    cli.settings = settings;
    cli.args = cfg.arguments.items + used;
    cli.arg_count = cfg.arguments.count - used;
    return run(&cli, command, &cfg);
}
