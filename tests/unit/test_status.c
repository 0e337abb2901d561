/* What etcd and gRPC say, and what it means: hazards S5, S7, S8, S9, L7, L8, W4, W7, W8. The
 * texts are those of etcd 3.4, 3.5 and gRPC 1.51. */
#include <check.h>
#include <stdlib.h>

#include <grpc/status.h>

#include "etcd/status.h"
#include "support/suite.h"

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* Flags, so that a row of the table fits in a line. */
enum { UNKNOWN = 1, RETRY = 2, ROTATE = 4, LOG_IN = 8, OVERLOAD = 16 };

static unsigned flags_of(struct hf_status status)
{
    return (status.unknown ? UNKNOWN : 0U) | (status.retry ? RETRY : 0U) |
           (status.rotate ? ROTATE : 0U) | (status.log_in ? LOG_IN : 0U) |
           (status.overload ? OVERLOAD : 0U);
}

static const struct {
    int code;
    const char *message;
    int err;
    unsigned flags;
} STATUSES[] = {
    { GRPC_STATUS_OK, "", HF_OK, 0 },

    /* 14: the outcome of a write is unknown, unless nothing can have been looked at. */
    { GRPC_STATUS_UNAVAILABLE, "Socket closed", HF_EAGAIN, UNKNOWN | RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE, "keepalive watchdog timeout", HF_EAGAIN,
      UNKNOWN | RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE, "GOAWAY received", HF_EAGAIN, UNKNOWN | RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE, "etcdserver: request timed out", HF_EAGAIN,
      UNKNOWN | RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE,
      "etcdserver: request timed out, possibly due to previous leader failure", HF_EAGAIN,
      UNKNOWN | RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE, "etcdserver: leader changed", HF_EAGAIN,
      UNKNOWN | RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE, "etcdserver: server stopped", HF_EAGAIN,
      UNKNOWN | RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE, "etcdserver: no leader", HF_EAGAIN, RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE,
      "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to "
      "connect to remote host: Connection refused",
      HF_EAGAIN, RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE, "DNS resolution failed for nowhere.invalid:2379", HF_EAGAIN,
      RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE, "empty address list: ", HF_EAGAIN, RETRY | ROTATE },
    { GRPC_STATUS_UNAVAILABLE, "Channel Destroyed", HF_EAGAIN, RETRY | ROTATE },

    /* 4 and 1: unknown, too. */
    { GRPC_STATUS_DEADLINE_EXCEEDED, "Deadline Exceeded", HF_ETIMEOUT,
      UNKNOWN | RETRY | ROTATE },
    { GRPC_STATUS_CANCELLED, "context canceled", HF_EAGAIN, UNKNOWN | RETRY | ROTATE },

    /* 8 is three things. */
    { GRPC_STATUS_RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded", HF_ENOSPACE,
      UNKNOWN },
    { GRPC_STATUS_RESOURCE_EXHAUSTED, "etcdserver: too many requests", HF_EAGAIN,
      RETRY | OVERLOAD },
    { GRPC_STATUS_RESOURCE_EXHAUSTED,
      "grpc: received message larger than max (2097216 vs. 2097152)", HF_ELIMIT, 0 },

    /* 16, and two texts of 3: the token. */
    { GRPC_STATUS_UNAUTHENTICATED, "etcdserver: invalid auth token", HF_EDENIED, LOG_IN },
    { GRPC_STATUS_INVALID_ARGUMENT, "etcdserver: revision of auth store is old", HF_EDENIED,
      LOG_IN },
    { GRPC_STATUS_INVALID_ARGUMENT, "etcdserver: user name is empty", HF_EDENIED, LOG_IN },
    { GRPC_STATUS_INVALID_ARGUMENT,
      "etcdserver: authentication failed, invalid user ID or password", HF_EDENIED, 0 },
    { GRPC_STATUS_PERMISSION_DENIED, "etcdserver: permission denied", HF_EDENIED, 0 },

    /* Other 3s: our own fault, never tried again. */
    { GRPC_STATUS_INVALID_ARGUMENT, "etcdserver: request is too large", HF_ELIMIT, 0 },
    { GRPC_STATUS_INVALID_ARGUMENT, "etcdserver: too many operations in txn request", HF_ELIMIT,
      0 },
    { GRPC_STATUS_INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request", HF_EINVAL,
      0 },
    { GRPC_STATUS_INVALID_ARGUMENT, "etcdserver: key is not provided", HF_EINVAL, 0 },
    { GRPC_STATUS_UNIMPLEMENTED, "unknown service etcdserverpb.KV", HF_EINVAL, 0 },

    /* Leases: 5 is a lost one, 9 one that is there already. */
    { GRPC_STATUS_NOT_FOUND, "etcdserver: requested lease not found", HF_ENOENT, 0 },
    { GRPC_STATUS_FAILED_PRECONDITION, "etcdserver: lease already exists", HF_EEXIST, 0 },
    { GRPC_STATUS_FAILED_PRECONDITION, "etcdserver: authentication is not enabled", HF_EINVAL,
      0 },

    /* 11: relist, or another history. */
    { GRPC_STATUS_OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted",
      HF_ECOMPACT, 0 },
    { GRPC_STATUS_OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision",
      HF_EHISTORY, 0 },
    { GRPC_STATUS_OUT_OF_RANGE, "etcdserver: too large lease TTL", HF_EINVAL, 0 },

    /* 15: stop acting. */
    { GRPC_STATUS_DATA_LOSS, "etcdserver: corrupt cluster", HF_ECORRUPT, 0 },

    /* What broke on the way. */
    { GRPC_STATUS_INTERNAL, "Received RST_STREAM with error code 2", HF_EAGAIN,
      UNKNOWN | RETRY | ROTATE },
    { GRPC_STATUS_UNKNOWN, "Stream removed", HF_EAGAIN, UNKNOWN | RETRY | ROTATE },
    { GRPC_STATUS_ABORTED, "", HF_EAGAIN, UNKNOWN | RETRY | ROTATE },
};

START_TEST(every_status_has_its_meaning)
{
    struct hf_status got = hf_status_of(STATUSES[_i].code, STATUSES[_i].message);

    ck_assert_msg(got.err == STATUSES[_i].err, "%d %s: %s, not %s", STATUSES[_i].code,
                  STATUSES[_i].message, hf_err_name(got.err), hf_err_name(STATUSES[_i].err));
    ck_assert_msg(flags_of(got) == STATUSES[_i].flags, "%d %s: flags %#x, not %#x",
                  STATUSES[_i].code, STATUSES[_i].message, flags_of(got), STATUSES[_i].flags);
}
END_TEST

/* Whatever a server invents, the answer is one of ours, and a write that may have happened is
 * never called a definite failure. */
START_TEST(no_code_is_without_a_meaning)
{
    static const int DEFINITE[] = {
        GRPC_STATUS_OK,
        GRPC_STATUS_INVALID_ARGUMENT,
        GRPC_STATUS_NOT_FOUND,
        GRPC_STATUS_PERMISSION_DENIED,
        GRPC_STATUS_RESOURCE_EXHAUSTED,
        GRPC_STATUS_FAILED_PRECONDITION,
        GRPC_STATUS_OUT_OF_RANGE,
        GRPC_STATUS_UNIMPLEMENTED,
        GRPC_STATUS_DATA_LOSS,
        GRPC_STATUS_UNAUTHENTICATED,
    };

    for (int code = -1; code < 40; code++) {
        struct hf_status got = hf_status_of(code, "");
        bool definite = false;

        for (size_t i = 0; i < COUNT(DEFINITE); i++)
            definite |= code == DEFINITE[i];
        ck_assert_str_ne(hf_err_name(got.err), "E?");
        ck_assert_msg(got.unknown == !definite, "code %d", code);
    }
}
END_TEST

static const struct {
    const char *reason;
    int err;
    unsigned flags;
} CANCELS[] = {
    { "rpc error: code = PermissionDenied desc = etcdserver: permission denied", HF_EDENIED,
      0 },
    { "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token", HF_EDENIED,
      RETRY | LOG_IN },
    { "rpc error: code = InvalidArgument desc = etcdserver: user name is empty", HF_EDENIED,
      RETRY | LOG_IN },
    { "rpc error: code = InvalidArgument desc = etcdserver: revision of auth store is old",
      HF_EDENIED, RETRY | LOG_IN },
    { "etcdserver: no leader", HF_EAGAIN, RETRY | ROTATE },
    { "", HF_EAGAIN, RETRY | ROTATE },
};

START_TEST(w8_every_reason_to_end_a_watch_has_its_meaning)
{
    struct hf_status got = hf_status_of_cancel(CANCELS[_i].reason);

    ck_assert_msg(got.err == CANCELS[_i].err, "%s: %s", CANCELS[_i].reason,
                  hf_err_name(got.err));
    ck_assert_msg(flags_of(got) == CANCELS[_i].flags, "%s: flags %#x", CANCELS[_i].reason,
                  flags_of(got));
}
END_TEST

int main(void)
{
    TCase *t = tcase_create("status");

    tcase_add_loop_test(t, every_status_has_its_meaning, 0, (int)COUNT(STATUSES));
    tcase_add_test(t, no_code_is_without_a_meaning);
    tcase_add_loop_test(t, w8_every_reason_to_end_a_watch_has_its_meaning, 0,
                        (int)COUNT(CANCELS));
    return hft_suite_run("etcd/status", t, NULL);
}
