#include "io/proof.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"

#define NOTHING "/nothing" /* no key ends like this */

enum { GUARDS = HF_TXN_MAX_OPS }; /* two for each key */

static int add_key(struct hf_proof *proof, const struct hf_proof_key *key)
{
    char *text;

    if (proof->count == INT_MAX ||
        !hf_grow(&proof->keys, &proof->cap, proof->count + 1, sizeof *proof->keys))
        return HF_ENOMEM;
    text = hf_strdup(key->text);
    if (text == NULL)
        return HF_ENOMEM;
    proof->keys[proof->count++] =
        (struct hf_proof_key){ .text = text, .create_rev = key->create_rev };
    return HF_OK;
}

static int get_key(const struct hf_proof *proof, size_t index, struct hf_proof_key *ret_key)
{
    return proof->cfg.get_key(index, proof->lease, ret_key, proof->cfg.arg);
}

static int collect(struct hf_proof *proof)
{
    struct hf_proof_key key;
    int rc;

    while ((rc = get_key(proof, proof->count, &key)) > 0) {
        rc = add_key(proof, &key);
        if (rc < 0)
            break;
    }
    return rc;
}

/* Whether the owner still counts on everything that was just compared. */
static bool is_still_claimed(const struct hf_proof *proof)
{
    size_t found = 0;
    struct hf_proof_key key;

    for (size_t i = 0; get_key(proof, i, &key) > 0; i++) {
        for (size_t k = proof->done; k < proof->begun; k++) {
            if (proof->keys[k].create_rev == key.create_rev &&
                strcmp(proof->keys[k].text, key.text) == 0)
                found++;
        }
    }
    return found == proof->begun - proof->done;
}

/* What is told is said by somebody who has already let go: it may begin the next one. */
static void tell(struct hf_proof *proof, enum hf_proof_verdict verdict, int err,
                 const char *message)
{
    hf_proof_stop(proof);
    proof->cfg.fn(verdict, err, message, proof->cfg.arg);
}

static int compare_some(struct hf_proof *proof);

static void on_compared(const struct hf_txn_result *result, void *arg)
{
    struct hf_proof *proof = arg;
    int err;

    proof->call = NULL;
    if (result->result.err == HF_OK)
        proof->term = result->result.header.raft_term;
    if (result->result.err != HF_OK) {
        tell(proof, HF_PROOF_UNKNOWN, result->result.err, result->result.message);
        return;
    }
    if (!result->succeeded) {
        if (is_still_claimed(proof))
            tell(proof, HF_PROOF_REFUTED, HF_EFENCED, "a key under the lease is gone");
        else
            tell(proof, HF_PROOF_UNKNOWN, HF_EAGAIN, "a key was removed meanwhile");
        return;
    }
    proof->done = proof->begun;
    if (proof->done == proof->count) {
        tell(proof, HF_PROOF_HOLDS, HF_OK, "");
        return;
    }
    err = compare_some(proof);
    if (err != HF_OK)
        tell(proof, HF_PROOF_UNKNOWN, err, hf_err_text(err));
}

/* NULL: no memory. */
static char *name_nothing(const char *key)
{
    size_t size = strlen(key) + sizeof NOTHING;
    char *text = hf_calloc(1, size);

    if (text != NULL)
        (void)snprintf(text, size, "%s" NOTHING, key);
    return text;
}

static int compare_some(struct hf_proof *proof)
{
    const struct hf_backend *backend = &proof->cfg.backend;
    HF_CLEANUP_FREE char *nothing = name_nothing(proof->keys[proof->begun].text);
    struct hf_plan_guard guards[GUARDS];
    hf_ms now = hf_backend_now(backend);
    size_t count = 0;

    if (nothing == NULL)
        return HF_ENOMEM;

    for (; proof->begun < proof->count && count < GUARDS; proof->begun++) {
        const struct hf_proof_key *key = &proof->keys[proof->begun];

        guards[count++] = (struct hf_plan_guard){ .what = HF_GUARD_CREATE,
                                                  .row = HF_ROW_PROOF,
                                                  .value = key->create_rev,
                                                  .key = key->text };
        guards[count++] = (struct hf_plan_guard){
            .what = HF_GUARD_LEASE, .row = HF_ROW_PROOF, .value = proof->lease, .key = key->text
        };
    }
    return backend->ops->txn(
        backend->self,
        &(struct hf_backend_txn){ .guards = guards,
                                  .guard_count = count,
                                  .writes = &(struct hf_plan_write){ .key = nothing },
                                  .write_count = 1,
                                  .resend = true,
                                  .timeout = proof->until > now ? proof->until - now : 1 },
        on_compared, proof, &proof->call);
}

int hf_proof_start(struct hf_proof *proof, int64_t lease, hf_ms until)
{
    int err;

    hf_proof_stop(proof);
    proof->lease = lease;
    proof->until = until;
    proof->term = 0;
    err = collect(proof);
    if (err == HF_OK && proof->count == 0)
        return 0;
    if (err == HF_OK)
        err = compare_some(proof);
    if (err == HF_OK)
        return (int)proof->count;
    proof->call = NULL;
    hf_proof_stop(proof);
    return err;
}

void hf_proof_stop(struct hf_proof *proof)
{
    hf_backend_cancel(&proof->cfg.backend, &proof->call);
    for (size_t i = 0; i < proof->count; i++)
        free((char *)proof->keys[i].text);
    free(proof->keys);
    proof->keys = NULL;
    proof->count = proof->cap = proof->begun = proof->done = 0;
}
