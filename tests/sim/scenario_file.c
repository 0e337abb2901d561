/* scenario_file.c - scenarios as files: read, printed, compared, written anew. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario.h"

enum { AROUND = 3 }; /* lines that are shown before and after a difference */

static char *read_text(const char *path)
{
    HF_CLEANUP_BUF struct hf_buf text = { 0 };
    FILE *file = fopen(path, "re");
    char *all = NULL, *room;

    if (file == NULL) {
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return NULL;
    }
    while ((room = hf_buf_reserve(&text, BUFSIZ)) != NULL) {
        size_t got = fread(room, 1, BUFSIZ, file);

        text.len += got;
        if (got == 0)
            break;
    }
    (void)fclose(file);
    hf_buf_putc(&text, '\0');
    hfs_must(hf_buf_take(&text, &all, NULL));
    return all;
}

static bool write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    bool ok = file != NULL && fputs(text, file) >= 0;

    if (file != NULL)
        ok = fclose(file) == 0 && ok;
    if (!ok)
        (void)fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return ok;
}

/* Differences. */

struct lines {
    char **list;
    size_t count, cap;
};

static void cut_lines(struct lines *lines, char *text)
{
    for (char *line; (line = strsep(&text, "\n")) != NULL;) {
        hfs_grow(&lines->list, &lines->cap, lines->count + 1, sizeof(char *));
        lines->list[lines->count++] = line;
    }
}

static void print_lines(char mark, const struct lines *lines, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < lines->count; i++)
        (void)fprintf(stderr, "%c%s\n", mark, lines->list[i]);
}

/* What stands between the common beginning and the common end. */
static void print_difference(const char *path, char *expected, char *actual)
{
    struct lines old = { 0 }, new = { 0 };
    size_t first = 0, last = 0;

    cut_lines(&old, expected);
    cut_lines(&new, actual);
    while (first < old.count &&
           first < new.count &&strcmp(old.list[first], new.list[first]) == 0)
        first++;
    while (last < old.count - first &&
           last < new.count - first &&strcmp(old.list[old.count - 1 - last],
                                             new.list[new.count - 1 - last]) ==
               0)
        last++;
    (void)fprintf(stderr, "%s:%zu: another story\n", path, first + 1);
    print_lines(' ', &old, first > AROUND ? first - AROUND : 0, first);
    print_lines('-', &old, first, old.count - last);
    print_lines('+', &new, first, new.count - last);
    print_lines(' ', &old, old.count - last, old.count - last + AROUND);
    (void)fprintf(stderr,
                  "review it as text; `holdfast-sim --scenario FILE --update` takes it\n");
    free(old.list);
    free(new.list);
}

static bool use_text(const char *path, enum hfs_scenario_use use, char *expected, char *actual)
{
    if (use == HFS_SCENARIO_PRINT)
        return fputs(actual, stdout) >= 0;
    if (strcmp(expected, actual) == 0)
        return true;
    if (use == HFS_SCENARIO_UPDATE)
        return write_text(path, actual);
    print_difference(path, expected, actual);
    return false;
}

/* `ret_text` may be NULL: what stands in the file. */
static bool load(struct hfs_scenario *scenario, const char *path, char **ret_text)
{
    struct hf_error err = { "" };
    char *text = read_text(path), *copy;
    int rc = HF_EIO;

    if (text == NULL)
        return false;
    copy = hfs_copy_text(text);
    rc = hfs_scenario_parse(scenario, path, copy, &err);
    free(copy);
    if (rc != HF_OK)
        (void)fprintf(stderr, "%s\n", err.text);
    if (rc == HF_OK && ret_text != NULL)
        *ret_text = text;
    else
        free(text);
    return rc == HF_OK;
}

bool hfs_scenario_load(struct hfs_scenario *scenario, const char *path)
{
    return load(scenario, path, NULL);
}

bool hfs_scenario_file(const char *path, enum hfs_scenario_use use)
{
    struct hfs_scenario scenario;
    char *expected = NULL, *actual = NULL, why[600] = "";
    bool held, ok;

    if (!load(&scenario, path, &expected))
        return false;
    held = hfs_scenario_run(&scenario, &actual, why, sizeof why);
    ok = use_text(path, use, expected, actual) && held;
    if (!held)
        (void)fprintf(stderr, "%s: FAILED %s\n", path, why);
    hfs_scenario_done(&scenario);
    free(actual);
    free(expected);
    return ok;
}

static int is_scenario(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 4 && strcmp(entry->d_name + len - 4, ".txt") == 0;
}

int hfs_scenario_each(const char *folder, void (*fn)(const char *path, void *arg), void *arg)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_scenario, alphasort);

    for (int i = 0; i < count; i++) {
        char path[4096];

        (void)snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        fn(path, arg);
        free(entries[i]);
    }
    free(entries);
    return count > 0 ? count : 0;
}

struct use {
    enum hfs_scenario_use use;
    int failed;
};

static void use_file(const char *path, void *arg)
{
    struct use *use = arg;

    use->failed += !hfs_scenario_file(path, use->use);
}

bool hfs_scenario_folder(const char *path, enum hfs_scenario_use how)
{
    struct use use = { .use = how };
    int count = hfs_scenario_each(path, use_file, &use);

    (void)printf("%d scenarios, %d failed\n", count, use.failed);
    return count > 0 && use.failed == 0;
}
