/* detect.h - what can be set about how an agent is judged: by its launcher, or for `agentd
 * run`. */
#ifndef LINK_DETECT_H
#define LINK_DETECT_H

#include "agentd/link/probe.h"
#include "core/detector.h"
#include "holdfast/v1/records.pb-c.h"
#include "schema/config.h"

struct link_detect {
    enum hf_detector_profile profile;
    struct hf_strings by; /* what may convict it */
    enum { LINK_ON_FREEZE_END, LINK_ON_FREEZE_REPORT } on_freeze;
    hf_ms watchdog;    /* WATCHDOG_USEC; 0: none */
    int64_t phi;       /* from here on a silence convicts */
    const char *probe; /* an address, or ... */
    struct hf_strings probe_command;
    hf_ms probe_every, probe_timeout;
    int64_t probe_misses;
    bool has_probe; /* as one of them says, once it is complete: */
    struct link_probe_target target;
};

extern const char *const LINK_DETECT_PROFILES[];
extern const char *const LINK_DETECT_ENDS[];
#define LINK_DETECT_BY       "ping,watchdog,probe"
#define LINK_DETECT_WATCHDOG "30s"
enum { LINK_DETECT_WATCHDOG_MIN_MS = 1000 /* we do not look more often */ };

/* HF_EINVAL with a sentence when a word is none, or there is nothing at an address to ask. */
int link_detect_complete(struct link_detect *detect, struct hf_error *err) HF_MUST_CHECK;

/* An address may name parameters of the agent: ${port}. HF_EINVAL with a sentence when one of
 * them is not declared (NAME=PATTERN). */
int link_detect_check_names(const struct link_detect *detect, const struct hf_strings *declared,
                            struct hf_error *err) HF_MUST_CHECK;
/* Where an agent of that spec is asked. HF_EINVAL with a sentence: nowhere. */
int link_detect_find_target(const struct link_detect *detect, const Holdfast__V1__Spec *spec,
                            struct link_probe_target *ret_target,
                            struct hf_error *err) HF_MUST_CHECK;

/* With the heartbeats that agents are asked for. The settings must have passed their check. */
struct hf_detector_policy link_detect_policy(const struct link_detect *detect, hf_ms heartbeat);

#endif
