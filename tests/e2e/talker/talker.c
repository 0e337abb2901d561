/* talker.c - an agent that asks and says everything that the client can, and tells what it
 * hears. Its brothers in other languages write the same lines, which test_clients reads.
 *
 *     talker DIRECTORY talk|ponder|leave|claim */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast.h>

static struct hf_client *agentd;
static struct hf_error err;
static char held[HF_CLIENT_NAME_SIZE]; /* what it ponders over, and gives back in the end */

static void refused(int rc)
{
    printf("%s %s\n", hf_err_name(rc), err.text);
}

static void must(int rc)
{
    if (rc >= 0)
        return;
    refused(rc);
    exit(1);
}

static void introduce(void)
{
    struct hf_client_report report = { .status = HF_CLIENT_HEALTHY,
                                       .phase = "think\"ing \xe2\x82\xac",
                                       .last_tool = "grep",
                                       .tokens = 1234,
                                       .percent = 12.5 };
    struct hf_client_waiting waiting;
    struct hf_client_self self;

    must(hf_client_read_self(agentd, &self, &err));
    printf("self %s %s %s\n", self.agent, self.role,
           self.fencing_token == strtoll(getenv("HOLDFAST_INCARNATION"), NULL, 10) ? "same"
                                                                                   : "other");
    must(hf_client_heartbeat(agentd, &report, &waiting, &err));
    must(hf_client_activity(agentd, NULL, NULL, &err));
    printf("waiting %d %s\n", waiting.interval > 0, waiting.stop ? "stop" : "go on");
    must(hf_client_busy(agentd, 600000, "the tests", &err));
    must(hf_client_ready(agentd, &err));
    must(hf_client_set_state(agentd, HF_CLIENT_WAITING, 0, "for a person", &err));
    must(hf_client_set_state(agentd, HF_CLIENT_DRAINING, 0, NULL, &err));
    must(hf_client_set_state(agentd, HF_CLIENT_PARKED, 3600000, "rate limit", &err));
}

static void be_refused(void)
{
    struct hf_client_task task;

    refused(hf_client_progress(agentd, "t0", 101, NULL, &err));
    refused(hf_client_start(agentd, "T0", &err));
    refused(hf_client_read_task(agentd, "t9", &task, &err));
    must(hf_client_submit(agentd, "t0", "other", "x", 0, NULL, &err));
    must(hf_client_submit(agentd, "t0", "other", "y", 0, &task, &err));
    printf("submitted %s %s\n", task.id, task.payload);
    hf_client_task_done(&task);
    refused(hf_client_complete(agentd, "t0", "z", &err));
    refused(hf_client_read_nudge(agentd, "q0", &err));
}

static void load(const char *id)
{
    struct hf_client_checkpoint kept = { .data = NULL };
    int rc = hf_client_load(agentd, id, &kept, &err);

    must(rc);
    if (rc > 0)
        printf("loaded %lld %s\n", (long long)kept.seq, kept.data);
    else
        printf("nothing kept\n");
    hf_client_checkpoint_done(&kept);
}

static void save_file(const char *id, const char *directory)
{
    char path[400];
    int64_t seq = 0;
    FILE *file;

    (void)snprintf(path, sizeof path, "%s/state", directory);
    file = fopen(path, "we");
    if (file == NULL || fputs("from a file", file) < 0 || fclose(file) != 0)
        exit(1);
    must(hf_client_save_file(agentd, id, path, &seq, &err));
    printf("saved %lld\n", (long long)seq);
    load(id);
}

/* Begins the first task, and ends every other one. */
static void work(const char *directory)
{
    struct hf_client_task task;
    int64_t seq = 0;
    int rc = hf_client_claim(agentd, 30000, &task, &err);

    must(rc);
    if (rc == 0)
        return;
    printf("claimed %s %s attempt %d\n", task.id, task.payload, (int)task.attempt);
    must(hf_client_start(agentd, task.id, &err));
    load(task.id);
    if (task.attempt == 0 && strcmp(task.payload, "5") == 0) {
        must(hf_client_save(agentd, task.id, "one", 3, &seq, &err));
        must(hf_client_progress(agentd, task.id, 20, "step 1", &err));
        must(hf_client_activity(agentd, NULL, NULL, &err));
        printf("saved %lld\n", (long long)seq);
    } else if (strcmp(task.payload, "fail") == 0) {
        must(hf_client_fail(agentd, task.id, "no use", &err));
    } else {
        save_file(task.id, directory);
        must(hf_client_complete(agentd, task.id, "done", &err));
        printf("completed %s\n", task.id);
    }
    hf_client_task_done(&task);
}

/* Takes a task, and does nothing for it. */
static void ponder(void)
{
    struct hf_client_task task;
    int rc;

    do
        must(rc = hf_client_claim(agentd, 30000, &task, &err));
    while (rc == 0);
    must(hf_client_start(agentd, task.id, &err));
    (void)snprintf(held, sizeof held, "%s", task.id);
    printf("pondering %s\n", held);
    hf_client_task_done(&task);
}

static void be_asked(const struct hf_client_event *event)
{
    must(hf_client_read_nudge(agentd, event->id, &err));
    printf("read %s\n", event->text);
}

static void give_back(void)
{
    if (held[0] == '\0')
        return;
    must(hf_client_release(agentd, held, "too hard", &err));
    printf("released %s\n", held);
}

static void listen_to_it(const char *directory)
{
    static const char *const KINDS[] = {
        "ping", "task", "jeopardy", "thawed", "nudge", "stop"
    };
    struct hf_client_event event;
    int rc;

    while ((rc = hf_client_next_event(agentd, 60000, &event, &err)) >= 0) {
        if (rc == 0)
            continue;
        printf("event %s %s\n", KINDS[event.kind],
               event.kind == HF_CLIENT_EVENT_TASK ? event.id
               : event.length > 0                 ? "length"
               : event.until_wall > 0             ? "until"
                                                  : "");
        if (event.kind == HF_CLIENT_EVENT_TASK)
            work(directory);
        if (event.kind == HF_CLIENT_EVENT_NUDGE)
            be_asked(&event);
        if (event.kind == HF_CLIENT_EVENT_STOP) {
            give_back();
            return;
        }
    }
    refused(rc);
    exit(1);
}

static void on_signal(int number)
{
    (void)number;
    hf_client_interrupt(agentd);
}

int main(int argc, char **argv)
{
    struct sigaction interrupt = { .sa_handler = on_signal };
    struct hf_client_task task;

    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3)
        return 2;
    must(hf_client_new(NULL, &agentd, &err));
    (void)signal(SIGTERM, SIG_IGN); /* what the events say is to end it */
    (void)sigaction(SIGUSR1, &interrupt, NULL);
    if (strcmp(argv[2], "talk") == 0) {
        introduce();
        be_refused();
        work(argv[1]);
        listen_to_it(argv[1]);
    } else if (strcmp(argv[2], "ponder") == 0) {
        ponder();
        listen_to_it(argv[1]);
    } else if (strcmp(argv[2], "leave") == 0) {
        must(hf_client_leave(agentd, "enough", &err));
        refused(hf_client_claim(agentd, 0, &task, &err));
    } else {
        printf("claiming\n");
        refused(hf_client_claim(agentd, 300000, &task, &err));
    }
    hf_client_free(agentd);
    return 0;
}
