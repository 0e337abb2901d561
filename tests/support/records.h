/* records.h - a fleet that is nothing but keys, for tests of whoever watches them. */
#ifndef HFT_RECORDS_H
#define HFT_RECORDS_H

#include "support/client.h"

/* In the namespace `default`: host h, and on it `agent` (role r, launcher w), which works on
 * task t in that attempt. Returns the lease of both live keys, which nobody renews for a
 * minute, and the agent's life. */
int64_t hft_put_worker(struct hft_client *client, const char *agent, int attempt,
                       hf_rev *ret_life);

#endif
