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

static int complete_probe(struct link_detect *detect, struct hf_error *err)
{
    struct hf_error why = { "" };

    if (detect->probe != NULL && detect->probe_command.count > 0)
        return hf_error_set(err, HF_EINVAL, "probe: an address or a command, not both");
    detect->has_probe = detect->probe != NULL || detect->probe_command.count > 0;
    if (detect->probe != NULL &&
        link_probe_parse(detect->probe, &detect->target, &why) != HF_OK)
        return hf_error_set(err, HF_EINVAL, "probe.address: %s", why.text);
    if (detect->probe == NULL)
        detect->target = (struct link_probe_target){ .kind = LINK_PROBE_EXEC,
                                                     .command = detect->probe_command,
                                                     .uid = (uid_t)-1,
                                                     .gid = (gid_t)-1 };
    return HF_OK;
}

int link_detect_complete(struct link_detect *detect, struct hf_error *err)
{
    bool others = detect->by.count == 0; /* than probes; who names nothing means nothing */
    int rc;

    for (size_t i = 0; i < detect->by.count; i++) {
        others |= find_source(detect->by.items[i]) != HF_SOURCE_PROBE;
        if (find_source(detect->by.items[i]) == HF_SOURCES)
            return hf_error_set(err, HF_EINVAL,
                                "detect.by: \"%s\" is none of ping, watchdog, heartbeat, probe",
                                detect->by.items[i]);
    }
    if (detect->watchdog != 0 && detect->watchdog < LINK_DETECT_WATCHDOG_MIN_MS)
        return hf_error_set(err, HF_EINVAL,
                            "detect.watchdog: at least 1s, or 0s for none at all");
    rc = complete_probe(detect, err);
    if (rc == HF_OK && !others && !detect->has_probe)
        return hf_error_set(err, HF_EINVAL,
                            "detect.by: names probe alone, and no probe is set: nothing would "
                            "ever show that it is frozen");
    return rc;
}

struct hf_detector_policy link_detect_policy(const struct link_detect *detect, hf_ms heartbeat)
{
    struct hf_detector_policy policy = hf_detector_policy_for(detect->profile);

    policy.heartbeat = heartbeat;
    policy.watchdog = detect->watchdog;
    policy.phi = (double)detect->phi;
    policy.probe_misses = (uint32_t)detect->probe_misses;
    policy.convicts = 0;
    for (size_t i = 0; i < detect->by.count; i++)
        policy.convicts |= (uint8_t)(1U << find_source(detect->by.items[i]));
    return policy;
}
