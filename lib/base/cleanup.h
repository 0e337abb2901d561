/* cleanup.h - scope-bound release, so that an early return can never leak.
 *
 *     HF_CLEANUP_FREE char *text = NULL;
 *     HF_CLEANUP_FD int fd = -1;
 *     ...
 *     *ret_text = hf_steal(&text);   (hand the value out, disarm the cleanup) */
#ifndef HF_BASE_CLEANUP_H
#define HF_BASE_CLEANUP_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline void hf_cleanup_free(const void *slot)
{
    void *p;

    memcpy(&p, slot, sizeof p); /* slot is a char ** or struct foo **: do not alias it */
    free(p);
}

static inline void hf_cleanup_fd(const int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

#define HF_CLEANUP_FREE __attribute__((cleanup(hf_cleanup_free)))
#define HF_CLEANUP_FD   __attribute__((cleanup(hf_cleanup_fd)))

#define hf_steal(slot)                                                                         \
    ({                                                                                         \
        __typeof__(slot) slot_ = (slot);                                                       \
        __typeof__(*slot_) value_ = *slot_;                                                    \
        *slot_ = NULL;                                                                         \
        value_;                                                                                \
    })

#endif
