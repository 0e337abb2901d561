/* Be present in etcd, and see who else is: ./presence http://127.0.0.1:2379 /presence/alice
 *     cc presence.c -o presence $(pkg-config --cflags --libs holdfast-etcd) */
#include <err.h>
#include <stdio.h>

#include "base/id.h"
#include "etcd/client.h"
#include "etcd/lease.h"
#include "etcd/mirror.h"

static struct hf_etcd *etcd;
static int64_t lease;

static void on_event(const struct hf_mirror_event *event, void *out)
{
    if (event->kind == HF_MIRROR_PUT || event->kind == HF_MIRROR_DELETE)
        fprintf(out, "%.*s %s\n", (int)event->kv.key.len, (const char *)event->kv.key.data,
                event->kind == HF_MIRROR_PUT ? "is here" : "has left");
}

static void on_put(const struct hf_write_result *put, void *key)
{
    if (put->result.err != HF_OK)
        errx(1, "%s was not put: %s", (char *)key, put->result.message);
}

static void on_grant(const struct hf_grant_result *grant, void *key)
{
    if (grant->result.err != HF_OK ||
        hf_etcd_put(etcd, hf_bytes_of(key), hf_bytes_of(""), lease, on_put, key, NULL) != HF_OK)
        errx(1, "no lease was granted: %s", grant->result.message);
}

static void on_renewal(const struct hf_renewal *renewal, void *key)
{
    if (renewal->err != HF_OK ||
        (renewal->ttl_s <= 0 && /* not granted yet, or expired */
         hf_etcd_lease_grant(etcd, lease, 10, 0, on_grant, key, NULL) != HF_OK))
        warnx("%s was not renewed, trying again: %s", (char *)key, renewal->message);
}

int main(int argc, char **argv)
{
    struct hf_etcd_config cfg = { .endpoints = (const char **)&argv[1], .endpoint_count = 1 };
    struct hf_key_range all = { .key = hf_bytes_of("/presence/"), .prefix = true };
    struct hf_mirror_config watch = { &all, 1, .on_event = on_event, .arg = stdout };
    struct hf_mirror *mirror;
    struct hf_renewer *renewer;
    struct hf_error why = { "out of memory" };

    setvbuf(stdout, NULL, _IOLBF, 0); /* each line at once, into a pipe, too */
    if (argc != 3 || hf_id_random_63(&lease) != HF_OK ||
        hf_etcd_new(uv_default_loop(), &cfg, &etcd, &why) != HF_OK ||
        hf_mirror_new(etcd, &watch, &mirror, &why) != HF_OK ||
        hf_renewer_new(etcd, lease, on_renewal, argv[2], &renewer) != HF_OK ||
        hf_renewer_repeat(renewer, 3000) != HF_OK)
        errx(1, "%s", argc != 3 ? "usage: presence ENDPOINT KEY" : why.text);
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
