#include "support/pki.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#define DAY_S           86400L
#define BACKDATE_S      60L /* a certificate of this very second may seem to be from the future */
#define EXPIRED_BEGAN_S DAY_S

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    ck_assert_ptr_nonnull(extension);
    ck_assert_int_eq(X509_add_ext(cert, extension, -1), 1);
    X509_EXTENSION_free(extension);
}

/* A certificate without extensions and signature yet. */
static X509 *draft(long serial, const char *cn, EVP_PKEY *key, long lifetime_s)
{
    X509 *cert = X509_new();

    ck_assert_ptr_nonnull(cert);
    ck_assert_int_eq(X509_set_version(cert, X509_VERSION_3), 1);
    ck_assert_int_eq(ASN1_INTEGER_set(X509_get_serialNumber(cert), serial), 1);
    ck_assert_int_eq(X509_NAME_add_entry_by_txt(X509_get_subject_name(cert), "CN",
                                                MBSTRING_UTF8, (const unsigned char *)cn, -1,
                                                -1, 0),
                     1);
    ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notBefore(cert),
                                          -(lifetime_s > 0 ? BACKDATE_S : EXPIRED_BEGAN_S)));
    ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notAfter(cert), lifetime_s));
    ck_assert_int_eq(X509_set_pubkey(cert, key), 1);
    return cert;
}

static void sign(X509 *cert, X509 *issuer, EVP_PKEY *issuer_key)
{
    ck_assert_int_eq(X509_set_issuer_name(cert, X509_get_subject_name(issuer)), 1);
    ck_assert_int_gt(X509_sign(cert, issuer_key, EVP_sha256()), 0);
}

static EVP_PKEY *new_key(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");

    ck_assert_ptr_nonnull(key);
    return key;
}

/* Written beside and renamed, so that a reader sees the old file or the new one. */
static void write_pem(const char *path, X509 *cert, EVP_PKEY *key)
{
    char temporary[HFT_PKI_PATH_MAX + 8];

    (void)snprintf(temporary, sizeof temporary, "%s.new", path);
    FILE *file = fopen(temporary, "we");
    ck_assert_ptr_nonnull(file);
    if (cert != NULL)
        ck_assert_int_eq(PEM_write_X509(file, cert), 1);
    if (key != NULL)
        ck_assert_int_eq(PEM_write_PKCS8PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(chmod(temporary, 0600), 0);
    ck_assert_int_eq(rename(temporary, path), 0);
}

static void make_authority(struct hft_pki *pki)
{
    pki->authority_key = new_key();
    pki->authority = draft(++pki->serial, "Test authority", pki->authority_key, DAY_S);
    add_extension(pki->authority, pki->authority, NID_basic_constraints, "critical,CA:TRUE");
    add_extension(pki->authority, pki->authority, NID_key_usage,
                  "critical,keyCertSign,cRLSign");
    add_extension(pki->authority, pki->authority, NID_subject_key_identifier, "hash");
    sign(pki->authority, pki->authority, pki->authority_key);
    (void)snprintf(pki->ca, sizeof pki->ca, "%s/ca.crt", pki->dir.path);
    write_pem(pki->ca, pki->authority, NULL);
}

static void issue(struct hft_pki *pki, const char *name, long lifetime_s, const char *san,
                  struct hft_cert *ret_cert)
{
    EVP_PKEY *key = new_key();
    X509 *cert = draft(++pki->serial, name, key, lifetime_s);

    if (pki->delay_s != 0)
        ck_assert_ptr_nonnull(X509_gmtime_adj(X509_getm_notBefore(cert), pki->delay_s));
    /* etcd's own gateway dials etcd with the server's certificate, hence both usages. */
    add_extension(cert, pki->authority, NID_ext_key_usage,
                  san != NULL ? "serverAuth,clientAuth" : "clientAuth");
    add_extension(cert, pki->authority, NID_authority_key_identifier, "keyid");
    if (san != NULL)
        add_extension(cert, pki->authority, NID_subject_alt_name, san);
    sign(cert, pki->authority, pki->authority_key);

    ck_assert_int_lt(
        snprintf(ret_cert->key, sizeof ret_cert->key, "%s/%s.key", pki->dir.path, name),
        (int)sizeof ret_cert->key);
    ck_assert_int_lt(
        snprintf(ret_cert->cert, sizeof ret_cert->cert, "%s/%s.crt", pki->dir.path, name),
        (int)sizeof ret_cert->cert);
    write_pem(ret_cert->key, NULL, key);
    write_pem(ret_cert->cert, cert, NULL);
    X509_free(cert);
    EVP_PKEY_free(key);
}

void hft_pki_init(struct hft_pki *pki)
{
    *pki = (struct hft_pki){ 0 };
    hft_tempdir_init(&pki->dir);
    ck_assert_int_eq(chmod(pki->dir.path, 0755), 0); /* certificates are for everybody */
    make_authority(pki);
    issue(pki, "server", DAY_S, "IP:127.0.0.1,IP:::1,DNS:localhost", &pki->server);
}

static FILE *open_pem(const char *directory, const char *name)
{
    char path[HFT_PKI_PATH_MAX];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", directory, name);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    return file;
}

void hft_pki_borrow(struct hft_pki *pki, const char *directory)
{
    FILE *cert = open_pem(directory, "ca.crt"), *key = open_pem(directory, "ca.key");

    *pki = (struct hft_pki){ .borrowed = true };
    (void)snprintf(pki->dir.path, sizeof pki->dir.path, "%s", directory);
    (void)snprintf(pki->ca, sizeof pki->ca, "%s/ca.crt", directory);
    pki->authority = PEM_read_X509(cert, NULL, NULL, NULL);
    pki->authority_key = PEM_read_PrivateKey(key, NULL, NULL, NULL);
    ck_assert(pki->authority != NULL && pki->authority_key != NULL);
    (void)fclose(cert);
    (void)fclose(key);
}

void hft_pki_done(struct hft_pki *pki)
{
    X509_free(pki->authority);
    EVP_PKEY_free(pki->authority_key);
    if (!pki->borrowed)
        hft_tempdir_done(&pki->dir);
}

void hft_pki_issue(struct hft_pki *pki, const char *name, long lifetime_s,
                   struct hft_cert *ret_cert)
{
    issue(pki, name, lifetime_s, NULL, ret_cert);
}

struct hft_etcd_tls hft_pki_tls(const struct hft_pki *pki, const struct hft_cert *client)
{
    return (struct hft_etcd_tls){
        .ca = pki->ca,
        .cert = pki->server.cert,
        .key = pki->server.key,
        .client_cert = client != NULL ? client->cert : NULL,
        .client_key = client != NULL ? client->key : NULL,
    };
}
