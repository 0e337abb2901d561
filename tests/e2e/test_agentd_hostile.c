/* Whoever means harm, or writes nonsense: on an agent's socket, and in etcd. */
#include <dirent.h>

#include "e2e/agentd_fixture.h"
#include "support/stall.h"

/* As many connections as it gets, each held in another way: a byte a second, nothing more to
 * say, events that nobody reads, an answer that nobody reads. When it lets go it is served. */
static const char HOLD[] = "import os, socket, sys, time\n"
                           "path = os.environ['HOLDFAST_SOCKET']\n"
                           "head = 'Host: x\\r\\nAuthorization: Bearer ' + "
                           "os.environ['HOLDFAST_TOKEN'] + '\\r\\n\\r\\n'\n"
                           "here = os.path.dirname(os.path.dirname(path))\n"
                           "held = []\n"
                           "def hold(text, half=False):\n"
                           "    s = socket.socket(socket.AF_UNIX)\n"
                           "    s.setblocking(False)\n"
                           "    try:\n"
                           "        s.connect(path)\n"
                           "        s.send(text.encode())\n"
                           "        if half:\n"
                           "            s.shutdown(socket.SHUT_WR)\n"
                           "    except OSError:\n"
                           "        pass\n"
                           "    held.append(s)\n"
                           "for i in range(16):\n"
                           "    hold('GET /v1/events HTTP/1.1\\r\\n' + head)\n"
                           "for i in range(1000):\n"
                           "    hold('GET /v1/self HTT')\n"
                           "    hold('GET /v1/self HTTP/1.1\\r\\n' + head, True)\n"
                           "print('begun', flush=True)\n"
                           "end = time.monotonic() + float(sys.argv[1])\n"
                           "while time.monotonic() < end or not os.path.exists(here + '/go'):\n"
                           "    for s in held:\n"
                           "        try:\n"
                           "            s.send(b'P')\n"
                           "        except OSError:\n"
                           "            pass\n"
                           "    time.sleep(1)\n"
                           "for s in held:\n"
                           "    s.close()\n"
                           "with socket.socket(socket.AF_UNIX) as s:\n"
                           "    s.settimeout(60)\n"
                           "    s.connect(path)\n"
                           "    s.sendall(('GET /v1/self HTTP/1.1\\r\\n' + head).encode())\n"
                           "    print('served', s.recv(12), flush=True)\n"
                           "time.sleep(600)\n";

#define OTHER                                                                                  \
    "cd \"$0\"; n=0; while [ $n -lt 20 ]; do " CURL                                            \
    "-o answer -w \"%{http_code}\\n\" http://localhost/v1/self >>served; n=$((n + 1)); "       \
    "sleep 0.2; done; echo over >>served; exec sleep 600"

static int count_descriptors(pid_t pid)
{
    char path[64];
    int found = 0;
    DIR *all;

    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    all = opendir(path);
    ck_assert_ptr_nonnull(all);
    while (readdir(all) != NULL)
        found++;
    (void)closedir(all);
    return found;
}

static void start_two(struct hft_program *agentd)
{
    char config[300], text[1000];

    write_file("agentd.yaml", "host: h1\nlaunchers: [hold.yaml, other.yaml]\n"
                              "agents: [a1.yaml, a2.yaml]\n");
    write_file("hold.py", HOLD);
    write_file("other.sh", OTHER);
    (void)snprintf(text, sizeof text, "name: hold\ncommand: [python3, %s/hold.py, '8']\n",
                   dir.path);
    write_file("hold.yaml", text);
    (void)snprintf(text, sizeof text, "name: other\ncommand: [sh, -c, '. %s/other.sh', %s]\n",
                   dir.path, dir.path);
    write_file("other.yaml", text);
    write_file("a1.yaml", "name: a1\nlauncher: hold\n");
    write_file("a2.yaml", "name: a2\nlauncher: other\n");
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_program_start(agentd, "agentd", dir.path, "agentd", server.endpoint, "--config", config,
                      "--state-dir", dir.path, "--ttl", "10s", NULL);
}

START_TEST(one_that_holds_all_its_connections_holds_up_nobody_else)
{
    enum { MOST = 64 + 100 }; /* of one agent, and what a link has open anyhow */
    struct hft_program agentd = { 0 };
    hf_rev life;
    char *answers;

    start_two(&agentd);
    await_line("agents/a1.log", "begun");
    await("agents/a2/live", "\"pid\":");
    life = look("agents/a2/live").create_rev;
    await_line("served", "over");
    ck_assert_int_lt(count_descriptors(pid_in("link.pid")), MOST);
    answers = read_file("served");
    for (const char *line = answers; strncmp(line, "over", 4) != 0; line += 4)
        ck_assert_msg(strncmp(line, "200\n", 4) == 0, "%s", answers);
    free(answers);
    write_file("go", "");
    await_line("agents/a1.log", "served b'HTTP/1.1 200'");
    ck_assert_int_eq(look("agents/a2/live").create_rev, life);
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    check_log();
}
END_TEST

/* A file system that hangs, and two agents that keep their checkpoints there. */

#define CHECKPOINT "http://localhost/v1/tasks/t1/checkpoint"
#define LEND                                                                                   \
    "cd \"$0\"; for i in 1 2; do " CURL "-X PUT -H \"Content-Type: application/json\" "        \
    "-d \"{\\\"path\\\":\\\"$0/hangs\\\"}\" " CHECKPOINT " & done; exec sleep 600"
#define SAVE                                                                                   \
    "cd \"$0\"; until [ -e go ]; do sleep 0.1; done; " CURL                                    \
    "-o claimed -d \"{\\\"wait\\\":\\\"30s\\\"}\" http://localhost/v1/tasks/claim; " CURL      \
    "-d \"\" http://localhost/v1/tasks/t1/start; head -c 100000 /dev/zero >large; " CURL       \
    "-T large " CHECKPOINT " >kept; exec sleep 600"

static void start_three(struct hft_program *agentd)
{
    char config[300], text[1000];

    write_file("agentd.yaml", "host: h1\nlaunchers: [lend.yaml, save.yaml]\n"
                              "agents: [a1.yaml, a2.yaml, a3.yaml]\n");
    write_file("lend.sh", LEND);
    write_file("save.sh", SAVE);
    (void)snprintf(text, sizeof text, "name: lend\ncommand: [sh, -c, '. %s/lend.sh', %s]\n",
                   dir.path, dir.path);
    write_file("lend.yaml", text);
    (void)snprintf(text, sizeof text, "name: save\ncommand: [sh, -c, '. %s/save.sh', %s]\n",
                   dir.path, dir.path);
    write_file("save.yaml", text);
    write_file("a1.yaml", "name: a1\nlauncher: lend\n");
    write_file("a2.yaml", "name: a2\nlauncher: lend\n");
    write_file("a3.yaml", "name: a3\nrole: r1\nlauncher: save\n");
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_program_start(agentd, "agentd", dir.path, "agentd", server.endpoint, "--config", config,
                      "--state-dir", dir.path, "--ttl", "10s", NULL);
}

START_TEST(files_that_hang_hold_up_nobody_elses)
{
    struct hft_program agentd = { 0 };
    struct hft_stall stall;
    char path[HFT_PATH_MAX + 8];

    (void)snprintf(path, sizeof path, "%s/hangs", dir.path);
    write_file("hangs", "state");
    if (!hft_stall_begin(&stall, path)) {
        hft_skip("only root can let a file hang");
        return;
    }
    submit("t1", "r1", "x");
    start_three(&agentd);
    for (int i = 0; i < 4; i++)
        hft_stall_await(&stall);
    write_file("go", "");
    await_line("kept", "\"store\":\"file\"");
    hft_stall_end(&stall);
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    check_log();
}
END_TEST

/* Somebody else's hand in etcd. */

static char huge[1 << 20];

static const struct {
    const char *key, *value; /* NULL: a megabyte of nothing */
} GARBAGE[] = {
    { "agents/a1/report", "{\"state\":" },
    { "agents/a1/exit", "[]" },
    { "agents/x/spec", "{\"role\":{\"a\":[1]},\"maxTasks\":\"many\"}" },
    { "agents/x/live", "\"\\ud800\"" },
    { "agents/y/spec", NULL },
    { "agents/Not A Name/spec", "{}" },
    { "agents//live", "{}" },
    { "agents/a1/unheard-of", "{}" },
    { "commands/h1/a1", "{\"action\":\"dance\",\"incarnation\":-1}" },
    { "commands/h1/x", "{\"action\":7" },
    { "commands/h1/nobody", NULL },
    { "health/a1", "\xff\xfe" },
    { "health/nobody", NULL },
    { "wanted/a1", "{\"state\":\"dancing\"}" },
    { "hosts/h2/record", "{\"pools\":\"default\",\"capacity\":1e999}" },
    { "hosts/h2/live", "" },
    { "tasks/bad", "{\"id\":\"other\",\"state\":\"dancing\"}" },
    { "tasks/huge", NULL },
    { "pending/r1/bad", "null" },
    { "pending/r1/nobody", "{}" },
    { "checkpoints/bad/0000000000000000001", "{\"size\":-1,\"store\":\"moon\"}" },
    { "checkpoints/bad/1", "{}" },
    { "recoveries/bad", "{\"attempts\":\"9999999999999\"}" },
    { "events/0000000000000000001", "{" },
    { "controller/clock", "yesterday" },
};

static void write_garbage(void)
{
    char key[200];

    (void)memset(huge, 'x', sizeof huge - 1);
    for (size_t i = 0; i < sizeof GARBAGE / sizeof GARBAGE[0]; i++) {
        (void)snprintf(key, sizeof key, ROOT "%s", GARBAGE[i].key);
        (void)hft_put(&hand, key, GARBAGE[i].value != NULL ? GARBAGE[i].value : huge,
                      HF_NO_LEASE);
    }
}

static void remove_garbage(void)
{
    char key[200];

    for (size_t i = 0; i < sizeof GARBAGE / sizeof GARBAGE[0]; i++) {
        (void)snprintf(key, sizeof key, ROOT "%s", GARBAGE[i].key);
        hft_etcdctl_ok(&server, NULL, "del", key, NULL);
    }
}

#define WORK                                                                                   \
    "cd \"$0\"; while :; do " CURL "-o claimed -d '{\"wait\":\"30s\"}' "                       \
    "http://localhost/v1/tasks/claim; id=$(sed -n 's/^{\"id\":\"\\([a-z0-9]*\\)\".*/\\1/p' "   \
    "claimed); [ -z \"$id\" ] || { " CURL "-o /dev/null -d '' "                                \
    "http://localhost/v1/tasks/$id/start; " CURL                                               \
    "-o /dev/null -d '' http://localhost/v1/tasks/$id/complete; }; rm -f claimed; done"

/* What cannot be read is named, once, and stops nothing else: the agent goes on with its work,
 * a new link and a new leader begin amid all of it, and a death is still mended. */
START_TEST(nonsense_in_etcd_is_named_and_stops_nobody)
{
    pid_t agentd;
    hf_rev life;

    begin_leader();
    agentd = start("a1", (const char *[]){ "sh", "-c", WORK, dir.path, NULL });
    submit("t1", "r1", "x");
    await("tasks/t1", "completed");
    write_garbage();
    hft_program_until_said(&leader, "event=bad_record", STEP_MS);
    submit("t2", "r1", "x");
    await("tasks/t2", "completed");
    kill_link();
    await_link(2);
    ck_assert_int_eq(hft_program_stop(&leader), 0);
    begin_leader();
    submit("t3", "r1", "x");
    await("tasks/t3", "completed");
    remove_garbage();
    life = look("agents/a1/live").create_rev;
    ck_assert_int_eq(kill((pid_t)number_in("agents/a1/live", "\"pid\""), SIGKILL), 0);
    hft_wait_or_fail(is_later_life, &life, STEP_MS, "another life");
    submit("t4", "r1", "x");
    await("tasks/t4", "completed");
    (void)stop(agentd);
}
END_TEST

/* What it puts in the place of its socket, and whether the next link can remove that. */
static const struct {
    const char *script;
    bool is_heard;
} PLACES[] = {
    { "rm -f $HOLDFAST_SOCKET; echo mine >$HOLDFAST_SOCKET; ", true },
    { "rm -f $HOLDFAST_SOCKET; mkdir -p $HOLDFAST_SOCKET/mine; ", false },
};

START_TEST(one_that_spoils_its_socket_keeps_no_link_from_beginning)
{
    char script[600];
    pid_t agentd;
    hf_rev life;

    (void)snprintf(script, sizeof script,
                   "cd \"$0\"; %s echo yes >spoilt; until " CURL
                   "-o answer http://localhost/v1/self; do sleep 0.1; done; "
                   "echo yes >heard; exec sleep 600",
                   PLACES[_i].script);
    agentd = start("a1", (const char *[]){ "sh", "-c", script, dir.path, NULL });
    await_line("spoilt", "yes");
    life = look("agents/a1/live").create_rev;
    kill_link();
    await_link(2);
    if (PLACES[_i].is_heard)
        await_line("heard", "yes");
    else
        await_line("agentd.log", "event=no_socket");
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 180);
    tcase_add_test(stories, one_that_holds_all_its_connections_holds_up_nobody_else);
    tcase_add_test(stories, files_that_hang_hold_up_nobody_elses);
    tcase_add_test(stories, nonsense_in_etcd_is_named_and_stops_nobody);
    tcase_add_loop_test(stories, one_that_spoils_its_socket_keeps_no_link_from_beginning, 0,
                        sizeof PLACES / sizeof PLACES[0]);
    return hft_suite_run("agentd: hostile", stories, NULL);
}
