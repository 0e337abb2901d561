/* wire.h - the bytes of a protobuf message, field by field, where they lie.
 *
 * protobuf-c makes an object of every key and value. For lists, which are most of what a mirror
 * reads, the answer is walked in place instead. Pure, bounds-checked; foreign bytes are
 * welcome. Internal to lib/etcd. */
#ifndef HF_ETCD_WIRE_H
#define HF_ETCD_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct hf_arena;

#define HF_VARINT_MAX 10 /* bytes */

/* A number in as many bytes as it needs; returns how many. `get` returns 0 when `len` bytes do
 * not hold one of 64 bits. */
size_t hf_varint_put(uint8_t *out, uint64_t value);
size_t hf_varint_get(const uint8_t *bytes, size_t len, uint64_t *ret_value);

/* The tags of field `n`: as a number, and as a string, bytes or message. A field of the right
 * number and any other kind is a field that we do not know. */
#define HF_WIRE_NUMBER(n) ((uint32_t)(n) << 3)
#define HF_WIRE_BYTES(n)  ((uint32_t)(n) << 3 | 2)

/* A walk over one message: set `rest` to its bytes. */
struct hf_wire {
    struct hf_bytes rest;
    bool broken; /* what follows is not a protobuf message */

    /* The field that hf_wire_next came to. */
    uint32_t tag;
    uint64_t value;        /* of an HF_WIRE_NUMBER */
    struct hf_bytes bytes; /* of an HF_WIRE_BYTES; borrowed */
};

/* Goes to the next field; false at the end, or when the bytes are broken. */
bool hf_wire_next(struct hf_wire *wire);

/* Cuts a message that lies in pieces between its fields: each of the runs, for which there must
 * be room for two per piece, is a message by itself, and one after the other they are the whole
 * one. Only what crosses from piece to piece is copied, into the arena. HF_ECORRUPT when the
 * bytes end within a field or are broken where they cross, HF_ENOMEM. */
int hf_wire_cut(const struct hf_bytes *pieces, size_t count, struct hf_arena *arena,
                struct hf_bytes *runs, size_t *ret_run_count) HF_MUST_CHECK;

#endif
