#include "agentd/link/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "agentd/keeper/protocol.h"

/* Nobody's own descriptor of that number, such as a shell's, is a memfd. */
static bool has_memfd(void)
{
    return fcntl(AGENTD_KEPT_FD, F_GET_SEALS) >= 0;
}

void link_kept_begin(struct link_kept *kept)
{
    *kept = (struct link_kept){ .files = json_object() };
}

void link_kept_take(struct link_kept *kept)
{
    json_t *files = NULL;

    link_kept_begin(kept);
    if (!has_memfd())
        return;
    (void)fcntl(AGENTD_KEPT_FD, F_SETFD, FD_CLOEXEC);
    if (lseek(AGENTD_KEPT_FD, 0, SEEK_SET) == 0)
        files = json_loadfd(AGENTD_KEPT_FD, 0, NULL);
    if (!json_is_object(files)) {
        json_decref(files); /* none was there, or its link died while it wrote */
        return;
    }
    json_decref(kept->files);
    kept->files = files;
    kept->given = true;
}

void link_kept_done(struct link_kept *kept)
{
    json_decref(kept->files);
    kept->files = NULL;
}

static int read_given(const struct link_kept *kept, const char *path, struct hf_buf *text)
{
    const json_t *file = json_object_get(kept->files, path);

    if (file == NULL)
        return ENOENT;
    hf_buf_append(text, json_string_value(file), json_string_length(file));
    return text->err == HF_OK ? 0 : ENOMEM;
}

static int read_file(const char *path, struct hf_buf *text, void *arg)
{
    struct link_kept *kept = arg;
    size_t from = text->len;
    int e = kept->given ? read_given(kept, path, text) : hf_config_read_disk(path, text, NULL);

    if (e != 0 || kept->given || kept->files == NULL)
        return e;
    if (json_object_set_new(kept->files, path,
                            json_stringn(text->data + from, text->len - from)) != 0) {
        json_decref(kept->files); /* what is no text is not understood anyhow */
        kept->files = NULL;
    }
    return 0;
}

struct hf_config_files link_kept_get_files(struct link_kept *kept)
{
    return (struct hf_config_files){ read_file, kept };
}

void link_kept_leave(const struct link_kept *kept)
{
    if (kept->files == NULL || !has_memfd() || ftruncate(AGENTD_KEPT_FD, 0) != 0 ||
        lseek(AGENTD_KEPT_FD, 0, SEEK_SET) != 0)
        return;
    if (json_dumpfd(kept->files, AGENTD_KEPT_FD, JSON_COMPACT) != 0)
        (void)!ftruncate(AGENTD_KEPT_FD, 0);
}
