/* plan.h - one guarded write as a value: what must hold in etcd, and what is changed if it
 * does.
 *
 * Pure; whoever executes it makes a Txn of it. A builder with a sticky error: a failed step
 * makes the rest no-ops, and hf_plan_check says what was wrong. Two rules are enforced here, so
 * that no row of the protocol can break them:
 *   - a plan writes a key whose revision it guards, so that a late or repeated copy of it
 *     never applies twice;
 *   - an ephemeral key is put with its lease, always. */
#ifndef HF_CORE_PLAN_H
#define HF_CORE_PLAN_H

#include "base/buf.h"
#include "base/id.h"
#include "schema/keys.h"

#define HF_PLAN_GUARDS 24
#define HF_PLAN_WRITES 16

enum hf_guard {
    HF_GUARD_ABSENT, /* the key does not exist */
    HF_GUARD_MOD,    /* it was last changed at that revision; 0: it does not exist */
    HF_GUARD_CREATE, /* it was created at that revision and still exists */
    HF_GUARD_GONE,   /* it does not exist as created at that revision */
    HF_GUARD_LEASE,  /* it hangs on that lease */
    HF_GUARD_TEXT,   /* it has that value, byte for byte */
};

/* The rows of the table of transactions (core/rows.h), and what others compare beside it. */
/* clang-format off */
#define HF_ROW_MAP(X)                                                                          \
    X(SUBMIT) X(JOIN) X(HOST) X(SPEC)                                                          \
    X(START_BY_COMMAND) X(BOOT_START) X(REJOIN) X(LOCAL_RESTART) X(EXTERNAL_START) X(SUCCEED)  \
    X(REAP) X(CLAIM) X(TASK) X(RELEASE) X(CHECKPOINT) X(REPORT) X(END) X(ADOPT)                \
    X(RESET) X(ORDER) X(PROMOTE) X(DEMOTE) X(REFUSE) X(WITHDRAW) X(TAKE_BACK) X(REVIEW)        \
    X(END_STALLED)                                                                             \
    X(WANT) X(CANCEL) X(RETRY) X(REMOVE_AGENT) X(SWEEP) X(SWEEP_CHAIN)                         \
    X(REMOVE_TASK) X(REMOVE_HOST)                                                              \
    X(WRITE) X(CLOSE) X(OPERATE) X(LEAD) X(EVENT)                                              \
    X(LEAVE)                      /* agentd: its host's record, when it ends for good */       \
    X(NO_START)                   /* beside a health record: the host it names has no start */ \
    X(NO_HEIR)                    /* likewise: the leave that it gave was not used meanwhile */ \
    X(CAMPAIGN) X(RESIGN)         /* io/candidate */                                           \
    X(PROOF)                      /* io/proof */
/* clang-format on */

enum hf_row {
    HF_ROW_NONE,
#define X(name) HF_ROW_##name,
    HF_ROW_MAP(X)
#undef X
        HF_ROWS, /* how many, and one */
};

/* "RESET"; "?" for a value that is none. Static strings. */
const char *hf_row_name(enum hf_row row);

/* Who writes: each class leaves its op_id in the records, and keeps those of the others. */
enum hf_writer { HF_WRITER_OWNER, HF_WRITER_CONTROLLER, HF_WRITER_OPERATOR };

struct hf_plan_guard {
    enum hf_guard what;
    enum hf_row row; /* that asks for it; of several, the first. For tests and transcripts */
    int64_t value;   /* a revision or a lease id */
    const char *key;
    struct hf_bytes text; /* of TEXT */
};

struct hf_plan_write {
    const char *key;
    const char *value; /* NULL: the key is deleted */
    size_t value_len;
    int64_t lease; /* 0: none */
    bool all;      /* of a delete: every key that begins like this one */
};

/* Read-only for callers. */
struct hf_plan {
    const char *ns; /* borrowed */
    enum hf_writer writer;
    enum hf_row row; /* whose guards are being added */
    /* It is sent although what it touches is being written. Should it come first it is refused,
     * and whoever sent it counts on that. */
    bool at_once;
    char op_id[HF_ID_LEN + 1];
    struct hf_plan_guard guards[HF_PLAN_GUARDS];
    size_t guard_count;
    struct hf_plan_write writes[HF_PLAN_WRITES];
    size_t write_count;
    char *texts[2 * HF_PLAN_GUARDS + 2 * HF_PLAN_WRITES]; /* owned: keys and values */
    size_t text_count;
    int err;
    struct hf_error why;
};

/* `ns` must outlive the plan; `op_id` is copied. */
void hf_plan_init(struct hf_plan *plan, const char *ns, enum hf_writer writer,
                  const char *op_id);
void hf_plan_done(struct hf_plan *plan);

/* What is guarded from now on belongs to that row. */
void hf_plan_begin_row(struct hf_plan *plan, enum hf_row row);

/* Once is enough: rows that share a plan may all ask for the same. */
void hf_plan_guard(struct hf_plan *plan, struct hf_key key, enum hf_guard what, int64_t value);

/* The key was last changed at that revision (0: it does not exist) and, where its text is known
 * (not empty), still has it: an etcd that was restored gives known revisions out again, but no
 * two writes leave the same op_ids. */
void hf_plan_guard_same(struct hf_plan *plan, struct hf_key key, int64_t mod_rev,
                        struct hf_bytes text);
/* It has that text, whenever that was written. */
void hf_plan_guard_text(struct hf_plan *plan, struct hf_key key, struct hf_bytes text);

/* Puts the record as JSON with this plan's op_id in it, laid over the text that it replaces
 * (empty: none), so that what only a newer program understands survives. */
void hf_plan_put(struct hf_plan *plan, struct hf_key key, const ProtobufCMessage *record,
                 struct hf_bytes old, int64_t lease);
/* Puts a body: bytes as they are, beside the record that names them. */
void hf_plan_put_body(struct hf_plan *plan, struct hf_key key, struct hf_bytes body);
void hf_plan_delete(struct hf_plan *plan, struct hf_key key);
/* Deletes every key in a scope; none of them may be guarded or written otherwise. */
void hf_plan_delete_all(struct hf_plan *plan, enum hf_key_scope scope, const char *name);

/* The value that the key is put with, which a NUL follows; nothing where it is not. Borrowed.
 */
struct hf_bytes hf_plan_find_put(const struct hf_plan *plan, struct hf_key key);

/* The op_id that a class of writers left in a record, or NULL. Borrowed. */
const char *hf_plan_find_op_id(const ProtobufCMessage *record, enum hf_writer writer);

/* It cannot be built: what is added from now on counts for nothing. The first reason stays. */
void hf_plan_fail(struct hf_plan *plan, int err, const char *why);

/* HF_OK when it may be executed; else the first thing that was wrong, with a sentence. */
int hf_plan_check(struct hf_plan *plan, struct hf_error *err) HF_MUST_CHECK;

/* "if mod(tasks/t1) = 17, create(agents/a/live) = 9 then put tasks/t1, delete pending/r/t1":
 * keys without their prefix, for transcripts and `explain`. */
void hf_plan_describe(const struct hf_plan *plan, struct hf_buf *out);

#endif
