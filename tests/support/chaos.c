/* Nothing but the references that --wrap creates (and a test's own calls) pulls this object out
 * of its archive, so programs that are linked without --wrap do not miss __real_malloc. */
#include "support/chaos.h"

#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/err.h"

/* A body that needs more allocations than this does not end. */
#define RUNS_MAX 100000

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t max);
void __real_free(void *data);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t max);
void __wrap_free(void *data);

static _Thread_local struct {
    bool active;
    bool persistent;
    bool failed;
    size_t fail_at;
    size_t count;
    bool (*only)(void);
    bool (*ask)(size_t n, void *arg);
    void *ask_arg;
} chaos;

void hft_chaos_fail_at(size_t n, bool persistent)
{
    chaos.active = true;
    chaos.persistent = persistent;
    chaos.failed = false;
    chaos.fail_at = n;
    chaos.count = 0;
}

void hft_chaos_only(bool (*fn)(void))
{
    chaos.only = fn;
}

void hft_chaos_ask(bool (*fn)(size_t n, void *arg), void *arg)
{
    chaos.ask = fn;
    chaos.ask_arg = arg;
}

void hft_chaos_stop(void)
{
    chaos.active = false;
}

size_t hft_chaos_count(void)
{
    return chaos.count;
}

bool hft_chaos_has_failed(void)
{
    return chaos.failed;
}

static bool is_the_one(void)
{
    bool answer;

    if (chaos.fail_at > 0)
        return chaos.count == chaos.fail_at ||
               (chaos.count > chaos.fail_at && chaos.persistent);
    if (chaos.ask == NULL)
        return false;
    chaos.active = false;
    answer = chaos.ask(chaos.count, chaos.ask_arg);
    chaos.active = true;
    return answer;
}

static bool must_fail(void)
{
    if (!chaos.active || (chaos.only != NULL && !chaos.only()))
        return false;
    chaos.count++;
    if (!is_the_one())
        return false;
    chaos.failed = true;
    errno = ENOMEM;
    return true;
}

/* What is watched: a table of addresses, open and at most half full. */

static _Thread_local struct {
    bool active;
    void **slots;
    size_t cap, count;
} watch;

static size_t slot_of(const void *data)
{
    return (size_t)(((uintptr_t)data >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
           (watch.cap - 1);
}

static void insert(void *data)
{
    size_t at = slot_of(data);

    while (watch.slots[at] != NULL)
        at = (at + 1) & (watch.cap - 1);
    watch.slots[at] = data;
    watch.count++;
}

static void grow(void)
{
    void **old = watch.slots;
    size_t cap = watch.cap;

    watch.cap = cap > 0 ? 2 * cap : 65536;
    watch.slots = __real_calloc(watch.cap, sizeof *watch.slots);
    if (watch.slots == NULL)
        abort();
    watch.count = 0;
    for (size_t i = 0; i < cap; i++) {
        if (old[i] != NULL)
            insert(old[i]);
    }
    __real_free(old);
}

static void *note(void *data)
{
    if (watch.active && data != NULL) {
        if (2 * watch.count >= watch.cap)
            grow();
        insert(data);
    }
    return data;
}

/* Those behind it in its row move up, so that they are still found. */
static bool forget(const void *data)
{
    size_t at, next;

    if (!watch.active || data == NULL || watch.cap == 0)
        return false;
    at = slot_of(data);
    while (watch.slots[at] != NULL && watch.slots[at] != data)
        at = (at + 1) & (watch.cap - 1);
    if (watch.slots[at] == NULL)
        return false; /* somebody else's, or from before */
    watch.count--;
    watch.slots[at] = NULL;
    for (next = (at + 1) & (watch.cap - 1); watch.slots[next] != NULL;
         next = (next + 1) & (watch.cap - 1)) {
        void *moved = watch.slots[next];

        watch.slots[next] = NULL;
        watch.count--;
        insert(moved);
    }
    return true;
}

void hft_chaos_watch(void)
{
    if (watch.cap == 0)
        grow();
    for (size_t i = 0; i < watch.cap; i++)
        watch.slots[i] = NULL;
    watch.count = 0;
    watch.active = true;
}

size_t hft_chaos_live(void)
{
    return watch.count;
}

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : note(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : note(__real_calloc(count, size));
}

/* The old one is gone exactly when there is a new one. */
static void *replace(void *old, size_t count, size_t size)
{
    bool watched = forget(old);
    void *data = __real_reallocarray(old, count, size);

    if (data == NULL && watched)
        insert(old);
    return note(data);
}

void *__wrap_realloc(void *old, size_t size)
{
    return must_fail() ? NULL : replace(old, 1, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
    return must_fail() ? NULL : replace(old, count, size);
}

char *__wrap_strdup(const char *text)
{
    return must_fail() ? NULL : note(__real_strdup(text));
}

char *__wrap_strndup(const char *text, size_t max)
{
    return must_fail() ? NULL : note(__real_strndup(text, max));
}

void __wrap_free(void *data)
{
    (void)forget(data);
    __real_free(data);
}

static size_t run_all(hft_chaos_fn body, void *arg, bool persistent)
{
    size_t n;

    for (n = 1; n <= RUNS_MAX; n++) {
        int rc;

        hft_chaos_fail_at(n, persistent);
        rc = body(arg);
        hft_chaos_stop();
        if (!hft_chaos_has_failed()) {
            ck_assert_msg(rc == HF_OK, "with memory: %s", hf_err_name(rc));
            break;
        }
        ck_assert_msg(rc == HF_ENOMEM, "allocation %zu%s failed: %s instead of ENOMEM", n,
                      persistent ? " and later ones" : "", hf_err_name(rc));
    }
    ck_assert_msg(n <= RUNS_MAX, "no end after %d allocations", RUNS_MAX);
    ck_assert_msg(n > 1, "the body allocates nothing, so nothing was tested");
    return n - 1;
}

size_t hft_chaos_run(hft_chaos_fn body, void *arg)
{
    size_t transient = run_all(body, arg, false);
    size_t persistent = run_all(body, arg, true);

    ck_assert_uint_eq(transient, persistent);
    return transient;
}

void hft_chaos_adopt_jansson(void)
{
    json_set_alloc_funcs(__wrap_malloc, free);
}

static void *protobuf_alloc(void *arg, size_t size)
{
    (void)arg;
    return __wrap_malloc(size);
}

static void protobuf_free(void *arg, void *data)
{
    (void)arg;
    free(data);
}

ProtobufCAllocator *hft_chaos_protobuf(void)
{
    static ProtobufCAllocator allocator = { .alloc = protobuf_alloc, .free = protobuf_free };

    return &allocator;
}
