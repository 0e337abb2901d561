/* str_endpoint.c - addresses of servers as text. */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

#define PORT_DEFAULT 2379
#define LABEL_MAX    63

/* The pieces of "host:port", borrowed from the text. */
struct authority {
    const char *host;
    size_t host_len;
    const char *port; /* NULL when there is none */
    size_t port_len;
    bool bracketed;
};

static const char *skip_prefix(const char *text, const char *prefix)
{
    size_t len = strlen(prefix);

    return strncmp(text, prefix, len) == 0 ? text + len : NULL;
}

/* Returns what follows the scheme, NULL when the scheme is not one of ours. */
static const char *scan_scheme(const char *text, bool *ret_tls)
{
    const char *rest = skip_prefix(text, "https://");

    *ret_tls = rest != NULL;
    if (rest == NULL)
        rest = skip_prefix(text, "http://");
    if (rest == NULL && strstr(text, "://") == NULL)
        rest = text;
    return rest;
}

static bool is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A label of a DNS name. By the book a host has no underscore in it; by Docker it has. */
static bool is_label(const char *p, size_t len)
{
    if (len == 0 || len > LABEL_MAX || p[0] == '-' || p[len - 1] == '-')
        return false;
    for (size_t i = 0; i < len; i++) {
        if (!is_alnum(p[i]) && p[i] != '-' && p[i] != '_')
            return false;
    }
    return true;
}

/* Decimal, or hexadecimal as inet_aton takes it. */
static bool is_number(const char *p, size_t len)
{
    if (len >= 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
        return strspn(p + 2, "0123456789abcdefABCDEF") == len - 2;
    return strspn(p, "0123456789") == len;
}

/* A name whose last label is a number is a mistyped address: resolvers disagree on those. */
static bool is_dns_name(const char *host)
{
    const char *label = host;

    for (;;) {
        size_t len = strcspn(label, ".");

        if (!is_label(label, len))
            return false;
        if (label[len] == '\0' || label[len + 1] == '\0') /* one dot at the end is allowed */
            return !is_number(label, len);
        label += len + 1;
    }
}

static int split_authority(const char *text, size_t len, struct authority *ret_parts,
                           struct hf_error *err)
{
    struct authority parts = { .host = text, .host_len = len };
    const char *end = text + len;
    const char *rest;

    if (len > 0 && text[0] == '[') {
        rest = memchr(text, ']', len);
        if (rest == NULL)
            return hf_error_set(err, HF_EINVAL, "endpoint: \"[\" without \"]\"");
        parts.bracketed = true;
        parts.host = text + 1;
        parts.host_len = (size_t)(rest - parts.host);
        rest++;
    } else {
        rest = memchr(text, ':', len);
        if (rest == NULL)
            rest = end;
        else if (memchr(rest + 1, ':', (size_t)(end - rest - 1)) != NULL)
            return hf_error_set(err, HF_EINVAL,
                                "endpoint: an IPv6 address is written in brackets: [::1]:2379");
        parts.host_len = (size_t)(rest - text);
    }
    if (rest < end && *rest != ':')
        return hf_error_set(err, HF_EINVAL, "endpoint: only a port may follow \"]\"");
    if (rest < end) {
        parts.port = rest + 1;
        parts.port_len = (size_t)(end - parts.port);
    }
    *ret_parts = parts;
    return HF_OK;
}

static int set_host(struct hf_endpoint *endpoint, const struct authority *parts,
                    struct hf_error *err)
{
    struct in6_addr addr;

    if (parts->host_len == 0)
        return hf_error_set(err, HF_EINVAL, "endpoint: the host is missing");
    if (parts->host_len > HF_HOST_MAX)
        return hf_error_set(err, HF_EINVAL, "endpoint: the host is longer than %d characters",
                            HF_HOST_MAX);
    memcpy(endpoint->host, parts->host, parts->host_len);
    endpoint->host[parts->host_len] = '\0';

    endpoint->ipv6 = parts->bracketed && inet_pton(AF_INET6, endpoint->host, &addr) == 1;
    endpoint->ipv4 = !parts->bracketed && inet_pton(AF_INET, endpoint->host, &addr) == 1;
    if (endpoint->ipv6 || endpoint->ipv4)
        return HF_OK;
    if (parts->bracketed)
        return hf_error_set(err, HF_EINVAL, "endpoint: \"%s\" is not an IPv6 address",
                            endpoint->host);
    if (!is_dns_name(endpoint->host))
        return hf_error_set(err, HF_EINVAL, "endpoint: \"%s\" is no address and no host name",
                            endpoint->host);
    return HF_OK;
}

static int set_port(struct hf_endpoint *endpoint, const struct authority *parts,
                    struct hf_error *err)
{
    char text[sizeof "65535"] = "";
    uint64_t port = PORT_DEFAULT;

    if (parts->port != NULL && parts->port_len < sizeof text)
        memcpy(text, parts->port, parts->port_len); /* one that is too long stays "": invalid */
    if (parts->port != NULL && hf_parse_u64(text, 1, UINT16_MAX, &port) < 0)
        return hf_error_set(err, HF_EINVAL, "endpoint: the port must be 1..65535");
    endpoint->port = (uint16_t)port;
    return HF_OK;
}

int hf_parse_endpoint(const char *text, struct hf_endpoint *ret_endpoint, struct hf_error *err)
{
    struct hf_endpoint endpoint = { 0 };
    struct authority parts = { 0 };
    const char *start;
    size_t len;
    int rc;

    /* First, and without quoting the text: it may hold a password. */
    if (strchr(text, '@') != NULL)
        return hf_error_set(err, HF_EINVAL, "endpoint: credentials do not belong here");
    start = scan_scheme(text, &endpoint.tls);
    if (start == NULL)
        return hf_error_set(err, HF_EINVAL, "endpoint: the scheme must be http or https");
    len = strcspn(start, "/?#");
    if (start[len] != '\0' && strcmp(start + len, "/") != 0)
        return hf_error_set(err, HF_EINVAL, "endpoint: nothing may follow host and port");

    rc = split_authority(start, len, &parts, err);
    if (rc == HF_OK)
        rc = set_host(&endpoint, &parts, err);
    if (rc == HF_OK)
        rc = set_port(&endpoint, &parts, err);
    if (rc == HF_OK)
        *ret_endpoint = endpoint;
    return rc;
}

int hf_format_endpoint(const struct hf_endpoint *endpoint, char *out, size_t size)
{
    return snprintf(out, size, "%s%s%s:%u", endpoint->ipv6 ? "[" : "", endpoint->host,
                    endpoint->ipv6 ? "]" : "", (unsigned)endpoint->port);
}
