#include "support/fleet.h"

#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "support/rights.h"
#include "support/text.h"
#include "support/wait.h"

enum { PATH_SIZE = HFT_PATH_MAX + 64, MOST_WORDS = 16 };

/* Files. */

static void HF_PRINTF(3, 4)
    write_file(const struct hft_fleet *fleet, const char *name, const char *fmt, ...)
{
    char path[PATH_SIZE];
    va_list args;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", fleet->etcd.dir.path, name);
    file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    va_start(args, fmt);
    ck_assert_int_ge(vfprintf(file, fmt, args), 0);
    va_end(args);
    ck_assert_int_eq(fclose(file), 0);
}

/* NULs become spaces; empty when there is none. */
static char *read_file(const char *path)
{
    size_t len = 0;
    char *text = hft_read_text(path, &len);

    for (size_t i = 0; i < len; i++) {
        if (text[i] == '\0')
            text[i] = ' ';
    }
    return text;
}

/* Processes. */

/* Whether a process has that text in its command line or environment. */
static bool mentions(const char *pid, const char *text)
{
    static const char *const FILES[] = { "cmdline", "environ" };
    bool found = false;

    for (size_t i = 0; i < 2 && !found; i++) {
        char path[300];
        HF_CLEANUP_FREE char *said = NULL;

        (void)snprintf(path, sizeof path, "/proc/%s/%s", pid, FILES[i]);
        said = read_file(path);
        found = strstr(said, text) != NULL;
    }
    return found;
}

typedef void (*process_fn)(pid_t pid, void *arg);

/* Every process that mentions the text, except this one. */
static void each_process(const char *text, process_fn fn, void *arg)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    uint64_t pid;

    ck_assert_ptr_nonnull(proc);
    while ((entry = readdir(proc)) != NULL) {
        if (hf_parse_u64(entry->d_name, 2, INT32_MAX, &pid) == HF_OK &&
            (pid_t)pid != getpid() && mentions(entry->d_name, text))
            fn((pid_t)pid, arg);
    }
    (void)closedir(proc);
}

static void kill_process(pid_t pid, void *arg)
{
    (void)kill(pid, SIGKILL);
    if (arg != NULL)
        ++*(unsigned *)arg;
}

/* What it starts meanwhile is found the next time. A zombie mentions nothing. */
static bool is_empty(void *state)
{
    unsigned found = 0;

    each_process(state, kill_process, &found);
    return found == 0;
}

static void kill_all(const struct hft_fleet *fleet, unsigned i)
{
    char state[PATH_SIZE];

    (void)snprintf(state, sizeof state, "%s/h%u/", fleet->etcd.dir.path, i + 1);
    hft_wait_or_fail(is_empty, state, HFT_FLEET_STEP_MS, "the end of a host's processes");
}

/* Life. */

/* Agents of different users write it. */
static void begin_ledger(const struct hft_fleet *fleet)
{
    write_file(fleet, "ledger", "%s", "");
    ck_assert_int_eq(chmod(fleet->ledger, 0666), 0);
}

void hft_fleet_open(struct hft_fleet *fleet)
{
    hft_fleet_open_with(fleet, &(struct hft_etcd_options){ 0 });
}

void hft_fleet_open_with(struct hft_fleet *fleet, const struct hft_etcd_options *options)
{
    struct hft_etcd_options quick = *options;

    quick.no_fsync = true;
    *fleet = (struct hft_fleet){
        .ttl = HFT_FLEET_TTL_MS, .role = "r", .agent_options = "", .host_options = ""
    };
    hft_etcd_start(&fleet->etcd, &quick);
    hft_history_start(&fleet->history, &fleet->etcd);
    hft_client_open(&fleet->hand, fleet->etcd.endpoint, NULL);
    (void)snprintf(fleet->endpoint, sizeof fleet->endpoint, "%s", fleet->etcd.endpoint);
    (void)snprintf(fleet->ledger, sizeof fleet->ledger, "%s/ledger", fleet->etcd.dir.path);
    (void)snprintf(fleet->crashed, sizeof fleet->crashed, "%s/crashed", fleet->etcd.dir.path);
    hft_copy_program(HOLDFAST_DEMO_AGENT, fleet->etcd.dir.path, "demo-agent");
    begin_ledger(fleet);
    write_file(fleet, "worker.yaml",
               "name: worker\ncommand: [%s/demo-agent]\nenvironment: [LEDGER=%s]\n",
               fleet->etcd.dir.path, fleet->ledger);
}

void hft_fleet_launch_with(struct hft_fleet *fleet, const char *options)
{
    hft_copy_program(HOLDFAST_DEMO_AGENT, fleet->etcd.dir.path, "demo-agent");
    write_file(fleet, "worker.yaml",
               "name: worker\ncommand: [sh, %s/agent.sh]\n"
               "environment: [LEDGER=%s, DEMO=%s/demo-agent]\n%s",
               fleet->etcd.dir.path, fleet->ledger, fleet->etcd.dir.path, options);
}

void hft_fleet_launch(struct hft_fleet *fleet, const char *script)
{
    write_file(fleet, "agent.sh", "%s", script);
    hft_fleet_launch_with(fleet, "");
}

static void check_log(const struct hft_program *program)
{
    if (program->log_file[0] == '\0')
        return;
    ck_assert_msg(!hft_program_said(program, "Sanitizer") &&
                      !hft_program_said(program, "runtime error"),
                  "%s", program->log_file);
}

static void check_trees(const struct hft_program *host)
{
    HF_CLEANUP_FREE char *log =
        host->log_file[0] != '\0' ? hft_read_text(host->log_file, NULL) : NULL;

    if (log != NULL)
        hft_check_trees(log, host->is_nobodys);
}

void hft_fleet_close(struct hft_fleet *fleet)
{
    if (fleet->etcd.pid != 0)
        free(hft_fleet_cli(fleet, "invariants", NULL));
    for (unsigned i = 0; i < HFT_FLEET_SIZE; i++) {
        if (fleet->hosts[i].pid != 0)
            hft_program_kill(&fleet->hosts[i]);
        if (fleet->controllers[i].pid != 0)
            hft_program_kill(&fleet->controllers[i]);
        kill_all(fleet, i);
    }
    for (unsigned i = 0; i < HFT_FLEET_SIZE; i++) {
        check_log(&fleet->hosts[i]);
        check_trees(&fleet->hosts[i]);
        check_log(&fleet->controllers[i]);
    }
    hft_history_judge(&fleet->history, &fleet->etcd);
    hft_client_close(&fleet->hand);
    hft_etcd_done(&fleet->etcd);
}

static void choose_point(struct hft_fleet *fleet, const char *variable, const char *point)
{
    (void)unlink(fleet->crashed);
    for (unsigned i = 0; i < HFT_FLEET_SIZE; i++) {
        struct hft_program *programs[] = { &fleet->hosts[i], &fleet->controllers[i] };

        for (size_t k = 0; k < 2; k++) {
            programs[k]->env[0] = '\0';
            if (point != NULL)
                (void)snprintf(programs[k]->env, sizeof programs[k]->env, "%s=%s@%s", variable,
                               point, fleet->crashed);
        }
    }
}

void hft_fleet_crash_at(struct hft_fleet *fleet, const char *point)
{
    choose_point(fleet, "HOLDFAST_CRASH_AT", point);
}

void hft_fleet_stop_at(struct hft_fleet *fleet, const char *point)
{
    choose_point(fleet, "HOLDFAST_STOP_AT", point);
}

bool hft_fleet_has_crashed(void *fleet)
{
    return access(((struct hft_fleet *)fleet)->crashed, F_OK) == 0;
}

/* Controllers. */

static size_t take_words(const char *words[MOST_WORDS], size_t count, va_list more)
{
    const char *word;

    while ((word = va_arg(more, const char *)) != NULL) {
        ck_assert_uint_lt(count + 1, MOST_WORDS);
        words[count++] = word;
    }
    words[count] = NULL;
    return count;
}

void hft_fleet_lead(struct hft_fleet *fleet, unsigned i, ...)
{
    const char *words[MOST_WORDS] = { NULL };
    char id[16], ttl[16];
    va_list more;

    (void)snprintf(id, sizeof id, "c%u", i + 1);
    (void)snprintf(ttl, sizeof ttl, "%dms", HFT_LEADER_TTL_MS);
    va_start(more, i);
    (void)take_words(words, 0, more);
    va_end(more);
    hft_history_take_options(&fleet->history, words);
    /* What follows the last word is not looked at. */
    hft_program_start(&fleet->controllers[i], "holdfast-controller", fleet->etcd.dir.path, id,
                      fleet->endpoint, "--id", id, "--ttl", ttl, words[0], words[1], words[2],
                      words[3], words[4], words[5], words[6], words[7], NULL);
}

void hft_fleet_until_leads(struct hft_fleet *fleet, unsigned i)
{
    hft_program_until_said(&fleet->controllers[i], "event=leading", 2 * HFT_FLEET_STEP_MS);
}

/* Hosts. */

void hft_fleet_host_again(struct hft_fleet *fleet, unsigned i)
{
    char name[16], config[PATH_SIZE], state[PATH_SIZE], ttl[32];

    fleet->hosts[i].is_nobodys = hft_is_nobodys(fleet->hosts[i].is_nobodys);
    (void)snprintf(name, sizeof name, "h%u", i + 1);
    (void)snprintf(config, sizeof config, "%s/%s.yaml", fleet->etcd.dir.path, name);
    (void)snprintf(state, sizeof state, "%s/%s/", fleet->etcd.dir.path, name);
    (void)snprintf(ttl, sizeof ttl, "%" PRId64 "ms", fleet->ttl);
    hft_program_start(&fleet->hosts[i], "agentd", fleet->etcd.dir.path, name, fleet->endpoint,
                      "--config", config, "--state-dir", state, "--ttl", ttl, "--stop-grace",
                      "5s", NULL);
}

void hft_fleet_host(struct hft_fleet *fleet, unsigned i, ...)
{
    const char *names[MOST_WORDS] = { NULL };
    char list[400] = "", config[32], directory[PATH_SIZE] = "";
    va_list more;

    va_start(more, i);
    (void)take_words(names, 0, more);
    va_end(more);
    for (size_t k = 0; names[k] != NULL; k++) {
        char file[64];

        (void)snprintf(file, sizeof file, "%s.yaml", names[k]);
        write_file(fleet, file, "name: %s\nrole: %s\nlauncher: worker\n%s", names[k],
                   fleet->role, fleet->agent_options);
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s",
                       k > 0 ? ", " : "", file);
    }
    (void)snprintf(config, sizeof config, "h%u.yaml", i + 1);
    if (fleet->files == HFT_FILES_SHARED)
        (void)snprintf(directory, sizeof directory, "  directory: %s/shared\n",
                       fleet->etcd.dir.path);
    write_file(fleet, config, "host: h%u\nlaunchers: [worker.yaml]\n%s%s%s%s%s%s", i + 1,
               fleet->host_options, list[0] != '\0' ? "agents: [" : "", list,
               list[0] != '\0' ? "]\n" : "",
               fleet->files != HFT_FILES_NONE ? "checkpoints:\n  store: file\n" : "",
               directory);
    hft_fleet_host_again(fleet, i);
}

void hft_fleet_lose_host(struct hft_fleet *fleet, unsigned i)
{
    hft_program_kill(&fleet->hosts[i]);
    kill_all(fleet, i);
}

pid_t hft_fleet_link(struct hft_fleet *fleet, unsigned i)
{
    char path[PATH_SIZE];
    HF_CLEANUP_FREE char *text = NULL;

    (void)snprintf(path, sizeof path, "%s/h%u/link.pid", fleet->etcd.dir.path, i + 1);
    text = read_file(path);
    return (pid_t)strtol(text, NULL, 10);
}

/* What stands in etcd. */

static char *fetch(struct hft_fleet *fleet, const char *key, bool prefix)
{
    char text[300];

    (void)snprintf(text, sizeof text, HFT_ROOT "%s", key);
    return hft_read_values(&fleet->hand, text, prefix);
}

char *hft_fleet_get(struct hft_fleet *fleet, const char *key)
{
    return fetch(fleet, key, false);
}

struct hft_outcome hft_fleet_look(struct hft_fleet *fleet, const char *key)
{
    char text[300];

    (void)snprintf(text, sizeof text, HFT_ROOT "%s", key);
    return hft_read(&fleet->hand, text);
}

struct expectation {
    struct hft_fleet *fleet;
    const char *key, *part;
};

static bool holds(void *arg)
{
    const struct expectation *e = arg;
    HF_CLEANUP_FREE char *value = hft_fleet_get(e->fleet, e->key);

    return e->part != NULL ? strstr(value, e->part) != NULL : value[0] == '\0';
}

void hft_fleet_await(struct hft_fleet *fleet, const char *key, const char *part)
{
    struct expectation expectation = { fleet, key, part };
    HF_CLEANUP_FREE char *value = NULL;

    if (hft_wait(holds, &expectation, hft_patience(HFT_FLEET_STEP_MS)))
        return;
    value = hft_fleet_get(fleet, key);
    ck_abort_msg("%s should have %s, and is: %s", key, part != NULL ? part : "nothing", value);
}

long long hft_fleet_number(struct hft_fleet *fleet, const char *key, const char *name)
{
    HF_CLEANUP_FREE char *value = hft_fleet_get(fleet, key);
    char quoted[64];
    const char *at;

    (void)snprintf(quoted, sizeof quoted, "\"%s\":", name);
    at = strstr(value, quoted);
    ck_assert_msg(at != NULL, "no %s in %s: %s", name, key, value);
    at += strlen(quoted);
    return strtoll(at + (*at == '"'), NULL, 10);
}

unsigned hft_fleet_count(struct hft_fleet *fleet, const char *prefix, const char *part)
{
    HF_CLEANUP_FREE char *values = fetch(fleet, prefix, true);
    unsigned count = 0;

    for (const char *at = values; (at = strstr(at, part)) != NULL; at++)
        count++;
    return count;
}

void hft_fleet_expect_one_start(struct hft_fleet *fleet, const char *agent)
{
    char key[100];

    (void)snprintf(key, sizeof key, "health/%s", agent);
    hft_fleet_await(fleet, key, "\"restarts\":1");
    ck_assert_uint_eq(hft_fleet_count(fleet, "events/", "\"kind\":\"restart_ordered\"") +
                          hft_fleet_count(fleet, "events/", "\"kind\":\"succeeded\""),
                      1);
}

/* Agents and their work. */

pid_t hft_fleet_agent(struct hft_fleet *fleet, const char *agent)
{
    char key[100];

    (void)snprintf(key, sizeof key, "agents/%s/live", agent);
    return (pid_t)hft_fleet_number(fleet, key, "pid");
}

void hft_fleet_kill_agent(struct hft_fleet *fleet, const char *agent)
{
    ck_assert_int_eq(kill(hft_fleet_agent(fleet, agent), SIGKILL), 0);
}

void hft_fleet_submit(struct hft_fleet *fleet, const char *task, unsigned steps, double seconds)
{
    char payload[100];

    (void)snprintf(payload, sizeof payload, "{\"steps\": %u, \"seconds\": %g}", steps, seconds);
    free(hft_fleet_cli(fleet, "task", "submit", "--role", "r", "--id", task, "--payload",
                       payload, NULL));
}

/* The state of a reader of the ledger that follows one task. */
struct reading {
    unsigned step;       /* last done */
    unsigned workers;    /* processes so far */
    long pids[256];      /* of them */
    unsigned first[256]; /* step of each */
    const char *fault;
};

static void read_line(struct reading *r, unsigned step, long pid)
{
    bool same = r->workers > 0 && r->pids[r->workers - 1] == pid;

    for (unsigned i = 0; i + 1 < r->workers; i++) {
        if (r->pids[i] == pid)
            r->fault = "a process went on working although it had a successor";
    }
    if (same ? step != r->step + 1 : step != r->step + 1 && step != r->step)
        r->fault = same ? "a process did steps out of order"
                        : "a successor did not go on where its predecessor ended";
    if (step == 0)
        r->fault = "a step that there is not";
    if (!same && r->workers < sizeof r->pids / sizeof r->pids[0]) {
        r->first[r->workers] = step;
        r->pids[r->workers++] = pid;
    }
    r->step = step;
}

static struct reading read_ledger(const struct hft_fleet *fleet, const char *task)
{
    HF_CLEANUP_FREE char *text = read_file(fleet->ledger);
    struct reading reading = { 0 };
    char *rest = NULL;

    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        char name[64], agent[64], incarnation[64];
        unsigned step;
        long pid;

        if (sscanf(line, "%63s %u %63s %63s %ld", name, &step, agent, incarnation, &pid) == 5 &&
            strcmp(name, task) == 0)
            read_line(&reading, step, pid);
    }
    return reading;
}

unsigned hft_fleet_workers(struct hft_fleet *fleet, const char *task)
{
    return read_ledger(fleet, task).workers;
}

unsigned hft_fleet_began_with(struct hft_fleet *fleet, const char *task, unsigned worker)
{
    struct reading reading = read_ledger(fleet, task);

    return worker < reading.workers ? reading.first[worker] : 0;
}

struct mark {
    struct hft_fleet *fleet;
    const char *task;
    unsigned step;
};

static bool is_marked(void *arg)
{
    const struct mark *mark = arg;

    return read_ledger(mark->fleet, mark->task).step >= mark->step;
}

void hft_fleet_until_step(struct hft_fleet *fleet, const char *task, unsigned step)
{
    hft_wait_or_fail(is_marked, &(struct mark){ fleet, task, step }, HFT_FLEET_STEP_MS,
                     "a step of a task");
}

unsigned hft_fleet_last_step(struct hft_fleet *fleet, const char *task)
{
    return read_ledger(fleet, task).step;
}

unsigned hft_fleet_until_done(struct hft_fleet *fleet, const char *task, unsigned steps)
{
    struct reading reading;
    char key[100];

    (void)snprintf(key, sizeof key, "tasks/%s", task);
    hft_fleet_await(fleet, key, "\"state\":\"completed\"");
    reading = read_ledger(fleet, task);
    if (reading.fault != NULL || reading.step != steps) {
        HF_CLEANUP_FREE char *text = read_file(fleet->ledger);

        ck_abort_msg("%s: %s:\n%s", task,
                     reading.fault != NULL ? reading.fault : "not all steps were done", text);
    }
    return reading.workers;
}

/* Commands. */

char *hft_fleet_cli(struct hft_fleet *fleet, ...)
{
    const char *words[MOST_WORDS] = { NULL };
    HFT_CLEANUP_OUTPUT struct hft_output output = { 0 };
    va_list more;

    va_start(more, fleet);
    (void)take_words(words, 0, more);
    va_end(more);
    hft_cli(&output, fleet->etcd.endpoint, words[0], words[1], words[2], words[3], words[4],
            words[5], words[6], words[7], words[8], words[9], words[10], NULL);
    ck_assert_msg(output.status == 0, "holdfast %s: %s%s", words[0], output.out, output.err);
    return hf_steal(&output.out);
}

/* Processes that run an agent which etcd does not name. */
struct orphans {
    struct hft_fleet *fleet;
    unsigned count;
};

static void look_at_process(pid_t pid, void *arg)
{
    struct orphans *orphans = arg;
    char path[64], part[64];

    (void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    (void)snprintf(part, sizeof part, "\"pid\":%d,", (int)pid);

    HF_CLEANUP_FREE char *command = read_file(path);

    if (strstr(command, "demo-agent") != NULL &&
        hft_fleet_count(orphans->fleet, "agents/", part) == 0)
        orphans->count++;
}

static bool has_no_orphan(void *arg)
{
    struct orphans orphans = { .fleet = arg };

    each_process(orphans.fleet->etcd.dir.path, look_at_process, &orphans);
    return orphans.count == 0;
}

void hft_fleet_check(struct hft_fleet *fleet)
{
    /* One that was told to end may need a moment. */
    hft_wait_or_fail(has_no_orphan, fleet, HFT_FLEET_STEP_MS, "no process that nobody knows");
    free(hft_fleet_cli(fleet, "invariants", NULL));
}
