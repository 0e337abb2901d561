/* Decodes anything as any message type. What can be read must be written so that it reads the
 * same, and nothing may be lost or gained when it is laid over the text that it came from.
 *
 * The first line of an input names the type ("Task", "test.Everything"); a name that is none
 * still chooses one. The rest is the text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "schema/json.h"
#include "types/types.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static const ProtobufCMessageDescriptor *find_type(const char *name, size_t len)
{
    uint32_t hash = 2166136261;

    for (size_t i = 0; i < hft_types_count(); i++) {
        const ProtobufCMessageDescriptor *type = hft_types_get(i);
        size_t full = strlen(type->name);

        if (full > len && type->name[full - len - 1] == '.' &&
            memcmp(type->name + full - len, name, len) == 0)
            return type;
    }
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ (uint8_t)name[i]) * 16777619;
    return hft_types_get(hash % hft_types_count());
}

static ProtobufCMessage *decode_again(const ProtobufCMessageDescriptor *type,
                                      const struct hf_buf *text, bool reject_unknown)
{
    struct hf_json_options options = { .max_bytes = SIZE_MAX,
                                       .reject_unknown = reject_unknown };
    ProtobufCMessage *message = NULL;
    struct hf_error err;

    require(hf_json_decode(type, text->data, text->len, &options, &message, &err) == HF_OK);
    return message;
}

/* The text reads as the message whose encoding is `want`. */
static void check_reads_as(const ProtobufCMessageDescriptor *type, const struct hf_buf *text,
                           bool reject_unknown, const struct hf_buf *want)
{
    ProtobufCMessage *message = decode_again(type, text, reject_unknown);
    struct hf_buf out = { 0 };

    require(hf_json_encode(message, &out) == HF_OK);
    require(out.len == want->len && memcmp(out.data, want->data, out.len) == 0);
    hf_buf_done(&out);
    hf_json_free(message);
}

static void check_over(const ProtobufCMessage *message, const char *old, size_t old_len,
                       const struct hf_buf *plain)
{
    struct hf_buf once = { 0 };
    struct hf_buf twice = { 0 };
    struct hf_error err;

    require(hf_json_encode_over(message, old, old_len, &once, &err) == HF_OK);
    check_reads_as(message->descriptor, &once, false, plain);
    require(hf_json_encode_over(message, once.data, once.len, &twice, &err) == HF_OK);
    require(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
    hf_buf_done(&once);
    hf_buf_done(&twice);
}

static void check_message(const ProtobufCMessage *message, const char *text, size_t len)
{
    struct hf_buf plain = { 0 };
    struct hf_buf pretty = { 0 };
    int code = hf_json_encode(message, &plain);

    /* Zero values make it larger, and empty lists deeper, than what was read. */
    require(code == HF_OK || code == HF_ELIMIT);
    if (code == HF_OK) {
        check_reads_as(message->descriptor, &plain, true, &plain);
        require(hf_json_encode_pretty(message, &pretty) == HF_OK);
        check_reads_as(message->descriptor, &pretty, true, &plain);
        check_over(message, text, len, &plain);
    }
    hf_buf_done(&plain);
    hf_buf_done(&pretty);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *line_end = size > 0 ? memchr(data, '\n', size) : NULL;
    const ProtobufCMessageDescriptor *type;
    ProtobufCMessage *message = NULL;
    struct hf_error err = { "" };
    const char *text;
    size_t len;

    if (line_end == NULL)
        return 0;
    type = find_type((const char *)data, (size_t)(line_end - (const char *)data));
    text = line_end + 1;
    len = (size_t)((const char *)data + size - text);
    if (hf_json_decode(type, text, len, NULL, &message, &err) != HF_OK) {
        require(err.text[0] != '\0' && hf_str_is_utf8(err.text, strlen(err.text)));
        return 0;
    }
    check_message(message, text, len);
    hf_json_free(message);
    return 0;
}
