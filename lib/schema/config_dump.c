/* config_dump.c - the present values as a file that can be read back. */
#include <string.h>

#include "schema/config_private.h"

#define COMMENT_COLUMN 40

/* The character at *text, valid UTF-8, which is moved behind it. */
static uint32_t next_character(const char **text)
{
    const unsigned char *p = (const unsigned char *)*text;
    unsigned more = p[0] < 0xc0 ? 0 : p[0] < 0xe0 ? 1 : p[0] < 0xf0 ? 2 : 3;
    uint32_t c = more == 0 ? p[0] : p[0] & (0x3fu >> more);

    for (unsigned i = 1; i <= more; i++)
        c = c << 6 | (p[i] & 0x3fu);
    *text += more + 1;
    return c;
}

/* YAML refuses some characters as they are, and takes others for the end of a line. */
static bool needs_escape(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029 || c == 0xfeff ||
           c == 0xfffe || c == 0xffff;
}

static void write_quoted(struct hf_buf *out, const char *text)
{
    hf_buf_putc(out, '"');
    while (*text != '\0') {
        const char *start = text;
        uint32_t c = next_character(&text);

        if (needs_escape(c)) {
            hf_buf_printf(out, "\\u%04x", (unsigned)c);
        } else {
            if (c == '"' || c == '\\')
                hf_buf_putc(out, '\\');
            hf_buf_append(out, start, (size_t)(text - start));
        }
    }
    hf_buf_putc(out, '"');
}

static void write_value(struct hf_buf *out, const struct hf_config_entry *entry)
{
    switch (entry->option->type) {
    case HF_OPTION_STRING:
    case HF_OPTION_NAME: write_quoted(out, entry->value.items[0]); return;
    case HF_OPTION_BOOL:
    case HF_OPTION_INT:
    case HF_OPTION_DURATION:
    case HF_OPTION_ENUM: hf_buf_puts(out, entry->value.items[0]); return;
    case HF_OPTION_STRINGS:
    case HF_OPTION_ENDPOINTS: break;
    }
    for (size_t i = 0; i < entry->value.count; i++) {
        hf_buf_puts(out, i == 0 ? "[" : ", ");
        write_quoted(out, entry->value.items[i]);
    }
    hf_buf_putc(out, ']');
}

/* For a comment, which ends where YAML sees the end of a line. */
static void write_path(struct hf_buf *out, const char *path)
{
    while (*path != '\0') {
        const char *start = path;

        if (needs_escape(next_character(&path)))
            hf_buf_putc(out, '?');
        else
            hf_buf_append(out, start, (size_t)(path - start));
    }
}

static void write_origin(struct hf_buf *out, const struct hf_config *cfg,
                         const struct hf_config_entry *entry)
{
    switch (entry->source) {
    case HF_CONFIG_DEFAULT: hf_buf_puts(out, "default"); break;
    case HF_CONFIG_FILE:
        write_path(out, cfg->path);
        hf_buf_printf(out, ":%zu", entry->line);
        break;
    case HF_CONFIG_ENV_FALLBACK: hf_buf_puts(out, entry->option->env_fallback); break;
    case HF_CONFIG_ENV: hf_buf_puts(out, entry->option->env); break;
    case HF_CONFIG_FLAG: hf_buf_printf(out, "--%s", entry->option->flag); break;
    }
}

static void write_entry(struct hf_buf *out, const struct hf_config *cfg,
                        const struct hf_config_entry *entry)
{
    const struct hf_option *option = entry->option;
    bool settable = option->key != NULL && !option->secret;
    size_t start = out->len;

    hf_buf_printf(out, "%s%s%s: ", settable ? "" : "# ", option->key != NULL ? "" : "--",
                  option->key != NULL ? option->key : option->flag);
    if (option->secret)
        hf_buf_puts(out, "(not shown)");
    else
        write_value(out, entry);
    while (out->err == HF_OK && out->len - start < COMMENT_COLUMN)
        hf_buf_putc(out, ' ');
    hf_buf_puts(out, " # ");
    write_origin(out, cfg, entry);
    hf_buf_putc(out, '\n');
}

void hf_config_write_dump(const struct hf_config *cfg, struct hf_buf *out)
{
    for (size_t i = 0; i < cfg->count; i++) {
        const struct hf_config_entry *entry = &cfg->entries[i];
        const struct hf_option *option = entry->option;

        if (option->key == NULL && (entry->value.count == 0 || option->type == HF_OPTION_BOOL))
            continue; /* --help and its like are no settings */
        if (entry->value.count == 0)
            hf_buf_printf(out, "# %s is not set\n", option->key);
        else
            write_entry(out, cfg, entry);
    }
}
