#include "core/fleet.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "core/fleet_private.h"
#include "schema/json.h"

void hf_cell_clear(struct hf_cell *cell)
{
    hf_json_free(cell->record);
    free((void *)cell->seen.text.data);
    *cell = (struct hf_cell){ 0 };
}

void hf_lean_cell_clear(struct hf_lean_cell *cell)
{
    hf_json_free(cell->record);
    *cell = (struct hf_lean_cell){ 0 };
}

void hf_retired_clear(struct hf_retired *retired)
{
    hf_json_free(retired->record);
    free((void *)retired->text);
    *retired = (struct hf_retired){ 0 };
}

/* Objects come to be when something names them and go when nothing is left of them. */

static bool agent_is_empty(const void *object)
{
    const struct hf_agent *agent = object;

    return !hf_lean_cell_exists(&agent->report) && !hf_lean_cell_exists(&agent->live) &&
           !hf_lean_cell_exists(&agent->spec) && !hf_lean_cell_exists(&agent->exit) &&
           !hf_cell_exists(&agent->wanted) && !hf_cell_exists(&agent->health) &&
           agent->tasks == NULL && agent->commands == NULL;
}

static bool host_is_empty(const void *object)
{
    const struct hf_host *host = object;

    return !hf_cell_exists(&host->live) && !hf_cell_exists(&host->record) &&
           host->agents == 0 && host->commands == 0;
}

static bool task_is_empty(const void *object)
{
    const struct hf_task *task = object;

    return !hf_cell_exists(&task->task) && !hf_cell_exists(&task->recovery);
}

static bool role_is_empty(const void *object)
{
    return ((const struct hf_role *)object)->users == 0;
}

/* Frees what an agent holds. Its commands leave no list: all hosts go with it. */
static void clear_agent(void *object)
{
    struct hf_agent *agent = object;

    hf_lean_cell_clear(&agent->report);
    hf_lean_cell_clear(&agent->live);
    if (agent->past != NULL)
        hf_lean_cell_clear(&agent->past->live);
    free(agent->past);
    agent->past = NULL;
    hf_lean_cell_clear(&agent->spec);
    hf_lean_cell_clear(&agent->exit);
    hf_cell_clear(&agent->wanted);
    hf_cell_clear(&agent->health);
    while (agent->commands != NULL) {
        struct hf_command *command = agent->commands;

        agent->commands = command->next;
        hf_cell_clear(&command->command);
        free(command);
    }
}

static void clear_host(void *object)
{
    struct hf_host *host = object;

    hf_cell_clear(&host->live);
    hf_cell_clear(&host->record);
    free(host->readers);
}

static void clear_task(void *object)
{
    struct hf_task *task = object;

    hf_cell_clear(&task->task);
    hf_cell_clear(&task->recovery);
    free(task->waiting);
}

static void clear_role(void *object)
{
    hf_fleet_clear_rooted(object);
}

static const struct {
    size_t size;
    size_t user; /* where its pointer is */
    bool (*is_empty)(const void *object);
    void (*clear)(void *object);
} OBJECTS[HF_FLEET_KINDS] = {
    [HF_FLEET_AGENT] = { sizeof(struct hf_agent), offsetof(struct hf_agent, user),
                         agent_is_empty, clear_agent },
    [HF_FLEET_HOST] = { sizeof(struct hf_host), offsetof(struct hf_host, user), host_is_empty,
                        clear_host },
    [HF_FLEET_TASK] = { sizeof(struct hf_task), offsetof(struct hf_task, user), task_is_empty,
                        clear_task },
    [HF_FLEET_ROLE] = { sizeof(struct hf_role), offsetof(struct hf_role, user), role_is_empty,
                        clear_role },
};

static void tell_gone(struct hf_fleet *fleet, enum hf_fleet_kind kind, void *object)
{
    if (fleet->cfg.on_gone != NULL)
        fleet->cfg.on_gone(kind, object, fleet->cfg.arg);
}

/* Nothing in an object is wider than a pointer. */
static size_t align_up(size_t size)
{
    const size_t align = _Alignof(int64_t);

    return (size + align - 1) / align * align;
}

/* What the user keeps with an object, its name and the object are one allocation, in this
 * order: a look-up compares the name, and a change then needs the end of the one and the
 * beginning of the other, which lie beside it. */
static void *make_object(enum hf_fleet_kind kind, size_t user_size, const char *name)
{
    size_t name_size = strlen(name) + 1;
    size_t before = align_up(user_size), room = align_up(name_size);
    char *memory = hf_calloc(1, before + room + OBJECTS[kind].size);
    char *object;

    if (memory == NULL)
        return NULL;
    object = memory + before + room;
    memcpy(memory + before, name, name_size);
    *(const char **)(void *)object = memory + before;
    if (user_size > 0)
        memcpy(object + OBJECTS[kind].user, &memory, sizeof memory);
    return object;
}

static void free_object(const struct hf_fleet *fleet, enum hf_fleet_kind kind, void *object)
{
    free((char *)hf_fleet_name(object) - align_up(fleet->cfg.user_size[kind]));
}

void *hf_fleet_find(const struct hf_fleet *fleet, enum hf_fleet_kind kind, const char *name)
{
    return hf_index_get(&fleet->objects[kind], name);
}

void *hf_fleet_need(struct hf_fleet *fleet, enum hf_fleet_kind kind, const char *name)
{
    void *object = hf_fleet_find(fleet, kind, name);

    if (object != NULL)
        return object;
    object = make_object(kind, fleet->cfg.user_size[kind], name);
    if (object != NULL && hf_index_add(&fleet->objects[kind], object) != HF_OK) {
        free_object(fleet, kind, object);
        return NULL;
    }
    return object;
}

static void drop(struct hf_fleet *fleet, enum hf_fleet_kind kind, void *object)
{
    hf_index_remove(&fleet->objects[kind], object);
    free_object(fleet, kind, object);
}

void hf_fleet_drop_if_empty(struct hf_fleet *fleet, enum hf_fleet_kind kind, void *object)
{
    if (object == NULL || !OBJECTS[kind].is_empty(object))
        return;
    tell_gone(fleet, kind, object);
    OBJECTS[kind].clear(object); /* what is left of an agent is its past */
    drop(fleet, kind, object);
}

void hf_fleet_undo(struct hf_fleet *fleet, enum hf_fleet_kind kind, void *object)
{
    if (object == NULL || !OBJECTS[kind].is_empty(object))
        return;
    OBJECTS[kind].clear(object); /* what is left of a role is an empty table */
    drop(fleet, kind, object);
}

/* Life. */

struct hf_fleet *hf_fleet_new(const struct hf_fleet_config *cfg)
{
    struct hf_fleet *fleet = hf_calloc(1, sizeof *fleet);

    if (fleet == NULL)
        return NULL;
    fleet->cfg = *cfg;
    for (enum hf_fleet_kind kind = 0; kind <= HF_FLEET_ROLE; kind++)
        fleet->objects[kind].seed = cfg->seed;
    fleet->roots.seed = cfg->seed;
    return fleet;
}

void hf_fleet_clear(struct hf_fleet *fleet)
{
    for (enum hf_fleet_kind kind = 0; kind <= HF_FLEET_ROLE && fleet->cfg.on_gone != NULL;
         kind++)
        hf_fleet_each(fleet, kind, fleet->cfg.on_gone, fleet->cfg.arg);
    for (enum hf_fleet_kind kind = 0; kind <= HF_FLEET_ROLE; kind++) {
        size_t cursor = 0;
        void *object;

        while ((object = hf_index_next(&fleet->objects[kind], &cursor)) != NULL) {
            OBJECTS[kind].clear(object);
            free_object(fleet, kind, object);
        }
        hf_index_done(&fleet->objects[kind]);
    }
    hf_fleet_clear_roots(fleet);
    hf_cell_clear(&fleet->meta);
    hf_cell_clear(&fleet->clock);
    hf_cell_clear(&fleet->leader);
    for (size_t i = 0; i < HF_FLEET_RETIRED; i++)
        hf_retired_clear(&fleet->retired[i]);
    fleet->live_agents = 0;
    fleet->live_hosts = 0;
    fleet->commands = 0;
}

void hf_fleet_free(struct hf_fleet *fleet)
{
    if (fleet == NULL)
        return;
    hf_fleet_clear(fleet);
    free(fleet);
}

/* Questions. */

struct hf_agent *hf_fleet_get_agent(const struct hf_fleet *fleet, const char *name)
{
    return hf_fleet_find(fleet, HF_FLEET_AGENT, name);
}

struct hf_host *hf_fleet_get_host(const struct hf_fleet *fleet, const char *name)
{
    return hf_fleet_find(fleet, HF_FLEET_HOST, name);
}

struct hf_task *hf_fleet_get_task(const struct hf_fleet *fleet, const char *name)
{
    return hf_fleet_find(fleet, HF_FLEET_TASK, name);
}

struct hf_role *hf_fleet_get_role(const struct hf_fleet *fleet, const char *name)
{
    return hf_fleet_find(fleet, HF_FLEET_ROLE, name);
}

const struct hf_cell *hf_fleet_get_meta(const struct hf_fleet *fleet)
{
    return &fleet->meta;
}

const struct hf_cell *hf_fleet_get_clock(const struct hf_fleet *fleet)
{
    return &fleet->clock;
}

const struct hf_cell *hf_fleet_get_leader(const struct hf_fleet *fleet)
{
    return &fleet->leader;
}

struct hf_fleet_counts hf_fleet_get_counts(const struct hf_fleet *fleet)
{
    return (struct hf_fleet_counts){
        .agents = fleet->objects[HF_FLEET_AGENT].count,
        .live_agents = fleet->live_agents,
        .hosts = fleet->objects[HF_FLEET_HOST].count,
        .live_hosts = fleet->live_hosts,
        .tasks = fleet->objects[HF_FLEET_TASK].count,
        .roles = fleet->objects[HF_FLEET_ROLE].count,
        .commands = fleet->commands,
    };
}

void hf_fleet_each(const struct hf_fleet *fleet, enum hf_fleet_kind kind, hf_fleet_fn fn,
                   void *arg)
{
    size_t cursor = 0;
    void *object;

    while ((object = hf_index_next(&fleet->objects[kind], &cursor)) != NULL)
        fn(kind, object, arg);
}
