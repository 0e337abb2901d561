/* One link follows another: agents, and whoever asked for the change, can rely on it. */
#include "agentd_fixture.h"

#include "support/keeper.h"

/* Says what the file `say` has, over a socket that it connected once, as many programs do. */
static const char SPEAKER[] = "import os, socket, sys, time\n"
                              "os.chdir(sys.argv[1])\n"
                              "s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                              "s.connect(os.environ['NOTIFY_SOCKET'])\n"
                              "while True:\n"
                              "    time.sleep(0.02)\n"
                              "    try:\n"
                              "        words = open('say', 'rb').read()\n"
                              "    except FileNotFoundError:\n"
                              "        continue\n"
                              "    try:\n"
                              "        s.send(words)\n"
                              "    except OSError as error:\n"
                              "        open('failed', 'a').write(str(error) + '\\n')\n"
                              "    os.rename('say', 'said')\n";

static void say(const char *words)
{
    char from[400], to[400];

    write_file("say.new", words);
    (void)snprintf(from, sizeof from, "%s/say.new", dir.path);
    (void)snprintf(to, sizeof to, "%s/say", dir.path);
    ck_assert_int_eq(rename(from, to), 0);
    await_line("said", words);
}

/* Links wait in a script while the file `wait` is there. */
static const char *const *begin_waiting_links(void)
{
    static char variable[500];
    static const char *list[8];
    char path[400], script[1200];
    size_t count = 0;

    (void)snprintf(script, sizeof script,
                   "#!/bin/sh\nwhile test -e %s/wait; do sleep 0.02; done\n"
                   "exec " AGENTD_LINK " \"$@\"\n",
                   dir.path);
    write_file("link", script);
    (void)snprintf(path, sizeof path, "%s/link", dir.path);
    ck_assert_int_eq(chmod(path, 0755), 0);
    (void)snprintf(variable, sizeof variable, "HOLDFAST_AGENTD_LINK=%s", path);
    list[count++] = variable;
    for (const char *const *more = hft_sanitizer_env(); *more != NULL; more++)
        list[count++] = *more;
    list[count] = NULL;
    return list;
}

static void hold_links(bool hold)
{
    char path[400];

    (void)snprintf(path, sizeof path, "%s/wait", dir.path);
    if (hold)
        write_file("wait", "");
    else
        ck_assert_int_eq(unlink(path), 0);
}

/* What is sent while there is no link waits for the next one, and a socket that is connected
 * stays so. */
START_TEST(a_program_that_speaks_as_to_systemd_notices_no_link)
{
    char path[400];
    pid_t agentd;

    variables = begin_waiting_links();
    agentd = start("a1", (const char *[]){ "python3", "-c", SPEAKER, dir.path, NULL });
    say("STATUS=one");
    await("agents/a1/report", "\"phase\":\"one\"");
    hold_links(true);
    kill_link();
    await_line("agentd.log", "event=link_ended");
    say("READY=1\nSTATUS=two");
    hold_links(false);
    await("agents/a1/report", "\"phase\":\"two\"");
    await("agents/a1/report", "\"state\":\"ready\"");
    kill_link();
    await_link(3);
    say("STATUS=three");
    await("agents/a1/report", "\"phase\":\"three\"");
    (void)snprintf(path, sizeof path, "%s/failed", dir.path);
    ck_assert_int_ne(access(path, F_OK), 0);
    (void)stop(agentd);
    (void)snprintf(path, sizeof path, "%s/agents/a1.note", dir.path);
    ck_assert_int_ne(access(path, F_OK), 0);
    variables = NULL;
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 240);
    tcase_add_test(stories, a_program_that_speaks_as_to_systemd_notices_no_link);
    return hft_suite_run("agentd: one link after another", stories, NULL);
}
