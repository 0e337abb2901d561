/* What a server of S3 says, or whoever stands in between: an error, lists of objects and of
 * uploads. A text that is found fits, has its NUL, and nothing of the document is read twice.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/s3_xml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct hf_bytes doc, const char *tag)
{
    char text[48];

    memset(text, 'x', sizeof text);
    if (hf_s3_xml_text(doc, tag, text, sizeof text)) {
        if (memchr(text, '\0', sizeof text) == NULL)
            abort();
    } else if (text[0] != 'x' || text[sizeof text - 1] != 'x') {
        abort();
    }
}

static void walk(struct hf_bytes doc, const char *tag)
{
    struct hf_bytes inner, before = doc;

    while (hf_s3_xml_next(&doc, tag, &inner)) {
        if (doc.len >= before.len || inner.len >= before.len ||
            (const char *)doc.data + doc.len != (const char *)before.data + before.len)
            abort();
        look(inner, "Key");
        look(inner, "UploadId");
        look(inner, "Initiated");
        before = doc;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    struct hf_bytes doc = { copy, size };

    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    look(doc, "Code");
    look(doc, "Region");
    look(doc, "IsTruncated");
    look(doc, "NextContinuationToken");
    walk(doc, "Contents");
    walk(doc, "Upload");
    free(copy);
    return 0;
}
