#include "support/history.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <check.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "sim/history.h"
#include "support/process.h"
#include "support/wait.h"

enum { TELL_MS = 60000, MOST_BYTES = 64 << 20 };

void hft_history_start(struct hft_history *history, const struct hft_etcd *etcd)
{
    *history = (struct hft_history){ .recover = hf_recover_policy_default(),
                                     .restart = hf_restart_policy_default() };
    (void)snprintf(history->file, sizeof history->file, "%s/history", etcd->dir.path);

    const char *const argv[] = { HOLDFAST_HISTORIAN, etcd->endpoint, history->file, NULL };

    history->pid =
        hft_process_spawn(&(struct hft_spawn){ .argv = argv, .env = hft_sanitizer_env() });
}

static void take_backoff(struct hft_history *history, const char *text)
{
    struct hf_backoff_policy *backoff = &history->recover.backoff;
    hf_ms base = 0;

    ck_assert_int_eq(hf_parse_duration(text, &base), HF_OK);
    for (uint8_t i = 0; i < backoff->list_count; i++)
        backoff->list[i] = base << i;
}

static void take_option(struct hft_history *history, const char *flag, const char *value)
{
    const struct {
        const char *flag;
        hf_ms *duration;
        uint32_t *number;
    } KNOWN[] = {
        { "--recovery-limit", NULL, &history->recover.limit },
        { "--recovery-hourly-limit", NULL, &history->recover.agent_limit },
        { "--recovery-probation", &history->recover.probation, NULL },
        { "--restart-backoff-base", &history->restart.backoff.base, NULL },
        { "--restart-backoff-cap", &history->restart.backoff.cap, NULL },
        { "--restart-forget-after", &history->restart.backoff.forget_after, NULL },
        { "--restart-limit", NULL, &history->restart.limit },
        { "--restart-window", &history->restart.window, NULL },
        { "--running-max", NULL, &history->running_max },
    };

    for (size_t i = 0; i < sizeof KNOWN / sizeof KNOWN[0]; i++) {
        if (strcmp(flag, KNOWN[i].flag) != 0)
            continue;
        if (KNOWN[i].number != NULL)
            *KNOWN[i].number = (uint32_t)strtoul(value, NULL, 10);
        else
            ck_assert_int_eq(hf_parse_duration(value, KNOWN[i].duration), HF_OK);
    }
}

void hft_history_take_options(struct hft_history *history, const char *const words[])
{
    for (size_t i = 0; words[i] != NULL && words[i + 1] != NULL; i++) {
        if (strcmp(words[i], "--recovery-backoff") == 0)
            take_backoff(history, words[i + 1]);
        else
            take_option(history, words[i], words[i + 1]);
    }
}

void hft_history_excuse(struct hft_history *history, int64_t revision)
{
    ck_assert_uint_lt(history->excused_count, HFT_HISTORY_EXCUSED);
    history->excused[history->excused_count++] = revision;
}

static bool is_excused(const struct hft_history *history, int64_t revision)
{
    for (size_t i = 0; i < history->excused_count; i++) {
        if (history->excused[i] == revision)
            return true;
    }
    return false;
}

/* The file. */

/* One change, as the witness wrote it down; key and value follow. */
struct line {
    int64_t revision;
    hf_ms after, before, wall_ahead; /* see struct hfs_seen */
    int64_t create_rev, version, lease;
    size_t key_len, value_len;
};

/* A revision that is being read. Owns its keys and values. */
struct reading {
    struct hfs_seen seen;
    struct hfs_event *events;
    size_t count, cap;
};

static void forget(struct reading *reading)
{
    for (size_t i = 0; i < reading->count; i++) {
        free((void *)reading->events[i].kv.key.data);
        free((void *)reading->events[i].kv.value.data);
    }
    reading->count = 0;
}

static bool read_bytes(FILE *file, size_t len, struct hf_bytes *ret_bytes)
{
    char *data = len <= MOST_BYTES ? calloc(1, len + 1) : NULL;

    if (data == NULL || fread(data, 1, len, file) != len) {
        free(data);
        return false;
    }
    *ret_bytes = (struct hf_bytes){ data, len };
    return true;
}

/* False at the end, which may be in the middle of one that was being written. */
static bool read_line(FILE *file, struct line *line, struct hfs_event *ret_event)
{
    int deleted;

    if (fscanf(file,
               "%" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %d %" SCNd64 " %" SCNd64
               " %" SCNd64 " %zu %zu",
               &line->revision, &line->after, &line->before, &line->wall_ahead, &deleted,
               &line->create_rev, &line->version, &line->lease, &line->key_len,
               &line->value_len) != 10 ||
        fgetc(file) != '\n')
        return false;
    *ret_event = (struct hfs_event){ .deleted = deleted != 0,
                                     .kv = { .create_rev = line->create_rev,
                                             .mod_rev = line->revision,
                                             .version = line->version,
                                             .lease = line->lease } };
    if (!read_bytes(file, line->key_len, &ret_event->kv.key))
        return false;
    if (!read_bytes(file, line->value_len, &ret_event->kv.value)) {
        free((void *)ret_event->kv.key.data);
        return false;
    }
    return fgetc(file) == '\n';
}

static void tell(struct hfs_history *checker, struct reading *reading)
{
    if (reading->count > 0)
        hfs_history_add(checker, &reading->seen, reading->events, reading->count);
    forget(reading);
}

static void tell_all(const struct hft_history *history, FILE *file, struct hfs_history *checker)
{
    struct reading reading = { 0 };
    struct line line;
    struct hfs_event event;

    while (hfs_history_get_violation(checker) == NULL && read_line(file, &line, &event)) {
        if (line.revision != reading.seen.revision)
            tell(checker, &reading);
        reading.seen = (struct hfs_seen){ .revision = line.revision,
                                          .after = line.after,
                                          .before = line.before,
                                          .wall_ahead = line.wall_ahead,
                                          .excused = is_excused(history, line.revision) };
        ck_assert(
            hf_grow(&reading.events, &reading.cap, reading.count + 1, sizeof *reading.events));
        reading.events[reading.count++] = event;
    }
    tell(checker, &reading);
    free(reading.events);
}

static char *judge_file(const struct hft_history *history, int64_t *ret_revisions)
{
    struct hfs_history *checker =
        hfs_history_new("default", &history->recover, &history->restart);
    FILE *file = fopen(history->file, "re");
    const char *violation;
    char *text = NULL;

    ck_assert_ptr_nonnull(file);
    hfs_history_set_running_max(checker, history->running_max);
    tell_all(history, file, checker);
    violation = hfs_history_get_violation(checker);
    *ret_revisions = (int64_t)hfs_history_get_counts(checker).revisions;
    if (violation != NULL)
        ck_assert_int_ge(
            asprintf(&text, "at revision %" PRId64 ": %s", *ret_revisions + 1, violation), 0);
    (void)fclose(file);
    hfs_history_free(checker);
    return text;
}

/* The witness. */

struct wait {
    const struct hft_history *history;
    int64_t revision;
    bool has_ended; /* the witness, by itself */
};

static bool has_told(void *arg)
{
    struct wait *wait = arg;
    FILE *file = fopen(wait->history->file, "re");
    struct line line = { 0 };
    struct hfs_event event;
    int64_t newest = 1; /* what an empty etcd has */
    int status;

    while (file != NULL && read_line(file, &line, &event)) {
        newest = line.revision;
        free((void *)event.kv.key.data);
        free((void *)event.kv.value.data);
    }
    if (file != NULL)
        (void)fclose(file);
    wait->has_ended = hft_process_has_ended(wait->history->pid, &status);
    return wait->has_ended || newest >= wait->revision;
}

static void await_witness(const struct hft_history *history, const struct hft_etcd *etcd)
{
    struct wait wait = { .history = history };

    wait.revision = etcd->pid != 0 ? hft_etcd_revision(etcd) : 0;
    hft_wait_or_fail(has_told, &wait, TELL_MS, "the witness");
    ck_assert_msg(!wait.has_ended, "the witness has ended");
}

void hft_history_each(const struct hft_history *history, const struct hft_etcd *etcd,
                      hft_change_fn fn, void *arg)
{
    struct hfs_event event;
    struct line line;
    FILE *file;

    await_witness(history, etcd);
    file = fopen(history->file, "re");
    ck_assert_ptr_nonnull(file);
    while (read_line(file, &line, &event)) {
        fn(&(struct hft_change){ .revision = line.revision,
                                 .after = line.after,
                                 .before = line.before,
                                 .deleted = event.deleted,
                                 .create_rev = line.create_rev,
                                 .key = event.kv.key.data,
                                 .value = event.kv.value.data },
           arg);
        free((void *)event.kv.key.data);
        free((void *)event.kv.value.data);
    }
    (void)fclose(file);
}

void hft_history_judge(struct hft_history *history, const struct hft_etcd *etcd)
{
    HF_CLEANUP_FREE char *violation = NULL;
    int64_t revisions = 0;

    if (history->pid == 0)
        return;
    await_witness(history, etcd);
    (void)kill(history->pid, SIGTERM);
    ck_assert_int_eq(hft_process_reap(history->pid, TELL_MS), 0);
    history->pid = 0;
    violation = judge_file(history, &revisions);
    ck_assert_msg(violation == NULL, "%s", violation);
}
