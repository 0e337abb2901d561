#include "sim/replay.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void hfs_replay_format(const struct hfs_replay *replay, char *ret_text, size_t size)
{
    (void)snprintf(
        ret_text, size, "./dev test sim --seeds 1 --from %llu%s%s%s%s%s",
        (unsigned long long)replay->seed, replay->profile != NULL ? " --profile " : "",
        replay->profile != NULL ? replay->profile : "",
        replay->mutant != NULL ? " --mutant " : "",
        replay->mutant != NULL ? replay->mutant : "", replay->control ? " --control" : "");
}

/* "I7", "J", "told:", "once:"; of what only does not come to rest, nothing. */
static size_t id_length(const char *why)
{
    size_t len = strcspn(why, " ");

    if (len > 0 && why[len - 1] == ':')
        return len;
    if (why[0] == 'J' && len == 1)
        return len;
    return why[0] == 'I' && isdigit((unsigned char)why[1]) ? len : 0;
}

bool hfs_replay_is_same(const char *why, const char *other)
{
    size_t len = id_length(why);

    return len == id_length(other) && strncmp(why, other, len) == 0;
}
