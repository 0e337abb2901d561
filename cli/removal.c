#include "cli/removal.h"

#include <stdio.h>
#include <string.h>

#include "cli/out.h"

static int fill(struct cli *cli, struct hf_plan *plan, void *arg)
{
    const struct cli_removal *removal = arg;
    const char *name = cli->args[0];
    const struct hf_key wish = { .kind = HF_KEY_WANTED, .name = name };
    CLI_CLEANUP_RECORD struct cli_record kept = { 0 }, live = { 0 }, wanted = { 0 };
    int rc = cli_read(cli, (struct hf_key){ .kind = removal->kept, .name = name }, &kept);

    if (rc == HF_OK)
        rc = cli_read(cli, (struct hf_key){ .kind = removal->live, .name = name }, &live);
    if (rc == HF_OK && removal->has_wish)
        rc = cli_read(cli, wish, &wanted);
    if (rc != HF_OK)
        return rc;
    if (kept.message == NULL && wanted.message == NULL)
        return cli_fail(cli, HF_ENOENT, "there is no %s %s", removal->what, name);
    if (live.message != NULL)
        return cli_fail(cli, HF_ECONFLICT, "%s %s is alive. %s", removal->what, name,
                        removal->how_to_end);
    removal->row(plan, name, &kept.seen);
    if (wanted.message != NULL)
        hf_plan_guard(plan, wish, HF_GUARD_MOD, wanted.seen.mod_rev);
    return HF_OK;
}

int cli_remove(struct cli *cli, const struct cli_removal *removal)
{
    bool is_agent = strcmp(removal->what, "agent") == 0;
    char what[32], sentence[HF_NAME_MAX + 16];
    int rc = hf_name_check(removal->what, cli->args[0], &cli->err);

    (void)snprintf(what, sizeof what, "%s removed", removal->what);
    if (rc == HF_OK)
        rc = cli_act(cli, &(struct cli_act){ .fill = fill,
                                             .arg = (void *)removal,
                                             .agent = is_agent ? cli->args[0] : NULL,
                                             .host = is_agent ? NULL : cli->args[0],
                                             .what = what });
    if (rc != HF_OK)
        return rc;
    (void)snprintf(sentence, sizeof sentence, "%s: removed", cli->args[0]);
    return cli_out_done(cli, cli->args[0], "removed", sentence);
}
