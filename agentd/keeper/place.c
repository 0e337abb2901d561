#include "agentd/keeper/place.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/keeper/protocol.h"

const char *agentd_find_option(char *const *argv, const char *option)
{
    size_t len = strlen(option);
    const char *found = NULL;

    for (char *const *arg = argv + 1; *arg != NULL && strcmp(*arg, "--") != 0; arg++) {
        if (strcmp(*arg, option) == 0)
            found = arg[1];
        else if (strncmp(*arg, option, len) == 0 && (*arg)[len] == '=')
            found = *arg + len + 1;
    }
    return found;
}

/* Each `agentd run` has a directory of its own, named after its agent. */
int agentd_choose_state_dir(char *const *argv, char *ret_dir, size_t size)
{
    const char *dir = agentd_find_option(argv, "--state-dir");
    const char *name = agentd_find_option(argv, "--name");
    const char *home = getenv("XDG_STATE_HOME");
    const char *tail = home != NULL ? "" : "/.local/state";
    bool is_run = argv[1] != NULL && strcmp(argv[1], "run") == 0;
    bool is_named = is_run || (argv[1] != NULL && argv[1][0] != '-' && name != NULL);
    int len;

    if (dir == NULL)
        dir = getenv("HOLDFAST_STATE_DIR");
    if (home == NULL)
        home = getenv("HOME");
    if (geteuid() == 0 || home == NULL) {
        home = "/var/lib";
        tail = "";
    }
    if (dir != NULL)
        len = snprintf(ret_dir, size, "%s", dir);
    else if (!is_named)
        len = snprintf(ret_dir, size, "%s%s/holdfast/agentd", home, tail);
    else if (name != NULL && agentd_is_name(name, strlen(name) + 1))
        len = snprintf(ret_dir, size, "%s%s/holdfast/run-%s", home, tail, name);
    else
        return -EINVAL;
    return len > 0 && (size_t)len < size ? 0 : -ENAMETOOLONG;
}
