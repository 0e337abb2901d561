/* mark.c - lets Check note where a test is, but not half a million times.
 *
 * Check writes the place of every assertion that holds to a file, and reads them all when the
 * case is over, to say of one that crashed what it had passed last. A property that is held
 * against many values spends its time with that, and under AddressSanitizer what the reading
 * freed lies in the quarantine, through which every later case walks for leaks. A place is told
 * a few times, which is all that the last one needs to be known by. */
#include <check.h>
#include <stdatomic.h>
#include <stdint.h>

enum { PLACES = 4096, TOLD_AT_MOST = 8 };

void __real__mark_point(const char *file, int line);
void __wrap__mark_point(const char *file, int line);

/* Two places may share a counter; then one of them is told less often. */
void __wrap__mark_point(const char *file, int line)
{
    static _Atomic unsigned char told[PLACES]; /* tests assert in threads, too */
    _Atomic unsigned char *mine = &told[((uintptr_t)file / 8 + (unsigned)line) % PLACES];
    unsigned char before = atomic_load_explicit(mine, memory_order_relaxed);

    if (before >= TOLD_AT_MOST)
        return;
    atomic_store_explicit(mine, (unsigned char)(before + 1), memory_order_relaxed);
    __real__mark_point(file, line);
}
