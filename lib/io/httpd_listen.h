/* httpd_listen.h - the socket that an HTTP server listens on; for httpd.c alone. */
#ifndef HF_IO_HTTPD_LISTEN_H
#define HF_IO_HTTPD_LISTEN_H

#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "base/err.h"
#include "io/httpd.h"

struct hf_httpd_listener {
    int fd;
    uint16_t port;                                        /* 0: a Unix socket */
    char path[sizeof((struct sockaddr_un *)0)->sun_path]; /* of that */
};

/* As hf_httpd_new has it, without defaults. The caller closes the descriptor. */
int hf_httpd_listen(const struct hf_httpd_config *cfg, struct hf_httpd_listener *ret_listener,
                    struct hf_error *err) HF_MUST_CHECK;

#endif
