#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

const char *hf_err_name(int err)
{
    switch (err) {
        /* clang-format off */
    case HF_OK: return "OK";
#define X(name, value, text) case HF_##name: return #name;
        HF_ERR_MAP(X)
#undef X
        /* clang-format on */
    default: return "E?";
    }
}

const char *hf_err_text(int err)
{
    switch (err) {
        /* clang-format off */
    case HF_OK: return "success";
#define X(name, value, text) case HF_##name: return text;
        HF_ERR_MAP(X)
#undef X
        /* clang-format on */
    default: return "E?";
    }
}

int hf_error_set(struct hf_error *err, int code, const char *fmt, ...)
{
    va_list args;

    if (err == NULL)
        return code;
    va_start(args, fmt);
    (void)vsnprintf(err->text, sizeof err->text, fmt, args); /* cutting is what it promises */
    va_end(args);
    return code;
}
