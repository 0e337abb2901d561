/* config_value.c - one value by the rules of its option: text in, typed member out. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "schema/config_private.h"
#include "schema/name.h"

/* "; did you mean "info"?" when the text looks like one of the words, else "". */
static const char *did_you_mean(const char *text, const char *const *words, char *out,
                                size_t size)
{
    const char *nearest;
    size_t count = 0;

    while (words[count] != NULL)
        count++;
    nearest = hf_str_nearest(text, words, count);
    out[0] = '\0';
    if (nearest != NULL)
        (void)snprintf(out, size, "; did you mean %s?", nearest);
    return out;
}

/* ", not "text"": the second half of a refusal. A secret is not repeated. */
static const char *not_this(const struct hf_option *option, const char *text, char *out,
                            size_t size)
{
    char quoted[HF_CONFIG_QUOTE_MAX];

    out[0] = '\0';
    if (!option->secret)
        (void)snprintf(out, size, ", not %s", hf_config_quote(text, quoted));
    return out;
}

static int refuse(const struct hf_option *option, const char *text,
                  const struct hf_config_place *place, struct hf_error *err, const char *wanted)
{
    char rest[HF_CONFIG_QUOTE_MAX + 8];

    return hf_config_fail(place, HF_EINVAL, err, "must be %s%s", wanted,
                          not_this(option, text, rest, sizeof rest));
}

static int parse_name(const struct hf_option *option, const char *text, const char **out,
                      const struct hf_config_place *place, struct hf_error *err)
{
    char rest[HF_CONFIG_QUOTE_MAX + 8];
    size_t at;
    const char *fault = hf_name_fault(text, strlen(text), &at);

    if (fault != NULL)
        return hf_config_fail(place, HF_EINVAL, err, "%s%s", fault,
                              not_this(option, text, rest, sizeof rest));
    *out = text;
    return HF_OK;
}

static int parse_int(const struct hf_option *option, const char *text, int64_t *out,
                     const struct hf_config_place *place, struct hf_error *err)
{
    char wanted[96];

    if (hf_parse_i64(text, option->min, option->max, out) == HF_OK)
        return HF_OK;
    (void)snprintf(wanted, sizeof wanted, "a whole number from %lld to %lld",
                   (long long)option->min, (long long)option->max);
    return refuse(option, text, place, err, wanted);
}

static int parse_duration(const struct hf_option *option, const char *text, hf_ms *out,
                          const struct hf_config_place *place, struct hf_error *err)
{
    char wanted[128];
    char min[32];
    char max[32];
    hf_ms value;

    if (hf_parse_duration(text, &value) == HF_OK && value >= option->min &&
        value <= option->max) {
        *out = value;
        return HF_OK;
    }
    (void)hf_format_duration(option->min, min, sizeof min);
    (void)hf_format_duration(option->max, max, sizeof max);
    (void)snprintf(wanted, sizeof wanted, "a duration from %s to %s, such as %s", min, max,
                   option->preset != NULL ? option->preset : min);
    return refuse(option, text, place, err, wanted);
}

static int parse_enum(const struct hf_option *option, const char *text, int *out,
                      const struct hf_config_place *place, struct hf_error *err)
{
    char rest[HF_CONFIG_QUOTE_MAX + 8];
    char guess[64];
    char wanted[96] = "";
    size_t len = 0;

    for (int i = 0; option->words[i] != NULL; i++) {
        const char *comma = i == 0 ? "" : option->words[i + 1] == NULL ? " or " : ", ";

        if (strcmp(text, option->words[i]) == 0) {
            *out = i;
            return HF_OK;
        }
        if (len < sizeof wanted)
            len += (size_t)snprintf(wanted + len, sizeof wanted - len, "%s%s", comma,
                                    option->words[i]);
    }
    return hf_config_fail(
        place, HF_EINVAL, err, "must be %s%s%s", wanted,
        not_this(option, text, rest, sizeof rest),
        option->secret ? "" : did_you_mean(text, option->words, guess, sizeof guess));
}

static int check_endpoint(const char *text, size_t number, const struct hf_config_place *place,
                          struct hf_error *err)
{
    struct hf_endpoint endpoint;
    struct hf_error why;

    if (hf_parse_endpoint(text, &endpoint, &why) == HF_OK)
        return HF_OK;
    return hf_config_fail(place, HF_EINVAL, err, "item %zu: %s", number, why.text);
}

static int parse_list(const struct hf_option *option, const struct hf_strings *value,
                      struct hf_strings *out, const struct hf_config_place *place,
                      struct hf_error *err)
{
    int rc = HF_OK;

    for (size_t i = 0; i < value->count && rc == HF_OK; i++) {
        if (value->items[i][0] == '\0')
            rc = hf_config_fail(place, HF_EINVAL, err, "item %zu is empty", i + 1);
        else if (option->type == HF_OPTION_ENDPOINTS)
            rc = check_endpoint(value->items[i], i + 1, place, err);
    }
    if (rc == HF_OK)
        *out = *value;
    return rc;
}

int hf_config_parse_value(const struct hf_option *option, const struct hf_strings *value,
                          void *out, const struct hf_config_place *place, struct hf_error *err)
{
    const char *text = value->items[0];

    for (size_t i = 0; i < value->count; i++) {
        if (!hf_str_is_utf8(value->items[i], strlen(value->items[i])))
            return hf_config_fail(place, HF_EINVAL, err, "must be valid UTF-8");
    }
    if (hf_config_is_list(option))
        return parse_list(option, value, out, place, err);
    if (text[0] == '\0')
        return hf_config_fail(place, HF_EINVAL, err, "must not be empty");

    switch (option->type) {
    case HF_OPTION_NAME: return parse_name(option, text, out, place, err);
    case HF_OPTION_INT: return parse_int(option, text, out, place, err);
    case HF_OPTION_DURATION: return parse_duration(option, text, out, place, err);
    case HF_OPTION_ENUM: return parse_enum(option, text, out, place, err);
    case HF_OPTION_BOOL:
        if (hf_parse_bool(text, out) < 0)
            return refuse(option, text, place, err, "true or false");
        return HF_OK;
    case HF_OPTION_STRING:
    case HF_OPTION_STRINGS:
    case HF_OPTION_ENDPOINTS: break;
    }
    *(const char **)out = text;
    return HF_OK;
}

void hf_config_clear_value(const struct hf_option *option, void *out)
{
    static const size_t sizes[] = {
        [HF_OPTION_STRING] = sizeof(const char *),
        [HF_OPTION_NAME] = sizeof(const char *),
        [HF_OPTION_BOOL] = sizeof(bool),
        [HF_OPTION_INT] = sizeof(int64_t),
        [HF_OPTION_DURATION] = sizeof(hf_ms),
        [HF_OPTION_ENUM] = sizeof(int),
        [HF_OPTION_STRINGS] = sizeof(struct hf_strings),
        [HF_OPTION_ENDPOINTS] = sizeof(struct hf_strings),
    };

    memset(out, 0, sizes[option->type]);
}
