/* json_scan.h - reads JSON text token by token and says precisely where it is wrong.
 *
 * Internal to json and to lib/client. No tree is built: the decoder asks for what it expects
 * next. Strings are checked as they are passed (UTF-8, escapes, surrogates) and copied only
 * when they have to be. Every failure sets the error text once, with path, line and column. */
#ifndef HF_SCHEMA_JSON_SCAN_H
#define HF_SCHEMA_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "schema/json_arena.h"

/* One step from the root to the value that is being read. Lives on the reader's stack. */
struct hf_json_path {
    const struct hf_json_path *up;
    const char *field; /* a field's name in the proto; or NULL, then */
    const char *key;   /* the key of a map or an unknown member; or NULL, then */
    size_t key_len;
    size_t index; /* the place in an array */
};

struct hf_json_span {
    const char *text;
    size_t len;
};

/* A name that was met in an object, and where. */
struct hf_json_name {
    struct hf_json_span name;
    const char *at;
};

struct hf_json_scan {
    const char *begin;
    const char *at; /* the next byte */
    const char *end;
    unsigned depth_left;
    const struct hf_json_path *path;
    struct hf_json_arena *arena; /* for strings with escapes */
    struct hf_json_name *names;  /* of all objects that are open, the innermost last */
    size_t n_names;
    size_t cap_names;
    struct hf_error *err;
};

/* A string as it stands in the text, without its quotes. */
struct hf_json_string {
    struct hf_json_span raw;
    bool has_escapes;
    bool has_nul; /* \u0000 */
};

/* Releases what the scanner itself holds; the arena is the caller's. */
void hf_json_scan_done(struct hf_json_scan *scan);

/* The first byte of the next token, which stays there; '\0' at the end of the text. */
static inline char hf_json_scan_peek(struct hf_json_scan *scan)
{
    while (scan->at < scan->end) {
        char c = *scan->at;

        if (c != ' ' && c != '\n' && c != '\r' && c != '\t')
            return c;
        scan->at++;
    }
    return '\0';
}

/* Goes into the object or array whose bracket comes next. */
int hf_json_scan_enter(struct hf_json_scan *scan) HF_MUST_CHECK;

/* After `n_before` elements: 1 when another one follows (its comma is read), 0 when the bracket
 * closed, negative on failure. */
int hf_json_scan_more(struct hf_json_scan *scan, char close, size_t n_before) HF_MUST_CHECK;

/* A member's name and its colon. *ret_at is where the name stands. */
int hf_json_scan_member(struct hf_json_scan *scan, struct hf_json_name *ret_name) HF_MUST_CHECK;

/* Remembers a name of the innermost object; hf_json_scan_distinct, called with the n_names of
 * the object's beginning, fails if one came twice, and forgets them. */
int hf_json_scan_remember(struct hf_json_scan *scan,
                          const struct hf_json_name *name) HF_MUST_CHECK;
int hf_json_scan_distinct(struct hf_json_scan *scan, size_t first) HF_MUST_CHECK;

/* The string that comes next; the caller has seen its quote. */
int hf_json_scan_string(struct hf_json_scan *scan,
                        struct hf_json_string *ret_string) HF_MUST_CHECK;

/* Its characters; at most raw.len bytes. Returns the end of what was written. Cannot fail. */
char *hf_json_scan_unescape(const struct hf_json_string *string, char *out);

/* A string's characters, in the text itself or, if they were escaped, in the arena. */
int hf_json_scan_text(struct hf_json_scan *scan, struct hf_json_span *ret_text) HF_MUST_CHECK;

/* The number, or the word (true, false, null), that comes next. */
int hf_json_scan_number(struct hf_json_scan *scan, struct hf_json_span *ret_text) HF_MUST_CHECK;
int hf_json_scan_word(struct hf_json_scan *scan, const char *word) HF_MUST_CHECK;

/* Any value, checked and passed over. */
int hf_json_scan_skip(struct hf_json_scan *scan) HF_MUST_CHECK;

/* Nothing but white space may follow. */
int hf_json_scan_finish(struct hf_json_scan *scan) HF_MUST_CHECK;

/* Fails with "path: line l, column c: <what>", of the byte at `at`. Returns `code`. */
int hf_json_scan_fail(struct hf_json_scan *scan, int code, const char *at, const char *fmt, ...)
    HF_PRINTF(4, 5);

/* Fails with "expected <what>, got <what stands at `at`>". Returns HF_EINVAL. */
void hf_json_scan_note_expected(struct hf_json_scan *scan, const char *at, const char *what);

static inline int hf_json_scan_expected(struct hf_json_scan *scan, const char *at,
                                        const char *what)
{
    hf_json_scan_note_expected(scan, at, what);
    return HF_EINVAL;
}

/* Out of memory. Returns HF_ENOMEM. */
int hf_json_scan_no_memory(struct hf_json_scan *scan);

/* Foreign text for a message: at most 40 bytes of it, without control characters. */
#define HF_JSON_EXCERPT_SIZE 48
const char *hf_json_scan_excerpt(struct hf_json_span text, char out[HF_JSON_EXCERPT_SIZE]);

/* "Did you mean": start with the word, offer every known one, print the text. */
#define HF_JSON_GUESS_SIZE 65
struct hf_json_guess {
    char word[HF_JSON_GUESS_SIZE];
    char best[HF_JSON_GUESS_SIZE];
    char text[HF_JSON_GUESS_SIZE + 24];
};

void hf_json_scan_guess_init(struct hf_json_guess *guess, struct hf_json_span word);
void hf_json_scan_guess(struct hf_json_guess *guess, const char *known);

/* `; did you mean "x"?`, or nothing when no known word is near. */
const char *hf_json_scan_guess_text(struct hf_json_guess *guess);

#endif
