/* Whatever an agent sends as if to systemd, one datagram after the other: what is made of it is
 * a text, and a silence that ends. \x1e ends a datagram, \x1f lets a quarter of a minute pass
 * as well. */
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/str.h"
#include "link/world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { RESTS = 3, MOMENT_MS = 20, LONG_MS = 15000 };

static int connect_to_socket(void)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    (void)strncpy(address.sun_path, fuzz_link_get_path("agents/a1.note"),
                  sizeof address.sun_path - 1);
    fuzz_must(fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    return fd;
}

static void check_said(void)
{
    const struct link_process *process = link_process_get_current(fuzz_link_get()->agents);
    const struct link_said *said;

    if (process == NULL)
        return; /* it had itself ended: WATCHDOG=trigger */
    said = &process->said;
    fuzz_must(memchr(said->phase, '\0', sizeof said->phase) != NULL &&
              hf_str_is_utf8(said->phase, strlen(said->phase)));
    fuzz_must(said->watchdog_ms >= 0 && said->extend_ms >= 0);
    fuzz_must(!said->has_until || (said->until_ns >= 0 && said->until_ns < 1000000000));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd, rests = 0;

    fuzz_link_open();
    fd = connect_to_socket();
    for (size_t i = 0, from = 0; i <= size; i++) {
        if (i < size && data[i] != 0x1e && data[i] != 0x1f)
            continue;
        /* One that is too long for the kernel is not sent. */
        (void)!send(fd, data + from, i - from, MSG_NOSIGNAL | MSG_DONTWAIT);
        fuzz_link_wait(i < size && data[i] == 0x1f && ++rests <= RESTS ? LONG_MS : MOMENT_MS);
        check_said();
        from = i + 1;
    }
    (void)close(fd);
    fuzz_link_close();
    return 0;
}
