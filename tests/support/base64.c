#include "support/base64.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#define PADDING 64

static const char ALPHABET[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";

char *hft_base64_encode(const void *data, size_t len)
{
    const uint8_t *in = data;
    char *text = calloc(1, (len + 2) / 3 * 4 + 1);
    char *out = text;

    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < len; i += 3) {
        size_t left = len - i;
        uint32_t word = (uint32_t)in[i] << 16 | (left > 1 ? (uint32_t)in[i + 1] << 8 : 0) |
                        (left > 2 ? in[i + 2] : 0);

        *out++ = ALPHABET[word >> 18];
        *out++ = ALPHABET[word >> 12 & 63];
        *out++ = ALPHABET[left > 1 ? word >> 6 & 63 : PADDING];
        *out++ = ALPHABET[left > 2 ? word & 63 : PADDING];
    }
    return text;
}

static uint32_t digit(char c)
{
    const char *found = c != '\0' ? strchr(ALPHABET, c) : NULL;

    if (found == NULL || *found == '=') /* an assertion per digit would take for ever */
        ck_abort_msg("not base64: %c", c);
    return (uint32_t)(found - ALPHABET);
}

char *hft_base64_decode(const char *text, size_t *ret_len)
{
    size_t len = strlen(text);
    uint8_t *data = calloc(1, len / 4 * 3 + 1);
    uint8_t *out = data;

    ck_assert_ptr_nonnull(data);
    ck_assert_uint_eq(len % 4, 0);
    for (size_t i = 0; i < len; i += 4) {
        size_t padding = i + 4 < len ? 0 : (size_t)(text[i + 2] == '=') + (text[i + 3] == '=');
        uint32_t word = digit(text[i]) << 18 | digit(text[i + 1]) << 12;

        word |= padding < 2 ? digit(text[i + 2]) << 6 : 0;
        word |= padding < 1 ? digit(text[i + 3]) : 0;
        *out++ = (uint8_t)(word >> 16);
        if (padding < 2)
            *out++ = (uint8_t)(word >> 8);
        if (padding < 1)
            *out++ = (uint8_t)word;
    }
    *ret_len = (size_t)(out - data);
    return (char *)data;
}
