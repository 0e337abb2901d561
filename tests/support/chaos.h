/* chaos.h - makes the n-th allocation fail, so that a test walks every path that lacks memory.
 *
 * Works in programs linked with --wrap=malloc and its kin, that is, in all unit tests: there it
 * sees every allocation of our own code and of static libraries. Shared libraries keep their
 * allocator unless it is handed to them with one of the functions at the end. The state is the
 * calling thread's: other threads are never failed.
 *
 * Check allocates in every ck_assert: call hft_chaos_stop() before the first one. */
#ifndef HFT_SUPPORT_CHAOS_H
#define HFT_SUPPORT_CHAOS_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stddef.h>

/* Fails the n-th allocation from now on (1 is the next one); if `persistent`, all after it too.
 * n = 0 fails none and only counts. */
void hft_chaos_fail_at(size_t n, bool persistent);

/* Counts and fails only those that are made while `fn` says so; NULL: all of them. */
void hft_chaos_only(bool (*fn)(void));

/* Asks, after hft_chaos_fail_at(0, …), at each that is counted whether it fails; `n` as there.
 * What `fn` allocates itself is let through. NULL: nobody is asked. */
void hft_chaos_ask(bool (*fn)(size_t n, void *arg), void *arg);

/* Lets all allocations through again. The two below keep their answers. */
void hft_chaos_stop(void);

/* How many allocations were asked for since hft_chaos_fail_at, and whether one was failed. */
size_t hft_chaos_count(void);
bool hft_chaos_has_failed(void);

/* Looks at all that is allocated from now on, failed or not and whoever asks; and how many of
 * these have not been freed by now. What another library allocated and we free does not count.
 */
void hft_chaos_watch(void);
size_t hft_chaos_live(void);

/* Does the work under test, cleans up behind itself and returns its HF_E* code; no ck_assert
 * before hft_chaos_stop(). Called often: it must start from scratch each time. */
typedef int (*hft_chaos_fn)(void *arg);

/* Runs `body` with the 1st, 2nd, ... allocation failing, until a run needs no more of them:
 * once with that one failing alone, once with all after it as well. Asserts that a run returns
 * HF_ENOMEM when an allocation failed in it and HF_OK otherwise, and that there was one to
 * fail. Returns the number of allocations of a whole run. */
size_t hft_chaos_run(hft_chaos_fn body, void *arg);

/* Puts jansson on our allocator for the rest of the process. Call it before any JSON value
 * exists. */
void hft_chaos_adopt_jansson(void);

/* An allocator to give to protobuf_c_message_unpack and the like. */
ProtobufCAllocator *hft_chaos_protobuf(void);

#endif
