/* alloc.h - allocation that checks its arithmetic. Memory is released with free().
 *
 * Every function returns NULL when there is no memory or the size overflows; the tests make the
 * n-th call fail (tests/support/chaos.h), so every caller's NULL path is exercised. */
#ifndef HF_BASE_ALLOC_H
#define HF_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>

/* `count` zeroed elements of `size` bytes. */
void *hf_calloc(size_t count, size_t size);

/* Copies; hf_strndup stops at a NUL, hf_memdup does not and appends one NUL past the end. */
char *hf_strdup(const char *text);
char *hf_strndup(const char *text, size_t max);
void *hf_memdup(const void *data, size_t len);

/* Makes room for `need` elements of `size` bytes in the array *slot (any object pointer, by
 * address) with capacity *cap, growing by half at least. False, and nothing changed, when there
 * is no memory. New elements are not zeroed. */
bool hf_grow(void *slot, size_t *cap, size_t need, size_t size);

/* For main, before any thread starts: memory that a daemon needed for a moment goes back to the
 * system. glibc's extra arenas, one per thread of gRPC, would each keep what passed through. */
void hf_alloc_tune(void);

/* For a daemon that has begun: so does what it needed for that. Takes as long as there is
 * memory, so it is not for every day. */
void hf_alloc_trim(void);

#endif
