#include "etcd/members.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "etcd/call.h"
#include "etcd/internal.h"
#include "etcd/rpc.pb-c.h"

enum { ASK_AGAIN_MS = 5000 };

static bool is_same(const struct hf_endpoint *a, const struct hf_endpoint *b)
{
    return a->port == b->port && strcasecmp(a->host, b->host) == 0;
}

static bool is_loopback(const struct hf_endpoint *endpoint)
{
    return (endpoint->ipv4 && strncmp(endpoint->host, "127.", 4) == 0) ||
           (endpoint->ipv6 && strcmp(endpoint->host, "::1") == 0) ||
           strcasecmp(endpoint->host, "localhost") == 0;
}

static bool is_unspecified(const struct hf_endpoint *endpoint)
{
    return strcmp(endpoint->host, "0.0.0.0") == 0 || strcmp(endpoint->host, "::") == 0;
}

/* A member that was not told better advertises "localhost", which is good for those who came
 * that way, and leads everyone else to themselves. */
static bool is_of_use(const struct hf_endpoint *all, size_t count, size_t configured,
                      const struct hf_endpoint *endpoint)
{
    bool here = !is_loopback(endpoint);

    if (endpoint->tls != all[0].tls || is_unspecified(endpoint))
        return false;
    for (size_t i = 0; i < configured && !here; i++)
        here = is_loopback(&all[i]);
    for (size_t i = 0; i < count; i++) {
        if (is_same(&all[i], endpoint))
            return false;
    }
    return here;
}

size_t hf_members_add(struct hf_endpoint all[HF_ENDPOINTS_MAX], size_t count,
                      const char *const *urls, size_t url_count)
{
    size_t configured = count;

    for (size_t i = 0; i < url_count && count < HF_ENDPOINTS_MAX; i++) {
        struct hf_endpoint endpoint;

        if (hf_parse_endpoint(urls[i], &endpoint, NULL) == HF_OK &&
            is_of_use(all, count, configured, &endpoint))
            all[count++] = endpoint;
    }
    return count;
}

/* Lanes follow the endpoint that they are on to its new place. */
static void exchange(struct hf_etcd *etcd, const struct hf_endpoint *fresh, size_t count)
{
    size_t places[HF_ENDPOINTS_MAX];

    for (size_t i = 0; i < etcd->endpoint_count; i++) {
        places[i] = HF_LANE_NOWHERE;
        for (size_t k = 0; k < count; k++) {
            if (is_same(&etcd->endpoints[i], &fresh[k]))
                places[i] = k;
        }
    }
    hf_lane_move(etcd, places);
    memcpy(etcd->endpoints, fresh, count * sizeof fresh[0]);
    etcd->endpoint_count = count;
}

/* A learner serves nobody. A list without anybody is no list. */
static void take(struct hf_etcd *etcd, const Etcdserverpb__MemberListResponse *answer)
{
    struct hf_endpoint *fresh = hf_calloc(HF_ENDPOINTS_MAX, sizeof *fresh);
    size_t count = etcd->members.configured;

    if (fresh == NULL || answer->n_members == 0) {
        free(fresh);
        return;
    }
    memcpy(fresh, etcd->endpoints, count * sizeof *fresh);
    for (size_t i = 0; i < answer->n_members; i++) {
        const Etcdserverpb__Member *member = answer->members[i];

        if (!member->islearner)
            count = hf_members_add(fresh, count, (const char *const *)member->clienturls,
                                   member->n_clienturls);
    }
    exchange(etcd, fresh, count);
    free(fresh);
}

static void ask_in(struct hf_etcd *etcd, hf_ms span)
{
    hf_ms fifth = span / 5;
    hf_ms jitter = (hf_ms)hf_etcd_random(etcd, (uint64_t)(2 * fifth + 1)) - fifth;

    if (!etcd->closing)
        hf_timer_start(&etcd->timers, &etcd->members.timer, hf_etcd_now(etcd) + span + jitter);
}

static void on_members(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    const Etcdserverpb__MemberListResponse *answer = NULL;

    if (outcome->result.err == HF_OK)
        answer = hf_call_unpack(etcd, &etcdserverpb__member_list_response__descriptor,
                                outcome->body, &outcome->result);
    if (answer != NULL)
        take(etcd, answer);
    ask_in(etcd, answer != NULL || etcd->members.every < ASK_AGAIN_MS ? etcd->members.every
                                                                      : ASK_AGAIN_MS);
}

static void ask(struct hf_timer *timer)
{
    struct hf_etcd *etcd =
        (struct hf_etcd *)((char *)timer - offsetof(struct hf_etcd, members.timer));
    Etcdserverpb__MemberListRequest request = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;
    int err = hf_call_start(etcd,
                            &(struct hf_call_spec){
                                .method = "/etcdserverpb.Cluster/MemberList",
                                .request = &request.base,
                                .lane = HF_LANE_UNARY,
                                .repeatable = true,
                                .decode = on_members,
                            },
                            NULL);

    if (err != HF_OK)
        ask_in(etcd, ASK_AGAIN_MS);
}

void hf_members_start(struct hf_etcd *etcd, hf_ms every)
{
    etcd->members.every = every;
    etcd->members.timer.fn = ask;
    hf_timer_start(&etcd->timers, &etcd->members.timer, hf_etcd_now(etcd));
}

void hf_members_stop(struct hf_etcd *etcd)
{
    hf_timer_stop(&etcd->timers, &etcd->members.timer);
}
