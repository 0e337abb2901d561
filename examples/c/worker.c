/* worker.c - an agent that does tasks in steps and survives its own death.
 *
 * It asks its agentd for work over the local API, keeps a checkpoint after every step, and goes
 * on after the last step that its predecessor kept. It needs libcurl and jansson alone.
 *
 * What a step does to the world outside is a line in the file that LEDGER names, if it names
 * one: nothing takes it back, so it shows how often each step was really done.
 *
 *     agentd run --name w1 --role demo -- ./worker
 *     holdfast task submit --role demo --payload '{"steps": 20, "seconds": 1}' */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <curl/curl.h>
#include <jansson.h>

enum { STEPS = 10, ANSWER_MAX = 1 << 20 };

static volatile sig_atomic_t asked_to_stop;

struct answer {
    long status; /* 0: agentd did not answer */
    size_t len;
    char body[ANSWER_MAX + 1];
};

static CURL *curl;
static struct answer answer;

static size_t keep(char *data, size_t size, size_t count, void *arg)
{
    (void)arg;
    if (size * count > ANSWER_MAX - answer.len)
        return 0; /* more than we can hold: the call fails */
    memcpy(answer.body + answer.len, data, size * count);
    answer.len += size * count;
    return size * count;
}

/* A call that waits for work ends soon after we are asked to. */
static int look_up(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    (void)arg, (void)a, (void)b, (void)c, (void)d;
    return asked_to_stop;
}

/* One call of the local API, as `curl --unix-socket $HOLDFAST_SOCKET` would do it. */
static long call(const char *method, const char *path, const char *body)
{
    struct curl_slist *headers = NULL;
    char url[512], token[512];
    const char *secret = getenv("HOLDFAST_TOKEN");

    (void)snprintf(url, sizeof url, "http://agentd%s", path);
    (void)snprintf(token, sizeof token, "Authorization: Bearer %s",
                   secret != NULL ? secret : "");
    headers = curl_slist_append(NULL, token);
    headers = curl_slist_append(headers, strcmp(method, "PUT") == 0
                                             ? "Content-Type: application/octet-stream"
                                             : "Content-Type: application/json");
    answer.status = 0;
    answer.len = 0;
    curl_easy_reset(curl);
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, getenv("HOLDFAST_SOCKET"));
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_up);
    if (strcmp(method, "GET") != 0) {
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    }
    if (curl_easy_perform(curl) == CURLE_OK)
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer.status);
    answer.body[answer.len] = '\0';
    curl_slist_free_all(headers);
    return answer.status;
}

static void pause_for(double seconds)
{
    struct timespec left = { .tv_sec = (time_t)seconds,
                             .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) };

    while (nanosleep(&left, &left) != 0 && !asked_to_stop)
        ;
}

/* The call about a task: /v1/tasks/ID/WHAT. While agentd is coming back (0) or etcd is away
 * (503) the task is still ours, as far as anyone knows: the same is asked again. */
static long call_task(const char *method, const char *task, const char *what, const char *body)
{
    char path[400];

    (void)snprintf(path, sizeof path, "/v1/tasks/%s/%s", task, what);
    while (call(method, path, body) == 0 || answer.status == 503) {
        if (asked_to_stop)
            break;
        pause_for(0.2);
    }
    return answer.status;
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

/* Does the steps after the last one that was kept; false when the task is no longer ours. */
static int do_steps(const char *task, int steps, double seconds)
{
    char text[160];
    int done = 0;

    if (call_task("GET", task, "checkpoint", NULL) == 200)
        done = atoi(answer.body);
    printf("task %s: %s step %d of %d\n", task, done > 0 ? "going on after" : "beginning at",
           done, steps);
    while (done < steps) {
        pause_for(seconds);
        if (asked_to_stop)
            return 0;
        done++;
        if (!leave_mark(task, done))
            return 0;
        (void)snprintf(text, sizeof text, "{\"percent\": %d, \"note\": \"step %d of %d\"}",
                       done * 100 / steps, done, steps);
        if (call_task("POST", task, "progress", text) != 200)
            return 0;
        (void)snprintf(text, sizeof text, "%d", done);
        if (call_task("PUT", task, "checkpoint", text) != 201)
            return 0;
        printf("task %s: step %d of %d\n", task, done, steps);
    }
    return 1;
}

static void do_task(json_t *task)
{
    const char *id = json_string_value(json_object_get(task, "id"));
    const char *payload = json_string_value(json_object_get(task, "payload"));
    json_t *plan = payload != NULL ? json_loads(payload, 0, NULL) : NULL;
    json_t *steps = json_object_get(plan, "steps");
    json_t *seconds = json_object_get(plan, "seconds");

    if (id != NULL && call_task("POST", id, "start", "{}") == 200 &&
        do_steps(id, steps != NULL ? (int)json_integer_value(steps) : STEPS,
                 seconds != NULL ? json_number_value(seconds) : 1.0))
        (void)call_task("POST", id, "complete", "{\"result\": \"all steps are done\"}");
    if (answer.status != 200 && !asked_to_stop)
        printf("task %s: left alone: %ld %s\n", id != NULL ? id : "?", answer.status,
               answer.body);
    json_decref(plan);
}

static void on_signal(int number)
{
    (void)number;
    asked_to_stop = 1;
}

int main(void)
{
    struct sigaction stop = { .sa_handler = on_signal };

    (void)sigaction(SIGTERM, &stop, NULL);
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (getenv("HOLDFAST_SOCKET") == NULL) {
        (void)fprintf(stderr, "worker: HOLDFAST_SOCKET is not set: agentd starts me\n");
        return 1;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    curl = curl_easy_init();
    while (curl != NULL && !asked_to_stop) {
        long status = call("POST", "/v1/tasks/claim", "{\"wait\": \"20s\"}");
        json_t *task = status == 200 ? json_loads(answer.body, 0, NULL) : NULL;

        if (task != NULL)
            do_task(task);
        else if (status != 204 && !asked_to_stop)
            pause_for(1); /* agentd is busy coming back, or etcd is away */
        json_decref(task);
    }
    curl_easy_cleanup(curl);
    curl_global_cleanup();
    return 0;
}
