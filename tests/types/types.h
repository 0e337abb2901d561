/* types.h - all message types: every one of proto/holdfast/v1 and those of tests/types. */
#ifndef HFT_TYPES_TYPES_H
#define HFT_TYPES_TYPES_H

#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

/* The number of types, and each of them by its index. */
size_t hft_types_count(void);
const ProtobufCMessageDescriptor *hft_types_get(size_t index);

/* The type of that name ("holdfast.v1.Task"), or NULL. */
const ProtobufCMessageDescriptor *hft_types_find(const char *name);

#endif
