#include "cli/want.h"

#include <string.h>

#include "cli/agents.h"
#include "cli/audit.h"
#include "core/rows.h"

const struct hf_option CLI_WANT_OPTIONS[1] = {
    { .flag = "reason",
      .value = "TEXT",
      HF_OPTION_FIELD(STRING, struct cli_want_settings, reason),
      .help = "Why; it is kept with the agent." },
};

/* What the decision rests on. */
struct known {
    struct cli_record spec, live, wanted, health;
    int32_t generation;
};

static void forget(struct known *known)
{
    cli_record_done(&known->spec);
    cli_record_done(&known->live);
    cli_record_done(&known->wanted);
    cli_record_done(&known->health);
}

static int learn(struct cli *cli, const char *agent, struct known *known)
{
    const struct {
        enum hf_key_kind kind;
        struct cli_record *record;
    } PARTS[] = { { HF_KEY_AGENT_SPEC, &known->spec },
                  { HF_KEY_AGENT_LIVE, &known->live },
                  { HF_KEY_WANTED, &known->wanted },
                  { HF_KEY_HEALTH, &known->health } };
    int rc = cli_read_generation(cli, &known->generation);

    for (size_t i = 0; i < sizeof PARTS / sizeof PARTS[0] && rc == HF_OK; i++)
        rc = cli_read(cli, (struct hf_key){ .kind = PARTS[i].kind, .name = agent },
                      PARTS[i].record);
    if (rc == HF_OK && known->spec.message == NULL && known->live.message == NULL)
        return cli_fail(cli, HF_ENOENT, "there is no agent %s; holdfast ps lists them", agent);
    return rc;
}

/* Nothing that was counted stands against it any more. */
static void release(struct hf_plan *plan, const char *agent, const struct known *known)
{
    const Holdfast__V1__Health *health = (const Holdfast__V1__Health *)known->health.message;
    Holdfast__V1__Health next;

    if (health == NULL || (!health->held && health->n_started_at == 0))
        return;
    next = *health;
    next.held = false;
    next.restarts = 0;
    next.n_started_at = 0;
    next.next_start = NULL;
    hf_row_operate(plan, (struct hf_key){ .kind = HF_KEY_HEALTH, .name = agent },
                   &known->health.seen, &next.base);
}

/* Who, and what of it. */
struct wish {
    const char *agent, *reason;
    const struct cli_want *want;
    bool needless; /* it does not concern it any more */
};

/* What a person stopped stays stopped, and what has left is not called back. */
static bool concerns(const struct cli_want *want, const struct known *known)
{
    const Holdfast__V1__Wanted *wanted = (const Holdfast__V1__Wanted *)known->wanted.message;
    const Holdfast__V1__Live *live = (const Holdfast__V1__Live *)known->live.message;

    if (want->host == NULL)
        return true;
    return live != NULL && strcmp(live->host, want->host) == 0 &&
           (wanted == NULL || wanted->state == HOLDFAST__V1__WANTED__STATE__running);
}

static int fill(struct cli *cli, struct hf_plan *plan, void *arg)
{
    struct wish *wish = arg;
    const struct cli_want *want = wish->want;
    const char *agent = wish->agent;
    struct known known = { 0 };
    Holdfast__V1__Wanted next = HOLDFAST__V1__WANTED__INIT;
    int rc = learn(cli, agent, &known);

    if (rc == HF_OK && !concerns(want, &known)) {
        wish->needless = true;
        rc = HF_ECANCELED;
    }
    if (rc == HF_OK) {
        int64_t life = cli_number(known.generation, known.live.seen.create_rev);

        if (known.wanted.message != NULL)
            next = *(const Holdfast__V1__Wanted *)known.wanted.message;
        next.state = want->stopped ? HOLDFAST__V1__WANTED__STATE__stopped
                                   : HOLDFAST__V1__WANTED__STATE__running;
        next.by = (char *)cli_operator();
        next.reason = (char *)(wish->reason != NULL ? wish->reason : "");
        if (want->ends && known.live.message != NULL && life > next.end_upto)
            next.end_upto = life;
        hf_row_want(plan, agent, &known.wanted.seen, &next);
        if (want->host != NULL)
            hf_plan_guard(plan, (struct hf_key){ .kind = HF_KEY_AGENT_LIVE, .name = agent },
                          HF_GUARD_CREATE, known.live.seen.create_rev);
        if (want->releases)
            release(plan, agent, &known);
    }
    forget(&known);
    return rc;
}

static int print(struct cli *cli, const struct cli_want *want)
{
    CLI_CLEANUP_RECORD struct cli_record wanted = { 0 };
    HF_CLEANUP_BUF struct hf_buf out = { 0 };
    int rc =
        cli_read(cli, (struct hf_key){ .kind = HF_KEY_WANTED, .name = cli->args[0] }, &wanted);

    if (rc != HF_OK)
        return rc;
    if (cli->output == CLI_JSON && wanted.message != NULL)
        return cli_out_json(cli, wanted.message);
    if (cli->output == CLI_NAME)
        hf_buf_printf(&out, "%s\n", cli->args[0]);
    else
        hf_buf_printf(&out, "%s: %s\n", cli->args[0], want->then);
    return cli_out_text(cli, &out);
}

int cli_want_of(struct cli *cli, const char *agent, const char *reason,
                const struct cli_want *want)
{
    struct wish wish = { .agent = agent, .reason = reason, .want = want };
    int rc = hf_name_check("agent", agent, &cli->err);

    if (rc == HF_OK)
        rc = cli_act(cli, &(struct cli_act){ .fill = fill,
                                             .arg = &wish,
                                             .agent = agent,
                                             .what = want->what,
                                             .reason = reason });
    return wish.needless ? HF_OK : rc;
}

int cli_want(struct cli *cli, const struct cli_want *want)
{
    const struct cli_want_settings *settings = cli->settings;
    int rc = cli_want_of(cli, cli->args[0], settings->reason, want);

    return rc == HF_OK ? print(cli, want) : rc;
}
