#include "client/head.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

struct line {
    const char *text;
    size_t len;
};

/* Up to the next line feed, without its end; false when there is none yet. */
static bool next_line(const char **at, const char *end, struct line *ret_line)
{
    const char *feed = memchr(*at, '\n', (size_t)(end - *at));
    size_t len;

    if (feed == NULL)
        return false;
    len = (size_t)(feed - *at);
    if (len > 0 && feed[-1] == '\r')
        len--;
    *ret_line = (struct line){ *at, len };
    *at = feed + 1;
    return true;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* "HTTP/1.1 200 OK" */
static int parse_status(struct line line)
{
    static const char VERSION[] = "HTTP/1.";
    const size_t before = sizeof VERSION - 1;
    const char *p = line.text;

    if (line.len < before + 5 || memcmp(p, VERSION, before) != 0 || !is_digit(p[before]) ||
        p[before + 1] != ' ')
        return -1;
    p += before + 2;
    if (!is_digit(p[0]) || !is_digit(p[1]) || !is_digit(p[2]) || p[0] < '1' || p[0] > '5')
        return -1;
    if (line.len > before + 5 && p[3] != ' ')
        return -1;
    return (p[0] - '0') * 100 + (p[1] - '0') * 10 + (p[2] - '0');
}

/* Decimal digits and nothing else, up to what an int64_t holds. */
static bool parse_number(struct line text, int64_t *ret_value)
{
    int64_t value = 0;

    if (text.len == 0 || text.len > 18)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        if (!is_digit(text.text[i]))
            return false;
        value = value * 10 + (text.text[i] - '0');
    }
    *ret_value = value;
    return true;
}

static bool parse_sha256(struct line text, char ret_sha256[65])
{
    if (text.len != 64)
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.text[i];

        if (!is_digit(c) && (c < 'a' || c > 'f'))
            return false;
    }
    memcpy(ret_sha256, text.text, 64);
    ret_sha256[64] = '\0';
    return true;
}

static bool is_named(struct line name, const char *wanted)
{
    return name.len == strlen(wanted) && strncasecmp(name.text, wanted, name.len) == 0;
}

static bool is_token_byte(char c)
{
    return c > ' ' && c < 0x7f && strchr("()<>@,;:\\\"/[]?={}", c) == NULL;
}

static bool is_value_byte(char c)
{
    return (unsigned char)c >= ' ' ? c != 0x7f : c == '\t';
}

/* "Name: value", with any white space around the value. */
static bool split(struct line line, struct line *ret_name, struct line *ret_value)
{
    size_t colon = 0;
    struct line value;

    while (colon < line.len && is_token_byte(line.text[colon]))
        colon++;
    if (colon == 0 || colon == line.len || line.text[colon] != ':')
        return false;
    value = (struct line){ line.text + colon + 1, line.len - colon - 1 };
    for (size_t i = 0; i < value.len; i++) {
        if (!is_value_byte(value.text[i]))
            return false;
    }
    while (value.len > 0 && (value.text[0] == ' ' || value.text[0] == '\t'))
        value = (struct line){ value.text + 1, value.len - 1 };
    while (value.len > 0 &&
           (value.text[value.len - 1] == ' ' || value.text[value.len - 1] == '\t'))
        value.len--;
    *ret_name = (struct line){ line.text, colon };
    *ret_value = value;
    return true;
}

/* What is wrong with the line, or NULL. */
static const char *take_header(struct line line, struct hf_head *head)
{
    struct line name, value;
    int64_t length;

    if (!split(line, &name, &value))
        return "a header is malformed";
    if (is_named(name, "Transfer-Encoding"))
        return "it has a transfer encoding, which was not asked for";
    if (is_named(name, "Content-Length")) {
        if (!parse_number(value, &length) || (head->length >= 0 && head->length != length))
            return "its Content-Length makes no sense";
        head->length = length;
    } else if (is_named(name, "X-Holdfast-Seq")) {
        if (!parse_number(value, &head->seq))
            return "its X-Holdfast-Seq is no number";
    } else if (is_named(name, "X-Holdfast-Alive")) {
        if (!parse_number(value, &head->alive))
            return "its X-Holdfast-Alive is no number";
    } else if (is_named(name, "X-Holdfast-Sha256")) {
        if (!parse_sha256(value, head->sha256))
            return "its X-Holdfast-Sha256 is none";
    }
    return NULL;
}

int hf_head_parse(const char *data, size_t len, struct hf_head *ret_head, struct hf_error *err)
{
    struct hf_head head = { .length = -1 };
    const char *at = data, *end = data + (len < HF_HEAD_MAX ? len : HF_HEAD_MAX);
    const char *wrong = NULL;
    struct line line;

    for (bool first = true; wrong == NULL && next_line(&at, end, &line); first = false) {
        if (first) {
            head.status = parse_status(line);
            wrong = head.status < 0 ? "its first line is not that of HTTP/1" : NULL;
        } else if (line.len > 0) {
            wrong = take_header(line, &head);
        } else {
            *ret_head = head;
            return (int)(at - data);
        }
    }
    if (wrong != NULL)
        return hf_error_set(err, HF_EINVAL, "%s", wrong);
    if (len >= HF_HEAD_MAX)
        return hf_error_set(err, HF_ELIMIT, "its head is longer than %d bytes", HF_HEAD_MAX);
    return 0;
}
