/* recovery.h - what the child of `./dev bench recovery` tells the program that measures. */
#ifndef HFB_RECOVERY_H
#define HFB_RECOVERY_H

#include <stdint.h>
#include <time.h>

enum { HFB_STATE_BYTES = 4096 };

/* One packet, sent once the child holds its bytes (or, in its first life, has stored them). */
struct hfb_news {
    char name[64]; /* of the agent, or of the supervisor */
    int32_t pid;
    int32_t resumed; /* it went on with what its predecessor left */
    int64_t main_ns; /* CLOCK_MONOTONIC: the program began, ... */
    int64_t held_ns; /* ... and had the bytes */
    uint8_t bytes[HFB_STATE_BYTES];
};

static inline int64_t hfb_now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

#endif
