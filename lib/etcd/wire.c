#include "etcd/wire.h"

#include <string.h>

#include "etcd/arena.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 };

static bool broken(struct hf_wire *wire)
{
    wire->broken = true;
    return false;
}

static bool skip(struct hf_wire *wire, uint64_t len)
{
    if (len > wire->rest.len)
        return broken(wire);
    wire->rest.data = (const uint8_t *)wire->rest.data + len;
    wire->rest.len -= (size_t)len;
    return true;
}

size_t hf_varint_put(uint8_t *out, uint64_t value)
{
    size_t len = 0;

    for (; value >= 0x80; value >>= 7)
        out[len++] = (uint8_t)(value | 0x80);
    out[len++] = (uint8_t)value;
    return len;
}

size_t hf_varint_get(const uint8_t *bytes, size_t len, uint64_t *ret_value)
{
    uint64_t value = 0;

    for (size_t i = 0; i < len && i < HF_VARINT_MAX; i++) {
        value |= (uint64_t)(bytes[i] & 0x7f) << (7 * i);
        if (bytes[i] < 0x80) {
            if (i == HF_VARINT_MAX - 1 && bytes[i] > 1)
                return 0; /* the 65th bit */
            *ret_value = value;
            return i + 1;
        }
    }
    return 0;
}

static bool take_varint(struct hf_wire *wire, uint64_t *ret_value)
{
    size_t len = hf_varint_get(wire->rest.data, wire->rest.len, ret_value);

    return len > 0 ? skip(wire, len) : broken(wire);
}

static bool take_bytes(struct hf_wire *wire)
{
    uint64_t len;

    if (!take_varint(wire, &len))
        return false;
    wire->bytes = (struct hf_bytes){ .data = wire->rest.data, .len = (size_t)len };
    if (!skip(wire, len))
        return false;
    /* Most of a list is pairs of one size: the one after the next begins about there. */
    if (len < wire->rest.len)
        __builtin_prefetch((const uint8_t *)wire->rest.data + len);
    return true;
}

bool hf_wire_next(struct hf_wire *wire)
{
    uint64_t tag;

    if (wire->broken || wire->rest.len == 0 || !take_varint(wire, &tag))
        return false;
    if (tag >> 3 == 0 || tag > UINT32_MAX)
        return broken(wire);
    wire->tag = (uint32_t)tag;
    switch (tag & 7) {
    case VARINT: return take_varint(wire, &wire->value);
    case BYTES: return take_bytes(wire);
    case FIXED64: return skip(wire, 8); /* etcd has no such fields */
    case FIXED32: return skip(wire, 4);
    default: return broken(wire); /* groups are of the past */
    }
}

/* A message in pieces. */

/* A tag and a length. */
enum { HEAD_MAX = 2 * HF_VARINT_MAX };

/* What is left of the pieces; the first of them is never empty. */
struct rest {
    const struct hf_bytes *pieces;
    size_t count;
    size_t offset; /* into the first */
    size_t bytes;  /* of all */
};

static void skip_rest(struct rest *rest, size_t len)
{
    rest->offset += len;
    rest->bytes -= len;
    while (rest->count > 0 && rest->offset == rest->pieces->len) {
        rest->pieces++;
        rest->count--;
        rest->offset = 0;
    }
}

static struct hf_bytes first_of(const struct rest *rest)
{
    return (struct hf_bytes){ .data = (const uint8_t *)rest->pieces->data + rest->offset,
                              .len = rest->pieces->len - rest->offset };
}

/* Takes the next `len` bytes, from however many pieces; there must be so many. */
static void gather(struct rest *rest, uint8_t *out, size_t len)
{
    while (len > 0) {
        struct hf_bytes first = first_of(rest);
        size_t part = first.len < len ? first.len : len;

        memcpy(out, first.data, part);
        skip_rest(rest, part);
        out += part;
        len -= part;
    }
}

/* The bytes at the front that are whole fields. */
static struct hf_bytes whole_fields(struct hf_bytes bytes)
{
    struct hf_wire wire = { .rest = bytes };
    size_t left = bytes.len;

    while (hf_wire_next(&wire))
        left = wire.rest.len;
    return (struct hf_bytes){ .data = bytes.data, .len = bytes.len - left };
}

/* How long the field is that begins with `head`; 0 when that is no field. */
static uint64_t length_of_field(const uint8_t *head, size_t len)
{
    uint64_t tag, value;
    size_t tag_len = hf_varint_get(head, len, &tag), value_len;

    if (tag_len == 0)
        return 0;
    value_len = hf_varint_get(head + tag_len, len - tag_len, &value);
    switch (tag & 7) {
    case VARINT: return value_len > 0 ? tag_len + value_len : 0;
    case BYTES: return value_len > 0 && value <= SIZE_MAX / 2 ? tag_len + value_len + value : 0;
    case FIXED64: return tag_len + 8;
    case FIXED32: return tag_len + 4;
    default: return 0;
    }
}

/* The field at the front, which goes on in the next piece, in one. One that does not is not
 * whole although all of it is there: it is broken. */
static int join_field(struct rest *rest, struct hf_arena *arena, struct hf_bytes *ret_field)
{
    struct rest ahead = *rest; /* looks, and takes nothing */
    uint8_t head[HEAD_MAX], *field;
    size_t head_len = rest->bytes < HEAD_MAX ? rest->bytes : HEAD_MAX;
    uint64_t len;

    gather(&ahead, head, head_len);
    len = length_of_field(head, head_len);
    if (len <= first_of(rest).len || len > rest->bytes)
        return HF_ECORRUPT;
    field = hf_arena_alloc(arena, (size_t)len);
    if (field == NULL)
        return HF_ENOMEM;
    gather(rest, field, (size_t)len);
    *ret_field = (struct hf_bytes){ .data = field, .len = (size_t)len };
    return HF_OK;
}

int hf_wire_cut(const struct hf_bytes *pieces, size_t count, struct hf_arena *arena,
                struct hf_bytes *runs, size_t *ret_run_count)
{
    struct rest rest = { .pieces = pieces, .count = count };
    size_t run_count = 0;

    for (size_t i = 0; i < count; i++)
        rest.bytes += pieces[i].len;
    skip_rest(&rest, 0); /* to the first that is not empty */
    while (rest.count > 0) {
        struct hf_bytes run = whole_fields(first_of(&rest));

        if (run.len > 0) {
            skip_rest(&rest, run.len);
        } else {
            int err = join_field(&rest, arena, &run);

            if (err != HF_OK)
                return err;
        }
        runs[run_count++] = run;
    }
    *ret_run_count = run_count;
    return HF_OK;
}
