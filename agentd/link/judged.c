#include "agentd/link/judged.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define DETECT "detect "
#define HEARD  "heard "

enum { DETECT_MAX = 2048 /* bytes: a spec should fit beside it */ };

/* As JSON. */

static json_t *pack_words(const struct hf_strings *words)
{
    json_t *list = json_array();

    for (size_t i = 0; i < words->count; i++)
        (void)json_array_append_new(list, json_string(words->items[i]));
    return list;
}

static json_t *pack(const struct link_detect *detect)
{
    return json_pack(
        "{s:i, s:o, s:i, s:I, s:I, s:s?, s:o, s:I, s:I, s:I, s:I, s:I}", "profile",
        (int)detect->profile, "by", pack_words(&detect->by), "freeze", (int)detect->on_freeze,
        "watchdog", (json_int_t)detect->watchdog, "phi", (json_int_t)detect->phi, "address",
        detect->probe, "command", pack_words(&detect->probe_command), "every",
        (json_int_t)detect->probe_every, "timeout", (json_int_t)detect->probe_timeout, "misses",
        (json_int_t)detect->probe_misses, "uid", (json_int_t)detect->target.uid, "gid",
        (json_int_t)detect->target.gid);
}

static struct hf_strings borrow_words(const json_t *list, const char **room)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        room[i] = json_string_value(json_array_get(list, i));
        if (room[i] == NULL)
            room[i] = "";
    }
    return (struct hf_strings){ .items = room, .count = json_array_size(list) };
}

/* Takes `kept`. */
static int unpack(struct link_judged *judged, json_t *kept)
{
    struct link_detect detect = { 0 };
    json_t *by = NULL, *command = NULL;
    json_int_t watchdog, phi, every, timeout, misses, uid, gid;
    int profile, freeze, rc = HF_EINVAL;
    const char **words = NULL;

    if (json_unpack(kept, "{s:i, s:o, s:i, s:I, s:I, s:o, s:I, s:I, s:I, s:I, s:I}", "profile",
                    &profile, "by", &by, "freeze", &freeze, "watchdog", &watchdog, "phi", &phi,
                    "command", &command, "every", &every, "timeout", &timeout, "misses",
                    &misses, "uid", &uid, "gid", &gid) == 0 &&
        profile >= 0 && profile <= HF_DETECTOR_TOLERANT) {
        words = hf_calloc(json_array_size(by) + json_array_size(command) + 1, sizeof(char *));
        rc = words != NULL ? HF_OK : HF_ENOMEM;
    }
    if (rc == HF_OK) {
        detect.profile = (enum hf_detector_profile)profile;
        detect.on_freeze =
            freeze == LINK_ON_FREEZE_END ? LINK_ON_FREEZE_END : LINK_ON_FREEZE_REPORT;
        detect.watchdog = watchdog;
        detect.phi = phi;
        detect.probe = json_string_value(json_object_get(kept, "address"));
        detect.probe_every = every;
        detect.probe_timeout = timeout;
        detect.probe_misses = misses;
        detect.by = borrow_words(by, words);
        detect.probe_command = borrow_words(command, words + json_array_size(by));
        rc = link_detect_complete(&detect, NULL);
    }
    if (rc != HF_OK) {
        free((void *)words);
        json_decref(kept);
        return rc;
    }
    detect.target.uid = (uid_t)uid;
    detect.target.gid = (gid_t)gid;
    link_judged_done(judged);
    judged->detect = detect;
    judged->words = words;
    judged->kept = kept;
    return HF_OK;
}

int link_judged_begin(struct link_judged *judged, const struct link_detect *detect)
{
    json_t *kept = pack(detect);

    return kept != NULL ? unpack(judged, kept) : HF_ENOMEM;
}

void link_judged_done(struct link_judged *judged)
{
    json_decref(judged->kept);
    free((void *)judged->words);
    judged->kept = NULL;
    judged->words = NULL;
    judged->detect = (struct link_detect){ 0 };
}

/* As lines. */

void link_judged_format(const struct link_judged *judged, struct hf_buf *text)
{
    char *detect = json_dumps(judged->kept, JSON_COMPACT);

    /* Without it the next link does as the launcher says then. */
    if (detect != NULL && strlen(detect) < DETECT_MAX)
        hf_buf_printf(text, DETECT "%s\n", detect);
    free(detect);
    hf_buf_printf(text, HEARD "%u %" PRId64 " %" PRId64 " %d\n", judged->used, judged->watchdog,
                  judged->announced_wall, judged->state);
}

static void read_heard(struct link_judged *judged, const char *line, size_t len)
{
    char text[80], *at = text;

    (void)snprintf(text, sizeof text, "%.*s", (int)len, line);
    judged->used = (uint8_t)strtoul(at, &at, 10);
    judged->watchdog = strtoll(at, &at, 10);
    judged->announced_wall = strtoll(at, &at, 10);
    judged->state = (int)strtol(at, &at, 10); /* nothing, of an older version */
}

bool link_judged_read(struct link_judged *judged, const char *line, size_t len)
{
    if (len >= strlen(HEARD) && strncmp(line, HEARD, strlen(HEARD)) == 0) {
        read_heard(judged, line + strlen(HEARD), len - strlen(HEARD));
        return true;
    }
    if (len < strlen(DETECT) || strncmp(line, DETECT, strlen(DETECT)) != 0)
        return false;
    (void)!unpack(judged, json_loadb(line + strlen(DETECT), len - strlen(DETECT), 0, NULL));
    return true;
}
