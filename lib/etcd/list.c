#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "etcd/internal.h"
#include "etcd/kv.h"
#include "etcd/range.h"

/* For every page etcd 3.4 walks over the whole rest of the range, so pages are few and large,
 * the first one above all: it shows how large keys are here and how many there are, and the
 * others fill their bytes. */
enum {
    FIRST_PAGE_KEYS = 50000,
    LAST_PAGE_KEYS = 20000,
    LARGE_LIST_KEYS = 10000,
    SMALL_PAGE_KEYS = 64,
    PAGE_BYTES = 24 * 1024 * 1024,
    GROWTH = 4,
    PAGE_MS = 30000,
    TRIM_MS = 1000
};

struct hf_list {
    struct hf_etcd *etcd;
    struct hf_range_request request; /* its revision is that of the first page */
    struct hf_range_bounds bounds;   /* of what is still to come */
    size_t keys;                     /* read so far */
    bool adaptive;                   /* nobody said how large a page is to be */
    bool small;                      /* nothing that would hold up anything behind it */
    hf_range_fn fn;
    void *arg;
    struct hf_call *call;
};

static void free_list(struct hf_list *list)
{
    struct hf_etcd *etcd = list->etcd;
    bool large = list->keys >= LARGE_LIST_KEYS, small = list->small;

    hf_range_bounds_done(&list->bounds);
    free(list);
    if (small || --etcd->lists > 0)
        return;
    hf_lane_drop(etcd, HF_LANE_BULK);
    /* gRPC lets go of the connection's buffers a little later. */
    if (large && !etcd->closing)
        hf_timer_start(&etcd->timers, &etcd->trim_timer, hf_etcd_now(etcd) + TRIM_MS);
}

static void on_page(const struct hf_range_result *page, void *arg);

static int ask(struct hf_list *list)
{
    return hf_range_start(list->etcd, &list->bounds, &list->request,
                          list->small ? HF_LANE_UNARY : HF_LANE_BULK, on_page, list,
                          &list->call);
}

/* Those to come may be of another size than those seen, so the pages grow step by step. */
static size_t keys_that_fill_a_page(const struct hf_range_result *page)
{
    size_t bytes = 0, keys;

    for (size_t i = 0; i < page->count; i++)
        bytes += page->kvs[i].key.len + page->kvs[i].value.len + sizeof(struct hf_kv);
    keys = PAGE_BYTES / (bytes / page->count) + 1;
    return keys < page->count * GROWTH ? keys : page->count * GROWTH;
}

/* While a page is looked at, etcd reads the next one; only nothing comes after the last. So
 * that one is small. How many keys are left, etcd says, and nothing depends on its being so. */
static int64_t keys_of_the_next_page(const struct hf_range_result *page)
{
    size_t keys = keys_that_fill_a_page(page);
    size_t total = page->total > 0 ? (size_t)page->total : 0;
    size_t left = total > page->count ? total - page->count : 0;

    if (left > LAST_PAGE_KEYS && left / 3 * 2 < keys)
        keys = left / 3 * 2;
    return (int64_t)keys;
}

/* The next page begins right after the last key of this one. */
static int ask_after(struct hf_list *list, struct hf_bytes last)
{
    uint8_t *key = hf_memdup(last.data, last.len); /* with a NUL past its end: the successor */

    if (key == NULL)
        return HF_ENOMEM;
    free(list->bounds.key.data);
    list->bounds.key = (ProtobufCBinaryData){ .data = key, .len = last.len + 1 };
    return ask(list);
}

static void on_page(const struct hf_range_result *page, void *arg)
{
    struct hf_list *list = arg;
    struct hf_range_result told = *page;
    hf_range_fn fn = list->fn;
    void *fn_arg = list->arg;

    list->keys += told.count;
    if (told.result.err == HF_OK && list->request.revision == 0)
        list->request.revision = told.result.header.revision;
    told.result.header.revision = list->request.revision;
    told.more = told.result.err == HF_OK && told.more && told.count > 0;

    /* The next page is asked for before this one is looked at: the two overlap. After `fn` the
     * list may be gone. */
    if (told.more) {
        int err;

        if (list->adaptive)
            list->request.limit = keys_of_the_next_page(&told);
        err = ask_after(list, told.kvs[told.count - 1].key);

        if (err != HF_OK)
            told = (struct hf_range_result){ .result = { .err = err,
                                                         .message = hf_err_text(err) } };
    }
    if (!told.more)
        free_list(list);
    fn(&told, fn_arg);
}

int hf_etcd_list(struct hf_etcd *etcd, const struct hf_range_request *request, hf_range_fn fn,
                 void *arg, struct hf_list **ret_list)
{
    struct hf_list *list = hf_calloc(1, sizeof *list);
    int err;

    if (list == NULL)
        return HF_ENOMEM;
    *list = (struct hf_list){ .etcd = etcd, .request = *request, .fn = fn, .arg = arg };
    list->adaptive = request->limit == 0;
    list->small = !list->adaptive && request->limit <= SMALL_PAGE_KEYS;
    if (list->adaptive)
        list->request.limit = FIRST_PAGE_KEYS;
    if (list->request.timeout == 0)
        list->request.timeout = PAGE_MS;
    err = hf_range_bounds_init(&list->bounds, &request->range);
    if (err != HF_OK) {
        free(list);
        return err;
    }
    if (!list->small)
        etcd->lists++;
    err = ask(list);
    if (err != HF_OK) {
        free_list(list);
        return err;
    }
    if (ret_list != NULL)
        *ret_list = list;
    return HF_OK;
}

void hf_list_cancel(struct hf_list *list)
{
    hf_call_cancel(list->call);
    free_list(list);
}
