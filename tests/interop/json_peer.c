/* json_peer.c - our codec behind two pipes, for tests/interop/json.mjs.
 *
 * One request per line, one answer per line. The other side of each translation is protobuf's
 * binary form, in hexadecimal, which protobuf-c reads and writes without our help:
 *   encode TYPE HEX   ->  the message as JSON
 *   decode TYPE JSON  ->  the message in hexadecimal
 * An answer is `ok ...` or `error ...`. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "schema/json.h"
#include "types/types.h"

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = c != '\0' ? strchr(digits, c) : NULL;

    return at != NULL ? (int)(at - digits) : -1;
}

/* In place: two digits become the byte that they stand for. Returns the length, or -1. */
static ssize_t unhex(char *text)
{
    size_t len = strlen(text);

    if (len % 2 != 0)
        return -1;
    for (size_t i = 0; i < len / 2; i++) {
        int high = hex_digit(text[2 * i]);
        int low = hex_digit(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return -1;
        text[i] = (char)(high << 4 | low);
    }
    return (ssize_t)(len / 2);
}

static int encode(const ProtobufCMessageDescriptor *type, char *hex, struct hf_buf *out,
                  struct hf_error *err)
{
    ssize_t len = unhex(hex);
    ProtobufCMessage *message;
    int code;

    if (len < 0)
        return hf_error_set(err, HF_EINVAL, "no hexadecimal");
    message = protobuf_c_message_unpack(type, NULL, (size_t)len, (const uint8_t *)hex);
    if (message == NULL)
        return hf_error_set(err, HF_EINVAL, "no %s", type->name);
    code = hf_json_encode(message, out);
    protobuf_c_message_free_unpacked(message, NULL);
    return code == HF_OK ? HF_OK : hf_error_set(err, code, "%s", hf_err_text(code));
}

static int decode(const ProtobufCMessageDescriptor *type, const char *text, struct hf_buf *out,
                  struct hf_error *err)
{
    HF_CLEANUP_FREE uint8_t *packed = NULL;
    ProtobufCMessage *message = NULL;
    size_t len;
    int code =
        hf_json_decode(type, text, strlen(text),
                       &(struct hf_json_options){ .reject_unknown = true }, &message, err);

    if (code != HF_OK)
        return code;
    len = protobuf_c_message_get_packed_size(message);
    packed = hf_calloc(len + 1, 1);
    if (packed != NULL)
        len = protobuf_c_message_pack(message, packed);
    hf_json_free(message);
    if (packed == NULL)
        return hf_error_set(err, HF_ENOMEM, "no memory");
    for (size_t i = 0; i < len; i++)
        hf_buf_printf(out, "%02x", packed[i]);
    return out->err;
}

static void answer(char *line)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    const ProtobufCMessageDescriptor *type;
    struct hf_error err = { "no such request" };
    char *verb = strsep(&line, " ");
    char *name = strsep(&line, " ");
    int code = HF_EINVAL;

    type = name != NULL ? hft_types_find(name) : NULL;
    if (type != NULL && line != NULL && strcmp(verb, "encode") == 0)
        code = encode(type, line, &out, &err);
    else if (type != NULL && line != NULL && strcmp(verb, "decode") == 0)
        code = decode(type, line, &out, &err);
    if (code == HF_OK)
        (void)printf("ok %s\n", out.data != NULL ? out.data : "");
    else
        (void)printf("error %s\n", err.text);
}

int main(void)
{
    HF_CLEANUP_FREE char *line = NULL;
    size_t cap = 0;
    ssize_t len;

    while ((len = getline(&line, &cap, stdin)) > 0) {
        if (line[len - 1] == '\n')
            line[len - 1] = '\0';
        answer(line);
    }
    return fflush(stdout) == 0 && !ferror(stdin) ? EXIT_SUCCESS : EXIT_FAILURE;
}
