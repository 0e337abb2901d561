#include "schema/json_old.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schema/json.h"
#include "schema/json_type.h"

void hf_json_old_done(struct hf_json_old *old)
{
    hf_json_arena_done(&old->arena);
    free(old->members);
    *old = (struct hf_json_old){ .err = old->err };
}

static int add_member(struct hf_json_old *old, struct hf_json_scan *scan,
                      const ProtobufCMessageDescriptor *type, unsigned *hint)
{
    struct hf_json_old_member member = { .field = NULL };
    struct hf_json_name name;
    int err = hf_json_scan_member(scan, &name);

    if (err == HF_OK)
        err = hf_json_scan_remember(scan, &name);
    if (err != HF_OK)
        return err;
    member.name = name.name;
    if (type != NULL)
        member.field = hf_json_type_field(type, name.name.text, name.name.len, hint);
    (void)hf_json_scan_peek(scan);
    member.value.text = scan->at;
    err = hf_json_scan_skip(scan);
    if (err != HF_OK)
        return err;
    member.value.len = (size_t)(scan->at - member.value.text);
    if (!hf_grow(&old->members, &old->cap_members, old->n_members + 1, sizeof member))
        return hf_json_scan_no_memory(scan);
    old->members[old->n_members++] = member;
    return HF_OK;
}

static int add_members(struct hf_json_old *old, struct hf_json_scan *scan,
                       const ProtobufCMessageDescriptor *type)
{
    unsigned hint = 0;
    size_t n = 0;
    int more;

    if (hf_json_scan_peek(scan) != '{')
        return hf_json_scan_expected(scan, scan->at, "an object");
    more = hf_json_scan_enter(scan);
    if (more != HF_OK)
        return more;
    while ((more = hf_json_scan_more(scan, '}', n++)) > 0) {
        int err = add_member(old, scan, type, &hint);

        if (err != HF_OK)
            return err;
    }
    if (more == HF_OK)
        more = hf_json_scan_distinct(scan, 0);
    return more == HF_OK ? hf_json_scan_finish(scan) : more;
}

static int compare_names(struct hf_json_span a, struct hf_json_span b)
{
    int order = memcmp(a.text, b.text, a.len < b.len ? a.len : b.len);

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_members(const void *left, const void *right)
{
    const struct hf_json_old_member *a = left;
    const struct hf_json_old_member *b = right;

    return compare_names(a->name, b->name);
}

static int compare_key(const void *key, const void *member)
{
    return compare_names(*(const struct hf_json_span *)key,
                         ((const struct hf_json_old_member *)member)->name);
}

/* The keys of a map are sorted, since they are asked for one by one: whoever wrote ten thousand
 * of them must not have all compared with all. */
int hf_json_old_open(struct hf_json_old *old, struct hf_json_span text,
                     const ProtobufCMessageDescriptor *type)
{
    size_t first = old->n_members;
    struct hf_json_scan scan = {
        .begin = text.text,
        .at = text.text,
        .end = text.text + text.len,
        .depth_left = HF_JSON_MAX_DEPTH,
        .arena = &old->arena,
        .err = old->err,
    };
    int err = add_members(old, &scan, type);

    hf_json_scan_done(&scan);
    if (err == HF_OK && type == NULL && old->n_members > first)
        qsort(old->members + first, old->n_members - first, sizeof *old->members,
              compare_members);
    return err;
}

struct hf_json_span hf_json_old_field(const struct hf_json_old *old, size_t first,
                                      const ProtobufCFieldDescriptor *field)
{
    for (size_t i = first; i < old->n_members; i++) {
        if (old->members[i].field == field)
            return old->members[i].value;
    }
    return (struct hf_json_span){ 0 };
}

struct hf_json_span hf_json_old_key(const struct hf_json_old *old, size_t first,
                                    struct hf_json_span key)
{
    const struct hf_json_old_member *member = NULL;

    if (old->n_members > first)
        member = bsearch(&key, old->members + first, old->n_members - first, sizeof *member,
                         compare_key);
    return member != NULL ? member->value : (struct hf_json_span){ 0 };
}

/* The end of the string that begins at `p`. */
static const char *string_end(const char *p)
{
    for (p++; *p != '"'; p++) {
        if (*p == '\\')
            p++;
    }
    return p + 1;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

void hf_json_old_copy(struct hf_json_span value, struct hf_buf *out)
{
    const char *p = value.text;
    const char *end = p + value.len;

    while (p < end) {
        const char *run = p;

        while (p < end && !is_space(*p))
            p = *p == '"' ? string_end(p) : p + 1;
        hf_buf_append(out, run, (size_t)(p - run));
        while (p < end && is_space(*p))
            p++;
    }
}
