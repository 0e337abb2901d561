#include "io/commit.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "etcd/txn.h"
#include "schema/json.h"

struct hf_commit {
    hf_commit_fn fn;
    void *arg;
    struct hf_call *call;
    enum hf_writer writer;
    const ProtobufCMessageDescriptor *type; /* of the record that is read when a guard fails */
    char op_id[HF_ID_LEN + 1];
};

const char *hf_commit_outcome_name(enum hf_commit_outcome outcome)
{
    switch (outcome) {
    case HF_COMMIT_DONE: return "done";
    case HF_COMMIT_REFUSED: return "refused";
    case HF_COMMIT_UNKNOWN: return "unknown";
    case HF_COMMIT_FAILED: return "failed";
    }
    return "?";
}

static void add_guard(struct hf_txn *txn, const struct hf_plan_guard *guard)
{
    struct hf_bytes key = hf_bytes_of(guard->key);

    switch (guard->what) {
    case HF_GUARD_ABSENT: hf_txn_if_create(txn, key, HF_TXN_EQUAL, 0); break;
    case HF_GUARD_MOD: hf_txn_if_mod(txn, key, HF_TXN_EQUAL, guard->value); break;
    case HF_GUARD_CREATE: hf_txn_if_create(txn, key, HF_TXN_EQUAL, guard->value); break;
    case HF_GUARD_GONE: hf_txn_if_create(txn, key, HF_TXN_NOT_EQUAL, guard->value); break;
    case HF_GUARD_LEASE: hf_txn_if_lease(txn, key, HF_TXN_EQUAL, guard->value); break;
    }
}

static void add_write(struct hf_txn *txn, const struct hf_plan_write *write)
{
    struct hf_bytes key = hf_bytes_of(write->key);

    if (write->value == NULL)
        hf_txn_then_delete(txn, (struct hf_key_range){ .key = key });
    else
        hf_txn_then_put(txn, key,
                        (struct hf_bytes){ .data = write->value, .len = write->value_len },
                        write->lease);
}

/* The type of a record that bears op_ids; NULL for other keys. */
static const ProtobufCMessageDescriptor *marked_type(const struct hf_plan *plan,
                                                     const struct hf_plan_write *write)
{
    char scratch[HF_KEY_SIZE];
    struct hf_key key;
    const ProtobufCMessageDescriptor *type;

    if (write->value == NULL ||
        hf_key_parse(plan->ns, hf_bytes_of(write->key), scratch, &key, NULL) != HF_OK)
        return NULL;
    type = hf_key_get_record(key.kind);
    if (type == NULL || protobuf_c_message_descriptor_get_field_by_name(type, "op_ids") == NULL)
        return NULL;
    return type;
}

static struct hf_txn *make_txn(const struct hf_plan *plan,
                               const ProtobufCMessageDescriptor **ret_type)
{
    struct hf_txn *txn = hf_txn_new();

    *ret_type = NULL;
    if (txn == NULL)
        return NULL;
    for (size_t i = 0; i < plan->guard_count; i++)
        add_guard(txn, &plan->guards[i]);
    for (size_t i = 0; i < plan->write_count; i++)
        add_write(txn, &plan->writes[i]);
    for (size_t i = 0; i < plan->write_count && *ret_type == NULL; i++) {
        *ret_type = marked_type(plan, &plan->writes[i]);
        if (*ret_type != NULL)
            hf_txn_else_range(txn,
                              (struct hf_key_range){ .key = hf_bytes_of(plan->writes[i].key) });
    }
    return txn;
}

/* Whether the record that made a guard fail is the one that an earlier copy of this plan wrote.
 */
static bool bears_our_mark(const struct hf_commit *commit, const struct hf_txn_result *result)
{
    ProtobufCMessage *record = NULL;
    const struct hf_kv *kv;
    const char *op_id;
    bool ours;

    if (commit->type == NULL || result->answer_count == 0 || result->answers[0].count == 0)
        return false;
    kv = result->answers[0].kvs;
    if (hf_json_decode(commit->type, kv->value.data, kv->value.len, NULL, &record, NULL) !=
        HF_OK)
        return false;
    op_id = hf_plan_find_op_id(record, commit->writer);
    ours = op_id != NULL && strcmp(op_id, commit->op_id) == 0;
    hf_json_free(record);
    return ours;
}

/* A plan of deletions alone leaves no mark: when one of its copies may have arrived and the
 * guards of the next fail, only the mirror can tell. */
static enum hf_commit_outcome outcome_of(const struct hf_commit *commit,
                                         const struct hf_txn_result *result)
{
    if (result->result.err != HF_OK)
        return result->result.maybe_applied ? HF_COMMIT_UNKNOWN : HF_COMMIT_FAILED;
    if (result->succeeded)
        return HF_COMMIT_DONE;
    if (result->result.resent == 0)
        return HF_COMMIT_REFUSED;
    if (commit->type == NULL)
        return HF_COMMIT_UNKNOWN;
    return bears_our_mark(commit, result) ? HF_COMMIT_DONE : HF_COMMIT_REFUSED;
}

static void on_txn(const struct hf_txn_result *txn, void *arg)
{
    struct hf_commit *commit = arg;
    struct hf_commit_result result = { .outcome = outcome_of(commit, txn),
                                       .result = txn->result };
    hf_commit_fn fn = commit->fn;
    void *fn_arg = commit->arg;

    if (result.outcome == HF_COMMIT_DONE)
        result.revision =
            txn->succeeded ? txn->result.header.revision : txn->answers[0].kvs[0].mod_rev;
    free(commit);
    fn(&result, fn_arg);
}

int hf_commit_start(struct hf_etcd *etcd, const struct hf_plan *plan, hf_ms timeout,
                    hf_commit_fn fn, void *arg, struct hf_commit **ret_commit)
{
    struct hf_commit *commit = hf_calloc(1, sizeof *commit);
    struct hf_txn *txn = NULL;
    int err = HF_ENOMEM;

    if (commit != NULL)
        txn = make_txn(plan, &commit->type);
    if (txn != NULL) {
        commit->fn = fn;
        commit->arg = arg;
        commit->writer = plan->writer;
        memcpy(commit->op_id, plan->op_id, sizeof commit->op_id);
        err = hf_txn_commit(etcd, txn,
                            &(struct hf_txn_options){ .resend = true, .timeout = timeout },
                            on_txn, commit, &commit->call);
    }
    hf_txn_free(txn);
    if (err != HF_OK) {
        free(commit);
        return err;
    }
    if (ret_commit != NULL)
        *ret_commit = commit;
    return HF_OK;
}

void hf_commit_cancel(struct hf_commit *commit)
{
    hf_call_cancel(commit->call);
    free(commit);
}
