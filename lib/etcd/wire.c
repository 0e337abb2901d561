#include "etcd/wire.h"

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
    return skip(wire, len);
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
