/* gen_configuration.c - writes the option tables into docs/configuration.md.
 *
 *     gen_configuration [--check] FILE
 *
 * Replaces what is between the two marks in FILE. With --check it only says, by exit status 1,
 * that FILE is out of date. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/settings.h"
#include "base/buf.h"
#include "controller/settings.h"
#include "schema/config.h"
#include "schema/options.h"

#define BEGIN "<!-- options: begin (written by ./dev docs) -->\n"
#define END   "<!-- options: end -->\n"

struct settings {
    bool check;
};

static const struct hf_option TABLE[] = {
    { .flag = "check",
      HF_OPTION_FIELD(BOOL, struct settings, check),
      .help = "Only say whether the file is up to date." },
};

static int complain(const char *file, const char *what)
{
    (void)fprintf(stderr, "gen_configuration: %s: %s\n", file, what);
    return EXIT_FAILURE;
}

static bool read_page(const char *file, struct hf_buf *page)
{
    FILE *in = fopen(file, "re");
    char chunk[4096];
    size_t n;

    if (in == NULL)
        return false;
    while ((n = fread(chunk, 1, sizeof chunk, in)) > 0)
        hf_buf_append(page, chunk, n);
    bool fine = ferror(in) == 0 && page->err == HF_OK && page->data != NULL;
    return fclose(in) == 0 && fine;
}

static bool write_page(const char *file, const struct hf_buf *page)
{
    FILE *out = fopen(file, "we");
    bool fine;

    if (out == NULL)
        return false;
    fine = fwrite(page->data, 1, page->len, out) == page->len;
    return fclose(out) == 0 && fine;
}

/* The programs' own tables join the common one here. */
static int write_reference(struct hf_buf *out)
{
    const struct hf_option_group groups[] = {
        hf_options_group(NULL),    ctl_settings_group(NULL),  ctl_policy_group(NULL),
        link_settings_group(NULL), link_launcher_group(NULL), link_agent_group(NULL),
    };

    /* One by one: what two programs call alike is not the same. */
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        HF_CLEANUP_CONFIG struct hf_config cfg = { 0 };
        int rc = hf_config_init(&cfg, &groups[i], 1);

        if (rc < 0)
            return rc;
        if (i > 0)
            hf_buf_putc(out, '\n');
        hf_config_write_markdown(&cfg, out);
    }
    return out->err;
}

/* The page anew: its own text around, the tables between the marks. */
static int renew(const struct hf_buf *old, struct hf_buf *page)
{
    const char *begin = strstr(old->data, BEGIN);
    const char *end = begin != NULL ? strstr(begin, END) : NULL;
    int rc;

    if (end == NULL)
        return HF_ENOENT;
    begin += strlen(BEGIN);
    hf_buf_append(page, old->data, (size_t)(begin - old->data));
    hf_buf_putc(page, '\n');
    rc = write_reference(page);
    hf_buf_putc(page, '\n');
    hf_buf_puts(page, end);
    return rc < 0 ? rc : page->err;
}

static int run(const char *file, bool check)
{
    HF_CLEANUP_BUF struct hf_buf old = { 0 };
    HF_CLEANUP_BUF struct hf_buf page = { 0 };
    int rc;

    if (!read_page(file, &old))
        return complain(file, "cannot be read");
    rc = renew(&old, &page);
    if (rc == HF_ENOENT)
        return complain(file, "the marks are missing");
    if (rc < 0)
        return complain(file, hf_err_text(rc));
    if (strcmp(old.data, page.data) == 0)
        return EXIT_SUCCESS;
    if (check)
        return complain(file, "out of date: run ./dev docs");
    if (!write_page(file, &page))
        return complain(file, "cannot be written");
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct settings settings;
    const struct hf_option_group group = {
        .title = "Options", .options = TABLE, .count = 1, .target = &settings
    };
    HF_CLEANUP_CONFIG struct hf_config cfg = { 0 };
    struct hf_error err = { "out of memory" };

    if (hf_config_init(&cfg, &group, 1) < 0 || hf_config_read_args(&cfg, argc, argv, &err) < 0)
        return complain("command line", err.text);
    if (cfg.arguments.count != 1)
        return complain("command line", "usage: gen_configuration [--check] FILE");
    return run(cfg.arguments.items[0], settings.check);
}
