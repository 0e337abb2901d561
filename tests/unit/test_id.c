#include <check.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>

#include "base/id.h"
#include "support/suite.h"

static const char ALPHABET[] = "0123456789abcdefghjkmnpqrstvwxyz";

static const struct {
    hf_ms wall;
    uint8_t random[10];
    const char *want;
} IDS[] = {
    { 0, { 0 }, "00000000000000000000000000" },
    { 1, { 0 }, "00000000010000000000000000" },
    { 0, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 }, "00000000000000000000000001" },
    { 0, { 0, 0, 0, 0, 0, 0, 0, 0, 0, 32 }, "00000000000000000000000010" },
    { 0, { 0x80 }, "0000000000g000000000000000" },
    { 1769840130123, { 0 }, "01kg9b2e2b0000000000000000" },
    { (INT64_C(1) << 48) - 1,
      { 255, 255, 255, 255, 255, 255, 255, 255, 255, 255 },
      "7zzzzzzzzzzzzzzzzzzzzzzzzz" },
};

START_TEST(format_writes_128_bits_in_26_characters)
{
    char id[HF_ID_LEN + 1];

    hf_id_format(IDS[_i].wall, IDS[_i].random, id);
    ck_assert_str_eq(id, IDS[_i].want);
}
END_TEST

/* Decoding is the inverse, so no bit is lost: checked against a decoder that knows nothing of
 * how the encoder shifts. */
START_TEST(format_loses_no_bit)
{
    uint64_t state = 42;

    for (int round = 0; round < 2000; round++) {
        uint8_t random[10];
        uint8_t bytes[17] = { 0 };
        char id[HF_ID_LEN + 1];
        hf_ms wall =
            (hf_ms)((state = state * 6364136223846793005U + 1442695040888963407U) >> 16);

        for (size_t i = 0; i < sizeof random; i++) {
            state = state * 6364136223846793005U + 1442695040888963407U;
            random[i] = (uint8_t)(state >> 56);
        }
        hf_id_format(wall, random, id);

        for (int bit = 0; bit < 130; bit++) { /* 6 unused bits lead in bytes[] */
            long value = strchr(ALPHABET, id[bit / 5]) - ALPHABET;

            if (value >> (4 - bit % 5) & 1)
                bytes[(bit + 6) / 8] |= (uint8_t)(0x80 >> ((bit + 6) % 8));
        }
        for (int i = 0; i < 6; i++)
            ck_assert_uint_eq(bytes[1 + i], (uint8_t)((uint64_t)wall >> (40 - 8 * i)));
        ck_assert_uint_eq(bytes[0], 0);
        ck_assert_mem_eq(bytes + 7, random, sizeof random);
    }
}
END_TEST

START_TEST(ids_sort_by_age)
{
    const uint8_t high[10] = { 255, 255, 255 };
    const uint8_t low[10] = { 0 };
    char older[HF_ID_LEN + 1];
    char newer[HF_ID_LEN + 1];

    for (hf_ms wall = 1700000000000; wall < 1900000000000; wall += 777777777) {
        hf_id_format(wall, high, older);
        hf_id_format(wall + 1, low, newer);
        ck_assert_str_lt(older, newer);
    }
}
END_TEST

START_TEST(new_ids_are_valid_names_and_differ)
{
    enum { COUNT = 500 };
    static char ids[COUNT][HF_ID_LEN + 1];

    for (int i = 0; i < COUNT; i++) {
        ck_assert_int_eq(hf_id_new(ids[i]), HF_OK);
        ck_assert_uint_eq(strlen(ids[i]), HF_ID_LEN);
        ck_assert_uint_eq(strspn(ids[i], ALPHABET), HF_ID_LEN);
        for (int j = 0; j < i; j++)
            ck_assert_str_ne(ids[i], ids[j]);
    }
}
END_TEST

START_TEST(new_id_carries_the_wall_time)
{
    const uint8_t none[10] = { 0 };
    char before[HF_ID_LEN + 1];
    char after[HF_ID_LEN + 1];
    char id[HF_ID_LEN + 1];

    hf_id_format(hf_clock_wall(), none, before);
    ck_assert_int_eq(hf_id_new(id), HF_OK);
    hf_id_format(hf_clock_wall() + 1, none, after);
    ck_assert_str_ge(id, before);
    ck_assert_str_lt(id, after);
}
END_TEST

/* Every one of the 63 bits is set in some and clear in some other; the sign never is. */
START_TEST(the_time_of_an_id_can_be_read)
{
    static const hf_ms WALLS[] = { 0, 1, INT64_C(1790000000123), (INT64_C(1) << 48) - 1 };
    const uint8_t random[10] = { 0xff, 0xff, 0xff, 0, 1, 2, 3, 4, 5, 6 };
    char id[HF_ID_LEN + 1];
    hf_ms wall = 7;

    for (size_t i = 0; i < sizeof WALLS / sizeof WALLS[0]; i++) {
        hf_id_format(WALLS[i], random, id);
        ck_assert_int_eq(hf_id_get_time(id, &wall), HF_OK);
        ck_assert_int_eq(wall, WALLS[i]);
    }
    ck_assert_int_eq(hf_id_get_time("", &wall), HF_EINVAL);
    ck_assert_int_eq(hf_id_get_time("not an id of ours, is it?!", &wall), HF_EINVAL);
    ck_assert_int_eq(hf_id_get_time("zzzzzzzzzzzzzzzzzzzzzzzzzz", &wall), HF_EINVAL);
    ck_assert_int_eq(wall, WALLS[3]);
}
END_TEST

START_TEST(random_63_uses_all_its_bits)
{
    uint64_t any = 0;
    uint64_t all = UINT64_MAX;

    for (int i = 0; i < 1000; i++) {
        int64_t id = 0;

        ck_assert_int_eq(hf_id_random_63(&id), HF_OK);
        ck_assert_int_ge(id, 1);
        any |= (uint64_t)id;
        all &= (uint64_t)id;
    }
    ck_assert_uint_eq(any, INT64_MAX);
    ck_assert_uint_eq(all, 0);
}
END_TEST

START_TEST(random_fills_all_and_only_the_bytes)
{
    static uint8_t bytes[70000];
    size_t histogram[256] = { 0 };

    ck_assert_int_eq(hf_id_random(bytes, sizeof bytes - 1), HF_OK);
    ck_assert_uint_eq(bytes[sizeof bytes - 1], 0);
    for (size_t i = 0; i < sizeof bytes - 1; i++)
        histogram[bytes[i]]++;
    for (int i = 0; i < 256; i++) { /* 273 expected; far outside of any chance */
        ck_assert_uint_gt(histogram[i], 100);
        ck_assert_uint_lt(histogram[i], 500);
    }
    ck_assert_int_eq(hf_id_random(NULL, 0), HF_OK);
}
END_TEST

static volatile sig_atomic_t alarms;

static void on_alarm(int signo)
{
    (void)signo;
    alarms = alarms + 1;
}

/* A signal makes the kernel stop early in a large request. No block may be left out then. */
START_TEST(random_goes_on_after_a_signal)
{
    enum { SIZE = 32 << 20, BLOCK = 64 };
    static const uint8_t NONE[BLOCK];
    struct sigaction action = { .sa_handler = on_alarm };
    const struct itimerval often = { { 0, 1000 }, { 0, 1000 } };
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    uint8_t *bytes = calloc(1, SIZE);
    size_t empty = 0;
    int rc;

    ck_assert_ptr_nonnull(bytes);
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &often, NULL), 0);
    rc = hf_id_random(bytes, SIZE);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
    for (size_t i = 0; i < SIZE; i += BLOCK)
        empty += memcmp(bytes + i, NONE, BLOCK) == 0 ? 1 : 0;
    free(bytes);

    ck_assert_int_eq(rc, HF_OK);
    ck_assert_int_gt(alarms, 0);
    ck_assert_uint_eq(empty, 0);
}
END_TEST

/* Makes getrandom(2) fail for the rest of this process. False where that is not allowed. */
static bool forbid_randomness(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { .len = sizeof code / sizeof code[0], .filter = code };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

START_TEST(no_randomness_is_an_error_and_leaves_the_outputs)
{
    char id[HF_ID_LEN + 1] = "untouched";
    int64_t number = 7;
    uint8_t byte;

    if (!forbid_randomness()) {
        (void)fprintf(stderr, "no seccomp here: the lack of randomness is not tested\n");
        return;
    }
    ck_assert_int_eq(hf_id_random(&byte, 1), HF_EIO);
    ck_assert_int_eq(hf_id_random_63(&number), HF_EIO);
    ck_assert_int_eq(number, 7);
    ck_assert_int_eq(hf_id_new(id), HF_EIO);
    ck_assert_str_eq(id, "untouched");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("id");

    tcase_add_loop_test(t, format_writes_128_bits_in_26_characters, 0,
                        sizeof IDS / sizeof IDS[0]);
    tcase_add_test(t, format_loses_no_bit);
    tcase_add_test(t, ids_sort_by_age);
    tcase_add_test(t, new_ids_are_valid_names_and_differ);
    tcase_add_test(t, new_id_carries_the_wall_time);
    tcase_add_test(t, the_time_of_an_id_can_be_read);
    tcase_add_test(t, random_63_uses_all_its_bits);
    tcase_add_test(t, random_fills_all_and_only_the_bytes);
    tcase_add_test(t, random_goes_on_after_a_signal);
    tcase_add_test(t, no_randomness_is_an_error_and_leaves_the_outputs);
    tcase_set_timeout(t, 60);
    return hft_suite_run("base/id", t, NULL);
}
