#include "cli/local.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "cli/process.h"

enum { BOOT_ID_SIZE = 64, ENVIRON_MAX = 1 << 20 };

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

int64_t cli_start_time(pid_t pid)
{
    struct cli_process process;

    return cli_process_read(pid, &process) ? process.start_time : 0;
}

/* The value of a variable in the environment that the process was started with. */
static bool find_variable(pid_t pid, const char *name, char *ret_value, size_t size)
{
    HF_CLEANUP_FREE char *text = hf_calloc(1, ENVIRON_MAX + 1);
    HF_CLEANUP_FD int fd = -1;
    char path[64];
    size_t len = 0, name_len = strlen(name);
    ssize_t n = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && text != NULL && len < ENVIRON_MAX &&
           (n = read(fd, text + len, ENVIRON_MAX - len)) > 0)
        len += (size_t)n;
    for (size_t at = 0; at < len; at += strlen(text + at) + 1) {
        if (strncmp(text + at, name, name_len) == 0 && text[at + name_len] == '=')
            return (size_t)snprintf(ret_value, size, "%s", text + at + name_len + 1) < size;
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

/* The first line of a small file of agentd's; false when there is none. */
static bool read_line(const char *dir, const char *name, char *ret_text, size_t size)
{
    char path[CLI_PATH_SIZE + 32];
    FILE *file;
    bool found;

    (void)snprintf(path, sizeof path, "%s/%s", dir, name);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    found = fgets(ret_text, (int)size, file) != NULL;
    (void)fclose(file);
    ret_text[found ? strcspn(ret_text, "\n") : 0] = '\0';
    return found;
}

bool cli_find_agentd(const Holdfast__V1__Live *live, struct cli_agentd *ret_agentd)
{
    char *slash, text[32], base[CLI_PATH_SIZE];
    struct cli_process keeper;
    uint64_t pid;

    *ret_agentd = (struct cli_agentd){ .link.pid = 0 };
    if (!cli_find_agents_dir(live, ret_agentd->state_dir, sizeof ret_agentd->state_dir) ||
        (slash = strrchr(ret_agentd->state_dir, '/')) == NULL)
        return false;
    *slash = '\0';
    if (!read_line(ret_agentd->state_dir, "link.pid", text, sizeof text) ||
        hf_parse_u64(text, 2, INT32_MAX, &pid) != HF_OK ||
        !cli_process_read((pid_t)pid, &ret_agentd->link) ||
        !cli_process_read(ret_agentd->link.parent, &keeper) || keeper.pid == 1 ||
        strcmp(ret_agentd->link.name, "agentd-link") != 0 || strcmp(keeper.name, "agentd") != 0)
        return false; /* what the file names is something else by now */
    if (read_line(ret_agentd->state_dir, "cgroup", base, sizeof base))
        (void)snprintf(ret_agentd->cgroup, sizeof ret_agentd->cgroup, "%s/%s", base,
                       live->instance_id);
    return true;
}

bool cli_stands_still(pid_t pid, const char *cgroup)
{
    struct cli_process process;
    char path[CLI_PATH_SIZE + 320], line[64];
    bool frozen = false;
    FILE *file;

    if (!cli_process_read(pid, &process))
        return false;
    if (process.state == 'T')
        return true;
    (void)snprintf(path, sizeof path, "%s/cgroup.events", cgroup);
    file = cgroup[0] != '\0' ? fopen(path, "re") : NULL;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        frozen = frozen || strcmp(line, "frozen 1\n") == 0;
    if (file != NULL)
        (void)fclose(file);
    return frozen;
}
