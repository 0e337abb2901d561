#include "sim/aim.h"

#include <string.h>

bool hfs_aim_is_at(const struct hfs_request *request)
{
    for (size_t i = 0; request->kind == HFS_TXN && i < request->txn.compare_count; i++) {
        if (request->txn.compares[i].aimed)
            return true;
    }
    return false;
}

bool hfs_aim_is_worst(const struct hfs_txn *txn, const struct hfs_etcd *etcd)
{
    bool stands = false;

    for (size_t i = 0; i < txn->compare_count; i++) {
        bool holds = hfs_compare_holds(etcd, &txn->compares[i]);

        if (!holds && !txn->compares[i].aimed)
            return false;
        stands = stands || !holds;
    }
    return stands;
}

hfs_rev hfs_aim_known_rev(const struct hfs_txn *txn, struct hf_bytes key, hfs_rev revision)
{
    for (size_t i = 0; i < txn->compare_count; i++) {
        const struct hfs_compare *compare = &txn->compares[i];

        if (compare->relation == HFS_EQUAL && compare->number > revision &&
            (compare->target == HFS_TARGET_MOD || compare->target == HFS_TARGET_CREATE) &&
            compare->key.len == key.len && memcmp(compare->key.data, key.data, key.len) == 0)
            return compare->number;
    }
    return 0;
}
