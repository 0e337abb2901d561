/* config_private.h - what the files of the config module share. Nobody else includes it. */
#ifndef HF_SCHEMA_CONFIG_PRIVATE_H
#define HF_SCHEMA_CONFIG_PRIVATE_H

#include "schema/config.h"

#define HF_CONFIG_KEY_MAX 128 /* bytes of a dotted path; a longer one is unknown */

/* Where a text stands: the head of every error sentence. */
struct hf_config_place {
    enum hf_config_source source;
    const char *name; /* "--flag", the variable or the dotted path, as the user wrote it */
    const char *path; /* of the file */
    size_t line;      /* 1-based, as column */
    size_t column;
};

/* Sets err to "<place>: <sentence>" and returns code. */
int hf_config_fail(const struct hf_config_place *place, int code, struct hf_error *err,
                   const char *fmt, ...) HF_PRINTF(4, 5);

#define HF_CONFIG_QUOTE_MAX 48

/* Foreign text for a sentence: in quotes, cut, without control characters. Returns `out`. */
const char *hf_config_quote(const char *text, char out[HF_CONFIG_QUOTE_MAX]);

/* Texts on their way to an option, one after the other with a NUL behind each.
 * Zero-initialise. */
struct hf_config_items {
    struct hf_buf bytes;
    size_t count;
};

void hf_config_items_add(struct hf_config_items *items, const char *text, size_t len);
void hf_config_items_done(struct hf_config_items *items);

#define HF_CLEANUP_CONFIG_ITEMS __attribute__((cleanup(hf_config_items_done)))

/* Checks a value and keeps it, unless the present one is from a higher source. */
int hf_config_set_items(struct hf_config_entry *entry, const struct hf_config_items *items,
                        const struct hf_config_place *place,
                        struct hf_error *err) HF_MUST_CHECK;
int hf_config_set_text(struct hf_config_entry *entry, const char *text,
                       const struct hf_config_place *place, struct hf_error *err) HF_MUST_CHECK;

bool hf_config_is_list(const struct hf_option *option);

/* Checks `value` by the option's rules and writes the typed result to `out`, which has the type
 * of the option's member. Texts in it point into `value`. */
int hf_config_parse_value(const struct hf_option *option, const struct hf_strings *value,
                          void *out, const struct hf_config_place *place,
                          struct hf_error *err) HF_MUST_CHECK;

/* Writes the zero of the option's type to `out`. */
void hf_config_clear_value(const struct hf_option *option, void *out);

/* The nearest of the words offered so far. Initialise with .word = what the user wrote. */
struct hf_config_guess {
    const char *word;
    char best[HF_CONFIG_KEY_MAX]; /* "" while nothing is near enough */
    size_t distance;              /* of best */
};

void hf_config_guess_offer(struct hf_config_guess *guess, const char *known, size_t len);

#endif
