/* What a process is told on its stdin, with real processes: each case in a cgroup, behind a
 * shim, and as nobody. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/keeper.h"
#include "support/suite.h"
#include "support/wait.h"

static struct hft_keeper keeper;
static struct hft_keeper *const k = &keeper;

static void run(const char *script, uint32_t flags)
{
    const struct hft_keeper_spawn spawn = {
        .agent = "a", .instance = "i1", .script = script, .flags = flags
    };

    ck_assert_uint_eq(hft_keeper_spawn(k, &spawn), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_HELD);
}

static void let_go(void)
{
    ck_assert_uint_eq(hft_keeper_release(k, "a", "i1"), AGENTD_CODE_OK);
    (void)hft_keeper_wait(k, "i1", AGENTD_STATE_RUNNING);
}

static uint32_t tell_bytes(const char *id, const char *bytes, size_t len)
{
    static _Alignas(8) char packet[sizeof(struct agentd_tell) + AGENTD_TELL_MAX];
    struct agentd_tell *m = (struct agentd_tell *)packet;

    memset(packet, 0, sizeof packet);
    m->head = (struct agentd_head){ .length = (uint32_t)(sizeof *m + len),
                                    .type = AGENTD_TELL,
                                    .id = ++k->last_id };
    (void)snprintf(m->who.agent, sizeof m->who.agent, "a");
    (void)snprintf(m->who.instance, sizeof m->who.instance, "i1");
    (void)snprintf(m->id, sizeof m->id, "%s", id);
    m->len = (uint32_t)len;
    memcpy(m + 1, bytes, len);
    return hft_keeper_raw(k, packet, m->head.length);
}

static uint32_t tell(const char *id, const char *text)
{
    return tell_bytes(id, text, strlen(text));
}

static bool is_there(void *name)
{
    return hft_keeper_has_file(k, name);
}

static void await_file(const char *name)
{
    hft_wait_or_fail(is_there, (void *)name, 30000, name);
}

static void expect_file(const char *name, const char *want)
{
    char path[HFT_PATH_MAX + 64], text[512] = "";
    FILE *file;

    await_file(name);
    (void)snprintf(path, sizeof path, "%s/%s", k->dir.path, name);
    file = fopen(path, "re");
    ck_assert_ptr_nonnull(file);
    (void)!fread(text, 1, sizeof text - 1, file);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_str_eq(text, want);
}

START_TEST(it_is_told_on_its_stdin_and_each_thing_once)
{
    if (!hft_keeper_begin(k, _i))
        return;
    ck_assert_uint_ne(k->hello.flags & AGENTD_HAS_TELL, 0);
    run("read one; read two; echo \"$one, $two\" >$D/new; mv $D/new $D/heard; exec sleep 1000",
        AGENTD_SPAWN_TELL_INPUT);
    ck_assert_uint_eq(tell("q1", "too soon\n"), AGENTD_CODE_STATE);
    let_go();
    ck_assert_uint_eq(tell("q1", "first\n"), AGENTD_CODE_OK);
    ck_assert_uint_eq(tell("q1", "first again\n"), AGENTD_CODE_EXISTS);
    ck_assert_uint_eq(tell("q2", "second\n"), AGENTD_CODE_OK);
    expect_file("heard", "first, second\n");
    hft_keeper_done(k);
}
END_TEST

START_TEST(the_next_link_tells_nothing_twice_and_goes_on)
{
    if (!hft_keeper_begin(k, _i))
        return;
    run("read one; echo \"$one\" >$D/first; read two; echo \"$two\" >$D/new; mv $D/new "
        "$D/heard; exec sleep 1000",
        AGENTD_SPAWN_TELL_INPUT);
    let_go();
    ck_assert_uint_eq(tell("q1", "first\n"), AGENTD_CODE_OK);
    await_file("first");
    ck_assert_int_eq(kill(k->link_pid, SIGKILL), 0);
    hft_keeper_accept(k);
    ck_assert_uint_eq(tell("q1", "first\n"), AGENTD_CODE_EXISTS);
    ck_assert_uint_eq(tell("q2", "second\n"), AGENTD_CODE_OK);
    expect_file("heard", "second\n");
    hft_keeper_done(k);
}
END_TEST

/* What did not fit was not begun: every line that it reads is whole. */
START_TEST(a_full_pipe_takes_nothing_and_loses_nothing)
{
    char line[AGENTD_TELL_MAX + 1], id[16];
    unsigned taken = 0;

    if (!hft_keeper_begin(k, _i))
        return;
    memset(line, 'x', sizeof line);
    line[AGENTD_TELL_MAX - 1] = '\n';
    run("until [ -e $D/go ]; do sleep 0.05; done\n"
        "while read line; do [ ${#line} = 4095 ] && echo whole >>$D/lines || exit 3; done",
        AGENTD_SPAWN_TELL_INPUT);
    let_go();
    for (uint32_t code = AGENTD_CODE_OK; code == AGENTD_CODE_OK && taken < 1000;) {
        (void)snprintf(id, sizeof id, "q%u", taken);
        code = tell_bytes(id, line, AGENTD_TELL_MAX);
        taken += code == AGENTD_CODE_OK;
        ck_assert(code == AGENTD_CODE_OK || code == AGENTD_CODE_FULL);
    }
    ck_assert_uint_ge(taken, 1);
    ck_assert_uint_lt(taken, 1000);
    ck_assert_uint_eq(tell_bytes(id, line, AGENTD_TELL_MAX), AGENTD_CODE_FULL);
    (void)snprintf(line, sizeof line, "%s/go", k->dir.path);
    ck_assert_int_eq(fclose(fopen(line, "we")), 0);
    memset(line, 'x', AGENTD_TELL_MAX - 1);
    line[AGENTD_TELL_MAX - 1] = '\n';
    while (tell_bytes(id, line, AGENTD_TELL_MAX) == AGENTD_CODE_FULL)
        (void)usleep(10000);
    ck_assert_uint_eq(k->reply.code, AGENTD_CODE_OK);
    (void)snprintf(line, sizeof line,
                   "until [ \"$(wc -l <%s/lines)\" = %u ]; do sleep 0.05; done", k->dir.path,
                   taken + 1);
    ck_assert_int_eq(system(line), 0);
    hft_keeper_done(k);
}
END_TEST

START_TEST(who_has_no_such_stdin_is_told_nothing)
{
    static const struct {
        const char *script;
        uint32_t flags;
    } CASES[] = { { "exec sleep 1000", 0 },
                  { "exec <&-; echo >$D/closed; exec sleep 1000", AGENTD_SPAWN_TELL_INPUT } };

    for (size_t i = 0; i < 2; i++) {
        if (!hft_keeper_begin(k, _i))
            return;
        run(CASES[i].script, CASES[i].flags);
        let_go();
        if (i == 1)
            await_file("closed");
        ck_assert_uint_eq(tell("q1", "hello\n"), AGENTD_CODE_STATE);
        /* The keeper is none the worse for it. */
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_KILL, "a", "i1"), AGENTD_CODE_OK);
        (void)hft_keeper_wait(k, "i1", AGENTD_STATE_ENDED);
        ck_assert_uint_eq(tell("q1", "hello\n"), AGENTD_CODE_STATE);
        ck_assert_uint_eq(hft_keeper_order(k, AGENTD_FORGET, "a", "i1"), AGENTD_CODE_OK);
        ck_assert_uint_eq(tell("q1", "hello\n"), AGENTD_CODE_UNKNOWN);
        hft_keeper_done(k);
    }
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("tell");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, it_is_told_on_its_stdin_and_each_thing_once, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(t, the_next_link_tells_nothing_twice_and_goes_on, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(t, a_full_pipe_takes_nothing_and_loses_nothing, 0, HFT_KEEPER_MODES);
    tcase_add_loop_test(t, who_has_no_such_stdin_is_told_nothing, 0, HFT_KEEPER_MODES);
    return hft_suite_run("keeper: tell", t, NULL);
}
