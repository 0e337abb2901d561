/* Whatever is accepted must survive its own dump; whatever is refused must be explained.
 * Input: a file, or after a first byte of 1 or 2 a command line or an environment, one word per
 * line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "schema/config.h"
#include "schema/options.h"

#define WORDS_MAX 64

enum colour { RED, GREEN };
static const char *const COLOURS[] = { "red", "green", NULL };

struct settings {
    struct hf_options common;
    bool once;
    int64_t workers;
    hf_ms ttl;
    enum colour colour;
    struct hf_strings labels;
    const char *token;
};

/* What the common table lacks. */
static const struct hf_option TABLE[] = {
    { .key = "run.once",
      .flag = "once",
      .env = "HOLDFAST_ONCE",
      HF_OPTION_FIELD(BOOL, struct settings, once),
      .help = "." },
    { .key = "run.workers",
      .flag = "workers",
      .value = "N",
      HF_OPTION_FIELD(INT, struct settings, workers),
      .min = INT64_MIN,
      .max = INT64_MAX,
      .help = "." },
    { .key = "run.limits.ttl",
      .flag = "ttl",
      .letter = 't',
      .env = "HOLDFAST_TTL",
      .value = "DURATION",
      HF_OPTION_FIELD(DURATION, struct settings, ttl),
      .min = -1000,
      .max = 600000,
      .help = "." },
    { .key = "colour",
      .flag = "colour",
      HF_OPTION_FIELD(ENUM, struct settings, colour),
      .words = COLOURS,
      .help = "." },
    { .key = "labels",
      .flag = "labels",
      .env = "HOLDFAST_LABELS",
      .value = "TEXT,...",
      HF_OPTION_FIELD(STRINGS, struct settings, labels),
      .help = "." },
    { .key = "run.token",
      .env = "HOLDFAST_SECRET",
      .value = "TEXT",
      HF_OPTION_FIELD(STRING, struct settings, token),
      .help = ".",
      .secret = true },
};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void start(struct hf_config *cfg, struct settings *settings)
{
    const struct hf_option_group groups[] = {
        { .title = "Options",
          .options = TABLE,
          .count = sizeof TABLE / sizeof TABLE[0],
          .target = settings },
        hf_options_group(&settings->common),
    };

    require(hf_config_init(cfg, groups, 2) == HF_OK);
}

static int read_words(struct hf_config *cfg, char *text, bool args, struct hf_error *err)
{
    char program[] = "prog";
    char *words[WORDS_MAX + 2] = { program };
    char *save = NULL;
    int count = 1;

    for (char *word = strtok_r(text, "\n", &save); word != NULL && count <= WORDS_MAX;
         word = strtok_r(NULL, "\n", &save))
        words[count++] = word;
    if (args)
        return hf_config_read_args(cfg, count, words, err);
    return hf_config_read_env(cfg, words + 1, err);
}

static int read_input(struct hf_config *cfg, const uint8_t *data, size_t size,
                      struct hf_error *err)
{
    HF_CLEANUP_FREE char *text = NULL;

    if (size == 0 || (data[0] != 1 && data[0] != 2))
        return hf_config_read_text(cfg, "input", (const char *)data, size, err);
    text = strndup((const char *)data + 1, size - 1);
    require(text != NULL);
    return read_words(cfg, text, data[0] == 1, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    HF_CLEANUP_CONFIG struct hf_config cfg = { 0 };
    HF_CLEANUP_CONFIG struct hf_config again = { 0 };
    HF_CLEANUP_BUF struct hf_buf dump = { 0 };
    const struct hf_option *change;
    struct settings settings;
    struct settings unused;
    struct hf_error err = { "" };
    size_t cursor = 0;

    start(&cfg, &settings);
    if (read_input(&cfg, data, size, &err) != HF_OK) {
        require(err.text[0] != '\0');
        return 0;
    }
    (void)hf_options_check(&settings.common, &err);

    hf_config_write_dump(&cfg, &dump);
    require(dump.err == HF_OK);
    start(&again, &unused);
    require(hf_config_read_text(&again, "dump", dump.data, dump.len, &err) == HF_OK);
    while ((change = hf_config_next_change(&cfg, &again, &cursor)) != NULL)
        require(change->secret || change->key == NULL);
    return 0;
}
