/* What lies beneath the directory of the store `file`, for whoever tidies up there. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agentd/link/store_private.h"
#include "base/alloc.h"
#include "io/root.h"

enum { MOST_FILES = 50000 }; /* at one look; the rest comes when these are fewer */

struct list {
    struct link_store *store;
    struct link_store_files *files;
    char tag[LINK_STORE_TAG_LEN + 1]; /* of those that are wanted */
    void (*fn)(int err, void *arg);
    void *arg;
    int err;
    uv_work_t work;
};

int link_store_files_add(struct link_store_files *files, const struct link_store_name *name)
{
    struct link_store_name *next;

    if (!hf_grow(&files->names, &files->cap, files->count + 1, sizeof *files->names))
        return HF_ENOMEM;
    next = &files->names[files->count];
    (void)snprintf(next->key, sizeof next->key, "%s", name->key);
    next->task = hf_strdup(name->task);
    if (next->task == NULL)
        return HF_ENOMEM;
    files->count++;
    return HF_OK;
}

void link_store_files_done(struct link_store_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free(files->names[i].task);
    free(files->names);
    *files = (struct link_store_files){ 0 };
}

/* What was being written when somebody died has a dot in front. */
static bool is_body(const struct list *list, const char *name)
{
    const char *key = name[0] == '.' ? name + 1 : name;

    return strlen(name) < LINK_STORE_KEY_BYTES && link_store_has_tag(key, list->tag) &&
           hf_name_check("key", key, NULL) == HF_OK;
}

static int list_task(const struct list *list, int root, char *task)
{
    struct link_store_files *files = list->files;
    int fd = openat(root, task, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    const struct dirent *found;
    int rc = HF_OK;

    if (dir == NULL) { /* it went, or is none of ours */
        if (fd >= 0)
            (void)close(fd);
        return HF_OK;
    }
    while (rc == HF_OK && files->count < MOST_FILES && (found = readdir(dir)) != NULL) {
        struct link_store_name name = { .task = task };

        if (!is_body(list, found->d_name))
            continue;
        memcpy(name.key, found->d_name, strlen(found->d_name) + 1);
        rc = link_store_files_add(files, &name);
    }
    (void)closedir(dir);
    return rc;
}

static int list_all(const struct list *list)
{
    DIR *dir = opendir(list->store->directory);
    char id[HF_ID_LEN + 1];
    struct dirent *found;
    int rc = HF_OK;

    if (dir == NULL)
        return HF_EIO;
    /* What took the place of our directory is none of our business. */
    if (hf_root_read(dirfd(dir), id) != HF_OK || strcmp(id, list->store->root) != 0)
        rc = HF_EAGAIN;
    while (rc == HF_OK && list->files->count < MOST_FILES && (found = readdir(dir)) != NULL) {
        if (hf_name_check("task", found->d_name, NULL) == HF_OK)
            rc = list_task(list, dirfd(dir), found->d_name);
    }
    (void)closedir(dir);
    return rc;
}

static void work(uv_work_t *request)
{
    struct list *list = request->data;

    list->err = list_all(list);
}

static void after(uv_work_t *request, int status)
{
    struct list *list = request->data;

    (void)status;
    list->store->jobs--;
    list->fn(list->err, list->arg);
    free(list);
}

int link_store_list_files(struct link_store *store, const char *owner,
                          struct link_store_files *files, void (*fn)(int err, void *arg),
                          void *arg)
{
    struct list *list = hf_calloc(1, sizeof *list);
    int rc;

    if (list == NULL)
        return HF_ENOMEM;
    *list = (struct list){ .store = store, .files = files, .fn = fn, .arg = arg };
    rc = link_store_make_tag(owner, list->tag);
    if (rc != HF_OK) {
        free(list);
        return rc;
    }
    list->work.data = list;
    store->jobs++;
    (void)uv_queue_work(store->cfg.loop, &list->work, work, after); /* EINVAL only */
    return HF_OK;
}
