#include "sim/teller.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "schema/json.h"

enum { TENTH_MS = 100 };

/* One changed key, as it was and as it is. */
struct change {
    struct hf_key key;
    char scratch[HF_KEY_SIZE];
    const struct hfs_entry *entry;
    ProtobufCMessage *before, *after; /* NULL: it was, or is, not there */
};

/* One revision. */
struct told {
    struct hfs_teller *teller;
    const char *actor;
    bool begun; /* its first line stands */
    struct change *changes;
    size_t count, cap;
};

/* "controller-1" is c1 and "agentd-h1" is h1, as in the script. */
static const char *short_name(const char *name, char text[HFS_TEXT])
{
    if (strncmp(name, "agentd-", 7) == 0)
        (void)snprintf(text, HFS_TEXT, "%s", name + 7);
    else if (strncmp(name, "controller-", 11) == 0)
        (void)snprintf(text, HFS_TEXT, "c%s", name + 11);
    else
        (void)snprintf(text, HFS_TEXT, "%s", name);
    return text;
}

/* Lines. */

static void begin_line(struct hfs_teller *teller, const char *actor)
{
    hf_ms now = teller->cluster->world.now;

    hf_buf_printf(&teller->text, "%6lld.%lld  %-6s  ", (long long)(now / 1000),
                  (long long)(now % 1000 / TENTH_MS), actor);
}

void hfs_teller_say(struct hfs_teller *teller, const char *actor, const char *fmt, ...)
{
    char line[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    begin_line(teller, actor);
    hf_buf_printf(&teller->text, "%s\n", line);
}

/* One clause of the paragraph; only the first line has the time and the actor. */
static void say(struct told *told, const char *fmt, ...) HF_PRINTF(2, 3);
static void say(struct told *told, const char *fmt, ...)
{
    char line[1024];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(line, sizeof line, fmt, args);
    va_end(args);
    if (!told->begun)
        begin_line(told->teller, told->actor);
    else
        hf_buf_printf(&told->teller->text, "%18s", "");
    told->begun = true;
    hf_buf_printf(&told->teller->text, "%s\n", line);
}

void hfs_teller_note(const char *line, void *arg)
{
    struct hfs_teller *teller = arg;
    const char *text = strchr(line, '.');
    const char *end;
    char actor[HFS_TEXT], short_actor[HFS_TEXT];

    text = text != NULL ? strstr(text, "  ") : NULL;
    if (text == NULL || teller->cluster == NULL)
        return; /* the cast comes on */
    text += 2;
    if (*text == ' ' || *text == '(')
        return; /* a detail, or what the script says itself */
    /* The first word is who it is about. */
    end = strchr(text, ' ');
    if (end == NULL)
        return;
    (void)snprintf(actor, sizeof actor, "%.*s", (int)(end - text), text);
    hfs_teller_say(teller, short_name(actor, short_actor), "%s", end + 1);
}

/* Lives. */

static const struct hfs_life *find_life(const struct hfs_teller *teller, const char *agent,
                                        int64_t create_rev)
{
    for (size_t i = teller->count; i-- > 0;) {
        const struct hfs_life *life = &teller->lives[i];

        if (strcmp(life->agent, agent) == 0 &&
            (create_rev == 0 || life->create_rev == create_rev))
            return life;
    }
    return NULL;
}

static const char *life_name(const struct hfs_teller *teller, const char *agent,
                             int64_t create_rev, char text[HFS_TEXT + 16])
{
    const struct hfs_life *life = find_life(teller, agent, create_rev);

    (void)snprintf(text, HFS_TEXT + 16, "%s/%u", agent, life != NULL ? life->number : 0);
    return text;
}

static const char *owner_name(const struct hfs_teller *teller, const Holdfast__V1__Owner *owner,
                              char text[HFS_TEXT + 16])
{
    if (owner == NULL)
        return "nobody";
    return life_name(teller, owner->agent,
                     owner->incarnation != NULL ? owner->incarnation->create_revision : 0,
                     text);
}

/* Words for values. */

static const char *value_name(const ProtobufCEnumDescriptor *type, int value)
{
    const ProtobufCEnumValue *found = protobuf_c_enum_descriptor_get_value(type, value);

    return found != NULL ? found->name : "?";
}

static const char *state_name(const Holdfast__V1__Task *task)
{
    return value_name(&holdfast__v1__task__state__descriptor, (int)task->state);
}

/* " in 59.9s", on the clock of the fleet. */
static const char *in_time(const struct hfs_teller *teller,
                           const Google__Protobuf__Timestamp *at, char text[64])
{
    hf_ms left;
    char duration[40];

    text[0] = '\0';
    if (at == NULL)
        return text;
    left =
        at->seconds * 1000 + at->nanos / 1000000 - HFS_WALL_BEGIN - teller->cluster->world.now;
    left = (left + TENTH_MS / 2) / TENTH_MS * TENTH_MS;
    (void)hf_format_duration(left, duration, sizeof duration);
    (void)snprintf(text, 64, left > 0 ? " in %s" : " now", duration);
    return text;
}

static void say_next(struct told *told, const Holdfast__V1__Next *next)
{
    char time[64];

    if (next != NULL && next->what[0] != '\0')
        say(told, "  next: %s%s", next->what, in_time(told->teller, next->at, time));
}

static void say_evidence(struct told *told, size_t count, Holdfast__V1__Evidence **list)
{
    for (size_t i = 0; i < count; i++)
        say(told, "  evidence: %s (%s)", list[i]->text, list[i]->source);
}

/* Hosts and agents. */

static const struct change *find_change(const struct told *told, enum hf_key_kind kind,
                                        const char *name)
{
    for (size_t i = 0; i < told->count; i++) {
        const struct hf_key *key = &told->changes[i].key;
        const char *its = kind == HF_KEY_COMMAND ? key->sub : key->name;

        if (key->kind == kind && strcmp(its, name) == 0)
            return &told->changes[i];
    }
    return NULL;
}

static void tell_host_live(struct told *told, const struct change *change)
{
    if (change->after == NULL)
        say(told, "%s is gone", change->key.name);
    else if (change->before == NULL)
        say(told, "is here");
}

static void add_life(struct hfs_teller *teller, const struct change *change,
                     const char *instance)
{
    const struct hfs_life *last = find_life(teller, change->key.name, 0);
    unsigned number = last != NULL ? last->number + 1 : 1;
    struct hfs_life *life;

    hfs_grow(&teller->lives, &teller->cap, teller->count + 1, sizeof *life);
    life = &teller->lives[teller->count++];
    *life = (struct hfs_life){ .create_rev = change->entry->create_rev, .number = number };
    (void)snprintf(life->agent, sizeof life->agent, "%s", change->key.name);
    (void)snprintf(life->instance, sizeof life->instance, "%s", instance);
}

static void tell_agent_live(struct told *told, const struct change *change)
{
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)change->after;
    const char *agent = change->key.name;
    const struct hfs_life *last = find_life(told->teller, agent, 0);
    char name[HFS_TEXT + 16];
    bool same;

    if (live == NULL) {
        if (find_change(told, HF_KEY_AGENT_EXIT, agent) == NULL)
            say(told, "%s is no longer live", life_name(told->teller, agent, 0, name));
        return;
    }
    if (change->before != NULL)
        return;
    same = last != NULL && strcmp(last->instance, live->instance_id) == 0;
    add_life(told->teller, change, live->instance_id);
    say(told, "%s is live on %s%s%s", life_name(told->teller, agent, 0, name), live->host,
        find_change(told, HF_KEY_COMMAND, agent) != NULL      ? ", as ordered"
        : find_change(told, HF_KEY_AGENT_EXIT, agent) != NULL ? ", by leave"
                                                              : "",
        same ? ": the same process" : "");
}

static void tell_exit(struct told *told, const struct change *change)
{
    const Holdfast__V1__Exit *exit = (const Holdfast__V1__Exit *)change->after;
    const struct change *live = find_change(told, HF_KEY_AGENT_LIVE, change->key.name);
    int64_t rev = 0;
    char name[HFS_TEXT + 16], how[64] = "";

    if (exit == NULL || (live != NULL && live->after != NULL))
        return; /* that its heir is here is told already */
    if (exit->incarnation != NULL)
        rev = exit->incarnation->create_revision;
    if (exit->signal != 0)
        (void)snprintf(how, sizeof how, ", signal %d", exit->signal);
    else if (exit->status != 0)
        (void)snprintf(how, sizeof how, ", status %d", exit->status);
    say(told, "%s has ended: %s%s",
        rev != 0 ? life_name(told->teller, change->key.name, rev, name) : change->key.name,
        value_name(&holdfast__v1__exit__kind__descriptor, (int)exit->kind), how);
    say_evidence(told, exit->n_evidence, exit->evidence);
    if (exit->succession != NULL && !exit->succession->done)
        say(told, "  next: its heir is started with %s, by leave", exit->succession->task);
}

static void tell_wanted(struct told *told, const struct change *change)
{
    const Holdfast__V1__Wanted *before = (const Holdfast__V1__Wanted *)change->before;
    const Holdfast__V1__Wanted *after = (const Holdfast__V1__Wanted *)change->after;
    char name[HFS_TEXT + 16];

    if (after == NULL)
        return;
    if (after->end_upto != (before != NULL ? before->end_upto : 0))
        say(told, "wants %s to end", life_name(told->teller, change->key.name, 0, name));
    say(told, "wants %s %s", change->key.name,
        value_name(&holdfast__v1__wanted__state__descriptor, (int)after->state));
}

static void tell_health(struct told *told, const struct change *change)
{
    const Holdfast__V1__Health *before = (const Holdfast__V1__Health *)change->before;
    const Holdfast__V1__Health *after = (const Holdfast__V1__Health *)change->after;
    char name[HFS_TEXT + 16];

    if (after == NULL || (after->why[0] == '\0' && before == NULL))
        return; /* counters, before there was anything to say */
    if (after->heir_of != 0 && (before == NULL || before->heir_of != after->heir_of))
        say(told, "%s may be succeeded at once",
            life_name(told->teller, change->key.name, 0, name));
    if (before != NULL && before->state == after->state && before->held == after->held &&
        strcmp(before->why, after->why) == 0 && before->end_upto == after->end_upto &&
        (before->next == NULL) == (after->next == NULL) &&
        (before->next == NULL || strcmp(before->next->what, after->next->what) == 0))
        return;
    if (after->end_upto != (before != NULL ? before->end_upto : 0))
        say(told, "%s must end", life_name(told->teller, change->key.name, 0, name));
    say(told, "%s is %s%s: %s", change->key.name,
        value_name(&holdfast__v1__health__state__descriptor, (int)after->state),
        after->held ? " and HELD" : "", after->why);
    say_evidence(told, after->n_evidence, after->evidence);
    say_next(told, after->next);
}

/* Tasks. */

/* Given to an owner that asked; one that is started with its task begins with it. */
static void tell_restored(struct told *told, const char *task, const Holdfast__V1__Task *before,
                          const Holdfast__V1__Task *after)
{
    if (after->restored == NULL || before->owner == NULL ||
        (before->restored != NULL && before->restored->seq == after->restored->seq))
        return;
    if (after->restored->seq != 0)
        say(told, "%s goes on from checkpoint %lld", task, (long long)after->restored->seq);
    else
        say(told, "%s starts over", task);
}

static void tell_task(struct told *told, const struct change *change)
{
    const Holdfast__V1__Task *before = (const Holdfast__V1__Task *)change->before;
    const Holdfast__V1__Task *after = (const Holdfast__V1__Task *)change->after;
    const char *task = change->key.name;
    char from[HFS_TEXT + 16], to[HFS_TEXT + 16];

    if (after == NULL || before == NULL) {
        say(told, "%s %s", after != NULL ? "submits" : "removes", task);
        return;
    }
    (void)snprintf(from, sizeof from, "%s", owner_name(told->teller, before->owner, to));
    if (before->state != after->state)
        say(told, "%s: %s -> %s%s%s", task, state_name(before), state_name(after),
            before->owner == NULL && after->owner != NULL ? " by " : "",
            before->owner == NULL && after->owner != NULL
                ? owner_name(told->teller, after->owner, to)
                : "");
    if (before->owner != NULL && after->owner != NULL &&
        strcmp(from, owner_name(told->teller, after->owner, to)) != 0)
        say(told, "%s: %s hands over to %s", task, from, to);
    if (before->owner != NULL && after->owner != NULL && after->attempt > before->attempt)
        say(told, "  attempt %d", after->attempt);
    if (before->owner != NULL && after->owner == NULL && after->state <= before->state)
        say(told, "  taken from %s, attempt %d", from, after->attempt);
    if (strcmp(before->reserved_for, after->reserved_for) != 0 && after->owner == NULL)
        say(told, "  %s%s",
            after->reserved_for[0] != '\0' ? "reserved for " : "free for anyone",
            after->reserved_for);
    if (strcmp(before->reason, after->reason) != 0 && after->reason[0] != '\0')
        say(told, "  why: %s", after->reason);
    if (before->state != after->state)
        say_next(told, after->next);
    tell_restored(told, task, before, after);
}

static void tell_command(struct told *told, const struct change *change)
{
    const Holdfast__V1__Command *command = (const Holdfast__V1__Command *)change->after;
    const struct change *live = find_change(told, HF_KEY_AGENT_LIVE, change->key.sub);

    if (command == NULL) {
        if (live == NULL)
            say(told, "the order to start %s on %s is gone", change->key.sub, change->key.name);
        return;
    }
    say(told, "orders start %d of %s on %s%s%s", command->attempt, change->key.sub,
        change->key.name, command->task[0] != '\0' ? ", with " : "", command->task);
    if (command->checkpoint != NULL)
        say(told, "  from checkpoint %lld", (long long)command->checkpoint->seq);
    say(told, "  why: %s", command->reason);
}

static const char *result_name(const Holdfast__V1__Recovery__Outcome *outcome)
{
    return value_name(&holdfast__v1__recovery__result__descriptor, (int)outcome->result);
}

/* "recovery 2 of t1 from checkpoint 3: died" */
static void tell_outcome(struct told *told, const char *task, size_t number,
                         const Holdfast__V1__Recovery__Outcome *outcome)
{
    if (outcome->checkpoint != NULL)
        say(told, "recovery %zu of %s from checkpoint %lld: %s", number, task,
            (long long)outcome->checkpoint->seq, result_name(outcome));
    else
        say(told, "recovery %zu of %s from its start: %s", number, task, result_name(outcome));
}

static bool is_later(const Google__Protobuf__Timestamp *before,
                     const Google__Protobuf__Timestamp *after)
{
    return after != NULL && (before == NULL || after->seconds > before->seconds);
}

static void tell_recovery(struct told *told, const struct change *change)
{
    const Holdfast__V1__Recovery *before = (const Holdfast__V1__Recovery *)change->before;
    const Holdfast__V1__Recovery *after = (const Holdfast__V1__Recovery *)change->after;
    size_t known = before != NULL ? before->n_outcomes : 0;
    int32_t attempts = before != NULL ? before->attempts : 0;
    char time[64];

    for (size_t i = 0; after != NULL && i < after->n_outcomes; i++) {
        if (i >= known || before->outcomes[i]->result != after->outcomes[i]->result)
            tell_outcome(told, change->key.name, i + 1, after->outcomes[i]);
    }
    if (after == NULL)
        return;
    if (after->attempts < attempts)
        say(told, "the recoveries of %s are forgotten", change->key.name);
    if (is_later(before != NULL ? before->next_at : NULL, after->next_at))
        say(told, "  next: %s is pending again%s", change->key.name,
            in_time(told->teller, after->next_at, time));
}

/* The rest. */

static void tell_leader(struct told *told, const struct change *change)
{
    const Holdfast__V1__Leader *before = (const Holdfast__V1__Leader *)change->before;
    char name[HFS_TEXT];

    if (change->after != NULL && change->before == NULL)
        say(told, "leads");
    else if (change->after == NULL)
        say(told, "%s leads no more", before != NULL ? short_name(before->id, name) : "nobody");
}

static void tell_meta(struct told *told, const struct change *change)
{
    const Holdfast__V1__Meta *before = (const Holdfast__V1__Meta *)change->before;
    const Holdfast__V1__Meta *after = (const Holdfast__V1__Meta *)change->after;

    if (before != NULL && after != NULL && before->generation != after->generation)
        say(told, "begins generation %d", after->generation);
}

/* Most events tell of what stands in the same revision; these stand alone. */
static void tell_event(struct told *told, const struct change *change)
{
    const Holdfast__V1__Event *event = (const Holdfast__V1__Event *)change->after;

    if (event == NULL || (event->kind != HOLDFAST__V1__EVENT__KIND__storm &&
                          event->kind != HOLDFAST__V1__EVENT__KIND__history_reset))
        return;
    say(told, "%s: %s", value_name(&holdfast__v1__event__kind__descriptor, (int)event->kind),
        event->why);
    say_next(told, event->next);
}

static void tell_change(struct told *told, const struct change *change)
{
    switch (change->key.kind) {
    case HF_KEY_HOST_LIVE: tell_host_live(told, change); break;
    case HF_KEY_AGENT_LIVE: tell_agent_live(told, change); break;
    case HF_KEY_AGENT_EXIT: tell_exit(told, change); break;
    case HF_KEY_WANTED: tell_wanted(told, change); break;
    case HF_KEY_HEALTH: tell_health(told, change); break;
    case HF_KEY_TASK: tell_task(told, change); break;
    case HF_KEY_COMMAND: tell_command(told, change); break;
    case HF_KEY_RECOVERY: tell_recovery(told, change); break;
    case HF_KEY_CHECKPOINT:
        if (change->after != NULL)
            say(told, "keeps checkpoint %lld of %s", (long long)change->key.seq,
                change->key.name);
        else
            say(told, "removes checkpoint %lld of %s", (long long)change->key.seq,
                change->key.name);
        break;
    case HF_KEY_LEADER: tell_leader(told, change); break;
    case HF_KEY_META: tell_meta(told, change); break;
    case HF_KEY_EVENT: tell_event(told, change); break;
    default: break;
    }
}

/* Revisions. */

static ProtobufCMessage *decode(enum hf_key_kind kind, const struct hfs_entry *entry)
{
    const ProtobufCMessageDescriptor *type = hf_key_get_record(kind);
    ProtobufCMessage *record = NULL;

    if (entry == NULL || entry->version == 0 || type == NULL)
        return NULL;
    (void)!hf_json_decode(type, entry->value, entry->value_len, NULL, &record, NULL);
    return record;
}

static void take(struct told *told, const struct hfs_entry *entry)
{
    struct change *change;

    hfs_grow(&told->changes, &told->cap, told->count + 1, sizeof *change);
    change = &told->changes[told->count];
    *change = (struct change){ .entry = entry };
    if (hf_key_parse(HFS_NS, hfs_entry_key(entry), change->scratch, &change->key, NULL) !=
        HF_OK)
        return; /* the checker says so */
    change->before = decode(change->key.kind, entry->older);
    change->after = decode(change->key.kind, entry);
    told->count++;
}

static void tell(struct told *told)
{
    for (size_t i = 0; i < told->count; i++) {
        struct change *change = &told->changes[i];

        /* Its strings lie in its own scratch, which has moved with the array. */
        (void)!hf_key_parse(HFS_NS, hfs_entry_key(change->entry), change->scratch, &change->key,
                            NULL);
    }
    for (size_t i = 0; i < told->count; i++)
        tell_change(told, &told->changes[i]);
    for (size_t i = 0; i < told->count; i++) {
        hf_json_free(told->changes[i].before);
        hf_json_free(told->changes[i].after);
    }
    told->count = 0;
    told->begun = false;
}

void hfs_teller_commit(struct hfs_teller *teller, const struct hfs_process *writer)
{
    const struct hfs_store *store = hfs_etcd_get_store(teller->cluster->etcd);
    char name[HFS_TEXT];
    struct told told = { .teller = teller,
                         .actor = short_name(writer != NULL ? writer->name : "etcd", name) };
    size_t i = hfs_store_find(store, teller->revision + 1);

    while (i < store->log_count) {
        hfs_rev revision = store->log[i]->mod_rev;

        for (; i < store->log_count && store->log[i]->mod_rev == revision; i++)
            take(&told, store->log[i]);
        tell(&told);
    }
    teller->revision = store->revision;
    free(told.changes);
}

void hfs_teller_init(struct hfs_teller *teller, const struct hfs_cluster *cluster)
{
    *teller = (struct hfs_teller){ .cluster = cluster,
                                   .revision = hfs_etcd_get_store(cluster->etcd)->revision };
}

void hfs_teller_done(struct hfs_teller *teller)
{
    free(teller->lives);
    hf_buf_done(&teller->text);
}
