/* json_text.h - the values that JSON carries as text: numbers, base64, durations, times.
 *
 * Internal to json and to lib/client. Pure: no allocation, no locale. Parsers take the whole of
 * `len` bytes or fail: HF_EINVAL when the text is none of its kind, HF_ELIMIT when it is out of
 * range. */
#ifndef HF_SCHEMA_JSON_TEXT_H
#define HF_SCHEMA_JSON_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The length of the JSON number that begins at `p`; 0 when none does. */
size_t hf_json_text_number(const char *p, const char *end);

/* A whole number in any notation of JSON: "-12", "1e3", "2.50e1". */
int hf_json_text_parse_int(const char *text, size_t len, int64_t min, int64_t max,
                           int64_t *ret_value) HF_MUST_CHECK;
int hf_json_text_parse_uint(const char *text, size_t len, uint64_t max,
                            uint64_t *ret_value) HF_MUST_CHECK;

/* A JSON number of at most HF_JSON_NUMBER_MAX characters, or one of NaN, Infinity, -Infinity. A
 * finite text beyond the type's range is HF_ELIMIT. */
int hf_json_text_parse_double(const char *text, size_t len, double *ret_value) HF_MUST_CHECK;
int hf_json_text_parse_float(const char *text, size_t len, float *ret_value) HF_MUST_CHECK;

/* The longest number that is read; it takes 767 digits to tell any two doubles apart. */
#define HF_JSON_NUMBER_MAX 800

/* A decimal that reads back as the same value, in 15 digits (float: 6) where they suffice;
 * returns its length. Quotes are not written; NaN and the infinities come as their names. */
#define HF_JSON_DOUBLE_SIZE 32
size_t hf_json_text_format_double(double value, char out[HF_JSON_DOUBLE_SIZE]);
size_t hf_json_text_format_float(float value, char out[HF_JSON_DOUBLE_SIZE]);

/* Decimal digits without a NUL; returns their number. */
#define HF_JSON_INT_SIZE 20
size_t hf_json_text_format_uint(uint64_t value, char out[HF_JSON_INT_SIZE]);

/* Base64. The decoder's output needs HF_JSON_BASE64_ROOM bytes of the text's length, the
 * encoder's has exactly HF_JSON_BASE64_SIZE of the data's, padded, with + and /. */
#define HF_JSON_BASE64_ROOM(len) ((len) / 4 * 3 + 2)
#define HF_JSON_BASE64_SIZE(len) (((len) + 2) / 3 * 4)
int hf_json_text_parse_base64(const char *text, size_t len, uint8_t *out,
                              size_t *ret_len) HF_MUST_CHECK;
void hf_json_text_format_base64(const uint8_t *data, size_t len, char *out);

/* "1.500s": seconds and nanoseconds have the same sign; up to 10,000 years either way. */
#define HF_JSON_TIME_SIZE 40
int hf_json_text_parse_duration(const char *text, size_t len, int64_t *ret_seconds,
                                int32_t *ret_nanos) HF_MUST_CHECK;
int hf_json_text_format_duration(int64_t seconds, int32_t nanos, char out[HF_JSON_TIME_SIZE],
                                 size_t *ret_len) HF_MUST_CHECK;

/* RFC 3339, years 1 to 9999: written in UTC with 0, 3, 6 or 9 digits, read with any offset. */
int hf_json_text_parse_time(const char *text, size_t len, int64_t *ret_seconds,
                            int32_t *ret_nanos) HF_MUST_CHECK;
int hf_json_text_format_time(int64_t seconds, int32_t nanos, char out[HF_JSON_TIME_SIZE],
                             size_t *ret_len) HF_MUST_CHECK;

#endif
