/* member.c - one agent of a crowd, as a stranger writes it, that can be made to hang.
 *
 *     member WAY HOG-FILE
 *
 *     ping      does nothing but answer          feed    nothing but feed its watchdog
 *     beat      nothing but send heartbeats      plain   nothing at all
 *     tool      is busy, waits or is parked, and answers nothing meanwhile
 *     hand      works in a long call while another thread answers
 *     extend    asks for time by EXTEND_TIMEOUT_USEC, and feeds nothing meanwhile
 *     talk      says and asks something all the time, and answers
 *     say       the same, but listens to nothing
 *     beside    answers, beside a child that computes while there is a HOG-FILE
 *
 * The signals from SIGRTMIN on say how it hangs: see FAULTS. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <holdfast.h>

static struct hf_client *agentd;
static volatile sig_atomic_t fault = -1; /* how to hang; below 0: not at all */
static volatile unsigned long burnt;     /* so that what computes is not left out */

static void must(int rc, const struct hf_error *err)
{
    if (rc >= 0 || rc == HF_ECANCELED || fault >= 0)
        return;
    printf("%s %s\n", hf_err_name(rc), err->text);
    exit(1);
}

/* How it hangs. */

static void compute(void)
{
    for (;;)
        burnt++;
}

static void *compute_there(void *arg)
{
    (void)arg;
    compute();
    return NULL;
}

/* The loop waits for a thread that computes. */
static void await_a_thread(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, compute_there, NULL) == 0)
        (void)pthread_join(thread, NULL);
}

static void read_what_never_comes(void)
{
    int ends[2];
    char byte;

    if (pipe(ends) == 0)
        (void)!read(ends[0], &byte, 1);
}

static void deadlock(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    (void)pthread_mutex_lock(&lock);
    (void)pthread_mutex_lock(&lock);
}

static void (*const FAULTS[])(void) = { compute, await_a_thread, read_what_never_comes,
                                        deadlock };
enum { FAULT_COUNT = sizeof FAULTS / sizeof FAULTS[0] };

static void on_signal(int number)
{
    fault = number - SIGRTMIN;
    hf_client_interrupt(agentd);
}

static void hang_if_told(void)
{
    if (fault >= 0)
        FAULTS[fault]();
}

/* Ends at once when it is to hang. */
static void rest(long ms)
{
    struct timespec left = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

    (void)nanosleep(&left, NULL);
    hang_if_told();
}

/* What it says and hears. */

/* Answers for so long; below 0: for ever. */
static void answer(hf_ms length)
{
    struct hf_client_event event;
    struct timespec now;
    struct hf_error err;
    hf_ms end;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    end = now.tv_sec * 1000 + now.tv_nsec / 1000000 + length;
    do {
        must(hf_client_next_event(agentd, length < 0 ? -1 : length / 4 + 1, &event, &err),
             &err);
        hang_if_told();
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    } while (length < 0 || now.tv_sec * 1000 + now.tv_nsec / 1000000 < end);
}

static void *answer_there(void *arg)
{
    (void)arg;
    answer(-1);
    return NULL;
}

static void notify(const char *text)
{
    static int fd = -1;
    const char *path = getenv("NOTIFY_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };

    if (fd < 0)
        fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (path == NULL || strlen(path) >= sizeof address.sun_path)
        exit(1);
    memcpy(address.sun_path, path, strlen(path));
    (void)sendto(fd, text, strlen(text), MSG_NOSIGNAL, (struct sockaddr *)&address,
                 sizeof address);
}

static long watchdog_ms(void)
{
    const char *text = getenv("WATCHDOG_USEC");

    return text != NULL ? strtol(text, NULL, 10) / 1000 : 1000;
}

/* What it does, for ever. */

static void ping(void)
{
    answer(-1);
}

static void feed(void)
{
    for (;;) {
        notify("WATCHDOG=1");
        rest(watchdog_ms() / 2);
    }
}

static void beat(void)
{
    struct hf_client_waiting waiting;
    struct hf_error err;

    for (;;) {
        must(hf_client_heartbeat(agentd, NULL, &waiting, &err), &err);
        rest(waiting.interval);
    }
}

static void plain(void)
{
    for (;;)
        rest(3600000);
}

/* A call that takes long, in which nothing is answered, of which it said how long. */
static void tool(void)
{
    static const enum hf_client_state STATES[] = { HF_CLIENT_BUSY, HF_CLIENT_WAITING,
                                                   HF_CLIENT_PARKED, HF_CLIENT_DRAINING };
    unsigned seed = (unsigned)getpid();
    struct hf_error err;

    for (;;) {
        long length = 5000 + rand_r(&seed) % 20000;

        answer(2000 + rand_r(&seed) % 8000);
        must(hf_client_set_state(agentd, STATES[rand_r(&seed) % 4], length + 5000, "a call",
                                 &err),
             &err);
        rest(length);
        must(hf_client_ready(agentd, &err), &err);
    }
}

static void hand(void)
{
    pthread_t thread;
    sigset_t faults;

    if (pthread_create(&thread, NULL, answer_there, NULL) != 0)
        exit(1);
    sigfillset(&faults); /* it is the other one that is to hang */
    (void)pthread_sigmask(SIG_BLOCK, &faults, NULL);
    for (;;)
        (void)poll(NULL, 0, 60000);
}

static void extend(void)
{
    unsigned seed = (unsigned)getpid();
    char text[64];

    for (;;) {
        long length = 5000 + rand_r(&seed) % 15000;

        for (int i = 0; i < 4; i++) {
            notify("WATCHDOG=1");
            rest(watchdog_ms() / 2);
        }
        (void)snprintf(text, sizeof text, "EXTEND_TIMEOUT_USEC=%ld", (length + 5000) * 1000);
        notify(text);
        rest(length);
    }
}

static void say_something(void)
{
    static int64_t number;
    struct hf_client_report report = { .status = HF_CLIENT_HEALTHY, .tokens = ++number };
    struct hf_error err;

    must(number % 3 == 0 ? hf_client_heartbeat(agentd, &report, NULL, &err)
                         : hf_client_activity(agentd, &report, NULL, &err),
         &err);
}

static void talk(void)
{
    for (;;) {
        say_something();
        answer(200);
    }
}

static void say(void)
{
    for (;;) {
        say_something();
        rest(200);
    }
}

static void compute_while_there_is(const char *file)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        if (access(file, F_OK) != 0)
            rest(50);
        for (unsigned long i = 0; access(file, F_OK) == 0 && i < 10; i++) {
            for (unsigned long end = burnt + 1000000; burnt < end;)
                burnt++;
        }
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} WAYS[] = {
    { "ping", ping },   { "feed", feed },     { "beat", beat }, { "plain", plain },
    { "tool", tool },   { "hand", hand },     { "talk", talk }, { "say", say },
    { "beside", ping }, { "extend", extend },
};

int main(int argc, char **argv)
{
    struct sigaction hangs = { .sa_handler = on_signal };
    struct hf_error err = { "" };

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "beside") == 0 && fork() == 0)
        compute_while_there_is(argv[2]);
    must(hf_client_new(NULL, &agentd, &err), &err);
    for (int i = 0; i < FAULT_COUNT; i++)
        (void)sigaction(SIGRTMIN + i, &hangs, NULL);
    printf("begins to %s\n", argv[1]);
    for (size_t i = 0; i < sizeof WAYS / sizeof WAYS[0]; i++) {
        if (strcmp(WAYS[i].name, argv[1]) == 0)
            WAYS[i].run();
    }
    return 2;
}
