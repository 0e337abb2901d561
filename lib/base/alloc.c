#include "base/alloc.h"

#include <assert.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Few arrays stay below this, and it saves the first two reallocations of the others. */
#define GROW_MIN 4

/* No object is larger than half the address space; the sanitizers abort on such a request. */
static bool is_sane(size_t count, size_t size)
{
    size_t total;

    return !__builtin_mul_overflow(count, size, &total) && total <= PTRDIFF_MAX;
}

void *hf_calloc(size_t count, size_t size)
{
    /* calloc(0) may return NULL, which our callers would take for a lack of memory. */
    if (count == 0 || size == 0)
        return calloc(1, 1);
    return is_sane(count, size) ? calloc(count, size) : NULL;
}

char *hf_strdup(const char *text)
{
    return strdup(text);
}

char *hf_strndup(const char *text, size_t max)
{
    return strndup(text, max);
}

void *hf_memdup(const void *data, size_t len)
{
    char *copy;

    if (!is_sane(len, 1))
        return NULL;
    copy = malloc(len + 1);
    if (copy == NULL)
        return NULL;
    if (len > 0) /* memcpy may not be given NULL, not even for nothing */
        memcpy(copy, data, len);
    copy[len] = '\0';
    return copy;
}

bool hf_grow(void *slot, size_t *cap, size_t need, size_t size)
{
    size_t want = *cap + *cap / 2;
    void *items;

    assert(size > 0);

    if (need <= *cap)
        return true;
    if (want < need) /* also when the sum above wrapped */
        want = need;
    if (want < GROW_MIN)
        want = GROW_MIN;
    if (!is_sane(want, size))
        return false;

    memcpy(&items, slot, sizeof items); /* slot is a struct foo **: do not alias it */
    items = reallocarray(items, want, size);
    if (items == NULL)
        return false;
    memcpy(slot, &items, sizeof items);
    *cap = want;
    return true;
}

void hf_alloc_tune(void)
{
    (void)mallopt(M_ARENA_MAX, 1);
}

void hf_alloc_trim(void)
{
    (void)malloc_trim(0);
}
