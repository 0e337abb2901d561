/* make.c - has the keeper make a process: its command, its environment, its token. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agentd/link/api.h"
#include "agentd/link/link.h"
#include "base/id.h"
#include "schema/json.h"

static int make_token(char ret_token[LINK_TOKEN_BYTES])
{
    uint8_t bytes[(LINK_TOKEN_BYTES - 1) / 2];
    int rc = hf_id_random(bytes, sizeof bytes);

    for (size_t i = 0; rc == HF_OK && i < sizeof bytes; i++)
        (void)snprintf(ret_token + 2 * i, 3, "%02x", bytes[i]);
    return rc;
}

static int keep_spec(Holdfast__V1__Spec **kept, const Holdfast__V1__Spec *spec)
{
    ProtobufCMessage *copy;
    int rc = hf_json_copy(&spec->base, &copy);

    if (rc != HF_OK)
        return rc;
    if (*kept != NULL)
        hf_json_free(&(*kept)->base);
    *kept = (Holdfast__V1__Spec *)copy;
    return HF_OK;
}

static void keep_user(struct link_process *process, const struct link_launcher *launcher)
{
    process->has_user = true;
    process->uid = launcher->user != NULL ? launcher->as.uid : geteuid();
    process->gid = launcher->user != NULL ? launcher->as.gid : getegid();
}

/* What every agent finds in its environment, in one piece of memory. */
struct own_env {
    char texts[7][AGENTD_PATH_BYTES + AGENTD_NAME_BYTES + 64];
    const char *items[7];
};

/* A watchdog is fed through its socket. */
static void add_watchdog(const struct link_launcher *launcher, struct own_env *env,
                         size_t *count)
{
    if (launcher->detect.watchdog == 0)
        return;
    (void)snprintf(env->texts[*count], sizeof env->texts[*count], "WATCHDOG_USEC=%lld000",
                   (long long)launcher->detect.watchdog);
    env->items[*count] = env->texts[*count];
    (*count)++;
}

static struct hf_strings fill_env(const struct link_process *process,
                                  const struct link_launcher *launcher, struct own_env *env)
{
    const char *const names[] = { "HOLDFAST_SOCKET", "HOLDFAST_TOKEN",     "HOLDFAST_AGENT",
                                  "HOLDFAST_ROLE",   "HOLDFAST_NAMESPACE", "NOTIFY_SOCKET" };
    const char *const values[] = { link_api_get_path(process->agent->api),
                                   process->token,
                                   process->who.agent,
                                   process->spec->role,
                                   process->agent->link->settings->common.namespace,
                                   link_api_get_notify_path(process->agent->api) };
    size_t count = sizeof names / sizeof names[0] - (values[5] == NULL ? 1 : 0);

    for (size_t i = 0; i < count; i++) {
        (void)snprintf(env->texts[i], sizeof env->texts[i], "%s=%s", names[i], values[i]);
        env->items[i] = env->texts[i];
    }
    if (values[5] != NULL)
        add_watchdog(launcher, env, &count);
    return (struct hf_strings){ .items = env->items, .count = count };
}

static uint32_t flags_of(const struct link *link, const struct link_launcher *launcher)
{
    bool is_told = (launcher->nudge.set & LINK_BY_STDIN) != 0 &&
                   (link_channel_get_hello(link->channel)->flags & AGENTD_HAS_TELL) != 0;

    return (is_told ? AGENTD_SPAWN_TELL_INPUT : 0) |
           (launcher->pass_output ? AGENTD_SPAWN_PASS_OUTPUT : 0) |
           (launcher->pass_input ? AGENTD_SPAWN_PASS_INPUT : 0) |
           (launcher->pass_signals ? AGENTD_SPAWN_PASS_SIGNALS : 0);
}

static int spawn(struct link_process *process, const struct link_launcher *launcher)
{
    struct link *link = process->agent->link;
    const Holdfast__V1__Spec *spec = process->spec;
    char here[AGENTD_PATH_BYTES];
    struct own_env own;
    struct link_spawn message = { .who = &process->who,
                                  .launcher = launcher,
                                  .argv = launcher->command,
                                  .cwd = launcher->directory,
                                  .fence = (uint32_t)spec->fence,
                                  .flags = flags_of(link, launcher) };
    int rc;

    if (message.cwd == NULL)
        message.cwd = getcwd(here, sizeof here) != NULL ? here : "/";
    rc = link_launcher_make_env(launcher, spec, fill_env(process, launcher, &own), environ,
                                &message.env);
    if (rc != HF_OK)
        return rc;
    rc = link_channel_spawn(link->channel, &message);
    free((void *)message.env.items);
    return rc;
}

static int make_process(struct link_agent *agent, const struct link_launcher *launcher,
                        const struct hf_intent_process *act, struct hf_error *err)
{
    struct link_process *process;
    int rc = link_launcher_check(launcher, act->spec, err);

    if (rc == HF_OK)
        rc = link_api_open(agent, launcher->user != NULL ? launcher->as.uid : geteuid(), err);
    if (rc != HF_OK)
        return rc;
    process = link_process_add(agent, act->instance_id);
    if (process == NULL)
        return HF_ENOMEM;
    keep_user(process, launcher);
    rc = keep_spec(&process->spec, act->spec);
    if (rc == HF_OK)
        rc = link_judged_begin(&process->judged, &launcher->detect);
    if (rc == HF_OK)
        rc = make_token(process->token);
    if (rc == HF_OK)
        rc = spawn(process, launcher);
    if (rc == HF_OK) {
        (void)link_remember(process); /* without its token it is merely refused by the next */
        return HF_OK;
    }
    link_process_free(process);
    return hf_error_set(err, rc, "its command and environment: %s", hf_err_text(rc));
}

int link_process_make(struct link *link, const struct hf_intent_process *act,
                      struct hf_error *err)
{
    const struct link_launcher *launcher =
        link_settings_find_launcher(link->settings, act->spec->launcher);
    struct link_agent *agent = link_need_agent(link, act->agent);

    if (link->settings->once && agent != NULL && agent->started)
        return HF_OK;
    if (launcher == NULL)
        return hf_error_set(err, HF_ENOENT, "this host has no launcher %s",
                            act->spec->launcher);
    if (agent == NULL || keep_spec(&agent->spec, act->spec) != HF_OK)
        return HF_ENOMEM;
    return make_process(agent, launcher, act, err);
}
