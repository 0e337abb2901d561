#include "base/hash.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "unit/suite.h"

START_TEST(the_same_bytes_and_seed_give_the_same_hash)
{
    char copy[] = "?writer-000042";

    memcpy(copy, "!writer-000042", sizeof copy);
    ck_assert_uint_eq(hf_hash(7, "writer-000042", 13), hf_hash(7, copy + 1, 13));
    ck_assert_uint_ne(hf_hash(7, "writer-000042", 13), hf_hash(8, "writer-000042", 13));
    ck_assert_uint_eq(hf_hash(7, NULL, 0), hf_hash(7, "", 0));
}
END_TEST

/* For each length, also around the words that are read at once. */
START_TEST(every_bit_and_the_length_count)
{
    char bytes[40] = { 0 };
    size_t len = (size_t)_i;
    uint32_t hash = hf_hash(7, bytes, len);

    ck_assert_uint_ne(hash, hf_hash(7, bytes, len + 1));
    for (size_t bit = 0; bit < len * 8; bit++) {
        bytes[bit / 8] = (char)(1 << bit % 8);
        ck_assert_msg(hf_hash(7, bytes, len) != hash, "bit %zu of %zu bytes", bit, len);
        bytes[bit / 8] = 0;
    }
}
END_TEST

enum { NAMES = 8192, SLOTS = 8192 };

/* How many of the names share the fullest slot. */
static unsigned fullest(uint64_t seed, void (*name_of)(unsigned i, char out[128]))
{
    static unsigned slots[SLOTS];
    unsigned most = 0;

    memset(slots, 0, sizeof slots);
    for (unsigned i = 0; i < NAMES; i++) {
        char name[128];
        unsigned *slot;

        name_of(i, name);
        slot = &slots[hf_hash(seed, name, strlen(name)) % SLOTS];
        (*slot)++;
        most = *slot > most ? *slot : most;
    }
    return most;
}

static void short_number(unsigned i, char out[128])
{
    (void)snprintf(out, 128, "a%u", i);
}

static void padded_number(unsigned i, char out[128])
{
    (void)snprintf(out, 128, "writer-%08u", i);
}

static void number_in_front(unsigned i, char out[128])
{
    (void)snprintf(out, 128, "%u.workers.fleet-west.example.net", i);
}

/* Seven pairs of words. A difference in the first (bit 62) and one in the second (bits 30 and
 * 62) cancel out under every other seed where words are mixed in by a multiplication with a
 * factor that everybody knows. */
static void aimed(unsigned i, char out[128])
{
    for (size_t k = 0; k < 7; k++, out += 16) {
        bool first = (i >> k & 1) != 0, second = (i >> (k + 7) % 13 & 1) != 0;

        memset(out, '0', 16);
        out[7] = first ? 'p' : '0';
        out[11] = out[15] = second ? 'p' : '0';
    }
    *out = '\0';
}

static void (*const FAMILIES[])(unsigned i, char out[128]) = { short_number, padded_number,
                                                               number_in_front, aimed };

/* As many names as slots: the fullest of 8192 has seven or eight by chance, and never twice
 * that. */
START_TEST(names_spread_over_the_slots)
{
    for (uint64_t seed = 0; seed < 20; seed++)
        ck_assert_uint_le(fullest(seed * 0x9e3779b97f4a7c15u, FAMILIES[_i]), 15);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("hash");

    tcase_add_test(t, the_same_bytes_and_seed_give_the_same_hash);
    tcase_add_loop_test(t, every_bit_and_the_length_count, 0, 34);
    tcase_add_loop_test(t, names_spread_over_the_slots, 0, COUNT(FAMILIES));
    return run("base/hash", t);
}
