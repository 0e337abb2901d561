/* frozen_fixture.h - agents that can be made to hang, several of each agentd, on a real etcd.
 *
 * Each host has a state directory of its own in the test's, with its log and those of its
 * agents: "h1/agentd.log", "h1/agents/a.log". */
#ifndef FROZEN_FIXTURE_H
#define FROZEN_FIXTURE_H

#include "base/clock.h"
#include "e2e/agentd_fixture.h"

struct cast {
    const char *agent;
    const char *mode; /* of pinged.py, which it is then; or ... */
    const char *more; /* ... another command, and whatever else its launcher says */
};

static const char *host_ttl;       /* of the next host; NULL: 10s */
static const char *host_more = ""; /* of its configuration */
static const char *own_of = "";    /* an agent that says beside its launcher ... */
static const char *own_text = "";  /* ... this */

static inline hf_ms now(void)
{
    struct hf_clock clock = hf_clock_boottime();

    return hf_clock_now(&clock);
}

/* As it stands in etcd. */

static inline const char *key_of(const char *agent, const char *kind)
{
    static char keys[4][100];
    static unsigned next;
    char *key = keys[next++ % 4];

    (void)snprintf(key, sizeof keys[0], "agents/%.60s/%s", agent, kind);
    return key;
}

static inline pid_t pid_of(const char *agent)
{
    return (pid_t)number_in(key_of(agent, "live"), "\"pid\"");
}

static inline hf_rev life_of(const char *agent)
{
    return look(key_of(agent, "live")).create_rev;
}

static inline void expect_in(const char *key, const char *part)
{
    char *value = look_whole(key);

    ck_assert_msg(strstr(value, part) != NULL, "no %s in %s: %s", part, key, value);
    free(value);
}

static inline bool is_clear(void *arg)
{
    char *value = look_whole(key_of(arg, "report"));
    bool clear = strstr(value, "\"suspicion\"") == NULL;

    free(value);
    return clear;
}

static inline void await_clear(const char *agent)
{
    hft_wait_or_fail(is_clear, (void *)agent, STEP_MS, "a report without a suspicion");
}

static inline void await_said(const char *host, const char *agent, const char *part)
{
    char file[110];

    (void)snprintf(file, sizeof file, "%.20s/agents/%.60s.log", host, agent);
    await_line(file, part);
}

/* Hosts. */

static inline void write_cast(const char *host, const struct cast *one)
{
    char name[120], text[1000];
    int len;

    len = snprintf(text, sizeof text, "name: %s\n%s", one->agent, one->more);
    if (one->mode != NULL)
        len = snprintf(text, sizeof text, "name: %s\n%scommand: [python3, %s/pinged.py, %s]\n",
                       one->agent, one->more, dir.path, one->mode);
    ck_assert_uint_lt((size_t)len, sizeof text);
    (void)snprintf(name, sizeof name, "%s/%s-launcher.yaml", host, one->agent);
    write_file(name, text);
    (void)snprintf(text, sizeof text, "name: %s\nrole: r1\nlauncher: %s\n%s", one->agent,
                   one->agent, strcmp(one->agent, own_of) == 0 ? own_text : "");
    (void)snprintf(name, sizeof name, "%s/%s.yaml", host, one->agent);
    write_file(name, text);
}

static inline void write_host(const char *host, const struct cast *all, size_t count)
{
    char launchers[4000] = "", agents[4000] = "", text[8200], name[100];

    (void)snprintf(text, sizeof text, "%s/%s", dir.path, host);
    ck_assert_int_eq(mkdir(text, 0755), 0);
    for (size_t i = 0; i < count; i++) {
        size_t len = strlen(launchers), used = strlen(agents);

        write_cast(host, &all[i]);
        (void)snprintf(launchers + len, sizeof launchers - len, "%s%s-launcher.yaml",
                       i > 0 ? ", " : "", all[i].agent);
        (void)snprintf(agents + used, sizeof agents - used, "%s%s.yaml", i > 0 ? ", " : "",
                       all[i].agent);
    }
    (void)snprintf(text, sizeof text,
                   "host: %s\nttl: %s\nlog.level: debug\nlaunchers: [%s]\nagents: [%s]\n%s",
                   host, host_ttl != NULL ? host_ttl : "10s", launchers, agents, host_more);
    (void)snprintf(name, sizeof name, "%s/agentd.yaml", host);
    write_file(name, text);
}

/* An agentd of that host. As nobody it has no rights, and shims instead of cgroups. */
static inline pid_t start_host(const char *host, const struct cast *all, size_t count,
                               bool as_nobody)
{
    char config[400], state[300], log[400];
    const char *argv[] = { AGENTD, "--config",    config,          "--state-dir",
                           state,  "--endpoints", server.endpoint, NULL };
    int fd;
    pid_t pid;

    is_nobodys = hft_is_nobodys(as_nobody);
    ck_assert_int_eq(chmod(dir.path, 0755), 0);
    hft_copy_program(HOLDFAST_SOURCE_DIR "/tests/e2e/pinged.py", dir.path, "pinged.py");
    write_host(host, all, count);
    (void)snprintf(state, sizeof state, "%s/%s", dir.path, host);
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", state);
    if (is_nobodys) {
        hft_settle_nobody(dir.path, NULL);
        argv[0] = agentd_program();
        ck_assert_int_eq(chown(state, HFT_NOBODY, HFT_NOBODY), 0);
    }
    (void)snprintf(log, sizeof log, "%s/agentd.log", state);
    fd = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(fd, 0);
    pid = hft_process_spawn(&(struct hft_spawn){
        .argv = argv, .env = sanitizer_env(), .out = fd, .err = fd, .as_nobody = is_nobodys });
    (void)close(fd);
    return pid;
}

static inline bool is_of_nobody(const char *host)
{
    char path[400];
    struct stat facts;

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, host);
    return stat(path, &facts) == 0 && facts.st_uid == HFT_NOBODY;
}

static inline void end_host(const char *host, pid_t agentd)
{
    char name[100];

    ck_assert_int_eq(kill(agentd, SIGTERM), 0);
    (void)hft_process_reap(agentd, STEP_MS);
    (void)snprintf(name, sizeof name, "%s/agentd.log", host);
    check_log_of(name, is_of_nobody(host));
}

/* As a command line shows it. */
static inline void expect_shown(const char *command, const char *subject, const char *part)
{
    struct hft_output output = { 0 };

    hft_cli(&output, server.endpoint, command, subject, NULL);
    ck_assert_msg(strstr(output.out, part) != NULL, "%s is not in:\n%s", part, output.out);
    hft_output_done(&output);
}

#endif
