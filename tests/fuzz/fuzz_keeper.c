/* Whatever passes as a message of the link or of the keeper has its strings and bytes inside of
 * itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/keeper/protocol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(const void *packet, size_t size)
{
    size_t len = 0;
    const char *rest = agentd_get_rest(packet, &len);

    if (rest + len != (const char *)packet + size)
        abort();
}

static void walk_spawn(const struct agentd_spawn *m, size_t size)
{
    const char *text = (const char *)(m + 1);

    for (size_t i = 0; i < 1 + (size_t)m->argc + m->envc; i++)
        text += strlen(text) + 1;
    if (text != (const char *)m + size)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly this size, so that the sanitizer sees a read beyond it. */
    void *packet = malloc(size > 0 ? size : 1);

    if (packet == NULL)
        return 0;
    memcpy(packet, data, size);
    if (size >= sizeof(struct agentd_head))
        ((struct agentd_head *)packet)->length = (uint32_t)size; /* or nothing would pass */
    if (agentd_check_request(packet, size) == NULL) {
        walk(packet, size);
        if (((struct agentd_head *)packet)->type == AGENTD_SPAWN)
            walk_spawn(packet, size);
    }
    if (agentd_check_news(packet, size) == NULL)
        walk(packet, size);
    free(packet);
    return 0;
}
