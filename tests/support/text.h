/* text.h - whole files as text. */
#ifndef HFT_TEXT_H
#define HFT_TEXT_H

#include <stddef.h>

/* All of a file, with a NUL behind it, to be freed; empty when there is none. It is read again
 * and again by those who wait for a line, so it costs no more memory than it has bytes.
 * *ret_len, unless NULL, is its length. */
char *hft_read_text(const char *path, size_t *ret_len);

#endif
