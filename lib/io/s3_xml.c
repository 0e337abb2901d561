#include "io/s3_xml.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    char c;
} ENTITIES[] = {
    { "&amp;", '&' },   { "&lt;", '<' },   { "&gt;", '>' },   { "&quot;", '"' },
    { "&apos;", '\'' }, { "&#34;", '"' },  { "&#39;", '\'' }, { "&#x22;", '"' },
    { "&#x27;", '\'' }, { "&#13;", '\r' }, { "&#xD;", '\r' },
};

static const char *find(struct hf_bytes doc, const char *text)
{
    return doc.len > 0 ? memmem(doc.data, doc.len, text, strlen(text)) : NULL;
}

bool hf_s3_xml_next(struct hf_bytes *doc, const char *tag, struct hf_bytes *ret_inner)
{
    char open[64], close[64];
    const char *begin, *end, *limit = (const char *)doc->data + doc->len;

    (void)snprintf(open, sizeof open, "<%s>", tag);
    (void)snprintf(close, sizeof close, "</%s>", tag);
    begin = find(*doc, open);
    if (begin == NULL)
        return false;
    begin += strlen(open);
    end = find((struct hf_bytes){ begin, (size_t)(limit - begin) }, close);
    if (end == NULL)
        return false;
    *ret_inner = (struct hf_bytes){ begin, (size_t)(end - begin) };
    end += strlen(close);
    *doc = (struct hf_bytes){ end, (size_t)(limit - end) };
    return true;
}

/* One character, or what stands for one: how many bytes it takes. 0: it may not stand here. */
static size_t take(const char *at, size_t left, char *ret_c)
{
    if (*at == '<' || *at == '\0')
        return 0;
    *ret_c = *at;
    if (*at != '&')
        return 1;
    for (size_t i = 0; i < sizeof ENTITIES / sizeof ENTITIES[0]; i++) {
        size_t len = strlen(ENTITIES[i].name);

        if (len <= left && memcmp(at, ENTITIES[i].name, len) == 0) {
            *ret_c = ENTITIES[i].c;
            return len;
        }
    }
    return 0;
}

/* Writes it as text, unless `out` is NULL. False: something stands in it that may not, or there
 * is no room. */
static bool decode(struct hf_bytes inner, char *out, size_t size)
{
    const char *at = inner.data;
    size_t len = 0;

    while (inner.len > 0) {
        char c;
        size_t taken = take(at, inner.len, &c);

        if (taken == 0 || len + 1 >= size)
            return false;
        if (out != NULL)
            out[len] = c;
        len++;
        at += taken;
        inner.len -= taken;
    }
    if (out != NULL)
        out[len] = '\0';
    return true;
}

bool hf_s3_xml_text(struct hf_bytes doc, const char *tag, char *out, size_t size)
{
    struct hf_bytes inner;

    return size > 0 && hf_s3_xml_next(&doc, tag, &inner) && decode(inner, NULL, size) &&
           decode(inner, out, size);
}

void hf_s3_xml_escape(struct hf_buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '&')
            hf_buf_puts(out, "&amp;");
        else if (*text == '<')
            hf_buf_puts(out, "&lt;");
        else if (*text == '>')
            hf_buf_puts(out, "&gt;");
        else
            hf_buf_putc(out, *text);
    }
}
