/* keys.h - the layout of the keyspace in etcd: builds and parses every key.
 *
 * Nothing else knows the text of a key. docs/keys.md describes each kind. Pure; nothing is
 * allocated. What parses was built by these rules to the byte, and gives the same bytes again:
 * there is one spelling of each key.
 *
 *     char key[HF_KEY_SIZE];
 *     int len = hf_key_format(ns, &(struct hf_key){ HF_KEY_AGENT_LIVE, .name = "a1" }, key,
 * err);
 */
#ifndef HF_SCHEMA_KEYS_H
#define HF_SCHEMA_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <protobuf-c/protobuf-c.h>

#include "base/buf.h"
#include "base/err.h"
#include "schema/name.h"

/* Kinds of keys: pattern, life, message of the value. In a pattern `@` stands for the
 * namespace, `*` for a name (.name, then .sub), `#` for a number (.seq). */
/* clang-format off */
#define HF_KEY_RECORDS(X)                                                                      \
    X(META,              "/holdfast/@/meta",              KEPT,  meta)                         \
    X(HOST_RECORD,       "/holdfast/@/hosts/*/record",    KEPT,  host)                         \
    X(HOST_LIVE,         "/holdfast/@/hosts/*/live",      LEASE, host_live)                    \
    X(AGENT_SPEC,        "/holdfast/@/agents/*/spec",     KEPT,  spec)                         \
    X(AGENT_LIVE,        "/holdfast/@/agents/*/live",     LEASE, live)                         \
    X(AGENT_REPORT,      "/holdfast/@/agents/*/report",   KEPT,  report)                       \
    X(AGENT_EXIT,        "/holdfast/@/agents/*/exit",     KEPT,  exit)                         \
    X(WANTED,            "/holdfast/@/wanted/*",          KEPT,  wanted)                       \
    X(HEALTH,            "/holdfast/@/health/*",          KEPT,  health)                       \
    X(TASK,              "/holdfast/@/tasks/*",           KEPT,  task)                         \
    X(PENDING,           "/holdfast/@/pending/*/*",       KEPT,  pending)                      \
    X(CHECKPOINT,        "/holdfast/@/checkpoints/*/#",   KEPT,  checkpoint)                   \
    X(COMMAND,           "/holdfast/@/commands/*/*",      KEPT,  command)                      \
    X(RECOVERY,          "/holdfast/@/recoveries/*",      KEPT,  recovery)                     \
    X(LEADER,            "/holdfast/@/controller/leader", LEASE, leader)                       \
    X(CLOCK,             "/holdfast/@/controller/clock",  KEPT,  clock)                        \
    X(EVENT,             "/holdfast/@/events/#",          KEPT,  event)

/* Bodies are bytes, not records, and lie outside of the prefix that everyone mirrors. */
#define HF_KEY_BODIES(X)                                                                       \
    X(TASK_PAYLOAD,      "/holdfast-data/@/tasks/*/payload")                                   \
    X(TASK_RESULT,       "/holdfast-data/@/tasks/*/result")                                    \
    X(CHECKPOINT_BODY,   "/holdfast-data/@/checkpoints/*/#")

/* Sets of keys that are listed, watched or removed together; all end in a slash. */
#define HF_KEY_SCOPES(X)                                                                       \
    X(NAMESPACE,         "/holdfast/@/")                                                       \
    X(HOSTS,             "/holdfast/@/hosts/")                                                 \
    X(HOST,              "/holdfast/@/hosts/*/")                                               \
    X(AGENTS,            "/holdfast/@/agents/")                                                \
    X(AGENT,             "/holdfast/@/agents/*/")                                              \
    X(WANTED,            "/holdfast/@/wanted/")                                                \
    X(HEALTH,            "/holdfast/@/health/")                                                \
    X(TASKS,             "/holdfast/@/tasks/")                                                 \
    X(PENDING,           "/holdfast/@/pending/")                                               \
    X(PENDING_ROLE,      "/holdfast/@/pending/*/")                                             \
    X(CHECKPOINTS,       "/holdfast/@/checkpoints/")                                           \
    X(CHECKPOINTS_TASK,  "/holdfast/@/checkpoints/*/")                                         \
    X(COMMANDS,          "/holdfast/@/commands/")                                              \
    X(COMMANDS_HOST,     "/holdfast/@/commands/*/")                                            \
    X(RECOVERIES,        "/holdfast/@/recoveries/")                                            \
    X(CONTROLLER,        "/holdfast/@/controller/")                                            \
    X(EVENTS,            "/holdfast/@/events/")                                                \
    X(DATA,              "/holdfast-data/@/")                                                  \
    X(DATA_TASK,         "/holdfast-data/@/tasks/*/")                                          \
    X(DATA_CHECKPOINTS,  "/holdfast-data/@/checkpoints/*/")
/* clang-format on */

enum hf_key_kind {
#define X(kind, ...) HF_KEY_##kind,
    HF_KEY_RECORDS(X) HF_KEY_BODIES(X)
#undef X
        HF_KEY_KINDS, /* how many */
};

enum hf_key_scope {
#define X(scope, ...) HF_KEY_IN_##scope,
    HF_KEY_SCOPES(X)
#undef X
        HF_KEY_IN_SCOPES, /* how many */
};

#define HF_KEY_SIZE   800 /* the longest key and its NUL */
#define HF_KEY_DIGITS 19  /* of a number, zero-padded so that keys sort by it */

/* A key in its parts. The strings are borrowed. */
struct hf_key {
    enum hf_key_kind kind;
    const char *name; /* host, agent, task or role, as the kind has it; NULL for none */
    const char *sub;  /* agent of a command, task of a pending entry; NULL for none */
    int64_t seq;      /* 1 and up; 0 for none */
};

/* Writes the key with its NUL and returns its length; HF_EINVAL when the namespace or a part is
 * missing or malformed. Parts that the kind does not have are ignored. */
int hf_key_format(const char *ns, const struct hf_key *key, char ret_text[HF_KEY_SIZE],
                  struct hf_error *err) HF_MUST_CHECK;

/* Takes a whole key of that namespace apart, or says at which byte it is none (HF_EINVAL). The
 * strings of *ret_key lie in `scratch`, which is overwritten in any case. */
int hf_key_parse(const char *ns, struct hf_bytes text, char scratch[HF_KEY_SIZE],
                 struct hf_key *ret_key, struct hf_error *err) HF_MUST_CHECK;

/* Writes the common prefix of the keys in a scope, and returns its length. `name` is what the
 * scope is narrowed to (the role of PENDING_ROLE, say); ignored where it has none. */
int hf_key_prefix(const char *ns, enum hf_key_scope scope, const char *name,
                  char ret_text[HF_KEY_SIZE], struct hf_error *err) HF_MUST_CHECK;

/* True for keys that may only ever be put together with a lease. */
bool hf_key_is_ephemeral(enum hf_key_kind kind);

/* Of the records that this program knows. Where `meta` has a newer one, it only reads. */
#define HF_SCHEMA_VERSION 1

/* The message that the value is the JSON form of; NULL for bodies, which are plain bytes. */
const ProtobufCMessageDescriptor *hf_key_get_record(enum hf_key_kind kind);

#endif
