/* Programs of a launcher: what they find, whom they run as, and how they end. */
#include "agentd/link/program.h"

#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/suite.h"

static struct {
    uv_process_t process;
    int64_t status;
    int signal;
    bool ended;
} ran;

static void on_ended(uv_process_t *process, int64_t status, int signal)
{
    ran.status = status;
    ran.signal = signal;
    ran.ended = true;
    uv_close((uv_handle_t *)process, NULL);
}

static void setup(void)
{
    memset(&ran, 0, sizeof ran);
}

static void run_command(const char **words, size_t count, const struct link_program *how,
                        bool kills)
{
    struct link_program program = *how;
    uv_loop_t loop;

    program.command = (struct hf_strings){ .items = words, .count = count };
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(link_program_start(&loop, &program, on_ended, &ran.process), HF_OK);
    if (kills)
        link_program_kill(&ran.process);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert(ran.ended);
}

static void run(const char *script, const struct link_program *how, bool kills)
{
    run_command((const char *[]){ "sh", "-c", script }, 3, how, kills);
}

static int open_text(const char *text)
{
    int fd = memfd_create("text", MFD_CLOEXEC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
    return fd;
}

START_TEST(it_finds_what_it_is_given_and_nothing_of_ours)
{
    const char *env[] = { "HOLDFAST_NUDGE=q1" };
    int input = open_text("why?");
    struct link_program how = { .env = { .items = env, .count = 1 },
                                .input = input,
                                .uid = (uid_t)-1 };

    ck_assert_int_eq(setenv("ETCDCTL_PASSWORD", "secret", 1), 0);
    run("[ \"$(cat)$HOLDFAST_NUDGE\" = 'why?q1' ] && ! env | grep -q secret", &how, false);
    ck_assert_int_eq(ran.status, 0);
    ck_assert_int_eq(ran.signal, 0);
    ck_assert_int_eq(close(input), 0);
}
END_TEST

START_TEST(it_runs_as_whom_it_is_told)
{
    int input = open_text("why?");
    struct link_program how = { .input = input, .uid = 65534, .gid = 65534 };

    if (geteuid() == 0) {
        run("[ \"$(id -u) $(id -g) $(id -G) $(cat)\" = '65534 65534 65534 why?' ]", &how,
            false);
        ck_assert_int_eq(ran.status, 0);
    }
    ck_assert_int_eq(close(input), 0);
}
END_TEST

START_TEST(without_input_there_is_none)
{
    struct link_program how = { .input = -1, .uid = (uid_t)-1 };

    run("[ -z \"$(cat)\" ]", &how, false);
    ck_assert_int_eq(ran.status, 0);
}
END_TEST

/* As many as a launcher lets pass. */
START_TEST(all_words_of_a_command_are_run)
{
    struct link_program how = { .input = -1, .uid = (uid_t)-1 };
    const char *words[LINK_PROGRAM_WORDS] = { "sh", "-c", "[ \"$# ${60}\" = '60 last' ]",
                                              "sh" };

    for (size_t i = 4; i + 1 < LINK_PROGRAM_WORDS; i++)
        words[i] = "word";
    words[LINK_PROGRAM_WORDS - 1] = "last";
    run_command(words, LINK_PROGRAM_WORDS, &how, false);
    ck_assert_int_eq(ran.status, 0);
}
END_TEST

START_TEST(all_variables_are_there)
{
    static char texts[LINK_PROGRAM_VARIABLES][16];
    const char *env[LINK_PROGRAM_VARIABLES];
    struct link_program how = { .env = { .items = env, .count = LINK_PROGRAM_VARIABLES },
                                .input = -1,
                                .uid = (uid_t)-1 };

    for (int i = 0; i < LINK_PROGRAM_VARIABLES; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "P%d=x", i);
        env[i] = texts[i];
    }
    run("[ $(env | grep -c '^P[0-9]*=x$') = 128 ]", &how, false);
    ck_assert_int_eq(ran.status, 0);
}
END_TEST

START_TEST(it_is_killed_in_its_own_group)
{
    struct link_program how = { .input = -1, .uid = (uid_t)-1 };

    run("sleep 1000; true", &how, true);
    ck_assert_int_eq(ran.signal, SIGKILL);
}
END_TEST

START_TEST(what_is_not_there_cannot_be_started)
{
    const char *command[] = { "/no/such/program" };
    struct link_program program = { .command = { .items = command, .count = 1 },
                                    .input = -1,
                                    .uid = (uid_t)-1 };
    uv_loop_t loop;

    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(link_program_start(&loop, &program, on_ended, &ran.process), HF_EIO);
    uv_close((uv_handle_t *)&ran.process, NULL);
    ck_assert_int_eq(uv_run(&loop, UV_RUN_DEFAULT), 0);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert(!ran.ended);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("program");

    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, it_finds_what_it_is_given_and_nothing_of_ours);
    tcase_add_test(t, it_runs_as_whom_it_is_told);
    tcase_add_test(t, without_input_there_is_none);
    tcase_add_test(t, all_words_of_a_command_are_run);
    tcase_add_test(t, all_variables_are_there);
    tcase_add_test(t, it_is_killed_in_its_own_group);
    tcase_add_test(t, what_is_not_there_cannot_be_started);
    return hft_suite_run("link/program", t, NULL);
}
