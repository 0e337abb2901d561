#include "sim/scenario.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/run.h"
#include "sim/teller.h"

enum { COPIES_MAX = 64, WAIT_MOST_MS = 600000 };

/* A request that was sent once. */
struct copy {
    struct hfs_process *from;
    struct hfs_letter *letter;
};

struct play {
    struct hfs_cluster *cluster;
    struct hfs_trouble *trouble;
    struct hfs_teller teller;
    struct copy copies[COPIES_MAX]; /* the last Txns, newest last */
    size_t copy_count;
    char holding[HFS_TEXT]; /* the key whose next request is held back; empty: none */
    struct copy held;
    struct hfs_crasher crasher;
};

/* Requests that come late. */

static bool is_key(struct hf_bytes key, const char *name)
{
    char text[HF_KEY_SIZE];
    int len = snprintf(text, sizeof text, "/holdfast/" HFS_NS "/%s", name);

    return key.len == (size_t)len && memcmp(key.data, text, key.len) == 0;
}

/* Whether it would change that key. */
static bool writes(const struct hfs_request *request, const char *name)
{
    if (request->kind != HFS_TXN)
        return false;
    for (size_t i = 0; i < request->txn.then.count; i++) {
        const struct hfs_op *op = &request->txn.then.list[i];

        if ((op->kind == HFS_PUT && is_key(op->put.key, name)) ||
            (op->kind == HFS_DELETE && is_key(op->erase.key, name)))
            return true;
    }
    return false;
}

static struct copy copy_of(struct hfs_process *from, struct hfs_letter *letter)
{
    letter->refs++;
    return (struct copy){ .from = from, .letter = letter };
}

static void keep_copy(struct play *play, struct hfs_process *from, struct hfs_letter *letter)
{
    if (play->copy_count == COPIES_MAX) {
        hfs_letter_unref(play->copies[0].letter);
        memmove(play->copies, play->copies + 1, (COPIES_MAX - 1) * sizeof play->copies[0]);
        play->copy_count--;
    }
    play->copies[play->copy_count++] = copy_of(from, letter);
}

static bool on_send(struct hfs_process *from, struct hfs_letter *letter, void *arg)
{
    struct play *play = arg;

    if (hfs_crasher_on_send(&play->crasher, from, letter))
        return true;
    if (letter->request->kind != HFS_TXN)
        return false;
    keep_copy(play, from, letter);
    if (play->holding[0] == '\0' || !writes(letter->request, play->holding))
        return false;
    if (play->held.letter == NULL) {
        play->held = copy_of(from, letter);
        hfs_teller_say(&play->teller, "net", "holds back what is sent for %s", play->holding);
    }
    return true; /* and what is sent again meanwhile is lost */
}

static bool on_ask(struct hfs_agent *agent, void *arg)
{
    return hfs_crasher_on_ask(&((struct play *)arg)->crasher, agent);
}

static void on_commit(const struct hfs_process *writer, void *arg)
{
    struct play *play = arg;

    hfs_teller_commit(&play->teller, writer);
}

/* It arrives at last; its sender may be dead by now. */
static void deliver(struct play *play, const struct copy *copy)
{
    struct hfs_net *net = &play->cluster->net;
    struct hfs_answer *answer = NULL;
    int leader = hfs_etcd_get_leader(net->etcd);

    if (leader < 0 || copy->letter == NULL) {
        hfs_teller_say(&play->teller, "net", "there is nothing to deliver");
        return;
    }
    hfs_net_poke(net);
    if (hfs_etcd_serve(net->etcd, (unsigned)leader, copy->letter->request, &answer) !=
        HFS_ANSWERED)
        return;
    net->on_served(copy->from, copy->letter, answer, net->arg);
    hfs_teller_say(&play->teller, "etcd", "%s",
                   answer->succeeded ? "applies what came late"
                                     : "refuses what came late: a compare does not hold");
    free(answer);
    net->writer = copy->from;
    hfs_net_poke(net);
    net->writer = NULL;
}

static void deliver_copy(struct play *play, const char *key)
{
    for (size_t i = play->copy_count; i-- > 0;) {
        if (writes(play->copies[i].letter->request, key)) {
            deliver(play, &play->copies[i]);
            return;
        }
    }
    deliver(play, &(struct copy){ 0 });
}

static void release(struct play *play)
{
    struct copy held = play->held;

    play->holding[0] = '\0';
    play->held = (struct copy){ 0 };
    deliver(play, &held);
    hfs_letter_unref(held.letter);
}

/* What a script says. */

static struct hfs_agent *find_agent(struct play *play, const char *name)
{
    for (unsigned i = 0; i < play->cluster->cfg.hosts; i++) {
        for (struct hfs_agent *agent = play->cluster->hosts[i].agents; agent != NULL;
             agent = agent->next) {
            if (strcmp(agent->config->name, name) == 0 && agent->begun && !agent->ended)
                return agent;
        }
    }
    return NULL;
}

static void end_agent(struct play *play, const struct hfs_act *act)
{
    struct hfs_agent *agent = find_agent(play, act->name);

    if (agent == NULL)
        hfs_teller_say(&play->teller, act->name, "does not run");
    else if (act->word == HFS_WORD_AGENT_CRASH)
        hfs_keeper_end(agent, HOLDFAST__V1__EXIT__KIND__crashed, 0, 9);
    else
        hfs_keeper_end(agent,
                       act->number == 0 ? HOLDFAST__V1__EXIT__KIND__finished
                                        : HOLDFAST__V1__EXIT__KIND__crashed,
                       (int32_t)act->number, 0);
}

static void stop_agent(struct play *play, const struct hfs_act *act)
{
    struct hfs_agent *agent = find_agent(play, act->name);

    if (agent == NULL)
        hfs_teller_say(&play->teller, act->name, "does not run");
    else
        agent->standstill = act->word == HFS_WORD_AGENT_HANGS    ? HFS_HANGS
                            : act->word == HFS_WORD_AGENT_STALLS ? HFS_STALLS
                                                                 : HFS_PONDERS;
}

static void spoil_body(struct play *play, const struct hfs_act *act)
{
    for (size_t i = play->cluster->body_count; i-- > 0;) {
        struct hfs_body *body = &play->cluster->bodies[i];

        if (strcmp(body->task, act->name) != 0 || body->seq != act->number)
            continue;
        if (act->word == HFS_WORD_POISON)
            body->poison = true;
        else
            body->verdict = act->word == HFS_WORD_CORRUPT ? HF_ECORRUPT : HF_ENOENT;
        return;
    }
    hfs_teller_say(&play->teller, "store", "has no checkpoint %u of %s", act->number,
                   act->name);
}

static void set_paths(struct hfs_process *process, enum hfs_path path)
{
    for (unsigned i = 0; i < HFS_MEMBERS; i++)
        process->paths[i] = path;
}

static bool act_on_host(struct play *play, const struct hfs_act *act)
{
    struct hfs_host *host = &play->cluster->hosts[act->number % HFS_HOSTS];

    switch (act->word) {
    case HFS_WORD_HOST_CRASH: hfs_keeper_crash(host); break;
    case HFS_WORD_HOST_START: hfs_keeper_start(host); break;
    case HFS_WORD_HOST_LEAVE: hfs_keeper_leave(host); break;
    case HFS_WORD_HOST_LOST: hfs_person_lose_host(play->cluster, host->name); break;
    case HFS_WORD_HOST_CUT: set_paths(&host->process, HFS_PATH_CUT); break;
    case HFS_WORD_HOST_DEAF: set_paths(&host->process, HFS_PATH_DEAF); break;
    case HFS_WORD_HOST_HEAL: set_paths(&host->process, HFS_PATH_OPEN); break;
    case HFS_WORD_HOST_BREAK: host->starts_nothing = true; break;
    case HFS_WORD_HOST_SUSPEND: hfs_keeper_suspend(host, act->time); break;
    case HFS_WORD_LINK_CRASH: hfs_link_crash(host); break;
    case HFS_WORD_LINK_PAUSE: hfs_process_pause(&host->process, act->time); break;
    default: return false;
    }
    return true;
}

/* Whoever leads, if that is what the script says. */
static struct hfs_controller *find_controller(struct play *play, unsigned number)
{
    struct hfs_cluster *cluster = play->cluster;
    const struct hfs_entry *entry;
    char key[HF_KEY_SIZE];
    int len;

    if (number != HFS_LEADER)
        return &cluster->controllers[number];
    len = hf_key_format(HFS_NS, &(struct hf_key){ .kind = HF_KEY_LEADER }, key, NULL);
    hfs_must(len);
    entry =
        hfs_store_get(hfs_etcd_get_store(cluster->etcd), (struct hf_bytes){ key, (size_t)len });
    for (number = 0; entry != NULL && number < cluster->cfg.controllers; number++) {
        char id[HFS_TEXT + 16];

        len = snprintf(id, sizeof id, "\"id\":\"%s\"", cluster->controllers[number].name);
        if (memmem(entry->value, entry->value_len, id, (size_t)len) != NULL)
            return &cluster->controllers[number];
    }
    return &cluster->controllers[0];
}

static bool act_on_controller(struct play *play, const struct hfs_act *act)
{
    struct hfs_controller *controller = find_controller(play, act->number);

    switch (act->word) {
    case HFS_WORD_CONTROLLER_CRASH:
        hfs_controller_crash(controller);
        hfs_timer_stop(&play->cluster->world, &controller->restart);
        break;
    case HFS_WORD_CONTROLLER_START:
        if (controller->brain == NULL)
            hfs_controller_start(controller);
        break;
    case HFS_WORD_CONTROLLER_PAUSE: hfs_process_pause(&controller->process, act->time); break;
    case HFS_WORD_CONTROLLER_CUT: set_paths(&controller->process, HFS_PATH_CUT); break;
    case HFS_WORD_CONTROLLER_HEAL: set_paths(&controller->process, HFS_PATH_OPEN); break;
    default: return false;
    }
    return true;
}

static void revoke_lease(struct play *play, int64_t lease)
{
    struct hfs_request request = { .kind = HFS_REVOKE };
    struct hfs_answer *answer = NULL;
    int leader = hfs_etcd_get_leader(play->cluster->etcd);

    request.lease = lease;
    if (leader >= 0 && hfs_etcd_serve(play->cluster->etcd, (unsigned)leader, &request,
                                      &answer) == HFS_ANSWERED)
        free(answer);
    hfs_net_poke(&play->cluster->net);
}

/* The disk of the leader hangs: another leads meanwhile, and what the old one says of leases is
 * not true (L1, L2). */
static void stall(struct play *play, hf_ms length)
{
    struct hfs_faults *faults = hfs_etcd_get_faults(play->cluster->etcd);
    int leader = hfs_etcd_get_leader(play->cluster->etcd);
    struct hfs_fault fault = { .kind = HFS_FAULT_MEMBER,
                               .length = length,
                               .b = 2 * 3 /* stalled */ };

    if (leader < 0)
        return;
    faults->lying_renewals = faults->revoke_on_return = true;
    fault.a = (unsigned)leader;
    hfs_trouble_make(play->trouble, &fault);
}

static bool act_on_etcd(struct play *play, const struct hfs_act *act)
{
    switch (act->word) {
    case HFS_WORD_ETCD_STALL: stall(play, act->time); break;
    case HFS_WORD_ETCD_ELECT:
        (void)!hfs_etcd_change_leader(play->cluster->etcd);
        hfs_net_poke(&play->cluster->net);
        break;
    case HFS_WORD_ETCD_REVOKE:
        hfs_must(hfs_etcd_revoke_leases(play->cluster->etcd, 100));
        hfs_net_poke(&play->cluster->net);
        break;
    case HFS_WORD_ETCD_REVOKE_HOST:
        revoke_lease(play, play->cluster->hosts[act->number].record.id);
        break;
    default: return false;
    }
    return true;
}

static bool act_as_person(struct play *play, const struct hfs_act *act)
{
    struct hfs_cluster *cluster = play->cluster;

    switch (act->word) {
    case HFS_WORD_TASK: hfs_person_submit(cluster, act->name, act->role); break;
    case HFS_WORD_TASK_QUEUED: hfs_person_enqueue(cluster, act->name, act->role); break;
    case HFS_WORD_PERSON_STOP: hfs_person_want(cluster, act->name, false); break;
    case HFS_WORD_PERSON_START: hfs_person_want(cluster, act->name, true); break;
    case HFS_WORD_PERSON_RESTART: hfs_person_restart(cluster, act->name); break;
    case HFS_WORD_PERSON_RELEASE: hfs_person_release(cluster, act->name); break;
    case HFS_WORD_PERSON_CANCEL: hfs_person_cancel(cluster, act->name); break;
    case HFS_WORD_PERSON_RETRY: hfs_person_retry(cluster, act->name); break;
    case HFS_WORD_PERSON_RETRY_LOST: hfs_person_retry_lost(cluster, act->name); break;
    default: return false;
    }
    return true;
}

/* To the millisecond in which the store says so. */
static bool wait_until(struct play *play, const struct hfs_act *act)
{
    hf_ms until = play->cluster->world.now + WAIT_MOST_MS;

    while (play->cluster->world.now < until) {
        if (!hfs_cluster_run(play->cluster, 1))
            return false;
        if (hfs_check_get_state(play->cluster->check, act->name) == act->choice)
            return true;
    }
    hfs_teller_say(&play->teller, act->name, "is not what the script waits for");
    return true;
}

/* False: an invariant is violated. */
static bool do_act(struct play *play, const struct hfs_act *act)
{
    switch (act->word) {
    case HFS_WORD_WAIT: return hfs_cluster_run(play->cluster, act->time);
    case HFS_WORD_WAIT_STATE: return wait_until(play, act);
    case HFS_WORD_AGENT_CRASH:
    case HFS_WORD_AGENT_STATUS: end_agent(play, act); break;
    case HFS_WORD_AGENT_HANGS:
    case HFS_WORD_AGENT_STALLS:
    case HFS_WORD_AGENT_PONDERS: stop_agent(play, act); break;
    case HFS_WORD_CORRUPT:
    case HFS_WORD_LOSE:
    case HFS_WORD_POISON: spoil_body(play, act); break;
    case HFS_WORD_LATE_COPY: deliver_copy(play, act->name); break;
    case HFS_WORD_HOLD:
        (void)snprintf(play->holding, sizeof play->holding, "%s", act->name);
        break;
    case HFS_WORD_RELEASE: release(play); break;
    default:
        (void)(act_on_host(play, act) || act_on_controller(play, act) ||
               act_on_etcd(play, act) || act_as_person(play, act));
    }
    return true;
}

/* Everything that was broken is mended, and nobody says anything any more. */
static bool end_well(struct play *play, char *why, size_t size)
{
    struct hfs_cluster *cluster = play->cluster;

    play->holding[0] = '\0';
    hfs_trouble_heal(play->trouble);
    for (unsigned i = 0; i < cluster->cfg.hosts; i++)
        set_paths(&cluster->hosts[i].process, HFS_PATH_OPEN);
    for (unsigned i = 0; i < cluster->cfg.controllers; i++) {
        set_paths(&cluster->controllers[i].process, HFS_PATH_OPEN);
        if (cluster->controllers[i].brain == NULL)
            hfs_controller_start(&cluster->controllers[i]);
    }
    return hfs_run_come_to_rest(cluster, false, why, size);
}

static void open_play(struct play *play, const struct hfs_scenario *scenario,
                      const struct hfs_crash *crash)
{
    *play = (struct play){ 0 };
    play->cluster = hfs_cluster_new(&scenario->cluster, hfs_teller_note, &play->teller);
    play->trouble = hfs_trouble_new(play->cluster);
    play->cluster->ear = (struct hfs_ear){
        .on_commit = on_commit, .on_send = on_send, .on_ask = on_ask, .arg = play
    };
    hfs_crasher_init(&play->crasher, play->cluster, crash);
    hfs_teller_init(&play->teller, play->cluster);
}

static void close_play(struct play *play)
{
    play->cluster->ear = (struct hfs_ear){ 0 };
    hfs_crasher_done(&play->crasher);
    hfs_trouble_free(play->trouble);
    hfs_cluster_free(play->cluster);
    hfs_teller_done(&play->teller);
    for (size_t i = 0; i < play->copy_count; i++)
        hfs_letter_unref(play->copies[i].letter);
    hfs_letter_unref(play->held.letter);
}

bool hfs_scenario_run(const struct hfs_scenario *scenario, char **ret_text, char *why,
                      size_t size)
{
    return hfs_scenario_run_with(scenario, &(struct hfs_crash){ 0 }, NULL, ret_text, why, size);
}

bool hfs_scenario_run_with(const struct hfs_scenario *scenario, const struct hfs_crash *crash,
                           uint64_t *ret_steps, char **ret_text, char *why, size_t size)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    struct play play;
    const char *violation;
    size_t done = 0;
    bool ok = true;

    open_play(&play, scenario, crash);
    for (size_t i = 0; i < scenario->count; i++) {
        const struct hfs_block *block = &scenario->blocks[i];

        for (; done < block->end && ok; done++)
            ok = do_act(&play, &scenario->acts[done]);
        hf_buf_printf(&text, "%s%s----\n%s", i > 0 ? "\n" : "", block->script,
                      play.teller.text.len > 0 ? play.teller.text.data : "(nothing)\n");
        hf_buf_clear(&play.teller.text);
    }
    ok = ok && end_well(&play, why, size);
    violation = hfs_check_get_violation(play.cluster->check);
    if (violation != NULL)
        (void)snprintf(why, size, "%s", violation);
    if (ret_steps != NULL)
        *ret_steps = play.crasher.steps;
    close_play(&play);
    hfs_must(hf_buf_take(&text, ret_text, NULL));
    return ok;
}
