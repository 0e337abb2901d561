#include "etcd/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "etcd/internal.h"
#include "etcd/statuscall.h"

enum { MEMBER_MS = 3000 };

struct question {
    struct hf_survey *survey;
    struct hf_call *call;
};

struct hf_survey {
    hf_survey_fn fn;
    void *arg;
    struct hf_survey_result told;
    uint64_t leader; /* that the first one named */
    hf_rev lowest, highest;
    bool differ;
    char message[128]; /* of the last that did not answer */
    size_t open;
    struct question questions[];
};

static void note_failure(struct hf_survey *survey, const struct hf_etcd_result *result)
{
    (void)snprintf(survey->message, sizeof survey->message, "%s", result->message);
    if (survey->told.answered == 0)
        survey->told.result.err = result->err;
}

static bool is_newer(const struct hf_etcd_header *a, const struct hf_etcd_header *b)
{
    return a->raft_term != b->raft_term ? a->raft_term > b->raft_term
                                        : a->revision > b->revision;
}

static void note_answer(struct hf_survey *survey, const struct hf_status_result *status)
{
    const struct hf_etcd_header *header = &status->result.header;
    struct hf_survey_result *told = &survey->told;
    bool first = told->answered++ == 0;

    told->result.err = HF_OK;
    for (size_t i = 0; i < status->alarm_count; i++) {
        told->no_space |= strstr(status->alarms[i], "NOSPACE") != NULL;
        told->corrupt |= strstr(status->alarms[i], "CORRUPT") != NULL;
    }
    if (first)
        survey->leader = status->leader;
    survey->differ |= status->leader == 0 || status->leader != survey->leader ||
                      (!first && header->raft_term != told->result.header.raft_term);
    if (first || header->revision < survey->lowest)
        survey->lowest = header->revision;
    if (first || header->revision > survey->highest)
        survey->highest = header->revision;
    if (first || is_newer(header, &told->result.header))
        told->result.header = *header;
}

static void finish(struct hf_survey *survey)
{
    struct hf_survey_result told = survey->told;

    told.result.message = told.result.err == HF_OK ? "" : survey->message;
    told.agrees = told.answered == told.asked && !survey->differ && !told.corrupt &&
                  survey->highest - survey->lowest <= HF_SURVEY_SLACK;
    survey->fn(&told, survey->arg);
    free(survey);
}

static void on_status(const struct hf_status_result *status, void *arg)
{
    struct question *question = arg;
    struct hf_survey *survey = question->survey;

    question->call = NULL;
    if (status->result.err == HF_OK)
        note_answer(survey, status);
    else
        note_failure(survey, &status->result);
    if (--survey->open == 0)
        finish(survey);
}

int hf_etcd_survey(struct hf_etcd *etcd, hf_survey_fn fn, void *arg,
                   struct hf_survey **ret_survey)
{
    size_t count = etcd->endpoint_count;
    struct hf_survey *survey =
        hf_calloc(1, sizeof *survey + count * sizeof survey->questions[0]);

    if (survey == NULL)
        return HF_ENOMEM;
    survey->fn = fn;
    survey->arg = arg;
    survey->told.asked = count;
    survey->told.result.sent_at = hf_etcd_now(etcd);
    for (; survey->open < count; survey->open++) {
        struct question *question = &survey->questions[survey->open];
        int err;

        question->survey = survey;
        err = hf_status_start(etcd, &etcd->endpoints[survey->open], MEMBER_MS, on_status,
                              question, &question->call);
        if (err != HF_OK) {
            question->call = NULL;
            hf_survey_cancel(survey);
            return err;
        }
    }
    if (ret_survey != NULL)
        *ret_survey = survey;
    return HF_OK;
}

void hf_survey_cancel(struct hf_survey *survey)
{
    for (size_t i = 0; i < survey->told.asked; i++) {
        if (survey->questions[i].call != NULL)
            hf_call_cancel(survey->questions[i].call);
    }
    free(survey);
}
