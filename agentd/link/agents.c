#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/link.h"
#include "agentd/link/resume.h"
#include "agentd/link/verify.h"
#include "base/alloc.h"
#include "schema/json.h"

struct link_agent *link_find_agent(struct link *link, const char *name)
{
    struct link_agent *agent = link->agents;

    while (agent != NULL && strcmp(agent->name, name) != 0)
        agent = agent->next;
    return agent;
}

struct link_agent *link_need_agent(struct link *link, const char *name)
{
    struct link_agent *agent = link_find_agent(link, name), **at = &link->agents;

    if (agent != NULL)
        return agent;
    agent = hf_calloc(1, sizeof *agent);
    if (agent == NULL)
        return NULL;
    agent->link = link;
    (void)snprintf(agent->name, sizeof agent->name, "%s", name);
    while (*at != NULL)
        at = &(*at)->next;
    *at = agent;
    return agent;
}

void link_agents_done(struct link *link)
{
    link_resume_done(link);
    link_verify_done(link);
    while (link->agents != NULL) {
        struct link_agent *agent = link->agents;

        while (agent->processes != NULL)
            link_process_free(agent->processes);
        link->agents = agent->next;
        if (agent->spec != NULL)
            hf_json_free(&agent->spec->base);
        free(agent);
    }
}

static int configure_agent(struct link *link, const struct link_agent_settings *settings)
{
    struct link_agent *agent = link_need_agent(link, settings->name);

    if (agent == NULL)
        return HF_ENOMEM;
    if (agent->spec != NULL)
        hf_json_free(&agent->spec->base);
    agent->spec = NULL;
    agent->configured = true;
    return link_settings_make_spec(link->settings, settings, &agent->spec);
}

int link_agents_configure(struct link *link)
{
    int rc = HF_OK;

    if (link->settings->mode == LINK_RUN)
        return configure_agent(link, &link->settings->run);
    for (size_t i = 0; i < link->settings->agent_count && rc == HF_OK; i++)
        rc = configure_agent(link, &link->settings->agents[i]);
    return rc;
}
