/* cli_fixture.h - the command line on a real etcd, whose hosts and agents are keys that the
 * test writes. */
#ifndef CLI_FIXTURE_H
#define CLI_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "support/client.h"
#include "support/etcd.h"
#include "support/program.h"
#include "support/suite.h"

#define ROOT "/holdfast/default/"

enum { STEP_MS = 60000 };

static struct hft_etcd server;
static struct hft_client hand;
static struct hft_program controller;
static struct hft_output last; /* of the last command */

static inline void setup(void)
{
    hft_etcd_start(&server, &(struct hft_etcd_options){ .no_fsync = true });
    hft_client_open(&hand, server.endpoint, NULL);
    controller = (struct hft_program){ 0 };
}

static inline void teardown(void)
{
    if (controller.pid != 0)
        hft_program_kill(&controller);
    hft_output_done(&last);
    hft_client_close(&hand);
    hft_etcd_done(&server);
}

static inline struct hft_outcome look(const char *key)
{
    char text[200];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    return hft_read(&hand, text);
}

static inline hf_rev put(const char *key, const char *value, int64_t lease)
{
    char text[200];

    (void)snprintf(text, sizeof text, ROOT "%s", key);
    return hft_put(&hand, text, value, lease);
}

/* Runs it and forgets what the one before said. */
#define cli(...)                                                                               \
    do {                                                                                       \
        hft_output_done(&last);                                                                \
        hft_cli_env((const char *const[]){ "USER=ada", NULL }, &last, server.endpoint,         \
                    __VA_ARGS__, NULL);                                                        \
    } while (0)

static inline void expect(int status, const char *out)
{
    ck_assert_msg(last.status == status, "status %d, not %d: %s", last.status, status,
                  last.err);
    if (out != NULL)
        ck_assert_str_eq(last.out, out);
}

static inline void expect_error(int status, const char *part)
{
    ck_assert_msg(last.status == status, "status %d, not %d: %s", last.status, status,
                  last.err);
    ck_assert_msg(strstr(last.err, part) != NULL, "%s", last.err);
}

static inline void put_fleet(void)
{
    int64_t lease = hft_grant(&hand, 60);

    (void)put("hosts/node-7/record",
              "{\"capacity\":40,\"pools\":[\"batch\",\"default\"],\"launchers\":[\"writer\"],"
              "\"version\":\"0.1.0\"}",
              HF_NO_LEASE);
    (void)put("hosts/node-7/live", "{\"ttl\":\"60s\"}", lease);
    (void)put("agents/w1/spec", "{\"role\":\"writer\",\"launcher\":\"writer\"}", HF_NO_LEASE);
    (void)put("agents/w1/live", "{\"host\":\"node-7\",\"pid\":17}", lease);
    (void)put("agents/w2/spec",
              "{\"role\":\"writer\",\"launcher\":\"writer\",\"home\":\"node-7\"}", HF_NO_LEASE);
    (void)put("health/w2",
              "{\"state\":\"failing\",\"why\":\"it was started too often\",\"held\":true,"
              "\"restarts\":10,\"startedAt\":[\"2026-01-31T08:09:11Z\"],"
              "\"next\":{\"what\":\"a person releases it\"}}",
              HF_NO_LEASE);
    (void)put("tasks/report-1",
              "{\"id\":\"report-1\",\"role\":\"writer\",\"state\":\"in_progress\","
              "\"owner\":{\"agent\":\"w1\"},\"attempt\":1}",
              HF_NO_LEASE);
}

#endif
