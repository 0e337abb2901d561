/* Whatever parses as a key must be built again from its parts to the same bytes. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "schema/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char scratch[HF_KEY_SIZE];
    char again[HF_KEY_SIZE];
    struct hf_key key;
    struct hf_error err;
    struct hf_bytes text = { data, size };

    if (hf_key_parse("default", text, scratch, &key, &err) != HF_OK)
        return 0;

    int len = hf_key_format("default", &key, again, &err);
    if (len < 0 || (size_t)len != size || memcmp(again, data, size) != 0)
        abort();
    if (hf_key_parse("other", text, scratch, &key, &err) == HF_OK)
        abort();
    return 0;
}
