/* The real engine and the real node, each in its runner, on a real etcd. The keeper is the
 * test: its processes are words. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/decider_engine.h"
#include "io/decider_node.h"
#include "io/runner.h"
#include "support/client.h"
#include "support/etcd.h"
#include "support/records.h"
#include "support/suite.h"

#define ROOT "/holdfast/default/"

enum { STEP_MS = 60000, MOST_NEWS = 16 };

static struct hft_etcd server;
static struct hft_client client; /* of the fleet */
static struct hft_client hand;   /* of the test */

static void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&client, server.endpoint, NULL);
    hft_client_open(&hand, server.endpoint, NULL);
}

static void teardown(void)
{
    hft_client_close(&hand);
    hft_client_close(&client);
    hft_etcd_done(&server);
}

/* Controllers. */

struct controller {
    struct hf_engine *engine;
    struct hf_runner *runner;
    unsigned closed, alerts;
};

static void on_controller_intent(const struct hf_intent *intent, void *arg)
{
    ck_assert_int_eq(intent->kind, HF_INTENT_ALERT);
    ((struct controller *)arg)->alerts++;
}

static void on_controller_closed(void *arg)
{
    struct controller *controller = arg;

    hf_engine_free(controller->engine);
    controller->closed++;
}

static struct hf_lease_policy short_lease(hf_ms ttl)
{
    struct hf_lease_policy policy = hf_lease_policy_default();

    policy.ttl = ttl;
    policy.ttl_floor = 2000;
    policy.retry_max = 300;
    return policy;
}

static void begin_controller(struct controller *controller, const char *id)
{
    struct hf_runner_config cfg = { .ns = "default",
                                    .lease = short_lease(10000),
                                    .election = hf_election_policy_default(),
                                    .on_intent = on_controller_intent,
                                    .arg = controller };
    struct hf_error err = { "" };
    char leader[64];

    *controller = (struct controller){ 0 };
    (void)snprintf(leader, sizeof leader, "{\"id\":\"%s\"}", id);
    cfg.leader = hf_bytes_of(leader);
    controller->engine = hf_engine_new(&(struct hf_engine_config){
        .ns = "default", .id = id, .policy = hf_engine_policy_default(), .seed = 7 });
    ck_assert_ptr_nonnull(controller->engine);
    cfg.decider = hf_decider_engine(controller->engine);
    ck_assert_msg(hf_runner_new(&client.backend, &cfg, &controller->runner, &err) == HF_OK,
                  "%s", err.text);
}

static void end_controller(struct controller *controller)
{
    hf_runner_close(controller->runner, false, on_controller_closed, controller);
    hft_client_until(&client, &controller->closed, 1, STEP_MS, "the controller to close");
}

static bool leads_and_knows(void *arg)
{
    struct hf_engine_status status =
        hf_engine_get_status(((struct controller *)arg)->engine, hft_now());

    return status.leads && status.synced;
}

static void until_it_leads(struct controller *controller)
{
    hft_loop_until(&client.loop, leads_and_knows, controller, STEP_MS, "a leader");
}

/* What stands in etcd, by the test's own hand. */

static struct hft_outcome look(const char *key)
{
    char text[200];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    return hft_read(&hand, text);
}

static hf_rev put(const char *key, const char *value, int64_t lease)
{
    char text[200];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    return hft_put(&hand, text, value, lease);
}

/* Its agentd saw it crash. */
static void put_crash(hf_rev life)
{
    struct hf_txn *txn = hf_txn_new();
    char json[256];

    (void)snprintf(json, sizeof json,
                   "{\"kind\":\"crashed\",\"incarnation\":{\"createRevision\":\"%" PRId64
                   "\"},\"evidence\":[{\"source\":\"waitpid\",\"text\":\"signal 11\"}]}",
                   life);
    hf_txn_then_put(txn, hf_bytes_of(ROOT "agents/a/exit"), hf_bytes_of(json), HF_NO_LEASE);
    hf_txn_then_delete(txn, (struct hf_key_range){ .key = hf_bytes_of(ROOT "agents/a/live") });
    ck_assert(hft_commit(&hand, txn, false).succeeded);
}

static bool command_is_there(void *arg)
{
    (void)arg;
    return look("commands/h/a").count == 1;
}

START_TEST(a_controller_resets_the_task_and_orders_a_start)
{
    struct controller controller;
    struct hft_outcome task, command;
    hf_rev life;

    (void)hft_put_worker(&hand, "a", 1, &life);
    begin_controller(&controller, "c1");
    until_it_leads(&controller);
    put_crash(life);
    hft_loop_until(&client.loop, command_is_there, NULL, STEP_MS, "the order");
    command = look("commands/h/a");
    task = look("tasks/t");
    ck_assert_ptr_nonnull(strstr(command.value, "\"task\":\"t\""));
    ck_assert_ptr_nonnull(strstr(task.value, "\"state\":\"pending\""));
    ck_assert_ptr_nonnull(strstr(task.value, "\"attempt\":2"));
    ck_assert_int_eq(task.mod_rev, command.create_rev); /* one Txn */
    end_controller(&controller);
}
END_TEST

/* A death that nobody leads through: whoever leads next decides as if it had seen it. */
START_TEST(the_next_leader_orders_what_the_last_one_did_not_live_to)
{
    struct controller first, second;
    hf_rev life;

    (void)hft_put_worker(&hand, "a", 1, &life);
    begin_controller(&first, "c1");
    until_it_leads(&first);
    end_controller(&first);
    put_crash(life);
    begin_controller(&second, "c2");
    hft_loop_until(&client.loop, command_is_there, NULL, STEP_MS, "the order");
    ck_assert_int_eq(look("commands/h/a").version, 1);
    end_controller(&second);
}
END_TEST

/* A host: a node, its runner, and a keeper that obeys at the next turn of the loop. */

struct news {
    char agent[16];
    char instance_id[HF_ID_LEN + 1];
    enum hf_process_news news;
    int32_t signal;
};

static struct {
    struct hf_node *node;
    struct hf_runner *runner;
    struct news news[MOST_NEWS];
    size_t count;
    char instance_id[HF_ID_LEN + 1]; /* of the process that runs; empty: none does */
    unsigned made, let_go, frozen, thawed, closed;
    int64_t incarnation;
    char task[64]; /* that the process resumes */
    unsigned replies;
    int reply_err;
    char reply_task[64];
} host;

static void bring(const char *agent, const char *instance_id, enum hf_process_news what,
                  int32_t signal)
{
    struct news *news = &host.news[host.count++];

    ck_assert_uint_le(host.count, MOST_NEWS);
    news->news = what;
    news->signal = signal;
    (void)snprintf(news->agent, sizeof news->agent, "%s", agent);
    (void)snprintf(news->instance_id, sizeof news->instance_id, "%s", instance_id);
}

static void let_go(const struct hf_intent_process *process)
{
    host.let_go++;
    host.incarnation = process->incarnation;
    (void)snprintf(host.instance_id, sizeof host.instance_id, "%s", process->instance_id);
    (void)snprintf(host.task, sizeof host.task, "%s",
                   process->task != NULL ? process->task : "");
    bring(process->agent, process->instance_id, HF_PROCESS_READY, 0);
}

static void on_process(const struct hf_intent_process *process)
{
    const char *agent = process->agent, *id = process->instance_id;

    switch (process->act) {
    case HF_PROCESS_MAKE:
        host.made++;
        bring(agent, id, HF_PROCESS_HELD, 0);
        break;
    case HF_PROCESS_LET_GO: let_go(process); break;
    case HF_PROCESS_FREEZE:
        host.frozen++;
        bring(agent, id, HF_PROCESS_FROZEN, 0);
        break;
    case HF_PROCESS_THAW:
        host.thawed++;
        host.incarnation = process->incarnation;
        bring(agent, id, HF_PROCESS_THAWED, 0);
        break;
    case HF_PROCESS_DISCARD:
    case HF_PROCESS_STOP:
    case HF_PROCESS_KILL:
        host.instance_id[0] = '\0';
        bring(agent, id, HF_PROCESS_ENDED, 9);
        break;
    }
}

static void on_host_intent(const struct hf_intent *intent, void *arg)
{
    (void)arg;
    if (intent->kind == HF_INTENT_PROCESS)
        on_process(&intent->process);
    if (intent->kind != HF_INTENT_REPLY)
        return;
    host.replies++;
    host.reply_err = intent->reply.err;
    (void)snprintf(host.reply_task, sizeof host.reply_task, "%s",
                   intent->reply.task != NULL ? intent->reply.task->id : "");
}

static void deliver_news(void)
{
    while (host.count > 0) {
        struct news news = host.news[0];
        struct hf_event event = { .kind = HF_EVENT_PROCESS,
                                  .process = { .agent = news.agent,
                                               .instance_id = news.instance_id,
                                               .news = news.news,
                                               .pid = 4711,
                                               .start_time = 1,
                                               .signal = news.signal } };

        memmove(host.news, host.news + 1, --host.count * sizeof host.news[0]);
        if (news.news == HF_PROCESS_ENDED)
            event.process.kind = HOLDFAST__V1__EXIT__KIND__crashed;
        ck_assert_int_eq(hf_runner_feed(host.runner, &event), HF_OK);
    }
}

struct wait {
    hft_cond_fn cond;
    void *arg;
};

static bool delivered_and(void *arg)
{
    struct wait *wait = arg;

    deliver_news();
    return wait->cond(wait->arg);
}

static void until(hft_cond_fn cond, void *arg, const char *what)
{
    struct wait wait = { cond, arg };

    hft_loop_until(&client.loop, delivered_and, &wait, STEP_MS, what);
}

static void until_count(const unsigned *counter, unsigned count, const char *what)
{
    until(hft_counted, &(struct hft_at_least){ counter, count }, what);
}

/* `held`: what the keeper has of the agent, NULL for nothing; `resume`: the lease, likewise. */
static void begin_link(const struct hf_node_held *held, const struct hf_lease_record *resume)
{
    Holdfast__V1__Host record = HOLDFAST__V1__HOST__INIT;
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;
    struct hf_node_agent_config agent = { .name = "a", .spec = &spec };
    struct hf_runner_config cfg = { .ns = "default",
                                    .lease = short_lease(12000),
                                    .resume = resume,
                                    .on_intent = on_host_intent };
    char *launcher = (char *)"w";
    struct hf_error err = { "" };

    if (held != NULL)
        agent.held = *held;
    record.capacity = 10;
    record.launchers = &launcher;
    record.n_launchers = 1;
    spec.role = (char *)"r";
    spec.launcher = launcher;
    spec.home = (char *)"h";
    host.node = hf_node_new(&(struct hf_node_config){ .ns = "default",
                                                      .host = "h",
                                                      .boot_id = "boot",
                                                      .record = &record,
                                                      .agents = &agent,
                                                      .agent_count = 1,
                                                      .policy = hf_node_policy_default(),
                                                      .seed = 11 });
    ck_assert_ptr_nonnull(host.node);
    cfg.decider = hf_decider_node(host.node);
    ck_assert_msg(hf_runner_new(&client.backend, &cfg, &host.runner, &err) == HF_OK, "%s",
                  err.text);
}

static void begin_host(void)
{
    memset(&host, 0, sizeof host);
    begin_link(NULL, NULL);
}

static void on_host_closed(void *arg)
{
    (void)arg;
    hf_node_free(host.node);
    host.closed++;
}

static void end_host(void)
{
    hf_runner_close(host.runner, true, on_host_closed, NULL);
    hft_client_until(&client, &host.closed, 1, STEP_MS, "the host to close");
}

static void crash(void)
{
    bring("a", host.instance_id, HF_PROCESS_ENDED, 11);
    host.instance_id[0] = '\0';
}

/* The agent is registered before its program begins, dies, and is started by order. */
START_TEST(an_agent_that_crashes_is_ordered_back_and_started_as_another_life)
{
    struct controller controller;
    int64_t first;

    begin_controller(&controller, "c1");
    until_it_leads(&controller);
    begin_host();
    until_count(&host.let_go, 1, "the first start");
    first = host.incarnation;
    ck_assert_int_eq(look("agents/a/live").create_rev, first);

    crash();
    until_count(&host.let_go, 2, "the start that was ordered");
    ck_assert_int_gt(host.incarnation, first);
    ck_assert_int_eq(look("agents/a/live").create_rev, host.incarnation);
    ck_assert_int_eq(look("commands/h/a").count, 0);
    ck_assert_ptr_nonnull(strstr(look("agents/a/exit").value, "\"kind\":\"crashed\""));
    end_host();
    end_controller(&controller);
}
END_TEST

/* The task that a life had goes on with the next one. */
START_TEST(a_task_whose_owner_crashed_is_resumed_by_its_successor)
{
    struct controller controller;
    char task[256];

    begin_controller(&controller, "c1");
    until_it_leads(&controller);
    begin_host();
    until_count(&host.let_go, 1, "the first start");
    (void)snprintf(task, sizeof task,
                   "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"attempt\":1,"
                   "\"owner\":{\"agent\":\"a\",\"incarnation\":{\"createRevision\":\"%" PRId64
                   "\"}}}",
                   host.incarnation);
    (void)put("tasks/t", task, HF_NO_LEASE);
    crash();
    until_count(&host.let_go, 2, "the successor");
    ck_assert_str_eq(host.task, "t");
    ck_assert_ptr_nonnull(strstr(look("tasks/t").value, "\"state\":\"acknowledged\""));
    end_host();
    end_controller(&controller);
}
END_TEST

/* The agent asks its agentd for something, and is answered. */
static void ask(enum hf_ask_kind kind, const char *task)
{
    struct hf_event event = { .kind = HF_EVENT_ASK,
                              .ask = { .token = host.replies + 1,
                                       .kind = kind,
                                       .agent = "a",
                                       .instance_id = host.instance_id,
                                       .task = task,
                                       .until = hft_now() + STEP_MS } };

    ck_assert_int_eq(hf_runner_feed(host.runner, &event), HF_OK);
    until_count(&host.replies, host.replies + 1, "the reply");
    ck_assert_msg(host.reply_err == HF_OK, "%s", hf_err_name(host.reply_err));
}

START_TEST(a_task_is_claimed_survives_its_agent_and_is_completed)
{
    struct controller controller;

    begin_controller(&controller, "c1");
    until_it_leads(&controller);
    begin_host();
    until_count(&host.let_go, 1, "the first start");
    (void)put("tasks/t", "{\"id\":\"t\",\"role\":\"r\",\"state\":\"pending\"}", HF_NO_LEASE);
    (void)put("pending/r/t", "{}", HF_NO_LEASE);
    ask(HF_ASK_CLAIM, NULL);
    ck_assert_str_eq(host.reply_task, "t");
    ask(HF_ASK_START, "t");
    ck_assert_ptr_nonnull(strstr(look("tasks/t").value, "\"state\":\"in_progress\""));

    crash();
    until_count(&host.let_go, 2, "the successor");
    ck_assert_str_eq(host.task, "t");
    ask(HF_ASK_START, "t");
    ask(HF_ASK_COMPLETE, "t");
    ck_assert_ptr_nonnull(strstr(look("tasks/t").value, "\"state\":\"completed\""));
    end_host();
    end_controller(&controller);
}
END_TEST

static bool link_holds(void *arg)
{
    struct hf_node_view view;

    (void)arg;
    return hf_runner_get_lease(host.runner).state == HF_LEASE_HELD &&
           hf_runner_get_stats(host.runner).synced &&
           hf_node_get_view(host.node, "a", hft_now(), &view) == HF_OK && view.registered;
}

/* A link that is replaced costs no agent: the next one has its lease and its lives. */
START_TEST(a_link_that_is_replaced_goes_on_with_the_same_lease_and_the_same_life)
{
    struct controller controller;
    struct hf_lease_record lease;
    struct hf_node_held held;
    int64_t life;

    begin_controller(&controller, "c1");
    until_it_leads(&controller);
    begin_host();
    until_count(&host.let_go, 1, "the start");
    life = host.incarnation;
    lease = hf_runner_get_lease(host.runner).record;
    hf_runner_close(host.runner, false, on_host_closed, NULL);
    hft_client_until(&client, &host.closed, 1, STEP_MS, "the link to go");
    held = (struct hf_node_held){ .instance_id = host.instance_id,
                                  .pid = 4711,
                                  .start_time = 1,
                                  .begun = true,
                                  .lease = lease.id,
                                  .create_rev = life,
                                  .started = true };
    host.closed = 0;
    host.count = 0;
    begin_link(&held, &lease);
    until(link_holds, NULL, "the next link");
    ck_assert_int_eq(hf_runner_get_lease(host.runner).lease, lease.id);
    ck_assert_int_eq(look("agents/a/live").create_rev, life);
    ck_assert_uint_eq(host.made, 1);

    crash(); /* and it sees to what the first one began */
    until_count(&host.let_go, 2, "the successor");
    ck_assert_int_gt(host.incarnation, life);
    end_host();
    end_controller(&controller);
}
END_TEST

/* etcd hangs until the fence: what runs stands still, and goes on as the same life or, where
 * the lease was lost meanwhile, as a new one; never does it run unregistered. */
START_TEST(an_agent_freezes_with_its_lease_and_thaws_registered)
{
    struct controller controller;

    begin_controller(&controller, "c1");
    until_it_leads(&controller);
    begin_host();
    until_count(&host.let_go, 1, "the start");
    hft_etcd_pause(&server);
    until_count(&host.frozen, 1, "the freeze");
    hft_etcd_resume(&server);
    until_count(&host.thawed, 1, "the thaw");
    ck_assert_int_eq(look("agents/a/live").create_rev, host.incarnation);
    ck_assert_uint_eq(host.made, 1);
    end_host();
    end_controller(&controller);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("fleet");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_controller_resets_the_task_and_orders_a_start);
    tcase_add_test(t, the_next_leader_orders_what_the_last_one_did_not_live_to);
    tcase_add_test(t, an_agent_that_crashes_is_ordered_back_and_started_as_another_life);
    tcase_add_test(t, a_task_whose_owner_crashed_is_resumed_by_its_successor);
    tcase_add_test(t, a_task_is_claimed_survives_its_agent_and_is_completed);
    tcase_add_test(t, a_link_that_is_replaced_goes_on_with_the_same_lease_and_the_same_life);
    tcase_add_test(t, an_agent_freezes_with_its_lease_and_thaws_registered);
    return hft_suite_run("engine and node on an etcd", t, NULL);
}
