/* http.h - the few lines of HTTP that ask a server on 127.0.0.1 how it is. Plain text only. */
#ifndef HFT_HTTP_H
#define HFT_HTTP_H

#include <stdint.h>

/* GET, with two seconds of patience per read. Returns the status and the body (free it), or 0
 * when there was no complete answer. */
int hft_http_get(uint16_t port, const char *path, char **ret_body);

/* A connection for many small requests, one after the other. */
struct hft_http {
    int fd;
};

void hft_http_open(struct hft_http *http, uint16_t port);
void hft_http_close(struct hft_http *http);

/* POST of a JSON text; returns the status and the body (free it) of up to 64 KiB. After any
 * status but 200 the body may be cut, and the connection is good for nothing but closing. */
int hft_http_post(struct hft_http *http, const char *path, const char *json, char **ret_body);

#endif
