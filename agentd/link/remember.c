#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/call.h"
#include "agentd/link/link.h"
#include "base/log.h"
#include "schema/json.h"

/* Of a process: its token, as whom it runs, its first life, what it was asked, whether it
 * leaves, how it is judged, and the spec that it was made of, each on a line of its own. */

#define BORN   "born "
#define LEAVES "leave "
#define NUDGE  "nudge "
#define USER   "user "

static void put_leave(const struct link_process *process, struct hf_buf *blob)
{
    Holdfast__V1__LeaveRequest leave = HOLDFAST__V1__LEAVE_REQUEST__INIT;

    if (!process->leaving)
        return;
    leave.reason = (char *)process->leave_text;
    hf_buf_puts(blob, LEAVES);
    if (hf_json_encode(&leave.base, blob) != HF_OK)
        hf_buf_puts(blob, "{}");
    hf_buf_putc(blob, '\n');
}

static void put_nudge(const struct link_process *process, struct hf_buf *blob)
{
    if (process->nudge.receipt.id[0] == '\0')
        return;
    hf_buf_puts(blob, NUDGE);
    link_nudge_format(&process->nudge, blob);
    hf_buf_putc(blob, '\n');
}

bool link_remember(struct link_process *process)
{
    HF_CLEANUP_BUF struct hf_buf blob = { .limit = AGENTD_BLOB_MAX };

    hf_buf_printf(&blob, "%s\n", process->token);
    if (process->has_user)
        hf_buf_printf(&blob, USER "%" PRIu32 " %" PRIu32 "\n", (uint32_t)process->uid,
                      (uint32_t)process->gid);
    if (process->born != 0)
        hf_buf_printf(&blob, BORN "%" PRId64 "\n", process->born);
    put_nudge(process, &blob);
    put_leave(process, &blob);
    link_judged_format(&process->judged, &blob);
    /* A spec that does not fit is in etcd, too. */
    if (process->spec != NULL && hf_json_encode(&process->spec->base, &blob) != HF_OK)
        HF_LOG_WARN("spec_too_long", HF_STR("agent", process->who.agent));
    if (blob.data == NULL)
        return false;
    process->told++;
    link_channel_remember(process->agent->link->channel, &process->who, &process->incarnation,
                          blob.data);
    return true;
}

void link_remember_on_reply(const struct agentd_who *who, const struct agentd_reply *reply,
                            void *arg)
{
    struct link_process *process = link_process_find(arg, who);

    if (process == NULL)
        return; /* it has ended, and whoever left was answered */
    process->remembered++;
    link_call_on_remembered(process, reply->code == AGENTD_CODE_OK);
    link_nudge_on_remembered(process, reply->code == AGENTD_CODE_OK);
}

static void read_leave(struct link_process *process, const char *line, size_t len)
{
    ProtobufCMessage *message;

    process->leaving = true;
    if (hf_json_decode(&holdfast__v1__leave_request__descriptor, line, len, NULL, &message,
                       NULL) != HF_OK)
        return;
    (void)snprintf(process->leave_text, sizeof process->leave_text, "%s",
                   ((const Holdfast__V1__LeaveRequest *)message)->reason);
    hf_json_free(message);
}

/* An agent that is not configured any more is what its process was made of. */
static void read_spec(struct link_process *process, const char *text)
{
    struct link_agent *agent = process->agent;
    ProtobufCMessage *spec;

    if (process->spec != NULL || hf_json_decode(&holdfast__v1__spec__descriptor, text,
                                                strlen(text), NULL, &spec, NULL) != HF_OK)
        return;
    process->spec = (Holdfast__V1__Spec *)spec;
    if (agent->spec == NULL && hf_json_copy(&process->spec->base, &spec) == HF_OK)
        agent->spec = (Holdfast__V1__Spec *)spec;
}

static void read_user(struct link_process *process, const char *line)
{
    char *end;

    process->uid = (uid_t)strtoul(line, &end, 10);
    process->has_user = end != line && *end == ' ';
    process->gid = (gid_t)strtoul(end, NULL, 10);
}

void link_remember_read(struct link_process *process, const char *blob)
{
    const char *line = strchr(blob, '\n');
    size_t len = line != NULL ? (size_t)(line - blob) : 0;

    if (len == 0 || len >= sizeof process->token)
        return;
    memcpy(process->token, blob, len);
    process->token[len] = '\0';
    for (line++; *line != '\0' && *line != '{'; line += *line == '\n' ? 1 : 0) {
        len = strcspn(line, "\n");
        if (strncmp(line, BORN, strlen(BORN)) == 0)
            process->born = strtoll(line + strlen(BORN), NULL, 10);
        else if (strncmp(line, USER, strlen(USER)) == 0)
            read_user(process, line + strlen(USER));
        else if (strncmp(line, NUDGE, strlen(NUDGE)) == 0)
            link_nudge_parse(&process->nudge, line + strlen(NUDGE));
        else if (strncmp(line, LEAVES, strlen(LEAVES)) == 0)
            read_leave(process, line + strlen(LEAVES), len - strlen(LEAVES));
        else
            (void)link_judged_read(&process->judged, line, len);
        line += len;
    }
    link_said_keep(&process->said, process->judged.state, process->judged.announced_wall,
                   hf_clock_wall());
    read_spec(process, line);
}

/* Of all agents. */

void link_memo_write(struct link *link)
{
    HF_CLEANUP_BUF struct hf_buf memo = { .limit = AGENTD_MEMO_MAX };

    link->memo_due = false;
    link_memo_format(link->agents, &memo);
    link_channel_memo(link->channel, memo.data != NULL ? memo.data : "");
}
