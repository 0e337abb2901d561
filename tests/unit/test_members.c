/* Which of the URLs that members advertise are of use. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include "etcd/members.h"
#include "support/suite.h"

enum { TOO_MANY = 2 * HF_ENDPOINTS_MAX };

static struct hf_endpoint all[HF_ENDPOINTS_MAX];

static void configure(const char *url)
{
    ck_assert_int_eq(hf_parse_endpoint(url, &all[0], NULL), HF_OK);
}

static const struct {
    const char *configured;
    const char *advertised;
    bool taken;
} URLS[] = {
    { "http://10.0.0.1:2379", "http://10.0.0.2:2379", true },
    { "http://10.0.0.1:2379", "http://10.0.0.1:2380", true },
    { "http://10.0.0.1:2379", "http://etcd-2.example:2379", true },
    { "http://10.0.0.1:2379", "http://[2001:db8::2]:2379", true },
    { "https://a.example:2379", "https://b.example:2379", true },
    { "10.0.0.1:2379", "http://10.0.0.2:2379", true },

    /* There already. */
    { "http://10.0.0.1:2379", "http://10.0.0.1:2379", false },
    { "http://10.0.0.1", "http://10.0.0.1:2379/", false },
    { "https://a.example:2379", "https://A.Example:2379", false },

    /* Neither weaker nor stronger than what was asked for. */
    { "https://a.example:2379", "http://b.example:2379", false },
    { "http://a.example:2379", "https://b.example:2379", false },

    /* Each reads them as another machine. */
    { "http://10.0.0.1:2379", "http://localhost:2379", false },
    { "http://10.0.0.1:2379", "http://127.0.0.1:2379", false },
    { "http://10.0.0.1:2379", "http://[::1]:2379", false },
    { "http://10.0.0.1:2379", "http://0.0.0.0:2379", false },
    { "http://127.0.0.1:2379", "http://[::]:2379", false },
    { "http://127.0.0.1:2379", "http://127.0.0.1:2479", true },
    { "http://localhost:2379", "http://[::1]:2479", true },

    /* What is no endpoint. */
    { "http://10.0.0.1:2379", "unix:///run/etcd.sock", false },
    { "http://10.0.0.1:2379", "http://", false },
    { "http://10.0.0.1:2379", "", false },
    { "http://10.0.0.1:2379", "http://user:secret@10.0.0.2:2379", false },
    { "http://10.0.0.1:2379", "http://10.0.0.2:0", false },
};

START_TEST(urls_are_taken_or_not)
{
    configure(URLS[_i].configured);
    ck_assert_uint_eq(hf_members_add(all, 1, &URLS[_i].advertised, 1), URLS[_i].taken ? 2 : 1);
}
END_TEST

START_TEST(one_that_is_advertised_twice_is_taken_once)
{
    const char *urls[] = { "http://10.0.0.2:2379", "http://10.0.0.3:2379",
                           "http://10.0.0.2:2379" };

    configure("http://10.0.0.1:2379");
    ck_assert_uint_eq(hf_members_add(all, 1, urls, 3), 3);
    ck_assert_uint_eq(hf_members_add(all, 3, urls, 3), 3);
    ck_assert_str_eq(all[1].host, "10.0.0.2");
    ck_assert_str_eq(all[2].host, "10.0.0.3");
}
END_TEST

START_TEST(no_more_are_taken_than_there_is_room_for)
{
    char texts[TOO_MANY][32];
    const char *urls[TOO_MANY];

    for (unsigned i = 0; i < TOO_MANY; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "http://10.0.1.%u:2379", i);
        urls[i] = texts[i];
    }
    configure("http://10.0.0.1:2379");
    ck_assert_uint_eq(hf_members_add(all, 1, urls, TOO_MANY), HF_ENDPOINTS_MAX);
    ck_assert_uint_eq(hf_members_add(all, HF_ENDPOINTS_MAX, urls, TOO_MANY), HF_ENDPOINTS_MAX);
    ck_assert_str_eq(all[0].host, "10.0.0.1");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("members");

    tcase_add_loop_test(t, urls_are_taken_or_not, 0, sizeof URLS / sizeof URLS[0]);
    tcase_add_test(t, one_that_is_advertised_twice_is_taken_once);
    tcase_add_test(t, no_more_are_taken_than_there_is_room_for);
    return hft_suite_run("etcd/members", t, NULL);
}
