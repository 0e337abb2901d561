#include "agentd/link/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <uv.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "etcd/client.h"
#include "io/connect.h"
#include "io/root.h"

enum { PATH_BYTES = 4096 };

/* The way to etcd. The client reads its certificates and its password when it is made; it asks
 * nothing before it is told to. */

static int try_client(const struct link_settings *settings, struct hf_error *err)
{
    struct hf_etcd_config cfg = hf_connect_config(&settings->common);
    struct hf_etcd *etcd;
    uv_loop_t loop;
    int rc;

    if (uv_loop_init(&loop) != 0)
        return hf_error_set(err, HF_EIO, "no event loop can be made");
    cfg.discover = false;
    rc = hf_connect_new(&loop, &cfg, &etcd, err);
    if (rc == HF_OK)
        hf_etcd_close(etcd, NULL, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    return rc;
}

/* Checkpoints. */

/* A directory that is not there is made, if the one that it lies in is. */
static int try_parent(const char *directory, struct hf_error *err)
{
    char parent[PATH_BYTES];
    const char *slash = strrchr(directory, '/');
    int len = slash == NULL ? 1 : slash == directory ? 1 : (int)(slash - directory);

    (void)snprintf(parent, sizeof parent, "%.*s", len, slash == NULL ? "." : directory);
    return access(parent, W_OK | X_OK) == 0
               ? HF_OK
               : hf_error_set(err, HF_EIO, "checkpoints.directory %s: %s: %s", directory,
                              parent, strerror(errno));
}

static int try_store(const struct link_settings *settings, struct hf_error *err)
{
    const char *directory = settings->store_dir;
    HF_CLEANUP_FD int dir = -1;
    char id[HF_ID_LEN + 1];

    if (directory == NULL || settings->store == LINK_STORE_ETCD ||
        settings->store == LINK_STORE_S3)
        return HF_OK;
    dir = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0 && errno == ENOENT)
        return try_parent(directory, err);
    if (dir < 0 || faccessat(dir, ".", W_OK | X_OK, 0) != 0)
        return hf_error_set(err, HF_EIO, "checkpoints.directory %s: %s", directory,
                            strerror(errno));
    if (hf_root_read(dir, id) == HF_ECORRUPT)
        return hf_error_set(err, HF_ECORRUPT,
                            "checkpoints.directory %s: what stands in " HF_ROOT_FILE
                            " is not an id",
                            directory);
    return HF_OK;
}

static int try_keys(const struct hf_s3_settings *s3, struct hf_error *err)
{
    if (s3->bucket == NULL || s3->access_key_id != NULL ||
        access(s3->credentials_file, R_OK) == 0)
        return HF_OK;
    return hf_error_set(err, HF_EIO, "checkpoints.s3.credentials_file %s: %s",
                        s3->credentials_file, strerror(errno));
}

int link_trial_parts(const struct link_settings *settings, struct hf_error *err)
{
    int rc = try_client(settings, err);

    if (rc == HF_OK)
        rc = try_store(settings, err);
    return rc == HF_OK ? try_keys(&settings->s3, err) : rc;
}

/* Launchers. */

static const char *own_path(void)
{
    const char *path = getenv("PATH");

    return path != NULL ? path : "/bin:/usr/bin";
}

/* As the agent will find it. */
static const char *path_of(const struct link_launcher *launcher)
{
    for (size_t i = 0; i < launcher->environment.count; i++) {
        if (strncmp(launcher->environment.items[i], "PATH=", 5) == 0)
            return launcher->environment.items[i] + 5;
    }
    return own_path();
}

/* `what` is the setting that names it. */
static int try_program(const struct link_launcher *launcher, const char *what,
                       const char *program, const char *path, const char *directory,
                       struct hf_error *err)
{
    bool within = program[0] != '/' && directory != NULL;
    char file[PATH_BYTES];

    if (strchr(program, '/') == NULL)
        return hf_file_is_program(program, path)
                   ? HF_OK
                   : hf_error_set(err, HF_ENOENT,
                                  "launcher %s: %s: there is no program %s in its PATH",
                                  launcher->name, what, program);
    (void)snprintf(file, sizeof file, "%s%s%s", within ? directory : "", within ? "/" : "",
                   program);
    return hf_file_is_program(file, "")
               ? HF_OK
               : hf_error_set(err, HF_ENOENT,
                              "launcher %s: %s: %s is not a program that can be run",
                              launcher->name, what, file);
}

static int try_programs(const struct link_launcher *launcher, struct hf_error *err)
{
    const struct hf_strings *probe = &launcher->detect.probe_command;
    int rc = try_program(launcher, "command", launcher->command.items[0], path_of(launcher),
                         launcher->directory, err);

    if (rc != HF_OK || probe->count == 0)
        return rc;
    return try_program(launcher, "probe.command", probe->items[0], own_path(), NULL, err);
}

static int try_directory(const struct link_launcher *launcher, struct hf_error *err)
{
    struct stat info;
    int rc = launcher->directory == NULL ? 0 : stat(launcher->directory, &info);

    if (launcher->directory == NULL || (rc == 0 && S_ISDIR(info.st_mode)))
        return HF_OK;
    return hf_error_set(err, HF_ENOENT, "launcher %s: directory: %s: %s", launcher->name,
                        launcher->directory, strerror(rc == 0 ? ENOTDIR : errno));
}

int link_trial_launchers(const struct link_settings *settings, struct hf_error *err)
{
    int rc = HF_OK;

    for (size_t i = 0; i < settings->launcher_count && rc == HF_OK; i++) {
        rc = try_directory(&settings->launchers[i], err);
        if (rc == HF_OK)
            rc = try_programs(&settings->launchers[i], err);
    }
    return rc;
}
