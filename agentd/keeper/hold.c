#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "agentd/keeper/keeper.h"

#define DRAIN_AFTER                                                                            \
    (10 * KEEPER_SECOND) /* a link that is replaced takes a fraction of that                   \
                          */
#define DRAIN_EVERY (500 * KEEPER_MS)
#define DRAIN_MAX   64 /* notices of one agent at once */

static struct keeper_held **find(struct keeper *k, const char *agent)
{
    struct keeper_held **at = &k->held;

    while (*at != NULL && strcmp((*at)->agent, agent) != 0)
        at = &(*at)->next;
    return at;
}

uint32_t keeper_hold(struct keeper *k, const char *agent, int fd, const char **ret_why)
{
    struct keeper_held **at = find(k, agent), *held = *at;
    struct stat st;

    *ret_why = "no socket came with it";
    if (fd < 0 || fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode))
        return AGENTD_CODE_MALFORMED;
    *ret_why = "too many are held";
    if (held == NULL && (k->held_count >= AGENTD_AGENTS_MAX || !keeper_has_spare_files()))
        return AGENTD_CODE_LIMIT;
    if (held == NULL) {
        held = calloc(1, sizeof *held);
        *ret_why = "out of memory";
        if (held == NULL)
            return AGENTD_CODE_SYSTEM;
        keeper_copy(held->agent, sizeof held->agent, agent);
        held->fd = -1;
        *at = held;
        k->held_count++;
    }
    keeper_close(&held->fd);
    held->fd = fd;
    *ret_why = "";
    return AGENTD_CODE_OK;
}

void keeper_let(struct keeper *k, const char *agent)
{
    struct keeper_held **at = find(k, agent), *held = *at;

    if (held == NULL)
        return;
    *at = held->next;
    k->held_count--;
    keeper_close(&held->fd);
    free(held);
}

void keeper_let_all(struct keeper *k)
{
    while (k->held != NULL)
        keeper_let(k, k->held->agent);
}

int64_t keeper_held_drain(struct keeper *k, int64_t now)
{
    char byte;

    if (k->link_lost == 0 || k->held == NULL)
        return KEEPER_NEVER;
    if (now < k->link_lost + DRAIN_AFTER)
        return k->link_lost + DRAIN_AFTER;
    for (const struct keeper_held *held = k->held; held != NULL; held = held->next) {
        for (int i = 0; i < DRAIN_MAX && recv(held->fd, &byte, 1, MSG_DONTWAIT) >= 0; i++)
            ;
    }
    return now + DRAIN_EVERY;
}
