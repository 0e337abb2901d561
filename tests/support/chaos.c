/* Nothing but the references that --wrap creates (and a test's own calls) pulls this object out
 * of its archive, so programs that are linked without --wrap do not miss __real_malloc. */
#include "support/chaos.h"

#include <check.h>
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

#include "base/err.h"

/* A body that needs more allocations than this does not end. */
#define RUNS_MAX 100000

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t max);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t max);

static _Thread_local struct {
    bool active;
    bool persistent;
    bool failed;
    size_t fail_at;
    size_t count;
    bool (*only)(void);
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

static bool must_fail(void)
{
    if (!chaos.active || (chaos.only != NULL && !chaos.only()))
        return false;
    chaos.count++;
    if (chaos.fail_at == 0 || chaos.count < chaos.fail_at)
        return false;
    if (chaos.count > chaos.fail_at && !chaos.persistent)
        return false;
    chaos.failed = true;
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t size)
{
    return must_fail() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return must_fail() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return must_fail() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
    return must_fail() ? NULL : __real_reallocarray(old, count, size);
}

char *__wrap_strdup(const char *text)
{
    return must_fail() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t max)
{
    return must_fail() ? NULL : __real_strndup(text, max);
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
