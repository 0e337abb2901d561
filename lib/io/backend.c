#include "io/backend.h"

uint32_t hf_backend_get_word(const struct hf_backend *backend)
{
    uint32_t word = 0;

    (void)!backend->ops->random(backend->self, &word, sizeof word);
    return word;
}

int hf_backend_get_lease_id(const struct hf_backend *backend, int64_t *ret_id)
{
    uint64_t id = 0;

    while (id == 0) {
        int err = backend->ops->random(backend->self, &id, sizeof id);

        if (err != HF_OK)
            return err;
        id >>= 1; /* etcd's ids are signed */
    }
    *ret_id = (int64_t)id;
    return HF_OK;
}

void hf_backend_cancel(const struct hf_backend *backend, struct hf_call **call)
{
    if (*call != NULL)
        backend->ops->cancel(*call);
    *call = NULL;
}

static void ignore(const struct hf_write_result *result, void *arg)
{
    (void)result;
    (void)arg;
}

void hf_backend_let_go(const struct hf_backend *backend, int64_t lease)
{
    struct hf_call *call;

    (void)!backend->ops->revoke(backend->self, lease, ignore, NULL, &call);
}
