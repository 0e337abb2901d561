#include "core/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "schema/json.h"

void hf_plan_init(struct hf_plan *plan, const char *ns, enum hf_writer writer,
                  const char *op_id)
{
    *plan = (struct hf_plan){ .ns = ns, .writer = writer };
    (void)snprintf(plan->op_id, sizeof plan->op_id, "%s", op_id);
}

void hf_plan_done(struct hf_plan *plan)
{
    for (size_t i = 0; i < plan->text_count; i++)
        free(plan->texts[i]);
    *plan = (struct hf_plan){ 0 };
}

const char *hf_row_name(enum hf_row row)
{
    switch (row) {
#define X(name)                                                                                \
    case HF_ROW_##name: return #name;
        HF_ROW_MAP(X)
#undef X
    case HF_ROW_NONE:
    case HF_ROWS: break;
    }
    return "?";
}

void hf_plan_begin_row(struct hf_plan *plan, enum hf_row row)
{
    plan->row = row;
}

void hf_plan_fail(struct hf_plan *plan, int err, const char *why)
{
    if (plan->err == HF_OK)
        plan->err = hf_error_set(&plan->why, err, "%s", why);
}

/* There is room: each guard and each write owns two texts at most. */
static const char *keep(struct hf_plan *plan, char *text)
{
    plan->texts[plan->text_count++] = text;
    return text;
}

/* `len` as hf_key_format and hf_key_prefix return it. */
static const char *keep_key(struct hf_plan *plan, const char *text, int len,
                            const struct hf_error *why)
{
    char *copy;

    if (len < 0) {
        hf_plan_fail(plan, len, why->text);
        return NULL;
    }
    copy = hf_strdup(text);
    if (copy == NULL) {
        hf_plan_fail(plan, HF_ENOMEM, hf_err_text(HF_ENOMEM));
        return NULL;
    }
    return keep(plan, copy);
}

static const char *key_text(struct hf_plan *plan, const struct hf_key *key)
{
    char text[HF_KEY_SIZE];
    struct hf_error why = { "" };
    int len = hf_key_format(plan->ns, key, text, &why);

    return keep_key(plan, text, len, &why);
}

static bool same_text(struct hf_bytes a, struct hf_bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

static bool has_guard(const struct hf_plan *plan, const struct hf_plan_guard *guard)
{
    for (size_t i = 0; i < plan->guard_count; i++) {
        const struct hf_plan_guard *have = &plan->guards[i];

        if (have->what == guard->what && have->value == guard->value &&
            strcmp(have->key, guard->key) == 0 && same_text(have->text, guard->text))
            return true;
    }
    return false;
}

static void add_guard(struct hf_plan *plan, struct hf_key key, struct hf_plan_guard guard)
{
    char *copy = NULL;

    if (plan->err == HF_OK && plan->guard_count == HF_PLAN_GUARDS)
        hf_plan_fail(plan, HF_ELIMIT, "a plan has too many guards");
    if (plan->err != HF_OK)
        return;
    guard.row = plan->row;
    guard.key = key_text(plan, &key);
    if (guard.key == NULL)
        return;
    if (has_guard(plan, &guard)) {
        free(plan->texts[--plan->text_count]); /* of the key */
        return;
    }
    if (guard.text.len > 0) {
        copy = hf_memdup(guard.text.data, guard.text.len);
        if (copy == NULL) {
            hf_plan_fail(plan, HF_ENOMEM, hf_err_text(HF_ENOMEM));
            return;
        }
        guard.text.data = keep(plan, copy);
    }
    plan->guards[plan->guard_count++] = guard;
}

void hf_plan_guard(struct hf_plan *plan, struct hf_key key, enum hf_guard what, int64_t value)
{
    add_guard(plan, key, (struct hf_plan_guard){ .what = what, .value = value });
}

void hf_plan_guard_same(struct hf_plan *plan, struct hf_key key, int64_t mod_rev,
                        struct hf_bytes text)
{
    hf_plan_guard(plan, key, HF_GUARD_MOD, mod_rev);
    if (text.len > 0)
        hf_plan_guard_text(plan, key, text);
}

void hf_plan_guard_text(struct hf_plan *plan, struct hf_key key, struct hf_bytes text)
{
    add_guard(plan, key, (struct hf_plan_guard){ .what = HF_GUARD_TEXT, .text = text });
}

static bool has_room(struct hf_plan *plan)
{
    if (plan->err == HF_OK && plan->write_count == HF_PLAN_WRITES)
        hf_plan_fail(plan, HF_ELIMIT, "a plan has too many writes");
    return plan->err == HF_OK;
}

static struct hf_plan_write *add_write(struct hf_plan *plan, const struct hf_key *key)
{
    struct hf_plan_write *write = &plan->writes[plan->write_count];
    const char *text;

    if (!has_room(plan))
        return NULL;
    text = key_text(plan, key);
    for (size_t i = 0; text != NULL && i < plan->write_count; i++) {
        if (strcmp(plan->writes[i].key, text) == 0)
            hf_plan_fail(plan, HF_EINVAL, "a plan writes the same key twice");
    }
    if (plan->err != HF_OK)
        return NULL;
    *write = (struct hf_plan_write){ .key = text };
    plan->write_count++;
    return write;
}

/* protobuf-c gives the entries of every map<string, string> a type of its own and the same
 * shape. */
struct op_entry {
    ProtobufCMessage base;
    char *key;
    char *value;
};

static const char *const WRITERS[] = {
    [HF_WRITER_OWNER] = "owner",
    [HF_WRITER_CONTROLLER] = "controller",
    [HF_WRITER_OPERATOR] = "operator",
};

enum { MOST_OP_IDS = 8 }; /* three classes, and room for newer ones */

static const ProtobufCFieldDescriptor *op_ids_field(const ProtobufCMessage *record)
{
    return protobuf_c_message_descriptor_get_field_by_name(record->descriptor, "op_ids");
}

static size_t get_op_ids(const ProtobufCMessage *record, const ProtobufCFieldDescriptor *field,
                         struct op_entry ***ret_entries)
{
    size_t count;

    memcpy(&count, (const char *)record + field->quantifier_offset, sizeof count);
    memcpy(ret_entries, (const char *)record + field->offset, sizeof *ret_entries);
    return count;
}

const char *hf_plan_find_op_id(const ProtobufCMessage *record, enum hf_writer writer)
{
    const ProtobufCFieldDescriptor *field = op_ids_field(record);
    struct op_entry **entries;
    size_t count = field != NULL ? get_op_ids(record, field, &entries) : 0;

    for (size_t i = 0; i < count; i++) {
        if (strcmp(entries[i]->key, WRITERS[writer]) == 0)
            return entries[i]->value;
    }
    return NULL;
}

/* The record's text with our op_id in it. The copy is shallow: only its op_ids are its own. */
static int encode_stamped(struct hf_plan *plan, const ProtobufCMessage *record,
                          struct hf_bytes old, struct hf_buf *out, struct hf_error *why)
{
    const ProtobufCFieldDescriptor *field = op_ids_field(record);
    HF_CLEANUP_FREE ProtobufCMessage *copy = NULL;
    struct op_entry ours = { .value = plan->op_id };
    struct op_entry *list[MOST_OP_IDS], **entries = list, **before;
    size_t count = 0, others;

    if (field == NULL)
        return hf_json_encode_over(record, old.data, old.len, out, why);
    others = get_op_ids(record, field, &before);
    for (size_t i = 0; i < others && count + 1 < MOST_OP_IDS; i++) {
        if (strcmp(before[i]->key, WRITERS[plan->writer]) != 0)
            list[count++] = before[i];
    }
    protobuf_c_message_init(field->descriptor, &ours.base);
    ours.key = (char *)WRITERS[plan->writer];
    ours.value = plan->op_id;
    list[count++] = &ours;

    copy = hf_memdup(record, record->descriptor->sizeof_message);
    if (copy == NULL)
        return HF_ENOMEM;
    memcpy((char *)copy + field->quantifier_offset, &count, sizeof count);
    memcpy((char *)copy + field->offset, &entries, sizeof entries);
    return hf_json_encode_over(copy, old.data, old.len, out, why);
}

void hf_plan_put(struct hf_plan *plan, struct hf_key key, const ProtobufCMessage *record,
                 struct hf_bytes old, int64_t lease)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    struct hf_plan_write *write;
    struct hf_error why = { "" };
    char *value = NULL;
    int err;

    if (plan->err == HF_OK && hf_key_is_ephemeral(key.kind) != (lease != 0))
        hf_plan_fail(plan, HF_EINVAL,
                     lease == 0 ? "an ephemeral key was to be put without its lease"
                                : "a kept key was to be put with a lease");
    write = add_write(plan, &key);
    if (write == NULL)
        return;
    err = encode_stamped(plan, record, old, &text, &why);
    if (err == HF_OK)
        err = hf_buf_take(&text, &value, &write->value_len);
    if (err != HF_OK) {
        hf_plan_fail(plan, err, why.text[0] != '\0' ? why.text : hf_err_text(err));
        return;
    }
    write->value = keep(plan, value);
    write->lease = lease;
}

void hf_plan_put_body(struct hf_plan *plan, struct hf_key key, struct hf_bytes body)
{
    struct hf_plan_write *write;
    char *value;

    if (plan->err == HF_OK && hf_key_get_record(key.kind) != NULL)
        hf_plan_fail(plan, HF_EINVAL, "a record was to be put as a body");
    write = add_write(plan, &key);
    if (write == NULL)
        return;
    value = hf_memdup(body.data, body.len);
    if (value == NULL) {
        hf_plan_fail(plan, HF_ENOMEM, hf_err_text(HF_ENOMEM));
        return;
    }
    write->value = keep(plan, value);
    write->value_len = body.len;
}

void hf_plan_delete(struct hf_plan *plan, struct hf_key key)
{
    (void)add_write(plan, &key);
}

void hf_plan_delete_all(struct hf_plan *plan, enum hf_key_scope scope, const char *name)
{
    char text[HF_KEY_SIZE];
    struct hf_error why = { "" };
    const char *key;

    if (!has_room(plan))
        return;
    key = keep_key(plan, text, hf_key_prefix(plan->ns, scope, name, text, &why), &why);
    if (key != NULL)
        plan->writes[plan->write_count++] = (struct hf_plan_write){ .key = key, .all = true };
}

struct hf_bytes hf_plan_find_put(const struct hf_plan *plan, struct hf_key key)
{
    char text[HF_KEY_SIZE];

    if (hf_key_format(plan->ns, &key, text, NULL) < 0)
        return (struct hf_bytes){ 0 };
    for (size_t i = 0; i < plan->write_count; i++) {
        const struct hf_plan_write *write = &plan->writes[i];

        if (strcmp(write->key, text) == 0)
            return (struct hf_bytes){ write->value, write->value_len };
    }
    return (struct hf_bytes){ 0 };
}

/* Whether applying the plan makes one of its own guards fail. A key that is put gets a new
 * mod_revision; one that is deleted loses its create_revision, too. */
static bool undoes(const struct hf_plan_guard *guard, const struct hf_plan_write *write)
{
    if (strcmp(guard->key, write->key) != 0)
        return false;
    switch (guard->what) {
    case HF_GUARD_MOD: return write->value != NULL || guard->value != 0;
    case HF_GUARD_ABSENT: return write->value != NULL;
    case HF_GUARD_CREATE: return write->value == NULL;
    case HF_GUARD_GONE:
    case HF_GUARD_LEASE:
    case HF_GUARD_TEXT: break;
    }
    return false;
}

static bool applies_once(const struct hf_plan *plan)
{
    for (size_t i = 0; i < plan->guard_count; i++) {
        for (size_t j = 0; j < plan->write_count; j++) {
            if (undoes(&plan->guards[i], &plan->writes[j]))
                return true;
        }
    }
    return false;
}

int hf_plan_check(struct hf_plan *plan, struct hf_error *err)
{
    if (plan->err == HF_OK && !applies_once(plan))
        hf_plan_fail(plan, HF_EINVAL, "a plan must change a key whose revision it guards");
    if (plan->err != HF_OK && err != NULL)
        *err = plan->why;
    return plan->err;
}

/* What follows "/holdfast/<namespace>/", or the whole key where that is not its beginning. */
static const char *short_key(const struct hf_plan *plan, const char *key)
{
    char prefix[HF_KEY_SIZE];
    int len = hf_key_prefix(plan->ns, HF_KEY_IN_NAMESPACE, NULL, prefix, NULL);

    return len > 0 && strncmp(key, prefix, (size_t)len) == 0 ? key + len : key;
}

static void describe_guard(const struct hf_plan *plan, const struct hf_plan_guard *guard,
                           struct hf_buf *out)
{
    const char *key = short_key(plan, guard->key);

    switch (guard->what) {
    case HF_GUARD_ABSENT: hf_buf_printf(out, "absent(%s)", key); break;
    case HF_GUARD_MOD:
        hf_buf_printf(out, "mod(%s) = %lld", key, (long long)guard->value);
        break;
    case HF_GUARD_CREATE:
        hf_buf_printf(out, "create(%s) = %lld", key, (long long)guard->value);
        break;
    case HF_GUARD_GONE:
        hf_buf_printf(out, "create(%s) != %lld", key, (long long)guard->value);
        break;
    case HF_GUARD_LEASE:
        hf_buf_printf(out, "lease(%s) = %llx", key, (unsigned long long)guard->value);
        break;
    case HF_GUARD_TEXT: hf_buf_printf(out, "text(%s)", key); break;
    }
}

void hf_plan_describe(const struct hf_plan *plan, struct hf_buf *out)
{
    for (size_t i = 0; i < plan->guard_count; i++) {
        hf_buf_puts(out, i == 0 ? "if " : ", ");
        describe_guard(plan, &plan->guards[i], out);
    }
    for (size_t i = 0; i < plan->write_count; i++)
        hf_buf_printf(out, "%s%s %s", i == 0 ? " then " : ", ",
                      plan->writes[i].value != NULL ? "put" : "delete",
                      short_key(plan, plan->writes[i].key));
}
