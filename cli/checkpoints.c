#include "cli/checkpoints.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/sha256.h"
#include "base/str.h"
#include "cli/store.h"
#include "cli/tasks.h"
#include "schema/json.h"
#include "schema/name.h"

const struct hf_option CLI_BODY_OPTIONS[2] = {
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

static int read_etcd(struct cli *cli, const Holdfast__V1__Checkpoint *entry, struct hf_buf *out,
                     const char **ret_fault)
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
        *ret_fault = "its body is not there";
    return rc;
}

static int read_all(struct cli *cli, int fd, int64_t size, struct hf_buf *out)
{
    char chunk[16384];
    ssize_t n;

    while ((n = read(fd, chunk, sizeof chunk)) > 0) {
        hf_buf_append(out, chunk, (size_t)n);
        if ((int64_t)out->len > size)
            break; /* enough to see that it is another one */
    }
    return n < 0 ? cli_fail(cli, HF_EIO, "its file cannot be read: %s", strerror(errno))
                 : HF_OK;
}

/* Names that are checked, opened beneath the store's own directory, and no links. */
static int read_file(struct cli *cli, const Holdfast__V1__Checkpoint *entry, struct hf_buf *out,
                     const char **ret_fault)
{
    const struct cli_body_settings *settings = cli->settings;
    HF_CLEANUP_FD int root = -1;
    HF_CLEANUP_FD int dir = -1;
    HF_CLEANUP_FD int fd = -1;

    if (settings->store_dir == NULL)
        return cli_fail(
            cli, HF_EINVAL,
            "checkpoint %lld lies in a file: say with --store-dir where its store is",
            (long long)entry->seq);
    if (hf_name_check("task", entry->task, NULL) != HF_OK ||
        hf_name_check("key", entry->key, NULL) != HF_OK) {
        *ret_fault = "its key makes no sense";
        return HF_OK;
    }
    root = open(settings->store_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return cli_fail(cli, HF_EINVAL, "--store-dir %s: %s", settings->store_dir,
                        strerror(errno));
    dir = openat(root, entry->task, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0)
        fd = openat(dir, entry->key, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        return read_all(cli, fd, entry->size, out);
    if (errno != ENOENT && errno != ELOOP)
        return cli_fail(cli, errno == EACCES ? HF_EDENIED : HF_EIO, "%s/%s/%s: %s",
                        settings->store_dir, entry->task, entry->key, strerror(errno));
    *ret_fault = "its body is not there";
    return HF_OK;
}

static const char *find_fault(const Holdfast__V1__Checkpoint *entry, const struct hf_buf *body)
{
    uint8_t digest[HF_SHA256_LEN];
    char hex[HF_SHA256_HEX_LEN + 1];

    if ((int64_t)body->len != entry->size)
        return "its body has another size";
    if (hf_sha256(body->len > 0 ? body->data : "", body->len, digest) != HF_OK)
        return "its digest cannot be computed";
    hf_sha256_format(digest, hex);
    return strcmp(hex, entry->sha256) == 0 ? NULL : "its body has another digest";
}

int cli_body_read(struct cli *cli, const Holdfast__V1__Checkpoint *entry, struct hf_buf *out,
                  const char **ret_fault)
{
    int rc = HF_OK;

    *ret_fault = NULL;
    if (strcmp(entry->store, "etcd") == 0)
        rc = read_etcd(cli, entry, out, ret_fault);
    else if (strcmp(entry->store, "file") == 0)
        rc = read_file(cli, entry, out, ret_fault);
    else
        *ret_fault = "it lies in a store that is not known here";
    if (rc == HF_OK && out->err != HF_OK)
        rc = cli_fail(cli, out->err, "%s", hf_err_text(out->err));
    if (rc == HF_OK && *ret_fault == NULL)
        *ret_fault = find_fault(entry, out);
    return rc;
}
