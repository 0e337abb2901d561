/* An agent whose processes multiply, flee and wake each other up: keeper_swarm KIND, with a
 * page in $D/swarm in which they count what they do. None of them ends by itself. */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "keeper_swarm.h"

static struct swarm_page *page;

static void step(int name)
{
    page->steps++;
    page->each[name]++;
}

static void pause_us(long us)
{
    (void)nanosleep(&(struct timespec){ .tv_nsec = us * 1000 }, NULL);
}

static void take_name(int name)
{
    page->pids[name] = getpid();
}

_Noreturn static void count(int name)
{
    take_name(name);
    for (;;) {
        step(name);
        pause_us(200);
    }
}

static void deafen(void)
{
    sigset_t all;

    for (int signal = 1; signal < SIGRTMAX; signal++)
        (void)sigaction(signal, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
    (void)sigfillset(&all);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
}

/* As fast as it goes, everybody, for ever. Half of those who have a child leave the rest to it,
 * some in a session of their own. There may be so many and no more, as the test has seen to:
 * some of those who cannot have a child make room. */
_Noreturn static void bomb(void)
{
    unsigned seed = (unsigned)getpid();

    (void)signal(SIGCHLD, SIG_IGN);
    for (;;) {
        pid_t pid = fork();

        step(0);
        if (pid == 0) {
            seed = (unsigned)getpid();
            page->births++;
            if (rand_r(&seed) % 8 == 0)
                (void)setsid();
        } else if (rand_r(&seed) % (pid > 0 ? 2 : 8) == 0) {
            _exit(0);
        } else if (pid < 0) {
            pause_us(1000);
        }
    }
}

/* One process at a time, and never the same for long: a new one in a new session, and the old
 * one goes. */
_Noreturn static void comet(int name)
{
    for (;;) {
        pid_t pid = fork();

        if (pid > 0)
            _exit(0);
        if (pid == 0) {
            (void)setsid();
            take_name(name);
            page->births++;
        }
        step(name);
    }
}

/* Each continues its neighbours for ever, whoever stopped them. */
_Noreturn static void wake_others(int name, int count)
{
    take_name(name);
    for (;;) {
        for (int i = 0; i < count; i++) {
            if (i != name && page->pids[i] > 0)
                (void)kill(page->pids[i], SIGCONT);
        }
        step(name);
    }
}

/* Two of whom one runs at a time: it wakes the other and lies down, so that who looks at one
 * after the other may find both lying. Should one be woken before it lies, stir() helps. */
_Noreturn static void take_turns(int name)
{
    take_name(name);
    for (;;) {
        step(name);
        pause_us(300);
        if (page->pids[1 - name] > 0)
            (void)kill(page->pids[1 - name], SIGCONT);
        (void)kill(getpid(), SIGSTOP);
    }
}

_Noreturn static void stir(void)
{
    for (;;) {
        for (int name = 0; name < 2; name++) {
            if (page->pids[name] > 0)
                (void)kill(page->pids[name], SIGCONT);
        }
        pause_us(20000);
    }
}

/* Has itself stopped, for good; a step means that somebody has continued it. */
_Noreturn static void lie_down(int name, int signal)
{
    take_name(name);
    (void)kill(getpid(), signal);
    count(name);
}

static pid_t split(void)
{
    pid_t pid = fork();

    if (pid < 0)
        _exit(9);
    return pid;
}

/* A grandchild that a child leaves behind, in another session and without a parent of its own.
 */
static pid_t leave_behind(void)
{
    pid_t pid = split();

    if (pid != 0) {
        (void)waitpid(pid, NULL, 0);
        return 1;
    }
    (void)setsid();
    if (split() != 0)
        _exit(0);
    (void)setsid();
    return 0;
}

/* A child of its own parent's: a brother. */
static pid_t make_brother(void)
{
    return (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
}

static void *count_in_thread(void *arg)
{
    (void)arg;
    count(5);
}

/* The first thread is gone, and the process lives on. */
_Noreturn static void lose_main_thread(void)
{
    pthread_t thread;

    take_name(5);
    if (pthread_create(&thread, NULL, count_in_thread, NULL) != 0)
        _exit(9);
    pthread_exit(NULL);
}

/* Holds a child as a debugger does: stopped, from its first moment on. */
_Noreturn static void hold_another(void)
{
    pid_t pid = split();
    int status;

    if (pid == 0) {
        (void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        (void)raise(SIGSTOP);
        count(7);
    }
    (void)waitpid(pid, &status, 0);
    page->pids[7] = pid;
    count(6);
}

/* The parent stands in the kernel for as long as its child has not begun another program. */
_Noreturn static void lend_memory(void)
{
    if (vfork() == 0)
        count(4);
    _exit(9);
}

/* Whatever a tree may have in it, each by another way; see the names in the test. */
_Noreturn static void family(void)
{
    if (leave_behind() == 0)
        count(1);
    if (make_brother() == 0)
        count(2);
    if (leave_behind() == 0) {
        deafen();
        count(3);
    }
    if (split() == 0)
        lend_memory();
    if (split() == 0)
        lose_main_thread();
    if (leave_behind() == 0)
        hold_another();
    if (split() == 0)
        lie_down(8, SIGSTOP);
    if (leave_behind() == 0) {
        if (split() == 0)
            lie_down(9, SIGSTOP);
        count(10);
    }
    /* A terminal's stop is for a group that somebody could continue: its parent is in another.
     */
    if (split() == 0) {
        (void)setpgid(0, 0);
        lie_down(11, SIGTSTP);
    }
    if (leave_behind() == 0) {
        if (getuid() == 0 && setresuid(65533, 65533, 65533) < 0)
            _exit(9);
        count(12);
    }
    count(0);
}

int main(int argc, char **argv)
{
    char path[4096];
    const char *kind = argc == 2 ? argv[1] : "";

    (void)snprintf(path, sizeof path, "%s/swarm", getenv("D"));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || page == MAP_FAILED)
        return 9;
    while (page->go == 0)
        pause_us(1000);
    if (strcmp(kind, "bomb") == 0 && split() == 0)
        bomb();
    if (strcmp(kind, "family") == 0)
        family();
    for (int name = 1; strcmp(kind, "comets") == 0 && name < 4; name++) {
        if (split() == 0)
            comet(name);
    }
    for (int name = 1; strcmp(kind, "wakers") == 0 && name < 6; name++) {
        if (split() == 0)
            wake_others(name, 6);
    }
    if (strcmp(kind, "turns") == 0) {
        for (int name = 0; name < 2; name++) {
            if (split() == 0)
                take_turns(name);
        }
        stir();
    }
    count(0);
}
