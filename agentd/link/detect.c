#include "agentd/link/detect.h"

#include <stddef.h>
#include <string.h>

#include "agentd/link/program.h"
#include "base/buf.h"

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

/* The next name in an address, from ${ on; 0: there is none any more. */
static size_t next_name(const char *text, const char **ret_name)
{
    const char *start = strstr(text, "${"), *end = start != NULL ? strchr(start, '}') : NULL;

    if (end == NULL)
        return 0;
    *ret_name = start + 2;
    return (size_t)(end - *ret_name);
}

static const char *find_value(const Holdfast__V1__Spec *spec, const char *name, size_t len)
{
    if (spec == NULL)
        return "1"; /* any will do to see whether the rest is an address */
    for (size_t i = 0; i < spec->n_parameters; i++) {
        if (strlen(spec->parameters[i]->key) == len &&
            strncmp(spec->parameters[i]->key, name, len) == 0)
            return spec->parameters[i]->value;
    }
    return "";
}

static int parse_probe(const char *text, const Holdfast__V1__Spec *spec,
                       struct link_probe_target *ret_target, struct hf_error *err)
{
    HF_CLEANUP_BUF struct hf_buf whole = { 0 };
    const char *name;
    size_t len;

    for (; (len = next_name(text, &name)) > 0; text = name + len + 1) {
        hf_buf_append(&whole, text, (size_t)(name - 2 - text));
        hf_buf_puts(&whole, find_value(spec, name, len));
    }
    hf_buf_puts(&whole, text);
    if (whole.err != HF_OK)
        return hf_error_set(err, whole.err, "%s", hf_err_text(whole.err));
    return link_probe_parse(whole.data, ret_target, err);
}

int link_detect_check_names(const struct link_detect *detect, const struct hf_strings *declared,
                            struct hf_error *err)
{
    const char *name;
    size_t len;

    for (const char *text = detect->probe; text != NULL && (len = next_name(text, &name)) > 0;
         text = name + len) {
        size_t i = 0;

        while (i < declared->count &&
               (strncmp(declared->items[i], name, len) != 0 || declared->items[i][len] != '='))
            i++;
        if (i == declared->count)
            return hf_error_set(err, HF_EINVAL, "probe.address: there is no parameter %.*s",
                                (int)len, name);
    }
    return HF_OK;
}

int link_detect_find_target(const struct link_detect *detect, const Holdfast__V1__Spec *spec,
                            struct link_probe_target *ret_target, struct hf_error *err)
{
    if (detect->probe != NULL)
        return parse_probe(detect->probe, spec, ret_target, err);
    *ret_target = detect->target;
    return HF_OK;
}

static int complete_probe(struct link_detect *detect, struct hf_error *err)
{
    struct hf_error why = { "" };

    if (detect->probe != NULL && detect->probe_command.count > 0)
        return hf_error_set(err, HF_EINVAL, "probe: an address or a command, not both");
    if (detect->probe_command.count > LINK_PROGRAM_WORDS)
        return hf_error_set(err, HF_EINVAL, "probe.command: at most %d words",
                            LINK_PROGRAM_WORDS);
    detect->has_probe = detect->probe != NULL || detect->probe_command.count > 0;
    if (detect->probe != NULL &&
        parse_probe(detect->probe, NULL, &detect->target, &why) != HF_OK)
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
