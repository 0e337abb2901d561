/* How json says what is wrong and where. Nothing here runs while the text is good. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "schema/json_scan.h"
#include "schema/json_text.h"
#include "schema/json_type.h"

#define PATH_SIZE    104 /* leaves more than half of an error's text for the reason */
#define ELEMENT_SIZE 72
#define EXCERPT_MAX  40
#define ELLIPSIS     "\u2026"

/* A control character in a log line could forge another line or repaint a terminal. */
static bool is_printable(const char *p, size_t len)
{
    unsigned char c = (unsigned char)p[0];

    if (len == 1)
        return c >= 0x20 && c != 0x7f;
    return !(len == 2 && c == 0xc2 && (unsigned char)p[1] < 0xa0);
}

const char *hf_json_scan_excerpt(struct hf_json_span text, char out[HF_JSON_EXCERPT_SIZE])
{
    const char *p = text.text;
    const char *end = p + text.len;
    size_t n = 0;

    while (p < end) {
        size_t len = hf_str_utf8_length(p, (size_t)(end - p));
        bool valid = len > 0 && is_printable(p, len);

        if (len == 0)
            len = 1;
        if (n + len > EXCERPT_MAX) {
            memcpy(out + n, ELLIPSIS, sizeof ELLIPSIS - 1);
            n += sizeof ELLIPSIS - 1;
            break;
        }
        if (valid) {
            memcpy(out + n, p, len);
            n += len;
        } else {
            out[n++] = '?';
        }
        p += len;
    }
    out[n] = '\0';
    return out;
}

/* ".leaseId", "[3]" or "[\"key\"]". Returns the length, less than ELEMENT_SIZE. */
static size_t format_element(const struct hf_json_path *element, char out[ELEMENT_SIZE])
{
    char excerpt[HF_JSON_EXCERPT_SIZE];
    int n;

    if (element->field != NULL) {
        size_t len = strlen(element->field);

        if (len >= ELEMENT_SIZE - 1)
            return (size_t)snprintf(out, ELEMENT_SIZE, "." ELLIPSIS);
        out[0] = '.';
        return 1 + hf_json_type_name(element->field, out + 1);
    }
    if (element->key != NULL) {
        struct hf_json_span key = { element->key, element->key_len };

        n = snprintf(out, ELEMENT_SIZE, "[\"%s\"]", hf_json_scan_excerpt(key, excerpt));
    } else {
        n = snprintf(out, ELEMENT_SIZE, "[%zu]", element->index);
    }
    return (size_t)n;
}

/* Written from its end, since the innermost names tell most: what does not fit is cut off in
 * front. Returns the beginning inside `out`. */
static const char *format_path(const struct hf_json_path *path, char out[PATH_SIZE])
{
    char *begin = out + PATH_SIZE - 1;
    char element[ELEMENT_SIZE];

    *begin = '\0';
    for (; path != NULL; path = path->up) {
        size_t len = format_element(path, element);

        if ((size_t)(begin - out) < len + sizeof ELLIPSIS - 1) {
            begin -= sizeof ELLIPSIS - 1;
            memcpy(begin, ELLIPSIS, sizeof ELLIPSIS - 1);
            return begin;
        }
        begin -= len;
        memcpy(begin, element, len);
    }
    return *begin == '.' ? begin + 1 : begin;
}

/* Columns count characters: bytes that continue one are passed over. */
static void locate(const struct hf_json_scan *scan, const char *at, size_t *ret_line,
                   size_t *ret_column)
{
    size_t line = 1;
    size_t column = 1;

    for (const char *p = scan->begin; p < at; p++) {
        if (*p == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*p & 0xc0) != 0x80) {
            column++;
        }
    }
    *ret_line = line;
    *ret_column = column;
}

int hf_json_scan_fail(struct hf_json_scan *scan, int code, const char *at, const char *fmt, ...)
{
    char path_buffer[PATH_SIZE];
    char reason[sizeof scan->err->text];
    const char *path;
    size_t line;
    size_t column;
    va_list args;

    if (scan->err == NULL)
        return code;
    va_start(args, fmt);
    (void)vsnprintf(reason, sizeof reason, fmt, args); /* cut like the text that it goes into */
    va_end(args);
    locate(scan, at, &line, &column);
    path = format_path(scan->path, path_buffer);
    return hf_error_set(scan->err, code, "%s%sline %zu, column %zu: %s", path,
                        *path != '\0' ? ": " : "", line, column, reason);
}

int hf_json_scan_no_memory(struct hf_json_scan *scan)
{
    return hf_error_set(scan->err, HF_ENOMEM, "out of memory while reading JSON");
}

/* The run of characters of a number or a bare word. */
static struct hf_json_span bare_word(const char *at, const char *end)
{
    const char *p = at;

    while (p < end && ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') ||
                       (*p >= 'A' && *p <= 'Z') || (*p != '\0' && strchr("+-._", *p) != NULL)))
        p++;
    return (struct hf_json_span){ .text = at, .len = (size_t)(p - at) };
}

static struct hf_json_span quoted(const char *at, const char *end)
{
    const char *p = at + 1;

    while (p < end && *p != '"')
        p += *p == '\\' && end - p > 1 ? 2 : 1;
    return (struct hf_json_span){ .text = at + 1, .len = (size_t)(p - at - 1) };
}

void hf_json_scan_note_expected(struct hf_json_scan *scan, const char *at, const char *what)
{
    char excerpt[HF_JSON_EXCERPT_SIZE];
    struct hf_json_span word;
    const char *got = NULL;
    const char *quote = "";

    if (at == scan->end) {
        got = "the end of the text";
    } else if (*at == '{') {
        got = "an object";
    } else if (*at == '[') {
        got = "an array";
    } else if (*at == '"') {
        got = hf_json_scan_excerpt(quoted(at, scan->end), excerpt);
        quote = "\"";
    } else {
        word = bare_word(at, scan->end);
        if (word.len == 0) {
            word.len = hf_str_utf8_length(at, (size_t)(scan->end - at));
            word.len += word.len == 0;
            quote = "'";
        }
        got = hf_json_scan_excerpt(word, excerpt);
    }
    (void)hf_json_scan_fail(scan, HF_EINVAL, at, "expected %s, got %s%s%s", what, quote, got,
                            quote);
}

void hf_json_scan_guess_init(struct hf_json_guess *guess, struct hf_json_span word)
{
    *guess = (struct hf_json_guess){ 0 };
    if (word.len < sizeof guess->word)
        memcpy(guess->word, word.text, word.len);
}

void hf_json_scan_guess(struct hf_json_guess *guess, const char *known)
{
    const char *pair[] = { guess->best, known };

    if (strlen(known) < sizeof guess->best && hf_str_nearest(guess->word, pair, 2) == known)
        memcpy(guess->best, known, strlen(known) + 1);
}

const char *hf_json_scan_guess_text(struct hf_json_guess *guess)
{
    if (guess->best[0] != '\0')
        (void)snprintf(guess->text, sizeof guess->text, "; did you mean \"%s\"?", guess->best);
    return guess->text;
}
