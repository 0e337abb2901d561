#include <stdlib.h>
#include <string.h>

#include "core/node_private.h"

#define LONGEST INT64_C(2592000000) /* 30 days */

/* Policy. */

struct hf_node_policy hf_node_policy_default(void)
{
    return (struct hf_node_policy){
        .stop_grace = 10000,
        .unwell_grace = 1000,
        .verdict_wait = 1000,
        .cleanup = 30000,
        .kill_timeout = 10000,
        .frozen_max = 3600000,
        .start_seconds = 1000,
        .lost_grace = 1000,
        .leaderless_after = 15000,
        .look_back = 300000,
        .look_first = 5000,
        .look_again = 30000,
        .retry = 1000,
        .report_every = 1000,
        .report_quiet = 60000,
        .heartbeat = 30000,
        .ping = 2000,
        .max_tasks = 1,
        .max_asks = 32,
        .claim_spread = 8,
        .max_guests = 64,
        .make_ahead = true,
        .restart = hf_restart_policy_default(),
        .chain = hf_chain_policy_default(),
    };
}

static bool is_time(hf_ms value, hf_ms min)
{
    return value >= min && value <= LONGEST;
}

static const char *time_fault(const struct hf_node_policy *p)
{
    if (!is_time(p->stop_grace, 0) || !is_time(p->cleanup, 0))
        return "node.stop_grace and node.cleanup must be 0 to 30 days";
    if (!is_time(p->unwell_grace, 0) || !is_time(p->verdict_wait, 0))
        return "node.unwell_grace and node.verdict_wait must be 0 to 30 days";
    if (!is_time(p->kill_timeout, 1))
        return "node.kill_timeout must be positive";
    if (!is_time(p->frozen_max, 1))
        return "node.frozen_max must be positive";
    if (!is_time(p->start_seconds, 0))
        return "node.start_seconds must be 0 to 30 days";
    if (!is_time(p->lost_grace, 0) || p->lost_grace > 1500)
        return "node.lost_grace must be 0..1500 ms";
    if (!is_time(p->leaderless_after, 0))
        return "node.leaderless_after must be 0 to 30 days";
    if (!is_time(p->look_back, 1))
        return "node.look_back must be positive";
    if (!is_time(p->look_first, 0) || !is_time(p->look_again, 1))
        return "node.look_first must be 0 to 30 days, and node.look_again positive";
    if (!is_time(p->retry, 1))
        return "node.retry must be positive";
    if (!is_time(p->report_every, 1) || !is_time(p->report_quiet, p->report_every))
        return "node.report_every must be positive, and node.report_quiet not below it";
    if (!is_time(p->heartbeat, 1) || !is_time(p->ping, 1))
        return "node.heartbeat and node.ping must be positive";
    return NULL;
}

static const char *count_fault(const struct hf_node_policy *p)
{
    if (p->max_tasks == 0 || p->max_asks == 0)
        return "node.max_tasks and node.max_asks must be positive";
    if (p->claim_spread == 0 || p->claim_spread > NODE_SPREAD)
        return "node.claim_spread must be 1..64";
    return NULL;
}

int hf_node_policy_check(const struct hf_node_policy *p, const char **ret_why)
{
    const char *fault = time_fault(p);
    int err;

    if (fault == NULL)
        fault = count_fault(p);
    if (fault != NULL) {
        *ret_why = fault;
        return HF_EINVAL;
    }
    err = hf_restart_policy_check(&p->restart, ret_why);
    return err == HF_OK ? hf_chain_policy_check(&p->chain, ret_why) : err;
}

/* Ranges. */

enum { FIXED_RANGES = 4, RANGES_PER_AGENT = 3 };

static struct hf_intent_read scope(enum hf_key_scope scope, const char *name)
{
    return (struct hf_intent_read){ .whole_scope = true, .scope = scope, .name = name };
}

static struct hf_intent_read key(enum hf_key_kind kind, const char *name)
{
    return (struct hf_intent_read){ .key = { .kind = kind, .name = name } };
}

static size_t role_ranges(const struct hf_node *node)
{
    size_t most = HF_NODE_RANGES / 2;

    return node->role_count <= most ? node->role_count : 1;
}

bool hf_node_ranges_are_whole(const struct hf_node *node)
{
    return node->agent_count * RANGES_PER_AGENT + role_ranges(node) + FIXED_RANGES >
           HF_NODE_RANGES;
}

static size_t add_agents(const struct hf_node *node, struct hf_intent_read *ret)
{
    size_t count = 0;

    if (hf_node_ranges_are_whole(node)) {
        ret[count++] = scope(HF_KEY_IN_AGENTS, NULL);
        ret[count++] = scope(HF_KEY_IN_WANTED, NULL);
        ret[count++] = scope(HF_KEY_IN_HEALTH, NULL);
        return count;
    }
    for (size_t i = 0; i < node->agent_count; i++) {
        const char *name = node->agents[i]->name;

        ret[count++] = scope(HF_KEY_IN_AGENT, name);
        ret[count++] = key(HF_KEY_WANTED, name);
        ret[count++] = key(HF_KEY_HEALTH, name);
    }
    return count;
}

size_t hf_node_get_ranges(const struct hf_node *node,
                          struct hf_intent_read ret_ranges[HF_NODE_RANGES])
{
    size_t count = 0;

    ret_ranges[count++] = scope(HF_KEY_IN_HOST, node->host);
    ret_ranges[count++] = scope(HF_KEY_IN_COMMANDS_HOST, node->host);
    ret_ranges[count++] = key(HF_KEY_LEADER, NULL);
    ret_ranges[count++] = key(HF_KEY_META, NULL);
    count += add_agents(node, ret_ranges + count);
    if (role_ranges(node) < node->role_count)
        ret_ranges[count++] = scope(HF_KEY_IN_PENDING, NULL);
    else
        for (size_t i = 0; i < node->role_count; i++)
            ret_ranges[count++] = scope(HF_KEY_IN_PENDING_ROLE, node->roles[i]->name);
    return count;
}

uint64_t hf_node_get_ranges_version(const struct hf_node *node)
{
    return node->ranges_version;
}

/* Keys. */

static bool runs(const struct node_agent *a)
{
    return a->process == PROCESS_BEGUN;
}

/* It does not run under this lease, and will not: whatever becomes of it, the others need not
 * wait for it. */
static bool is_apart(const struct node_agent *a)
{
    const Holdfast__V1__Spec *spec = hf_node_spec(a);

    return a->frozen || a->asked == ASKED_KILL ||
           (spec != NULL && spec->fence == HOLDFAST__V1__SPEC__FENCE__hold);
}

int hf_node_get_keys(const struct hf_node *node, int64_t lease, struct hf_node_key *ret_keys,
                     size_t max)
{
    size_t count = 0;
    bool any = false;

    if (node->host_rev != 0 && node->host_lease == lease && count++ < max)
        ret_keys[count - 1] =
            (struct hf_node_key){ .key = { HF_KEY_HOST_LIVE, .name = node->host },
                                  .create_rev = node->host_rev };
    for (size_t i = 0; i < node->agent_count; i++) {
        const struct node_agent *a = node->agents[i];
        bool here = a->reg == REG_HOLDS && a->life.lease == lease;

        if (runs(a) && !here && !is_apart(a))
            return HF_EAGAIN;
        any = any || (runs(a) && a->asked != ASKED_KILL);
        if (here && (runs(a) || a->process == PROCESS_HELD) && count++ < max)
            ret_keys[count - 1] =
                (struct hf_node_key){ .key = { HF_KEY_AGENT_LIVE, .name = a->name },
                                      .create_rev = a->life.create_rev };
    }
    return any && count == 0 ? HF_EAGAIN : (int)count;
}

/* Views. */

static enum hf_node_state state_of(const struct node_agent *a)
{
    switch (a->process) {
    case PROCESS_NONE: return HF_NODE_ABSENT;
    case PROCESS_MAKING:
    case PROCESS_HELD: return HF_NODE_STARTING;
    case PROCESS_ENDED: return HF_NODE_ENDED;
    case PROCESS_STUCK: return HF_NODE_STUCK;
    case PROCESS_BEGUN: break;
    }
    if (a->end != END_NONE)
        return HF_NODE_ENDING;
    return a->reg == REG_HOLDS && a->settled ? HF_NODE_RUNNING : HF_NODE_REJOINING;
}

int hf_node_get_view(const struct hf_node *node, const char *agent, hf_ms now,
                     struct hf_node_view *ret_view)
{
    const struct node_agent *a = hf_node_find(node, agent);
    const Holdfast__V1__Wanted *wanted;
    const Holdfast__V1__Health *health;

    if (a == NULL)
        return HF_ENOENT;
    wanted = (const Holdfast__V1__Wanted *)a->wanted.record;
    health = (const Holdfast__V1__Health *)a->health.record;
    *ret_view = (struct hf_node_view){
        .state = state_of(a),
        .why = a->why,
        .next = a->next,
        .at = a->at,
        .instance_id = a->process != PROCESS_NONE ? a->instance : NULL,
        .pid = a->pid,
        .registered = a->reg == REG_HOLDS,
        .frozen = a->frozen,
        .jeopardy = node->lease.state != HF_LEASE_HELD || node->lease.frozen ||
                    now >= node->lease.proven_until,
        .ready = a->ready,
        .life = a->life,
        .incarnation = a->reg == REG_HOLDS ? hf_node_incarnation(&a->life) : 0,
        .ttl = node->lease.ttl,
        .task = a->owned_count > 0 ? a->owned[0].name : NULL,
        .asks = a->ask_count,
        .stopped = wanted != NULL && wanted->state == HOLDFAST__V1__WANTED__STATE__stopped,
        .held = health != NULL && health->held,
        .spec_written = a->spec_written || a->spec_stood,
        .told = node->synced && a->known,
        .exit = (const Holdfast__V1__Exit *)a->exit.record,
        .report = (const Holdfast__V1__Report *)a->report.record,
    };
    return HF_OK;
}

const Holdfast__V1__Health__Inquiry *hf_node_get_inquiry(const struct hf_node *node,
                                                         const char *agent)
{
    const struct node_agent *a = hf_node_find(node, agent);

    return a != NULL ? hf_node_find_inquiry(a) : NULL;
}

const char *hf_node_get_agent(const struct hf_node *node, size_t index)
{
    return index < node->agent_count ? node->agents[index]->name : NULL;
}
