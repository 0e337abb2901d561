#include "base/id.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <sys/types.h>

#define TIME_BYTES   6
#define RANDOM_BYTES 10
#define ID_BYTES     (TIME_BYTES + RANDOM_BYTES)
#define TIME_DIGITS  10 /* 50 bits: two zeros lead */

int hf_id_random(void *out, size_t len)
{
    uint8_t *p = out;

    while (len > 0) {
        ssize_t n = getrandom(p, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return HF_EIO;
        p += n;
        len -= (size_t)n;
    }
    return HF_OK;
}

int hf_id_random_63(int64_t *ret_id)
{
    uint64_t value = 0;

    while (value == 0) {
        int rc = hf_id_random(&value, sizeof value);

        if (rc < 0)
            return rc;
        value &= INT64_MAX;
    }
    *ret_id = (int64_t)value;
    return HF_OK;
}

int hf_id_new(char ret_id[HF_ID_LEN + 1])
{
    uint8_t random[RANDOM_BYTES];
    int rc = hf_id_random(random, sizeof random);

    if (rc < 0)
        return rc;
    hf_id_format(hf_clock_wall(), random, ret_id);
    return HF_OK;
}

/* In the order of ASCII, so that ids sort as their bytes do; no letter that a person takes for
 * a digit or, by chance, for a word. */
static const char ALPHABET[] = "0123456789abcdefghjkmnpqrstvwxyz";

void hf_id_format(hf_ms wall, const uint8_t random[10], char ret_id[HF_ID_LEN + 1])
{
    uint8_t bytes[ID_BYTES];
    uint32_t bits = 0; /* the lowest `count` of them wait to be written */
    int count = 2;     /* 26 * 5 = 130 bits: two zeros lead */
    size_t at = 0;

    for (int i = 0; i < TIME_BYTES; i++)
        bytes[i] = (uint8_t)((uint64_t)wall >> (8 * (TIME_BYTES - 1 - i)));
    memcpy(bytes + TIME_BYTES, random, RANDOM_BYTES);

    for (size_t i = 0; i < ID_BYTES; i++) {
        bits = (bits << 8 | bytes[i]) & 0xfff; /* at most 4 are left over, 8 come */
        for (count += 8; count >= 5; count -= 5)
            ret_id[at++] = ALPHABET[bits >> (count - 5) & 31];
    }
    ret_id[at] = '\0';
}

int hf_id_get_time(const char *id, hf_ms *ret_wall)
{
    uint64_t wall = 0;

    if (strlen(id) != HF_ID_LEN)
        return HF_EINVAL;
    for (size_t i = 0; i < TIME_DIGITS; i++) {
        const char *digit = strchr(ALPHABET, id[i]);

        if (digit == NULL)
            return HF_EINVAL;
        wall = wall << 5 | (uint64_t)(digit - ALPHABET);
    }
    if (wall >> 48 != 0)
        return HF_EINVAL;
    *ret_wall = (hf_ms)wall;
    return HF_OK;
}
