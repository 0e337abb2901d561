#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "agentd/keeper/keeper.h"

int keeper_fence_init(struct keeper *k)
{
    k->page_fd = memfd_create("holdfast-fence", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (k->page_fd < 0 || ftruncate(k->page_fd, AGENTD_PAGE_BYTES) < 0)
        return -errno;
    /* A link that cut it would have us killed by SIGBUS. */
    (void)fcntl(k->page_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
    k->page = mmap(NULL, AGENTD_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, k->page_fd, 0);
    if (k->page == MAP_FAILED)
        return -errno;
    *k->page =
        (struct agentd_page){ .magic = AGENTD_PAGE_MAGIC, .version = AGENTD_PROTOCOL_VERSION };
    k->fence_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (k->fence_fd < 0)
        return -errno;
    keeper_watch(k, k->fence_fd, WATCH_FENCE, 0);
    return 0;
}

static int64_t load_deadline(const struct keeper *k)
{
    return __atomic_load_n(&k->page->deadline_ns, __ATOMIC_SEQ_CST);
}

static bool has_passed(int64_t deadline, int64_t now)
{
    return deadline <= now || deadline > now + AGENTD_TTL_MAX * KEEPER_MS;
}

int64_t keeper_fence_get(struct keeper *k)
{
    int64_t deadline = load_deadline(k);

    return deadline <= keeper_now() + AGENTD_TTL_MAX * KEEPER_MS ? deadline : 0;
}

bool keeper_fence_has_passed(struct keeper *k)
{
    int64_t deadline = load_deadline(k);

    return has_passed(deadline, keeper_now());
}

/* Whom the link has ordered to stand, but who does not yet, the fence is for as well. */
static bool may_run(const struct keeper_slot *s)
{
    return s->goal == GOAL_RUN ||
           (s->goal == GOAL_STILL && s->freeze_since != 0 && s->a.fenced == 0);
}

static bool is_due(const struct keeper_slot *s)
{
    return s->a.fence != AGENTD_FENCE_HOLD && may_run(s) && s->released && !s->main_gone;
}

static size_t fall(struct keeper *k)
{
    size_t count = 0;

    for (size_t i = 0; i < k->slot_count; i++) {
        struct keeper_slot *s = k->slots[i];

        if (!is_due(s))
            continue;
        count++;
        s->a.fenced = 1;
        if (s->a.fence == AGENTD_FENCE_KILL)
            keeper_slot_kill(k, s, AGENTD_CAUSE_FENCED);
        else
            keeper_slot_freeze(k, s);
    }
    return count;
}

static void arm(struct keeper *k, int64_t at)
{
    struct itimerspec spec = { .it_value = { .tv_sec = at / KEEPER_SECOND,
                                             .tv_nsec = at % KEEPER_SECOND } };

    if (timerfd_settime(k->fence_fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0)
        k->armed_ns = at;
}

/* Called at every turn of the loop. The link may have moved the deadline since the timer was
 * set; an earlier timer only makes us look once more. */
void keeper_fence_check(struct keeper *k)
{
    int64_t deadline = load_deadline(k);
    int64_t now = keeper_now();
    bool is_anyone_due = false;

    for (size_t i = 0; i < k->slot_count && !is_anyone_due; i++)
        is_anyone_due = is_due(k->slots[i]);
    if (!is_anyone_due)
        return;
    if (has_passed(deadline, now)) {
        size_t count = fall(k);

        keeper_log("warn", "event=fence agents=%zu late_ms=%jd", count,
                   (intmax_t)(deadline > 0 ? (now - deadline) / KEEPER_MS : 0));
    } else if (k->armed_ns <= now || k->armed_ns > deadline) {
        arm(k, deadline);
    }
}
