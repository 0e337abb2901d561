/* err.h - the one error vocabulary of the project.
 *
 * Every fallible function returns int: 0 (or a documented count >= 0) on success, one of
 * the negative HF_E* codes on failure. Foreign codes (errno, libuv, gRPC, curl, sqlite) are
 * translated once, in the adapter that called the foreign library, and never travel further. */
#ifndef HF_BASE_ERR_H
#define HF_BASE_ERR_H

/* clang-format off */
#define HF_ERR_MAP(X)                                                                          \
    X(ENOMEM,    -1, "out of memory")                                                          \
    X(EINVAL,    -2, "invalid argument or malformed input")                                    \
    X(ENOENT,    -3, "not found")                                                              \
    X(EEXIST,    -4, "already exists")                                                         \
    X(ECONFLICT, -5, "compare failed: someone else changed it first")                          \
    X(EFENCED,   -6, "fenced: our lease or leadership is gone")                                \
    X(ECOMPACT,  -7, "watch revision was compacted: list again")                               \
    X(EAGAIN,    -8, "temporarily unavailable: retry after a backoff")                         \
    X(ETIMEOUT,  -9, "deadline exceeded")                                                      \
    X(EDENIED,  -10, "permission denied")                                                      \
    X(ELIMIT,   -11, "a configured limit was reached")                                         \
    X(ECORRUPT, -12, "stored data failed verification")                                        \
    X(EIO,      -13, "input/output error")                                                     \
    X(ENOSPACE, -14, "etcd is out of space: compact, defragment and disarm its alarm")         \
    X(EHISTORY, -15, "etcd's history went back: it was restored from a backup")                \
    X(ECANCELED,-16, "cancelled by the caller")
/* clang-format on */

enum hf_err {
    HF_OK = 0,
#define X(name, value, text) HF_##name = (value),
    HF_ERR_MAP(X)
#undef X
};

#define HF_MUST_CHECK         __attribute__((warn_unused_result))
#define HF_PRINTF(fmt, first) __attribute__((format(printf, fmt, first)))

/* "EFENCED" and the sentence above. Both are static strings; unknown codes yield "E?". */
const char *hf_err_name(int err);
const char *hf_err_text(int err);

/* The human detail of a failure. Passed as an optional last parameter; NULL is fine. */
struct hf_error {
    char text[256]; /* NUL-terminated, truncated if it has to be */
};

/* Sets err->text when err is not NULL and returns `code`, so that a failure is one line:
 * `return hf_error_set(err, HF_EINVAL, "ttl must be positive, not %d", ttl);` */
int hf_error_set(struct hf_error *err, int code, const char *fmt, ...) HF_PRINTF(3, 4);

#endif
