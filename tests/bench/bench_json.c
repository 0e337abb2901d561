/* bench_json.c - records per second and core, through lib/schema/json and beside jansson.
 *
 * jansson only parses: it makes a tree of the text and knows no schema, so its figure is what a
 * decoder on top of it could not exceed. Time is this thread's CPU time, and the two take
 * turns, so that a busy machine hits both. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "holdfast/v1/records.pb-c.h"
#include "schema/json.h"

#define RECORDS       2000
#define ROUNDS        9
#define PASSES        10 /* over all records, per round */
#define DECODE_TARGET 80000.0

/* Tasks, reports and registrations as a takeover finds them: 365 bytes on average. */
struct records {
    char *text[RECORDS];
    size_t len[RECORDS];
    const ProtobufCMessageDescriptor *type[RECORDS];
    ProtobufCMessage *message[RECORDS];
};

typedef void (*bench_fn)(struct records *r);

static void die(const char *what)
{
    (void)fprintf(stderr, "bench_json: %s\n", what);
    exit(1);
}

static int format_task(char *out, size_t size, unsigned i)
{
    return snprintf(
        out, size,
        "{\"id\":\"report-%06u\",\"role\":\"writer\",\"state\":\"in_progress\","
        "\"owner\":{\"agent\":\"writer-%u\",\"incarnation\":{\"leaseId\":"
        "\"%llu\",\"createRevision\":\"%u\",\"generation\":1}},\"attempt\":%u,"
        "\"priority\":10,\"labels\":{\"customer\":\"acme-corp\"},\"payload\":\"\","
        "\"result\":\"\",\"deadline\":\"2026-01-31T12:00:00Z\",\"checkpoint\":"
        "{\"seq\":\"%u\"},\"reservedFor\":\"\",\"reason\":\"\",\"opIds\":{\"owner\":"
        "\"01kg9mcxprersjd74rwb9d17ew\"}}",
        i, i % 500, 4193350771290418835ULL + i, 49020 + i, i % 3, i % 9);
}

static int format_report(char *out, size_t size, unsigned i)
{
    return snprintf(
        out, size,
        "{\"incarnation\":{\"leaseId\":\"%llu\",\"createRevision\":\"%u\","
        "\"generation\":1},\"phase\":\"drafting\",\"status\":\"healthy\",\"state\":"
        "\"busy\",\"counters\":{\"errors\":\"%u\",\"tokens\":\"%u\"},\"progress\":"
        "{\"percent\":62.5,\"note\":\"section 5 of 8, sources\"},\"task\":\"report-%06u\","
        "\"reason\":\"\",\"lastTool\":\"web_search\",\"at\":"
        "\"2026-01-31T08:15:30.250Z\",\"opIds\":{\"owner\":"
        "\"01kg9mcxprersjd74rwb9d17ew\"}}",
        4193350771290418835ULL + i, 49020 + i, i % 5, 184320 + i, i);
}

static int format_live(char *out, size_t size, unsigned i)
{
    return snprintf(out, size,
                    "{\"host\":\"node-%03u.fleet-west.example.net\",\"bootId\":"
                    "\"0f3f5c6e-8f5c-4a46-9be1-2c1d6a7f%04u\",\"pid\":%u,\"startTime\":\"%u\","
                    "\"instanceId\":\"01kg9mcxprersjd74rwb9d17ew\",\"ttl\":\"15s\","
                    "\"cadences\":{\"heartbeat\":\"30s\",\"ping\":\"10s\"},\"opIds\":{"
                    "\"controller\":\"01kg9hz4vynbrf7pkq255bxpz5\",\"owner\":"
                    "\"01kg9mcxprersjd74rwb9d17ew\"}}",
                    i % 400, i % 10000, 20000 + i, 8812345 + i);
}

static size_t make_records(struct records *r)
{
    static const struct {
        int (*format)(char *out, size_t size, unsigned i);
        const ProtobufCMessageDescriptor *type;
    } KINDS[] = {
        { format_task, &holdfast__v1__task__descriptor },
        { format_report, &holdfast__v1__report__descriptor },
        { format_live, &holdfast__v1__live__descriptor },
    };
    size_t total = 0;

    for (unsigned i = 0; i < RECORDS; i++) {
        char text[1024];
        struct hf_error err = { "" };
        int len = KINDS[i % 3].format(text, sizeof text, i);

        r->type[i] = KINDS[i % 3].type;
        r->len[i] = (size_t)len;
        r->text[i] = strndup(text, sizeof text);
        if (r->text[i] == NULL)
            die("no memory");
        if (hf_json_decode(r->type[i], text, (size_t)len,
                           &(struct hf_json_options){ .reject_unknown = true }, &r->message[i],
                           &err) != HF_OK)
            die(err.text);
        total += (size_t)len;
    }
    return total / RECORDS;
}

static void free_records(struct records *r)
{
    for (unsigned i = 0; i < RECORDS; i++) {
        free(r->text[i]);
        hf_json_free(r->message[i]);
    }
}

static void ours_decode(struct records *r)
{
    for (unsigned i = 0; i < RECORDS; i++) {
        ProtobufCMessage *message;

        if (hf_json_decode(r->type[i], r->text[i], r->len[i], NULL, &message, NULL) != HF_OK)
            die("a record could not be decoded");
        hf_json_free(message);
    }
}

static void peer_decode(struct records *r)
{
    for (unsigned i = 0; i < RECORDS; i++) {
        json_t *tree = json_loadb(r->text[i], r->len[i], JSON_REJECT_DUPLICATES, NULL);

        if (tree == NULL)
            die("jansson could not read a record");
        json_decref(tree);
    }
}

/* What jansson writes from; made outside the measured time. */
static json_t *trees[RECORDS];

static void ours_encode(struct records *r)
{
    struct hf_buf out = { 0 };

    for (unsigned i = 0; i < RECORDS; i++) {
        hf_buf_clear(&out);
        if (hf_json_encode(r->message[i], &out) != HF_OK || out.len != r->len[i])
            die("a record was not encoded as it was");
    }
    hf_buf_done(&out);
}

static void peer_encode(struct records *r)
{
    static char out[4096];

    for (unsigned i = 0; i < RECORDS; i++) {
        if (json_dumpb(trees[i], out, sizeof out, JSON_COMPACT) != r->len[i])
            die("jansson did not write a record as it was");
    }
}

static void peer_over(struct records *r)
{
    static char out[4096];

    for (unsigned i = 0; i < RECORDS; i++) {
        json_t *tree = json_loadb(r->text[i], r->len[i], JSON_REJECT_DUPLICATES, NULL);

        if (tree == NULL || json_object_update(tree, trees[i]) != 0 ||
            json_dumpb(tree, out, sizeof out, JSON_COMPACT) != r->len[i])
            die("jansson could not write over a record");
        json_decref(tree);
    }
}

static void ours_over(struct records *r)
{
    struct hf_buf out = { 0 };

    for (unsigned i = 0; i < RECORDS; i++) {
        hf_buf_clear(&out);
        if (hf_json_encode_over(r->message[i], r->text[i], r->len[i], &out, NULL) != HF_OK)
            die("a record could not be written over");
    }
    hf_buf_done(&out);
}

static double cpu_seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double per_second(bench_fn run, struct records *r)
{
    double begin = cpu_seconds();

    for (int i = 0; i < PASSES; i++)
        run(r);
    return RECORDS * PASSES / (cpu_seconds() - begin);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double values[ROUNDS])
{
    qsort(values, ROUNDS, sizeof values[0], compare_doubles);
    return values[ROUNDS / 2];
}

/* A target of 0 means that there is none. */
static void print_result(bool json, const char *name, double ours, double peer,
                         const char *peer_name, double target)
{
    const char *met = ours >= target ? "true" : "false";
    char goal[32] = "null";

    if (target > 0)
        (void)snprintf(goal, sizeof goal, "%.0f", target);
    if (json)
        (void)printf("{\"name\":\"json.%s\",\"ours\":%.0f,\"peer\":%.0f,\"peerName\":\"%s\","
                     "\"unit\":\"records/s\",\"ratio\":%.3f,\"target\":%s,\"met\":%s}\n",
                     name, ours, peer, peer_name, ours / peer, goal, met);
    else
        (void)printf("%-12s %10.0f %10.0f %6.2f %9s %6s   %s\n", name, ours, peer, ours / peer,
                     goal, met, peer_name);
}

static void bench(bool json, const char *name, bench_fn ours, bench_fn peer,
                  const char *peer_name, double target, struct records *r)
{
    double our_rate[ROUNDS];
    double peer_rate[ROUNDS];

    for (int i = 0; i < ROUNDS; i++) {
        our_rate[i] = per_second(ours, r);
        peer_rate[i] = per_second(peer, r);
    }
    print_result(json, name, median(our_rate), median(peer_rate), peer_name, target);
}

int main(int argc, char **argv)
{
    static struct records r;
    bool json = argc == 2 && strcmp(argv[1], "--json") == 0;
    size_t mean;

    if (argc > 1 && !json) {
        (void)fprintf(stderr, "usage: bench_json [--json]\n");
        return 2;
    }
    mean = make_records(&r);
    for (unsigned i = 0; i < RECORDS; i++) {
        trees[i] = json_loadb(r.text[i], r.len[i], 0, NULL);
        if (trees[i] == NULL)
            die("jansson could not read a record");
    }
    if (!json)
        (void)printf("%zu bytes     records/s       peer  ratio    target    met   peer\n",
                     mean);
    bench(json, "decode", ours_decode, peer_decode, "jansson json_loadb", DECODE_TARGET, &r);
    bench(json, "encode", ours_encode, peer_encode, "jansson json_dumpb", 0, &r);
    bench(json, "encode_over", ours_over, peer_over, "jansson load, update, dump", 0, &r);
    for (unsigned i = 0; i < RECORDS; i++)
        json_decref(trees[i]);
    free_records(&r);
    return 0;
}
