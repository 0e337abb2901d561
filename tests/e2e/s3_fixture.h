/* s3_fixture.h - an agentd that keeps its checkpoints in a bucket, which s3rver has, and
 * somebody in front of it who did not read our code checks every signature (support/bucket.h).
 */
#ifndef S3_FIXTURE_H
#define S3_FIXTURE_H

#include <errno.h>

#include "stores_fixture.h"
#include "support/bucket.h"

#define KEEP_PATH(file)                                                                        \
    CURL "-w '%{http_code}' -X PUT -H 'Content-Type: application/json' "                       \
         "-d \"{\\\"path\\\":\\\"$0/" file "\\\"}\" " CHECKPOINT " >" file ".answer; "
#define COMPARE(file)                                                                          \
    CURL "-o back " CHECKPOINT "; cmp back " file " >>same 2>&1 && echo as stored >>same; "    \
         "echo done >>same; mv same compared; "
#define AFTER(flag) "until [ -e " flag " ]; do sleep 0.1; done; "
#define STAY        "exec sleep 600"

static struct hft_bucket bucket;
static const char *authority; /* whose certificates are believed; NULL: whose the system does */

static inline void write_lent_keys(const char *id, const char *secret, const char *token)
{
    char text[500];

    (void)snprintf(
        text, sizeof text,
        "[other]\naws_access_key_id = x\n\n[default]\n# ours\naws_access_key_id = %s\n"
        "aws_secret_access_key=%s\n%s%s\n",
        id, secret, token != NULL ? "aws_session_token = " : "", token != NULL ? token : "");
    write_file("keys", text);
}

static inline void write_keys(const char *id, const char *secret)
{
    write_lent_keys(id, secret, NULL);
}

static inline void begin(void)
{
    setup();
    variables = NULL;
    authority = NULL;
    hft_bucket_start(&bucket, dir.path);
    write_keys(HFT_BUCKET_KEY_ID, HFT_BUCKET_SECRET);
}

/* Whatever else a test is about: no request of ours had a signature that does not hold. */
static inline void end(void)
{
    hft_bucket_stop(&bucket);
    teardown();
}

static inline void expect_signed(void)
{
    ck_assert_int_gt(hft_bucket_count(&bucket, ""), 0);
    ck_assert_int_eq(hft_bucket_count(&bucket, " 403"), 0);
    ck_assert_int_eq(hft_bucket_count(&bucket, "Mismatch"), 0);
}

static inline const char *keys_file(void)
{
    static char path[HFT_PATH_MAX + 8];

    (void)snprintf(path, sizeof path, "%s/keys", dir.path);
    return path;
}

static inline pid_t start_s3(const char *const more[], const char *script)
{
    const char *flags[24] = { "--store",
                              "s3",
                              "--s3-bucket",
                              "checkpoints",
                              "--s3-endpoint",
                              bucket.endpoint,
                              "--s3-timeout",
                              "5s",
                              "--s3-credentials-file",
                              keys_file() };
    size_t count = 10;

    for (; more != NULL && *more != NULL; more++)
        flags[count++] = *more;
    submit("t1", "r1", "x");
    return start_with("a1", flags, (const char *[]){ "sh", "-c", script, dir.path, NULL });
}

static inline void cli(struct hft_output *output, const char *verb)
{
    hft_cli(output, server.endpoint, "checkpoint", verb, "t1", "--s3-bucket", "checkpoints",
            "--s3-endpoint", bucket.endpoint, "--s3-credentials-file", keys_file(),
            "--s3-timeout", "20s", authority != NULL ? "--s3-cacert" : NULL, authority, NULL);
}

static inline void verify(int status, const char *part)
{
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };

    cli(&output, "verify");
    ck_assert_msg(output.status == status && strstr(output.out, part) != NULL,
                  "status %d, not %d; no %s in: %s%s", output.status, status, part, output.out,
                  output.err);
}

/* The helpers of the link that runs now. */
static inline int list_helpers(pid_t ret_pids[8])
{
    char path[100], *text, *at, *rest;
    pid_t link = pid_in("link.pid");
    int count = 0;

    (void)snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)link, (int)link);
    text = hft_read_text(path, NULL);
    for (at = text; count < 8 && strtol(at, &rest, 10) > 0; at = rest)
        ret_pids[count++] = (pid_t)strtol(at, NULL, 10);
    free(text);
    return count;
}

static inline int count_helpers(void)
{
    pid_t pids[8];

    return list_helpers(pids);
}

static inline bool has_helper(void *arg)
{
    (void)arg;
    return count_helpers() > 0;
}

static inline void await_helper(void)
{
    hft_wait_or_fail(has_helper, NULL, STEP_MS, "a helper");
}

static inline void kill_helpers(void)
{
    pid_t pids[8];
    int count = list_helpers(pids);

    ck_assert_int_gt(count, 0);
    while (count-- > 0)
        (void)kill(pids[count], SIGKILL); /* one that has no work may just have gone */
}

/* As s3rver would have it. */
static inline void leave_object(const char *name)
{
    char path[400], beneath[140];

    (void)snprintf(path, sizeof path, "%s/data/checkpoints/holdfast/default/%.60s", bucket.dir,
                   name);
    for (char *slash = path + strlen(bucket.dir); (slash = strchr(slash + 1, '/')) != NULL;) {
        *slash = '\0';
        ck_assert(mkdir(path, 0700) == 0 || errno == EEXIST);
        *slash = '/';
    }
    (void)snprintf(beneath, sizeof beneath,
                   "bucket/data/checkpoints/holdfast/default/%.60s._S3rver_object", name);
    write_file(beneath, "left");
    (void)snprintf(beneath, sizeof beneath,
                   "bucket/data/checkpoints/holdfast/default/%.60s._S3rver_metadata.json",
                   name);
    write_file(beneath, "{}");
}

/* A key that is none, and could have been made by whoever made that of an object. Each number
 * is another one. */
static inline void leave_strays(const char *answer, const char *task, int count)
{
    char *text = read_file(answer), key[64], id[40], name[64];
    const char *at = strstr(text, "\"key\":\"");

    ck_assert_msg(at != NULL && sscanf(at, "\"key\":\"%63[a-z0-9]", key) == 1, "%s", text);
    free(text);
    for (int i = 0; i < count; i++) {
        (void)snprintf(id, sizeof id, "01m7mdz22emvmymyz8bmbg%04d", i);
        (void)memcpy(key, id, 26);
        (void)snprintf(name, sizeof name, "%.8s/%.40s", task, key);
        leave_object(name);
    }
}

static inline void leave_stray(const char *answer, const char *task)
{
    leave_strays(answer, task, 1);
}

struct count {
    int (*count)(const char *text);
    const char *text;
    int want;
};

static inline int count_objects(const char *text)
{
    return hft_bucket_objects(&bucket, text);
}

static inline int count_uploads(const char *text)
{
    (void)text;
    return hft_bucket_uploads(&bucket);
}

static inline int count_requests(const char *text)
{
    int count = hft_bucket_count(&bucket, text);

    return count > 0 ? 1 : 0; /* so many that there are any */
}

static inline bool is_counted(void *arg)
{
    const struct count *count = arg;

    return count->count(count->text) == count->want;
}

static inline void await_count(int (*fn)(const char *), const char *text, int want,
                               const char *what)
{
    hft_wait_or_fail(is_counted, &(struct count){ fn, text, want }, STEP_MS, what);
}

#endif
