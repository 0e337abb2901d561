/* Credential files that are no good are refused, and leave nothing behind. */
#include <check.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "etcd/tls.h"
#include "support/pki.h"
#include "support/suite.h"

static struct hft_pki pki;
static struct hft_cert cert, other;
static char encrypted[HFT_PKI_PATH_MAX + 8], garbage[HFT_PKI_PATH_MAX + 8];

static void encrypt_key(const char *from, const char *to)
{
    char passphrase[] = "secret";
    FILE *in = fopen(from, "re"), *out = fopen(to, "we");
    EVP_PKEY *key;

    ck_assert(in != NULL && out != NULL);
    key = PEM_read_PrivateKey(in, NULL, NULL, NULL);
    ck_assert_ptr_nonnull(key);
    ck_assert_int_eq(PEM_write_PrivateKey(out, key, EVP_aes_128_cbc(),
                                          (unsigned char *)passphrase, (int)strlen(passphrase),
                                          NULL, NULL),
                     1);
    EVP_PKEY_free(key);
    ck_assert_int_eq(fclose(in), 0);
    ck_assert_int_eq(fclose(out), 0);
}

static void setup(void)
{
    FILE *file;

    hft_pki_init(&pki);
    hft_pki_issue(&pki, "client", 3600, &cert);
    hft_pki_issue(&pki, "other", 3600, &other);
    (void)snprintf(encrypted, sizeof encrypted, "%s.enc", cert.key);
    encrypt_key(cert.key, encrypted);
    (void)snprintf(garbage, sizeof garbage, "%s.bad", cert.key);
    file = fopen(garbage, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs("-----BEGIN CERTIFICATE-----\nAAAA\n", file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void teardown(void)
{
    hft_pki_done(&pki);
}

static void refuse(const char *ca, const char *crt, const char *key, int code,
                   const char *words)
{
    struct hf_error err = { "" };
    struct hf_tls tls;

    ck_assert_int_eq(hf_tls_init(&tls, ca, crt, key, &err), code);
    ck_assert_msg(strstr(err.text, words) != NULL, "\"%s\" does not say \"%s\"", err.text,
                  words);
    ck_assert_uint_eq(ERR_peek_error(), 0);
    hf_tls_done(&tls); /* as every `done`, harmless after a failure */
}

START_TEST(good_files_are_taken)
{
    struct hf_error err = { "" };
    bool changed = true;
    struct hf_tls tls;

    ck_assert_int_eq(hf_tls_init(&tls, pki.ca, cert.cert, cert.key, &err), HF_OK);
    ck_assert_int_eq(hf_tls_reload(&tls, &changed, &err), HF_OK);
    ck_assert(!changed);
    hf_tls_done(&tls);
}
END_TEST

START_TEST(bad_files_are_refused_with_a_reason_and_without_a_trace)
{
    refuse(pki.ca, cert.cert, other.key, HF_EINVAL, "is not the key of");
    refuse(garbage, cert.cert, cert.key, HF_EINVAL, "holds no certificate");
    refuse(pki.ca, garbage, cert.key, HF_EINVAL, "holds no certificate");
    refuse(pki.ca, cert.cert, garbage, HF_EINVAL, "holds no private key");
    refuse(pki.ca, cert.cert, NULL, HF_EINVAL, "give both");
    refuse("/nonexistent", NULL, NULL, HF_ENOENT, "/nonexistent");
}
END_TEST

/* OpenSSL would ask for the passphrase on the terminal, if there is one. */
START_TEST(key_under_a_passphrase_is_refused_without_a_question)
{
    refuse(pki.ca, cert.cert, encrypted, HF_EINVAL, "holds no private key");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("tls");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, good_files_are_taken);
    tcase_add_test(t, bad_files_are_refused_with_a_reason_and_without_a_trace);
    tcase_add_test(t, key_under_a_passphrase_is_refused_without_a_question);
    return hft_suite_run("etcd/tls", t, NULL);
}
