/* http.h - the few lines of HTTP that ask a server on 127.0.0.1 how it is. Plain text only. */
#ifndef HFT_HTTP_H
#define HFT_HTTP_H

#include <stdint.h>

/* GET, with two seconds of patience per read. Returns the status and the body (free it), or 0
 * when there was no complete answer. */
int hft_http_get(uint16_t port, const char *path, char **ret_body);

#endif
