/* Whatever passes as a packet of the link or of its helper has its texts inside of itself. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/s3/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A copy of exactly this size, so that the sanitizer sees a read beyond it. */
    struct s3_packet *packet = malloc(size > 0 ? size : 1);

    if (packet == NULL)
        return 0;
    memcpy(packet, data, size);
    if (s3_packet_check(packet, size) == NULL) {
        const char *text = (const char *)(packet + 1);

        for (uint32_t i = 0; i < packet->count; i++) {
            if (s3_packet_get(packet, i) != text || strlen(text) >= S3_PACKET_TEXT)
                abort();
            text += strlen(text) + 1;
        }
        if (text != (const char *)packet + size)
            abort();
    }
    free(packet);
    return 0;
}
