#include "support/script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

/* Removes a node of a list whose `next` is named so. */
#define UNLINK(list, node)                                                                     \
    do {                                                                                       \
        __typeof__(node) *link_ = &(list);                                                     \
        while (*link_ != (node))                                                               \
            link_ = &(*link_)->next;                                                           \
        *link_ = (node)->next;                                                                 \
    } while (0)

#define APPEND(list, node)                                                                     \
    do {                                                                                       \
        __typeof__(node) *link_ = &(list);                                                     \
        while (*link_ != NULL)                                                                 \
            link_ = &(*link_)->next;                                                           \
        *link_ = (node);                                                                       \
    } while (0)

static struct hf_etcd_result result_of(const struct hft_script *script, int err, hf_ms sent_at)
{
    return (struct hf_etcd_result){
        .err = err,
        .message = err == HF_OK            ? ""
                   : script->words != NULL ? script->words
                                           : hf_err_text(err),
        .sent_at = sent_at,
        .header = { .cluster_id = 1,
                    .member_id = 1,
                    .raft_term = err == HF_OK ? 2 : 0,
                    .revision = err == HF_OK ? script->revision : 0 },
    };
}

static void copy_text(char *out, size_t size, struct hf_bytes text)
{
    (void)snprintf(out, size, "%.*s", (int)text.len, (const char *)text.data);
}

/* Time and chance. */

static hf_ms get_now(void *self)
{
    return ((struct hft_script *)self)->now;
}

static hf_ms get_wall(void *self)
{
    return 1700000000000 + ((struct hft_script *)self)->now;
}

static int get_random(void *self, void *out, size_t len)
{
    struct hft_script *script = self;

    for (size_t i = 0; i < len; i++) {
        script->random = script->random * 6364136223846793005u + 1442695040888963407u;
        ((uint8_t *)out)[i] = (uint8_t)(script->random >> 56);
    }
    return HF_OK;
}

static void set_alarm(void *self, struct hf_alarm *alarm, hf_ms at)
{
    hf_alarms_set(&((struct hft_script *)self)->alarms, alarm, at);
}

static void unset_alarm(void *self, struct hf_alarm *alarm)
{
    (void)self;
    hf_alarms_unset(alarm);
}

/* Requests. */

static struct hf_call *new_call(struct hft_script *script, void *arg)
{
    struct hf_call *call = hf_calloc(1, sizeof *call);

    if (call == NULL)
        return NULL;
    call->script = script;
    call->arg = arg;
    call->sent_at = script->now;
    APPEND(script->calls, call);
    return call;
}

static bool is_leader_key(const struct hft_script *script, const char *key)
{
    return script->leader_key != NULL && strcmp(key, script->leader_key) == 0;
}

/* Whether keys are still there: it deletes one that nobody has. */
static bool is_look(const struct hf_backend_txn *txn)
{
    static const char NOTHING[] = "/nothing";
    const char *key = txn->write_count == 1 ? txn->writes[0].key : "";
    size_t len = strlen(key), end = sizeof NOTHING - 1;

    return len > end && strcmp(key + len - end, NOTHING) == 0;
}

static int start_txn(void *self, const struct hf_backend_txn *txn, hf_txn_fn fn, void *arg,
                     struct hf_call **ret_call)
{
    struct hft_script *script = self;
    struct hf_call *call = new_call(script, arg);

    if (call == NULL)
        return HF_ENOMEM;
    call->kind = HFT_CALL_TXN;
    call->fn.txn = fn;
    call->guards = txn->guard_count;
    call->writes = is_look(txn) ? 0 : txn->write_count;
    copy_text(call->key, sizeof call->key,
              hf_bytes_of(call->writes > 0 ? txn->writes[0].key : txn->guards[0].key));
    call->by_itself = call->writes == 0 || is_leader_key(script, call->key);
    if (call->writes > 0 && txn->writes[0].value != NULL)
        call->lease = txn->writes[0].lease;
    script->looks += call->writes == 0;
    *ret_call = call;
    return HF_OK;
}

static int start_range(void *self, const struct hf_range_request *request, hf_range_fn fn,
                       void *arg, struct hf_call **ret_call)
{
    struct hf_call *call = new_call(self, arg);

    if (call == NULL)
        return HF_ENOMEM;
    call->kind = HFT_CALL_RANGE;
    call->fn.range = fn;
    copy_text(call->key, sizeof call->key, request->range.key);
    call->by_itself = is_leader_key(self, call->key);
    *ret_call = call;
    return HF_OK;
}

static int start_grant(void *self, int64_t id, int64_t ttl_s, hf_grant_fn fn, void *arg,
                       struct hf_call **ret_call)
{
    struct hf_call *call = new_call(self, arg);

    if (call == NULL)
        return HF_ENOMEM;
    call->kind = HFT_CALL_GRANT;
    call->fn.grant = fn;
    call->lease = id;
    call->ttl_s = ttl_s;
    call->by_itself = true;
    *ret_call = call;
    return HF_OK;
}

static int start_revoke(void *self, int64_t id, hf_write_fn fn, void *arg,
                        struct hf_call **ret_call)
{
    struct hf_call *call = new_call(self, arg);

    if (call == NULL)
        return HF_ENOMEM;
    call->kind = HFT_CALL_REVOKE;
    call->fn.write = fn;
    call->lease = id;
    call->by_itself = true;
    *ret_call = call;
    return HF_OK;
}

static int start_ttl(void *self, int64_t id, hf_ttl_fn fn, void *arg, struct hf_call **ret_call)
{
    struct hf_call *call = new_call(self, arg);

    if (call == NULL)
        return HF_ENOMEM;
    call->kind = HFT_CALL_TTL;
    call->fn.ttl = fn;
    call->lease = id;
    copy_text(call->key, sizeof call->key, hf_bytes_of("lease"));
    *ret_call = call;
    return HF_OK;
}

static void cancel(struct hf_call *call)
{
    UNLINK(call->script->calls, call);
    free(call);
}

static int start_list(void *self, const struct hf_range_request *request, hf_range_fn fn,
                      void *arg, struct hf_list **ret_list)
{
    struct hft_script *script = self;
    struct hf_list *list = hf_calloc(1, sizeof *list);

    if (list == NULL)
        return HF_ENOMEM;
    *list = (struct hf_list){ .script = script, .fn = fn, .arg = arg };
    copy_text(list->prefix, sizeof list->prefix, request->range.key);
    APPEND(script->lists, list);
    *ret_list = list;
    return HF_OK;
}

static void cancel_list(struct hf_list *list)
{
    UNLINK(list->script->lists, list);
    free(list);
}

static int start_survey(void *self, hf_survey_fn fn, void *arg, struct hf_survey **ret_survey)
{
    struct hft_script *script = self;
    struct hf_survey *survey = hf_calloc(1, sizeof *survey);

    if (survey == NULL)
        return HF_ENOMEM;
    *survey = (struct hf_survey){ .script = script, .fn = fn, .arg = arg };
    script->survey = survey;
    *ret_survey = survey;
    return HF_OK;
}

static void cancel_survey(struct hf_survey *survey)
{
    survey->script->survey = NULL;
    free(survey);
}

/* Renewals. */

static int new_renewer(void *self, int64_t lease, hf_renewal_fn fn, void *arg,
                       struct hf_renewer **ret_renewer)
{
    struct hft_script *script = self;
    struct hf_renewer *renewer = hf_calloc(1, sizeof *renewer);

    if (renewer == NULL)
        return HF_ENOMEM;
    *renewer = (struct hf_renewer){ .script = script, .lease = lease, .fn = fn, .arg = arg };
    APPEND(script->renewers, renewer);
    *ret_renewer = renewer;
    return HF_OK;
}

static int send_renewal(struct hf_renewer *renewer, hf_ms timeout)
{
    (void)timeout;
    renewer->under_way = true;
    renewer->sent_at = renewer->script->now;
    return HF_OK;
}

static void give_up_renewal(struct hf_renewer *renewer)
{
    renewer->under_way = false;
}

static hf_ms get_renewal_sent_at(const struct hf_renewer *renewer)
{
    return renewer->sent_at;
}

static void close_renewer(struct hf_renewer *renewer)
{
    if (renewer == NULL)
        return;
    UNLINK(renewer->script->renewers, renewer);
    free(renewer);
}

/* Mirrors. */

static int open_mirror(void *self, const struct hf_mirror_config *cfg,
                       struct hf_mirror **ret_mirror, struct hf_error *err)
{
    struct hft_script *script = self;
    struct hf_mirror *mirror = hf_calloc(1, sizeof *mirror);

    if (mirror == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    mirror->script = script;
    mirror->cfg = *cfg;
    copy_text(mirror->first, sizeof mirror->first, cfg->ranges[0].key);
    script->mirrors_opened++;
    APPEND(script->mirrors, mirror);
    *ret_mirror = mirror;
    return HF_OK;
}

static void tell_mirror(struct hf_mirror *mirror, const struct hf_kv *written)
{
    mirror->script->told_rev = written->mod_rev;
    copy_text(mirror->script->told_key, sizeof mirror->script->told_key, written->key);
}

static hf_ms get_mirror_heard_at(const struct hf_mirror *mirror)
{
    return get_now(mirror->script);
}

static void close_mirror(struct hf_mirror *mirror)
{
    if (mirror == NULL)
        return;
    UNLINK(mirror->script->mirrors, mirror);
    free(mirror);
}

static const struct hf_backend_ops OPS = {
    .now = get_now,
    .wall = get_wall,
    .random = get_random,
    .set_alarm = set_alarm,
    .unset_alarm = unset_alarm,
    .txn = start_txn,
    .range = start_range,
    .grant = start_grant,
    .revoke = start_revoke,
    .ttl = start_ttl,
    .cancel = cancel,
    .list = start_list,
    .cancel_list = cancel_list,
    .survey = start_survey,
    .cancel_survey = cancel_survey,
    .new_renewer = new_renewer,
    .send_renewal = send_renewal,
    .give_up_renewal = give_up_renewal,
    .get_renewal_sent_at = get_renewal_sent_at,
    .close_renewer = close_renewer,
    .open_mirror = open_mirror,
    .tell_mirror = tell_mirror,
    .get_mirror_heard_at = get_mirror_heard_at,
    .close_mirror = close_mirror,
};

struct hf_backend hft_script_backend(struct hft_script *script)
{
    return (struct hf_backend){ .ops = &OPS, .self = script };
}

bool hft_script_is_clean(const struct hft_script *script)
{
    return script->alarms.first == NULL && script->calls == NULL && script->lists == NULL &&
           script->renewers == NULL && script->mirrors == NULL && script->survey == NULL;
}

/* Answers. */

void hft_script_answer_txn(struct hf_call *call, bool succeeded, unsigned resent,
                           const struct hf_kv *kv)
{
    struct hft_script *script = call->script;
    struct hf_txn_answer answer = { .kvs = kv, .count = kv != NULL ? 1 : 0 };
    struct hf_txn_result result = { .succeeded = succeeded,
                                    .answers = &answer,
                                    .answer_count = 1 };
    hf_txn_fn fn = call->fn.txn;
    void *arg = call->arg;

    script->revision += succeeded && call->writes > 0;
    result.result = result_of(script, HF_OK, call->sent_at);
    result.result.resent = resent;
    cancel(call);
    fn(&result, arg);
}

void hft_script_fail_txn(struct hf_call *call, int err, bool maybe_applied)
{
    struct hf_txn_result result = { .result = result_of(call->script, err, call->sent_at) };
    hf_txn_fn fn = call->fn.txn;
    void *arg = call->arg;

    result.result.maybe_applied = maybe_applied;
    cancel(call);
    fn(&result, arg);
}

void hft_script_answer_range(struct hf_call *call, int err, const struct hf_kv *kvs,
                             size_t count)
{
    struct hf_range_result result = { .result = result_of(call->script, err, call->sent_at),
                                      .kvs = kvs,
                                      .count = count,
                                      .total = (int64_t)count };
    hf_range_fn fn = call->fn.range;
    void *arg = call->arg;

    cancel(call);
    fn(&result, arg);
}

void hft_script_answer_ttl(struct hf_call *call, int err, const struct hf_bytes *keys,
                           size_t count)
{
    struct hf_ttl_result result = { .result = result_of(call->script, err, call->sent_at),
                                    .ttl_s = 15,
                                    .keys = keys,
                                    .key_count = count };
    hf_ttl_fn fn = call->fn.ttl;
    void *arg = call->arg;

    cancel(call);
    fn(&result, arg);
}

void hft_script_answer_list(struct hf_list *list, int err, const struct hf_kv *kvs,
                            size_t count, bool more)
{
    struct hf_range_result result = { .result = result_of(list->script, err, list->script->now),
                                      .kvs = kvs,
                                      .count = count,
                                      .more = more };
    hf_range_fn fn = list->fn;
    void *arg = list->arg;

    if (!more)
        cancel_list(list);
    fn(&result, arg);
}

static void answer_grant(struct hf_call *call)
{
    struct hf_grant_result result = { .result = result_of(call->script, HF_OK, call->sent_at),
                                      .id = call->lease,
                                      .ttl_s = call->ttl_s };
    hf_grant_fn fn = call->fn.grant;
    void *arg = call->arg;

    cancel(call);
    fn(&result, arg);
}

static void answer_revoke(struct hf_call *call)
{
    struct hf_write_result result = { .result = result_of(call->script, HF_OK, call->sent_at) };
    hf_write_fn fn = call->fn.write;
    void *arg = call->arg;

    call->script->revoked++;
    cancel(call);
    fn(&result, arg);
}

static void answer_by_itself(struct hf_call *call)
{
    struct hft_script *script = call->script;

    switch (call->kind) {
    case HFT_CALL_TXN:
        if (call->writes > 0) /* a campaign, or with no lease a resignation */
            script->leader =
                (struct hf_kv){ .lease = call->lease,
                                .create_rev = call->lease != 0 ? script->revision + 1 : 0 };
        hft_script_answer_txn(call, call->writes > 0 || !script->refute, 0, NULL);
        break;
    case HFT_CALL_GRANT: answer_grant(call); break;
    case HFT_CALL_REVOKE: answer_revoke(call); break;
    case HFT_CALL_RANGE:
        hft_script_answer_range(call, HF_OK, &script->leader, script->leader.create_rev != 0);
        break;
    case HFT_CALL_TTL: break; /* never by itself */
    }
}

static bool answer_one_call(struct hft_script *script)
{
    for (struct hf_call *call = script->calls; call != NULL; call = call->next) {
        if (call->by_itself) {
            answer_by_itself(call);
            return true;
        }
    }
    return false;
}

static bool answer_one_renewal(struct hft_script *script)
{
    for (struct hf_renewer *renewer = script->renewers; renewer != NULL;
         renewer = renewer->next) {
        struct hf_renewal renewal = { .message = "", .sent_at = renewer->sent_at, .ttl_s = 15 };

        if (!renewer->under_way)
            continue;
        renewer->under_way = false;
        renewal.header = result_of(script, HF_OK, script->now).header;
        renewer->fn(&renewal, renewer->arg);
        return true;
    }
    return false;
}

static bool answer_survey(struct hft_script *script)
{
    struct hf_survey *survey = script->survey;
    struct hf_survey_result result = { .result =
                                           result_of(script, script->survey_err, script->now),
                                       .asked = 3,
                                       .answered = script->survey_err == HF_OK ? 3 : 0,
                                       .corrupt = script->survey_corrupt,
                                       .agrees = script->survey_agrees };
    hf_survey_fn fn;
    void *arg;

    if (survey == NULL)
        return false;
    fn = survey->fn;
    arg = survey->arg;
    script->survey = NULL;
    free(survey);
    fn(&result, arg);
    return true;
}

static bool answer_one(struct hft_script *script)
{
    if (script->silent)
        return false;
    return answer_one_call(script) || answer_one_renewal(script) || answer_survey(script);
}

void hft_script_run(struct hft_script *script, hf_ms until)
{
    for (;;) {
        hf_ms next = hf_alarms_get_next(&script->alarms);

        if (answer_one(script))
            continue;
        if (next > until)
            break;
        if (next > script->now)
            script->now = next;
        hf_alarms_ring(&script->alarms, script->now);
    }
    if (until > script->now)
        script->now = until;
}

static bool ends_with(const char *text, const char *end)
{
    size_t len = strlen(text), end_len = strlen(end);

    return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

struct hf_call *hft_script_find(const struct hft_script *script, const char *end)
{
    for (struct hf_call *call = script->calls; call != NULL; call = call->next) {
        if (!call->by_itself && ends_with(call->key, end))
            return call;
    }
    return NULL;
}

size_t hft_script_count(const struct hft_script *script)
{
    size_t count = 0;

    for (const struct hf_call *call = script->calls; call != NULL; call = call->next)
        count += !call->by_itself;
    return count;
}

/* Telling. */

struct hf_mirror *hft_script_mirror(const struct hft_script *script, const char *first)
{
    for (struct hf_mirror *mirror = script->mirrors; mirror != NULL; mirror = mirror->next) {
        if (strcmp(mirror->first, first) == 0)
            return mirror;
    }
    return NULL;
}

void hft_script_tell(struct hf_mirror *mirror, const char *key, const char *value)
{
    struct hf_mirror_event event = { .kind = value != NULL ? HF_MIRROR_PUT : HF_MIRROR_DELETE,
                                     .revision = ++mirror->script->revision };

    event.kv = (struct hf_kv){ .key = hf_bytes_of(key), .mod_rev = event.revision };
    if (value != NULL) {
        event.kv.value = hf_bytes_of(value);
        event.kv.create_rev = event.revision;
        event.kv.version = 1;
    }
    mirror->cfg.on_event(&event, mirror->cfg.arg);
}

void hft_script_sync(struct hf_mirror *mirror)
{
    mirror->cfg.on_event(&(struct hf_mirror_event){ .kind = HF_MIRROR_SYNCED,
                                                    .revision = mirror->script->revision },
                         mirror->cfg.arg);
}

void hft_script_reset(struct hf_mirror *mirror)
{
    mirror->cfg.on_event(&(struct hf_mirror_event){ .kind = HF_MIRROR_RESET }, mirror->cfg.arg);
}
