#include "schema/json.h"

int hf_json_copy(const ProtobufCMessage *message, ProtobufCMessage **ret_copy)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    int rc = hf_json_encode(message, &text);

    return rc == HF_OK
               ? hf_json_decode(message->descriptor, text.data, text.len, NULL, ret_copy, NULL)
               : rc;
}
