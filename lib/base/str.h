/* str.h - strict parsers and formatters for the small texts that people and files give us.
 *
 * A parser takes the whole text or nothing: no leading space, no trailing rest, no overflow, no
 * locale. All are pure; outputs are untouched on failure. */
#ifndef HF_BASE_STR_H
#define HF_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

/* Decimal integers. HF_EINVAL when it is none, HF_ELIMIT when it is outside min..max. Leading
 * zeros are accepted, "+" is not, "-" only for the signed one. */
int hf_parse_i64(const char *text, int64_t min, int64_t max, int64_t *ret_value) HF_MUST_CHECK;
int hf_parse_u64(const char *text, uint64_t min, uint64_t max,
                 uint64_t *ret_value) HF_MUST_CHECK;

/* "true" or "false", nothing else. */
int hf_parse_bool(const char *text, bool *ret_value) HF_MUST_CHECK;

#define HF_DURATION_MAX INT64_C(315360000000) /* ten years of 365 days, in ms */

/* Durations: one or more of <number><unit>, units h m s ms in falling order, a fraction allowed
 * in each number: "15s", "1h30m", "250ms", "2.5s", "-5s". "0" alone is allowed. Finer than 1 ms
 * is HF_EINVAL; beyond HF_DURATION_MAX either way HF_ELIMIT. */
int hf_parse_duration(const char *text, hf_ms *ret_value) HF_MUST_CHECK;

/* The canonical form, which parses back to the same value: "15s", "1m30s", "1.5s", "250ms",
 * "0s", "-5s". Returns the length, as snprintf does. */
int hf_format_duration(hf_ms value, char *out, size_t size);

/* RFC 3339 in UTC with milliseconds when they are not zero: "2026-01-31T08:15:30Z". The parser
 * accepts any offset and up to nine fractional digits (cut to milliseconds), but no leap
 * second; HF_ELIMIT when the offset leads out of the years 0000 to 9999. The formatter writes a
 * time outside of those years as their nearest end. */
int hf_parse_time(const char *text, hf_ms *ret_wall) HF_MUST_CHECK;
int hf_format_time(hf_ms wall, char *out, size_t size);

#define HF_HOST_MAX 253

/* One endpoint of a server. */
struct hf_endpoint {
    char host[HF_HOST_MAX + 1]; /* name or address, without brackets */
    uint16_t port;
    bool tls;
    bool ipv6; /* host is an IPv6 literal */
    bool ipv4; /* host is an IPv4 literal */
};

/* "http://10.0.0.1:2379", "https://etcd.example:2379", "[::1]:2379", "localhost:2379".
 * Without a scheme tls is false; without a port it is 2379. A path beyond "/" is an error. */
int hf_parse_endpoint(const char *text, struct hf_endpoint *ret_endpoint,
                      struct hf_error *err) HF_MUST_CHECK;

/* "host:port", with brackets where the host needs them. Returns the length. */
int hf_format_endpoint(const struct hf_endpoint *endpoint, char *out, size_t size);

/* How many edits (insert, delete, replace, swap neighbours) lead from a to b; texts longer than
 * 64 bytes count as infinitely far. For "did you mean". */
size_t hf_str_distance(const char *a, const char *b);

/* The nearest of `count` known words, or NULL when none is near enough to suggest. */
const char *hf_str_nearest(const char *word, const char *const *known, size_t count);

/* True when the bytes are valid UTF-8 (no surrogates, no overlong forms). */
bool hf_str_is_utf8(const void *data, size_t len);

/* How many of the bytes (len > 0) form the first character, 0 when they are not UTF-8. */
size_t hf_str_utf8_length(const void *data, size_t len);

/* How many bytes of the text to keep so that they are at most `max`, and no character of UTF-8
 * is cut in two. */
size_t hf_str_cut(const char *text, size_t max);

#endif
