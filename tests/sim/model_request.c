#include "sim/model_request.h"

#include <stdlib.h>
#include <string.h>

/* Walks over a request and copies what it points to behind it; with `out` NULL it only counts.
 * All bytes of arrays come before all bytes of strings, so that everything is aligned. */
struct copier {
    char *out;
    size_t arrays; /* next free byte for an array */
    size_t bytes;  /* likewise for a string */
};

static const void *copy_array(struct copier *copier, const void *list, size_t size)
{
    char *place = copier->out != NULL ? copier->out + copier->arrays : NULL;

    copier->arrays += size;
    if (place == NULL || size == 0)
        return list;
    memcpy(place, list, size);
    return place;
}

static void copy_bytes(struct copier *copier, struct hf_bytes *bytes)
{
    char *place = copier->out != NULL ? copier->out + copier->bytes : NULL;

    copier->bytes += bytes->len;
    if (place == NULL || bytes->len == 0)
        return;
    memcpy(place, bytes->data, bytes->len);
    bytes->data = place;
}

static void copy_op(struct copier *copier, enum hfs_request_kind kind, struct hfs_op *op)
{
    if (kind == HFS_PUT) {
        copy_bytes(copier, &op->put.key);
        copy_bytes(copier, &op->put.value);
    } else {
        copy_bytes(copier, kind == HFS_RANGE ? &op->range.range.key : &op->erase.key);
    }
}

static void copy_ops(struct copier *copier, struct hfs_ops *ops)
{
    ops->list = copy_array(copier, ops->list, ops->count * sizeof *ops->list);
    for (size_t i = 0; i < ops->count; i++) {
        struct hfs_op op = ops->list[i];

        copy_op(copier, op.kind, &op);
        if (copier->out != NULL)
            memcpy((void *)&ops->list[i], &op, sizeof op);
    }
}

static void copy_txn(struct copier *copier, struct hfs_txn *txn)
{
    txn->compares =
        copy_array(copier, txn->compares, txn->compare_count * sizeof *txn->compares);
    for (size_t i = 0; i < txn->compare_count; i++) {
        struct hfs_compare compare = txn->compares[i];

        copy_bytes(copier, &compare.key);
        copy_bytes(copier, &compare.value);
        if (copier->out != NULL)
            memcpy((void *)&txn->compares[i], &compare, sizeof compare);
    }
    copy_ops(copier, &txn->then);
    copy_ops(copier, &txn->otherwise);
}

static void copy_all(struct copier *copier, struct hfs_request *request)
{
    if (request->kind == HFS_TXN)
        copy_txn(copier, &request->txn);
    else if (request->kind <= HFS_DELETE)
        copy_op(copier, request->kind, &request->op);
}

int hfs_request_copy(const struct hfs_request *request, struct hfs_request **ret_copy)
{
    struct copier counted = { 0 };
    struct hfs_request copy = *request;
    char *block;

    copy_all(&counted, &copy);
    block = malloc(sizeof copy + counted.arrays + counted.bytes);
    if (block == NULL)
        return HF_ENOMEM;
    copy = *request;
    copy_all(&(struct copier){ .out = block,
                               .arrays = sizeof copy,
                               .bytes = sizeof copy + counted.arrays },
             &copy);
    memcpy(block, &copy, sizeof copy);
    *ret_copy = (struct hfs_request *)(void *)block;
    return HF_OK;
}
