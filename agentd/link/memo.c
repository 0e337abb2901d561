#include "agentd/link/memo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/link.h"
#include "base/hash.h"

#define ALL_STARTED "*"
#define SPEC_ALONE  '+' /* behind a name: it was not started */
#define ENDED       '=' /* behind a name: before the code that it ended with */

enum { SHORT_BYTES = 24 };

/* No name looks like it. Nobody is harmed by two that are alike but who chose them. */
static void shorten(const char *name, char ret_short[SHORT_BYTES])
{
    (void)snprintf(ret_short, SHORT_BYTES, "#%08x%08x", hf_hash(1, name, strlen(name)),
                   hf_hash(2, name, strlen(name)));
}

static void put_line(const struct link_agent *agent, const char *name, struct hf_buf *memo)
{
    if (agent->started && agent->ended)
        hf_buf_printf(memo, "%s%c%d\n", name, ENDED, (int)agent->code);
    else if (agent->started)
        hf_buf_printf(memo, "%s\n", name);
    else if (agent->spec_written)
        hf_buf_printf(memo, "%s%c\n", name, SPEC_ALONE);
}

void link_memo_format(const struct link_agent *agents, struct hf_buf *memo)
{
    char brief[SHORT_BYTES];

    for (const struct link_agent *agent = agents; agent != NULL; agent = agent->next)
        put_line(agent, agent->name, memo);
    if (memo->err == HF_OK)
        return;
    hf_buf_clear(memo);
    for (const struct link_agent *agent = agents; agent != NULL; agent = agent->next) {
        shorten(agent->name, brief);
        put_line(agent, brief, memo);
    }
    if (memo->err == HF_OK)
        return;
    hf_buf_clear(memo);
    hf_buf_puts(memo, ALL_STARTED);
}

/* What stands behind the name on its line; NULL: it has none. */
static const char *find(const char *memo, const char *name)
{
    size_t len = strlen(name);
    const char *line = memo;

    while (line != NULL && *line != '\0') {
        if (strncmp(line, name, len) == 0 && strchr("\n+=", line[len]) != NULL)
            return line + len;
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return NULL;
}

void link_memo_parse(const char *memo, struct link_agent *agents)
{
    bool all = strcmp(memo, ALL_STARTED) == 0;

    for (struct link_agent *agent = agents; agent != NULL; agent = agent->next) {
        char brief[SHORT_BYTES];
        const char *found = find(memo, agent->name);

        shorten(agent->name, brief);
        if (found == NULL)
            found = find(memo, brief);
        agent->spec_written = all || found != NULL;
        agent->started = all || (found != NULL && *found != SPEC_ALONE);
        agent->ended = found != NULL && *found == ENDED;
        if (agent->ended)
            agent->code = (int32_t)strtol(found + 1, NULL, 10);
    }
}
