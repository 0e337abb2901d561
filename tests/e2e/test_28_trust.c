/* Ways around the roles that etcd itself leaves open, or left: whoever has a certificate tries
 * each of them. A release that has closed one must refuse it; of one that has not, `holdfast
 * doctor` must say so. */
#include <check.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cleanup.h"
#include "e2e/roles_fixture.h"
#include "etcd/call.h"
#include "support/suite.h"

#define FOREIGN "zebra" /* is nobody's, and behind all that somebody may read */
#define SECRET  "nobody may read this"

enum {
    NEVER = INT_MAX,
    FIELD_TXN = 4,        /* of a RequestOp: a transaction within a transaction */
    SNAPSHOT_MS = 2000,   /* a stream, of which the first piece is enough */
    ALARM_ACTIVATE = 1,   /* of an AlarmRequest */
    ALARM_DEACTIVATE = 2, /* the same */
    ALARM_NOSPACE = 1,
};

/* Asking. */

struct answer {
    struct hft_outcome outcome;
    bool tells; /* the secret */
};

static void on_answer(struct hf_etcd *etcd, struct hf_outcome *outcome)
{
    struct answer *answer = outcome->arg;

    (void)etcd;
    answer->outcome.done = true;
    answer->outcome.err = outcome->result.err;
    (void)snprintf(answer->outcome.message, sizeof answer->outcome.message, "%s",
                   outcome->result.message);
    answer->tells = outcome->body.len > 0 && memmem(outcome->body.data, outcome->body.len,
                                                    SECRET, strlen(SECRET)) != NULL;
}

static struct answer ask(struct hft_client *client, const char *method,
                         const ProtobufCMessage *request, hf_ms timeout)
{
    struct answer answer = { 0 };
    struct hf_call_spec spec = { .method = method,
                                 .request = request,
                                 .lane = HF_LANE_UNARY,
                                 .timeout = timeout,
                                 .decode = on_answer,
                                 .arg = &answer };

    ck_assert_int_eq(hf_call_start(client->etcd, &spec, NULL), HF_OK);
    hft_await(client, &answer.outcome, hft_patience(0));
    return answer;
}

static bool is_refused(const struct hft_outcome *outcome)
{
    return strstr(outcome->message, "permission denied") != NULL ||
           strstr(outcome->message, "user name not found") != NULL ||
           strstr(outcome->message, "user not found") != NULL;
}

/* True: it was let. What is no verdict is a fault of the test. */
static bool is_let(const struct answer *answer)
{
    ck_assert_msg(is_refused(&answer->outcome) || answer->outcome.err == HF_OK, "%s %s",
                  hf_err_name(answer->outcome.err), answer->outcome.message);
    return answer->outcome.err == HF_OK;
}

static bool ask_nothing(struct hft_client *client, const char *method)
{
    Etcdserverpb__MemberListRequest empty = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;
    struct answer answer = ask(client, method, &empty.base, 0);

    return is_let(&answer);
}

static struct answer ask_txn(struct hft_client *client, Etcdserverpb__RequestOp *op)
{
    Etcdserverpb__TxnRequest txn = ETCDSERVERPB__TXN_REQUEST__INIT;

    txn.n_success = 1;
    txn.success = &op;
    return ask(client, "/etcdserverpb.KV/Txn", &txn.base, 0);
}

/* Nested transactions, which our client knows nothing of: as bytes of a field that it does not
 * have. */
static struct answer ask_nested(struct hft_client *client, Etcdserverpb__RequestOp *op)
{
    Etcdserverpb__TxnRequest inner = ETCDSERVERPB__TXN_REQUEST__INIT;
    Etcdserverpb__RequestOp outer = ETCDSERVERPB__REQUEST_OP__INIT;
    uint8_t bytes[200];
    ProtobufCMessageUnknownField field = { .tag = FIELD_TXN,
                                           .wire_type = PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED,
                                           .data = bytes };

    inner.n_success = 1;
    inner.success = &op;
    field.len = 1 + etcdserverpb__txn_request__get_packed_size(&inner);
    ck_assert_uint_le(field.len, 128); /* a length of one byte */
    bytes[0] = (uint8_t)(field.len - 1);
    (void)etcdserverpb__txn_request__pack(&inner, bytes + 1);
    outer.base.n_unknown_fields = 1;
    outer.base.unknown_fields = &field;
    return ask_txn(client, &outer);
}

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){ .len = strlen(text), .data = (uint8_t *)text };
}

static struct answer put_in_txn(struct hft_client *client, Etcdserverpb__PutRequest *put,
                                bool nested)
{
    Etcdserverpb__RequestOp op = ETCDSERVERPB__REQUEST_OP__INIT;

    op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_PUT;
    op.request_put = put;
    return nested ? ask_nested(client, &op) : ask_txn(client, &op);
}

/* The ways. Each is true when it led somewhere, and leaves everything as it was. */

static bool read_nested(struct hft_client *client)
{
    Etcdserverpb__RangeRequest range = ETCDSERVERPB__RANGE_REQUEST__INIT;
    Etcdserverpb__RequestOp op = ETCDSERVERPB__REQUEST_OP__INIT;
    struct answer answer;

    range.key = bytes_of(FOREIGN);
    op.request_case = ETCDSERVERPB__REQUEST_OP__REQUEST_REQUEST_RANGE;
    op.request_range = &range;
    answer = ask_nested(client, &op);
    return is_let(&answer) && answer.tells;
}

static bool write_nested(struct hft_client *client)
{
    Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
    struct answer answer;
    bool written;

    put.key = bytes_of(FOREIGN);
    put.value = bytes_of("{}");
    answer = put_in_txn(client, &put, true);
    written = strcmp(hft_read(&fleet.hand, FOREIGN).value, "{}") == 0;
    ck_assert(is_let(&answer) == written);
    (void)hft_put(&fleet.hand, FOREIGN, SECRET, HF_NO_LEASE);
    return written;
}

/* A submitter may write there, and not read. */
static bool read_by_put(struct hft_client *client)
{
    static const char PENDING[] = HFT_ROOT "pending/r/t";
    Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
    struct answer answer;

    (void)hft_put(&fleet.hand, PENDING, SECRET, HF_NO_LEASE);
    put.key = bytes_of(PENDING);
    put.value = bytes_of("{}");
    put.prev_kv = 1;
    answer = put_in_txn(client, &put, false);
    (void)hft_delete(&fleet.hand, PENDING);
    return is_let(&answer) && answer.tells;
}

/* On a lease that a key hangs on that a submitter may not write. */
static bool attach_to_lease(struct hft_client *client)
{
    static const char LIVE[] = HFT_ROOT "agents/a/live", TASK[] = HFT_ROOT "tasks/t";
    Etcdserverpb__PutRequest put = ETCDSERVERPB__PUT_REQUEST__INIT;
    struct answer answer;

    put.key = bytes_of(TASK);
    put.value = bytes_of("{}");
    put.lease = hft_grant(&fleet.hand, 60);
    (void)hft_put(&fleet.hand, LIVE, "{}", put.lease);
    answer = put_in_txn(client, &put, false);
    hft_revoke(&fleet.hand, put.lease); /* and both keys */
    return is_let(&answer);
}

/* An AlarmRequest is three numbers, the second that of a member: on the wire the same as this.
 */
static bool tell_alarm(struct hft_client *client, uint64_t action)
{
    Etcdserverpb__ResponseHeader alarm = ETCDSERVERPB__RESPONSE_HEADER__INIT;
    struct answer answer;

    alarm.cluster_id = action;
    alarm.revision = ALARM_NOSPACE;
    answer = ask(client, "/etcdserverpb.Maintenance/Alarm", &alarm.base, 0);
    return is_let(&answer);
}

static bool raise_alarm(struct hft_client *client)
{
    bool raised = tell_alarm(client, ALARM_ACTIVATE);

    ck_assert(tell_alarm(&fleet.hand, ALARM_DEACTIVATE));
    return raised;
}

/* A CompactionRequest is a number in field 1, as this is. */
static bool compact(struct hft_client *client)
{
    Etcdserverpb__LeaseGrantRequest compaction = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
    struct answer answer;

    compaction.ttl = hft_put(&fleet.hand, FOREIGN, SECRET, HF_NO_LEASE);
    answer = ask(client, "/etcdserverpb.KV/Compact", &compaction.base, 0);
    return is_let(&answer);
}

/* One of them has a key that only root may read. */
static bool list_leases(struct hft_client *client)
{
    int64_t lease = hft_grant(&fleet.hand, 60);
    bool listed;

    (void)hft_put(&fleet.hand, FOREIGN "/leased", "{}", lease);
    listed = ask_nothing(client, "/etcdserverpb.Lease/LeaseLeases");
    hft_revoke(&fleet.hand, lease);
    return listed;
}

static bool defragment(struct hft_client *client)
{
    return ask_nothing(client, "/etcdserverpb.Maintenance/Defragment");
}

static bool turn_authentication_off(struct hft_client *client)
{
    bool off = ask_nothing(client, "/etcdserverpb.Auth/AuthDisable");

    if (off)
        ck_assert(ask_nothing(&fleet.hand, "/etcdserverpb.Auth/AuthEnable"));
    return off;
}

static bool save_snapshot(struct hft_client *client)
{
    Etcdserverpb__MemberListRequest empty = ETCDSERVERPB__MEMBER_LIST_REQUEST__INIT;
    struct answer answer =
        ask(client, "/etcdserverpb.Maintenance/Snapshot", &empty.base, SNAPSHOT_MS);

    return !is_refused(&answer.outcome);
}

static bool delete_under_alarm(struct hft_client *client)
{
    struct hft_outcome outcome = { 0 };
    bool deleted;

    ck_assert(tell_alarm(&fleet.hand, ALARM_ACTIVATE));
    ck_assert_int_eq(hf_etcd_delete(client->etcd,
                                    (struct hf_key_range){ .key = hf_bytes_of(FOREIGN) },
                                    hft_on_write, &outcome, NULL),
                     HF_OK);
    hft_await(client, &outcome, hft_patience(0));
    ck_assert(tell_alarm(&fleet.hand, ALARM_DEACTIVATE));
    deleted = hft_read(&fleet.hand, FOREIGN).count == 0;
    ck_assert(deleted == (outcome.err == HF_OK) && (deleted || is_refused(&outcome)));
    (void)hft_put(&fleet.hand, FOREIGN, SECRET, HF_NO_LEASE);
    return deleted;
}

static bool rule_under_alarm(struct hft_client *client)
{
    bool off;

    ck_assert(tell_alarm(&fleet.hand, ALARM_ACTIVATE));
    off = turn_authentication_off(client);
    ck_assert(tell_alarm(&fleet.hand, ALARM_DEACTIVATE));
    return off;
}

/* A watch of all that is behind a key: over, or it sees what somebody else does there. */
static void on_live(void *arg)
{
    (void)arg;
}

static void on_events(size_t range, const Etcdserverpb__WatchResponse *message, bool last,
                      void *arg)
{
    struct hft_outcome *outcome = arg;

    (void)range;
    (void)last;
    for (size_t i = 0; i < message->n_events; i++) {
        ProtobufCBinaryData value = message->events[i]->kv->value;

        if (value.len == strlen(SECRET) && memcmp(value.data, SECRET, value.len) == 0)
            outcome->done = outcome->succeeded = true;
    }
}

static void on_end(int err, const char *message, void *arg)
{
    struct hft_outcome *outcome = arg;

    outcome->done = true;
    outcome->err = err;
    ck_assert_msg(err == HF_EDENIED, "%s %s", hf_err_name(err), message);
}

static bool watch_onwards(struct hft_client *client)
{
    static const struct hf_watch_handler handler = { on_live, on_events, on_end };
    struct hf_key_range from = { .key = hf_bytes_of(HFT_ROOT "tasks/") };
    struct hft_outcome outcome = { 0 };
    struct hf_range_bounds bounds;

    ck_assert_int_eq(hf_range_bounds_init(&bounds, &from), HF_OK);
    bounds.end = (ProtobufCBinaryData){ .len = 1, .data = hf_memdup("", 1) };
    watch_until_done(client, &bounds, hft_put(&fleet.hand, FOREIGN, SECRET, HF_NO_LEASE),
                     &handler, &outcome);
    hf_range_bounds_done(&bounds);
    return outcome.succeeded;
}

/* The list of members is none of them: it is for everyone whom etcd lets in. */
static const struct {
    const char *what;
    bool (*go)(struct hft_client *client);
    int fixed[3];      /* in 3.4, 3.5 and 3.6: the first release that refuses it */
    const char *named; /* how the doctor knows it; NULL: it was always refused */
} WAYS[] = {
    { "a nested read", read_nested, { 42, 28, 9 }, "CVE-2026-33343" },
    { "a nested write", write_nested, { 42, 28, 9 }, "CVE-2026-33343" },
    { "an alarm", raise_alarm, { 42, 28, 9 }, "CVE-2026-33413" },
    { "a compaction", compact, { 42, 28, 9 }, "CVE-2026-33413" },
    { "a list of leases", list_leases, { 42, 28, 9 }, "CVE-2026-33413" },
    { "a read by a put", read_by_put, { 44, 30, 11 }, "CVE-2026-44283" },
    { "another's lease", attach_to_lease, { 44, 30, 11 }, "CVE-2026-44283" },
    { "an endless watch", watch_onwards, { NEVER, 33, 14 }, "CVE-2026-73499" },
    { "a removal under an alarm", delete_under_alarm, { NEVER, NEVER, 0 }, "etcd#22386" },
    { "rule under an alarm", rule_under_alarm, { NEVER, NEVER, 0 }, "etcd#22386" },
    { "rule", turn_authentication_off, { 0, 0, 0 }, NULL },
    { "a snapshot", save_snapshot, { 0, 0, 0 }, NULL },
    { "a defragmentation", defragment, { 0, 0, 0 }, NULL },
};

/* Verdicts. */

static void on_version(const struct hf_status_result *result, void *arg)
{
    ck_assert_int_eq(result->result.err, HF_OK);
    (void)snprintf(((struct hft_outcome *)arg)->value, 100, "%s", result->version);
    ((struct hft_outcome *)arg)->done = true;
}

/* Later series than 3.6 begin with all of it mended, as far as is known. */
static bool is_mended(const int fixed[3])
{
    struct hft_outcome outcome = { 0 };
    int minor, patch;

    ck_assert_int_eq(hf_etcd_status(fleet.hand.etcd, on_version, &outcome, NULL), HF_OK);
    hft_await(&fleet.hand, &outcome, hft_patience(0));
    ck_assert_int_eq(sscanf(outcome.value, "3.%d.%d", &minor, &patch), 2);
    ck_assert_int_ge(minor, 4);
    return minor > 6 || patch >= fixed[minor - 4];
}

/* Returns how many ways are open to it. */
static unsigned try_all(const char *who, const char *told)
{
    struct hft_cert cert = cert_of(who);
    struct hf_etcd_config cfg = config_of(&cert);
    struct hft_client client;
    unsigned open = 0;

    hft_client_open_with(&client, &cfg);
    for (size_t i = 0; i < sizeof WAYS / sizeof WAYS[0]; i++) {
        bool mended = is_mended(WAYS[i].fixed), let = WAYS[i].go(&client);

        ck_assert_msg(!let || !mended, "%s of a %s", WAYS[i].what, who);
        ck_assert_msg(mended || strstr(told, WAYS[i].named) != NULL, "no %s in:\n%s",
                      WAYS[i].named, told);
        ck_assert_msg(!mended || WAYS[i].named == NULL || strstr(told, WAYS[i].named) == NULL,
                      "%s in:\n%s", WAYS[i].named, told);
        open += let;
    }
    hft_client_close(&client);
    return open;
}

/* A way that not even root can go would prove nothing. */
static void expect_all_lead_somewhere(void)
{
    struct hf_etcd_config cfg = config_of(&root);
    struct hft_client client;

    hft_client_open_with(&client, &cfg);
    for (size_t i = 0; i < sizeof WAYS / sizeof WAYS[0]; i++)
        ck_assert_msg(WAYS[i].go(&client), "root may not: %s", WAYS[i].what);
    hft_client_close(&client);
}

START_TEST(a_way_around_the_roles_is_closed_or_told_of)
{
    static const char ADVICE[] = "give certificates only to whom you trust with all of it";
    HFT_CLEANUP_OUTPUT struct hft_output doctor = { 0 };
    unsigned open = 0;

    (void)hft_put(&fleet.hand, FOREIGN, SECRET, HF_NO_LEASE);
    expect_all_lead_somewhere();
    doctor = as("viewer", "doctor", NULL);
    certify("stranger"); /* whom etcd does not know */
    open += try_all("viewer", doctor.out);
    open += try_all("submitter", doctor.out);
    open += try_all("stranger", doctor.out);
    ck_assert_msg(open == 0 || strstr(doctor.out, ADVICE) != NULL, "%s", doctor.out);
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("trust");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 240);
    tcase_add_test(t, a_way_around_the_roles_is_closed_or_told_of);
    return hft_suite_run("e2e: trust", t, NULL);
}
