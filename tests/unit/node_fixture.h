/* node_fixture.h - a node in a small world: an etcd that is a table, a keeper that obeys, and a
 * transcript of what the node asked for. Everything happens at once unless a test says
 * otherwise. */
#ifndef HF_TESTS_UNIT_NODE_FIXTURE_H
#define HF_TESTS_UNIT_NODE_FIXTURE_H

#include "unit/node_etcd.h"
#include "unit/suite.h"

/* The keeper. */

/* "a#1": the first process that was made. */
static inline const char *short_id(const char *id)
{
    static char text[4][24];
    static size_t at;

    for (size_t i = 0; i < w.id_count; i++) {
        if (strcmp(w.ids[i], id) == 0) {
            at = (at + 1) % 4;
            (void)snprintf(text[at], sizeof text[at], "#%zu", i + 1);
            return text[at];
        }
    }
    return id;
}

static inline void news_of(const char *agent, const char *id, enum hf_process_news news,
                           int status, const char *text)
{
    Holdfast__V1__Report__Suspicion suspicion = HOLDFAST__V1__REPORT__SUSPICION__INIT;
    Holdfast__V1__Evidence seen = HOLDFAST__V1__EVIDENCE__INIT, *list[] = { &seen };

    suspicion.kind = (char *)"ping";
    suspicion.why = (char *)(text != NULL ? text : "");
    suspicion.frozen = news == HF_PROCESS_UNWELL || w.only_reported;
    seen.source = (char *)"proc";
    seen.text = (char *)"state S in futex_wait";
    suspicion.n_evidence = 1;
    suspicion.evidence = list;
    must((struct hf_event){ .kind = HF_EVENT_PROCESS,
                            .process = { .agent = agent,
                                         .instance_id = id,
                                         .news = news,
                                         .pid = 100,
                                         .start_time = 7,
                                         .status = status,
                                         .text = text,
                                         .suspicion = &suspicion } });
}

static inline const char *instance(const char *agent)
{
    struct hf_node_view view;

    ck_assert_int_eq(hf_node_get_view(w.node, agent, w.now, &view), HF_OK);
    return view.instance_id != NULL ? view.instance_id : "";
}

static inline void news(const char *agent, enum hf_process_news what, int status,
                        const char *text)
{
    char id[32];

    (void)snprintf(id, sizeof id, "%s", instance(agent));
    news_of(agent, id, what, status, text);
}

static const char *const ACTS[] = {
    [HF_PROCESS_MAKE] = "make",       [HF_PROCESS_LET_GO] = "let go",
    [HF_PROCESS_DISCARD] = "discard", [HF_PROCESS_STOP] = "stop",
    [HF_PROCESS_KILL] = "kill",       [HF_PROCESS_FREEZE] = "freeze",
    [HF_PROCESS_THAW] = "thaw",
};

static inline int count_running(void)
{
    int count = 0;

    for (size_t i = 0; i < w.id_count; i++)
        count += w.processes[i].state == MADE_BEGUN && !w.processes[i].frozen;
    return count;
}

/* What is asked must make sense, and what runs must be registered at that moment. */
static inline void check_act(const struct hf_intent_process *act)
{
    const char *live = get("agents/a/live");
    struct process *process = NULL;

    for (size_t i = 0; i < w.id_count; i++) {
        if (strcmp(w.ids[i], act->instance_id) == 0)
            process = &w.processes[i];
    }
    ck_assert_ptr_nonnull(process);
    switch (act->act) {
    case HF_PROCESS_MAKE: process->state = MADE_ASKED; break;
    case HF_PROCESS_LET_GO:
        ck_assert_int_eq(process->state, MADE_HELD);
        process->state = MADE_BEGUN;
        break;
    case HF_PROCESS_DISCARD:
        ck_assert_int_eq(process->state, MADE_HELD);
        process->state = MADE_ENDED;
        break;
    case HF_PROCESS_STOP:
    case HF_PROCESS_KILL: process->ending = true; break;
    case HF_PROCESS_FREEZE: process->frozen = true; break;
    case HF_PROCESS_THAW:
        ck_assert(process->frozen);
        process->frozen = false;
        break;
    }
    if (act->act == HF_PROCESS_LET_GO || act->act == HF_PROCESS_THAW) {
        ck_assert_int_eq(w.lease.state, HF_LEASE_HELD);
        ck_assert_int_le(count_running(), 1);
        if (!w.mirror_is_off)
            ck_assert_msg(live != NULL && strstr(live, act->instance_id) != NULL, "%s", live);
    }
}

static inline void on_process(const struct hf_intent *intent)
{
    const struct hf_intent_process *process = &intent->process;
    char id[32], agent[300];

    (void)snprintf(id, sizeof id, "%s", process->instance_id);
    (void)snprintf(agent, sizeof agent, "%s", process->agent);
    if (process->act == HF_PROCESS_MAKE)
        (void)snprintf(w.ids[w.id_count++], sizeof w.ids[0], "%s", id);
    if (w.checks)
        check_act(process);
    say("%s %s%s", ACTS[process->act], agent, short_id(id));
    if (process->act == HF_PROCESS_LET_GO || process->act == HF_PROCESS_THAW)
        say(" as %lld", (long long)process->incarnation);
    if (process->task != NULL)
        say(" with %s from %lld", process->task, (long long)process->checkpoint);
    if (process->act == HF_PROCESS_STOP)
        say(" within %lld", (long long)process->grace);
    say("\n");
    if (w.keeper_is_off)
        return;
    if (process->act == HF_PROCESS_MAKE)
        news_of(agent, id, w.make_err == 0 ? HF_PROCESS_HELD : HF_PROCESS_FAILED, 0,
                w.make_err == 0 ? NULL : "no such file");
    else if (process->act == HF_PROCESS_KILL || process->act == HF_PROCESS_STOP)
        news_of(agent, id, HF_PROCESS_ENDED, 0, "signal 9");
    else if (process->act == HF_PROCESS_FREEZE)
        news_of(agent, id, HF_PROCESS_FROZEN, 0, NULL);
    else if (process->act == HF_PROCESS_THAW)
        news_of(agent, id, HF_PROCESS_THAWED, 0, NULL);
}

static inline void on_reply(const struct hf_intent *intent)
{
    const struct hf_intent_reply *reply = &intent->reply;

    say("reply %llu %s", (unsigned long long)intent->token,
        reply->err == HF_OK ? "OK" : hf_err_name(reply->err));
    if (reply->task != NULL)
        say(" %s", reply->task->id);
    if (reply->seq != 0)
        say(" seq %lld", (long long)reply->seq);
    if (reply->existed)
        say(" existed");
    if (reply->tasks != 0)
        say(" waiting %zu", reply->tasks);
    if (reply->nudges != 0)
        say(" asked %zu", reply->nudges);
    if (reply->stop)
        say(" stop");
    say("\n");
}

static inline int next_intent(struct hf_intent *intent)
{
    hf_ms wall = 1700000000000 + w.now;
    int rc = HF_ENOMEM;

    w.random = w.random * 1664525 + 1013904223;
    for (size_t n = 1; memory_fails && rc == HF_ENOMEM; n++) {
        hft_chaos_fail_at(n, false);
        rc = hf_node_next(w.node, w.now, wall, w.random, intent);
        hft_chaos_stop();
    }
    return memory_fails ? rc : hf_node_next(w.node, w.now, wall, w.random, intent);
}

/* What was found of the checkpoint that was asked for last. */
static inline void verified(int err)
{
    must((struct hf_event){ .kind = HF_EVENT_VERIFIED,
                            .verified = { .token = w.verify, .err = err } });
}

static inline void carry_out(struct hf_intent *intent)
{
    switch (intent->kind) {
    case HF_INTENT_NONE: ck_abort_msg("an intent that is none");
    case HF_INTENT_WRITE: on_write(intent); break;
    case HF_INTENT_READ:
        if (intent->read.lease != 0)
            on_look(intent);
        else
            on_read(intent);
        break;
    case HF_INTENT_VERIFY:
        say("verify %lld\n", (long long)intent->verify->seq);
        w.verify = intent->token;
        if (!w.verify_hangs)
            verified(w.verify_err);
        break;
    case HF_INTENT_ALERT:
        say("alert %s: %s\n", intent->alert.agent != NULL ? intent->alert.agent : "-",
            intent->alert.why);
        break;
    case HF_INTENT_PROCESS: on_process(intent); break;
    case HF_INTENT_REPLY: on_reply(intent); break;
    case HF_INTENT_LOST: say("lost %lld\n", (long long)intent->lease); break;
    }
}

/* Until there is nothing left to do. */
static inline void run_node(void)
{
    struct hf_intent intent;

    for (int i = 0; i < 1000; i++) {
        int rc = next_intent(&intent);

        ck_assert_int_ge(rc, 0);
        if (rc == 0) {
            ck_assert_int_gt(hf_node_deadline(w.node, w.now), w.now);
            return;
        }
        carry_out(&intent);
        hf_intent_done(&intent);
    }
    ck_abort_msg("it never comes to rest:\n%.2000s", w.log);
}

/* What was asked for since the last look. */
static inline void expect(const char *what)
{
    run_node();
    ck_assert_str_eq(w.log, what);
    w.log[0] = '\0';
}

static inline void ignore(void)
{
    run_node();
    w.log[0] = '\0';
}

static inline void wait(hf_ms time)
{
    hf_ms until = w.now + time;

    while (w.now < until) {
        hf_ms at = hf_node_deadline(w.node, w.now);

        w.now = at < until ? at : until;
        if (w.lease.state == HF_LEASE_HELD) {
            w.lease.proven_until = w.now + 10000;
            must((struct hf_event){ .kind = HF_EVENT_LEASE, .lease = w.lease });
        }
        must((struct hf_event){ .kind = HF_EVENT_TIME });
        run_node();
    }
}

/* The lease. */

static inline void lease_is(enum hf_lease_state state, int64_t id, bool frozen)
{
    w.lease = (struct hf_event_lease){ .state = state,
                                       .lease = id,
                                       .ttl = 15000,
                                       .frozen = frozen,
                                       .proven_until = w.now + 10000 };
    must((struct hf_event){ .kind = HF_EVENT_LEASE, .lease = w.lease });
}

/* etcd deletes everything that hangs on it. */
static inline void expire(int64_t id)
{
    char keys[KEPT][256];
    size_t count = 0;

    w.rev++;
    for (size_t i = 0; i < w.pair_count; i++) {
        if (w.pairs[i].lease == id)
            (void)snprintf(keys[count++], sizeof keys[0], "%s", w.pairs[i].key);
    }
    for (size_t i = 0; i < count; i++)
        write_pair(keys[i], NULL, 0);
    for (size_t i = 0; i < count; i++)
        tell(keys[i]);
}

/* Asks. */

static inline uint64_t ask_as(const char *agent, const char *id, enum hf_ask_kind kind,
                              const char *task, const char *text)
{
    must((struct hf_event){ .kind = HF_EVENT_ASK,
                            .ask = { .token = ++w.ask,
                                     .kind = kind,
                                     .agent = agent,
                                     .instance_id = id,
                                     .task = task,
                                     .text = text,
                                     .until = w.now + 5000 } });
    return w.ask;
}

static inline uint64_t ask(const char *agent, enum hf_ask_kind kind, const char *task)
{
    char id[32];

    (void)snprintf(id, sizeof id, "%s", instance(agent));
    return ask_as(agent, id, kind, task, NULL);
}

static inline void ask_report(const char *agent, enum hf_ask_kind kind, const char *task,
                              const Holdfast__V1__Report *report)
{
    char id[32];

    (void)snprintf(id, sizeof id, "%s", instance(agent));
    must((struct hf_event){ .kind = HF_EVENT_ASK,
                            .ask = { .token = ++w.ask,
                                     .kind = kind,
                                     .agent = agent,
                                     .instance_id = id,
                                     .task = task,
                                     .report = report } });
}

/* Life. */

static inline struct hf_node *make_node(const struct hf_node_agent_config *agents, size_t count,
                                        const struct hf_node_policy *policy)
{
    Holdfast__V1__Host record = HOLDFAST__V1__HOST__INIT;
    char *launchers[] = { (char *)"sh" }, *roots[] = { (char *)"mine" };

    record.launchers = launchers;
    record.n_launchers = 1;
    record.roots = roots;
    record.n_roots = 1;
    record.version = (char *)"1";
    struct hf_node_config cfg = {
        .ns = NS,
        .host = "h",
        .boot_id = "boot",
        .record = &record,
        .agents = agents,
        .agent_count = count,
        .policy = policy != NULL ? *policy : hf_node_policy_default(),
        .seed = 0x5eed,
        .mutants = mutants,
    };
    struct hf_node *node = NULL;

    for (size_t n = 1; memory_fails && node == NULL; n++) {
        hft_chaos_fail_at(n, false);
        node = hf_node_new(&cfg);
        hft_chaos_stop();
    }
    return memory_fails ? node : hf_node_new(&cfg);
}

static inline void finish(void)
{
    hf_node_free(w.node);
    for (size_t i = 0; i < w.pair_count; i++)
        free(w.pairs[i].value);
    if (w.withheld != 0)
        hf_plan_done(&w.plan);
    if (w.is_late)
        hf_plan_done(&w.late);
    memset(&w, 0, sizeof w);
}

static inline void begin_with(const struct hf_node_agent_config *agents, size_t count,
                              const struct hf_node_policy *policy)
{
    finish(); /* the one before, where a test has several */
    w.rev = 100;
    w.now = UPTIME;
    w.node = make_node(agents, count, policy);
    ck_assert_ptr_nonnull(w.node);
}

/* One agent, a, of the role r, freeze being its fence. */
static inline void begin(void)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;

    spec.role = (char *)"r";
    spec.launcher = (char *)"sh";
    begin_with(&(struct hf_node_agent_config){ .name = "a", .spec = &spec }, 1, NULL);
}

/* Somebody leads, the lease is held, and everything there is was told. */
static inline void settle_in(void)
{
    w.quiet = true;
    put_leased("controller/leader", "{\"id\":\"c\"}", 7);
    lease_is(HF_LEASE_HELD, LEASE, false);
    list_all();
}

/* And a runs, as a#1. */
static inline void running(void)
{
    begin();
    settle_in();
    ignore();
    ck_assert_ptr_nonnull(get("agents/a/live"));
}

#define TASK_OF(id, state, extra)                                                              \
    "{\"id\":\"" id "\",\"role\":\"r\",\"state\":\"" state "\"" extra "}"

/* Of the task t. */
static inline void put_checkpoints(int64_t count)
{
    char key[100], value[300];

    for (int64_t seq = 1; seq <= count; seq++) {
        (void)snprintf(key, sizeof key, "checkpoints/t/%019lld", (long long)seq);
        (void)snprintf(value, sizeof value,
                       "{\"task\":\"t\",\"seq\":\"%lld\",\"parent\":\"%lld\"}", (long long)seq,
                       (long long)seq - 1);
        put(key, value);
    }
}

/* `number` is the key of its body in etcd, and the body may be without data: it lies elsewhere.
 */
static inline void ask_checkpoint_of(const char *task, const char *number, struct hf_bytes body)
{
    Holdfast__V1__Checkpoint entry = HOLDFAST__V1__CHECKPOINT__INIT;

    entry.sha256 = (char *)"abc";
    entry.store = (char *)"etcd";
    entry.key = (char *)number;
    must((struct hf_event){ .kind = HF_EVENT_ASK,
                            .ask = { .token = ++w.ask,
                                     .kind = HF_ASK_CHECKPOINT,
                                     .agent = "a",
                                     .instance_id = instance("a"),
                                     .task = task,
                                     .checkpoint = &entry,
                                     .body = body } });
}

static inline void ask_checkpoint(const char *task)
{
    ask_checkpoint_of(task, "", (struct hf_bytes){ 0 });
}

/* A task that may be claimed. */
static inline void put_pending(const char *id, const char *extra)
{
    char key[100], value[400];

    (void)snprintf(key, sizeof key, "tasks/%s", id);
    (void)snprintf(value, sizeof value,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"pending\"%s}", id, extra);
    put(key, value);
    (void)snprintf(key, sizeof key, "pending/r/%s", id);
    put(key, "{}");
}

/* A task that a owns, as its own life of that revision. */
static inline void put_owned(const char *id, const char *state, int64_t lease,
                             int64_t create_rev)
{
    char key[100], value[500];

    (void)snprintf(key, sizeof key, "tasks/%s", id);
    (void)snprintf(value, sizeof value,
                   "{\"id\":\"%s\",\"role\":\"r\",\"state\":\"%s\",\"owner\":{\"agent\":\"a\","
                   "\"incarnation\":{\"leaseId\":\"%lld\",\"createRevision\":\"%lld\"}}}",
                   id, state, (long long)lease, (long long)create_rev);
    put(key, value);
}

/* Whether a value has a member, as it is written. */
static inline void has(const char *key, const char *part)
{
    const char *value = get(key);

    ck_assert_msg(value != NULL && strstr(value, part) != NULL, "%s: %s has no %s", key,
                  value != NULL ? value : "nothing", part);
}

/* a owns t, which it has not started; as the ask 1. */
static inline void owning(void)
{
    running();
    put_pending("t", "");
    ask("a", HF_ASK_CLAIM, NULL);
    run_node();
    has("tasks/t", "\"state\":\"acknowledged\"");
    w.log[0] = '\0';
}

/* And now it has; as the ask 2. */
static inline void working(void)
{
    owning();
    ask("a", HF_ASK_START, "t");
    ignore();
    has("tasks/t", "\"state\":\"in_progress\"");
}

/* etcd has forgotten the lease, and the process stands still. */
static inline void lose_lease(void)
{
    lease_is(HF_LEASE_LOST, 0, true);
    ignore();
    expire(LEASE);
}

/* What may have become of a write whose outcome is unknown. */
static const enum fate LOST[] = { LOSE, LOSE_DONE };

/* Another link goes on with what the keeper holds of a. */
static inline void take_over(struct hf_node_held held)
{
    Holdfast__V1__Spec spec = HOLDFAST__V1__SPEC__INIT;
    struct hf_node_agent_config cfg = { .name = "a", .spec = &spec, .held = held };

    spec.role = (char *)"r";
    spec.launcher = (char *)"sh";
    hf_node_free(w.node);
    w.node = make_node(&cfg, 1, NULL);
    ck_assert_ptr_nonnull(w.node);
}

/* Every story is told twice. */

static inline void let_memory_fail(void)
{
    memory_fails = true;
}

static inline int run_stories(const char *name, void (*add_stories)(TCase *tcase))
{
    Suite *suite = suite_create(name);
    TCase *plain = tcase_create("plain"), *chaos = tcase_create("memory fails");

    tcase_add_checked_fixture(plain, NULL, finish);
    tcase_add_checked_fixture(chaos, let_memory_fail, finish);
    add_stories(plain);
    add_stories(chaos);
    suite_add_tcase(suite, plain);
    suite_add_tcase(suite, chaos);

    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
