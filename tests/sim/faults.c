/* faults.c - what goes wrong, and how it ends. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "schema/json.h"
#include "sim/provoke.h"
#include "sim/run.h"

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* A fault that ends after a while. */
struct ending {
    struct hfs_timer timer;
    struct hfs_trouble *trouble;
    struct hfs_fault fault;
    struct ending *next;
};

struct hfs_trouble {
    struct hfs_cluster *cluster;
    struct hfs_snapshot *snapshot;
    struct ending *endings;
    struct hfs_timer correcting; /* what a slip of the hand left, once the faults are over */
};

const char *hfs_fault_name(enum hfs_fault_kind kind)
{
    switch (kind) {
#define X(name, text)                                                                          \
    case HFS_FAULT_##name: return text;
        HFS_FAULTS(X)
#undef X
    case HFS_FAULT_KINDS: break;
    }
    return "?";
}

static struct hfs_host *host_of(struct hfs_cluster *cluster, unsigned number)
{
    return &cluster->hosts[number % cluster->cfg.hosts];
}

static struct hfs_controller *controller_of(struct hfs_cluster *cluster, unsigned number)
{
    return &cluster->controllers[number % cluster->cfg.controllers];
}

static const char *agent_of(struct hfs_cluster *cluster, unsigned number)
{
    return cluster->cfg.agents[number % cluster->cfg.agent_count].name;
}

static void cut(struct hfs_process *process, enum hfs_path path)
{
    for (unsigned m = 0; m < HFS_MEMBERS; m++)
        process->paths[m] = path;
}

static void spoil_network(struct hfs_net_faults *faults, unsigned how)
{
    enum { LEAST_MS = 600, MORE_MS = 1200 }; /* within what any attempt may take */

    if (how >= HFS_FAULT_ANSWERS) {
        faults->answer_max = LEAST_MS + how % MORE_MS;
        return;
    }
    faults->delay_max = 3 + how % 40;
    faults->slow_percent = (uint8_t)(how / 7 % 15);
    faults->slow_max = 100 + how % 7900;
    faults->lose_percent = (uint8_t)(how / 3 % 25);
    faults->repeat_percent = (uint8_t)(how / 5 % 15);
}

static void mend_network(struct hfs_net_faults *faults)
{
    *faults = (struct hfs_net_faults){ .delay_max = 3,
                                       .late_percent = faults->late_percent,
                                       .late_max = faults->late_max,
                                       .late_role = faults->late_role };
}

/* One watch of several on a stream that is mute goes unnoticed, too: what answers a probe is
 * the stream. */
bool hfs_fault_loses_events(const struct hfs_fault *fault)
{
    return fault->kind == HFS_FAULT_WATCHES &&
           (fault->a >= HFS_FAULT_MUTE || fault->a % 3 == 0 || fault->a % 2 != 0);
}

static void spoil_watches(struct hfs_faults *faults, unsigned how)
{
    if (how >= HFS_FAULT_MUTE) {
        faults->mute_percent = 100;
        return;
    }
    faults->mute_percent = how % 2 != 0 ? 20 : 0;
    faults->lose_percent = how % 3 == 0 ? 10 : 0;
    faults->duplicate_percent = how % 5 != 0 ? 10 : 0;
    faults->old_percent = how % 7 != 0 ? 10 : 0;
    faults->early_progress = how / 2 % 2 != 0;
}

static void lie(struct hfs_faults *faults, unsigned how)
{
    faults->lying_renewals = true;
    faults->ghost_renewals = how % 2 != 0;
    faults->revoke_on_return = how % 3 != 0;
    faults->lie_percent = how % 5 == 0 ? 30 : 0;
}

static void put(struct hfs_cluster *cluster, const char *key, struct hf_bytes value)
{
    struct hfs_request request = { .kind = HFS_PUT };
    struct hfs_answer *answer = NULL;
    int leader = hfs_etcd_get_leader(cluster->etcd);

    request.op.put = (struct hfs_put_request){ .key = hf_bytes_of(key), .value = value };
    if (leader >= 0 &&
        hfs_etcd_serve(cluster->etcd, (unsigned)leader, &request, &answer) == HFS_ANSWERED)
        free(answer);
    hfs_net_poke(&cluster->net);
}

/* Somebody's hand slipped: something stands before the record of an agent's spec. In the end it
 * is taken away again, unless the record is gone or was written anew. False when etcd took
 * nothing in. */
static bool spoil_spec(struct hfs_cluster *cluster, const char *agent, bool spoil)
{
    static const char GARBAGE[] = "slip ";
    enum { LEN = sizeof GARBAGE - 1 };
    struct hf_key key = { HF_KEY_AGENT_SPEC, .name = agent };
    char text[HF_KEY_SIZE], value[1024];
    const struct hfs_entry *entry;
    bool spoilt;
    int64_t before;

    hfs_must(hf_key_format(HFS_NS, &key, text, NULL));
    entry = hfs_store_get(hfs_etcd_get_store(cluster->etcd), hf_bytes_of(text));
    if (entry == NULL || entry->value_len + LEN > sizeof value)
        return true;
    spoilt = entry->value_len > LEN && memcmp(entry->value, GARBAGE, LEN) == 0;
    if (spoilt == spoil)
        return true;
    memcpy(value, GARBAGE, LEN);
    memcpy(value + (spoil ? LEN : 0), entry->value + (spoil ? 0 : LEN),
           entry->value_len - (spoil ? 0 : LEN));
    before = entry->mod_rev;
    put(cluster, text,
        (struct hf_bytes){ value, spoil ? entry->value_len + LEN : entry->value_len - LEN });
    entry = hfs_store_get(hfs_etcd_get_store(cluster->etcd), hf_bytes_of(text));
    return entry == NULL || entry->mod_rev != before;
}

/* A person says of one that is gone for good that it is, as soon as everybody has noticed that
 * it is not here. False: not yet. */
static bool lose_host(struct hfs_cluster *cluster, const struct hfs_host *host)
{
    struct hf_key key = { HF_KEY_HOST_RECORD, .name = host->name };
    ProtobufCMessage *record = NULL;
    const struct hfs_entry *entry;
    char text[HF_KEY_SIZE];
    bool left;

    if (!host->gone)
        return true;
    hfs_must(hf_key_format(HFS_NS, &key, text, NULL));
    entry = hfs_store_get(hfs_etcd_get_store(cluster->etcd), hf_bytes_of(text));
    if (entry == NULL)
        return true;
    hfs_must(hf_json_decode(hf_key_get_record(key.kind), entry->value, entry->value_len, NULL,
                            &record, NULL));
    left = ((const Holdfast__V1__Host *)record)->left;
    hf_json_free(record);
    if (!left)
        hfs_person_lose_host(cluster, host->name);
    return left;
}

/* A person says, or takes back, that nothing is to be started there. */
static void cordon(struct hfs_cluster *cluster, const char *host, bool cordoned)
{
    struct hf_key key = { HF_KEY_HOST_RECORD, .name = host };
    HF_CLEANUP_BUF struct hf_buf value = { 0 };
    ProtobufCMessage *record = NULL;
    const struct hfs_entry *entry;
    char text[HF_KEY_SIZE];

    hfs_must(hf_key_format(HFS_NS, &key, text, NULL));
    entry = hfs_store_get(hfs_etcd_get_store(cluster->etcd), hf_bytes_of(text));
    if (entry == NULL)
        return;
    hfs_must(hf_json_decode(hf_key_get_record(key.kind), entry->value, entry->value_len, NULL,
                            &record, NULL));
    ((Holdfast__V1__Host *)record)->cordoned = cordoned;
    hfs_must(hf_json_encode(record, &value));
    put(cluster, text, (struct hf_bytes){ value.data, value.len });
    hf_json_free(record);
}

/* Corrects every spec; etcd may be full or without a leader meanwhile, and a restored one has
 * what was corrected long ago. */
static void correct_specs(struct hfs_timer *timer)
{
    struct hfs_trouble *trouble = OWNER(timer, struct hfs_trouble, correcting);
    struct hfs_cluster *cluster = trouble->cluster;
    bool all = true;

    for (unsigned i = 0; i < cluster->cfg.agent_count; i++)
        all = spoil_spec(cluster, cluster->cfg.agents[i].name, false) && all;
    for (unsigned i = 0; i < cluster->cfg.hosts; i++)
        all = lose_host(cluster, &cluster->hosts[i]) && all;
    if (!all)
        hfs_timer_start(&cluster->world, timer, cluster->world.now + 1000);
}

static void mend_member(struct hfs_cluster *cluster, const struct hfs_fault *fault)
{
    for (unsigned i = 0; i < HFS_MEMBERS; i++) {
        if (i == fault->a % HFS_MEMBERS || fault->a >= HFS_FAULT_STALLS)
            hfs_must(hfs_etcd_set_member(cluster->etcd, i, HFS_MEMBER_UP));
    }
    hfs_net_poke(&cluster->net);
}

/* What ends with its time. */
static void undo(struct hfs_trouble *trouble, const struct hfs_fault *fault)
{
    struct hfs_cluster *cluster = trouble->cluster;
    struct hfs_faults *faults = hfs_etcd_get_faults(cluster->etcd);

    switch (fault->kind) {
    case HFS_FAULT_LEAVE:
    case HFS_FAULT_CRASH_HOST: hfs_keeper_start(host_of(cluster, fault->a)); break;
    case HFS_FAULT_SLOW_LOOP:
        host_of(cluster, fault->a)->process.turn_max = 0;
        if (cluster->cfg.controllers > 0)
            controller_of(cluster, fault->a)->process.turn_max = 0;
        break;
    case HFS_FAULT_CUT_HOST: cut(&host_of(cluster, fault->a)->process, HFS_PATH_OPEN); break;
    case HFS_FAULT_CUT_CONTROLLER:
        cut(&controller_of(cluster, fault->a)->process, HFS_PATH_OPEN);
        break;
    case HFS_FAULT_CUT_MEMBER:
        host_of(cluster, fault->a)->process.paths[fault->b % HFS_MEMBERS] = HFS_PATH_OPEN;
        break;
    case HFS_FAULT_NETWORK: mend_network(&cluster->net.faults); break;
    case HFS_FAULT_LATE: cluster->net.faults.late_percent = 0; break;
    case HFS_FAULT_MEMBER: mend_member(cluster, fault); break;
    case HFS_FAULT_LYING:
        faults->lying_renewals = faults->ghost_renewals = faults->revoke_on_return = false;
        faults->lie_percent = 0;
        break;
    case HFS_FAULT_LATE_EXPIRY:
        faults->expiry_suspended = false;
        faults->expiry_late = 0;
        hfs_net_poke(&cluster->net);
        break;
    case HFS_FAULT_WATCHES:
        faults->mute_percent = faults->lose_percent = 0;
        faults->duplicate_percent = faults->old_percent = 0;
        faults->early_progress = false;
        break;
    case HFS_FAULT_NO_SPACE: faults->no_space = false; break;
    case HFS_FAULT_GARBAGE:
        if (fault->a >= HFS_FAULT_OF_HOST)
            cordon(cluster, host_of(cluster, fault->a)->name, false);
        else
            (void)spoil_spec(cluster, agent_of(cluster, fault->a), false);
        break;
    default: break;
    }
}

static void on_ending(struct hfs_timer *timer)
{
    struct ending *ending = OWNER(timer, struct ending, timer);
    struct hfs_trouble *trouble = ending->trouble;
    struct ending **at = &trouble->endings;

    hfs_note(&trouble->cluster->world, "(ends: %s)", hfs_fault_name(ending->fault.kind));
    while (*at != ending)
        at = &(*at)->next;
    *at = ending->next;
    undo(trouble, &ending->fault);
    free(ending);
}

static void end_later(struct hfs_trouble *trouble, const struct hfs_fault *fault)
{
    struct ending *ending = hfs_alloc(sizeof *ending);

    *ending = (struct ending){ .timer = { .fn = on_ending },
                               .trouble = trouble,
                               .fault = *fault,
                               .next = trouble->endings };
    trouble->endings = ending;
    hfs_timer_start(&trouble->cluster->world, &ending->timer,
                    trouble->cluster->world.now + fault->length);
}

/* Several may be harmed at a time: then etcd is without a majority. */
static void harm_member(struct hfs_cluster *cluster, const struct hfs_fault *fault)
{
    static const enum hfs_member_state STATES[] = { HFS_MEMBER_DOWN, HFS_MEMBER_PAUSED,
                                                    HFS_MEMBER_CUT, HFS_MEMBER_STALLED };
    int leader = hfs_etcd_get_leader(cluster->etcd);

    if (fault->a < HFS_FAULT_STALLS)
        hfs_must(hfs_etcd_set_member(cluster->etcd, fault->a % HFS_MEMBERS,
                                     STATES[fault->b / 2 % 4]));
    else if (leader >= 0)
        hfs_must(hfs_etcd_set_member(cluster->etcd, (unsigned)leader, HFS_MEMBER_STALLED));
    hfs_net_poke(&cluster->net);
}

static void compact(struct hfs_cluster *cluster)
{
    struct hfs_request request = { .kind = HFS_COMPACT };
    struct hfs_answer *answer = NULL;
    int leader = hfs_etcd_get_leader(cluster->etcd);

    request.compact = hfs_etcd_get_store(cluster->etcd)->revision;
    if (leader >= 0 &&
        hfs_etcd_serve(cluster->etcd, (unsigned)leader, &request, &answer) == HFS_ANSWERED)
        free(answer);
    hfs_net_poke(&cluster->net);
}

static void restore(struct hfs_trouble *trouble)
{
    struct hfs_cluster *cluster = trouble->cluster;

    if (trouble->snapshot == NULL)
        return;
    hfs_must(hfs_etcd_restore(cluster->etcd, trouble->snapshot));
    cluster->net.pumped = 0;
    cluster->net.relapsed = true;
    hfs_check_restored(cluster->check);
    hfs_net_poke(&cluster->net);
}

static void kill_agent(struct hfs_cluster *cluster, unsigned number)
{
    const struct hfs_agent_config *config =
        &cluster->cfg.agents[number % cluster->cfg.agent_count];

    for (unsigned i = 0; i < cluster->cfg.hosts; i++) {
        for (struct hfs_agent *agent = cluster->hosts[i].agents; agent != NULL;
             agent = agent->next) {
            if (agent->config != config || !agent->begun || agent->ended)
                continue;
            hfs_keeper_end(agent, HOLDFAST__V1__EXIT__KIND__crashed, 0, 9);
            return;
        }
    }
}

static const char *task_name(unsigned number, char text[HFS_TEXT])
{
    (void)snprintf(text, HFS_TEXT, "t%u", number);
    return text;
}

static void cancel(struct hfs_cluster *cluster, unsigned number)
{
    char text[HFS_TEXT];
    const char *task = task_name(number, text);

    if (number >= HFS_FAULT_OF_AGENT)
        task =
            hfs_check_find_task(cluster->check, agent_of(cluster, number - HFS_FAULT_OF_AGENT));
    if (task != NULL)
        hfs_person_cancel(cluster, task);
}

/* Where a limit holds, some wait for their turn from the beginning. */
static void submit(struct hfs_cluster *cluster, const struct hfs_fault *fault)
{
    const char *role = cluster->cfg.agents[fault->b % cluster->cfg.agent_count].role;
    char task[HFS_TEXT];

    if (cluster->cfg.running_max > 0 && fault->b / HFS_AGENTS % 3 != 0)
        hfs_person_enqueue(cluster, task_name(fault->a, task), role);
    else
        hfs_person_submit(cluster, task_name(fault->a, task), role);
}

/* What a person does. */
static void interfere(struct hfs_cluster *cluster, const struct hfs_fault *fault)
{
    char task[HFS_TEXT];

    switch (fault->kind) {
    case HFS_FAULT_SUBMIT: submit(cluster, fault); break;
    case HFS_FAULT_STOP: hfs_person_want(cluster, agent_of(cluster, fault->a), false); break;
    case HFS_FAULT_START:
        if (fault->a >= HFS_FAULT_RELEASE)
            hfs_person_release(cluster, agent_of(cluster, fault->a - HFS_FAULT_RELEASE));
        else
            hfs_person_want(cluster, agent_of(cluster, fault->a), true);
        break;
    case HFS_FAULT_RESTART: hfs_person_restart(cluster, agent_of(cluster, fault->a)); break;
    case HFS_FAULT_CANCEL: cancel(cluster, fault->a); break;
    case HFS_FAULT_RETRY: hfs_person_retry(cluster, task_name(fault->a, task)); break;
    case HFS_FAULT_REMOVE: hfs_person_remove(cluster, agent_of(cluster, fault->a)); break;
    case HFS_FAULT_LOSE_HOST:
        if (!host_of(cluster, fault->a)->up)
            hfs_person_lose_host(cluster, host_of(cluster, fault->a)->name);
        break;
    case HFS_FAULT_REMOVE_HOST:
        if (!host_of(cluster, fault->a)->up)
            hfs_person_remove_host(cluster, host_of(cluster, fault->a)->name);
        break;
    case HFS_FAULT_PROCEED: hfs_person_proceed(cluster); break;
    default: break;
    }
}

/* Somebody stays. */
static void vanish(struct hfs_host *host)
{
    unsigned others = 0;

    for (unsigned i = 0; i < host->cluster->cfg.hosts; i++)
        others += !host->cluster->hosts[i].gone && &host->cluster->hosts[i] != host;
    if (others == 0)
        return;
    hfs_keeper_crash(host);
    host->gone = true;
}

/* What happens to processes. */
static void hit_process(struct hfs_cluster *cluster, const struct hfs_fault *fault)
{
    struct hfs_host *host = host_of(cluster, fault->a);

    switch (fault->kind) {
    case HFS_FAULT_KILL_AGENT: kill_agent(cluster, fault->a); break;
    case HFS_FAULT_CRASH_LINK: hfs_link_crash(host); break;
    case HFS_FAULT_CRASH_HOST: hfs_keeper_crash(host); break;
    case HFS_FAULT_VANISH: vanish(host); break;
    case HFS_FAULT_LEAVE: hfs_keeper_leave(host); break;
    case HFS_FAULT_RESIGN: hfs_controller_resign(controller_of(cluster, fault->a)); break;
    case HFS_FAULT_PAUSE_LINK:
        host->process.reads_first = fault->b >= HFS_FAULT_READS;
        hfs_process_pause(&host->process, fault->length);
        break;
    case HFS_FAULT_SUSPEND_HOST: hfs_keeper_suspend(host, fault->length); break;
    case HFS_FAULT_CRASH_CONTROLLER:
        if (fault->b >= HFS_FAULT_FORGETS)
            hfs_controller_forget(controller_of(cluster, fault->a));
        else if (fault->a >= HFS_FAULT_ORDERLY)
            hfs_controller_resign(controller_of(cluster, fault->a));
        else
            hfs_controller_crash(controller_of(cluster, fault->a));
        break;
    case HFS_FAULT_PAUSE_CONTROLLER:
        hfs_process_pause(&controller_of(cluster, fault->a)->process, fault->length);
        break;
    case HFS_FAULT_SLOW_LOOP:
        if (fault->b % 2 != 0)
            host->process.turn_max = 1 + fault->b % 200;
        else
            controller_of(cluster, fault->a)->process.turn_max = 1 + fault->b % 200;
        break;
    case HFS_FAULT_CUT_HOST:
        cut(&host->process, fault->b % 3 == 0 ? HFS_PATH_DEAF : HFS_PATH_CUT);
        break;
    case HFS_FAULT_CUT_CONTROLLER:
        cut(&controller_of(cluster, fault->a)->process, HFS_PATH_CUT);
        break;
    case HFS_FAULT_CUT_MEMBER:
        host->process.paths[fault->b % HFS_MEMBERS] = HFS_PATH_CUT;
        break;
    default: break;
    }
}

/* What happens to etcd and to the way there. */
static void hit_etcd(struct hfs_trouble *trouble, const struct hfs_fault *fault)
{
    struct hfs_cluster *cluster = trouble->cluster;
    struct hfs_faults *faults = hfs_etcd_get_faults(cluster->etcd);

    switch (fault->kind) {
    case HFS_FAULT_NETWORK: spoil_network(&cluster->net.faults, fault->a); break;
    case HFS_FAULT_LATE:
        cluster->net.faults.late_percent = (uint8_t)(5 + fault->a % 50);
        cluster->net.faults.late_max = 500 + fault->b % 100 * 300;
        cluster->net.faults.late_role =
            fault->a >= HFS_FAULT_LATE_CONTROLLER ? HFS_CONTROLLER : HFS_NOBODY;
        break;
    case HFS_FAULT_MEMBER: harm_member(cluster, fault); break;
    case HFS_FAULT_CHANGE_LEADER:
        (void)!hfs_etcd_change_leader(cluster->etcd);
        hfs_net_poke(&cluster->net);
        break;
    case HFS_FAULT_REVOKE:
        hfs_must(hfs_etcd_revoke_leases(cluster->etcd, fault->a % 2 != 0 ? 100 : 40));
        hfs_net_poke(&cluster->net);
        break;
    case HFS_FAULT_LYING: lie(faults, fault->a); break;
    case HFS_FAULT_LATE_EXPIRY:
        faults->expiry_suspended = fault->a % 2 != 0;
        faults->expiry_late = 10000;
        break;
    case HFS_FAULT_WATCHES: spoil_watches(faults, fault->a); break;
    case HFS_FAULT_COMPACT: compact(cluster); break;
    case HFS_FAULT_SNAPSHOT:
        hfs_snapshot_free(trouble->snapshot);
        hfs_must(hfs_etcd_snapshot(cluster->etcd, &trouble->snapshot));
        break;
    case HFS_FAULT_RESTORE: restore(trouble); break;
    case HFS_FAULT_NO_SPACE: faults->no_space = true; break;
    case HFS_FAULT_GARBAGE:
        if (fault->a >= HFS_FAULT_OF_HOST)
            cordon(cluster, host_of(cluster, fault->a)->name, true);
        else
            (void)spoil_spec(cluster, agent_of(cluster, fault->a), true);
        break;
    default: break;
    }
}

void hfs_trouble_make(struct hfs_trouble *trouble, const struct hfs_fault *fault)
{
    hfs_note(&trouble->cluster->world, "(%s: %u, %u%s)", hfs_fault_name(fault->kind), fault->a,
             fault->b, fault->length > 0 ? ", for a while" : "");
    interfere(trouble->cluster, fault);
    hit_process(trouble->cluster, fault);
    hit_etcd(trouble, fault);
    if (fault->length > 0)
        end_later(trouble, fault);
}

void hfs_trouble_heal(struct hfs_trouble *trouble)
{
    struct hfs_cluster *cluster = trouble->cluster;

    while (trouble->endings != NULL) {
        struct ending *ending = trouble->endings;

        trouble->endings = ending->next;
        hfs_timer_stop(&cluster->world, &ending->timer);
        undo(trouble, &ending->fault);
        free(ending);
    }
    hfs_provoke_no_more(cluster);
    cluster->cfg.make_fail_percent = 0;
    for (unsigned i = 0; i < cluster->cfg.hosts; i++)
        hfs_keeper_start(&cluster->hosts[i]);
    hfs_net_poke(&cluster->net);
    trouble->correcting.fn = correct_specs;
    correct_specs(&trouble->correcting);
}

struct hfs_trouble *hfs_trouble_new(struct hfs_cluster *cluster)
{
    struct hfs_trouble *trouble = hfs_alloc(sizeof *trouble);

    trouble->cluster = cluster;
    return trouble;
}

void hfs_trouble_free(struct hfs_trouble *trouble)
{
    while (trouble->endings != NULL) {
        struct ending *ending = trouble->endings;

        trouble->endings = ending->next;
        hfs_timer_stop(&trouble->cluster->world, &ending->timer);
        free(ending);
    }
    hfs_timer_stop(&trouble->cluster->world, &trouble->correcting);
    hfs_snapshot_free(trouble->snapshot);
    free(trouble);
}
