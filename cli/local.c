#include "cli/local.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { BOOT_ID_SIZE = 64, START_TIME_FIELD = 22, ENVIRON_MAX = 1 << 20 };

bool cli_is_of_this_machine(const Holdfast__V1__Live *live)
{
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    char boot_id[BOOT_ID_SIZE] = "";
    bool here = file != NULL && fgets(boot_id, sizeof boot_id, file) != NULL;

    if (file != NULL)
        (void)fclose(file);
    boot_id[strcspn(boot_id, "\n")] = '\0';
    return here && strcmp(boot_id, live->boot_id) == 0;
}

/* The name in field 2 may have any character in it: look behind its last parenthesis. */
int64_t cli_start_time(pid_t pid)
{
    char path[64], text[1024] = "";
    const char *rest;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return 0;
    (void)!fgets(text, sizeof text, file);
    (void)fclose(file);
    rest = strrchr(text, ')');
    for (int field = 2; rest != NULL && field < START_TIME_FIELD; field++)
        rest = strchr(rest + 1, ' ');
    return rest != NULL ? strtoll(rest, NULL, 10) : 0;
}

/* The value of a variable in the environment that the process was started with. */
static bool find_variable(pid_t pid, const char *name, char *ret_value, size_t size)
{
    HF_CLEANUP_FREE char *text = calloc(1, ENVIRON_MAX + 1);
    HF_CLEANUP_FD int fd = -1;
    char path[64];
    size_t len = 0, name_len = strlen(name);
    ssize_t n = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && text != NULL && len < ENVIRON_MAX &&
           (n = read(fd, text + len, ENVIRON_MAX - len)) > 0)
        len += (size_t)n;
    for (const char *at = text; at != NULL && at < text + len; at += strlen(at) + 1) {
        if (strncmp(at, name, name_len) == 0 && at[name_len] == '=')
            return (size_t)snprintf(ret_value, size, "%s", at + name_len + 1) < size;
    }
    return false;
}

bool cli_find_agents_dir(const Holdfast__V1__Live *live, char *ret_dir, size_t size)
{
    char *slash;

    if (!cli_is_of_this_machine(live) || cli_start_time(live->pid) != live->start_time ||
        !find_variable(live->pid, "HOLDFAST_SOCKET", ret_dir, size))
        return false;
    slash = strrchr(ret_dir, '/');
    if (slash != NULL)
        *slash = '\0';
    return slash != NULL;
}
