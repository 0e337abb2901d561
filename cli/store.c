#include "cli/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/id.h"
#include "base/str.h"
#include "etcd/mirror.h"
#include "io/commit.h"
#include "io/connect.h"
#include "schema/json.h"

/* Connection. */

int cli_connect(struct cli *cli)
{
    struct hf_etcd_config cfg = hf_connect_config(&cli->common);
    int rc;

    if (uv_loop_init(&cli->loop) != 0)
        return cli_fail(cli, HF_EIO, "no event loop can be made");
    rc = hf_connect_new(&cli->loop, &cfg, &cli->etcd, &cli->err);
    if (rc != HF_OK) {
        (void)uv_run(&cli->loop, UV_RUN_DEFAULT); /* which lets go of what was opened for it */
        (void)uv_loop_close(&cli->loop);
        return rc;
    }
    rc = hf_backend_etcd_new(&cli->loop, cli->etcd, &cli->backend_etcd);
    if (rc != HF_OK) {
        hf_etcd_close(cli->etcd, NULL, NULL);
        return cli_fail(cli, rc, "%s", hf_err_text(rc));
    }
    cli->backend = hf_backend_etcd_get(cli->backend_etcd);
    cli->connected = true;
    return HF_OK;
}

void cli_disconnect(struct cli *cli)
{
    if (!cli->connected)
        return;
    hf_backend_etcd_close(cli->backend_etcd, NULL, NULL);
    hf_etcd_close(cli->etcd, NULL, NULL);
    (void)uv_run(&cli->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&cli->loop);
    cli->connected = false;
}

static void on_due(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

int cli_wait(struct cli *cli, const bool *done, hf_ms until)
{
    struct hf_clock clock = hf_clock_boottime();
    hf_ms left = until != INT64_MAX ? until - hf_clock_now(&clock) : 0;
    bool late = false;
    uv_timer_t timer = { .data = &late };

    (void)uv_timer_init(&cli->loop, &timer);
    if (until != INT64_MAX)
        (void)uv_timer_start(&timer, on_due, left > 0 ? (uint64_t)left : 0, 0);
    while (!*done && !late)
        (void)uv_run(&cli->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&timer, NULL);
    (void)uv_run(&cli->loop, UV_RUN_NOWAIT); /* which closes it: it is ours, on this stack */
    return *done ? HF_OK : HF_ETIMEOUT;
}

int cli_explain(struct cli *cli, const struct hf_etcd_result *result)
{
    char endpoint[HF_HOST_MAX + 8];

    hf_etcd_get_endpoint(cli->etcd, endpoint, sizeof endpoint);
    switch (result->err) {
    case HF_OK: return HF_OK;
    case HF_EAGAIN:
    case HF_ETIMEOUT:
        return cli_fail(cli, HF_EAGAIN,
                        "etcd at %s does not answer (%s). Is it running? Say where it is with "
                        "--endpoints or HOLDFAST_ENDPOINTS.",
                        endpoint, result->message);
    case HF_EDENIED:
        return cli_fail(
            cli, HF_EDENIED,
            "etcd at %s does not permit this (%s). Use --user with --password-file, "
            "or --cert with --key, of somebody who may.",
            endpoint, result->message);
    default:
        return cli_fail(cli, result->err == HF_EINVAL ? HF_EIO : result->err, "etcd at %s: %s",
                        endpoint, result->message);
    }
}

/* Reading. */

struct reading {
    struct cli *cli;
    bool done;
    int err;
    struct cli_record *record; /* of a single key, or ... */
    struct hf_buf *body;       /* ... its bytes as they are */
    bool found;
    const ProtobufCMessageDescriptor *type;
    cli_list_fn fn; /* of a list */
    void *arg;
};

void cli_record_done(struct cli_record *record)
{
    hf_json_free(record->message);
    free((void *)record->seen.text.data);
    *record = (struct cli_record){ 0 };
}

static struct hf_seen seen_of(const struct hf_kv *kv)
{
    return (struct hf_seen){ .create_rev = kv->create_rev,
                             .mod_rev = kv->mod_rev,
                             .lease = kv->lease,
                             .text = kv->value };
}

static int take_record(struct reading *reading, const struct hf_kv *kv)
{
    struct hf_error why = { "" };
    struct hf_seen seen = seen_of(kv);
    int rc;

    rc = hf_json_decode(reading->type, kv->value.data, kv->value.len, NULL,
                        &reading->record->message, &why);
    if (rc != HF_OK)
        return cli_fail(
            reading->cli, HF_ECORRUPT,
            "%.*s cannot be read: %s. Correct it; etcdctl get --rev shows what it was before",
            (int)kv->key.len, (const char *)kv->key.data, why.text);
    seen.text.data = hf_memdup(kv->value.data, kv->value.len);
    if (seen.text.data == NULL)
        return cli_fail(reading->cli, HF_ENOMEM, "out of memory");
    reading->record->seen = seen;
    return HF_OK;
}

static void on_read(const struct hf_range_result *result, void *arg)
{
    struct reading *reading = arg;

    reading->done = true;
    reading->err = cli_explain(reading->cli, &result->result);
    if (reading->err != HF_OK || result->count == 0)
        return;
    reading->found = true;
    if (reading->record != NULL)
        reading->err = take_record(reading, &result->kvs[0]);
    else
        hf_buf_append(reading->body, result->kvs[0].value.data, result->kvs[0].value.len);
}

static int read_key(struct cli *cli, const struct hf_key *key, struct reading *reading)
{
    struct hf_range_request request = { 0 };
    char text[HF_KEY_SIZE];
    int rc = hf_key_format(cli->common.namespace, key, text, &cli->err);

    if (rc < 0)
        return rc;
    request.range.key = (struct hf_bytes){ .data = text, .len = (size_t)rc };
    rc = hf_etcd_range(cli->etcd, &request, on_read, reading, NULL);
    if (rc != HF_OK)
        return cli_fail(cli, rc, "%s", hf_err_text(rc));
    (void)!cli_wait(cli, &reading->done, INT64_MAX);
    return reading->err;
}

int cli_read_body(struct cli *cli, struct hf_key key, struct hf_buf *out, bool *ret_found)
{
    struct reading reading = { .cli = cli, .body = out };
    int rc = read_key(cli, &key, &reading);

    if (rc == HF_OK)
        *ret_found = reading.found;
    return rc;
}

int cli_read(struct cli *cli, struct hf_key key, struct cli_record *ret_record)
{
    struct cli_record record = { 0 };
    struct reading reading = { .cli = cli,
                               .record = &record,
                               .type = hf_key_get_record(key.kind) };
    int rc = read_key(cli, &key, &reading);

    if (rc != HF_OK)
        cli_record_done(&record);
    else
        *ret_record = record;
    return rc;
}

/* Names it as a person would, without what is no character. */
static void tell_bad(struct cli *cli, const struct hf_kv *kv, const char *why)
{
    cli->bad++;
    if (cli->hushed)
        return;
    (void)fputs("holdfast: warning: ", stderr);
    for (size_t i = 0; i < kv->key.len && i < HF_KEY_SIZE; i++) {
        char c = ((const char *)kv->key.data)[i];

        (void)fputc(c >= ' ' && c <= '~' ? c : '?', stderr);
    }
    (void)fprintf(stderr, " cannot be read and is left out: %s\n", why);
}

static int take_listed(struct reading *reading, const struct hf_kv *kv)
{
    struct cli *cli = reading->cli;
    char scratch[HF_KEY_SIZE];
    struct hf_fleet_change found = { .seen = seen_of(kv) };
    struct hf_error why = { "" };
    const ProtobufCMessageDescriptor *type;
    int rc = hf_key_parse(cli->common.namespace, kv->key, scratch, &found.key, &why);

    type = rc == HF_OK ? hf_key_get_record(found.key.kind) : NULL;
    if (type != NULL)
        rc = hf_json_decode(type, kv->value.data, kv->value.len, NULL, &found.record, &why);
    if (rc == HF_ENOMEM)
        return cli_fail(cli, rc, "out of memory");
    if (type == NULL || rc != HF_OK) {
        tell_bad(cli, kv, why.text);
        return HF_OK;
    }
    rc = reading->fn(&found, reading->arg);
    hf_json_free(found.record);
    return rc;
}

static void on_page(const struct hf_range_result *result, void *arg)
{
    struct reading *reading = arg;

    if (result->result.err != HF_OK && reading->err == HF_OK)
        reading->err = cli_explain(reading->cli, &result->result);
    for (size_t i = 0; i < result->count && reading->err == HF_OK; i++)
        reading->err = take_listed(reading, &result->kvs[i]);
    if (result->result.err == HF_OK && reading->cli->revision == 0)
        reading->cli->revision = result->result.header.revision;
    reading->done = result->result.err != HF_OK || !result->more;
}

int cli_list(struct cli *cli, enum hf_key_scope scope, const char *name, cli_list_fn fn,
             void *arg)
{
    struct reading reading = { .cli = cli, .fn = fn, .arg = arg };
    struct hf_range_request request = { .revision = cli->revision,
                                        .range = { .prefix = true } };
    struct hf_list *list;
    char text[HF_KEY_SIZE];
    int rc = hf_key_prefix(cli->common.namespace, scope, name, text, &cli->err);

    if (rc < 0)
        return rc;
    request.range.key = (struct hf_bytes){ .data = text, .len = (size_t)rc };
    rc = hf_etcd_list(cli->etcd, &request, on_page, &reading, &list);
    if (rc != HF_OK)
        return cli_fail(cli, rc, "%s", hf_err_text(rc));
    (void)!cli_wait(cli, &reading.done, INT64_MAX);
    return reading.err;
}

static void ignore_touched(enum hf_fleet_kind kind, void *object, void *arg)
{
    (void)kind;
    (void)object;
    (void)arg;
}

static int add_to_fleet(struct hf_fleet_change *found, void *arg)
{
    int rc = hf_fleet_apply(arg, found);

    if (rc == HF_OK)
        found->record = NULL;
    return rc;
}

int cli_load_into(struct cli *cli, struct hf_fleet *fleet, enum hf_key_scope scope,
                  const char *name)
{
    return cli_list(cli, scope, name, add_to_fleet, fleet);
}

int cli_load_fleet(struct cli *cli, const enum hf_key_scope *scopes, size_t count,
                   struct hf_fleet **ret_fleet)
{
    struct hf_fleet_config cfg = { .on_touched = ignore_touched };
    struct hf_fleet *fleet;
    int rc = hf_id_random(&cfg.seed, sizeof cfg.seed);

    if (rc != HF_OK)
        return cli_fail(cli, rc, "the kernel gives no random bytes");
    fleet = hf_fleet_new(&cfg);
    if (fleet == NULL)
        return cli_fail(cli, HF_ENOMEM, "out of memory");
    for (size_t i = 0; i < count && rc == HF_OK; i++)
        rc = cli_load_into(cli, fleet, scopes[i], NULL);
    if (rc != HF_OK) {
        hf_fleet_free(fleet);
        return rc;
    }
    *ret_fleet = fleet;
    return HF_OK;
}

/* Following. */

struct following {
    struct cli *cli;
    cli_list_fn fn;
    void *arg;
    bool *done;
    bool over; /* done, or failed */
    bool told; /* that etcd does not answer */
    int err;
};

static void on_mirror(const struct hf_mirror_event *event, void *arg)
{
    struct following *following = arg;
    struct reading reading = { .cli = following->cli,
                               .fn = following->fn,
                               .arg = following->arg };
    struct hf_fleet_change gone = { .seen.mod_rev = event->revision };
    char scratch[HF_KEY_SIZE];

    following->told = false;
    if (following->over)
        return;
    if (event->kind == HF_MIRROR_PUT)
        following->err = take_listed(&reading, &event->kv);
    if (event->kind == HF_MIRROR_DELETE &&
        hf_key_parse(following->cli->common.namespace, event->kv.key, scratch, &gone.key,
                     NULL) == HF_OK)
        following->err = following->fn(&gone, following->arg);
    following->over = following->err != HF_OK || *following->done;
}

static void on_trouble(int err, const char *message, hf_ms retry_in, void *arg)
{
    struct following *following = arg;

    (void)retry_in;
    if (err == HF_EDENIED) {
        following->err =
            cli_fail(following->cli, err, "etcd does not permit this: %s", message);
        following->over = true;
    } else if (!following->told) {
        (void)fprintf(stderr, "holdfast: etcd does not answer (%s); still trying\n", message);
        following->told = true;
    }
}

int cli_follow(struct cli *cli, const struct hf_intent_read *what, cli_list_fn fn, void *arg,
               bool *done, hf_ms until)
{
    struct following following = { .cli = cli, .fn = fn, .arg = arg, .done = done };
    struct hf_key_range range = { .prefix = what->whole_scope };
    struct hf_mirror *mirror;
    char text[HF_KEY_SIZE];
    int rc =
        what->whole_scope
            ? hf_key_prefix(cli->common.namespace, what->scope, what->name, text, &cli->err)
            : hf_key_format(cli->common.namespace, &what->key, text, &cli->err);

    if (rc < 0)
        return rc;
    range.key = (struct hf_bytes){ .data = text, .len = (size_t)rc };
    rc = hf_mirror_new(cli->etcd,
                       &(struct hf_mirror_config){ .ranges = &range,
                                                   .range_count = 1,
                                                   .on_event = on_mirror,
                                                   .on_trouble = on_trouble,
                                                   .arg = &following },
                       &mirror, &cli->err);
    if (rc != HF_OK)
        return rc;
    rc = cli_wait(cli, &following.over, until);
    hf_mirror_close(mirror);
    return rc != HF_OK ? rc : following.err;
}

/* Writing. */

int cli_plan_begin(struct cli *cli, struct hf_plan *plan)
{
    char op_id[HF_ID_LEN + 1];
    int rc = hf_id_new(op_id);

    if (rc != HF_OK)
        return cli_fail(cli, rc, "the kernel gives no random bytes");
    hf_plan_init(plan, cli->common.namespace, HF_WRITER_OPERATOR, op_id);
    return HF_OK;
}

struct writing {
    struct cli *cli;
    bool done;
    int err;
};

static void on_commit(const struct hf_commit_result *result, void *arg)
{
    struct writing *writing = arg;

    writing->done = true;
    switch (result->outcome) {
    case HF_OUTCOME_DONE: writing->err = HF_OK; break;
    case HF_OUTCOME_REFUSED:
        writing->err = cli_fail(writing->cli, HF_ECONFLICT,
                                "somebody else changed it meanwhile. Look again and repeat.");
        break;
    case HF_OUTCOME_UNKNOWN:
        writing->err = cli_fail(writing->cli, HF_EAGAIN,
                                "etcd did not say whether this was done (%s). Look before you "
                                "repeat it.",
                                result->result.message);
        break;
    case HF_OUTCOME_FAILED: writing->err = cli_explain(writing->cli, &result->result); break;
    }
}

/* Whoever may submit and nothing else cannot read it; nor does one that nobody can read keep a
 * person from doing what has to be done. */
static int check_schema(struct cli *cli)
{
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    const Holdfast__V1__Meta *meta;
    int rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_META }, &record);

    if (rc == HF_EAGAIN || rc == HF_ETIMEOUT)
        return rc;
    if (rc != HF_OK)
        cli->err.text[0] = '\0';
    if (record.message == NULL)
        return HF_OK;
    meta = (const Holdfast__V1__Meta *)record.message;
    if (meta->schema_version <= HF_SCHEMA_VERSION)
        return HF_OK;
    return cli_fail(
        cli, HF_EIO,
        "the records in etcd are of version %d, and this program writes version %d: "
        "use a newer one",
        (int)meta->schema_version, HF_SCHEMA_VERSION);
}

int cli_commit(struct cli *cli, struct hf_plan *plan)
{
    struct writing writing = { .cli = cli };
    int rc = hf_plan_check(plan, &cli->err);

    if (rc == HF_OK)
        rc = check_schema(cli);

    if (rc == HF_OK)
        rc = hf_commit_start(&cli->backend, plan, 0, on_commit, &writing, NULL);
    hf_plan_done(plan);
    if (rc != HF_OK)
        return cli->err.text[0] != '\0' ? rc : cli_fail(cli, rc, "%s", hf_err_text(rc));
    (void)!cli_wait(cli, &writing.done, INT64_MAX);
    return writing.err;
}
