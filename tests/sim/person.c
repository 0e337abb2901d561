/* person.c - somebody who gives out work and interferes: every errand reads what it needs,
 * writes one guarded plan, and begins anew when that was refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/moments.h"
#include "core/storm.h"
#include "core/task.h"
#include "io/commit.h"
#include "schema/json.h"
#include "sim/cluster.h"

enum { AGAIN_MS = 1000, TRIES = 8, READS = 2 };

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

enum errand_kind {
    ERRAND_SUBMIT,
    ERRAND_WANT,
    ERRAND_RESTART,
    ERRAND_RELEASE,
    ERRAND_CANCEL,
    ERRAND_RETRY,
    ERRAND_RETRY_LOST,
    ERRAND_REMOVE,
    ERRAND_LOSE_HOST,
    ERRAND_REMOVE_HOST,
    ERRAND_PROCEED,
};

struct seen {
    struct hf_seen seen;
    char *text;
    ProtobufCMessage *record;
};

struct hfs_errand {
    struct hfs_cluster *cluster;
    struct hfs_errand *next, **at;
    enum errand_kind kind;
    char name[HFS_TEXT], role[HFS_TEXT];
    bool running, queued;
    unsigned tries;
    struct hfs_timer timer;
    struct hf_call *call;
    struct hf_commit *commit;
    size_t read; /* how many of its keys */
    struct seen seen[READS];
    char op_id[HF_ID_LEN + 1];
    int64_t newest; /* of PROCEED: entry of the audit trail */
};

static void begin(struct hfs_errand *errand);
static const struct hf_key *keys_of(const struct hfs_errand *errand, struct hf_key keys[READS],
                                    size_t *ret_count);

static void forget_reads(struct hfs_errand *errand)
{
    for (size_t i = 0; i < READS; i++) {
        free(errand->seen[i].text);
        hf_json_free(errand->seen[i].record);
        errand->seen[i] = (struct seen){ 0 };
    }
    errand->read = 0;
}

static void end(struct hfs_errand *errand)
{
    *errand->at = errand->next;
    if (errand->next != NULL)
        errand->next->at = errand->at;
    hfs_timer_stop(&errand->cluster->world, &errand->timer);
    if (errand->call != NULL)
        hf_call_cancel(errand->call);
    if (errand->commit != NULL)
        hf_commit_cancel(errand->commit);
    forget_reads(errand);
    free(errand);
}

static void again(struct hfs_errand *errand)
{
    struct hfs_world *world = &errand->cluster->world;

    forget_reads(errand);
    if (errand->kind != ERRAND_SUBMIT && ++errand->tries >= TRIES)
        end(errand);
    else
        hfs_timer_start(world, &errand->timer, world->now + AGAIN_MS);
}

static void on_timer(struct hfs_timer *timer)
{
    begin(OWNER(timer, struct hfs_errand, timer));
}

/* Writing. */

/* Whether the record that it changes bears its mark. */
static bool is_written(const struct hfs_errand *errand)
{
    struct hf_key keys[READS];
    size_t count;
    ProtobufCMessage *record = NULL;
    const struct hfs_entry *entry = NULL;
    char text[HF_KEY_SIZE];
    const char *op_id;
    bool written;

    (void)keys_of(errand, keys, &count);
    if (count == 0 || errand->kind == ERRAND_PROCEED)
        return false;
    hfs_must(hf_key_format(HFS_NS, &keys[0], text, NULL));
    entry = hfs_store_get(hfs_etcd_get_store(errand->cluster->etcd), hf_bytes_of(text));
    if (entry == NULL || hf_json_decode(hf_key_get_record(keys[0].kind), entry->value,
                                        entry->value_len, NULL, &record, NULL) != HF_OK)
        return false;
    op_id = hf_plan_find_op_id(record, HF_WRITER_OPERATOR);
    written = op_id != NULL && strcmp(op_id, errand->op_id) == 0;
    hf_json_free(record);
    return written;
}

/* Whoever is told that what it wrote was refused does it once more: an agent is restarted
 * twice, what a person has said meanwhile is taken back. */
static void judge_refusal(const struct hfs_errand *errand)
{
    if (is_written(errand))
        hfs_check_violate(errand->cluster->check,
                          "S a person is told that %s was not changed, and it was",
                          errand->name);
}

static void on_committed(const struct hf_commit_result *result, void *arg)
{
    struct hfs_errand *errand = arg;

    errand->commit = NULL;
    if (result->outcome == HF_OUTCOME_REFUSED)
        judge_refusal(errand);
    if (result->outcome == HF_OUTCOME_DONE ||
        (result->outcome == HF_OUTCOME_REFUSED && errand->kind == ERRAND_SUBMIT)) {
        errand->cluster->accepted += errand->kind == ERRAND_SUBMIT;
        end(errand);
    } else {
        again(errand);
    }
}

static void plan_submit(struct hfs_errand *errand, struct hf_plan *plan)
{
    Holdfast__V1__Task task = HOLDFAST__V1__TASK__INIT;
    Google__Protobuf__Timestamp expected;

    task.id = errand->name;
    task.role = errand->role;
    task.state = HOLDFAST__V1__TASK__STATE__pending;
    if (errand->cluster->cfg.priorities)
        task.priority = errand->name[strlen(errand->name) - 1] % 3;
    if (errand->cluster->cfg.expected > 0)
        task.expected_completion = hf_moment_write(HFS_WALL_BEGIN + errand->cluster->world.now +
                                                       errand->cluster->cfg.expected,
                                                   &expected);
    if (errand->queued)
        hf_row_enqueue(plan, &task);
    else
        hf_row_submit(plan, &task);
}

static Holdfast__V1__Wanted wanted_of(const struct seen *seen)
{
    Holdfast__V1__Wanted wanted = HOLDFAST__V1__WANTED__INIT;

    if (seen->record != NULL)
        wanted = *(const Holdfast__V1__Wanted *)seen->record;
    wanted.by = (char *)"person";
    return wanted;
}

static void plan_want(struct hfs_errand *errand, struct hf_plan *plan)
{
    Holdfast__V1__Wanted wanted = wanted_of(&errand->seen[0]);

    wanted.state = errand->running ? HOLDFAST__V1__WANTED__STATE__running
                                   : HOLDFAST__V1__WANTED__STATE__stopped;
    hf_row_want(plan, errand->name, &errand->seen[0].seen, &wanted);
}

static void plan_restart(struct hfs_errand *errand, struct hf_plan *plan)
{
    Holdfast__V1__Wanted wanted = wanted_of(&errand->seen[0]);

    wanted.state = HOLDFAST__V1__WANTED__STATE__running;
    wanted.end_upto = errand->seen[1].seen.create_rev;
    hf_row_want(plan, errand->name, &errand->seen[0].seen, &wanted);
}

/* What was counted is forgotten. False: it is not held. */
static bool plan_release(struct hfs_errand *errand, struct hf_plan *plan)
{
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)errand->seen[0].record;
    Holdfast__V1__Health next;

    if (health == NULL || !health->held)
        return false;
    next = *health;
    next.held = false;
    next.restarts = 0;
    next.n_started_at = 0;
    next.next_start = NULL;
    next.next = NULL;
    next.why = (char *)"a person has released it";
    hf_row_operate(plan, (struct hf_key){ HF_KEY_HEALTH, .name = errand->name },
                   &errand->seen[0].seen, &next.base);
    return true;
}

static bool plan_retry_lost(struct hfs_errand *errand, struct hf_plan *plan)
{
    const struct seen *seen = &errand->seen[0];
    Holdfast__V1__Root lost = HOLDFAST__V1__ROOT__INIT;
    Holdfast__V1__Task task;

    if (seen->record == NULL)
        return false;
    task = *(const Holdfast__V1__Task *)seen->record;
    if (task.root == NULL || !hf_task_next(&task, HF_TASK_RETRY_LOST).allowed)
        return false;
    lost = *task.root;
    lost.lost = true;
    task.root = &lost;
    hf_row_retry(plan, &(struct hf_seen_task){ .seen = seen->seen, .task = &task },
                 &errand->seen[1].seen);
    return true;
}

static void plan_lose_host(struct hfs_errand *errand, struct hf_plan *plan)
{
    Holdfast__V1__Host next = *(const Holdfast__V1__Host *)errand->seen[0].record;

    next.left = true;
    hf_row_operate(plan, (struct hf_key){ HF_KEY_HOST_RECORD, .name = errand->name },
                   &errand->seen[0].seen, &next.base);
}

static void plan_proceed(const struct hfs_errand *errand, struct hf_plan *plan)
{
    Holdfast__V1__Event event = HOLDFAST__V1__EVENT__INIT;

    event.kind = HOLDFAST__V1__EVENT__KIND__operator;
    event.actor = (char *)"person";
    event.why = (char *)HF_STORM_WORD_PROCEED;
    hf_row_event(plan, errand->newest + 1, &event);
}

/* False: there is nothing to do. */
static bool make_plan(struct hfs_errand *errand, struct hf_plan *plan)
{
    const struct seen *first = &errand->seen[0];
    struct hf_seen_task task = { .seen = first->seen,
                                 .task = (const Holdfast__V1__Task *)first->record };

    switch (errand->kind) {
    case ERRAND_SUBMIT: plan_submit(errand, plan); return true;
    case ERRAND_WANT: plan_want(errand, plan); return true;
    case ERRAND_RESTART: plan_restart(errand, plan); return true;
    case ERRAND_RELEASE: return plan_release(errand, plan);
    case ERRAND_CANCEL:
        if (task.task == NULL || task.task->state >= HOLDFAST__V1__TASK__STATE__completed)
            return false;
        hf_row_cancel(plan, &task, "a person said so");
        return true;
    case ERRAND_RETRY:
        if (task.task == NULL || task.task->state < HOLDFAST__V1__TASK__STATE__completed)
            return false;
        hf_row_retry(plan, &task, &errand->seen[1].seen);
        return true;
    case ERRAND_RETRY_LOST: return plan_retry_lost(errand, plan);
    case ERRAND_REMOVE:
        if (first->record == NULL || errand->seen[1].record != NULL)
            return false; /* it is gone already, or live */
        hf_row_remove_agent(plan, errand->name, &first->seen);
        return true;
    case ERRAND_LOSE_HOST:
        if (first->record == NULL || errand->seen[1].record != NULL)
            return false;
        plan_lose_host(errand, plan);
        return true;
    case ERRAND_REMOVE_HOST:
        if (first->record == NULL || errand->seen[1].record != NULL)
            return false;
        hf_row_remove_host(plan, errand->name, &first->seen);
        return true;
    case ERRAND_PROCEED: plan_proceed(errand, plan); return true;
    }
    return false;
}

static void commit(struct hfs_errand *errand)
{
    struct hfs_cluster *cluster = errand->cluster;
    struct hf_backend backend = hfs_client_backend(&cluster->person_client);
    uint8_t random[10];
    struct hf_plan plan;

    hfs_must(backend.ops->random(backend.self, random, sizeof random));
    hf_id_format(cluster->world.now, random, errand->op_id);
    hf_plan_init(&plan, HFS_NS, HF_WRITER_OPERATOR, errand->op_id);
    if (!make_plan(errand, &plan)) {
        hf_plan_done(&plan);
        end(errand);
        return;
    }
    hfs_must(hf_plan_check(&plan, NULL));
    hfs_must(hf_commit_start(&backend, &plan, 0, on_committed, errand, &errand->commit));
    hf_plan_done(&plan);
}

/* Reading. */

static const struct hf_key *keys_of(const struct hfs_errand *errand, struct hf_key keys[READS],
                                    size_t *ret_count)
{
    enum hf_key_kind first = HF_KEY_WANTED, second = HF_KEY_AGENT_LIVE;

    *ret_count = 0;
    if (errand->kind == ERRAND_SUBMIT)
        return keys;
    if (errand->kind == ERRAND_CANCEL || errand->kind == ERRAND_RETRY ||
        errand->kind == ERRAND_RETRY_LOST)
        first = HF_KEY_TASK, second = HF_KEY_RECOVERY;
    if (errand->kind == ERRAND_RELEASE)
        first = HF_KEY_HEALTH;
    if (errand->kind == ERRAND_REMOVE)
        first = HF_KEY_AGENT_SPEC;
    if (errand->kind == ERRAND_LOSE_HOST || errand->kind == ERRAND_REMOVE_HOST)
        first = HF_KEY_HOST_RECORD, second = HF_KEY_HOST_LIVE;
    keys[0] = (struct hf_key){ first, .name = errand->name };
    keys[1] = (struct hf_key){ second, .name = errand->name };
    *ret_count = 2;
    return keys;
}

static void read_next(struct hfs_errand *errand);

/* They sort by their numbers. */
static void on_trail(const struct hf_range_result *result, void *arg)
{
    struct hfs_errand *errand = arg;
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    errand->call = NULL;
    if (result->result.err != HF_OK) {
        again(errand);
        return;
    }
    errand->newest = 0;
    if (result->count > 0 &&
        hf_key_parse(HFS_NS, result->kvs[result->count - 1].key, scratch, &key, NULL) == HF_OK)
        errand->newest = key.seq;
    commit(errand);
}

static void read_trail(struct hfs_errand *errand)
{
    struct hf_backend backend = hfs_client_backend(&errand->cluster->person_client);
    struct hf_range_request request = { .keys_only = true, .range.prefix = true };
    char text[HF_KEY_SIZE];
    int len = hf_key_prefix(HFS_NS, HF_KEY_IN_EVENTS, NULL, text, NULL);

    hfs_must(len);
    request.range.key = (struct hf_bytes){ text, (size_t)len };
    hfs_must(backend.ops->range(backend.self, &request, on_trail, errand, &errand->call));
}

static void on_read(const struct hf_range_result *result, void *arg)
{
    struct hfs_errand *errand = arg;
    struct seen *seen = &errand->seen[errand->read];
    struct hf_key keys[READS];
    size_t count;

    errand->call = NULL;
    if (result->result.err != HF_OK) {
        again(errand);
        return;
    }
    (void)keys_of(errand, keys, &count);
    if (result->count > 0) {
        const struct hf_kv *kv = result->kvs;

        seen->text = hfs_alloc(kv->value.len + 1);
        memcpy(seen->text, kv->value.data, kv->value.len);
        seen->seen = (struct hf_seen){ .create_rev = kv->create_rev,
                                       .mod_rev = kv->mod_rev,
                                       .lease = kv->lease,
                                       .text = { seen->text, kv->value.len } };
        /* What nobody can read is not for this errand. */
        (void)!hf_json_decode(hf_key_get_record(keys[errand->read].kind), seen->text,
                              kv->value.len, NULL, &seen->record, NULL);
    }
    errand->read++;
    read_next(errand);
}

static void read_next(struct hfs_errand *errand)
{
    struct hf_backend backend = hfs_client_backend(&errand->cluster->person_client);
    struct hf_range_request request = { 0 };
    struct hf_key keys[READS];
    char text[HF_KEY_SIZE];
    size_t count;
    int len;

    (void)keys_of(errand, keys, &count);
    if (errand->read >= count) {
        commit(errand);
        return;
    }
    len = hf_key_format(HFS_NS, &keys[errand->read], text, NULL);
    hfs_must(len);
    request.range.key = (struct hf_bytes){ text, (size_t)len };
    hfs_must(backend.ops->range(backend.self, &request, on_read, errand, &errand->call));
}

static void begin(struct hfs_errand *errand)
{
    if (errand->kind == ERRAND_PROCEED)
        read_trail(errand);
    else
        read_next(errand);
}

static struct hfs_errand *errand_new(struct hfs_cluster *cluster, enum errand_kind kind,
                                     const char *name)
{
    struct hfs_errand *errand = hfs_alloc(sizeof *errand);

    errand->cluster = cluster;
    errand->kind = kind;
    errand->timer = (struct hfs_timer){ .fn = on_timer, .process = &cluster->person };
    (void)snprintf(errand->name, sizeof errand->name, "%s", name);
    errand->next = cluster->errands;
    errand->at = &cluster->errands;
    if (errand->next != NULL)
        errand->next->at = &errand->next;
    cluster->errands = errand;
    return errand;
}

static void submit(struct hfs_cluster *cluster, const char *task, const char *role, bool queued)
{
    struct hfs_errand *errand = errand_new(cluster, ERRAND_SUBMIT, task);

    hfs_note(&cluster->world, "  %s %s for %s", queued ? "enqueue" : "submit", task, role);
    (void)snprintf(errand->role, sizeof errand->role, "%s", role);
    errand->queued = queued;
    cluster->submitted++;
    begin(errand);
}

void hfs_person_submit(struct hfs_cluster *cluster, const char *task, const char *role)
{
    submit(cluster, task, role, false);
}

void hfs_person_enqueue(struct hfs_cluster *cluster, const char *task, const char *role)
{
    submit(cluster, task, role, true);
}

void hfs_person_want(struct hfs_cluster *cluster, const char *agent, bool running)
{
    struct hfs_errand *errand = errand_new(cluster, ERRAND_WANT, agent);

    hfs_note(&cluster->world, "  %s is wanted %s", agent, running ? "running" : "stopped");
    errand->running = running;
    begin(errand);
}

void hfs_person_restart(struct hfs_cluster *cluster, const char *agent)
{
    hfs_note(&cluster->world, "  restart %s", agent);
    begin(errand_new(cluster, ERRAND_RESTART, agent));
}

void hfs_person_release(struct hfs_cluster *cluster, const char *agent)
{
    hfs_note(&cluster->world, "  release %s", agent);
    begin(errand_new(cluster, ERRAND_RELEASE, agent));
}

void hfs_person_cancel(struct hfs_cluster *cluster, const char *task)
{
    hfs_note(&cluster->world, "  cancel %s", task);
    begin(errand_new(cluster, ERRAND_CANCEL, task));
}

void hfs_person_retry(struct hfs_cluster *cluster, const char *task)
{
    hfs_note(&cluster->world, "  retry %s", task);
    begin(errand_new(cluster, ERRAND_RETRY, task));
}

void hfs_person_retry_lost(struct hfs_cluster *cluster, const char *task)
{
    hfs_note(&cluster->world, "  retry %s without its files", task);
    begin(errand_new(cluster, ERRAND_RETRY_LOST, task));
}

void hfs_person_remove(struct hfs_cluster *cluster, const char *agent)
{
    hfs_note(&cluster->world, "remove %s", agent);
    begin(errand_new(cluster, ERRAND_REMOVE, agent));
}

void hfs_person_lose_host(struct hfs_cluster *cluster, const char *host)
{
    hfs_note(&cluster->world, "%s is lost, a person says", host);
    begin(errand_new(cluster, ERRAND_LOSE_HOST, host));
}

void hfs_person_remove_host(struct hfs_cluster *cluster, const char *host)
{
    hfs_note(&cluster->world, "remove %s", host);
    begin(errand_new(cluster, ERRAND_REMOVE_HOST, host));
}

void hfs_person_proceed(struct hfs_cluster *cluster)
{
    hfs_note(&cluster->world, "  storm proceed");
    begin(errand_new(cluster, ERRAND_PROCEED, ""));
}

void hfs_person_done(struct hfs_cluster *cluster)
{
    while (cluster->errands != NULL)
        end(cluster->errands);
}

size_t hfs_person_count(const struct hfs_cluster *cluster)
{
    size_t count = 0;

    for (const struct hfs_errand *errand = cluster->errands; errand != NULL;
         errand = errand->next)
        count++;
    return count;
}
