/* Whatever a program answers that is asked whether it serves: what it says does not depend on
 * the pieces that it comes in. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/link/probe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef int (*read_fn)(const char *in, size_t len);

/* Of exactly that size, so that the sanitizer sees a read beyond it. */
static int read_copy(read_fn fn, const uint8_t *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    int answer;

    if (copy == NULL)
        return 0;
    if (size > 0)
        memcpy(copy, data, size);
    answer = fn(copy, size);
    free(copy);
    return answer;
}

/* The first word that is not "not known yet" is the last one. */
static void try(read_fn fn, const uint8_t *data, size_t size)
{
    int said = 0;

    for (size_t len = 0; len <= size; len++) {
        int answer = read_copy(fn, data, len);

        if (said != 0 && (answer > 0) != (said > 0))
            abort();
        said = said != 0 ? said : answer;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { MOST = 1024 }; /* no more than that is read */

    try(link_probe_read_http, data, size < MOST ? size : MOST);
    try(link_probe_read_health, data, size < MOST ? size : MOST);
    return 0;
}
