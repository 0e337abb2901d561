/* Runners on a real etcd, with deciders that play ball: a controller throws a command as soon
 * as there is none and the host is there, its agentd catches it. Whatever happens, they go on.
 */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/rows.h"
#include "io/runner.h"
#include "schema/json.h"
#include "support/admin.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/proxy.h"
#include "support/suite.h"

enum { STEP_MS = 60000, AGAIN_MS = 200 };

static struct hft_etcd server;
static struct hft_proxy *proxy;
static struct hft_client client; /* through the proxy */

/* A player. */
struct player {
    struct hf_runner *runner;
    bool throws; /* is a controller */

    bool synced;
    hf_rev told, wait_for; /* nothing is decided before what was done is told */
    hf_ms rest_until;      /* after an outcome that nobody knows */
    struct hf_seen live, command;
    struct hf_event_lease lease;
    struct hf_term term;
    bool in_flight;
    bool plays; /* with what is in flight; else the host only registers */
    uint64_t token;
    char op_id[HF_ID_LEN + 1];

    unsigned balls; /* thrown or caught */
    unsigned resets, leads, losses, closed;
};

static void take_change(struct player *player, struct hf_fleet_change *change)
{
    struct hf_seen seen = change->record != NULL ? change->seen : (struct hf_seen){ 0 };

    seen.text = (struct hf_bytes){ 0 };
    if (change->key.kind == HF_KEY_HOST_LIVE)
        player->live = seen;
    if (change->key.kind == HF_KEY_COMMAND)
        player->command = seen;
    if (change->seen.mod_rev > player->told)
        player->told = change->seen.mod_rev;
    hf_json_free(change->record);
}

static void take_outcome(struct player *player, const struct hf_event_outcome *outcome,
                         hf_ms now)
{
    ck_assert_uint_eq(outcome->token, player->token);
    ck_assert(player->in_flight);
    player->in_flight = false;
    player->balls += outcome->outcome == HF_OUTCOME_DONE && player->plays;
    player->wait_for = outcome->outcome == HF_OUTCOME_DONE ? outcome->revision : 0;
    if (outcome->outcome != HF_OUTCOME_DONE)
        player->rest_until = now + AGAIN_MS;
}

static void forget(struct player *player)
{
    player->live = player->command = (struct hf_seen){ 0 };
    player->told = player->wait_for = 0;
    player->synced = false;
}

static int step(void *self, struct hf_event *event, hf_ms now)
{
    struct player *player = self;

    switch (event->kind) {
    case HF_EVENT_CHANGE: take_change(player, &event->change); break;
    case HF_EVENT_SYNCED:
        player->synced = true;
        if (event->revision > player->told)
            player->told = event->revision;
        break;
    case HF_EVENT_RESET:
        player->resets++;
        forget(player);
        break;
    case HF_EVENT_FORGET: forget(player); break;
    case HF_EVENT_OUTCOME: take_outcome(player, &event->outcome, now); break;
    case HF_EVENT_TERM:
        player->term = event->term;
        player->leads += event->term.lease != 0;
        break;
    case HF_EVENT_LEASE:
        player->losses += event->lease.lease == 0 && player->lease.lease != 0;
        player->lease = event->lease;
        break;
    default: break;
    }
    return HF_OK;
}

static struct hf_key live_key(void)
{
    return (struct hf_key){ .kind = HF_KEY_HOST_LIVE, .name = "h" };
}

static struct hf_key command_key(void)
{
    return (struct hf_key){ .kind = HF_KEY_COMMAND, .name = "h", .sub = "a" };
}

/* The host's own key, or the command is caught. */
static bool play_agentd(const struct player *player, struct hf_plan *plan)
{
    Holdfast__V1__HostLive live = HOLDFAST__V1__HOST_LIVE__INIT;

    if (player->lease.state != HF_LEASE_HELD)
        return false;
    if (player->live.create_rev == 0) {
        hf_plan_guard(plan, live_key(), HF_GUARD_ABSENT, 0);
        hf_plan_put(plan, live_key(), &live.base, (struct hf_bytes){ 0 }, player->lease.lease);
        return true;
    }
    if (player->live.lease != player->lease.lease || player->command.mod_rev == 0)
        return false;
    hf_plan_guard(plan, live_key(), HF_GUARD_CREATE, player->live.create_rev);
    hf_plan_guard(plan, command_key(), HF_GUARD_MOD, player->command.mod_rev);
    hf_plan_delete(plan, command_key());
    return true;
}

static bool play_controller(const struct player *player, struct hf_plan *plan)
{
    Holdfast__V1__Command command = HOLDFAST__V1__COMMAND__INIT;

    if (player->term.lease == 0 || player->live.create_rev == 0 || player->command.mod_rev != 0)
        return false;
    hf_row_write(plan, &player->term, command_key(), &player->command, &command.base);
    return true;
}

static int next(void *self, hf_ms now, hf_ms wall, uint32_t random, struct hf_intent *ret)
{
    struct player *player = self;
    struct hf_plan plan;

    (void)wall;
    if (!player->synced || player->in_flight || player->told < player->wait_for ||
        now < player->rest_until)
        return 0;
    (void)snprintf(player->op_id, sizeof player->op_id, "op%" PRIu32, random);
    hf_plan_init(&plan, "default", player->throws ? HF_WRITER_CONTROLLER : HF_WRITER_OWNER,
                 player->op_id);
    if (!(player->throws ? play_controller : play_agentd)(player, &plan)) {
        hf_plan_done(&plan);
        return 0;
    }
    ck_assert_int_eq(hf_plan_check(&plan, NULL), HF_OK);
    player->in_flight = true;
    player->plays = player->live.create_rev != 0;
    *ret =
        (struct hf_intent){ .kind = HF_INTENT_WRITE, .token = ++player->token, .plan = plan };
    return 1;
}

static hf_ms deadline(const void *self, hf_ms now)
{
    const struct player *player = self;

    return player->rest_until > now ? player->rest_until : INT64_MAX;
}

static size_t get_ranges(const void *self, struct hf_intent_read ret[HF_DECIDER_RANGES])
{
    (void)self;
    ret[0] = (struct hf_intent_read){ .key = live_key() };
    ret[1] = (struct hf_intent_read){ .whole_scope = true,
                                      .scope = HF_KEY_IN_COMMANDS_HOST,
                                      .name = "h" };
    return 2;
}

static int get_keys(const void *self, int64_t lease, struct hf_decider_key *ret_keys,
                    size_t max)
{
    const struct player *player = self;

    if (player->live.create_rev == 0 || player->live.lease != lease)
        return 0;
    if (max > 0)
        ret_keys[0] =
            (struct hf_decider_key){ .key = live_key(), .create_rev = player->live.create_rev };
    return 1;
}

static const struct hf_decider_ops PLAYER = {
    .step = step,
    .next = next,
    .deadline = deadline,
    .get_ranges = get_ranges,
    .get_keys = get_keys,
};

static void on_intent(const struct hf_intent *intent, void *arg)
{
    (void)arg;
    ck_abort_msg("nobody asked for an intent of kind %d", (int)intent->kind);
}

static void on_closed(void *arg)
{
    ((struct player *)arg)->closed++;
}

static void begin(struct player *player, bool throws)
{
    struct hf_runner_config cfg = { .ns = "default",
                                    .decider = { .ops = &PLAYER, .self = player },
                                    .lease = hf_lease_policy_default(),
                                    .election = hf_election_policy_default(),
                                    .on_intent = on_intent };
    struct hf_error err = { "" };

    *player = (struct player){ .throws = throws };
    cfg.lease.ttl = 10000;
    cfg.lease.retry_max = 300;
    if (throws)
        cfg.leader = hf_bytes_of("{\"id\":\"me\"}");
    ck_assert_msg(hf_runner_new(&client.backend, &cfg, &player->runner, &err) == HF_OK, "%s",
                  err.text);
}

static void end(struct player *player, bool revoke)
{
    hf_runner_close(player->runner, revoke, on_closed, player);
    hft_client_until(&client, &player->closed, 1, STEP_MS, "the runner to close");
}

static void more_balls(struct player *player, unsigned count)
{
    hft_client_until(&client, &player->balls, player->balls + count, STEP_MS, "the ball");
}

static void setup(void)
{
    char endpoint[64];

    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    proxy = hft_proxy_new(server.client.number);
    (void)snprintf(endpoint, sizeof endpoint, "http://127.0.0.1:%u", hft_proxy_port(proxy));
    hft_client_open(&client, endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&client);
    hft_proxy_free(proxy);
    hft_etcd_done(&server);
}

START_TEST(two_runners_play_through_whatever_happens)
{
    struct player agentd, controller;
    unsigned losses;

    begin(&agentd, false);
    begin(&controller, true);
    more_balls(&agentd, 20);

    hft_proxy_cut(proxy);
    more_balls(&agentd, 5);
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_DROP); /* answers are lost */
    (void)hft_loop_try(&client.loop, hft_counted,
                       &(struct hft_at_least){ &agentd.balls, agentd.balls + 3 }, 1000);
    hft_proxy_set(proxy, HFT_PROXY_DOWN, HFT_PROXY_PASS);
    hft_proxy_cut(proxy);
    more_balls(&agentd, 5);

    hft_etcd_kill(&server);
    hft_etcd_restart(&server);
    more_balls(&agentd, 5);

    losses = agentd.losses;
    hft_revoke(&client, hf_runner_get_lease(agentd.runner).lease);
    hft_client_until(&client, &agentd.losses, losses + 1, STEP_MS, "the loss");
    more_balls(&agentd, 5);
    ck_assert_uint_eq(agentd.resets, 0);
    end(&agentd, true);
    end(&controller, false);
}
END_TEST

START_TEST(another_controller_throws_when_the_first_has_gone)
{
    struct player agentd, first, second;
    int64_t term;

    begin(&agentd, false);
    begin(&first, true);
    hft_client_until(&client, &first.leads, 1, STEP_MS, "the first leader");
    begin(&second, true);
    more_balls(&agentd, 5);
    ck_assert_uint_eq(second.balls, 0);
    term = first.term.create_rev;
    end(&first, false);
    hft_client_until(&client, &second.leads, 1, STEP_MS, "the second leader");
    ck_assert_int_gt(second.term.create_rev, term);
    more_balls(&agentd, 5);
    end(&second, false);
    end(&agentd, true);
}
END_TEST

START_TEST(w7_everyone_begins_anew_when_etcd_was_restored)
{
    struct player agentd, controller;
    char path[512];

    (void)snprintf(path, sizeof path, "%s/backup", server.dir.path);
    begin(&agentd, false);
    begin(&controller, true);
    more_balls(&agentd, 5);
    hft_etcd_snapshot_save(&server, path);
    more_balls(&agentd, 30);
    hft_etcd_kill(&server);
    hft_etcd_snapshot_restore(&server, path);
    hft_etcd_restart(&server);
    hft_client_until(&client, &agentd.resets, 1, STEP_MS, "the agentd to hear of it");
    hft_client_until(&client, &controller.resets, 1, STEP_MS, "the controller to hear of it");
    more_balls(&agentd, 5);
    end(&agentd, true);
    end(&controller, false);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("runner");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, two_runners_play_through_whatever_happens);
    tcase_add_test(t, another_controller_throws_when_the_first_has_gone);
    tcase_add_test(t, w7_everyone_begins_anew_when_etcd_was_restored);
    return hft_suite_run("io/runner on an etcd", t, NULL);
}
