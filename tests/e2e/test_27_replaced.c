/* A link that is replaced takes along how the agents are judged: nobody is ended by what it
 * never agreed to, and who hangs meanwhile is found by the next one. */
#include <sys/inotify.h>

#include "e2e/frozen_fixture.h"
#include "support/port.h"

static bool has_another_link(void *arg)
{
    char *log = read_file("h1/agentd.log"), *at = log;
    int links = 0;

    while ((at = strstr(at, "event=ready")) != NULL) {
        links++;
        at++;
    }
    free(log);
    return links >= *(const int *)arg;
}

static void expect_frozen(const char *agent, const char *why)
{
    await(key_of(agent, "exit"), "\"kind\":\"frozen\"");
    expect_in(key_of(agent, "exit"), why);
}

START_TEST(a_new_link_judges_as_the_old_one_did_and_finds_who_hangs)
{
    /* What its launcher says at first, and after SIGHUP. */
    static const struct cast all[] = {
        { "own", "own", "detect.watchdog: 2s\n" },
        { "slow", "slow", "detect.watchdog: 30s\n" },
        { "kept", "ping", "detect.freeze: report\n" },
        { "rests", "longer", "" },
        { "stops", "ping", "" },
        { "starves", "watchdog", "detect.watchdog: 4s\n" },
        { "well", "ping", "detect.profile: dev\n" },
    };
    static const struct cast changed[] = {
        { "slow", "slow", "detect.watchdog: 2s\n" },
        { "kept", "ping", "detect.freeze: end\n" },
        { "stops", "ping", "detect.by: [heartbeat]\n" },
    };
    enum { COUNT = sizeof all / sizeof all[0], SPARED = 4 };
    hf_rev lives[COUNT];
    pid_t agentd = start_host("h1", all, COUNT, false);

    await_said("h1", "own", "fed");
    await_said("h1", "slow", "fed");
    await_said("h1", "starves", "fed");
    await_said("h1", "kept", "pong 6");
    await_said("h1", "rests", "pong 6");
    await_said("h1", "stops", "pong 6");
    await_said("h1", "well", "pong 6");
    for (int i = 0; i < COUNT; i++)
        lives[i] = life_of(all[i].agent);
    ck_assert_int_eq(kill(pid_of("kept"), SIGSTOP), 0);
    await("agents/kept/report", "\"frozen\":true");
    for (size_t i = 0; i < sizeof changed / sizeof changed[0]; i++)
        write_cast("h1", &changed[i]);
    ck_assert_int_eq(kill(pid_of("stops"), SIGSTOP), 0);
    ck_assert_int_eq(kill(pid_of("starves"), SIGSTOP), 0);
    /* What it says last is in no report yet when the link goes. */
    ck_assert_int_eq(kill(pid_of("rests"), SIGUSR1), 0);
    await_said("h1", "rests", "resting");
    ck_assert_int_eq(kill(agentd, SIGHUP), 0);
    hft_wait_or_fail(has_another_link, &(int){ 2 }, STEP_MS, "another link");
    expect_in("agents/kept/report", "\"frozen\":true"); /* nobody has refuted it */
    expect_frozen("starves", "no watchdog came for");
    expect_frozen("stops", "it answered pings before, and does not listen any more");
    await("agents/kept/report", "does not listen any more");
    for (int i = 0; i < SPARED; i++)
        ck_assert_msg(life_of(all[i].agent) == lives[i], "%s is another one: %s", all[i].agent,
                      look_whole(key_of(all[i].agent, "exit")));
    ck_assert_int_eq(life_of("well"), lives[COUNT - 1]);
    ck_assert(is_clear((void *)"well"));
    ck_assert_int_eq(kill(pid_of("kept"), SIGCONT), 0);
    await_clear("kept");
    end_host("h1", agentd);
}
END_TEST

/* It asks for a file that only root may read, whenever it is told to. */
#define READER                                                                                 \
    "command: [sh, -c, '" CURL "-d \"{}\" http://localhost/v1/tasks/claim; "                   \
    "until [ -e %s/go ]; do sleep 0.1; done; echo; " CURL                                      \
    "-T - -H \"Content-Type: application/json\" "                                              \
    "http://localhost/v1/tasks/t1/checkpoint <%s/request; echo; exec sleep 600']\n"

static void write_secret(void)
{
    char path[300], text[400];

    write_file("secret", "what only root may know");
    (void)snprintf(path, sizeof path, "%s/secret", dir.path);
    ck_assert_int_eq(chmod(path, 0600), 0);
    (void)snprintf(text, sizeof text, "{\"path\":\"%s\"}", path);
    write_file("request", text);
}

static void settle_again(pid_t agentd, const struct cast *all, size_t count)
{
    for (size_t i = 0; i < count; i++)
        write_cast("h1", &all[i]);
    ck_assert_int_eq(kill(agentd, SIGHUP), 0);
    hft_wait_or_fail(has_another_link, &(int){ 2 }, STEP_MS, "another link");
    /* What is waited for is new. */
    write_file("h1/agents/owned.log", "");
    write_file("h1/agents/asked.log", "");
}

/* As whom it runs, at what address it is asked: new settings are for who is started by them. */
START_TEST(what_a_process_was_made_of_stays_until_its_end)
{
    char reader[1200], mode[20], own[40], other[40];
    struct hft_port port, unused;
    hf_rev lives[3];
    pid_t agentd;

    if (geteuid() != 0 || hft_is_nobodys(false))
        return; /* then agents run as their agentd does, always */
    hft_port_take(&port);
    hft_port_take(&unused);
    (void)snprintf(reader, sizeof reader, "user: nobody\n" READER, dir.path, dir.path);
    (void)snprintf(mode, sizeof mode, "tcp, %d", port.number);
    (void)snprintf(own, sizeof own, "parameters: [port=%d]\n", port.number);
    (void)snprintf(other, sizeof other, "parameters: [port=%d]\n", unused.number);
    static const char asked[] = "parameters: ['port=[0-9]+']\n"
                                "probe: {address: 'tcp://127.0.0.1:${port}', every: 1s}\n";
    const struct cast all[] = { { "owned", "ping", "user: nobody\ndetect.profile: dev\n" },
                                { "reads", NULL, reader },
                                { "asked", mode, asked } };
    const struct cast changed[] = { { "owned", "ping", "" },
                                    { "reads", NULL, strstr(reader, "command") },
                                    { "asked", mode, asked } };

    write_secret();
    submit("t1", "r1", "x");
    own_of = "asked";
    own_text = own;
    agentd = start_host("h1", all, 3, false);
    await("tasks/t1", "\"agent\":\"reads\"");
    await_said("h1", "owned", "pong 4");
    await_line("h1/agentd.log", "agent=asked good=true");
    for (int i = 0; i < 3; i++)
        lives[i] = life_of(all[i].agent);
    own_text = other;
    settle_again(agentd, changed, 3);
    await_said("h1", "owned", "pong"); /* who may not speak any more is soon taken for frozen */
    await_said("h1", "asked", "asked");
    write_file("go", "");
    await_said("h1", "reads", "secret: Permission denied");
    for (int i = 0; i < 3; i++)
        ck_assert_msg(life_of(all[i].agent) == lives[i], "%s is another one", all[i].agent);
    end_host("h1", agentd);
    hft_port_release(&port);
    hft_port_release(&unused);
}
END_TEST

/* What has happened to a file of the directory that is watched; 0: nothing yet. */
static uint32_t changes_of(int watch, const char *file)
{
    union {
        struct inotify_event event;
        char bytes[16384];
    } room;
    uint32_t changes = 0;
    ssize_t len;

    while ((len = read(watch, &room, sizeof room)) > 0) {
        for (const char *at = room.bytes; at < room.bytes + len;) {
            const struct inotify_event *event = (const struct inotify_event *)(const void *)at;

            if (event->len > 0 && strcmp(event->name, file) == 0)
                changes |= event->mask;
            at += sizeof *event + event->len;
        }
    }
    return changes;
}

/* Whoever was refused for a moment would take itself for a stranger. */
START_TEST(a_socket_is_its_agents_from_the_moment_that_it_is_seen)
{
    const struct cast owned = { "owned", "ping", "user: nobody\ndetect.profile: dev\n" };
    char path[HFT_PATH_MAX + 32];
    struct stat before, after;
    uint32_t changes;
    pid_t agentd;
    int watch;

    if (geteuid() != 0 || hft_is_nobodys(false))
        return; /* then agents run as their agentd does, always */
    agentd = start_host("h1", &owned, 1, false);
    await_said("h1", "owned", "pong 2");
    watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    (void)snprintf(path, sizeof path, "%s/h1/agents", dir.path);
    ck_assert_int_ge(inotify_add_watch(watch, path, IN_CREATE | IN_MOVED_TO | IN_ATTRIB), 0);
    (void)snprintf(path, sizeof path, "%s/h1/agents/owned.sock", dir.path);
    ck_assert_int_eq(stat(path, &before), 0);
    ck_assert_int_eq(kill(agentd, SIGHUP), 0);
    hft_wait_or_fail(has_another_link, &(int){ 2 }, STEP_MS, "another link");
    ck_assert_int_eq(stat(path, &after), 0);
    ck_assert_uint_ne(before.st_uid, 0);
    ck_assert_uint_eq(before.st_uid, after.st_uid);
    changes = changes_of(watch, "owned.sock");
    ck_assert_msg((changes & (IN_CREATE | IN_MOVED_TO)) != 0 && (changes & IN_ATTRIB) == 0,
                  "%#x", (unsigned)changes);
    (void)close(watch);
    end_host("h1", agentd);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("replaced");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_new_link_judges_as_the_old_one_did_and_finds_who_hangs);
    tcase_add_test(t, what_a_process_was_made_of_stays_until_its_end);
    tcase_add_test(t, a_socket_is_its_agents_from_the_moment_that_it_is_seen);
    return hft_suite_run("e2e: replaced", t, NULL);
}
