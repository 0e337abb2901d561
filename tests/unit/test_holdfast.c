/* What an agent asks, beside an agentd that answers what a script tells it to. */
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>

#include "base/str.h"
#include "support/chaos.h"
#include "unit/holdfast_fixture.h"

#define DIGEST "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

/* Calls. */

START_TEST(a_request_says_what_was_meant)
{
    struct hf_client *client;
    struct hf_client_report report = {
        .status = HF_CLIENT_OVERLOADED, .phase = "think\"ing", .tokens = 7, .percent = 12.5
    };
    struct hf_client_waiting waiting;
    int64_t seq;

    add_answer(
        OK("{\"interval\":\"5s\",\"waiting\":{\"nudges\":1,\"tasks\":2,\"stop\":true}}"));
    add_answer(OK("{}"));
    add_answer("HTTP/1.0 201 Created\r\nContent-Length: 11\r\n\r\n{\"seq\":\"9\"}");
    client = begin(-1);
    ck_assert_int_eq(hf_client_heartbeat(client, &report, &waiting, NULL), HF_OK);
    ck_assert(was_asked(0, "POST /v1/heartbeat HTTP/1.0\r\n"));
    ck_assert(was_asked(0, "\r\nAuthorization: Bearer secret\r\n"));
    ck_assert(was_asked(0, "\r\nContent-Type: application/json\r\n"));
    ck_assert(was_asked(0, "{\"status\":\"busy\",\"phase\":\"think\\u0022ing\","
                           "\"tokens\":\"7\",\"errors\":\"0\",\"sequence\":\"0\","
                           "\"progress\":12.5}"));
    ck_assert_int_eq(waiting.interval, 5000);
    ck_assert_int_eq(waiting.nudges, 1);
    ck_assert_int_eq(waiting.tasks, 2);
    ck_assert(waiting.stop);
    ck_assert_int_eq(hf_client_set_state(client, HF_CLIENT_PARKED, 60000, "429", NULL), HF_OK);
    ck_assert(was_asked(1, "{\"state\":\"parked\",\"until\":\"2"));
    ck_assert(was_asked(1, "Z\",\"reason\":\"429\"}"));
    ck_assert_int_eq(hf_client_save(client, "t1", "a\0b", 3, &seq, NULL), HF_OK);
    ck_assert(was_asked(2, "PUT /v1/tasks/t1/checkpoint HTTP/1.0\r\n"));
    ck_assert(
        was_asked(2, "\r\nContent-Type: application/octet-stream\r\nContent-Length: 3\r\n"));
    ck_assert_int_eq(seq, 9);
    end(client);
}
END_TEST

START_TEST(a_task_is_claimed_or_there_is_none)
{
    struct hf_client *client;
    struct hf_client_task task;

    add_answer("HTTP/1.0 204 No Content\r\n\r\n");
    add_answer(
        OK("{\"id\":\"t1\",\"state\":\"acknowledged\",\"attempt\":2,\"priority\":-1,"
           "\"payload\":\"a\\tb\",\"checkpoint\":{\"seq\":\"17\"},\"labels\":{\"x\":\"y\"}}"));
    client = begin(-1);
    ck_assert_int_eq(hf_client_claim(client, 1500, &task, NULL), 0);
    ck_assert(was_asked(0, "{\"wait\":\"1.500s\"}"));
    ck_assert_int_eq(hf_client_claim(client, 0, &task, NULL), 1);
    ck_assert_str_eq(task.id, "t1");
    ck_assert_str_eq(task.role, "");
    ck_assert_str_eq(task.payload, "a\tb");
    ck_assert_int_eq(task.state, HF_CLIENT_TASK_ACKNOWLEDGED);
    ck_assert_int_eq(task.attempt, 2);
    ck_assert_int_eq(task.priority, -1);
    ck_assert_int_eq(task.checkpoint, 17);
    ck_assert_ptr_nonnull(strstr(task.json, "\"labels\""));
    hf_client_task_done(&task);
    ck_assert_ptr_null(task.id);
    end(client);
}
END_TEST

/* One that is taken away before it could be started is nobody's business. */
START_TEST(the_next_task_is_waited_for_and_started)
{
    struct hf_client *client;
    struct hf_client_task task = { .attempt = 77 };

    add_answer("HTTP/1.0 204 No Content\r\n\r\n");
    add_answer(OK("{\"id\":\"t1\",\"state\":\"acknowledged\"}"));
    add_answer("HTTP/1.0 409 x\r\n\r\n" REFUSAL("conflict"));
    add_answer(OK("{\"id\":\"t2\",\"state\":\"acknowledged\"}"));
    add_answer(OK("{}"));
    add_answer("HTTP/1.0 409 x\r\n\r\n" REFUSAL("fenced"));
    client = begin(-1);
    ck_assert_int_eq(hf_client_next_task(client, &task, NULL), 1);
    ck_assert(was_asked(2, "POST /v1/tasks/t1/start "));
    ck_assert(was_asked(4, "POST /v1/tasks/t2/start "));
    ck_assert_str_eq(task.id, "t2");
    ck_assert_int_eq(task.state, HF_CLIENT_TASK_IN_PROGRESS);
    hf_client_task_done(&task);
    ck_assert_int_eq(hf_client_next_task(client, &task, NULL), HF_EFENCED);
    ck_assert_uint_eq(times_asked(), 6);
    ck_assert_ptr_null(task.id);
    end(client);
}
END_TEST

START_TEST(who_is_busy_says_until_when_and_then_is_ready)
{
    struct hf_client *client;
    char text[40] = "";
    hf_ms until_wall, end_wall;

    add_answer(OK("{}"));
    client = begin(-1);
    end_wall = hf_clock_wall() + 90000;
    ck_assert_int_eq(hf_client_busy(client, 90000, "compiles", NULL), HF_OK);
    ck_assert(was_asked(0, "POST /v1/state "));
    ck_assert(was_asked(0, "{\"state\":\"busy\",\"until\":\""));
    ck_assert(was_asked(0, "Z\",\"reason\":\"compiles\"}"));
    (void)sscanf(strstr(asked[0], "until\":\"") + 8, "%39[^\"]", text);
    ck_assert_int_eq(hf_parse_time(text, &until_wall), HF_OK);
    ck_assert_int_ge(until_wall, end_wall);
    ck_assert_int_le(until_wall, end_wall + 60000);
    ck_assert_int_eq(hf_client_ready(client, NULL), HF_OK);
    ck_assert(was_asked(1, "{\"state\":\"ready\"}"));
    end(client);
}
END_TEST

START_TEST(what_was_read_is_named_by_its_id)
{
    struct hf_client *client;

    add_answer(OK("{}"));
    client = begin(-1);
    ck_assert_int_eq(hf_client_read_nudge(client, "01kg9hx0z2", NULL), HF_OK);
    ck_assert(was_asked(0, "POST /v1/nudges/01kg9hx0z2/read "));
    ck_assert_int_eq(hf_client_read_nudge(client, "../self", NULL), HF_EINVAL);
    end(client);
}
END_TEST

/* So that it is one task, however often it is asked for. */
START_TEST(a_task_without_id_gets_one_before_it_is_submitted)
{
    struct hf_client *client;
    char first[60] = "", second[60] = "";

    add_answer("HTTP/1.0 503 x\r\n\r\n");
    add_answer("HTTP/1.0 201 Created\r\n\r\n" TASK);
    client = begin(5000);
    ck_assert_int_eq(hf_client_submit(client, NULL, "r1", "5", 3, NULL, NULL), 1);
    ck_assert_uint_eq(times_asked(), 2);
    (void)sscanf(strstr(asked[0], "{\"id\":\"") + 7, "%59[a-z0-9]", first);
    (void)sscanf(strstr(asked[1], "{\"id\":\"") + 7, "%59[a-z0-9]", second);
    ck_assert_uint_eq(strlen(first), 26);
    ck_assert_str_eq(first, second);
    end(client);
}
END_TEST

static const struct {
    const char *answer;
    int rc;
    const char *text;
} REFUSALS[] = {
    { "HTTP/1.0 400 x\r\n\r\n" REFUSAL("invalid"), HF_EINVAL, "no (do better)" },
    { "HTTP/1.0 401 x\r\n\r\n" REFUSAL("denied"), HF_EDENIED, "no (do better)" },
    { "HTTP/1.0 404 x\r\n\r\n" REFUSAL("not_found"), HF_ENOENT, "no (do better)" },
    { "HTTP/1.0 405 x\r\n\r\n" REFUSAL("method"), HF_EINVAL, "no (do better)" },
    { "HTTP/1.0 409 x\r\n\r\n" REFUSAL("fenced"), HF_EFENCED, "no (do better)" },
    { "HTTP/1.0 409 x\r\n\r\n" REFUSAL("conflict"), HF_ECONFLICT, "no (do better)" },
    { "HTTP/1.0 413 x\r\n\r\n" REFUSAL("too_large"), HF_ELIMIT, "no (do better)" },
    { "HTTP/1.0 429 x\r\n\r\n" REFUSAL("limit"), HF_ELIMIT, "no (do better)" },
    { "HTTP/1.0 500 x\r\n\r\n" REFUSAL("corrupt"), HF_ECORRUPT, "no (do better)" },
    { "HTTP/1.0 503 x\r\n\r\n" REFUSAL("jeopardy"), HF_EAGAIN, "no (do better)" },
    { "HTTP/1.0 503 x\r\n\r\n<html>", HF_EAGAIN, "agentd answered 503" },
    { "HTTP/1.0 302 x\r\n\r\n", HF_ECORRUPT, "agentd answered 302" },
    { "HTTP/1.0 200 x\r\n\r\n", HF_ECORRUPT, "agentd's answer: " },
    { "HTTP/1.0 200 x\r\n\r\n[]", HF_ECORRUPT, "agentd's answer: " },
    { "HTTP/1.0 200 x\r\n\r\n{}", HF_ECORRUPT, "the task's id" },
    { "HTTP/1.0 200 x\r\n\r\n{\"id\":\"../x\"}", HF_ECORRUPT, "the task's id" },
    { "HTTP/1.0 200 x\r\n\r\n{\"id\":1}", HF_ECORRUPT, "id: line 1" },
    /* Whether the third byte was there to be seen or not. */
    { "HTTP/1.0 200 x\r\nContent-Length: 2\r\n\r\n" TASK, HF_ECORRUPT, "agentd's answer" },
    { "HTTP/1.0 200 x\r\nContent-Length: 900\r\n\r\n" TASK, HF_EAGAIN, "in the middle" },
    { "HTTP/1.0 200 x\r\nContent-Len", HF_EAGAIN, "without an answer" },
    { "SMTP\r\n\r\n", HF_ECORRUPT, "HTTP/1" },
    { NULL, HF_EAGAIN, "without an answer" },
};

START_TEST(what_is_refused_has_its_code_and_sentence)
{
    struct hf_client *client;
    struct hf_client_task task = { .attempt = 77 };
    struct hf_error err = { "" };

    add_answer(REFUSALS[_i].answer);
    client = begin(-1);
    ck_assert_int_eq(hf_client_read_task(client, "t1", &task, &err), REFUSALS[_i].rc);
    ck_assert_msg(strstr(err.text, REFUSALS[_i].text) != NULL, "%s", err.text);
    ck_assert_int_eq(task.attempt, 77);
    ck_assert_uint_eq(times_asked(), 1);
    end(client);
}
END_TEST

/* Nobody has to be asked for what makes no sense. */
START_TEST(what_makes_no_sense_is_not_sent)
{
    struct hf_client *client;
    struct hf_client_task task;
    struct hf_client_report report = { .percent = 101 };

    add_answer(OK("{}"));
    client = begin(-1);
    ck_assert_int_eq(hf_client_start(client, "T1", NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_start(client, "a/b", NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_start(client, "", NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_start(client, NULL, NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_complete(client, "t1", "\xff", NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_progress(client, "t1", 100.5, NULL, NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_progress(client, "t1", -0.5, NULL, NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_heartbeat(client, &report, NULL, NULL), HF_EINVAL);
    report = (struct hf_client_report){ .status = (enum hf_client_status)9 };
    ck_assert_int_eq(hf_client_activity(client, &report, NULL, NULL), HF_EINVAL);
    report = (struct hf_client_report){ .errors = -1 };
    ck_assert_int_eq(hf_client_activity(client, &report, NULL, NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_set_state(client, (enum hf_client_state)5, 0, NULL, NULL),
                     HF_EINVAL);
    ck_assert_int_eq(hf_client_set_state(client, HF_CLIENT_BUSY, -1, NULL, NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_busy(client, 0, NULL, NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_claim(client, -1, &task, NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_submit(client, NULL, "R", NULL, 0, NULL, NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_submit(client, "I", "r", NULL, 0, NULL, NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_save_file(client, "t1", "state", NULL, NULL), HF_EINVAL);
    ck_assert_int_eq(hf_client_load_to(client, "t1", -1, NULL, NULL), HF_EINVAL);
    ck_assert_uint_eq(times_asked(), 0);
    end(client);
}
END_TEST

START_TEST(a_client_needs_a_socket_and_a_token)
{
    struct hf_client_config cfg = { .socket = NULL };
    struct hf_client *client = NULL;
    struct hf_error err = { "" };
    char text[300];

    (void)unsetenv("HOLDFAST_SOCKET");
    (void)unsetenv("HOLDFAST_TOKEN");
    ck_assert_int_eq(hf_client_new(NULL, &client, &err), HF_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "HOLDFAST_SOCKET is not set"));
    (void)setenv("HOLDFAST_SOCKET", path, 1);
    ck_assert_int_eq(hf_client_new(&cfg, &client, &err), HF_ENOENT);
    ck_assert_ptr_nonnull(strstr(err.text, "HOLDFAST_TOKEN is not set"));
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    cfg.token = text;
    ck_assert_int_eq(hf_client_new(&cfg, &client, &err), HF_EINVAL);
    cfg.token = "a\r\nb";
    ck_assert_int_eq(hf_client_new(&cfg, &client, &err), HF_EINVAL);
    cfg.token = "";
    ck_assert_int_eq(hf_client_new(&cfg, &client, &err), HF_EINVAL);
    cfg = (struct hf_client_config){ .token = "x", .socket = text };
    ck_assert_int_eq(hf_client_new(&cfg, &client, &err), HF_EINVAL);
    cfg = (struct hf_client_config){ .token = "x", .timeout = -1 };
    ck_assert_int_eq(hf_client_new(&cfg, &client, &err), HF_EINVAL);
    ck_assert_ptr_null(client);
    hf_client_free(NULL);
}
END_TEST

/* Repetition and waiting. */

START_TEST(what_cannot_be_answered_now_is_asked_again)
{
    struct hf_client *client;
    struct hf_error err = { "" };

    add_answer(NULL);
    add_answer("HTTP/1.0 503 x\r\n\r\n" REFUSAL("unavailable"));
    add_answer("HTTP/1.0 200 x\r\nContent-Length: 10\r\n\r\n{");
    add_answer("HTTP/1.0 429 x\r\n\r\n" REFUSAL("limit"));
    add_answer(OK("{}"));
    client = begin(20000);
    ck_assert_int_eq(hf_client_complete(client, "t1", "done", &err), HF_OK);
    ck_assert_uint_eq(times_asked(), 5);
    ck_assert_str_eq(asked[0], asked[4]);
    end(client);
}
END_TEST

START_TEST(patience_ends)
{
    struct hf_client *client;
    struct hf_error err = { "" };

    add_answer("HTTP/1.0 503 x\r\n\r\n" REFUSAL("unavailable"));
    client = begin(450);
    ck_assert_int_eq(hf_client_start(client, "t1", &err), HF_EAGAIN);
    ck_assert_str_eq(err.text, "no (do better)");
    ck_assert_uint_ge(times_asked(), 2);
    ck_assert_uint_le(times_asked(), 3);
    end(client);
}
END_TEST

START_TEST(an_agentd_that_does_not_answer_is_not_waited_for_for_ever)
{
    struct hf_client_config cfg = {
        .socket = path, .token = "secret", .timeout = 50, .patience = -1
    };
    struct hf_client *client, *silent;
    struct hf_error err = { "" };

    add_answer(OK("{}"));
    client = begin(-1);
    (void)pthread_mutex_lock(&lock); /* it takes the connection, and that is all */
    ck_assert_int_eq(hf_client_new(&cfg, &silent, NULL), HF_OK);
    ck_assert_int_eq(hf_client_start(silent, "t1", &err), HF_ETIMEOUT);
    ck_assert_str_eq(err.text, "agentd did not answer in time");
    (void)pthread_mutex_unlock(&lock);
    hf_client_free(silent);
    end(client);
}
END_TEST

START_TEST(nobody_there_is_told_and_tried_again)
{
    struct hf_client_config cfg = { .socket = path, .token = "secret", .patience = 300 };
    struct hf_client *client;
    struct hf_error err = { "" };

    ck_assert_int_eq(hf_client_new(&cfg, &client, NULL), HF_OK);
    ck_assert_int_eq(hf_client_start(client, "t1", &err), HF_EAGAIN);
    ck_assert_msg(strstr(err.text, "a1.sock: No such file") != NULL, "%s", err.text);
    hf_client_free(client);
}
END_TEST

static void *ask_often(void *arg)
{
    struct hf_client *client = arg;
    struct hf_client_task task;
    intptr_t failed = 0;

    for (int i = 0; i < 20; i++) {
        if (hf_client_read_task(client, "t1", &task, NULL) != HF_OK)
            failed++;
        else
            hf_client_task_done(&task);
    }
    return (void *)failed;
}

START_TEST(any_number_of_threads_may_ask_at_once)
{
    struct hf_client *client;
    pthread_t threads[8];
    void *failed;

    add_answer(OK(TASK));
    client = begin(20000); /* it may be too many at once for its queue */
    for (size_t i = 0; i < COUNT(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, ask_often, client), 0);
    for (size_t i = 0; i < COUNT(threads); i++) {
        ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
        ck_assert_ptr_null(failed);
    }
    end(client);
}
END_TEST

static void *interrupt_soon(void *arg)
{
    (void)poll(NULL, 0, 50);
    hf_client_interrupt(arg);
    return NULL;
}

START_TEST(an_interruption_ends_what_waits_and_nothing_else)
{
    struct hf_client_config cfg = { .socket = path, .token = "secret" };
    struct hf_client *client, *other;
    struct hf_client_task task;
    struct hf_client_event event;
    pthread_t helper;

    add_answer(OK("{}"));
    client = begin(-1);
    (void)pthread_mutex_lock(&lock);
    ck_assert_int_eq(hf_client_new(&cfg, &other, NULL), HF_OK);
    ck_assert_int_eq(pthread_create(&helper, NULL, interrupt_soon, other), 0);
    ck_assert_int_eq(hf_client_claim(other, 300000, &task, NULL), HF_ECANCELED);
    (void)pthread_join(helper, NULL);
    ck_assert_int_eq(hf_client_claim(other, 300000, &task, NULL), HF_ECANCELED);
    ck_assert_int_eq(hf_client_next_event(other, -1, &event, NULL), HF_ECANCELED);
    (void)pthread_mutex_unlock(&lock);
    ck_assert_int_eq(hf_client_complete(other, "t1", NULL, NULL), HF_OK);
    hf_client_free(other);
    end(client);
}
END_TEST

/* It has its parent's handlers for signals, and what they write to. */
START_TEST(who_interrupts_a_child_does_not_interrupt_its_parent)
{
    struct hf_client *client;
    struct hf_client_event event;
    struct hf_client_task task;
    pid_t child;
    int status;

    add_answer("HTTP/1.0 204 x\r\n\r\n");
    client = begin(-1);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        hf_client_interrupt(client);
        hf_client_interrupt(client);
        _exit(hf_client_next_event(client, 5000, &event, NULL) == HF_ECANCELED ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    ck_assert_int_eq(hf_client_claim(client, 300000, &task, NULL), 0);
    hf_client_interrupt(client);
    ck_assert_int_eq(hf_client_next_event(client, 5000, &event, NULL), HF_ECANCELED);
    end(client);
}
END_TEST

/* Checkpoints. */

#define KEPT(more)                                                                             \
    "HTTP/1.0 200 x\r\nX-Holdfast-Seq: 4\r\nX-Holdfast-Sha256: " DIGEST "\r\n" more

START_TEST(a_checkpoint_is_loaded_into_memory_or_a_file)
{
    struct hf_client *client;
    struct hf_client_checkpoint kept = { .data = NULL };
    char name[300], text[16] = "";
    int fd;

    add_answer(KEPT("Content-Length: 5\r\n\r\nstate"));
    add_answer(KEPT("Content-Length: 5\r\n\r\nstate"));
    add_answer(KEPT("Content-Length: 0\r\n\r\n"));
    client = begin(-1);
    ck_assert_int_eq(hf_client_load(client, "t1", &kept, NULL), 1);
    ck_assert_str_eq(kept.data, "state");
    ck_assert_uint_eq(kept.len, 5);
    ck_assert_int_eq(kept.seq, 4);
    ck_assert_str_eq(kept.sha256, DIGEST);
    hf_client_checkpoint_done(&kept);
    (void)snprintf(name, sizeof name, "%s/state", dir.path);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(hf_client_load_to(client, "t1", fd, &kept, NULL), 1);
    ck_assert_int_eq(pread(fd, text, sizeof text, 0), 5);
    ck_assert_str_eq(text, "state");
    ck_assert_uint_eq(kept.len, 5);
    ck_assert_ptr_null(kept.data);
    (void)close(fd);
    ck_assert_int_eq(hf_client_load(client, "t1", &kept, NULL), 1);
    ck_assert_str_eq(kept.data, "");
    hf_client_checkpoint_done(&kept);
    end(client);
}
END_TEST

#define SAVED "HTTP/1.0 201 Created\r\nContent-Length: 11\r\n\r\n{\"seq\":\"9\"}"

/* Its body may have to go to a bucket first, or come from there. */
START_TEST(a_checkpoint_may_take_longer_than_anything_else)
{
    struct hf_client_config cfg = {
        .socket = path, .token = "secret", .timeout = 50, .patience = -1
    };
    struct hf_client_checkpoint kept = { .data = NULL };
    struct hf_client *client, *hasty;
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    add_answer(OK("{}"));
    add_answer(SAVED);
    add_answer(SAVED);
    add_answer(KEPT("Content-Length: 5\r\n\r\nstate"));
    takes_ms = 200;
    client = begin(-1);
    ck_assert_int_eq(hf_client_new(&cfg, &hasty, NULL), HF_OK);
    ck_assert_int_eq(hf_client_start(hasty, "t1", NULL), HF_ETIMEOUT);
    ck_assert_int_eq(hf_client_save(hasty, "t1", "state", 5, NULL, NULL), HF_OK);
    ck_assert_int_eq(hf_client_save_file(hasty, "t1", "/state", NULL, NULL), HF_OK);
    ck_assert_int_eq(hf_client_load(hasty, "t1", &kept, NULL), 1);
    hf_client_checkpoint_done(&kept);
    ck_assert_int_eq(hf_client_load_to(hasty, "t1", null, &kept, NULL), 1);
    ck_assert_uint_eq(times_asked(), 5);
    (void)close(null);
    hf_client_free(hasty);
    end(client);
}
END_TEST

START_TEST(a_long_save_that_loses_its_link_is_repeated)
{
    struct hf_client_config cfg = {
        .socket = path, .token = "secret", .timeout = 50, .patience = 300
    };
    struct hf_client *client, *hasty;

    add_answer(NULL);
    add_answer(SAVED);
    takes_ms = 400; /* longer than all its patience */
    client = begin(-1);
    ck_assert_int_eq(hf_client_new(&cfg, &hasty, NULL), HF_OK);
    ck_assert_int_eq(hf_client_save(hasty, "t1", "state", 5, NULL, NULL), HF_OK);
    ck_assert_uint_eq(times_asked(), 2);
    hf_client_free(hasty);
    end(client);
}
END_TEST

static const struct {
    const char *answer;
    int rc;
    bool at_once; /* else byte by byte: what comes behind the end of an answer is not read */
} LOADS[] = {
    { "HTTP/1.0 404 x\r\n\r\n" REFUSAL("not_found"), 0, false },
    { KEPT("\r\nstate"), HF_ECORRUPT, false }, /* cut off, or not: nobody knows */
    { "HTTP/1.0 200 x\r\nContent-Length: 5\r\n\r\nstate", HF_ECORRUPT, false },
    { KEPT("Content-Length: 6\r\n\r\nstate"), HF_EAGAIN, false },
    { KEPT("Content-Length: 20\r\n\r\nlonger than is asked for"), HF_ECORRUPT, true },
};

START_TEST(a_checkpoint_that_is_not_whole_is_none)
{
    struct hf_client *client;
    struct hf_client_checkpoint kept = { .seq = 7 };

    add_answer(LOADS[_i].answer);
    is_hasty = LOADS[_i].at_once;
    client = begin(-1);
    ck_assert_int_eq(hf_client_load(client, "t1", &kept, NULL), LOADS[_i].rc);
    ck_assert_int_eq(kept.seq, 7);
    end(client);
}
END_TEST

/* What has been written to a file cannot be taken back, so it is not begun anew. */
START_TEST(half_a_file_is_not_continued_with_another_half)
{
    struct hf_client *client;
    struct hf_client_checkpoint kept = { .seq = 7 };
    char name[300];
    int fd;

    add_answer(KEPT("Content-Length: 10\r\n\r\nstate"));
    client = begin(10000);
    (void)snprintf(name, sizeof name, "%s/state", dir.path);
    fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_eq(hf_client_load_to(client, "t1", fd, &kept, NULL), HF_EAGAIN);
    ck_assert_int_eq(lseek(fd, 0, SEEK_END), 5);
    ck_assert_uint_eq(times_asked(), 1);
    (void)close(fd);
    end(client);
}
END_TEST

START_TEST(more_than_was_allowed_for_is_not_kept)
{
    struct hf_client_config cfg = {
        .socket = path, .token = "secret", .checkpoint_max = 4, .patience = -1
    };
    struct hf_client *client, *small;
    struct hf_client_checkpoint kept;

    add_answer(KEPT("Content-Length: 5\r\n\r\nstate"));
    client = begin(-1);
    ck_assert_int_eq(hf_client_new(&cfg, &small, NULL), HF_OK);
    ck_assert_int_eq(hf_client_load(small, "t1", &kept, NULL), HF_ELIMIT);
    hf_client_free(small);
    end(client);
}
END_TEST

/* Memory. */

static int use_all(void *arg)
{
    struct hf_client_config cfg = { .socket = path, .token = "secret", .patience = -1 };
    struct hf_client_task task = { 0 };
    struct hf_client *client = NULL;
    int rc = hf_client_new(&cfg, &client, NULL);

    (void)arg;
    if (rc == HF_OK)
        rc = hf_client_claim(client, 0, &task, NULL);
    hf_client_task_done(&task);
    hf_client_free(client);
    return rc == 1 ? HF_OK : rc;
}

START_TEST(without_memory_it_says_so)
{
    struct hf_client *client;

    add_answer(OK("{\"id\":\"t1\",\"payload\":\"a\\tb\",\"labels\":{\"a\":\"b\"}}"));
    is_hasty = true; /* else how often there is more to keep depends on who is faster */
    client = begin(-1);
    ck_assert_uint_ge(hft_chaos_run(use_all, NULL), 8);
    end(client);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("holdfast");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_request_says_what_was_meant);
    tcase_add_test(t, what_was_read_is_named_by_its_id);
    tcase_add_test(t, a_task_is_claimed_or_there_is_none);
    tcase_add_test(t, the_next_task_is_waited_for_and_started);
    tcase_add_test(t, who_is_busy_says_until_when_and_then_is_ready);
    tcase_add_test(t, a_task_without_id_gets_one_before_it_is_submitted);
    tcase_add_loop_test(t, what_is_refused_has_its_code_and_sentence, 0, COUNT(REFUSALS));
    tcase_add_test(t, what_makes_no_sense_is_not_sent);
    tcase_add_test(t, a_client_needs_a_socket_and_a_token);
    tcase_add_test(t, what_cannot_be_answered_now_is_asked_again);
    tcase_add_test(t, patience_ends);
    tcase_add_test(t, an_agentd_that_does_not_answer_is_not_waited_for_for_ever);
    tcase_add_test(t, nobody_there_is_told_and_tried_again);
    tcase_add_test(t, any_number_of_threads_may_ask_at_once);
    tcase_add_test(t, an_interruption_ends_what_waits_and_nothing_else);
    tcase_add_test(t, who_interrupts_a_child_does_not_interrupt_its_parent);
    tcase_add_test(t, a_checkpoint_is_loaded_into_memory_or_a_file);
    tcase_add_test(t, a_checkpoint_may_take_longer_than_anything_else);
    tcase_add_test(t, a_long_save_that_loses_its_link_is_repeated);
    tcase_add_loop_test(t, a_checkpoint_that_is_not_whole_is_none, 0, COUNT(LOADS));
    tcase_add_test(t, half_a_file_is_not_continued_with_another_half);
    tcase_add_test(t, more_than_was_allowed_for_is_not_kept);
    tcase_add_test(t, without_memory_it_says_so);
    return run("client/holdfast", t);
}
