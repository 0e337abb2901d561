#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "support/suite.h"
#include "support/tempdir.h"

static struct hft_tempdir dir;
static char path[HFT_PATH_MAX + 16], beside[HFT_PATH_MAX + 32];
static struct hf_error why;

static void setup(void)
{
    hft_tempdir_init(&dir);
    (void)snprintf(path, sizeof path, "%s/x", dir.path);
    (void)snprintf(beside, sizeof beside, "%s.new", path);
}

static void teardown(void)
{
    hft_tempdir_done(&dir);
}

static void expect(int fd, const char *text)
{
    char found[64] = "";

    ck_assert_int_ge(read(fd, found, sizeof found - 1), 0);
    ck_assert_str_eq(found, text);
}

START_TEST(a_file_is_replaced_and_nothing_else_is_left)
{
    HF_CLEANUP_FD int old = -1, new = -1;

    ck_assert_int_eq(hf_file_write(path, "one", 3, &why), HF_OK);
    old = open(path, O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(hf_file_write(path, "two", 3, &why), HF_OK);
    new = open(path, O_RDONLY | O_CLOEXEC);
    expect(old, "one"); /* whoever has it open goes on with what it was */
    expect(new, "two");
    ck_assert_int_ne(access(beside, F_OK), 0);
}
END_TEST

START_TEST(what_is_no_file_is_written_to_and_stays)
{
    HF_CLEANUP_FD int reader = -1;
    struct stat info;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ck_assert_int_eq(hf_file_write(path, "one", 3, &why), HF_OK);
    expect(reader, "one");
    ck_assert_int_eq(stat(path, &info), 0);
    ck_assert(S_ISFIFO(info.st_mode));
}
END_TEST

START_TEST(what_cannot_be_written_says_why)
{
    char far[HFT_PATH_MAX + 32];

    (void)snprintf(far, sizeof far, "%s/none/x", dir.path);
    ck_assert_int_eq(hf_file_write(far, "one", 3, &why), HF_EIO);
    ck_assert_msg(strstr(why.text, "No such file") != NULL, "%s", why.text);
    ck_assert_int_eq(mkdir(path, 0700), 0);
    ck_assert_int_eq(hf_file_write(path, "one", 3, &why), HF_EIO);
    ck_assert_int_ne(access(beside, F_OK), 0);
}
END_TEST

START_TEST(a_file_without_a_name_is_nowhere)
{
    HF_CLEANUP_FD int fd = hf_file_open_nameless(dir.path);
    struct stat info;
    char text[4] = "";

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fstat(fd, &info), 0);
    ck_assert_uint_eq(info.st_nlink, 0);
    ck_assert_int_eq(pwrite(fd, "one", 3, 0), 3);
    ck_assert_int_eq(pread(fd, text, 3, 0), 3);
    ck_assert_str_eq(text, "one");
    ck_assert_int_eq(rmdir(dir.path), 0); /* nothing is in it */
    ck_assert_int_lt(hf_file_open_nameless(dir.path), 0);
    ck_assert_int_eq(mkdir(dir.path, 0700), 0);
}
END_TEST

/* In a process of its own: the test needs its own descriptors. */
START_TEST(closed_standard_descriptors_are_filled)
{
    pid_t child = fork();
    int status;

    if (child == 0) {
        (void)close(STDIN_FILENO);
        (void)close(STDERR_FILENO);
        hf_stdio_fill();
        _exit(fcntl(STDIN_FILENO, F_GETFD) == 0 && fcntl(STDOUT_FILENO, F_GETFD) == 0 &&
                      fcntl(STDERR_FILENO, F_GETFD) == 0
                  ? 0
                  : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
END_TEST

START_TEST(a_program_is_found_as_a_shell_would_find_it)
{
    char both[2 * HFT_PATH_MAX];

    (void)snprintf(both, sizeof both, "/no/such::%s", dir.path);
    ck_assert(!hf_file_is_program("x", both));
    ck_assert_int_eq(hf_file_write(path, "#!/bin/sh\n", 10, &why), HF_OK);
    ck_assert(!hf_file_is_program("x", both)); /* nobody may run it */
    ck_assert_int_eq(chmod(path, 0700), 0);
    ck_assert(hf_file_is_program("x", both));
    ck_assert(hf_file_is_program(path, ""));
    ck_assert(!hf_file_is_program("x", "/no/such"));
    ck_assert(!hf_file_is_program(dir.path, "")); /* a directory */
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("file");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_file_is_replaced_and_nothing_else_is_left);
    tcase_add_test(t, what_is_no_file_is_written_to_and_stays);
    tcase_add_test(t, what_cannot_be_written_says_why);
    tcase_add_test(t, a_file_without_a_name_is_nowhere);
    tcase_add_test(t, closed_standard_descriptors_are_filled);
    tcase_add_test(t, a_program_is_found_as_a_shell_would_find_it);
    return hft_suite_run("base/file", t, NULL);
}
