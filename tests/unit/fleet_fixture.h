/* fleet_fixture.h - a fleet that is told of changes, and what it tells. */
#ifndef HF_TESTS_UNIT_FLEET_FIXTURE_H
#define HF_TESTS_UNIT_FLEET_FIXTURE_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/fleet.h"
#include "schema/json.h"

#define SEED 0x5eed

/* What was told since the last look, each once and in order of the alphabet; no allocation, so
 * that it may be told while allocations fail. */
enum { TOLD_MAX = 512, TOLD_SIZE = 48 };

struct told {
    char text[TOLD_MAX][TOLD_SIZE];
    size_t count;
};

static struct told told;
static struct hf_fleet *fleet;
static int64_t rev;
static hf_ms now;

static const char *const KIND_NAMES[] = {
    [HF_FLEET_AGENT] = "agent",
    [HF_FLEET_HOST] = "host",
    [HF_FLEET_TASK] = "task",
    [HF_FLEET_ROLE] = "role",
};

static inline void tell(struct told *all, const char *what, enum hf_fleet_kind kind,
                        const char *name)
{
    char text[TOLD_SIZE];
    size_t at = 0;
    int order = 1;

    (void)snprintf(text, sizeof text, "%s%s %s", what, KIND_NAMES[kind], name);
    while (at < all->count && (order = strcmp(all->text[at], text)) < 0)
        at++;
    if (at < all->count && order == 0)
        return;
    if (all->count == TOLD_MAX)
        abort();
    memmove(all->text[at + 1], all->text[at], (all->count - at) * TOLD_SIZE);
    memcpy(all->text[at], text, sizeof text);
    all->count++;
}

static inline void on_touched(enum hf_fleet_kind kind, void *object, void *arg)
{
    (void)arg;
    tell(&told, "", kind, *(const char *const *)object);
}

static inline void on_gone(enum hf_fleet_kind kind, void *object, void *arg)
{
    (void)arg;
    tell(&told, "gone ", kind, *(const char *const *)object);
}

static inline void setup(void)
{
    struct hf_fleet_config cfg = { .on_touched = on_touched, .on_gone = on_gone, .seed = SEED };

    fleet = hf_fleet_new(&cfg);
    ck_assert_ptr_nonnull(fleet);
    told.count = 0;
    rev = 100;
    now = 5000;
}

static inline void teardown(void)
{
    hf_fleet_free(fleet);
    fleet = NULL;
}

/* Decodes what stands in etcd; the caller's. */
static inline ProtobufCMessage *decode(enum hf_key_kind kind, const char *json)
{
    ProtobufCMessage *record = NULL;
    struct hf_error err = { "" };
    int rc = hf_json_decode(hf_key_get_record(kind), json, strlen(json),
                            &(struct hf_json_options){ .reject_unknown = true }, &record, &err);

    ck_assert_msg(rc == HF_OK, "%s: %s", json, err.text);
    return record;
}

/* What the new revision put there, in a life that began with it. */
static inline struct hf_fleet_change make_put(struct hf_key key, const char *json)
{
    rev++;
    now += 10;
    return (struct hf_fleet_change){
        .key = key,
        .seen = { .create_rev = rev,
                  .mod_rev = rev,
                  .lease = hf_key_is_ephemeral(key.kind) ? 42 : 0,
                  .text = { .data = json, .len = strlen(json) } },
        .record = decode(key.kind, json),
        .at = now,
    };
}

static inline void put_key(struct hf_key key, const char *json)
{
    struct hf_fleet_change change = make_put(key, json);

    ck_assert_int_eq(hf_fleet_apply(fleet, &change), HF_OK);
}

static inline void erase_key(struct hf_key key)
{
    rev++;
    now += 10;
    ck_assert_int_eq(hf_fleet_apply(fleet, &(struct hf_fleet_change){ .key = key, .at = now }),
                     HF_OK);
}

static inline void put(enum hf_key_kind kind, const char *name, const char *json)
{
    put_key((struct hf_key){ .kind = kind, .name = name }, json);
}

static inline void erase(enum hf_key_kind kind, const char *name)
{
    erase_key((struct hf_key){ .kind = kind, .name = name });
}

/* "agent a, gone role r": exactly that was told since the last look. */
static inline void expect(const char *what)
{
    char all[4096] = "";
    size_t len = 0;

    for (size_t i = 0; i < told.count; i++)
        len += (size_t)snprintf(all + len, sizeof all - len, "%s%s", i > 0 ? ", " : "",
                                told.text[i]);
    ck_assert_str_eq(all, what);
    told.count = 0;
}

static inline void ignore(void)
{
    told.count = 0;
}

/* Short names for what tests ask all the time. */

#define TASK(state, role, owner)                                                               \
    "{\"id\":\"t\",\"role\":\"" role "\",\"state\":\"" state                                   \
    "\",\"owner\":{\"agent\":\"" owner "\"}}"

static inline void put_command(const char *host, const char *agent, const char *json)
{
    put_key((struct hf_key){ HF_KEY_COMMAND, .name = host, .sub = agent }, json);
}

static inline void erase_command(const char *host, const char *agent)
{
    erase_key((struct hf_key){ HF_KEY_COMMAND, .name = host, .sub = agent });
}

static inline struct hf_fleet_counts counts(void)
{
    return hf_fleet_get_counts(fleet);
}

static inline struct hf_agent *agent(const char *name)
{
    return hf_fleet_get_agent(fleet, name);
}

static inline struct hf_host *host(const char *name)
{
    return hf_fleet_get_host(fleet, name);
}

static inline struct hf_task *task(const char *name)
{
    return hf_fleet_get_task(fleet, name);
}

static inline struct hf_role *role(const char *name)
{
    return hf_fleet_get_role(fleet, name);
}

/* A lean cell as any other, which has no text. */
static inline struct hf_cell fill_cell(const struct hf_lean_cell *lean)
{
    return (struct hf_cell){ .seen = hf_lean_cell_seen(lean), .record = lean->record };
}

static inline struct hf_cell agent_cell(const struct hf_agent *a, enum hf_key_kind kind)
{
    switch (kind) {
    case HF_KEY_AGENT_SPEC: return fill_cell(&a->spec);
    case HF_KEY_AGENT_LIVE: return fill_cell(&a->live);
    case HF_KEY_AGENT_REPORT: return fill_cell(&a->report);
    case HF_KEY_AGENT_EXIT: return fill_cell(&a->exit);
    case HF_KEY_WANTED: return a->wanted;
    default: return a->health;
    }
}

#endif
