/* fleet_model.h - what a fleet should be: the last record of each key, and all that follows
 * from them, worked out anew whenever it is asked for. */
#ifndef HF_TESTS_UNIT_FLEET_MODEL_H
#define HF_TESTS_UNIT_FLEET_MODEL_H

#include "unit/fleet_fixture.h"
#include "unit/suite.h"

enum { AGENTS = 5, HOSTS = 3, TASKS = 5, ROLES = 3, ROOTS = 3, NONE = -1 };
enum { HOST_ROOTS = 2 }; /* that a host names, or NONE; perhaps one of them twice */
enum { SPEC, LIVE, REPORT, EXIT, WANTED, HEALTH, AGENT_CELLS };
enum { HOST_LIVE, HOST_RECORD, HOST_CELLS };
enum { TASK_RECORD, RECOVERY, TASK_CELLS };

/* One key, and what of its record the fleet must understand. */
struct known {
    struct hf_seen seen;
    ProtobufCMessage *record; /* NULL: it does not exist */
    int role, host, owner;
    Holdfast__V1__Task__State state;
    int root;              /* of a task */
    int roots[HOST_ROOTS]; /* of a host */
    bool closed;           /* it left, or is cordoned */
};

struct gone {
    hf_ms at;
    int64_t rev;
};

struct model {
    struct known agents[AGENTS][AGENT_CELLS];
    struct known hosts[HOSTS][HOST_CELLS];
    struct known tasks[TASKS][TASK_CELLS];
    struct known commands[HOSTS][AGENTS];
    struct gone agents_gone[AGENTS], hosts_gone[HOSTS];
};

static inline const char *name_of(char letter, int i)
{
    static char names[8][16];
    static size_t next;
    char *name = names[next++ % COUNT(names)];

    (void)snprintf(name, sizeof names[0], "%c%d", letter, i);
    return i == NONE ? "" : name;
}

/* What follows from the keys. */

static inline int agent_role(const struct model *m, int a)
{
    return m->agents[a][SPEC].record != NULL ? m->agents[a][SPEC].role : NONE;
}

static inline int agent_host(const struct model *m, int a)
{
    return m->agents[a][LIVE].record != NULL ? m->agents[a][LIVE].host : NONE;
}

static inline int task_role(const struct model *m, int t)
{
    return m->tasks[t][TASK_RECORD].record != NULL ? m->tasks[t][TASK_RECORD].role : NONE;
}

static inline int task_owner(const struct model *m, int t)
{
    const struct known *task = &m->tasks[t][TASK_RECORD];

    return task->record != NULL && (task->state == HOLDFAST__V1__TASK__STATE__acknowledged ||
                                    task->state == HOLDFAST__V1__TASK__STATE__in_progress)
               ? task->owner
               : NONE;
}

static inline bool task_pends(const struct model *m, int t)
{
    return task_role(m, t) != NONE &&
           m->tasks[t][TASK_RECORD].state == HOLDFAST__V1__TASK__STATE__pending;
}

static inline bool task_runs(const struct model *m, int t)
{
    Holdfast__V1__Task__State state = m->tasks[t][TASK_RECORD].state;

    return task_pends(m, t) ||
           (task_role(m, t) != NONE && (state == HOLDFAST__V1__TASK__STATE__acknowledged ||
                                        state == HOLDFAST__V1__TASK__STATE__in_progress));
}

/* NONE: it waits for no files. */
static inline int task_root(const struct model *m, int t)
{
    return task_pends(m, t) ? m->tasks[t][TASK_RECORD].root : NONE;
}

/* How often its record names it. */
static inline size_t count_named(const struct model *m, int host, int root)
{
    const struct known *record = &m->hosts[host][HOST_RECORD];
    size_t count = 0;

    for (int i = 0; i < HOST_ROOTS && record->record != NULL; i++)
        count += record->roots[i] == root;
    return count;
}

static inline bool host_is_open(const struct model *m, int h)
{
    return m->hosts[h][HOST_LIVE].record != NULL && m->hosts[h][HOST_RECORD].record != NULL &&
           !m->hosts[h][HOST_RECORD].closed;
}

static inline size_t count_readers(const struct model *m, int root, bool open)
{
    size_t count = 0;

    for (int h = 0; h < HOSTS; h++)
        count += !open || host_is_open(m, h) ? count_named(m, h, root) : 0;
    return count;
}

static inline size_t count_rooted_lives(const struct model *m, int role, int root)
{
    size_t count = 0;

    for (int a = 0; a < AGENTS; a++)
        count += agent_role(m, a) == role && agent_host(m, a) != NONE
                     ? count_named(m, agent_host(m, a), root)
                     : 0;
    return count;
}

static inline size_t count_rooted_tasks(const struct model *m, int role, int root)
{
    size_t count = 0;

    for (int t = 0; t < TASKS; t++)
        count += task_role(m, t) == role && task_root(m, t) == root;
    return count;
}

static inline size_t count_tasks(const struct model *m, int owner)
{
    size_t count = 0;

    for (int t = 0; t < TASKS; t++)
        count += task_owner(m, t) == owner;
    return count;
}

/* NONE: any. */
static inline size_t count_commands(const struct model *m, int host, int agent)
{
    size_t count = 0;

    for (int h = 0; h < HOSTS; h++) {
        for (int a = 0; a < AGENTS; a++)
            count += (host == NONE || host == h) && (agent == NONE || agent == a) &&
                     m->commands[h][a].record != NULL;
    }
    return count;
}

static inline size_t count_lives(const struct model *m, int host)
{
    size_t count = 0;

    for (int a = 0; a < AGENTS; a++)
        count += agent_host(m, a) == host;
    return count;
}

static inline bool has_record(const struct known *cells, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (cells[i].record != NULL)
            return true;
    }
    return false;
}

static inline bool is_known(const struct model *m, enum hf_fleet_kind kind, int i)
{
    switch (kind) {
    case HF_FLEET_AGENT:
        return has_record(m->agents[i], AGENT_CELLS) || count_tasks(m, i) > 0 ||
               count_commands(m, NONE, i) > 0;
    case HF_FLEET_HOST:
        return has_record(m->hosts[i], HOST_CELLS) || count_lives(m, i) > 0 ||
               count_commands(m, i, NONE) > 0;
    case HF_FLEET_TASK: return has_record(m->tasks[i], TASK_CELLS);
    case HF_FLEET_ROLE: break;
    }
    for (int a = 0; a < AGENTS; a++) {
        if (agent_role(m, a) == i)
            return true;
    }
    for (int t = 0; t < TASKS; t++) {
        if (task_role(m, t) == i)
            return true;
    }
    return false;
}

/* The fleet against the model: NULL, or what is wrong. */

#define MUST(what)                                                                             \
    do {                                                                                       \
        if (!(what))                                                                           \
            return #what;                                                                      \
    } while (0)

static inline bool same_cell(const struct hf_cell *cell, const struct known *known)
{
    if (known->record == NULL)
        return cell->record == NULL && cell->seen.mod_rev == 0 && cell->seen.text.data == NULL;
    return cell->record == known->record && cell->seen.mod_rev == known->seen.mod_rev &&
           cell->seen.create_rev == known->seen.create_rev &&
           cell->seen.lease == known->seen.lease;
}

static inline bool same_lean_cell(const struct hf_lean_cell *lean, const struct known *known)
{
    return same_cell(
        &(struct hf_cell){ .seen = hf_lean_cell_seen(lean), .record = lean->record }, known);
}

static inline bool same_gone(const struct gone *gone, hf_ms at, int64_t gone_rev)
{
    return gone->at == at && gone->rev == gone_rev;
}

static inline const char *check_agent(const struct model *m, int i)
{
    const struct hf_agent *a = hf_fleet_get_agent(fleet, name_of('a', i));
    size_t count = 0;

    MUST((a != NULL) == is_known(m, HF_FLEET_AGENT, i));
    if (a == NULL)
        return NULL;
    MUST(same_lean_cell(&a->spec, &m->agents[i][SPEC]) &&
         same_lean_cell(&a->live, &m->agents[i][LIVE]));
    MUST(same_lean_cell(&a->report, &m->agents[i][REPORT]));
    MUST(same_lean_cell(&a->exit, &m->agents[i][EXIT]));
    MUST(same_cell(&a->wanted, &m->agents[i][WANTED]));
    MUST(same_cell(&a->health, &m->agents[i][HEALTH]));
    MUST(same_gone(&m->agents_gone[i], hf_agent_gone_at(a), hf_agent_gone_rev(a)));
    MUST(a->role == hf_fleet_get_role(fleet, name_of('r', agent_role(m, i))));
    MUST(a->host == hf_fleet_get_host(fleet, name_of('h', agent_host(m, i))));
    MUST((a->at_in_role != NULL) == (a->role != NULL));
    for (const struct hf_task *t = a->tasks; t != NULL; t = t->next_owned) {
        MUST(t->owner == a && *t->at_owned == t);
        count++;
    }
    MUST(count == count_tasks(m, i));
    count = 0;
    for (const struct hf_command *c = a->commands; c != NULL; c = c->next) {
        MUST(c->agent == a && *c->at == c && *c->at_here == c);
        count++;
    }
    MUST(count == count_commands(m, NONE, i));
    return NULL;
}

static inline const char *check_host(const struct model *m, int i)
{
    const struct hf_host *h = hf_fleet_get_host(fleet, name_of('h', i));
    size_t count = 0;

    MUST((h != NULL) == is_known(m, HF_FLEET_HOST, i));
    if (h == NULL)
        return NULL;
    MUST(same_cell(&h->live, &m->hosts[i][HOST_LIVE]));
    MUST(same_cell(&h->record, &m->hosts[i][HOST_RECORD]));
    MUST(same_gone(&m->hosts_gone[i], h->live_gone_at, h->live_gone_rev));
    MUST(h->agents == count_lives(m, i));
    for (const struct hf_agent *a = h->lives; a != NULL; a = a->next_on_host, count++)
        MUST(a->host == h && *a->at_on_host == a);
    MUST(count == h->agents);
    count = 0;
    for (const struct hf_command *c = h->starts; c != NULL; c = c->next_here) {
        MUST(c->host == h && c->agent->name[0] == 'a');
        MUST(same_cell(&c->command, &m->commands[i][c->agent->name[1] - '0']));
        count++;
    }
    MUST(count == h->commands && count == count_commands(m, i, NONE));
    return NULL;
}

static inline const char *check_task(const struct model *m, int i)
{
    const struct hf_task *t = hf_fleet_get_task(fleet, name_of('t', i));

    MUST((t != NULL) == is_known(m, HF_FLEET_TASK, i));
    if (t == NULL)
        return NULL;
    MUST(same_cell(&t->task, &m->tasks[i][TASK_RECORD]));
    MUST(same_cell(&t->recovery, &m->tasks[i][RECOVERY]));
    MUST(t->owner == hf_fleet_get_agent(fleet, name_of('a', task_owner(m, i))));
    MUST(t->role == hf_fleet_get_role(fleet, name_of('r', task_role(m, i))));
    MUST((t->at_owned != NULL) == (t->owner != NULL));
    MUST((t->at_pending != NULL) == task_pends(m, i));
    MUST((t->waiting != NULL) == (task_root(m, i) != NONE));
    if (t->waiting != NULL) {
        MUST(t->waiting->task == t && *t->waiting->at == t->waiting);
        MUST(t->waiting->rooted->role == t->role);
        MUST(strcmp(t->waiting->rooted->name, name_of('o', task_root(m, i))) == 0);
    }
    return NULL;
}

/* One role and one root. */
static inline const char *check_rooted(const struct model *m, const struct hf_role *r, int i,
                                       int root)
{
    const struct hf_rooted *is = hf_index_get(&r->rooted, name_of('o', root));
    size_t lives = count_rooted_lives(m, i, root), tasks = count_rooted_tasks(m, i, root);
    size_t listed = 0;

    MUST((is != NULL) == (lives > 0 || tasks > 0));
    if (is == NULL)
        return NULL;
    MUST(is->role == r && is->root == hf_fleet_get_root(fleet, name_of('o', root)));
    MUST(is->live_count == lives && is->pending_count == tasks);
    for (const struct hf_waiting *w = is->tasks; w != NULL; w = w->next, listed++)
        MUST(w->rooted == is && w->task->waiting == w);
    MUST(listed == tasks);
    MUST((is->at_call != NULL) ==
         (lives == 0 && tasks > 0 && count_readers(m, root, true) > 0));
    return NULL;
}

static inline const char *check_role_roots(const struct model *m, const struct hf_role *r,
                                           int i)
{
    size_t stranded = 0, calls = 0, listed = 0;

    for (int root = 0; root < ROOTS; root++) {
        const char *wrong = check_rooted(m, r, i, root);
        bool read = count_readers(m, root, true) > 0;

        if (wrong != NULL)
            return wrong;
        stranded += !read ? count_rooted_tasks(m, i, root) : 0;
        calls +=
            read && count_rooted_tasks(m, i, root) > 0 && count_rooted_lives(m, i, root) == 0;
    }
    MUST(r->stranded_count == stranded);
    for (const struct hf_rooted *c = r->calls; c != NULL; c = c->next_call, listed++)
        MUST(c->role == r && *c->at_call == c);
    MUST(listed == calls);
    return NULL;
}

static inline const char *check_root(const struct model *m, int i)
{
    const struct hf_root *root = hf_fleet_get_root(fleet, name_of('o', i));
    size_t roles = 0, listed = 0;

    for (int r = 0; r < ROLES; r++)
        roles += count_rooted_lives(m, r, i) > 0 || count_rooted_tasks(m, r, i) > 0;
    MUST((root != NULL) == (roles > 0 || count_readers(m, i, false) > 0));
    if (root == NULL)
        return NULL;
    MUST(root->users == roles + count_readers(m, i, false));
    for (const struct hf_reader *h = root->readers; h != NULL; h = h->next_open, listed++)
        MUST(h->root == root && hf_host_is_open(h->host) && *h->at_open == h);
    MUST(listed == count_readers(m, i, true));
    listed = 0;
    for (const struct hf_rooted *r = root->roles; r != NULL; r = r->next_of_root, listed++)
        MUST(r->root == root && *r->at_of_root == r);
    MUST(listed == roles);
    return NULL;
}

static inline const char *check_role(const struct model *m, int i)
{
    const struct hf_role *r = hf_fleet_get_role(fleet, name_of('r', i));
    size_t agents = 0, lives = 0, pending = 0, running = 0, tasks = 0, listed = 0;

    MUST((r != NULL) == is_known(m, HF_FLEET_ROLE, i));
    if (r == NULL)
        return NULL;
    for (int a = 0; a < AGENTS; a++) {
        agents += agent_role(m, a) == i;
        lives += agent_role(m, a) == i && m->agents[a][LIVE].record != NULL;
    }
    for (int t = 0; t < TASKS; t++) {
        tasks += task_role(m, t) == i;
        pending += task_role(m, t) == i && task_pends(m, t);
        running += task_role(m, t) == i && task_runs(m, t);
    }
    MUST(r->agent_count == agents && r->live_count == lives && r->pending_count == pending);
    MUST(r->running_count == running);
    MUST(r->users == agents + tasks);
    for (const struct hf_agent *a = r->agents; a != NULL; a = a->next_in_role, listed++)
        MUST(a->role == r && *a->at_in_role == a);
    MUST(listed == agents);
    listed = 0;
    for (const struct hf_task *t = r->pending; t != NULL; t = t->next_pending, listed++)
        MUST(t->role == r && *t->at_pending == t);
    MUST(listed == pending);
    return check_role_roots(m, r, i);
}

static const struct {
    char letter;
    int count;
    const char *(*check)(const struct model *m, int i);
} OBJECTS[] = {
    [HF_FLEET_AGENT] = { 'a', AGENTS, check_agent },
    [HF_FLEET_HOST] = { 'h', HOSTS, check_host },
    [HF_FLEET_TASK] = { 't', TASKS, check_task },
    [HF_FLEET_ROLE] = { 'r', ROLES, check_role },
};

static inline const char *check_counts(const struct model *m)
{
    struct hf_fleet_counts is = hf_fleet_get_counts(fleet), want = { 0 };
    size_t known[COUNT(OBJECTS)] = { 0 };

    for (enum hf_fleet_kind kind = 0; kind < COUNT(OBJECTS); kind++) {
        for (int i = 0; i < OBJECTS[kind].count; i++)
            known[kind] += is_known(m, kind, i);
    }
    for (int a = 0; a < AGENTS; a++)
        want.live_agents += m->agents[a][LIVE].record != NULL;
    for (int h = 0; h < HOSTS; h++)
        want.live_hosts += m->hosts[h][HOST_LIVE].record != NULL;
    MUST(is.agents == known[HF_FLEET_AGENT] && is.hosts == known[HF_FLEET_HOST]);
    MUST(is.tasks == known[HF_FLEET_TASK] && is.roles == known[HF_FLEET_ROLE]);
    MUST(is.live_agents == want.live_agents && is.live_hosts == want.live_hosts);
    MUST(is.commands == count_commands(m, NONE, NONE));
    return NULL;
}

static inline const char *check_all(const struct model *m)
{
    const char *wrong = check_counts(m);

    for (enum hf_fleet_kind kind = 0; kind < COUNT(OBJECTS); kind++) {
        for (int i = 0; i < OBJECTS[kind].count && wrong == NULL; i++)
            wrong = OBJECTS[kind].check(m, i);
    }
    for (int i = 0; i < ROOTS && wrong == NULL; i++)
        wrong = check_root(m, i);
    return wrong;
}

#endif
