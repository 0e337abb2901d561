/* model_peer.h - a real etcd that is asked what the model is asked, and answers in its words.
 */
#ifndef HFT_MODEL_PEER_H
#define HFT_MODEL_PEER_H

#include "sim/model_format.h"
#include "support/client.h"

/* Puts the request to the etcd, waits, and writes the answer as hfs_answer_format does.
 * `model` is the model's answer to the same: time left to a lease may differ by a second, and
 * is written as it is there. */
void hft_peer_ask(struct hft_client *client, const struct hfs_request *request,
                  const struct hfs_answer *model, struct hf_buf *out);

struct hft_peer_watch;

/* Watches a range, and the key `last` in the same stream, and waits until etcd has confirmed
 * it or refused. */
struct hft_peer_watch *hft_peer_watch_open(struct hft_client *client,
                                           const struct hfs_range *range, hfs_rev start_rev,
                                           const char *last);
void hft_peer_watch_free(struct hft_peer_watch *watch);

/* Waits until there are so many events and `last` was written, or the watch has ended, but not
 * for ever. Returns the text of the events, one per line, with the end of the watch, if it
 * came, as last line. */
const char *hft_peer_watch_collect(struct hft_client *client, struct hft_peer_watch *watch,
                                   size_t events);

#endif
