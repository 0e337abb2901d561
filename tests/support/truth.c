#include "support/truth.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>
#include <jansson.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "support/base64.h"

#define SAFE_DIGITS 18 /* so many always fit into jansson's int64 */

/* etcdctl writes ids as bare numbers, also those above 2^63, which jansson refuses: makes texts
 * of the long ones. Strings in its output are base64 and hold no quotes. */
static char *quote_long_numbers(const char *json)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    size_t run;

    ck_assert_ptr_nonnull(out);
    for (const char *p = json; *p != '\0'; p += run) {
        size_t digits = strspn(p, "0123456789");

        if (*p == '"')
            run = 1 + strcspn(p + 1, "\"") + (strchr(p + 1, '"') != NULL);
        else
            run = digits > 0 ? digits : strcspn(p, "\"0123456789");
        if (digits > SAFE_DIGITS)
            (void)fprintf(out, "\"%.*s\"", (int)digits, p);
        else
            (void)fwrite(p, 1, run, out);
    }
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

/* Absent means 0, as etcd's JSON has it. */
static int64_t number_of(const json_t *object, const char *name)
{
    const json_t *member = json_object_get(object, name);

    if (json_is_string(member))
        return strtoll(json_string_value(member), NULL, 10);
    return json_integer_value(member);
}

static struct hf_bytes bytes_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    size_t len = 0;
    char *data = hft_base64_decode(text != NULL ? text : "", &len);

    return (struct hf_bytes){ .data = data, .len = len };
}

static struct hf_kv *new_entry(struct hft_truth *truth)
{
    ck_assert(hf_grow(&truth->kvs, &truth->cap, truth->count + 1, sizeof *truth->kvs));
    return &truth->kvs[truth->count++];
}

void hft_truth_fetch(const struct hft_etcd *etcd, const char *prefix,
                     struct hft_truth *ret_truth)
{
    hft_truth_fetch_at(etcd, prefix, 0, ret_truth);
}

void hft_truth_fetch_at(const struct hft_etcd *etcd, const char *prefix, int64_t revision,
                        struct hft_truth *ret_truth)
{
    HF_CLEANUP_FREE char *output = NULL;
    HF_CLEANUP_FREE char *text = NULL;
    char at[32];
    json_error_t err;
    size_t i;
    json_t *kv;

    (void)snprintf(at, sizeof at, "--rev=%" PRId64, revision);
    hft_etcdctl_ok(etcd, &output, "get", "--prefix", at, "-w", "json", "--", prefix, NULL);
    text = quote_long_numbers(output);
    json_t *root = json_loads(text, 0, &err);
    ck_assert_msg(root != NULL, "etcdctl's JSON: line %d: %s", err.line, err.text);

    *ret_truth = (struct hft_truth){
        .revision = number_of(json_object_get(root, "header"), "revision"),
    };
    json_array_foreach(json_object_get(root, "kvs"), i, kv)
    {
        *new_entry(ret_truth) = (struct hf_kv){
            .key = bytes_of(kv, "key"),
            .value = bytes_of(kv, "value"),
            .create_rev = number_of(kv, "create_revision"),
            .mod_rev = number_of(kv, "mod_revision"),
            .version = number_of(kv, "version"),
            .lease = number_of(kv, "lease"),
        };
    }
    json_decref(root);
}

static void free_entry(struct hf_kv *kv)
{
    free((void *)kv->key.data);
    free((void *)kv->value.data);
}

void hft_truth_done(struct hft_truth *truth)
{
    for (size_t i = 0; i < truth->count; i++)
        free_entry(&truth->kvs[i]);
    free(truth->kvs);
    *truth = (struct hft_truth){ 0 };
}

static struct hf_kv copy_of(const struct hf_kv *kv)
{
    struct hf_kv copy = *kv;

    copy.key.data = hf_memdup(kv->key.data, kv->key.len);
    copy.value.data = hf_memdup(kv->value.data, kv->value.len);
    ck_assert(copy.key.data != NULL && copy.value.data != NULL);
    return copy;
}

bool hft_truth_add(const struct hf_kv *kv, void *arg)
{
    *new_entry(arg) = copy_of(kv);
    return true;
}

static int compare_bytes(struct hf_bytes a, struct hf_bytes b)
{
    size_t shared = a.len < b.len ? a.len : b.len;
    int order = shared > 0 ? memcmp(a.data, b.data, shared) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_keys(const void *a, const void *b)
{
    return compare_bytes(((const struct hf_kv *)a)->key, ((const struct hf_kv *)b)->key);
}

static struct hf_kv *find(const struct hft_truth *truth, struct hf_bytes key)
{
    for (size_t i = 0; i < truth->count; i++) {
        if (compare_bytes(truth->kvs[i].key, key) == 0)
            return &truth->kvs[i];
    }
    return NULL;
}

const struct hf_kv *hft_truth_find(const struct hft_truth *truth, struct hf_bytes key)
{
    return find(truth, key);
}

void hft_truth_put(struct hft_truth *truth, const struct hf_kv *kv)
{
    hft_truth_remove(truth, kv->key);
    (void)hft_truth_add(kv, truth);
}

void hft_truth_remove(struct hft_truth *truth, struct hf_bytes key)
{
    struct hf_kv *kv = find(truth, key);

    if (kv == NULL)
        return;
    free_entry(kv);
    *kv = truth->kvs[--truth->count];
}

/* HF_OK, or an error that tells what differs. */
static int compare_entries(const struct hf_kv *want, const struct hf_kv *got,
                           enum hft_truth_compare compare, struct hf_error *err)
{
    const struct {
        const char *name;
        int64_t want;
        int64_t got;
    } numbers[] = {
        { "mod_rev", want->mod_rev, got->mod_rev },
        { "create_rev", want->create_rev, got->create_rev },
        { "version", want->version, got->version },
        { "lease", want->lease, got->lease },
    };
    const char *key = want->key.data; /* NUL-terminated, as all copies are */

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i].want != numbers[i].got)
            return hf_error_set(err, HF_ECORRUPT, "%s: %s is %" PRId64 ", not %" PRId64, key,
                                numbers[i].name, numbers[i].got, numbers[i].want);
    }
    if (compare == HFT_TRUTH_ALL && compare_bytes(want->value, got->value) != 0)
        return hf_error_set(err, HF_ECORRUPT, "%s: the value is another one", key);
    return HF_OK;
}

static const char *missing(const struct hf_kv *kv, struct hf_error *err)
{
    (void)hf_error_set(err, HF_ECORRUPT, "%s is missing", (const char *)kv->key.data);
    return err->text;
}

static const char *unknown(const struct hf_kv *kv, struct hf_error *err)
{
    (void)hf_error_set(err, HF_ECORRUPT, "%s does not exist", (const char *)kv->key.data);
    return err->text;
}

const char *hft_truth_difference(const struct hft_truth *want, struct hft_truth *got,
                                 enum hft_truth_compare compare, struct hf_error *err)
{
    size_t shared = want->count < got->count ? want->count : got->count;

    if (got->count > 0)
        qsort(got->kvs, got->count, sizeof *got->kvs, compare_keys);
    for (size_t i = 0; i < shared; i++) {
        int order = compare_keys(&want->kvs[i], &got->kvs[i]);

        if (order < 0)
            return missing(&want->kvs[i], err);
        if (order > 0)
            return unknown(&got->kvs[i], err);
        if (compare_entries(&want->kvs[i], &got->kvs[i], compare, err) != HF_OK)
            return err->text;
    }
    if (want->count > shared)
        return missing(&want->kvs[shared], err);
    return got->count > shared ? unknown(&got->kvs[shared], err) : NULL;
}

void hft_truth_assert_same(const struct hft_truth *want, struct hft_truth *got,
                           enum hft_truth_compare compare)
{
    struct hf_error err;
    const char *difference = hft_truth_difference(want, got, compare, &err);

    ck_assert_msg(difference == NULL, "the copy differs from etcd: %s", difference);
}
