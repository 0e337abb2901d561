#include "agentd/keeper/protocol.h"

#include <string.h>
#include <sys/resource.h>

/* A text in a fixed field: NUL-terminated, and nothing hides behind the NUL. */
static bool is_text(const char *text, size_t size)
{
    const char *end = memchr(text, '\0', size);

    if (end == NULL)
        return false;
    for (const char *p = end; p < text + size; p++) {
        if (*p != '\0')
            return false;
    }
    return true;
}

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool agentd_is_name(const char *text, size_t size)
{
    if (!is_text(text, size) || !is_lower_or_digit(text[0]) || strlen(text) > 253)
        return false;
    for (const char *p = text; *p != '\0'; p++) {
        if (!is_lower_or_digit(*p) && strchr("._-", *p) == NULL)
            return false;
    }
    return true;
}

static bool is_id_or_empty(const char *text, size_t size)
{
    if (!is_text(text, size))
        return false;
    for (const char *p = text; *p != '\0'; p++) {
        if (!is_lower_or_digit(*p) && !(*p >= 'A' && *p <= 'Z') && *p != '-' && *p != '_')
            return false;
    }
    return true;
}

bool agentd_is_id(const char *text, size_t size)
{
    return text[0] != '\0' && is_id_or_empty(text, size);
}

static const char *check_who(const struct agentd_who *who)
{
    if (!agentd_is_name(who->agent, sizeof who->agent))
        return "the agent's name is not valid";
    if (!agentd_is_id(who->instance, sizeof who->instance))
        return "the instance id is not valid";
    return NULL;
}

static const char *check_lease(const struct agentd_lease_state *lease)
{
    if (lease->ttl_ms < 0 || lease->ttl_ms > AGENTD_TTL_MAX || lease->renewed_ns < 0)
        return "the lease's TTL or time of renewal is out of range";
    return NULL;
}

static const char *check_incarnation(const struct agentd_incarnation *i)
{
    if (i->lease_id < 0 || i->create_revision < 0 || i->generation < 0)
        return "the incarnation has a negative number";
    return NULL;
}

/* `count` strings in exactly `len` bytes. */
static bool are_strings(const char *text, size_t len, size_t count)
{
    for (; count > 0; count--) {
        const char *end = memchr(text, '\0', len);

        if (end == NULL)
            return false;
        len -= (size_t)(end + 1 - text);
        text = end + 1;
    }
    return len == 0;
}

static const char *next_string(const char *text)
{
    return text + strlen(text) + 1;
}

static bool has_name_of(const char *entry, const char *other, size_t name_len)
{
    return strncmp(entry, other, name_len) == 0 && other[name_len] == '=';
}

/* NAME=value each, no name twice. Quadratic, but over what one message holds. */
static const char *check_env(const char *env, size_t count)
{
    const char *entry = env;

    for (size_t i = 0; i < count; i++, entry = next_string(entry)) {
        const char *equals = strchr(entry, '=');

        if (equals == NULL || equals == entry)
            return "an environment entry is not NAME=value";
        const char *earlier = env;
        for (size_t k = 0; k < i; k++, earlier = next_string(earlier)) {
            if (has_name_of(entry, earlier, (size_t)(equals - entry)))
                return "an environment name stands twice";
        }
    }
    return NULL;
}

static const char *check_user(const struct agentd_spawn *m)
{
    if (m->group_count > AGENTD_GROUPS_MAX)
        return "too many groups";
    if ((m->uid == AGENTD_KEEP_ID) != (m->gid == AGENTD_KEEP_ID))
        return "uid and gid must both be given, or neither";
    if (m->uid == AGENTD_KEEP_ID && m->group_count > 0)
        return "groups without a user";
    return NULL;
}

static const char *check_limits(const struct agentd_spawn *m)
{
    if (m->rlimit_count > AGENTD_RLIMITS_MAX)
        return "too many limits";
    for (size_t i = 0; i < m->rlimit_count; i++) {
        const struct agentd_rlimit *limit = &m->rlimits[i];

        if (limit->resource >= RLIM_NLIMITS || limit->soft > limit->hard)
            return "a limit is unknown, or its soft part above the hard one";
    }
    if (m->umask > 0777 || m->nice < -20 || m->nice > 19)
        return "umask or nice is out of range";
    return NULL;
}

static const char *check_spawn(const void *data, size_t rest)
{
    const struct agentd_spawn *m = data;
    const char *text = (const char *)(m + 1);
    const char *why = check_who(&m->who);

    if (why != NULL || (why = check_user(m)) != NULL || (why = check_limits(m)) != NULL)
        return why;
    if (!is_id_or_empty(m->op_id, sizeof m->op_id))
        return "the op id is not valid";
    if (m->fence > AGENTD_FENCE_HOLD || m->flags > 31 || m->reserved != 0)
        return "unknown fence policy or flags";
    if ((m->flags & AGENTD_SPAWN_PASS_INPUT) != 0 && (m->flags & AGENTD_SPAWN_TELL_INPUT) != 0)
        return "its stdin cannot be agentd's and a pipe";
    if (m->argc < 1 || m->argc > AGENTD_STRINGS_MAX || m->envc > AGENTD_ENV_MAX)
        return "too few or too many strings";
    if (m->text_len != rest || !are_strings(text, rest, 1 + (size_t)m->argc + m->envc))
        return "the strings do not end where the message does";
    if (text[0] != '/')
        return "cwd is not absolute";
    const char *argv = next_string(text);
    if (argv[0] == '\0')
        return "argv[0] is empty";
    for (size_t i = 0; i < m->argc; i++)
        argv = next_string(argv);
    return check_env(argv, m->envc);
}

static const char *check_release(const void *data, size_t rest)
{
    const struct agentd_release *m = data;
    const char *why = check_who(&m->who);

    if (why != NULL || (why = check_incarnation(&m->incarnation)) != NULL)
        return why;
    if (rest > AGENTD_RELEASE_MAX || m->envc > AGENTD_ENV_MAX)
        return "too much environment";
    if (m->text_len != rest || !are_strings((const char *)(m + 1), rest, m->envc))
        return "the strings do not end where the message does";
    return check_env((const char *)(m + 1), m->envc);
}

static const char *check_order(const void *data, size_t rest)
{
    const struct agentd_order *m = data;

    (void)rest;
    if (m->head.type == AGENTD_END) {
        if (m->grace_ms > AGENTD_GRACE_MAX || m->signal < 1 || m->signal > 64)
            return "grace or signal is out of range";
    } else if (m->head.type == AGENTD_EXTEND) {
        if (m->grace_ms > AGENTD_GRACE_MAX || m->signal != 0)
            return "grace is out of range, or a signal stands there";
    } else if (m->grace_ms != 0 || m->signal != 0) {
        return "grace and signal belong to END";
    }
    return check_who(&m->who);
}

static const char *check_remember(const void *data, size_t rest)
{
    const struct agentd_remember *m = data;
    const char *why = check_who(&m->who);

    if (why != NULL || (why = check_incarnation(&m->incarnation)) != NULL)
        return why;
    if (!is_id_or_empty(m->op_id, sizeof m->op_id))
        return "the op id is not valid";
    if (m->blob_len != rest || rest > AGENTD_BLOB_MAX || m->reserved != 0)
        return "the blob is too long, or not as long as it says";
    return NULL;
}

static const char *check_tell(const void *data, size_t rest)
{
    const struct agentd_tell *m = data;
    const char *why = check_who(&m->who);

    if (why != NULL)
        return why;
    if (!agentd_is_id(m->id, sizeof m->id))
        return "the id of what is told is not valid";
    if (m->len != rest || rest < 1 || rest > AGENTD_TELL_MAX || m->reserved != 0)
        return "what is told is too long, or not as long as it says";
    return NULL;
}

static const char *check_memo(const void *data, size_t rest)
{
    const struct agentd_memo *m = data;

    if (m->len != rest || rest > AGENTD_MEMO_MAX || m->reserved != 0)
        return "the memo is too long, or not as long as it says";
    return NULL;
}

static const char *check_ready(const void *data, size_t rest)
{
    const struct agentd_ready *m = data;

    (void)rest;
    return m->version == AGENTD_PROTOCOL_VERSION ? NULL : "another version of the protocol";
}

static const char *check_lease_message(const void *data, size_t rest)
{
    (void)rest;
    return check_lease(&((const struct agentd_lease *)data)->lease);
}

static const char *check_shutdown(const void *data, size_t rest)
{
    const struct agentd_shutdown *m = data;

    (void)rest;
    return m->code > 255 || m->grace_ms > AGENTD_GRACE_MAX ? "code or grace is out of range"
                                                           : NULL;
}

static const char *check_hello(const void *data, size_t rest)
{
    const struct agentd_hello *m = data;

    if (m->version != AGENTD_PROTOCOL_VERSION)
        return "another version of the protocol";
    if (!is_text(m->boot_id, sizeof m->boot_id) || !is_text(m->state_dir, sizeof m->state_dir))
        return "a text does not end";
    if (m->memo_len != rest || m->agents > AGENTD_AGENTS_MAX)
        return "a count is out of range";
    return check_lease(&m->lease);
}

static const char *check_agent(const void *data, size_t rest)
{
    const struct agentd_agent *m = data;
    const char *why = check_who(&m->who);

    if (why != NULL || (why = check_incarnation(&m->incarnation)) != NULL)
        return why;
    if (!is_id_or_empty(m->op_id, sizeof m->op_id) || !is_text(m->boot_id, sizeof m->boot_id) ||
        !is_text(m->exit.evidence, sizeof m->exit.evidence) ||
        !is_text(m->exit.output, sizeof m->exit.output))
        return "a text is not valid";
    if (m->state > AGENTD_STATE_ENDED || m->fence > AGENTD_FENCE_HOLD || m->gone > 1 ||
        m->blob_len != rest || m->blob_len > AGENTD_BLOB_MAX)
        return "state, fence or length is out of range";
    return NULL;
}

static const char *check_reply(const void *data, size_t rest)
{
    const struct agentd_reply *m = data;

    (void)rest;
    return m->code > AGENTD_CODE_FULL || !is_text(m->text, sizeof m->text)
               ? "code or text is not valid"
               : NULL;
}

static const char *check_held(const void *data, size_t rest)
{
    const struct agentd_held *m = data;

    (void)rest;
    return agentd_is_name(m->agent, sizeof m->agent) ? NULL : "the agent's name is not valid";
}

static const char *check_nothing(const void *data, size_t rest)
{
    (void)data;
    (void)rest;
    return NULL;
}

/* What each message must look like. */
struct shape {
    uint16_t type;
    bool is_request;
    bool has_rest; /* bytes may follow the fixed part */
    uint32_t fixed;
    const char *(*check)(const void *data, size_t rest);
};

static const struct shape SHAPES[] = {
    { AGENTD_HELLO, false, true, sizeof(struct agentd_hello), check_hello },
    { AGENTD_AGENT, false, true, sizeof(struct agentd_agent), check_agent },
    { AGENTD_SYNCED, false, false, sizeof(struct agentd_head), check_nothing },
    { AGENTD_REPLY, false, false, sizeof(struct agentd_reply), check_reply },
    { AGENTD_SIGNAL, false, false, sizeof(struct agentd_signal), check_nothing },
    { AGENTD_HELD, false, false, sizeof(struct agentd_held), check_held },
    { AGENTD_ASK, false, false, sizeof(struct agentd_head), check_nothing },
    { AGENTD_READY, true, false, sizeof(struct agentd_ready), check_ready },
    { AGENTD_LEASE, true, false, sizeof(struct agentd_lease), check_lease_message },
    { AGENTD_MEMO, true, true, sizeof(struct agentd_memo), check_memo },
    { AGENTD_SPAWN, true, true, sizeof(struct agentd_spawn), check_spawn },
    { AGENTD_RELEASE, true, true, sizeof(struct agentd_release), check_release },
    { AGENTD_DISCARD, true, false, sizeof(struct agentd_order), check_order },
    { AGENTD_FREEZE, true, false, sizeof(struct agentd_order), check_order },
    { AGENTD_THAW, true, false, sizeof(struct agentd_order), check_order },
    { AGENTD_END, true, false, sizeof(struct agentd_order), check_order },
    { AGENTD_KILL, true, false, sizeof(struct agentd_order), check_order },
    { AGENTD_REMEMBER, true, true, sizeof(struct agentd_remember), check_remember },
    { AGENTD_FORGET, true, false, sizeof(struct agentd_order), check_order },
    { AGENTD_SHUTDOWN, true, false, sizeof(struct agentd_shutdown), check_shutdown },
    { AGENTD_TELL, true, true, sizeof(struct agentd_tell), check_tell },
    { AGENTD_HOLD, true, false, sizeof(struct agentd_held), check_held },
    { AGENTD_ALIVE, true, false, sizeof(struct agentd_head), check_nothing },
    { AGENTD_EXTEND, true, false, sizeof(struct agentd_order), check_order },
    { AGENTD_LET, true, false, sizeof(struct agentd_held), check_held },
};

static const struct shape *shape_of(uint16_t type)
{
    for (size_t i = 0; i < sizeof SHAPES / sizeof SHAPES[0]; i++) {
        if (SHAPES[i].type == type)
            return &SHAPES[i];
    }
    return NULL;
}

static const char *check(const void *data, size_t len, bool is_request)
{
    const struct agentd_head *head = data;

    if (len < sizeof *head)
        return "shorter than a head";
    if (head->length != len || len > AGENTD_MESSAGE_MAX)
        return "not as long as it says, or too long";
    const struct shape *shape = shape_of(head->type);
    if (shape == NULL || shape->is_request != is_request)
        return "no such type of message";
    if (head->reserved != 0 || (is_request && head->id == 0))
        return "no id, or a reserved field is not 0";
    if (len < shape->fixed || (len > shape->fixed && !shape->has_rest))
        return "not as long as its type says";
    return shape->check(data, len - shape->fixed);
}

const char *agentd_check_request(const void *data, size_t len)
{
    return check(data, len, true);
}

const char *agentd_check_news(const void *data, size_t len)
{
    return check(data, len, false);
}

const void *agentd_get_rest(const void *data, size_t *ret_len)
{
    const struct agentd_head *head = data;
    const struct shape *shape = shape_of(head->type);

    *ret_len = head->length - shape->fixed;
    return (const char *)data + shape->fixed;
}

/* clang-format off */
const char *agentd_state_name(uint32_t state)
{
    switch (state) {
#define X(name, value) case (value): return #name;
        AGENTD_STATE_MAP(X)
#undef X
    default: return "?";
    }
}

const char *agentd_code_name(uint32_t code)
{
    switch (code) {
#define X(name, value) case (value): return #name;
        AGENTD_CODE_MAP(X)
#undef X
    default: return "?";
    }
}

const char *agentd_message_name(uint32_t type)
{
    switch (type) {
#define X(name, value) case (value): return #name;
        AGENTD_MESSAGE_MAP(X)
#undef X
    default: return "?";
    }
}
/* clang-format on */
