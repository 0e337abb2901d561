#include "cli/process.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"

enum { STATE_FIELD = 3, PARENT_FIELD = 4, START_TIME_FIELD = 22, LOOK_MS = 10 };

/* The fields behind the name, which may have any character in it: `rest` is its end. */
static const char *find_field(const char *rest, int wanted)
{
    for (int field = 2; rest != NULL && field < wanted; field++)
        rest = strchr(rest + 1, ' ');
    return rest;
}

bool cli_process_read(pid_t pid, struct cli_process *ret_process)
{
    char path[64], text[1024] = "";
    const char *name, *rest, *state, *parent, *start_time;
    FILE *file;

    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    (void)!fgets(text, sizeof text, file);
    (void)fclose(file);
    name = strchr(text, '(');
    rest = strrchr(text, ')');
    state = find_field(rest, STATE_FIELD);
    parent = find_field(rest, PARENT_FIELD);
    start_time = find_field(rest, START_TIME_FIELD);
    if (name == NULL || start_time == NULL)
        return false;
    *ret_process = (struct cli_process){ .pid = pid,
                                         .parent = (pid_t)strtol(parent, NULL, 10),
                                         .state = state[1],
                                         .start_time = strtoll(start_time, NULL, 10) };
    (void)snprintf(ret_process->name, sizeof ret_process->name, "%.*s", (int)(rest - name - 1),
                   name + 1);
    return true;
}

/* Trees. */

struct processes {
    struct cli_process *items;
    size_t count, cap;
};

static bool read_all(struct processes *all)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    uint64_t pid;
    bool is_whole = proc != NULL;

    while (is_whole && (entry = readdir(proc)) != NULL) {
        if (hf_parse_u64(entry->d_name, 1, INT32_MAX, &pid) != HF_OK)
            continue;
        is_whole = hf_grow(&all->items, &all->cap, all->count + 1, sizeof all->items[0]);
        if (is_whole && cli_process_read((pid_t)pid, &all->items[all->count]))
            all->count++;
    }
    if (proc != NULL)
        (void)closedir(proc);
    return is_whole;
}

/* Returns how many of those below `root` were still alive. A process is looked at after its
 * parent, which is why those that were found serve as the list of what is to be looked at. */
static size_t kill_below(const struct processes *all, pid_t root)
{
    HF_CLEANUP_FREE pid_t *found = hf_calloc(all->count + 1, sizeof(pid_t));
    size_t count = 1, alive = 0;

    if (found == NULL)
        return 1;
    found[0] = root;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < all->count && count <= all->count; k++) {
            if (all->items[k].parent != found[i])
                continue;
            found[count++] = all->items[k].pid;
            if (all->items[k].state == 'Z')
                continue;
            alive++;
            (void)kill(all->items[k].pid, SIGKILL);
        }
    }
    return alive;
}

bool cli_process_kill_tree(pid_t root, hf_ms patience)
{
    struct hf_clock clock = hf_clock_boottime();
    hf_ms until = hf_clock_now(&clock) + patience;
    size_t alive = 1;

    if (kill(root, SIGSTOP) != 0)
        return false;
    while (alive > 0 && hf_clock_now(&clock) < until) {
        struct processes all = { 0 };

        if (read_all(&all))
            alive = kill_below(&all, root);
        free(all.items);
        if (alive > 0)
            (void)nanosleep(&(struct timespec){ .tv_nsec = LOOK_MS * 1000000L }, NULL);
    }
    return kill(root, SIGKILL) == 0 && alive == 0;
}
