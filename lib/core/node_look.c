#include "core/node_private.h"

/* A Txn of a link that has died may still apply, and put the key of an agent under the lease
 * that we went on with. Of the agents that are ours we are told that, and reap it. Of a guest
 * whose process the keeper has forgotten since, nobody would tell us: it would look alive for
 * as long as we renew. So from time to time we ask what hangs on our lease. How late such a
 * Txn may come has no limit that we know, so it is asked again and again; and what is found is
 * only looked at: whether it is a ghost is decided on what is mirrored of it then. */

static bool can_look(const struct hf_node *node)
{
    return node->synced && node->lease.lease != 0 && node->look.token == 0 &&
           !hf_node_lacks(node, HF_MUTANT_NO_LOOK);
}

hf_ms hf_node_look_due(const struct hf_node *node)
{
    return can_look(node) ? node->look_at : HF_NODE_NEVER;
}

int hf_node_look(struct hf_node *node, struct hf_intent *ret)
{
    if (node->look_at == 0)
        node->look_at = node->now + node->policy.look_first;
    if (node->now < hf_node_look_due(node))
        return NODE_GO_ON;
    node->look_at = node->now + node->policy.look_again;
    node->look =
        (struct node_flight){ .token = ++node->last_token, .lease = node->lease.lease };
    ret->kind = HF_INTENT_READ;
    ret->token = node->look.token;
    ret->subject = "lease";
    ret->why = "something may hang on it that nobody here knows of";
    ret->read = (struct hf_intent_read){ .lease = node->lease.lease };
    return NODE_INTENT;
}

static bool is_stranger(const struct hf_node *node, const struct hf_key *key)
{
    return key->kind == HF_KEY_AGENT_LIVE && hf_node_find(node, key->name) == NULL;
}

static size_t count_strangers(const struct hf_node *node, const struct hf_event_answer *answer)
{
    size_t count = 0;

    for (size_t i = 0; i < answer->found_count; i++)
        count += is_stranger(node, &answer->found[i].key);
    return count;
}

/* Whom nobody knows is mirrored from now on, as a guest is. Room is made before the first of
 * them comes, so that none of them is forgotten for the next; those that there is no room for
 * are found again. */
static int invite_strangers(struct hf_node *node, const struct hf_event_answer *answer)
{
    struct node_agent *a;
    int err = HF_OK;

    if (node->guest_count + count_strangers(node, answer) > node->policy.max_guests)
        hf_node_drop_idle_guests(node);
    for (size_t i = 0; i < answer->found_count && err == HF_OK; i++) {
        if (is_stranger(node, &answer->found[i].key) &&
            node->guest_count < node->policy.max_guests)
            err = hf_node_invite(node, answer->found[i].key.name, &a);
    }
    return err;
}

int hf_node_look_answer(struct hf_node *node, const struct hf_event_answer *answer)
{
    if (answer->err == HF_OK && node->look.lease == node->lease.lease) {
        int err = invite_strangers(node, answer);

        if (err != HF_OK)
            return err;
    }
    node->look = (struct node_flight){ 0 };
    return HF_OK;
}
