#include "sim/history.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/plan.h"
#include "schema/json.h"
#include "sim/check_private.h"

enum {
    MOST_CONTROLLERS = 16,
    LEASE_S = 1000000, /* of the model's leases: here they end when the history says so */
    ROUNDING_MS = 2,   /* of two clocks in milliseconds */
};

struct controller {
    struct hfs_process process;
    char name[HFS_NAME];
};

struct hfs_history {
    struct hfs_world world;
    struct hfs_etcd *etcd;
    struct hfs_check *check;
    char ns[HFS_NAME];
    struct hfs_process agentd, person, nobody; /* `nobody` is some controller without a name */
    struct controller controllers[MOST_CONTROLLERS];
    size_t controller_count;
};

/* A change of the revision that is being told. */
struct told {
    const struct hfs_event *event;
    struct hf_key key;
    ProtobufCMessage *record; /* owned; NULL: there is none, or nobody can read it */
    char scratch[HF_KEY_SIZE];
};

/* Who wrote it. */
struct authorship {
    bool wrote[3]; /* by enum hf_writer */
    hf_ms decided_wall;
    const char *name; /* of a controller, or NULL */
};

hf_ms hfs_history_id_wall(const char *id)
{
    static const char ALPHABET[] = "0123456789abcdefghjkmnpqrstvwxyz";
    uint64_t bits = 0;

    if (strlen(id) != HF_ID_LEN)
        return -1;
    for (size_t i = 0; i < 10; i++) { /* 50 bits, of which the first two are zero */
        const char *at = strchr(ALPHABET, id[i]);

        if (at == NULL)
            return -1;
        bits = bits << 5 | (uint64_t)(at - ALPHABET);
    }
    return (hf_ms)bits;
}

/* Life. */

static void init_process(struct hfs_history *h, struct hfs_process *process, enum hfs_role role,
                         const char *name)
{
    hfs_process_init(process, &h->world, name);
    process->role = role;
}

struct hfs_history *hfs_history_new(const char *ns, const struct hf_recover_policy *recover,
                                    const struct hf_restart_policy *restart)
{
    struct hfs_history *h = hfs_alloc(sizeof *h);

    (void)snprintf(h->ns, sizeof h->ns, "%s", ns);
    hfs_world_init(&h->world, 1);
    hfs_must(hfs_etcd_new(&(struct hfs_etcd_config){ .seed = 1 }, &h->etcd));
    h->check = hfs_check_new(&h->world, h->etcd, h->ns);
    hfs_check_set_watched(h->check, recover, restart);
    init_process(h, &h->agentd, HFS_AGENTD, "an agentd");
    init_process(h, &h->person, HFS_PERSON, "a person");
    init_process(h, &h->nobody, HFS_CONTROLLER, "a controller");
    return h;
}

void hfs_history_free(struct hfs_history *h)
{
    if (h == NULL)
        return;
    hfs_check_free(h->check);
    hfs_etcd_free(h->etcd);
    hfs_world_done(&h->world);
    free(h);
}

void hfs_history_set_running_max(struct hfs_history *h, uint32_t running_max)
{
    hfs_check_set_running_max(h->check, running_max);
}

const char *hfs_history_get_violation(const struct hfs_history *h)
{
    return hfs_check_get_violation(h->check);
}

struct hfs_check_counts hfs_history_get_counts(const struct hfs_history *h)
{
    return hfs_check_get_counts(h->check);
}

/* Records. */

static ProtobufCMessage *decode(const struct hf_key *key, const void *value, size_t len)
{
    const ProtobufCMessageDescriptor *type = hf_key_get_record(key->kind);
    ProtobufCMessage *record = NULL;

    if (type == NULL || hf_json_decode(type, value, len, NULL, &record, NULL) != HF_OK)
        return NULL;
    return record;
}

/* False for a key that none is, which the checker will say. */
static bool read_change(struct hfs_history *h, const struct hfs_event *event,
                        struct told *ret_told)
{
    ret_told->event = event;
    ret_told->record = NULL;
    if (hf_key_parse(h->ns, event->kv.key, ret_told->scratch, &ret_told->key, NULL) != HF_OK)
        return false;
    if (!event->deleted)
        ret_told->record = decode(&ret_told->key, event->kv.value.data, event->kv.value.len);
    return true;
}

/* Authors. */

static void note_op_ids(struct hfs_history *h, const struct told *told,
                        struct authorship *author)
{
    const struct hfs_entry *entry =
        hfs_store_get(hfs_etcd_get_store(h->etcd), told->event->kv.key);
    ProtobufCMessage *old =
        entry != NULL ? decode(&told->key, entry->value, entry->value_len) : NULL;

    for (enum hf_writer w = HF_WRITER_OWNER; w <= HF_WRITER_OPERATOR; w++) {
        const char *now = hf_plan_find_op_id(told->record, w);
        const char *before = old != NULL ? hf_plan_find_op_id(old, w) : NULL;

        if (now == NULL || (before != NULL && strcmp(now, before) == 0))
            continue;
        author->wrote[w] = true;
        if (w == HF_WRITER_CONTROLLER)
            author->decided_wall = hfs_history_id_wall(now);
    }
    if (old != NULL)
        hf_json_free(old);
}

static struct hfs_process *get_controller(struct hfs_history *h, const char *name)
{
    for (size_t i = 0; i < h->controller_count; i++) {
        if (strcmp(h->controllers[i].name, name) == 0)
            return &h->controllers[i].process;
    }
    return NULL;
}

static struct hfs_process *add_controller(struct hfs_history *h, const char *name)
{
    struct hfs_process *known = get_controller(h, name);
    struct controller *controller;

    if (known != NULL)
        return known;
    if (h->controller_count == MOST_CONTROLLERS)
        hfs_die("controllers", HF_ELIMIT);
    controller = &h->controllers[h->controller_count++];
    (void)snprintf(controller->name, sizeof controller->name, "%s", name);
    init_process(h, &controller->process, HFS_CONTROLLER, controller->name);
    return &controller->process;
}

/* The audit trail names controllers, who have led by then, and persons. */
static void note_event(struct hfs_history *h, const Holdfast__V1__Event *event,
                       struct authorship *author)
{
    if (get_controller(h, event->actor) == NULL) {
        author->wrote[HF_WRITER_OPERATOR] = true;
        return;
    }
    author->wrote[HF_WRITER_CONTROLLER] = true;
    author->decided_wall = hfs_history_id_wall(event->correlation_id);
    author->name = event->actor;
}

static void note_author(struct hfs_history *h, const struct told *told,
                        struct authorship *author)
{
    if (told->record == NULL) {
        author->wrote[HF_WRITER_OWNER] |=
            told->event->deleted && !hf_key_is_ephemeral(told->key.kind);
        return;
    }
    note_op_ids(h, told, author);
    if (told->key.kind == HF_KEY_EVENT)
        note_event(h, (const Holdfast__V1__Event *)told->record, author);
    else if (told->key.kind == HF_KEY_CLOCK)
        author->name = ((const Holdfast__V1__Clock *)told->record)->leader;
    else if (told->key.kind == HF_KEY_HOST_LIVE)
        author->wrote[HF_WRITER_OWNER] = true;
}

/* Whoever leads, where nothing says who it was. */
static const struct hfs_process *guess_controller(struct hfs_history *h)
{
    const struct c_lease *lease = hfs_check_find_lease(h->check, h->check->leader_lease);

    return lease != NULL ? lease->owner : &h->nobody;
}

/* NULL: etcd itself. */
static const struct hfs_process *find_writer(struct hfs_history *h,
                                             const struct authorship *author)
{
    if (author->wrote[HF_WRITER_CONTROLLER])
        return author->name != NULL ? add_controller(h, author->name) : guess_controller(h);
    if (author->wrote[HF_WRITER_OPERATOR])
        return &h->person;
    return author->wrote[HF_WRITER_OWNER] ? &h->agentd : NULL;
}

/* The model. */

static void serve(struct hfs_history *h, const struct hfs_request *request)
{
    struct hfs_answer *answer = NULL;
    int leader = hfs_etcd_get_leader(h->etcd);
    int fate =
        leader >= 0 ? hfs_etcd_serve(h->etcd, (unsigned)leader, request, &answer) : HF_EAGAIN;

    if (fate != HFS_ANSWERED || answer->err != HF_OK)
        hfs_die("the model does not take what etcd took", fate < 0 ? fate : HF_EINVAL);
    free(answer);
}

static void note_lease(struct hfs_history *h, const struct told *told)
{
    struct hfs_request request = { .kind = HFS_GRANT };
    const struct hfs_process *owner = &h->agentd;
    int64_t lease = told->event->kv.lease;

    if (lease == 0)
        return;
    if (told->key.kind == HF_KEY_LEADER && told->record != NULL)
        owner = add_controller(h, ((const Holdfast__V1__Leader *)told->record)->id);
    request.lease = lease;
    request.ttl_s = LEASE_S;
    if (!hfs_etcd_has_lease(h->etcd, lease))
        serve(h, &request);
    hfs_check_lease(h->check, lease, owner);
}

static void copy_revision(struct hfs_history *h, const struct hfs_event *events, size_t count)
{
    struct hfs_op *ops = hfs_alloc((count + 1) * sizeof *ops);
    struct hfs_request request = { .kind = HFS_TXN };

    for (size_t i = 0; i < count; i++) {
        const struct hfs_kv *kv = &events[i].kv;

        ops[i].kind = events[i].deleted ? HFS_DELETE : HFS_PUT;
        if (events[i].deleted)
            ops[i].erase = (struct hfs_range){ .key = kv->key };
        else
            ops[i].put = (struct hfs_put_request){ kv->key, kv->value, kv->lease };
    }
    request.txn.then = (struct hfs_ops){ ops, count };
    serve(h, &request);
    free(ops);
}

/* The copy has what etcd had: nothing was left out. */
static void judge_copy(struct hfs_history *h, const struct hfs_seen *seen,
                       const struct hfs_event *events, size_t count)
{
    const struct hfs_store *store = hfs_etcd_get_store(h->etcd);

    if (store->revision != seen->revision)
        hfs_check_violate(h->check, "history: revision %lld comes where %lld was expected",
                          (long long)seen->revision, (long long)store->revision);
    for (size_t i = 0; i < count; i++) {
        const struct hfs_kv *kv = &events[i].kv;
        const struct hfs_entry *entry = hfs_store_get(store, kv->key);

        if (!events[i].deleted &&
            (entry == NULL || entry->version != kv->version ||
             entry->create_rev != kv->create_rev || entry->mod_rev != kv->mod_rev))
            hfs_check_violate(h->check, "history: something of %.*s was not told",
                              (int)kv->key.len, (const char *)kv->key.data);
    }
}

/* A process begins when it is registered for the first time. */
static void note_begun(struct hfs_history *h, const struct told *told)
{
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)told->record;

    if (told->key.kind == HF_KEY_AGENT_LIVE && live != NULL &&
        !hfs_check_has_begun(h->check, live->instance_id))
        hfs_check_begins(h->check, told->key.name, live->instance_id,
                         told->event->kv.create_rev);
}

static void judge_revision(struct hfs_history *h, const struct hfs_seen *seen,
                           const struct authorship *author)
{
    struct hfs_request request = { .kind = HFS_PUT }; /* not a Txn that could come twice */
    struct hfs_letter letter = { .refs = 1, .request = &request, .made_at = seen->before };

    h->world.now = seen->before + ROUNDING_MS;
    hfs_check_set_slack(h->check, seen->before - seen->after + 2 * (hf_ms)ROUNDING_MS);
    if (author->decided_wall > 0 && author->decided_wall - seen->wall_ahead < letter.made_at)
        letter.made_at = author->decided_wall - seen->wall_ahead;
    const struct hfs_process *writer = find_writer(h, author);
    hfs_check_served(h->check, writer, &letter, &(struct hfs_answer){ 0 });
    hfs_check_commit(h->check, writer);
    h->check->letter = NULL;
    if (seen->excused)
        h->check->violation[0] = '\0';
}

void hfs_history_add(struct hfs_history *h, const struct hfs_seen *seen,
                     const struct hfs_event *events, size_t count)
{
    struct told *told = hfs_alloc((count + 1) * sizeof *told);
    struct authorship author = { .decided_wall = -1 };
    size_t known = 0;

    for (size_t i = 0; i < count; i++)
        known += read_change(h, &events[i], &told[known]);
    for (size_t i = 0; i < known; i++) {
        note_author(h, &told[i], &author);
        note_lease(h, &told[i]);
    }
    copy_revision(h, events, count);
    judge_copy(h, seen, events, count);
    judge_revision(h, seen, &author);
    for (size_t i = 0; i < known; i++) {
        note_begun(h, &told[i]);
        if (told[i].record != NULL)
            hf_json_free(told[i].record);
    }
    free(told);
}
