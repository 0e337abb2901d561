/* check_stalled.c - an incarnation is ended because it stands still (I14) only when it was
 * asked why, has had its time to answer, and for as long has neither reported nor done
 * anything: by what stands in etcd when its end is ordered, whatever the leader had been told.
 */
#include <stdio.h>
#include <string.h>

#include "core/moments.h"
#include "schema/json.h"
#include "sim/check_private.h"

static const struct hfs_entry *find(const struct hfs_check *check, struct hf_key key)
{
    char text[HF_KEY_SIZE];
    int len = hf_key_format(check->ns, &key, text, NULL);

    hfs_must(len);
    return hfs_store_get(hfs_etcd_get_store(check->etcd),
                         (struct hf_bytes){ text, (size_t)len });
}

/* The inquiry after which it is ended; NULL: it is not, or for another reason. */
static const Holdfast__V1__Health__Inquiry *find_inquiry(const struct c_change *change)
{
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)change->record;

    return health != NULL && health->inquiry != NULL && !health->inquiry->answered &&
                   health->inquiry->incarnation == health->end_upto &&
                   health->n_evidence == 1 && strcmp(health->evidence[0]->source, "report") == 0
               ? health->inquiry
               : NULL;
}

static void judge_words(struct hfs_check *check, const char *agent,
                        const Holdfast__V1__Health__Inquiry *inquiry)
{
    const struct hfs_entry *entry =
        find(check, (struct hf_key){ HF_KEY_AGENT_REPORT, .name = agent });
    ProtobufCMessage *record = NULL;
    const Holdfast__V1__Report *report;

    if (entry == NULL) {
        hfs_check_violate(check, "I14 %s is ended, and never sent a heartbeat", agent);
        return;
    }
    hfs_must(hf_json_decode(hf_key_get_record(HF_KEY_AGENT_REPORT), entry->value,
                            entry->value_len, NULL, &record, NULL));
    report = (const Holdfast__V1__Report *)record;
    if (report->heartbeat_at == NULL)
        hfs_check_violate(check, "I14 %s is ended, and never sent a heartbeat", agent);
    if (hf_moment_read(report->said_at) != hf_moment_read(inquiry->said_at))
        hfs_check_violate(check, "I14 %s is ended although it answered", agent);
    hf_json_free(record);
}

void hfs_check_judge_stalled(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Health__Inquiry *inquiry = find_inquiry(change);
    const struct c_agent *agent = hfs_check_agent(check, change->key.name);
    const struct hfs_entry *task;
    hf_ms least, made_at;

    if (inquiry == NULL || inquiry->incarnation <= agent->health_upto ||
        check->writer == NULL || hfs_check_is_void(check))
        return;
    least = hf_moment_read(inquiry->answer_by) - hf_moment_read(inquiry->asked_at);
    made_at = check->letter->made_at;
    task = find(check, (struct hf_key){ HF_KEY_TASK, .name = inquiry->task });
    if (strcmp(agent->inquiry, inquiry->id) != 0 || made_at - agent->asked_at < least)
        hfs_check_violate(check, "I14 %s is ended before it could answer", agent->name);
    if (made_at - agent->reported_at < least)
        hfs_check_violate(check, "I14 %s is ended although it reported", agent->name);
    if (task == NULL || task->mod_rev != inquiry->task_revision)
        hfs_check_violate(check, "I14 %s is ended although %s moved", agent->name,
                          inquiry->task);
    judge_words(check, agent->name, inquiry);
}

void hfs_check_apply_inquiry(struct hfs_check *check, const struct c_change *change)
{
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)change->record;
    struct c_agent *agent = hfs_check_agent(check, change->key.name);

    agent->health_upto = health != NULL ? health->end_upto : 0;
    if (health == NULL || health->inquiry == NULL ||
        strcmp(agent->inquiry, health->inquiry->id) == 0)
        return;
    (void)snprintf(agent->inquiry, sizeof agent->inquiry, "%s", health->inquiry->id);
    agent->asked_at = check->writer != NULL ? check->letter->made_at : check->world->now;
}
