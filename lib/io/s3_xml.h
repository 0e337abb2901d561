/* s3_xml.h - what an S3 server says in XML, as far as we want to know it.
 *
 * Pure, and safe for any bytes: what is not found is not there. Elements that we look for have
 * no attributes and are not nested in themselves. */
#ifndef HF_IO_S3_XML_H
#define HF_IO_S3_XML_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* What stands between <tag> and </tag>, the first one in *doc; *doc becomes what is behind it.
 * False, and nothing changed, when there is none. */
bool hf_s3_xml_next(struct hf_bytes *doc, const char *tag, struct hf_bytes *ret_inner);

/* The text of the first <tag> of `doc`, with its entities replaced. False, and nothing written,
 * when there is none, it has other elements in it, or is longer than there is room. */
bool hf_s3_xml_text(struct hf_bytes doc, const char *tag, char *out, size_t size);

/* Appends the text as it may stand between two tags. */
void hf_s3_xml_escape(struct hf_buf *out, const char *text);

#endif
