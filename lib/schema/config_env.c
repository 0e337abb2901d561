/* config_env.c - the environment. */
#include <string.h>

#include "schema/config_private.h"

#define PREFIX     "HOLDFAST_"
#define PREFIX_LEN (sizeof PREFIX - 1)

/* What agentd itself puts into an agent's environment. The command line runs in there as well,
 * and must not take HOLDFAST_ROLE for a misspelt setting. */
static const char *const AGENT_VARIABLES[] = {
    "HOLDFAST_SOCKET", "HOLDFAST_TOKEN",       "HOLDFAST_AGENT",
    "HOLDFAST_ROLE",   "HOLDFAST_INCARNATION", "HOLDFAST_TASK",
};
#define PARAMETER_PREFIX "HOLDFAST_PARAM_"

/* The value of a variable, or NULL when it is not set or empty. */
static const char *get_variable(char *const *env, const char *name)
{
    size_t len = name != NULL ? strlen(name) : 0;

    for (; len > 0 && *env != NULL; env++) {
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return (*env)[len + 1] != '\0' ? *env + len + 1 : NULL;
    }
    return NULL;
}

static int read_variable(struct hf_config_entry *entry, char *const *env, const char *name,
                         enum hf_config_source source, struct hf_error *err)
{
    const struct hf_config_place place = { .source = source, .name = name };
    const char *value = get_variable(env, name);

    return value != NULL ? hf_config_set_text(entry, value, &place, err) : HF_OK;
}

static bool is_known(const struct hf_config *cfg, const char *name)
{
    for (size_t i = 0; i < cfg->count; i++) {
        const char *known = cfg->entries[i].option->env;

        if (known != NULL && strcmp(name, known) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof AGENT_VARIABLES / sizeof AGENT_VARIABLES[0]; i++) {
        if (strcmp(name, AGENT_VARIABLES[i]) == 0)
            return true;
    }
    return strncmp(name, PARAMETER_PREFIX, strlen(PARAMETER_PREFIX)) == 0;
}

/* Other programs have variables of the same prefix, so only a near miss is worth a word. The
 * prefix is left out of the comparison: it would make everything look alike. */
static void warn_of(struct hf_config *cfg, const char *name)
{
    struct hf_config_guess guess = { .word = name + PREFIX_LEN };

    for (size_t i = 0; i < cfg->count; i++) {
        const char *known = cfg->entries[i].option->env;

        if (known != NULL && strncmp(known, PREFIX, PREFIX_LEN) == 0)
            hf_config_guess_offer(&guess, known + PREFIX_LEN, strlen(known + PREFIX_LEN));
    }
    if (guess.best[0] == '\0')
        return;
    if (cfg->warning_count == sizeof cfg->warnings / sizeof cfg->warnings[0])
        return;
    (void)hf_error_set(&cfg->warnings[cfg->warning_count++], HF_OK,
                       "the variable %s is not used; did you mean " PREFIX "%s?", name,
                       guess.best);
}

int hf_config_read_env(struct hf_config *cfg, char *const *env, struct hf_error *err)
{
    for (size_t i = 0; i < cfg->count; i++) {
        struct hf_config_entry *entry = &cfg->entries[i];
        const struct hf_option *option = entry->option;
        int rc = read_variable(entry, env, option->env, HF_CONFIG_ENV, err);

        /* It is another program's variable: not even looked at when it would lose. */
        if (rc == HF_OK && entry->source < HF_CONFIG_ENV_FALLBACK)
            rc = read_variable(entry, env, option->env_fallback, HF_CONFIG_ENV_FALLBACK, err);
        if (rc < 0)
            return rc;
    }

    for (; *env != NULL; env++) {
        char name[HF_CONFIG_KEY_MAX] = "";
        size_t len = strcspn(*env, "=");

        if (len < sizeof name)
            memcpy(name, *env, len);
        if (strncmp(name, PREFIX, PREFIX_LEN) == 0 && !is_known(cfg, name))
            warn_of(cfg, name);
    }
    return HF_OK;
}
