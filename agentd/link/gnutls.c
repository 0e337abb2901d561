/* gnutls.c - lets GnuTLS sleep.
 *
 * It comes with libmicrohttpd, which could serve HTTPS, and each of the two makes it ready
 * before main, at nearly a megabyte. The link serves its agents without TLS, and that to etcd
 * is of gRPC's OpenSSL. What is defined here stands before what libgnutls has: the switch that
 * its header offers for its own part, and the public function that libmicrohttpd calls. Whoever
 * needs GnuTLS in this process, be it in a library of a library, cannot have it. */
#include <gnutls/gnutls.h>

GNUTLS_SKIP_GLOBAL_INIT

int gnutls_global_init(void)
{
    return GNUTLS_E_SUCCESS;
}
