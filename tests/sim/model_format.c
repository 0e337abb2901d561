#include "sim/model_format.h"

#include <inttypes.h>

void hfs_bytes_format(struct hf_bytes bytes, struct hf_buf *out)
{
    const unsigned char *text = bytes.data;

    hf_buf_putc(out, '"');
    for (size_t i = 0; i < bytes.len; i++) {
        if (text[i] < ' ' || text[i] > '~' || text[i] == '"' || text[i] == '\\')
            hf_buf_printf(out, "\\x%02x", text[i]);
        else
            hf_buf_putc(out, (char)text[i]);
    }
    hf_buf_putc(out, '"');
}

void hfs_range_format(const struct hfs_range *range, struct hf_buf *out)
{
    if (range->prefix)
        hf_buf_puts(out, "prefix ");
    hfs_bytes_format(range->key, out);
}

static void format_read(const struct hfs_range_request *read, struct hf_buf *out)
{
    hf_buf_puts(out, "range ");
    hfs_range_format(&read->range, out);
    if (read->revision != 0)
        hf_buf_printf(out, " at %" PRId64, read->revision);
    if (read->limit != 0)
        hf_buf_printf(out, " limit %" PRId64, read->limit);
    if (read->keys_only)
        hf_buf_puts(out, " keys only");
    if (read->count_only)
        hf_buf_puts(out, " count only");
}

static void format_op(enum hfs_request_kind kind, const struct hfs_op *op, struct hf_buf *out)
{
    if (kind == HFS_RANGE) {
        format_read(&op->range, out);
    } else if (kind == HFS_DELETE) {
        hf_buf_puts(out, "delete ");
        hfs_range_format(&op->erase, out);
    } else {
        hf_buf_puts(out, "put ");
        hfs_bytes_format(op->put.key, out);
        hf_buf_putc(out, '=');
        hfs_bytes_format(op->put.value, out);
        if (op->put.lease != 0)
            hf_buf_printf(out, " lease %" PRId64, op->put.lease);
    }
}

static void format_ops(const char *title, const struct hfs_ops *ops, struct hf_buf *out)
{
    for (size_t i = 0; i < ops->count; i++) {
        hf_buf_puts(out, i == 0 ? title : "; ");
        format_op(ops->list[i].kind, &ops->list[i], out);
    }
}

static void format_compare(const struct hfs_compare *compare, struct hf_buf *out)
{
    static const char *const TARGETS[] = {
        [HFS_TARGET_VERSION] = "version", [HFS_TARGET_CREATE] = "create",
        [HFS_TARGET_MOD] = "mod",         [HFS_TARGET_VALUE] = "value",
        [HFS_TARGET_LEASE] = "lease",
    };
    static const char *const RELATIONS[] = {
        [HFS_EQUAL] = "=", [HFS_GREATER] = ">", [HFS_LESS] = "<", [HFS_NOT_EQUAL] = "!="
    };

    hf_buf_printf(out, " %s(", TARGETS[compare->target]);
    hfs_bytes_format(compare->key, out);
    hf_buf_printf(out, ")%s", RELATIONS[compare->relation]);
    if (compare->target == HFS_TARGET_VALUE)
        hfs_bytes_format(compare->value, out);
    else
        hf_buf_printf(out, "%" PRId64, compare->number);
}

static void format_txn(const struct hfs_txn *txn, struct hf_buf *out)
{
    hf_buf_puts(out, "txn");
    for (size_t i = 0; i < txn->compare_count; i++) {
        if (i == 0)
            hf_buf_puts(out, " if");
        format_compare(&txn->compares[i], out);
    }
    format_ops(" then ", &txn->then, out);
    format_ops(" else ", &txn->otherwise, out);
}

void hfs_request_format(const struct hfs_request *request, struct hf_buf *out)
{
    int64_t lease = request->lease;

    switch (request->kind) {
    case HFS_RANGE:
    case HFS_PUT:
    case HFS_DELETE: format_op(request->kind, &request->op, out); break;
    case HFS_TXN: format_txn(&request->txn, out); break;
    case HFS_COMPACT: hf_buf_printf(out, "compact %" PRId64, request->compact); break;
    case HFS_GRANT:
        hf_buf_printf(out, "grant %" PRId64 " ttl %" PRId64, lease, request->ttl_s);
        break;
    case HFS_REVOKE: hf_buf_printf(out, "revoke %" PRId64, lease); break;
    case HFS_RENEW: hf_buf_printf(out, "renew %" PRId64, lease); break;
    case HFS_TTL: hf_buf_printf(out, "time to live %" PRId64, lease); break;
    }
}

static void format_kv(const struct hfs_kv *kv, struct hf_buf *out)
{
    hfs_bytes_format(kv->key, out);
    hf_buf_putc(out, '=');
    hfs_bytes_format(kv->value, out);
    hf_buf_printf(out, " create %" PRId64 " mod %" PRId64 " version %" PRId64, kv->create_rev,
                  kv->mod_rev, kv->version);
    if (kv->lease != 0)
        hf_buf_printf(out, " lease %" PRId64, kv->lease);
}

void hfs_event_format(const struct hfs_event *event, struct hf_buf *out)
{
    hf_buf_puts(out, event->deleted ? "delete " : "put ");
    format_kv(&event->kv, out);
}

static void format_op_answer(const struct hfs_op_answer *op, struct hf_buf *out)
{
    hf_buf_printf(out, "\n  total %" PRId64 "%s deleted %" PRId64, op->total,
                  op->more ? " and more" : "", op->deleted);
    for (size_t i = 0; i < op->count; i++) {
        hf_buf_puts(out, "\n    ");
        format_kv(&op->kvs[i], out);
    }
}

static void format_lease(const struct hfs_answer *answer, struct hf_buf *out)
{
    hf_buf_printf(out, " lease %" PRId64 " ttl %" PRId64, answer->lease, answer->ttl_s);
    if (answer->granted_ttl_s != 0)
        hf_buf_printf(out, " of %" PRId64, answer->granted_ttl_s);
    for (size_t i = 0; i < answer->key_count; i++) {
        hf_buf_puts(out, "\n    ");
        hfs_bytes_format(answer->keys[i], out);
    }
}

void hfs_answer_format(enum hfs_request_kind kind, const struct hfs_answer *answer,
                       struct hf_buf *out)
{
    if (answer->err != HF_OK) {
        hf_buf_printf(out, "%s: %s", hf_err_name(answer->err), answer->message);
        return;
    }
    hf_buf_printf(out, "revision %" PRId64, answer->header.revision);
    if (kind == HFS_TXN)
        hf_buf_puts(out, answer->succeeded ? " then" : " else");
    if (kind == HFS_GRANT || kind == HFS_RENEW || kind == HFS_TTL)
        format_lease(answer, out);
    for (size_t i = 0; i < answer->op_count; i++)
        format_op_answer(&answer->ops[i], out);
}
