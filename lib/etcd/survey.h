/* survey.h - asks every endpoint of a client how its member is, and whether they agree.
 *
 * A single member's word says little of a cluster: one that is cut off from the others answers
 * with what it remembers. Each endpoint is asked once, on a connection of its own, and has
 * three seconds. */
#ifndef HF_ETCD_SURVEY_H
#define HF_ETCD_SURVEY_H

#include <stddef.h>

#include "etcd/result.h"

struct hf_survey_result {
    struct hf_etcd_result result; /* HF_OK: one answered at least. Its header is that of the
                                     highest term, then revision */
    size_t asked, answered;
    bool no_space; /* one of them has no room for writes */
    bool corrupt;  /* one has other data than the rest, and etcd has raised the alarm */
    bool agrees;   /* all answered: the same leader and term, nearly the same revision, and
                      nobody is corrupt */
};

typedef void (*hf_survey_fn)(const struct hf_survey_result *result, void *arg);

/* Revisions grow while members are asked one after the other; further apart, one is behind. */
#define HF_SURVEY_SLACK 1000

struct hf_survey;

int hf_etcd_survey(struct hf_etcd *etcd, hf_survey_fn fn, void *arg,
                   struct hf_survey **ret_survey) HF_MUST_CHECK;

/* The callback will not come. */
void hf_survey_cancel(struct hf_survey *survey);

#endif
