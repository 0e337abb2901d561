/* log.h - structured log lines, logfmt or JSON, on a descriptor (stderr unless told otherwise).
 *
 *     HF_LOG_INFO("joined", HF_STR("agent", name), HF_INT("pid", pid));
 *     time=2026-01-31T08:15:30.123Z level=info event=joined host=h1 agent=a pid=17
 *
 * The sink is the one piece of global state in the project. Every function may be called from
 * any thread. Lines are written with one write(2) each, so that those of several threads or
 * processes do not mix. A line that the descriptor refuses (it is full and does not block) is
 * lost, and the next one says `dropped=N`. Values are quoted and escaped, and what is no UTF-8
 * becomes U+FFFD, so that no value forges a line. lib/ logs at debug only. */
#ifndef HF_BASE_LOG_H
#define HF_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

enum hf_log_level {
    HF_LOG_LEVEL_DEBUG,
    HF_LOG_LEVEL_INFO,
    HF_LOG_LEVEL_WARN,
    HF_LOG_LEVEL_ERROR
};
enum hf_log_format { HF_LOG_LOGFMT, HF_LOG_JSON };
enum hf_log_type { HF_LOG_TYPE_STR, HF_LOG_TYPE_INT, HF_LOG_TYPE_UINT, HF_LOG_TYPE_BOOL };

struct hf_log_field {
    const char *key; /* an identifier: written as it is */
    enum hf_log_type type;
    union {
        const char *str; /* NULL is written as an empty value */
        int64_t i64;
        uint64_t u64;
        bool flag;
    };
};

#define HF_STR(k, v) ((struct hf_log_field){ .key = (k), .type = HF_LOG_TYPE_STR, .str = (v) })
#define HF_INT(k, v) ((struct hf_log_field){ .key = (k), .type = HF_LOG_TYPE_INT, .i64 = (v) })
#define HF_UINT(k, v)                                                                          \
    ((struct hf_log_field){ .key = (k), .type = HF_LOG_TYPE_UINT, .u64 = (v) })
#define HF_BOOL(k, v)                                                                          \
    ((struct hf_log_field){ .key = (k), .type = HF_LOG_TYPE_BOOL, .flag = (v) })

/* Where lines go and which ones: info, logfmt, fd 2 by default. */
void hf_log_setup(int fd, enum hf_log_level level, enum hf_log_format format);
int hf_parse_log_level(const char *text, enum hf_log_level *ret_level) HF_MUST_CHECK;
int hf_parse_log_format(const char *text, enum hf_log_format *ret_format) HF_MUST_CHECK;

/* Fields that every line carries (program, host, agent ...), at most 8, copied and cut to 64
 * bytes each. Replaces the earlier ones. */
void hf_log_identity(const struct hf_log_field *fields, size_t count);

bool hf_log_enabled(enum hf_log_level level);

/* Limits one place in the code: at most `burst` lines per `interval`; the next line that passes
 * says `dropped=N`. Zero-initialise as a static of the caller, with both set. */
struct hf_log_limit {
    hf_ms interval;
    uint32_t burst;
    hf_ms window_start;
    uint32_t passed;
    uint32_t dropped;
};

/* `limit` may be NULL. Never fails and keeps errno; a line that does not fit into 4 KiB is cut
 * and says `cut=true`. */
void hf_log_write(enum hf_log_level level, struct hf_log_limit *limit, const char *event,
                  const struct hf_log_field *fields, size_t count);

#define HF_LOG_FIELDS_(...)                                                                    \
    (const struct hf_log_field[]){ __VA_ARGS__ },                                              \
        sizeof((const struct hf_log_field[]){ __VA_ARGS__ }) / sizeof(struct hf_log_field)
#define HF_LOG_AT_(level, ...)                                                                 \
    do {                                                                                       \
        if (hf_log_enabled(level))                                                             \
            hf_log_write(level, NULL, __VA_ARGS__);                                            \
    } while (0)
/* At least one field after the event. */
#define HF_LOG_DEBUG(event, ...)                                                               \
    HF_LOG_AT_(HF_LOG_LEVEL_DEBUG, event, HF_LOG_FIELDS_(__VA_ARGS__))
#define HF_LOG_INFO(event, ...)                                                                \
    HF_LOG_AT_(HF_LOG_LEVEL_INFO, event, HF_LOG_FIELDS_(__VA_ARGS__))
#define HF_LOG_WARN(event, ...)                                                                \
    HF_LOG_AT_(HF_LOG_LEVEL_WARN, event, HF_LOG_FIELDS_(__VA_ARGS__))
#define HF_LOG_ERROR(event, ...)                                                               \
    HF_LOG_AT_(HF_LOG_LEVEL_ERROR, event, HF_LOG_FIELDS_(__VA_ARGS__))

#endif
