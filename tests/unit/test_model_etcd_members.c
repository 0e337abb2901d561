/* The model etcd: members, leaders, partitions and backups. */
#include "unit/model_fixture.h"

enum { A = 101 };

#define T INT64_C(1000) /* election timeout */

static const struct hfs_op READ = { .kind = HFS_RANGE, .range.range = { .prefix = true } };

static int read_from(unsigned member)
{
    return serve(member, alone(READ));
}

/* The member answers, and that it knows of no leader. */
static void expect_refusal(unsigned member)
{
    ck_assert_int_eq(read_from(member), HFS_ANSWERED);
    ck_assert_int_eq(answer->err, HF_EAGAIN);
}

static void expect_service(unsigned member)
{
    ck_assert_int_eq(read_from(member), HFS_ANSWERED);
    ck_assert_int_eq(answer->err, HF_OK);
}

START_TEST(every_member_serves_and_names_itself)
{
    uint64_t ids[HFS_MEMBERS];

    for (unsigned i = 0; i < HFS_MEMBERS; i++) {
        expect_service(i);
        ids[i] = answer->header.member_id;
        ck_assert_uint_eq(answer->header.raft_term, 2);
        ck_assert_uint_ne(answer->header.cluster_id, 0);
    }
    ck_assert(ids[0] != ids[1] && ids[1] != ids[2] && ids[0] != ids[2]);
}
END_TEST

START_TEST(the_loss_of_a_follower_is_not_felt)
{
    unsigned gone = follower(), other = (gone + 1) % HFS_MEMBERS;

    set(gone, HFS_MEMBER_DOWN);
    put("a", "1");
    expect_refusal(gone);
    other = other == leader() ? (other + 1) % HFS_MEMBERS : other;
    expect_service(other);
    advance(10 * T);
    ck_assert_uint_eq(hfs_etcd_get_term(etcd), 2);
    set(gone, HFS_MEMBER_UP);
    expect_service(gone);
    ck_assert_uint_eq(hfs_etcd_get_term(etcd), 2);
}
END_TEST

/* For each way to lose it. */
static const enum hfs_member_state LOSSES[] = { HFS_MEMBER_DOWN, HFS_MEMBER_PAUSED,
                                                HFS_MEMBER_CUT, HFS_MEMBER_STALLED };

START_TEST(the_loss_of_the_leader_is_an_election_and_a_term)
{
    unsigned old = leader(), other = follower();
    hf_ms next;

    put("a", "1");
    set(old, LOSSES[_i]);
    ck_assert_int_eq(hfs_etcd_get_leader(etcd), -1);
    ck_assert_int_eq(read_from(other), HFS_SILENT);
    advance(T - 1);
    ck_assert_int_eq(hfs_etcd_get_leader(etcd), -1);
    while (hfs_etcd_get_leader(etcd) < 0) {
        next = hfs_etcd_next(etcd);
        ck_assert_int_le(next, 2 * T);
        advance(next - now);
    }
    ck_assert_uint_ne(leader(), old);
    ck_assert_uint_eq(hfs_etcd_get_term(etcd), 3);
    expect_service(other);
    ck_assert_uint_eq(answer->header.raft_term, 3);
    ck_assert_uint_eq(answer->ops[0].count, 1);
}
END_TEST

START_TEST(a_leader_that_is_back_in_time_goes_on)
{
    unsigned old = leader();

    if (LOSSES[_i] == HFS_MEMBER_DOWN)
        return; /* it does not come back as what it was */
    grant(A, 5);
    set(old, LOSSES[_i]);
    advance(T - 1);
    set(old, HFS_MEMBER_UP);
    advance(10);
    ck_assert_uint_eq(leader(), old);
    ck_assert_uint_eq(hfs_etcd_get_term(etcd), 2);
    advance(5000 - T + 500);
    ck_assert(!hfs_etcd_has_lease(etcd, A)); /* nothing was extended */
}
END_TEST

START_TEST(a_member_that_was_away_has_what_it_missed)
{
    unsigned away = follower();
    uint64_t id = watch(away, all(""), 0);

    set(away, LOSSES[_i]);
    put("a", "1");
    if (LOSSES[_i] != HFS_MEMBER_DOWN)
        ck_assert_int_eq(next_of(id), 0);
    set(away, HFS_MEMBER_UP);
    if (LOSSES[_i] == HFS_MEMBER_DOWN)
        ck_assert_int_eq(next_of(id), HF_EAGAIN);
    else
        expect_event(id, "a", 2);
}
END_TEST

START_TEST(without_a_majority_nothing_works_and_then_says_so)
{
    unsigned last = leader();

    grant(A, 5);
    set((last + 1) % HFS_MEMBERS, HFS_MEMBER_DOWN);
    set((last + 2) % HFS_MEMBERS, HFS_MEMBER_DOWN);
    ck_assert_int_eq(read_from(last), HFS_SILENT);
    /* Renewals need no majority. */
    ck_assert_int_eq(serve(last, of_lease(HFS_RENEW, A)), HFS_ANSWERED);
    ck_assert_int_eq(answer->ttl_s, 5);
    advance(2 * T);
    expect_refusal(last);
    ck_assert_int_eq(serve(last, of_lease(HFS_RENEW, A)), HFS_ANSWERED);
    ck_assert_int_eq(answer->err, HF_EAGAIN);
    advance(60000);
    ck_assert(hfs_etcd_has_lease(etcd, A)); /* nobody can end it */
    set((last + 1) % HFS_MEMBERS, HFS_MEMBER_UP);
    advance(2 * T);
    expect_service(last);
    ck_assert_uint_eq(hfs_etcd_get_term(etcd), 3);
    ask(of_lease(HFS_TTL, A));
    ck_assert_int_ge(answer->ttl_s, 4);
}
END_TEST

START_TEST(who_lacks_what_was_committed_does_not_lead)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        unsigned behind, old;

        setup_with((struct hfs_etcd_config){ .seed = seed, .pre_vote = true });
        old = leader();
        behind = follower();
        set(behind, HFS_MEMBER_PAUSED);
        put("a", "1");
        set(old, HFS_MEMBER_DOWN);
        set(behind, HFS_MEMBER_UP);
        advance(2 * T);
        ck_assert_uint_ne(leader(), behind);
        expect_service(behind);
        ck_assert_uint_eq(answer->ops[0].count, 1);
    }
}
END_TEST

START_TEST(w1_a_cut_member_is_silent_then_says_so_and_ends_its_watches)
{
    unsigned cut = follower();
    uint64_t id = watch(cut, all(""), 0);
    struct hfs_range range = all("");

    set(cut, HFS_MEMBER_CUT);
    put("a", "1");
    ck_assert_int_eq(read_from(cut), HFS_SILENT);
    ck_assert_int_eq(next_of(id), 0);
    advance(2 * T);
    expect_refusal(cut);
    ck_assert_int_eq(hfs_watch_open(etcd, cut, &range, 0, &id), HF_EAGAIN);
    ck_assert_int_eq(next_of(id), 0);
    advance(3 * T);
    ck_assert_int_eq(next_of(id), HF_EAGAIN);
}
END_TEST

START_TEST(a_member_that_was_cut_off_disturbs_when_it_returns)
{
    unsigned cut = follower(), old = leader();

    setup_with((struct hfs_etcd_config){ .seed = 1, .pre_vote = _i == 1 });
    set(cut, HFS_MEMBER_CUT);
    advance(10 * T);
    put("a", "1");
    ck_assert_uint_eq(leader(), old);
    set(cut, HFS_MEMBER_UP);
    if (_i == 1) {
        ck_assert_uint_eq(leader(), old);
        return;
    }
    ck_assert_int_eq(hfs_etcd_get_leader(etcd), -1);
    expect_refusal(old);
    advance(2 * T);
    ck_assert_uint_gt(hfs_etcd_get_term(etcd), 4);
    expect_service(cut);
    ck_assert_uint_eq(answer->ops[0].count, 1);
}
END_TEST

START_TEST(paused_and_stalled_members_are_silent)
{
    unsigned member = follower();
    struct hfs_range range = all("");
    uint64_t id;

    set(member, _i == 0 ? HFS_MEMBER_PAUSED : HFS_MEMBER_STALLED);
    advance(60000);
    ck_assert_int_eq(read_from(member), HFS_SILENT);
    ck_assert_int_eq(serve(member, of_lease(HFS_RENEW, A)), HFS_SILENT);
    ck_assert_int_eq(hfs_watch_open(etcd, member, &range, 0, &id), HFS_SILENT);
}
END_TEST

/* A leader is away for longer than a lease lives; the lease is renewed with the new one. */
static unsigned lose_leader_and_renew(enum hfs_member_state state)
{
    unsigned old = leader();

    grant(A, 5);
    put_leased("a", "1", A);
    set(old, state);
    advance(2 * T);
    for (int i = 0; i < 6; i++) {
        ck_assert_int_eq(serve((old + 1) % HFS_MEMBERS, of_lease(HFS_RENEW, A)), HFS_ANSWERED);
        ck_assert_int_eq(answer->ttl_s, 5);
        advance(1000);
    }
    return old;
}

START_TEST(l1_a_stalled_leader_revokes_when_it_is_back)
{
    unsigned old;

    faults()->revoke_on_return = _i == 1;
    old = lose_leader_and_renew(HFS_MEMBER_STALLED);
    set(old, HFS_MEMBER_UP);
    ck_assert(hfs_etcd_has_lease(etcd, A));
    advance(100);
    ck_assert_int_eq(hfs_etcd_has_lease(etcd, A), _i == 0);
    ck_assert_int_eq(get("a") != NULL, _i == 0);
    expect_service(old);
}
END_TEST

START_TEST(l1_a_cut_leader_has_stepped_down_and_revokes_nothing)
{
    unsigned old;

    faults()->revoke_on_return = true;
    old = lose_leader_and_renew(HFS_MEMBER_CUT);
    set(old, HFS_MEMBER_UP);
    advance(100);
    ck_assert(hfs_etcd_has_lease(etcd, A));
}
END_TEST

START_TEST(l2_a_leader_that_lost_the_others_renews_for_itself)
{
    unsigned old = leader();

    faults()->lying_renewals = true;
    grant(A, 5);
    put_leased("a", "1", A);
    set(old, HFS_MEMBER_STALLED);
    for (int i = 0; i < 12; i++) {
        advance(1000);
        ck_assert_int_eq(serve(old, of_lease(HFS_RENEW, A)), HFS_ANSWERED);
        ck_assert_int_eq(answer->ttl_s, 5);
        ck_assert_uint_eq(answer->header.raft_term, 2);
        ck_assert_int_eq(answer->header.revision, 2);
    }
    ck_assert_uint_eq(hfs_etcd_get_term(etcd), 3);
    ck_assert(!hfs_etcd_has_lease(etcd, A)); /* for the others it is long gone */
    ck_assert_int_eq(read_from(old), HFS_SILENT);
    /* It does not know leases that came after. */
    grant(A + 1, 5);
    ck_assert_int_eq(serve(old, of_lease(HFS_RENEW, A + 1)), HFS_ANSWERED);
    ck_assert_int_eq(answer->ttl_s, 0);
    set(old, HFS_MEMBER_UP);
    advance(100);
    ck_assert_int_eq(serve(old, of_lease(HFS_RENEW, A)), HFS_ANSWERED);
    ck_assert_int_eq(answer->ttl_s, 0);
    ck_assert_uint_eq(answer->header.raft_term, 3);
}
END_TEST

START_TEST(l2_a_paused_leader_lies_for_a_moment_when_it_is_back)
{
    unsigned old = leader();

    faults()->lying_renewals = true;
    grant(A, 20);
    set(old, HFS_MEMBER_PAUSED);
    advance(12000);
    ck_assert_int_eq(serve(old, of_lease(HFS_RENEW, A)), HFS_SILENT);
    set(old, HFS_MEMBER_UP);
    ck_assert_int_eq(serve(old, of_lease(HFS_RENEW, A)), HFS_ANSWERED);
    ck_assert_uint_eq(answer->header.raft_term, 2);
    advance(100);
    ck_assert_int_eq(serve(old, of_lease(HFS_RENEW, A)), HFS_ANSWERED);
    ck_assert_uint_eq(answer->header.raft_term, 3);
}
END_TEST

START_TEST(what_a_leader_renewed_while_away_counts_if_it_still_leads)
{
    unsigned old = leader();

    faults()->lying_renewals = true;
    grant(A, 5);
    advance(4500);
    set(old, HFS_MEMBER_STALLED);
    advance(400);
    ck_assert_int_eq(serve(old, of_lease(HFS_RENEW, A)), HFS_ANSWERED);
    set(old, HFS_MEMBER_UP);
    advance(4500);
    ck_assert(hfs_etcd_has_lease(etcd, A));
    advance(1000);
    ck_assert(!hfs_etcd_has_lease(etcd, A));
}
END_TEST

START_TEST(w7_a_restored_etcd_goes_back_under_the_same_name)
{
    struct hfs_snapshot *snapshot = NULL;
    uint64_t cluster, id = watch(0, all(""), 0);

    grant(A, 5);
    put_leased("a", "1", A);
    put("b", "1");
    compact(2);
    put("b", "2");
    cluster = answer->header.cluster_id;
    ck_assert_int_eq(hfs_etcd_snapshot(etcd, &snapshot), HF_OK);
    for (int round = 0; round < 2; round++) {
        put("b", "3");
        delete_range(one("a"));
        put("c", "1");
        ask(of_lease(HFS_REVOKE, A));
        ck_assert_int_eq(hfs_etcd_change_leader(etcd), HF_OK);
        ck_assert_int_eq(revision(), 7);
        ck_assert_int_eq(hfs_etcd_restore(etcd, snapshot), HF_OK);
        ck_assert_int_eq(next_of(id), HF_EAGAIN);
        expect_refusal(0);
        advance(2 * T);
        ck_assert_int_eq(revision(), 4);
        ck_assert_uint_eq(hfs_etcd_get_term(etcd), 2);
        ck_assert(equals(get("b")->value, "2"));
        ck_assert_int_eq(get("a")->lease, A);
        ck_assert_ptr_null(get("c"));
        ck_assert_uint_eq(answer->header.cluster_id, cluster);
        ask(of_lease(HFS_TTL, A));
        ck_assert_int_ge(answer->ttl_s, 3);
        id = watch(0, all(""), 3); /* the history is there, too */
        expect_event(id, "b", 3);
        expect_event(id, "b", 4);
        id = watch(0, all(""), 8); /* accepted, and mute */
        put("a", "9");
        ck_assert_int_eq(next_of(id), 0);
        ck_assert_int_eq(hfs_etcd_restore(etcd, snapshot), HF_OK);
        advance(2 * T);
    }
    hfs_snapshot_free(snapshot);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("members");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, every_member_serves_and_names_itself);
    tcase_add_test(t, the_loss_of_a_follower_is_not_felt);
    tcase_add_loop_test(t, the_loss_of_the_leader_is_an_election_and_a_term, 0, COUNT(LOSSES));
    tcase_add_loop_test(t, a_leader_that_is_back_in_time_goes_on, 0, COUNT(LOSSES));
    tcase_add_loop_test(t, a_member_that_was_away_has_what_it_missed, 0, COUNT(LOSSES));
    tcase_add_test(t, without_a_majority_nothing_works_and_then_says_so);
    tcase_add_test(t, who_lacks_what_was_committed_does_not_lead);
    tcase_add_test(t, w1_a_cut_member_is_silent_then_says_so_and_ends_its_watches);
    tcase_add_loop_test(t, a_member_that_was_cut_off_disturbs_when_it_returns, 0, 2);
    tcase_add_loop_test(t, paused_and_stalled_members_are_silent, 0, 2);
    tcase_add_loop_test(t, l1_a_stalled_leader_revokes_when_it_is_back, 0, 2);
    tcase_add_test(t, l1_a_cut_leader_has_stepped_down_and_revokes_nothing);
    tcase_add_test(t, l2_a_leader_that_lost_the_others_renews_for_itself);
    tcase_add_test(t, l2_a_paused_leader_lies_for_a_moment_when_it_is_back);
    tcase_add_test(t, what_a_leader_renewed_while_away_counts_if_it_still_leads);
    tcase_add_test(t, w7_a_restored_etcd_goes_back_under_the_same_name);
    return run("sim/model_etcd members", t);
}
