/* backend.c - io/backend.h over a simulated client. */
#include "io/backend.h"

#include <stdlib.h>
#include <string.h>

#include "sim/client.h"
#include "sim/mutants.h"

enum { SURVEY_MS = 2000 };

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static hf_ms now(void *self)
{
    struct hfs_client *client = self;

    return hfs_process_now(client->process);
}

static hf_ms wall(void *self)
{
    struct hfs_client *client = self;

    return HFS_WALL_BEGIN + client->net->world->now;
}

static int draw(void *self, void *out, size_t len)
{
    struct hfs_client *client = self;

    while (len > 0) {
        uint64_t word = hfs_random_next(&client->random);
        size_t part = len < sizeof word ? len : sizeof word;

        memcpy(out, &word, part);
        out = (char *)out + part;
        len -= part;
    }
    return HF_OK;
}

static void set_alarm(void *self, struct hf_alarm *alarm, hf_ms at)
{
    struct hfs_client *client = self;

    hf_alarms_set(&client->alarms, alarm, at);
    hfs_client_set_tick(client);
}

static void unset_alarm(void *self, struct hf_alarm *alarm)
{
    (void)self;
    hf_alarms_unset(alarm);
}

/* Writes. */

static struct hf_bytes bytes_of(const char *text)
{
    return (struct hf_bytes){ .data = text, .len = strlen(text) };
}

static struct hfs_compare compare_of(const struct hf_plan_guard *guard)
{
    struct hfs_compare compare = { .key = bytes_of(guard->key),
                                   .target = HFS_TARGET_CREATE,
                                   .relation = HFS_EQUAL,
                                   .number = guard->value };

    switch (guard->what) {
    case HF_GUARD_ABSENT: compare.number = 0; break;
    case HF_GUARD_MOD: compare.target = HFS_TARGET_MOD; break;
    case HF_GUARD_CREATE: break;
    case HF_GUARD_GONE: compare.relation = HFS_NOT_EQUAL; break;
    case HF_GUARD_LEASE: compare.target = HFS_TARGET_LEASE; break;
    case HF_GUARD_TEXT:
        compare.target = HFS_TARGET_VALUE;
        compare.value = guard->text;
        break;
    }
    return compare;
}

static struct hfs_op op_of(const struct hf_plan_write *write)
{
    struct hfs_op op = { .kind = HFS_DELETE };

    if (write->value == NULL) {
        op.erase = (struct hfs_range){ .key = bytes_of(write->key), .prefix = write->all };
        return op;
    }
    op.kind = HFS_PUT;
    op.put = (struct hfs_put_request){ .key = bytes_of(write->key),
                                       .value = { write->value, write->value_len },
                                       .lease = write->lease };
    return op;
}

static void decode_txn(struct hf_call *call, struct hfs_outcome *outcome)
{
    const struct hfs_call_spec *spec = hfs_call_get_spec(call);
    struct hf_txn_result result = { .result = outcome->result };
    struct hf_txn_answer answers[HF_TXN_MAX_OPS];

    if (result.result.err == HF_OK && outcome->answer != NULL) {
        result.succeeded = outcome->answer->succeeded;
        for (size_t i = 0; i < outcome->answer->op_count; i++) {
            const struct hfs_op_answer *op = &outcome->answer->ops[i];

            answers[i] =
                (struct hf_txn_answer){ .kvs = (const struct hf_kv *)(const void *)op->kvs,
                                        .count = op->count,
                                        .deleted = op->deleted };
        }
        result.answers = answers;
        result.answer_count = outcome->answer->op_count;
    }
    ((hf_txn_fn)spec->fn)(&result, spec->arg);
}

static int start_txn(void *self, const struct hf_backend_txn *txn, hf_txn_fn fn, void *arg,
                     struct hf_call **ret_call)
{
    const struct hfs_net *net = ((const struct hfs_client *)self)->net;
    bool rides = false;
    struct hfs_compare compares[HF_TXN_MAX_OPS];
    struct hfs_op ops[HF_TXN_MAX_OPS];
    struct hfs_op look = { .kind = HFS_RANGE };
    struct hfs_request request = { .kind = HFS_TXN };

    if (txn->guard_count > HF_TXN_MAX_OPS || txn->write_count > HF_TXN_MAX_OPS)
        return HF_ELIMIT;
    for (size_t i = 0; i < txn->guard_count; i++) {
        compares[i] = compare_of(&txn->guards[i]);
        compares[i].aimed = hfs_dropped_has(net->aim.at, net->census, &txn->guards[i]);
        compares[i].dropped = compares[i].aimed && net->aim.drops;
        rides = rides || hfs_dropped_rides(net->aim.at, &txn->guards[i]);
    }
    for (size_t i = 0; i < txn->write_count; i++)
        ops[i] = op_of(&txn->writes[i]);
    request.txn = (struct hfs_txn){ .compares = compares,
                                    .compare_count = txn->guard_count,
                                    .rides = rides,
                                    .then = { .list = ops, .count = txn->write_count } };
    if (txn->look_at != NULL && !net->is_blind) {
        look.range.range.key = bytes_of(txn->look_at);
        request.txn.otherwise = (struct hfs_ops){ .list = &look, .count = 1 };
    }
    *ret_call = hfs_call_start(self, &request,
                               &(struct hfs_call_spec){ .lane = HF_LANE_UNARY,
                                                        .repeatable = txn->resend,
                                                        .timeout = txn->timeout,
                                                        .decode = decode_txn,
                                                        .fn = (void (*)(void))fn,
                                                        .arg = arg });
    return HF_OK;
}

static int start_range(void *self, const struct hf_range_request *request, hf_range_fn fn,
                       void *arg, struct hf_call **ret_call)
{
    struct hfs_client *client = self;

    return hf_etcd_range(&client->etcd, request, fn, arg, ret_call);
}

static int start_list(void *self, const struct hf_range_request *request, hf_range_fn fn,
                      void *arg, struct hf_list **ret_list)
{
    struct hfs_client *client = self;

    return hf_etcd_list(&client->etcd, request, fn, arg, ret_list);
}

/* Leases. */

static void decode_grant(struct hf_call *call, struct hfs_outcome *outcome)
{
    const struct hfs_call_spec *spec = hfs_call_get_spec(call);
    struct hf_grant_result result = { .result = outcome->result, .id = spec->lease };

    if (result.result.err == HF_OK) {
        result.ttl_s = outcome->answer->ttl_s;
    } else if (result.result.err == HF_EEXIST && result.result.resent > 0) {
        result.result.err = HF_OK;
        result.result.maybe_applied = false;
        result.ttl_s = spec->ttl_s;
    }
    ((hf_grant_fn)spec->fn)(&result, spec->arg);
}

static int start_grant(void *self, int64_t id, int64_t ttl_s, hf_grant_fn fn, void *arg,
                       struct hf_call **ret_call)
{
    struct hfs_request request = { .kind = HFS_GRANT };

    if (id <= 0 || ttl_s <= 0)
        return HF_EINVAL;
    request.lease = id;
    request.ttl_s = ttl_s;
    *ret_call = hfs_call_start(self, &request,
                               &(struct hfs_call_spec){ .lane = HF_LANE_UNARY,
                                                        .repeatable = true,
                                                        .decode = decode_grant,
                                                        .fn = (void (*)(void))fn,
                                                        .arg = arg,
                                                        .lease = id,
                                                        .ttl_s = ttl_s });
    return HF_OK;
}

static void decode_revoke(struct hf_call *call, struct hfs_outcome *outcome)
{
    const struct hfs_call_spec *spec = hfs_call_get_spec(call);
    struct hf_write_result result = { .result = outcome->result };

    if (result.result.err == HF_ENOENT && result.result.resent > 0)
        result.result.err = HF_OK;
    ((hf_write_fn)spec->fn)(&result, spec->arg);
}

static int start_revoke(void *self, int64_t id, hf_write_fn fn, void *arg,
                        struct hf_call **ret_call)
{
    struct hfs_request request = { .kind = HFS_REVOKE };

    request.lease = id;
    *ret_call = hfs_call_start(self, &request,
                               &(struct hfs_call_spec){ .lane = HF_LANE_UNARY,
                                                        .repeatable = true,
                                                        .decode = decode_revoke,
                                                        .fn = (void (*)(void))fn,
                                                        .arg = arg });
    return HF_OK;
}

static void decode_ttl(struct hf_call *call, struct hfs_outcome *outcome)
{
    const struct hfs_call_spec *spec = hfs_call_get_spec(call);
    struct hf_ttl_result result = { .result = outcome->result, .ttl_s = -1 };

    if (result.result.err == HF_OK) {
        result.ttl_s = outcome->answer->ttl_s;
        result.granted_ttl_s = outcome->answer->granted_ttl_s;
        result.keys = outcome->answer->keys;
        result.key_count = outcome->answer->key_count;
    }
    ((hf_ttl_fn)spec->fn)(&result, spec->arg);
}

static int start_ttl(void *self, int64_t id, hf_ttl_fn fn, void *arg, struct hf_call **ret_call)
{
    struct hfs_request request = { .kind = HFS_TTL };

    request.lease = id;
    *ret_call = hfs_call_start(self, &request,
                               &(struct hfs_call_spec){ .lane = HF_LANE_UNARY,
                                                        .repeatable = true,
                                                        .decode = decode_ttl,
                                                        .fn = (void (*)(void))fn,
                                                        .arg = arg });
    return HF_OK;
}

/* Renewals: a stream to one member, of which only the last request is listened to. */

struct hf_renewer {
    struct hfs_client *client;
    hf_renewal_fn fn;
    void *arg;
    struct hfs_letter *letter;
    struct hfs_exchange *exchange; /* NULL: none is under way */
    struct hfs_timer timer;
    uint64_t generation; /* of the lane, when the stream was opened */
    unsigned member;
    bool is_open, was_open, reopened;
    hf_ms sent_at;
};

static void break_stream(struct hf_renewer *renewer)
{
    hfs_timer_stop(renewer->client->net->world, &renewer->timer);
    hfs_exchange_drop(renewer->exchange);
    renewer->exchange = NULL;
    if (renewer->is_open)
        hfs_client_give_up(renewer->client, HF_LANE_LEASE, renewer->generation);
    renewer->is_open = false;
}

static void on_renewed(const struct hfs_answer *answer, void *arg)
{
    struct hf_renewer *renewer = arg;
    struct hf_renewal renewal = { .err = answer->err,
                                  .message = answer->message,
                                  .sent_at = renewer->sent_at,
                                  .ttl_s = answer->ttl_s,
                                  .reopened = renewer->reopened };

    renewer->exchange = NULL;
    hfs_timer_stop(renewer->client->net->world, &renewer->timer);
    if (answer->err != HF_OK)
        break_stream(renewer);
    else
        renewer->reopened = false;
    renewal.header = (struct hf_etcd_header){ .cluster_id = answer->header.cluster_id,
                                              .member_id = answer->header.member_id,
                                              .revision = answer->header.revision,
                                              .raft_term = answer->header.raft_term };
    renewer->fn(&renewal, renewer->arg);
}

static void on_renewal_timeout(struct hfs_timer *timer)
{
    struct hf_renewer *renewer = OWNER(timer, struct hf_renewer, timer);

    break_stream(renewer);
    renewer->fn(&(struct hf_renewal){ .err = HF_ETIMEOUT,
                                      .message = "no answer within the attempt's time",
                                      .sent_at = renewer->sent_at },
                renewer->arg);
}

static int new_renewer(void *self, int64_t lease, hf_renewal_fn fn, void *arg,
                       struct hf_renewer **ret_renewer)
{
    struct hfs_client *client = self;
    struct hf_renewer *renewer = hfs_alloc(sizeof *renewer);
    struct hfs_request request = { .kind = HFS_RENEW };

    request.lease = lease;
    *renewer = (struct hf_renewer){ .client = client,
                                    .fn = fn,
                                    .arg = arg,
                                    .letter = hfs_letter_new(&request, client->net->world->now),
                                    .timer = { .fn = on_renewal_timeout,
                                               .process = client->process } };
    *ret_renewer = renewer;
    return HF_OK;
}

static int send_renewal(struct hf_renewer *renewer, hf_ms timeout)
{
    struct hfs_client *client = renewer->client;

    if (hfs_timer_is_armed(&renewer->timer))
        return HF_EAGAIN;
    if (!renewer->is_open) {
        renewer->member = hfs_client_endpoint(client, HF_LANE_LEASE, &renewer->generation);
        renewer->reopened = renewer->was_open;
        renewer->is_open = renewer->was_open = true;
    }
    renewer->sent_at = now(client);
    if (!client->dead)
        renewer->exchange = hfs_net_send(client->net, client->process, renewer->member,
                                         renewer->letter, on_renewed, renewer);
    hfs_timer_start(client->net->world, &renewer->timer,
                    client->net->world->now + (timeout > 0 ? timeout : 1));
    return HF_OK;
}

static hf_ms get_renewal_sent_at(const struct hf_renewer *renewer)
{
    return renewer->sent_at;
}

static void close_renewer(struct hf_renewer *renewer)
{
    if (renewer == NULL)
        return;
    renewer->is_open = false; /* its endpoint is as good as any */
    break_stream(renewer);
    hfs_letter_unref(renewer->letter);
    free(renewer);
}

/* Surveys. */

struct hf_survey {
    struct hfs_client *client;
    hf_survey_fn fn;
    void *arg;
    struct hfs_timer timer;
    struct hfs_exchange *exchanges[HFS_MEMBERS];
    struct hf_etcd_header highest;
    unsigned answers;
    bool differ;
};

static void free_survey(struct hf_survey *survey)
{
    hfs_timer_stop(survey->client->net->world, &survey->timer);
    for (size_t i = 0; i < HFS_MEMBERS; i++)
        hfs_exchange_drop(survey->exchanges[i]);
    free(survey);
}

static void conclude(struct hf_survey *survey)
{
    struct hf_survey_result result = { .result = { .message = "", .header = survey->highest } };
    hf_survey_fn fn = survey->fn;
    void *arg = survey->arg;

    result.no_space = hfs_etcd_get_faults(survey->client->net->etcd)->no_space;
    result.agrees = survey->answers == HFS_MEMBERS && !survey->differ;
    if (survey->answers == 0) {
        result.result.err = HF_ETIMEOUT;
        result.result.message = "no member answers";
    }
    free_survey(survey);
    fn(&result, arg);
}

static void on_survey_timeout(struct hfs_timer *timer)
{
    conclude(OWNER(timer, struct hf_survey, timer));
}

static void on_surveyed(struct hf_survey *survey, unsigned member,
                        const struct hfs_answer *answer)
{
    survey->exchanges[member] = NULL;
    if (answer->err != HF_OK)
        return; /* it is not counted; the others have their time */
    if (survey->answers > 0 && answer->header.raft_term != survey->highest.raft_term)
        survey->differ = true;
    if (answer->header.raft_term >= survey->highest.raft_term)
        survey->highest = (struct hf_etcd_header){ .cluster_id = answer->header.cluster_id,
                                                   .member_id = answer->header.member_id,
                                                   .revision = answer->header.revision,
                                                   .raft_term = answer->header.raft_term };
    if (++survey->answers == HFS_MEMBERS)
        conclude(survey);
}

static void on_first(const struct hfs_answer *answer, void *arg)
{
    on_surveyed(arg, 0, answer);
}

static void on_second(const struct hfs_answer *answer, void *arg)
{
    on_surveyed(arg, 1, answer);
}

static void on_third(const struct hfs_answer *answer, void *arg)
{
    on_surveyed(arg, 2, answer);
}

static int start_survey(void *self, hf_survey_fn fn, void *arg, struct hf_survey **ret_survey)
{
    static const hfs_exchange_fn ANSWERS[HFS_MEMBERS] = { on_first, on_second, on_third };
    struct hfs_client *client = self;
    struct hf_survey *survey = hfs_alloc(sizeof *survey);
    struct hfs_request request = { .kind = HFS_RANGE };
    struct hfs_letter *letter;

    request.op.range.range.key = bytes_of("survey");
    request.op.range.count_only = true;
    letter = hfs_letter_new(&request, client->net->world->now);
    *survey =
        (struct hf_survey){ .client = client,
                            .fn = fn,
                            .arg = arg,
                            .timer = { .fn = on_survey_timeout, .process = client->process } };
    for (unsigned i = 0; i < HFS_MEMBERS && !client->dead; i++)
        survey->exchanges[i] =
            hfs_net_send(client->net, client->process, i, letter, ANSWERS[i], survey);
    hfs_letter_unref(letter);
    hfs_timer_start(client->net->world, &survey->timer, client->net->world->now + SURVEY_MS);
    *ret_survey = survey;
    return HF_OK;
}

static int open_mirror(void *self, const struct hf_mirror_config *cfg,
                       struct hf_mirror **ret_mirror, struct hf_error *err)
{
    struct hfs_client *client = self;

    return hf_mirror_new(&client->etcd, cfg, ret_mirror, err);
}

static hf_ms get_mirror_heard_at(const struct hf_mirror *mirror)
{
    return hf_mirror_get_stats(mirror).heard_at;
}

static const struct hf_backend_ops OPS = {
    .now = now,
    .wall = wall,
    .random = draw,
    .set_alarm = set_alarm,
    .unset_alarm = unset_alarm,
    .txn = start_txn,
    .range = start_range,
    .grant = start_grant,
    .revoke = start_revoke,
    .ttl = start_ttl,
    .cancel = hf_call_cancel,
    .list = start_list,
    .cancel_list = hf_list_cancel,
    .survey = start_survey,
    .cancel_survey = free_survey,
    .new_renewer = new_renewer,
    .send_renewal = send_renewal,
    .give_up_renewal = break_stream,
    .get_renewal_sent_at = get_renewal_sent_at,
    .close_renewer = close_renewer,
    .open_mirror = open_mirror,
    .tell_mirror = hf_mirror_on_write,
    .get_mirror_heard_at = get_mirror_heard_at,
    .close_mirror = hf_mirror_close,
};

struct hf_backend hfs_client_backend(struct hfs_client *client)
{
    return (struct hf_backend){ .ops = &OPS, .self = client };
}
