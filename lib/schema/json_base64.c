#include <string.h>

#include "schema/json_text.h"

static const char ALPHABET[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static int digit_value(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    if (c == '+' || c == '-')
        return 62;
    if (c == '/' || c == '_')
        return 63;
    return -1;
}

/* Padding may be left out, but where it stands it has to be right. */
static size_t without_padding(const char *text, size_t len)
{
    if (len % 4 != 0)
        return len;
    for (int i = 0; i < 2 && len > 0 && text[len - 1] == '='; i++)
        len--;
    return len;
}

int hf_json_text_parse_base64(const char *text, size_t len, uint8_t *out, size_t *ret_len)
{
    uint32_t bits = 0;
    unsigned n_bits = 0;
    size_t n = 0;

    len = without_padding(text, len);
    if (len % 4 == 1)
        return HF_EINVAL;
    for (size_t i = 0; i < len; i++) {
        int digit = digit_value(text[i]);

        if (digit < 0)
            return HF_EINVAL;
        bits = bits << 6 | (uint32_t)digit;
        n_bits += 6;
        if (n_bits >= 8) {
            n_bits -= 8;
            out[n++] = (uint8_t)(bits >> n_bits);
        }
    }
    *ret_len = n;
    return HF_OK;
}

void hf_json_text_format_base64(const uint8_t *data, size_t len, char *out)
{
    for (; len > 0; out += 4) {
        size_t n = len < 3 ? len : 3;
        uint8_t group[3] = { 0 };

        memcpy(group, data, n);
        out[0] = ALPHABET[group[0] >> 2];
        out[1] = ALPHABET[(group[0] & 3) << 4 | group[1] >> 4];
        out[2] = ALPHABET[(group[1] & 15) << 2 | group[2] >> 6];
        out[3] = ALPHABET[group[2] & 63];
        memset(out + n + 1, '=', 3 - n);
        data += n;
        len -= n;
    }
}
