#include <inttypes.h>

#include "cli/agents.h"
#include "cli/commands.h"
#include "cli/out.h"
#include "cli/store.h"
#include "holdfast/v1/cli.pb-c.h"

static int print(struct cli *cli, const Holdfast__V1__Leader *leader, int64_t term)
{
    Holdfast__V1__LeaderInfo info = HOLDFAST__V1__LEADER_INFO__INIT;
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    char time[CLI_AGE_SIZE], age[CLI_AGE_SIZE];

    info.id = leader->id;
    info.term = term;
    info.since = leader->since;
    if (cli->output == CLI_JSON)
        return cli_out_json(cli, &info.base);
    if (cli->output == CLI_NAME) {
        hf_buf_printf(&out, "%s\n", leader->id);
        return cli_out_text(cli, &out);
    }
    cli_out_field(&out, "leader", "%s", leader->id);
    cli_out_field(&out, "term", "%" PRId64, term);
    if (leader->since != NULL)
        cli_out_field(&out, "since", "%s (%s ago)", cli_time(leader->since, time),
                      cli_age(leader->since, age));
    cli_out_field(&out, "version", "%s", leader->version);
    cli_out_field(&out, "listens on", "%s", leader->listen);
    return cli_out_text(cli, &out);
}

static int run(struct cli *cli)
{
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    int32_t generation;
    int rc = cli_read(cli, (struct hf_key){ .kind = HF_KEY_LEADER }, &record);

    if (rc == HF_OK)
        rc = cli_show_generation(cli, &generation);
    if (rc != HF_OK)
        return rc;
    if (record.message == NULL)
        return cli_fail(cli, HF_ENOENT,
                        "nobody leads in namespace %s: agents keep running, but nothing is "
                        "recovered. Start holdfast-controller.",
                        cli->common.namespace);
    return print(cli, (const Holdfast__V1__Leader *)record.message,
                 cli_number(generation, record.seen.create_rev));
}

const struct cli_command CLI_LEADER = {
    .name = "leader",
    .args = "",
    .summary = "Show which controller leads.",
    .run = run,
};
