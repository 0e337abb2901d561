/* Keys from the environment, or from a file as Amazon's own tools have it: sections in
 * brackets, `name = value` in them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/s3_private.h"

enum { FILE_MAX = 64 << 10 };

static int read_file(const char *path, char text[FILE_MAX + 1], struct hf_error *err)
{
    HF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t len = 0;
    ssize_t n = fd < 0 ? -1 : 1;

    while (n > 0 && len < FILE_MAX) {
        n = read(fd, text + len, FILE_MAX - len);
        len += n > 0 ? (size_t)n : 0;
    }
    text[len] = '\0';
    if (n >= 0)
        return HF_OK;
    return hf_error_set(err, HF_EDENIED, "checkpoints.s3.credentials_file %.150s: %s", path,
                        strerror(errno));
}

/* Cuts the spaces off both ends. */
static char *trim(char *text)
{
    char *end = text + strlen(text);

    while (end > text && strchr(" \t\r", end[-1]) != NULL)
        *--end = '\0';
    return text + strspn(text, " \t");
}

static bool is_section(char *line, const char *profile)
{
    size_t len = strlen(line);

    if (len < 2 || line[len - 1] != ']')
        return false;
    line[len - 1] = '\0';
    return strcmp(trim(line + 1), profile) == 0;
}

static void take(struct s3_keys *keys, char *line)
{
    char *equals = strchr(line, '=');
    const char *name, *value;

    if (equals == NULL)
        return;
    *equals = '\0';
    name = trim(line);
    value = trim(equals + 1);
    if (strcmp(name, "aws_access_key_id") == 0)
        (void)snprintf(keys->id, sizeof keys->id, "%s", value);
    else if (strcmp(name, "aws_secret_access_key") == 0)
        (void)snprintf(keys->secret, sizeof keys->secret, "%s", value);
    else if (strcmp(name, "aws_session_token") == 0)
        (void)snprintf(keys->token, sizeof keys->token, "%s", value);
}

static int load_file(const struct hf_s3_settings *settings, struct s3_keys *keys,
                     struct hf_error *err)
{
    char text[FILE_MAX + 1], *rest, *line;
    bool in_section = false;
    int rc = read_file(settings->credentials_file, text, err);

    if (rc != HF_OK)
        return rc;
    for (line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
        line = trim(line);
        if (line[0] == '[')
            in_section = is_section(line, settings->profile);
        else if (in_section && line[0] != '#' && line[0] != ';')
            take(keys, line);
    }
    explicit_bzero(text, sizeof text);
    if (keys->id[0] == '\0' || keys->secret[0] == '\0')
        return hf_error_set(err, HF_EDENIED,
                            "checkpoints.s3.credentials_file %.120s: no aws_access_key_id and "
                            "aws_secret_access_key in a section [%.40s]",
                            settings->credentials_file, settings->profile);
    return HF_OK;
}

int hf_s3_keys_load(const struct hf_s3_settings *settings, struct s3_keys *ret_keys,
                    struct hf_error *err)
{
    *ret_keys = (struct s3_keys){ 0 };
    if (settings->access_key_id == NULL)
        return load_file(settings, ret_keys, err);
    (void)snprintf(ret_keys->id, sizeof ret_keys->id, "%s", settings->access_key_id);
    (void)snprintf(ret_keys->secret, sizeof ret_keys->secret, "%s",
                   settings->secret_access_key);
    if (settings->session_token != NULL)
        (void)snprintf(ret_keys->token, sizeof ret_keys->token, "%s", settings->session_token);
    return HF_OK;
}
