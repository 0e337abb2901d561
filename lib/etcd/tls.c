#include "etcd/tls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/clock.h"

enum { LARGEST_PEM = 1024 * 1024 };

static int cannot_read(const char *path, int error, struct hf_error *err)
{
    int code = error == ENOENT ? HF_ENOENT : error == EACCES ? HF_EDENIED : HF_EIO;

    return hf_error_set(err, code, "%s: cannot be read: %s", path, strerror(error));
}

int hf_file_read(const char *path, size_t limit, char **ret_text, struct hf_error *err)
{
    HF_CLEANUP_FREE char *text = NULL;
    HF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;

    if (fd < 0)
        return cannot_read(path, errno, err);
    text = malloc(limit + 2);
    if (text == NULL)
        return hf_error_set(err, HF_ENOMEM, "%s: out of memory", path);

    /* One byte more than allowed is asked for: that is how an oversized file shows itself. */
    while (len <= limit) {
        ssize_t n = read(fd, text + len, limit + 1 - len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return cannot_read(path, errno, err);
        if (n == 0)
            break;
        len += (size_t)n;
    }
    if (len > limit)
        return hf_error_set(err, HF_ELIMIT, "%s: larger than %zu bytes", path, limit);
    text[len] = '\0';
    *ret_text = hf_steal(&text);
    return HF_OK;
}

/* What OpenSSL leaves behind on this thread when a file is no good would be taken for the fault
 * of a connection that gRPC serves here. */
static X509 *parse_cert(const char *pem)
{
    BIO *bio = BIO_new_mem_buf(pem, -1);
    X509 *cert = bio != NULL ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    BIO_free(bio);
    ERR_clear_error();
    return cert;
}

/* A key under a passphrase is none to us: without one OpenSSL would ask for it on the terminal,
 * and stop the loop until somebody answers. */
static EVP_PKEY *parse_key(const char *pem)
{
    char no_passphrase[] = "";
    BIO *bio = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key =
        bio != NULL ? PEM_read_bio_PrivateKey(bio, NULL, NULL, no_passphrase) : NULL;

    BIO_free(bio);
    ERR_clear_error();
    return key;
}

static int check_cert(const char *pem, const char *path, struct hf_error *err)
{
    X509 *cert = pem != NULL ? parse_cert(pem) : NULL;

    if (pem != NULL && cert == NULL)
        return hf_error_set(err, HF_EINVAL, "%s: holds no certificate in PEM form", path);
    X509_free(cert);
    return HF_OK;
}

static bool same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

/* Of OpenSSL, which has clocks of its own: 0 when it cannot be read. */
static int64_t read_time(const ASN1_TIME *time)
{
    struct tm tm;

    return time != NULL && ASN1_TIME_to_tm(time, &tm) == 1 ? (int64_t)timegm(&tm) : 0;
}

int hf_tls_read_validity(const char *pem, int64_t *ret_begins_s, int64_t *ret_ends_s)
{
    X509 *cert = parse_cert(pem);

    if (cert == NULL)
        return HF_EINVAL;
    *ret_begins_s = read_time(X509_get0_notBefore(cert));
    *ret_ends_s = read_time(X509_get0_notAfter(cert));
    X509_free(cert);
    return HF_OK;
}

/* One that nobody accepts at this time must not replace one that still works. The first is
 * taken as it is: there is nothing better, and a server whose clock is right may take it. */
static int check_renewal(const struct hf_tls *now, const struct hf_tls *fresh,
                         struct hf_error *err)
{
    int64_t wall = hf_clock_wall() / 1000, begins, ends;

    if (now->cert == NULL || fresh->cert == NULL || same(now->cert, fresh->cert))
        return HF_OK;
    if (hf_tls_read_validity(fresh->cert, &begins, &ends) != HF_OK)
        return hf_error_set(err, HF_EINVAL, "%s: holds no certificate in PEM form",
                            fresh->cert_path);
    if (wall > ends)
        return hf_error_set(err, HF_EINVAL, "%s: has expired", fresh->cert_path);
    if (wall < begins)
        return hf_error_set(err, HF_EINVAL, "%s: is not valid yet", fresh->cert_path);
    return HF_OK;
}

static int check_pair(const struct hf_tls *tls, struct hf_error *err)
{
    X509 *cert = parse_cert(tls->cert);
    EVP_PKEY *key = parse_key(tls->key);
    int code = HF_OK;

    if (key == NULL)
        code =
            hf_error_set(err, HF_EINVAL, "%s: holds no private key in PEM form", tls->key_path);
    else if (cert == NULL || X509_check_private_key(cert, key) != 1)
        code = hf_error_set(err, HF_EINVAL, "%s is not the key of %s", tls->key_path,
                            tls->cert_path);
    ERR_clear_error();
    X509_free(cert);
    EVP_PKEY_free(key);
    return code;
}

static void free_contents(struct hf_tls *tls)
{
    if (tls->key != NULL)
        explicit_bzero(tls->key, strlen(tls->key));
    free(tls->cacert);
    free(tls->cert);
    free(tls->key);
}

static int read_optional(const char *path, char **ret_text, struct hf_error *err)
{
    return path != NULL ? hf_file_read(path, LARGEST_PEM, ret_text, err) : HF_OK;
}

int hf_tls_reload(struct hf_tls *tls, bool *ret_changed, struct hf_error *err)
{
    struct hf_tls fresh = { .cacert_path = tls->cacert_path,
                            .cert_path = tls->cert_path,
                            .key_path = tls->key_path };
    int code = read_optional(fresh.cacert_path, &fresh.cacert, err);

    if (code == HF_OK)
        code = read_optional(fresh.cert_path, &fresh.cert, err);
    if (code == HF_OK)
        code = read_optional(fresh.key_path, &fresh.key, err);
    if (code == HF_OK)
        code = check_cert(fresh.cacert, fresh.cacert_path, err);
    if (code == HF_OK)
        code = check_cert(fresh.cert, fresh.cert_path, err);
    if (code == HF_OK && fresh.key != NULL)
        code = check_pair(&fresh, err);
    if (code == HF_OK)
        code = check_renewal(tls, &fresh, err);
    if (code != HF_OK) {
        free_contents(&fresh);
        return code;
    }
    *ret_changed = !same(tls->cacert, fresh.cacert) || !same(tls->cert, fresh.cert) ||
                   !same(tls->key, fresh.key);
    free_contents(tls);
    *tls = fresh;
    return HF_OK;
}

int hf_tls_init(struct hf_tls *tls, const char *cacert, const char *cert, const char *key,
                struct hf_error *err)
{
    bool changed;
    int code;

    *tls = (struct hf_tls){ 0 };
    if ((cert == NULL) != (key == NULL))
        return hf_error_set(err, HF_EINVAL,
                            "a client certificate needs its key, and a key "
                            "its certificate: give both");
    if ((cacert != NULL && (tls->cacert_path = hf_strdup(cacert)) == NULL) ||
        (cert != NULL && (tls->cert_path = hf_strdup(cert)) == NULL) ||
        (key != NULL && (tls->key_path = hf_strdup(key)) == NULL))
        code = hf_error_set(err, HF_ENOMEM, "out of memory");
    else
        code = hf_tls_reload(tls, &changed, err);
    if (code != HF_OK)
        hf_tls_done(tls);
    return code;
}

void hf_tls_done(struct hf_tls *tls)
{
    free_contents(tls);
    free(tls->cacert_path);
    free(tls->cert_path);
    free(tls->key_path);
    *tls = (struct hf_tls){ 0 };
}

grpc_channel_credentials *hf_tls_credentials(const struct hf_tls *tls)
{
    grpc_ssl_pem_key_cert_pair pair = { .private_key = tls->key, .cert_chain = tls->cert };

    return grpc_ssl_credentials_create(tls->cacert, tls->cert != NULL ? &pair : NULL, NULL,
                                       NULL);
}
