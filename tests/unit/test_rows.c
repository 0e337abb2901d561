/* The protocol's table, as text: each row must guard and write exactly what the table says. */
#include <check.h>
#include <string.h>

#include "core/rows.h"
#include "schema/json.h"
#include "unit/suite.h"

static struct hf_plan plan;

static const struct hf_life LIFE = {
    .agent = "a", .lease = 0x2a, .create_rev = 9, .generation = 1
};
static const struct hf_term TERM = { .lease = 0x7b, .create_rev = 5 };

static Holdfast__V1__Incarnation incarnation;
static Holdfast__V1__Owner owner;
static Holdfast__V1__Task task;
static struct hf_seen_task seen_task;
static Holdfast__V1__Recovery recovery;
static Holdfast__V1__Health health;
static Holdfast__V1__Live live;

static void setup(void)
{
    holdfast__v1__incarnation__init(&incarnation);
    incarnation.lease_id = 0x2a;
    incarnation.create_revision = 9;
    holdfast__v1__owner__init(&owner);
    owner.agent = (char *)"a";
    owner.incarnation = &incarnation;
    holdfast__v1__task__init(&task);
    task.id = (char *)"t";
    task.role = (char *)"r";
    task.state = HOLDFAST__V1__TASK__STATE__in_progress;
    task.owner = &owner;
    task.attempt = 1;
    seen_task =
        (struct hf_seen_task){ .seen = { .create_rev = 3, .mod_rev = 17 }, .task = &task };
    holdfast__v1__recovery__init(&recovery);
    recovery.task = (char *)"t";
    holdfast__v1__health__init(&health);
    holdfast__v1__live__init(&live);
    hf_plan_init(&plan, "default", HF_WRITER_OWNER, "op1");
}

static void teardown(void)
{
    hf_plan_done(&plan);
}

static void expect(const char *text)
{
    struct hf_buf described = { 0 };
    struct hf_error err = { "" };

    ck_assert_msg(hf_plan_check(&plan, &err) == HF_OK, "%s", err.text);
    hf_plan_describe(&plan, &described);
    ck_assert_str_eq(described.data, text);
    hf_buf_done(&described);
}

/* The task that the plan writes, decoded again. */
static Holdfast__V1__Task *written_task(void)
{
    for (size_t i = 0; i < plan.write_count; i++) {
        ProtobufCMessage *message = NULL;

        if (strcmp(plan.writes[i].key, "/holdfast/default/tasks/t") != 0)
            continue;
        ck_assert_int_eq(hf_json_decode(&holdfast__v1__task__descriptor, plan.writes[i].value,
                                        plan.writes[i].value_len, NULL, &message, NULL),
                         HF_OK);
        return (Holdfast__V1__Task *)message;
    }
    ck_abort_msg("the plan writes no task");
}

static struct hf_start make_start(void)
{
    return (struct hf_start){ .agent = "a",
                              .host = "h",
                              .live = &live,
                              .lease = 0x2a,
                              .spec = { .mod_rev = 4 },
                              .wanted = { .mod_rev = 0 },
                              .generation = 1 };
}

START_TEST(submit)
{
    hf_row_submit(&plan, &task);
    expect("if absent(tasks/t) then put tasks/t, put pending/r/t");
}
END_TEST

START_TEST(enqueue)
{
    hf_row_enqueue(&plan, &task);
    expect("if absent(tasks/t) then put tasks/t");
    ck_assert_ptr_nonnull(strstr(plan.writes[0].value, "\"state\":\"queued\""));
}
END_TEST

START_TEST(a_host_joins)
{
    Holdfast__V1__Host record = HOLDFAST__V1__HOST__INIT;
    Holdfast__V1__HostLive here = HOLDFAST__V1__HOST_LIVE__INIT;

    here.lease_id = 0x2a;
    hf_row_join(&plan, "h", &(struct hf_seen){ .mod_rev = 3 }, &record, &here);
    expect("if absent(hosts/h/live), mod(hosts/h/record) = 3 then put hosts/h/live, "
           "put hosts/h/record");
    ck_assert_int_eq(plan.writes[0].lease, 0x2a);
}
END_TEST

START_TEST(a_host_says_what_it_is_by_now)
{
    Holdfast__V1__Host record = HOLDFAST__V1__HOST__INIT;

    record.lease_id = 0x2a;
    hf_row_host(&plan, "h", &(struct hf_seen){ .mod_rev = 3 }, 2, &record);
    expect("if create(hosts/h/live) = 2, lease(hosts/h/live) = 2a, mod(hosts/h/record) = 3 "
           "then put hosts/h/record");
}
END_TEST

START_TEST(a_spec)
{
    Holdfast__V1__Spec next = HOLDFAST__V1__SPEC__INIT;

    hf_row_spec(&plan, "a", &(struct hf_seen){ .mod_rev = 4 }, &next);
    expect("if mod(agents/a/spec) = 4 then put agents/a/spec");
}
END_TEST

START_TEST(start_by_command_with_a_task)
{
    struct hf_start start = make_start();
    Holdfast__V1__Task *next;

    hf_row_start_by_command(&plan, &start, &(struct hf_seen){ .mod_rev = 12 }, &seen_task, 6);
    expect("if absent(agents/a/live), mod(agents/a/spec) = 4, mod(wanted/a) = 0, "
           "mod(commands/h/a) = 12, mod(tasks/t) = 17 then put agents/a/live, "
           "delete commands/h/a, put tasks/t, delete pending/r/t");
    next = written_task();
    ck_assert_int_eq(next->state, HOLDFAST__V1__TASK__STATE__acknowledged);
    ck_assert_ptr_null(next->restored); /* there was nothing to go on from */
    ck_assert_int_eq(next->owner->incarnation->create_revision, 0);
    /* Which means: that of the Txn that wrote it. */
    ck_assert_int_eq(
        hf_rows_owner_rev(&(struct hf_seen_task){ .seen = { .mod_rev = 40 }, .task = next }),
        40);
    hf_json_free(&next->base);
}
END_TEST

START_TEST(start_by_command_with_a_task_that_has_checkpoints)
{
    struct hf_start start = make_start();
    Holdfast__V1__CheckpointRef head = HOLDFAST__V1__CHECKPOINT_REF__INIT;
    Holdfast__V1__Task *next;

    head.seq = 7;
    task.checkpoint = &head;
    hf_row_start_by_command(&plan, &start, &(struct hf_seen){ .mod_rev = 12 }, &seen_task,
                            _i == 0 ? 6 : 0);
    next = written_task();
    ck_assert_int_eq(next->checkpoint->seq, 7);
    ck_assert_ptr_nonnull(next->restored);
    ck_assert_int_eq(next->restored->seq, _i == 0 ? 6 : 0);
    hf_json_free(&next->base);
}
END_TEST

/* It was given to whoever had the task before. */
static void forgets_what_was_restored(void)
{
    Holdfast__V1__Task *next = written_task();

    ck_assert_ptr_null(next->restored);
    hf_json_free(&next->base);
}

START_TEST(what_was_restored_goes_with_its_owner)
{
    Holdfast__V1__CheckpointRef entry = HOLDFAST__V1__CHECKPOINT_REF__INIT;

    task.restored = &entry;
    switch (_i) {
    case 0: hf_row_claim(&plan, &LIFE, &seen_task); break;
    case 1: hf_row_release(&plan, &LIFE, &seen_task, ""); break;
    case 2: hf_row_take_back(&plan, &TERM, &seen_task, ""); break;
    default:
        hf_row_reset(&plan, &TERM, &seen_task, &(struct hf_seen){ 0 },
                     &(struct hf_reset){ .pending = _i == 3, .recovery = &recovery });
    }
    forgets_what_was_restored();
}
END_TEST

START_TEST(start_by_command_without_a_task)
{
    struct hf_start start = make_start();

    hf_row_start_by_command(&plan, &start, &(struct hf_seen){ .mod_rev = 12 }, NULL, 0);
    expect("if absent(agents/a/live), mod(agents/a/spec) = 4, mod(wanted/a) = 0, "
           "mod(commands/h/a) = 12 then put agents/a/live, delete commands/h/a");
}
END_TEST

START_TEST(boot_start)
{
    struct hf_start start = make_start();

    hf_row_boot_start(&plan, &start);
    expect("if absent(agents/a/live), mod(agents/a/spec) = 4, mod(wanted/a) = 0, "
           "absent(commands/h/a) then put agents/a/live");
    ck_assert_int_eq(plan.writes[0].lease, 0x2a);
}
END_TEST

START_TEST(local_restart)
{
    struct hf_start start = make_start();

    hf_row_local_restart(&plan, &start);
    expect("if absent(controller/leader), absent(agents/a/live), mod(agents/a/spec) = 4, "
           "mod(wanted/a) = 0, absent(commands/h/a) then put agents/a/live");
}
END_TEST

START_TEST(succeed)
{
    struct hf_start start = make_start();
    Holdfast__V1__Exit exit = HOLDFAST__V1__EXIT__INIT;

    hf_row_succeed(&plan, &start,
                   &(struct hf_succession){ .heir_of = 9,
                                            .health = { .mod_rev = 21 },
                                            .task = seen_task,
                                            .reason = "",
                                            .exit_text = { "{}", 2 },
                                            .exit = &exit });
    expect("if absent(agents/a/live), mod(agents/a/spec) = 4, mod(wanted/a) = 0, "
           "absent(commands/h/a), mod(health/a) = 21, text(agents/a/exit), "
           "mod(tasks/t) = 17 then "
           "put agents/a/live, put agents/a/exit, put tasks/t");
    ck_assert_int_eq(plan.writes[0].lease, 0x2a);
    ck_assert_int_eq(plan.writes[1].lease, 0);
    ck_assert_ptr_nonnull(strstr(plan.writes[2].value, "\"state\":\"acknowledged\""));
    ck_assert_ptr_nonnull(strstr(plan.writes[2].value, "\"attempt\":2"));
    ck_assert_ptr_nonnull(strstr(plan.writes[2].value, "\"createRevision\":\"0\""));
    ck_assert_ptr_nonnull(
        strstr(plan.writes[2].value, "\"inherited\":{\"incarnation\":\"9\"}"));
}
END_TEST

START_TEST(external_start)
{
    struct hf_start start = make_start();

    hf_row_external_start(&plan, &start);
    expect("if absent(agents/a/live), mod(agents/a/spec) = 4, mod(wanted/a) = 0 "
           "then put agents/a/live, delete commands/h/a");
}
END_TEST

START_TEST(reap)
{
    hf_row_reap(&plan, &LIFE);
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a then delete agents/a/live");
}
END_TEST

START_TEST(claim)
{
    Holdfast__V1__Task *next;

    task.owner = NULL;
    task.state = HOLDFAST__V1__TASK__STATE__pending;
    hf_row_claim(&plan, &LIFE, &seen_task);
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a, mod(tasks/t) = 17 "
           "then put tasks/t, delete pending/r/t");
    next = written_task();
    ck_assert_int_eq(next->state, HOLDFAST__V1__TASK__STATE__acknowledged);
    ck_assert_str_eq(next->owner->agent, "a");
    ck_assert_int_eq(next->owner->incarnation->create_revision, 9);
    ck_assert_str_eq(hf_plan_find_op_id(&next->base, HF_WRITER_OWNER), "op1");
    hf_json_free(&next->base);
}
END_TEST

START_TEST(complete)
{
    Holdfast__V1__Task next = task;

    next.state = HOLDFAST__V1__TASK__STATE__completed;
    hf_row_task(&plan, &LIFE, &seen_task, &next);
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a, mod(tasks/t) = 17 "
           "then put tasks/t");
}
END_TEST

/* A restored etcd gives revisions out again: what a task says is compared, too. */
START_TEST(complete_a_task_whose_text_is_known)
{
    Holdfast__V1__Task next = task;

    seen_task.seen.text = (struct hf_bytes){ .data = "{}", .len = 2 };
    hf_row_task(&plan, &LIFE, &seen_task, &next);
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a, mod(tasks/t) = 17, "
           "text(tasks/t) then put tasks/t");
}
END_TEST

START_TEST(release)
{
    Holdfast__V1__Task *next;

    hf_row_release(&plan, &LIFE, &seen_task, "not my kind");
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a, mod(tasks/t) = 17 "
           "then put tasks/t, put pending/r/t");
    next = written_task();
    ck_assert_ptr_null(next->owner);
    ck_assert_int_eq(next->attempt, 1);
    hf_json_free(&next->base);
}
END_TEST

START_TEST(checkpoint)
{
    Holdfast__V1__Checkpoint entry = HOLDFAST__V1__CHECKPOINT__INIT;
    Holdfast__V1__Task *next;

    entry.task = (char *)"t";
    entry.seq = 3;
    hf_row_checkpoint(&plan, &LIFE, &seen_task, &entry, (struct hf_bytes){ 0 });
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a, "
           "absent(checkpoints/t/0000000000000000003), mod(tasks/t) = 17 "
           "then put checkpoints/t/0000000000000000003, put tasks/t");
    next = written_task();
    ck_assert_int_eq(next->checkpoint->seq, 3);
    hf_json_free(&next->base);
}
END_TEST

/* What lies in etcd comes with the entry that names it, or not at all. */
START_TEST(checkpoint_with_its_body)
{
    static const struct hf_key BODY = { HF_KEY_CHECKPOINT_BODY, .name = "t", .seq = 71 };
    Holdfast__V1__Checkpoint entry = HOLDFAST__V1__CHECKPOINT__INIT;
    struct hf_bytes put;

    entry.task = (char *)"t";
    entry.seq = 3;
    entry.store = (char *)"etcd";
    entry.key = (char *)"0000000000000000071";
    hf_row_checkpoint(&plan, &LIFE, &seen_task, &entry, (struct hf_bytes){ "a\0b", 3 });
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a, "
           "absent(checkpoints/t/0000000000000000003), mod(tasks/t) = 17 "
           "then put checkpoints/t/0000000000000000003, "
           "put /holdfast-data/default/checkpoints/t/0000000000000000071, put tasks/t");
    put = hf_plan_find_put(&plan, BODY);
    ck_assert_uint_eq(put.len, 3);
    ck_assert_mem_eq(put.data, "a\0b", 3);
}
END_TEST

static const struct {
    const char *store;
    const char *key;
} NOWHERE[] = { { "file", "71" }, { "etcd", "" }, { "etcd", "0" }, { "etcd", "x71" } };

START_TEST(checkpoint_with_a_body_that_has_no_place)
{
    Holdfast__V1__Checkpoint entry = HOLDFAST__V1__CHECKPOINT__INIT;

    entry.task = (char *)"t";
    entry.seq = 3;
    entry.store = (char *)NOWHERE[_i].store;
    entry.key = (char *)NOWHERE[_i].key;
    hf_row_checkpoint(&plan, &LIFE, &seen_task, &entry, (struct hf_bytes){ "x", 1 });
    ck_assert_int_eq(hf_plan_check(&plan, NULL), HF_EINVAL);
}
END_TEST

START_TEST(report)
{
    Holdfast__V1__Report next = HOLDFAST__V1__REPORT__INIT;

    hf_row_report(&plan, &LIFE, &(struct hf_seen){ .mod_rev = 21 }, &next);
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a, "
           "mod(agents/a/report) = 21 then put agents/a/report");
}
END_TEST

START_TEST(end)
{
    Holdfast__V1__Exit next = HOLDFAST__V1__EXIT__INIT;

    hf_row_end(&plan, &LIFE, &(struct hf_seen){ 0 }, &next);
    expect("if create(agents/a/live) = 9, lease(agents/a/live) = 2a "
           "then put agents/a/exit, delete agents/a/live");
}
END_TEST

START_TEST(adopt)
{
    struct hf_life reborn = LIFE;
    Holdfast__V1__Task *next;

    reborn.create_rev = 30;
    reborn.lease = 0x2b;
    hf_row_adopt(&plan, &reborn, &seen_task);
    expect("if create(agents/a/live) = 30, lease(agents/a/live) = 2b, mod(tasks/t) = 17 "
           "then put tasks/t");
    next = written_task();
    ck_assert_int_eq(next->state, HOLDFAST__V1__TASK__STATE__in_progress);
    ck_assert_int_eq(next->owner->incarnation->create_revision, 30);
    hf_json_free(&next->base);
}
END_TEST

static struct hf_order make_order(Holdfast__V1__Command *command)
{
    holdfast__v1__command__init(command);
    command->id = (char *)"c1";
    command->host = (char *)"h";
    command->task = (char *)"t";
    return (struct hf_order){ .agent = "a",
                              .command = command,
                              .health = &health,
                              .spec = { .mod_rev = 4 },
                              .wanted = { .mod_rev = 6 },
                              .health_seen = { .mod_rev = 8 } };
}

START_TEST(reset_and_order_in_one)
{
    Holdfast__V1__Command command;
    struct hf_order order = make_order(&command);
    Holdfast__V1__Task *next;

    hf_row_reset(&plan, &TERM, &seen_task, &(struct hf_seen){ .mod_rev = 0 },
                 &(struct hf_reset){ .pending = true,
                                     .reserved_for = "a",
                                     .reason = "a crashed",
                                     .recovery = &recovery });
    hf_row_order(&plan, &TERM, &order);
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(recoveries/t) = 0, create(agents/a/live) != 9, mod(tasks/t) = 17, "
           "mod(health/a) = 8, absent(commands/h/a), absent(agents/a/live), "
           "mod(agents/a/spec) = 4, mod(wanted/a) = 6 "
           "then put recoveries/t, put tasks/t, put pending/r/t, put commands/h/a, "
           "put health/a");
    next = written_task();
    ck_assert_int_eq(next->attempt, 2);
    ck_assert_str_eq(next->reserved_for, "a");
    ck_assert_ptr_null(next->owner);
    hf_json_free(&next->base);
}
END_TEST

/* Anybody may have written the record. */
START_TEST(the_number_of_the_attempt_stops_at_the_largest)
{
    Holdfast__V1__Task *next;

    task.attempt = INT32_MAX;
    hf_row_reset(&plan, &TERM, &seen_task, &(struct hf_seen){ .mod_rev = 11 },
                 &(struct hf_reset){ .reason = "again", .recovery = &recovery });
    next = written_task();
    ck_assert_int_eq(next->attempt, INT32_MAX);
    hf_json_free(&next->base);
}
END_TEST

START_TEST(reset_behind_a_backoff)
{
    Holdfast__V1__Task *next;
    Google__Protobuf__Timestamp at = GOOGLE__PROTOBUF__TIMESTAMP__INIT;

    at.seconds = 77;
    recovery.next_at = &at;
    hf_row_reset(
        &plan, &TERM, &seen_task, &(struct hf_seen){ .mod_rev = 11 },
        &(struct hf_reset){ .reason = "again", .next = "anyone may", .recovery = &recovery });
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(recoveries/t) = 11, create(agents/a/live) != 9, mod(tasks/t) = 17 "
           "then put recoveries/t, put tasks/t");
    next = written_task();
    ck_assert_int_eq(next->state, HOLDFAST__V1__TASK__STATE__queued);
    ck_assert_str_eq(next->next->what, "anyone may");
    ck_assert_int_eq(next->next->at->seconds, 77);
    hf_json_free(&next->base);
}
END_TEST

START_TEST(reset_of_a_task_that_nobody_owns_is_refused)
{
    task.owner = NULL;
    hf_row_reset(&plan, &TERM, &seen_task, &(struct hf_seen){ 0 },
                 &(struct hf_reset){ .recovery = &recovery });
    ck_assert_int_eq(hf_plan_check(&plan, NULL), HF_EINVAL);
}
END_TEST

/* Else the guard would ask for a revision other than 0, which is to say, for a life. */
START_TEST(an_owner_that_names_no_life_is_gone)
{
    owner.incarnation = NULL;
    ck_assert_int_eq(hf_rows_owner_rev(&seen_task), 17);
    hf_row_reset(&plan, &TERM, &seen_task, &(struct hf_seen){ .mod_rev = 11 },
                 &(struct hf_reset){ .recovery = &recovery });
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(recoveries/t) = 11, create(agents/a/live) != 17, mod(tasks/t) = 17 "
           "then put recoveries/t, put tasks/t");
    task.owner = NULL;
    ck_assert_int_eq(hf_rows_owner_rev(&seen_task), 0);
}
END_TEST

START_TEST(order_alone)
{
    struct hf_seen_recovery seen = { .seen = { .mod_rev = 11 }, .recovery = &recovery };
    Holdfast__V1__Command command;
    struct hf_order order = make_order(&command);

    order.recovery = &seen;
    order.next_recovery = &recovery;
    hf_row_order(&plan, &TERM, &order);
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(health/a) = 8, absent(commands/h/a), absent(agents/a/live), "
           "mod(agents/a/spec) = 4, mod(wanted/a) = 6, mod(recoveries/t) = 11 "
           "then put commands/h/a, put health/a, put recoveries/t");
}
END_TEST

START_TEST(promote)
{
    hf_row_promote(&plan, &TERM, &seen_task, &(struct hf_seen){ .mod_rev = 11 });
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(recoveries/t) = 11, mod(tasks/t) = 17 then put tasks/t, put pending/r/t");
}
END_TEST

static Holdfast__V1__Task *read_put(const char *key)
{
    ProtobufCMessage *record = NULL;

    for (size_t i = 0; i < plan.write_count; i++) {
        if (strstr(plan.writes[i].key, key) != NULL)
            ck_assert_int_eq(hf_json_decode(&holdfast__v1__task__descriptor,
                                            plan.writes[i].value, plan.writes[i].value_len,
                                            NULL, &record, NULL),
                             HF_OK);
    }
    ck_assert_ptr_nonnull(record);
    return (Holdfast__V1__Task *)record;
}

START_TEST(demote)
{
    Holdfast__V1__Task *next;

    hf_row_demote(&plan, &TERM, &seen_task, "others run", "they end");
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(tasks/t) = 17 then put tasks/t, delete pending/r/t");
    next = read_put("tasks/t");
    ck_assert_int_eq(next->state, HOLDFAST__V1__TASK__STATE__queued);
    ck_assert_str_eq(next->reason, "others run");
    ck_assert_str_eq(next->next->what, "they end");
    hf_json_free(&next->base);
}
END_TEST

START_TEST(what_is_promoted_does_not_wait_for_others_any_more)
{
    Holdfast__V1__Task *next;

    task.attempt = _i;
    task.reason = (char *)"others run";
    hf_row_promote(&plan, &TERM, &seen_task, &(struct hf_seen){ .mod_rev = 11 });
    next = read_put("tasks/t");
    ck_assert_str_eq(next->reason, _i == 0 ? "" : "others run");
    ck_assert_ptr_null(next->next);
    hf_json_free(&next->base);
}
END_TEST

START_TEST(refuse)
{
    Holdfast__V1__Exit next = HOLDFAST__V1__EXIT__INIT;
    struct hf_refusal refusal = { .host = "h",
                                  .host_lease = 0x2a,
                                  .host_create_rev = 2,
                                  .agent = "a",
                                  .command = { .mod_rev = 12 },
                                  .next_exit = &next };

    hf_row_refuse(&plan, &refusal, &seen_task);
    expect("if create(hosts/h/live) = 2, lease(hosts/h/live) = 2a, mod(commands/h/a) = 12, "
           "mod(tasks/t) = 17 then put agents/a/exit, delete commands/h/a, put tasks/t, "
           "put pending/r/t");
}
END_TEST

START_TEST(withdraw)
{
    struct hf_withdrawal withdrawal = { .host = "h",
                                        .agent = "a",
                                        .command = { .mod_rev = 12 },
                                        .health = { .mod_rev = 8 },
                                        .next_health = &health };

    hf_row_withdraw(&plan, &TERM, &withdrawal);
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(commands/h/a) = 12, mod(health/a) = 8 then delete commands/h/a, put health/a");
}
END_TEST

START_TEST(withdraw_with_a_task)
{
    struct hf_withdrawal withdrawal = { .host = "h",
                                        .agent = "a",
                                        .command = { .mod_rev = 12 },
                                        .health = { .mod_rev = 8 },
                                        .next_health = &health,
                                        .task = &seen_task,
                                        .recovery_of = "t",
                                        .recovery = { .mod_rev = 6 },
                                        .next_recovery = &recovery };

    task.owner = NULL;
    task.state = HOLDFAST__V1__TASK__STATE__pending;
    task.reserved_for = (char *)"a";
    hf_row_withdraw(&plan, &TERM, &withdrawal);
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(commands/h/a) = 12, mod(health/a) = 8, mod(tasks/t) = 17, "
           "mod(recoveries/t) = 6 then delete commands/h/a, put health/a, put tasks/t, "
           "put pending/r/t, put recoveries/t");
}
END_TEST

START_TEST(take_back)
{
    Holdfast__V1__Task *next;

    hf_row_take_back(&plan, &TERM, &seen_task, "not started");
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(tasks/t) = 17 then put tasks/t, put pending/r/t");
    next = written_task();
    ck_assert_ptr_null(next->owner);
    ck_assert_int_eq(next->state, HOLDFAST__V1__TASK__STATE__pending);
    hf_json_free(&next->base);
}
END_TEST

START_TEST(review)
{
    hf_row_review(&plan, &TERM, &seen_task, &(struct hf_seen){ .mod_rev = 6 }, &recovery,
                  "too often");
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "create(agents/a/live) != 9, mod(tasks/t) = 17, mod(recoveries/t) = 6 "
           "then put tasks/t, delete pending/r/t, put recoveries/t");
}
END_TEST

START_TEST(review_of_what_nobody_owns)
{
    task.owner = NULL;
    hf_row_review(&plan, &TERM, &seen_task, &(struct hf_seen){ .mod_rev = 0 }, NULL, "lonely");
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(tasks/t) = 17, mod(recoveries/t) = 0 then put tasks/t, delete pending/r/t");
}
END_TEST

START_TEST(sweep)
{
    hf_row_sweep(&plan, &TERM, "a", &(struct hf_seen){ .mod_rev = 4 });
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "absent(agents/a/live), mod(agents/a/spec) = 4 then delete agents/a/spec, "
           "delete agents/a/report, delete agents/a/exit, delete health/a");
}
END_TEST

START_TEST(sweep_chain)
{
    Holdfast__V1__CheckpointRef head = HOLDFAST__V1__CHECKPOINT_REF__INIT;
    Holdfast__V1__Root root = HOLDFAST__V1__ROOT__INIT;

    task.checkpoint = &head;
    task.root = &root;
    hf_row_sweep_chain(&plan, &TERM, &seen_task);
    ck_assert_ptr_null(
        strstr(hf_plan_find_put(&plan, (struct hf_key){ HF_KEY_TASK, .name = "t" }).data,
               "checkpoint"));
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(tasks/t) = 17 then put tasks/t, delete checkpoints/t/, "
           "delete /holdfast-data/default/checkpoints/t/");
}
END_TEST

START_TEST(remove_task)
{
    hf_row_remove_task(&plan, &seen_task);
    expect("if mod(tasks/t) = 17 then delete tasks/t, delete pending/r/t, delete recoveries/t, "
           "delete /holdfast-data/default/tasks/t/, delete checkpoints/t/, "
           "delete /holdfast-data/default/checkpoints/t/");
}
END_TEST

START_TEST(an_entry_of_the_audit_trail)
{
    Holdfast__V1__Event event = HOLDFAST__V1__EVENT__INIT;

    hf_row_lead(&plan, &TERM);
    hf_row_event(&plan, 17, &event);
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "absent(events/0000000000000000017) then put events/0000000000000000017");
}
END_TEST

START_TEST(end_by_controller_and_by_operator)
{
    Holdfast__V1__Wanted wanted = HOLDFAST__V1__WANTED__INIT;

    hf_row_end_by_controller(&plan, &TERM, "a", &(struct hf_seen){ .mod_rev = 8 }, &health);
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(health/a) = 8 then put health/a");
    hf_plan_done(&plan);
    hf_plan_init(&plan, "default", HF_WRITER_OPERATOR, "op2");
    hf_row_want(&plan, "a", &(struct hf_seen){ .mod_rev = 0 }, &wanted);
    expect("if mod(wanted/a) = 0 then put wanted/a");
}
END_TEST

START_TEST(end_of_one_that_stands_still)
{
    Holdfast__V1__Task owned = HOLDFAST__V1__TASK__INIT;

    owned.id = (char *)"t";
    hf_row_end_stalled(
        &plan, &TERM,
        &(struct hf_stalled){ .agent = "a",
                              .health = { .mod_rev = 8 },
                              .next = &health,
                              .report = { .mod_rev = 9 },
                              .task = { .seen = { .mod_rev = 7 }, .task = &owned } });
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(agents/a/report) = 9, mod(tasks/t) = 7, mod(health/a) = 8 then put health/a");
}
END_TEST

START_TEST(any_other_operator_write)
{
    Holdfast__V1__Host next = HOLDFAST__V1__HOST__INIT;

    hf_row_operate(&plan, (struct hf_key){ .kind = HF_KEY_HOST_RECORD, .name = "h" },
                   &(struct hf_seen){ .mod_rev = 5 }, &next.base);
    expect("if mod(hosts/h/record) = 5 then put hosts/h/record");
}
END_TEST

START_TEST(cancel_and_retry)
{
    Holdfast__V1__Task__Inherited inherited = HOLDFAST__V1__TASK__INHERITED__INIT;
    Holdfast__V1__Task *next;

    task.inherited = &inherited;
    hf_row_cancel(&plan, &seen_task, "no longer needed");
    expect("if mod(tasks/t) = 17 then put tasks/t, delete pending/r/t");
    hf_plan_done(&plan);
    hf_plan_init(&plan, "default", HF_WRITER_OPERATOR, "op2");
    hf_row_retry(&plan, &seen_task, &(struct hf_seen){ .mod_rev = 11 });
    expect("if mod(recoveries/t) = 11, mod(tasks/t) = 17 "
           "then put tasks/t, put pending/r/t, delete recoveries/t");
    next = written_task();
    ck_assert_int_eq(next->attempt, 0);
    ck_assert_ptr_null(next->inherited);
    hf_json_free(&next->base);
}
END_TEST

START_TEST(removals)
{
    hf_row_remove_agent(&plan, "a", &(struct hf_seen){ .mod_rev = 4 });
    expect("if absent(agents/a/live), mod(agents/a/spec) = 4 then delete agents/a/spec, "
           "delete agents/a/report, delete agents/a/exit, delete health/a, delete wanted/a");
    hf_plan_done(&plan);
    hf_plan_init(&plan, "default", HF_WRITER_OPERATOR, "op2");
    hf_row_remove_host(&plan, "h", &(struct hf_seen){ .mod_rev = 2 });
    expect("if absent(hosts/h/live), mod(hosts/h/record) = 2 then delete hosts/h/record");
}
END_TEST

START_TEST(any_other_write_of_the_leader)
{
    hf_row_write(&plan, &TERM, (struct hf_key){ HF_KEY_RECOVERY, .name = "t" },
                 &(struct hf_seen){ .mod_rev = 11 }, NULL);
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(recoveries/t) = 11 then delete recoveries/t");
}
END_TEST

START_TEST(the_counting_of_a_task_is_closed_when_its_end_is_still_known)
{
    Holdfast__V1__Recovery next = HOLDFAST__V1__RECOVERY__INIT;

    next.task = (char *)"t";
    hf_row_close(&plan, &TERM, &seen_task, &(struct hf_seen){ .mod_rev = 11 }, &next);
    expect("if create(controller/leader) = 5, lease(controller/leader) = 7b, "
           "mod(tasks/t) = 17, mod(recoveries/t) = 11 then put recoveries/t");
}
END_TEST

START_TEST(a_guard_knows_its_row)
{
    struct hf_start start = make_start();

    hf_row_rejoin(&plan, &start);
    for (size_t i = 0; i < plan.guard_count; i++)
        ck_assert_int_eq(plan.guards[i].row, HF_ROW_REJOIN);
    for (int row = HF_ROW_NONE + 1; row < HF_ROWS; row++)
        ck_assert_str_ne(hf_row_name((enum hf_row)row), "?");
    ck_assert_str_eq(hf_row_name(HF_ROWS), "?");
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("rows");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, submit);
    tcase_add_test(t, a_host_joins);
    tcase_add_test(t, a_host_says_what_it_is_by_now);
    tcase_add_test(t, a_spec);
    tcase_add_test(t, start_by_command_with_a_task);
    tcase_add_loop_test(t, start_by_command_with_a_task_that_has_checkpoints, 0, 2);
    tcase_add_loop_test(t, what_was_restored_goes_with_its_owner, 0, 5);
    tcase_add_test(t, start_by_command_without_a_task);
    tcase_add_test(t, boot_start);
    tcase_add_test(t, local_restart);
    tcase_add_test(t, succeed);
    tcase_add_test(t, external_start);
    tcase_add_test(t, reap);
    tcase_add_test(t, claim);
    tcase_add_test(t, complete);
    tcase_add_test(t, complete_a_task_whose_text_is_known);
    tcase_add_test(t, release);
    tcase_add_test(t, checkpoint);
    tcase_add_test(t, checkpoint_with_its_body);
    tcase_add_loop_test(t, checkpoint_with_a_body_that_has_no_place, 0,
                        sizeof NOWHERE / sizeof NOWHERE[0]);
    tcase_add_test(t, report);
    tcase_add_test(t, end);
    tcase_add_test(t, adopt);
    tcase_add_test(t, reset_and_order_in_one);
    tcase_add_test(t, the_number_of_the_attempt_stops_at_the_largest);
    tcase_add_test(t, reset_behind_a_backoff);
    tcase_add_test(t, reset_of_a_task_that_nobody_owns_is_refused);
    tcase_add_test(t, an_owner_that_names_no_life_is_gone);
    tcase_add_test(t, order_alone);
    tcase_add_test(t, enqueue);
    tcase_add_test(t, promote);
    tcase_add_test(t, demote);
    tcase_add_loop_test(t, what_is_promoted_does_not_wait_for_others_any_more, 0, 2);
    tcase_add_test(t, refuse);
    tcase_add_test(t, withdraw);
    tcase_add_test(t, withdraw_with_a_task);
    tcase_add_test(t, take_back);
    tcase_add_test(t, review);
    tcase_add_test(t, review_of_what_nobody_owns);
    tcase_add_test(t, sweep);
    tcase_add_test(t, sweep_chain);
    tcase_add_test(t, remove_task);
    tcase_add_test(t, an_entry_of_the_audit_trail);
    tcase_add_test(t, end_by_controller_and_by_operator);
    tcase_add_test(t, end_of_one_that_stands_still);
    tcase_add_test(t, any_other_operator_write);
    tcase_add_test(t, cancel_and_retry);
    tcase_add_test(t, removals);
    tcase_add_test(t, any_other_write_of_the_leader);
    tcase_add_test(t, the_counting_of_a_task_is_closed_when_its_end_is_still_known);
    tcase_add_test(t, a_guard_knows_its_row);
    return run("core/rows", t);
}
