#include "cli/hosts.h"

#include "cli/audit.h"
#include "cli/out.h"
#include "core/rows.h"

static int fill(struct cli *cli, struct hf_plan *plan, void *arg)
{
    const struct cli_host_change *change = arg;
    CLI_CLEANUP_RECORD struct cli_record record = { 0 }, live = { 0 };
    struct hf_key key = { .kind = HF_KEY_HOST_RECORD, .name = cli->args[0] };
    struct hf_key live_key = { .kind = HF_KEY_HOST_LIVE, .name = cli->args[0] };
    Holdfast__V1__Host next;
    int rc = cli_read(cli, key, &record);

    if (rc == HF_OK)
        rc = cli_read(cli, live_key, &live);
    if (rc != HF_OK)
        return rc;
    if (record.message == NULL)
        return cli_fail(cli, HF_ENOENT, "there is no host %s; holdfast hosts lists them",
                        cli->args[0]);
    if (change->when_gone && live.message != NULL)
        return cli_fail(cli, HF_ECONFLICT,
                        "host %s is alive: its lease is held. Stop its agentd first.",
                        cli->args[0]);
    next = *(const Holdfast__V1__Host *)record.message;
    change->change(&next);
    if (change->when_gone)
        hf_plan_guard(plan, live_key, HF_GUARD_ABSENT, 0);
    hf_row_operate(plan, key, &record.seen, &next.base);
    return HF_OK;
}

int cli_change_host(struct cli *cli, const struct cli_host_change *change)
{
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    int rc = hf_name_check("host", cli->args[0], &cli->err);

    if (rc == HF_OK)
        rc = cli_act(cli, &(struct cli_act){ .fill = fill,
                                             .arg = (void *)change,
                                             .host = cli->args[0],
                                             .what = change->what });
    if (rc == HF_OK)
        rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_HOST_RECORD, .name = cli->args[0] },
                      &record);
    if (rc != HF_OK)
        return rc;
    if (cli->output == CLI_JSON && record.message != NULL)
        return cli_out_json(cli, record.message);
    if (cli->output == CLI_NAME)
        hf_buf_printf(&out, "%s\n", cli->args[0]);
    else
        hf_buf_printf(&out, "%s: %s\n", cli->args[0], change->then);
    return cli_out_text(cli, &out);
}
