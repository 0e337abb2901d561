#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "agentd/link/link.h"
#include "base/alloc.h"
#include "base/id.h"
#include "base/log.h"
#include "core/rows.h"
#include "io/commit.h"
#include "schema/json.h"

enum { PATIENCE_MS = 3000 };

struct leave {
    struct link *link;
    link_left_fn fn;
    struct hf_call *call;
    struct hf_commit *commit;
    struct link_process *process; /* whose end is being written */
};

static void finish(struct leave *leave, const char *trouble)
{
    link_left_fn fn = leave->fn;
    struct link *link = leave->link;

    if (link->burial == leave)
        link->burial = NULL;
    if (trouble != NULL)
        HF_LOG_WARN("not_said_goodbye", HF_STR("why", trouble),
                    HF_STR("next", "the lease ends by itself"));
    free(leave);
    fn(link);
}

/* The host's record as it is, with `left` set. */

static void on_committed(const struct hf_commit_result *result, void *arg)
{
    finish(arg,
           result->outcome == HF_OUTCOME_DONE ? NULL : hf_commit_outcome_name(result->outcome));
}

static int plan_left(const struct link *link, const struct hf_kv *kv, struct hf_plan *plan)
{
    struct hf_key key = { HF_KEY_HOST_RECORD, .name = link->settings->host };
    struct hf_bytes old = kv->value;
    ProtobufCMessage *record;
    char op_id[HF_ID_LEN + 1];
    int rc = hf_id_new(op_id);

    if (rc == HF_OK)
        rc = hf_json_decode(&holdfast__v1__host__descriptor, old.data, old.len, NULL, &record,
                            NULL);
    if (rc != HF_OK)
        return rc;
    ((Holdfast__V1__Host *)record)->left = true;
    hf_plan_init(plan, link->settings->common.namespace, HF_WRITER_OWNER, op_id);
    hf_plan_begin_row(plan, HF_ROW_LEAVE);
    hf_plan_guard_same(plan, key, kv->mod_rev, old);
    hf_plan_put(plan, key, record, old, 0);
    hf_json_free(record);
    rc = hf_plan_check(plan, NULL);
    if (rc != HF_OK)
        hf_plan_done(plan);
    return rc;
}

static void on_record(const struct hf_range_result *result, void *arg)
{
    struct leave *leave = arg;
    struct hf_plan plan;
    int rc;

    leave->call = NULL;
    if (result->result.err != HF_OK || result->count == 0) {
        finish(leave, result->result.err != HF_OK ? hf_err_text(result->result.err) : NULL);
        return;
    }
    rc = plan_left(leave->link, &result->kvs[0], &plan);
    if (rc == HF_OK) {
        rc = hf_commit_start(&leave->link->backend, &plan, PATIENCE_MS, on_committed, leave,
                             NULL);
        hf_plan_done(&plan);
    }
    if (rc != HF_OK)
        finish(leave, hf_err_text(rc));
}

static struct leave *new_leave(struct link *link, link_left_fn fn)
{
    struct leave *leave = hf_calloc(1, sizeof *leave);

    if (leave != NULL)
        *leave = (struct leave){ .link = link, .fn = fn };
    return leave;
}

void link_leave(struct link *link, link_left_fn fn)
{
    struct leave *leave = new_leave(link, fn);
    struct hf_range_request request = { .timeout = PATIENCE_MS };
    char key[HF_KEY_SIZE];
    int len;

    if (leave == NULL) {
        fn(link);
        return;
    }
    len = hf_key_format(link->settings->common.namespace,
                        &(struct hf_key){ HF_KEY_HOST_RECORD, .name = link->settings->host },
                        key, NULL);
    request.range.key = (struct hf_bytes){ key, len > 0 ? (size_t)len : 0 };
    if (len < 0 || link->backend.ops->range(link->backend.self, &request, on_record, leave,
                                            &leave->call) != HF_OK)
        finish(leave, "out of memory");
}

/* What an agentd that crashed here left behind: its processes, which the keeper has ended, and
 * its lease. One after the other, so that the lease goes last: with it everything else would.
 */

static void bury_next(struct leave *leave);

static void on_revoked(const struct hf_write_result *result, void *arg)
{
    int err = result->result.err;

    /* Gone, or it will expire. */
    finish(arg, err == HF_OK || err == HF_ENOENT ? NULL : hf_err_text(err));
}

static void forget(struct link *link, struct link_process *process)
{
    link_channel_order(link->channel, AGENTD_FORGET, &process->who);
    link_process_free(process);
}

static void forget_buried(struct leave *leave)
{
    forget(leave->link, leave->process);
    bury_next(leave);
}

static void log_unwritten(const struct link_process *process, const char *outcome)
{
    HF_LOG_WARN("end_not_written", HF_STR("agent", process->who.agent),
                HF_STR("outcome", outcome),
                HF_STR("next", "its registration ends with the lease"));
}

static void on_buried(const struct hf_commit_result *result, void *arg)
{
    struct leave *leave = arg;

    leave->commit = NULL;
    if (result->outcome != HF_OUTCOME_DONE)
        log_unwritten(leave->process, hf_commit_outcome_name(result->outcome));
    forget_buried(leave);
}

/* That a start by leave was made is in the exit before, and the leader may not have counted it
 * yet. */
static Holdfast__V1__Exit *read_exit(const struct hf_range_result *found)
{
    ProtobufCMessage *before = NULL;

    if (found->count > 0)
        (void)!hf_json_decode(&holdfast__v1__exit__descriptor, found->kvs[0].value.data,
                              found->kvs[0].value.len, NULL, &before, NULL);
    return (Holdfast__V1__Exit *)before;
}

/* Of whom nobody knows how it ended, or who was being ended, the next agentd ended what was
 * left. */
static Holdfast__V1__Exit__Kind kind_of(const struct link_process *process)
{
    const uint32_t ended_by_us = AGENTD_CAUSE_NO_STATUS | AGENTD_CAUSE_ASKED |
                                 AGENTD_CAUSE_FENCED | AGENTD_CAUSE_NOT_MADE |
                                 AGENTD_CAUSE_NOT_BEGUN;

    if (process->leaving)
        return HOLDFAST__V1__EXIT__KIND__left;
    if ((process->exit.causes & ended_by_us) != 0)
        return HOLDFAST__V1__EXIT__KIND__fenced;
    if ((process->exit.causes & AGENTD_CAUSE_OOM) != 0)
        return HOLDFAST__V1__EXIT__KIND__oom;
    return process->exit.wait_status == 0 ? HOLDFAST__V1__EXIT__KIND__finished
                                          : HOLDFAST__V1__EXIT__KIND__crashed;
}

static void set_end(Holdfast__V1__Exit *exit, const struct link_process *process)
{
    int status = process->exit.wait_status;

    exit->kind = kind_of(process);
    if ((process->exit.causes & AGENTD_CAUSE_NO_STATUS) != 0)
        return;
    exit->status = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
    exit->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static int plan_end(const struct leave *leave, const struct hf_range_result *found,
                    struct hf_plan *plan)
{
    const struct link_process *process = leave->process;
    const struct agentd_incarnation *life = &process->incarnation;
    Holdfast__V1__Exit exit = HOLDFAST__V1__EXIT__INIT;
    Holdfast__V1__Incarnation incarnation = HOLDFAST__V1__INCARNATION__INIT;
    Holdfast__V1__Evidence evidence = HOLDFAST__V1__EVIDENCE__INIT, *list = &evidence;
    Google__Protobuf__Timestamp at = GOOGLE__PROTOBUF__TIMESTAMP__INIT;
    Holdfast__V1__Exit *before;
    struct hf_seen seen = { 0 };
    char op_id[HF_ID_LEN + 1];
    int rc = hf_id_new(op_id);

    if (rc != HF_OK)
        return rc;
    before = read_exit(found);
    if (before != NULL && before->succession != NULL && before->succession->done)
        exit.succession = before->succession;
    if (found->count > 0)
        seen = (struct hf_seen){ .mod_rev = found->kvs[0].mod_rev,
                                 .create_rev = found->kvs[0].create_rev,
                                 .text = found->kvs[0].value };
    at.seconds = hf_clock_wall() / 1000;
    evidence.source = (char *)"keeper";
    evidence.text = (char *)process->exit.evidence;
    evidence.at = &at;
    incarnation.lease_id = life->lease_id;
    incarnation.create_revision = life->create_revision;
    incarnation.generation = (int32_t)life->generation;
    set_end(&exit, process);
    exit.incarnation = &incarnation;
    exit.evidence = &list;
    exit.n_evidence = 1;
    hf_plan_init(plan, leave->link->settings->common.namespace, HF_WRITER_OWNER, op_id);
    hf_row_end(plan,
               &(struct hf_life){ .agent = process->who.agent,
                                  .lease = life->lease_id,
                                  .create_rev = life->create_revision,
                                  .generation = (int32_t)life->generation },
               &seen, &exit);
    hf_json_free((ProtobufCMessage *)before);
    rc = hf_plan_check(plan, NULL);
    if (rc != HF_OK)
        hf_plan_done(plan);
    return rc;
}

static void on_exit_read(const struct hf_range_result *result, void *arg)
{
    struct leave *leave = arg;
    struct hf_plan plan;
    int rc = result->result.err;

    leave->call = NULL;
    if (rc == HF_OK)
        rc = plan_end(leave, result, &plan);
    if (rc == HF_OK) {
        rc = hf_commit_start(&leave->link->backend, &plan, PATIENCE_MS, on_buried, leave,
                             &leave->commit);
        hf_plan_done(&plan);
    }
    if (rc != HF_OK)
        forget_buried(leave);
}

static struct link_process *find_abandoned(const struct link *link)
{
    for (const struct link_agent *agent = link->agents; agent != NULL; agent = agent->next) {
        for (struct link_process *p = agent->processes; p != NULL; p = p->next) {
            if (link_process_is_abandoned(p))
                return p;
        }
    }
    return NULL;
}

static void revoke_lost(struct leave *leave)
{
    struct link *link = leave->link;
    int64_t lease = link_channel_get_hello(link->channel)->lost_lease_id;

    if (lease == 0)
        finish(leave, NULL);
    else if (link->backend.ops->revoke(link->backend.self, lease, on_revoked, leave,
                                       &leave->call) != HF_OK)
        finish(leave, "out of memory");
}

static void bury_next(struct leave *leave)
{
    struct link *link = leave->link;
    struct hf_range_request request = { .timeout = PATIENCE_MS };
    char key[HF_KEY_SIZE];
    int len;

    leave->process = find_abandoned(link);
    /* Who ends has no time to write them one after the other while etcd is away. */
    for (; link->leaving && leave->process != NULL; leave->process = find_abandoned(link)) {
        log_unwritten(leave->process, "agentd ends");
        forget(link, leave->process);
    }
    if (leave->process == NULL) {
        revoke_lost(leave);
        return;
    }
    len = hf_key_format(
        link->settings->common.namespace,
        &(struct hf_key){ HF_KEY_AGENT_EXIT, .name = leave->process->who.agent }, key, NULL);
    request.range.key = (struct hf_bytes){ key, len > 0 ? (size_t)len : 0 };
    if (leave->process->incarnation.create_revision == 0 || len < 0 ||
        link->backend.ops->range(link->backend.self, &request, on_exit_read, leave,
                                 &leave->call) != HF_OK)
        forget_buried(leave);
}

void link_bury_lost(struct link *link, link_left_fn fn)
{
    struct leave *leave = new_leave(link, fn);

    if (leave == NULL) {
        fn(link);
        return;
    }
    link->burial = leave;
    bury_next(leave);
}

void link_bury_cancel(struct link *link)
{
    struct leave *leave = link->burial;

    link->burial = NULL;
    if (leave == NULL)
        return;
    if (leave->commit != NULL)
        hf_commit_cancel(leave->commit);
    else
        link->backend.ops->cancel(leave->call);
    free(leave);
}
