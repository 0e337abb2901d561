/* config_yaml.c - the file: libyaml's events, walked along the keys of the option table.
 *
 * The events go straight into the options and never become a tree, so that every complaint has
 * the line and column of its text. Nothing needs a limit on depth or number of nodes: whatever
 * the table does not foresee ends the reading where it begins. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <yaml.h>

#include "base/alloc.h"
#include "base/str.h"
#include "schema/config_private.h"

/* A key that was met: the first `len` bytes of an entry's key. */
struct seen {
    size_t entry;
    size_t len;
    size_t line;
};

struct reader {
    struct hf_config *cfg;
    struct hf_error *err;
    const char *text;
    size_t len;
    yaml_parser_t parser;
    yaml_event_t event;          /* the present one; zeroed before the first */
    char key[HF_CONFIG_KEY_MAX]; /* dotted path of the present value; "" at the top */
    struct seen *seen;
    size_t seen_count;
    size_t seen_cap;
};

static struct hf_config_place place_at(const struct reader *r, const yaml_mark_t *mark)
{
    return (struct hf_config_place){
        .source = HF_CONFIG_FILE,
        .name = r->key,
        .path = r->cfg->path,
        .line = mark->line + 1,
        .column = mark->column + 1,
    };
}

static struct hf_config_place place_here(const struct reader *r)
{
    return place_at(r, &r->event.start_mark);
}

/* Complains about the present event. */
#define FAIL(r, code, ...)                                                                     \
    ({                                                                                         \
        const struct hf_config_place here_ = place_here(r);                                    \
        hf_config_fail(&here_, (code), (r)->err, __VA_ARGS__);                                 \
    })

/* An error in the encoding comes with an offset only, one in the syntax with a mark. */
static yaml_mark_t problem_mark(const struct reader *r)
{
    yaml_mark_t mark = { 0 };

    if (r->parser.error != YAML_READER_ERROR)
        return r->parser.problem_mark;
    for (size_t i = 0; i < r->parser.problem_offset && i < r->len; i++) {
        bool newline = r->text[i] == '\n';

        mark.line += newline ? 1 : 0;
        mark.column = newline ? 0 : mark.column + 1;
    }
    return mark;
}

static bool is_tab_indent(const struct reader *r, const yaml_mark_t *mark)
{
    const char *end = r->text + r->len;
    const char *p = r->text;

    for (size_t line = 0; line < mark->line; line++) {
        p = memchr(p, '\n', (size_t)(end - p));
        if (p == NULL)
            return false;
        p++;
    }
    while (p < end && *p == ' ')
        p++;
    return p < end && *p == '\t';
}

/* What to do about the mistakes that people make, for which libyaml has general words only. */
static const char *advice(const struct reader *r, const yaml_mark_t *mark)
{
    static const struct {
        const char *problem;
        const char *advice;
        bool stray; /* a character, which may be a tab */
    } known[] = {
        { "found character that cannot start", ": quote a text that begins with this", true },
        { "mapping values are not allowed", ": quote a text that contains \": \"", false },
        { "did not find expected key", ": look at the indentation", false },
        { "found invalid Unicode", ": write the character itself", false },
    };

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strncmp(r->parser.problem, known[i].problem, strlen(known[i].problem)) == 0)
            return known[i].stray && is_tab_indent(r, mark) ? ": indent with spaces, not tabs"
                                                            : known[i].advice;
    }
    return "";
}

static int fail_syntax(const struct reader *r)
{
    const yaml_parser_t *parser = &r->parser;
    const yaml_mark_t mark = problem_mark(r);
    const struct hf_config_place place = place_at(r, &mark);

    if (parser->error == YAML_MEMORY_ERROR || parser->problem == NULL)
        return hf_config_fail(&place, HF_ENOMEM, r->err, "%s", hf_err_text(HF_ENOMEM));
    return hf_config_fail(
        &place, HF_EINVAL, r->err, "%s%s%s%s", parser->context != NULL ? parser->context : "",
        parser->context != NULL ? ", " : "", parser->problem, advice(r, &mark));
}

static bool is_decorated(const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return event->data.scalar.anchor != NULL || event->data.scalar.tag != NULL;
    case YAML_SEQUENCE_START_EVENT:
        return event->data.sequence_start.anchor != NULL ||
               event->data.sequence_start.tag != NULL;
    case YAML_MAPPING_START_EVENT:
        return event->data.mapping_start.anchor != NULL ||
               event->data.mapping_start.tag != NULL;
    default: return event->type == YAML_ALIAS_EVENT;
    }
}

/* Goes to the next event. */
static int next(struct reader *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event) == 0)
        return fail_syntax(r);
    if (is_decorated(&r->event))
        return FAIL(r, HF_EINVAL,
                    "anchors (&x), aliases (*x) and tags (!x) are not supported: "
                    "write the value out");
    return HF_OK;
}

/* The present scalar as a text, NULL when it has a NUL in it. */
static const char *scalar_text(const struct reader *r)
{
    const char *text = (const char *)r->event.data.scalar.value;

    return strlen(text) == r->event.data.scalar.length ? text : NULL;
}

/* `key:` with nothing behind it, `key: ~` or JSON's null. */
static bool is_null(const struct reader *r)
{
    const char *text;

    if (r->event.type != YAML_SCALAR_EVENT ||
        r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    text = (const char *)r->event.data.scalar.value;
    return text[0] == '\0' || strcmp(text, "~") == 0 || strcasecmp(text, "null") == 0;
}

/* Whether the path leads to an option (the whole of its key) or to a section (the head of it).
 * Returns the entry, NULL when the path is unknown. */
static struct hf_config_entry *find_key(const struct reader *r, const char *path,
                                        bool *ret_section)
{
    size_t len = strlen(path);

    for (size_t i = 0; i < r->cfg->count; i++) {
        const char *key = r->cfg->entries[i].option->key;

        if (key == NULL || strncmp(key, path, len) != 0)
            continue;
        if (key[len] == '\0' || (key[len] == '.' && len > 0)) {
            *ret_section = key[len] == '.';
            return &r->cfg->entries[i];
        }
    }
    return NULL;
}

/* The name of a flag, or a key without its section: `endpoints` or `password-file`. */
static const char *find_misplaced(const struct reader *r, const char *text)
{
    for (size_t i = 0; i < r->cfg->count; i++) {
        const struct hf_option *option = r->cfg->entries[i].option;
        const char *leaf = option->key != NULL ? strrchr(option->key, '.') : NULL;

        if (option->key == NULL)
            continue;
        if ((leaf != NULL && strcmp(text, leaf + 1) == 0) ||
            (option->flag != NULL && strcmp(text, option->flag) == 0))
            return option->key;
    }
    return NULL;
}

/* What follows the section in the key; NULL when the key is not beneath it. */
static const char *beneath(const char *key, const char *section)
{
    size_t len = strlen(section);

    if (len == 0)
        return key;
    return strncmp(key, section, len) == 0 && key[len] == '.' ? key + len + 1 : NULL;
}

/* The length of the text up to the dot after so many dots; 0 when it has fewer. */
static size_t head_len(const char *text, size_t dots)
{
    size_t len = strcspn(text, ".");

    while (dots-- > 0) {
        if (text[len] == '\0')
            return 0;
        len += 1 + strcspn(text + len + 1, ".");
    }
    return len;
}

/* Offers what could stand in the present section in place of guess->word. Heads and depths are
 * kept out of the comparison: they would make everything look alike. */
static void offer_keys(const struct reader *r, struct hf_config_guess *guess)
{
    size_t dots = 0;

    for (const char *p = guess->word; *p != '\0'; p++)
        dots += *p == '.' ? 1 : 0;
    for (size_t i = 0; i < r->cfg->count; i++) {
        const char *key = r->cfg->entries[i].option->key;
        const char *rest = key != NULL ? beneath(key, r->key) : NULL;

        if (rest != NULL)
            hf_config_guess_offer(guess, rest, head_len(rest, dots));
    }
}

/* `text` is the key as written, `path` the same with its section. */
static int fail_unknown(struct reader *r, const char *text, const char *path)
{
    struct hf_config_guess guess = { .word = text };
    const char *misplaced = find_misplaced(r, text);
    struct hf_config_place place = place_here(r);
    char quoted[HF_CONFIG_QUOTE_MAX];

    place.name = "";
    (void)hf_config_quote(path, quoted);
    if (misplaced != NULL)
        return hf_config_fail(&place, HF_EINVAL, r->err, "unknown key %s; did you mean %s?",
                              quoted, misplaced);
    offer_keys(r, &guess);
    if (guess.best[0] == '\0')
        return hf_config_fail(&place, HF_EINVAL, r->err,
                              "unknown key %s; --config-dump lists the known ones", quoted);
    return hf_config_fail(&place, HF_EINVAL, r->err, "unknown key %s; did you mean %s%s%s?",
                          quoted, r->key, r->key[0] != '\0' ? "." : "", guess.best);
}

/* Remembers the key in r->key, or complains that it was there before. */
static int note_key(struct reader *r, size_t entry)
{
    struct seen key = { entry, strlen(r->key), r->event.start_mark.line + 1 };

    for (size_t i = 0; i < r->seen_count; i++) {
        if (r->seen[i].entry == key.entry && r->seen[i].len == key.len)
            return FAIL(r, HF_EINVAL, "is given twice, first in line %zu", r->seen[i].line);
    }
    if (!hf_grow(&r->seen, &r->seen_cap, r->seen_count + 1, sizeof *r->seen))
        return FAIL(r, HF_ENOMEM, "%s", hf_err_text(HF_ENOMEM));
    r->seen[r->seen_count++] = key;
    return HF_OK;
}

/* Appends the key that is the present event to r->key and finds what it leads to. */
static int enter_key(struct reader *r, struct hf_config_entry **ret_entry, bool *ret_section)
{
    struct hf_config_entry *entry = NULL;
    char path[HF_CONFIG_KEY_MAX];
    const char *text;
    int len;
    int rc;

    if (r->event.type != YAML_SCALAR_EVENT)
        return FAIL(r, HF_EINVAL, "a key must be a text, not a list or a section");
    text = scalar_text(r);
    if (text == NULL)
        return FAIL(r, HF_EINVAL, "a key must not contain a NUL character");
    len = snprintf(path, sizeof path, "%s%s%s", r->key, r->key[0] != '\0' ? "." : "", text);
    if ((size_t)len < sizeof path)
        entry = find_key(r, path, ret_section);
    if (entry == NULL)
        return fail_unknown(r, text, path);

    memcpy(r->key, path, (size_t)len + 1);
    rc = note_key(r, (size_t)(entry - r->cfg->entries));
    if (rc == HF_OK)
        *ret_entry = entry;
    return rc;
}

static int read_scalar(struct reader *r, struct hf_config_entry *entry)
{
    const struct hf_config_place place = place_here(r);
    const char *text = scalar_text(r);

    if (is_null(r))
        return FAIL(r, HF_EINVAL, "has no value; remove the key to get the default");
    if (text == NULL)
        return FAIL(r, HF_EINVAL, "must not contain a NUL character");
    return hf_config_set_text(entry, text, &place, r->err);
}

static int read_list(struct reader *r, struct hf_config_entry *entry)
{
    HF_CLEANUP_CONFIG_ITEMS struct hf_config_items items = { 0 };
    const struct hf_config_place place = place_here(r);

    if (!hf_config_is_list(entry->option))
        return FAIL(r, HF_EINVAL, "takes one value, not a list");
    for (;;) {
        int rc = next(r);

        if (rc < 0)
            return rc;
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return hf_config_set_items(entry, &items, &place, r->err);
        if (r->event.type != YAML_SCALAR_EVENT || is_null(r) || scalar_text(r) == NULL)
            return FAIL(r, HF_EINVAL, "item %zu must be a text", items.count + 1);
        if (items.count == HF_CONFIG_LIST_MAX)
            return FAIL(r, HF_ELIMIT, "may have %d items at most", HF_CONFIG_LIST_MAX);
        hf_config_items_add(&items, scalar_text(r), r->event.data.scalar.length);
    }
}

static int read_option(struct reader *r, struct hf_config_entry *entry)
{
    switch (r->event.type) {
    case YAML_SCALAR_EVENT: return read_scalar(r, entry);
    case YAML_SEQUENCE_START_EVENT: return read_list(r, entry);
    default: return FAIL(r, HF_EINVAL, "takes a value, not a section");
    }
}

static int read_section(struct reader *r);

/* Reads the key that is the present event, and its value. */
static int read_pair(struct reader *r)
{
    size_t parent = strlen(r->key);
    struct hf_config_entry *entry = NULL;
    bool section = false;
    int rc = enter_key(r, &entry, &section);

    if (rc == HF_OK)
        rc = next(r);
    if (rc == HF_OK)
        rc = section ? read_section(r) : read_option(r, entry);
    r->key[parent] = '\0';
    return rc;
}

/* Reads the section that begins with the present event. One whose lines are all commented out
 * is null, and fine. The recursion is as deep as the keys of the table have dots. */
static int read_section(struct reader *r)
{
    int rc;

    if (is_null(r))
        return HF_OK;
    if (r->event.type != YAML_MAPPING_START_EVENT)
        return FAIL(r, HF_EINVAL, "%s must hold keys and their values, not a text or a list",
                    r->key[0] != '\0' ? "this section" : "the file");
    rc = next(r);
    while (rc == HF_OK && r->event.type != YAML_MAPPING_END_EVENT) {
        rc = read_pair(r);
        if (rc == HF_OK)
            rc = next(r);
    }
    return rc;
}

static int read_stream(struct reader *r)
{
    int rc = next(r); /* the start of the stream */

    if (rc == HF_OK)
        rc = next(r);
    if (rc < 0 || r->event.type == YAML_STREAM_END_EVENT)
        return rc; /* nothing but comments */

    rc = next(r);
    if (rc == HF_OK)
        rc = read_section(r);
    if (rc == HF_OK)
        rc = next(r); /* the end of the document */
    if (rc == HF_OK)
        rc = next(r);
    if (rc == HF_OK && r->event.type != YAML_STREAM_END_EVENT)
        return FAIL(r, HF_EINVAL, "a second document begins here: only one is allowed");
    return rc;
}

int hf_config_read_text(struct hf_config *cfg, const char *path, const char *text, size_t len,
                        struct hf_error *err)
{
    struct reader r = { .cfg = cfg, .err = err, .text = text, .len = len };
    const struct hf_config_place whole = { .source = HF_CONFIG_FILE, .path = path };
    int rc;

    assert(cfg->path == NULL);

    if (len > HF_CONFIG_FILE_MAX)
        return hf_config_fail(&whole, HF_ELIMIT, err, "larger than %zu bytes",
                              HF_CONFIG_FILE_MAX);
    if (!hf_str_is_utf8(path, strlen(path)))
        return hf_error_set(err, HF_EINVAL, "the path of the file must be valid UTF-8");
    cfg->path = hf_strdup(path);
    if (cfg->path == NULL || yaml_parser_initialize(&r.parser) == 0)
        return hf_config_fail(&whole, HF_ENOMEM, err, "%s", hf_err_text(HF_ENOMEM));
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)(len > 0 ? text : ""), len);

    rc = read_stream(&r);
    yaml_event_delete(&r.event);
    yaml_parser_delete(&r.parser);
    free(r.seen);
    return rc;
}
