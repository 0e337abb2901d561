#include "support/holder.h"

#include <stdio.h>

#include <check.h>

enum { STEP_MS = 30000 };

/* What changed for the better or worse, and when. */
static void note_state(struct hft_holder *holder, const struct hf_session_view *view, hf_ms now)
{
    if (view->state == HF_LEASE_LOST && holder->state != HF_LEASE_LOST)
        holder->losses++;
    if (view->state == HF_LEASE_JEOPARDY && holder->state != HF_LEASE_JEOPARDY) {
        holder->jeopardies++;
        holder->jeopardy_at = now;
    }
    if (view->frozen && !holder->was_frozen) {
        holder->fences++;
        holder->fence_at = now;
    }
    if (!view->frozen && holder->was_frozen) {
        holder->thaws++;
        holder->thawed_at = now;
    }
    holder->was_frozen = view->frozen;
    holder->state = view->state;
}

static void on_change(const struct hf_session_view *view, void *arg)
{
    struct hft_holder *holder = arg;
    hf_ms now = hft_now();

    holder->changes++;
    note_state(holder, view, now);
    if (view->record.counted_at != holder->counted_at)
        holder->renewals++;
    if (holder->fault_at != 0 && holder->renewed_at == 0 &&
        view->record.counted_at >= holder->fault_at)
        holder->renewed_at = now;
    holder->lease = view->lease;
    holder->counted_at = view->record.counted_at;
}

static int get_key(size_t index, int64_t lease, struct hf_proof_key *ret_key, void *arg)
{
    const struct hft_holder *holder = arg;

    (void)lease;
    if (holder->key == NULL || index > 0)
        return 0;
    *ret_key = (struct hf_proof_key){ .text = holder->key, .create_rev = holder->create_rev };
    return 1;
}

static void on_trouble(const char *what, int err, const char *message, void *arg)
{
    struct hft_holder *holder = arg;

    holder->troubles++;
    (void)snprintf(holder->last_trouble, sizeof holder->last_trouble, "%s: %s: %s", what,
                   hf_err_name(err), message);
}

static void on_closed(void *arg)
{
    ((struct hft_holder *)arg)->closed++;
}

static bool is_held(void *arg)
{
    return ((struct hft_holder *)arg)->state == HF_LEASE_HELD;
}

static bool is_renewed(void *arg)
{
    return ((struct hft_holder *)arg)->renewed_at != 0;
}

void hft_holder_start(struct hft_client *client, struct hft_holder *holder, hf_ms ttl)
{
    struct hf_session_config cfg = { .policy = hf_lease_policy_default(),
                                     .on_change = on_change,
                                     .get_key = get_key,
                                     .on_trouble = on_trouble,
                                     .arg = holder };
    struct hf_error err = { "" };

    *holder = (struct hft_holder){ .client = client, .state = HF_LEASE_LOST };
    cfg.policy.ttl = ttl;
    if (ttl < cfg.policy.ttl_floor) {
        cfg.policy.ttl_floor = 2000;
        cfg.policy.retry_max = 300;
    }
    ck_assert_msg(hf_session_new(&client->backend, &cfg, &holder->session, &err) == HF_OK, "%s",
                  err.text);
    hft_holder_until_held(holder, STEP_MS);
}

void hft_holder_stop(struct hft_holder *holder, bool revoke)
{
    hf_session_close(holder->session, revoke, on_closed, holder);
    hft_client_until(holder->client, &holder->closed, 1, STEP_MS, "the session to close");
}

void hft_holder_register(struct hft_holder *holder, const char *key)
{
    holder->create_rev = hft_put(holder->client, key, "", holder->lease);
    holder->key = key;
}

void hft_holder_until_renewed(struct hft_holder *holder, hf_ms timeout)
{
    hft_loop_until(&holder->client->loop, is_renewed, holder, timeout, "a renewal");
}

void hft_holder_until_held(struct hft_holder *holder, hf_ms timeout)
{
    hft_loop_until(&holder->client->loop, is_held, holder, timeout, "the lease");
}
