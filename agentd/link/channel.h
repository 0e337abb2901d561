/* channel.h - the keeper, as the link sees it: packets of keeper/protocol.h on the loop.
 *
 * Requests never block: what the socket does not take at once waits in a queue, in order. Every
 * request is answered; the ones whose refusal matters have a callback by kind. */
#ifndef LINK_CHANNEL_H
#define LINK_CHANNEL_H

#include <uv.h>

#include "agentd/keeper/protocol.h"
#include "agentd/link/launcher.h"
#include "base/clock.h"
#include "base/err.h"
#include "schema/config.h"

struct link_channel;

struct link_channel_config {
    /* One process as it is now, told at the start and after every change; `blob` is what was
     * remembered of it. */
    void (*on_agent)(const struct agentd_agent *agent, const char *blob, void *arg);
    /* A request about a process was refused. */
    void (*on_refused)(uint16_t type, const struct agentd_who *who,
                       const struct agentd_reply *reply, void *arg);
    /* What was to be remembered of a process is, or cannot be. */
    void (*on_remembered)(const struct agentd_who *who, const struct agentd_reply *reply,
                          void *arg);
    /* What a process was to be told is written to its stdin, or why not. */
    void (*on_told)(const struct agentd_who *who, const struct agentd_reply *reply, void *arg);
    void (*on_signal)(int signal, void *arg);
    /* The keeper is gone or speaks nonsense: there is nothing left to do but to end. */
    void (*on_broken)(const char *why, void *arg);
    void *arg;
};

/* Takes over the descriptors that the keeper gave us, and waits for what it tells first: HELLO
 * and every process that it holds, for each of which on_agent comes before this returns.
 * Blocking: for the start. HF_EIO or HF_EINVAL with a sentence when that is not what comes. */
int link_channel_open(uv_loop_t *loop, const struct link_channel_config *cfg,
                      struct link_channel **ret_channel, struct hf_error *err) HF_MUST_CHECK;
void link_channel_close(struct link_channel *channel);           /* NULL is fine */
void link_channel_close_when_sent(struct link_channel *channel); /* everything */

/* As the keeper said it; its memo, which is a text. */
const struct agentd_hello *link_channel_get_hello(const struct link_channel *channel);
const char *link_channel_get_memo(const struct link_channel *channel);

/* The fence deadline. Setting it takes effect at once, whatever the keeper reads. */
hf_ms link_channel_get_deadline(const struct link_channel *channel); /* 0: none */
void link_channel_set_deadline(struct link_channel *channel, hf_ms at);

/* Requests. Without memory for one the channel breaks (on_broken): the next link finds
 * everything as the keeper has it. */
void link_channel_ready(struct link_channel *channel);
void link_channel_lease(struct link_channel *channel, const struct agentd_lease_state *lease);
void link_channel_memo(struct link_channel *channel, const char *text);

/* A socket of an agent that must not end with this link: the keeper gets a copy, which the next
 * link finds. */
void link_channel_hold(struct link_channel *channel, const char *agent, int fd);
void link_channel_let(struct link_channel *channel, const char *agent); /* not any more */
/* What a link before this one gave: it is the caller's then; NULL: of whomever. -1: none. */
int link_channel_take_held(struct link_channel *channel, const char *agent);
/* Whose has not been taken; NULL: all have. */
const char *link_channel_get_held(const struct link_channel *channel);

/* What a process is made of. The strings are borrowed for the call. */
struct link_spawn {
    const struct agentd_who *who;
    const char *cwd;
    struct hf_strings argv, env;
    uint32_t fence;                       /* AGENTD_FENCE_... */
    uint32_t flags;                       /* AGENTD_SPAWN_... */
    const struct link_launcher *launcher; /* for its user and limits */
};

/* HF_ELIMIT when it does not fit into a packet. */
int link_channel_spawn(struct link_channel *channel,
                       const struct link_spawn *spawn) HF_MUST_CHECK;
void link_channel_release(struct link_channel *channel, const struct agentd_who *who,
                          const struct agentd_incarnation *incarnation, struct hf_strings env);
void link_channel_remember(struct link_channel *channel, const struct agentd_who *who,
                           const struct agentd_incarnation *incarnation, const char *blob);
/* To its stdin: on_told follows. HF_ENOENT: the keeper cannot do that; HF_EINVAL: the id is
 * none of its ids. */
int link_channel_tell(struct link_channel *channel, const struct agentd_who *who,
                      const char *id, struct hf_bytes line) HF_MUST_CHECK;
/* DISCARD, FREEZE, THAW, KILL, FORGET. */
void link_channel_order(struct link_channel *channel, enum agentd_message type,
                        const struct agentd_who *who);
void link_channel_end(struct link_channel *channel, const struct agentd_who *who, int signal,
                      hf_ms grace);
/* One that was told to end needs longer; at most AGENTD_EXTEND_MAX. */
void link_channel_extend(struct link_channel *channel, const struct agentd_who *who,
                         hf_ms grace);
void link_channel_shutdown(struct link_channel *channel, int code);

#endif
