#include "agentd/link/ways.h"

#include <string.h>

#include "agentd/link/program.h"
#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "holdfast/v1/localapi.pb-c.h"
#include "schema/json.h"

static const struct {
    const char *name;
    enum link_way way;
} WAYS[] = { { "events", LINK_BY_EVENTS },
             { "stdin", LINK_BY_STDIN },
             { "hook", LINK_BY_HOOK } };

enum { WAY_COUNT = sizeof WAYS / sizeof WAYS[0] };

const char *link_way_name(enum link_way way)
{
    for (size_t i = 0; i < WAY_COUNT; i++) {
        if (WAYS[i].way == way)
            return WAYS[i].name;
    }
    return "?";
}

static unsigned find_way(const char *name)
{
    for (size_t i = 0; i < WAY_COUNT; i++) {
        if (strcmp(WAYS[i].name, name) == 0)
            return WAYS[i].way;
    }
    return 0;
}

int link_ways_complete(struct link_ways *ways, struct hf_error *err)
{
    ways->set = 0;
    for (size_t i = 0; i < ways->by.count; i++) {
        unsigned way = find_way(ways->by.items[i]);

        if (way == 0)
            return hf_error_set(err, HF_EINVAL,
                                "nudge.by: \"%s\" is none of events, stdin, hook",
                                ways->by.items[i]);
        ways->set |= way;
    }
    if ((ways->set & LINK_BY_HOOK) != 0 && ways->command.count == 0)
        return hf_error_set(err, HF_EINVAL, "nudge.command: say what the hook is");
    if (ways->command.count > LINK_PROGRAM_WORDS)
        return hf_error_set(err, HF_EINVAL, "nudge.command: at most %d words",
                            LINK_PROGRAM_WORDS);
    if ((ways->set & LINK_BY_HOOK) == 0 && ways->command.count > 0)
        return hf_error_set(err, HF_EINVAL, "nudge.command: nudge.by does not name the hook");
    return HF_OK;
}

static int put_line(const char *id, const char *text, size_t text_len, struct hf_buf *line)
{
    Holdfast__V1__NudgeEvent event = HOLDFAST__V1__NUDGE_EVENT__INIT;
    HF_CLEANUP_FREE char *cut = hf_strndup(text, text_len);
    int rc;

    if (cut == NULL)
        return HF_ENOMEM;
    event.id = (char *)id;
    event.text = cut;
    hf_buf_clear(line);
    hf_buf_puts(line, "{\"nudge\":");
    rc = hf_json_encode(&event.base, line);
    hf_buf_puts(line, "}\n");
    return rc != HF_OK ? rc : line->err;
}

int link_ways_format(const char *id, const char *text, size_t max, struct hf_buf *ret_line)
{
    size_t len = strlen(text);
    int rc = put_line(id, text, len, ret_line);

    while (rc == HF_OK && ret_line->len > max) {
        size_t over = ret_line->len - max;

        if (len == 0)
            return HF_ELIMIT;
        len = over < len ? hf_str_cut(text, len - over) : 0;
        rc = put_line(id, text, len, ret_line);
    }
    return rc;
}
