#include <check.h>
#include <openssl/crypto.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "support/chaos.h"
#include "support/suite.h"

/* Messages and digests of FIPS 180-4 and its examples. */
static const struct {
    const char *text;
    const char *hex;
} VECTORS[] = {
    { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
      "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
    { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
      "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
      "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
};

START_TEST(known_digests)
{
    uint8_t digest[HF_SHA256_LEN];
    char hex[HF_SHA256_HEX_LEN + 1];

    ck_assert_int_eq(hf_sha256(VECTORS[_i].text, strlen(VECTORS[_i].text), digest), HF_OK);
    hf_sha256_format(digest, hex);
    ck_assert_str_eq(hex, VECTORS[_i].hex);
}
END_TEST

START_TEST(a_million_letters_in_pieces)
{
    struct hf_sha256 *sha = hf_sha256_new();
    uint8_t digest[HF_SHA256_LEN];
    char hex[HF_SHA256_HEX_LEN + 1];
    char piece[1000];

    memset(piece, 'a', sizeof piece);
    ck_assert_ptr_nonnull(sha);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(hf_sha256_update(sha, piece, sizeof piece), HF_OK);
    ck_assert_int_eq(hf_sha256_final(sha, digest), HF_OK);
    hf_sha256_free(sha);

    hf_sha256_format(digest, hex);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}
END_TEST

/* Wherever a text is split, its digest is the same; nothing in between does no harm. */
START_TEST(pieces_make_no_difference)
{
    const char *text = VECTORS[3].text;
    size_t len = strlen(text);
    uint8_t whole[HF_SHA256_LEN];

    ck_assert_int_eq(hf_sha256(text, len, whole), HF_OK);
    for (size_t split = 0; split <= len; split++) {
        struct hf_sha256 *sha = hf_sha256_new();
        uint8_t digest[HF_SHA256_LEN];

        ck_assert_ptr_nonnull(sha);
        ck_assert_int_eq(hf_sha256_update(sha, text, split), HF_OK);
        ck_assert_int_eq(hf_sha256_update(sha, NULL, 0), HF_OK);
        ck_assert_int_eq(hf_sha256_update(sha, text + split, len - split), HF_OK);
        ck_assert_int_eq(hf_sha256_final(sha, digest), HF_OK);
        hf_sha256_free(sha);
        ck_assert_mem_eq(digest, whole, sizeof whole);
    }
}
END_TEST

START_TEST(free_accepts_nothing)
{
    hf_sha256_free(NULL);
}
END_TEST

START_TEST(hex_survives_the_round_trip)
{
    uint8_t digest[HF_SHA256_LEN];
    uint8_t back[HF_SHA256_LEN];
    char hex[HF_SHA256_HEX_LEN + 1];

    for (int first = 0; first < 256; first++) {
        for (size_t i = 0; i < sizeof digest; i++)
            digest[i] = (uint8_t)((size_t)first + 7 * i);
        hf_sha256_format(digest, hex);
        ck_assert_uint_eq(strspn(hex, "0123456789abcdef"), HF_SHA256_HEX_LEN);
        ck_assert_int_eq(hf_sha256_parse(hex, back), HF_OK);
        ck_assert_mem_eq(back, digest, sizeof digest);
    }
}
END_TEST

START_TEST(parse_accepts_upper_case)
{
    uint8_t lower[HF_SHA256_LEN];
    uint8_t upper[HF_SHA256_LEN];

    ck_assert_int_eq(
        hf_sha256_parse("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                        lower),
        HF_OK);
    ck_assert_int_eq(
        hf_sha256_parse("BA7816BF8F01CFEA414140DE5DAE2223B00361A396177A9CB410FF61F20015AD",
                        upper),
        HF_OK);
    ck_assert_mem_eq(lower, upper, sizeof lower);
    ck_assert_uint_eq(lower[0], 0xba);
    ck_assert_uint_eq(lower[31], 0xad);
}
END_TEST

static const char *const BAD_HEX[] = {
    "",
    "ba",
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a",
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad0",
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n",
    "ga7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a ",
    "0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015",
    "ba7816bf8f01cfea414140de5dae222:b00361a396177a9cb410ff61f20015ad",
    "ba7816bf8f01cfea414140de5dae222@b00361a396177a9cb410ff61f20015ad",
    "ba7816bf8f01cfea414140de5dae222`b00361a396177a9cb410ff61f20015ad",
    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015a\xff",
};

START_TEST(parse_rejects_what_is_not_a_digest)
{
    uint8_t digest[HF_SHA256_LEN] = { 1, 2, 3 };

    ck_assert_int_eq(hf_sha256_parse(BAD_HEX[_i], digest), HF_EINVAL);
    ck_assert_uint_eq(digest[0], 1);
    ck_assert_uint_eq(digest[31], 0);
}
END_TEST

static void *crypto_malloc(size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return malloc(size);
}

static void *crypto_realloc(void *old, size_t size, const char *file, int line)
{
    (void)file;
    (void)line;
    return realloc(old, size);
}

static void crypto_free(void *data, const char *file, int line)
{
    (void)file;
    (void)line;
    free(data);
}

/* libcrypto does without some of its allocations, so a run may succeed all the same; what it
 * may not do is crash, leak or give a wrong digest. The first two are our object and its
 * context. */
START_TEST(a_lack_of_memory_is_reported)
{
    uint8_t want[HF_SHA256_LEN];
    bool failed = true;

    ck_assert_int_eq(CRYPTO_set_mem_functions(crypto_malloc, crypto_realloc, crypto_free), 1);
    ck_assert_int_eq(hf_sha256("abc", 3, want), HF_OK); /* loads the algorithm, once */
    for (size_t n = 1; failed; n++) {
        uint8_t digest[HF_SHA256_LEN] = { 0 };
        int rc;

        hft_chaos_fail_at(n, _i == 1);
        rc = hf_sha256("abc", 3, digest);
        hft_chaos_stop();
        failed = hft_chaos_has_failed();
        ck_assert(rc == HF_OK || rc == HF_ENOMEM);
        if (n <= 2)
            ck_assert_int_eq(rc, HF_ENOMEM);
        if (rc == HF_OK)
            ck_assert_mem_eq(digest, want, sizeof want);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("sha256");

    tcase_add_loop_test(t, known_digests, 0, sizeof VECTORS / sizeof VECTORS[0]);
    tcase_add_test(t, a_million_letters_in_pieces);
    tcase_add_test(t, pieces_make_no_difference);
    tcase_add_test(t, free_accepts_nothing);
    tcase_add_test(t, hex_survives_the_round_trip);
    tcase_add_test(t, parse_accepts_upper_case);
    tcase_add_loop_test(t, parse_rejects_what_is_not_a_digest, 0,
                        sizeof BAD_HEX / sizeof BAD_HEX[0]);
    tcase_add_loop_test(t, a_lack_of_memory_is_reported, 0, 2); /* one failure, or all after */
    return hft_suite_run("base/sha256", t, NULL);
}
