#include <check.h>
#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "io/root.h"
#include "support/suite.h"
#include "support/tempdir.h"

static struct hft_tempdir dir;
static int fd = -1;
static char id[HF_ID_LEN + 1];
static struct hf_error why;

static void setup(void)
{
    hft_tempdir_init(&dir);
    fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
}

static void teardown(void)
{
    (void)close(fd);
    hft_tempdir_done(&dir);
}

START_TEST(an_id_is_made_once)
{
    char again[HF_ID_LEN + 1];

    ck_assert_int_eq(hf_root_read(fd, id), HF_ENOENT);
    ck_assert_int_eq(hf_root_make(fd, id, &why), HF_OK);
    ck_assert_int_eq(hf_root_make(fd, again, &why), HF_OK);
    ck_assert_str_eq(id, again);
    ck_assert_int_eq(hf_root_read(fd, again), HF_OK);
    ck_assert_str_eq(id, again);
    ck_assert_uint_eq(strlen(id), HF_ID_LEN);
}
END_TEST

/* Each begins with nothing there, as far as it can see. */
START_TEST(of_many_who_make_it_at_once_all_get_the_same)
{
    int pipes[2];
    pid_t pids[8];
    char found[HF_ID_LEN + 1];

    ck_assert_int_eq(pipe(pipes), 0);
    for (int i = 0; i < 8; i++) {
        pids[i] = fork();
        ck_assert_int_ge(pids[i], 0);
        if (pids[i] == 0) {
            if (hf_root_make(fd, id, NULL) != HF_OK ||
                write(pipes[1], id, sizeof id) != (ssize_t)sizeof id)
                _exit(1);
            _exit(0);
        }
    }
    ck_assert_int_eq(read(pipes[0], id, sizeof id), sizeof id);
    for (int i = 1; i < 8; i++) {
        ck_assert_int_eq(read(pipes[0], found, sizeof found), sizeof found);
        ck_assert_str_eq(found, id);
    }
    for (int i = 0; i < 8; i++)
        ck_assert_int_eq(waitpid(pids[i], NULL, 0), pids[i]);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}
END_TEST

static const char *const BAD[] = { "", "short\n", "01ARZ3NDEKTSV4RRFFQ69G5FAVxx\n",
                                   "../../../../../../../../..\n" };

START_TEST(what_is_no_id_is_not_taken_for_one)
{
    HF_CLEANUP_FD int file = openat(fd, HF_ROOT_FILE, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    ck_assert_int_eq(write(file, BAD[_i], strlen(BAD[_i])), (ssize_t)strlen(BAD[_i]));
    ck_assert_int_eq(hf_root_read(fd, id), HF_ECORRUPT);
    ck_assert_int_eq(hf_root_make(fd, id, &why), HF_ECORRUPT);
    ck_assert_ptr_nonnull(strstr(why.text, HF_ROOT_FILE));
}
END_TEST

START_TEST(a_link_is_not_followed)
{
    ck_assert_int_eq(symlinkat("elsewhere", fd, HF_ROOT_FILE), 0);
    ck_assert_int_eq(hf_root_read(fd, id), HF_EIO);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("root");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, an_id_is_made_once);
    tcase_add_test(t, of_many_who_make_it_at_once_all_get_the_same);
    tcase_add_loop_test(t, what_is_no_id_is_not_taken_for_one, 0, sizeof BAD / sizeof BAD[0]);
    tcase_add_test(t, a_link_is_not_followed);
    return hft_suite_run("io/root", t, NULL);
}
