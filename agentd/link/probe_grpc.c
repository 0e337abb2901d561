#include <string.h>

#include "agentd/link/probe.h"

/* One call of grpc.health.v1.Health/Check over HTTP/2 in plain text. Header fields are written
 * as literals without an index and without Huffman's code, which every server reads; of the
 * answer only the message counts: no message, or another status than SERVING, is no. */

enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, GOAWAY = 7 };
enum { END_STREAM = 1, PADDED = 8, END_HEADERS = 4, FRAME_HEAD = 9, SERVING = 1 };

struct out {
    char *at;
    size_t len, size;
};

static void put(struct out *out, const void *bytes, size_t len)
{
    if (out->len + len <= out->size)
        memcpy(out->at + out->len, bytes, len);
    out->len += len;
}

static void put_byte(struct out *out, size_t byte)
{
    unsigned char c = (unsigned char)byte;

    put(out, &c, 1);
}

static void put_frame(struct out *out, size_t len, int type, int flags, int stream)
{
    const unsigned char head[FRAME_HEAD] = { (unsigned char)(len >> 16),
                                             (unsigned char)(len >> 8),
                                             (unsigned char)len,
                                             (unsigned char)type,
                                             (unsigned char)flags,
                                             0,
                                             0,
                                             0,
                                             (unsigned char)stream };

    put(out, head, sizeof head);
}

/* Texts below 127 bytes: their length is one byte. */
static void put_field(struct out *out, const char *name, const char *value)
{
    put_byte(out, 0);
    put_byte(out, strlen(name));
    put(out, name, strlen(name));
    put_byte(out, strlen(value));
    put(out, value, strlen(value));
}

size_t link_probe_put_health(const struct link_probe_target *target, char *out, size_t size)
{
    static const char PREFACE[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    char block[300];
    struct out fields = { .at = block, .size = sizeof block };
    struct out all = { .at = out, .size = size };
    size_t name = strnlen(target->path, LINK_PROBE_SERVICE_MAX);
    size_t message = name > 0 ? name + 2 : 0;

    put_field(&fields, ":method", "POST");
    put_field(&fields, ":scheme", "http");
    put_field(&fields, ":path", "/grpc.health.v1.Health/Check");
    put_field(&fields, ":authority", target->host);
    put_field(&fields, "content-type", "application/grpc");
    put_field(&fields, "te", "trailers");
    put(&all, PREFACE, sizeof PREFACE - 1);
    put_frame(&all, 0, SETTINGS, 0, 0);
    put_frame(&all, fields.len, HEADERS, END_HEADERS, 1);
    put(&all, block, fields.len);
    put_frame(&all, 5 + message, DATA, END_STREAM, 1);
    put(&all, "\0\0\0\0", 4);
    put_byte(&all, message);
    if (message > 0) {
        put_byte(&all, 0x0a); /* field 1, a text */
        put_byte(&all, name);
        put(&all, target->path, name);
    }
    return all.len <= size ? all.len : 0;
}

/* The payload of a DATA frame: a byte, a length, and a message whose field 1 is the status. */
static int read_message(const unsigned char *data, size_t len, bool padded)
{
    size_t skip = padded ? 1 : 0;

    return len >= skip + 7 && data[skip] == 0 && data[skip + 5] == 0x08 &&
                   data[skip + 6] == SERVING
               ? 1
               : -1;
}

int link_probe_read_health(const char *in, size_t len)
{
    const unsigned char *at = (const unsigned char *)in;
    bool answered = false;

    while (len >= FRAME_HEAD) {
        size_t size = (size_t)at[0] << 16 | (size_t)at[1] << 8 | at[2];
        bool ours = at[8] == 1;

        if (at[3] > 9 || size > 16384)
            return -1; /* that is no HTTP/2 */
        if (at[3] == GOAWAY || (at[3] == RST_STREAM && ours))
            return -1;
        if (len < FRAME_HEAD + size)
            return 0;
        if (at[3] == DATA && ours)
            return read_message(at + FRAME_HEAD, size, (at[4] & PADDED) != 0);
        if (at[3] == HEADERS && ours && (answered || (at[4] & END_STREAM) != 0))
            return -1; /* trailers without a message */
        answered = answered || (at[3] == HEADERS && ours);
        at += FRAME_HEAD + size;
        len -= FRAME_HEAD + size;
    }
    return 0;
}
