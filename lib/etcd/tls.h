/* tls.h - the credential files of a client: read, checked, compared with what is in use.
 *
 * A pair that does not fit together (half written, or renewed one file after the other) is
 * refused, so that what works stays in use until the new files are whole; so is a renewed
 * certificate that has expired or is not valid yet. Internal to lib/etcd. */
#ifndef HF_ETCD_TLS_H
#define HF_ETCD_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <grpc/grpc_security.h>

#include "base/err.h"

/* Reads a whole file of at most `limit` bytes; the caller frees *ret_text. Blocking. */
int hf_file_read(const char *path, size_t limit, char **ret_text,
                 struct hf_error *err) HF_MUST_CHECK;

/* Zero-initialise. Paths and contents are owned; contents are NULL where there is no path. */
struct hf_tls {
    char *cacert_path, *cert_path, *key_path;
    char *cacert, *cert, *key;
};

int hf_tls_init(struct hf_tls *tls, const char *cacert, const char *cert, const char *key,
                struct hf_error *err) HF_MUST_CHECK;
void hf_tls_done(struct hf_tls *tls);

/* Reads the files again. *ret_changed says whether the contents differ from before; on failure
 * nothing has changed. */
int hf_tls_reload(struct hf_tls *tls, bool *ret_changed, struct hf_error *err) HF_MUST_CHECK;

/* From when to when the first certificate of a text is valid, in seconds of the wall clock; 0
 * for what cannot be read. HF_EINVAL: there is none. */
int hf_tls_read_validity(const char *pem, int64_t *ret_begins_s,
                         int64_t *ret_ends_s) HF_MUST_CHECK;

/* Owned by the caller. */
grpc_channel_credentials *hf_tls_credentials(const struct hf_tls *tls);

#endif
