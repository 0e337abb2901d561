#include "schema/name.h"

#include <stdbool.h>
#include <string.h>

static bool is_alnum(unsigned char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_inner(unsigned char c)
{
    return is_alnum(c) || c == '.' || c == '_' || c == '-';
}

const char *hf_name_fault(const void *text, size_t len, size_t *ret_at)
{
    const unsigned char *bytes = text;
    size_t at = 0;

    *ret_at = 0;
    if (len == 0)
        return "a name must not be empty";
    if (!is_alnum(bytes[0]))
        return "a name begins with a-z or 0-9";
    while (at < len && at < HF_NAME_MAX && is_inner(bytes[at]))
        at++;
    if (at == len)
        return NULL;
    *ret_at = at;
    if (at == HF_NAME_MAX)
        return "a name has at most 253 characters";
    return "a name consists of a-z, 0-9, '.', '_' and '-'";
}

/* Foreign bytes stay out of the message: it may end up on a terminal. */
int hf_name_check(const char *what, const char *text, struct hf_error *err)
{
    size_t at = 0;

    if (text == NULL)
        return hf_error_set(err, HF_EINVAL, "%s is missing", what);

    const char *fault = hf_name_fault(text, strlen(text), &at);
    if (fault == NULL)
        return HF_OK;
    return hf_error_set(err, HF_EINVAL, "%s, character %zu: %s", what, at + 1, fault);
}

int hf_name_lower(const char *what, const char *text, char ret_name[HF_NAME_SIZE],
                  struct hf_error *err)
{
    char lower[HF_NAME_SIZE + 1]; /* one more, so that a name too long is still seen as such */

    if (text == NULL)
        return hf_error_set(err, HF_EINVAL, "%s is missing", what);

    size_t len = strnlen(text, HF_NAME_SIZE);
    for (size_t i = 0; i < len; i++)
        lower[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] - 'A' + 'a' : text[i]);
    lower[len] = '\0';

    int rc = hf_name_check(what, lower, err);
    if (rc == HF_OK)
        memcpy(ret_name, lower, len + 1);
    return rc;
}
