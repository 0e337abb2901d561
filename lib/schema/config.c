#include "schema/config.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/str.h"
#include "schema/config_private.h"

#define PATH_SHOWN_MAX 80

/* A long path loses its head: what matters is the file's name, and that the sentence fits. */
static const char *shown_path(const char *path, const char **ret_dots)
{
    size_t len = strlen(path);

    *ret_dots = len > PATH_SHOWN_MAX ? "..." : "";
    return len > PATH_SHOWN_MAX ? path + len - PATH_SHOWN_MAX : path;
}

int hf_config_fail(const struct hf_config_place *place, int code, struct hf_error *err,
                   const char *fmt, ...)
{
    struct hf_error sentence;
    const char *dots;
    const char *path;
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(sentence.text, sizeof sentence.text, fmt, args); /* may be cut */
    va_end(args);

    if (place->source != HF_CONFIG_FILE)
        return hf_error_set(err, code, "%s: %s", place->name, sentence.text);
    path = shown_path(place->path, &dots);
    if (place->line == 0)
        return hf_error_set(err, code, "%s%s: %s", dots, path, sentence.text);
    return hf_error_set(err, code, "%s%s:%zu:%zu: %s%s%s", dots, path, place->line,
                        place->column, place->name, place->name[0] != '\0' ? ": " : "",
                        sentence.text);
}

const char *hf_config_quote(const char *text, char out[HF_CONFIG_QUOTE_MAX])
{
    const size_t room = HF_CONFIG_QUOTE_MAX - sizeof "\"...\"";
    size_t len = strnlen(text, room + 1);
    bool cut = len > room;
    size_t at = 0;
    bool utf8;

    if (cut)
        len = room;
    while (cut && len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80)
        len--; /* not in the middle of a character */

    utf8 = hf_str_is_utf8(text, len);
    out[at++] = '"';
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        out[at++] = text[i];
        if (c < 0x20 || c == 0x7f || (c >= 0x80 && !utf8))
            out[at - 1] = '?';
    }
    (void)snprintf(out + at, HF_CONFIG_QUOTE_MAX - at, "%s\"", cut ? "..." : "");
    return out;
}

void hf_config_guess_offer(struct hf_config_guess *guess, const char *known, size_t len)
{
    char copy[HF_CONFIG_KEY_MAX];
    const char *candidate = copy;
    size_t distance;

    if (len >= sizeof copy)
        return;
    memcpy(copy, known, len);
    copy[len] = '\0';
    if (hf_str_nearest(guess->word, &candidate, 1) == NULL)
        return;
    distance = hf_str_distance(guess->word, copy);
    if (guess->best[0] != '\0' && distance >= guess->distance)
        return;
    guess->distance = distance;
    memcpy(guess->best, copy, len + 1);
}

bool hf_config_is_list(const struct hf_option *option)
{
    return option->type == HF_OPTION_STRINGS || option->type == HF_OPTION_ENDPOINTS;
}

void hf_config_items_add(struct hf_config_items *items, const char *text, size_t len)
{
    items->bytes.limit = HF_CONFIG_VALUE_MAX;
    hf_buf_append(&items->bytes, text, len);
    hf_buf_putc(&items->bytes, '\0');
    items->count++;
}

void hf_config_items_done(struct hf_config_items *items)
{
    hf_buf_done(&items->bytes);
}

/* The pointers and the texts in one block, which free() on .items releases. */
static int items_pack(const struct hf_config_items *items, struct hf_strings *ret_value)
{
    size_t head = items->count * sizeof(char *);
    const char **block;
    char *text;

    if (items->bytes.err != HF_OK)
        return items->bytes.err;
    block = hf_calloc(head + items->bytes.len, 1);
    if (block == NULL)
        return HF_ENOMEM;

    text = (char *)block + head;
    memcpy(text, items->bytes.data, items->bytes.len);
    for (size_t i = 0; i < items->count; i++) {
        block[i] = text;
        text += strlen(text) + 1;
    }
    *ret_value = (struct hf_strings){ .items = block, .count = items->count };
    return HF_OK;
}

int hf_config_set_items(struct hf_config_entry *entry, const struct hf_config_items *items,
                        const struct hf_config_place *place, struct hf_error *err)
{
    bool wins = place->source >= entry->source;
    struct hf_strings value = { 0 };
    struct hf_strings unused; /* the largest of the member types */
    int rc;

    if (items->count == 0)
        return hf_config_fail(place, HF_EINVAL, err, "needs at least one item");
    if (items->count > HF_CONFIG_LIST_MAX)
        return hf_config_fail(place, HF_ELIMIT, err, "may have %d items at most",
                              HF_CONFIG_LIST_MAX);
    rc = items_pack(items, &value);
    if (rc == HF_ELIMIT)
        return hf_config_fail(place, rc, err, "may have %zu bytes at most",
                              HF_CONFIG_VALUE_MAX);
    if (rc < 0)
        return hf_config_fail(place, rc, err, "%s", hf_err_text(rc));

    rc = hf_config_parse_value(entry->option, &value,
                               wins && entry->field != NULL ? entry->field : &unused, place,
                               err);
    if (rc == HF_OK && wins) {
        struct hf_strings old = entry->value;

        entry->value = value;
        entry->source = place->source;
        entry->line = place->line;
        value = old;
    }
    free((void *)value.items); /* what was refused, has lost, or was replaced */
    return rc;
}

/* "a,b" as two items; an empty one is for the type's own check to refuse. */
static void items_split(struct hf_config_items *items, const char *text)
{
    for (;;) {
        size_t len = strcspn(text, ",");

        hf_config_items_add(items, text, len);
        if (text[len] == '\0')
            return;
        text += len + 1;
    }
}

int hf_config_set_text(struct hf_config_entry *entry, const char *text,
                       const struct hf_config_place *place, struct hf_error *err)
{
    HF_CLEANUP_CONFIG_ITEMS struct hf_config_items items = { 0 };

    if (hf_config_is_list(entry->option))
        items_split(&items, text);
    else
        hf_config_items_add(&items, text, strlen(text));
    return hf_config_set_items(entry, &items, place, err);
}

/* What every later step relies on. These are mistakes in our own tables. */
static void check_option(const struct hf_option *option)
{
    bool ranged = option->type == HF_OPTION_INT || option->type == HF_OPTION_DURATION;

    assert(option->key != NULL || option->flag != NULL);
    assert(option->key == NULL || strlen(option->key) < HF_CONFIG_KEY_MAX);
    assert(option->letter == 0 || option->flag != NULL);
    assert(option->env_fallback == NULL || option->env != NULL);
    assert(!option->secret || option->flag == NULL); /* anyone can read a command line */
    assert(option->help != NULL);
    assert((option->value == NULL) ==
           (option->type == HF_OPTION_BOOL || option->type == HF_OPTION_ENUM));
    assert(!ranged || option->min < option->max);
    assert((option->words != NULL) == (option->type == HF_OPTION_ENUM));
    (void)ranged;
}

static bool same_name(const char *a, const char *b)
{
    return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* Programs join tables of different origin: two options must not share a name. */
static void check_unique(const struct hf_config *cfg)
{
    for (size_t i = 0; i < cfg->count; i++) {
        for (size_t j = 0; j < i; j++) {
            const struct hf_option *a = cfg->entries[i].option;
            const struct hf_option *b = cfg->entries[j].option;

            assert(!same_name(a->key, b->key) && !same_name(a->flag, b->flag));
            assert(!same_name(a->env, b->env));
            assert(a->letter == 0 || a->letter != b->letter);
            (void)a;
            (void)b;
        }
    }
}

static int set_preset(struct hf_config_entry *entry)
{
    const struct hf_config_place place = { .source = HF_CONFIG_DEFAULT, .name = "default" };
    const char *preset = entry->option->preset;
    int rc = HF_OK;

    if (preset == NULL && entry->option->type == HF_OPTION_BOOL)
        preset = "false"; /* the one type that is never "not set" */
    if (entry->field != NULL)
        hf_config_clear_value(entry->option, entry->field);
    if (preset != NULL)
        rc = hf_config_set_text(entry, preset, &place, NULL);
    assert(rc == HF_OK || rc == HF_ENOMEM); /* else the table has a default it would refuse */
    return rc;
}

static enum hf_option_counts counts_of(const struct hf_option *option,
                                       const struct hf_option_group *group)
{
    if (option->counts != HF_COUNTS_AS_GROUP)
        return option->counts;
    return group->counts != HF_COUNTS_AS_GROUP ? group->counts : HF_COUNTS_ON_RESTART;
}

int hf_config_init(struct hf_config *cfg, const struct hf_option_group *groups, size_t count)
{
    struct hf_config made = { 0 };
    size_t total = 0;
    int rc = HF_OK;

    for (size_t i = 0; i < count; i++)
        total += groups[i].count;
    made.entries = hf_calloc(total, sizeof *made.entries);
    if (made.entries == NULL)
        return HF_ENOMEM;

    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < groups[i].count && rc == HF_OK; j++) {
            struct hf_config_entry *entry = &made.entries[made.count++];

            check_option(&groups[i].options[j]);
            entry->option = &groups[i].options[j];
            entry->title = groups[i].title;
            entry->counts = counts_of(entry->option, &groups[i]);
            if (groups[i].target != NULL)
                entry->field = (char *)groups[i].target + entry->option->offset;
            rc = set_preset(entry);
        }
    }
    if (rc < 0) {
        hf_config_done(&made);
        return rc;
    }
    check_unique(&made);
    *cfg = made;
    return HF_OK;
}

void hf_config_done(struct hf_config *cfg)
{
    if (cfg == NULL)
        return;
    for (size_t i = 0; i < cfg->count; i++)
        free((void *)cfg->entries[i].value.items);
    free(cfg->entries);
    free(cfg->path);
    free((void *)cfg->arguments.items);
    *cfg = (struct hf_config){ 0 };
}

static bool same_value(const struct hf_strings *a, const struct hf_strings *b)
{
    bool same = a->count == b->count;

    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->items[i], b->items[i]) == 0;
    return same;
}

const struct hf_option *hf_config_next_change(const struct hf_config *before,
                                              const struct hf_config *after, size_t *cursor)
{
    assert(before->count == after->count);

    while (*cursor < before->count) {
        const struct hf_config_entry *entry = &before->entries[(*cursor)++];

        if (!same_value(&entry->value, &after->entries[*cursor - 1].value))
            return entry->option;
    }
    return NULL;
}
