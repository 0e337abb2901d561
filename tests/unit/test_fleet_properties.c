/* Random changes, with and without memory, beside a model that keeps the last record of each
 * key and works everything else out anew. */
#include "support/chaos.h"
#include "unit/fleet_model.h"

enum { STEPS = 2500 };

/* The change that is being made. */
struct step {
    struct hf_key key;
    char name[16], sub[16], json[240];
    int object, cell, other; /* where the model has it; other: the agent of a command */
    struct known next;
};

static uint32_t random_state;

static uint32_t draw(uint32_t below)
{
    random_state = random_state * 1664525u + 1013904223u;
    return (random_state >> 8) % below;
}

/* An index, or NONE. */
static int draw_or_none(int below)
{
    return (int)draw((uint32_t)below + 1) - 1;
}

/* What the change must tell, by the table in fleet.h. */

static void want_told(struct told *want, enum hf_fleet_kind kind, int i)
{
    if (i != NONE)
        tell(want, "", kind, name_of(OBJECTS[kind].letter, i));
}

/* Two of a kind when they differ. */
static void want_both(struct told *want, enum hf_fleet_kind kind, int before, int after)
{
    if (before == after)
        return;
    want_told(want, kind, before);
    want_told(want, kind, after);
}

static void want_tasks(struct told *want, const struct model *m, int owner)
{
    for (int t = 0; t < TASKS; t++) {
        if (task_owner(m, t) == owner)
            want_told(want, HF_FLEET_TASK, t);
    }
}

static void want_agent_change(struct told *want, const struct step *step,
                              const struct model *before, const struct model *after)
{
    int a = step->object;
    const struct known *was = &before->agents[a][step->cell];
    const struct known *is = &after->agents[a][step->cell];

    want_told(want, HF_FLEET_AGENT, a);
    if (step->cell == SPEC)
        want_both(want, HF_FLEET_ROLE, agent_role(before, a), agent_role(after, a));
    if (step->cell == EXIT)
        want_tasks(want, after, a);
    if (step->cell != LIVE)
        return;
    want_both(want, HF_FLEET_HOST, agent_host(before, a), agent_host(after, a));
    if ((was->record != NULL) != (is->record != NULL))
        want_told(want, HF_FLEET_ROLE, agent_role(after, a));
    if (was->record == NULL || is->record == NULL ||
        was->seen.create_rev != is->seen.create_rev)
        want_tasks(want, after, a);
}

static void want_host_change(struct told *want, const struct step *step,
                             const struct model *before, const struct model *after)
{
    int h = step->object;

    want_told(want, HF_FLEET_HOST, h);
    if (step->cell != HOST_LIVE || (before->hosts[h][HOST_LIVE].record != NULL) ==
                                       (after->hosts[h][HOST_LIVE].record != NULL))
        return;
    for (int a = 0; a < AGENTS; a++) {
        if (after->commands[h][a].record != NULL)
            want_told(want, HF_FLEET_AGENT, a);
    }
}

static void want_task_change(struct told *want, const struct step *step,
                             const struct model *before, const struct model *after)
{
    int t = step->object;

    want_told(want, HF_FLEET_TASK, t);
    if (step->cell != TASK_RECORD)
        return;
    want_told(want, HF_FLEET_ROLE, task_role(before, t));
    want_told(want, HF_FLEET_ROLE, task_role(after, t));
    want_both(want, HF_FLEET_AGENT, task_owner(before, t), task_owner(after, t));
}

static void want_gone(struct told *want, const struct model *before, const struct model *after)
{
    for (enum hf_fleet_kind kind = 0; kind < COUNT(OBJECTS); kind++) {
        for (int i = 0; i < OBJECTS[kind].count; i++) {
            if (is_known(before, kind, i) && !is_known(after, kind, i))
                tell(want, "gone ", kind, name_of(OBJECTS[kind].letter, i));
        }
    }
}

static void want_change(struct told *want, const struct step *step, const struct known *was,
                        const struct model *before, const struct model *after)
{
    want->count = 0;
    if (was->record == NULL && step->next.record == NULL)
        return;
    switch (step->key.kind) {
    case HF_KEY_HOST_LIVE:
    case HF_KEY_HOST_RECORD: want_host_change(want, step, before, after); break;
    case HF_KEY_TASK:
    case HF_KEY_RECOVERY: want_task_change(want, step, before, after); break;
    case HF_KEY_COMMAND:
        want_told(want, HF_FLEET_HOST, step->object);
        want_told(want, HF_FLEET_AGENT, step->other);
        break;
    default: want_agent_change(want, step, before, after); break;
    }
    want_gone(want, before, after);
}

/* Steps. */

static const struct {
    enum hf_key_kind kind;
    int cell;
    char letter;
    int objects;
} KINDS[] = {
    { HF_KEY_AGENT_SPEC, SPEC, 'a', AGENTS },
    { HF_KEY_AGENT_LIVE, LIVE, 'a', AGENTS },
    { HF_KEY_AGENT_REPORT, REPORT, 'a', AGENTS },
    { HF_KEY_AGENT_EXIT, EXIT, 'a', AGENTS },
    { HF_KEY_WANTED, WANTED, 'a', AGENTS },
    { HF_KEY_HEALTH, HEALTH, 'a', AGENTS },
    { HF_KEY_HOST_LIVE, HOST_LIVE, 'h', HOSTS },
    { HF_KEY_HOST_RECORD, HOST_RECORD, 'h', HOSTS },
    { HF_KEY_TASK, TASK_RECORD, 't', TASKS },
    { HF_KEY_TASK, TASK_RECORD, 't', TASKS },
    { HF_KEY_RECOVERY, RECOVERY, 't', TASKS },
    { HF_KEY_COMMAND, 0, 'h', HOSTS },
};

static struct known *slot_of(struct model *m, const struct step *step)
{
    switch (step->key.kind) {
    case HF_KEY_HOST_LIVE:
    case HF_KEY_HOST_RECORD: return &m->hosts[step->object][step->cell];
    case HF_KEY_TASK:
    case HF_KEY_RECOVERY: return &m->tasks[step->object][step->cell];
    case HF_KEY_COMMAND: return &m->commands[step->object][step->other];
    default: return &m->agents[step->object][step->cell];
    }
}

static const char *const STATES[] = { "queued",    "pending", "acknowledged", "in_progress",
                                      "completed", "failed",  "cancelled",    "needs_review" };

/* Which files a host reads, and whether something may be started there. */
static void draw_host(struct step *step)
{
    struct known *next = &step->next;
    char roots[32] = "";

    for (int i = 0; i < HOST_ROOTS; i++) {
        next->roots[i] = draw_or_none(ROOTS);
        if (next->roots[i] != NONE)
            (void)snprintf(roots + strlen(roots), sizeof roots - strlen(roots), "%s\"%s\"",
                           roots[0] != '\0' ? "," : "", name_of('o', next->roots[i]));
    }
    next->closed = draw(4) == 0;
    (void)snprintf(step->json, sizeof step->json, "{\"%s\":%s,\"roots\":[%s]}",
                   draw(2) == 0 ? "left" : "cordoned", next->closed ? "true" : "false", roots);
}

/* A root that is lost is none. */
static void draw_task(struct step *step)
{
    struct known *next = &step->next;
    int root = draw_or_none(ROOTS);
    bool lost = draw(4) == 0;
    char json[64] = "";

    next->root = lost ? NONE : root;
    if (root != NONE)
        (void)snprintf(json, sizeof json, ",\"root\":{\"id\":\"%s\",\"lost\":%s}",
                       name_of('o', root), lost ? "true" : "false");
    (void)snprintf(step->json, sizeof step->json,
                   "{\"role\":\"%s\",\"state\":\"%s\",\"owner\":{\"agent\":\"%s\"}%s}",
                   name_of('r', next->role), STATES[next->state], name_of('a', next->owner),
                   json);
}

static void draw_record(struct step *step)
{
    struct known *next = &step->next;

    next->role = draw_or_none(ROLES);
    next->host = draw_or_none(HOSTS);
    next->owner = draw_or_none(AGENTS);
    /* Half of them are pending, which is where most is counted. */
    next->state = draw(2) == 0 ? HOLDFAST__V1__TASK__STATE__pending
                               : (Holdfast__V1__Task__State)draw(COUNT(STATES));
    (void)snprintf(step->json, sizeof step->json, "{}");
    if (step->key.kind == HF_KEY_AGENT_SPEC)
        (void)snprintf(step->json, sizeof step->json, "{\"role\":\"%s\"}",
                       name_of('r', next->role));
    if (step->key.kind == HF_KEY_AGENT_LIVE)
        (void)snprintf(step->json, sizeof step->json, "{\"host\":\"%s\"}",
                       name_of('h', next->host));
    if (step->key.kind == HF_KEY_HOST_RECORD)
        draw_host(step);
    if (step->key.kind == HF_KEY_TASK)
        draw_task(step);
    next->record = decode(step->key.kind, step->json);
}

/* A put, in the life that the key has or in another one, or a deletion. */
static void draw_step(struct step *step, struct model *m)
{
    size_t k = draw(COUNT(KINDS));
    const struct known *was;

    *step = (struct step){ .cell = KINDS[k].cell };
    step->object = (int)draw((uint32_t)KINDS[k].objects);
    step->other = (int)draw(AGENTS);
    (void)snprintf(step->name, sizeof step->name, "%c%d", KINDS[k].letter, step->object);
    (void)snprintf(step->sub, sizeof step->sub, "a%d", step->other);
    step->key = (struct hf_key){ KINDS[k].kind, .name = step->name, .sub = step->sub };
    rev++;
    now += 1 + draw(10);
    if (draw(5) < 2)
        return;
    was = slot_of(m, step);
    step->next.seen = (struct hf_seen){
        .create_rev = was->record != NULL && draw(4) > 0 ? was->seen.create_rev : rev,
        .mod_rev = rev,
        .lease = hf_key_is_ephemeral(step->key.kind) ? 1 + draw(9) : 0,
    };
    draw_record(step);
}

/* Applies the step to the model. */
static void take(struct model *m, const struct step *step)
{
    struct known *slot = slot_of(m, step);
    struct gone gone = { .at = now, .rev = slot->seen.create_rev };

    if (slot->record != NULL && step->next.record == NULL) {
        if (step->key.kind == HF_KEY_AGENT_LIVE)
            m->agents_gone[step->object] = gone;
        if (step->key.kind == HF_KEY_HOST_LIVE)
            m->hosts_gone[step->object] = gone;
    }
    *slot = step->next;
    for (int a = 0; a < AGENTS; a++) {
        if (!is_known(m, HF_FLEET_AGENT, a))
            m->agents_gone[a] = (struct gone){ 0 };
    }
    for (int h = 0; h < HOSTS; h++) {
        if (!is_known(m, HF_FLEET_HOST, h))
            m->hosts_gone[h] = (struct gone){ 0 };
    }
}

static bool same_told(const struct told *a, const struct told *b)
{
    bool same = a->count == b->count;

    for (size_t i = 0; same && i < a->count; i++)
        same = strcmp(a->text[i], b->text[i]) == 0;
    return same;
}

static int apply(const struct step *step, size_t fail_at, bool persistent)
{
    struct hf_fleet_change change = {
        .key = step->key, .seen = step->next.seen, .record = step->next.record, .at = now
    };
    int err;

    change.seen.text = (struct hf_bytes){ .data = step->json, .len = strlen(step->json) };
    told.count = 0;
    hft_chaos_fail_at(fail_at, persistent);
    err = hf_fleet_apply(fleet, &change);
    hft_chaos_stop();
    return err;
}

static void do_step(struct model *m, int number)
{
    static struct told want;
    struct model before = *m;
    struct step step;
    const char *wrong;

    draw_step(&step, m);
    /* Each allocation that it needs fails once, alone or with all after it. */
    for (size_t n = 1;; n++) {
        int err = apply(&step, n, draw(2) == 0);

        if (!hft_chaos_has_failed()) {
            ck_assert_int_eq(err, HF_OK);
            break;
        }
        wrong = check_all(m);
        ck_assert_msg(err == HF_ENOMEM && told.count == 0 && wrong == NULL,
                      "step %d, allocation %zu: %d, %zu told, %s", number, n, err, told.count,
                      wrong != NULL ? wrong : "all as it was");
    }
    take(m, &step);
    want_change(&want, &step, slot_of(&before, &step), &before, m);
    wrong = check_all(m);
    ck_assert_msg(wrong == NULL, "step %d: not %s", number, wrong);
    if (!same_told(&told, &want)) {
        for (size_t i = 0; i < want.count; i++)
            (void)fprintf(stderr, "should be told: %s\n", want.text[i]);
        expect("(the above)");
    }
}

START_TEST(random_changes_leave_what_follows_from_the_keys)
{
    struct model m = { 0 };

    random_state = (uint32_t)_i;
    for (int i = 0; i < STEPS; i++) {
        do_step(&m, i);
        if (draw(500) == 0) {
            hf_fleet_clear(fleet);
            m = (struct model){ 0 };
            ck_assert_msg(check_all(&m) == NULL, "clear: not %s", check_all(&m));
        }
    }
}
END_TEST

/* From nothing to a small fleet and back, with the n-th allocation failing for every n. */
static int build_under_chaos(void *arg)
{
    static const struct {
        struct hf_key key;
        const char *json;
    } PUTS[] = {
        { { .kind = HF_KEY_META }, "{}" },
        { { HF_KEY_AGENT_SPEC, .name = "a" }, "{\"role\":\"r\"}" },
        { { HF_KEY_AGENT_LIVE, .name = "a" }, "{\"host\":\"h\"}" },
        { { HF_KEY_TASK, .name = "t" },
          "{\"role\":\"s\",\"state\":\"in_progress\",\"owner\":{\"agent\":\"b\"}}" },
        { { HF_KEY_HOST_RECORD, .name = "h" }, "{\"roots\":[\"o\",\"p\",\"o\"]}" },
        { { HF_KEY_TASK, .name = "v" },
          "{\"role\":\"v\",\"state\":\"pending\",\"root\":{\"id\":\"q\"}}" },
        { { HF_KEY_RECOVERY, .name = "u" }, "{}" },
        { { HF_KEY_COMMAND, .name = "i", .sub = "c" }, "{}" },
        { { HF_KEY_HOST_LIVE, .name = "j" }, "{}" },
    };
    struct hf_fleet_config cfg = { .on_touched = on_touched, .on_gone = on_gone };
    struct hf_fleet *own = hf_fleet_new(&cfg);
    int err = own != NULL ? HF_OK : HF_ENOMEM;

    (void)arg;
    for (size_t i = 0; i < COUNT(PUTS) && err == HF_OK; i++) {
        struct hf_fleet_change change = { .key = PUTS[i].key, .seen = { .mod_rev = 1 } };

        change.seen.text =
            (struct hf_bytes){ .data = PUTS[i].json, .len = strlen(PUTS[i].json) };
        err = hf_json_decode(hf_key_get_record(PUTS[i].key.kind), PUTS[i].json,
                             strlen(PUTS[i].json), NULL, &change.record, NULL);
        if (err != HF_OK)
            break;
        err = hf_fleet_apply(own, &change);
        if (err != HF_OK)
            hf_json_free(change.record); /* still ours */
    }
    hf_fleet_free(own);
    return err;
}

START_TEST(every_allocation_may_fail)
{
    ck_assert_uint_gt(hft_chaos_run(build_under_chaos, NULL), 20);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("fleet");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, random_changes_leave_what_follows_from_the_keys, 1, 21);
    tcase_add_test(t, every_allocation_may_fail);
    return run("core/fleet properties", t);
}
