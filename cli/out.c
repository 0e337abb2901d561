#include "cli/out.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "core/moments.h"
#include "holdfast/v1/cli.pb-c.h"
#include "schema/json.h"

enum { MOST_COLUMNS = 16, GAP = 2, SHORTEST_CUT = 8, NO_LIMIT = 1 << 20 };

struct cli_cell {
    char *text;
    enum cli_colour colour;
};

/* The terminal. */

static bool shows_colour(void)
{
    const char *none = getenv("NO_COLOR");
    const char *term = getenv("TERM");

    return isatty(STDOUT_FILENO) != 0 && (none == NULL || none[0] == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

/* COLUMNS counts even where there is no terminal, so that it can be asked for. */
static size_t line_width(void)
{
    const char *columns = getenv("COLUMNS");
    struct winsize size;
    int64_t value;

    if (columns != NULL && hf_parse_i64(columns, 20, NO_LIMIT, &value) == HF_OK)
        return (size_t)value;
    if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
        size.ws_col >= 20)
        return size.ws_col;
    return NO_LIMIT;
}

void cli_out_colour(struct hf_buf *out, enum cli_colour colour, const char *text)
{
    static const char *const CODES[] = { [CLI_PLAIN] = "",
                                         [CLI_GOOD] = "\033[32m",
                                         [CLI_WARN] = "\033[33m",
                                         [CLI_BAD] = "\033[31m",
                                         [CLI_DIM] = "\033[2m" };

    if (colour == CLI_PLAIN || !shows_colour())
        hf_buf_puts(out, text);
    else
        hf_buf_printf(out, "%s%s\033[0m", CODES[colour], text);
}

/* Characters, not bytes; each is taken for one column. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text != '\0'; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

/* What others wrote must not move the cursor, nor break the table. */
static void make_printable(char *text)
{
    size_t len = strlen(text);

    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
    }
    while (len > 0 && text[len - 1] == ' ')
        text[--len] = '\0';
}

/* Tables. */

void cli_out_wrapped(struct hf_buf *out, size_t indent, const char *text)
{
    size_t limit = line_width(), column = indent;

    while (*text != '\0') {
        size_t len = strcspn(text, " "), width = 0;

        for (size_t i = 0; i < len; i++)
            width += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (column > indent && column + 1 + width > limit) {
            hf_buf_printf(out, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            hf_buf_putc(out, ' ');
            column++;
        }
        hf_buf_append(out, text, len);
        column += width;
        text += len + strspn(text + len, " ");
    }
    hf_buf_putc(out, '\n');
}

void cli_table_init(struct cli_table *table, const struct cli_column *columns, size_t count)
{
    *table = (struct cli_table){ .columns = columns, .column_count = count };
}

void cli_table_done(struct cli_table *table)
{
    for (size_t i = 0; i < table->count; i++)
        free(table->cells[i].text);
    free(table->cells);
    *table = (struct cli_table){ 0 };
}

void cli_table_add(struct cli_table *table, enum cli_colour colour, const char *fmt, ...)
{
    char *text = NULL;
    va_list args;

    if (table->err != HF_OK)
        return;
    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    if (text == NULL ||
        !hf_grow(&table->cells, &table->cap, table->count + 1, sizeof *table->cells)) {
        free(text);
        table->err = HF_ENOMEM;
        return;
    }
    make_printable(text);
    table->cells[table->count++] = (struct cli_cell){ .text = text, .colour = colour };
}

struct layout {
    bool shown[MOST_COLUMNS];
    size_t width[MOST_COLUMNS];
};

static const char *text_of(const struct cli_cell *cell)
{
    return cell->text[0] != '\0' ? cell->text : "-";
}

static size_t total_width(const struct cli_table *table, const struct layout *layout)
{
    size_t total = 0;

    for (size_t i = 0; i < table->column_count; i++)
        total += layout->shown[i] ? layout->width[i] + GAP : 0;
    return total > 0 ? total - GAP : 0;
}

/* Of those that may go, the one that matters least; false when none may. */
static bool drop_one(const struct cli_table *table, struct layout *layout)
{
    size_t least = table->column_count;

    for (size_t i = 0; i < table->column_count; i++) {
        if (layout->shown[i] && table->columns[i].drop > 0 &&
            (least == table->column_count ||
             table->columns[i].drop > table->columns[least].drop))
            least = i;
    }
    if (least == table->column_count)
        return false;
    layout->shown[least] = false;
    return true;
}

/* Takes what is too much from the columns that may be cut; false when that is not enough. */
static bool cut(const struct cli_table *table, struct layout *layout, size_t limit)
{
    struct layout tried = *layout;
    size_t total = total_width(table, layout);

    for (size_t i = table->column_count; i-- > 0 && total > limit;) {
        size_t excess = total - limit, spare;

        if (!tried.shown[i] || !table->columns[i].cuts || tried.width[i] <= SHORTEST_CUT)
            continue;
        spare = tried.width[i] - SHORTEST_CUT;
        tried.width[i] -= excess < spare ? excess : spare;
        total = total_width(table, &tried);
    }
    if (total > limit)
        return false;
    *layout = tried;
    return true;
}

static struct layout lay_out(const struct cli *cli, const struct cli_table *table)
{
    struct layout layout = { 0 };
    size_t limit = line_width();

    for (size_t i = 0; i < table->column_count; i++) {
        layout.shown[i] = !table->columns[i].wide || cli->output == CLI_WIDE;
        layout.width[i] = strlen(table->columns[i].title);
    }
    for (size_t i = 0, column = 0; i < table->count; i++) {
        size_t own = width_of(text_of(&table->cells[i]));

        if (own > layout.width[column])
            layout.width[column] = own;
        column = column + 1 < table->column_count ? column + 1 : 0;
    }
    while (!cut(table, &layout, limit)) {
        if (!drop_one(table, &layout))
            break;
    }
    return layout;
}

/* The text, cut or filled up to its width. */
static void write_cell(struct hf_buf *out, const char *text, enum cli_colour colour,
                       size_t width, bool right, bool last)
{
    HF_CLEANUP_BUF struct hf_buf cell = { 0 };
    size_t own = width_of(text), shown = 0;

    for (const char *c = text; *c != '\0'; c++) {
        bool begins = ((unsigned char)*c & 0xc0) != 0x80;

        if (begins && own > width && shown == width - 1) {
            hf_buf_puts(&cell, "…");
            break;
        }
        shown += begins;
        hf_buf_putc(&cell, *c);
    }
    for (size_t i = own; right && i < width; i++)
        hf_buf_putc(out, ' ');
    cli_out_colour(out, colour, cell.data != NULL ? cell.data : "");
    for (size_t i = own; !right && !last && i < width; i++)
        hf_buf_putc(out, ' ');
    if (cell.err != HF_OK && out->err == HF_OK)
        out->err = cell.err;
}

static void write_row(const struct cli_table *table, const struct layout *layout,
                      const struct cli_cell *cells, struct hf_buf *out)
{
    size_t last = 0;

    for (size_t i = 0; i < table->column_count; i++)
        last = layout->shown[i] ? i : last;
    for (size_t i = 0; i <= last; i++) {
        if (!layout->shown[i])
            continue;
        write_cell(out, cells != NULL ? text_of(&cells[i]) : table->columns[i].title,
                   cells != NULL ? cells[i].colour : CLI_DIM, layout->width[i],
                   table->columns[i].right, i == last);
        hf_buf_puts(out, i == last ? "\n" : "  ");
    }
}

int cli_table_print(struct cli *cli, struct cli_table *table, const char *nothing)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    struct layout layout;

    if (table->err != HF_OK)
        return cli_fail(cli, table->err, "%s", hf_err_text(table->err));
    if (table->count == 0) {
        (void)fprintf(stderr, "%s\n", nothing);
        return HF_OK;
    }
    layout = lay_out(cli, table);
    write_row(table, &layout, NULL, &out);
    for (size_t i = 0; i < table->count; i += table->column_count)
        write_row(table, &layout, &table->cells[i], &out);
    return cli_out_text(cli, &out);
}

/* Everything else. */

void cli_out_field(struct hf_buf *out, const char *title, const char *fmt, ...)
{
    HF_CLEANUP_FREE char *text = NULL;
    va_list args;

    va_start(args, fmt);
    if (vasprintf(&text, fmt, args) < 0)
        text = NULL;
    va_end(args);
    if (text == NULL) {
        out->err = HF_ENOMEM;
        return;
    }
    make_printable(text);
    if (text[0] != '\0')
        hf_buf_printf(out, "%-12s %s\n", title, text);
}

int cli_out_failed(struct cli *cli)
{
    int why = errno;

    if (why == EPIPE) {
        (void)signal(SIGPIPE, SIG_DFL);
        (void)raise(SIGPIPE);
    }
    return cli_fail(cli, HF_EIO, "standard output: %s", strerror(why));
}

int cli_out_text(struct cli *cli, const struct hf_buf *text)
{
    if (text->err != HF_OK)
        return cli_fail(cli, text->err, "%s", hf_err_text(text->err));
    if (text->len == 0)
        return HF_OK;
    if (fwrite(text->data, 1, text->len, stdout) != text->len || fflush(stdout) != 0)
        return cli_out_failed(cli);
    return HF_OK;
}

static int print_json(struct cli *cli, const ProtobufCMessage *message, bool pretty)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    int rc = pretty ? hf_json_encode_pretty(message, &out) : hf_json_encode(message, &out);

    if (rc != HF_OK)
        return cli_fail(cli, rc, "this cannot be written as JSON: %s", hf_err_text(rc));
    hf_buf_putc(&out, '\n');
    return cli_out_text(cli, &out);
}

int cli_out_json(struct cli *cli, const ProtobufCMessage *message)
{
    return print_json(cli, message, true);
}

int cli_out_json_line(struct cli *cli, const ProtobufCMessage *message)
{
    return print_json(cli, message, false);
}

/* The two largest units: nobody wants to read more. */
static void format_span(hf_ms span, char out[CLI_AGE_SIZE])
{
    long long s = span / 1000;

    if (s < 60)
        (void)snprintf(out, CLI_AGE_SIZE, "%llds", s);
    else if (s < 3600)
        (void)snprintf(out, CLI_AGE_SIZE, s % 60 ? "%lldm%llds" : "%lldm", s / 60, s % 60);
    else if (s < 86400)
        (void)snprintf(out, CLI_AGE_SIZE, s / 60 % 60 ? "%lldh%lldm" : "%lldh", s / 3600,
                       s / 60 % 60);
    else
        (void)snprintf(out, CLI_AGE_SIZE, s / 3600 % 24 ? "%lldd%lldh" : "%lldd", s / 86400,
                       s / 3600 % 24);
}

const char *cli_age(const Google__Protobuf__Timestamp *at, char out[CLI_AGE_SIZE])
{
    hf_ms age = hf_clock_wall() - hf_moment_read(at);

    out[0] = '\0';
    if (at != NULL)
        format_span(age > 0 ? age : 0, out);
    return out;
}

const char *cli_until(const Google__Protobuf__Timestamp *at, char out[CLI_AGE_SIZE])
{
    hf_ms left = hf_moment_read(at) - hf_clock_wall();

    out[0] = '\0';
    if (at != NULL && left <= 0)
        (void)snprintf(out, CLI_AGE_SIZE, "now");
    if (at != NULL && left > 0) {
        char span[CLI_AGE_SIZE];

        format_span(left, span);
        (void)snprintf(out, CLI_AGE_SIZE, "in %.20s", span);
    }
    return out;
}

const char *cli_time(const Google__Protobuf__Timestamp *at, char out[CLI_AGE_SIZE])
{
    char *mark;

    out[0] = '\0';
    if (at == NULL)
        return out;
    (void)hf_format_time(at->seconds * 1000, out, CLI_AGE_SIZE);
    mark = strchr(out, 'T');
    if (mark != NULL)
        *mark = ' ';
    mark = strchr(out, 'Z');
    if (mark != NULL)
        *mark = '\0';
    return out;
}

int cli_out_done(struct cli *cli, const char *subject, const char *what, const char *sentence)
{
    Holdfast__V1__Done done = HOLDFAST__V1__DONE__INIT;
    HF_CLEANUP_BUF struct hf_buf out = { 0 };

    done.subject = (char *)subject;
    done.what = (char *)what;
    if (cli->output == CLI_JSON)
        return cli_out_json(cli, &done.base);
    hf_buf_printf(&out, "%s\n", cli->output == CLI_NAME ? subject : sentence);
    return cli_out_text(cli, &out);
}
