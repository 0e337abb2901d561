#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "io/runner_private.h"
#include "schema/json.h"

enum { REOPEN_MS = 1000, LOOK_AGAIN_MS = 10000 };

/* Reading keys. */

int hf_runner_decode(struct hf_runner *runner, const struct hf_kv *kv,
                     char scratch[HF_KEY_SIZE], struct hf_fleet_change *ret_change,
                     struct hf_error *ret_why)
{
    const ProtobufCMessageDescriptor *type;
    struct hf_fleet_change change = { .seen = { .create_rev = kv->create_rev,
                                                .mod_rev = kv->mod_rev,
                                                .lease = kv->lease,
                                                .text = kv->value },
                                      .at = hf_runner_now(runner) };
    int err = hf_key_parse(runner->cfg.ns, kv->key, scratch, &change.key, ret_why);

    if (err != HF_OK)
        return err;
    type = hf_key_get_record(change.key.kind);
    if (type == NULL)
        return hf_error_set(ret_why, HF_EINVAL, "a body, where only records belong");
    err = hf_json_decode(type, kv->value.data, kv->value.len, NULL, &change.record, ret_why);
    if (err != HF_OK)
        return err == HF_ENOMEM ? err : HF_EINVAL;
    *ret_change = change;
    return HF_OK;
}

/* The key as a person may read it: without the prefix, and with a mark for what is no
 * character. */
static void show_key(const struct hf_runner *runner, struct hf_bytes key, char out[HF_KEY_SIZE])
{
    int prefix = hf_key_prefix(runner->cfg.ns, HF_KEY_IN_NAMESPACE, NULL, out, NULL);
    const char *bytes = key.data;
    size_t from = 0, len;

    if (prefix > 0 && (size_t)prefix <= key.len && memcmp(bytes, out, (size_t)prefix) == 0)
        from = (size_t)prefix;
    len = key.len - from < HF_KEY_SIZE - 1 ? key.len - from : HF_KEY_SIZE - 1;
    memcpy(out, bytes + from, len);
    out[len] = '\0';
    for (char *c = out; c < out + len; c++) {
        if (*c < ' ' || *c > '~')
            *c = '?';
    }
}

int hf_runner_tell_bad(struct hf_runner *runner, const struct hf_kv *kv, const char *why)
{
    struct hf_event event = { .kind = HF_EVENT_BAD };
    char scratch[HF_KEY_SIZE], text[HF_KEY_SIZE];

    if (hf_key_parse(runner->cfg.ns, kv->key, scratch, &event.bad.key, NULL) != HF_OK)
        event.bad.key = (struct hf_key){ .kind = HF_KEY_KINDS };
    show_key(runner, kv->key, text);
    event.bad.seen = (struct hf_seen){ .create_rev = kv->create_rev,
                                       .mod_rev = kv->mod_rev,
                                       .lease = kv->lease,
                                       .text = kv->value };
    event.bad.text = text;
    event.bad.why = why;
    runner->stats.bad++;
    return hf_runner_step(runner, &event);
}

/* Telling. */

static int tell_put(struct hf_runner *runner, const struct hf_kv *kv)
{
    struct hf_event event = { .kind = HF_EVENT_CHANGE };
    struct hf_error why = { "" };
    char scratch[HF_KEY_SIZE];
    int err = hf_runner_decode(runner, kv, scratch, &event.change, &why);

    if (err == HF_EINVAL)
        return hf_runner_tell_bad(runner, kv, why.text);
    if (err != HF_OK)
        return err;
    err = hf_runner_step(runner, &event);
    if (err == HF_ENOMEM)
        hf_json_free(event.change.record); /* it was not taken */
    return err;
}

/* Nothing ever followed from a key that makes no sense, so nothing follows from its end. */
static int tell_delete(struct hf_runner *runner, const struct hf_mirror_event *told)
{
    struct hf_event event = { .kind = HF_EVENT_CHANGE };
    char scratch[HF_KEY_SIZE];

    if (hf_key_parse(runner->cfg.ns, told->kv.key, scratch, &event.change.key, NULL) != HF_OK)
        return HF_OK;
    event.change.seen.mod_rev = told->revision;
    event.change.at = hf_runner_now(runner);
    return hf_runner_step(runner, &event);
}

static int tell_reset(struct hf_runner *runner)
{
    runner->stats.synced = false;
    hf_runner_spread_reset(runner);
    return hf_runner_step(runner, &(struct hf_event){ .kind = HF_EVENT_RESET });
}

static int tell(struct hf_runner *runner, const struct hf_mirror_event *told)
{
    int err = HF_OK;

    switch (told->kind) {
    case HF_MIRROR_PUT:
        hf_runner_on_revision(runner, told->kv.mod_rev);
        return tell_put(runner, &told->kv);
    case HF_MIRROR_DELETE:
        hf_runner_on_revision(runner, told->revision);
        return tell_delete(runner, told);
    case HF_MIRROR_RESET: return tell_reset(runner);
    case HF_MIRROR_SYNCED:
        err = hf_runner_step(
            runner, &(struct hf_event){ .kind = HF_EVENT_SYNCED, .revision = told->revision });
        runner->stats.synced = err == HF_OK;
        break;
    }
    return err;
}

static void on_event(const struct hf_mirror_event *event, void *arg)
{
    struct hf_runner *runner = arg;

    if (runner->closing)
        return;
    if (tell(runner, event) == HF_ENOMEM)
        hf_runner_forget(runner, event->kind == HF_MIRROR_RESET, REOPEN_MS);
}

/* A mirror that lacks memory, or has more to follow than it may, may have told one half of what
 * a Txn did. It would tell the other half after the next list; until then nothing may be
 * decided on the first, and the memory is free for what else there is to do. */
static void on_trouble(int err, const char *message, hf_ms retry_in, void *arg)
{
    struct hf_runner *runner = arg;

    (void)retry_in;
    hf_runner_complain(runner, "watch", err, message);
    if (!runner->closing && (err == HF_ENOMEM || err == HF_ELIMIT))
        hf_runner_forget(runner, false, err == HF_ENOMEM ? REOPEN_MS : LOOK_AGAIN_MS);
}

/* Life of the mirror. */

/* What is told from now on is another copy, of the same etcd: should that be restored just
 * then, the next mirror has to notice, as this one would have. */
void hf_runner_forget(struct hf_runner *runner, bool by_reset, hf_ms pause)
{
    runner->backend.ops->close_mirror(runner->mirror);
    runner->mirror = NULL;
    if (by_reset)
        hf_recall_forget(&runner->past);
    runner->open_at = hf_runner_now(runner) + pause;
    runner->voided = true;
    runner->voided_by_reset |= by_reset;
    runner->stats.synced = false;
    runner->stats.forgets++;
    hf_runner_soon(runner);
}

/* The ranges as a mirror wants them, with room for their keys. */
struct ranges {
    struct hf_intent_read wanted[HF_DECIDER_RANGES];
    struct hf_key_range ranges[HF_DECIDER_RANGES];
    char texts[HF_DECIDER_RANGES][HF_KEY_SIZE];
};

static int fill_range(const struct hf_runner *runner, struct ranges *all, size_t i,
                      struct hf_error *err)
{
    const struct hf_intent_read *wanted = &all->wanted[i];
    int len =
        wanted->whole_scope
            ? hf_key_prefix(runner->cfg.ns, wanted->scope, wanted->name, all->texts[i], err)
            : hf_key_format(runner->cfg.ns, &wanted->key, all->texts[i], err);

    if (len < 0)
        return len;
    all->ranges[i] =
        (struct hf_key_range){ .key = { .data = all->texts[i], .len = (size_t)len },
                               .prefix = wanted->whole_scope };
    return HF_OK;
}

static int open_mirror(struct hf_runner *runner, struct hf_error *err)
{
    const struct hf_decider *decider = &runner->cfg.decider;
    struct ranges *all = hf_calloc(1, sizeof *all);
    struct hf_mirror_config cfg = { .on_event = on_event,
                                    .on_trouble = on_trouble,
                                    .arg = runner,
                                    .past = &runner->past,
                                    .keys_max = runner->cfg.keys_max };
    int code = HF_OK;

    if (all == NULL)
        return hf_error_set(err, HF_ENOMEM, "out of memory");
    cfg.range_count = decider->ops->get_ranges(decider->self, all->wanted);
    for (size_t i = 0; i < cfg.range_count && code == HF_OK; i++)
        code = fill_range(runner, all, i, err);
    cfg.ranges = all->ranges;
    if (code == HF_OK)
        code =
            runner->backend.ops->open_mirror(runner->backend.self, &cfg, &runner->mirror, err);
    free(all);
    return code;
}

static uint64_t version_of(const struct hf_runner *runner)
{
    const struct hf_decider *decider = &runner->cfg.decider;

    return decider->ops->get_ranges_version != NULL
               ? decider->ops->get_ranges_version(decider->self)
               : 0;
}

void hf_runner_follow(struct hf_runner *runner, hf_ms now)
{
    struct hf_error err = { "" };
    uint64_t version = version_of(runner);
    int code;

    if (runner->mirror != NULL && version != runner->ranges_version)
        hf_runner_forget(runner, false, 0); /* which the next turn tells before it opens */
    if (runner->mirror != NULL || runner->voided || now < runner->open_at)
        return;
    code = open_mirror(runner, &err);
    if (code == HF_OK) {
        runner->ranges_version = version;
        return;
    }
    runner->mirror = NULL;
    runner->open_at = now + REOPEN_MS;
    hf_runner_complain(runner, "watch", code, err.text);
}
