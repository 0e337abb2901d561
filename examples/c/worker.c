/* worker.c - an agent that does tasks in steps and survives its own death.
 *
 * It asks its agentd for work, keeps a checkpoint after every step, and goes on after the last
 * step that its predecessor kept. It needs libholdfast, and jansson for the payloads:
 *
 *     cc worker.c $(pkg-config --cflags --libs holdfast jansson) -o worker
 *     agentd run --name w1 --role demo -- ./worker
 *     holdfast task submit --role demo --payload '{"steps": 20, "seconds": 1}'
 *
 * What a step does to the world outside is a line in the file that LEDGER names, if it names
 * one: nothing takes it back, so it shows how often each step was really done. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <holdfast.h>
#include <jansson.h>

enum { STEPS = 10 };

static struct hf_client *agentd;
static volatile sig_atomic_t asked_to_stop;

static void pause_for(double seconds)
{
    struct timespec left = { .tv_sec = (time_t)seconds,
                             .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

    while (nanosleep(&left, &left) != 0 && !asked_to_stop)
        ;
}

/* The step's effect: "TASK STEP AGENT INCARNATION PID", at the end of the file, in one piece.
 */
static int leave_mark(const char *task, int step)
{
    const char *ledger = getenv("LEDGER");
    char line[600];
    int len, fd;
    ssize_t written;

    if (ledger == NULL)
        return 1;
    len = snprintf(line, sizeof line, "%s %d %s %s %d\n", task, step, getenv("HOLDFAST_AGENT"),
                   getenv("HOLDFAST_INCARNATION"), (int)getpid());
    fd = open(ledger, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    written = fd >= 0 ? write(fd, line, (size_t)len) : -1;
    if (fd >= 0)
        (void)close(fd);
    return written == len;
}

/* The last step that was kept, 0 when none was, or an error. */
static int last_step(const char *task, struct hf_error *err)
{
    struct hf_client_checkpoint kept = { 0 };
    int rc = hf_client_load(agentd, task, &kept, err), step = 0;

    if (rc > 0)
        step = atoi(kept.data);
    hf_client_checkpoint_done(&kept);
    return rc >= 0 ? step : rc;
}

/* Does the steps after the last one that was kept. */
static int do_steps(const char *task, int steps, double seconds, struct hf_error *err)
{
    int done = last_step(task, err), rc = HF_OK;
    char text[80];

    if (done < 0)
        return done;
    printf("task %s: %s step %d of %d\n", task, done > 0 ? "going on after" : "beginning at",
           done, steps);
    while (done < steps) {
        pause_for(seconds);
        if (asked_to_stop)
            return HF_ECANCELED;
        done++;
        if (!leave_mark(task, done))
            return HF_EIO;
        (void)snprintf(text, sizeof text, "step %d of %d", done, steps);
        rc = hf_client_progress(agentd, task, done * 100 / steps, text, err);
        (void)snprintf(text, sizeof text, "%d", done);
        if (rc == HF_OK)
            rc = hf_client_save(agentd, task, text, strlen(text), NULL, err);
        if (rc != HF_OK)
            return rc;
        printf("task %s: step %d of %d\n", task, done, steps);
    }
    return HF_OK;
}

static void do_task(const struct hf_client_task *task)
{
    json_t *plan = json_loads(task->payload, 0, NULL);
    json_t *steps = json_object_get(plan, "steps");
    json_t *seconds = json_object_get(plan, "seconds");
    struct hf_error err = { "" };
    int rc = do_steps(task->id, steps != NULL ? (int)json_integer_value(steps) : STEPS,
                      seconds != NULL ? json_number_value(seconds) : 1.0, &err);

    if (rc == HF_OK)
        rc = hf_client_complete(agentd, task->id, "all steps are done", &err);
    if (rc != HF_OK && !asked_to_stop)
        printf("task %s: left alone: %s\n", task->id, err.text);
    json_decref(plan);
}

static void on_signal(int number)
{
    (void)number;
    asked_to_stop = 1;
    hf_client_interrupt(agentd);
}

int main(void)
{
    /* While agentd is coming back or etcd is away the task is still ours, as far as anyone
     * knows: the same is asked again, for as long as it takes. */
    struct hf_client_config cfg = { .patience = INT64_MAX };
    struct sigaction stop = { .sa_handler = on_signal };
    struct hf_client_task task;
    struct hf_error err = { "" };

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (hf_client_new(&cfg, &agentd, &err) != HF_OK) {
        (void)fprintf(stderr, "worker: %s\n", err.text);
        return 1;
    }
    (void)sigaction(SIGTERM, &stop, NULL);
    while (!asked_to_stop) {
        if (hf_client_next_task(agentd, &task, &err) > 0) {
            do_task(&task);
            hf_client_task_done(&task);
        } else if (!asked_to_stop) {
            pause_for(1); /* this process is fenced, and will be ended */
        }
    }
    hf_client_free(agentd);
    return 0;
}
