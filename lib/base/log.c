#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

#define LINE_BYTES     4096 /* also PIPE_BUF: a pipe takes such a line whole or not at all */
#define TAIL_BYTES     64   /* of them, for what ends even a line that is cut */
#define IDENTITY_MAX   8
#define IDENTITY_BYTES 64

static const char *const LEVELS[] = { "debug", "info", "warn", "error" };
static const char *const FORMATS[] = { "logfmt", "json" };

struct identity {
    struct hf_log_field field; /* its pointers lead to the two below */
    char key[IDENTITY_BYTES + 1];
    char text[IDENTITY_BYTES + 1];
};

/* All but the level is under the lock, the write itself included: a line that the kernel takes
 * in two pieces must not be split by another thread's. */
static struct {
    pthread_mutex_t lock;
    _Atomic(enum hf_log_level) level;
    enum hf_log_format format;
    int fd;
    struct identity identity[IDENTITY_MAX];
    size_t identity_count;
    uint32_t lost; /* lines that could not be written; the next one that can says so */
    bool torn;     /* the last one was written in part: its end is missing */
} sink = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .level = HF_LOG_LEVEL_INFO,
    .format = HF_LOG_LOGFMT,
    .fd = STDERR_FILENO,
};

/* A line under construction. Once it is cut it takes nothing more until put_end. */
struct line {
    char data[LINE_BYTES];
    size_t len;
    size_t max;
    bool cut;
    bool json;
    const char *separator; /* due before the next key */
};

/* Appends all of it, or cuts the line before it. */
static void put(struct line *line, const char *text, size_t len)
{
    if (line->cut || line->len + len > line->max) { /* a closing quote may be past max */
        line->cut = true;
        return;
    }
    memcpy(line->data + line->len, text, len);
    line->len += len;
}

static void put_raw(struct line *line, const char *text)
{
    put(line, text, strlen(text));
}

/* U+0080 to U+009F are control characters as well, and some terminals obey them. */
static bool is_control(const uint8_t *p, size_t len)
{
    return p[0] < ' ' || p[0] == 0x7f || (len == 2 && p[0] == 0xc2 && p[1] < 0xa0);
}

/* Appends the first character of the text, escaped in the way that JSON and logfmt share, and
 * returns how many bytes it stands for. Each byte that is no UTF-8 becomes U+FFFD. */
static size_t put_char(struct line *line, const char *text, size_t left)
{
    const uint8_t *p = (const uint8_t *)text;
    size_t len = hf_str_utf8_length(text, left);
    char escape[8];

    if (len == 0) {
        put_raw(line, "\xef\xbf\xbd");
        return 1;
    }
    switch (p[0]) {
    case '"': put_raw(line, "\\\""); break;
    case '\\': put_raw(line, "\\\\"); break;
    case '\n': put_raw(line, "\\n"); break;
    case '\r': put_raw(line, "\\r"); break;
    case '\t': put_raw(line, "\\t"); break;
    default:
        if (!is_control(p, len)) {
            put(line, text, len);
            break;
        }
        (void)snprintf(escape, sizeof escape, "\\u%04x", p[len - 1]); /* C2 80 is U+0080 */
        put_raw(line, escape);
    }
    return len;
}

/* A logfmt value stands without quotes when nothing in it could end it or needs an escape. */
static bool is_bare(const char *text)
{
    size_t left = strlen(text);
    size_t len;

    if (left == 0)
        return false;
    for (; left > 0; text += len, left -= len) {
        len = hf_str_utf8_length(text, left);
        if (len == 0 || strchr(" \"=\\", *text) != NULL ||
            is_control((const uint8_t *)text, len))
            return false;
    }
    return true;
}

/* Cut after the last character that fits; an opened quote is closed even then (in the tail). */
static void put_text(struct line *line, const char *text)
{
    bool quoted = line->json || !is_bare(text);

    if (quoted)
        put_raw(line, "\"");
    if (line->cut)
        return;
    for (size_t left = strlen(text); left > 0 && !line->cut;) {
        size_t taken = put_char(line, text, left);

        text += taken;
        left -= taken;
    }
    if (quoted)
        line->data[line->len++] = '"';
}

static void put_key(struct line *line, const char *key)
{
    put_raw(line, line->separator);
    put_raw(line, line->json ? "\"" : "");
    put_raw(line, key);
    put_raw(line, line->json ? "\":" : "=");
    line->separator = line->json ? "," : " ";
}

static void put_number(struct line *line, const struct hf_log_field *field)
{
    char text[24];

    if (field->type == HF_LOG_TYPE_INT)
        (void)snprintf(text, sizeof text, "%lld", (long long)field->i64);
    else
        (void)snprintf(text, sizeof text, "%llu", (unsigned long long)field->u64);
    put_raw(line, text);
}

/* A text may be cut short. Of any other field there is all or nothing: half a number lies. */
static void put_field(struct line *line, const struct hf_log_field *field)
{
    size_t before = line->len;
    size_t value;

    put_key(line, field->key);
    value = line->len;
    switch (field->type) {
    case HF_LOG_TYPE_STR: put_text(line, field->str != NULL ? field->str : ""); break;
    case HF_LOG_TYPE_BOOL: put_raw(line, field->flag ? "true" : "false"); break;
    default: put_number(line, field);
    }
    if (line->cut && line->len == value)
        line->len = before;
}

/* RFC 3339 with milliseconds even when they are zero, so that lines sort as text. */
static void put_time(struct line *line)
{
    hf_ms wall = hf_clock_wall();
    int ms = (int)(wall % 1000);
    char seconds[32];
    char text[40];
    int len = hf_format_time(wall - ms, seconds, sizeof seconds);

    (void)snprintf(text, sizeof text, "%.*s.%03dZ", len - 1, seconds, ms);
    put_field(line, &HF_STR("time", text));
}

static void put_end(struct line *line, uint32_t dropped)
{
    bool cut = line->cut;

    line->cut = false;
    line->max = sizeof line->data;
    if (dropped > 0)
        put_field(line, &HF_UINT("dropped", dropped));
    if (cut)
        put_field(line, &HF_BOOL("cut", true));
    put_raw(line, line->json ? "}\n" : "\n");
}

static uint32_t add_saturated(uint32_t a, uint32_t b)
{
    return a > UINT32_MAX - b ? UINT32_MAX : a + b;
}

/* Whether a line passes; *ret_dropped is how many did not since the last one that did. */
static bool limit_passes(struct hf_log_limit *limit, uint32_t *ret_dropped)
{
    const struct hf_clock clock = hf_clock_boottime();
    hf_ms now = hf_clock_now(&clock);

    if (limit->passed == 0 || now - limit->window_start >= limit->interval) {
        limit->window_start = now;
        limit->passed = 0;
    }
    if (limit->passed >= limit->burst) {
        limit->dropped = add_saturated(limit->dropped, 1);
        return false;
    }
    limit->passed++;
    *ret_dropped = limit->dropped;
    limit->dropped = 0;
    return true;
}

/* False when the descriptor did not take all of it. A full pipe that does not block is one of
 * the reasons: losing a line is better than standing still. */
static bool write_all(const char *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(sink.fd, data, len);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        sink.torn = true; /* until the rest has followed */
        data += n;
        len -= (size_t)n;
    }
    sink.torn = false;
    return true;
}

static void write_line(enum hf_log_level level, const char *event,
                       const struct hf_log_field *fields, size_t count, uint32_t dropped)
{
    struct line line = {
        .max = sizeof line.data - TAIL_BYTES,
        .json = sink.format == HF_LOG_JSON,
        .separator = sink.format == HF_LOG_JSON ? "{" : "",
    };

    if (sink.torn)
        put_raw(&line, "\n");
    put_time(&line);
    put_field(&line, &HF_STR("level", LEVELS[level]));
    put_field(&line, &HF_STR("event", event));
    for (size_t i = 0; i < sink.identity_count; i++)
        put_field(&line, &sink.identity[i].field);
    for (size_t i = 0; i < count; i++)
        put_field(&line, &fields[i]);
    dropped = add_saturated(dropped, sink.lost);
    put_end(&line, dropped);

    sink.lost = write_all(line.data, line.len) ? 0 : add_saturated(dropped, 1);
}

void hf_log_write(enum hf_log_level level, struct hf_log_limit *limit, const char *event,
                  const struct hf_log_field *fields, size_t count)
{
    int saved = errno; /* the caller may be about to report it */
    uint32_t dropped = 0;

    if (!hf_log_enabled(level))
        return;
    (void)pthread_mutex_lock(&sink.lock);
    if (limit == NULL || limit_passes(limit, &dropped))
        write_line(level, event, fields, count, dropped);
    (void)pthread_mutex_unlock(&sink.lock);
    errno = saved;
}

bool hf_log_enabled(enum hf_log_level level)
{
    return level >= atomic_load_explicit(&sink.level, memory_order_relaxed);
}

void hf_log_setup(int fd, enum hf_log_level level, enum hf_log_format format)
{
    (void)pthread_mutex_lock(&sink.lock);
    sink.fd = fd;
    sink.format = format;
    sink.lost = 0;
    sink.torn = false;
    atomic_store_explicit(&sink.level, level, memory_order_relaxed);
    (void)pthread_mutex_unlock(&sink.lock);
}

/* Copies what fits, and no half of a character. */
static void copy_cut(char out[IDENTITY_BYTES + 1], const char *text)
{
    size_t len = strnlen(text, IDENTITY_BYTES + 1);

    if (len > IDENTITY_BYTES) {
        for (len = IDENTITY_BYTES; len > 0 && ((uint8_t)text[len] & 0xc0) == 0x80;)
            len--;
    }
    memcpy(out, text, len);
    out[len] = '\0';
}

void hf_log_identity(const struct hf_log_field *fields, size_t count)
{
    (void)pthread_mutex_lock(&sink.lock);
    sink.identity_count = count < IDENTITY_MAX ? count : IDENTITY_MAX;
    for (size_t i = 0; i < sink.identity_count; i++) {
        struct identity *identity = &sink.identity[i];

        identity->field = fields[i];
        copy_cut(identity->key, fields[i].key);
        identity->field.key = identity->key;
        if (fields[i].type == HF_LOG_TYPE_STR) {
            copy_cut(identity->text, fields[i].str != NULL ? fields[i].str : "");
            identity->field.str = identity->text;
        }
    }
    (void)pthread_mutex_unlock(&sink.lock);
}

int hf_parse_log_level(const char *text, enum hf_log_level *ret_level)
{
    for (size_t i = 0; i < sizeof LEVELS / sizeof LEVELS[0]; i++) {
        if (strcmp(text, LEVELS[i]) == 0) {
            *ret_level = (enum hf_log_level)i;
            return HF_OK;
        }
    }
    return HF_EINVAL;
}

int hf_parse_log_format(const char *text, enum hf_log_format *ret_format)
{
    for (size_t i = 0; i < sizeof FORMATS / sizeof FORMATS[0]; i++) {
        if (strcmp(text, FORMATS[i]) == 0) {
            *ret_format = (enum hf_log_format)i;
            return HF_OK;
        }
    }
    return HF_EINVAL;
}
