#include "sim/provoke.h"

#include <stdio.h>

#include "sim/mutants.h"

/* Before whoever sent it takes its outcome for unknown, and sends it once more. */
enum { MOMENT_MS = 1500 };

#define OWNER(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* At once, or when its lease is over. */
static void depose(struct hfs_cluster *cluster, const struct hfs_process *leader)
{
    for (unsigned i = 0; i < cluster->cfg.controllers; i++) {
        struct hfs_controller *controller = &cluster->controllers[i];

        if (&controller->process != leader)
            continue;
        if (hfs_random_percent(&cluster->dice, 50))
            hfs_controller_resign(controller);
        else
            hfs_controller_crash(controller);
    }
}

static void on_timer(struct hfs_timer *timer)
{
    struct hfs_provocation *provocation = OWNER(timer, struct hfs_provocation, timer);
    struct hfs_cluster *cluster = OWNER(provocation, struct hfs_cluster, provocation);

    if (provocation->kind == HF_KEY_LEADER)
        depose(cluster, provocation->from);
    else if (provocation->kind == HF_KEY_AGENT_LIVE)
        hfs_person_want(cluster, provocation->name, true);
    else
        hfs_person_cancel(cluster, provocation->name);
}

/* Other keys change often enough by themselves; who is swept would not come back. */
static bool can_provoke(const struct hfs_aim *aim, enum hf_key_kind kind)
{
    return kind == HF_KEY_LEADER || kind == HF_KEY_TASK ||
           (kind == HF_KEY_AGENT_LIVE && aim->at->row == HF_ROW_SWEEP);
}

static bool find_key(const struct hfs_aim *aim, const struct hfs_txn *txn,
                     char scratch[HF_KEY_SIZE], struct hf_key *ret_key)
{
    for (size_t i = 0; i < txn->compare_count; i++) {
        if (txn->compares[i].aimed &&
            hf_key_parse(HFS_NS, txn->compares[i].key, scratch, ret_key, NULL) == HF_OK)
            return can_provoke(aim, ret_key->kind);
    }
    return false;
}

void hfs_provoke(struct hfs_cluster *cluster, const struct hfs_process *from,
                 const struct hfs_letter *letter)
{
    struct hfs_provocation *provocation = &cluster->provocation;
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    if (!cluster->cfg.aim.provokes || hfs_timer_is_armed(&provocation->timer) ||
        !find_key(&cluster->cfg.aim, &letter->request->txn, scratch, &key))
        return;
    *provocation =
        (struct hfs_provocation){ .timer.fn = on_timer, .kind = key.kind, .from = from };
    (void)snprintf(provocation->name, sizeof provocation->name, "%s",
                   key.kind != HF_KEY_LEADER ? key.name : "");
    hfs_timer_start(&cluster->world, &provocation->timer,
                    cluster->world.now + 1 +
                        (hf_ms)hfs_random_below(&cluster->dice, MOMENT_MS));
}

void hfs_provoke_no_more(struct hfs_cluster *cluster)
{
    hfs_timer_stop(&cluster->world, &cluster->provocation.timer);
}
