/* stores_fixture.h - an agentd whose agent keeps checkpoints of its task, and leaves in files
 * beside it what it was answered. */
#ifndef STORES_FIXTURE_H
#define STORES_FIXTURE_H

#include "agentd_fixture.h"

#define TASKS      "http://localhost/v1/tasks/"
#define CHECKPOINT TASKS "t1/checkpoint"
#define KEEP(file) CURL "-w '%{http_code}' -T " file " " CHECKPOINT " >" file ".answer; "
#define TAKE_TASK                                                                              \
    "cd \"$0\"; " CURL "-o claimed -d '{\"wait\":\"30s\"}' " TASKS "claim; " CURL              \
    "-d '' " TASKS "t1/start; "

/* What `holdfast checkpoint verify` says of a task's checkpoints, and with which status. */
static inline void verify_files(const char *task, int status, const char *part)
{
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };
    char store[HFT_PATH_MAX + 32];

    (void)snprintf(store, sizeof store, "%s/checkpoints", dir.path);
    hft_cli(&output, server.endpoint, "checkpoint", "verify", task, "--store-dir", store, NULL);
    ck_assert_msg(output.status == status &&
                      (strstr(output.out, part) != NULL || strstr(output.err, part) != NULL),
                  "status %d, not %d; no %s in: %s%s", output.status, status, part, output.out,
                  output.err);
}

static inline void expect_answer(const char *file, const char *part)
{
    char *text = read_file(file);

    ck_assert_msg(strstr(text, part) != NULL, "no %s in %s: %s", part, file, text);
    free(text);
}

/* To whoever agentd is. */
static inline void give_to_agentd(const char *path)
{
    if (is_nobodys)
        ck_assert_int_eq(chown(path, HFT_NOBODY, HFT_NOBODY), 0);
}

/* The key that stands in an answer. */
static inline void find_key_in(const char *file, char ret_key[64])
{
    char *answer = read_file(file);
    const char *at = strstr(answer, "\"key\":\"");

    ck_assert_msg(at != NULL && sscanf(at, "\"key\":\"%63[a-z0-9]", ret_key) == 1, "%s",
                  answer);
    free(answer);
}

static inline int count_keys(const char *prefix)
{
    char *keys = NULL;
    int count = 0;

    hft_etcdctl_ok(&server, &keys, "get", "--prefix", "--keys-only", prefix, NULL);
    for (const char *at = keys; (at = strstr(at, prefix)) != NULL; at++)
        count++;
    free(keys);
    return count;
}

static inline bool only_the_last_are_kept(void *arg)
{
    enum { KEPT = 5 };

    (void)arg;
    return count_keys(ROOT "checkpoints/t1/") == KEPT;
}

#endif
