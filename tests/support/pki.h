/* pki.h - throw-away certificates: one authority, one server, any number of clients. */
#ifndef HFT_PKI_H
#define HFT_PKI_H

#include <stdbool.h>

#include "support/etcd.h"
#include "support/tempdir.h"

#define HFT_PKI_PATH_MAX (HFT_PATH_MAX + 80)

/* PEM files. */
struct hft_cert {
    char cert[HFT_PKI_PATH_MAX];
    char key[HFT_PKI_PATH_MAX];
};

struct hft_pki {
    struct hft_tempdir dir;
    char ca[HFT_PKI_PATH_MAX]; /* PEM file of the authority's certificate */
    struct hft_cert server;    /* for 127.0.0.1, ::1 and localhost; lives a day */
    struct x509_st *authority;
    struct evp_pkey_st *authority_key;
    long serial;   /* of the last certificate */
    long delay_s;  /* so much later than now are certificates valid; 0: at once */
    bool borrowed; /* the directory is somebody else's */
};

void hft_pki_init(struct hft_pki *pki);
/* The same with an authority that is there already, as ca.crt and ca.key in that directory,
 * where certificates will be written, too. It has no server. */
void hft_pki_borrow(struct hft_pki *pki, const char *directory);
void hft_pki_done(struct hft_pki *pki);

/* A client certificate for `name` (its CN, and the name of its files), valid for `lifetime_s`
 * from now, less for an expired one: 0 or negative. A second call for the same name replaces
 * the files by a new key and certificate, each at once, the key first, as renewers do. */
void hft_pki_issue(struct hft_pki *pki, const char *name, long lifetime_s,
                   struct hft_cert *ret_cert);

/* For hft_etcd_options: with `client`, which etcdctl will show, etcd demands certificates. What
 * the result points at lives as long as `pki` and `client`. */
struct hft_etcd_tls hft_pki_tls(const struct hft_pki *pki, const struct hft_cert *client);

#endif
