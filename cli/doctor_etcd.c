#include <inttypes.h>
#include <stdlib.h>

#include "base/id.h"
#include "base/str.h"
#include "cli/doctor.h"
#include "cli/store.h"
#include "etcd/lease.h"
#include "etcd/survey.h"

struct asked {
    struct doctor *doctor;
    bool done;
    int err;
    int64_t ttl_s;
};

enum { NEVER = 10000 }; /* behind every release that there is */

/* Faults of etcd that matter here, and the releases that mend them. Holdfast allows for all but
 * those around the roles, which only whoever gives out certificates can. */
static const struct {
    int fixed[3]; /* in 3.4, 3.5 and 3.6: the first release without it */
    bool around_roles;
    const char *what;
} FAULTS[] = {
    { { 31, 13, 0 },
      false,
      "a leader whose disk stood still revokes every lease (etcd#15247)" },
    { { 36, 18, 0 },
      false,
      "watches can lose events around a compaction (etcd#17529, #18089, #19179)" },
    { { 38, 23, 5 }, false, "a lease that is gone can be answered as renewed (etcd#20813)" },
    { { 42, 28, 9 },
      true,
      "a transaction within a transaction reads and writes every key, whatever the role "
      "(CVE-2026-33343)" },
    { { 42, 28, 9 },
      true,
      "leases, alarms and compaction are open to everyone whom etcd lets in "
      "(CVE-2026-33413)" },
    { { 44, 30, 11 },
      true,
      "a put in a transaction shows the value before it, and may use any lease, whatever the "
      "role (CVE-2026-44283)" },
    { { NEVER, 33, 14 },
      true,
      "whoever may read a key can watch all keys behind it (CVE-2026-73499)" },
    { { NEVER, NEVER, 0 },
      true,
      "while it is full, or said to be, everyone may delete every key and turn authentication "
      "off (etcd#22386)" },
};

/* "3.4.23", and what may follow. */
static bool parse_version(const char *text, int ret[3])
{
    for (int i = 0; i < 3; i++) {
        char *end;
        long part = strtol(text, &end, 10);

        if (end == text || part < 0 || part > 9999 || (i < 2 && *end != '.'))
            return false;
        ret[i] = (int)part;
        text = end + 1;
    }
    return true;
}

static void tell_faults(struct doctor *doctor, int minor, int patch)
{
    bool around_roles = false;

    for (size_t i = 0; i < sizeof FAULTS / sizeof FAULTS[0]; i++) {
        int fixed = FAULTS[i].fixed[minor - 4];

        if (patch >= fixed)
            continue;
        around_roles = around_roles || FAULTS[i].around_roles;
        if (fixed == NEVER)
            doctor_found(doctor, DOCTOR_WARNING, "etcd 3.%d: %s", minor, FAULTS[i].what);
        else
            doctor_found(doctor, DOCTOR_WARNING, "etcd before 3.%d.%d: %s", minor, fixed,
                         FAULTS[i].what);
    }
    if (around_roles)
        doctor_found(doctor, DOCTOR_WARNING,
                     "roles do not bind in this etcd: give certificates only to whom you trust "
                     "with all of it, and take 3.6.14 or later");
}

void doctor_examine_version(struct doctor *doctor, const char *version)
{
    int v[3];

    doctor->versioned = true;
    if (!parse_version(version, v)) {
        doctor_found(doctor, DOCTOR_WARNING, "etcd's version %s is not understood", version);
        return;
    }
    if (v[0] != 3 || v[1] < 4 || v[1] > 6) {
        doctor_found(doctor, DOCTOR_WARNING, "etcd %s is not one of 3.4, 3.5 and 3.6: untested",
                     version);
        return;
    }
    tell_faults(doctor, v[1], v[2]);
}

static void on_status(const struct hf_status_result *result, void *arg)
{
    struct asked *asked = arg;
    struct doctor *doctor = asked->doctor;
    char endpoint[HF_HOST_MAX + 8];

    hf_etcd_get_endpoint(doctor->cli->etcd, endpoint, sizeof endpoint);
    asked->done = true;
    asked->err = result->result.err;
    if (asked->err == HF_EDENIED)
        return; /* whoever may not read either is told so then */
    asked->err = cli_explain(doctor->cli, &result->result);
    if (asked->err != HF_OK)
        return;
    doctor_found(
        doctor, DOCTOR_FINE,
        "etcd %s answers at %s; its database has %" PRId64 " MiB, %" PRId64 " of them in use",
        result->version, endpoint, result->db_bytes >> 20, result->db_used_bytes >> 20);
    doctor_examine_version(doctor, result->version);
    if (result->leader == 0)
        doctor_found(doctor, DOCTOR_TROUBLE,
                     "that member knows no leader: the others cannot be reached");
    for (size_t i = 0; i < result->alarm_count; i++)
        doctor_found(doctor, DOCTOR_TROUBLE,
                     "etcd raises an alarm: %s. See etcdctl alarm list.", result->alarms[i]);
}

static void on_survey(const struct hf_survey_result *result, void *arg)
{
    struct asked *asked = arg;

    asked->done = true;
    if (result->result.err != HF_OK || result->answered < result->asked)
        doctor_found(asked->doctor, DOCTOR_TROUBLE, "of %zu members of etcd %zu answer",
                     result->asked, result->answered);
    else if (result->corrupt)
        doctor_found(asked->doctor, DOCTOR_TROUBLE,
                     "members of etcd have different data (its alarm CORRUPT): it refuses "
                     "everything, and nothing is reset or started. See etcdctl alarm list.");
    else if (!result->agrees)
        doctor_found(asked->doctor, DOCTOR_WARNING,
                     "the members of etcd do not agree at the moment");
    else
        doctor_found(asked->doctor, DOCTOR_FINE, "all %zu members of etcd agree",
                     result->asked);
}

static void on_granted(const struct hf_grant_result *result, void *arg)
{
    struct asked *asked = arg;

    asked->done = true;
    asked->err = result->result.err;
    asked->ttl_s = result->ttl_s;
}

static void on_revoked(const struct hf_write_result *result, void *arg)
{
    struct asked *asked = arg;

    (void)result; /* it ends by itself otherwise */
    asked->done = true;
}

/* The shortest lease is one and a half election time-outs: a flag that nobody else can read. */
static void examine_leases(struct doctor *doctor)
{
    struct cli *cli = doctor->cli;
    struct asked grant = { .doctor = doctor, .err = HF_EAGAIN }, revoke = { .doctor = doctor };
    int64_t id = 0;
    int rc = hf_id_random_63(&id);

    if (rc == HF_OK)
        rc = hf_etcd_lease_grant(cli->etcd, id, 1, 5000, on_granted, &grant, NULL);
    if (rc == HF_OK)
        (void)!cli_wait(cli, &grant.done, INT64_MAX);
    if (grant.err != HF_OK) {
        doctor_found(doctor, DOCTOR_TROUBLE, "etcd grants no lease: no agent can come: %s",
                     hf_err_text(grant.err));
        return;
    }
    if (hf_etcd_lease_revoke(cli->etcd, id, on_revoked, &revoke, NULL) == HF_OK)
        (void)!cli_wait(cli, &revoke.done, INT64_MAX);
    doctor_found(doctor, grant.ttl_s > 10 ? DOCTOR_WARNING : DOCTOR_FINE,
                 "the shortest lease that etcd grants is %" PRId64
                 " s (one and a half --election-timeout)",
                 grant.ttl_s);
}

static int examine_members(struct doctor *doctor)
{
    struct asked survey = { .doctor = doctor };
    struct hf_survey *handle;
    int rc = hf_etcd_survey(doctor->cli->etcd, on_survey, &survey, &handle);

    if (rc == HF_OK)
        (void)!cli_wait(doctor->cli, &survey.done, INT64_MAX);
    return rc;
}

int doctor_examine_etcd(struct doctor *doctor)
{
    struct asked status = { .doctor = doctor };
    int rc = hf_etcd_status(doctor->cli->etcd, on_status, &status, NULL);

    if (rc == HF_OK)
        (void)!cli_wait(doctor->cli, &status.done, INT64_MAX);
    if (rc == HF_OK)
        rc = status.err;
    if (rc == HF_OK)
        rc = examine_members(doctor);
    else if (rc == HF_EDENIED) {
        doctor_found(doctor, DOCTOR_WARNING,
                     "etcd tells only root how its members are, as some releases do: neither "
                     "the doctor nor a controller can ask them. Take 3.5.32, 3.6.12 or later.");
        rc = HF_OK;
    }
    if (rc == HF_OK)
        examine_leases(doctor);
    return rc;
}
