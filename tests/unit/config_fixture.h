/* config_fixture.h - a table with one option of every type, and what its tests share. */
#ifndef HF_TESTS_CONFIG_FIXTURE_H
#define HF_TESTS_CONFIG_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "schema/config.h"

#define DIR         HOLDFAST_SOURCE_DIR "/tests/unit/config/"
#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

enum colour { RED, GREEN, BLUE };
static const char *const COLOURS[] = { "red", "green", "blue", NULL };

struct settings {
    const char *title;
    const char *name;
    bool enabled;
    bool eager;
    int64_t workers;
    hf_ms ttl;
    enum colour colour;
    struct hf_strings labels;
    struct hf_strings peers;
    const char *token;
    const char *file;
    bool quick;
};

/* One option of every type, and one of every kind that the common table lacks. */
static const struct hf_option TABLE[] = {
    { .key = "title",
      .flag = "title",
      .env = "HOLDFAST_TITLE",
      .value = "TEXT",
      HF_OPTION_FIELD(STRING, struct settings, title),
      .help = "What to print first." },
    { .key = "server.name",
      .flag = "name",
      .env = "HOLDFAST_NAME",
      .env_fallback = "ETCDCTL_NAME",
      .value = "NAME",
      HF_OPTION_FIELD(NAME, struct settings, name),
      .preset = "main",
      .help = "The name of the server, which appears in keys." },
    { .key = "server.enabled",
      .flag = "enabled",
      .env = "HOLDFAST_ENABLED",
      HF_OPTION_FIELD(BOOL, struct settings, enabled),
      .preset = "true",
      .help = "Whether to serve at all.",
      .counts = HF_COUNTS_ON_RELOAD },
    { .key = "server.eager",
      .flag = "eager",
      HF_OPTION_FIELD(BOOL, struct settings, eager),
      .help = "Start before anyone asks." },
    { .key = "server.workers",
      .flag = "workers",
      .env = "HOLDFAST_WORKERS",
      .value = "N",
      HF_OPTION_FIELD(INT, struct settings, workers),
      .min = -1,
      .max = 100,
      .preset = "4",
      .help = "How many workers to run, -1 for one per processor, with a sentence that is long "
              "enough to need three lines on a screen that is eighty columns wide." },
    { .key = "server.limits.ttl",
      .flag = "ttl",
      .letter = 't',
      .env = "HOLDFAST_TTL",
      .value = "DURATION",
      HF_OPTION_FIELD(DURATION, struct settings, ttl),
      .min = 2000,
      .max = 600000,
      .preset = "15s",
      .help = "How long to remember a client.",
      .counts = HF_COUNTS_ON_RELOAD },
    { .key = "colour",
      .flag = "colour",
      .env = "HOLDFAST_COLOUR",
      HF_OPTION_FIELD(ENUM, struct settings, colour),
      .words = COLOURS,
      .preset = "green",
      .help = "The colour of the door." },
    { .key = "labels",
      .flag = "labels",
      .env = "HOLDFAST_LABELS",
      .value = "TEXT,...",
      HF_OPTION_FIELD(STRINGS, struct settings, labels),
      .help = "Words to attach." },
    { .key = "peers",
      .flag = "peers",
      .env = "HOLDFAST_PEERS",
      .value = "URL,...",
      HF_OPTION_FIELD(ENDPOINTS, struct settings, peers),
      .preset = "http://127.0.0.1:2379",
      .help = "Who to talk to." },
    { .key = "server.token",
      .env = "HOLDFAST_SECRET",
      .value = "TEXT",
      HF_OPTION_FIELD(NAME, struct settings, token),
      .help = "What clients must present.",
      .secret = true },
    { .flag = "file",
      .value = "FILE",
      HF_OPTION_FIELD(STRING, struct settings, file),
      .help = "Where to read more." },
    { .flag = "quick",
      .letter = 'q',
      HF_OPTION_FIELD(BOOL, struct settings, quick),
      .help = "Do not wait." },
};

static struct settings settings;
static struct hf_config cfg;
static struct hf_error err;

static inline int setup_config(void)
{
    const struct hf_option_group groups[] = {
        { .title = "Server", .options = TABLE, .count = 9, .target = &settings },
        { .title = "Other",
          .options = TABLE + 9,
          .count = COUNT_OF(TABLE) - 9,
          .target = &settings,
          .counts = HF_COUNTS_ON_START },
    };

    memset(&settings, 0xff, sizeof settings); /* init must not rely on zeros */
    memset(&err, 0, sizeof err);
    return hf_config_init(&cfg, groups, COUNT_OF(groups));
}

static inline void setup(void)
{
    ck_assert_int_eq(setup_config(), HF_OK);
}

static inline void teardown(void)
{
    hf_config_done(&cfg);
}

/* What main() gets, from literals. */
#define WORDS(...) ((char *const *)(const char *[]){ __VA_ARGS__, NULL })

#define ARGS(...) read_args(WORDS("prog", __VA_ARGS__))
#define ENV(...)  hf_config_read_env(&cfg, WORDS(__VA_ARGS__), &err)
#define FILE_(s)  hf_config_read_text(&cfg, "f.yaml", s, strlen(s), &err)

static inline int read_args(char *const *argv)
{
    int argc = 0;

    while (argv[argc] != NULL)
        argc++;
    return hf_config_read_args(&cfg, argc, argv, &err);
}

static inline void assert_list(struct hf_strings list, const char *joined)
{
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };

    for (size_t i = 0; i < list.count; i++)
        hf_buf_printf(&buf, "%s%s", i > 0 ? "|" : "", list.items[i]);
    ck_assert_str_eq(buf.data, joined);
}

static inline char *read_whole(const char *path)
{
    FILE *file = fopen(path, "re");
    HF_CLEANUP_BUF struct hf_buf buf = { 0 };
    char *text = NULL;
    int c;

    ck_assert_msg(file != NULL, "cannot open %s", path);
    while ((c = fgetc(file)) != EOF)
        hf_buf_putc(&buf, (char)c);
    (void)fclose(file);
    ck_assert_int_eq(hf_buf_take(&buf, &text, NULL), HF_OK);
    return text;
}

/* The text must be what the file says. On a wanted change: write it there and look at the diff.
 */
static inline void assert_golden(const char *name, const char *text)
{
    char path[512];

    (void)snprintf(path, sizeof path, DIR "%s", name);
    HF_CLEANUP_FREE char *want = read_whole(path);
    ck_assert_msg(strcmp(text, want) == 0, "%s should be:\n%s", path, text);
}

#endif
