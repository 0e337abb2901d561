/* holder.h - a session that a test holds: it records what it was told, with the times. */
#ifndef HFT_HOLDER_H
#define HFT_HOLDER_H

#include "io/session.h"
#include "support/client.h"

struct hft_holder {
    struct hft_client *client;
    struct hf_session *session;
    unsigned changes, losses, jeopardies, fences, thaws, troubles, closed;
    unsigned renewals; /* counted, the grant included */
    bool was_frozen;
    enum hf_lease_state state;
    int64_t lease;
    hf_ms counted_at, jeopardy_at, fence_at, thawed_at;
    hf_ms fault_at;   /* set by the test */
    hf_ms renewed_at; /* when the first renewal sent after that was counted */
    const char *key;  /* that hangs on the lease; NULL: nothing is registered */
    hf_rev create_rev;
    char last_trouble[256];
};

/* Holds a lease with the default policy and that TTL (2 s and more), and waits until it does.
 */
void hft_holder_start(struct hft_client *client, struct hft_holder *holder, hf_ms ttl);
void hft_holder_stop(struct hft_holder *holder, bool revoke);

/* Puts `key`, which lives as long as the holder, under the lease; it is verified from now on.
 */
void hft_holder_register(struct hft_holder *holder, const char *key);

/* Runs the loop until a renewal that was sent after fault_at has been counted. */
void hft_holder_until_renewed(struct hft_holder *holder, hf_ms timeout);

/* Runs the loop until the lease is held. */
void hft_holder_until_held(struct hft_holder *holder, hf_ms timeout);

#endif
