#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schema/json.h"
#include "schema/json_scalar.h"
#include "schema/json_scan.h"
#include "schema/json_type.h"

struct decoder {
    struct hf_json_scan scan;
    struct hf_json_arena arena;
    bool reject_unknown;
    /* Values of the arrays that are still open, the innermost last: an array moves into the
     * arena when its length is known. */
    char *stack;
    size_t stack_len;
    size_t stack_cap;
};

/* Which fields of a message were given, by index. */
struct seen {
    uint64_t bits[HF_JSON_FIELDS_MAX / 64];
};

static int decode_message(struct decoder *d, const ProtobufCMessageDescriptor *type,
                          ProtobufCMessage **ret_message);

static int decode_value(struct decoder *d, const ProtobufCFieldDescriptor *field,
                        union hf_json_value *ret)
{
    if (field->type == PROTOBUF_C_TYPE_MESSAGE)
        return decode_message(d, field->descriptor, &ret->message);
    return hf_json_scalar_decode(&d->scan, field, ret);
}

static void store(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                  const union hf_json_value *value)
{
    memcpy(hf_json_type_slot(message, field), value, hf_json_type_size(field));
}

static ProtobufCMessage *new_message(struct decoder *d, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *message =
        hf_json_arena_alloc(&d->arena, type->sizeof_message, HF_JSON_ALIGN);

    if (message != NULL)
        protobuf_c_message_init(type, message);
    return message;
}

static int push(struct decoder *d, const void *value, size_t size)
{
    if (!hf_grow(&d->stack, &d->stack_cap, d->stack_len + size, 1))
        return hf_json_scan_no_memory(&d->scan);
    memcpy(d->stack + d->stack_len, value, size);
    d->stack_len += size;
    return HF_OK;
}

/* Moves what was pushed since `base` into the message's repeated field. */
static int pop_all(struct decoder *d, size_t base, ProtobufCMessage *message,
                   const ProtobufCFieldDescriptor *field)
{
    size_t bytes = d->stack_len - base;
    void *items;

    if (bytes == 0)
        return HF_OK;
    items = hf_json_arena_alloc(&d->arena, bytes, HF_JSON_ALIGN);
    if (items == NULL)
        return hf_json_scan_no_memory(&d->scan);
    memcpy(items, d->stack + base, bytes);
    memcpy(hf_json_type_slot(message, field), &items, sizeof items);
    *hf_json_type_count(message, field) = bytes / hf_json_type_size(field);
    d->stack_len = base;
    return HF_OK;
}

static int decode_elements(struct decoder *d, const ProtobufCFieldDescriptor *field)
{
    struct hf_json_path here = { .up = d->scan.path };
    size_t size = hf_json_type_size(field);
    int more;

    while ((more = hf_json_scan_more(&d->scan, ']', here.index)) > 0) {
        union hf_json_value value;
        int err;

        d->scan.path = &here;
        err = decode_value(d, field, &value);
        d->scan.path = here.up;
        if (err == HF_OK)
            err = push(d, &value, size);
        if (err != HF_OK)
            return err;
        here.index++;
    }
    return more;
}

static int decode_entry(struct decoder *d, const ProtobufCMessageDescriptor *type)
{
    struct hf_json_path here = { .up = d->scan.path };
    ProtobufCMessage *entry = new_message(d, type);
    union hf_json_value value;
    struct hf_json_name name;
    int err = entry != NULL ? HF_OK : hf_json_scan_no_memory(&d->scan);

    if (err == HF_OK)
        err = hf_json_scan_member(&d->scan, &name);
    if (err == HF_OK)
        err = hf_json_scan_remember(&d->scan, &name);
    if (err == HF_OK)
        err = hf_json_scalar_decode_key(&d->scan, &type->fields[0], &name, &value);
    if (err != HF_OK)
        return err;
    store(entry, &type->fields[0], &value);

    here.key = name.name.text;
    here.key_len = name.name.len;
    d->scan.path = &here;
    err = decode_value(d, &type->fields[1], &value);
    d->scan.path = here.up;
    if (err != HF_OK)
        return err;
    store(entry, &type->fields[1], &value);
    return push(d, &entry, sizeof(void *));
}

static int decode_entries(struct decoder *d, const ProtobufCMessageDescriptor *type)
{
    size_t first = d->scan.n_names;
    size_t n = 0;
    int more;

    while ((more = hf_json_scan_more(&d->scan, '}', n++)) > 0) {
        int err = decode_entry(d, type);

        if (err != HF_OK)
            return err;
    }
    return more != HF_OK ? more : hf_json_scan_distinct(&d->scan, first);
}

static int decode_repeated(struct decoder *d, ProtobufCMessage *message,
                           const ProtobufCFieldDescriptor *field)
{
    bool map = hf_json_type_is_map(field);
    size_t base = d->stack_len;
    int err;

    if (hf_json_scan_peek(&d->scan) != (map ? '{' : '['))
        return hf_json_scan_expected(&d->scan, d->scan.at, map ? "an object" : "an array");
    err = hf_json_scan_enter(&d->scan);
    if (err == HF_OK)
        err = map ? decode_entries(d, field->descriptor) : decode_elements(d, field);
    return err == HF_OK ? pop_all(d, base, message, field) : err;
}

/* A field's JSON name for a message, or its own name where that is too long. */
static const char *json_name(const ProtobufCFieldDescriptor *field,
                             char out[HF_JSON_GUESS_SIZE])
{
    if (strlen(field->name) >= HF_JSON_GUESS_SIZE)
        return field->name;
    out[hf_json_type_name(field->name, out)] = '\0';
    return out;
}

/* Of the fields of a oneof at most one is set. */
static int check_oneof(struct decoder *d, const ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
    int chosen = *hf_json_type_presence(message, field);
    const ProtobufCFieldDescriptor *other;
    char name[HF_JSON_GUESS_SIZE];

    if (chosen == 0)
        return HF_OK;
    other = protobuf_c_message_descriptor_get_field(message->descriptor, (unsigned)chosen);
    return hf_json_scan_fail(&d->scan, HF_EINVAL, d->scan.at,
                             "cannot be given together with %s", json_name(other, name));
}

static int decode_singular(struct decoder *d, ProtobufCMessage *message,
                           const ProtobufCFieldDescriptor *field)
{
    bool oneof = hf_json_type_is_oneof(field);
    int *presence = hf_json_type_presence(message, field);
    union hf_json_value value;
    int err = oneof ? check_oneof(d, message, field) : HF_OK;

    if (err == HF_OK)
        err = decode_value(d, field, &value);
    if (err != HF_OK)
        return err;
    store(message, field, &value);
    if (presence != NULL)
        *presence = oneof ? (int)field->id : 1;
    return HF_OK;
}

static int decode_field(struct decoder *d, ProtobufCMessage *message,
                        const ProtobufCFieldDescriptor *field)
{
    struct hf_json_path here = { .up = d->scan.path, .field = field->name };
    int err;

    d->scan.path = &here;
    if (hf_json_scan_peek(&d->scan) == 'n')
        err = hf_json_scan_word(&d->scan, "null");
    else if (field->label == PROTOBUF_C_LABEL_REPEATED)
        err = decode_repeated(d, message, field);
    else
        err = decode_singular(d, message, field);
    d->scan.path = here.up;
    return err;
}

static int fail_unknown(struct decoder *d, const ProtobufCMessageDescriptor *type,
                        const struct hf_json_name *name)
{
    char excerpt[HF_JSON_EXCERPT_SIZE];
    struct hf_json_guess guess;

    hf_json_scan_guess_init(&guess, name->name);
    for (unsigned i = 0; i < type->n_fields; i++) {
        char known[HF_JSON_GUESS_SIZE];

        hf_json_scan_guess(&guess, json_name(&type->fields[i], known));
    }
    return hf_json_scan_fail(&d->scan, HF_EINVAL, name->at, "unknown member \"%s\"%s",
                             hf_json_scan_excerpt(name->name, excerpt),
                             hf_json_scan_guess_text(&guess));
}

static int skip_unknown(struct decoder *d, const ProtobufCMessageDescriptor *type,
                        const struct hf_json_name *name)
{
    struct hf_json_path here = { .up = d->scan.path,
                                 .key = name->name.text,
                                 .key_len = name->name.len };
    int err;

    if (d->reject_unknown)
        return fail_unknown(d, type, name);
    err = hf_json_scan_remember(&d->scan, name);
    if (err != HF_OK)
        return err;
    d->scan.path = &here;
    err = hf_json_scan_skip(&d->scan);
    d->scan.path = here.up;
    return err;
}

static int mark_seen(struct decoder *d, struct seen *seen, size_t index,
                     const struct hf_json_name *name)
{
    uint64_t bit = UINT64_C(1) << index % 64;
    char excerpt[HF_JSON_EXCERPT_SIZE];

    if ((seen->bits[index / 64] & bit) != 0)
        return hf_json_scan_fail(&d->scan, HF_EINVAL, name->at, "duplicate member \"%s\"",
                                 hf_json_scan_excerpt(name->name, excerpt));
    seen->bits[index / 64] |= bit;
    return HF_OK;
}

static int decode_members(struct decoder *d, ProtobufCMessage *message)
{
    const ProtobufCMessageDescriptor *type = message->descriptor;
    size_t first = d->scan.n_names;
    struct seen seen = { { 0 } };
    unsigned hint = 0;
    size_t n = 0;
    int more;

    while ((more = hf_json_scan_more(&d->scan, '}', n++)) > 0) {
        const ProtobufCFieldDescriptor *field = NULL;
        struct hf_json_name name;
        int err = hf_json_scan_member(&d->scan, &name);

        if (err != HF_OK)
            return err;
        field = hf_json_type_field(type, name.name.text, name.name.len, &hint);
        if (field == NULL) {
            err = skip_unknown(d, type, &name);
        } else {
            err = mark_seen(d, &seen, (size_t)(field - type->fields), &name);
            if (err == HF_OK)
                err = decode_field(d, message, field);
        }
        if (err != HF_OK)
            return err;
    }
    return more != HF_OK ? more : hf_json_scan_distinct(&d->scan, first);
}

static int decode_message(struct decoder *d, const ProtobufCMessageDescriptor *type,
                          ProtobufCMessage **ret_message)
{
    ProtobufCMessage *message = new_message(d, type);
    int err;

    assert(type->n_fields <= HF_JSON_FIELDS_MAX);

    if (message == NULL)
        return hf_json_scan_no_memory(&d->scan);
    if (hf_json_type_kind(type) != HF_JSON_PLAIN) {
        err = hf_json_scalar_decode_time(&d->scan, message);
    } else if (hf_json_scan_peek(&d->scan) != '{') {
        err = hf_json_scan_expected(&d->scan, d->scan.at, "an object");
    } else {
        err = hf_json_scan_enter(&d->scan);
        if (err == HF_OK)
            err = decode_members(d, message);
    }
    if (err == HF_OK)
        *ret_message = message;
    return err;
}

int hf_json_decode(const ProtobufCMessageDescriptor *type, const char *text, size_t len,
                   const struct hf_json_options *options, ProtobufCMessage **ret_message,
                   struct hf_error *err)
{
    static const struct hf_json_options DEFAULTS;
    const struct hf_json_options *o = options != NULL ? options : &DEFAULTS;
    size_t max_bytes = o->max_bytes != 0 ? o->max_bytes : HF_JSON_MAX_BYTES;
    ProtobufCMessage *message = NULL;
    struct decoder d = {
        .scan = { .begin = text,
                  .at = text,
                  .end = text + len,
                  .depth_left = o->max_depth != 0 ? o->max_depth : HF_JSON_MAX_DEPTH,
                  .arena = &d.arena,
                  .err = err },
        /* The strings are shorter than the text, by about as much as the messages need. */
        .arena = { .block_bytes = type->sizeof_message + len },
        .reject_unknown = o->reject_unknown,
    };
    int code;

    if (len > max_bytes)
        return hf_error_set(err, HF_ELIMIT, "%zu bytes of JSON are more than the limit of %zu",
                            len, max_bytes);
    code = decode_message(&d, type, &message);
    if (code == HF_OK)
        code = hf_json_scan_finish(&d.scan);
    hf_json_scan_done(&d.scan);
    free(d.stack);
    if (code != HF_OK) {
        hf_json_arena_done(&d.arena);
        return code;
    }
    *ret_message = message;
    return HF_OK;
}

void hf_json_free(ProtobufCMessage *message)
{
    hf_json_arena_free(message);
}
