#include "types/types.h"

#include <string.h>

#include "types.inc"

static const ProtobufCMessageDescriptor *const ALL[] = {
#define X(descriptor) &(descriptor),
    TYPES(X)
#undef X
};

size_t hft_types_count(void)
{
    return sizeof ALL / sizeof ALL[0];
}

const ProtobufCMessageDescriptor *hft_types_get(size_t index)
{
    return ALL[index];
}

const ProtobufCMessageDescriptor *hft_types_find(const char *name)
{
    for (size_t i = 0; i < hft_types_count(); i++) {
        if (strcmp(ALL[i]->name, name) == 0)
            return ALL[i];
    }
    return NULL;
}
