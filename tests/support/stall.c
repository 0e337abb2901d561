#include "support/stall.h"

#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/fanotify.h>
#include <unistd.h>

#include "support/wait.h"

bool hft_stall_begin(struct hft_stall *stall, const char *path)
{
    stall->fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY | O_CLOEXEC);
    if (stall->fd < 0)
        return false;
    if (fanotify_mark(stall->fd, FAN_MARK_ADD, FAN_ACCESS_PERM, AT_FDCWD, path) == 0)
        return true;
    (void)close(stall->fd);
    return false;
}

/* Whoever is told of is not answered: it goes on when nobody could answer any more. */
void hft_stall_await(struct hft_stall *stall)
{
    struct pollfd reader = { .fd = stall->fd, .events = POLLIN };
    struct fanotify_event_metadata told = { .fd = -1 };

    ck_assert_msg(poll(&reader, 1, (int)hft_patience(0)) == 1, "nobody reads it");
    ck_assert_int_eq(read(stall->fd, &told, sizeof told), sizeof told);
    ck_assert_uint_eq(told.mask, FAN_ACCESS_PERM);
    (void)close(told.fd);
}

void hft_stall_end(struct hft_stall *stall)
{
    (void)close(stall->fd);
}
