/* config_help.c - the option table for people: --help and the reference page. */
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "schema/config_private.h"

#define HELP_WIDTH  80
#define HELP_COLUMN 28 /* where the sentences begin */

/* Bools that a file can switch on can be switched off on the command line: worth showing. */
static bool is_negatable(const struct hf_option *option)
{
    return option->type == HF_OPTION_BOOL && option->key != NULL;
}

/* "one", "one, two", with `between` between them. */
static void write_words(struct hf_buf *out, const char *const *words, const char *between)
{
    for (size_t i = 0; words[i] != NULL; i++)
        hf_buf_printf(out, "%s%s", i > 0 ? between : "", words[i]);
}

/* "-h, --help" or "--endpoints URL,..." */
static void write_flag(struct hf_buf *out, const struct hf_option *option)
{
    if (option->letter != 0)
        hf_buf_printf(out, "-%c, ", option->letter);
    hf_buf_printf(out, "--%s%s", is_negatable(option) ? "[no-]" : "", option->flag);
    if (option->type == HF_OPTION_BOOL)
        return;
    hf_buf_putc(out, ' ');
    if (option->type == HF_OPTION_ENUM)
        write_words(out, option->words, "|");
    else
        hf_buf_puts(out, option->value);
}

/* Everything but the flag, as one paragraph. */
static void write_sentences(struct hf_buf *out, const struct hf_option *option)
{
    hf_buf_puts(out, option->help);
    if (option->preset != NULL)
        hf_buf_printf(out, " [default: %s]", option->preset);
    if (option->env != NULL)
        hf_buf_printf(out, " [env: %s%s%s]", option->env,
                      option->env_fallback != NULL ? ", " : "",
                      option->env_fallback != NULL ? option->env_fallback : "");
}

static void write_spaces(struct hf_buf *out, size_t count)
{
    while (count-- > 0)
        hf_buf_putc(out, ' ');
}

/* The paragraph in the right-hand column, which the line has reached already. What is in
 * brackets stays together. */
static void write_wrapped(struct hf_buf *out, const char *text)
{
    size_t column = HELP_COLUMN;

    while (*text != '\0') {
        size_t len = text[0] == '[' ? strcspn(text, "]") + 1 : strcspn(text, " ");

        if (column > HELP_COLUMN && column + 1 + len > HELP_WIDTH) {
            hf_buf_putc(out, '\n');
            write_spaces(out, HELP_COLUMN);
            column = HELP_COLUMN;
        } else if (column > HELP_COLUMN) {
            hf_buf_putc(out, ' ');
            column++;
        }
        hf_buf_append(out, text, len);
        column += len;
        text += len + strspn(text + len, " ");
    }
    hf_buf_putc(out, '\n');
}

static void write_help_entry(struct hf_buf *out, const struct hf_option *option)
{
    HF_CLEANUP_BUF struct hf_buf sentences = { 0 };
    size_t start = out->len;
    size_t used;

    hf_buf_puts(out, "  ");
    write_flag(out, option);
    used = out->len - start;
    if (used + 2 > HELP_COLUMN) {
        hf_buf_putc(out, '\n');
        used = 0;
    }
    write_spaces(out, HELP_COLUMN - used);

    write_sentences(&sentences, option);
    if (sentences.err != HF_OK) {
        if (out->err == HF_OK)
            out->err = sentences.err;
        return;
    }
    write_wrapped(out, sentences.data);
}

void hf_config_write_help(const struct hf_config *cfg, struct hf_buf *out)
{
    const char *title = NULL;

    for (size_t i = 0; i < cfg->count; i++) {
        const struct hf_config_entry *entry = &cfg->entries[i];

        if (entry->option->flag == NULL)
            continue;
        if (title == NULL || strcmp(title, entry->title) != 0)
            hf_buf_printf(out, "%s%s:\n", title != NULL ? "\n" : "", entry->title);
        title = entry->title;
        write_help_entry(out, entry->option);
    }
}

static void write_duration(struct hf_buf *out, hf_ms value)
{
    char text[32];

    (void)hf_format_duration(value, text, sizeof text);
    hf_buf_puts(out, text);
}

static void write_type(struct hf_buf *out, const struct hf_option *option)
{
    switch (option->type) {
    case HF_OPTION_STRING: hf_buf_puts(out, "text"); break;
    case HF_OPTION_NAME: hf_buf_puts(out, "name"); break;
    case HF_OPTION_BOOL: hf_buf_puts(out, "`true` or `false`"); break;
    case HF_OPTION_INT:
        hf_buf_printf(out, "whole number from %lld to %lld", (long long)option->min,
                      (long long)option->max);
        break;
    case HF_OPTION_DURATION:
        hf_buf_puts(out, "duration from ");
        write_duration(out, option->min);
        hf_buf_puts(out, " to ");
        write_duration(out, option->max);
        break;
    case HF_OPTION_ENUM:
        hf_buf_puts(out, "one of `");
        write_words(out, option->words, "`, `");
        hf_buf_putc(out, '`');
        break;
    case HF_OPTION_STRINGS: hf_buf_puts(out, "list of texts"); break;
    case HF_OPTION_ENDPOINTS: hf_buf_puts(out, "list of endpoints"); break;
    }
}

static const char *const COUNTS[] = {
    [HF_COUNTS_ON_RESTART] = "on restart",
    [HF_COUNTS_ON_RELOAD] = "on reload",
    [HF_COUNTS_ON_START] = "after a reload, when an agent is started",
};

static void write_markdown_entry(struct hf_buf *out, const struct hf_config_entry *entry)
{
    const struct hf_option *option = entry->option;

    hf_buf_printf(out, "\n### `%s%s`\n\n%s\n\n", option->key != NULL ? "" : "--",
                  option->key != NULL ? option->key : option->flag, option->help);
    hf_buf_puts(out, "- Type: ");
    write_type(out, option);
    if (option->preset != NULL)
        hf_buf_printf(out, "; default `%s`", option->preset);
    if (option->flag != NULL) {
        hf_buf_puts(out, "\n- Flag: `");
        write_flag(out, option);
        hf_buf_putc(out, '`');
    }
    if (option->env != NULL)
        hf_buf_printf(out, "\n- Environment: `%s`", option->env);
    if (option->env_fallback != NULL)
        hf_buf_printf(out, ", else `%s`", option->env_fallback);
    if (option->key != NULL)
        hf_buf_printf(out, "\n- A change takes effect: %s", COUNTS[entry->counts]);
    if (option->secret)
        hf_buf_puts(out, "\n- Secret: never printed");
    hf_buf_putc(out, '\n');
}

void hf_config_write_markdown(const struct hf_config *cfg, struct hf_buf *out)
{
    const char *title = NULL;

    for (size_t i = 0; i < cfg->count; i++) {
        const struct hf_config_entry *entry = &cfg->entries[i];

        if (title == NULL || strcmp(title, entry->title) != 0)
            hf_buf_printf(out, "%s## %s\n", title != NULL ? "\n" : "", entry->title);
        title = entry->title;
        write_markdown_entry(out, entry);
    }
}
