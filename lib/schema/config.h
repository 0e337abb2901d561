/* config.h - settings from flags, environment, file and defaults, all read by one option table.
 *
 * A program describes each setting once, as a struct hf_option. The table parses the command
 * line, the environment and a YAML (or JSON) file with the same rules and the same sentences,
 * and prints --help, --config-dump and the reference page. Values land in the program's own
 * struct, so that using a setting is reading a member:
 *
 *     struct settings { hf_ms ttl; };
 *     static const struct hf_option TABLE[] = {
 *         { .key = "ttl", .flag = "ttl", .env = "HOLDFAST_TTL", .value = "DURATION",
 *           HF_OPTION_FIELD(DURATION, struct settings, ttl), .min = 2000, .max = 600000,
 *           .preset = "15s", .help = "How long a registration outlives its agentd." },
 *     };
 *
 * The highest source wins, whatever the order of the calls: flag, environment, the fallback
 * variable, file, default. A value that loses is checked all the same (except in a fallback
 * variable, which belongs to another program). */
#ifndef HF_SCHEMA_CONFIG_H
#define HF_SCHEMA_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

/* Several texts; the member type of lists. */
struct hf_strings {
    const char *const *items; /* NULL when there are none */
    size_t count;
};

/* What a text must look like, and the type of the member that it is stored in. */
enum hf_option_type {
    HF_OPTION_STRING,    /* const char *: any text but an empty one; NULL when not set */
    HF_OPTION_NAME,      /* const char *: what schema/name.h allows */
    HF_OPTION_BOOL,      /* bool: true or false */
    HF_OPTION_INT,       /* int64_t: min..max */
    HF_OPTION_DURATION,  /* hf_ms: min..max */
    HF_OPTION_ENUM,      /* any enum: index of the word in `words` */
    HF_OPTION_STRINGS,   /* struct hf_strings: a YAML list, or one text split at commas */
    HF_OPTION_ENDPOINTS, /* struct hf_strings: the same, of what hf_parse_endpoint accepts */
};

/* From when on a change in the file counts, where a program can read it again (reload). */
enum hf_option_counts {
    HF_COUNTS_AS_GROUP, /* as the group says; where it says nothing either, on restart */
    HF_COUNTS_ON_RESTART,
    HF_COUNTS_ON_RELOAD,
    HF_COUNTS_ON_START, /* of each agent, after a reload */
};

struct hf_option {
    const char *key;          /* dotted path in the file; NULL: not allowed there */
    const char *flag;         /* long flag without the dashes; NULL: none */
    const char *env;          /* variable; NULL: none */
    const char *env_fallback; /* variable to look at when `env` is not set; NULL: none */
    const char *value;        /* what --help calls the value; NULL for a bool or enum */
    const char *help;         /* one sentence */
    const char *preset;       /* the default, as text; NULL: not set, false or 0 */
    int64_t min;              /* of an int or a duration (in ms) */
    int64_t max;
    const char *const *words; /* of an enum, in its order, NULL at the end */
    size_t offset;            /* of the member; write type and offset with HF_OPTION_FIELD */
    enum hf_option_type type;
    enum hf_option_counts counts;
    char letter; /* short flag; 0: none */
    bool secret; /* the value is never printed */
};

/* Type and offset of an option; does not compile when the member's type is another one. */
#define HF_OPTION_FIELD(kind, container, member)                                               \
    .type = HF_OPTION_##kind,                                                                  \
    .offset = offsetof(container, member) +                                                    \
              0 * sizeof(char[HF_OPTION_FITS_##kind##_(((container *)0)->member) ? 1 : -1])

#define HF_OPTION_IS_(x, type)       __builtin_types_compatible_p(__typeof__(x), type)
#define HF_OPTION_FITS_STRING_(x)    HF_OPTION_IS_(x, const char *)
#define HF_OPTION_FITS_NAME_(x)      HF_OPTION_IS_(x, const char *)
#define HF_OPTION_FITS_BOOL_(x)      HF_OPTION_IS_(x, bool)
#define HF_OPTION_FITS_INT_(x)       HF_OPTION_IS_(x, int64_t)
#define HF_OPTION_FITS_DURATION_(x)  HF_OPTION_IS_(x, hf_ms)
#define HF_OPTION_FITS_ENUM_(x)      (sizeof(x) == sizeof(int))
#define HF_OPTION_FITS_STRINGS_(x)   HF_OPTION_IS_(x, struct hf_strings)
#define HF_OPTION_FITS_ENDPOINTS_(x) HF_OPTION_IS_(x, struct hf_strings)

/* A table and the struct that it fills. A program passes its own beside the common one. */
struct hf_option_group {
    const char *title; /* heading in --help and in the reference page */
    const struct hf_option *options;
    size_t count;
    void *target; /* the struct that the offsets are in; may be NULL to only print */
    enum hf_option_counts counts; /* for options that do not say it themselves */
};

enum hf_config_source { /* a later one wins */
                        HF_CONFIG_DEFAULT,
                        HF_CONFIG_FILE,
                        HF_CONFIG_ENV_FALLBACK,
                        HF_CONFIG_ENV,
                        HF_CONFIG_FLAG,
};

/* One option and its present value; private to lib/schema/config*. */
struct hf_config_entry {
    const struct hf_option *option;
    const char *title;
    enum hf_option_counts counts; /* never HF_COUNTS_AS_GROUP */
    void *field;                  /* NULL when there is no target */
    struct hf_strings value;      /* as given, one block; a scalar is a list of one */
    enum hf_config_source source;
    size_t line; /* of HF_CONFIG_FILE */
};

/* Where files come from: appends the bytes of one and returns 0, or an errno. */
struct hf_config_files {
    int (*read)(const char *path, struct hf_buf *text, void *arg);
    void *arg;
};

/* Owns everything that the filled structs point at: they are stale after hf_config_done. */
struct hf_config {
    struct hf_config_entry *entries;
    size_t count;
    struct hf_config_files files; /* to be set after hf_config_init; none: the disk */
    char *path;                   /* of the file, once one was read */
    struct hf_strings arguments;  /* what is left of the command line; borrowed from argv */
    size_t before_dashes;         /* how many of them stood before a "--" */
    struct hf_error warnings[8];  /* for the caller to log; more than 8 are dropped */
    size_t warning_count;
};

/* Sets every member to its default. The tables and targets are kept, `groups` is not. Only
 * HF_ENOMEM can happen; a table that contradicts itself stops the program. */
int hf_config_init(struct hf_config *cfg, const struct hf_option_group *groups,
                   size_t count) HF_MUST_CHECK;
void hf_config_done(struct hf_config *cfg);

/* Reads flags: --name value, --name=value, --name and --no-name for a bool, -x value; the last
 * of several counts. The other words are left in cfg->arguments; "--" ends the flags. argv[0]
 * is skipped. HF_EINVAL with a sentence for a flag that is unknown, incomplete or malformed. */
int hf_config_read_args(struct hf_config *cfg, int argc, char *const *argv,
                        struct hf_error *err) HF_MUST_CHECK;

/* Reads variables from a NULL-terminated list such as environ. An empty one counts as not set.
 * A HOLDFAST_ variable that looks like a misspelt one of ours becomes a warning. */
int hf_config_read_env(struct hf_config *cfg, char *const *env,
                       struct hf_error *err) HF_MUST_CHECK;

#define HF_CONFIG_FILE_MAX  ((size_t)1 << 20)  /* bytes */
#define HF_CONFIG_VALUE_MAX ((size_t)64 << 10) /* bytes of a value, all items of a list */
#define HF_CONFIG_LIST_MAX  4096               /* items of one list, such as agents */

/* Reads one file, at most once. Keys may be nested (`log: {level: info}`) or dotted
 * (`log.level: info`). Texts take the type that the table asks for, so that `no` is a word and
 * not false. Anchors, aliases, tags, duplicate keys, and second documents are refused.
 * HF_EINVAL, HF_ENOENT, HF_EDENIED, HF_ELIMIT or HF_EIO with a sentence that begins with
 * "path:line:column: key: ". */
int hf_config_read_file(struct hf_config *cfg, const char *path,
                        struct hf_error *err) HF_MUST_CHECK;

/* The disk, as struct hf_config_files wants it. */
int hf_config_read_disk(const char *path, struct hf_buf *text, void *unused) HF_MUST_CHECK;

/* The same with the content at hand; `path` only names it. */
int hf_config_read_text(struct hf_config *cfg, const char *path, const char *text, size_t len,
                        struct hf_error *err) HF_MUST_CHECK;

/* Walks the options whose values differ between two configurations of the same tables, for a
 * reload. Start with *cursor = 0; NULL at the end. */
const struct hf_option *hf_config_next_change(const struct hf_config *before,
                                              const struct hf_config *after, size_t *cursor);

/* The body of --help: each group's flags with help, default and variables, 80 columns wide. */
void hf_config_write_help(const struct hf_config *cfg, struct hf_buf *out);

/* The answer to --config-dump: a configuration file with the present values, each with a
 * comment that says where it came from. Reading it back gives the same values; secrets and
 * what cannot stand in a file are comments. */
void hf_config_write_dump(const struct hf_config *cfg, struct hf_buf *out);

/* The reference of all options in Markdown, one heading (level 3) each. */
void hf_config_write_markdown(const struct hf_config *cfg, struct hf_buf *out);

#define HF_CLEANUP_CONFIG __attribute__((cleanup(hf_config_done)))

#endif
