#include "support/follower.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "support/truth.h"

/* Check writes to a pipe in every assertion, which is too much for every event. */
#define EXPECT(condition, ...)                                                                 \
    do {                                                                                       \
        if (!(condition))                                                                      \
            ck_abort_msg(__VA_ARGS__);                                                         \
    } while (0)

/* What was told of a key; it stays when the key is deleted. */
struct told {
    struct hf_kv kv; /* owned; first, so that the tree's order is that of the keys */
    bool there;
};

static int compare_keys(const void *a, const void *b)
{
    const struct hf_kv *left = a, *right = b;
    size_t shared = left->key.len < right->key.len ? left->key.len : right->key.len;
    int order = memcmp(left->key.data, right->key.data, shared);

    return order != 0 ? order
                      : (left->key.len > right->key.len) - (left->key.len < right->key.len);
}

static void free_told(void *node)
{
    struct told *told = node;

    free((void *)told->kv.key.data);
    free((void *)told->kv.value.data);
    free(told);
}

static struct told *told_of(struct hft_follower *follower, const struct hf_kv *kv)
{
    struct told **found = tfind(kv, &follower->keys, compare_keys);
    struct told *told;

    if (found != NULL)
        return *found;
    told = calloc(1, sizeof *told);
    EXPECT(told != NULL, "out of memory");
    told->kv.key =
        (struct hf_bytes){ .data = hf_memdup(kv->key.data, kv->key.len), .len = kv->key.len };
    EXPECT(told->kv.key.data != NULL && tsearch(told, &follower->keys, compare_keys) != NULL,
           "out of memory");
    return told;
}

static size_t range_of(const struct hft_follower *follower, const struct hf_kv *kv)
{
    for (size_t i = 0; i < follower->range_count; i++) {
        size_t len = strlen(follower->prefix[i]);

        if (kv->key.len >= len && memcmp(kv->key.data, follower->prefix[i], len) == 0)
            return i;
    }
    ck_abort_msg("a key of no range was told: %.*s", (int)kv->key.len,
                 (const char *)kv->key.data);
    return 0;
}

/* The watch tells every version of every key, in the order of revisions. */
static void check_watched(struct hft_follower *follower, const struct told *told,
                          const struct hf_mirror_event *event)
{
    hf_rev *last = &follower->last_rev[range_of(follower, &event->kv)];
    int64_t before = told->there ? told->kv.version : 0;
    const char *key = told->kv.key.data;

    EXPECT(event->revision >= *last, "%s: revision %lld was told after %lld", key,
           (long long)event->revision, (long long)*last);
    *last = event->revision;
    EXPECT(event->kind == HF_MIRROR_DELETE || event->kv.version == before + 1,
           "%s: version %lld was told after %lld", key, (long long)event->kv.version,
           (long long)before);
}

static void replay(struct hft_follower *follower, const struct hf_mirror_event *event)
{
    struct told *told = told_of(follower, &event->kv);
    bool deleted = event->kind == HF_MIRROR_DELETE;
    struct hf_bytes key = told->kv.key;

    EXPECT(event->revision == event->kv.mod_rev, "%s: two revisions", (const char *)key.data);
    EXPECT(event->revision > told->kv.mod_rev, "%s: revision %lld was told after %lld",
           (const char *)key.data, (long long)event->revision, (long long)told->kv.mod_rev);
    EXPECT(!deleted || told->there, "%s is not there and was told to be deleted",
           (const char *)key.data);
    if (event->synthesised)
        follower->synthesised++;
    else
        check_watched(follower, told, event);
    follower->count += (size_t)!deleted - (size_t)told->there;
    free((void *)told->kv.value.data);
    told->kv = event->kv;
    told->kv.key = key;
    told->kv.value.data = deleted ? NULL : hf_memdup(event->kv.value.data, event->kv.value.len);
    told->there = !deleted;
}

static void count_event(struct hft_follower *follower, const struct hf_mirror_event *event)
{
    hf_ms now = hft_now();

    follower->events++;
    follower->puts += event->kind == HF_MIRROR_PUT;
    follower->deletes += event->kind == HF_MIRROR_DELETE;
    if (now - follower->last_at > follower->silence)
        follower->silence = now - follower->last_at;
    follower->last_at = now;
}

static void forget(struct hft_follower *follower)
{
    tdestroy(follower->keys, free_told);
    follower->keys = NULL;
    follower->count = 0;
    memset(follower->last_rev, 0, sizeof follower->last_rev);
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    struct hft_follower *follower = arg;

    EXPECT(follower->mirror != NULL, "an event came after the end");
    switch (event->kind) {
    case HF_MIRROR_PUT:
    case HF_MIRROR_DELETE:
        replay(follower, event);
        count_event(follower, event);
        break;
    case HF_MIRROR_SYNCED:
        follower->synced++;
        follower->synced_rev = event->revision;
        ck_assert_uint_eq(hf_mirror_get_stats(follower->mirror).keys, follower->count);
        break;
    case HF_MIRROR_RESET:
        follower->resets++;
        follower->reset_at = hft_now();
        forget(follower);
        ck_assert_uint_eq(hf_mirror_get_stats(follower->mirror).keys, 0);
        break;
    }
    if (follower->on != NULL)
        follower->on(event, follower->arg);
}

static void on_trouble(int err, const char *message, hf_ms retry_in, void *arg)
{
    struct hft_follower *follower = arg;

    ck_assert_msg(follower->mirror != NULL, "trouble was told after the end");
    ck_assert_int_lt(err, 0);
    ck_assert_str_ne(message, "");
    ck_assert_int_ge(retry_in, 0);
    follower->troubles++;
    follower->denied += err == HF_EDENIED;
    follower->mishaps += err == HF_EAGAIN || err == HF_ETIMEOUT;
    follower->last_trouble = err;
}

void hft_follower_start_with(struct hft_client *client, struct hft_follower *follower,
                             const struct hf_mirror_config *cfg)
{
    struct hf_mirror_config own = *cfg;
    struct hf_error err = { "" };
    hf_mirror_fn on = follower->on;
    void *arg = follower->arg;

    *follower = (struct hft_follower){ .client = client, .on = on, .arg = arg };
    ck_assert_uint_le(cfg->range_count, HFT_FOLLOWER_RANGES);
    follower->range_count = cfg->range_count;
    for (size_t i = 0; i < cfg->range_count; i++)
        ck_assert_int_lt(snprintf(follower->prefix[i], sizeof follower->prefix[i], "%.*s",
                                  (int)cfg->ranges[i].key.len,
                                  (const char *)cfg->ranges[i].key.data),
                         (int)sizeof follower->prefix[i]);
    hft_be_patient(&own);
    own.on_event = on_event;
    own.on_trouble = on_trouble;
    own.arg = follower;
    own.keep_values = true;
    ck_assert_msg(hf_mirror_new(client->etcd, &own, &follower->mirror, &err) == HF_OK,
                  "the mirror does not start: %s", err.text);
    hft_follower_mark(follower);
}

void hft_follower_start(struct hft_client *client, struct hft_follower *follower,
                        const char *prefix)
{
    struct hf_key_range range = { .key = hf_bytes_of(prefix), .prefix = true };

    hft_follower_start_with(client, follower,
                            &(struct hf_mirror_config){ .ranges = &range, .range_count = 1 });
}

void hft_follower_stop(struct hft_follower *follower)
{
    hf_mirror_close(follower->mirror);
    follower->mirror = NULL;
    forget(follower);
}

void hft_follower_until_synced(struct hft_follower *follower, unsigned count, hf_ms timeout)
{
    hft_client_until(follower->client, &follower->synced, count, timeout,
                     "the mirror to be synced");
}

void hft_follower_assert_undisturbed(const struct hft_follower *follower)
{
    struct hf_mirror_stats stats = hf_mirror_get_stats(follower->mirror);

    ck_assert_uint_eq(follower->troubles, follower->mishaps);
    ck_assert_uint_le(stats.opens, 1 + stats.renews + follower->mishaps);
    ck_assert_uint_eq(follower->resets, 0);
}

void hft_follower_mark(struct hft_follower *follower)
{
    follower->silence = 0;
    follower->last_at = hft_now();
}

struct settling {
    struct hft_follower *follower;
    struct hft_truth truth[HFT_FOLLOWER_RANGES];
    unsigned compared_at; /* value of `events` at the last comparison */
    unsigned synced_at;
    struct hf_error difference;
};

static void add_told(const void *node, VISIT visit, void *arg)
{
    const struct told *told = *(struct told *const *)node;

    if ((visit == postorder || visit == leaf) && told->there)
        (void)hft_truth_add(&told->kv, arg);
}

struct selection {
    const char *prefix;
    struct hft_truth *into;
};

static bool add_selected(const struct hf_kv *kv, void *arg)
{
    const struct selection *selection = arg;
    size_t len = strlen(selection->prefix);

    if (kv->key.len >= len && memcmp(kv->key.data, selection->prefix, len) == 0)
        (void)hft_truth_add(kv, selection->into);
    return true;
}

/* Both the mirror's copy and the content that was told, one range after the other. */
static bool is_true(struct settling *settling)
{
    struct hft_follower *follower = settling->follower;
    HFT_CLEANUP_TRUTH struct hft_truth all = { 0 };

    twalk_r(follower->keys, add_told, &all);
    for (size_t i = 0; i < follower->range_count; i++) {
        HFT_CLEANUP_TRUTH struct hft_truth kept = { 0 };
        HFT_CLEANUP_TRUTH struct hft_truth told = { 0 };
        struct selection from_copy = { .prefix = follower->prefix[i], .into = &kept };
        struct selection from_told = { .prefix = follower->prefix[i], .into = &told };

        hf_mirror_each(follower->mirror, add_selected, &from_copy);
        for (size_t k = 0; k < all.count; k++)
            (void)add_selected(&all.kvs[k], &from_told);
        if (hft_truth_difference(&settling->truth[i], &kept, HFT_TRUTH_ALL,
                                 &settling->difference) != NULL ||
            hft_truth_difference(&settling->truth[i], &told, HFT_TRUTH_ALL,
                                 &settling->difference) != NULL)
            return false;
    }
    return true;
}

static bool has_settled(void *arg)
{
    struct settling *settling = arg;
    struct hft_follower *follower = settling->follower;

    if (settling->compared_at == follower->events && settling->synced_at == follower->synced)
        return false;
    settling->compared_at = follower->events;
    settling->synced_at = follower->synced;
    /* While keys are missing a comparison would be for nothing, and there may be many. */
    for (size_t i = 0, total = 0; i < follower->range_count; i++) {
        total += settling->truth[i].count;
        if (i + 1 == follower->range_count && total != follower->count) {
            (void)hf_error_set(&settling->difference, HF_ECORRUPT, "it has %zu keys, not %zu",
                               follower->count, total);
            return false;
        }
    }
    return hf_mirror_get_stats(follower->mirror).synced && is_true(settling);
}

void hft_follower_settle(struct hft_follower *follower, const struct hft_etcd *etcd,
                         hf_ms timeout)
{
    struct settling settling = { .follower = follower, .compared_at = follower->events - 1 };
    bool settled;

    for (size_t i = 0; i < follower->range_count; i++) {
        char key[96];

        (void)snprintf(key, sizeof key, "%s~settled", follower->prefix[i]);
        hft_etcdctl_ok(etcd, NULL, "put", key, "", NULL);
        hft_truth_fetch(etcd, follower->prefix[i], &settling.truth[i]);
    }
    settled =
        hft_loop_try(&follower->client->loop, has_settled, &settling, hft_patience(timeout));
    ck_assert_msg(settled, "the mirror differs from etcd: %s", settling.difference.text);
    for (size_t i = 0; i < follower->range_count; i++)
        hft_truth_done(&settling.truth[i]);
}
