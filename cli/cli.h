/* cli.h - what every command of `holdfast` has: its settings, a connection, a place to print.
 *
 * A command is one function in one cmd_*.c file, named in commands.h. It returns HF_OK, or an
 * error with a sentence in cli->err, which main prints and turns into an exit status. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <uv.h>

#include "io/backend_etcd.h"
#include "schema/options.h"

enum cli_output { CLI_TABLE, CLI_JSON, CLI_WIDE, CLI_NAME };

struct cli {
    struct hf_options common;
    enum cli_output output;
    const char *const *args; /* what is left of the command line after the command's name */
    size_t arg_count;
    const void *settings; /* the command's own, as its table fills them */

    /* Of the connection; see store.h. */
    bool connected;
    uv_loop_t loop;
    struct hf_etcd *etcd;
    struct hf_backend_etcd *backend_etcd;
    struct hf_backend backend;
    hf_rev revision; /* that everything is read at, once something was */
    unsigned bad;    /* records that could not be read, each told on stderr */
    bool hushed;     /* those are counted, and not named each time: a screen shows the number */

    int status; /* to exit with although nothing failed: a check that found something */
    struct hf_error err;
};

/* A command, or with `run` NULL the word that several begin with. */
struct cli_command {
    const char *name; /* "task submit" */
    const char *args; /* "TASK", for its usage; "" for none */
    size_t arg_min, arg_max;
    const char *summary; /* one line */
    const char *more;    /* paragraphs for its own --help; NULL: none */
    const struct hf_option *options;
    size_t option_count;
    size_t settings_size;
    bool offline;  /* makes its own connection, if any */
    bool nameless; /* what it prints has no names: -o name is refused */
    int (*run)(struct cli *cli);
};

#define CLI_OPTIONS(table, type)                                                               \
    .options = (table), .option_count = sizeof(table) / sizeof(table)[0],                      \
    .settings_size = sizeof(type)

/* Exit statuses, which scripts rely on. */
enum {
    CLI_EXIT_FAILURE = 1,
    CLI_EXIT_USAGE = 2,
    CLI_EXIT_NOT_FOUND = 3,
    CLI_EXIT_CONFLICT = 4,
    CLI_EXIT_UNREACHABLE = 5,
    CLI_EXIT_DENIED = 6,
    CLI_EXIT_TIMEOUT = 124,
};

int cli_exit_status(int err);

/* Fails with a sentence: `return cli_fail(cli, HF_ENOENT, "there is no task %s", id);` */
int cli_fail(struct cli *cli, int err, const char *fmt, ...) HF_PRINTF(3, 4);

#endif
