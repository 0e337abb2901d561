/* options.h - the settings that every program has: etcd, credentials, namespace, log.
 *
 *     static const struct hf_option TABLE[] = { ... };          (the program's own)
 *     struct settings { struct hf_options common; hf_ms ttl; } s;
 *     const struct hf_option_group groups[] = {
 *         { "Options", TABLE, sizeof TABLE / sizeof TABLE[0], &s },
 *         hf_options_group(&s.common),
 *     };
 *     HF_CLEANUP_CONFIG struct hf_config cfg = { 0 };
 *     int rc = hf_config_init(&cfg, groups, 2);
 *     if (rc == HF_OK)
 *         rc = hf_options_load(&cfg, &s.common, argc, argv, environ, &err); */
#ifndef HF_SCHEMA_OPTIONS_H
#define HF_SCHEMA_OPTIONS_H

#include "base/log.h"
#include "schema/config.h"

/* Texts belong to the hf_config that filled the struct; NULL when not set. */
struct hf_options {
    struct hf_strings endpoints;
    bool discover;
    const char *cacert;
    const char *cert;
    const char *key;
    const char *user;
    const char *password_file;
    const char *namespace;
    enum hf_log_level log_level;
    enum hf_log_format log_format;
    const char *config;
    bool config_dump;
    bool version;
    bool help;
};

/* The common table, to be filled into *options (NULL to only print it). Cannot fail. */
struct hf_option_group hf_options_group(struct hf_options *options);

/* Reads flags, environment and the file that these name, and checks the result. `options` is
 * what the common table of `cfg` fills. With --help or --version only the flags are read, so
 * that these work whatever else is wrong. */
int hf_options_load(struct hf_config *cfg, const struct hf_options *options, int argc,
                    char *const *argv, char *const *env, struct hf_error *err) HF_MUST_CHECK;

/* HF_EINVAL, and a sentence, when settings contradict each other. */
int hf_options_check(const struct hf_options *options, struct hf_error *err) HF_MUST_CHECK;

#endif
