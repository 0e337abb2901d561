#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "agentd/keeper/protocol.h"
#include "support/suite.h"

static _Alignas(8) char packet[AGENTD_MESSAGE_MAX + 64];

static void *begin(uint16_t type, size_t fixed)
{
    struct agentd_head *head = (struct agentd_head *)packet;

    memset(packet, 0, sizeof packet);
    *head = (struct agentd_head){ .length = (uint32_t)fixed, .type = type, .id = 7 };
    return packet;
}

static void append(const void *bytes, size_t len)
{
    struct agentd_head *head = (struct agentd_head *)packet;

    memcpy(packet + head->length, bytes, len);
    head->length += (uint32_t)len;
}

static const char *verdict(void)
{
    return agentd_check_request(packet, ((struct agentd_head *)packet)->length);
}

static void name(struct agentd_who *who)
{
    strcpy(who->agent, "worker-1");
    strcpy(who->instance, "01hx");
}

static struct agentd_spawn *valid_spawn(void)
{
    static const char TEXT[] = "/tmp\0/bin/sh\0-c\0true\0PATH=/bin\0A=1";
    struct agentd_spawn *m = begin(AGENTD_SPAWN, sizeof *m);

    name(&m->who);
    m->uid = m->gid = AGENTD_KEEP_ID;
    m->argc = 3;
    m->envc = 2;
    m->text_len = sizeof TEXT;
    append(TEXT, sizeof TEXT);
    return m;
}

START_TEST(a_whole_spawn_passes_and_gives_its_strings)
{
    size_t len = 0;

    valid_spawn();
    ck_assert_ptr_null(verdict());
    const char *text = agentd_get_rest(packet, &len);
    ck_assert_str_eq(text, "/tmp");
    ck_assert_uint_eq(len, sizeof "/tmp\0/bin/sh\0-c\0true\0PATH=/bin\0A=1");
}
END_TEST

static void no_name(struct agentd_spawn *m)
{
    memset(m->who.agent, 0, sizeof m->who.agent);
}
static void name_with_slash(struct agentd_spawn *m)
{
    strcpy(m->who.agent, "../x");
}
static void upper_case(struct agentd_spawn *m)
{
    strcpy(m->who.agent, "Agent");
}
static void endless(struct agentd_spawn *m)
{
    memset(m->who.agent, 'a', sizeof m->who.agent);
}
static void hidden(struct agentd_spawn *m)
{
    m->who.agent[20] = 'x';
}
static void no_instance(struct agentd_spawn *m)
{
    m->who.instance[0] = 0;
}
static void odd_op(struct agentd_spawn *m)
{
    strcpy(m->op_id, "a b");
}
static void half_user(struct agentd_spawn *m)
{
    m->uid = 5;
}
static void groups_alone(struct agentd_spawn *m)
{
    m->group_count = 1;
}
static void many_groups(struct agentd_spawn *m)
{
    m->group_count = AGENTD_GROUPS_MAX + 1;
}
static void many_limits(struct agentd_spawn *m)
{
    m->rlimit_count = AGENTD_RLIMITS_MAX + 1;
}
static void odd_limit(struct agentd_spawn *m)
{
    m->rlimit_count = 1;
    m->rlimits[0].resource = 99;
}
static void soft_above_hard(struct agentd_spawn *m)
{
    m->rlimit_count = 1;
    m->rlimits[0].soft = 1;
}
static void odd_umask(struct agentd_spawn *m)
{
    m->umask = 01000;
}
static void odd_nice(struct agentd_spawn *m)
{
    m->nice = 20;
}
static void odd_fence(struct agentd_spawn *m)
{
    m->fence = 3;
}
static void odd_flags(struct agentd_spawn *m)
{
    m->flags = 32;
}
static void two_inputs(struct agentd_spawn *m)
{
    m->flags = AGENTD_SPAWN_PASS_INPUT | AGENTD_SPAWN_TELL_INPUT;
}
static void no_argv(struct agentd_spawn *m)
{
    m->argc = 0, m->envc = 5;
}
static void one_string_more(struct agentd_spawn *m)
{
    m->envc = 3;
}
static void one_string_less(struct agentd_spawn *m)
{
    m->envc = 1;
}
static void overflow(struct agentd_spawn *m)
{
    m->argc = UINT32_MAX;
}
static void no_end(struct agentd_spawn *m)
{
    packet[m->head.length - 1] = 'x';
}
static void shorter_text(struct agentd_spawn *m)
{
    m->text_len--;
}
static void relative(struct agentd_spawn *m)
{
    *(char *)(m + 1) = 't';
}
static void no_program(struct agentd_spawn *m)
{
    /* "/tmp", then an empty argv[0]; the bytes of the old one become the name of the next. */
    memcpy(m + 1, "/tm\0\0bin", 8);
}
static void no_equals(struct agentd_spawn *m)
{
    packet[m->head.length - 3] = 'x';
}
static void no_env_name(struct agentd_spawn *m)
{
    packet[m->head.length - 4] = '=';
}
static void no_id(struct agentd_spawn *m)
{
    m->head.id = 0;
}
static void reserved(struct agentd_spawn *m)
{
    m->head.reserved = 1;
}
static void news(struct agentd_spawn *m)
{
    m->head.type = AGENTD_HELLO;
}
static void unknown(struct agentd_spawn *m)
{
    m->head.type = 99;
}
static void cut(struct agentd_spawn *m)
{
    m->head.length = sizeof *m - 1;
}
static void headless(struct agentd_spawn *m)
{
    m->head.length = 8;
}

static void (*const SPOIL[])(struct agentd_spawn *) = {
    no_name,         name_with_slash,
    upper_case,      endless,
    hidden,          no_instance,
    odd_op,          half_user,
    groups_alone,    many_groups,
    many_limits,     odd_limit,
    soft_above_hard, odd_umask,
    odd_nice,        odd_fence,
    odd_flags,       no_argv,
    one_string_more, one_string_less,
    overflow,        no_end,
    shorter_text,    relative,
    no_program,      no_equals,
    no_env_name,     no_id,
    reserved,        news,
    unknown,         cut,
    headless,        two_inputs,
};

START_TEST(a_spoilt_spawn_is_refused)
{
    SPOIL[_i](valid_spawn());
    ck_assert_ptr_nonnull(verdict());
}
END_TEST

START_TEST(a_name_that_stands_twice_is_refused)
{
    static const char TEXT[] = "/\0x\0A=1\0AB=2\0A=3";
    struct agentd_spawn *m = begin(AGENTD_SPAWN, sizeof *m);

    name(&m->who);
    m->uid = m->gid = AGENTD_KEEP_ID;
    m->argc = 1;
    m->envc = 3;
    m->text_len = sizeof TEXT;
    append(TEXT, sizeof TEXT);
    ck_assert_str_eq(verdict(), "an environment name stands twice");
    m->envc = 2;
    m->text_len = m->head.length = sizeof "/\0x\0A=1\0AB=2";
    m->head.length += (uint32_t)sizeof *m;
    ck_assert_ptr_null(verdict());
}
END_TEST

START_TEST(signal_and_grace_belong_to_end_alone)
{
    struct agentd_order *m = begin(AGENTD_END, sizeof *m);

    name(&m->who);
    m->signal = 15;
    m->grace_ms = 10000;
    ck_assert_ptr_null(verdict());
    m->head.type = AGENTD_KILL;
    ck_assert_ptr_nonnull(verdict());
    m->signal = m->grace_ms = 0;
    ck_assert_ptr_null(verdict());
    m->head.type = AGENTD_END;
    ck_assert_ptr_nonnull(verdict());
    m->head.type = AGENTD_EXTEND;
    ck_assert_ptr_null(verdict());
    m->grace_ms = AGENTD_GRACE_MAX + 1;
    ck_assert_ptr_nonnull(verdict());
}
END_TEST

START_TEST(blobs_and_memos_have_a_limit)
{
    static char bytes[AGENTD_MEMO_MAX + 1];
    struct agentd_memo *memo = begin(AGENTD_MEMO, sizeof *memo);

    memo->len = AGENTD_MEMO_MAX;
    append(bytes, AGENTD_MEMO_MAX);
    ck_assert_ptr_null(verdict());
    append(bytes, 1);
    memo->len++;
    ck_assert_ptr_nonnull(verdict());

    struct agentd_remember *m = begin(AGENTD_REMEMBER, sizeof *m);
    name(&m->who);
    m->blob_len = AGENTD_BLOB_MAX;
    append(bytes, AGENTD_BLOB_MAX);
    ck_assert_ptr_null(verdict());
    append(bytes, 1);
    m->blob_len++;
    ck_assert_ptr_nonnull(verdict());
}
END_TEST

START_TEST(what_is_told_has_an_id_and_a_limit)
{
    static char bytes[AGENTD_TELL_MAX + 1];
    struct agentd_tell *m = begin(AGENTD_TELL, sizeof *m);

    name(&m->who);
    ck_assert_ptr_nonnull(verdict()); /* nothing is told */
    m->len = AGENTD_TELL_MAX;
    append(bytes, AGENTD_TELL_MAX);
    ck_assert_ptr_nonnull(verdict()); /* it has no id */
    strcpy(m->id, "01hx");
    ck_assert_ptr_null(verdict());
    m->reserved = 1;
    ck_assert_ptr_nonnull(verdict());
    m->reserved = 0;
    m->len--;
    ck_assert_ptr_nonnull(verdict());
    m->len = AGENTD_TELL_MAX + 1;
    append(bytes, 1);
    ck_assert_ptr_nonnull(verdict());
}
END_TEST

START_TEST(what_the_keeper_says_is_checked_too)
{
    static char bytes[AGENTD_BLOB_MAX];
    struct agentd_agent *m = begin(AGENTD_AGENT, sizeof *m);

    name(&m->who);
    m->head.id = 0;
    ck_assert_ptr_null(agentd_check_news(packet, sizeof *m));
    ck_assert_ptr_nonnull(agentd_check_request(packet, sizeof *m));
    m->state = AGENTD_STATE_ENDED + 1;
    ck_assert_ptr_nonnull(agentd_check_news(packet, sizeof *m));
    m->state = AGENTD_STATE_ENDED;
    m->blob_len = AGENTD_BLOB_MAX;
    append(bytes, AGENTD_BLOB_MAX);
    ck_assert_ptr_null(agentd_check_news(packet, m->head.length));
    m->blob_len++;
    append(bytes, 1);
    ck_assert_ptr_nonnull(agentd_check_news(packet, m->head.length));
}
END_TEST

START_TEST(what_is_held_has_the_name_of_an_agent)
{
    struct agentd_held *m = begin(AGENTD_HOLD, sizeof *m);

    ck_assert_ptr_nonnull(verdict());
    strcpy(m->agent, "worker-1");
    ck_assert_ptr_null(verdict());
    m->agent[20] = 'x';
    ck_assert_ptr_nonnull(verdict());
    m->agent[20] = 0;
    m->head.type = AGENTD_HELD; /* what the keeper says */
    ck_assert_ptr_nonnull(verdict());
    ck_assert_ptr_null(agentd_check_news(packet, sizeof *m));
}
END_TEST

START_TEST(every_value_has_a_name)
{
    ck_assert_str_eq(agentd_state_name(AGENTD_STATE_FROZEN), "FROZEN");
    ck_assert_str_eq(agentd_code_name(AGENTD_CODE_FENCED), "FENCED");
    ck_assert_str_eq(agentd_message_name(AGENTD_SPAWN), "SPAWN");
    ck_assert_str_eq(agentd_message_name(99), "?");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("protocol");

    tcase_add_test(t, a_whole_spawn_passes_and_gives_its_strings);
    tcase_add_loop_test(t, a_spoilt_spawn_is_refused, 0, sizeof SPOIL / sizeof SPOIL[0]);
    tcase_add_test(t, a_name_that_stands_twice_is_refused);
    tcase_add_test(t, signal_and_grace_belong_to_end_alone);
    tcase_add_test(t, blobs_and_memos_have_a_limit);
    tcase_add_test(t, what_is_told_has_an_id_and_a_limit);
    tcase_add_test(t, what_the_keeper_says_is_checked_too);
    tcase_add_test(t, what_is_held_has_the_name_of_an_agent);
    tcase_add_test(t, every_value_has_a_name);
    return hft_suite_run("keeper/protocol", t, NULL);
}
