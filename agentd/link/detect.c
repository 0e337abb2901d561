#include "agentd/link/detect.h"

#include <stddef.h>
#include <string.h>

const char *const LINK_DETECT_PROFILES[] = {
#define X(name, text) text,
    HF_DETECTOR_PROFILE_MAP(X)
#undef X
        NULL
};
const char *const LINK_DETECT_ENDS[] = { "end", "report", NULL };

/* The source of that name; HF_SOURCES: there is none that convicts. */
static enum hf_source find_source(const char *name)
{
    enum hf_source source = HF_SOURCE_PING;

    while (source < HF_SOURCE_PROCESS && strcmp(hf_source_name(source), name) != 0)
        source++;
    return source < HF_SOURCE_PROCESS ? source : HF_SOURCES;
}

int link_detect_check(const struct link_detect *detect, struct hf_error *err)
{
    for (size_t i = 0; i < detect->by.count; i++) {
        if (find_source(detect->by.items[i]) == HF_SOURCES)
            return hf_error_set(err, HF_EINVAL,
                                "detect.by: \"%s\" is none of ping, watchdog, heartbeat, probe",
                                detect->by.items[i]);
    }
    return HF_OK;
}

struct hf_detector_policy link_detect_policy(const struct link_detect *detect, hf_ms heartbeat)
{
    struct hf_detector_policy policy = hf_detector_policy_for(detect->profile);

    policy.heartbeat = heartbeat;
    policy.watchdog = detect->watchdog;
    policy.convicts = 0;
    for (size_t i = 0; i < detect->by.count; i++)
        policy.convicts |= (uint8_t)(1U << find_source(detect->by.items[i]));
    return policy;
}
