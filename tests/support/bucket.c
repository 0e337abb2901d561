#include "support/bucket.h"

#include <check.h>
#include <dirent.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/process.h"
#include "support/text.h"
#include "support/wait.h"

#define HERE HOLDFAST_SOURCE_DIR "/tests/support/bucket"

enum { START_MS = 60000 };

int hft_bucket_install(void)
{
    const char *offline = getenv("HOLDFAST_OFFLINE");
    int status = -1;
    pid_t pid = fork(); /* no test runs yet that could fail in hft_process_spawn */

    if (pid == 0) {
        (void)execl(HERE "/install.sh", "install.sh", HERE, HOLDFAST_BUCKET_DIR, (char *)NULL);
        _exit(127);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        status = -1;
    if (status == 0)
        return 0;
    if (offline != NULL && strcmp(offline, "1") == 0) {
        (void)puts("skipped: npm could not fetch s3rver");
        return 77;
    }
    (void)puts(
        "npm could not fetch s3rver, so nothing was tested; HOLDFAST_OFFLINE=1 skips this");
    return 1;
}

static void path_in(const struct hft_bucket *bucket, const char *name, char ret_path[400])
{
    (void)snprintf(ret_path, 400, "%s/%s", bucket->dir, name);
}

static bool is_ready(void *arg)
{
    char path[400];

    path_in(arg, "port", path);
    return access(path, F_OK) == 0;
}

void hft_bucket_start_tls(struct hft_bucket *bucket, const char *dir, const char *cert,
                          const char *key)
{
    const char *argv[] = { "python3",
                           "-B", /* nothing is written beside the sources */
                           HERE "/bucket.py",
                           HOLDFAST_BUCKET_DIR,
                           bucket->dir,
                           HFT_BUCKET_KEY_ID,
                           HFT_BUCKET_SECRET,
                           cert,
                           key,
                           NULL };
    char path[400], *port;

    (void)snprintf(bucket->dir, sizeof bucket->dir, "%s/bucket", dir);
    (void)mkdir(bucket->dir, 0700);
    bucket->pid = hft_process_spawn(&(struct hft_spawn){ .argv = argv });
    hft_wait_or_fail(is_ready, bucket, START_MS, "a bucket");
    path_in(bucket, "port", path);
    port = hft_read_text(path, NULL);
    (void)snprintf(bucket->endpoint, sizeof bucket->endpoint, "%s://127.0.0.1:%ld",
                   cert != NULL ? "https" : "http", strtol(port, NULL, 10));
    free(port);
    ck_assert_int_eq(unlink(path), 0);
}

void hft_bucket_start(struct hft_bucket *bucket, const char *dir)
{
    hft_bucket_start_tls(bucket, dir, NULL, NULL);
}

void hft_bucket_stop(struct hft_bucket *bucket)
{
    if (bucket->pid == 0)
        return;
    ck_assert_int_eq(kill(bucket->pid, SIGTERM), 0);
    (void)hft_process_reap(bucket->pid, START_MS);
    bucket->pid = 0;
}

void hft_bucket_set(const struct hft_bucket *bucket, const char *fault, const char *text)
{
    char path[400], temporary[420];
    FILE *file;

    path_in(bucket, fault, path);
    (void)snprintf(temporary, sizeof temporary, "%s.set", path);
    file = fopen(temporary, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(rename(temporary, path), 0);
}

void hft_bucket_unset(const struct hft_bucket *bucket, const char *fault)
{
    char path[400];

    path_in(bucket, fault, path);
    ck_assert_int_eq(unlink(path), 0);
}

int hft_bucket_count(const struct hft_bucket *bucket, const char *text)
{
    char path[400], *log, *line, *rest = NULL;
    int count = 0;

    path_in(bucket, "log", path);
    log = hft_read_text(path, NULL);
    for (line = strtok_r(log, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        count += strstr(line, text) != NULL;
    free(log);
    return count;
}

/* nftw has no argument for its callback. */
static struct {
    const char *text;
    int count;
    char last[600];
} search;

static int look_at(const char *path, const struct stat *info, int type, struct FTW *place)
{
    static const char OBJECT[] = "._S3rver_object";
    size_t len = strlen(path);

    (void)info;
    (void)place;
    if (type == FTW_F && len > sizeof OBJECT &&
        strcmp(path + len + 1 - sizeof OBJECT, OBJECT) == 0 &&
        strstr(path, search.text) != NULL) {
        search.count++;
        (void)snprintf(search.last, sizeof search.last, "%s", path);
    }
    return 0;
}

int hft_bucket_objects(const struct hft_bucket *bucket, const char *text)
{
    char path[400];

    path_in(bucket, "data/" HFT_BUCKET_NAME, path);
    search.text = text;
    search.count = 0;
    (void)nftw(path, look_at, 16, FTW_PHYS); /* what goes meanwhile is not there */
    return search.count;
}

void hft_bucket_find(const struct hft_bucket *bucket, const char *text, char ret_path[600])
{
    ck_assert_int_eq(hft_bucket_objects(bucket, text), 1);
    memcpy(ret_path, search.last, sizeof search.last);
}

int hft_bucket_uploads(const struct hft_bucket *bucket)
{
    char path[400];
    const struct dirent *found;
    int count = 0;
    DIR *dir;

    path_in(bucket, "data/" HFT_BUCKET_NAME "/._S3rver_uploads", path);
    dir = opendir(path);
    while (dir != NULL && (found = readdir(dir)) != NULL)
        count += found->d_name[0] != '.';
    if (dir != NULL)
        (void)closedir(dir);
    return count;
}
