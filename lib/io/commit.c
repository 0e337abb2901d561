#include "io/commit.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "schema/json.h"

struct hf_commit {
    struct hf_backend backend;
    hf_commit_fn fn;
    void *arg;
    struct hf_call *call;
    enum hf_writer writer;
    const ProtobufCMessageDescriptor *type; /* of the record that is read when a guard fails */
    char op_id[HF_ID_LEN + 1];
};

const char *hf_commit_outcome_name(enum hf_outcome outcome)
{
    switch (outcome) {
    case HF_OUTCOME_DONE: return "done";
    case HF_OUTCOME_REFUSED: return "refused";
    case HF_OUTCOME_UNKNOWN: return "unknown";
    case HF_OUTCOME_FAILED: return "failed";
    }
    return "?";
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

/* The first record that will tell whose write it bears; NULL when there is none. */
static const char *find_marked(const struct hf_plan *plan,
                               const ProtobufCMessageDescriptor **ret_type)
{
    for (size_t i = 0; i < plan->write_count; i++) {
        *ret_type = marked_type(plan, &plan->writes[i]);
        if (*ret_type != NULL)
            return plan->writes[i].key;
    }
    return NULL;
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

/* The mark is looked for even when we sent but one copy: whatever stands between etcd and us
 * may have made another, and the answer to that one may come alone. A plan of deletions alone
 * leaves no mark: when one of its copies may have arrived and the guards of the next fail, only
 * the mirror can tell. */
static enum hf_outcome outcome_of(const struct hf_commit *commit,
                                  const struct hf_txn_result *result)
{
    if (result->result.err != HF_OK)
        return result->result.maybe_applied ? HF_OUTCOME_UNKNOWN : HF_OUTCOME_FAILED;
    if (result->succeeded)
        return HF_OUTCOME_DONE;
    if (bears_our_mark(commit, result))
        return HF_OUTCOME_DONE;
    return commit->type == NULL && result->result.resent > 0 ? HF_OUTCOME_UNKNOWN
                                                             : HF_OUTCOME_REFUSED;
}

/* Done by an earlier copy: then, not now. */
static hf_rev revision_of(enum hf_outcome outcome, const struct hf_txn_result *txn)
{
    if (outcome == HF_OUTCOME_DONE && !txn->succeeded)
        return txn->answers[0].kvs[0].mod_rev;
    return txn->result.header.revision;
}

static void on_txn(const struct hf_txn_result *txn, void *arg)
{
    struct hf_commit *commit = arg;
    enum hf_outcome outcome = outcome_of(commit, txn);
    struct hf_commit_result result = { .outcome = outcome,
                                       .revision = revision_of(outcome, txn),
                                       .by_copy = !txn->succeeded,
                                       .result = txn->result };
    hf_commit_fn fn = commit->fn;
    void *fn_arg = commit->arg;

    free(commit);
    fn(&result, fn_arg);
}

int hf_commit_start(const struct hf_backend *backend, const struct hf_plan *plan, hf_ms timeout,
                    hf_commit_fn fn, void *arg, struct hf_commit **ret_commit)
{
    struct hf_backend_txn txn = { .guards = plan->guards,
                                  .guard_count = plan->guard_count,
                                  .writes = plan->writes,
                                  .write_count = plan->write_count,
                                  .resend = true,
                                  .timeout = timeout };
    struct hf_commit *commit = hf_calloc(1, sizeof *commit);
    int err;

    if (commit == NULL)
        return HF_ENOMEM;
    commit->backend = *backend;
    commit->fn = fn;
    commit->arg = arg;
    commit->writer = plan->writer;
    memcpy(commit->op_id, plan->op_id, sizeof commit->op_id);
    txn.look_at = find_marked(plan, &commit->type);
    err = backend->ops->txn(backend->self, &txn, on_txn, commit, &commit->call);
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
    commit->backend.ops->cancel(commit->call);
    free(commit);
}
