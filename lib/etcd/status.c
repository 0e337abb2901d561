#include "etcd/status.h"

#include <string.h>

#include <grpc/status.h>

static bool says(const char *message, const char *words)
{
    return strstr(message, words) != NULL;
}

/* gRPC never got as far as a connection: nothing was sent. (A channel that is destroyed lets
 * calls on a connection go on and ends only those that still wait for one.) */
static bool never_sent(const char *message)
{
    return says(message, "failed to connect") || says(message, "DNS resolution failed") ||
           says(message, "empty address list") || says(message, "Channel Destroyed");
}

/* Refused at the door by the `hasleader` check, before the request was looked at. */
static bool has_no_leader(const char *message)
{
    return says(message, "no leader");
}

static struct hf_status unavailable(const char *message)
{
    bool unknown = !never_sent(message) && !has_no_leader(message);

    return (struct hf_status){
        .err = HF_EAGAIN, .retry = true, .rotate = true, .unknown = unknown
    };
}

static struct hf_status exhausted(const char *message)
{
    /* The write that finds out that there is no more space is applied, and answered so all the
     * same; those after it are not, and look no different. */
    if (says(message, "space exceeded"))
        return (struct hf_status){ .err = HF_ENOSPACE, .unknown = true };
    if (says(message, "too many requests"))
        return (struct hf_status){ .err = HF_EAGAIN, .retry = true, .overload = true };
    return (struct hf_status){ .err = HF_ELIMIT };
}

static struct hf_status bad_argument(const char *message)
{
    if (says(message, "auth store is old") || says(message, "user name is empty"))
        return (struct hf_status){ .err = HF_EDENIED, .log_in = true };
    if (says(message, "authentication failed"))
        return (struct hf_status){ .err = HF_EDENIED };
    if (says(message, "too large") || says(message, "too many operations"))
        return (struct hf_status){ .err = HF_ELIMIT };
    return (struct hf_status){ .err = HF_EINVAL };
}

static struct hf_status out_of_range(const char *message)
{
    if (says(message, "compacted"))
        return (struct hf_status){ .err = HF_ECOMPACT };
    if (says(message, "future revision"))
        return (struct hf_status){ .err = HF_EHISTORY };
    return (struct hf_status){ .err = HF_EINVAL }; /* the TTL of a lease, for one */
}

struct hf_status hf_status_of(int code, const char *message)
{
    switch (code) {
    case GRPC_STATUS_OK: return (struct hf_status){ .err = HF_OK };
    case GRPC_STATUS_UNAVAILABLE: return unavailable(message);
    case GRPC_STATUS_RESOURCE_EXHAUSTED: return exhausted(message);
    case GRPC_STATUS_INVALID_ARGUMENT: return bad_argument(message);
    case GRPC_STATUS_UNAUTHENTICATED:
        return (struct hf_status){ .err = HF_EDENIED, .log_in = true };
    case GRPC_STATUS_PERMISSION_DENIED: return (struct hf_status){ .err = HF_EDENIED };
    case GRPC_STATUS_NOT_FOUND: return (struct hf_status){ .err = HF_ENOENT };
    case GRPC_STATUS_FAILED_PRECONDITION:
        return (struct hf_status){ .err = says(message, "already exists") ? HF_EEXIST
                                                                          : HF_EINVAL };
    case GRPC_STATUS_OUT_OF_RANGE: return out_of_range(message);
    case GRPC_STATUS_DATA_LOSS: return (struct hf_status){ .err = HF_ECORRUPT };
    case GRPC_STATUS_UNIMPLEMENTED: return (struct hf_status){ .err = HF_EINVAL };
    case GRPC_STATUS_DEADLINE_EXCEEDED:
        return (struct hf_status){
            .err = HF_ETIMEOUT, .retry = true, .rotate = true, .unknown = true
        };
    default: /* CANCELLED by the server, INTERNAL, UNKNOWN, ABORTED: it broke on the way */
        return (struct hf_status){
            .err = HF_EAGAIN, .retry = true, .rotate = true, .unknown = true
        };
    }
}

struct hf_status hf_status_of_cancel(const char *reason)
{
    if (says(reason, "PermissionDenied") || says(reason, "permission denied"))
        return (struct hf_status){ .err = HF_EDENIED };
    if (says(reason, "Unauthenticated") || says(reason, "invalid auth token") ||
        says(reason, "auth store is old") || says(reason, "user name is empty"))
        return (struct hf_status){ .err = HF_EDENIED, .log_in = true, .retry = true };
    return (struct hf_status){ .err = HF_EAGAIN, .retry = true, .rotate = true };
}
