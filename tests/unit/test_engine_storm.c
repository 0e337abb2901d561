/* Storms as the engine lives through them: what it knew of etcd before it began. */
#include "unit/engine_fixture.h"
#include "unit/suite.h"

static void expect_storm(enum hf_storm_state state, const char *why)
{
    struct hf_storm_view view = hf_engine_get_status(engine, now).storm;

    ck_assert_str_eq(hf_storm_state_name(view.state), hf_storm_state_name(state));
    ck_assert_msg(strstr(view.why, why) != NULL, "%s", view.why);
}

START_TEST(who_learns_everything_anew_after_a_restore_still_doubts)
{
    ck_assert_int_eq(step(&(struct hf_event){ .kind = HF_EVENT_RESET }), HF_OK);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        if (pairs[i].value != NULL)
            tell_pair(pairs[i].key, &pairs[i]);
    }
    sync_engine();
    expect_storm(HF_STORM_PARTIAL, "history");
    pass(30000);
    expect_storm(HF_STORM_NORMAL, "");
}
END_TEST

START_TEST(who_begins_to_lead_after_etcd_changed_its_leader_doubts)
{
    struct hf_event event = { .kind = HF_EVENT_CLUSTER, .cluster = { .raft_term = 5 } };

    ck_assert_int_eq(step(&event), HF_OK);
    expect_storm(HF_STORM_NORMAL, "");
    event.cluster.raft_term = 6;
    ck_assert_int_eq(step(&event), HF_OK);
    lead(); /* the same who led before, in another term */
    expect_storm(HF_STORM_PARTIAL, "leader");
    pass(30000);
    expect_storm(HF_STORM_NORMAL, "");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("storm");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, who_learns_everything_anew_after_a_restore_still_doubts);
    tcase_add_test(t, who_begins_to_lead_after_etcd_changed_its_leader_doubts);
    return run("core/engine storms", t);
}
