/* out.h - what a command prints: a table for people, JSON for scripts.
 *
 * A table fits the terminal: columns that matter least are left out first, then long cells are
 * cut. Into a file or a pipe nothing is left out or cut. Colours only on a terminal, and never
 * with NO_COLOR. */
#ifndef CLI_OUT_H
#define CLI_OUT_H

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/cli.h"
#include "google/protobuf/timestamp.pb-c.h"

enum cli_colour { CLI_PLAIN, CLI_GOOD, CLI_WARN, CLI_BAD, CLI_DIM };

struct cli_column {
    const char *title;
    unsigned drop; /* 0: always shown; else the largest is the first to go */
    bool wide;     /* only with -o wide */
    bool cuts;     /* may be cut when the line is too long */
    bool right;    /* numbers */
};

/* At most 16 columns, a compile-time array that outlives the table. */
struct cli_table {
    const struct cli_column *columns;
    size_t column_count;
    struct cli_cell *cells;
    size_t count, cap;
    int err;
};

void cli_table_init(struct cli_table *table, const struct cli_column *columns, size_t count);
void cli_table_done(struct cli_table *table);

/* The next cell, row by row. NULL or "" is printed as "-". */
void cli_table_add(struct cli_table *table, enum cli_colour colour, const char *fmt, ...)
    HF_PRINTF(3, 4);

/* Prints it, or `nothing` (a sentence) when it has no rows. */
int cli_table_print(struct cli *cli, struct cli_table *table,
                    const char *nothing) HF_MUST_CHECK;

#define CLI_CLEANUP_TABLE __attribute__((cleanup(cli_table_done)))

/* "KEY   value" lines for one object. A NULL or empty value is left out. */
void cli_out_field(struct hf_buf *out, const char *title, const char *fmt, ...) HF_PRINTF(3, 4);

/* The message as indented JSON and a newline; or as one line of it. */
int cli_out_json(struct cli *cli, const ProtobufCMessage *message) HF_MUST_CHECK;
int cli_out_json_line(struct cli *cli, const ProtobufCMessage *message) HF_MUST_CHECK;

/* What was done where no record is left to show: the sentence, or JSON. */
int cli_out_done(struct cli *cli, const char *subject, const char *what,
                 const char *sentence) HF_MUST_CHECK;

/* Text and a newline, behind `indent` columns that are there already; what does not fit the
 * line goes on in the next one, in the same column. */
void cli_out_wrapped(struct hf_buf *out, size_t indent, const char *text);

/* Standard output could not be written to (errno). Whoever has read enough, as `head` does, is
 * not told of an error: like everybody in a pipe, this ends by SIGPIPE. */
int cli_out_failed(struct cli *cli) HF_MUST_CHECK;

/* All of the text to stdout. */
int cli_out_text(struct cli *cli, const struct hf_buf *text) HF_MUST_CHECK;

/* Text in that colour, where colours are shown. */
void cli_out_colour(struct hf_buf *out, enum cli_colour colour, const char *text);

#define CLI_AGE_SIZE 32

/* "14s", "3m", "2h5m": how long ago `at` was, by this machine's clock; "" for NULL. */
const char *cli_age(const Google__Protobuf__Timestamp *at, char out[CLI_AGE_SIZE]);

/* "in 14s", "now", or "" for NULL. */
const char *cli_until(const Google__Protobuf__Timestamp *at, char out[CLI_AGE_SIZE]);

/* "2026-01-31 08:15:30" in UTC; "" for NULL. */
const char *cli_time(const Google__Protobuf__Timestamp *at, char out[CLI_AGE_SIZE]);

#endif
