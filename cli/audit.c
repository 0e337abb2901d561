#include "cli/audit.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/moments.h"
#include "core/rows.h"

enum { ATTEMPTS = 8 };

const char *cli_operator(void)
{
    static const char *const NAMES[] = { "SUDO_USER", "USER", "LOGNAME" };

    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        const char *name = getenv(NAMES[i]);

        if (name != NULL && name[0] != '\0')
            return name;
    }
    return "operator";
}

/* The newest entry's number: they sort by it, but etcd is asked in pages from the oldest. */

struct newest {
    struct cli *cli;
    int64_t seq;
    bool done;
    int err;
};

static void on_page(const struct hf_range_result *result, void *arg)
{
    struct newest *newest = arg;
    char scratch[HF_KEY_SIZE];
    struct hf_key key;

    if (result->result.err != HF_OK)
        newest->err = cli_explain(newest->cli, &result->result);
    for (size_t i = 0; i < result->count; i++) {
        if (hf_key_parse(newest->cli->common.namespace, result->kvs[i].key, scratch, &key,
                         NULL) == HF_OK &&
            key.seq > newest->seq)
            newest->seq = key.seq;
    }
    newest->done = result->result.err != HF_OK || !result->more;
}

static int find_newest(struct cli *cli, int64_t *ret_seq)
{
    struct newest newest = { .cli = cli };
    struct hf_range_request request = { .keys_only = true, .range = { .prefix = true } };
    struct hf_list *list;
    char text[HF_KEY_SIZE];
    int rc = hf_key_prefix(cli->common.namespace, HF_KEY_IN_EVENTS, NULL, text, &cli->err);

    if (rc < 0)
        return rc;
    request.range.key = (struct hf_bytes){ .data = text, .len = (size_t)rc };
    rc = hf_etcd_list(cli->etcd, &request, on_page, &newest, &list);
    if (rc != HF_OK)
        return cli_fail(cli, rc, "%s", hf_err_text(rc));
    (void)!cli_wait(cli, &newest.done, INT64_MAX);
    *ret_seq = newest.seq;
    return newest.err;
}

static void add_event(struct hf_plan *plan, const struct cli_act *act, int64_t seq)
{
    Holdfast__V1__Event event = HOLDFAST__V1__EVENT__INIT;
    Holdfast__V1__Evidence evidence = HOLDFAST__V1__EVIDENCE__INIT;
    Holdfast__V1__Evidence *list = &evidence;
    Google__Protobuf__Timestamp at;

    event.at = hf_moment_write(hf_clock_wall(), &at);
    event.kind = HOLDFAST__V1__EVENT__KIND__operator;
    event.actor = (char *)cli_operator();
    event.agent = (char *)(act->agent != NULL ? act->agent : "");
    event.host = (char *)(act->host != NULL ? act->host : "");
    event.task = (char *)(act->task != NULL ? act->task : "");
    event.why = (char *)act->what;
    event.correlation_id = plan->op_id;
    if (act->reason != NULL) {
        evidence.source = (char *)"operator";
        evidence.text = (char *)act->reason;
        event.evidence = &list;
        event.n_evidence = 1;
    }
    hf_row_event(plan, seq, &event);
}

static int attempt(struct cli *cli, const struct cli_act *act)
{
    struct hf_plan plan;
    int64_t newest = 0;
    int rc = find_newest(cli, &newest);

    if (rc == HF_OK)
        rc = cli_plan_begin(cli, &plan);
    if (rc != HF_OK)
        return rc;
    rc = act->fill(cli, &plan, act->arg);
    if (rc != HF_OK) {
        hf_plan_done(&plan);
        return rc;
    }
    add_event(&plan, act, newest + 1);
    return cli_commit(cli, &plan);
}

int cli_act(struct cli *cli, const struct cli_act *act)
{
    int rc = HF_ECONFLICT;

    for (int i = 0; i < ATTEMPTS && rc == HF_ECONFLICT; i++)
        rc = attempt(cli, act);
    return rc;
}
