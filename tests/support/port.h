/* port.h - free loopback ports that stay ours for the whole test. */
#ifndef HFT_PORT_H
#define HFT_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Zero-initialise. */
struct hft_port {
    uint16_t number;
    int lock_fd;
};

/* Finds a port on which nobody listens on 127.0.0.1 and keeps other tests from choosing it
 * until the release or the end of this process. It is never one that the kernel hands out by
 * itself: while a server is down, a client's own outgoing connection could take its port, and
 * one that dials the dead port could even connect to itself. */
void hft_port_take(struct hft_port *port);
void hft_port_release(struct hft_port *port);

/* True when the listener on 127.0.0.1:<number> is that very process. */
bool hft_port_is_listened_by(uint16_t number, pid_t pid);

#endif
