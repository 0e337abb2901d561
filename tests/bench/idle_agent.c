/* idle_agent.c - what is supervised in `./dev bench agentd`: it does nothing, and needs little.
 *
 *     idle_agent               waits for a signal that ends it
 *     idle_agent pings FILE    listens to its agentd, and answers when it is pinged: FILE grows
 * by a byte for each
 *
 * Without an agentd, as under a peer, both only wait. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/holdfast.h"

static int listen_to_agentd(const char *file)
{
    int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
    struct hf_client *agentd;
    struct hf_client_event event;
    struct hf_error err = { "" };

    if (fd < 0 || hf_client_new(NULL, &agentd, &err) != HF_OK)
        return EXIT_FAILURE;
    for (;;) { /* an error is one of a connection, which is made anew */
        if (hf_client_next_event(agentd, -1, &event, &err) == 1 &&
            event.kind == HF_CLIENT_EVENT_PING)
            (void)!write(fd, "", 1);
    }
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "pings") == 0 && getenv("HOLDFAST_SOCKET") != NULL)
        return listen_to_agentd(argv[2]);
    for (;;)
        (void)pause();
}
