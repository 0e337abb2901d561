/* The model etcd: leases, in virtual time, and what can be wrong with them. */
#include "unit/model_fixture.h"

enum { A = 101, B = 102 };

static int64_t renew(int64_t lease)
{
    ask(of_lease(HFS_RENEW, lease));
    return answer->ttl_s;
}

static int64_t left(int64_t lease)
{
    ask(of_lease(HFS_TTL, lease));
    return answer->ttl_s;
}

START_TEST(a_grant_gives_at_least_the_least)
{
    grant(A, 1);
    ck_assert_int_eq(answer->ttl_s, 2);
    ck_assert_int_eq(answer->lease, A);
    grant(B, 15);
    ck_assert_int_eq(answer->ttl_s, 15);
    ck_assert_int_eq(answer->header.revision, 1);
    ask_for(HF_EEXIST, grant_request(A, 15));
    ask_for(HF_EINVAL, grant_request(0, 15));

    setup_with((struct hfs_etcd_config){ .election = 5000 });
    grant(A, 5);
    ck_assert_int_eq(answer->ttl_s, 8);
}
END_TEST

START_TEST(no_more_leases_than_there_is_room_for)
{
    setup_with((struct hfs_etcd_config){ .max_leases = 1 });
    grant(A, 5);
    ck_assert_int_eq(serve(leader(), grant_request(B, 5)), HF_ELIMIT);
}
END_TEST

START_TEST(a_revoked_lease_takes_its_keys_in_one_revision)
{
    uint64_t id;

    grant(A, 15);
    put_leased("a", "1", A);
    put_leased("b", "1", A);
    put_leased("c", "1", 0);
    id = watch(0, all(""), 0);
    ask(of_lease(HFS_REVOKE, A));
    ck_assert_int_eq(answer->header.revision, 5);
    ck_assert_int_eq(next_of(id), 1);
    ck_assert_uint_eq(batch->count, 2);
    for (size_t i = 0; i < 2; i++) {
        ck_assert(batch->events[i].deleted);
        ck_assert_int_eq(batch->events[i].kv.mod_rev, 5);
    }
    ck_assert_ptr_nonnull(get("c"));
    ask_for(HF_ENOENT, of_lease(HFS_REVOKE, A));
    ask_for(HF_ENOENT, alone(put_op("a", "1", A)));
}
END_TEST

START_TEST(a_lease_without_keys_goes_without_a_revision)
{
    grant(A, 15);
    ask(of_lease(HFS_REVOKE, A));
    ck_assert_int_eq(answer->header.revision, 1);
}
END_TEST

START_TEST(a_put_without_the_lease_makes_a_ghost)
{
    grant(A, 15);
    grant(B, 15);
    put_leased("a", "1", A);
    put_leased("b", "1", A);
    put_leased("c", "1", A);
    put_leased("a", "2", 0);
    put_leased("b", "2", B);
    delete_range(one("c"));
    put_leased("c", "2", 0);
    ck_assert_int_eq(left(A), 15);
    ck_assert_uint_eq(answer->key_count, 0);
    ask(of_lease(HFS_REVOKE, A));
    ck_assert_int_eq(revision(), 8);
    left(B);
    ck_assert_uint_eq(answer->key_count, 1);
    ck_assert(equals(answer->keys[0], "b"));
}
END_TEST

START_TEST(a_lease_lives_for_its_time_and_until_somebody_looks)
{
    hf_ms next;

    grant(A, 5);
    put_leased("a", "1", A);
    advance(4999);
    ck_assert(hfs_etcd_has_lease(etcd, A));
    next = hfs_etcd_next(etcd);
    ck_assert_int_ge(next, 5000);
    ck_assert_int_lt(next, 5500);
    advance(next - now - 1);
    ck_assert_ptr_nonnull(get("a"));
    advance(1);
    ck_assert(!hfs_etcd_has_lease(etcd, A));
    ck_assert_ptr_null(get("a"));
    ck_assert_int_eq(left(A), -1);
    ck_assert_int_eq(hfs_etcd_next(etcd), HFS_NEVER);
}
END_TEST

START_TEST(leases_can_end_to_the_millisecond)
{
    setup_with((struct hfs_etcd_config){ .expiry_tick = 1 });
    grant(A, 5);
    ck_assert_int_eq(hfs_etcd_next(etcd), 5000);
    advance(4999);
    ck_assert(hfs_etcd_has_lease(etcd, A));
    advance(1);
    ck_assert(!hfs_etcd_has_lease(etcd, A));
}
END_TEST

START_TEST(a_renewal_gives_the_whole_time_again)
{
    grant(A, 5);
    for (int i = 0; i < 10; i++) {
        advance(4000);
        ck_assert_int_eq(renew(A), 5);
    }
    advance(1500);
    ck_assert_int_eq(left(A), 3);
    ck_assert_int_eq(answer->granted_ttl_s, 5);
    advance(4000);
    ck_assert_int_eq(renew(A), 0);
    ck_assert_int_eq(answer->err, HF_OK);
}
END_TEST

START_TEST(a_lease_that_has_expired_but_is_still_there_is_not_renewed)
{
    grant(A, 5);
    put_leased("a", "1", A);
    faults()->expiry_suspended = true; /* L12 */
    advance(60000);
    ck_assert_int_eq(serve(leader(), of_lease(HFS_RENEW, A)), HFS_LATER);
    ck_assert_int_eq(left(A), -55);
    put_leased("b", "1", A); /* but it can be used */
    faults()->expiry_suspended = false;
    advance(500);
    ck_assert_int_eq(renew(A), 0);
    ck_assert_ptr_null(get("b"));
}
END_TEST

START_TEST(l10_leases_may_end_late)
{
    hf_ms latest = 0;

    faults()->expiry_late = 10000;
    for (int64_t i = 1; i <= 50; i++)
        grant(i, 5);
    for (; hfs_etcd_next(etcd) != HFS_NEVER; latest = now)
        advance(hfs_etcd_next(etcd) - now);
    for (int64_t i = 1; i <= 50; i++)
        ck_assert(!hfs_etcd_has_lease(etcd, i));
    ck_assert_int_gt(latest, 10000);
    ck_assert_int_le(latest, 15500);
}
END_TEST

START_TEST(l10_only_so_many_leases_end_at_a_time)
{
    size_t gone = 0;

    setup_with((struct hfs_etcd_config){ .expiry_limit = 2 });
    for (int64_t i = 1; i <= 5; i++)
        grant(i, 5);
    advance(hfs_etcd_next(etcd) - now);
    for (int64_t i = 1; i <= 5; i++)
        gone += !hfs_etcd_has_lease(etcd, i);
    ck_assert_uint_eq(gone, 2);
    ck_assert_int_eq(hfs_etcd_next(etcd), now + 500);
    advance(1000);
    for (int64_t i = 1; i <= 5; i++)
        ck_assert(!hfs_etcd_has_lease(etcd, i));
}
END_TEST

START_TEST(l11_leader_changes_keep_leases_alive)
{
    uint64_t term = hfs_etcd_get_term(etcd);

    grant(A, 5);
    for (uint64_t i = 1; i <= 10; i++) {
        advance(4000);
        ck_assert_int_eq(hfs_etcd_change_leader(etcd), HF_OK);
        ck_assert_uint_eq(hfs_etcd_get_term(etcd), term + i);
        ck_assert_int_eq(left(A), 6); /* and an election timeout on top */
    }
    advance(6500);
    ck_assert(!hfs_etcd_has_lease(etcd, A));
}
END_TEST

START_TEST(l1_leases_are_revoked_though_they_were_renewed)
{
    size_t gone = 0;

    for (int64_t i = 1; i <= 100; i++)
        grant(i, 15);
    ck_assert_int_eq(hfs_etcd_revoke_leases(etcd, 50), HF_OK);
    for (int64_t i = 1; i <= 100; i++)
        gone += !hfs_etcd_has_lease(etcd, i);
    ck_assert_uint_gt(gone, 25);
    ck_assert_uint_lt(gone, 75);
    ck_assert_int_eq(hfs_etcd_revoke_leases(etcd, 100), HF_OK);
    for (int64_t i = 1; i <= 100; i++)
        ck_assert(!hfs_etcd_has_lease(etcd, i));
}
END_TEST

START_TEST(l1_no_lease_is_revoked_while_nobody_leads)
{
    grant(A, 15);
    for (unsigned member = 0; member < 2; member++)
        ck_assert_int_eq(hfs_etcd_set_member(etcd, member, HFS_MEMBER_DOWN), HF_OK);
    ck_assert_int_eq(hfs_etcd_revoke_leases(etcd, 100), HF_OK);
    ck_assert(hfs_etcd_has_lease(etcd, A));
}
END_TEST

START_TEST(l2_a_renewal_may_be_a_lie)
{
    grant(A, 5);
    faults()->lie_percent = 100;
    for (int i = 0; i < 3; i++) {
        advance(1500);
        ck_assert_int_eq(renew(A), 5);
        ck_assert_uint_eq(answer->header.raft_term, hfs_etcd_get_term(etcd) - 1);
    }
    advance(1000);
    ck_assert(!hfs_etcd_has_lease(etcd, A));
}
END_TEST

START_TEST(l3_a_lease_may_be_renewed_just_after_its_end)
{
    grant(A, 5);
    ask(of_lease(HFS_REVOKE, A));
    ck_assert_int_eq(renew(A), 0);
    faults()->ghost_renewals = true;
    ck_assert_int_eq(renew(A), 5);
    ck_assert_int_eq(renew(B), 0);
    advance(1001);
    ck_assert_int_eq(renew(A), 0);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("leases");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_grant_gives_at_least_the_least);
    tcase_add_test(t, no_more_leases_than_there_is_room_for);
    tcase_add_test(t, a_revoked_lease_takes_its_keys_in_one_revision);
    tcase_add_test(t, a_lease_without_keys_goes_without_a_revision);
    tcase_add_test(t, a_put_without_the_lease_makes_a_ghost);
    tcase_add_test(t, a_lease_lives_for_its_time_and_until_somebody_looks);
    tcase_add_test(t, leases_can_end_to_the_millisecond);
    tcase_add_test(t, a_renewal_gives_the_whole_time_again);
    tcase_add_test(t, a_lease_that_has_expired_but_is_still_there_is_not_renewed);
    tcase_add_test(t, l10_leases_may_end_late);
    tcase_add_test(t, l10_only_so_many_leases_end_at_a_time);
    tcase_add_test(t, l11_leader_changes_keep_leases_alive);
    tcase_add_test(t, l1_leases_are_revoked_though_they_were_renewed);
    tcase_add_test(t, l1_no_lease_is_revoked_while_nobody_leads);
    tcase_add_test(t, l2_a_renewal_may_be_a_lie);
    tcase_add_test(t, l3_a_lease_may_be_renewed_just_after_its_end);
    return run("sim/model_etcd leases", t);
}
