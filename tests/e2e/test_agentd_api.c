/* What an agent may ask its agentd. */
#include "e2e/agentd_fixture.h"

/* What an agent may ask, and what it is told when that makes no sense. */

static char token[80], sock[300];
static char said[1 << 20];               /* the body of the last answer */
static const char *also = "Accept: */*"; /* a header of every request */

/* Runs curl, and returns the status that it was answered with. */
static int ask(const char *method, const char *path, const char *body, const char *bearer)
{
    bool is_json = body != NULL && (body[0] == '{' || body[0] == '@');
    const char *type =
        is_json ? "Content-Type: application/json" : "Content-Type: application/octet-stream";
    char url[200], authorization[200];
    const char *argv[] = { "curl", "-s",           "--max-time",  "30", "--unix-socket",
                           sock,   "-H",           authorization, "-X", method,
                           "-w",   "%{http_code}", url,           "-H", also,
                           "-H",   type,           "-d",          body, NULL };
    HFT_CLEANUP_OUTPUT struct hft_output output;
    size_t len;

    (void)snprintf(url, sizeof url, "http://localhost%s", path);
    (void)snprintf(authorization, sizeof authorization, "Authorization: Bearer %s", bearer);
    if (body == NULL)
        argv[17] = NULL;
    hft_process_run(argv, NULL, &output);
    len = strlen(output.out);
    ck_assert_msg(len >= 3, "%s %s: %s", method, path, output.err);
    (void)snprintf(said, sizeof said, "%.*s", (int)(len - 3), output.out);
    return (int)strtol(output.out + len - 3, NULL, 10);
}

/* The same with a body that no argument has room for. */
static int ask_with_file(const char *method, const char *path, const char *file)
{
    char at[400];

    (void)snprintf(at, sizeof at, "@%s/%s", dir.path, file);
    return ask(method, path, at, token);
}

static void append(const char *name, char c, int times, const char *end)
{
    char path[400];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    file = fopen(path, "ae");
    ck_assert_ptr_nonnull(file);
    while (times-- > 0)
        ck_assert_int_ne(fputc(c, file), EOF);
    ck_assert_int_ge(fputs(end, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static int count(char c)
{
    int n = 0;

    for (const char *at = said; *at != '\0'; at++)
        n += *at == c;
    return n;
}

static const struct {
    const char *method, *path, *body;
    int status;
    const char *said;
} ASKS[] = {
    { "GET", "/v1/self", NULL, 200, "\"agent\":\"a1\"" },
    { "POST", "/v1/heartbeat", "{\"status\":\"busy\",\"tokens\":17}", 200, "\"interval\":" },
    { "POST", "/v1/activity", "", 200, "\"waiting\":" },
    { "POST", "/v1/heartbeat", "{\"tokens\":-1}", 400, "below 0" },
    { "POST", "/v1/heartbeat", "{\"tokns\":1}", 400, "tokns" },
    { "POST", "/v1/heartbeat", "{\"status\":", 400, "column" },
    { "POST", "/v1/state", "{\"state\":\"asleep\"}", 400, "asleep" },
    { "POST", "/v1/state", "{\"state\":\"parked\",\"until\":\"2031-01-01T00:00:00Z\"}", 200,
      "" },
    { "POST", "/v1/pong", "{\"id\":\"1\"}", 204, "" },
    { "POST", "/v1/pong", "{}", 400, "that of the ping" },
    { "GET", "/v1/nothing", NULL, 404, "nothing at this path" },
    { "DELETE", "/v1/self", NULL, 405, "cannot be asked that way" },
    { "GET", "/v1/tasks/t9", NULL, 404, "no such task" },
    { "GET", "/v1/tasks/T9", NULL, 400, "name" },
    { "POST", "/v1/tasks/t9/start", "", 404, "no such task" },
    { "GET", "/v1/tasks/t9/checkpoint", NULL, 404, "" },
    { "GET", "/v1/tasks/t9/checkpoints", NULL, 200, "\"checkpoints\":[]" },
    { "PUT", "/v1/tasks/t9/checkpoint", "state", 404, "no such task" },
    { "POST", "/v1/tasks", "{\"payload\":\"x\"}", 400, "role" },
    { "POST", "/v1/tasks", "{\"id\":\"t1\",\"role\":\"other\",\"payload\":\"x\"}", 201,
      "\"state\":\"pending\"" },
    { "POST", "/v1/tasks", "{\"id\":\"t1\",\"role\":\"other\",\"payload\":\"y\"}", 200,
      "\"payload\":\"x\"" },
    { "GET", "/v1/tasks/t1", NULL, 200, "\"role\":\"other\"" },
    { "POST", "/v1/tasks/t1/complete", "{\"result\":\"z\"}", 409, "not this agent's" },
    { "POST", "/v1/tasks", "{\"id\":\"t3\",\"role\":\"r1\",\"queued\":true}", 201,
      "\"state\":\"queued\"" }, /* nobody leads who could let it be taken */
    { "POST", "/v1/tasks/claim", "{\"wait\":\"0s\"}", 204, "" },
    { "POST", "/v1/tasks", "{\"id\":\"t2\",\"role\":\"r1\",\"labels\":{\"a\":\"b\"}}", 201,
      "\"labels\":{\"a\":\"b\"}" },
    { "POST", "/v1/tasks/claim", "{\"wait\":\"20s\"}", 200, "\"state\":\"acknowledged\"" },
    { "POST", "/v1/tasks/claim", "", 200, "\"id\":\"t2\"" }, /* the one already mine */
    { "POST", "/v1/tasks/t2/start", "", 200, "\"state\":\"in_progress\"" },
    { "PUT", "/v1/tasks/t2/checkpoint", "state of things", 201, "\"seq\":\"1\"" },
    { "GET", "/v1/tasks/t2/checkpoint", NULL, 200, "state of things" },
    { "PUT", "/v1/tasks/t2/checkpoint", "{}", 400, "path: where the checkpoint is" },
    { "PUT", "/v1/tasks/t2/checkpoint", "{\"path\":\"state\"}", 400, "from the root on" },
    { "PUT", "/v1/tasks/t2/checkpoint", "{\"path\":\"/no/such\"}", 404, "/no/such: No such" },
    { "PUT", "/v1/tasks/t2/checkpoint", "{\"path\":\"/tmp\"}", 400, "no regular file" },
    { "PUT", "/v1/tasks/t2/checkpoint", "{\"path\":\"/proc/self/exe\"}", 400, "a link" },
    { "PUT", "/v1/tasks/t2/checkpoint", "{\"file\":\"/tmp\"}", 400, "file" },
    { "POST", "/v1/tasks/t2/progress", "{\"percent\":101}", 400, "percent" },
    { "POST", "/v1/tasks/t2/release", "{\"reason\":\"later\"}", 200, "\"state\":\"pending\"" },
    { "POST", "/v1/tasks/claim", "", 200, "\"checkpoint\":{\"seq\":\"1\"}" },
    { "POST", "/v1/tasks/t2/fail", "{\"reason\":\"no use\"}", 200, "\"state\":\"failed\"" },
    { "POST", "/v1/leave", "{\"reason\":\"done\"}", 200, "" },
    { "POST", "/v1/tasks/claim", "", 409, "\"code\":\"fenced\"" },
};

static bool is_ready(void *arg)
{
    char *env = read_file("env"), *at = strstr(env, "HOLDFAST_TOKEN=");

    (void)arg;
    token[0] = '\0';
    if (at != NULL)
        (void)sscanf(at, "HOLDFAST_TOKEN=%79[0-9a-f]", token);
    free(env);
    return token[0] != '\0';
}

static void ask_all(void)
{
    for (size_t i = 0; i < sizeof ASKS / sizeof ASKS[0]; i++) {
        int status = ask(ASKS[i].method, ASKS[i].path, ASKS[i].body, token);

        ck_assert_msg(status == ASKS[i].status && strstr(said, ASKS[i].said) != NULL,
                      "%zu: %s %s: %d %s", i, ASKS[i].method, ASKS[i].path, status, said);
    }
}

/* A link to a file that may be kept, and one to the directory that it is in. */
static void ask_by_links(void)
{
    static const char *const PATHS[] = { "plain", "parent/content" };
    char link[HFT_PATH_MAX + 32], target[HFT_PATH_MAX + 32], body[HFT_PATH_MAX + 64];

    write_file("content", "content");
    (void)snprintf(target, sizeof target, "%s/content", dir.path);
    (void)snprintf(link, sizeof link, "%s/plain", dir.path);
    ck_assert_int_eq(symlink(target, link), 0);
    (void)snprintf(link, sizeof link, "%s/parent", dir.path);
    ck_assert_int_eq(symlink(dir.path, link), 0);
    for (size_t i = 0; i < sizeof PATHS / sizeof PATHS[0]; i++) {
        int status;

        (void)snprintf(body, sizeof body, "{\"path\":\"%s/%s\"}", dir.path, PATHS[i]);
        status = ask("PUT", "/v1/tasks/t9/checkpoint", body, token);
        ck_assert_msg(status == 400 && strstr(said, "a link") != NULL, "%s: %d %s", PATHS[i],
                      status, said);
    }
}

static void ask_too_much(void)
{
    static char large[(64 << 10) + 100];

    (void)memset(large, 'x', sizeof large - 1);
    ck_assert_int_eq(ask("PUT", "/v1/tasks/t9/checkpoint", large, token), 413);
    ck_assert_ptr_nonnull(strstr(said, "too_large"));
    write_file("large", "{\"role\":\"r1\",\"payload\":\"");
    append("large", 'x', (512 << 10) + 1, "\"}");
    ck_assert_int_eq(ask_with_file("POST", "/v1/tasks", "large"), 413);
    ck_assert_ptr_nonnull(strstr(said, "payload: at most 524288 bytes"));
    append("large", 'x', 512 << 10, ""); /* more than is kept of any request, unannounced */
    also = "Transfer-Encoding: chunked";
    ck_assert_int_eq(ask_with_file("POST", "/v1/tasks", "large"), 413);
    also = "Accept: */*";
    ck_assert_msg(strstr(said, "{\"error\":{\"code\":\"too_large\",\"message\":\"a body may "
                               "have at most 1048576 bytes\",\"next\":\"send less\"}}") != NULL,
                  "%s", said);
    write_file("large", "{\"role\":\"r9\",\"labels\":{\"l\":\"");
    append("large", 'x', 16 << 10, "\"}}");
    ck_assert_int_eq(ask_with_file("POST", "/v1/tasks", "large"), 413);
    ck_assert_ptr_nonnull(strstr(said, "labels: at most 64, with 16384 bytes in all"));
}

/* More than a record has room for: the agent sees nothing of that. */
static void ask_with_large_texts(void)
{
    write_file("large", "{\"id\":\"big\",\"role\":\"r1\",\"payload\":\"");
    append("large", 'p', 500 << 10, "\"}");
    ck_assert_int_eq(ask_with_file("POST", "/v1/tasks", "large"), 201);
    ck_assert_int_eq(ask("POST", "/v1/tasks/claim", "{\"wait\":\"20s\"}", token), 200);
    ck_assert_msg(count('p') > 500 << 10, "%.300s", said);
    ck_assert_int_eq(ask("POST", "/v1/tasks/big/start", "", token), 200);
    write_file("large", "{\"result\":\"");
    append("large", 'z', 400 << 10, "\"}");
    ck_assert_int_eq(ask_with_file("POST", "/v1/tasks/big/complete", "large"), 200);
    ck_assert_ptr_nonnull(strstr(said, "\"state\":\"completed\""));
    ck_assert_int_eq(ask("GET", "/v1/tasks/big", NULL, token), 200);
    ck_assert_msg(count('z') > 400 << 10, "%.300s", said);
    ck_assert_msg(count('p') > 500 << 10, "%.300s", said);
}

static void put_by_path(const char *file, int status, const char *part)
{
    char body[500];

    (void)snprintf(body, sizeof body, "{\"path\":\"%s/%s\"}", dir.path, file);
    ck_assert_int_eq(ask("PUT", "/v1/tasks/cp/checkpoint", body, token), status);
    ck_assert_msg(strstr(said, part) != NULL, "%s", said);
}

/* An agent that has written its state to a file says where that is. */
static void ask_with_paths(void)
{
    ck_assert_int_eq(ask("POST", "/v1/tasks", "{\"id\":\"cp\",\"role\":\"r1\"}", token), 201);
    ck_assert_int_eq(ask("POST", "/v1/tasks/claim", "{\"wait\":\"20s\"}", token), 200);
    ck_assert_int_eq(ask("POST", "/v1/tasks/cp/start", "", token), 200);
    write_file("state", "the state of things");
    put_by_path("state", 201, "\"size\":\"19\"");
    ck_assert_int_eq(ask("GET", "/v1/tasks/cp/checkpoint", NULL, token), 200);
    ck_assert_str_eq(said, "the state of things");
    append("state", 'x', 64 << 10, "");
    put_by_path("state", 413, "at most 65536 bytes");
    ck_assert_int_eq(ask("POST", "/v1/tasks/cp/complete", "", token), 200);
}

/* What the agent is told goes to the file `events`. */
static pid_t listen_to_it(void)
{
    char authorization[200], path[400];
    const char *argv[] = { "curl", "-sN", "--unix-socket",
                           sock,   "-H",  authorization,
                           "-o",   path,  "http://localhost/v1/events",
                           NULL };
    pid_t listener;

    (void)snprintf(authorization, sizeof authorization, "Authorization: Bearer %s", token);
    (void)snprintf(path, sizeof path, "%s/events", dir.path);
    listener = hft_process_spawn(&(struct hft_spawn){ .argv = argv });
    await_line("events", "event: ping\ndata: {\"id\":\"1\"}\n");
    return listener;
}

/* Who listens is asked to answer, and told of work once, whoever brings it. */
static void listen_to_events(void)
{
    pid_t listener = listen_to_it();

    ck_assert_int_eq(ask("POST", "/v1/pong", "{\"id\":\"1\"}", token), 204);
    submit("e1", "r1", "x");
    await_line("events", "event: task\ndata: {\"id\":\"e1\"}\n");
    submit("e2", "r2", "x"); /* of another role */
    ck_assert_int_eq(ask("POST", "/v1/tasks/claim", "{\"wait\":\"20s\"}", token), 200);
    ck_assert_int_eq(ask("POST", "/v1/tasks/e1/fail", "{\"reason\":\"no use\"}", token), 200);
    submit("e3", "r1", "x");
    await_line("events", "event: task\ndata: {\"id\":\"e3\"}\n");
    ck_assert(!is_logged(&(struct line){ "events", "e2" }));
    ck_assert_int_eq(ask("POST", "/v1/tasks/claim", "{\"wait\":\"20s\"}", token), 200);
    ck_assert_int_eq(ask("POST", "/v1/tasks/e3/fail", "{\"reason\":\"no use\"}", token), 200);
    ck_assert_int_eq(kill(listener, SIGTERM), 0);
    (void)hft_process_reap(listener, STEP_MS);
}

static const char NOTIFY[] = "import os, socket\n"
                             "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                             "s.connect(os.environ['NOTIFY_SOCKET'])\n"
                             "s.send(b'X' * 5000)\n" /* what nobody understands costs nothing */
                             "s.send(b'\\0\\xff')\n"
                             "s.send(b'READY=1\\nSTATUS=warming up\\n')\n"
                             "import time\n"
                             "time.sleep(600)\n";

START_TEST(an_agent_may_speak_as_to_systemd)
{
    pid_t agentd = start("a1", (const char *[]){ "python3", "-c", NOTIFY, NULL });

    await("agents/a1/report", "\"phase\":\"warming up\"");
    await("agents/a1/report", "\"state\":\"ready\"");
    (void)stop(agentd);
}
END_TEST

#define SHOW_ENV "env >\"$0\"/env.new; mv \"$0\"/env.new \"$0\"/env; exec sleep 600"

START_TEST(an_agent_is_answered_after_etcd_has_it_and_told_what_is_wrong)
{
    pid_t agentd = start_with("a1", (const char *[]){ "--store", "etcd", NULL },
                              (const char *[]){ "sh", "-c", SHOW_ENV, dir.path, NULL });
    struct stat info;

    hft_wait_or_fail(is_ready, NULL, STEP_MS, "the agent");
    (void)snprintf(sock, sizeof sock, "%s/agents/a1.sock", dir.path);
    ck_assert_int_eq(stat(sock, &info), 0);
    ck_assert_int_eq(info.st_mode & 0777, 0600);
    ck_assert_int_eq(ask("GET", "/v1/self", NULL, "wrong"), 401);
    ask_by_links();
    ask_too_much();
    ask_with_large_texts();
    ask_with_paths();
    listen_to_events();
    ask_all();
    (void)stop(agentd);
    await("agents/a1/exit", "\"kind\":\"left\"");
    await("agents/a1/exit", "\"text\":\"done\"");
}
END_TEST

static const struct {
    const char *ask, *bearer;
    const char *kind;
} FIRST_ASKS[] = {
    { "/v1/self", "$HOLDFAST_TOKEN", "\"kind\":\"crashed\"" },
    { "/v1/tasks/t9", "$HOLDFAST_TOKEN", "\"kind\":\"crashed\"" },
    { "/v1/nothing", "$HOLDFAST_TOKEN", "\"kind\":\"crashed\"" },
    { "/v1/self", "another", "\"kind\":\"start_failed\"" },
};

/* Whoever has asked has begun: what ends it a moment later is not its start. */
START_TEST(whatever_an_agent_asks_first_it_has_started)
{
    char script[300];
    pid_t agentd;

    (void)snprintf(script, sizeof script,
                   "curl -s --unix-socket \"$HOLDFAST_SOCKET\" -H \"Authorization: Bearer "
                   "%s\" http://agentd%s; exit 4",
                   FIRST_ASKS[_i].bearer, FIRST_ASKS[_i].ask);
    agentd = start_with("a1", (const char *[]){ "--once", "--start-seconds", "5m", NULL },
                        (const char *[]){ "sh", "-c", script, NULL });
    await("agents/a1/exit", "\"status\":4");
    await("agents/a1/exit", FIRST_ASKS[_i].kind);
    ck_assert_int_eq(WEXITSTATUS(hft_process_reap(agentd, STEP_MS)), 4);
    check_log();
}
END_TEST

START_TEST(who_listens_hears_that_it_is_to_end)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c", SHOW_ENV, dir.path, NULL });
    pid_t listener;

    hft_wait_or_fail(is_ready, NULL, STEP_MS, "the agent");
    (void)snprintf(sock, sizeof sock, "%s/agents/a1.sock", dir.path);
    listener = listen_to_it();
    (void)stop(agentd);
    await_line("events", "event: stop\ndata: {\"grace\":\"5s\"}\n");
    (void)hft_process_reap(listener, STEP_MS);
}
END_TEST

/* What cannot be known to be written is not said to be. */
START_TEST(while_etcd_is_away_an_agent_is_told_so)
{
    pid_t agentd = start("a1", (const char *[]){ "sh", "-c", SHOW_ENV, dir.path, NULL });

    hft_wait_or_fail(is_ready, NULL, STEP_MS, "the agent");
    (void)snprintf(sock, sizeof sock, "%s/agents/a1.sock", dir.path);
    ck_assert_int_eq(ask("POST", "/v1/tasks/claim", "{\"wait\":\"0s\"}", token), 204);
    hft_etcd_pause(&server);
    ck_assert_int_eq(ask("POST", "/v1/tasks", "{\"id\":\"t1\",\"role\":\"r1\"}", token), 503);
    ck_assert_msg(strstr(said, "\"next\":\"try again") != NULL, "%s", said);
    await_line("agentd.log", "event=jeopardy");
    ck_assert_int_eq(ask("POST", "/v1/tasks/claim", "{\"wait\":\"0s\"}", token), 503);
    ck_assert_msg(strstr(said, "\"code\":\"jeopardy\"") != NULL, "%s", said);
    ck_assert_int_eq(ask("GET", "/v1/self", NULL, token), 200);
    ck_assert_msg(strstr(said, "\"jeopardy\":true") != NULL, "%s", said);
    await_line("agentd.log", "event=fenced"); /* else there is nothing to thaw */
    hft_etcd_resume(&server);
    await_line("agentd.log", "event=thawed");
    ck_assert_int_eq(ask("POST", "/v1/tasks", "{\"id\":\"t1\",\"role\":\"r1\"}", token) / 100,
                     2); /* new, or it was written after all */
    (void)stop(agentd);
}
END_TEST

/* How long one agent is a nuisance: longer than a lease, so that one that is not renewed is
 * lost. In an ordinary build a flood goes on for two of them. */
#ifdef __SANITIZE_ADDRESS__
enum { FLOOD_S = 12, FILES_S = 12 };
#else
enum { FLOOD_S = 20, FILES_S = 12 };
#endif

/* Eighty connections that ask as fast as they can, some of them nonsense; it says once what it
 * was refused with. */
static const char FLOOD[] =
    "import os, socket, sys, threading, time\n"
    "end = time.monotonic() + float(sys.argv[1])\n"
    "head = 'Host: x\\r\\nAuthorization: Bearer ' + os.environ['HOLDFAST_TOKEN']\n"
    "asks = [('POST /v1/heartbeat HTTP/1.1\\r\\n' + head +\n"
    "         '\\r\\nContent-Length: 2\\r\\n\\r\\n{}').encode(),\n"
    "        b'GET /v1/self HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n', b'\\x00\\xff "
    "nonsense\\r\\n\\r\\n']\n"
    "told = False\n"
    "def flood(ask):\n"
    "    global told\n"
    "    while time.monotonic() < end:\n"
    "        try:\n"
    "            with socket.socket(socket.AF_UNIX) as s:\n"
    "                s.settimeout(1)\n"
    "                s.connect(os.environ['HOLDFAST_SOCKET'])\n"
    "                while time.monotonic() < end:\n"
    "                    s.sendall(ask)\n"
    "                    got = s.recv(4096)\n"
    "                    if not got:\n"
    "                        break\n"
    "                    if b' 429 ' in got and not told:\n"
    "                        while b'}}' not in got:\n"
    "                            got += s.recv(4096)\n"
    "                        if b'api.rate' in got and not told:\n"
    "                            told = True\n"
    "                            print(got.decode(), flush=True)\n"
    "        except OSError:\n"
    "            pass\n"
    "all = [threading.Thread(target=flood, args=(asks[i % 8 if i % 8 < 3 else 0],))\n"
    "       for i in range(80)]\n"
    "[t.start() for t in all]\n"
    "print('begun', flush=True)\n"
    "[t.join() for t in all]\n"
    "print('done', flush=True)\n"
    "time.sleep(600)\n";

/* Sixty-four at once name a file as large as a checkpoint may be. */
static const char FILES[] =
    "import os, socket, sys, threading, time\n"
    "here = os.path.dirname(os.path.dirname(os.environ['HOLDFAST_SOCKET']))\n"
    "big = here + '/big'\n"
    "while not os.path.exists(here + '/env'):\n" /* the other one runs */
    "    time.sleep(0.01)\n"
    "with open(big, 'wb') as file:\n"
    "    file.write(b'x' * (16 << 20))\n"
    "end = time.monotonic() + float(sys.argv[1])\n"
    "body = '{\"path\":\"' + big + '\"}'\n"
    "ask = ('PUT /v1/tasks/none/checkpoint HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer ' "
    "+\n"
    "       os.environ['HOLDFAST_TOKEN'] + '\\r\\nContent-Type: application/json\\r\\n' +\n"
    "       'Content-Length: %d\\r\\n\\r\\n' % len(body) + body).encode()\n"
    "def name():\n"
    "    while time.monotonic() < end:\n"
    "        try:\n"
    "            with socket.socket(socket.AF_UNIX) as s:\n"
    "                s.settimeout(20)\n"
    "                s.connect(os.environ['HOLDFAST_SOCKET'])\n"
    "                s.sendall(ask)\n"
    "                s.recv(4096)\n"
    "        except OSError:\n"
    "            pass\n"
    "all = [threading.Thread(target=name) for i in range(64)]\n"
    "[t.start() for t in all]\n"
    "print('begun', flush=True)\n"
    "[t.join() for t in all]\n"
    "print('done', flush=True)\n"
    "time.sleep(600)\n";

static void start_two(struct hft_program *agentd, const char *script, int seconds)
{
    char config[300], text[1000];

    write_file("agentd.yaml", "host: h1\nlaunchers: [flood.yaml, rest.yaml]\n"
                              "agents: [a1.yaml, a2.yaml]\n");
    write_file("flood.py", script);
    (void)snprintf(text, sizeof text, "name: flood\ncommand: [python3, %s/flood.py, '%d']\n",
                   dir.path, seconds);
    write_file("flood.yaml", text);
    (void)snprintf(text, sizeof text, "name: rest\ncommand: [sh, -c, '" SHOW_ENV "', %s]\n",
                   dir.path);
    write_file("rest.yaml", text);
    write_file("a1.yaml", "name: a1\nlauncher: flood\n");
    write_file("a2.yaml", "name: a2\nlauncher: rest\nrole: r1\n");
    (void)snprintf(config, sizeof config, "%s/agentd.yaml", dir.path);
    hft_program_start(agentd, "agentd", dir.path, "agentd", server.endpoint, "--config", config,
                      "--state-dir", dir.path, "--ttl", "10s", NULL);
}

static bool is_flooded_or_claims(void *arg)
{
    hf_ms before = hft_now(), *slowest = arg;

    ck_assert_int_eq(ask("POST", "/v1/tasks/claim", "{\"wait\":\"0s\"}", token), 204);
    if (hft_now() - before > *slowest)
        *slowest = hft_now() - before;
    return is_logged(&(struct line){ "agents/a1.log", "done" });
}

START_TEST(one_that_asks_and_asks_disturbs_nobody)
{
    struct hft_program agentd = { 0 };
    hf_rev first, second;
    hf_ms slowest = 0;

    start_two(&agentd, FLOOD, FLOOD_S);
    hft_wait_or_fail(is_ready, NULL, STEP_MS, "the agent");
    (void)snprintf(sock, sizeof sock, "%s/agents/a2.sock", dir.path);
    await_line("agents/a1.log", "begun");
    first = look("agents/a1/live").create_rev;
    second = look("agents/a2/live").create_rev;
    await_line("agents/a1.log", "HTTP/1.1 429");
    await_line("agents/a1.log", "Retry-After: 1");
    await_line("agents/a1.log", "more requests per second than api.rate allows");
    hft_wait_or_fail(is_flooded_or_claims, &slowest, STEP_MS, "the end of the flood");
    printf("the slowest claim took %lld ms\n", (long long)slowest);
    ck_assert_int_lt(slowest, 10000); /* a lease; most of it is curl's on a flooded machine */
    ck_assert_int_eq(look("agents/a1/live").create_rev, first);
    ck_assert_int_eq(look("agents/a2/live").create_rev, second);
    ck_assert(!hft_program_said(&agentd, "event=jeopardy"));
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    check_log();
}
END_TEST

/* To read and to digest them takes longer than a loop with a lease to renew may stand still. */
START_TEST(one_that_names_large_files_disturbs_nobody)
{
    struct hft_program agentd = { 0 };
    hf_rev second;
    hf_ms slowest = 0;

    start_two(&agentd, FILES, FILES_S);
    hft_wait_or_fail(is_ready, NULL, STEP_MS, "the agent");
    (void)snprintf(sock, sizeof sock, "%s/agents/a2.sock", dir.path);
    await_line("agents/a1.log", "begun");
    second = look("agents/a2/live").create_rev;
    hft_wait_or_fail(is_flooded_or_claims, &slowest, STEP_MS, "the end of it");
    printf("the slowest claim took %lld ms\n", (long long)slowest);
    ck_assert_int_lt(slowest, 5000);
    ck_assert_int_eq(look("agents/a2/live").create_rev, second);
    ck_assert(!hft_program_said(&agentd, "event=fence"));
    ck_assert(!hft_program_said(&agentd, "event=jeopardy"));
    ck_assert_int_eq(hft_program_stop(&agentd), 0);
    check_log();
}
END_TEST

/* First what is stored as it is, then what has to be read. */
static const char LENGTHS[] =
    "import os, socket, time\n"
    "head = ' HTTP/1.1\\r\\nHost: x\\r\\nAuthorization: Bearer ' + "
    "os.environ['HOLDFAST_TOKEN']\n"
    "def codes(what, body):\n"
    "    found = set()\n"
    "    for i in range(40):\n"
    "        with socket.socket(socket.AF_UNIX) as s:\n"
    "            s.connect(os.environ['HOLDFAST_SOCKET'])\n"
    "            s.sendall((what + head + '\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body) "
    "+\n"
    "                       body).encode())\n"
    "            found.add(s.recv(4096).decode().split()[1])\n"
    "    print(what, *sorted(found), '.', flush=True)\n"
    "codes('PUT /v1/tasks/none/checkpoint', 'x' * 900000)\n"
    "codes('POST /v1/heartbeat', '{\"phase\":\"' + 'x' * 900000 + '\"}')\n"
    "time.sleep(600)\n";

/* To read them takes our time, of which it gets no more than by many short ones. */
START_TEST(long_requests_count_as_many)
{
    pid_t agentd = start("a1", (const char *[]){ "python3", "-c", LENGTHS, NULL });

    await_line("agents/a1.log", "PUT /v1/tasks/none/checkpoint 404 .");
    await_line("agents/a1.log", "POST /v1/heartbeat 400 429 .");
    (void)stop(agentd);
}
END_TEST

/* Says something else every second, which is no heartbeat, but is reported at once. */
#define TALK(times)                                                                            \
    "for i in $(seq " times "); do sleep 1; " CURL                                             \
    "-d '{\"state\":\"ready\",\"reason\":\"'$i'\"}' http://localhost/v1/state; done; "         \
    "exec sleep 600"

/* Whoever has begun to send heartbeats, and nobody else, is missed. */
START_TEST(heartbeats_that_do_not_come_are_counted)
{
    static const char MISSED[] = "\"heartbeats_missed\":\"";
    static const char *const SCRIPTS[] = {
        TALK("5"), CURL "-d '{}' http://localhost/v1/heartbeat; " TALK("60")
    };
    const char *flags[] = { "--heartbeat", "1s", NULL };
    pid_t agentd = start_with("a1", flags, (const char *[]){ "sh", "-c", SCRIPTS[_i], NULL });

    await("agents/a1/report", _i == 0 ? "\"reason\":\"5\"" : MISSED);
    ck_assert_int_eq(strstr(look("agents/a1/report").value, MISSED) != NULL, _i);
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories"), *floods = tcase_create("floods");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 240);
    tcase_add_checked_fixture(floods, setup, teardown);
    tcase_set_timeout(floods, 240);
    tcase_add_test(stories, an_agent_is_answered_after_etcd_has_it_and_told_what_is_wrong);
    tcase_add_test(stories, an_agent_may_speak_as_to_systemd);
    tcase_add_loop_test(stories, whatever_an_agent_asks_first_it_has_started, 0,
                        sizeof FIRST_ASKS / sizeof FIRST_ASKS[0]);
    tcase_add_test(stories, who_listens_hears_that_it_is_to_end);
    tcase_add_test(stories, while_etcd_is_away_an_agent_is_told_so);
    tcase_add_loop_test(stories, heartbeats_that_do_not_come_are_counted, 0, 2);
    tcase_add_test(floods, one_that_asks_and_asks_disturbs_nobody);
    tcase_add_test(floods, one_that_names_large_files_disturbs_nobody);
    tcase_add_test(floods, long_requests_count_as_many);
    return hft_suite_run("agentd: local API", stories, floods, NULL);
}
