#include "sim/client.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum {
    TIMEOUT_MS = 5000,
    ATTEMPT_MS = 2000,
    RETRY_BASE_MS = 100,
    RETRY_CAP_MS = 5000,
};

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

struct hf_call {
    struct hfs_client *client;
    struct hf_call *prev, *next;
    struct hfs_call_spec spec;
    struct hfs_letter *letter;
    struct hfs_timer timer; /* the end of the attempt, or the pause before the next */
    struct hfs_exchange *exchange;
    hf_ms deadline, sent_at, attempt_at;
    unsigned attempts, resent;
    uint64_t generation;
};

static hf_ms now_of(const struct hfs_client *client)
{
    return hfs_process_now(client->process);
}

/* Timers of the process. */

static void on_tick(struct hfs_timer *timer);

static hf_ms first_timer(const struct hfs_client *client)
{
    hf_ms first = HF_ALARMS_NEVER;

    for (size_t i = 0; i < client->timer_count; i++) {
        if (client->timers[i]->at < first)
            first = client->timers[i]->at;
    }
    return first;
}

void hfs_client_set_tick(struct hfs_client *client)
{
    hf_ms alarm = hf_alarms_get_next(&client->alarms), timer = first_timer(client);
    hf_ms at = alarm < timer ? alarm : timer;

    if (at == HF_ALARMS_NEVER)
        hfs_timer_stop(client->net->world, &client->tick);
    else
        hfs_timer_start(client->net->world, &client->tick, at - client->process->clock_offset);
}

/* The first of those that are due, in the order of their times. */
static struct hf_timer *take_due(struct hfs_client *client, hf_ms now)
{
    hf_ms first = first_timer(client);

    for (size_t i = 0; first <= now && i < client->timer_count; i++) {
        struct hf_timer *timer = client->timers[i];

        if (timer->at == first) {
            hf_timer_stop(&client->etcd.timers, timer);
            return timer;
        }
    }
    return NULL;
}

static void on_tick(struct hfs_timer *tick)
{
    struct hfs_client *client = OWNER(tick, struct hfs_client, tick);
    struct hf_timer *timer = take_due(client, now_of(client));

    /* One at a time: what it does may take the others away. */
    if (timer != NULL)
        timer->fn(timer);
    else
        hf_alarms_ring(&client->alarms, now_of(client));
    hfs_client_set_tick(client);
}

/* Endpoints. */

unsigned hfs_client_endpoint(struct hfs_client *client, enum hf_lane_id lane,
                             uint64_t *ret_generation)
{
    *ret_generation = client->generations[lane];
    return client->endpoints[lane];
}

void hfs_client_give_up(struct hfs_client *client, enum hf_lane_id lane, uint64_t generation)
{
    unsigned bad = client->endpoints[lane];

    if (client->generations[lane] != generation)
        return;
    for (size_t i = 0; i < HF_LANE_COUNT; i++) {
        if (client->endpoints[i] == bad) {
            client->endpoints[i] = (bad + 1) % HFS_MEMBERS;
            client->generations[i]++;
        }
    }
}

/* Calls. */

static void attempt(struct hf_call *call);

const struct hfs_call_spec *hfs_call_get_spec(const struct hf_call *call)
{
    return &call->spec;
}

static void release(struct hf_call *call)
{
    struct hfs_client *client = call->client;

    hfs_timer_stop(client->net->world, &call->timer);
    hfs_exchange_drop(call->exchange);
    if (call->prev != NULL)
        call->prev->next = call->next;
    else
        client->calls = call->next;
    if (call->next != NULL)
        call->next->prev = call->prev;
    hfs_letter_unref(call->letter);
    free(call);
}

static void finish(struct hf_call *call, struct hfs_outcome outcome)
{
    struct hf_call copy = *call; /* released first: the callback may do anything */

    outcome.result.resent = call->resent;
    outcome.result.sent_at = call->resent > 0 ? call->sent_at : call->attempt_at;
    release(call);
    copy.spec.decode(&copy, &outcome);
}

static void fail(struct hf_call *call, int err, bool unknown, const char *message)
{
    finish(call, (struct hfs_outcome){ .result = { .err = err,
                                                   .maybe_applied = unknown || call->resent > 0,
                                                   .message = message } });
}

static hf_ms draw_pause(struct hf_call *call)
{
    hf_ms most = RETRY_BASE_MS;

    for (unsigned i = 1; i < call->attempts && most < RETRY_CAP_MS; i++)
        most *= 2;
    if (most > RETRY_CAP_MS)
        most = RETRY_CAP_MS;
    return (hf_ms)hfs_random_below(&call->client->random, (uint64_t)most + 1);
}

static void fail_attempt(struct hf_call *call, int err, bool unknown, const char *message)
{
    struct hfs_client *client = call->client;
    hf_ms pause = draw_pause(call), now = now_of(client);

    hfs_client_give_up(client, call->spec.lane, call->generation);
    client->budget = client->budget > HF_BUDGET_COST ? client->budget - HF_BUDGET_COST : 0;
    if ((unknown && !call->spec.repeatable) || client->budget <= HF_BUDGET_FLOOR ||
        now + pause >= call->deadline) {
        fail(call, err, unknown, message);
        return;
    }
    if (unknown) {
        if (call->resent == 0)
            call->sent_at = call->attempt_at;
        call->resent++;
    }
    hfs_timer_start(client->net->world, &call->timer, client->net->world->now + pause);
}

static void on_answer(const struct hfs_answer *answer, void *arg)
{
    struct hf_call *call = arg;
    struct hfs_client *client = call->client;

    call->exchange = NULL;
    hfs_timer_stop(client->net->world, &call->timer);
    if (answer->err == HF_EAGAIN) {
        /* A member that is down, or knows no leader, has not looked at the request. */
        fail_attempt(call, HF_EAGAIN, false, answer->message);
        return;
    }
    if (client->budget < HF_BUDGET_MAX)
        client->budget++;
    finish(call, (struct hfs_outcome){
                     .result = { .err = answer->err,
                                 .maybe_applied = answer->err == HF_ENOSPACE ||
                                                  (answer->err != HF_OK && call->resent > 0),
                                 .message = answer->message,
                                 .header = { .cluster_id = answer->header.cluster_id,
                                             .member_id = answer->header.member_id,
                                             .revision = answer->header.revision,
                                             .raft_term = answer->header.raft_term } },
                     .answer = answer });
}

static void on_timer(struct hfs_timer *timer)
{
    struct hf_call *call = OWNER(timer, struct hf_call, timer);

    if (call->exchange != NULL) {
        hfs_exchange_drop(call->exchange);
        call->exchange = NULL;
        fail_attempt(call, HF_ETIMEOUT, true, "Deadline Exceeded");
    } else {
        attempt(call);
    }
}

static void attempt(struct hf_call *call)
{
    struct hfs_client *client = call->client;
    hf_ms now = now_of(client), left = call->deadline - now;
    unsigned member;

    if (left <= 0) {
        fail(call, HF_ETIMEOUT, false, "the call's time was up before it could be sent");
        return;
    }
    if (call->spec.repeatable && left > ATTEMPT_MS)
        left = ATTEMPT_MS;
    member = hfs_client_endpoint(client, call->spec.lane, &call->generation);
    call->attempts++;
    call->attempt_at = now;
    if (!client->dead)
        call->exchange =
            hfs_net_send(client->net, client->process, member, call->letter, on_answer, call);
    hfs_timer_start(client->net->world, &call->timer, client->net->world->now + left);
}

struct hf_call *hfs_call_start(struct hfs_client *client, const struct hfs_request *request,
                               const struct hfs_call_spec *spec)
{
    struct hf_call *call = hfs_alloc(sizeof *call);

    *call = (struct hf_call){ .client = client,
                              .next = client->calls,
                              .spec = *spec,
                              .letter = hfs_letter_new(request, client->net->world->now),
                              .timer = { .fn = on_timer, .process = client->process } };
    call->letter->known_rev = client->process->told_rev;
    call->deadline = now_of(client) + (spec->timeout > 0 ? spec->timeout : TIMEOUT_MS);
    if (call->next != NULL)
        call->next->prev = call; /* NOLINT(clang-analyzer-unix.Malloc): the list has no dead */
    client->calls = call;
    attempt(call);
    return call;
}

void hf_call_cancel(struct hf_call *call)
{
    release(call);
}

/* Life. */

static hf_ms read_clock(void *arg)
{
    return now_of(arg);
}

void hfs_client_init(struct hfs_client *client, struct hfs_net *net,
                     struct hfs_process *process, uint64_t seed)
{
    unsigned first;

    memset(client, 0, sizeof *client);
    client->net = net;
    client->process = process;
    client->random.state = seed;
    client->budget = HF_BUDGET_MAX;
    client->tick = (struct hfs_timer){ .fn = on_tick, .process = process };
    client->etcd.timers.clock = (struct hf_clock){ .now = read_clock, .arg = client };
    first = (unsigned)hfs_random_below(&client->random, HFS_MEMBERS);
    for (size_t i = 0; i < HF_LANE_COUNT; i++)
        client->endpoints[i] = first;
}

void hfs_client_die(struct hfs_client *client)
{
    client->dead = true;
    for (struct hf_call *call = client->calls; call != NULL; call = call->next) {
        hfs_exchange_drop(call->exchange);
        call->exchange = NULL;
    }
}

void hfs_client_done(struct hfs_client *client)
{
    while (client->calls != NULL)
        release(client->calls); /* NOLINT(clang-analyzer-unix.Malloc): it leaves the list */
    hfs_timer_stop(client->net->world, &client->tick);
    free(client->timers);
    client->timers = NULL;
    client->timer_count = 0;
}
