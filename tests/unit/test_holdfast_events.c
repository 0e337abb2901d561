/* What an agent is told, beside an agentd that says what a script tells it to. */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include "support/wait.h"
#include "unit/holdfast_fixture.h"

static int next(struct hf_client *client, struct hf_client_event *event)
{
    int rc;

    while ((rc = hf_client_next_event(client, 5000, event, NULL)) == 0)
        ;
    return rc;
}

static bool is_answered(void *arg)
{
    return was_asked(1, "POST /v1/pong ") && was_asked(1, arg);
}

START_TEST(events_are_told_and_pings_answered)
{
    struct hf_client *client;
    struct hf_client_event event;

    add_answer(OK("event: ping\ndata: {\"id\":\"3\"}\n\nevent: unheard_of\ndata: -\n\n"
                  "event: stop\ndata: {\"grace\":\"5s\"}\n\n"));
    add_answer("HTTP/1.0 204 x\r\n\r\n");
    add_answer(OK("event: thawed\ndata: {\"frozenFor\":\"1.250s\"}\n\n"
                  "event: nudge\ndata: {\"id\":\"n\",\"text\":\"why?\"}\n\n"
                  "event: jeopardy\ndata: {\"until\":\"2026-01-31T08:15:30.250Z\"}\n\n"
                  "event: task\ndata: {\"id\":\"t1\"}\n\n"));
    client = begin(-1);
    ck_assert_int_eq(next(client, &event), 1);
    ck_assert_int_eq(event.kind, HF_CLIENT_EVENT_PING);
    hft_wait_or_fail(is_answered, (void *)"{\"id\":\"3\"}", 10000, "the pong");
    ck_assert_int_eq(next(client, &event), 1);
    ck_assert_int_eq(event.kind, HF_CLIENT_EVENT_STOP);
    ck_assert_int_eq(event.length, 5000);
    ck_assert_int_eq(next(client, &event), 1); /* of another connection: the first one ended */
    ck_assert_int_eq(event.kind, HF_CLIENT_EVENT_THAWED);
    ck_assert_int_eq(event.length, 1250);
    ck_assert_int_eq(next(client, &event), 1);
    ck_assert_int_eq(event.kind, HF_CLIENT_EVENT_NUDGE);
    ck_assert_str_eq(event.id, "n");
    ck_assert_str_eq(event.text, "why?");
    ck_assert_int_eq(next(client, &event), 1);
    ck_assert_int_eq(event.kind, HF_CLIENT_EVENT_JEOPARDY);
    ck_assert_int_eq(event.until_wall, 1769847330250);
    ck_assert_int_eq(next(client, &event), 1);
    ck_assert_int_eq(event.kind, HF_CLIENT_EVENT_TASK);
    ck_assert_str_eq(event.id, "t1");
    end(client);
}
END_TEST

/* Whoever takes events would wait for it, and one that comes too late is none. */
START_TEST(a_pong_is_not_tried_for_long)
{
    struct hf_client_config cfg = { .socket = path, .token = "secret" };
    struct hf_clock clock = hf_clock_boottime();
    struct hf_client *client, *silent;
    hf_ms before = hf_clock_now(&clock);

    add_answer(OK("{}"));
    client = begin(-1);
    (void)pthread_mutex_lock(&lock); /* it takes the connection, and that is all */
    ck_assert_int_eq(hf_client_new(&cfg, &silent, NULL), HF_OK);
    ck_assert_int_eq(hf_client_pong(silent, "1", NULL), HF_ETIMEOUT);
    ck_assert_int_lt(hf_clock_now(&clock) - before, 15000); /* and not the 30 s of a call */
    (void)pthread_mutex_unlock(&lock);
    hf_client_free(silent);
    end(client);
}
END_TEST

/* Its link hangs, say: the connection stands, and nothing comes of it any more. */
START_TEST(a_stream_that_shows_no_sign_of_life_is_begun_anew)
{
    struct hf_client *client;
    struct hf_client_event event;

    add_answer("HTTP/1.0 200 x\r\nX-Holdfast-Alive: 50\r\n\r\n: alive\n\n");
    add_answer(OK("event: task\ndata: {\"id\":\"t1\"}\n\n"));
    is_hasty = stays = true;
    client = begin(-1);
    ck_assert_int_eq(next(client, &event), 1);
    ck_assert_str_eq(event.id, "t1");
    ck_assert(was_asked(1, "GET /v1/events "));
    end(client);
}
END_TEST

/* A main loop does not call before the descriptor says so, and then only once. */
START_TEST(a_main_loop_needs_one_descriptor)
{
    struct hf_client *client;
    struct hf_client_event event;
    struct pollfd fd = { .events = POLLIN };
    int told = 0;

    add_answer("HTTP/1.0 503 x\r\n\r\n"); /* it is just starting */
    add_answer(OK("event: task\ndata: {\"id\":\"t1\"}\n\n"
                  "event: task\ndata: {\"id\":\"t2\"}\n\n"));
    add_answer(OK("event: task\ndata: {\"id\":\"t3\"}\n\n"));
    is_hasty = true;
    client = begin(-1);
    fd.fd = hf_client_get_fd(client);
    while (told < 3) {
        int rc;

        ck_assert_int_eq(poll(&fd, 1, 10000), 1);
        rc = hf_client_next_event(client, 0, &event, NULL);
        ck_assert_int_ge(rc, 0);
        told += rc;
        ck_assert_int_eq(hf_client_get_fd(client), fd.fd);
    }
    ck_assert_str_eq(event.id, "t3");
    end(client);
}
END_TEST

/* The second one is here already, so nothing more comes to make the socket ready. */
START_TEST(two_events_in_one_piece_are_told_to_a_main_loop_one_by_one)
{
    struct hf_client *client;
    struct hf_client_event event = { .length = 0 };
    struct pollfd fd = { .events = POLLIN };

    add_answer(OK("event: task\ndata: {\"id\":\"t1\"}\n\n"
                  "event: task\ndata: {\"id\":\"t2\"}\n\n"));
    is_hasty = stays = true;
    client = begin(-1);
    fd.fd = hf_client_get_fd(client);
    while (strcmp(event.id, "t2") != 0) {
        ck_assert_int_eq(poll(&fd, 1, 10000), 1);
        ck_assert_int_ge(hf_client_next_event(client, 0, &event, NULL), 0);
    }
    ck_assert_int_eq(hf_client_next_event(client, 0, &event, NULL), 0);
    ck_assert_int_eq(poll(&fd, 1, 0), 0); /* and then it sleeps */
    end(client);
}
END_TEST

/* What a child of ours has as well is not closed when we close it. */
START_TEST(a_stream_that_a_child_has_too_wakes_nobody_when_it_is_lost)
{
    struct hf_client *client;
    struct hf_client_event event;
    struct pollfd fd = { .events = POLLIN };
    pid_t child;

    add_answer(OK("event: task\ndata: {\"id\":\"t1\"}\n\n"));
    add_answer(OK("event: task\ndata: {\"id\":\"t2\"}\n\n"));
    is_hasty = stays = true;
    client = begin(-1);
    fd.fd = hf_client_get_fd(client);
    ck_assert_int_eq(next(client, &event), 1);
    child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    hft_wait_or_fail(cut, NULL, 10000, "the stream");
    ck_assert_int_eq(next(client, &event), 1);
    ck_assert_str_eq(event.id, "t2");
    ck_assert_int_eq(hf_client_next_event(client, 0, &event, NULL), 0);
    ck_assert_int_eq(poll(&fd, 1, 0), 0);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    end(client);
}
END_TEST

static const struct {
    const char *answer, *text;
    int rc;
} STREAMS[] = {
    { "HTTP/1.0 401 x\r\nContent-Length: 61\r\n\r\n" REFUSAL("denied"), "no (do better)",
      HF_EDENIED },
    { "HTTP/1.0 401 x\r\nContent-Length: 99\r\n\r\n" REFUSAL("denied"), "no (do better)",
      HF_EDENIED }, /* cut off */
    { "HTTP/1.0 401 x\r\n\r\n", "agentd answered 401", HF_EDENIED },
    { "nonsense\r\n\r\n", "HTTP/1", HF_ECORRUPT },
    { OK("event: ping\ndata: {}\n\n"), "without its id", HF_ECORRUPT },
    { OK("event: ping\ndata: {\"id\":3}\n\n"), "expected a string", HF_ECORRUPT },
    { OK("event: stop\ndata: {\"grace\":\"soon\"}\n\n"), "duration", HF_ECORRUPT },
    { OK("event: stop\ndata: {\"grace\"\n\n"), "expected ':'", HF_ECORRUPT },
};

START_TEST(what_is_no_stream_of_events_is_told)
{
    struct hf_client *client;
    struct hf_client_event event = { .length = 7 };
    struct hf_error err = { "" };

    add_answer(STREAMS[_i].answer);
    client = begin(-1);
    ck_assert_int_eq(hf_client_next_event(client, 5000, &event, &err), STREAMS[_i].rc);
    ck_assert_msg(strstr(err.text, STREAMS[_i].text) != NULL, "%s", err.text);
    ck_assert_int_eq(event.length, 7);
    end(client);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("events");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, events_are_told_and_pings_answered);
    tcase_add_test(t, a_pong_is_not_tried_for_long);
    tcase_add_test(t, a_stream_that_shows_no_sign_of_life_is_begun_anew);
    tcase_add_test(t, a_main_loop_needs_one_descriptor);
    tcase_add_test(t, two_events_in_one_piece_are_told_to_a_main_loop_one_by_one);
    tcase_add_test(t, a_stream_that_a_child_has_too_wakes_nobody_when_it_is_lost);
    tcase_add_loop_test(t, what_is_no_stream_of_events_is_told, 0, COUNT(STREAMS));
    return run("client/event", t);
}
