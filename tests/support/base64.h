/* base64.h - the encoding in which etcd's JSON carries keys and values. */
#ifndef HFT_BASE64_H
#define HFT_BASE64_H

#include <stddef.h>

/* Both results are NUL-terminated and the caller's to free. */
char *hft_base64_encode(const void *data, size_t len);

/* Fails the test on anything but well-formed, padded input. */
char *hft_base64_decode(const char *text, size_t *ret_len);

#endif
