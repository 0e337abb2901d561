#include <stddef.h>
#include <string.h>

#include "io/runner_private.h"

enum { SURVEY_MS = 10000 };

/* etcd's own word for it: an answer that we cannot read is something else. */
static bool is_corrupt(const struct hf_etcd_result *result)
{
    return result->err == HF_ECORRUPT && result->message != NULL &&
           strstr(result->message, "corrupt cluster") != NULL;
}

void hf_runner_on_result(struct hf_runner *runner, const struct hf_etcd_result *result)
{
    struct hf_event_cluster *seen = &runner->cluster.seen;

    if (result->err == HF_OK && runner->session != NULL)
        hf_session_on_header(runner->session, &result->header);
    if (result->err == HF_OK && runner->candidate != NULL)
        hf_candidate_on_header(runner->candidate, &result->header);
    if (result->header.raft_term > seen->raft_term) {
        seen->raft_term = result->header.raft_term;
        runner->cluster.untold = true;
    }
    if (result->err == HF_ENOSPACE && !seen->no_space) {
        seen->no_space = true;
        runner->cluster.untold = true;
    }
    if (is_corrupt(result) && !seen->corrupt) {
        seen->corrupt = true;
        runner->cluster.untold = true;
    }
}

static bool is_leader(const struct hf_runner *runner)
{
    return runner->candidate != NULL &&
           hf_candidate_get_view(runner->candidate).state == HF_ELECTION_LEADER;
}

/* Whoever asks when nobody answered knows less than before. */
static void on_survey(const struct hf_survey_result *result, void *arg)
{
    struct hf_runner *runner = arg;

    runner->cluster.survey = NULL;
    if (runner->closing)
        return;
    if (result->result.err != HF_OK &&
        (result->result.err != HF_EDENIED || !runner->cluster.refused))
        hf_runner_complain(runner, "survey", result->result.err, result->result.message);
    runner->cluster.refused = result->result.err == HF_EDENIED;
    hf_runner_on_result(runner, &result->result);
    runner->cluster.seen.agrees = result->result.err == HF_OK && result->agrees;
    if (result->result.err == HF_OK) {
        runner->cluster.seen.no_space = result->no_space;
        runner->cluster.seen.corrupt = result->corrupt;
    }
    runner->cluster.untold = true;
    hf_runner_soon(runner);
    hf_runner_survey_later(runner);
}

static void on_alarm(struct hf_alarm *alarm)
{
    struct hf_runner *runner =
        (struct hf_runner *)((char *)alarm - offsetof(struct hf_runner, cluster.alarm));
    const struct hf_backend *backend = &runner->backend;
    int err;

    if (!is_leader(runner)) {
        hf_runner_survey_later(runner);
        return;
    }
    err = backend->ops->survey(backend->self, on_survey, runner, &runner->cluster.survey);
    if (err == HF_OK)
        return;
    runner->cluster.survey = NULL;
    hf_runner_complain(runner, "survey", err, hf_err_text(err));
    hf_runner_survey_later(runner);
}

void hf_runner_survey_later(struct hf_runner *runner)
{
    hf_ms every = runner->cfg.survey_every > 0 ? runner->cfg.survey_every : SURVEY_MS;

    runner->cluster.alarm.fn = on_alarm;
    hf_backend_set_alarm(&runner->backend, &runner->cluster.alarm,
                         hf_runner_now(runner) + every);
}

void hf_runner_survey_cancel(struct hf_runner *runner)
{
    hf_backend_unset_alarm(&runner->backend, &runner->cluster.alarm);
    if (runner->cluster.survey != NULL)
        runner->backend.ops->cancel_survey(runner->cluster.survey);
    runner->cluster.survey = NULL;
}
