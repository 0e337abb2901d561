#include "schema/keys.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/v1/records.pb-c.h"

enum life { KEPT, LEASE };

static const struct {
    const char *pattern;
    enum life life;
    const ProtobufCMessageDescriptor *record;
} KINDS[] = {
#define X(kind, pattern, life, record)                                                         \
    [HF_KEY_##kind] = { pattern, life, &holdfast__v1__##record##__descriptor },
    HF_KEY_RECORDS(X)
#undef X
#define X(kind, pattern) [HF_KEY_##kind] = { pattern, KEPT, NULL },
        HF_KEY_BODIES(X)
#undef X
};

static const char *const SCOPES[] = {
#define X(scope, pattern) [HF_KEY_IN_##scope] = (pattern),
    HF_KEY_SCOPES(X)
#undef X
};

/* No pattern has more than three variable parts, and a name is the longest of them. */
#define X(kind, pattern, ...)                                                                  \
    static_assert(sizeof(pattern) + 3 * (size_t)HF_NAME_MAX <= HF_KEY_SIZE,                    \
                  "HF_KEY_SIZE: " #kind);
HF_KEY_RECORDS(X)
HF_KEY_BODIES(X)
HF_KEY_SCOPES(X)
#undef X

struct writer {
    char text[HF_KEY_SIZE];
    size_t len;
};

static void put(struct writer *w, const char *text, size_t len)
{
    assert(len < sizeof w->text - w->len); /* by the static assertions above */
    memcpy(w->text + w->len, text, len);
    w->len += len;
}

static int put_name(struct writer *w, const char *what, const char *name, struct hf_error *err)
{
    int rc = hf_name_check(what, name, err);

    if (rc != HF_OK)
        return rc;
    assert(name != NULL); /* or the check would have failed */
    put(w, name, strlen(name));
    return HF_OK;
}

static int put_seq(struct writer *w, int64_t seq, struct hf_error *err)
{
    char digits[HF_KEY_DIGITS + 2];

    if (seq < 1)
        return hf_error_set(err, HF_EINVAL, "key: number %" PRId64 " is below 1", seq);
    int len = snprintf(digits, sizeof digits, "%0*" PRId64, HF_KEY_DIGITS, seq);
    put(w, digits, (size_t)len);
    return HF_OK;
}

/* Writes the pattern with its variables replaced; returns the length. */
static int expand(const char *pattern, const char *ns, const struct hf_key *key,
                  char ret_text[HF_KEY_SIZE], struct hf_error *err)
{
    struct writer w = { .len = 0 };
    const char *names[] = { key->name, key->sub };
    size_t used = 0;
    int rc = HF_OK;

    for (const char *p = pattern; *p != '\0' && rc == HF_OK; p++) {
        switch (*p) {
        case '@': rc = put_name(&w, "namespace", ns, err); break;
        case '*': rc = put_name(&w, "name in a key", names[used++], err); break;
        case '#': rc = put_seq(&w, key->seq, err); break;
        default: put(&w, p, 1); break;
        }
    }
    if (rc != HF_OK)
        return rc;
    memcpy(ret_text, w.text, w.len);
    ret_text[w.len] = '\0';
    return (int)w.len;
}

int hf_key_format(const char *ns, const struct hf_key *key, char ret_text[HF_KEY_SIZE],
                  struct hf_error *err)
{
    assert(key->kind < HF_KEY_KINDS);
    return expand(KINDS[key->kind].pattern, ns, key, ret_text, err);
}

int hf_key_prefix(const char *ns, enum hf_key_scope scope, const char *name,
                  char ret_text[HF_KEY_SIZE], struct hf_error *err)
{
    assert(scope < HF_KEY_IN_SCOPES);
    return expand(SCOPES[scope], ns, &(struct hf_key){ .name = name }, ret_text, err);
}

/* A key on its way through one pattern. */
struct reader {
    struct hf_bytes text;
    size_t at;
    const char *fault; /* what is wrong at `at`; NULL while nothing is */
    struct hf_bytes names[2];
    size_t name_count;
    int64_t seq;
};

static void fail(struct reader *r, size_t skip, const char *fault)
{
    r->at += skip;
    r->fault = fault;
}

static struct hf_bytes take_part(const struct reader *r)
{
    const char *start = (const char *)r->text.data + r->at;
    size_t rest = r->text.len - r->at;
    const char *slash = memchr(start, '/', rest);

    return (struct hf_bytes){ start, slash != NULL ? (size_t)(slash - start) : rest };
}

static void read_char(struct reader *r, char want)
{
    if (r->at == r->text.len)
        fail(r, 0, "the key ends too early");
    else if (((const char *)r->text.data)[r->at] != want)
        fail(r, 0, "no kind of key goes on like this");
    else
        r->at++;
}

static void read_namespace(struct reader *r, const char *ns)
{
    struct hf_bytes part = take_part(r);

    if (part.len != strlen(ns) || memcmp(part.data, ns, part.len) != 0)
        fail(r, 0, "another namespace");
    else
        r->at += part.len;
}

static void read_name(struct reader *r)
{
    struct hf_bytes part = take_part(r);
    size_t skip = 0;
    const char *fault = hf_name_fault(part.data, part.len, &skip);

    if (fault != NULL) {
        fail(r, skip, fault);
        return;
    }
    r->names[r->name_count++] = part;
    r->at += part.len;
}

/* 19 digits hold up to 10^19 - 1, which is beyond int64_t but within uint64_t. */
static void read_seq(struct reader *r)
{
    struct hf_bytes part = take_part(r);
    const char *digits = part.data;
    uint64_t value = 0;

    if (part.len != HF_KEY_DIGITS) {
        fail(r, 0, "a number in a key has 19 digits");
        return;
    }
    for (size_t i = 0; i < part.len; i++) {
        if (digits[i] < '0' || digits[i] > '9') {
            fail(r, i, "not a digit");
            return;
        }
        value = value * 10 + (uint64_t)(digits[i] - '0');
    }
    if (value < 1 || value > INT64_MAX) {
        fail(r, 0, "a number in a key is between 1 and 2^63-1");
        return;
    }
    r->seq = (int64_t)value;
    r->at += part.len;
}

static struct reader read_pattern(const char *pattern, const char *ns, struct hf_bytes text)
{
    struct reader r = { .text = text };

    for (const char *p = pattern; *p != '\0' && r.fault == NULL; p++) {
        switch (*p) {
        case '@': read_namespace(&r, ns); break;
        case '*': read_name(&r); break;
        case '#': read_seq(&r); break;
        default: read_char(&r, *p); break;
        }
    }
    if (r.fault == NULL && r.at < text.len)
        fail(&r, 0, "the key should end here");
    return r;
}

/* The byte after a part is the slash that ended it or the final NUL, so ending the string there
 * costs nothing that is still needed. */
static const char *as_string(struct hf_bytes part, const struct reader *r, char *scratch)
{
    if (part.data == NULL)
        return NULL;

    size_t start = (size_t)((const char *)part.data - (const char *)r->text.data);
    scratch[start + part.len] = '\0';
    return scratch + start;
}

int hf_key_parse(const char *ns, struct hf_bytes text, char scratch[HF_KEY_SIZE],
                 struct hf_key *ret_key, struct hf_error *err)
{
    struct reader furthest = { .fault = "not a key" };
    int rc = hf_name_check("namespace", ns, err);

    if (rc != HF_OK)
        return rc;
    if (text.len >= HF_KEY_SIZE)
        return hf_error_set(err, HF_EINVAL, "key: %zu bytes are too many", text.len);
    for (enum hf_key_kind kind = 0; kind < HF_KEY_KINDS; kind++) {
        struct reader r = read_pattern(KINDS[kind].pattern, ns, text);

        if (r.fault == NULL) {
            memcpy(scratch, text.data, text.len);
            scratch[text.len] = '\0';
            *ret_key = (struct hf_key){
                .kind = kind,
                .name = as_string(r.names[0], &r, scratch),
                .sub = as_string(r.names[1], &r, scratch),
                .seq = r.seq,
            };
            return HF_OK;
        }
        if (kind == 0 || r.at > furthest.at)
            furthest = r;
    }
    return hf_error_set(err, HF_EINVAL, "key, byte %zu: %s", furthest.at + 1, furthest.fault);
}

bool hf_key_is_ephemeral(enum hf_key_kind kind)
{
    assert(kind < HF_KEY_KINDS);
    return KINDS[kind].life == LEASE;
}

const ProtobufCMessageDescriptor *hf_key_get_record(enum hf_key_kind kind)
{
    assert(kind < HF_KEY_KINDS);
    return KINDS[kind].record;
}
