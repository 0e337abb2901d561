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

/* Links are started by a script: they wait while the file `wait` is there, and are broken while
 * `broken` is. Who asks for their version gets what `speaks` does, and while that is there
 * none can begin, as one of another version cannot. */
static const char *const *begin_scripted_links(void)
{
    static char variable[500];
    static const char *list[8];
    char path[400], script[2400];
    size_t count = 0;

    (void)snprintf(script, sizeof script,
                   "#!/bin/sh\ncd %s\n"
                   "if test \"$1\" = --protocol; then\n"
                   "test -e speaks && exec sh ./speaks\nexec %s \"$@\"\nfi\n"
                   "echo $$ >>starts\ntest -e speaks && exit 1\n"
                   "while test -e wait; do sleep 0.02; done\n"
                   "test -e broken && exit 7\nexec %s \"$@\"\n",
                   dir.path, link_program(), link_program());
    write_file("link", script);
    (void)snprintf(path, sizeof path, "%s/link", dir.path);
    ck_assert_int_eq(chmod(path, 0755), 0);
    (void)snprintf(variable, sizeof variable, "HOLDFAST_AGENTD_LINK=%s", path);
    list[count++] = variable;
    for (const char *const *more = sanitizer_env(); *more != NULL; more++)
        list[count++] = *more;
    list[count] = NULL;
    return list;
}

static void remove_file(const char *name)
{
    char path[400];

    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    ck_assert_int_eq(unlink(path), 0);
}

/* What is sent while there is no link waits for the next one, and a socket that is connected
 * stays so. */
START_TEST(a_program_that_speaks_as_to_systemd_notices_no_link)
{
    char path[400];
    pid_t agentd;

    variables = begin_scripted_links();
    agentd = start("a1", (const char *[]){ "python3", "-c", SPEAKER, dir.path, NULL });
    say("STATUS=one");
    await("agents/a1/report", "\"phase\":\"one\"");
    write_file("wait", "");
    kill_link();
    await_line("agentd.log", "event=link_ended");
    say("READY=1\nSTATUS=two");
    remove_file("wait");
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

/* A report may have to wait, and a link may be replaced meanwhile: what it was about to say of
 * an announcement that is over must not wait for the end of that. */
START_TEST(an_announcement_that_was_taken_back_does_not_return_with_a_new_link)
{
    pid_t agentd = start("a1", (const char *[]){ "python3", "-c", SPEAKER, dir.path, NULL });

    say("STATUS=one\nREADY=1");
    await("agents/a1/report", "\"state\":\"ready\"");
    say("EXTEND_TIMEOUT_USEC=3600000000");
    await("agents/a1/report", "\"state\":\"busy\"");
    (void)hft_put(&hand, ROOT "meta", "{\"rates\":{\"report\":\"3600s\"}}", HF_NO_LEASE);
    hft_pass_until(hft_now() + 2000); /* by then an ordinary report would not have to wait */
    say("READY=1");
    kill_link();
    await_link(2);
    await("agents/a1/report", "\"state\":\"ready\"");
    ck_assert_ptr_null(strstr(look("agents/a1/report").value, "\"until\""));
    (void)stop(agentd);
}
END_TEST

static pid_t start_sleeper(void)
{
    /* No lease ends while a link hangs, or takes its time on a machine that is busy. */
    const char *flags[] = { "--ttl", "60s", NULL };
    pid_t agentd;

    variables = begin_scripted_links();
    agentd = start_with("a1", flags, (const char *[]){ "sleep", "600", NULL });
    variables = NULL;
    await("agents/a1/live", "\"pid\"");
    await_link(1);
    return agentd;
}

static bool has_started_links(void *arg)
{
    char *starts = read_file("starts");
    int count = 0;

    for (const char *p = starts; *p != '\0'; p++)
        count += *p == '\n';
    free(starts);
    return count >= *(const int *)arg;
}

/* A process that was started is no link yet. */
START_TEST(an_upgrade_is_done_when_the_new_link_is_ready)
{
    pid_t agentd = start_sleeper(), upgrade;
    int status;

    write_file("wait", "");
    upgrade = hft_process_spawn(&(struct hft_spawn){
        .argv = (const char *[]){ AGENTD, "upgrade", "--state-dir", dir.path, NULL },
        .env = hft_sanitizer_env() });
    hft_wait_or_fail(has_started_links, &(int){ 2 }, STEP_MS, "another link's start");
    hft_pass_until(hft_now() + 300); /* fifteen looks of its */
    ck_assert(!hft_process_has_ended(upgrade, &status));
    remove_file("wait");
    ck_assert_int_eq(hft_process_reap(upgrade, STEP_MS), 0);
    (void)stop(agentd);
}
END_TEST

START_TEST(an_upgrade_to_a_link_that_cannot_begin_says_so)
{
    pid_t agentd = start_sleeper();
    hf_rev life = look("agents/a1/live").create_rev;
    HFT_CLEANUP_OUTPUT struct hft_output output;

    write_file("broken", "");
    hft_process_run((const char *[]){ AGENTD, "upgrade", "--state-dir", dir.path, NULL },
                    hft_sanitizer_env(), &output);
    ck_assert_int_eq(output.status, 1);
    ck_assert_msg(strstr(output.err, "ended with status 7") != NULL, "%s", output.err);
    remove_file("broken");
    await_link(2);
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    (void)stop(agentd);
}
END_TEST

static void expect_refusal(const char *speaks, const char *why)
{
    HFT_CLEANUP_OUTPUT struct hft_output output;

    write_file("speaks", speaks);
    hft_process_run((const char *[]){ AGENTD, "upgrade", "--state-dir", dir.path, NULL },
                    hft_sanitizer_env(), &output);
    ck_assert_msg(output.status == 1 && strstr(output.err, why) != NULL, "%d: %s%s",
                  output.status, output.out, output.err);
}

/* Neither the agent nor anybody else notices; when the right one is there it can come. */
START_TEST(a_link_that_the_keeper_could_not_speak_to_is_not_let_come)
{
    pid_t agentd = start_sleeper(), link = pid_in("link.pid");
    struct hft_outcome before = look("agents/a1/live"), after;
    HFT_CLEANUP_OUTPUT struct hft_output output;

    expect_refusal("echo 999 9.9.9\n", "(9.9.9) speaks version 999, the keeper that runs "
                                       "version 1: restart agentd at a quiet time");
    expect_refusal("echo unknown option >&2\nexit 2\n",
                   "does not say which version it speaks (status 2)");
    expect_refusal("echo hello\n", "does not say which version it speaks");
    expect_refusal("exec sleep 600\n", "did not say within 10 s");
    after = look("agents/a1/live");
    ck_assert_int_eq(pid_in("link.pid"), link);
    ck_assert(!has_started_links(&(int){ 2 }));
    ck_assert_int_eq(after.mod_rev, before.mod_rev);
    ck_assert_int_eq(after.lease, before.lease);

    remove_file("speaks");
    hft_process_run((const char *[]){ AGENTD, "upgrade", "--state-dir", dir.path, NULL },
                    hft_sanitizer_env(), &output);
    ck_assert_msg(output.status == 0, "%s", output.err);
    await_link(2);
    after = look("agents/a1/live");
    ck_assert_int_eq(after.create_rev, before.create_rev);
    ck_assert_int_eq(after.lease, before.lease);
    (void)stop(agentd);
}
END_TEST

static bool is_stopped(void *arg)
{
    return hft_process_state(*(const pid_t *)arg) == 'T';
}

/* It has stopped, or waits for something that never comes: nobody else would replace it. */
START_TEST(an_upgrade_replaces_a_link_that_hangs)
{
    pid_t agentd = start_sleeper(), link = pid_in("link.pid");
    hf_rev life = look("agents/a1/live").create_rev;
    HFT_CLEANUP_OUTPUT struct hft_output output;

    ck_assert_int_eq(kill(link, SIGSTOP), 0);
    hft_wait_or_fail(is_stopped, &link, STEP_MS, "the link to stop");
    hft_process_run((const char *[]){ AGENTD, "upgrade", "--state-dir", dir.path, NULL },
                    hft_sanitizer_env(), &output);
    ck_assert_msg(output.status == 0, "%s", output.err);
    ck_assert_int_ne(pid_in("link.pid"), link);
    await_link(2);
    ck_assert_int_eq(look("agents/a1/live").create_rev, life);
    (void)stop(agentd);
}
END_TEST

int main(void)
{
    TCase *stories = tcase_create("stories");

    tcase_add_checked_fixture(stories, setup, teardown);
    tcase_set_timeout(stories, 240);
    tcase_add_test(stories, a_program_that_speaks_as_to_systemd_notices_no_link);
    tcase_add_test(stories,
                   an_announcement_that_was_taken_back_does_not_return_with_a_new_link);
    tcase_add_test(stories, an_upgrade_is_done_when_the_new_link_is_ready);
    tcase_add_test(stories, an_upgrade_to_a_link_that_cannot_begin_says_so);
    tcase_add_test(stories, a_link_that_the_keeper_could_not_speak_to_is_not_let_come);
    tcase_add_test(stories, an_upgrade_replaces_a_link_that_hangs);
    return hft_suite_run("agentd: one link after another", stories, NULL);
}
