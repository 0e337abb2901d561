/* Who is let to the bucket first. The helper that the link starts is this program itself, by
 * another name: it says when it has begun a job, and ends it when it is told to, both through
 * the file that goes with the job. */
#include "agentd/link/s3.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/loop.h"
#include "support/suite.h"

enum { STEP_MS = 30000, WRITERS = 3, MANY = 600 };

struct errand {
    struct link_s3_job job;
    int ours; /* the other end of its file */
    bool ended;
    int err;
};

static const struct hf_s3_settings SETTINGS = { .bucket = "b",
                                                .endpoint = "http://127.0.0.1:1",
                                                .region = "r",
                                                .prefix = "p",
                                                .profile = "default" };
static struct hft_loop loop;
static struct link_s3 *s3;

static void setup(void)
{
    hft_loop_init(&loop);
    ck_assert_int_eq(link_s3_new(&loop.uv, &SETTINGS, 1000, &s3), HF_OK);
}

static void teardown(void)
{
    link_s3_close(s3);
    hft_loop_done(&loop);
}

static void on_ended(struct link_s3_job *job, int err, const char *text)
{
    struct errand *errand = job->arg;

    (void)text;
    errand->ended = true;
    errand->err = err;
}

/* Without a file it never ends. */
static int begin_bare(struct errand *errand, enum s3_packet_type type)
{
    *errand = (struct errand){ .ours = -1 };
    errand->job = (struct link_s3_job){
        .type = type, .name = "ns/t1/k1", .owner = "", .file = -1, .fn = on_ended, .arg = errand
    };
    return link_s3_begin(s3, &errand->job);
}

static void begin(struct errand *errand, enum s3_packet_type type)
{
    int pair[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *errand = (struct errand){ .ours = pair[0] };
    errand->job = (struct link_s3_job){ .type = type,
                                        .name = "ns/t1/k1",
                                        .owner = "",
                                        .file = pair[1],
                                        .fn = on_ended,
                                        .arg = errand };
    ck_assert_int_eq(link_s3_begin(s3, &errand->job), HF_OK);
}

static bool has_begun(void *arg)
{
    const struct errand *errand = arg;
    struct pollfd ours = { .fd = errand->ours, .events = POLLIN };

    return poll(&ours, 1, 0) > 0;
}

static void await_begun(struct errand *errand, const char *what)
{
    hft_loop_until(&loop, has_begun, errand, STEP_MS, what);
}

struct rivals {
    struct errand *first, *second;
};

static bool has_either_begun(void *arg)
{
    const struct rivals *rivals = arg;

    return has_begun(rivals->first) || has_begun(rivals->second);
}

static void expect_first(struct errand *first, struct errand *second)
{
    hft_loop_until(&loop, has_either_begun, &(struct rivals){ first, second }, STEP_MS,
                   "the next");
    ck_assert(has_begun(first));
    ck_assert(!has_begun(second));
}

static bool has_ended(void *arg)
{
    return ((const struct errand *)arg)->ended;
}

static void finish(struct errand *errand)
{
    ck_assert_int_eq(write(errand->ours, "x", 1), 1);
    hft_loop_until(&loop, has_ended, errand, STEP_MS, "the end of a job");
    ck_assert_int_eq(errand->err, HF_OK);
}

/* Whoever is at one of them is told by its file that there is nobody any more. */
static void end(struct errand *errands, size_t count)
{
    link_s3_close(s3);
    s3 = NULL;
    for (size_t i = 0; i < count; i++) {
        ck_assert_int_eq(close(errands[i].ours), 0);
        ck_assert_int_eq(close(errands[i].job.file), 0);
    }
}

/* Also before those that wait for longer. */
START_TEST(what_is_to_be_read_goes_before_what_is_to_be_written)
{
    enum { READER = WRITERS, LATE_WRITER, LATE_READER, COUNT };
    struct errand all[COUNT];

    for (int i = 0; i < WRITERS; i++)
        begin(&all[i], S3_PUT);
    begin(&all[READER], S3_GET);
    for (int i = 0; i <= READER; i++)
        await_begun(&all[i], "everybody to be busy");
    begin(&all[LATE_WRITER], S3_PUT);
    begin(&all[LATE_READER], S3_GET);
    finish(&all[0]);
    expect_first(&all[LATE_READER], &all[LATE_WRITER]);
    finish(&all[READER]);
    await_begun(&all[LATE_WRITER], "whoever has waited longest");
    finish(&all[LATE_WRITER]);
    end(all, COUNT);
}
END_TEST

/* Though there are helpers who have nothing to do. */
START_TEST(one_helper_is_kept_for_who_reads)
{
    enum { LATE_WRITER = WRITERS, READER, COUNT };
    struct errand all[COUNT];

    for (int i = 0; i < COUNT; i++)
        begin(&all[i], i == READER ? S3_GET : S3_PUT);
    for (int i = 0; i < WRITERS; i++)
        await_begun(&all[i], "writers");
    expect_first(&all[READER], &all[LATE_WRITER]);
    finish(&all[READER]);
    ck_assert(!has_begun(&all[LATE_WRITER]));
    finish(&all[0]);
    await_begun(&all[LATE_WRITER], "who has waited");
    end(all, COUNT);
}
END_TEST

START_TEST(what_nobody_waits_for_has_one_helper_at_a_time)
{
    enum { CHORE, LATE_CHORE, WRITER, COUNT };
    struct errand all[COUNT];

    for (int i = 0; i < COUNT; i++)
        begin(&all[i], i == WRITER ? S3_PUT : i == CHORE ? S3_LIST : S3_DROP);
    await_begun(&all[CHORE], "the first");
    await_begun(&all[WRITER], "who goes past");
    finish(&all[WRITER]);
    ck_assert(!has_begun(&all[LATE_CHORE]));
    finish(&all[CHORE]);
    await_begun(&all[LATE_CHORE], "the second");
    end(all, COUNT);
}
END_TEST

START_TEST(what_nobody_waits_for_is_refused_first)
{
    static struct errand all[MANY];
    struct errand chore, writer, reader;

    for (int i = 0; i < MANY; i++)
        ck_assert_int_eq(begin_bare(&all[i], S3_PUT), HF_OK);
    ck_assert_int_eq(begin_bare(&chore, S3_DROP), HF_ELIMIT);
    ck_assert_int_eq(begin_bare(&chore, S3_LIST), HF_ELIMIT);
    ck_assert_int_eq(begin_bare(&writer, S3_PUT), HF_OK);
    ck_assert_int_eq(begin_bare(&reader, S3_GET), HF_OK);
    link_s3_close(s3);
    s3 = NULL;
    for (int i = 0; i < MANY; i++)
        ck_assert(all[i].ended && all[i].err == HF_EAGAIN);
    ck_assert(writer.ended && reader.ended && !chore.ended);
}
END_TEST

/* The helper. */

static int answer(void)
{
    static const char *const TEXTS[] = { "", "" };
    HF_CLEANUP_BUF struct hf_buf packet = { 0 };

    return s3_packet_make(&packet, &(struct s3_packet){ .type = S3_DONE, .count = 2 }, TEXTS) ==
                       HF_OK &&
                   s3_packet_send(STDIN_FILENO, &packet, -1) == 0
               ? 0
               : -1;
}

static int help(void)
{
    union {
        struct s3_packet packet;
        char bytes[S3_PACKET_MAX];
    } room;
    int file;
    char told;

    (void)fcntl(STDIN_FILENO, F_SETFL, 0);
    while (s3_packet_receive(STDIN_FILENO, &room, sizeof room, &file) > 0) {
        if (file < 0)
            continue; /* the settings, or what never ends */
        if (write(file, "x", 1) != 1 || read(file, &told, 1) != 1 || answer() != 0)
            return 1;
        (void)close(file);
    }
    return 0;
}

int main(int argc, char **argv)
{
    TCase *t;

    if (argc > 0 && strcmp(argv[0], "agentd-s3") == 0)
        return help();
    t = tcase_create("order");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 180); /* more than a wait has */
    tcase_add_test(t, what_is_to_be_read_goes_before_what_is_to_be_written);
    tcase_add_test(t, one_helper_is_kept_for_who_reads);
    tcase_add_test(t, what_nobody_waits_for_has_one_helper_at_a_time);
    tcase_add_test(t, what_nobody_waits_for_is_refused_first);
    return hft_suite_run("link/s3", t, NULL);
}
