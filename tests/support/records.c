#include "support/records.h"

#include <inttypes.h>
#include <stdio.h>

#define ROOT "/holdfast/default/"

static hf_rev put_of(struct hft_client *client, const char *agent, const char *kind,
                     const char *value, int64_t lease)
{
    char key[200];

    (void)snprintf(key, sizeof key, ROOT "agents/%s/%s", agent, kind);
    return hft_put(client, key, value, lease);
}

int64_t hft_put_worker(struct hft_client *client, const char *agent, int attempt,
                       hf_rev *ret_life)
{
    int64_t lease = hft_grant(client, 60);
    char task[300];

    (void)hft_put(client, ROOT "hosts/h/record", "{\"capacity\":10,\"launchers\":[\"w\"]}",
                  HF_NO_LEASE);
    (void)hft_put(client, ROOT "hosts/h/live", "{\"ttl\":\"60s\"}", lease);
    (void)put_of(client, agent, "spec", "{\"role\":\"r\",\"launcher\":\"w\",\"home\":\"h\"}",
                 HF_NO_LEASE);
    *ret_life = put_of(client, agent, "live",
                       "{\"host\":\"h\",\"instanceId\":\"one\",\"ttl\":\"60s\"}", lease);
    (void)snprintf(task, sizeof task,
                   "{\"id\":\"t\",\"role\":\"r\",\"state\":\"in_progress\",\"attempt\":%d,"
                   "\"owner\":{\"agent\":\"%s\",\"incarnation\":{\"createRevision\":\"%" PRId64
                   "\"}}}",
                   attempt, agent, *ret_life);
    (void)hft_put(client, ROOT "tasks/t", task, HF_NO_LEASE);
    return lease;
}
