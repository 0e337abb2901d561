/* idle_agent.c - what is supervised in `./dev bench agentd`: it does nothing, and needs little.
 *
 *     idle_agent          waits for a signal that ends it
 *     idle_agent pings    listens to its agentd, and answers when it is pinged
 *
 * Without an agentd, as under a peer, both only wait. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/holdfast.h"

static int listen_to_agentd(void)
{
    struct hf_client *agentd;
    struct hf_client_event event;
    struct hf_error err = { "" };

    if (hf_client_new(NULL, &agentd, &err) != HF_OK)
        return EXIT_FAILURE;
    for (;;) /* an error is one of a connection, which is made anew */
        (void)!hf_client_next_event(agentd, -1, &event, &err);
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "pings") == 0 && getenv("HOLDFAST_SOCKET") != NULL)
        return listen_to_agentd();
    for (;;)
        (void)pause();
}
