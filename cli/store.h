/* store.h - etcd as a command wants it: one answer after the other, on the command's own loop.
 *
 * Everything that a command reads is of one revision, that of its first read, so that what it
 * shows existed at one moment. A record that cannot be read is named on stderr and left out. */
#ifndef CLI_STORE_H
#define CLI_STORE_H

#include "base/buf.h"
#include "cli/cli.h"
#include "core/event.h"
#include "core/fleet.h"
#include "core/intent.h"

/* HF_EINVAL or HF_ENOENT with a sentence when the settings are no good. Does not wait for etcd.
 */
int cli_connect(struct cli *cli) HF_MUST_CHECK;
void cli_disconnect(struct cli *cli);

/* One record as it is now. Zero-initialise; all its parts belong to it. */
struct cli_record {
    struct hf_seen seen;
    ProtobufCMessage *message; /* NULL: there is none */
};

void cli_record_done(struct cli_record *record);
#define CLI_CLEANUP_RECORD __attribute__((cleanup(cli_record_done)))

/* HF_OK with a record without a message when the key does not exist. Always the newest. */
int cli_read(struct cli *cli, struct hf_key key, struct cli_record *ret_record) HF_MUST_CHECK;

/* The bytes of a body, appended. False in *ret_found when there is none. */
int cli_read_body(struct cli *cli, struct hf_key key, struct hf_buf *out,
                  bool *ret_found) HF_MUST_CHECK;

/* A record of a list: its names are valid during the call, and so is the record unless `fn`
 * steals it (sets it to NULL). Returns an error to stop. */
typedef int (*cli_list_fn)(struct hf_fleet_change *found, void *arg);

/* Calls `fn` for every record in the scope (narrowed to `name` where it has one). */
int cli_list(struct cli *cli, enum hf_key_scope scope, const char *name, cli_list_fn fn,
             void *arg) HF_MUST_CHECK;

/* An index of what stands in these scopes; the caller frees it. */
int cli_load_fleet(struct cli *cli, const enum hf_key_scope *scopes, size_t count,
                   struct hf_fleet **ret_fleet) HF_MUST_CHECK;

/* The same, into one that is there already; `name` narrows the scope. */
int cli_load_into(struct cli *cli, struct hf_fleet *fleet, enum hf_key_scope scope,
                  const char *name) HF_MUST_CHECK;

/* Calls `fn` for what is there and for every change (without a record: it is gone), until it
 * fails, sets *done, or `until` has passed: HF_ETIMEOUT. */
int cli_follow(struct cli *cli, const struct hf_intent_read *what, cli_list_fn fn, void *arg,
               bool *done, hf_ms until) HF_MUST_CHECK;

/* A sentence for what etcd, or the way to it, said, and what to do about it. */
int cli_explain(struct cli *cli, const struct hf_etcd_result *result) HF_MUST_CHECK;

/* Begins a plan of this operator with a fresh op_id. */
int cli_plan_begin(struct cli *cli, struct hf_plan *plan) HF_MUST_CHECK;

/* Carries the plan out and releases it. HF_ECONFLICT when a guard did not hold. */
int cli_commit(struct cli *cli, struct hf_plan *plan) HF_MUST_CHECK;

/* Turns the loop until `*done`, or `until` (of hf_clock_boottime; INT64_MAX: no end) has
 * passed: HF_ETIMEOUT. */
int cli_wait(struct cli *cli, const bool *done, hf_ms until) HF_MUST_CHECK;

#endif
