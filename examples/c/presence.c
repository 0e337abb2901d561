/* presence.c - be present in etcd, and see who else is.
 *
 *     cc presence.c -o presence $(pkg-config --cflags --libs holdfast-etcd)
 *     ./presence http://127.0.0.1:2379 alice */
#include <stdio.h>
#include <stdlib.h>

#include "base/id.h"
#include "etcd/lease.h"
#include "etcd/mirror.h"

static struct hf_etcd *etcd;
static struct hf_renewer *renewer;
static uv_timer_t every;
static int64_t lease;
static char key[300];

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    static const char *const WORDS[] = { "is here", "has left", "synced", "etcd was restored" };

    (void)arg;
    printf("%.*s %s\n", (int)event->kv.key.len, (const char *)event->kv.key.data,
           WORDS[event->kind]);
}

static void on_renewal(const struct hf_renewal *renewal, void *arg)
{
    (void)arg;
    if (renewal->err == HF_OK && renewal->ttl_s <= 0)
        exit(EXIT_FAILURE); /* the lease is gone, and the key with it */
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer;
    (void)!hf_renewer_send(renewer, 1500); /* a failure shows in the next callback */
}

static void on_put(const struct hf_write_result *result, void *arg)
{
    (void)arg;
    if (result->result.err == HF_OK &&
        hf_renewer_new(etcd, lease, on_renewal, NULL, &renewer) == 0)
        uv_timer_start(&every, on_tick, 0, 3000);
}

static void on_grant(const struct hf_grant_result *grant, void *arg)
{
    if (grant->result.err != HF_OK ||
        hf_etcd_put(etcd, hf_bytes_of(key), hf_bytes_of(""), lease, on_put, arg, NULL) != HF_OK)
        exit(EXIT_FAILURE);
}

int main(int argc, char **argv)
{
    struct hf_key_range all = { .key = hf_bytes_of("/presence/"), .prefix = true };
    struct hf_error err = { "usage: presence ENDPOINT NAME" };
    struct hf_mirror *mirror;

    (void)snprintf(key, sizeof key, "/presence/%s", argc == 3 ? argv[2] : "");
    if (argc != 3 || hf_id_random_63(&lease) != HF_OK ||
        uv_timer_init(uv_default_loop(), &every) != 0 ||
        hf_etcd_new(uv_default_loop(),
                    &(struct hf_etcd_config){ .endpoints = (const char *const *)&argv[1],
                                              .endpoint_count = 1 },
                    &etcd, &err) != HF_OK ||
        hf_mirror_new(etcd,
                      &(struct hf_mirror_config){
                          .ranges = &all, .range_count = 1, .on_event = on_event },
                      &mirror, &err) != HF_OK ||
        hf_etcd_lease_grant(etcd, lease, 10, 0, on_grant, NULL, NULL) != HF_OK) {
        (void)fprintf(stderr, "%s\n", err.text);
        return EXIT_FAILURE;
    }
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
