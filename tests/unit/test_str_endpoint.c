#include <check.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "support/suite.h"

#define COUNT(a) (sizeof(a) / sizeof(a)[0])

/* The longest label and the longest name that DNS allows. */
#define A9       "aaaaaaaaa"
#define LABEL_63 A9 A9 A9 A9 A9 A9 A9
#define NAME_253 LABEL_63 "." LABEL_63 "." LABEL_63 "." A9 A9 A9 A9 A9 A9 "aaaaaaa"

enum kind { NAME, IPV4, IPV6 };

static const struct {
    const char *text;
    const char *host;
    uint16_t port;
    bool tls;
    enum kind kind;
} ENDPOINTS[] = {
    { "http://10.0.0.1:2379", "10.0.0.1", 2379, false, IPV4 },
    { "https://etcd.example:2379", "etcd.example", 2379, true, NAME },
    { "[::1]:2379", "::1", 2379, false, IPV6 },
    { "localhost:2379", "localhost", 2379, false, NAME },
    { "localhost", "localhost", 2379, false, NAME },
    { "https://localhost", "localhost", 2379, true, NAME },
    { "http://localhost/", "localhost", 2379, false, NAME },
    { "localhost:80/", "localhost", 80, false, NAME },
    { "localhost:1", "localhost", 1, false, NAME },
    { "localhost:65535", "localhost", 65535, false, NAME },
    { "localhost:00080", "localhost", 80, false, NAME },
    { "127.0.0.1", "127.0.0.1", 2379, false, IPV4 },
    { "255.255.255.255:9", "255.255.255.255", 9, false, IPV4 },
    { "[::]", "::", 2379, false, IPV6 },
    { "https://[2001:db8::1]:443", "2001:db8::1", 443, true, IPV6 },
    { "[2001:db8:0:0:0:0:0:1]/", "2001:db8:0:0:0:0:0:1", 2379, false, IPV6 },
    { "[::ffff:10.0.0.1]:9", "::ffff:10.0.0.1", 9, false, IPV6 },
    { "Etcd-1.Example.COM:9", "Etcd-1.Example.COM", 9, false, NAME },
    { "etcd_1:9", "etcd_1", 9, false, NAME },
    { "etcd.example.:9", "etcd.example.", 9, false, NAME },
    { "1.2.3.4.example:9", "1.2.3.4.example", 9, false, NAME },
    { "1and1:9", "1and1", 9, false, NAME },
    { "0xcafeg:9", "0xcafeg", 9, false, NAME },
    { "a:9", "a", 9, false, NAME },
    { "https:9", "https", 9, false, NAME }, /* a host may be called so */
    { LABEL_63 ":9", LABEL_63, 9, false, NAME },
    { "https://" NAME_253 ":9", NAME_253, 9, true, NAME },
};

START_TEST(endpoints)
{
    struct hf_endpoint endpoint = { 0 };
    struct hf_error err = { "untouched" };

    ck_assert_msg(hf_parse_endpoint(ENDPOINTS[_i].text, &endpoint, &err) == HF_OK, "%s: %s",
                  ENDPOINTS[_i].text, err.text);
    ck_assert_str_eq(endpoint.host, ENDPOINTS[_i].host);
    ck_assert_uint_eq(endpoint.port, ENDPOINTS[_i].port);
    ck_assert_int_eq(endpoint.tls, ENDPOINTS[_i].tls);
    ck_assert_int_eq(endpoint.ipv4, ENDPOINTS[_i].kind == IPV4);
    ck_assert_int_eq(endpoint.ipv6, ENDPOINTS[_i].kind == IPV6);
    ck_assert_str_eq(err.text, "untouched");
}
END_TEST

static const struct {
    const char *text;
    const char *why; /* part of the sentence */
} NO_ENDPOINTS[] = {
    { "", "host is missing" },
    { "http://", "host is missing" },
    { "https:///", "host is missing" },
    { ":2379", "host is missing" },
    { "[]", "host is missing" },
    { "[]:2379", "host is missing" },
    { "/", "host is missing" },

    { "ftp://localhost", "scheme" },
    { "HTTP://localhost", "scheme" },
    { "unix:///run/etcd.sock", "scheme" },
    { "://localhost", "scheme" },
    { "http://http://localhost", "follow host" },
    { "http:/localhost", "follow host" },
    { "http//localhost", "follow host" },

    { "localhost:", "port" },
    { "localhost:0", "port" },
    { "localhost:65536", "port" },
    { "localhost:99999", "port" },
    { "localhost:100000", "port" },
    { "localhost:4294967297", "port" },
    { "localhost:18446744073709551617", "port" },
    { "localhost:-1", "port" },
    { "localhost:+1", "port" },
    { "localhost: 1", "port" },
    { "localhost:1 ", "port" },
    { "localhost:1\n", "port" },
    { "localhost:http", "port" },
    { "localhost:0x50", "port" },
    { "[::1]:", "port" },
    { "[::1]:x", "port" },

    { "http://user@localhost", "credentials" },
    { "http://user:secret@localhost:2379", "credentials" },
    { "localhost/@", "credentials" },

    { "http://localhost/v3", "follow host" },
    { "http://localhost//", "follow host" },
    { "http://localhost?x", "follow host" },
    { "http://localhost/?x", "follow host" },
    { "http://localhost#x", "follow host" },

    { "::1", "brackets" },
    { "::1:2379", "brackets" },
    { "2001:db8::1", "brackets" },
    { "localhost:1:2", "brackets" },
    { "[::1", "without" },
    { "[::1:2379", "without" },
    { "[::1]2379", "follow \"]\"" },
    { "[::1]]", "follow \"]\"" },
    { "[[::1]]", "follow \"]\"" },
    { "[localhost]:1", "not an IPv6" },
    { "[10.0.0.1]:1", "not an IPv6" },
    { "[::g]:1", "not an IPv6" },
    { "[::1%eth0]:1", "not an IPv6" },
    { "[1::2::3]:1", "not an IPv6" },
    { "[:::]:1", "not an IPv6" },
    { "::1]:1", "brackets" },

    { "10.0.0.256", "no address and no host" },
    { "10.0.0", "no address and no host" },
    { "10.0.0.1.1", "no address and no host" },
    { "010.0.0.1", "no address and no host" },
    { "10.0.0.1.", "no address and no host" },
    { "2130706433", "no address and no host" },
    { "0x7f.1", "no address and no host" },
    { "0x7f000001", "no address and no host" },
    { "127.0.0.0X1.", "no address and no host" },
    { "a.0x", "no address and no host" },
    { "example.1", "no address and no host" },

    { ".", "no address and no host" },
    { ".example", "no address and no host" },
    { "a..b", "no address and no host" },
    { "a..", "no address and no host" },
    { "-a", "no address and no host" },
    { "a-", "no address and no host" },
    { "a.-b.c", "no address and no host" },
    { "a b", "no address and no host" },
    { " localhost", "no address and no host" },
    { "localhost\t", "no address and no host" },
    { "a,b", "no address and no host" },
    { "*", "no address and no host" },
    { "a%41", "no address and no host" },
    { "b\xc3\xbc"
      "cher.example",
      "no address and no host" },
    { LABEL_63 "a", "no address and no host" },
    { NAME_253 "a", "longer than 253" },
};

START_TEST(what_is_no_endpoint_is_refused)
{
    const struct hf_endpoint before = { .host = "before", .port = 7, .tls = true };
    struct hf_endpoint endpoint = before;
    struct hf_error err = { "" };

    ck_assert_int_eq(hf_parse_endpoint(NO_ENDPOINTS[_i].text, &endpoint, &err), HF_EINVAL);
    ck_assert_msg(strstr(err.text, NO_ENDPOINTS[_i].why) != NULL, "%s", err.text);
    ck_assert_mem_eq(&endpoint, &before, sizeof before);
    ck_assert_int_eq(hf_parse_endpoint(NO_ENDPOINTS[_i].text, &endpoint, NULL), HF_EINVAL);
}
END_TEST

START_TEST(a_password_is_never_repeated)
{
    struct hf_endpoint endpoint;
    struct hf_error err = { "" };

    ck_assert_int_eq(hf_parse_endpoint("ftp://user:secret@[host:0/x", &endpoint, &err),
                     HF_EINVAL);
    ck_assert_ptr_null(strstr(err.text, "secret"));
    ck_assert_ptr_null(strstr(err.text, "user"));
}
END_TEST

static const char *const HOSTS[] = { "localhost", "10.0.0.1", "[::1]", "[fe80::1:2]",
                                     "a.b.c.example." };

START_TEST(endpoints_survive_the_round_trip)
{
    for (unsigned port = 1; port <= 65535; port += 101) {
        const char *host = HOSTS[port % COUNT(HOSTS)];
        struct hf_endpoint endpoint;
        char want[64];
        char got[64];

        (void)snprintf(want, sizeof want, "%s:%u", host, port);
        ck_assert_int_eq(hf_parse_endpoint(want, &endpoint, NULL), HF_OK);
        ck_assert_int_eq(hf_format_endpoint(&endpoint, got, sizeof got), (int)strlen(want));
        ck_assert_str_eq(got, want);
    }
}
END_TEST

START_TEST(short_room_cuts_the_text)
{
    const struct hf_endpoint endpoint = { .host = "::1", .port = 2379, .ipv6 = true };
    char text[6];

    ck_assert_int_eq(hf_format_endpoint(&endpoint, text, sizeof text), 10);
    ck_assert_str_eq(text, "[::1]");
    ck_assert_int_eq(hf_format_endpoint(&endpoint, NULL, 0), 10);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("endpoint");

    tcase_add_loop_test(t, endpoints, 0, COUNT(ENDPOINTS));
    tcase_add_loop_test(t, what_is_no_endpoint_is_refused, 0, COUNT(NO_ENDPOINTS));
    tcase_add_test(t, a_password_is_never_repeated);
    tcase_add_test(t, endpoints_survive_the_round_trip);
    tcase_add_test(t, short_room_cuts_the_text);
    return hft_suite_run("base/str, endpoint", t, NULL);
}
