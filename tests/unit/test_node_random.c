/* Everything at once, at random: processes that die, leases that go, answers that are lost, a
 * mirror that lags, people and a leader who change their minds. Whatever happens, no two
 * processes of an agent run at once, none begins or goes on without its registration, and when
 * the trouble is over the agent runs. */
#include <stdlib.h>

#include "unit/node_fixture.h"

enum { SEEDS = 150, STEPS = 300 };

static uint32_t chance(uint32_t of)
{
    w.dice = w.dice * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(w.dice >> 33) % of;
}

/* What the keeper was asked for and has not said yet. */
static void catch_up(void)
{
    for (size_t i = 0; i < w.id_count; i++) {
        struct process *process = &w.processes[i];

        if (process->state == MADE_ASKED) {
            bool fails = !w.calm && chance(8) == 0;

            process->state = fails ? MADE_ENDED : MADE_HELD;
            news_of("a", w.ids[i], fails ? HF_PROCESS_FAILED : HF_PROCESS_HELD, 0, NULL);
        }
        if (process->ending && process->state == MADE_BEGUN) {
            process->state = MADE_ENDED;
            news_of("a", w.ids[i], HF_PROCESS_ENDED, 0, "killed");
        }
    }
}

static void die_at_random(void)
{
    for (size_t i = 0; i < w.id_count; i++) {
        struct process *process = &w.processes[i];

        if (process->state == MADE_BEGUN && !process->frozen) {
            process->state = MADE_ENDED;
            news_of("a", w.ids[i], HF_PROCESS_ENDED, (int)chance(2), "by itself");
        }
    }
}

enum { FIRST_LEASE = 1000 };

static int64_t newest_lease;

static void change_lease(void)
{
    int64_t old = w.lease.lease;

    switch (chance(5)) {
    case 0: lease_is(HF_LEASE_JEOPARDY, old, false); break;
    case 1: lease_is(HF_LEASE_FENCED, old, true); break;
    case 2:
        lease_is(HF_LEASE_LOST, 0, chance(2) == 0);
        if (old != 0 && chance(2) == 0)
            expire(old);
        break;
    default:
        if (old == 0 || chance(6) == 0) { /* another one */
            if (old != 0)
                expire(old);
            for (int64_t lease = newest_lease; lease >= FIRST_LEASE; lease--)
                expire(lease);
            expire(LEASE);
            old = ++newest_lease;
        }
        lease_is(HF_LEASE_HELD, old, false);
        break;
    }
    if (w.lease.state != HF_LEASE_LOST && w.lease.lease == 0)
        lease_is(HF_LEASE_LOST, 0, false);
}

/* The leader: orders starts, and resets what the dead have left. */
static void lead(void)
{
    const char *live = get("agents/a/live");

    switch (chance(4)) {
    case 0:
        if (live == NULL && get("commands/h/a") == NULL)
            put("commands/h/a", chance(2) == 0 ? "{\"id\":\"1\",\"host\":\"h\",\"task\":\"t1\"}"
                                               : "{\"id\":\"1\",\"host\":\"h\"}");
        break;
    case 1: erase("commands/h/a"); break;
    case 2:
        if (live == NULL && get("tasks/t1") != NULL)
            put_pending("t1", ",\"attempt\":1");
        break;
    default:
        if (live != NULL)
            put("health/a", chance(2) == 0 ? "{\"endUpto\":\"105\"}" : "{}");
        break;
    }
}

static void ask_at_random(void)
{
    static const enum hf_ask_kind KINDS[] = { HF_ASK_CLAIM,   HF_ASK_START, HF_ASK_COMPLETE,
                                              HF_ASK_RELEASE, HF_ASK_FAIL,  HF_ASK_PROGRESS,
                                              HF_ASK_SELF,    HF_ASK_CLAIM, HF_ASK_START };
    char name[8];

    (void)snprintf(name, sizeof name, "t%u", chance(3));
    ask("a", KINDS[chance(COUNT(KINDS))], name);
}

static void one_step(void)
{
    char name[8];

    (void)snprintf(name, sizeof name, "t%u", chance(3));
    switch (chance(14)) {
    case 0: die_at_random(); break;
    case 1:
    case 2: change_lease(); break;
    case 3: lead(); break;
    case 4: put("wanted/a", chance(3) == 0 ? "{\"state\":\"stopped\"}" : "{}"); break;
    case 5:
    case 6: ask_at_random(); break;
    case 7: w.fate = chance(4); break;
    case 8: w.mirror_is_off = true; break;
    case 9: put_pending(name, ""); break;
    case 10: w.reads_are_off = chance(3) == 0; break;
    case 11:
        if (get("controller/leader") == NULL)
            put_leased("controller/leader", "{}", 7);
        else
            erase("controller/leader");
        break;
    case 12: catch_up(); break;
    default: break;
    }
    if (w.mirror_is_off && chance(4) == 0) {
        must((struct hf_event){ .kind = chance(6) == 0 ? HF_EVENT_RESET : HF_EVENT_FORGET });
        list_all();
    }
}

/* Time goes on without anybody proving the lease. */
static void pass(hf_ms time)
{
    w.now += time;
    must((struct hf_event){ .kind = HF_EVENT_TIME });
    run_node();
    w.log[0] = '\0';
}

static void heal(void)
{
    w.fate = COMMIT;
    w.reads_are_off = false;
    w.calm = true;
    erase("health/a");
    put("wanted/a", "{}");
    must((struct hf_event){ .kind = HF_EVENT_FORGET });
    list_all();
    for (int64_t lease = 1; lease < 2000; lease++) {
        if (lease != 7)
            expire(lease);
    }
    lease_is(HF_LEASE_HELD, 2000, false);
    for (int i = 0; i < 60; i++) {
        run_node();
        catch_up();
        w.log[0] = '\0';
        wait(1000);
        if (i >= 30 && get("agents/a/live") == NULL && get("commands/h/a") == NULL)
            put("commands/h/a", "{\"id\":\"9\",\"host\":\"h\"}");
    }
}

START_TEST(whatever_happens)
{
    struct hf_node_view view;

    running();
    newest_lease = FIRST_LEASE;
    w.dice = (uint64_t)_i * 2654435761u + 1;
    w.checks = true;
    w.processes[0].state = MADE_BEGUN;
    w.keeper_is_off = true;
    for (int i = 0; i < STEPS; i++) {
        one_step();
        if (chance(2) == 0)
            pass(chance(2500));
        ck_assert_int_le(count_running(), 1);
    }
    heal();
    ck_assert_int_eq(hf_node_get_view(w.node, "a", w.now, &view), HF_OK);
    ck_assert_msg(view.state == HF_NODE_RUNNING && view.registered && !view.frozen,
                  "seed %d: %s: %s", _i, hf_node_state_name(view.state), view.why);
    ck_assert_int_eq(count_running(), 1);
    ck_assert_ptr_nonnull(strstr(get("agents/a/live"), view.instance_id));
}
END_TEST

static void add_stories(TCase *t)
{
    tcase_add_loop_test(t, whatever_happens, 0, hft_seeds(SEEDS));
}

int main(void)
{
    return run_stories("core/node_random", add_stories);
}
