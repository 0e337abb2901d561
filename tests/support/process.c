#include "support/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "base/cleanup.h"
#include "support/rights.h"
#include "support/wait.h"

#define ENV_MAX        16
#define RUN_TIMEOUT_MS 60000

/* The library's own functions would ask other threads to follow. */
static bool become_nobody(void)
{
    return syscall(SYS_setgroups, 0, NULL) == 0 &&
           syscall(SYS_setresgid, HFT_NOBODY, HFT_NOBODY, HFT_NOBODY) == 0 &&
           syscall(SYS_setresuid, HFT_NOBODY, HFT_NOBODY, HFT_NOBODY) == 0;
}

/* Between fork and exec: other threads may have held locks, so only system calls. */
static void become_child(const struct hft_spawn *spawn, pid_t parent, int null_fd)
{
    sigset_t none;

    if (spawn->as_nobody && !become_nobody())
        _exit(127);
    /* Only now: who becomes another forgets whom to die with. */
    if (spawn->outlives) {
        (void)setsid();
    } else {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* it died before we could ask */
            _exit(127);
    }
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)signal(SIGPIPE, SIG_DFL);
    (void)dup2(spawn->in > 0 ? spawn->in : null_fd, STDIN_FILENO);
    if (spawn->out > 0)
        (void)dup2(spawn->out, STDOUT_FILENO);
    if (spawn->err > 0)
        (void)dup2(spawn->err, STDERR_FILENO);
}

const char *const *hft_sanitizer_env(void)
{
    static const char *const NAMES[] = { "ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS",
                                         "TSAN_OPTIONS" };
    static char text[4][1024];
    static const char *env[5];
    size_t count = 0;

    for (size_t i = 0; i < 4; i++) {
        const char *value = getenv(NAMES[i]);

        if (value == NULL)
            continue;
        ck_assert_int_lt(snprintf(text[i], sizeof text[i], "%s=%s", NAMES[i], value),
                         (int)sizeof text[i]);
        env[count++] = text[i];
    }
    env[count] = NULL;
    return env;
}

pid_t hft_process_spawn(const struct hft_spawn *spawn)
{
    HF_CLEANUP_FD int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    char path[4096];
    char *env[ENV_MAX + 3] = { path, (char *)"HOME=/nonexistent" };
    pid_t parent = getpid();

    ck_assert_int_ge(null_fd, 0);
    ck_assert_ptr_nonnull(getenv("PATH"));
    ck_assert_int_lt(snprintf(path, sizeof path, "PATH=%s", getenv("PATH")), (int)sizeof path);
    for (size_t i = 0; spawn->env != NULL && spawn->env[i] != NULL; i++) {
        ck_assert_uint_lt(i, ENV_MAX);
        env[i + 2] = (char *)spawn->env[i];
    }

    pid_t pid = fork();

    ck_assert_msg(pid >= 0, "fork: %s", strerror(errno));
    if (pid == 0) {
        become_child(spawn, parent, null_fd);
        (void)execvpe(spawn->argv[0], (char *const *)spawn->argv, env);
        _exit(127);
    }
    return pid;
}

/* Whether the child ends within `timeout`. It stays to be reaped. */
static bool ends_within(pid_t pid, hf_ms timeout)
{
    HF_CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    hf_ms deadline = hft_now() + timeout;

    /* valgrind does not know the call: there we look every few milliseconds. */
    ck_assert_msg(pidfd >= 0 || errno == ENOSYS, "pidfd_open: %s", strerror(errno));
    for (;;) {
        struct pollfd ended = { .fd = pidfd, .events = POLLIN };
        siginfo_t info = { 0 };
        hf_ms left = deadline - hft_now();

        ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT), 0);
        if (info.si_pid == pid || left <= 0)
            return info.si_pid == pid;
        (void)poll(&ended, 1, pidfd >= 0 || left < 5 ? (int)left : 5);
    }
}

/* The first bytes of a file of /proc, "" where there is none. */
static void read_proc(pid_t pid, const char *name, char *ret_text, size_t size)
{
    char path[64];
    ssize_t len = -1;

    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    HF_CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd >= 0)
        len = read(fd, ret_text, size - 1);
    ret_text[len > 0 ? len : 0] = '\0';
}

int hft_process_reap(pid_t pid, hf_ms timeout)
{
    bool ended = ends_within(pid, hft_patience(timeout));
    char stat[48] = "", wchan[48] = "";
    int status = 0;

    if (!ended) {
        read_proc(pid, "stat", stat, sizeof stat); /* number, name and state are enough */
        read_proc(pid, "wchan", wchan, sizeof wchan);
        (void)kill(pid, SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(ended, "process %d did not end by itself in time: %s, in %s", (int)pid, stat,
                  wchan);
    return status;
}

bool hft_process_has_ended(pid_t pid, int *ret_status)
{
    return waitpid(pid, ret_status, WNOHANG) == pid;
}

/* waitpid reports the stop only when every thread has stopped. */
static void signal_and_see(pid_t pid, int sig, int options)
{
    int status = 0;

    ck_assert_int_eq(kill(pid, sig), 0);
    ck_assert_int_eq(waitpid(pid, &status, options), pid);
    ck_assert_msg(sig == SIGSTOP ? WIFSTOPPED(status) : WIFCONTINUED(status),
                  "process %d ended instead of obeying signal %d", (int)pid, sig);
}

void hft_process_pause(pid_t pid)
{
    signal_and_see(pid, SIGSTOP, WUNTRACED);
}

void hft_process_resume(pid_t pid)
{
    signal_and_see(pid, SIGCONT, WCONTINUED);
}

static char *read_all(int fd)
{
    struct stat st;

    ck_assert_int_eq(fstat(fd, &st), 0);
    char *text = calloc(1, (size_t)st.st_size + 1);
    ck_assert_ptr_nonnull(text);
    ck_assert_int_eq(pread(fd, text, (size_t)st.st_size, 0), st.st_size);
    return text;
}

/* The output goes to files in memory, so a talkative program never waits for us. */
void hft_process_run(const char *const argv[], const char *const env[],
                     struct hft_output *ret_output)
{
    HF_CLEANUP_FD int out = memfd_create("out", MFD_CLOEXEC);
    HF_CLEANUP_FD int err = memfd_create("err", MFD_CLOEXEC);

    ck_assert_int_ge(out, 0);
    ck_assert_int_ge(err, 0);

    struct hft_spawn spawn = { .argv = argv, .env = env, .out = out, .err = err };
    int status = hft_process_reap(hft_process_spawn(&spawn), RUN_TIMEOUT_MS);

    *ret_output = (struct hft_output){
        .status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
        .out = read_all(out),
        .err = read_all(err),
    };
}

void hft_output_done(struct hft_output *output)
{
    free(output->out);
    free(output->err);
    *output = (struct hft_output){ 0 };
}
