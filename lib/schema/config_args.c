/* config_args.c - the command line. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "schema/config_private.h"

/* The command line, as far as it has been read. */
struct scan {
    struct hf_config *cfg;
    char *const *argv; /* NULL at the end */
    const char **arguments;
    size_t argument_count;
};

/* One word that begins with a dash, taken apart. */
struct flag {
    const char *word; /* as given */
    const char *name; /* what follows the dashes, up to name_len */
    size_t name_len;
    const char *value; /* what follows "=", or NULL */
    bool is_short;     /* one dash */
};

static struct flag flag_split(const char *word)
{
    struct flag flag = { .word = word, .is_short = word[1] != '-' };

    flag.name = word + (flag.is_short ? 1 : 2);
    flag.name_len = strcspn(flag.name, "=");
    if (flag.name[flag.name_len] == '=')
        flag.value = flag.name + flag.name_len + 1;
    return flag;
}

static bool name_is(const char *name, size_t len, const char *known)
{
    return known != NULL && strlen(known) == len && memcmp(name, known, len) == 0;
}

static bool flag_matches(const struct flag *flag, const struct hf_option *option)
{
    if (flag->is_short)
        return flag->name_len == 1 && option->letter == flag->name[0];
    return name_is(flag->name, flag->name_len, option->flag);
}

static bool flag_negates(const struct flag *flag, const struct hf_option *option)
{
    return !flag->is_short && option->type == HF_OPTION_BOOL && flag->name_len > 3 &&
           memcmp(flag->name, "no-", 3) == 0 &&
           name_is(flag->name + 3, flag->name_len - 3, option->flag);
}

static struct hf_config_entry *find_flag(struct hf_config *cfg, const struct flag *flag,
                                         bool *ret_negated)
{
    for (size_t i = 0; i < cfg->count; i++) {
        const struct hf_option *option = cfg->entries[i].option;

        *ret_negated = flag_negates(flag, option);
        if (*ret_negated || flag_matches(flag, option))
            return &cfg->entries[i];
    }
    return NULL;
}

static int fail_unknown(const struct hf_config *cfg, const struct flag *flag,
                        struct hf_error *err)
{
    char name[HF_CONFIG_KEY_MAX] = "";
    struct hf_config_guess guess = { .word = name };
    char quoted[HF_CONFIG_QUOTE_MAX];

    if (flag->name_len < sizeof name)
        memcpy(name, flag->name, flag->name_len);
    for (size_t i = 0; i < cfg->count; i++) {
        const char *known = cfg->entries[i].option->flag;

        if (known != NULL)
            hf_config_guess_offer(&guess, known, strlen(known));
    }
    (void)hf_config_quote(flag->word, quoted);
    if (guess.best[0] == '\0')
        return hf_error_set(err, HF_EINVAL, "unknown flag %s; --help lists them", quoted);
    return hf_error_set(err, HF_EINVAL, "unknown flag %s; did you mean --%s?", quoted,
                        guess.best);
}

static int read_bool(struct hf_config_entry *entry, const struct flag *flag, bool negated,
                     const struct hf_config_place *place, struct hf_error *err)
{
    if (negated && flag->value != NULL)
        return hf_config_fail(place, HF_EINVAL, err, "takes no value");
    if (flag->value != NULL)
        return hf_config_set_text(entry, flag->value, place, err);
    return hf_config_set_text(entry, negated ? "false" : "true", place, err);
}

/* Reads the flag at scan->argv[0], and the next word when that is its value. */
static int read_flag(struct scan *scan, struct hf_error *err)
{
    const struct flag flag = flag_split(*scan->argv++);
    const char *value = flag.value;
    char name[HF_CONFIG_KEY_MAX];
    const struct hf_config_place place = { .source = HF_CONFIG_FLAG, .name = name };
    struct hf_config_entry *entry;
    bool negated = false;

    entry = find_flag(scan->cfg, &flag, &negated);
    if (entry == NULL)
        return fail_unknown(scan->cfg, &flag, err);
    (void)snprintf(name, sizeof name, "%.*s", (int)(flag.name + flag.name_len - flag.word),
                   flag.word);
    if (entry->option->type == HF_OPTION_BOOL)
        return read_bool(entry, &flag, negated, &place, err);

    if (value == NULL)
        value = *scan->argv;
    if (value == NULL)
        return hf_config_fail(&place, HF_EINVAL, err, "needs a value");
    /* "--user --cert x" is a forgotten value far more often than a user named "--cert". */
    if (flag.value == NULL && strncmp(value, "--", 2) == 0)
        return hf_config_fail(&place, HF_EINVAL, err,
                              "needs a value; write %s=VALUE if it begins with \"--\"", name);
    if (flag.value == NULL)
        scan->argv++;
    return hf_config_set_text(entry, value, &place, err);
}

static int read_words(struct scan *scan, struct hf_error *err)
{
    int rc = HF_OK;

    while (*scan->argv != NULL && strcmp(*scan->argv, "--") != 0 && rc == HF_OK) {
        const char *word = *scan->argv;

        if (word[0] == '-' && word[1] != '\0') {
            rc = read_flag(scan, err);
        } else {
            scan->arguments[scan->argument_count++] = word;
            scan->argv++;
        }
    }
    return rc;
}

int hf_config_read_args(struct hf_config *cfg, int argc, char *const *argv,
                        struct hf_error *err)
{
    struct scan scan = { .cfg = cfg, .argv = argv };
    int rc;

    assert(cfg->arguments.items == NULL);
    assert(argc >= 0 && argv[argc] == NULL);

    scan.arguments = hf_calloc((size_t)argc + 1, sizeof *scan.arguments);
    if (scan.arguments == NULL)
        return hf_error_set(err, HF_ENOMEM, "%s", hf_err_text(HF_ENOMEM));
    cfg->arguments.items = scan.arguments;
    if (argc > 0)
        scan.argv++;

    rc = read_words(&scan, err);
    if (rc < 0)
        return rc;
    cfg->before_dashes = scan.argument_count;
    if (*scan.argv != NULL)
        scan.argv++;
    while (*scan.argv != NULL)
        scan.arguments[scan.argument_count++] = *scan.argv++;
    cfg->arguments.count = scan.argument_count;
    return HF_OK;
}
