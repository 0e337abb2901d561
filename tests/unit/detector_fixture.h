/* detector_fixture.h - one detector, whose time passes and whose pings are sent. */
#ifndef DETECTOR_FIXTURE_H
#define DETECTOR_FIXTURE_H

#include "core/detector.h"
#include "unit/suite.h"

enum { S = 1000, LOOK = 50 };

static struct hf_detector_policy policy;
static struct hf_detector d;
static hf_ms now;
static struct hf_tilt_view us;
static struct hf_detector_verdict last;
static hf_ms suspect_at, frozen_at; /* the first of each since `begin`; 0: none */

static inline void begin(enum hf_detector_profile profile)
{
    policy = hf_detector_policy_for(profile);
    now = 1000 * S;
    us = (struct hf_tilt_view){ .can_judge = true };
    suspect_at = frozen_at = 0;
    hf_detector_init(&d, now);
}

static inline void look(void)
{
    us.at = us.can_judge ? now : now + 5 * S;
    last = hf_detector_look(&d, &policy, &us, now);
    if (last.state == HF_DETECTOR_SUSPECT && suspect_at == 0)
        suspect_at = now;
    if (last.state == HF_DETECTOR_FROZEN && frozen_at == 0)
        frozen_at = now;
    ck_assert_int_ge(last.at, now);
    if (last.state == HF_DETECTOR_WELL && !last.ping_due)
        ck_assert_int_gt(last.at, now);
}

/* As they come: by requests, which are owed an answer while they are looked at. */
static inline void hear_answer(void)
{
    struct hf_detector_debt debt = hf_detector_on_asked(&d, now);

    hf_detector_on_answer(&d, &policy, now);
    hf_detector_on_answered(&d, &policy, &debt, now);
}

static inline void hear_heartbeat(void)
{
    struct hf_detector_debt debt = hf_detector_on_asked(&d, now);

    hf_detector_on_beat(&d, HF_SOURCE_HEARTBEAT, now);
    hf_detector_on_answered(&d, &policy, &debt, now);
}

/* Time passes, and pings are sent; `answers` after how long, below 0 for never. */
static inline void pass(hf_ms length, hf_ms answers)
{
    hf_ms until = now + length, answer_at = 0;

    for (; now < until; now += LOOK) {
        if (answer_at != 0 && now >= answer_at) {
            hear_answer();
            answer_at = 0;
        }
        look();
        if (!last.ping_due)
            continue;
        hf_detector_on_ping(&d, &policy, now);
        if (answers >= 0 && answer_at == 0)
            answer_at = now + answers;
    }
}

static inline void listen_and_answer(void)
{
    hf_detector_on_listens(&d, true, now);
    pass(60 * S, 10);
    ck_assert_int_eq(last.state, HF_DETECTOR_WELL);
    ck_assert_int_eq(suspect_at, 0);
    ck_assert_uint_ge(d.heard[HF_SOURCE_PING].count, 15); /* its habit is known */
}

static inline void feed(enum hf_source source, hf_ms every, int times)
{
    for (int i = 0; i < times; i++) {
        if (source == HF_SOURCE_HEARTBEAT)
            hear_heartbeat();
        else
            hf_detector_on_beat(&d, source, now);
        pass(every, 10);
    }
}

#endif
