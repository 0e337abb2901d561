#include "cli/checkpoints.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/sha256.h"
#include "base/str.h"
#include "cli/out.h"
#include "cli/store.h"
#include "cli/tasks.h"
#include "io/root.h"
#include "io/s3.h"
#include "schema/json.h"
#include "schema/name.h"

const struct hf_option CLI_BODY_OPTIONS[2 + HF_S3_OPTION_COUNT] = {
    { .flag = "seq",
      .value = "N",
      HF_OPTION_FIELD(INT, struct cli_body_settings, seq),
      .min = 0,
      .max = INT64_MAX,
      .help = "This one alone." },
    { .flag = "store-dir",
      .value = "DIR",
      HF_OPTION_FIELD(STRING, struct cli_body_settings, store_dir),
      .help = "Where bodies of the store `file` lie: checkpoints.directory of the agentd." },
    HF_S3_OPTIONS(struct cli_body_settings),
};

static int add(struct hf_fleet_change *found, void *arg)
{
    struct cli_checkpoints *chain = arg;

    if (!hf_grow(&chain->entries, &chain->cap, chain->count + 1,
                 sizeof(Holdfast__V1__Checkpoint *)))
        return HF_ENOMEM;
    chain->entries[chain->count++] = (Holdfast__V1__Checkpoint *)found->record;
    found->record = NULL;
    return HF_OK;
}

int cli_checkpoints_read(struct cli *cli, const char *task, struct cli_checkpoints *chain)
{
    CLI_CLEANUP_RECORD struct cli_record record = { 0 };
    int rc = cli_read_task(cli, task, &record);

    if (rc == HF_OK && cli_task_of(&record)->checkpoint != NULL)
        chain->head = cli_task_of(&record)->checkpoint->seq;
    return rc == HF_OK ? cli_list(cli, HF_KEY_IN_CHECKPOINTS_TASK, task, add, chain) : rc;
}

void cli_checkpoints_done(struct cli_checkpoints *chain)
{
    for (size_t i = 0; i < chain->count; i++)
        hf_json_free(&chain->entries[i]->base);
    free(chain->entries);
    *chain = (struct cli_checkpoints){ 0 };
}

/* Bodies. */

const char *cli_body_where(const Holdfast__V1__Checkpoint *entry, char ret_text[300])
{
    (void)snprintf(ret_text, 300, "%s%s%s", entry->store, entry->root != NULL ? " on " : "",
                   entry->root != NULL ? entry->root->host : "");
    return ret_text;
}

static void tell(struct cli_body_found *found, enum cli_body what, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
static void tell(struct cli_body_found *found, enum cli_body what, const char *fmt, ...)
{
    va_list args;

    found->what = what;
    va_start(args, fmt);
    (void)vsnprintf(found->text, sizeof found->text, fmt, args);
    va_end(args);
}

static int read_etcd(struct cli *cli, const Holdfast__V1__Checkpoint *entry, struct hf_buf *out,
                     struct cli_body_found *ret)
{
    uint64_t number;
    bool found = false;
    int rc = HF_OK;

    if (hf_parse_u64(entry->key, 1, INT64_MAX, &number) == HF_OK)
        rc = cli_read_body(cli,
                           (struct hf_key){ .kind = HF_KEY_CHECKPOINT_BODY,
                                            .name = entry->task,
                                            .seq = (int64_t)number },
                           out, &found);
    if (rc == HF_OK && !found)
        tell(ret, CLI_BODY_BAD, "its body is not there");
    return rc;
}

static void read_all(int fd, int64_t size, struct hf_buf *out, struct cli_body_found *ret)
{
    char chunk[16384];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof chunk)) > 0) {
        hf_buf_append(out, chunk, (size_t)n);
        if ((int64_t)out->len > size)
            break; /* enough to see that it is another one */
    }
    if (n < 0)
        tell(ret, CLI_BODY_UNSEEN, "its file cannot be read: %s", strerror(errno));
}

/* Whether this is the directory that it was put into. An entry of an older agentd does not say.
 */
static bool is_its_root(const Holdfast__V1__Checkpoint *entry, int root, const char *path,
                        struct cli_body_found *ret)
{
    char id[HF_ID_LEN + 1];

    if (entry->root == NULL ||
        (hf_root_read(root, id) == HF_OK && strcmp(id, entry->root->id) == 0))
        return true;
    tell(ret, CLI_BODY_UNSEEN,
         "it lies in files of host %.64s, and %.100s is another directory: look there",
         entry->root->host, path);
    return false;
}

/* Names that are checked, opened beneath the store's own directory, and no links. */
static int read_file(struct cli *cli, const Holdfast__V1__Checkpoint *entry, struct hf_buf *out,
                     struct cli_body_found *ret)
{
    const char *path = ((const struct cli_body_settings *)cli->settings)->store_dir;
    HF_CLEANUP_FD int root = -1;
    HF_CLEANUP_FD int dir = -1;
    HF_CLEANUP_FD int fd = -1;

    if (path == NULL) {
        tell(ret, CLI_BODY_UNSEEN, "it lies in files%s%.64s: say with --store-dir where",
             entry->root != NULL ? " of host " : "",
             entry->root != NULL ? entry->root->host : "");
        return HF_OK;
    }
    if (hf_name_check("task", entry->task, NULL) != HF_OK ||
        hf_name_check("key", entry->key, NULL) != HF_OK) {
        tell(ret, CLI_BODY_BAD, "its key makes no sense");
        return HF_OK;
    }
    root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return cli_fail(cli, HF_EINVAL, "--store-dir %s: %s", path, strerror(errno));
    if (!is_its_root(entry, root, path, ret))
        return HF_OK;
    dir = openat(root, entry->task, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0)
        fd = openat(dir, entry->key, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        read_all(fd, entry->size, out, ret);
    else if (errno == ENOENT)
        tell(ret, CLI_BODY_BAD, "its body is not there");
    else if (errno == ELOOP || errno == ENOTDIR)
        tell(ret, CLI_BODY_BAD, "its body is no file");
    else
        tell(ret, CLI_BODY_UNSEEN, "its file cannot be opened: %s", strerror(errno));
    return HF_OK;
}

static void judge(const Holdfast__V1__Checkpoint *entry, const struct hf_buf *body,
                  struct cli_body_found *ret)
{
    uint8_t digest[HF_SHA256_LEN];
    char hex[HF_SHA256_HEX_LEN + 1];

    if ((int64_t)body->len != entry->size) {
        tell(ret, CLI_BODY_BAD, "its body has another size");
        return;
    }
    if (hf_sha256(body->len > 0 ? body->data : "", body->len, digest) != HF_OK) {
        tell(ret, CLI_BODY_UNSEEN, "its digest cannot be computed");
        return;
    }
    hf_sha256_format(digest, hex);
    if (strcmp(hex, entry->sha256) != 0)
        tell(ret, CLI_BODY_BAD, "its body has another digest");
}

/* One that is short enough for memory. */
static int read_short(struct cli *cli, const Holdfast__V1__Checkpoint *entry,
                      struct hf_buf *out, struct cli_body_found *ret_found)
{
    int rc = HF_OK;

    tell(ret_found, CLI_BODY_WHOLE, "whole");
    if (strcmp(entry->store, "etcd") == 0)
        rc = read_etcd(cli, entry, out, ret_found);
    else if (strcmp(entry->store, "file") == 0)
        rc = read_file(cli, entry, out, ret_found);
    else
        tell(ret_found, CLI_BODY_UNSEEN, "it lies in a store that is not known here");
    if (rc == HF_OK && out->err != HF_OK)
        rc = cli_fail(cli, out->err, "%s", hf_err_text(out->err));
    if (rc == HF_OK && ret_found->what == CLI_BODY_WHOLE)
        judge(entry, out, ret_found);
    return rc;
}

/* Buckets. */

static void tell_fetched(int rc, const struct hf_error *err, struct cli_body_found *ret)
{
    if (rc == HF_OK)
        tell(ret, CLI_BODY_WHOLE, "whole");
    else if (rc == HF_ENOENT)
        tell(ret, CLI_BODY_BAD, "its body is not there");
    else if (rc == HF_ECORRUPT)
        tell(ret, CLI_BODY_BAD, "%s", err->text);
    else
        tell(ret, CLI_BODY_UNSEEN, "its bucket cannot be asked: %s", err->text);
}

/* Into the file, unless that is -1. */
static int fetch(struct cli *cli, const Holdfast__V1__Checkpoint *entry, int file,
                 struct cli_body_found *ret)
{
    const struct cli_body_settings *settings = cli->settings;
    struct hf_s3_config cfg = { .settings = settings->s3 };
    struct hf_s3_object want = { .size = entry->size };
    struct hf_error err = { "" };
    char name[3 * HF_NAME_SIZE];
    struct hf_s3 *s3;
    int rc;

    if (settings->s3.bucket == NULL) {
        tell(ret, CLI_BODY_UNSEEN,
             "it lies in a bucket: say with --s3-bucket, --s3-endpoint and "
             "--s3-credentials-file in which");
        return HF_OK;
    }
    if (hf_name_check("task", entry->task, NULL) != HF_OK ||
        hf_name_check("key", entry->key, NULL) != HF_OK) {
        tell(ret, CLI_BODY_BAD, "its key makes no sense");
        return HF_OK;
    }
    (void)snprintf(want.sha256, sizeof want.sha256, "%s", entry->sha256);
    (void)snprintf(name, sizeof name, "%s/%s/%s", cli->common.namespace, entry->task,
                   entry->key);
    rc = hf_s3_new(&cfg, &s3, &err);
    if (rc != HF_OK)
        return cli_fail(cli, rc, "%s", err.text);
    rc = hf_s3_get(s3, name, &want, file, &err);
    hf_s3_free(s3);
    tell_fetched(rc, &err, ret);
    return HF_OK;
}

static int print_file(struct cli *cli, int file)
{
    char chunk[65536];
    off_t at = 0;
    ssize_t n;

    while ((n = pread(file, chunk, sizeof chunk, at)) > 0) {
        HF_CLEANUP_BUF struct hf_buf out = { 0 };
        int rc;

        hf_buf_append(&out, chunk, (size_t)n);
        rc = cli_out_text(cli, &out);
        if (rc != HF_OK)
            return rc;
        at += n;
    }
    return n == 0 ? HF_OK : cli_fail(cli, HF_EIO, "%s", strerror(errno));
}

/* Nothing of it is printed before all of it is here and whole. */
static int print_fetched(struct cli *cli, const Holdfast__V1__Checkpoint *entry,
                         struct cli_body_found *ret)
{
    const char *directory = getenv("TMPDIR");
    HF_CLEANUP_FD int file = hf_file_open_nameless(directory != NULL ? directory : "/tmp");
    int rc = file >= 0
                 ? fetch(cli, entry, file, ret)
                 : cli_fail(cli, HF_EIO, "no file can be made for it: %s", strerror(errno));

    return rc == HF_OK && ret->what == CLI_BODY_WHOLE ? print_file(cli, file) : rc;
}

int cli_body_look(struct cli *cli, const Holdfast__V1__Checkpoint *entry,
                  struct cli_body_found *ret_found)
{
    HF_CLEANUP_BUF struct hf_buf body = { 0 };

    return strcmp(entry->store, "s3") == 0 ? fetch(cli, entry, -1, ret_found)
                                           : read_short(cli, entry, &body, ret_found);
}

int cli_body_print(struct cli *cli, const Holdfast__V1__Checkpoint *entry,
                   struct cli_body_found *ret_found)
{
    HF_CLEANUP_BUF struct hf_buf body = { 0 };
    int rc;

    if (strcmp(entry->store, "s3") == 0)
        return print_fetched(cli, entry, ret_found);
    rc = read_short(cli, entry, &body, ret_found);
    return rc == HF_OK && ret_found->what == CLI_BODY_WHOLE ? cli_out_text(cli, &body) : rc;
}
