/* proxy.h - a TCP proxy on a loopback port whose two directions can be spoiled at any time.
 *
 * It runs in a thread of its own and knows bytes only, so TLS passes through it. Every control
 * may be called from any thread and is in force when it returns: no byte moves by the old rule
 * afterwards. */
#ifndef HFT_PROXY_H
#define HFT_PROXY_H

#include <stdint.h>

#include "base/clock.h"

enum hft_proxy_way {
    HFT_PROXY_UP,   /* client to server */
    HFT_PROXY_DOWN, /* server to client */
};

enum hft_proxy_mode {
    HFT_PROXY_PASS,
    HFT_PROXY_HOLD, /* nothing moves, not even the end of a connection; PASS lets it all go on
                     */
    HFT_PROXY_DROP, /* read and thrown away; cut the connection before you PASS again, for its
                       stream has a hole */
};

enum hft_proxy_door {
    HFT_PROXY_OPEN,   /* new connections are accepted and dialled on, whatever the modes are */
    HFT_PROXY_REFUSE, /* nobody listens */
};

struct hft_proxy_stats {
    uint64_t accepted;     /* connections, all in all */
    uint64_t open;         /* connections now */
    uint64_t read[2];      /* bytes taken from the sender, by way */
    uint64_t forwarded[2]; /* bytes given to the receiver, by way */
};

struct hft_proxy;

/* Listens on a free port of 127.0.0.1 for the server on `upstream`, which need not run yet. */
struct hft_proxy *hft_proxy_new(uint16_t upstream);

/* Resets all connections. */
void hft_proxy_free(struct hft_proxy *proxy);

uint16_t hft_proxy_port(const struct hft_proxy *proxy);

/* "http://127.0.0.1:<port>" */
const char *hft_proxy_endpoint(const struct hft_proxy *proxy);

void hft_proxy_set(struct hft_proxy *proxy, enum hft_proxy_way way, enum hft_proxy_mode mode);
void hft_proxy_set_both(struct hft_proxy *proxy, enum hft_proxy_mode mode);

/* What is read from now on leaves `delay` later, in order. 0 ends it, but never overtakes. */
void hft_proxy_delay(struct hft_proxy *proxy, enum hft_proxy_way way, hf_ms delay);

void hft_proxy_door(struct hft_proxy *proxy, enum hft_proxy_door door);

/* Holds those connections, of now and to come, whose client has `text` among its first words;
 * NULL or a heal: none. */
void hft_proxy_hold_talk(struct hft_proxy *proxy, const char *text);

/* Resets (RST) all connections, to both sides. What waited in the proxy is lost. */
void hft_proxy_cut(struct hft_proxy *proxy);

/* The fault is over: cuts what there is, and whoever connects from now on is served. Nobody
 * gets a connection of which the end alone was healed. */
void hft_proxy_heal(struct hft_proxy *proxy);

/* Lets `bytes` more pass that way, over all connections together, then cuts: once. */
void hft_proxy_cut_after(struct hft_proxy *proxy, enum hft_proxy_way way, uint64_t bytes);

struct hft_proxy_stats hft_proxy_stats(struct hft_proxy *proxy);

#endif
