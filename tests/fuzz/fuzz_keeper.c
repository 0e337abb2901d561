/* Whatever passes as a message of the link or of the keeper has its strings and bytes inside of
 * itself. And whatever a keeper tells, one packet after the other: a link takes it as it is, or
 * gives the keeper up.
 *
 * The input is packets, each as long as its head says. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "link/world.h"
#include "schema/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Single packets. */

static void walk(const void *packet, size_t size)
{
    size_t len = 0;
    const char *rest = agentd_get_rest(packet, &len);

    fuzz_must(rest + len == (const char *)packet + size);
}

static void walk_spawn(const struct agentd_spawn *m, size_t size)
{
    const char *text = (const char *)(m + 1);

    for (size_t i = 0; i < 1 + (size_t)m->argc + m->envc; i++)
        text += strlen(text) + 1;
    fuzz_must(text == (const char *)m + size);
}

static void check(const void *packet, size_t size)
{
    if (agentd_check_request(packet, size) == NULL) {
        walk(packet, size);
        if (((const struct agentd_head *)packet)->type == AGENTD_SPAWN)
            walk_spawn(packet, size);
    }
    if (agentd_check_news(packet, size) == NULL)
        walk(packet, size);
}

/* The link. */

static struct link_agent agent = { .name = "a" };
static struct agentd_who who = { .agent = "a", .instance = "i" };
static bool broken;

static bool is_text(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

/* What was remembered of a process is read as by the link that follows. */
static void on_agent(const struct agentd_agent *told, const char *blob, void *arg)
{
    struct link_process process = { .agent = &agent };

    (void)arg;
    fuzz_must(is_text(told->who.agent, sizeof told->who.agent) &&
              is_text(told->exit.evidence, sizeof told->exit.evidence));
    link_remember_read(&process, blob);
    fuzz_must(is_text(process.token, sizeof process.token) &&
              is_text(process.leave_text, sizeof process.leave_text));
    if (process.spec != NULL)
        hf_json_free(&process.spec->base);
    link_judged_done(&process.judged);
    if (agent.spec != NULL)
        hf_json_free(&agent.spec->base);
    agent.spec = NULL;
}

static void on_refused(uint16_t type, const struct agentd_who *of,
                       const struct agentd_reply *reply, void *arg)
{
    (void)type;
    (void)arg;
    fuzz_must(strcmp(of->agent, who.agent) == 0 && is_text(reply->text, sizeof reply->text));
}

static void on_remembered(const struct agentd_who *of, const struct agentd_reply *reply,
                          void *arg)
{
    (void)reply;
    (void)arg;
    fuzz_must(strcmp(of->instance, who.instance) == 0);
}

static void on_signal(int signal, void *arg)
{
    (void)signal;
    (void)arg;
}

static void on_broken(const char *why, void *arg)
{
    (void)arg;
    fuzz_must(why[0] != '\0' && !broken); /* once */
    broken = true;
}

/* Requests of every kind that has an answer of its own. */
static void ask(struct link_channel *channel)
{
    link_channel_ready(channel);
    link_channel_remember(channel, &who, &(struct agentd_incarnation){ 1, 2, 0 }, "t\n{}");
    link_channel_order(channel, AGENTD_KILL, &who);
}

/* What it tells first comes before the link begins, and the rest when it asks. */
static void tell_link(int keeper)
{
    const struct link_channel_config cfg = { .on_agent = on_agent,
                                             .on_refused = on_refused,
                                             .on_remembered = on_remembered,
                                             .on_signal = on_signal,
                                             .on_broken = on_broken };
    struct link_channel *channel = NULL;
    uv_loop_t loop;

    broken = false;
    fuzz_must(uv_loop_init(&loop) == 0);
    if (link_channel_open(&loop, &cfg, &channel, NULL) == HF_OK) {
        link_memo_parse(link_channel_get_memo(channel), &agent);
        ask(channel);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        (void)close(keeper);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        fuzz_must(broken); /* at the latest when the keeper is gone */
        link_channel_close(channel);
    } else {
        (void)close(keeper);
    }
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    fuzz_must(uv_loop_close(&loop) == 0);
}

/* The length of the packet that `data` begins with: what its head says, as far as it is there.
 */
static size_t length_of(const uint8_t *data, size_t size)
{
    struct agentd_head head;

    if (size < sizeof head)
        return size;
    memcpy(&head, data, sizeof head);
    return head.length >= sizeof head && head.length < size ? head.length : size;
}

static void send_all(int keeper, const uint8_t *data, size_t size)
{
    while (size > 0) {
        size_t len = length_of(data, size);
        /* A copy of exactly this size, so that the sanitizer sees a read beyond it. */
        void *packet = malloc(len);

        if (packet == NULL)
            return;
        memcpy(packet, data, len);
        if (len >= sizeof(struct agentd_head))
            ((struct agentd_head *)packet)->length = (uint32_t)len; /* or nothing would pass */
        check(packet, len);
        (void)!send(keeper, packet, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        free(packet);
        data += len;
        size -= len;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int keeper = fuzz_link_give_descriptors();

    send_all(keeper, data, size);
    (void)shutdown(keeper, SHUT_WR); /* nobody waits for more */
    tell_link(keeper);
    return 0;
}
