/* host drain: the host gets no new starts, and what runs there ends, to be started elsewhere.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "cli/commands.h"
#include "cli/hosts.h"
#include "cli/store.h"
#include "cli/want.h"

static void change(Holdfast__V1__Host *host)
{
    host->cordoned = true;
}

struct names {
    const char *host;
    char **items;
    size_t count, cap;
};

static int add(struct hf_fleet_change *found, void *arg)
{
    struct names *names = arg;
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)found->record;
    char *name;

    if (found->key.kind != HF_KEY_AGENT_LIVE || live == NULL ||
        strcmp(live->host, names->host) != 0)
        return HF_OK;
    name = hf_strdup(found->key.name);
    if (name == NULL ||
        !hf_grow(&names->items, &names->cap, names->count + 1, sizeof(char *))) {
        free(name);
        return HF_ENOMEM;
    }
    names->items[names->count++] = name;
    return HF_OK;
}

static int run(struct cli *cli)
{
    static const struct cli_host_change CORDON = {
        .change = change,
        .when_gone = false,
        .what = "host drained",
        .then = "gets no new starts; what runs there ends, and is started elsewhere",
    };
    struct cli_want leave = { .ends = true,
                              .host = cli->args[0],
                              .what = "agent moved: host drained" };
    struct names names = { .host = cli->args[0] };
    int rc = cli_change_host(cli, &CORDON);

    /* What was started before it was cordoned is seen now. */
    cli->revision = 0;
    if (rc == HF_OK)
        rc = cli_list(cli, HF_KEY_IN_AGENTS, NULL, add, &names);
    for (size_t i = 0; rc == HF_OK && i < names.count; i++)
        rc = cli_want_of(cli, names.items[i], "its host is drained", &leave);
    for (size_t i = 0; i < names.count; i++)
        free(names.items[i]);
    free(names.items);
    return rc;
}

const struct cli_command CLI_HOST_DRAIN = {
    .name = "host drain",
    .args = "HOST",
    .arg_min = 1,
    .arg_max = 1,
    .summary = "Let what runs on a host end and be started elsewhere.",
    .more =
        "The host is cordoned first. An agent that no other host has a launcher for waits\n"
        "until `holdfast host uncordon` is said. `holdfast ps` shows what still runs there.",
    .run = run,
};
