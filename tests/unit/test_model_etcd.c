/* The model etcd: keys, revisions and transactions. That a real etcd does the same is shown by
 * tests/integration/test_model_etcd_differential.c. */
#include "sim/model_format.h"
#include "support/chaos.h"
#include "unit/model_fixture.h"

START_TEST(a_put_is_a_revision_and_counts_versions)
{
    const struct hfs_kv *kv;

    ck_assert_int_eq(put("a", "1"), 2);
    ck_assert_int_eq(put("b", "1"), 3);
    ck_assert_int_eq(put("a", "2"), 4);
    kv = get("a");
    ck_assert(equals(kv->value, "2"));
    ck_assert_int_eq(kv->create_rev, 2);
    ck_assert_int_eq(kv->mod_rev, 4);
    ck_assert_int_eq(kv->version, 2);
}
END_TEST

START_TEST(a_key_that_comes_back_begins_anew)
{
    const struct hfs_kv *kv;

    put("a", "1");
    put("a", "2");
    ck_assert_int_eq(delete_range(one("a")), 4);
    ck_assert_int_eq(answer->ops[0].deleted, 1);
    ck_assert_ptr_null(get("a"));
    put("a", "3");
    kv = get("a");
    ck_assert_int_eq(kv->create_rev, 5);
    ck_assert_int_eq(kv->version, 1);
}
END_TEST

START_TEST(a_delete_that_finds_nothing_is_no_revision)
{
    put("a", "1");
    ck_assert_int_eq(delete_range(all("b")), 2);
    ck_assert_int_eq(answer->ops[0].deleted, 0);
}
END_TEST

START_TEST(a_prefix_ends_where_another_begins)
{
    put("a", "1");
    put("a/1", "1");
    put("a/2", "1");
    put("b", "1");
    ask(alone(range_op(all("a/"))));
    ck_assert_int_eq(answer->ops[0].total, 2);
    ck_assert(equals(answer->ops[0].kvs[0].key, "a/1"));
    ck_assert(equals(answer->ops[0].kvs[1].key, "a/2"));
    ask(alone(range_op(all(""))));
    ck_assert_int_eq(answer->ops[0].total, 4);
    ck_assert_int_eq(delete_range(all("a")), 6);
    ck_assert_int_eq(answer->ops[0].deleted, 3);
    ask_for(HF_EINVAL, alone(range_op(one(""))));
}
END_TEST

START_TEST(a_limit_leaves_out_keys_but_counts_them)
{
    struct hfs_op op = range_op(all("a"));

    for (size_t i = 0; i < 3; i++)
        put((const char *[]){ "a1", "a2", "a3" }[i], "x");
    op.range.limit = 2;
    op.range.keys_only = true;
    ask(alone(op));
    ck_assert_uint_eq(answer->ops[0].count, 2);
    ck_assert_int_eq(answer->ops[0].total, 3);
    ck_assert(answer->ops[0].more);
    ck_assert_uint_eq(answer->ops[0].kvs[0].value.len, 0);
    op.range.limit = 3;
    ask(alone(op));
    ck_assert(!answer->ops[0].more);
    op.range.count_only = true;
    ask(alone(op));
    ck_assert_uint_eq(answer->ops[0].count, 0);
    ck_assert_int_eq(answer->ops[0].total, 3);
}
END_TEST

static struct hfs_request read_at(const char *key, hfs_rev at)
{
    struct hfs_op op = range_op(one(key));

    op.range.revision = at;
    return alone(op);
}

START_TEST(the_past_can_be_read_and_the_future_cannot)
{
    put("a", "1");
    put("a", "2");
    delete_range(one("a"));
    ask(read_at("a", 1));
    ck_assert_uint_eq(answer->ops[0].count, 0);
    ask(read_at("a", 2));
    ck_assert(equals(answer->ops[0].kvs[0].value, "1"));
    ck_assert_int_eq(answer->header.revision, 4);
    ask(read_at("a", 3));
    ck_assert(equals(answer->ops[0].kvs[0].value, "2"));
    ask(read_at("a", 4));
    ck_assert_uint_eq(answer->ops[0].count, 0);
    ask_for(HF_EHISTORY, read_at("a", 5));
    ck_assert_int_eq(answer->header.revision, 0);
}
END_TEST

START_TEST(what_is_compacted_cannot_be_read_and_what_is_left_can)
{
    put("a", "1");
    put("b", "1");
    put("a", "2");
    put("a", "3");
    compact(4);
    ask_for(HF_ECOMPACT, read_at("a", 3));
    ask(read_at("a", 4));
    ck_assert(equals(answer->ops[0].kvs[0].value, "2"));
    ck_assert_int_eq(answer->ops[0].kvs[0].version, 2);
    ask(read_at("b", 4));
    ck_assert_int_eq(answer->ops[0].kvs[0].mod_rev, 3);
    ck_assert(equals(get("a")->value, "3"));
    ask_for(HF_ECOMPACT, (struct hfs_request){ .kind = HFS_COMPACT, .compact = 4 });
    ask_for(HF_EHISTORY, (struct hfs_request){ .kind = HFS_COMPACT, .compact = 6 });
}
END_TEST

START_TEST(compaction_gives_memory_back)
{
    for (int i = 0; i < 100; i++) {
        put("a", "1");
        delete_range(one("a"));
    }
    put("b", "1");
    compact(revision());
    ck_assert_uint_eq(hfs_etcd_get_store(etcd)->log_count, 1);
    ck_assert_uint_eq(hfs_etcd_get_store(etcd)->key_count, 1);
}
END_TEST

START_TEST(a_store_that_is_full_says_so_and_is_unchanged)
{
    struct hfs_op ops[] = { put_op("b", "1", 0), put_op("c", "1", 0) };

    setup_with((struct hfs_etcd_config){ .max_entries = 2 });
    put("a", "1");
    ck_assert_int_eq(
        serve(leader(), (struct hfs_request){ .kind = HFS_TXN, .txn.then = { ops, 2 } }),
        HF_ELIMIT);
    ck_assert_int_eq(revision(), 2);
    ck_assert_ptr_null(get("b"));
    ck_assert_uint_eq(hfs_etcd_get_store(etcd)->key_count, 1);
}
END_TEST

/* Compares. "a" has version 2, was created at 2, changed at 3, and is "v" under lease 7. */

static const struct {
    const char *key;
    enum hfs_target target;
    int number;
    const char *value;
    int64_t order; /* of what is there to what is compared; 9: nothing holds */
} COMPARES[] = {
    { "a", HFS_TARGET_VERSION, 1, "", 1 },     { "a", HFS_TARGET_VERSION, 2, "", 0 },
    { "a", HFS_TARGET_VERSION, 3, "", -1 },    { "a", HFS_TARGET_CREATE, 1, "", 1 },
    { "a", HFS_TARGET_CREATE, 2, "", 0 },      { "a", HFS_TARGET_CREATE, 3, "", -1 },
    { "a", HFS_TARGET_MOD, 2, "", 1 },         { "a", HFS_TARGET_MOD, 3, "", 0 },
    { "a", HFS_TARGET_MOD, 4, "", -1 },        { "a", HFS_TARGET_LEASE, 0, "", 1 },
    { "a", HFS_TARGET_LEASE, 7, "", 0 },       { "a", HFS_TARGET_LEASE, 8, "", -1 },
    { "a", HFS_TARGET_VALUE, 0, "u", 1 },      { "a", HFS_TARGET_VALUE, 0, "v", 0 },
    { "a", HFS_TARGET_VALUE, 0, "va", -1 },    { "a", HFS_TARGET_VALUE, 0, "", 1 },
    { "none", HFS_TARGET_VERSION, 0, "", 0 },  { "none", HFS_TARGET_CREATE, 0, "", 0 },
    { "none", HFS_TARGET_MOD, 0, "", 0 },      { "none", HFS_TARGET_LEASE, 0, "", 0 },
    { "none", HFS_TARGET_VERSION, -1, "", 1 }, { "none", HFS_TARGET_CREATE, 1, "", -1 },
    { "none", HFS_TARGET_VALUE, 0, "", 9 },    { "none", HFS_TARGET_VALUE, 0, "v", 9 },
};

START_TEST(compares_hold_as_they_say)
{
    struct hfs_compare compare = { .key = bytes(COMPARES[_i].key),
                                   .target = COMPARES[_i].target,
                                   .number = COMPARES[_i].number,
                                   .value = bytes(COMPARES[_i].value) };
    struct hfs_request request = { .kind = HFS_TXN,
                                   .txn = { .compares = &compare, .compare_count = 1 } };
    int64_t order = COMPARES[_i].order;
    const bool want[] = { [HFS_EQUAL] = order == 0,
                          [HFS_GREATER] = order == 1,
                          [HFS_LESS] = order == -1,
                          [HFS_NOT_EQUAL] = order == 1 || order == -1 };

    grant(7, 60);
    put_leased("a", "u", 0);
    put_leased("a", "v", 7);
    for (int relation = HFS_EQUAL; relation <= HFS_NOT_EQUAL; relation++) {
        compare.relation = (enum hfs_relation)relation;
        ask(request);
        ck_assert_int_eq(answer->succeeded, want[relation]);
        ck_assert_int_eq(answer->header.revision, 3);
    }
}
END_TEST

START_TEST(a_txn_is_one_revision_and_does_one_of_its_lists)
{
    struct hfs_compare exists[] = {
        { .key = bytes("a"), .target = HFS_TARGET_CREATE, .relation = HFS_NOT_EQUAL },
        { .key = bytes("b"), .target = HFS_TARGET_CREATE, .relation = HFS_EQUAL }
    };
    struct hfs_op then[] = { put_op("b", "1", 0), delete_op(one("a")) };
    struct hfs_op otherwise[] = { put_op("a", "1", 0), range_op(one("a")) };
    struct hfs_request request = { .kind = HFS_TXN,
                                   .txn = { .compares = exists,
                                            .compare_count = 2,
                                            .then = { then, 2 },
                                            .otherwise = { otherwise, 2 } } };

    ask(request);
    ck_assert(!answer->succeeded);
    ck_assert_uint_eq(answer->op_count, 2);
    ask(request);
    ck_assert(answer->succeeded);
    ck_assert_int_eq(answer->header.revision, 3);
    ck_assert_int_eq(answer->ops[1].deleted, 1);
    ck_assert_int_eq(get("b")->mod_rev, 3);
    ck_assert_ptr_null(get("a"));
    ask(request); /* the second compare fails now */
    ck_assert(!answer->succeeded);
}
END_TEST

START_TEST(a_txn_sees_its_own_writes)
{
    struct hfs_op ops[] = { range_op(all("a")), put_op("a", "2", 0), range_op(all("a")),
                            delete_op(one("b")), range_op(all("")) };

    put("b", "1");
    ask((struct hfs_request){ .kind = HFS_TXN, .txn.then = { ops, 5 } });
    ck_assert_uint_eq(answer->ops[0].count, 0);
    ck_assert_uint_eq(answer->ops[2].count, 1);
    ck_assert_int_eq(answer->ops[2].kvs[0].mod_rev, 3);
    ck_assert_uint_eq(answer->ops[4].count, 1);
}
END_TEST

static const struct {
    struct hfs_op ops[2];
    int err;
} TWICE[] = {
    { { { .kind = HFS_PUT, .put.key = { "k", 1 } },
        { .kind = HFS_PUT, .put.key = { "k", 1 } } },
      HF_EINVAL },
    { { { .kind = HFS_PUT, .put.key = { "k", 1 } },
        { .kind = HFS_DELETE, .erase.key = { "k", 1 } } },
      HF_EINVAL },
    { { { .kind = HFS_DELETE, .erase = { { "k", 1 }, true } },
        { .kind = HFS_PUT, .put.key = { "k/1", 3 } } },
      HF_EINVAL },
    { { { .kind = HFS_DELETE, .erase = { { "k/", 2 }, true } },
        { .kind = HFS_PUT, .put.key = { "k", 1 } } },
      HF_OK },
    { { { .kind = HFS_DELETE, .erase.key = { "k", 1 } },
        { .kind = HFS_DELETE, .erase = { { "k", 1 }, true } } },
      HF_OK },
    /* etcd does not see these two. */
    { { { .kind = HFS_DELETE, .erase.prefix = true },
        { .kind = HFS_PUT, .put.key = { "k", 1 } } },
      HF_OK },
    { { { .kind = HFS_DELETE, .erase = { { "\xff", 1 }, true } },
        { .kind = HFS_PUT, .put.key = { "\xff", 1 } } },
      HF_OK },
    { { { .kind = HFS_PUT, .put.key = { "", 0 } },
        { .kind = HFS_RANGE, .range.range.key = { "k", 1 } } },
      HF_EINVAL },
};

START_TEST(a_txn_that_writes_a_key_twice_is_refused)
{
    const struct hfs_ops ops = { TWICE[_i].ops, 2 };

    put("k", "");
    ask_for(TWICE[_i].err, (struct hfs_request){ .kind = HFS_TXN, .txn.then = ops });
    ck_assert_int_eq(revision(), TWICE[_i].err == HF_OK ? 3 : 2);
    /* The list that is not done is looked at, too. */
    ask_for(TWICE[_i].err, (struct hfs_request){ .kind = HFS_TXN, .txn.otherwise = ops });
}
END_TEST

START_TEST(a_txn_with_too_many_operations_is_refused)
{
    static struct hfs_op ops[HFS_TXN_MAX_OPS + 1];

    for (size_t i = 0; i < COUNT(ops); i++)
        ops[i] = range_op(one("a"));
    ask((struct hfs_request){ .kind = HFS_TXN, .txn.then = { ops, HFS_TXN_MAX_OPS } });
    ck_assert_uint_eq(answer->op_count, HFS_TXN_MAX_OPS);
    ask_for(HF_ELIMIT,
            (struct hfs_request){ .kind = HFS_TXN, .txn.otherwise = { ops, COUNT(ops) } });
}
END_TEST

START_TEST(a_txn_that_cannot_be_done_does_nothing)
{
    struct hfs_op ops[] = { put_op("a", "1", 0), put_op("b", "1", 99) };
    struct hfs_op past[] = { put_op("a", "1", 0), range_op(one("a")) };

    ask_for(HF_ENOENT, (struct hfs_request){ .kind = HFS_TXN, .txn.then = { ops, 2 } });
    past[1].range.revision = 2; /* the one that it would make */
    ask_for(HF_EHISTORY, (struct hfs_request){ .kind = HFS_TXN, .txn.then = { past, 2 } });
    ck_assert_int_eq(revision(), 1);
    /* What is wrong with the other list does not matter. */
    ask((struct hfs_request){ .kind = HFS_TXN, .txn.otherwise = { ops, 2 } });
}
END_TEST

START_TEST(a_full_etcd_refuses_what_needs_room_and_does_the_rest)
{
    struct hfs_op put_op_list[] = { put_op("b", "1", 0) };
    struct hfs_op delete_op_list[] = { delete_op(one("a")) };

    grant(7, 60);
    put_leased("a", "1", 7);
    faults()->no_space = true;
    ask_for(HF_ENOSPACE, alone(put_op("a", "2", 7)));
    ask_for(HF_ENOSPACE,
            (struct hfs_request){ .kind = HFS_TXN, .txn.then = { put_op_list, 1 } });
    ask_for(HF_ENOSPACE,
            (struct hfs_request){ .kind = HFS_TXN, .txn.otherwise = { put_op_list, 1 } });
    ask_for(HF_ENOSPACE, grant_request(8, 60));
    ask(of_lease(HFS_RENEW, 7));
    ck_assert_int_eq(answer->ttl_s, 60);
    ck_assert_ptr_nonnull(get("a"));
    ask((struct hfs_request){ .kind = HFS_TXN, .txn.then = { delete_op_list, 1 } });
    ck_assert_ptr_null(get("a"));
    compact(revision());
    ask(of_lease(HFS_REVOKE, 7));
    faults()->no_space = false;
    put("a", "2");
}
END_TEST

START_TEST(a_copied_request_outlives_the_original)
{
    char key[] = "key", value[] = "value";
    struct hfs_compare compare = { .key = bytes(key),
                                   .target = HFS_TARGET_VALUE,
                                   .value = bytes(value) };
    struct hfs_op then[] = { put_op(key, value, 3), range_op(all(key)) };
    struct hfs_op otherwise[] = { delete_op(one(key)) };
    struct hfs_request request = { .kind = HFS_TXN,
                                   .txn = { .compares = &compare,
                                            .compare_count = 1,
                                            .then = { then, 2 },
                                            .otherwise = { otherwise, 1 } } };
    struct hfs_request *copy = NULL;
    HF_CLEANUP_BUF struct hf_buf before = { 0 };
    HF_CLEANUP_BUF struct hf_buf after = { 0 };

    hfs_request_format(&request, &before);
    ck_assert_int_eq(hfs_request_copy(&request, &copy), HF_OK);
    memset(key, 'x', sizeof key - 1);
    memset(value, 'x', sizeof value - 1);
    memset(then, 0, sizeof then);
    memset(&compare, 0, sizeof compare);
    hfs_request_format(copy, &after);
    ck_assert_str_eq(after.data, before.data);
    free(copy);

    request = alone(put_op(key, value, 0));
    ck_assert_int_eq(hfs_request_copy(&request, &copy), HF_OK);
    key[0] = 'y';
    ck_assert(equals(copy->op.put.key, "xxx"));
    free(copy);
}
END_TEST

/* Without memory a request fails, and what it began is undone. */

static int everything_once(void *arg)
{
    struct hfs_op ops[] = { put_op("a", "2", 1), put_op("b", "1", 1), delete_op(all("c")),
                            range_op(all("")) };
    const struct hfs_request requests[] = {
        grant_request(1, 60),
        alone(put_op("a", "1", 0)),
        alone(put_op("c/1", "1", 0)),
        alone(put_op("c/2", "1", 0)),
        { .kind = HFS_TXN, .txn.then = { ops, COUNT(ops) } },
        of_lease(HFS_TTL, 1),
        of_lease(HFS_REVOKE, 1),
    };
    struct hfs_range everything = all("");
    struct hfs_snapshot *snapshot = NULL;
    struct hfs_etcd *model = NULL;
    uint64_t id;
    int err = hfs_etcd_new(&(struct hfs_etcd_config){ .seed = 1 }, &model);

    (void)arg;
    if (err == HF_OK)
        err = hfs_watch_open(model, 0, &everything, 1, &id);
    for (size_t i = 0; err == HF_OK && i < COUNT(requests); i++) {
        const struct hfs_store *store = hfs_etcd_get_store(model);
        struct hfs_answer *got = NULL;
        hfs_rev before = store->revision;

        err = hfs_etcd_serve(model, 0, &requests[i], &got);
        /* Either nothing was done, or all of it and only the answer is missing. */
        if (err != HF_OK && store->revision > before + 1)
            err = HF_ECORRUPT;
        if (store->log_count > 0 && store->log[store->log_count - 1]->mod_rev > store->revision)
            err = HF_ECORRUPT;
        free(got);
    }
    for (int told = 1; err == HF_OK && told > 0;) {
        struct hfs_batch *got = NULL;

        told = hfs_watch_next(model, id, &got);
        err = told < 0 ? told : HF_OK;
        free(got);
    }
    if (err == HF_OK)
        err = hfs_etcd_snapshot(model, &snapshot);
    if (err == HF_OK)
        err = hfs_etcd_restore(model, snapshot);
    if (err == HF_OK)
        err = hfs_etcd_set_member(model, 0, HFS_MEMBER_CUT);
    hfs_snapshot_free(snapshot);
    hfs_etcd_free(model);
    return err;
}

START_TEST(every_lack_of_memory_is_survived)
{
    ck_assert_uint_gt(hft_chaos_run(everything_once, NULL), 30);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("keys");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_put_is_a_revision_and_counts_versions);
    tcase_add_test(t, a_key_that_comes_back_begins_anew);
    tcase_add_test(t, a_delete_that_finds_nothing_is_no_revision);
    tcase_add_test(t, a_prefix_ends_where_another_begins);
    tcase_add_test(t, a_limit_leaves_out_keys_but_counts_them);
    tcase_add_test(t, the_past_can_be_read_and_the_future_cannot);
    tcase_add_test(t, what_is_compacted_cannot_be_read_and_what_is_left_can);
    tcase_add_test(t, compaction_gives_memory_back);
    tcase_add_test(t, a_store_that_is_full_says_so_and_is_unchanged);
    tcase_add_loop_test(t, compares_hold_as_they_say, 0, COUNT(COMPARES));
    tcase_add_test(t, a_txn_is_one_revision_and_does_one_of_its_lists);
    tcase_add_test(t, a_txn_sees_its_own_writes);
    tcase_add_loop_test(t, a_txn_that_writes_a_key_twice_is_refused, 0, COUNT(TWICE));
    tcase_add_test(t, a_txn_with_too_many_operations_is_refused);
    tcase_add_test(t, a_txn_that_cannot_be_done_does_nothing);
    tcase_add_test(t, a_full_etcd_refuses_what_needs_room_and_does_the_rest);
    tcase_add_test(t, a_copied_request_outlives_the_original);
    tcase_add_test(t, every_lack_of_memory_is_survived);
    return run("sim/model_etcd", t);
}
